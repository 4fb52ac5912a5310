"""From a skeleton (legs and vertices to be joined) to the integer tables of the search, and back to lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from symtensor.diagrams.graph import Leg
from symtensor.diagrams.kernel.state import Tables
from symtensor.diagrams.model import Model, Propagator, Vertex

__all__ = ["Restrictions", "Skeleton", "Slot", "SkeletonTables", "tables"]


@dataclass(frozen=True)
class Skeleton:
    """Nodes of a connected diagram before they are joined: legs in order, then vertices in order of the model.

    `amputated`: legs hang on their vertices directly. `index_lengths`: for each vertex the length of the index line it lies
    on (0: a line between legs); empty if that is left open.
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

    def node_keys(self) -> list[object]:
        """One key per node; nodes with equal keys may be exchanged, and stand in one block."""
        lengths = self.index_lengths or (-1,) * len(self.vertices)
        keys: list[object] = [(leg.field, i if leg.label is not None else None) for i, leg in enumerate(self.legs)]
        return keys + [(vertex.name, length) for vertex, length in zip(self.vertices, lengths)]


@dataclass(frozen=True)
class Restrictions:
    """What entries are left out from the start."""

    no_self_loops: bool = False
    acyclic: bool = False


@dataclass(frozen=True)
class Slot:
    """One way to join two nodes: a leg of field `here` at the first, of field `there` at the second.

    `propagator` is its number in the model, or -1 for the line of an amputated leg; `back` is the slot seen from the other node.
    """

    here: int
    there: int
    propagator: int
    back: int


@dataclass(frozen=True)
class SkeletonTables:
    """The tables of the search together with what is needed to read its results."""

    skeleton: Skeleton
    tables: Tables
    slots: tuple[Slot, ...]
    entries: tuple[tuple[int, ...], ...]  #: number of lines per slot, for each entry
    self_entries: tuple[tuple[int, ...], ...]  #: number of lines per propagator, for each self-entry
    pair_factor: np.ndarray  #: permutations of the parallel lines of an entry
    self_factor: np.ndarray  #: permutations and flips of the self-loops of a self-entry
    log_symmetry: float  #: bound on log2 |Aut|


def _slots(model: Model, legs: Sequence[Leg], amputated: bool) -> tuple[tuple[Slot, ...], list[str]]:
    """The slots, and the names of all fields: the model's, then those only amputated legs carry."""
    names = [f.name for f in model.fields]
    number = {name: i for i, name in enumerate(names)}
    slots: list[Slot] = []
    for i, p in enumerate(model.propagators):
        _add(slots, number[p.first], number[p.second], i)
    if amputated:
        for name in dict.fromkeys(leg.field for leg in legs):
            _add(slots, len(names), number[name], -1)
            names.append(f"{name} amputated")
    return tuple(slots), names


def _add(slots: list[Slot], here: int, there: int, propagator: int) -> None:
    at = len(slots)
    if here == there:
        slots.append(Slot(here, there, propagator, at))
    else:
        slots += [Slot(here, there, propagator, at + 1), Slot(there, here, propagator, at)]


@lru_cache(maxsize=256)
def tables(skeleton: Skeleton, restrictions: Restrictions = Restrictions()) -> SkeletonTables:
    """The tables of `skeleton`; raises nothing: a skeleton that cannot be joined gives an empty search."""
    model = skeleton.model
    slots, names = _slots(model, skeleton.legs, skeleton.amputated)
    need = _need(skeleton, names)
    keys = skeleton.node_keys()
    first = {key: i for i, key in reversed(list(enumerate(keys)))}
    blocks = list(first.values())
    blocks.sort()
    node_class = np.array([blocks.index(first[key]) for key in keys], np.int64)
    lengths = [-1] * len(skeleton.legs) + list(skeleton.index_lengths or (-1,) * len(skeleton.vertices))
    if skeleton.index_lengths:
        lengths[: len(skeleton.legs)] = [0] * len(skeleton.legs)
    builder = _Builder(model, slots, need, lengths, len(skeleton.legs), restrictions)
    every = {(a, b): builder.pair(blocks[a], blocks[b]) for a in range(len(blocks)) for b in range(a, len(blocks))}
    every_self = [builder.own(block) for block in blocks]
    # entries are numbered before restrictions, so that a number means the same whatever is left out
    listed = {vector for vectors in every.values() for vector in vectors} | {(0,) * len(slots)}
    entries = sorted({*listed, *(_turn(vector, slots) for vector in listed)})
    self_entries = sorted({vector for vectors in every_self for vector in vectors} | {(0,) * len(model.propagators)})
    pairs = {(a, b): [v for v in every[a, b] if builder.pair_allowed(v, blocks[a], blocks[b])] for a, b in every}
    selves = [[v for v in vectors if builder.own_allowed(v, block)] for vectors, block in zip(every_self, blocks)]
    return _assemble(skeleton, slots, names, need, node_class, lengths, blocks, pairs, selves, entries, self_entries)


