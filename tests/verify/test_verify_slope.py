"""Weighted fits: against NumPy's polynomials, exact curves, and the coverage of the intervals."""

from __future__ import annotations

import numpy as np
import pytest

from symtensor.verify.slope import fit_slopes, weighted_fit

RNG = np.random.default_rng(4)
LOG_N = np.log(np.array([31.0, 70, 131, 260, 499, 1061, 2040, 4101]))


@pytest.mark.parametrize("degree", [1, 2])
def test_weighted_fit_is_numpys(degree: int) -> None:
    y, se = RNG.standard_normal((3, 8)), RNG.uniform(0.1, 2, (3, 8))
    x = LOG_N - LOG_N.mean()
    beta, covariance, residuals = weighted_fit(x, y, se, degree)
    for k in range(3):
        expected, cov = np.polyfit(x, y[k], degree, w=1 / se[k], cov="unscaled")
        assert np.allclose(beta[k], expected[::-1], rtol=1e-9)
        assert np.allclose(covariance[k], cov[::-1, ::-1], rtol=1e-9)
        assert np.allclose(residuals[k], y[k] - np.polyval(expected, x), atol=1e-9)


def test_errors_of_very_different_size_stay_accurate() -> None:
    """Atoms give errors between 1e-6 and 10 in one fit; the line then passes through the precise points."""
    se = np.array([1.0, 1, 1, 1, 1e-6, 3, 1e-6, 5])
    beta, *_ = weighted_fit(LOG_N, np.where(se < 1e-3, 2 + 0.3 * LOG_N, 17.0), se, 1)
    assert beta[1] == pytest.approx(0.3, abs=1e-8)


def test_a_quadratic_is_extrapolated_exactly() -> None:
    fit = fit_slopes(LOG_N, 1 + 0.2 * LOG_N + 0.05 * LOG_N**2, np.full(8, 0.01))
    assert float(fit.curvature) == pytest.approx(0.1)
    assert float(fit.extrapolated) == pytest.approx(0.2 + 0.1 * (LOG_N[-1] + np.log(4)))
    assert float(fit.chi2_dof) == pytest.approx(0, abs=1e-12)
    assert not fit.irregular


def test_only_the_upper_half_gives_the_slope() -> None:
    y = 0.4 * LOG_N
    moved = y.copy()
    moved[:4] += [3.0, -2, 1, 5]
    se = np.full(8, 0.1)
    assert float(fit_slopes(LOG_N, moved, se).slope) == pytest.approx(float(fit_slopes(LOG_N, y, se).slope))
    assert fit_slopes(LOG_N, moved, se).irregular


def test_scatter_beyond_the_errors_inflates_them() -> None:
    y = np.array([0, 0, 0, 0, 1, -1, 1, -1.0])
    narrow, wide = fit_slopes(LOG_N, y, np.full(8, 0.01)), fit_slopes(LOG_N, y, np.full(8, 2.0))
    assert float(narrow.se) > 20 * float(wide.se) * 0.01 / 2
    assert float(wide.se) == pytest.approx(float(fit_slopes(LOG_N, 0 * y, np.full(8, 2.0)).se))


def test_irregular_needs_both_a_bad_fit_and_a_large_residual() -> None:
    zigzag = np.array([1, -1, 1, -1, 1, -1, 1, -1.0])
    assert fit_slopes(LOG_N, zigzag, np.full(8, 0.1)).irregular
    assert not fit_slopes(LOG_N, zigzag, np.full(8, 1.0)).irregular  # within the errors
    assert not fit_slopes(LOG_N, 0.1 * zigzag, np.full(8, 0.01)).irregular  # significant, but small


def test_intervals_cover_at_their_level() -> None:
    """Known Gaussian errors: 5 % outside 1.96 errors. The inflation makes intervals conservative, never narrower."""
    repetitions = 4000
    fit = fit_slopes(LOG_N, 0.1 * RNG.standard_normal((repetitions, 8)), np.full((repetitions, 8), 0.1))
    outside = np.mean(np.abs(fit.slope) > 1.96 * fit.se)
    assert outside < 0.05 + 4 * np.sqrt(0.05 * 0.95 / repetitions)
    bare = fit.se.min()
    assert abs(np.mean(np.abs(fit.slope) > 1.96 * bare) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / repetitions)


def test_batches_are_the_single_fits() -> None:
    y, se = RNG.standard_normal((2, 5, 8)), RNG.uniform(0.1, 1, (2, 5, 8))
    batch = fit_slopes(LOG_N, y, se)
    single = fit_slopes(LOG_N, y[1, 3], se[1, 3])
    for name in ("slope", "se", "curvature", "extrapolated", "chi2_dof", "rms"):
        assert getattr(batch, name)[1, 3] == pytest.approx(float(getattr(single, name)), rel=1e-9)
