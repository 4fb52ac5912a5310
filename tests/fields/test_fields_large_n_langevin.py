"""The N-component Langevin model at large N: components summed by brute force, statics, FDT, the moment hierarchy, simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from symtensor.diagrams import Diagram
from symtensor.fields.errors import TheoryError
from symtensor.fields.exponential_sum import ExponentialSum
from symtensor.fields.hierarchy import MomentHierarchy
from symtensor.fields.large_n import LangevinSum, MismatchError, VectorTheory, cumulant, time_correlation, time_response
from symtensor.fields.large_n.saddle import MASS, NUMBER
from symtensor.fields.large_n.time_lines import SHIFT, TimeRules
from symtensor.fields.time_ordered import TimedLine, integrate_times

QUARTIC = VectorTheory.read("r*rho/2 + u*rho^2/4", temperature="T")
RATIONAL = VectorTheory.read("r*rho/2 + u*rho^2/4", values={"r": 1, "u": 2})
SEXTIC = VectorTheory.read("rho/4 + rho^2/4 + rho^3/3", values={}, temperature=sp.Rational(3, 2))
CUBIC_ONLY = VectorTheory.read("r*rho/2 + u*rho^2/4 + w*rho^3/6", temperature="T")
RESPONSES = {"xt", "rhot", "mut"}
t = sp.Symbol("t", positive=True)


# --- components one by one ------------------------------------------------------------------------------------------


def _choices(diagram: Diagram, fields: Mapping[str | None, str]) -> Iterator[list[list[str]]]:
    """Components at (start, end) of every line: one response leg at every vertex, in all ways; nothing is left out."""
    lines, nodes = diagram.lines, diagram.nodes
    at = [
        [(i, side) for i, line in enumerate(lines) for side in (0, 1) if (line.start, line.end)[side] == n]
        for n in range(len(nodes))
    ]
    ends = [["", ""] for _ in lines]
    for n, node in enumerate(nodes):
        if node.is_leg:
            ((i, side),) = at[n]
            ends[i][side] = fields[node.label]
    vertices = [n for n, node in enumerate(nodes) if not node.is_leg]

    def place(number: int) -> Iterator[list[list[str]]]:
        if number == len(vertices):
            yield [list(pair) for pair in ends]
            return
        n = vertices[number]
        for chosen in range(len(at[n])):
            on_sigma = lines[at[n][chosen][0]].fields[at[n][chosen][1]] == "sigma"
            for leg, (i, side) in enumerate(at[n]):
                sigma = lines[i].fields[side] == "sigma"
                if nodes[n].name != "g":
                    ends[i][side] = "mut" if leg == chosen else "rho"
                elif leg == chosen:
                    ends[i][side] = "rhot" if sigma else "xt"
                else:
                    ends[i][side] = "mu" if sigma and not on_sigma else "x"
            yield from place(number + 1)

    yield from place(0)


def _line(theory: VectorTheory, k: sp.Expr, start: int, end: int, pair: list[str]) -> TimedLine | None:
    """The line of two components, from the formulas of the effective action; None if it vanishes."""
    heat, m = theory.temperature, theory.mass
    g, decay = k * m / (2 * heat), 2 * m + k
    tildes = [c for c in pair if c in RESPONSES]
    if len(tildes) == 2:
        return None
    if not tildes:
        if pair == ["x", "x"]:
            return TimedLine.correlation(start, end, m, heat / m)
        return TimedLine.correlation(start, end, decay, 4 * heat**2 / (m * decay) * g ** pair.count("mu"))
    (tilde,) = tildes
    (other,) = [c for c in pair if c not in RESPONSES]
    earlier, later = (start, end) if pair[0] == tilde else (end, start)
    if tilde == "xt":
        return TimedLine.response(earlier, later, m)
    if (other, tilde) == ("rho", "mut"):
        return TimedLine.response(earlier, later, decay, -2 * heat / m)
    local = g if (other, tilde) == ("mu", "rhot") else sp.S.One
    return TimedLine.response(earlier, later, decay, -k * local, delta=local)


def _cyclic(diagram: Diagram, ends: list[list[str]]) -> bool:
    arrows = {}
    for line, pair in zip(diagram.lines, ends):
        for here, there, component in ((line.start, line.end, pair[0]), (line.end, line.start, pair[1])):
            if component in RESPONSES:
                arrows[here] = there
    for start in arrows:
        node = arrows[start]
        for _ in arrows:
            if node == start:
                return True
            node = arrows.get(node, -1)
    return False


def _by_components(result: LangevinSum, diagram: Diagram) -> ExponentialSum:
    """The value of a diagram with one time integral for every choice of components, without powers of N."""
    theory, k = result.theory, result.rules.shift
    fields = dict(zip(("later", "earlier"), result.fields))
    places = {"later": 0, "earlier": 1}
    inner = iter(range(2, 99))
    number = [places[str(node.label)] if node.is_leg else next(inner) for node in diagram.nodes]
    parts = []
    for ends in _choices(diagram, fields):
        lines = [_line(theory, k, number[x.start], number[x.end], pair) for x, pair in zip(diagram.lines, ends)]
        kept = [line for line in lines if line is not None]
        if len(kept) < len(lines) or _cyclic(diagram, ends):
            continue
        factor = sp.Rational(1, diagram.symmetry_factor)
        for node, name in ((node, diagram.nodes[node].name) for node in diagram.graph.vertices):
            mine = [c for line, pair in zip(diagram.lines, ends) for n, c in zip((line.start, line.end), pair) if n == node]
            if name == "g":
                factor *= -1 if "xt" in mine else 2
            else:
                factor *= 2 * theory.slope(int(name.removeprefix("s_")))
        parts.append(integrate_times(kept, 2, len(diagram.nodes) - 2) * factor)
    return ExponentialSum.total(parts, windows=1)


@pytest.mark.parametrize(
    ("theory", "fields"),
    [
        (QUARTIC, ("x", "x")),
        (CUBIC_ONLY, ("x", "x")),
        (CUBIC_ONLY, ("x", "xt")),
        pytest.param(QUARTIC, ("rho", "rho"), marks=pytest.mark.slow),
        pytest.param(CUBIC_ONLY, ("rho", "rho"), marks=pytest.mark.slow),
        pytest.param(QUARTIC, ("mu", "rho"), marks=pytest.mark.slow),
        pytest.param(CUBIC_ONLY, ("mu", "rho"), marks=pytest.mark.slow),
    ],
)
def test_components_summed_in_one_recursion_are_those_summed_one_by_one(theory: VectorTheory, fields: tuple[str, str]) -> None:
    result = time_response(theory) if "xt" in fields else time_correlation(theory, *fields)
    terms = [term for term in result if len(term.diagram.nodes) <= (5 if "s_3" in str(term) and "x" not in fields else 6)]
    assert len(terms) >= 2
    for term in terms:
        scale = NUMBER ** (term.order + result.leading)
        difference = term.value * scale - _by_components(result, term.diagram)
        assert difference.map(sp.simplify).is_zero, term


# --- exact identities -----------------------------------------------------------------------------------------------


def test_leading_order() -> None:
    """Hartree: C = (T/m) exp(-m t); <rho rho> = 4 T^2/(N m (2 m + k)) exp(-(2 m + k) t), k = 2 u T/m."""
    heat, u = QUARTIC.temperature, sp.Symbol("u", real=True)
    correlation, density = time_correlation(QUARTIC, order=0), time_correlation(QUARTIC, "rho", "rho", 0)
    assert sp.simplify(correlation.expr(t) - heat / MASS * sp.exp(-MASS * t)) == 0
    assert sp.simplify(density.expr(t) - 4 * heat**2 / (NUMBER * MASS * (2 * MASS + SHIFT)) * sp.exp(-(2 * MASS + SHIFT) * t)) == 0
    assert sp.expand(correlation.rules.exact_shift - 2 * u * heat / MASS) == 0


@pytest.mark.parametrize(
    ("theory", "fields"),
    [
        (QUARTIC, ("x", "x")),
        (QUARTIC, ("rho", "rho")),
        (SEXTIC, ("x", "x")),
        (CUBIC_ONLY, ("x", "x")),
        pytest.param(CUBIC_ONLY, ("rho", "rho"), marks=pytest.mark.slow),
        pytest.param(SEXTIC, ("rho", "rho"), marks=pytest.mark.slow),
    ],
)
def test_equal_times_are_the_static_theory_diagram_by_diagram(theory: VectorTheory, fields: tuple[str, str]) -> None:
    assert time_correlation(theory, *fields).verify().orders == 1


def test_the_mass_differs_from_the_multiplier_by_a_contact_term() -> None:
    """<mu rho> = <2 s'(rho) rho> = <lam rho> + 2 T/N, exactly."""
    dynamic, static = time_correlation(QUARTIC, "mu", "rho"), cumulant(QUARTIC, {"lam": 1, "rho": 1}, 1)
    contact = [sp.simplify(dynamic.exact(dynamic.equal_time(k)) - static[k]) for k in (0, 1)]
    assert contact == [2 * QUARTIC.temperature, 0]


