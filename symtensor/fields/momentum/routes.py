r"""The wave vectors of the lines of a diagram, with loop momenta placed symmetrically.

The momentum of a leg of a vertex is the wave vector of the field there; the wave vectors at a vertex add up to zero. An integral
whose value depends on where a sharp cut-off is put (KPZ in any dimension: the integrand falls too slowly) needs a rule for
the origin of each loop momentum: it is shifted so that the sum of the squares of the wave vectors of all lines is stationary in the
loop momenta at zero. In a loop of two lines these are q + k/2 and q - k/2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

from symtensor.diagrams import Diagram

__all__ = ["Route", "external_momenta", "route"]


@dataclass(frozen=True, slots=True)
class Route:
    """The wave vector of every line of a diagram, from its start to its end, and the loop momenta."""

    momenta: tuple[sp.Expr, ...]
    loops: tuple[sp.Symbol, ...]

    def legs(self, diagram: Diagram, node: int) -> list[tuple[str, sp.Expr]]:
        """(field, wave vector of the field) for each leg of a vertex; a self-loop has two."""
        found = []
        for line, momentum in zip(diagram.lines, self.momenta):
            if line.start == node:
                found.append((line.fields[0], -momentum))
            if line.end == node:
                found.append((line.fields[1], momentum))
        return found


def external_momenta(count: int) -> tuple[sp.Expr, ...]:
    """The wave vectors that flow in at the legs: 0; (-k, k); (k1, k2, .., -k1 - k2 - ..).

    >>> external_momenta(2), external_momenta(3)
    ((-k, k), (k1, k2, -k1 - k2))
    """
    if count <= 1:
        return (sp.S.Zero,) * count
    if count == 2:
        k = sp.Symbol("k")
        return (-k, k)
    independent = sp.symbols(f"k1:{count}")
    return (*independent, -sp.Add(*independent))


def route(diagram: Diagram) -> Route:
    """The wave vectors of all lines; legs are labelled 1, 2, .., and loop momenta are q, or q1, q2, ..

    >>> from symtensor.diagrams import enumerate_diagrams
    >>> (diagram,) = enumerate_diagrams("kpz", {"xt": ["1", "2"]}, loops=1, kind="1pi")
    >>> route(diagram).momenta
    (-k, k, -k/2 - q, -k/2 + q)
    """
    labels = [str(diagram.nodes[node].label) for node in diagram.graph.legs]
    raw = diagram.momenta(external={label: f"p_{label}" for label in labels}, loop="q")
    values: dict[Any, Any] = dict(zip((sp.Symbol(f"p_{i + 1}") for i in range(len(labels))), external_momenta(len(labels))))
    if len(raw.loop_momenta) == 1:
        values[raw.loop_momenta[0]] = sp.Symbol("q")
    loops: tuple[sp.Symbol, ...] = tuple(values.get(loop, loop) for loop in raw.loop_momenta)
    momenta = [sp.expand(momentum.xreplace(values)) for momentum in raw.momenta]
    shift = _balance(momenta, loops)
    return Route(tuple(sp.expand(momentum.xreplace(shift)) for momentum in momenta), loops)


def _balance(momenta: list[sp.Expr], loops: tuple[sp.Symbol, ...]) -> dict[Any, Any]:
    """q -> q + s with L^T (L s + a) = 0 for the wave vectors L q + a."""
    if not loops:
        return {}
    matrix = sp.Matrix([[momentum.coeff(loop) for loop in loops] for momentum in momenta])
    rest = sp.Matrix([momentum.subs(dict.fromkeys(loops, 0)) for momentum in momenta])
    shift = -((matrix.T * matrix).inv() * matrix.T * rest)
    return {loop: loop + sp.expand(value) for loop, value in zip(loops, shift)}
