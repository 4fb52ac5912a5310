"""Theories with momenta: KPZ and Burgers at one loop, static phi^4, model A, against closed forms and routes without diagrams."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symtensor.cli import main
from symtensor.diagrams import enumerate_diagrams
from symtensor.fields.errors import TheoryError
from symtensor.fields.hierarchy import MomentHierarchy
from symtensor.fields.momentum import (
    MomentumSum,
    MomentumTheory,
    MomentumVertex,
    P,
    ScalarProduct,
    angular_constant,
    in_one_dimension,
    momentum_theory,
    multiplied_out,
    squared,
)
from symtensor.fields.momentum.momentum_term import TIME

K, Q = sp.symbols("k q")
NU, D, LAM = sp.symbols("nu D lam", positive=True)
W = sp.Symbol("omega", real=True)
UNITS = {"nu": 1, "D": 1, "lam": 1}
KPZ = momentum_theory("kpz")


def even(expression: Any) -> Any:
    """The part of a one-dimensional integrand that is even in q."""
    flat = in_one_dimension(expression)
    return sp.cancel(sp.together((flat + flat.subs(Q, -Q)) / 2))


# -- KPZ -----------------------------------------------------------------------------------------------------------------


def test_renormalised_viscosity_and_noise() -> None:
    d = KPZ.dimension
    shift = KPZ.vertex_function("xt,x", 1).at(1).small_momentum(2).coefficients
    noise = KPZ.vertex_function("xt,xt", 1).at(1).small_momentum(0).coefficients[0]
    q = sp.Symbol("q", positive=True)
    viscosity = NU - shift[2] / squared(K)
    assert (shift[0], shift[1]) == (0, 0)
    assert sp.simplify(viscosity - NU * (1 + LAM**2 * D / NU**3 * (2 - d) / (4 * d) / q**2)) == 0
    assert sp.simplify(D + noise / 2 - D * (1 + LAM**2 * D / NU**3 / 4 / q**2)) == 0


def test_one_dimension_in_closed_form() -> None:
    shift, noise = (KPZ.vertex_function(legs, 1).at(1) for legs in ("xt,x", "xt,xt"))
    assert sp.cancel(even(shift.integrand_at()) + LAM**2 * D * K**2 / (NU * (NU * K**2 + 4 * NU * Q**2 - 2 * sp.I * W))) == 0
    found = shift.evaluate({**UNITS, "k": 0.3, "omega": 0.7}, dimension=1)
    exact = -0.09 / (4 * np.sqrt((0.09 - 1.4j) / 4)) / 2  # int dq/(2 pi) 1/(4 q^2 + a) = 1/(4 sqrt(a))
    assert abs(found.value - exact) < 1e-9
    assert noise.evaluate({**UNITS, "k": 2, "omega": 0}, dimension=1).real == pytest.approx(0.25, abs=1e-9)


def test_fluctuation_dissipation_in_one_dimension() -> None:
    shift, noise = (even(KPZ.vertex_function(legs, 1).at(1).integrand_at()) for legs in ("xt,x", "xt,xt"))
    assert sp.cancel(sp.together(noise + D / (NU * K**2) * (shift + shift.subs(W, -W)))) == 0


def test_stationary_measure_in_one_dimension_is_gaussian() -> None:
    three = KPZ.cumulant("x,x,x", 0).at(0).integrand
    assert sp.cancel(sp.together(in_one_dimension(three))) == 0
    assert sp.cancel(sp.together(multiplied_out(three))) != 0  # not so in more dimensions
    four = KPZ.cumulant("x,x,x,x", 0).at(0)
    point = {sp.Symbol(f"k{i + 1}"): n for i, n in enumerate((2, 3, -7))}
    values = [in_one_dimension(term.integrand).subs(point) for term in four]
    assert len(values) == 24
    assert sum(values) == 0
    assert sum(values[1:]) != 0
    assert even(KPZ.cumulant("x,x", 1, "equal").at(1).integrand) == 0


def test_galilean_invariance() -> None:
    """The vertex is not renormalised at small momenta and zero frequencies, in any dimension."""
    triangles = KPZ.vertex_function("xt,x,x", 1).at(1)
    assert triangles.small_momentum(2).coefficients == {0: 0, 1: 0, 2: 0}
    one = MomentumSum(KPZ, triangles.legs, 1, "1pi", triangles.times, 1, {1: tuple(triangles)[1:]})
    assert one.small_momentum(2).coefficients[2] != 0


def test_frequency_integral_done_numerically() -> None:
    """The self-energy with the loop frequency integrated by brute force instead of the times."""
    k, q, w = 1.3, 0.4, 0.6
    left, right = k / 2 - q, k / 2 + q  # correlator and response
    v = np.linspace(-4000, 4000, 4_000_001)
    lines = 2 / (v**2 + left**4) / (right**2 - 1j * (w - v))
    value = np.sum(lines) * (v[1] - v[0]) / (2 * np.pi) * (-(left * right)) * (-(k * -left))  # vertices -lam p2.p3
    (term,) = KPZ.vertex_function("xt,x", 1).at(1)
    found = complex(in_one_dimension(term.integrand_at()).subs({NU: 1, D: 1, LAM: 1, K: k, Q: q, W: w}))
    mirrored = complex(in_one_dimension(term.integrand_at()).subs({NU: 1, D: 1, LAM: 1, K: k, Q: -q, W: w}))
    assert min(abs(found - value), abs(mirrored - value)) < 1e-4 * abs(value)


def test_burgers_is_the_gradient() -> None:
    burgers = momentum_theory("burgers")
    for legs, factor in (("xt,x", 1), ("xt,xt", K**2)):
        ours, theirs = (even(t.vertex_function(legs, 1).at(1).integrand_at()) for t in (burgers, KPZ))
        assert sp.cancel(sp.together(ours - factor * theirs)) == 0


def test_counts() -> None:
    assert [enumerate_diagrams("kpz", "x:2", loops=3, causality=rule).count() for rule in ("none", "local")] == [4766, 1004]
    assert KPZ.cumulant("x,x", 2).count() == {loops: enumerate_diagrams("kpz", "x:2", loops=loops).count() for loops in range(3)}


# -- finitely many modes: the moment hierarchy ------------------------------------------------------------------------------

MODES = (-2, -1, 1, 2)


def on_modes(total: MomentumSum, k: int, broken: bool = False) -> sp.Expr:
    """The one-loop sum with integrals replaced by sums over the modes of a box of length 2 pi, h = sum a e^{ikx}."""
    found = sp.S.Zero
    for term in list(total)[1:] if broken else total:
        flat = in_one_dimension(term.integrand)
        for twice in range(-12, 13):
            at = {K: k, Q: sp.Rational(twice, 2)}
            if all(momentum.subs(at) in MODES for _, momentum, _ in term.propagators):
                found += flat.subs(at)
    return sp.expand(found)


def hierarchy_of_modes(rate: Callable[[int], int], noise: Callable[[int], int]) -> tuple[MomentHierarchy, list[sp.Symbol]]:
    u1, v1, u2, v2 = variables = list(sp.symbols("u1 v1 u2 v2", real=True))
    a = {1: u1 + sp.I * v1, -1: u1 - sp.I * v1, 2: u2 + sp.I * v2, -2: u2 - sp.I * v2}
    drift: list[Any] = []
    for k in (1, 2):
        force = -rate(k) * a[k]
        for x in MODES:
            if k - x in MODES:
                force -= LAM / 2 * x * (k - x) * a[x] * a[k - x]
        drift += [sp.expand(part) for part in sp.expand(force).as_real_imag()]
    amplitudes = [sp.sqrt(sp.Rational(noise(k), 2)) for k in (1, 1, 2, 2)]
    return MomentHierarchy(drift, amplitudes, variables, LAM), variables


def test_finite_number_of_modes_against_the_moment_hierarchy() -> None:
    p2, p3 = sp.symbols("p2 p3")
    vertex = MomentumVertex("g", ("xt", "x", "x"), -LAM * ScalarProduct(p2, p3))
    theory = MomentumTheory("coloured", (vertex,), rate=squared(P) + 1, noise=2 + squared(P), dimension=sp.S.One)
    total = theory.cumulant("x,x", 1, "equal").at(1)
    hierarchy, variables = hierarchy_of_modes(lambda k: k * k + 1, lambda k: k * k + 2)
    for k, pair in ((1, variables[:2]), (2, variables[2:])):
        exact = sum(hierarchy.moment({x: 2}, 2)[2] for x in pair)
        assert on_modes(total, k) == exact * LAM**2 != 0
        assert on_modes(total, k, broken=True) != exact * LAM**2


# -- static phi^4 and model A -------------------------------------------------------------------------------------------------


def test_static_theory_in_one_dimension() -> None:
    total = momentum_theory("phi4-field").vertex_function("x,x", 2)
    values = {"m": 1, "g": 1, "k": 0}
    assert total.at(1).evaluate(values, dimension=1).real == pytest.approx(-0.25, abs=1e-9)  # -g/2 int dq/2pi 1/(1+q^2)
    # int dr (e^{-|r|}/2)^3 = 1/12; the double snail is (1/4) int D^2 int D = (1/4) (1/4) (1/2)
    assert total.at(2).evaluate(values, dimension=1).real == pytest.approx(1 / 72 + 1 / 32, abs=3e-6)


def test_bubble_in_three_dimensions() -> None:
    """The four-point function at zero momenta: (g^2/2) x 3 channels x int d^3q/(2 pi)^3 1/(q^2+m^2)^2 = 3 g^2/(16 pi m)."""
    series = momentum_theory("phi4-field").vertex_function("x,x,x,x", 1).at(1).small_momentum(0)
    m, g = sp.symbols("m g", positive=True)
    d = series.dimension
    integral = series.integral(0).subs({d: 3}).subs(sp.Symbol("K_d"), angular_constant(3)).doit()
    assert sp.simplify(integral - 3 * g**2 / (16 * sp.pi * m)) == 0


def test_model_a_fluctuation_dissipation() -> None:
    """T times the self-energy is the derivative of the noise vertex, averaged over the momenta of the three lines of the sunset."""
    model = momentum_theory("model-a")
    noise, shift = (model.vertex_function(legs, 2).at(2) for legs in ("xt,xt", "xt,x"))
    (sunset,) = noise
    answers = [term for term in shift if term.diagram.snails == ()]
    q1, q2 = sp.symbols("q1 q2")
    heat, mobility = (sp.Symbol(name, positive=True) for name in ("T", "Gamma"))
    lines = [K / 3 - q1, K / 3 - q2, K / 3 + q1 + q2]
    orders: list[Any] = [{q1: K / 3 - a, q2: K / 3 - b} for a, b, _ in itertools.permutations(lines)]
    orders += [{q: value.subs({q1: -q1, q2: -q2}, simultaneous=True) for q, value in order.items()} for order in orders]

    def averaged(expression: Any) -> Any:
        return sum(in_one_dimension(expression).subs(order, simultaneous=True) for order in orders) / len(orders)

    point = {name: sp.Rational(n, 7) for name, n in zip((*model.parameters, K, q1, q2, TIME), (3, 5, 8, 9, 4, 11, 2, 6))}
    left = averaged(sum(term.integrand for term in answers)).subs(point)
    right = -averaged(sunset.integrand.diff(TIME)).subs(point) / (mobility * heat).subs(point)
    assert len(answers) == 1
    assert left != 0
    assert abs(sp.N(left - right, 30)) < 1e-25


def test_static_limit_of_model_a() -> None:
    """Equal times at one loop: the correlator of the static theory with weight exp(-F/T)."""
    m, g, heat = (sp.Symbol(name, positive=True) for name in ("m", "g", "T"))
    vertex = MomentumVertex("g", ("x",) * 4, -g / heat)
    static = MomentumTheory("phi4-heat", (vertex,), heat / (m**2 + squared(P)))
    still = static.cumulant("x,x", 1).at(1).integrand
    late = momentum_theory("model-a").cumulant("x,x", 1, "equal").at(1)
    assert sp.simplify(multiplied_out(late.integrand - still)) == 0
    assert sp.simplify(multiplied_out(next(iter(late)).integrand - still)) != 0


# -- momenta, angles, errors ---------------------------------------------------------------------------------------------------


def test_momentum_is_conserved_at_vertices() -> None:
    for term in KPZ.cumulant("x,x", 2).at(2):
        for node in term.diagram.graph.vertices:
            assert sp.expand(sum(momentum for _, momentum in term.route.legs(term.diagram, node))) == 0


def test_loop_in_three_dimensions_against_small_momenta() -> None:
    shift = KPZ.vertex_function("xt,x", 1).at(1)
    found = shift.evaluate({**UNITS, "k": 0.01, "omega": 0}, dimension=3, cutoff=1.0).real
    expected = float(1 / (12 * 2 * sp.pi**2)) * 1e-4  # K_3 (d - 2)/(4 d) k^2 Lambda
    assert found == pytest.approx(expected, rel=0.03)


def test_theories_that_are_refused() -> None:
    p2, p3 = sp.symbols("p2 p3")
    lines = {"rate": squared(P), "noise": sp.S.One}
    with pytest.raises(TheoryError, match="exchanged"):
        MomentumTheory("bad", (MomentumVertex("g", ("xt", "x", "x"), ScalarProduct(p2, p2)),), **lines)
    with pytest.raises(TheoryError, match="unknown leg 'y'"):
        MomentumTheory("bad", (MomentumVertex("g", ("xt", "x", "y"), ScalarProduct(p2, p3)),), **lines)
    with pytest.raises(TheoryError, match="response leg"):
        MomentumTheory("bad", (MomentumVertex("g", ("x", "x", "x"), LAM),), **lines)
    with pytest.raises(TheoryError, match="not a scalar"):
        MomentumTheory("bad", (MomentumVertex("g", ("xt", "x", "x"), p2 * p3),), **lines)
    with pytest.raises(TheoryError, match="either propagator"):
        MomentumTheory("bad", (), rate=squared(P))


def test_questions_that_are_refused() -> None:
    shift = KPZ.vertex_function("xt,x", 1)
    with pytest.raises(TheoryError, match="no field 'h'"):
        KPZ.cumulant("h,h")
    with pytest.raises(TheoryError, match="no value for D"):
        shift.evaluate({"nu": 1, "lam": 1, "k": 1, "omega": 0}, dimension=1)
    with pytest.raises(TheoryError, match="integer dimension"):
        shift.evaluate({**UNITS, "k": 1, "omega": 0})
    with pytest.raises(TheoryError, match="does not settle"):
        momentum_theory("phi4-field").vertex_function("x,x", 1).evaluate({"m": 1, "g": 1, "k": 1}, dimension=2)
    with pytest.raises(TheoryError, match="times"):
        KPZ.cumulant("x,x,x", 0, "t,0")
    with pytest.raises(TheoryError, match="at least"):
        KPZ.cumulant("x,x", 7)


def test_command(capsys: pytest.CaptureFixture, tmp_path: Any) -> None:
    out = tmp_path / "out"
    values = "k=2,omega=0,nu=1,D=1,lam=1,d=1"
    assert main(["fields", "kpz", "--vertex", "xt,x", "--loops", "1", "--at", values, "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "loops 1  1/1  -D*lam**2" in text
    assert "1 loops: -0.4999999" in text or "1 loops: -0.5" in text
    assert "\\lambda" in (out / "formula.tex").read_text()
    assert "<svg" in (out / "index.html").read_text()
    assert main(["fields", "kpz", "--verify"]) == 2


def test_display() -> None:
    total = KPZ.vertex_function("xt,xt", 1)
    assert "<svg" in total._repr_html_()
    assert isinstance(total.expr, sp.Integral)
    assert KPZ.vertex_function("x,x", 1).empty_reason.startswith("without an amputated response leg")
