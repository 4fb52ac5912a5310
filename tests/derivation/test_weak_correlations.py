"""Weak correlations: composition, exponents, theorems, findings; every one by two routes or against a corruption."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

from derivations.weak_correlations.composition import hidden_layer, input_layer, read_out, set_partitions
from derivations.weak_correlations.exponents import (
    ARCHITECTURES,
    cluster_scale,
    derived_scale,
    exact_scale,
    exponent_law,
    power_of,
    smooth_second_moment,
)
from derivations.weak_correlations.run import PUBLISHED, metric_table
from derivations.weak_correlations.steps import linear_step
from derivations.weak_correlations.theorems import (
    ASSUMPTIONS,
    THEOREMS,
    MissingAssumptionError,
    deviation_exponent,
    largest_rate,
    least_tree_weight,
    required_exponent,
    weights,
)
from symtensor.bounds import neuron_contraction, scale

BELL = [1, 1, 2, 5, 15]


@pytest.mark.parametrize(("D", "d", "expected"), [
    (0, 1, "1"), (0, 2, "1/n"), (0, 3, "1/n"), (0, 4, "1/n^2"), (1, 1, "1/sqrt(n)"), (1, 2, "1/n"), (1, 3, "n^(-3/2)"),
    (2, 0, "sqrt(log(n))/sqrt(n)"), (2, 1, "log(n)/n"),
])  # fmt: skip
def test_one_hidden_layer_has_the_exponents_of_section_6(D: int, d: int, expected: str) -> None:
    assert derived_scale("one hidden layer", D, d) == scale(expected)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_exponents_do_not_depend_on_the_architecture_up_to_logs(name: str) -> None:
    for D, d in ((0, 2), (0, 3), (0, 4), (1, 1), (1, 2), (2, 0), (2, 1)):
        assert power_of(derived_scale(name, D, d)) == power_of(derived_scale("one hidden layer", D, d))


def test_the_derived_bound_is_that_of_the_cluster_rule_where_both_are_about_one_norm() -> None:
    for D in (0, 1):
        for d in range(1, 5 - D):
            assert derived_scale("one hidden layer", D, d) == cluster_scale(D, d)


@pytest.mark.parametrize("phi", ["identity", "x^2", "x + x^3/6"])
def test_exact_second_moments_keep_the_derived_bound(phi: str) -> None:
    for D in (0, 1):
        for d in range(5 - D):
            if D + d:
                found = exact_scale(phi, D, d)
                assert found == "0" or scale(found).within(derived_scale("one hidden layer", D, d))


def test_linear_networks_of_two_hidden_layers_keep_the_bound_too() -> None:
    for D, d in ((0, 2), (1, 1)):
        assert scale(exact_scale("identity", D, d, 2)).within(derived_scale("two hidden layers", D, d))


def test_quadrature_agrees_with_exact_moments_of_a_polynomial() -> None:
    n, eta, q = (sp.Symbol(name, positive=True) for name in ("n", "eta", "q"))
    for D, d in ((0, 1), (0, 2), (0, 3), (0, 4), (1, 1), (1, 2), (2, 0), (2, 1), (3, 1)):
        exact = neuron_contraction("x + x^3/6", D, d).second_moment().subs({n: 50, eta: 1, q: sp.Rational(3, 2)})
        found = smooth_second_moment("x + x^3/6", D, d, 1.5).second_moment(50)
        assert found == pytest.approx(float(exact), rel=1e-10)


def test_closed_forms_of_section_8_for_tanh() -> None:
    """n E Q_33, n sd Q_22, sqrt(n) |Q_21|; Q = D! d! C."""
    assert smooth_second_moment("tanh", 0, 3).mean == pytest.approx(-1.7280, abs=1e-4)
    assert math.sqrt(smooth_second_moment("tanh", 0, 2).square) == pytest.approx(0.8529, abs=1e-4)
    assert math.sqrt(smooth_second_moment("tanh", 1, 1).mean) == pytest.approx(0.7941, abs=1e-4)
    assert smooth_second_moment("tanh", 0, 1).mean == pytest.approx(0.85870, abs=1e-5)


def test_without_uncorrelated_neurons_the_bound_is_weaker() -> None:
    part = hidden_layer(input_layer())
    assert read_out(part, 0, 2)[0].scale == scale("1/sqrt(n)")
    assert read_out(part, 0, 2, uncorrelated=True)[0].scale == scale("1/n")
    assert read_out(part, 0, 3)[0].scale == read_out(part, 0, 3, uncorrelated=True)[0].scale  # a mean, odd d


def test_every_contribution_can_be_checked_again() -> None:
    for D, d in ((0, 2), (1, 1), (2, 1)):
        for item in read_out(hidden_layer(input_layer()), D, d)[1]:
            item.bound.check()


def test_set_partitions_of_like_slots() -> None:
    assert [len(set_partitions(0, d)) for d in range(5)] == [1, 1, 2, 3, 5]  # integer partitions
    assert len(set_partitions(2, 2)) == 9  # bipartite partitions of (2, 2)


def test_theorems_need_each_assumption_and_give_one_over_m() -> None:
    for theorem in THEOREMS:
        assert theorem.derive(frozenset(ASSUMPTIONS)).scale == scale("1/m")
        for name in theorem.assumptions:
            with pytest.raises(MissingAssumptionError, match=name):
                theorem.derive(frozenset(ASSUMPTIONS) - {name})
    assert "exponential decay" in THEOREMS[2].assumptions


def test_weaker_correlations_give_a_weaker_conclusion() -> None:
    def no_ends(D: int, d: int) -> sp.Rational:
        return weights("fixed")(D, d) / (2 if D == 1 else 1)

    assert least_tree_weight(no_ends) == 1


def test_findings_are_computed() -> None:
    law = exponent_law("one hidden layer")
    assert largest_rate(law, "fixed").exponent == 1
    rate = largest_rate(law, "exponential")
    assert (rate.exponent, rate.worst) == (sp.Rational(2, 3), (0, 3))
    assert required_exponent("exponential", 0, 3, sp.Rational(3, 2)) == sp.Rational(9, 4)
    order, kinds, _ = deviation_exponent(law)
    assert order == 1 and kinds == ("C_{0,2}", "C_{0,3}", "C_{1,1} C_{1,1}")


def test_a_linear_network_may_have_the_exponential_rate_n() -> None:
    """C_{0,3} = 0 there: without the odd orders nothing stops m = n."""
    law = exponent_law("one hidden layer")

    def linear(D: int, d: int) -> sp.Expr:
        return sp.Rational(10**6) if (D == 0 and d >= 3) or D + d > 2 else law(D, d)

    assert largest_rate(linear, "exponential").exponent == 1


def test_the_linear_network_is_what_training_of_its_weights_gives() -> None:
    rng = np.random.default_rng(0)
    n, q, eta, target = 7, 1.3, 0.2, 0.5
    v, w = rng.standard_normal((2, n))
    f, kernel = math.sqrt(q / n) * v @ w, q / n * (v @ v + w @ w)
    g = f - target
    v, w = v - eta * g * math.sqrt(q / n) * w, w - eta * g * math.sqrt(q / n) * v
    values = {"eta": eta, "q": q, "n": n, "f": f, "Th": kernel, "g": g}
    found = {name: float(e.subs({s: values[s.name] for s in e.free_symbols})) for name, e in linear_step().items()}
    assert found["f"] == pytest.approx(math.sqrt(q / n) * v @ w, rel=1e-12)
    assert found["Th"] == pytest.approx(q / n * (v @ v + w @ w), rel=1e-12)
    assert found["deviation"] == pytest.approx(eta**2 * q * f / n * g**2, rel=1e-12)


def test_the_metric_question_of_section_10() -> None:
    rows = metric_table().rows
    marks = {float(sp.Rational(row[0])): [cell.mark for cell in row[2:6]] for row in rows}
    assert len(rows) == len(PUBLISHED)
    for alpha, (mse_n, mse_23, rms_n, rms_23) in marks.items():
        assert (mse_n, mse_23, rms_23) == ("bad", "bad", "good")
        assert (rms_n == "good") == (alpha in (0, -1))
