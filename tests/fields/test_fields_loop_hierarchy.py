"""Cumulants loop by loop from the moment hierarchy, and exact densities, against routes of their own."""

from __future__ import annotations

import doctest

import mpmath
import numpy as np
import pytest
import sympy as sp

from symtensor.expansion import perturbative_moments
from symtensor.fields import hierarchy, loop_hierarchy, stationary_density
from symtensor.fields.errors import PointError, SourceError, TheoryError, UnstableError
from symtensor.fields.hierarchy import MomentHierarchy
from symtensor.fields.loop_hierarchy import loop_cumulant
from symtensor.fields.stationary_density import stationary_density_moments

x, y, g, h, T = sp.symbols("x y g h T", positive=True)
NOISE = sp.sqrt(2 * T)


def same(one: object, other: object) -> bool:
    return sp.simplify(sp.expand(sp.sympify(one) - sp.sympify(other))) == 0  # type: ignore[operator]


def test_one_vertex_makes_loops_and_orders_the_same_thing() -> None:
    """x^3: one loop a power of g. x^2: the two-point function has g^2 a loop, the mean g^(2L-1)."""
    cubic = MomentHierarchy(-(x + g * x**3), NOISE, x, g).correlation(x, x, 2)
    loops = loop_cumulant(-(x + g * x**3), NOISE, x, [{x: 1}, {x: 1}], 2)
    assert all(same(loops[n], g**n * cubic[n]) for n in range(3))
    quadratic = MomentHierarchy(-x + g * x**2, NOISE, x, g)
    loops = loop_cumulant(-x + g * x**2, NOISE, x, [{x: 1}, {"xt": 1}], 2)
    assert all(same(loops[n], g ** (2 * n) * quadratic.response(x, x, 4)[2 * n]) for n in range(3))
    mean = loop_cumulant(-x + g * x**2, NOISE, x, {x: 1}, 3)
    assert [mean[n] for n in range(4)] == [0, g * T, 5 * g**3 * T**2, 60 * g**5 * T**3]


