"""`series` and `sectors`: the public counterexamples, SymPy and quadrature as independent routes, refusals by name."""

from __future__ import annotations

import os
import subprocess
import sys

import mpmath
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from symtensor.expansion import ExpansionError, OrderTerm, Scale, ScaleError, sectors, series

x, t, n, a = sympy.symbols("x t n a")
u, v = sympy.symbols("u v", positive=True)
oo, exp, erf = sympy.oo, sympy.exp, sympy.erf


def big_o():
    return OrderTerm(x**2, x, 0)


# -- public counterexamples (shared field cases, section A) ----------------------------------------------------------


def test_an_inner_o_limits_the_result():  # sympy #24913
    for error in (big_o(), sympy.O(x**2)):
        result = series(1 / (1 - x + error), x, 0, 4)
        assert str(result) == "1 + x + O(x**2, x -> 0)"
        assert result.error == Scale(2)


def test_the_order_is_never_finer_than_asked_or_allowed():
    assert series(1 / (1 - x + OrderTerm(x**9, x, 0)), x, 0, 4).error == Scale(4)
    assert series((x + OrderTerm(x**3, x, 0)) * (1 + OrderTerm(x, x, 0)), x, 0).error == Scale(2)
    assert str(series(1 + x + x * OrderTerm(x * sympy.log(x), x, 0), x, 0)) == "1 + x + O(x**2*log(x), x -> 0)"
    assert series(sympy.O(1 / n**2, (n, oo)) + 1 / n, n, oo).error == Scale(2)


def test_exponential_at_minus_infinity():  # sympy #15539
    result = series(exp(x), x, -oo, 6)
    assert str(result) == "O(x**(-6), x -> -oo)"
    assert result.point == -oo and result.error == Scale(6)
    with pytest.raises(ScaleError, match=r"exp\(x\)"):
        series(exp(x), x, oo, 6)


def test_erf_keeps_its_tail():  # sympy PR 20888
    assert series((1 - erf(x)) * x * exp(x**2), x, oo).coefficient(0) == 1 / sympy.sqrt(sympy.pi)
    assert series((1 + erf(x)) * x * exp(x**2), x, -oo).coefficient(0) == -1 / sympy.sqrt(sympy.pi)
    (tail,) = sectors(1 - erf(x), x, oo, 8)
    assert tail.exponent == -(x**2)
    at = mpmath.mpf(8)
    approximation = mpmath.exp(-(at**2)) * mpmath.mpf(sympy.N(tail.series.partial_sum(at=8), 20))
    assert abs(approximation / mpmath.erfc(at) - 1) < 105 / 16 / at**8  # first omitted term, DLMF 7.12(ii)
    assert abs(approximation / mpmath.erfc(at) - 1) > 1e-9  # and the series is cut, not the function itself
    both = sectors(erf(x), x, oo, 4)
    assert [s.exponent for s in both] == [0, -(x**2)]


def test_expected_tail_of_an_average():
    """1 - E[erf]-like differences stay: 1 - tanh(n) ~ 2 exp(-2 n)."""
    (tail,) = sectors(1 - sympy.tanh(n), n, oo, 3)
    assert tail.exponent == -2 * n and tail.series.coefficient(0) == 2
    assert str(series(1 - sympy.tanh(n), n, oo, 3)) == "O(n**(-3), n -> oo)"


def test_laurent_cancellation():  # sagemath #38868
    value = -exp(-5 * t) / t + (-4 * exp(-t) + 6 * exp(-2 * t) - 4 * exp(-3 * t) + exp(-4 * t) + 1) / t**5
    shown = "3 - 31*t/3 + 115*t**2/6 - 6007*t**3/240 + O(t**4, t -> 0)"
    assert str(series(sympy.expand(value), t, 0, 4)) == str(series(value, t, 0, 4)) == shown
    long = series(value, t, 0)
    for order in range(1, 8):
        assert series(value, t, 0, order).agrees(long)
    exact = mpmath.taylor(lambda s: mpmath.mpf(sympy.N(value.subs(t, sympy.Float(s, 60)), 60)), 0.5, 0)[0]
    assert abs(float(long.partial_sum(40, at=0.5)) - float(exact)) < 1e-6


def test_reciprocal_at_infinity():  # sagemath #35995
    result = series(1 / (sympy.Rational(1, 3) + 1 / n), n, oo, 4)
    assert str(result) == "3 - 9/n + 27/n**2 - 81/n**3 + O(n**(-4), n -> oo)"


# -- independent routes ----------------------------------------------------------------------------------------------

ANALYTIC = [
    sympy.sin(x) / x,
    1 / sympy.sin(x) ** 2,
    sympy.tanh(sympy.tanh(x)),
    exp(sympy.sin(x)) / (1 - x),
    sympy.log(1 + sympy.sin(x)) * sympy.cos(x),
    sympy.sqrt(1 + x + x**2),
    (1 + x) ** a,
    (1 + x) ** (1 / x),
    erf(x) / x,
    sympy.gamma(1 + x),
    2**x,
    sympy.besselj(0, x),
]


@pytest.mark.parametrize("expr", ANALYTIC, ids=str)
def test_coefficients_agree_with_sympy(expr):
    order = 5
    ours = series(expr, x, 0, order).partial_sum()
    theirs = sympy.series(expr, x, 0, order).removeO()
    assert sympy.simplify(ours - theirs) == 0


AT_INFINITY = [
    (sympy.sqrt(n**2 + n) - n, 8),
    ((1 + 1 / n) ** n, 6),
    (n * sympy.sin(1 / n), 6),
    (n**3 / (n - 1), 6),
    (sympy.atan(n), 6),
    (2**n / (2**n + n), 5),
    (sympy.cosh(n) * exp(-n), 5),
    (n * exp(1 / n) * sympy.tanh(n), 5),
    (exp(sympy.sqrt(n**2 + n) - n), 6),
    ((exp(2 * n) + 1) / (exp(n) + exp(-n)) ** 2, 5),
]


