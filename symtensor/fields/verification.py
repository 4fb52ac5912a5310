r"""A diagram sum against a route without diagrams, order by order.

Static theories: Wick's theorem with the interaction rescaled. With x = x* + s y every derivative of S with n legs carries s^{n-2},
so that the coefficient of s^{m-2+2L} of the connected moment of m fields is the sum of all diagrams with L loops. Vertex functions
come from the Legendre transform of the same series. Stochastic theories: the moment hierarchy (`loop_hierarchy`).

Both sides are exact; they are compared as expressions, and by a number at random rational parameters if SymPy leaves a difference.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor.expansion import effective_action, perturbative_moments
from symtensor.fields.drift_diffusion import DriftDiffusion
from symtensor.fields.errors import TheoryError
from symtensor.fields.free import LinearFree, StaticFree
from symtensor.fields.loop_hierarchy import loop_cumulant

if TYPE_CHECKING:
    from symtensor.fields.diagram_sum import DiagramSum
    from symtensor.fields.field_theory import FieldTheory

__all__ = ["MismatchError", "Verified", "verify"]


class MismatchError(TheoryError):
    """A sum of diagrams differs from its second route; the message has both."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What was compared: the route, and by number of loops the value on which both agree."""

    route: str
    values: dict[int, sp.Expr]

    def __str__(self) -> str:
        orders = ", ".join(f"{loops}: {_short(value)}" for loops, value in self.values.items())
        return f"agrees with {self.route} at loops {orders}"


def _short(value: sp.Expr) -> str:
    """The value as text; decimals to eight digits, long expressions cut."""
    text = sp.sstr(value.evalf(8) if value.has(sp.Float) else value)
    return text if len(text) <= 200 else f"{text[:200]}.. ({len(sp.Add.make_args(value))} terms)"


def verify(total: DiagramSum) -> Verified:
    """Compare every order of a complete sum with its second route.

    Raises: MismatchError with both values at the first order that differs; TheoryError for a sum that is only a selection, or one
    that has no second route (a vertex function of a stochastic theory).
    """
    if total.keep is not None or total.label:
        raise TheoryError(f"{total.title} is a selection of diagrams; verify the whole sum")
    if isinstance(total.theory.free, LinearFree):
        route, expected = "the moment hierarchy", _by_moments(total)
    elif total.kind == "1pi":
        route, expected = "the Legendre transform of the Wick series", _by_legendre(total)
    else:
        route, expected = "Wick's theorem", _by_wick(total)
    found = {loops: sp.expand(part.expr - part.saddle) for loops, part in total.by_order().items()}
    for loops, value in found.items():
        if not same(value, expected[loops]):
            raise MismatchError(
                f"{total.title}: with {loops} loops the diagrams give {sp.sstr(value)}, {route} gives {sp.sstr(expected[loops])}"
            )
    return Verified(route, found)


def same(one: Any, other: Any) -> bool:
    """Whether two expressions are equal: as they stand, or to 40 digits at three random rational points."""
    difference = sp.expand(one - other)
    if difference == 0:
        return True
    symbols = sorted(sp.sympify(one).free_symbols | sp.sympify(other).free_symbols, key=lambda s: s.name)
    source = random.Random(len(symbols))
    for _ in range(3):
        point = {s: sp.Rational(source.randint(1, 97), source.randint(98, 199)) for s in symbols}
        value, scale = difference.subs(point), sp.Abs(one.subs(point)) + sp.Abs(other.subs(point))
        if not sp.Abs(value.evalf(60, chop=True)) <= scale.evalf(60) * sp.Float(10) ** -24:
            return False
    return True


def _scaled_interaction(theory: FieldTheory, valence: int) -> tuple[sp.Expr, sp.Symbol]:
    """The interaction of y with s^{n-2} at n legs."""
    s = sp.Dummy("s")
    terms = []
    for powers, value in theory.derivatives(valence).items():
        monomial = sp.Mul(*(x**n / sp.factorial(n) for x, n in zip(theory.fields, powers)))
        terms.append(value * s ** (sum(powers) - 2) * monomial)
    return sp.Add(*terms), s


