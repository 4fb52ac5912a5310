"""Comparison of theory with simulation: z-scores, edge cases, power, validity windows."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from symtensor.derivation.compare import (
    ComparisonError,
    compare,
    compare_all,
    family_threshold,
    separation,
    validity_window,
    verdict,
)


def test_z_and_relative_error_by_hand():
    result = compare([[1.0], [2.0]], ([[1.5], [1.0]], [[0.25], [0.5]]))
    assert result.z.tolist() == [[2.0], [-2.0]]
    assert result.relative_error.tolist() == [[0.5], [0.5]]
    assert (result.count, result.max_abs_z, result.per_depth().tolist()) == (2, 2.0, [2.0, 2.0])


def test_relative_error_is_to_the_largest_component_of_the_same_depth():
    result = compare([[10.0, 0.0], [1.0, 0.0]], (np.array([[10.0, 1.0], [1.0, 1.0]]), np.ones((2, 2))))
    assert result.relative_error.tolist() == [[0.0, 0.1], [0.0, 1.0]]


def test_zero_standard_errors():
    result = compare([1.0, 1.0, 1.0, 0.0], ([1.0, 1.0 + 1e-15, 1.1, -0.1], [0.0, 0.0, 0.0, 0.0]))
    assert result.z.tolist() == [0.0, 0.0, np.inf, -np.inf]
    assert result.count == 2


def test_unknown_values_are_left_out():
    result = compare([np.nan, 1.0], ([1.0, 1.0], [0.1, np.nan]))
    assert np.isnan(result.z).all() and result.count == 0 and np.isnan(result.max_abs_z)
    assert verdict(result).outcome == "no power"
    assert np.isnan(result.per_depth()).all()


def test_objects_with_mean_and_se_are_accepted_and_wrong_shapes_refused():
    assert compare([1.0], SimpleNamespace(mean=np.array([2.0]), se=np.array([1.0]))).z.tolist() == [1.0]
    with pytest.raises(ComparisonError, match=r"K: shapes differ: theory \(2,\), mean \(1,\), se \(1,\)"):
        compare([1.0, 2.0], ([1.0], [1.0]), "K")
    with pytest.raises(ComparisonError, match=r"negative standard error -1 at index \(1,\)"):
        compare([1.0, 2.0], ([1.0, 1.0], [1.0, -1.0]))


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.floats(0.1, 10))
def test_z_does_not_depend_on_units_and_changes_sign_with_the_roles(theory, mean, se, unit):
    z = float(compare([theory], ([mean], [se])).z[0])
    assert float(compare([theory * unit], ([mean * unit], [se * unit])).z[0]) == pytest.approx(z, rel=1e-6, abs=1e-3)
    assert float(compare([mean], ([theory], [se])).z[0]) == -z


def test_threshold_is_two_sided_bonferroni():
    assert family_threshold(1, 0.05) == pytest.approx(1.959964, abs=1e-6)
    assert family_threshold(100, 0.05) == pytest.approx(float(norm.isf(0.00025)))


def test_threshold_is_passed_by_pure_noise_as_often_as_stated():
    noise = np.random.default_rng(0).standard_normal((4000, 20))
    rejected = np.mean([compare(np.zeros(20), (row, np.ones(20))).max_abs_z > family_threshold(20) for row in noise])
    standard_error = np.sqrt(0.05 * 0.95 / 4000)
    assert abs(rejected - 0.05) < 4 * standard_error + 0.0013  # independent draws: 1 - (1 - 0.05/20)^20 = 0.0488


def test_verdicts():
    theory, mean = np.zeros(4), np.array([0.5, -0.5, 0.2, 0.1])
    accepted = compare(theory, (mean, np.full(4, 1.0)))
    assert verdict(accepted, np.full(4, 10.0)).outcome == "accepted"
    assert verdict(accepted, np.full(4, 3.0)).outcome == "no power"
    assert verdict(accepted, theory).outcome == "no power"
    assert verdict(accepted).outcome == "not rejected"
    rejected = verdict(compare(theory, (mean, np.full(4, 0.1))), np.full(4, 10.0))
    assert rejected.outcome == "rejected" and "max |z| = 5.00 over 4 comparisons, threshold 2.50" in rejected.reason


def test_a_difference_with_no_error_at_all_is_rejected():
    assert verdict(compare([0.0], ([0.1], [0.0])), [1.0]).outcome == "rejected"


def test_power_is_what_it_says():
    """An alternative just far enough for `accepted` is rejected by about 95 % of draws from it."""
    theory, se = np.zeros(3), np.ones(3)
    needed = family_threshold(3) + norm.isf(0.05)
    assert verdict(compare(theory, (theory, se)), [needed + 1e-9, 0, 0]).outcome == "accepted"
    assert verdict(compare(theory, (theory, se)), [needed - 1e-9, 0, 0]).outcome == "no power"
    draws = np.random.default_rng(1).standard_normal((4000, 3)) + np.array([needed, 0, 0])
    rejections = np.mean([verdict(compare(theory, (draw, se))).outcome == "rejected" for draw in draws])
    assert 0.94 < rejections < 0.97


def test_separation_ignores_what_is_not_known():
    result = compare([np.nan, 0.0], ([1.0, 0.0], [1.0, 2.0]))
    assert separation(result, [100.0, 4.0]) == 2.0


def test_validity_window_finds_the_first_crossings():
    t = np.linspace(0, 1, 5)
    theory = np.ones((5, 1, 1))
    mean = theory + np.array([0, 0.01, 0.04, 0.06, 0.2])[:, None, None]
    window = validity_window(compare(theory, (mean, np.full((5, 1, 1), 0.01))), z_level=3, relative_level=0.05)
    assert (window.first_z, window.first_relative, window.last) == (2, 3, 4)
    assert window.describe(t) == "|z| > 3: from depth 2 (t = 0.5); relative error > 5%: from depth 3 (t = 0.75)"


def test_noise_alone_is_not_a_relative_crossing():
    window = validity_window(compare(np.ones((2, 1)), (np.array([[1.5], [0.5]]), np.ones((2, 1)))))
    assert (window.first_z, window.first_relative) == (None, None)
    assert window.describe() == "|z| > 3: nowhere up to depth 1; relative error > 5%: nowhere up to depth 1"


def test_compare_all_takes_what_both_sides_have(fake):
    run = fake.hierarchy_run()
    pairs = {"K": ("K0", "K"), "none": ("missing", "K"), "other": ("K0", "missing")}
    result = compare_all(run.theory, run.simulation, pairs)
    assert list(result) == ["K"]
    assert np.array_equal(result["K"].theory, run.theory["K0"].values)
