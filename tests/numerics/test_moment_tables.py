"""Weak moment tables: three routes to a derivative agree, singular pairs are right in their range, deltas are kept."""

from __future__ import annotations

import numpy as np
import pytest

from symtensor.activation import KinkedDerivativeError, activation
from symtensor.numerics.covariance import CovarianceError
from symtensor.numerics.moments import ORDERS, moment_table
from symtensor.numerics.rules import CLOSED, Derivatives, Rule, parse_rule

PAIR = (1.0, 0.4, 2.0)
FINE = Rule("trapezoid", 241, 10.0)
SPLIT = Rule("split", 20, 10.0)


def _table(name: str, pair: tuple, rule: Rule, mode: Derivatives = "auto") -> dict:
    return {order: float(value) for order, value in moment_table(activation(name), *pair, rule, mode).items()}


def _assert_close(table: dict, exact: dict, rel: float) -> None:
    scale = max(abs(value) for value in exact.values())
    for order in exact:
        assert table[order] == pytest.approx(exact[order], rel=rel, abs=rel * 1e-2 * scale), order


@pytest.mark.parametrize(("rule", "mode"), [(FINE, "inside"), (FINE, "hermite"), (Rule("gh", 100), "hermite"), (SPLIT, "weak")])
@pytest.mark.parametrize("name", ["erf", "sin", "exp(x/2)", "x^3 - x", "exp(-x^2/2)"])
def test_smooth_routes_agree_with_the_closed_form(name: str, rule: Rule, mode: Derivatives) -> None:
    _assert_close(_table(name, PAIR, rule, mode), _table(name, PAIR, CLOSED), 1e-10)


@pytest.mark.parametrize("pair", [PAIR, (0.01, -0.05, 3.0), (2.0, 0.0, 0.5)])
@pytest.mark.parametrize("mode", ["hermite", "weak"])
@pytest.mark.parametrize("name", ["relu", "leaky-relu:0.2", "Abs(x)", "Max(0,x)-0.3*Max(0,-x)"])
def test_relu_family_by_parts_and_by_deltas(name: str, mode: Derivatives, pair: tuple) -> None:
    _assert_close(_table(name, pair, SPLIT, mode), _table(name, pair, CLOSED), 1e-10)


@pytest.mark.parametrize(
    "name", ["Max(x, -1)", "Abs(x)*x + Max(tanh(x), 0)", "Heaviside(x-1/2)*exp(-x) + x^2*Abs(x)", "Min(Max(x,-1),1)"]
)
def test_kinked_expressions_two_routes(name: str) -> None:
    _assert_close(_table(name, PAIR, SPLIT, "hermite"), _table(name, PAIR, SPLIT, "weak"), 1e-10)


def test_hinge_has_known_derivatives() -> None:
    """sigma = max(x, -1): sigma' = [x > -1] and sigma'' = delta(x + 1), so m22 is the joint density at (-1, -1)."""
    a, c, b = PAIR
    det = a * b - c * c
    density = np.exp(-(a + b - 2 * c) / (2 * det)) / (2 * np.pi * np.sqrt(det))
    assert _table("Max(x, -1)", PAIR, SPLIT, "weak")[2, 2] == pytest.approx(density, rel=1e-13)
    assert _table("Max(x, -1)", PAIR, SPLIT, "hermite")[2, 2] == pytest.approx(density, rel=1e-11)


def test_stein_identity_for_relu() -> None:
    """E relu''(Z) = 1/sqrt(2 pi): the delta term that automatic differentiation drops (y enters as a constant)."""
    second = moment_table(activation("relu(x) + 1"), 1.0, 0.0, 0.0, SPLIT, "hermite")[2, 0]
    # with k22 = 0 the y factor is sigma(0) = 1
    assert float(second) == pytest.approx(1 / np.sqrt(2 * np.pi), rel=1e-12)


