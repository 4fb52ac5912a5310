"""Skeleton diagrams: one-particle irreducible diagrams without self-energy insertions, for dressed lines.

A self-energy diagram belongs to the two-particle irreducible effective action if it stays connected when any two lines are
cut, the line that would close it between its legs counted among them; a diagram with one leg, if it does so without its leg.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import sympy as sp

from symtensor.diagrams import Diagram, enumerate_diagrams
from symtensor.fields.field_theory import FieldTheory
from symtensor.fields.free import LinearFree, StaticFree
from symtensor.fields.legs import Legs
from symtensor.fields.term import Term

__all__ = ["dressed_theory", "is_skeleton", "skeleton_terms"]


@dataclass(frozen=True)
class _DressedStatic(StaticFree):
    """Lines of a static theory as unknowns."""

    lines: sp.ImmutableMatrix

    @property
    def covariance(self) -> sp.ImmutableMatrix:  # type: ignore[override]
        """The unknown G."""
        return self.lines

    def joined(self, one: int, other: int) -> bool:
        """All fields may be correlated."""
        return True


@dataclass(frozen=True)
class _DressedLinear(LinearFree):
    """The linear equation at an unknown mean; all fields may be correlated."""

    @property
    def covariance(self) -> sp.ImmutableMatrix:  # type: ignore[override]
        """Only whether it vanishes is asked for."""
        return sp.ImmutableMatrix.ones(self.drift.rows, self.drift.rows)

    def joined(self, one: int, other: int) -> bool:
        """All fields may be correlated."""
        return True


def dressed_theory(theory: FieldTheory) -> tuple[FieldTheory, tuple[sp.Symbol, ...], tuple[sp.Symbol, ...]]:
    """The theory around an unknown mean, with unknown lines if it is static; the symbols of the mean, and those of the lines.

    Lines of a static theory are symbols G_ij, i <= j, row by row.
    """
    size = len(theory.fields)
    taken = {str(s) for s in theory.density.free_symbols}
    mean = tuple(_fresh(f"mean_{s.name}", taken) for s in theory.fields)
    at = dict(zip(theory.fields, mean))
    if not theory.stochastic:
        lines = {(i, j): _fresh(f"G_{i + 1}{j + 1}", taken) for i in range(size) for j in range(i, size)}
        matrix = sp.ImmutableMatrix(size, size, lambda i, j: lines[min(i, j), max(i, j)])
        hessian = sp.hessian(-theory.density, list(theory.fields)).subs(at, simultaneous=True)
        free: Any = _DressedStatic(sp.ImmutableMatrix(hessian), matrix)
        return replace(theory, saddle=mean, free=free, _cache={}), mean, tuple(lines.values())
    zero = dict.fromkeys(theory.responses, 0)
    gradient = sp.Matrix([theory.density.diff(s) for s in theory.responses])
    drift = -gradient.jacobian(list(theory.fields)).subs({**at, **zero}, simultaneous=True)
    noise = sp.hessian(theory.density, list(theory.responses)).subs(at, simultaneous=True)
    free = _DressedLinear(sp.ImmutableMatrix(drift), sp.ImmutableMatrix(noise))
    return replace(theory, saddle=mean, free=free, parameters=(*theory.parameters, *mean), _cache={}), mean, ()


def _fresh(name: str, taken: set[str]) -> sp.Symbol:
    while name in taken:
        name += "_"
    return sp.Symbol(name, real=True)


def skeleton_terms(theory: FieldTheory, legs: Sequence[str], loops: int) -> Iterator[Term]:
    """The skeleton diagrams with 1 to `loops` loops; those whose legs hang on one vertex have their legs at one time."""
    valence = len(legs) + 2 * loops
    model = theory.model(max(valence, 3))
    read = Legs.read(theory, legs, None, amputated=True)
    for order in range(1, loops + 1):
        for diagram in enumerate_diagrams(model, read.diagram_legs(theory), order, kind="1pi"):
            if is_skeleton(diagram):
                term = Term(theory, read, diagram, max(valence, 3))
                yield replace(term, legs=replace(read, groups=(0,) * len(legs), moments=(sp.S.Zero,))) if term.contact else term


def is_skeleton(diagram: Diagram) -> bool:
    """Whether a diagram with one or two amputated legs has no self-energy insertion."""
    graph = diagram.graph
    hung = [line.end for line in graph.lines if line.propagator is None]
    lines = [(line.start, line.end) for line in graph.lines if line.propagator is not None and line.start != line.end]
    lines += [(hung[0], hung[1])] if len(hung) == 2 and hung[0] != hung[1] else []
    return all(_connected(graph.vertices, lines, cut) for cut in combinations(range(len(lines)), min(2, len(lines))))


def _connected(nodes: Sequence[int], lines: Sequence[tuple[int, int]], cut: Sequence[int]) -> bool:
    root = {node: node for node in nodes}
    for at, (one, other) in enumerate(lines):
        if at not in cut:
            low, high = sorted((root[one], root[other]))
            root = {node: low if group == high else group for node, group in root.items()}
    return len(set(root.values())) == 1
