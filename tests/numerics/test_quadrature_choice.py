"""Rules as values, and rules chosen by their own error."""

from __future__ import annotations

import numpy as np
import pytest

from symtensor.activation import NotSquareIntegrableError, activation
from symtensor.numerics.covariance import CovarianceError, condition_number, require_covariance
from symtensor.numerics.moments import moment_table
from symtensor.numerics.quadrature import QuadratureNotConverged, choose_rule, rule_error
from symtensor.numerics.reference import reference_moments
from symtensor.numerics.rules import CLOSED, Rule, RuleError, nodes_weights, parse_rule


@pytest.mark.parametrize("text", ["gh:32", "trapezoid:161", "trapezoid:161@12", "trapezoid:61@7.04", "split:16", "closed"])
def test_rules_round_trip(text: str) -> None:
    rule = parse_rule(text)
    assert rule is not None and str(rule) == text and parse_rule(str(rule)) == rule


def test_auto_is_no_rule() -> None:
    assert parse_rule("auto") is None


@pytest.mark.parametrize("text", ["gh", "gh:0", "simpson:10", "trapezoid:2", "gh:-3", "trapezoid:161@0", "gh:32000", ""])
def test_bad_rules(text: str) -> None:
    with pytest.raises(RuleError):
        parse_rule(text)


@pytest.mark.parametrize("rule", [Rule("trapezoid", 81), Rule("gh", 24), Rule("split", 12)])
def test_rules_integrate_gaussian_moments(rule: Rule) -> None:
    z, w = nodes_weights(rule)
    for power, exact in ((0, 1), (1, 0), (2, 1), (4, 3), (6, 15), (8, 105)):
        assert w @ z**power == pytest.approx(exact, rel=1e-12, abs=1e-12)
    with pytest.raises(ValueError):
        z[0] = 0.0  # cached, so read-only


def test_closed_has_no_nodes() -> None:
    with pytest.raises(RuleError, match="no nodes"):
        nodes_weights(CLOSED)


def _kernel(k: float, rho: float) -> np.ndarray:
    return np.array([[k, rho * k], [rho * k, k]])


@pytest.mark.parametrize("k", [1e-6, 1.0, 20.0])
@pytest.mark.parametrize("name", ["tanh", "gelu", "softplus", "sigmoid", "x*sigmoid(x)"])
def test_the_error_estimate_is_honest(name: str, k: float) -> None:
    """The chosen rule against one with twice the nodes and a wider radius: within the tolerance asked for."""
    function = activation(name)
    choice = choose_rule(function, _kernel(k, 0.3), 1e-10)
    assert choice.rule.kind == "trapezoid" and choice.derivatives == "inside"
    finer = Rule("trapezoid", 2 * choice.rule.n + 1, 1.3 * choice.rule.radius)
    for pair in ((k, 0.3 * k, k), (k, k, k)):
        coarse, fine = (moment_table(function, *pair, rule, "inside") for rule in (choice.rule, finer))
        for i, j in coarse:
            scale = max(abs(fine[i, j]), abs(fine[j, i]), abs(moment_table(function, k, k, k, finer, "inside")[i, j]))
            assert abs(coarse[i, j] - fine[i, j]) <= 2e-10 * scale


def test_rule_is_deterministic_and_tighter_tolerances_take_more_nodes() -> None:
    loose, tight = (choose_rule(activation("tanh"), _kernel(2.0, 0.5), tol) for tol in (1e-5, 1e-11))
    assert loose.rule.n < tight.rule.n
    assert tight == choose_rule(activation("tanh"), _kernel(2.0, 0.5), 1e-11)
    assert loose.error <= 1e-5 and tight.error <= 1e-11


def test_one_rule_serves_all_kernels() -> None:
    ramp = np.stack([_kernel(k, 0.2) for k in np.linspace(0.1, 8.0, 200)])
    assert choose_rule(activation("tanh"), ramp).rule == choose_rule(activation("tanh"), ramp[[-1]]).rule


def test_closed_forms_are_preferred() -> None:
    for name in ("erf", "sin", "relu", "identity", "x^2", "Abs(x)"):
        choice = choose_rule(activation(name), _kernel(1.0, 1.0))
        assert choice.rule == CLOSED and str(choice).startswith("closed")


