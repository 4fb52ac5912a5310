"""Taylor series with remainder: coefficients against differentiation, remainders against the exact difference."""

from __future__ import annotations

import itertools
import math

import mpmath
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from symtensor.expansion import (
    EnclosureError,
    ExpansionError,
    NthDerivative,
    SymbolicOrderError,
    UnknownCoefficientError,
    taylor,
)
from symtensor.expansion.intervals import enclose, supremum
from symtensor.expansion.remainder import THETA

x, y, a, k = sympy.symbols("x y a k")
m = sympy.Symbol("m", integer=True, positive=True)
f = sympy.Function("f")

SCALAR = [
    (sympy.exp(x), 0),
    (sympy.tanh(x), sympy.Rational(1, 2)),
    (1 / (1 + x**2), 1),
    (sympy.sin(x) * sympy.cosh(x), -1),
]
PLANE = [
    (sympy.exp(x) * sympy.sin(y), (0, 0)),
    (1 / (1 + x**2 + y), (1, 0)),
    (sympy.tanh(x * y + x), (sympy.Rational(1, 2), 1)),
]


@pytest.mark.parametrize(("expr", "point"), SCALAR, ids=str)
def test_scalar_coefficients_are_derivatives(expr, point):
    series = taylor(expr, x, point)
    for order in range(6):
        exact = expr.diff(x, order).subs(x, point)
        assert sympy.simplify(series.derivative(order) - exact) == 0
        assert sympy.simplify(series.coefficient(order) - exact / math.factorial(order)) == 0


@pytest.mark.parametrize(("expr", "point"), PLANE, ids=str)
def test_multi_index_coefficients_are_derivatives(expr, point):
    series = taylor(expr, (x, y), point)
    for alpha in itertools.product(range(3), repeat=2):
        exact = expr.diff(x, alpha[0], y, alpha[1]).subs({x: point[0], y: point[1]})
        assert sympy.simplify(series.derivative(alpha) - exact) == 0


def test_undefined_functions_are_differentiated():
    series = taylor(f(x, y), (x, y), (1, a))
    assert series.derivative((1, 2)) == f(x, y).diff(x, y, 2).subs({x: 1, y: a})
    assert taylor(f(x), x, 0).coefficient(2) == f(x).diff(x, 2).subs(x, 0) / 2


def test_degrees_are_computed_on_demand_and_once():
    series = taylor(sympy.exp(x * y) / (1 - x), (x, y), (0, 0))
    assert series.evaluations == 0
    series.coefficient((2, 1))
    assert series.evaluations == 1
    series.coefficient((1, 2))
    assert series.truncate(5).coefficient((1, 2)) == 0 and series.evaluations == 1


@given(st.integers(1, 5), st.integers(1, 5))
@settings(max_examples=10, deadline=None)
def test_truncations_agree_on_common_terms(low, high):
    full = taylor(sympy.exp(x) * sympy.cos(x * y), (x, y), (0, 0))
    low, high = sorted((low, high))
    difference = sympy.Poly(full.truncate(high).partial_sum() - full.truncate(low).partial_sum(), x, y)
    assert all(low <= sum(alpha) < high for alpha, c in difference.terms() if c)


# -- remainder -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize(("expr", "point"), SCALAR, ids=str)
def test_integral_form_is_the_exact_difference(expr, point, order):
    series = taylor(expr, x, point, order)
    at = sympy.Rational(7, 5)
    difference = sympy.N(expr.subs(x, at) - series.partial_sum(at=[at]), 30)
    assert abs(difference) > 1e-4
    assert abs(series.remainder().evaluate({x: at}, 25) - difference) < sympy.Float("1e-18")


@pytest.mark.parametrize(("expr", "point"), PLANE, ids=str)
def test_integral_form_in_two_variables(expr, point):
    series = taylor(expr, (x, y), point, 3)
    at = (point[0] + sympy.Rational(1, 3), point[1] + sympy.Rational(1, 2))
    difference = sympy.N((expr.subs({x: at[0], y: at[1]}) - series.partial_sum(at=at)), 25)
    assert abs(difference) > 1e-4
    assert abs(series.remainder().evaluate({x: at[0], y: at[1]}, 20) - difference) < 1e-15


