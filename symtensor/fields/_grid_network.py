"""A term of a diagram sum as a network of arrays on a time grid: which arrays, joined by which indices.

Arrays (for each kind of line x with n components; component axes are left out where n = 1):

    R_x[t, i, s, j]   response, s < t, one half of it at t = s (a jump counts half in the trapezoidal rule)
    S_x[t, i, s, j]   response, s <= t, used where other lines or the order of the external times imply s <= t already
    Rw_x, Sw_x        the same times the weight of the quadrature at s
    C_x[t, i, s, j]   correlator of any two times,   E_x[t, i, j] correlator of equal times
    at[t]             1 at the grid point of the earliest external time, else 0
    after[t]          1 after that point, else 0: the limit t -> 0 of an integral over times between 0 and t
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import sympy as sp

from symtensor.diagrams.graph import Line
from symtensor.fields.vertices import Kind, VertexTensor

if TYPE_CHECKING:
    from symtensor.fields.field_theory import FieldTheory
    from symtensor.fields.term import Term

__all__ = ["ArrayFactor", "GridIndex", "Network", "network", "term_ends", "vertex_value"]

#: an index of an array: ("t", "node" or "group", k) a time, ("c", line, end, size) a component, ("f", value, size) a fixed one
GridIndex: TypeAlias = "tuple[Any, ...]"


@dataclass(frozen=True, slots=True)
class ArrayFactor:
    """An array by name with its indices."""

    array: str
    indices: tuple[GridIndex, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """coefficient x (product of `factors`, summed over all indices but `open_times`)."""

    coefficient: sp.Expr
    factors: tuple[ArrayFactor, ...]
    open_times: tuple[GridIndex, ...]


def network(term: Term, pinned: bool) -> Network | None:
    """The network of a term; None if it vanishes because its response lines close a loop.

    `pinned`: whether the earliest external time is one grid point (and not an axis of the result).
    """
    variable = _variables(term)
    order = _TimeOrder.of(term, variable)
    if order is None:
        return None
    coefficient: Any = sp.Rational(1, term.symmetry_factor)
    factors: list[ArrayFactor] = []
    weighted: set[Any] = set()
    ends = term_ends(term)
    for number, line in enumerate(term.diagram.graph.lines):
        if line.propagator is not None:
            factors.append(_line(term.theory, number, line, variable, ends, order, weighted))
    for node, (name, _) in zip(term.diagram.graph.vertices, term.vertex_factors):
        value = vertex_value(term, node, name, ends)
        if isinstance(value, ArrayFactor):
            factors.append(value)
        else:
            coefficient = coefficient * value
    groups = [("t", "group", k) for k in range(max(len(term.legs.moments), 1))]
    used = {index for factor in factors for index in factor.indices}
    if pinned:
        if groups[-1] in used:
            factors.append(ArrayFactor("at", (groups[-1],)))
        if len(groups) > 1 and order.encloses(groups[-1], groups[0]):
            factors.append(ArrayFactor("after", (groups[0],)))
        groups = groups[:-1]
    return Network(coefficient, tuple(factors), tuple(groups))


def _variables(term: Term) -> dict[int, GridIndex]:
    """Node -> its time: one for each group of legs, one for each vertex that is integrated over."""
    graph = term.diagram.graph
    hung = {line.start: line.end for line in graph.lines if line.propagator is None}
    found: dict[int, GridIndex] = {}
    for node in graph.legs:
        group = ("t", "group", term.legs.groups[int(str(graph.nodes[node].label)) - 1])
        found[node] = group
        found[hung.get(node, node)] = group
    return {**{node: ("t", "node", node) for node in graph.vertices}, **found}


def term_ends(term: Term) -> dict[tuple[int, int], GridIndex | None]:
    """(line, end) -> the component index there: fixed at a leg, None where the kind has one component."""
    graph = term.diagram.graph
    found: dict[tuple[int, int], GridIndex | None] = {}
    for number, line in enumerate(graph.lines):
        for end, (name, node) in enumerate(zip(line.fields, (line.start, line.end))):
            kind = _kind(term.theory, name)
            if len(kind.components) == 1:
                found[number, end] = None
            elif graph.nodes[node].is_leg:
                component = term.legs.components[int(str(graph.nodes[node].label)) - 1]
                found[number, end] = ("f", kind.components.index(component), len(kind.components))
            elif line.propagator is None:  # an amputated leg fixes the component of its vertex; legs are line starts
                found[number, end] = found[number, 0]
            else:
                found[number, end] = ("c", number, end, len(kind.components))
    return found


def _kind(theory: FieldTheory, name: str) -> Kind:
    return next(kind for kind in theory.kinds if kind.name == name)


@dataclass(frozen=True, slots=True)
class _TimeOrder:
    """Which times are known to be earlier than which, from response lines and the order of the legs."""

    edges: frozenset[tuple[GridIndex, GridIndex]]
    legs: frozenset[tuple[GridIndex, GridIndex]]
    paths: frozenset[tuple[GridIndex, GridIndex]]

    @classmethod
    def of(cls, term: Term, variable: dict[int, GridIndex]) -> _TimeOrder | None:
        """None if the order contradicts itself."""
        groups = [("t", "group", k) for k in range(len(term.legs.moments))]
        legs = frozenset(zip(groups[1:], groups))
        lines = [line for line in term.diagram.graph.lines if line.response]
        edges = frozenset((variable[line.start], variable[line.end]) for line in lines) | legs
        paths = _closure(edges)
        return None if any(one == other for one, other in paths) else cls(edges, legs, paths)

    def implied(self, early: GridIndex, late: GridIndex) -> bool:
        """Whether early <= late follows without the line between them."""
        between = any(mid != late and (mid, late) in self.paths for one, mid in self.edges if one == early)
        return between or (early, late) in _closure(self.legs)

    def encloses(self, early: GridIndex, late: GridIndex) -> bool:
        """Whether some time lies between the two."""
        return any((mid, late) in self.paths for one, mid in self.paths if one == early and mid != late)


def _closure(edges: Iterable[tuple[GridIndex, GridIndex]]) -> frozenset[tuple[GridIndex, GridIndex]]:
    found = set(edges)
    while new := {(a, d) for a, b in found for c, d in found if b == c} - found:
        found |= new
    return frozenset(found)


def _line(
    theory: FieldTheory,
    number: int,
    line: Line,
    variable: dict[int, GridIndex],
    ends: dict[tuple[int, int], GridIndex | None],
    order: _TimeOrder,
    weighted: set[Any],
) -> ArrayFactor:
    """The array of a line. The first response line out of a vertex carries the weight of its time, the first between two
    times their order (`weighted` remembers both)."""
    start, end = variable[line.start], variable[line.end]
    first, last = ends[number, 0], ends[number, 1]
    if not line.response:
        name = line.fields[0]
        if start == end:
            return ArrayFactor(f"E_{name}", _present(start, first, last))
        return ArrayFactor(f"C_{name}", _present(start, first, end, last))
    ordered = not order.implied(start, end) and ("order", start, end) not in weighted
    weight = start[1] == "node" and ("weight", start) not in weighted
    weighted |= {("order", start, end), ("weight", start)}
    letter = ("R" if ordered else "S") + ("w" if weight else "")
    return ArrayFactor(f"{letter}_{line.fields[1]}", _present(end, last, start, first))


def _present(*indices: GridIndex | None) -> tuple[GridIndex, ...]:
    return tuple(index for index in indices if index is not None)


def vertex_value(term: Term, node: int, name: str, ends: dict[tuple[int, int], GridIndex | None]) -> ArrayFactor | Any:
    """The tensor of a vertex with the indices of its lines, or its factor if it has no components."""
    graph = term.diagram.graph
    tensor: VertexTensor = next(t for t in term.theory.tensors(term.valence) if t.name == name)
    waiting: dict[str, list[GridIndex | None]] = {}
    for number, line in enumerate(graph.lines):
        for end, where in enumerate((line.start, line.end)):
            if where == node:
                waiting.setdefault(line.fields[end], []).append(ends[number, end])
    indices = tuple(index for leg in tensor.legs if (index := waiting[leg].pop(0)) is not None)
    if not indices:
        return next(iter(tensor.entries.values()))
    return ArrayFactor(tensor.name, indices)
