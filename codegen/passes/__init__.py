"""Passes over scalar graphs, one per file: fold, stable forms, Horner, powers, order, common subexpressions.

A pass takes `(roots, graph)` and returns roots of the same values. `optimise` runs them in the one order that is used:
exact folding first (and after each pass that leaves something to fold), canonical order last.
"""

from __future__ import annotations

from ..graph import Graph, Node
from .cse import Schedule, schedule
from .fold import fold
from .horner import horner
from .order import order
from .powers import powers
from .stable import stable

__all__ = ["PASSES", "Schedule", "fold", "horner", "optimise", "order", "powers", "schedule", "stable"]

PASSES = (fold, stable, fold, order, horner, fold, powers, order)


def optimise(roots: tuple[Node, ...], graph: Graph) -> tuple[Node, ...]:
    """All passes in order."""
    for run in PASSES:
        roots = run(roots, graph)
    return roots
