"""Reading codes: from the canonical matrix of a part to its lines and their text, quickly.

What an entry at a place of the matrix stands for is worked out once per skeleton and then looked up, so that listing diagrams
with their lines costs little more than finding them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from symtensor.diagrams.edge_string import line_text
from symtensor.diagrams.graph import Graph, Line, Node
from symtensor.diagrams.kernel.skeleton import Skeleton
from symtensor.diagrams.kernel.tables import SkeletonTables, tables
from symtensor.diagrams.model import Model

__all__ = ["Reader", "line_order", "reader"]


def line_order(line: Line) -> tuple[object, ...]:
    """Lines of a graph stand in this order."""
    return (line.start, line.end, line.propagator.name if line.propagator else "", line.fields)


@dataclass(frozen=True, slots=True)
class _Written:
    """One line as a value, as text, and where it is sorted."""

    order: tuple[object, ...]
    line: Line
    text: str


class Reader:
    """Reads the codes of one skeleton."""

    def __init__(self, skeleton: Skeleton) -> None:
        legs = [Node("leg", leg.field, leg.label) for leg in skeleton.legs]
        self.nodes = (*legs, *(Node("vertex", vertex.name) for vertex in skeleton.vertices))
        self._table = tables(skeleton)
        self._places = [(a, b) for a in range(len(skeleton)) for b in range(a, len(skeleton))]
        self._blank = Graph(skeleton.model, self.nodes, ())
        self._known: dict[int, tuple[_Written, ...]] = {}

    def lines(self, code: bytes) -> tuple[Line, ...]:
        """The lines in their order; a directed line starts at its tail."""
        return tuple([item.line for item in self._read(code)])

    def text(self, code: bytes) -> str:
        """The line of text that `to_edge_string` gives for the part as a diagram of its own."""
        return " ".join([item.text for item in self._read(code)])

    def _read(self, code: bytes) -> list[_Written]:
        known = self._known
        found: list[_Written] = []
        for place, entry in enumerate(memoryview(code).cast("H").tolist()):
            if entry:
                key = place << 16 | entry
                items = known.get(key)
                if items is None:
                    items = known[key] = tuple(map(self._written, self._lines_at(place, entry)))
                found += items
        found.sort(key=_order)
        return found

    def _written(self, line: Line) -> _Written:
        numbers = {node: at for at, node in enumerate(self._blank.vertices)}
        return _Written(line_order(line), line, line_text(self._blank, line, numbers))

    def _lines_at(self, place: int, entry: int) -> Iterator[Line]:
        row, column = self._places[place]
        if row == column:
            for number, copies in enumerate(self._table.self_entries[entry]):
                yield from [_loop(self._blank.model, number, row)] * copies
        else:
            for slot, copies in enumerate(self._table.entries[entry]):
                yield from [_line(self._table, slot, row, column)] * copies


def _order(item: _Written) -> tuple[object, ...]:
    return item.order


@lru_cache(maxsize=256)
def reader(skeleton: Skeleton) -> Reader:
    """The reader of a skeleton's codes."""
    return Reader(skeleton)


def _loop(model: Model, number: int, node: int) -> Line:
    p = model.propagators[number]
    tail = model.tail(p)
    fields = (p.first, p.second) if tail != p.second else (p.second, p.first)
    return Line(node, node, fields, p, tail is not None, model.is_response(p))


def _line(table: SkeletonTables, number: int, row: int, column: int) -> Line:
    model, slot = table.skeleton.model, table.skeleton.slots[number]
    if slot.propagator < 0:
        outer = slot.here >= len(model.fields)
        name = model.fields[slot.there if outer else slot.here].name
        leg, vertex = (row, column) if outer else (column, row)
        return Line(leg, vertex, (name, name), None)
    p = model.propagators[slot.propagator]
    here, there, tail = model.fields[slot.here].name, model.fields[slot.there].name, model.tail(p)
    if tail == there and here != there:
        row, column, here, there = column, row, there, here
    return Line(row, column, (here, there), p, tail is not None, model.is_response(p))
