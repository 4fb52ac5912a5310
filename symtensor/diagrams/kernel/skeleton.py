"""A skeleton: the nodes of a connected diagram before they are joined, and the kinds of lines that may join two of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from symtensor.diagrams.graph import Leg
from symtensor.diagrams.model import Model, Vertex

__all__ = ["Skeleton", "Slot", "joinings"]


@dataclass(frozen=True, slots=True)
class Slot:
    """One way to join two nodes: a leg of field `here` at the first, of field `there` at the second (numbers of fields).

    `propagator` is its number in the model, or -1 for the line of an amputated leg; `back` is the slot seen from the other
    node. `response`: a response line runs from the first node to the second. `index`: the line carries the index.
    """

    here: int
    there: int
    propagator: int
    back: int
    response: bool
    index: bool


@dataclass(frozen=True)
class Skeleton:
    """Nodes of a connected diagram: legs in order, then vertices in order of the model.

    `amputated`: legs hang on their vertices directly; each field of such legs gets a field of its own, numbered after the
    model's, which only joins that field. `index_lengths`: for each vertex the length of the index line it lies on (0: a line
    between legs); empty if that is left open.
    """

    model: Model
    legs: tuple[Leg, ...]
    vertices: tuple[Vertex, ...]
    amputated: bool = False
    index_lengths: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.legs) + len(self.vertices)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.model, self.legs, self.vertices, self.amputated, self.index_lengths))

    @cached_property
    def node_keys(self) -> tuple[object, ...]:
        """One key per node; nodes with equal keys may be exchanged, and stand in one block."""
        legs = [(leg.field, None if leg.label is None else i) for i, leg in enumerate(self.legs)]
        return (*legs, *((vertex.name, length) for vertex, length in zip(self.vertices, self.vertex_lengths)))

    @property
    def vertex_lengths(self) -> tuple[int, ...]:
        return self.index_lengths or (-1,) * len(self.vertices)

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """The model's fields, then those that only amputated legs carry."""
        own = dict.fromkeys(f"{leg.field} amputated" for leg in self.legs) if self.amputated else {}
        return (*(f.name for f in self.model.fields), *own)

    @cached_property
    def legs_at(self) -> tuple[tuple[int, ...], ...]:
        """For each node the number of legs of each field."""
        number = {name: i for i, name in enumerate(self.field_names)}
        suffix = " amputated" if self.amputated else ""
        rows = [[0] * len(number) for _ in range(len(self))]
        for row, leg in zip(rows, self.legs):
            row[number[leg.field + suffix]] += 1
        for row, vertex in zip(rows[len(self.legs) :], self.vertices):
            for name in vertex.legs:
                row[number[name]] += 1
        return tuple(map(tuple, rows))

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """All ways to join two nodes."""
        number = {name: i for i, name in enumerate(self.field_names)}
        ends = [(number[p.first], number[p.second], i) for i, p in enumerate(self.model.propagators)]
        ends += [(number[name], number[name.removesuffix(" amputated")], -1) for name in self.field_names[len(self.model.fields) :]]
        slots: list[Slot] = []
        for here, there, propagator in ends:
            turned = [(here, there)] if here == there else [(here, there), (there, here)]
            at = len(slots)
            slots += [self._slot(a, b, propagator, at + (i + 1) % len(turned)) for i, (a, b) in enumerate(turned)]
        return tuple(slots)

    def _slot(self, here: int, there: int, propagator: int, back: int) -> Slot:
        fields = self.model.fields
        response = here < len(fields) and fields[here].response
        index = any(end < len(fields) and fields[end].index is not None for end in (here, there))
        return Slot(here, there, propagator, back, response, index)

    @cached_property
    def self_ends(self) -> tuple[tuple[int, int], ...]:
        """The two fields that a self-loop of each propagator joins."""
        number = {name: i for i, name in enumerate(self.field_names)}
        return tuple((number[p.first], number[p.second]) for p in self.model.propagators)


def joinings(ends: Sequence[tuple[int, int]], here: list[int], there: list[int]) -> Iterator[tuple[int, ...]]:
    """All numbers of lines with the given ends that the legs at two nodes (or at one: `here is there`) allow.

    >>> list(joinings([(0, 0)], [2], [3]))
    [(0,), (1,), (2,)]
    """
    if not ends:
        yield ()
        return
    (first, second), rest = ends[0], ends[1:]
    lines = 0
    while here[first] >= 0 and there[second] >= 0:
        for others in joinings(rest, here, there):
            yield (lines, *others)
        here[first] -= 1
        there[second] -= 1
        lines += 1
    here[first] += lines
    there[second] += lines