def test_second_order_at_equal_times() -> None:
    assert time_correlation(RATIONAL, order=2).verify().diagrams == 26


@pytest.mark.parametrize(("theory", "order"), [(QUARTIC, 1), (SEXTIC, 1), (CUBIC_ONLY, 1), (RATIONAL, 2)])
def test_fluctuation_and_dissipation(theory: VectorTheory, order: int) -> None:
    assert time_response(theory, order).fluctuation_dissipation()


def test_the_secular_terms_exponentiate() -> None:
    """t^2 exp(-m t) at order 1/N^2 is half the square of the shift of the rate at order 1/N: m is renormalised."""
    result = time_correlation(RATIONAL, order=2)
    energy = {vector: result[0].energy(vector) for k in range(3) for ((vector, _),) in result[k].terms}
    slow = next(vector for vector, value in energy.items() if value == RATIONAL.mass)
    zeroth, first, second = (result[k].terms[((slow, k),)] for k in range(3))
    assert second == first**2 / (2 * zeroth)


def _in_coupling(result: LangevinSum, number: int, order: int) -> list[sp.Expr]:
    """Coefficients of u^0, u^1, .. of a sum for s = rho/2 + u rho^2/4, T = 1, at a number of components."""
    u = next(s for s in result.theory.potential.free_symbols if s.name == "u")
    mass = (1 + sp.sqrt(1 + 4 * u)) / 2
    expression = result.exact(result.expr(t)).xreplace({NUMBER: sp.Integer(number)}).subs(MASS, mass)
    return [sp.simplify(sp.diff(expression, u, k).subs(u, 0) / sp.factorial(k)) for k in range(order + 1)]


