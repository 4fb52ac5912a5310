"""Networks nobody has formulas for: a bias variance that depends non-linearly on S, two branches; against exact recursions."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symtensor.fields.layered import Branch, LayeredExpansion, LayeredNetwork, cumulant_terms, expand
from symtensor.fields.layered.expansion import arrays_of, evaluate
from symtensor.fields.layered.program import Output, Program
from symtensor.fields.layered.vertices import shared


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WickPaths = _load("layered_wick").WickPaths
linear = _load("test_layered_linear")


@cache
def quadratic() -> tuple[LayeredNetwork, Any, LayeredExpansion]:
    """sigma = identity and C_b = 0.2 + 0.1 S^2 + 0.02 S^3."""
    net = LayeredNetwork.single("identity", c_w=0.7, c_b="0.2 + 0.1*S1^2 + 0.02*S1^3", alpha=0.9, dt=0.25, depth=4, kernel=1.0)
    paths = WickPaths(net, (1, 2))
    return net, paths, expand(net, 2, linear.OBSERVABLES, paths=paths)


def test_bias_variance_that_depends_on_the_kernel() -> None:
    rows = linear.Recursion(0.9, 0.25, [0.2, 0.7, 0.1, 0.02], 1.0, 4).rows
    linear.check(quadratic()[2], rows)
    assert abs(rows[-1]["K"][1]) > 0.1 and abs(rows[-1]["K"][2]) > 0.1


@cache
def two_branches() -> LayeredNetwork:
    branches = [Branch("identity", 0.6), Branch("x**2", 0.15)]
    return LayeredNetwork(branches, alpha=0, dt=1, depth=2, kernel=1.0, bias="0.1 + 0.05*S1*S2")


def _multilayer(depth: int, orders: int) -> tuple[list[Any], list[Any], list[Any]]:
    """K, n Var G and the mean of phi^4 as series in x = 1/n for `two_branches`.

    Given v, the variance of a layer, phi_i are iid N(0, v): v' is a polynomial in v, A = mean z^2 - 1 and B = mean z^4 - 3.
    """
    x, v, a, b, d = sp.symbols("x v A B d")
    top = 2 * orders
    joint = _central_moments(x, top, orders)
    one, two = v * (1 + a), v**2 * (3 + b)
    drive = sp.Rational(1, 10) + one * two / 20 + sp.Rational(3, 5) * one + sp.Rational(3, 20) * two

    def average(expression: Any, moments: list[Any], at: Any) -> Any:
        """E over A, B and over d = v - at, truncated."""
        poly = sp.Poly(sp.expand(expression.subs(v, at + d)), a, b, d)
        terms = (c * joint[i, j] * moments[k] for (i, j, k), c in poly.terms() if i + j <= top and k <= top)
        return _cut(sum(terms, sp.S.Zero), x, orders)

    at, moments = sp.S.One, [sp.S.One, *[sp.S.Zero] * top]
    kernels, variances, fourths = [], [], []
    for _ in range(depth + 1):
        mean = average(one, moments, at)
        kernels.append(mean)
        variances.append(_cut(average(one**2, moments, at) - mean**2, x, orders))
        fourths.append(average(two, moments, at))
        after = drive.subs({a: 0, b: 0, v: at})
        moments = [average((drive - after) ** k if k else sp.S.One, moments, at) for k in range(top + 1)]
        at = after
    return ([[each.coeff(x, k) for k in range(orders + 1)] for each in series] for series in (kernels, variances, fourths))  # type: ignore[return-value]


def _cut(expression: Any, x: Any, orders: int) -> Any:
    poly = sp.Poly(sp.expand(expression), x)
    return sum((c * x**k for (k,), c in poly.terms() if k <= orders), sp.S.Zero)


def _central_moments(x: Any, top: int, orders: int) -> dict[tuple[int, int], Any]:
    """E A^i B^j for i + j <= top as series in 1/n, from the joint cumulants n^{1-i-j} kappa_ij of z^2 and z^4."""
    s, t = sp.symbols("s t")

    def double(k: int) -> int:
        return int(sp.factorial2(2 * k - 1)) if k else 1

    def graded(expression: Any) -> Any:
        poly = sp.Poly(sp.expand(expression), s, t)
        return sum((c * s**i * t**j for (i, j), c in poly.terms() if i + j <= top), sp.S.Zero)

    degrees = [(i, j) for i in range(top + 1) for j in range(top + 1 - i)]
    single = sum(sp.Rational(double(i + 2 * j), sp.factorial(i) * sp.factorial(j)) * s**i * t**j for i, j in degrees)
    logarithm, power = sp.S.Zero, sp.S.One
    for k in range(1, top + 1):
        power = graded(power * (single - 1))
        logarithm += sp.Rational((-1) ** (k + 1), k) * power
    cumulants = sp.Poly(logarithm, s, t)
    scaled = sum((c * x ** (i + j - 1) * s**i * t**j for (i, j), c in cumulants.terms() if i + j > 1), sp.S.Zero)
    total, power = sp.S.One, sp.S.One
    for k in range(1, top + 1):
        power = graded(power * scaled)
        total += power / sp.factorial(k)
    poly = sp.Poly(total, s, t)
    return {(i, j): _cut(poly.coeff_monomial(s**i * t**j) * sp.factorial(i) * sp.factorial(j), x, orders) for i, j in degrees}


@pytest.mark.slow
def test_two_branches_with_a_nonlinear_bias_variance() -> None:
    net = two_branches()
    found = expand(net, 2, {"G": "identity", "Q": "x**2"}, quantities=("mean", "covariance"), paths=WickPaths(net, (1, 2)))
    kernels, variances, fourths = (np.array(series, float) for series in _multilayer(2, 2))
    for order in (1, 2):
        np.testing.assert_allclose(found.mean("G", order).ravel(), kernels[:, order], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.mean("Q", order).ravel(), fourths[:, order], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.covariance("G", "G", order - 1).ravel(), variances[:, order], rtol=1e-9, atol=1e-9)


@cache
def rich() -> tuple[LayeredNetwork, Any]:
    """A network in which no vertex vanishes: monomials up to x^4, alpha neither 0 nor 1, a bias variance beyond linear."""
    branches = [Branch("identity", 0.6), Branch("x**3", 0.01)]
    net = LayeredNetwork(branches, alpha=0.8, dt=0.25, depth=3, kernel=1.0, bias="0.1 + 0.05*S1*S2")
    return net, WickPaths(net, (1, 3, 4))


def _arrays(program: Program) -> dict[str, np.ndarray]:
    net, paths = rich()
    arrays, lines, _ = arrays_of(net, paths, program.arrays, program.later_only)
    return {**arrays, **lines}


SIZES = {"T": 4, "C": 3, "F": 2, "E": 1}


@pytest.mark.slow
def test_every_diagram_and_every_array_counts() -> None:
    """Dropping a diagram, or spoiling one array, changes the mean at 1/n^2 or V4_1, as well as their sum."""
    sums = (cumulant_terms(1, 2), cumulant_terms(2, 1))
    single = [
        Output(f"part_{total.legs}_{at}", total.where(lambda t, d=term.diagram: t.diagram == d))
        for total in sums
        for at, term in enumerate(total)
    ]
    program = Program.of([*single, *(Output(f"whole_{total.legs}", total) for total in sums)], 2, SIZES)
    given = _arrays(program)
    found = evaluate(program, given)
    for legs in (1, 2):
        whole = found[f"whole_{legs}"][-1]
        parts = {name: value[-1] for name, value in found.items() if name.startswith(f"part_{legs}_")}
        np.testing.assert_allclose(sum(parts.values()), whole, rtol=1e-9)
        assert len(parts) == {1: 38, 2: 24}[legs]
        for name, part in parts.items():
            assert np.max(np.abs(part)) > 1e-6 * np.max(np.abs(whole)), name
    for name in program.arrays:
        moved = evaluate(program, {**given, name: 1.01 * given[name]})
        changes = [np.max(np.abs(moved[f"whole_{legs}"] - found[f"whole_{legs}"])) for legs in (1, 2)]
        assert max(changes) > 1e-7, name


def test_sharing_of_coinciding_legs_does_not_change_a_sum_over_assignments() -> None:
    """sum over assignments of two derivatives to three legs, at all coincidences, from shared and from raw arrays."""
    _, paths = rich()
    ones = np.ones(1)
    symmetric = np.zeros((4, 3) * 3)
    direct = np.zeros((4, 3) * 3)
    for first in range(3):
        for second in range(3):
            pattern = tuple(int(leg == first) + int(leg == second) for leg in range(3))
            direct += paths.cumulants(pattern).values @ ones @ ones
            order = sorted(range(3), key=lambda leg, p=pattern: -p[leg])
            values = shared(paths, tuple(pattern[leg] for leg in order)) @ ones @ ones
            back = [order.index(leg) for leg in range(3)]
            symmetric += values.transpose([axis for leg in back for axis in (2 * leg, 2 * leg + 1)])
    np.testing.assert_allclose(symmetric, direct, rtol=1e-12, atol=1e-12)
