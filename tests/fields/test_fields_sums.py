"""Sums of diagrams against routes without diagrams, and what notices a defect."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from symtensor.expansion import perturbative_moments
from symtensor.fields import FieldTheory, TheoryError, theory
from symtensor.fields.term import Term
from symtensor.fields.verification import MismatchError, same

g, h, T = (sp.Symbol(name, real=True) for name in "ghT")
t = sp.Symbol("t", nonnegative=True)

STATIC = [
    ("phi3", "x", 4), ("phi3", "x,x", 4), ("phi3", "x,x,x", 3), ("phi4", "x,x", 5), ("phi4", "x,x,x,x", 3), ("phi6", "x,x", 4),
    ("phi3+phi4", "x", 3), ("phi3+phi4", "x,x", 3),
]  # fmt: skip


@pytest.mark.parametrize(("name", "legs", "loops"), STATIC)
def test_static_cumulants_are_those_of_wick(name: str, legs: str, loops: int) -> None:
    verified = theory(name).cumulant(legs, loops).verify()
    assert set(verified.values) == set(range(loops + 1))


IRREDUCIBLE = [("phi3", "x,x", 4), ("phi3", "x,x,x", 3), ("phi4", "x,x", 5), ("phi4", "x,x,x,x", 3)]


@pytest.mark.parametrize(("name", "legs", "loops"), IRREDUCIBLE)
def test_static_vertex_functions_are_those_of_the_legendre_transform(name: str, legs: str, loops: int) -> None:
    assert theory(name).vertex_function(legs, loops).verify()


def test_two_point_function_of_phi4_by_the_generating_function() -> None:
    x, u = sp.symbols("x g")
    series = perturbative_moments(-u * x**4 / 24, {x: 2}, 5, {(x, x): 1}, kind="connected")
    assert sp.expand(theory("phi4").cumulant("x,x", 5).expr - series.expr.subs(u, g)) == 0


def test_several_fields_with_mixing() -> None:
    mixed = FieldTheory.static("x^2/2 + y^2/2 + x*y/3 + g*x^2*y/2 + h*y^4/24", ["x", "y"])
    assert [kind.components for kind in mixed.kinds] == [(0, 1)]
    for legs, loops in (("x,y", 2), ("y", 2), ("x,x,y", 1)):
        assert mixed.cumulant(legs, loops).verify()


def test_fields_that_do_not_mix_are_different_lines() -> None:
    apart = FieldTheory.static("a*x^2/2 + b*y^2/2 + g*x^2*y/2", ["x", "y"])
    assert [kind.name for kind in apart.kinds] == ["x", "y"]
    total = apart.cumulant("y,y", 1)
    assert total.verify()
    assert sp.simplify(total.at(1).expr - g**2 / (2 * sp.Symbol("a", real=True) ** 2 * sp.Symbol("b", real=True) ** 2)) == 0


def test_non_polynomial_action() -> None:
    assert FieldTheory.static("cosh(x) - 1 + g*x^3", "x").cumulant("x,x", 3).verify()


def test_components_with_an_index() -> None:
    vector = FieldTheory.static("dot(x, x)/2 + g*dot(x, x)^2/24", {"x": 3})
    total = vector.cumulant("x_1,x_1", 2)
    assert total.verify()
    # N = 3: the two-point function of (N + 2)-fold multiplicity
    assert total.at(1).expr == -sp.Rational(5, 6) * g


STOCHASTIC = [
    ("cubic-langevin", "x,x", 3), ("cubic-langevin", "x,xt", 3), ("cubic-langevin", "x,x,x,x", 1), ("quadratic-langevin", "x", 3),
    ("quadratic-langevin", "x,x", 2), ("quadratic-langevin", "x,xt", 2), ("quadratic-langevin", "x,x,x", 1),
    ("quadratic-langevin", "x,x,xt", 1), ("multiplicative-langevin", "x,x", 2), ("multiplicative-langevin", "x,x,x", 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "legs", "loops"), STOCHASTIC)
def test_stochastic_cumulants_are_those_of_the_moment_hierarchy(name: str, legs: str, loops: int) -> None:
    assert theory(name).cumulant(legs, loops).verify()


def test_equal_times_of_the_cubic_equation_are_those_of_its_density() -> None:
    """exp(-(x^2/2 + g x^4/4)/T): ratios of Gaussian moments."""
    total = theory("cubic-langevin").cumulant("x,x", 4, times="equal")
    x, u = sp.symbols("x u")
    series = perturbative_moments(-u * x**4 / 4, {x: 2}, 4, {(x, x): T}, kind="connected")
    assert sp.expand(total.expr - series.expr.subs(u, g / T)) == 0


def test_mean_shift_of_the_quadratic_equation_is_the_formal_series() -> None:
    total = theory("quadratic-langevin").cumulant("x", 4)
    x, u = sp.symbols("x u")
    series = perturbative_moments(u * x**3 / 3, {x: 1}, 7, {(x, x): T}, kind="connected")
    assert sp.expand(total.expr - series.expr.subs(u, g / T)) == 0


def test_fluctuation_dissipation_order_by_order() -> None:
    """T R(t) = -dC/dt holds separately for every number of loops."""
    model = theory("cubic-langevin")
    correlator, response = (model.cumulant(legs, 3).by_order() for legs in ("x,x", "x,xt"))
    for loops in range(4):
        assert sp.expand(T * response[loops].expr + correlator[loops].expr.diff(t)) == 0
        assert correlator[loops].expr != 0


def test_only_response_legs_vanish_and_say_why() -> None:
    for legs in ("xt", "xt,xt", "xt,xt,xt"):
        total = theory("quadratic-langevin").cumulant(legs, 2)
        assert (len(total), total.expr) == (0, 0)
    assert "response" in theory("cubic-langevin").cumulant("xt,xt", 1).empty_reason


def test_a_response_before_its_cause_vanishes() -> None:
    assert theory("cubic-langevin").cumulant("xt,x", 2).expr == 0


def test_vertex_function_without_a_response_leg_vanishes() -> None:
    assert theory("cubic-langevin").vertex_function("x,x", 2).expr == 0


def test_non_polynomial_drift_with_several_variables() -> None:
    pair = FieldTheory.langevin("du = (-u + tanh(v)/4) dt + sqrt(2*T) dW1\ndv = (-2*v + h*u^2) dt + sqrt(2*T) dW2")
    for legs in ("u", "v", "u,v"):
        assert pair.cumulant(legs, 1).verify()


def test_coloured_noise() -> None:
    coloured = FieldTheory.langevin("dx = (-x + eta + g*x^2) dt\ndeta = -3*eta dt + s dW")
    assert coloured.cumulant("x", 1).verify()
    assert coloured.cumulant("x,x", 1).verify()


# -- mutations ---------------------------------------------------------------------------------------------------------------


def test_a_wrong_vertex_factor_is_noticed() -> None:
    model = theory("quadratic-langevin")
    total = model.cumulant("x", 2)
    table = {key: value * sp.Rational(11, 10) for key, value in model.derivatives(total.valence).items()}
    spoiled = replace(model, _cache={("derivatives", total.valence): table})
    with pytest.raises(MismatchError, match="1 loop"):
        spoiled.cumulant("x", 2).verify()


@pytest.mark.parametrize("missing", range(4))
def test_a_missing_diagram_is_noticed(missing: int) -> None:
    total = theory("quadratic-langevin").cumulant("x", 2)
    terms = list(total._at(2))
    total._terms[2] = tuple(terms[:missing] + terms[missing + 1 :])
    with pytest.raises(MismatchError, match="2 loops"):
        total.verify()


def test_a_wrong_symmetry_factor_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Term, "symmetry_factor", property(lambda self: max(self.diagram.symmetry_factor - 1, 1)))
    with pytest.raises(MismatchError):
        theory("phi4").cumulant("x,x", 1).verify()


def test_comparison_does_not_take_different_expressions_for_equal() -> None:
    a = sp.Symbol("a", real=True)
    assert same((a**2 - 1) / (a - 1), a + 1)
    assert same(sp.sqrt(3 + 2 * sp.sqrt(2)), 1 + sp.sqrt(2))
    assert not same(a + sp.Rational(1, 10**20), a)


def test_a_selection_is_not_verified() -> None:
    with pytest.raises(TheoryError, match="selection"):
        theory("phi3").cumulant("x,x", 2).tadpoles().verify()
