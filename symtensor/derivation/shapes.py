r"""Dynamic diagrams and the static ones that they become when response fields and the direction of time are forgotten.

For a gradient drift f = -U' with the noise strength 2 T, the stationary state is the static theory with weight exp(-U/T), and at
equal times the dynamic diagrams of one shape add up to the static diagram of that shape (fluctuation-dissipation theorem).

Reference: Deker & Haake, Phys. Rev. A 11 (1975) 2043.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from symtensor.diagrams import Diagram
from symtensor.diagrams.graph import Graph
from symtensor.fields import DiagramSum

__all__ = ["static_shape", "static_values", "summed_by_shape"]


def static_shape(diagram: Diagram, static: DiagramSum) -> Diagram:
    """The diagram of the theory of `static` (one variable) with the same nodes and lines."""
    model = static.theory.model(static.valence)
    name = static.theory.fields[0].name
    by_valence = {len(vertex.legs): vertex.name for vertex in model.vertices}
    graph = diagram.graph
    nodes = tuple(
        replace(node, name=name if node.is_leg else by_valence[len(lines)]) for node, lines in zip(graph.nodes, graph.incident)
    )
    lines = tuple(
        replace(line, fields=(name, name), propagator=model.propagators[0], directed=False, response=False) for line in graph.lines
    )
    return Diagram.from_graph(Graph(model, nodes, lines))


def summed_by_shape(total: DiagramSum, static: DiagramSum) -> dict[str, sp.Expr]:
    """The sum of the values of all diagrams of each shape, by the canonical text of the shape.

    >>> from symtensor.fields import FieldTheory, theory
    >>> static = FieldTheory.static("(x^2/2 - g*x^3/3)/T", "x").cumulant("x", 2)
    >>> found = summed_by_shape(theory("quadratic-langevin").cumulant("x", 2), static)
    >>> found == static_values(static), len(found)
    (True, 4)
    """
    found: dict[str, sp.Expr] = {}
    for term in total:
        key = static_shape(term.diagram, static).canonical
        found[key] = sp.expand(found.get(key, sp.S.Zero) + term.expr)
    return found


def static_values(static: DiagramSum) -> dict[str, sp.Expr]:
    """The value of each diagram of a static sum, by its canonical text."""
    return {term.diagram.canonical: sp.expand(term.expr) for term in static}