def _covariance(theory: FieldTheory) -> Any:
    assert isinstance(theory.free, StaticFree)
    return theory.free.covariance


def _by_wick(total: DiagramSum) -> dict[int, sp.Expr]:
    theory, count = total.theory, len(total.legs.names)
    potential, s = _scaled_interaction(theory, total.valence)
    top = count - 2 + 2 * total.loops
    observable = sp.Mul(*(theory.fields[c] for c in total.legs.components))
    if top < 0:
        return {0: sp.S.Zero}
    options = {"mean": None, "fields": theory.fields}
    series = perturbative_moments(potential, observable, {s: top}, _covariance(theory), kind="connected", **options)
    orders = {loops: count - 2 + 2 * loops for loops in range(total.lowest, total.loops + 1)}
    return {loops: sp.sympify(series[order]) if order >= 0 else sp.S.Zero for loops, order in orders.items()}


def _by_legendre(total: DiagramSum) -> dict[int, sp.Expr]:
    theory, count = total.theory, len(total.legs.names)
    potential, s = _scaled_interaction(theory, total.valence)
    top = count - 2 + 2 * total.loops
    legs = {theory.fields[c]: total.legs.components.count(c) for c in total.legs.components}
    action = effective_action(potential, {s: max(top, 0)}, _covariance(theory), degree=count, fields=theory.fields)
    series = action.vertex(legs)
    orders = {loops: count - 2 + 2 * loops for loops in range(total.lowest, total.loops + 1)}
    return {loops: sp.sympify(series[order]) if order >= 0 else sp.S.Zero for loops, order in orders.items()}


def _equations(theory: FieldTheory, valence: int) -> tuple[DriftDiffusion, Any]:
    """The equations and the saddle; about a saddle that is a decimal number, the equations of the deviation from it, expanded."""
    if not any(sp.sympify(value).has(sp.Float) for value in theory.saddle):
        return DriftDiffusion(theory.fields, *theory.drift_and_noise()), theory.saddle
    assert isinstance(theory.free, LinearFree)
    size, responses = len(theory.fields), theory.responses
    column = sp.Matrix(responses)
    density = -(column.T * theory.free.drift * sp.Matrix(theory.fields))[0] + (column.T * theory.free.noise * column)[0] / 2
    for powers, value in theory.derivatives(valence).items():
        density += value * sp.Mul(*(x**n / sp.factorial(n) for x, n in zip((*theory.fields, *responses), powers)))
    density: Any = sp.expand(density)
    density = density.xreplace({number: sp.Rational(str(number)) for number in density.atoms(sp.Float)})
    zero = dict.fromkeys(responses, 0)
    strength = sp.hessian(density, list(responses))
    drift = tuple(density.diff(r).subs(zero) for r in responses)
    return DriftDiffusion(theory.fields, drift, tuple(tuple(strength.row(i)) for i in range(size))), (0,) * size


def _by_moments(total: DiagramSum) -> dict[int, sp.Expr]:
    theory = total.theory
    if total.kind != "connected":
        raise TheoryError(
            f"{total.title}: a vertex function of a stochastic theory has no second route of its own; verify the cumulant, and "
            "compare dyson()"
        )
    legs: list[dict[sp.Symbol, int]] = [{} for _ in total.legs.moments]
    symbols = (*theory.fields, *theory.responses)
    for component, group in zip(total.legs.components, total.legs.groups):
        symbol = symbols[component]
        legs[group][symbol] = legs[group].get(symbol, 0) + 1
    equations, point = _equations(theory, total.valence)
    series = loop_cumulant(equations.drift, equations, theory.fields, legs, total.loops, point)
    windows: Any = dict(zip(series.times, total.legs.windows))
    found = {loops: series[loops].subs(windows) for loops in range(total.lowest, total.loops + 1)}
    if len(total.legs.names) == 1 and 0 in found:
        found[0] = sp.S.Zero  # the saddle, which is no diagram
    return found
