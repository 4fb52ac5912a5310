"""The graph of a diagram: nodes (legs and vertices) and lines, as plain values."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from symtensor.diagrams.errors import DiagramError
from symtensor.diagrams.model import Model, Propagator

__all__ = ["Graph", "Leg", "Line", "Node"]


@dataclass(frozen=True, slots=True)
class Leg:
    """An external leg: the field at it and its label; `label` is None for legs that may be exchanged."""

    field: str
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a diagram: an external leg (`name` is its field) or a vertex (`name` is the vertex's)."""

    kind: Literal["leg", "vertex"]
    name: str
    label: str | None = None

    @property
    def is_leg(self) -> bool:
        return self.kind == "leg"


@dataclass(frozen=True, slots=True)
class Line:
    """One line between nodes `start` and `end` (indices; equal for a self-loop).

    `fields` are the legs it joins, at `start` and at `end`. `propagator` is None for the line by which an amputated leg
    hangs on its vertex. A directed line runs from `start` (for a response line: the response field, earlier) to `end`.
    """

    start: int
    end: int
    fields: tuple[str, str]
    propagator: Propagator | None
    directed: bool = False
    response: bool = False

    @property
    def is_self_loop(self) -> bool:
        return self.start == self.end


@dataclass(frozen=True)
class Graph:
    """Nodes (legs first) and lines (sorted; parallel lines repeated) of a diagram of `model`."""

    model: Model
    nodes: tuple[Node, ...]
    lines: tuple[Line, ...]

    @cached_property
    def legs(self) -> tuple[int, ...]:
        """Indices of the nodes that are external legs."""
        return tuple(i for i, node in enumerate(self.nodes) if node.is_leg)

    @cached_property
    def vertices(self) -> tuple[int, ...]:
        """Indices of the nodes that are vertices."""
        return tuple(i for i, node in enumerate(self.nodes) if not node.is_leg)

    @cached_property
    def incident(self) -> tuple[tuple[int, ...], ...]:
        """For each node the indices of its lines; a self-loop stands there twice."""
        table: list[list[int]] = [[] for _ in self.nodes]
        for index, line in enumerate(self.lines):
            table[line.start].append(index)
            table[line.end].append(index)
        return tuple(map(tuple, table))

    def other_end(self, line: int, node: int) -> int:
        """The node at the other end of line number `line`, seen from `node`."""
        value = self.lines[line]
        if node not in (value.start, value.end):
            raise DiagramError(f"line {line} joins nodes {value.start} and {value.end}, not node {node}")
        return value.end if node == value.start else value.start

    def legs_first(self) -> Graph:
        """The same graph with the legs' numbers before the vertices'; nodes and lines otherwise in their order."""
        order = [*self.legs, *self.vertices]
        if order == list(range(len(self.nodes))):
            return self
        place = {node: i for i, node in enumerate(order)}
        lines = (replace(line, start=place[line.start], end=place[line.end]) for line in self.lines)
        return Graph(self.model, tuple(self.nodes[node] for node in order), tuple(lines))

    def spanning_forest(self, roots: Iterable[int]) -> tuple[list[int], dict[int, int]]:
        """The nodes in breadth-first order, and for all but the roots the line towards the root.

        Each component is entered at the first of `roots` that lies in it.
        """
        order: list[int] = []
        above: dict[int, int] = {}
        seen: set[int] = set()
        for root in roots:
            queue = deque([root] if root not in seen else [])
            seen.add(root)
            while queue:
                here = queue.popleft()
                order.append(here)
                for index in self.incident[here]:
                    there = self.other_end(index, here)
                    if there not in seen:
                        seen.add(there)
                        above[there] = index
                        queue.append(there)
        return order, above

    @property
    def loops(self) -> int:
        """L = lines - nodes + 1, legs counted as nodes; used for disconnected diagrams too."""
        return len(self.lines) - len(self.nodes) + 1
