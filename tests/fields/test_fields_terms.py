"""Single terms: factors, formulas, integrals done by brute force, classes of diagrams, Dyson's equation, effective action."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from symtensor.fields import FieldTheory, TheoryError, theory

g, h, T = (sp.Symbol(name, real=True) for name in "ghT")
t = sp.Symbol("t", nonnegative=True)
w = sp.Symbol("w", real=True)


def test_tadpole_of_the_quadratic_equation() -> None:
    (term,) = theory("quadratic-langevin").cumulant("x", 1).tadpoles()
    s1 = sp.Symbol("s1", real=True)
    C, R = sp.Function("C_x"), sp.Function("R_x")
    assert (term.symmetry_factor, term.sign, term.loops) == (2, 1, 1)
    assert term.vertex_factors == (("v_x2_xt", 2 * g),)
    assert term.variables == (s1,)
    assert term.integrand == g * C(0) * R(-s1)
    assert term.expr == g * T
    assert term.latex() == r"g\,\int\! ds_{1}\,R_{x}(-s_{1})\,C_{x}(0)"


def test_sign_of_a_term() -> None:
    signs = {term.loops: term.sign for term in theory("phi4").cumulant("x,x", 3)}
    assert signs == {0: 1, 1: -1, 2: 1, 3: -1}


@pytest.mark.parametrize(("name", "legs"), [("cubic-langevin", "x,x"), ("cubic-langevin", "x,xt"), ("quadratic-langevin", "x,x")])
def test_values_are_the_integrals_of_the_integrands(name: str, legs: str) -> None:
    """The formula that is shown, integrated on a grid: propagators put in, Ito's theta."""
    numbers = {T: 0.7, g: 0.3}
    when = 0.8
    checked = 0
    for term in theory(name).cumulant(legs, 1):
        count = len(term.variables)
        if count not in (1, 2):
            continue
        # 0 and `when`, where the integrands jump, are points of the grid
        step, start = (0.002, -16.0) if count == 1 else (0.008, -9.6)
        grid = start + step * np.arange(round((when - start) / step) + 1)
        weights = np.full(grid.size, step)
        place = {s: grid.reshape([-1 if k == i else 1 for k in range(count)]) for i, s in enumerate(term.variables)}
        product: np.ndarray | float = float(term.formula.prefactor.subs(numbers))
        for line in term.formula.lines:
            later, earlier = (place.get(time, when if time == t else 0.0) for time in line.times)
            gap = np.round(np.asarray(later - earlier) / step) * step
            decay = np.exp(-np.abs(gap))
            product = product * (decay * np.heaviside(gap, 0.5) if line.letter == "R" else numbers[T] * decay)
        for _ in range(count):
            product = np.tensordot(weights, product, axes=(0, 0))
        assert float(product) == pytest.approx(float(term.expr.subs({**numbers, t: when})), rel=1e-5 if count == 1 else 2e-2)
        checked += 1
    assert checked


def test_classes_of_diagrams_partition_the_sum() -> None:
    total = theory("phi3").cumulant("x,x", 2)
    with_tadpoles, rest = total.tadpoles(), total.where(lambda term: not term.diagram.tadpoles)
    assert len(with_tadpoles) + len(rest) == len(total)
    assert sp.expand(with_tadpoles.expr + rest.expr - total.expr) == 0
    assert sum(len(part) for part in total.by_order().values()) == len(total)
    irreducible = total.one_particle_irreducible()
    assert sp.expand(irreducible.expr - theory("phi3").vertex_function("x,x", 2).expr) == 0


def taylor_sum(expression: sp.Expr, mark: sp.Symbol, order: int) -> sp.Expr:
    """The Taylor polynomial of a rational function of `mark`, at mark = 1."""
    total = sp.S.Zero
    for k in range(order + 1):
        total += expression.subs(mark, 0) / sp.factorial(k)
        expression = expression.diff(mark)
    return total