def test_kinked_expressions_use_split_panels() -> None:
    choice = choose_rule(activation("Max(x, -1)"), _kernel(1.0, 0.3))
    assert choice.rule.kind == "split" and choice.derivatives == "hermite" and choice.error <= 1e-10


def test_near_singular_kinked_is_refused_by_parts_and_done_by_deltas() -> None:
    near = _kernel(1.0, 1 - 1e-8)
    assert condition_number(near) == pytest.approx(2e8, rel=1e-3)
    with pytest.raises(QuadratureNotConverged, match="weak") as caught:
        choose_rule(activation("Max(x, -1)"), near)
    assert 1e-10 < caught.value.error < 1.0 and caught.value.tol == 1e-10
    assert choose_rule(activation("Max(x, -1)"), near, derivatives="weak").error <= 1e-10


def test_growing_functions_get_a_wider_radius() -> None:
    wide = choose_rule(activation("exp(x^2/30)*tanh(x)"), np.array([[5.0]]))
    plain = choose_rule(activation("tanh"), np.array([[5.0]]))
    assert wide.rule.radius > 1.2 * plain.rule.radius


def test_unreachable_tolerance_reports_what_was_achieved() -> None:
    with pytest.raises(QuadratureNotConverged, match="computed to") as caught:
        choose_rule(activation("tanh"), np.array([[1.0]]), tol=1e-17)
    assert caught.value.choice.error < 1e-11


def test_rule_error_flags_the_published_rule() -> None:
    """32-point Gauss-Hermite for tanh up to variance 4.4: percents off, by parts less so."""
    kernels = np.array([[[2.0]], [[3.0]], [[4.4]]])
    function = activation("tanh")
    first = ((0, 0), (2, 0), (1, 1), (0, 2))
    inside = rule_error(function, kernels, Rule("gh", 32), "inside", first)
    by_parts = rule_error(function, kernels, Rule("gh", 32), "hermite", first)
    assert inside > 0.05
    assert 1e-3 < by_parts < inside / 3
    assert rule_error(function, kernels, Rule("gh", 32), "inside") > inside  # fourth derivatives are worse still
    assert rule_error(function, kernels, Rule("trapezoid", 241), "inside") < 1e-10


def test_rule_error_is_measured_against_an_independent_value() -> None:
    """m00 of a coarse rule: the reported error is the true one, from 20-digit mpmath."""
    rule, function = Rule("trapezoid", 21, 8.0), activation("tanh")
    exact = float(reference_moments(function, 2, 2, 2, digits=20)[0, 0])
    true = abs(float(moment_table(function, 2.0, 2.0, 2.0, rule, orders=((0, 0),))[0, 0]) / exact - 1)
    assert rule_error(function, np.array([[2.0]]), rule, orders=((0, 0),)) == pytest.approx(true, rel=1e-3)


def test_bad_input() -> None:
    with pytest.raises(NotSquareIntegrableError, match="kernel 1"):
        choose_rule(activation("exp(x^2)"), np.array([[[0.2]], [[2.0]]]))
    with pytest.raises(CovarianceError, match="NaN"):
        choose_rule(activation("tanh"), np.array([[np.nan]]))
    with pytest.raises(CovarianceError, match="shape"):
        choose_rule(activation("tanh"), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="tolerance"):
        choose_rule(activation("tanh"), np.eye(2), tol=0.0)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1, 2], [2, 1]], "eigenvalue is -1"),
        ([[1, 0], [0.5, 1]], "not symmetric"),
        ([[-1.0]], "a variance is not negative"),
        ([[1, np.inf], [np.inf, 1]], r"\[0, 1\] is inf"),
        ([[1, 2, 3]], "square"),
        ([["a"]], "real numbers"),
    ],
)
def test_covariance_checks(matrix: list, message: str) -> None:
    with pytest.raises(CovarianceError, match=message):
        require_covariance(matrix, "K0")  # type: ignore[arg-type]


def test_covariance_accepts_singular_ones() -> None:
    assert require_covariance(2.0).shape == (1, 1)  # type: ignore[arg-type]
    ones = require_covariance(np.ones((3, 3)))
    assert condition_number(ones) == pytest.approx(1.0)
    assert condition_number(np.zeros((2, 2))) == 1.0