@pytest.mark.parametrize(("number", "order"), [(2, 1), (5, 1), pytest.param(2, 2, marks=pytest.mark.slow)])
def test_series_in_the_coupling_against_the_moment_hierarchy(number: int, order: int) -> None:
    """The power u^k of C(t) and R(t) is exact in N at order k in 1/N; the hierarchy knows no diagrams."""
    theory = VectorTheory.read("rho/2 + u*rho^2/4")
    names = sp.symbols(f"x1:{number + 1}", real=True)
    u = sp.Symbol("u", real=True)
    square = sp.Add(*(x**2 for x in names))
    exact = MomentHierarchy([-(1 + u * square / number) * x for x in names], [sp.sqrt(2)] * number, names, u)
    first = names[0]
    for result, right in (
        (time_correlation(theory, order=order), exact.correlation({first: 1}, {first: 1}, order)),
        (time_response(theory, order), exact.response({first: 1}, first, order)),
    ):
        for k, found in enumerate(_in_coupling(result, number, order)):
            time = next(iter(right[k].free_symbols), t)
            assert sp.simplify(found - right[k].subs(time, t)) == 0, (result, k)
    short = _in_coupling(time_response(theory, order - 1), number, order)[order]
    assert sp.simplify(short - found) != 0


# --- mutations and bad input ----------------------------------------------------------------------------------------


