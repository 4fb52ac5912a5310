"""Quantiles and their order-statistic errors: against NumPy, against theory, and at atoms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from symtensor.verify import VerificationError
from symtensor.verify.levels import ERROR_FLOOR, check_levels, enough_samples, log_quantile


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("samples", [100, 251, 1000])
def test_the_quantile_is_numpys(level: float, samples: int) -> None:
    values = np.sort(np.random.default_rng(samples).exponential(size=(3, samples)), axis=-1)
    assert np.allclose(np.exp(log_quantile(values, level)[0]), np.quantile(values, level, axis=-1), rtol=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_the_error_is_the_spread_over_repetitions(level: float) -> None:
    """1.17/sqrt(S) for the median of |Z|, and in general sqrt(p (1 - p) / S) over the density of log |Z|."""
    samples, repetitions = 400, 2000
    values = np.sort(np.abs(np.random.default_rng(1).standard_normal((repetitions, samples))), axis=-1)
    y, se = log_quantile(values, level)
    x = {0.5: 0.674490, 0.9: 1.644854}[level]
    theory = math.sqrt(level * (1 - level) / samples) / (x * 2 * math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi))
    if level == 0.5:
        assert theory == pytest.approx(1.17 / math.sqrt(samples), rel=5e-3)
    spread_error = theory / math.sqrt(2 * repetitions)
    assert abs(y.std() - theory) < 4 * spread_error + 0.03 * theory  # the density varies over one error: O(S^-1/2)
    assert theory < se.mean() < 1.25 * theory  # the wider of two estimates: above, by the spread of their maximum


def test_levels_without_ten_samples_beyond_are_refused() -> None:
    assert [enough_samples(s, 0.99) for s in (999, 1000)] == [False, True]
    assert [enough_samples(s, 0.9) for s in (99, 100)] == [False, True]
    assert [enough_samples(s, 0.1) for s in (99, 100)] == [False, True]


def test_identical_samples_reach_the_floor() -> None:
    y, se = log_quantile(np.full(200, 3.0), 0.5)
    assert (float(y), float(se)) == (pytest.approx(math.log(3)), ERROR_FLOOR)


def test_an_atom_next_to_the_quantile_widens_the_error() -> None:
    """Ranks 94 to 107 are within one s of the median; the atom ends at rank 110, which only z = 2 sees."""
    values = np.concatenate([np.ones(110), np.full(90, 1000.0)])
    jump = math.log(1000)
    assert float(log_quantile(values, 0.5, jumps=False)[1]) == pytest.approx(jump * math.sqrt(50) / (115 - 85))
    assert float(log_quantile(values, 0.5)[1]) == pytest.approx(jump)  # which side the quantile falls on is chance
    assert float(log_quantile(np.concatenate([np.ones(130), np.full(70, 1000.0)]), 0.5)[1]) == ERROR_FLOOR


def test_the_jump_rule_leaves_continuous_data_alone() -> None:
    for draw in ("standard_exponential", "standard_cauchy", "standard_normal"):
        values = np.sort(np.abs(getattr(np.random.default_rng(2), draw)((3000, 200))), axis=-1)
        for level, most in ((0.5, 0), (0.9, 6)):  # measured: 3 in 10^4 at S = 200 and q90
            changed = log_quantile(values, level)[1] != log_quantile(values, level, jumps=False)[1]
            assert changed.sum() <= most


def test_zeros_give_wide_errors_and_no_warning() -> None:
    values = np.concatenate([np.zeros(95), np.ones(105)])
    y, se = log_quantile(values, 0.5)
    assert float(y) == 0.0 and float(se) > 100
    assert float(log_quantile(np.zeros(200), 0.5)[0]) == -np.inf


@pytest.mark.parametrize("levels", [(), (0.0, 0.5), (0.5, 1.0), (0.5, 0.5), (1.5,)])
def test_bad_levels_are_refused(levels: tuple[float, ...]) -> None:
    with pytest.raises(VerificationError, match="strictly between 0 and 1"):
        check_levels(levels)
