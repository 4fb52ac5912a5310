"""Passes over scalar graphs, one per file: fold, stable forms, cancellation, removable singularities, Horner, powers, ..

A pass takes `(roots, graph)` and returns roots of the same values. `optimise` runs them in the one order that is used:
exact folding first (and after each pass that leaves something to fold), canonical order and the splitting of very long
sums last. Then one of two schedules: straight-line code in stages (`stages`, `schedule`) or a tape (`assemble`).
"""

from __future__ import annotations

from ..graph import Graph, Node
from .cancellation import cancellation
from .cse import Schedule, schedule
from .fold import fold
from .horner import horner
from .order import order
from .powers import powers
from .removable import removable
from .split import split
from .stable import stable
from .stages import Stage, stages
from .tape import Tape, assemble, straight_line_work

__all__ = [
    "PASSES",
    "Schedule",
    "Stage",
    "Tape",
    "assemble",
    "cancellation",
    "fold",
    "horner",
    "optimise",
    "order",
    "powers",
    "removable",
    "schedule",
    "split",
    "stable",
    "stages",
    "straight_line_work",
]

PASSES = (fold, stable, fold, cancellation, fold, removable, fold, order, horner, fold, powers, order, split)


def optimise(roots: tuple[Node, ...], graph: Graph) -> tuple[Node, ...]:
    """All passes in order."""
    for run in PASSES:
        roots = run(roots, graph)
    return roots
