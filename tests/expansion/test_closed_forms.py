"""Gaussian expectations in closed form: against quadrature, against Price, and the public field cases."""

from __future__ import annotations

import itertools
import math
import time

import mpmath
import numpy as np
import pytest
import sympy as sp

from symtensor.activation import activation
from symtensor.expansion.gaussian import K11, K12, K22, ClosedForm, closed_form, gaussian_expectation, isserlis

x, y, z = sp.symbols("x y z", real=True)
PAIR = sp.Matrix([[K11, K12], [K12, K22]])
POINT = {K11: sp.Rational(3, 5), K12: sp.Rational(1, 4), K22: sp.Rational(4, 5)}
CLOSED = [
    "identity", "x^3 - 2*x + 1", "erf", "3*erf(2*x) + 1/2", "Phi(x)", "sin", "cos(2*x)", "exp(x)", "2^x",
    "x*exp(-x^2/2)",
    "exp(x)*sin(x)", "sinh(x) + x", "exp(x^2/4)", "relu", "leaky-relu:0.2", "Abs(x)", "Max(0,x) - 0.3*Max(0,-x)", "2",
]  # fmt: skip


def _numeric(function: str, i: int = 0, j: int = 0) -> float:
    """E[sigma^(i)(x) sigma^(j)(y)] at POINT in polar coordinates, where kinks at the origin are rays."""
    f, g = activation(function).numpy_function(i), activation(function).numpy_function(j)
    a, c, b = (float(POINT[k]) for k in (K11, K12, K22))
    l11, l21 = math.sqrt(a), c / math.sqrt(a)
    l22 = math.sqrt(b - l21**2)
    ray = math.atan2(-l21, l22)  # where y = 0; x = 0 at +-pi/2
    angles = sorted([-math.pi, -math.pi / 2, math.pi / 2, math.pi, ray, ray + math.pi if ray < 0 else ray - math.pi])
    t, wt = _gauss(angles)
    r, wr = _gauss([0, 2, 4, 6, 9, 13, 18])
    z1, z2 = r[:, None] * np.cos(t), r[:, None] * np.sin(t)
    values = f(l11 * z1) * g(l21 * z1 + l22 * z2)
    return float((wr * r * np.exp(-(r**2) / 2)) @ values @ wt / (2 * math.pi))


def _gauss(edges: list[float], n: int = 48) -> tuple[np.ndarray, np.ndarray]:
    unit, weight = np.polynomial.legendre.leggauss(n)
    lower, half = np.array(edges[:-1])[:, None], np.diff(edges)[:, None] / 2
    return (lower + half * (1 + unit)).ravel(), (half * weight).ravel()


@pytest.mark.parametrize("function", CLOSED)
def test_expectation_against_polar_quadrature(function: str) -> None:
    form = closed_form(activation(function))
    assert form is not None
    exact = form.expectation.subs(POINT).evalf(20)
    assert float(exact) == pytest.approx(_numeric(function), rel=1e-11)