def _need(skeleton: Skeleton, names: list[str]) -> np.ndarray:
    number = {name: i for i, name in enumerate(names)}
    need = np.zeros((len(skeleton), len(names)), np.int64)
    for i, leg in enumerate(skeleton.legs):
        need[i, number[f"{leg.field} amputated" if skeleton.amputated else leg.field]] = 1
    for i, vertex in enumerate(skeleton.vertices, len(skeleton.legs)):
        for name in vertex.legs:
            need[i, number[name]] += 1
    return need


def _turn(vector: tuple[int, ...], slots: Sequence[Slot]) -> tuple[int, ...]:
    return tuple(vector[slot.back] for slot in slots)


@dataclass(frozen=True)
class _Builder:
    """Finds the entries that may join nodes of two classes, or one node with itself."""

    model: Model
    slots: tuple[Slot, ...]
    need: np.ndarray
    lengths: list[int]
    n_legs: int
    restrictions: Restrictions

    def is_index(self, slot: Slot) -> bool:
        return slot.here < len(self.model.fields) and self.model.fields[slot.here].index is not None

    def leaves(self, slot: Slot) -> bool:
        """True if the slot is a response line from the first node to the second (a response leg at the first)."""
        return slot.here < len(self.model.fields) and self.model.fields[slot.here].response

    def pair(self, one: int, other: int) -> list[tuple[int, ...]]:
        """All entries that the legs of two nodes allow."""
        return list(_vectors([(slot.here, slot.there) for slot in self.slots], self.need[one].copy(), self.need[other].copy()))

    def pair_allowed(self, vector: tuple[int, ...], one: int, other: int) -> bool:
        used = [slot for slot, lines in zip(self.slots, vector) if lines]
        if self.restrictions.acyclic and any(map(self.leaves, used)) and any(self.leaves(self.slots[s.back]) for s in used):
            return False
        index_lines = sum(lines for slot, lines in zip(self.slots, vector) if self.is_index(slot) or self.is_index(self.slots[slot.back]))
        mine, its = self.lengths[one], self.lengths[other]
        if index_lines == 0 or (mine < 0 and its < 0):
            return True
        return mine == its and (index_lines == 1 or mine == 2) and mine != 1

    def own(self, node: int) -> list[tuple[int, ...]]:
        """All self-loops that the legs of a node allow, as numbers of lines per propagator."""
        number = {f.name: i for i, f in enumerate(self.model.fields)}
        ends = [(number[p.first], number[p.second]) for p in self.model.propagators]
        legs = self.need[node].copy()
        return list(_vectors(ends, legs, legs))

    def own_allowed(self, vector: tuple[int, ...], node: int) -> bool:
        if any(vector) and (self.restrictions.no_self_loops or node < self.n_legs):
            return False
        used = [p for p, lines in zip(self.model.propagators, vector) if lines]
        if self.restrictions.acyclic and any(map(self.model.is_response, used)):
            return False
        return self.lengths[node] in (-1, 1) or not any(self.model.field(p.first).index for p in used)


def _vectors(ends: Sequence[tuple[int, int]], here: np.ndarray, there: np.ndarray) -> Iterator[tuple[int, ...]]:
    """All numbers of lines with the given ends that the legs at the two nodes (or at one: `here is there`) allow."""
    if not ends:
        yield ()
        return
    (first, second), rest = ends[0], ends[1:]
    lines = 0
    while here[first] >= 0 and there[second] >= 0:
        for vector in _vectors(rest, here, there):
            yield (lines, *vector)
        here[first] -= 1
        there[second] -= 1
        lines += 1
    here[first] += lines
    there[second] += lines