@pytest.mark.parametrize(("expr", "point"), [*SCALAR[:2], *PLANE[:2]], ids=str)
def test_lagrange_form_meets_the_difference_at_some_theta(expr, point):
    names, values = ((x, y), point) if isinstance(point, tuple) else ((x,), (point,))
    series = taylor(expr, names, values, 3)
    at = {s: v + sympy.Rational(2, 5) for s, v in zip(names, values, strict=True)}
    difference = float(sympy.N(expr.subs(at) - series.partial_sum().subs(at)))
    form = sympy.lambdify(THETA, series.remainder(form="lagrange").expr.subs(at), "math")
    values_between = [form(i / 200) - difference for i in range(201)]
    assert min(values_between) <= 0 <= max(values_between)
    assert abs(form(0) - difference) > 1e-5


def test_symbolic_order_becomes_the_remainder_of_that_order():  # sympy #27852
    series = taylor(sympy.exp(x), x, 0)
    symbolic = series.remainder(m)
    assert symbolic.expr.has(NthDerivative)
    for order in (1, 3):
        ours = symbolic.expr.subs(m, order).doit().subs(x, sympy.Rational(3, 2))
        exact = sympy.exp(sympy.Rational(3, 2)) - series.partial_sum(order, at=[sympy.Rational(3, 2)])
        assert abs(sympy.N(ours - exact, 20)) < 1e-15
        assert symbolic.at_order(order).expr == series.remainder(order).expr
    lagrange = series.remainder(m, "lagrange")
    assert sympy.simplify(lagrange.expr.subs(m, 2).doit() - x**2 / 2 * sympy.exp(THETA * x)) == 0
    with pytest.raises(SymbolicOrderError, match="at_order"):
        symbolic.evaluate({x: 1})
    with pytest.raises(SymbolicOrderError, match="at_order"):
        lagrange.bound({x: (0, 1)})
    with pytest.raises(SymbolicOrderError, match="2 variables"):
        taylor(x * y, (x, y), (0, 0)).remainder(m)


def test_a_sum_over_derivatives_of_symbolic_order():  # sympy #27852
    expected = f(x).diff(x) + f(x).diff(x, 2) + f(x).diff(x, 3)
    assert sympy.Sum(NthDerivative(f(x), x, k), (k, 1, 3)).doit() == expected
    assert sympy.Sum(NthDerivative(sympy.sin(x), x, k), (k, 1, 3)).doit() == -sympy.sin(x)
    derivative = NthDerivative(f(a * x), x, k)
    assert derivative.diff(x) == NthDerivative(f(a * x), x, k + 1)
    assert NthDerivative(sympy.sin(x), x, k).subs(x, 0).subs(k, 1).doit() == 1  # differentiate first, then insert 0
    assert NthDerivative(x**2, x, 0) == x**2
    assert sympy.latex(NthDerivative(f(x), x, k)) == r"\frac{d^{k}}{d x^{k}} f{\left(x \right)}"
    with pytest.raises(ValueError, match="order"):
        NthDerivative(f(x), x, -1)
    with pytest.raises(SymbolicOrderError):
        derivative.diff(k)


# -- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expr", [sympy.tanh(x), sympy.erf(x), sympy.sin(2 * x), sympy.exp(-x), 1 / (2 + x), sympy.log(2 + x)]
)
@pytest.mark.parametrize("order", [2, 4])
def test_bounds_hold_and_are_useful(expr, order):
    series = taylor(expr, x, 0, order)
    bound = series.bound({x: (-0.5, 0.75)}, pieces=32)
    function = sympy.lambdify(x, expr - series.partial_sum(), "mpmath")
    worst = max(abs(function(mpmath.mpf(-0.5) + mpmath.mpf(1.25) * i / 400)) for i in range(401))
    assert worst <= bound.value
    assert bound.value <= 40 * worst
    assert "interval arithmetic, 32 cells" in str(bound) and bound.order == order


def test_a_bound_in_two_variables_and_away_from_the_point():
    expr = sympy.exp(x) * sympy.cos(y)
    bound = taylor(expr, (x, y), (0, 0), 3).bound({x: (sympy.Rational(1, 2), 1), y: (0, 1)})
    polynomial = taylor(expr, (x, y), (0, 0)).partial_sum(3)
    error = sympy.lambdify((x, y), expr - polynomial, "math")
    worst = max(abs(error(0.5 + i / 40, j / 20)) for i in range(21) for j in range(21))
    assert worst <= bound.value <= 12 * worst


