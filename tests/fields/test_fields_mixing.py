"""Variables that mix: roots beside symbols, oscillating modes of a numerical saddle, integrals that diagrams share."""

from __future__ import annotations

import pytest
import sympy as sp

from symtensor.fields import DiagramSum, FieldTheory

ROOTS = """du = (-2*u + v + a*u^2) dt + sqrt(2*D) dW1
dv = (-v + u/2 + b*u*v) dt + sqrt(2*D) dW2"""
RATES = """du = (-u + tanh(3/2*u - v + 3/10)) dt + sqrt(2*D) dW1
dv = (-v + tanh(u - v/2 - 1/5)) dt + sqrt(2*D) dW2"""


@pytest.fixture(scope="module")
def roots() -> FieldTheory:
    return FieldTheory.langevin(ROOTS)


@pytest.fixture(scope="module")
def rates() -> FieldTheory:
    return FieldTheory.langevin(RATES)


def test_roots_beside_symbols_are_computed_in_a_field(roots: FieldTheory) -> None:
    assert any(rate.has(sp.sqrt(3)) for rate in roots.free.rates)
    domain = roots.elements(4).domain
    assert not domain.is_EX
    element = roots.elements(4).read(1 / (3 + sp.sqrt(3)) ** 2)
    assert roots.elements(4).write(element) == sp.Rational(1, 3) - sp.sqrt(3) / 6


@pytest.mark.parametrize("legs", ["u", "u,v", "v,ut"])
def test_roots_beside_symbols_agree_with_the_hierarchy(roots: FieldTheory, legs: str) -> None:
    assert set(roots.cumulant(legs, 1).verify().values) == {0, 1}


def test_fractions_of_symbols_stay_in_a_field() -> None:
    theory = FieldTheory.langevin("du = (-r*u + a*u*v) dt + sqrt(2*D) dW1\ndv = (-s*v + u) dt + sqrt(2*D) dW2")
    assert theory.elements(4).domain.is_FractionField
    assert set(theory.cumulant("u,v", 1).verify().values) == {0, 1}


def _waves(total: DiagramSum) -> list[sp.Expr]:
    return list(sp.Add.make_args(sp.expand(total.expr)))


def test_oscillating_modes_give_real_terms_once(rates: FieldTheory) -> None:
    assert all(rate.has(sp.I) for rate in rates.free.rates)
    tree = rates.cumulant("u,v", 0)
    assert not tree.expr.has(sp.I)
    assert len(_waves(tree)) == 2  # a cosine and a sine, not one of each for each of two conjugate rates
    # 2 + 2 waves with the rate of a mode, without and with t, 2 with twice the rate, 1 with the sum of conjugate rates
    assert len(_waves(rates.cumulant("u,v", 1).at(1))) == 7


def test_decimal_rates_are_shown_as_decimals(rates: FieldTheory) -> None:
    numbers = [n for n in sp.preorder_traversal(rates.cumulant("u,v", 1).expr) if n.is_Rational]
    assert all(n.q < 10**6 and abs(n.p) < 10**6 for n in numbers)


@pytest.mark.parametrize("legs", ["u", "u,v", "v,vt"])
def test_oscillating_modes_agree_with_the_hierarchy(rates: FieldTheory, legs: str) -> None:
    assert set(rates.cumulant(legs, 1).verify().values) == {0, 1}


def test_the_covariance_of_oscillating_modes_is_real(rates: FieldTheory) -> None:
    covariance = rates.free.covariance
    assert not covariance.has(sp.I)
    rest = (rates.free.drift * covariance + covariance * rates.free.drift.T - rates.free.noise).applyfunc(sp.expand)
    assert all(abs(sp.N(entry.subs(dict.fromkeys(entry.free_symbols, 1)))) < 1e-25 for entry in rest)


def test_cumulants_of_other_components_need_no_further_integral(rates: FieldTheory) -> None:
    theory = FieldTheory.langevin(RATES)
    assert theory.cumulant("u,u", 1).expr != 0
    kept = theory.elements(4)._integrals
    count = len(kept)
    assert count > 0
    assert theory.cumulant("v,v", 1).expr != theory.cumulant("u,v", 1).expr
    assert len(kept) == count