@pytest.mark.parametrize("name", ["tanh", "gelu", "softplus", "sigmoid"])
def test_moments_are_derivatives_of_the_expectation(name: str) -> None:
    """Central differences of m00 in the covariance, extrapolated: Price's theorem from the outside."""
    function = activation(name)

    def value(k11: float, k12: float, k22: float) -> float:
        return float(moment_table(function, k11, k12, k22, FINE, "inside", ((0, 0),))[0, 0])

    def slope(step: float, axis: int) -> float:
        shift = np.eye(3)[axis] * step
        return (value(*(PAIR + shift)) - value(*(PAIR - shift))) / (2 * step)

    table = _table(name, PAIR, FINE, "inside")
    for axis, exact in enumerate((table[2, 0] / 2, table[1, 1], table[0, 2] / 2)):
        extrapolated = (4 * slope(1e-3, axis) - slope(2e-3, axis)) / 3
        assert extrapolated == pytest.approx(exact, rel=1e-8)


def _along(table: dict, k11: float, k12: float, k22: float) -> tuple[float, float]:
    """First and second derivative of E[h] along the fluctuation dK = K of a rank-one covariance."""
    x, y = np.sqrt(k11), np.sign(k12) * np.sqrt(k22) if k11 else np.sqrt(k22)
    first = (table[2, 0] * x * x + 2 * table[1, 1] * x * y + table[0, 2] * y * y) / 2
    second = (
        table[4, 0] * x**4
        + 4 * table[3, 1] * x**3 * y
        + 6 * table[2, 2] * x * x * y * y
        + 4 * table[1, 3] * x * y**3
        + table[0, 4] * y**4
    ) / 4
    return float(first), float(second)


@pytest.mark.parametrize("pair", [(1.5, 1.5, 1.5), (1.0, 2.0, 4.0), (1.0, -1.0, 1.0), (0.0, 0.0, 1.2), (0.7, 0.0, 0.0)])
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "gelu", "cos(x)"])
def test_singular_pairs_agree_in_the_range(name: str, pair: tuple) -> None:
    """(x, x), (x, 2x), (x, -x) and a zero input: inside (component derivatives) against the range representative."""
    inside = _along(_table(name, pair, FINE, "inside"), *pair)
    by_parts = _along(_table(name, pair, FINE, "hermite"), *pair)
    scaled = lambda c: float(moment_table(activation(name), *(c * np.array(pair)), FINE, "inside", ((0, 0),))[0, 0])  # noqa: E731
    h = 1e-3
    difference = (8 * (scaled(1 + h) - scaled(1 - h)) - (scaled(1 + 2 * h) - scaled(1 - 2 * h))) / (12 * h)
    assert by_parts == pytest.approx(inside, rel=1e-11, abs=1e-13)
    assert by_parts[0] == pytest.approx(difference, rel=1e-8)


@pytest.mark.parametrize("rule", [CLOSED, SPLIT])
def test_relu_on_collinear_inputs(rule: Rule) -> None:
    """E relu(u)^2 = k/2 on the diagonal, 0 for opposite inputs; derivatives by Euler, never nan."""
    same = _table("relu", (3.0, 3.0, 3.0), rule)
    assert same[0, 0] == pytest.approx(1.5, rel=1e-13)
    assert same[1, 1] == pytest.approx(0.5, rel=1e-12)  # chi on the diagonal: E relu'^2
    assert same[2, 2] == pytest.approx(0.0, abs=1e-12)
    double = _table("relu", (1.0, 2.0, 4.0), rule)
    assert double[0, 0] == pytest.approx(1.0, rel=1e-13)
    assert double[1, 1] == pytest.approx(0.5, rel=1e-12)
    for pair in ((1.0, -1.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)):
        assert list(_table("relu", pair, rule).values()) == pytest.approx([0.0] * len(ORDERS), abs=1e-15)