@pytest.mark.parametrize(("expr", "order"), AT_INFINITY, ids=str)
def test_the_error_falls_with_the_stated_order(expr, order):
    """Numbers as the second route: halving s must divide the difference by about 2^order, or by more."""
    partial = series(expr, n, oo, order).partial_sum()
    differences = [abs(sympy.N((expr - partial).subs(n, value), 60, maxn=600)) for value in (200, 400)]
    assert differences[0] < 50 * sympy.Integer(200) ** -order
    assert differences[1] <= differences[0] * sympy.Float(0.6) ** order


@given(st.lists(st.integers(-3, 3), min_size=3, max_size=3), st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=10, deadline=None)
def test_series_orders_are_nested(c, low, high):
    expr = exp(c[0] * x) / (1 + c[1] * x) + sympy.sin(c[2] * x + x**2)
    assert series(expr, x, 0, low).agrees(series(expr, x, 0, high))


@pytest.mark.parametrize("error_order", [1, 2, 3])
@pytest.mark.parametrize(
    "function",
    [sympy.cos, sympy.sin, exp, sympy.tanh, lambda e: 1 / (1 + e), lambda e: (1 - sympy.cos(e)) * sympy.sin(e)],
)
def test_an_o_covers_every_function_of_its_class(function, error_order):
    """Replace O(x^m) by two different members of the class: all claimed coefficients must be the same."""
    m = error_order
    claimed = series(function(x + OrderTerm(x**m, x, 0)), x, 0, 8)
    for member in (7 * x**m, sympy.sin(x**m) - 3 * x ** (m + 1)):
        assert claimed.agrees(series(function(x + member), x, 0, 8))


def test_logarithmic_remainders_stay_sharp():
    result = series(sympy.sin(x + OrderTerm(x**2 / sympy.log(x), x, 0)), x, 0)
    assert result.error == Scale(2, -1) and result.coefficient(2) == 0


def test_symbolic_points_and_parameters():
    result = series(sympy.tanh(a * x), x, 1, 3)
    slope = sympy.diff(sympy.tanh(a * x), x).subs(x, 1)
    assert sympy.simplify(result.coefficient(1) - slope) == 0
    assert series(exp(x), x, a).coefficient(2) == exp(a) / 2
    f = sympy.Function("f")
    assert series(f(x), x, 0).coefficient(1) == sympy.Derivative(f(x), x).subs(x, 0)
    integral = sympy.Integral(sympy.sin(t**2) / t, (t, 1, 1 + x))
    assert series(integral, x, 0, 2).coefficient(1) == sympy.sin(1)


def test_the_expansion_is_lazy():
    result = series(sympy.tanh(sympy.tanh(x)), x, 0)
    assert result.evaluations == 0
    result.coefficient(3)
    assert result.evaluations == 1
    assert series(exp(x), x, 0).coefficient(30) == 1 / sympy.factorial(30)


def test_growth_sectors():
    parts = sectors(exp(n) * (1 + 1 / n) + n**2 - exp(-(n**2)), n, oo)
    assert [p.exponent for p in parts] == [0, -(n**2), n]
    assert str(parts[2]) == "exp(n)*(1 + 1/n)"
    assert parts[2].latex() == r"e^{n} \left(1 + \frac{1}{n}\right)"
    assert str(series(exp(-1 / x**2), x, 0, 3)) == "O(x**3, x -> 0)"
    assert str(series(exp(-v / n + u / n**2) * exp(-u * n), n, oo, 2)) == "O(n**(-2), n -> oo)"


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expr", "point", "name"),
    [
        (sympy.log(x), 0, "log"),
        (sympy.Abs(x), 0, "Abs"),
        (sympy.Max(x, 0), 0, "Max"),
        (sympy.Heaviside(x), 1, "Heaviside"),
        (sympy.Piecewise((x, x > 0), (0, True)), 0, "Piecewise"),
        (sympy.gamma(x), 0, "gamma"),
        (sympy.sin(x), oo, "sin"),
        (exp(-1 / x), 0, "exp"),
        (exp(a * x), oo, "exp"),
        (sympy.sin(OrderTerm(1 / x, x, 0)), 0, "sin"),
        (sympy.cos(1 + OrderTerm(1, x, 0)), 0, "cos"),
    ],
)
def test_functions_without_a_series_are_named(expr, point, name):
    with pytest.raises(ExpansionError, match=name):
        series(expr, x, point, 3).terms()


def test_fractional_powers_and_bad_input():
    with pytest.raises(ScaleError, match="integer power"):
        series(sympy.sqrt(x), x, 0)
    with pytest.raises(TypeError, match="expression"):
        series([x], x, 0)
    with pytest.raises(TypeError, match="symbol"):
        series(x, 2, 0)  # type: ignore[arg-type]
    assert str(series(sympy.S.Zero, x, 0)) == "0"


def test_text_does_not_depend_on_the_hash_seed():
    code = (
        "import sympy as s; from symtensor.expansion import series, sectors, taylor, OrderTerm\n"
        "x, y = s.symbols('x y'); f = s.Function('f')\n"
        "print(series(s.exp(s.sin(x))*f(x) + y*x + OrderTerm(x**3, x, 0), x, 0).latex())\n"
        "print(sectors(s.erf(x) + y, x, s.oo, 4))\n"
        "t = taylor(s.sin(x*y) + s.exp(x + 2*y), (x, y), (0, 0), 3)\n"
        "print(t, t.latex(), t.remainder().latex())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "77")
    }
    assert len(outputs) == 1
