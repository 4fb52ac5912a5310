"""The growth condition of activations: bounds known in closed form, exact values at a point, refusals."""

from __future__ import annotations

import math

import mpmath
import pytest
import sympy as sp

from symtensor.activation import ActivationError, X
from symtensor.activation.growth_condition import growth_at, growth_condition, strip_of_analyticity


def poles(k: int) -> float:
    """sup |tanh^(k)| <= 2 k! (2/pi)^{k+1} sum_j (2j+1)^{-(k+1)}, from the poles at +-i pi/2 (2j+1)."""
    series = float((1 - mpmath.mpf(2) ** -(k + 1)) * mpmath.zeta(k + 1))
    return 2 * math.factorial(k) * (2 / math.pi) ** (k + 1) * series


def test_tanh_is_covered_and_its_suprema_are_those_of_its_poles() -> None:
    found = growth_condition("tanh", orders=12)
    assert found.satisfied and found.strip == sp.pi / 2 and found.unbounded == ()
    assert (found.constant, found.order) == (pytest.approx(1, rel=1e-10), 0)
    for k in range(1, 12):
        assert found.suprema[k] <= poles(k) * (1 + 1e-7)
        if k % 2:  # attained at 0
            assert found.suprema[k] == pytest.approx(poles(k), rel=1e-7)
            assert found.suprema[k] == pytest.approx(abs(float(sp.diff(sp.tanh(X), X, k).subs(X, 0))), rel=1e-7)
    assert found.tail < found.constant


@pytest.mark.parametrize(
    ("name", "orders", "value"),
    [("sin", 0, 1), ("softplus", 1, 1), ("sigmoid", 1, 0.25), ("erf", 1, 2 / math.sqrt(math.pi)), ("atan(x)", 0, math.pi / 2)],
)
def test_suprema_known_in_closed_form(name: str, orders: int, value: float) -> None:
    assert growth_condition(name).suprema[orders] == pytest.approx(value, rel=1e-8)


def test_gelu_supremum_is_the_root_of_its_second_derivative() -> None:
    """gelu' = Phi + x N has its maximum where 2 N = x^2 N, at sqrt 2."""
    value = float(sp.diff(X * (1 + sp.erf(X / sp.sqrt(2))) / 2, X).subs(X, sp.sqrt(2)))
    found = growth_condition("gelu")
    assert found.suprema[1] == pytest.approx(value, rel=1e-9)
    assert found.unbounded == (0,) and found.satisfied


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("erf", "satisfied"), ("softplus", "satisfied"), ("identity", "satisfied"), ("x**3/6 + x", "satisfied"),
        ("1/(4+x**2)", "satisfied"), ("1/(1+x**2)", "borderline"), ("atan(x)", "borderline"), ("tanh(2*x)", "violated"),
        ("exp(x)", "violated"), ("relu", "not analytic"), ("Abs(x)", "not analytic"),
    ],
)  # fmt: skip
def test_verdicts(name: str, verdict: str) -> None:
    assert growth_condition(name).verdict == verdict


def test_a_violated_condition_shows_in_the_ratios() -> None:
    """tanh(2x) has its poles at pi/4: the ratios grow like (4/pi)^k / k."""
    found = growth_condition("tanh(2*x)", orders=16)
    ratios = [found.suprema[k] / math.factorial(k + 1) for k in (9, 11, 13)]
    assert ratios[0] < ratios[1] < ratios[2]
    assert ratios[2] / ratios[1] == pytest.approx((4 / math.pi) ** 2 * 12 / 14, rel=1e-2)


def test_polynomials_have_unbounded_low_orders_only() -> None:
    assert growth_condition("x**2").unbounded == (0, 1)
    assert growth_condition("identity").unbounded == (0,)


def test_the_borderline_function_at_a_point_and_its_refusal_as_an_activation() -> None:
    found = growth_at(1 / (1 - X) ** 2, 0, orders=8)
    assert found.derivatives == tuple(sp.factorial(k + 1) for k in range(8))
    assert (found.constant, found.radius, found.verdict) == (1, 1, "borderline")
    assert growth_at(1 / (1 - X) ** 2, -1).verdict == "satisfied"  # the pole is 2 away
    assert growth_at(1 / (1 - X) ** 2, sp.Rational(1, 2)).verdict == "violated"
    with pytest.raises(ActivationError, match="x = 1"):
        growth_condition("1/(1-x)**2")
    with pytest.raises(ActivationError, match="another point"):
        growth_at(1 / (1 - X) ** 2, 1)


@pytest.mark.parametrize(
    ("expr", "strip"),
    [(sp.tanh(3 * X + 1), sp.pi / 6), (1 / (1 + sp.exp(-X)), sp.pi), (sp.log(2 + X**2), sp.sqrt(2)), (sp.exp(X) + X**5, sp.oo)],
)
def test_strips_of_analyticity(expr: sp.Expr, strip: sp.Expr) -> None:
    assert sp.simplify(strip_of_analyticity(expr) - strip) in (0, sp.nan)


def test_singularities_that_cannot_be_located_are_refused() -> None:
    with pytest.raises(ActivationError, match="located"):
        growth_condition("1/(2 + sin(x) + x**2/9)")
    with pytest.raises(ValueError, match="orders"):
        growth_condition("tanh", orders=1)
