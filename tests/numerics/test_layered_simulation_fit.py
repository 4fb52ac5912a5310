"""Fits in 1/n: exact on polynomials, calibrated errors, correlated parts, visible truncation bias."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from symtensor.numerics._layered_simulation_fit import fit_blocks
from symtensor.numerics._layered_simulation_reduce import Replicates
from symtensor.numerics._statistics import Estimate, group_counts, jackknife
from symtensor.numerics.layered_simulation import fit_in_inverse_width

WIDTHS = (8, 12, 16, 24, 32)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=4), st.integers(0, 2), st.floats(1e-6, 1e3))
def test_polynomials_are_reproduced(coefficients, first, error):
    estimates = [
        Estimate(np.array([sum(c * n ** -(first + k) for k, c in enumerate(coefficients))]), np.array([error * n])) for n in WIDTHS
    ]
    fit = fit_in_inverse_width(WIDTHS, estimates, len(coefficients), first=first)
    for k, c in enumerate(coefficients):
        found = fit.coefficient(first + k)
        assert abs(found.mean.item() - c) < 1e-6 * (1 + abs(c)) * 32 ** (first + k) / 8**k + 1e-6 * found.se.item()
    assert fit.chi2.item() < 1e-6 / min(error, 1.0) ** 2
    assert fit.dof == len(WIDTHS) - len(coefficients)


def test_standard_errors_and_chi2_are_calibrated():
    """2000 synthetic experiments: pulls are standard normal, chi2 follows its law, and weights matter."""
    rng, errors = np.random.default_rng(1), np.array([0.5, 0.1, 0.3, 0.05, 0.2])
    truth = np.array([3.0, -7.0])
    values = truth[0] + truth[1] / np.array(WIDTHS)[:, None] + errors[:, None] * rng.normal(size=(5, 2000))
    fit = fit_in_inverse_width(WIDTHS, [Estimate(v, np.full(2000, e)) for v, e in zip(values, errors)], 2)
    for k in (0, 1):
        pulls = fit.coefficient(k).z(truth[k])
        assert abs(pulls.mean()) < 4 / np.sqrt(2000) and abs(pulls.var() - 1) < 4 * np.sqrt(2 / 2000)
    assert stats.kstest(fit.p_value, "uniform").pvalue > 1e-4
    assert fit.shift is not None
    pulls = fit.shift[1].z(0.0)
    assert abs(pulls.mean()) < 4 / np.sqrt(2000) and abs(pulls.var() - 1) < 4 * np.sqrt(2 / 2000)


def test_correlated_parts_against_dense_least_squares():
    rng, widths = np.random.default_rng(2), (8, 16, 32)
    roots = rng.normal(size=(3, 2, 2))
    covariance = roots @ np.swapaxes(roots, 1, 2)
    values = rng.normal(size=(3, 2))
    fit = fit_blocks(widths, values[..., None], covariance[..., None], 3, (0, 1))
    design = np.array([row for n in widths for row in ([1.0, 0, 0], [0, 1 / n, 1 / n**2])])
    weight = np.zeros((6, 6))
    for k in range(3):
        weight[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = np.linalg.inv(covariance[k])
    inverse = np.linalg.inv(design.T @ weight @ design)
    beta = inverse @ design.T @ weight @ values.ravel()
    residual = values.ravel() - design @ beta
    assert np.allclose([c.mean.item() for c in fit.coefficients], beta, rtol=1e-9)
    assert np.allclose([c.se.item() for c in fit.coefficients], np.sqrt(np.diag(inverse)), rtol=1e-9)
    assert np.isclose(fit.chi2.item(), residual @ weight @ residual, rtol=1e-8) and fit.dof == 3


def test_truncation_bias_shows_in_the_shift():
    estimates = [Estimate(np.array([1.0 + 2.0 / n + 50.0 / n**2]), np.array([1e-3])) for n in WIDTHS]
    fit = fit_in_inverse_width(WIDTHS, estimates, 2)
    assert abs(fit.coefficient(1).z(2.0).item()) > 10 and fit.p_value.item() < 1e-6
    assert fit.shift is not None and abs(fit.shift[1].z(0.0).item()) > 10
    assert np.isclose(fit.coefficient(1).mean + fit.shift[1].mean, 2.0)
    assert fit_in_inverse_width(WIDTHS[:2], estimates[:2], 2).shift is None


def test_a_constant_has_no_error():
    """Components that do not fluctuate (a zero input) stay exact beside others that do."""
    estimates = [Estimate(np.array([0.0, 1.0 + 1.0 / n]), np.array([0.0, 0.1])) for n in WIDTHS]
    fit = fit_in_inverse_width(WIDTHS, estimates, 2)
    assert fit.coefficient(0).mean[0] == 0.0 and fit.coefficient(0).se[0] == 0.0 and fit.chi2[0] == 0.0
    assert np.isclose(fit.coefficient(1).mean[1], 1.0) and fit.coefficient(1).se[1] > 0


def test_replicates_are_the_jackknife():
    rng = np.random.default_rng(3)
    counts = group_counts(1000, 64)
    total, without = rng.normal(size=3), rng.normal(size=(64, 3))
    replicates = Replicates(total, without, counts)
    assert np.allclose(replicates.standard_error(), jackknife(total, without, counts))
    assert np.allclose((replicates + replicates).standard_error(), 2 * jackknife(total, without, counts))


@pytest.mark.parametrize(
    ("widths", "terms", "text"),
    [((8, 8), 1, "different widths"), ((8, 16), 3, "2 widths do not fix 3 powers"), ((8, 16), 0, "do not fix 0 powers")],
)
def test_refusals(widths, terms, text):
    estimates = [Estimate(np.array(1.0), np.array(0.1))] * 2
    with pytest.raises(ValueError, match=text):
        fit_in_inverse_width(widths, estimates, terms)
    with pytest.raises(ValueError, match="the coefficient of n\\^-4 was not fitted"):
        fit_in_inverse_width((8, 16), estimates, 2).coefficient(4)