def test_nearly_collinear_inputs() -> None:
    """1 - rho = 1e-8: weak keeps 12 digits of 1/(2 pi sqrt(det)); by parts it cannot, and the test knows."""
    pair = (1.0, 1 - 1e-8, 1.0)
    exact = 1 / (2 * np.pi * np.sqrt(1.0 - pair[1] ** 2))
    assert _table("relu", pair, SPLIT, "weak")[2, 2] == pytest.approx(exact, rel=1e-12)
    assert _table("relu", pair, CLOSED)[2, 2] == pytest.approx(exact, rel=1e-12)
    assert abs(_table("relu", pair, SPLIT, "hermite")[2, 2] / exact - 1) > 1e-7


def test_swapping_the_inputs_transposes_the_table() -> None:
    for name, rule in (("gelu", FINE), ("Max(x, -1)", SPLIT), ("relu", CLOSED)):
        table, swapped = _table(name, PAIR, rule), _table(name, PAIR[::-1], rule)
        for i, j in ORDERS:
            assert table[i, j] == pytest.approx(swapped[j, i], rel=1e-11, abs=1e-14)


def test_batches_equal_single_pairs() -> None:
    k11, k22 = np.array([[0.5], [2.0]]), np.array([1.0, 1.5, 0.0])
    k12 = np.array([[0.3, 0.5, 0.0], [1.0, -1.2, 0.0]])
    for name, rule in (("tanh", FINE), ("relu", CLOSED), ("Max(x,-1)", SPLIT)):
        batch = moment_table(activation(name), k11, k12, k22, rule)
        for index in np.ndindex(2, 3):
            single = _table(name, (k11[index[0], 0], k12[index], k22[index[1]]), rule)
            for order, values in batch.items():
                assert values[index] == pytest.approx(single[order], rel=1e-13, abs=1e-15)


def test_published_rule_is_not_converged() -> None:
    """32-point Gauss-Hermite for tanh at variance 4.4: percents off, inside far worse than by parts."""
    pair, gauss = (4.4, 4.4, 4.4), Rule("gh", 32)
    exact = _along(_table("tanh", pair, FINE, "inside"), *pair)[0]
    inside = _along(_table("tanh", pair, gauss, "inside"), *pair)[0]
    by_parts = _along(_table("tanh", pair, gauss, "hermite"), *pair)[0]
    assert abs(inside / exact - 1) > 0.05
    assert 1e-3 < abs(by_parts / exact - 1) < abs(inside / exact - 1) / 3


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((1.0, 2.0, 1.0), "correlation 2"),
        ((-1.0, 0.0, 1.0), "variance is -1"),
        ((np.nan, 0.0, 1.0), "NaN"),
        ((0.0, 0.5, 1.0), "exceeds"),
    ],
)
def test_bad_pairs(pair: tuple, message: str) -> None:
    with pytest.raises(CovarianceError, match=message):
        moment_table(activation("tanh"), *pair, FINE)


def test_overflow_is_an_error_not_a_nan() -> None:
    with pytest.raises(CovarianceError, match="overflow at variance 2000"):
        moment_table(activation("exp(x)"), 2000.0, 0.0, 1.0, CLOSED)


def test_inside_is_refused_where_it_drops_deltas() -> None:
    with pytest.raises(KinkedDerivativeError, match="Stein"):
        moment_table(activation("relu"), *PAIR, SPLIT, "inside")
    first = moment_table(activation("relu"), *PAIR, SPLIT, "inside", ((0, 0), (1, 1)))
    assert float(first[1, 1]) == pytest.approx(_table("relu", PAIR, CLOSED)[1, 1], rel=1e-12)


def test_bad_orders_and_missing_closed_form() -> None:
    with pytest.raises(ValueError, match="0, 2 or 4"):
        moment_table(activation("tanh"), *PAIR, FINE, orders=((1, 0),))
    with pytest.raises(ValueError, match="no closed form"):
        moment_table(activation("tanh"), *PAIR, parse_rule("closed") or FINE)
