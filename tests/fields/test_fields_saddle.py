"""Stationary points: found exactly or to 30 digits, stable by independent eigenvalues, and refused with the reason named."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symtensor.fields._stability import examine
from symtensor.fields.errors import PointError, SourceError, UnstableError, ZeroModeError
from symtensor.fields.reading import read_action, read_equations
from symtensor.fields.saddle import StationaryPoint, stationary_point

x, y, z, g, h, r = sp.symbols("x y z g h r", real=True)


def static(text: str, fields: object = ("x",), **options: object) -> StationaryPoint:
    read = read_action(text, fields)  # type: ignore[arg-type]
    return stationary_point(read.gradient, read.fields, **options)  # type: ignore[arg-type]


def stochastic(text: str, **options: object) -> StationaryPoint:
    read = read_equations(text)
    return stationary_point(read.drift, read.variables, drift=True, **options)  # type: ignore[arg-type]


def test_the_stable_point_is_chosen() -> None:
    assert static("x^2/2 + g*x^4/24").point == (0,)
    assert static("x^2/2 + g*x^3/6").others == (((-2 / g,), "the eigenvalue -1 of x"),)
    quadratic = stochastic("dx = (-x + g*x^2) dt + sqrt(2*T) dW")
    assert (quadratic.point, quadratic.conditions, quadratic.complete) == ((0,), (), True)
    assert stochastic("dx = -(x + g*x^3) dt + sqrt(2*T) dW").conditions == ()
    assert list(static("(x - 3)^2/2")) == [3]


def test_open_signs_become_conditions() -> None:
    assert static("r*x^2/2 + g*x^4/24").conditions == (r > 0,)
    shifted = static("x^2/2 + g*x^3/6 - h*x")
    assert shifted.conditions == (2 * g * h + 1 > 0,)
    assert sp.simplify(shifted[0] - (sp.sqrt(1 + 2 * g * h) - 1) / g) == 0
    damped = stochastic("dx = v dt; dv = (-c*v - w*x) dt + dW")
    assert set(damped.conditions) == {sp.Symbol("c", real=True) > 0, sp.Symbol("w", real=True) > 0}
    assert static("r*x^2/2 + g*x^4/24", values={"r": 2}).conditions == ()
    positive = sp.Symbol("r", positive=True)
    assert stationary_point([positive * x + g * x**3], [x]).conditions == ()


def test_values_decide_between_branches() -> None:
    for mass, found in ((1, (0,)), (-1, None)):
        values = {"r": mass, "g": 1}
        if found is None:
            with pytest.raises(PointError, match="2 stable points"):
                static("r*x^2/2 + g*x^4/24", values=values)
        else:
            assert static("r*x^2/2 + g*x^4/24", values=values).point == found
    chosen = static("r*x^2/2 + g*x^4/24", values={"r": -1, "g": 1}, point={"x": "sqrt(-6*r/g)"})
    assert chosen.matrix[0, 0] == -2 * r


def test_coupled_polynomials_are_solved_completely() -> None:
    read = read_action("x^2/2 + y^2/2 + x^2*y/2 + y^3 - x/3", ["x", "y"])
    found = stationary_point(read.gradient, read.fields)
    assert found.complete
    points = [found.point, *(other for other, _ in found.others)]
    # second route: all complex solutions of the eliminant, x = 1/(3 (1 + y))
    eliminant = sp.Poly(sp.together(read.gradient[1].subs(x, 1 / (3 * (1 + y)))).as_numer_denom()[0], y)
    real = sorted(float(root) for root in eliminant.nroots() if root.is_real)
    assert np.allclose(sorted(float(p[1]) for p in points), real)
    for point in points:
        assert all(abs(sp.N(d.subs(dict(zip(read.fields, point))), 30)) < 1e-25 for d in read.gradient)


def test_a_broken_symmetry_leaves_the_origin() -> None:
    found = static("r*dot(x, x)/2 + u*dot(x, x)^2/4", {"x": 2})
    assert (found.point, found.conditions) == ((0, 0), (r > 0,))
    with pytest.raises(ZeroModeError, match="zero mode"):
        static("-dot(x, x)/2 + dot(x, x)^2/4", {"x": 2}, point={"x_1": 1, "x_2": 0})


def test_numerical_points_have_thirty_digits() -> None:
    values = {"w": "1/2", "k": 1, "h": 0.3}
    found = stochastic("dE1 = (-E1 + tanh(w*E1 - k*J1 + h)) dt + s dW1; dJ1 = 2*(-J1 + tanh(k*E1)) dt + s dW2", values=values)
    with mpmath.workdps(40):
        # the second equation gives J = tanh E, the first is then solved by bisection
        def left(e: mpmath.mpf) -> mpmath.mpf:
            return -e + mpmath.tanh(e / 2 - mpmath.tanh(e) + mpmath.mpf(3) / 10)

        e = mpmath.findroot(left, (0, 1), solver="anderson", tol=1e-60)
        assert abs(mpmath.mpf(str(found[0])) - e) < mpmath.mpf(10) ** -29
        assert abs(mpmath.mpf(str(found[1])) - mpmath.tanh(e)) < mpmath.mpf(10) ** -29
    assert not found.exact and not found.complete


def test_several_numerical_points_are_all_named() -> None:
    with pytest.raises(PointError) as caught:
        stochastic("dx = (-x + tanh(2*x)) dt + dW")
    root = mpmath.findroot(lambda v: v - mpmath.tanh(2 * v), 1)
    assert f"x = {mpmath.nstr(root, 7)}" in str(caught.value) and f"x = -{mpmath.nstr(root, 7)}" in str(caught.value)


def test_functions_without_values() -> None:
    found = static("exp(x) - x + g*x^4")
    assert (found.point, found.complete) == ((0,), False)
    with pytest.raises(PointError, match="values= for g"):
        static("exp(x) - 2*x + g*x^4")
    found = static("exp(x) - 2*x + g*x^4", values={"g": 0})
    assert abs(found[0] - sp.log(2).n(30)) < 1e-28


def test_a_given_point_is_checked_and_refined() -> None:
    assert stochastic("dx = (x - x^3) dt + dW", point={"x": -1}).point == (-1,)
    refined = static("-x^2/2 + x^4/24", point=[2.449489])
    assert abs(refined[0] - sp.sqrt(6).n(30)) < 1e-28
    with pytest.raises(PointError, match=r"dS/dx = 2\*g \+ 1 there instead of 0"):
        static("x^2/2 + g*x^2", point={"x": 1})
    with pytest.raises(PointError, match=r"the nearest is x = 1\.0000000"):
        stochastic("dx = (x - x^3) dt + dW", point={"x": 1.2})
    for point, word in [({"y": 0}, "'y'"), ({}, "no value for x"), ([0, 0], "a value for each"), ({"x": "import os"}, "x"),
                        ({"x": "q"}, "'q'"), ({"x": sp.I}, "real"), (7, "value for each"), ({"x": True}, "True")]:  # fmt: skip
        with pytest.raises((PointError, SourceError)) as caught:
            static("x^2/2 + g*x^4", point=point)
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "fields", "word"),
    [
        ("x^4/24", ["x"], "the zero mode x"),
        ("(x - y)^2/2 + x^4", ["x", "y"], "the zero mode x + y"),
        ("(x + 2*y)^2/2 + y^4", ["x", "y"], "the zero mode (-2)*x + y"),
        ("0.1*(x - y)^2 + 0.2*(y - z)^2 + (x + y + z)^4", ["x", "y", "z"], "x + y + z"),
    ],
)
def test_zero_modes_are_named(text: str, fields: list[str], word: str) -> None:
    with pytest.raises(ZeroModeError) as caught:
        static(text, fields)
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("dx = x dt + dW", "the eigenvalue -1 of x"),
        ("dx = (x + y) dt + dW; dy = -y dt", "the eigenvalue -1 of x"),
        ("dx = v dt; dv = -x dt + dW", "1.0*i of (x, v)"),
        ("dx = y dt + dW; dy = (2*y - x) dt", "the eigenvalue -1"),
        ("dx = k^2*x dt + dW", "-k**2"),
    ],
)
def test_unstable_drifts_name_the_eigenvalue(text: str, word: str) -> None:
    with pytest.raises(UnstableError) as caught:
        stochastic(text)
    assert word in str(caught.value)


def test_an_inverse_is_enough_if_asked_for() -> None:
    with pytest.raises(UnstableError):
        static("-x^2/2 + y^2/2 + x*y", ["x", "y"])
    assert static("-x^2/2 + y^2/2 + x*y", ["x", "y"], invertible=True).point == (0, 0)
    with pytest.raises(ZeroModeError):
        static("x^2*y", ["x", "y"], invertible=True)


def test_points_without_derivative_and_without_solution() -> None:
    with pytest.raises(PointError, match="no derivative"):
        static("abs(x) + x^2", point={"x": 0})
    with pytest.raises(PointError, match="no real stationary point"):
        static("x^3/3 + x")
    with pytest.raises(PointError, match="2 functions of 1 field"):
        stationary_point([x, x], [x])
    with pytest.raises(PointError, match="real number"):
        static("r*x^2", values={"r": sp.I})


_GENERAL = sp.Matrix(3, 3, sp.symbols("a:9", real=True))
_SYMMETRIC = sp.Matrix(3, 3, lambda i, j: _GENERAL[min(i, j), max(i, j)])


@pytest.mark.parametrize("symbols", [_GENERAL, _SYMMETRIC], ids=["general", "symmetric"])
def test_the_conditions_of_stability_agree_with_eigenvalues(symbols: sp.Matrix) -> None:
    # numbers never enter the conditions: they are derived once, for symbols
    verdict = examine(symbols, [x, y, z], {})
    assert verdict.status == "conditional"
    rng = np.random.default_rng(5)
    seen = set()
    for shift in np.linspace(-4, 8, 60):
        numbers = rng.integers(-4, 5, (3, 3)) + int(shift) * np.eye(3, dtype=int)
        values = {s: int(numbers[divmod(int(s.name[1:]), 3)]) for s in symbols.free_symbols}
        matrix = symbols.subs(values)
        worst = min(np.linalg.eigvals(np.array(matrix.tolist(), dtype=float)).real)
        if matrix.det() == 0:
            assert examine(matrix, [x, y, z], {}).status == "zero"
        elif abs(worst) > 1e-6:  # on the border floats do not decide
            seen.add(worst > 0)
            assert all(bool(c.subs(values)) for c in verdict.conditions) == (worst > 0)
            assert (examine(matrix, [x, y, z], {}).status == "stable") == (worst > 0)
    assert seen == {True, False}


@pytest.mark.parametrize("dropped", range(3))
def test_no_condition_of_stability_is_redundant(dropped: int) -> None:
    verdict = examine(_GENERAL, [x, y, z], {})
    kept = [c for at, c in enumerate(verdict.conditions) if at != dropped]
    rng = np.random.default_rng(7)
    for _ in range(400):
        numbers = rng.integers(-4, 5, (3, 3))
        values = {s: int(numbers[divmod(int(s.name[1:]), 3)]) for s in _GENERAL.free_symbols}
        if all(bool(c.subs(values)) for c in kept) and min(np.linalg.eigvals(numbers.astype(float)).real) < -1e-6:
            return
    pytest.fail("no matrix was found for which the dropped condition matters")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=5, max_size=5))
def test_polynomials_of_one_field_against_numerical_roots(coefficients: list[int]) -> None:
    action = x**6 / 6 + sp.Add(*(sp.Rational(c, n) * x**n for n, c in enumerate(coefficients, start=1)))
    slope = sp.diff(action, x)
    roots = np.roots([float(c) for c in sp.Poly(slope, x).all_coeffs()])
    curvature = np.polynomial.Polynomial([float(c) for c in sp.Poly(slope, x).all_coeffs()[::-1]]).deriv()
    simple = all(abs(curvature(v)) > 1e-3 for v in roots)
    stable = [v.real for v in roots if abs(v.imag) < 1e-9 and curvature(v.real) > 0]
    if not simple:
        return
    if len(stable) == 1:
        assert abs(float(stationary_point([slope], [x])[0]) - stable[0]) < 1e-8
    else:
        with pytest.raises(PointError, match=f"{len(stable)} stable points"):
            stationary_point([slope], [x])
