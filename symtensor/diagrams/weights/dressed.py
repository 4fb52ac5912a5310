"""Weights of diagrams with a dressed auxiliary line, by the order in 1/N.

The N-component field enters quadratically and is summed out. Around a field phi in direction 1,

    E exp(sigma (phi + x).(phi + x) / 2) = (1 - sigma)^(-N/2) exp(phi^2 sigma / (2 (1 - sigma))):

closed loops N sigma^k / (2k) and open lines phi^2 sigma^q / 2. The loops with one leg (shift of the saddle) and with two
(the bubble chain, which is in the dressed line) are left out. Twice the order of a diagram, 2 (auxiliary lines) - 2 (index
loops), is then a grade of its parts: k - 2 for a loop, q for an open line, 1 for an auxiliary leg. Vertices sigma^k / k! that join
auxiliary legs only count N as a loop does, so that their grade is k - 2 too.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import factorial

from symtensor.diagrams.errors import ModelError, RequestError
from symtensor.diagrams.model import Model
from symtensor.diagrams.weights.functions import legendre, to_sources
from symtensor.diagrams.weights.gaussian import contract
from symtensor.diagrams.weights.ring import Ring, Series
from symtensor.diagrams.weights.sums import Kind, check_legs, without_tadpoles

__all__ = ["dressed_weight_series"]

_LINES = ((1, 0), (0, 1))


def dressed_weight_series(
    model: Model, legs: Mapping[str, int], *, kind: Kind, order: int, labelled: bool = True, no_tadpoles: bool = False
) -> dict[tuple[int, int], Fraction]:
    """The sum of 1/|Aut| by (order in 1/N, number of index loops), orders relative to the leading one up to `order`.

    Order: (auxiliary lines) - (index loops) - leading, where lines to source legs count and amputated legs do not. With m
    indexed and n auxiliary legs the leading order is m/2 - 1 + n for m >= 2, n - 1 for m = 0, n >= 1, and 0 without legs;
    less n for amputated legs. Vertices without indexed legs are taken off as the index loops are.

    Raises ModelError unless the model has one indexed field, one auxiliary field, their two propagators, the vertex that joins
    two indexed legs to an auxiliary one and no other with indexed legs; RequestError for another class than connected or 1pi.

    >>> from symtensor.diagrams.theories import theory
    >>> dressed_weight_series(theory("on"), {"phi": 2}, kind="connected", order=1)
    {(0, 0): Fraction(1, 1), (1, 0): Fraction(1, 1), (1, 1): Fraction(1, 2)}
    """
    indexed, auxiliary, valences = _fields(model)
    if kind not in ("connected", "1pi"):
        raise RequestError(f"the class {kind!r} has no order in 1/N relative to a leading one; choose connected or 1pi")
    check_legs(model, legs)
    m, n = legs.get(indexed, 0), legs.get(auxiliary, 0)
    base = m - 2 + n if m or n else 0
    top = 2 * order + base
    if m % 2 or top < 0:
        return {}
    series = _connected(_potential(top, valences), top, (m, n), kind, no_tadpoles)
    scale = factorial(m) * factorial(n) if labelled else 1
    out = {((g[0] - base) // 2, k[-1]): c * scale for g, poly in series.items() for k, c in poly.items()}
    return dict(sorted(out.items()))


def _fields(model: Model) -> tuple[str, str, tuple[int, ...]]:
    """The indexed field, the auxiliary field, and the valences of the vertices that join auxiliary legs only."""
    indexed = [f.name for f in model.fields if f.index is not None]
    auxiliary = [f.name for f in model.fields if f.auxiliary]
    lines = sorted((p.first, p.second) for p in model.propagators)
    if len(indexed) == len(auxiliary) == 1 and len(model.fields) == 2 and not model.families:
        phi, sigma = indexed[0], auxiliary[0]
        joining = [sorted(v.legs) for v in model.vertices if phi in v.legs]
        valences = tuple(v.valence for v in model.vertices if phi not in v.legs)
        if (
            lines == sorted([(phi, phi), (sigma, sigma)])
            and joining == [sorted((phi, phi, sigma))]
            and all(k > 2 for k in valences)
        ):
            return phi, sigma, valences
    raise ModelError(
        f"model {model.name!r} has no dressed line: it needs one indexed field phi, one auxiliary field sigma, the propagators "
        "phi-phi and sigma-sigma, phi phi sigma as its only vertex with phi, and others of three or more sigma only"
    )


def _connected(potential: Series, top: int, legs: tuple[int, int], kind: Kind, no_tadpoles: bool) -> Series:
    """The coefficients of the sources, or of the amputated fields, of `legs`, up to grade `top`."""
    degree = sum(legs)
    bridged = no_tadpoles or kind == "1pi"
    ring = Ring((top,), 2, None if bridged else max(degree, 1))
    drawn = {g: contract(poly, (1, 1)) for g, poly in Ring((top,), 2).exp(potential).items()}
    amputated = ring.log(drawn if ring.cap is None else ring.of_degree(drawn, 0, ring.cap))
    if no_tadpoles and kind == "connected":
        amputated = without_tadpoles(amputated, _LINES, ring, degree)
    if kind == "connected":
        sources = to_sources(amputated, _LINES, (top,), legs)
        return {g[:1]: poly for g, poly in sources.items() if g[1:] == legs}
    parts = legendre(amputated, _LINES, ring, degree)
    return {g: kept for g, poly in parts.items() if (kept := {k: c for k, c in poly.items() if k[:-1] == legs})}


def _potential(top: int, valences: tuple[int, ...]) -> Series:
    """Loops, open lines and vertices without indexed legs as vertices in (phi, sigma, N)."""
    out: Series = {}
    for grade in range(1, top + 1):
        out[(grade,)] = {(0, grade + 2, 1): Fraction(1, 2 * (grade + 2)), (2, grade, 0): Fraction(1, 2)}
        if grade + 2 in valences:
            out[(grade,)][0, grade + 2, 0] = Fraction(1, factorial(grade + 2))
    return out