def _assemble(skeleton, slots, names, need, node_class, lengths, blocks, pairs, selves, entries, self_entries) -> SkeletonTables:  # type: ignore[no-untyped-def]
    model: Model = skeleton.model
    number = {vector: i for i, vector in enumerate(entries)}
    self_number = {vector: i for i, vector in enumerate(self_entries)}
    classes, fields = len(blocks), len(names)
    pair_start, pair_stop, listed = np.zeros((classes, classes), np.int64), np.zeros((classes, classes), np.int64), []
    for (a, b), vectors in pairs.items():
        pair_start[a, b] = len(listed)
        listed += sorted((number[vector] for vector in vectors), reverse=True)
        pair_stop[a, b] = len(listed)
    self_start, self_stop, self_listed = np.zeros(classes, np.int64), np.zeros(classes, np.int64), []
    for a, vectors in enumerate(selves):
        self_start[a] = len(self_listed)
        self_listed += sorted((self_number[vector] for vector in vectors), reverse=True)
        self_stop[a] = len(self_listed)
    matrix = np.array(entries, np.int64).reshape(len(entries), len(slots))
    uses = np.zeros((len(entries), fields), np.int64)
    partner = np.zeros((fields, fields), np.int64)
    for i, slot in enumerate(slots):
        uses[:, slot.here] += matrix[:, i]
        partner[slot.here, slot.there] = 1
    flags = {"leaves": np.zeros(len(entries), np.int64), "carries": np.zeros(len(entries), np.int64)}
    kinds = np.zeros(len(entries), np.int64)
    for i, slot in enumerate(slots):
        some = matrix[:, i] > 0
        kinds[some] |= 1 << (slot.propagator if slot.propagator >= 0 else 62)
        own = [s < len(model.fields) and model.fields[s] for s in (slot.here, slot.there)]
        if own[0] and own[0].response:
            flags["leaves"][some] = 1
        if any(f and f.index for f in own):
            flags["carries"][some] = 1
    self_matrix = np.array(self_entries, np.int64).reshape(len(self_entries), len(model.propagators))
    self_uses = np.zeros((len(self_entries), fields), np.int64)
    index = {f.name: i for i, f in enumerate(model.fields)}
    for i, p in enumerate(model.propagators):
        self_uses[:, index[p.first]] += self_matrix[:, i]
        self_uses[:, index[p.second]] += self_matrix[:, i]
    values = Tables(
        node_class, need, pair_start, pair_stop, np.array(listed, np.int64),
        np.array([number[_turn(vector, slots)] for vector in entries], np.int64), uses, matrix.sum(1), kinds, flags["leaves"],
        flags["carries"], self_start, self_stop, np.array(self_listed, np.int64), self_uses, partner,
        np.ones(fields, np.int64), np.array([i < len(model.fields) and model.fields[i].response for i in range(fields)], np.int64),
        np.array([i < len(model.fields) and model.fields[i].index is not None for i in range(fields)], np.int64),
        np.array([lengths[block] for block in blocks], np.int64),
    )  # fmt: skip
    pair_factor = np.array([math.prod(map(math.factorial, vector)) for vector in entries], dtype=object)
    self_factor = np.array([_self_factor(model.propagators, vector) for vector in self_entries], dtype=object)
    log_symmetry = float(sum(math.lgamma(np.sum(node_class == c) + 1) for c in range(classes)) / math.log(2))
    log_symmetry += float(sum(math.lgamma(valence + 1) for valence in need.sum(1)) / math.log(2))
    return SkeletonTables(skeleton, values, slots, tuple(entries), tuple(self_entries), pair_factor, self_factor, log_symmetry)


def _self_factor(propagators: Sequence[Propagator], vector: tuple[int, ...]) -> int:
    """Permutations of self-loops of one kind, and the flip of each that joins two equal legs."""
    return math.prod(math.factorial(m) * (2**m if p.first == p.second else 1) for p, m in zip(propagators, vector))