@pytest.mark.parametrize(("i", "j"), [(1, 1), (2, 0), (0, 2), (2, 2), (3, 1), (1, 3), (4, 0)])
@pytest.mark.parametrize("function", ["x^3 - 2*x + 1", "erf", "exp(x)*sin(x)", "exp(x^2/4)"])
def test_price_moments_are_expectations_of_derivatives(function: str, i: int, j: int) -> None:
    form = closed_form(activation(function))
    assert form is not None
    exact = float(form.moment(i, j).subs(POINT).evalf(20))
    assert exact == pytest.approx(_numeric(function, i, j), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("function", CLOSED)
def test_moments_are_finite_differences_of_the_expectation(function: str) -> None:
    """Second route to Price: m11 = dF/dk12, m20 = 2 dF/dk11, m31 = 2 d^2F/dk11 dk12, .. by differences at 40 digits."""
    form = closed_form(activation(function))
    assert form is not None
    value = sp.lambdify((K11, K12, K22), form.expectation, "mpmath")
    with mpmath.workdps(40):
        at = tuple(mpmath.mpf(POINT[k].p) / POINT[k].q for k in (K11, K12, K22))
        derivative = {
            (1, 1): mpmath.diff(value, at, (0, 1, 0)),
            (2, 0): 2 * mpmath.diff(value, at, (1, 0, 0)),
            (0, 2): 2 * mpmath.diff(value, at, (0, 0, 1)),
            (2, 2): 4 * mpmath.diff(value, at, (1, 0, 1)),  # d_12^2 F = 4 d_11 d_22 F
            (3, 1): 2 * mpmath.diff(value, at, (1, 1, 0)),
            (4, 0): 4 * mpmath.diff(value, at, (2, 0, 0)),
        }
        for (i, j), expected in derivative.items():
            assert float(form.moment(i, j).subs(POINT).evalf(25)) == pytest.approx(float(expected), rel=1e-10, abs=1e-14)


def test_known_forms() -> None:
    erf = closed_form(activation("erf"))
    relu = closed_form(activation("relu"))
    assert erf is not None and relu is not None
    arcsine = 2 / sp.pi * sp.asin(2 * K12 / sp.sqrt((1 + 2 * K11) * (1 + 2 * K22)))
    assert sp.simplify(erf.expectation.subs(POINT) - arcsine.subs(POINT)) == 0
    assert relu.kind == "homogeneous" and erf.kind == "smooth"
    theta = sp.acos(K12 / sp.sqrt(K11 * K22))
    arccosine = sp.sqrt(K11 * K22) * (sp.sin(theta) + (sp.pi - theta) * sp.cos(theta)) / (2 * sp.pi)
    assert abs((relu.expectation - arccosine).subs(POINT).evalf(30)) < 1e-28
    density = 1 / (2 * sp.pi * sp.sqrt(K11 * K22 - K12**2))  # E[delta(x) delta(y)]
    assert sp.simplify(relu.moment(2, 2) - density) == 0


@pytest.mark.parametrize("function", ["tanh", "gelu", "softplus", "sigmoid", "Max(x, -1)", "x*erf(x)", "exp(-x^4)"])
def test_none_where_there_is_none(function: str) -> None:
    assert closed_form(activation(function)) is None


@pytest.mark.parametrize("order", [(1, 0), (-1, 1), (2, 1)])
def test_odd_orders_are_refused(order: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="i \\+ j even"):
        ClosedForm(K12, "smooth").moment(*order)


def test_small_arguments_do_not_cancel() -> None:
    sine = closed_form(activation("sin"))
    assert sine is not None
    value = sp.lambdify((K11, K12, K22), sine.expectation, "math")(1e-6, 1e-12, 1e-6)
    assert value == pytest.approx(1e-12 * math.exp(-1e-6), rel=1e-14)


# -- Isserlis and the moment generating function -------------------------------------------------------------------


def test_isserlis_counts_pairings() -> None:
    """All covariances 1: E of n factors is the number of pairings, (n - 1)!!."""
    for n in range(7):
        ones = isserlis(range(n), lambda i, j: 1)
        assert ones == (0 if n % 2 else sp.factorial2(n - 1))


def test_isserlis_against_explicit_pairings() -> None:
    C = sp.Matrix(4, 4, lambda i, j: sp.Symbol(f"c{min(i, j)}{max(i, j)}"))
    pairings = C[0, 1] * C[2, 3] + C[0, 2] * C[1, 3] + C[0, 3] * C[1, 2]
    assert sp.expand(isserlis((0, 1, 2, 3), C) - pairings) == 0
    assert isserlis((0, 1, 2), C) == 0


def test_isserlis_symbolic_covariance_asks_nothing() -> None:
    """Sage asks whether det Sigma > 0; moments are polynomials and need no answer."""
    C = sp.Matrix(2, 2, sp.symbols("s t t u"))  # not even declared real
    mean = sp.symbols("m0 m1")
    assert isserlis((0,), C, lambda i: mean[i]) == mean[0]
    assert isserlis((0, 1), C, lambda i: mean[i]) == mean[0] * mean[1] + C[0, 1]
    third = mean[0] ** 3 + 3 * mean[0] * C[0, 0]
    assert sp.expand(isserlis((0, 0, 0), C, lambda i: mean[i]) - third) == 0


def test_exponential_of_one_coordinate() -> None:
    """sympy #20540: E exp(X_0) of a standard bivariate normal is e^(1/2), in that form."""
    assert gaussian_expectation(sp.exp(x), (x, y), sp.eye(2)) == sp.exp(sp.Rational(1, 2))


def test_product_with_a_compound_variable() -> None:
    """sympy #21874: mu ~ N(1, 1), X | mu ~ N(mu, 1), Y ~ N(0, 1) independent: E[XY] = 0, at once."""
    start = time.perf_counter()
    covariance, mean = sp.Matrix([[1, 1, 0], [1, 2, 0], [0, 0, 1]]), sp.Matrix([1, 1, 0])
    assert gaussian_expectation(y * z, (x, y, z), covariance, mean) == 0
    assert gaussian_expectation(y**2, (x, y, z), covariance, mean) == 3
    assert time.perf_counter() - start < 2


def test_quadratic_exponent() -> None:
    """sympy #23550 in Gaussian form, E exp(-a x^2 + b x) = e^{b^2 k/(2(1+2ak))}/sqrt(1+2ak): real for real input."""
    a, k = sp.symbols("a k", positive=True)
    b = sp.Symbol("b", real=True)
    value = gaussian_expectation(sp.exp(-a * x**2 + b * x), (x,), sp.Matrix([[k]]))
    assert value is not None and not value.has(sp.I)
    known = sp.exp(b**2 * k / (2 * (1 + 2 * a * k))) / sp.sqrt(1 + 2 * a * k)
    for numbers in itertools.product((1, 2), (0, 1, -2), (1, 3)):
        at = dict(zip((a, b, k), numbers))
        assert abs((value - known).subs(at).evalf(25)) < 1e-20


def test_outside_the_class_is_none() -> None:
    assert gaussian_expectation(sp.tanh(x), (x,), sp.eye(1)) is None
    assert gaussian_expectation(sp.exp(x**3), (x,), sp.eye(1)) is None
    assert gaussian_expectation(x**y, (x, y), sp.eye(2)) is None


def test_singular_covariance_is_fine() -> None:
    ones = sp.ones(2, 2)
    assert gaussian_expectation(x**2 * y**2, (x, y), ones) == 3
    assert gaussian_expectation(sp.exp(x - y), (x, y), ones) == 1
    value = gaussian_expectation(sp.exp(-(x**2) - y**2), (x, y), ones)
    assert value == 1 / sp.sqrt(5)


def test_three_coordinates_against_stein() -> None:
    """E[x y cos z] = -(C_xz C_yz - C_xy) e^{-C_zz/2}, by Stein's identity twice."""
    half, third, quarter = (sp.Rational(1, n) for n in (2, 3, 4))
    C = sp.Matrix([[2, half, third], [half, 1, quarter], [third, quarter, 1]])
    value = gaussian_expectation(x * y * sp.cos(z), (x, y, z), C)
    assert value is not None
    assert float(value) == pytest.approx((0.5 - 1 / 12) * math.exp(-0.5), rel=1e-14)