@pytest.mark.parametrize(("name", "order"), [("cubic-langevin", 2), ("quadratic-langevin", 4)])
def test_dyson_expanded_is_the_cumulant(name: str, order: int) -> None:
    model, mark = theory(name), sp.Symbol("mark")
    numbers = {T: sp.Rational(3, 4), w: sp.Rational(7, 5)}
    dyson = model.cumulant("x,x", 2).dyson()
    pairs = [
        (dyson.response(w)[0], model.cumulant("x,xt", 2).value.fourier(w)),
        (dyson.correlator(w)[0], model.cumulant("x,x", 2).frequency(w)),
    ]
    for resummed, total in pairs:
        found = taylor_sum(sp.cancel(resummed.subs(numbers).subs(g, mark * g)), mark, order)
        assert sp.simplify(found - total.subs(numbers)) == 0


def test_dyson_of_a_static_theory() -> None:
    model, mark = theory("phi3+phi4"), sp.Symbol("mark")
    found = model.cumulant("x,x", 2).dyson().expr().subs({g: mark * g, h: mark**2 * h})
    assert sp.expand(taylor_sum(found, mark, 4) - model.cumulant("x,x", 2).expr) == 0


def test_effective_action_with_one_loop_is_the_determinant() -> None:
    model = theory("phi3+phi4")
    (x,) = model.fields
    one_loop = sp.log((-model.density).diff(x, 2)) / 2
    series = sp.series(one_loop, x, 0, 6).removeO()
    assert sp.expand(series - model.effective_action(1, 5).at(1)) == 0


def test_effective_action_is_stationary_at_the_mean() -> None:
    model = theory("phi3")
    action = model.effective_action(2, 4)
    action.verify()
    (x,) = model.fields
    mean = model.cumulant("x", 2).expr
    slope = action.expr.diff(x).subs(x, mean)
    assert sp.series(sp.expand(slope), g, 0, 5).removeO() == 0


def test_static_mean_starts_at_the_saddle() -> None:
    model = FieldTheory.static("(x - 2)^2/2 + g*(x - 2)^3/6", "x", point={"x": 2})
    total = model.cumulant("x", 1)
    assert (total.saddle, total.expr) == (2, 2 - g / 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: theory("phi4").cumulant("y", 1), "'y' is no field"),
        (lambda: theory("phi4").cumulant("x,x", -1), "loops=-1"),
        (lambda: theory("phi4").cumulant("", 1), "no legs"),
        (lambda: theory("phi4").cumulant("x,,x", 1), "empty entry"),
        (lambda: theory("phi4").cumulant("x,x", 1, times="t,0"), "no times"),
        (lambda: theory("cubic-langevin").cumulant("x,x", 1, times="t"), "1 times for 2 legs"),
        (lambda: theory("cubic-langevin").cumulant("x,x,x", 1, times="t,s,t"), "latest first"),
        (lambda: theory("cubic-langevin").cumulant("x,x", 1, times="0,t"), "earliest"),
        (lambda: theory("cubic-langevin").cumulant("x,x,x", 1).frequency(w), "two times"),
        (lambda: theory("phi4").cumulant("x,x,x", 1).dyson(), "two-point"),
        (lambda: theory("cubic-langevin").effective_action(), "stochastic"),
        (lambda: theory("phi4").cumulant("x,x", 8).at(8), "more than"),
        (lambda: theory("phi5"), "unknown theory"),
        (lambda: FieldTheory.langevin("dx = -x dt + y dW").cumulant("x", 1).at(2), "not in this sum"),
    ],
)
def test_what_cannot_be_asked(call: object, words: str) -> None:
    with pytest.raises(TheoryError, match=words):
        call()  # type: ignore[operator]


def test_display() -> None:
    total = theory("cubic-langevin").cumulant("x,x", 1)
    assert total._repr_html_().count("<svg") == len(total)
    assert "T*exp(-t)" in str(total)
    assert total._repr_latex_().startswith("$")
    (first, *_) = total
    assert "C_{x}(t)" in first._repr_latex_()
