"""The 1/N expansion in zero dimensions: diagrams against the radial integral, Wick moments with symbolic N, and quadrature."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symtensor.expansion import vector_moment
from symtensor.fields.errors import PointError, SourceError, TheoryError
from symtensor.fields.large_n import (
    LargeNSum,
    MismatchError,
    RadialExpansion,
    VectorTheory,
    cumulant,
    log_partition,
    mean_square,
    two_point,
    vertex_function,
)
from symtensor.fields.large_n.saddle import NUMBER, RHO

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "diagram_counts.json").read_text())
QUARTIC = VectorTheory.read("r*rho/2 + u*rho^2/4", temperature="T")
RATIONAL = VectorTheory.read("r*rho/2 + u*rho^2/4", values={"r": 1, "u": 2})
SEXTIC = VectorTheory.read("r*rho/2 + u*rho^2/4 + w*rho^3/6", temperature="T")


def test_the_saddle_of_the_quartic_theory() -> None:
    assert RATIONAL.mass == 2 and RATIONAL.rho == sp.Rational(1, 2)
    m, u, heat = QUARTIC.mass, *sp.symbols("u T", real=True)
    assert sp.expand(QUARTIC.curvature - m**2 - heat * u) == 0
    assert QUARTIC.numeric_mass({"r": 1, "u": 1, "T": 1}, 20) == pytest.approx((1 + 5**0.5) / 2)


def test_the_dressed_lines_invert_the_quadratic_form() -> None:
    """Hessian of (1/T) [N s(rho) - N lam rho/2] + (N/2) log(lam) in (rho, lam) at the saddle."""
    heat, m, rho, lam = QUARTIC.temperature, QUARTIC.mass, RHO, sp.Symbol("lam")
    action = NUMBER * (QUARTIC.potential - lam * rho / 2) / heat + NUMBER * sp.log(lam) / 2
    hessian = sp.hessian(action, (rho, lam)).subs({rho: heat / m, lam: m})
    lines = sp.Matrix(2, 2, lambda i, j: QUARTIC.line(("rho", "lam")[i], ("rho", "lam")[j]))
    assert sp.simplify(hessian * lines) == sp.eye(2)


@pytest.mark.parametrize(
    "theory", [QUARTIC, RATIONAL, SEXTIC, VectorTheory.read("exp(rho) - 1")], ids=["quartic", "rational", "sextic", "exp"]
)
@pytest.mark.parametrize(
    "legs",
    [
        {"phi": 2},
        {"rho": 1},
        {"lam": 1},
        {"rho": 2},
        {"rho": 1, "lam": 1},
        {"lam": 2},
        {"phi": 2, "lam": 1},
        {"phi": 4},
        {"rho": 3},
        {},
    ],
    ids=str,
)
def test_every_order_is_that_of_the_radial_integral(theory: VectorTheory, legs: dict[str, int]) -> None:
    order = 2 if sum(legs.values()) <= 2 else 1
    assert cumulant(theory, legs, order).verify().orders == order


def test_third_order_of_the_two_point_function_and_the_mean() -> None:
    result = two_point(QUARTIC, 3)
    assert len(result) == 458 and result.verify().orders == 3
    mean = mean_square(QUARTIC, 3)
    assert [sp.simplify(result[k] - mean[k]) for k in (1, 2, 3)] == [0, 0, 0]


def test_first_order_in_closed_form() -> None:
    """<phi phi> at order 1/N is -(T/m) 2 p (1 - p), p = m^2/(m^2 + u T): tadpole and self-energy."""
    m, heat = QUARTIC.mass, QUARTIC.temperature
    p = m**2 / QUARTIC.curvature
    assert sp.simplify(two_point(QUARTIC, 1)[1] + heat / m * 2 * p * (1 - p)) == 0


def _wick_series(order: int) -> sp.Expr:
    """<phi_1^2> of r phi.phi/2 + (u/4N) (phi.phi)^2 in powers of u with symbolic N, T = 1, from moments of Gaussian vectors."""
    n, u, r = NUMBER, *sp.symbols("u r", real=True)

    def series(first: int) -> list[sp.Expr]:
        moments = (
            vector_moment({("v", "v"): 2 * k}, {("v", "v"): 1 / r}, {"v": first} if first else None, n) for k in range(order + 1)
        )
        return [sp.sympify(moment) * (-1 / (4 * n)) ** k / sp.factorial(k) for k, moment in enumerate(moments)]

    top, bottom = series(2), series(0)
    found: list[sp.Expr] = []
    for k in range(order + 1):
        found.append(sp.cancel(top[k] - sum((found[j] * bottom[k - j] for j in range(k)), sp.S.Zero)))
    return sp.Add(*(c * u**k for k, c in enumerate(found)))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_series_in_the_coupling_are_exact_in_n(order: int) -> None:
    """The power u^k is a polynomial of degree k in 1/N, so that order K in 1/N holds it exactly for k <= K."""
    theory = VectorTheory.read("r*rho/2 + u*rho^2/4")
    found = two_point(theory, order).series("u", order)
    assert sp.cancel(found - _wick_series(order)) == 0
    short = two_point(theory, order - 1).series("u", order)
    assert sp.cancel(short - _wick_series(order)) != 0


def _exact_mean(theory: VectorTheory, number: int) -> mpmath.mpf:
    """<rho> by quadrature around the maximum of the integrand."""
    peak, width = 1 / theory.mass, 1 / mpmath.sqrt(number)
    points = [max(peak + j * 5 * width, mpmath.mpf(0)) for j in (-2, -1, 0, 1, 2, 4)]

    def weight(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.exp(number * (mpmath.log(x / peak) / 2 - x / 2 - x**2 / 2 + peak / 2 + peak**2 / 2)) / x

    nodes = sorted(set(points))
    return mpmath.quad(lambda x: x * weight(x), nodes) / mpmath.quad(weight, nodes)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_error_falls_as_the_next_power_of_n(order: int) -> None:
    """s = rho/2 + u rho^2/4 with u = 2 at N = 64 .. 1024: N^(K+1) times the error tends to the next coefficient."""
    result = mean_square(RATIONAL, order)
    coefficients = RadialExpansion(RATIONAL, 4).cumulant({"rho": 1})
    following = next(k for k in range(order + 1, 5) if coefficients[k] != 0)
    with mpmath.workdps(30):
        scaled = [(_exact_mean(RATIONAL, n) - result.at(number=n)) * n**following for n in (256, 1024)]
        right = mpmath.mpf(sp.N(coefficients[following], 30))
        assert abs(scaled[1] / right - 1) < 0.02
        assert abs(scaled[1] / right - 1) < abs(scaled[0] / right - 1) / 2


def test_log_partition_against_quadrature_at_small_n() -> None:
    with mpmath.workdps(30):
        n = 32
        radial = mpmath.quad(lambda y: mpmath.exp(n * (y - mpmath.exp(y) - mpmath.exp(2 * y)) / 2), [-4, -2, -1, -0.5, 0, 1])
        exact = mpmath.log(radial * mpmath.pi ** (n / 2) / mpmath.gamma(n / 2) * mpmath.mpf(n) ** (n / 2))
        errors = [abs(log_partition(RATIONAL, k).at(number=n) - exact) for k in (0, 1, 2)]
        assert errors[0] > 10 * errors[1] > 100 * errors[2] and errors[2] < 1e-6


def test_the_numbers_of_diagrams_are_those_of_the_reference() -> None:
    published = REFERENCE["on_dressed"]
    for result, name in (
        (two_point(RATIONAL, 1), "phi phi connected"),
        (vertex_function(RATIONAL, {"phi": 2}, 2), "phi self-energy 1PI"),
        (log_partition(RATIONAL, 1), "vacuum connected"),
    ):
        for order, (count, weight) in published[name].items():
            terms = result.by_order()[int(order)]
            assert [len(terms), str(sum((t.diagram.weight for t in terms), sp.S.Zero))] == [count, weight]


def test_the_self_energy_and_the_shift_make_the_inverse() -> None:
    theory = SEXTIC
    sigma = theory.temperature * vertex_function(theory, {"phi": 2}, 1)[1]
    shift = cumulant(theory, {"lam": 1}, 1)[1]
    first = two_point(theory, 1)[1]
    assert sp.simplify(-(theory.mass**2) * first / theory.temperature - (shift - sigma)) == 0
    assert len(two_point(theory, 1).tadpoles()) == 2 and len(vertex_function(theory, {"phi": 2}, 2).one_particle_irreducible()) > 2


def test_values_of_terms_add_up_to_the_sum() -> None:
    result = cumulant(SEXTIC, {"rho": 2}, 1)
    assert sp.simplify(sp.Add(*(term.value for term in result)) - result.expr) == 0
    assert {term.order for term in result} == {0, 1} and all(
        term.symmetry_factor == term.diagram.symmetry_factor for term in result
    )
    assert "table" in result._repr_html_() and result.latex().startswith(r"\langle")


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 5), st.integers(0, 5), st.integers(0, 4), st.integers(1, 3))
def test_random_potentials(a: int, b: int, c: int, heat: int) -> None:
    theory = VectorTheory.read(a * RHO / 2 + b * RHO**2 / 4 + c * RHO**3 / 6, heat)
    for legs in ({"phi": 2}, {"rho": 1, "lam": 1}, {}):
        cumulant(theory, legs, 1).verify()


def _without(result: LargeNSum, index: int) -> LargeNSum:
    return replace(result, terms=result.terms[:index] + result.terms[index + 1 :])


@pytest.mark.parametrize("legs", [{"phi": 2}, {"lam": 2}, {}], ids=str)
def test_a_missing_diagram_or_a_wrong_factor_is_found(legs: dict[str, int]) -> None:
    result = cumulant(SEXTIC, legs, 1)
    for index, term in enumerate(result):
        with pytest.raises(MismatchError, match="order"):
            _without(result, index).verify()
        wrong = replace(term, scaled=term.scaled * 2)
        with pytest.raises(MismatchError):
            replace(result, terms=(*result.terms[:index], wrong, *result.terms[index + 1 :])).verify()


def test_bad_input_is_named() -> None:
    for arguments, error, text in (
        (("r*x + 1",), SourceError, "does not depend on rho"),
        (("m*rho/2",), SourceError, "'m' is reserved"),
        (("rho/2", 1, {"g": 1}), SourceError, "'g'"),
        (("-rho^2",), PointError, "no saddle point"),
        (("rho/2", -1), SourceError, "temperature"),
        (("r*rho/2", 1, {"r": float("nan")}), SourceError, "value of r is nan"),
        (("r*rho/2", 1, {"r": "__import__('os')"}), SourceError, "a finite real number"),
        (("rho.real",), ValueError, "not mathematics"),
        (("lambda*rho",), ValueError, "word of the language"),
        (([1, 2],), SourceError, "a finite real number"),
    ):
        with pytest.raises(error, match=text):
            VectorTheory.read(*arguments)
    with pytest.raises(TheoryError, match="'sigma'"):
        cumulant(RATIONAL, {"sigma": 1})
    with pytest.raises(TheoryError, match="order in 1/N is -1"):
        two_point(RATIONAL, -1)
    with pytest.raises(TheoryError, match="order 9 in 1/N has at least"):
        two_point(RATIONAL, 9)
    with pytest.raises(SourceError, match="no value is given for N"):
        two_point(RATIONAL, 1).at()
    with pytest.raises(SourceError, match="parameters r, u"):
        two_point(VectorTheory.read("r*rho/2+u*rho^2/4"), 1).at(number=4)
    with pytest.raises(SourceError, match="no parameter"):
        two_point(RATIONAL, 1).series("u", 2)
    with pytest.raises(IndexError, match="order 2"):
        two_point(RATIONAL, 1)[2]