@given(st.floats(-2, 2), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_enclosures_contain_the_values(low, width, share):
    expr = sympy.tanh(x) ** 3 - sympy.cosh(x) * sympy.sin(x) / (2 + x**2) + sympy.sqrt(3 + x) + sympy.pi * sympy.atan(x)
    where = low + share * width
    interval = enclose(expr, {x: mpmath.iv.mpf([low, low + width])})
    assert mpmath.mpf(sympy.N(expr.subs(x, sympy.Float(min(max(where, low), low + width), 30)), 30)) in interval


def test_finer_cells_give_tighter_bounds():
    expr, box = x - x**2, {x: (0, 1)}
    values = [supremum(expr, box, pieces) for pieces in (1, 8, 64)]
    assert values[0] > values[1] > values[2] >= 0.25


@pytest.mark.parametrize("expr", [1 / x, f(x), sympy.gamma(x), sympy.log(x), x + y, x**a])
def test_what_cannot_be_enclosed_is_refused(expr):
    with pytest.raises(EnclosureError):
        enclose(expr, {x: mpmath.iv.mpf([-1, 1])})


# -- substitution, display, refusals ---------------------------------------------------------------------------------


def test_parameters_are_substituted():
    series = taylor(sympy.exp(a * x), x, a, 3).subs({a: 2})
    assert series.coefficient(1) == 2 * sympy.exp(4)
    assert series.function == sympy.exp(2 * x) and series.point == (2,)
    with pytest.raises(ValueError, match="variables"):
        series.subs({x: 1})


def test_displays():
    series = taylor(sympy.exp(x) * sympy.sin(y), (x, y), (0, 0), 3)
    assert str(series) == "y + x*y + O(|(x, y)|**3, (x, y) -> (0, 0))"
    assert r"\mathcal{O}" in series.latex() and series._repr_latex_().startswith("$")
    assert str(taylor(sympy.sin(x), x, 0, 4)) == "x - x**3/6 + O(x**4, x -> 0)"
    assert str(series.truncate(2).order_term) == "O(_epsilon**2, _epsilon -> 0)"
    assert taylor(sympy.sin(x), x, 0).order_term is None
    lagrange = taylor(sympy.exp(x), x, 0, 2).remainder(form="lagrange").latex()
    assert lagrange == r"R_{2} = \frac{x^{2} e^{\theta x}}{2},\quad 0 < \theta < 1"
    assert r"\int\limits_{0}^{1}" in taylor(sympy.exp(x), x, 0, 2).remainder()._repr_latex_()


@pytest.mark.filterwarnings("ignore::symtensor.expansion.UndecidedZeroWarning")
@pytest.mark.parametrize("expr", [1 / x, sympy.Abs(x), sympy.log(x), sympy.sqrt(x), sympy.Max(x, 0)])
def test_points_without_a_taylor_series_are_refused(expr):
    with pytest.raises(ExpansionError, match="Taylor"):
        taylor(expr, x, 0)


def test_bad_arguments():
    series = taylor(sympy.exp(x + y), (x, y), (0, 0))
    for alpha in (1, (1,), (1, -1), (1, 0.5)):
        with pytest.raises(ValueError, match="multi-index"):
            series.coefficient(alpha)
    with pytest.raises(UnknownCoefficientError):
        series.partial_sum()
    with pytest.raises(UnknownCoefficientError):
        series.remainder()
    with pytest.raises(UnknownCoefficientError, match="truncated at order 2"):
        series.truncate(2).coefficient((1, 1))
    for arguments in ((x, (x, y), (0,)), (x, (x, x), (0, 0)), (x, x, sympy.oo), (x, x, 0, -1)):
        with pytest.raises(ValueError):
            taylor(*arguments)
    with pytest.raises(TypeError):
        taylor([x], x, 0)
    with pytest.raises(ValueError, match="form"):
        series.remainder(2, "peano")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="order >= 1"):
        series.remainder(0)
    with pytest.raises(ValueError, match="box"):
        series.bound({x: (0, 1)}, 2)
    with pytest.raises(ValueError, match="low <= high"):
        series.bound({x: (1, 0), y: (0, 1)}, 2)
    with pytest.raises(ValueError, match="Lagrange"):
        series.remainder(2, "lagrange").evaluate({x: 0, y: 0})
