"""A connected part of a diagram in canonical form, as the kernel writes it: a skeleton and the upper triangle of its matrix."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from symtensor.diagrams.errors import DiagramError
from symtensor.diagrams.flow import index_loops
from symtensor.diagrams.graph import Graph, Leg
from symtensor.diagrams.index_lines import index_fields
from symtensor.diagrams.kernel.skeleton import Skeleton
from symtensor.diagrams.kernel.tables import SkeletonTables
from symtensor.diagrams.model import Model, Vertex

__all__ = ["Part", "line_factor", "matrix_of", "skeleton_of"]


@dataclass(frozen=True, slots=True)
class Part:
    """A connected part: `code` is the upper triangle, row by row, two bytes an entry, of the canonical matrix.

    Parts are equal if and only if they are isomorphic: the canonical form decides, a hash never does.
    """

    skeleton: Skeleton
    code: bytes
    symmetry_factor: int

    def __hash__(self) -> int:
        return hash(self.code)

    def sort_key(self) -> tuple[object, ...]:
        """Parts with legs first, in the order of the legs; then few vertices, then by code (largest first)."""
        legs = tuple((leg.field, len(leg.label or ""), leg.label or "") for leg in self.skeleton.legs)
        vertices = tuple(vertex.name for vertex in self.skeleton.vertices)
        return (not legs, legs, len(vertices), vertices, bytes(255 - b for b in self.code))


def skeleton_of(graph: Graph, nodes: Sequence[int]) -> tuple[Skeleton, list[int]]:
    """The skeleton of a connected part of `graph`, and its nodes in the skeleton's order (any order within a class)."""
    model = graph.model
    place = {f.name: i for i, f in enumerate(model.fields)}
    legs = [n for n in nodes if graph.nodes[n].is_leg]
    legs.sort(key=lambda n: (place[graph.nodes[n].name], len(graph.nodes[n].label or ""), graph.nodes[n].label or ""))
    kinds = _vertices_by_name(graph, [n for n in nodes if not graph.nodes[n].is_leg])
    lengths = _index_lengths(graph, kinds) if index_fields(model) else dict.fromkeys(kinds, -1)
    vertices = sorted(kinds, key=lambda n: (_vertex_place(model, kinds[n]), lengths[n]))
    part = set(nodes)
    amputated = any(line.propagator is None for line in graph.lines if line.start in part)
    skeleton = Skeleton(
        model, tuple(Leg(graph.nodes[n].name, graph.nodes[n].label) for n in legs), tuple(kinds[n] for n in vertices), amputated,
        tuple(lengths[n] for n in vertices) if index_fields(model) else (),
    )  # fmt: skip
    return skeleton, legs + vertices


def _index_lengths(graph: Graph, vertices: Collection[int]) -> dict[int, int]:
    """Length of the closed index loop that each vertex lies on, 0 on a line between legs, -1 without an index."""
    fields = index_fields(graph.model)
    on_line = {node for line in graph.lines if line.fields[0] in fields for node in (line.start, line.end)}
    lengths = {node: 0 if node in on_line else -1 for node in vertices}
    for loop in index_loops(graph):
        for line in loop:
            for node in (graph.lines[line].start, graph.lines[line].end):
                if node in lengths:
                    lengths[node] = len(loop)
    return lengths


def _vertex_place(model: Model, vertex: Vertex) -> tuple[object, ...]:
    """The model's vertices in its order, then members of families by valence."""
    if vertex in model.vertices:
        return (0, model.vertices.index(vertex))
    members = [list(family.vertices(vertex.valence)) for family in model.families]
    return (1, *next((f, found.index(vertex)) for f, found in enumerate(members) if vertex in found))


def _vertices_by_name(graph: Graph, nodes: Sequence[int]) -> dict[int, Vertex]:
    known = {vertex.name: vertex for vertex in graph.model.vertices}
    found = {}
    for n in nodes:
        name = graph.nodes[n].name
        if name not in known:
            valence = len(graph.incident[n])
            known |= {v.name: v for family in graph.model.families for v in family.vertices(valence)}
        if name not in known:
            raise DiagramError(f"node {n} is a vertex {name!r}, which model {graph.model.name!r} does not have")
        found[n] = known[name]
    return found


def matrix_of(graph: Graph, table: SkeletonTables, order: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Entries (N, N) and self-entries (N,) of a connected part whose nodes are listed in the skeleton's order."""
    model, place = table.skeleton.model, {node: i for i, node in enumerate(order)}
    number = {f.name: i for i, f in enumerate(model.fields)}
    extra = {
        slot.there: slot.here for slot in table.skeleton.slots if slot.propagator < 0 and slot.here >= len(model.fields)
    }  # the amputated leg's own field
    slots = {(slot.here, slot.there, slot.propagator): i for i, slot in enumerate(table.skeleton.slots)}
    counts: dict[tuple[int, int], list[int]] = {}
    loops = [[0] * len(model.propagators) for _ in order]
    for line in graph.lines:
        if line.start not in place:
            continue
        a, b = place[line.start], place[line.end]
        kind = model.propagators.index(line.propagator) if line.propagator is not None else -1
        if a == b:
            loops[a][kind] += 1
            continue
        here, there = (number[name] for name in line.fields)
        if kind < 0:
            here = extra[there]
        for u, v, slot in ((a, b, (here, there, kind)), (b, a, (there, here, kind))):
            counts.setdefault((u, v), [0] * len(slots))[slots[slot]] += 1
    known = {vector: i for i, vector in enumerate(table.entries)}
    known_loops = {vector: i for i, vector in enumerate(table.self_entries)}
    entries = np.zeros((len(order), len(order)), np.int64)
    for (u, v), vector in counts.items():
        entries[u, v] = known[tuple(vector)]
    return entries, np.array([known_loops[tuple(vector)] for vector in loops], np.int64)


def line_factor(table: SkeletonTables, entries: np.ndarray, loops: np.ndarray) -> int:
    """Permutations of parallel lines and flips of self-loops."""
    upper = entries[np.triu_indices(len(entries), 1)]
    return math.prod(table.pair_factor[upper]) * math.prod(table.self_factor[loops])