def test_a_missing_diagram_or_a_wrong_value_is_found() -> None:
    result = time_correlation(RATIONAL, order=1)
    for index, term in enumerate(result):
        rest = result.terms[:index] + result.terms[index + 1 :]
        with pytest.raises(MismatchError):
            replace(result, terms=rest).verify()
        wrong = replace(term, value=term.value * 2)
        with pytest.raises(MismatchError):
            replace(result, terms=(*result.terms[:index], wrong, *result.terms[index + 1 :])).verify()


@pytest.mark.parametrize("name", ["response", "local", "correlation"])
def test_a_wrong_line_breaks_an_identity(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(TimeRules, name)

    def wrong(self: TimeRules, first: str, second: str) -> object:
        value = right(self, first, second)
        return value if first == "x" else value * self.field.number(2)

    monkeypatch.setattr(TimeRules, name, wrong)
    if name == "local":  # the theorem holds for any local part, as it does for any coupling; the statics do not
        with pytest.raises(MismatchError, match="at t = 0"):
            time_correlation(RATIONAL, order=1).verify()
    else:
        assert not time_response(RATIONAL, 1).fluctuation_dissipation()


def test_bad_input_is_named() -> None:
    with pytest.raises(TheoryError, match="'phi'"):
        time_correlation(RATIONAL, "phi", "phi")
    with pytest.raises(TheoryError, match="must be an integer"):
        time_correlation(RATIONAL, order=1.5)  # type: ignore[arg-type]
    with pytest.raises(TheoryError, match="no static counterpart"):
        time_response(RATIONAL).verify()
    with pytest.raises(TheoryError, match="no response"):
        time_correlation(RATIONAL).fluctuation_dissipation()
    with pytest.raises(IndexError, match="order 2"):
        time_correlation(RATIONAL)[2]
    with pytest.raises(TheoryError, match="order 4 in 1/N has at least"):
        time_correlation(RATIONAL, order=4)
    assert len(time_correlation(RATIONAL, "x", "rho")) == 0


# --- numbers --------------------------------------------------------------------------------------------------------


def test_numbers_from_symbols_and_from_values() -> None:
    """The same number whether parameters are put in before or after; also at an irrational saddle."""
    exact = time_correlation(RATIONAL, order=1).at(sp.Rational(1, 3), 8)
    assert time_correlation(QUARTIC, order=1).at(sp.Rational(1, 3), 8, {"r": 1, "u": 2, "T": 1}) == pytest.approx(exact, rel=1e-25)
    half = VectorTheory.read("rho/2 + rho^2/4")
    assert half.mass == MASS
    values = {"r": 1, "u": 1, "T": 1}
    assert time_correlation(half, order=1).at(1, 8) == pytest.approx(time_correlation(QUARTIC, order=1).at(1, 8, values), rel=1e-25)
    assert time_correlation(half)._repr_html_().count("<svg") == 3


@pytest.mark.parametrize("number", [pytest.param(8, marks=pytest.mark.slow), pytest.param(32, marks=pytest.mark.slow)])
def test_simulation(number: int) -> None:
    """C(t) at r = 1, u = 2, T = 1; the standard error rejects the theory of one order less."""
    import jax.numpy as jnp

    from symtensor.numerics.langevin import simulate_langevin

    times = np.linspace(0, 1.5, 4)
    run = simulate_langevin(
        lambda x: -(1 + 2 * jnp.sum(x**2, axis=0) / number) * x,
        np.sqrt(2.0) * np.eye(number),
        step=0.05, times=times, walkers=8192 if number == 8 else 2048, duration=40 if number == 8 else 15, seed=5,
        point=np.zeros(number),
    )  # fmt: skip
    measured = run.estimate(lambda means: _component_average(means, number))
    order = 2 if number == 8 else 1
    theory, less = (time_correlation(RATIONAL, order=k) for k in (order, order - 1))
    right = np.array([float(theory.at(time, number)) for time in times])
    wrong = np.array([float(less.at(time, number)) for time in times])
    assert np.abs(measured.z(right)).max() < 4.5
    assert np.abs(measured.z(wrong)).max() > 8


def _component_average(means: object, number: int) -> np.ndarray:
    from symtensor.numerics import _langevin_statistics as statistics

    correlation = statistics.correlation(means, number)  # type: ignore[arg-type]
    return np.trace(correlation, axis1=-2, axis2=-1) / number