@pytest.mark.parametrize("powers", [2, 4])
def test_loops_are_powers_of_the_temperature(powers: int) -> None:
    """Pendulum: x = sqrt(T) y turns exp(cos(x)/T) into a series whose order in T counts loops."""
    weight = sum((-1) ** n * T ** (n - 1) * x ** (2 * n) / sp.factorial(2 * n) for n in range(2, 6))
    exact = perturbative_moments(sp.expand(weight), {x: powers}, 3, {(x, x): 1}, {T: 1}, kind="connected")
    found = loop_cumulant(-sp.sin(x), NOISE, x, {x: powers}, 2)
    for loop in range(3):
        order = loop + powers // 2 - 1
        assert same(found[loop], exact[order] * T ** (order + powers // 2))


def test_expansion_about_one_minimum_of_two() -> None:
    """f = x - g^2 x^3 at 1/g: y = x - 1/g has the cubic and quartic couplings that Taylor's theorem gives."""
    found = loop_cumulant(x - g**2 * x**3, NOISE, x, {x: 1}, 2, point={x: 1 / g})
    shifted = MomentHierarchy(-2 * x - 3 * g * x**2 - g**2 * x**3, NOISE, x, g).moment({x: 1}, 4)
    assert found[0] == 1 / g
    assert same(found[1], g * shifted[1])
    assert same(found[2], g**3 * shifted[3])


def test_loops_of_a_rate_model_with_coupled_modes() -> None:
    """tanh up to seventh order as a polynomial drift with a symbol that counts loops, typed by hand for one loop."""
    drift = [-x + sp.tanh(x) / 2 - sp.tanh(y) / 3, -2 * y + sp.tanh(x)]
    found = loop_cumulant(drift, [1, 1], [x, y], {x: 1, y: 1}, 1)
    cube = [-x + (x - g * x**3 / 3) / 2 - (y - g * y**3 / 3) / 3, -2 * y + x - g * x**3 / 3]
    series = MomentHierarchy(cube, [1, 1], [x, y], g).cumulant({x: 1, y: 1}, 1)
    assert all(same(found[n], series[n]) for n in range(2))
    assert found[1] != 0


def test_three_point_function_at_tree_level() -> None:
    """<x(t) x(0)^2>_c of dx = -x + g x^2 by hand: dK/dt = -K + 2 g C(t)^2 with K(0) = 2 g T^2."""
    t = sp.Symbol("t", positive=True)
    found = loop_cumulant(-x + g * x**2, NOISE, x, [{x: 1}, {x: 2}], 0)
    assert same(found[0], g * T**2 * (4 * sp.exp(-t) - 2 * sp.exp(-2 * t)))


def test_multiplicative_noise_makes_vertices_with_two_responses() -> None:
    system = MomentHierarchy(-x, sp.sqrt(2 * T * (1 + g * x + h * x**2)), x, {g: 1, h: 2})
    whole = system.cumulant({x: 2}, 4).expr
    found = loop_cumulant(-x, sp.sqrt(2 * T * (1 + g * x + h * x**2)), x, {x: 2}, 2)
    assert same(found.expr, sp.series(sp.expand(whole), h, 0, 3).removeO())
    assert same(found[1], h * T**2)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((-x + 1, 1, x, {x: 1}, 1), PointError, "drift of x is 1 at x = 0"),
        ((x - x**3, 1, x, {x: 1}, 1), UnstableError, "rate -1"),
        ((-x, 1, x, {x: 1}, 1, {y: 0}), SourceError, "y is no variable"),
        ((-x, 1, x, {x: 1}, 1, [1, 2]), SourceError, "point does not fit"),
        ((-x, 1, x, {x: 1}, -1), ValueError, "loops is -1"),
    ],
)
def test_bad_expansions(arguments: tuple, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        loop_cumulant(*arguments)


def test_density_against_quadrature() -> None:
    found = stationary_density_moments(-(x + g * x**3), sp.sqrt(2 * T), x, [2, 4], {g: "0.1", T: sp.Rational(1, 2)}, digits=30)
    with mpmath.workdps(40):
        def weight(u: object) -> object:
            return mpmath.exp(-2 * (u**2 / 2 + u**4 / 40))  # type: ignore[operator]

        ends = [-12, -4, 0, 4, 12]
        norm = mpmath.quad(weight, ends)
        for k in (2, 4):
            assert abs(found[k] - mpmath.quad(lambda u, k=k: u**k * weight(u), ends) / norm) < mpmath.mpf(10) ** -30
    assert found.error < mpmath.mpf(10) ** -30


def test_density_of_multiplicative_noise() -> None:
    """A drift that is no polynomial, against sums on a fine grid; the convention of Stratonovich would differ."""
    drift, strength = sp.Rational(1, 3) - sp.sinh(x), sp.sqrt(1 + x**2)
    found = stationary_density_moments(drift, strength, x, [1], digits=20)[1]
    grid = np.linspace(-10, 10, 400_001)
    slope = 2 * (1 / 3 - np.sinh(grid)) / (1 + grid**2)
    potential = np.concatenate([[0], np.cumsum((slope[1:] + slope[:-1]) / 2) * (grid[1] - grid[0])])
    weights = np.exp(potential - potential.max()) / (1 + grid**2)
    ito, stratonovich = ((grid * w).sum() / w.sum() for w in (weights, weights * np.sqrt(1 + grid**2)))
    assert abs(found - ito) < 1e-8
    assert abs(found - stratonovich) > 1e-2


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((-x + x**2, 1, x, [1]), TheoryError, "does not confine"),
        ((x, 1, x, [1]), TheoryError, "does not confine"),
        ((-x**3, x, x, [1]), TheoryError, "noise strength is 0"),
        ((-g * x, 1, x, [1]), SourceError, "g has no value"),
        (([-x, -y], [1, 1], [x, y], [1]), SourceError, "one equation"),
        ((-sp.gamma(x), 1, x, [1]), SourceError, "gamma is not known"),
        ((-sp.tanh(x) / 10**6, 1, x, [1]), TheoryError, "does not fall off"),
    ],
)
def test_bad_densities(arguments: tuple, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        stationary_density_moments(*arguments)


def test_names_of_response_fields() -> None:
    named = loop_cumulant(-x + g * x**2, NOISE, x, [{x: 2}, {"p": 1}], 1, responses=["p"])
    usual = loop_cumulant(-x + g * x**2, NOISE, x, [{x: 2}, {"xt": 1}], 1)
    assert all(same(named[n], usual[n]) for n in range(2))
    assert usual[0] != 0


def test_values_on_a_grid() -> None:
    found = loop_cumulant(-(x + g * x**3), NOISE, x, [{x: 1}, {x: 1}], 1).values(np.array([0.0, 1.0]), {g: 0.1, "T": 2})
    assert np.allclose(found, [[2, 2 * np.exp(-1)], [-1.2, -2.4 * np.exp(-1)]], rtol=1e-14)


@pytest.mark.parametrize("module", [hierarchy, loop_hierarchy, stationary_density])
def test_doctests(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0
