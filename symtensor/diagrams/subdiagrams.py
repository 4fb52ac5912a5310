"""Parts of a diagram as diagrams: their vertices and inner lines, with the lines that were cut as amputated legs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from symtensor.diagrams.errors import DiagramError, RequestError
from symtensor.diagrams.graph import Graph, Line, Node
from symtensor.diagrams.properties import is_1pi, is_connected

__all__ = ["Subdiagram", "subdiagrams", "subgraph"]


@dataclass(frozen=True, slots=True)
class Subdiagram:
    """A part of a diagram: node numbers, inner lines and external lines of the whole.

    A line that leaves the part at both of its ends stands twice among the external lines. `graph` is the part as a
    diagram of its own, with amputated legs labelled by the external lines (``line3``; ``line3a`` and ``line3b``).
    """

    vertices: tuple[int, ...]
    lines: tuple[int, ...]
    external: tuple[int, ...]
    graph: Graph

    @property
    def loops(self) -> int:
        """The number of loops of the part; its amputated legs add none."""
        return self.graph.loops


def subgraph(graph: Graph, vertices: Collection[int], lines: Collection[int] | None = None) -> Graph:
    """The part on these vertices as a diagram: every other line at them is cut and leaves an amputated leg.

    The inner lines are all lines among the vertices, or only those given. A leg is labelled by the number of the line
    that was cut in `graph`: ``line3``, or ``line3a`` at the start and ``line3b`` at the end of a line cut at both ends.

    Raises: DiagramError for a node that is no vertex of the diagram, or a line that does not join two of the vertices.
    """
    chosen = tuple(sorted(set(vertices)))
    for node in chosen:
        if node not in graph.vertices:
            raise DiagramError(f"node {node} is no vertex of the diagram; its vertices are {_listed(graph.vertices)}")
    possible = _inner(graph, chosen)
    inner = possible if lines is None else tuple(sorted(set(lines)))
    for index in inner:
        if index not in possible:
            those = f"the vertices {_listed(chosen)}; those that do: {_listed(possible)}"
            raise DiagramError(f"line {index} does not join two of {those}")
    return _amputated(graph, chosen, inner)


def subdiagrams(
    graph: Graph,
    *,
    kind: Literal["1pi", "connected"] = "1pi",
    legs: int | None = None,
    induced: bool = True,
) -> Iterator[Subdiagram]:
    """The proper subdiagrams, by their number of vertices, then by their vertices and lines.

    kind: ``1pi`` yields the parts that are one-particle irreducible and have a loop (those that may diverge);
    ``connected`` yields every connected part, single vertices included.
    legs: at most this many external lines (a line that leaves the part at both ends counts twice).
    induced: with all lines among the chosen vertices. With False every choice of inner lines counts, as in the forest
    formula: the sunset has no proper induced part with a loop, but three one-loop parts on its two vertices.

    Raises: RequestError for another kind or a negative number of legs.
    """
    if kind not in ("1pi", "connected"):
        raise RequestError(f"subdiagrams of kind {kind!r}: the kind must be 1pi or connected")
    if legs is not None and legs < 0:
        raise RequestError(f"at most {legs} external lines: the number must not be negative")
    for vertices in _connected_sets(graph):
        possible = _inner(graph, vertices)
        for lines in (possible,) if induced else _subsets(possible):
            if len(vertices) == len(graph.vertices) and len(lines) == len(possible):
                continue
            external = _external(graph, vertices, lines)
            if legs is not None and len(external) > legs:
                continue
            part = _amputated(graph, vertices, lines)
            if is_connected(part) and (kind == "connected" or (part.loops > 0 and is_1pi(part))):
                yield Subdiagram(vertices, lines, external, part)


def _listed(numbers: Collection[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


def _inner(graph: Graph, vertices: Collection[int]) -> tuple[int, ...]:
    return tuple(i for i, line in enumerate(graph.lines) if line.start in vertices and line.end in vertices)


def _subsets(lines: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for size in range(len(lines), -1, -1):
        yield from combinations(lines, size)


def _external(graph: Graph, vertices: Collection[int], lines: Collection[int]) -> tuple[int, ...]:
    ends = [(i, node) for i, line in enumerate(graph.lines) if i not in lines for node in (line.start, line.end)]
    return tuple(index for index, node in ends if node in vertices)


def _connected_sets(graph: Graph) -> Iterator[tuple[int, ...]]:
    """All nonempty connected sets of vertices, grown one vertex at a time."""
    level = {frozenset([vertex]) for vertex in graph.vertices}
    while level:
        yield from sorted(tuple(sorted(chosen)) for chosen in level)
        level = {chosen | {there} for chosen in level for there in _beside(graph, chosen)}


def _beside(graph: Graph, chosen: frozenset[int]) -> set[int]:
    near = {graph.other_end(index, node) for node in chosen for index in graph.incident[node]}
    return {node for node in near - chosen if not graph.nodes[node].is_leg}


def _amputated(graph: Graph, vertices: tuple[int, ...], inner: tuple[int, ...]) -> Graph:
    cut = [
        (index, end)
        for index, line in enumerate(graph.lines)
        if index not in inner
        for end in (0, 1)
        if (line.start, line.end)[end] in vertices
    ]
    twice = {index for index, end in cut if (index, 1 - end) in cut}
    number = {node: len(cut) + at for at, node in enumerate(vertices)}
    nodes: list[Node] = []
    lines: list[Line] = []
    for at, (index, end) in enumerate(cut):
        line = graph.lines[index]
        name = line.fields[end]
        nodes.append(Node("leg", name, f"line{index}" + ("ab"[end] if index in twice else "")))
        lines.append(Line(at, number[(line.start, line.end)[end]], (name, name), None))
    for index in inner:
        line = graph.lines[index]
        start, end = number[line.start], number[line.end]
        lines.append(Line(start, end, line.fields, line.propagator, line.directed, line.response))
    nodes.extend(graph.nodes[vertex] for vertex in vertices)
    return Graph(graph.model, tuple(nodes), tuple(lines))
