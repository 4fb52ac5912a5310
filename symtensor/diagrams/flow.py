"""What runs along the lines of a diagram: time along response lines, indices along index lines.

A response line runs from its start (the response field, earlier) to its end (later). An index line joins two legs of
fields with the same `Field.index`; a vertex with two such legs passes the index from one to the other.
"""

from __future__ import annotations

from collections import defaultdict

from symtensor.diagrams.errors import DiagramError, RequestError
from symtensor.diagrams.graph import Graph

__all__ = ["closed_set", "index_loops", "obeys", "open_index_lines", "response_cycle"]

HalfLine = tuple[int, int]
"""A line and one of its ends: 0 for the start, 1 for the end."""


def response_cycle(graph: Graph) -> tuple[int, ...] | None:
    """The lines of one closed loop of response lines, each starting where the one before ends; None if there is none."""
    out: dict[int, list[int]] = defaultdict(list)
    for index, line in enumerate(graph.lines):
        if line.response and line.propagator is not None:
            out[line.start].append(index)
    finished: set[int] = set()
    for root in list(out):
        path: list[int] = []
        stack = [(root, iter(out[root]))]
        while stack and root not in finished:
            node, remaining = stack[-1]
            index = next(remaining, None)
            if index is None:
                finished.add(node)
                stack.pop()
                del path[-1:]
                continue
            there = graph.lines[index].end
            on_path = [at for at, _ in stack]
            if there in on_path:
                return (*path[on_path.index(there) :], index)
            if there not in finished:
                path.append(index)
                stack.append((there, iter(out.get(there, ()))))
    return None


def closed_set(graph: Graph) -> tuple[int, ...] | None:
    """The largest set of vertices that no response line leaves: those that cannot reach an external leg; None if empty.

    A response line leaves towards an external leg as well. An amputated leg of a response field counts as such a line,
    because the line that was cut there starts at the response field; an amputated leg of another field does not.
    """
    reaching = {index for index, node in enumerate(graph.nodes) if node.is_leg}
    amputated = [line for line in graph.lines if line.propagator is None]
    reaching |= {line.end for line in amputated if graph.model.field(line.fields[0]).response}
    grows = True
    while grows:
        grows = False
        for line in graph.lines:
            if line.response and line.propagator is not None and line.end in reaching and line.start not in reaching:
                reaching.add(line.start)
                grows = True
    return tuple(v for v in graph.vertices if v not in reaching) or None


def obeys(graph: Graph, causality: str) -> bool:
    """Whether the rule keeps the diagram.

    ``local``: no closed loop of response lines. ``nonlocal``: every set of vertices is left by some response line, so
    that every vertex reaches an external leg along response lines. ``none``: always.

    Raises: RequestError for another rule.
    """
    if causality == "local":
        return response_cycle(graph) is None
    if causality == "nonlocal":
        return closed_set(graph) is None
    if causality == "none":
        return True
    raise RequestError(f"causality {causality!r}: it must be local, nonlocal or none")


def index_loops(graph: Graph) -> tuple[tuple[int, ...], ...]:
    """The closed index loops: for each its lines in the order of a walk along it, from the line of lowest number.

    Raises: DiagramError where a vertex has more than two legs of one index, or a line an index at one end only.
    """
    return tuple(lines for lines, closed in _index_walks(graph) if closed)


def open_index_lines(graph: Graph) -> tuple[tuple[int, ...], ...]:
    """The index lines that run from one external leg to another: for each its lines in order, from the first leg.

    Raises: DiagramError as `index_loops`.
    """
    return tuple(lines for lines, closed in _index_walks(graph) if not closed)


def _index_walks(graph: Graph) -> list[tuple[tuple[int, ...], bool]]:
    """The lines of each index line and whether it is closed; open ones first."""
    symbols = [_index_symbol(graph, index) for index in range(len(graph.lines))]
    passing = _passing(graph, symbols)
    halves = [(index, end) for index, symbol in enumerate(symbols) if symbol is not None for end in (0, 1)]
    starts = sorted((h for h in halves if h not in passing), key=lambda half: _node(graph, half)) + halves
    seen: set[int] = set()
    walks: list[tuple[tuple[int, ...], bool]] = []
    for start in starts:
        if start[0] in seen:
            continue
        lines: list[int] = []
        half: HalfLine | None = start
        while half is not None and half[0] not in seen:
            lines.append(half[0])
            seen.add(half[0])
            half = passing.get((half[0], 1 - half[1]))
        walks.append((tuple(lines), half is not None))
    return walks


def _node(graph: Graph, half: HalfLine) -> int:
    line = graph.lines[half[0]]
    return line.end if half[1] else line.start


def _index_symbol(graph: Graph, index: int) -> str | None:
    line = graph.lines[index]
    first, second = (graph.model.field(name).index for name in line.fields)
    if first != second:
        raise DiagramError(
            f"line {index} joins field {line.fields[0]} (index {first}) and field {line.fields[1]} (index {second}); "
            "an index line has the same index at both ends"
        )
    return first


def _passing(graph: Graph, symbols: list[str | None]) -> dict[HalfLine, HalfLine]:
    """At each vertex, which half of an index line goes on as which other half."""
    table: dict[tuple[int, str], list[HalfLine]] = defaultdict(list)
    for index, symbol in enumerate(symbols):
        if symbol is not None:
            for end in (0, 1):
                table[_node(graph, (index, end)), symbol].append((index, end))
    passing: dict[HalfLine, HalfLine] = {}
    for (node, symbol), halves in table.items():
        if graph.nodes[node].is_leg:
            continue
        if len(halves) != 2:
            raise DiagramError(
                f"vertex {graph.nodes[node].name} (node {node}) has {len(halves)} legs with index {symbol}, so that it is not "
                "said how the index runs through it; write the vertex with an auxiliary field, two such legs at a time"
            )
        passing[halves[0]], passing[halves[1]] = halves[1], halves[0]
    return passing
