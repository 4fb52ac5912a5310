"""From a skeleton to the integer tables of the search, and back from the numbers of entries to lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TypeVar

import numpy as np

from symtensor.diagrams.errors import RequestError
from symtensor.diagrams.kernel.skeleton import Skeleton, Slot, joinings
from symtensor.diagrams.kernel.state import Tables

__all__ = ["Restrictions", "SkeletonTables", "tables"]

Vector = tuple[int, ...]
Key = TypeVar("Key")
AMPUTATED_BIT = 61
#: Entries are stored in two bytes; those of all pairs of classes together must fit.
MAX_ENTRIES = 8000


@dataclass(frozen=True, slots=True)
class Restrictions:
    """What entries are left out from the start."""

    no_self_loops: bool = False
    acyclic: bool = False


@dataclass(frozen=True)
class SkeletonTables:
    """The tables of the search together with what is needed to read its results."""

    skeleton: Skeleton
    tables: Tables
    entries: tuple[Vector, ...]  #: number of lines per slot, for each entry
    self_entries: tuple[Vector, ...]  #: number of lines per propagator, for each self-entry
    pair_factor: np.ndarray  #: permutations of the parallel lines of an entry
    self_factor: np.ndarray  #: permutations and flips of the self-loops of a self-entry
    log_symmetry: float  #: bound on log2 |Aut|


@lru_cache(maxsize=256)
def tables(skeleton: Skeleton, restrictions: Restrictions = Restrictions()) -> SkeletonTables:
    """The tables of `skeleton`. Entries are numbered before restrictions: a number means the same whatever is left out."""
    blocks = _blocks(skeleton)
    legs = skeleton.legs_at
    slots, ends = skeleton.slots, [(slot.here, slot.there) for slot in skeleton.slots]
    pairs = {(a, b): _listable(joinings(ends, list(legs[x]), list(legs[y]))) for a, x in blocks for b, y in blocks if a <= b}
    selves = {a: _own(skeleton, legs[x]) for a, x in blocks}
    known = {vector for vectors in pairs.values() for vector in vectors}
    entries = _numbered([*known, *(_turned(vector, slots) for vector in known), (0,) * len(slots)])
    if len(entries) >= 1 << 16:
        raise RequestError(f"the vertices of this request can be joined in {len(entries)} ways, more than can be numbered")
    self_entries = _numbered([*(v for vectors in selves.values() for v in vectors), (0,) * len(skeleton.self_ends)])
    allowed = _Allowed(skeleton, restrictions)
    chosen = {(a, b): [v for v in pairs[a, b] if allowed.pair(v, blocks[a][1], blocks[b][1])] for a, b in pairs}
    own = {a: [v for v in selves[a] if allowed.own(v, x)] for a, x in blocks}
    values = _arrays(skeleton, blocks, entries, self_entries, chosen, own)
    factors = np.array([math.prod(map(math.factorial, vector)) for vector in entries], dtype=object)
    self_factors = np.array([_self_factor(skeleton, vector) for vector in self_entries], dtype=object)
    bound = _log_symmetry(skeleton, values.node_class)
    return SkeletonTables(skeleton, values, tuple(entries), tuple(self_entries), factors, self_factors, bound)


def _blocks(skeleton: Skeleton) -> list[tuple[int, int]]:
    """The classes of nodes: number and first node of each."""
    firsts = list({key: node for node, key in reversed(list(enumerate(skeleton.node_keys)))}.values())
    return list(enumerate(sorted(firsts)))


def _own(skeleton: Skeleton, legs: Vector) -> list[Vector]:
    """All self-loops that the legs of a node allow."""
    left = list(legs)
    return _listable(joinings(skeleton.self_ends, left, left))


def _listable(vectors: Iterator[Vector]) -> list[Vector]:
    listed = list(islice(vectors, MAX_ENTRIES + 1))
    if len(listed) > MAX_ENTRIES:
        raise RequestError(
            f"two vertices of this model can be joined in more than {MAX_ENTRIES} ways; use vertices with fewer legs, or fewer "
            "propagators between their fields"
        )
    return listed


def _turned(vector: Vector, slots: tuple[Slot, ...]) -> Vector:
    return tuple(vector[slot.back] for slot in slots)


def _numbered(vectors: Iterable[Vector]) -> dict[Vector, int]:
    return {vector: number for number, vector in enumerate(sorted(set(vectors)))}


@dataclass(frozen=True)
class _Allowed:
    """Which entries a request leaves."""

    skeleton: Skeleton
    restrictions: Restrictions

    def _length(self, node: int) -> int:
        """Length of the index line of a node: 0 between legs, -1 without condition."""
        n_legs = len(self.skeleton.legs)
        if node < n_legs:
            return 0 if self.skeleton.index_lengths else -1
        return self.skeleton.vertex_lengths[node - n_legs]

    def pair(self, vector: Vector, one: int, other: int) -> bool:
        slots = self.skeleton.slots
        used = [slot for slot, lines in zip(slots, vector) if lines]
        if self.restrictions.acyclic and any(s.response for s in used) and any(slots[s.back].response for s in used):
            return False
        index_lines = sum(lines for slot, lines in zip(slots, vector) if slot.index)
        mine, its = self._length(one), self._length(other)
        if index_lines == 0 or mine == its == -1:
            return True
        return mine == its and mine != 1 and (index_lines == 1 or mine == 2)

    def own(self, vector: Vector, node: int) -> bool:
        if any(vector) and (self.restrictions.no_self_loops or node < len(self.skeleton.legs)):
            return False
        model = self.skeleton.model
        used = [p for p, lines in zip(model.propagators, vector) if lines]
        if self.restrictions.acyclic and any(map(model.is_response, used)):
            return False
        return self._length(node) in (-1, 1) or not any(model.field(p.first).index for p in used)

    def lengths(self, nodes: Iterable[int]) -> list[int]:
        return [self._length(node) for node in nodes]


def _listed(chosen: Mapping[Key, list[Vector]], numbers: Mapping[Vector, int]) -> tuple[list[int], dict[Key, tuple[int, int]]]:
    """Numbers of the entries of each class or pair, decreasing, one list after the other, and where each begins and ends."""
    listed: list[int] = []
    where = {}
    for key, vectors in chosen.items():
        start = len(listed)
        listed += sorted((numbers[vector] for vector in vectors), reverse=True)
        where[key] = (start, len(listed))
    return listed, where


def _arrays(
    skeleton: Skeleton, blocks: list[tuple[int, int]], entries: dict[Vector, int], self_entries: dict[Vector, int],
    pairs: dict[tuple[int, int], list[Vector]], own: dict[int, list[Vector]],
) -> Tables:  # fmt: skip
    slots, fields, model_fields = skeleton.slots, len(skeleton.field_names), skeleton.model.fields
    class_of = {skeleton.node_keys[node]: number for number, node in blocks}
    starts, stops = np.zeros((len(blocks), len(blocks)), np.int64), np.zeros((len(blocks), len(blocks)), np.int64)
    listed, where = _listed(pairs, entries)
    for key, (start, stop) in where.items():
        starts[key], stops[key] = start, stop
    self_listed, self_where = _listed(own, self_entries)
    matrix = _matrix(entries, len(slots))
    self_matrix = _matrix(self_entries, len(skeleton.self_ends))
    partner = np.zeros((fields, fields), np.int64)
    for slot in slots:
        partner[slot.here, slot.there] = 1

    def bits(select: Callable[[Slot], bool]) -> np.ndarray:
        return (matrix[:, [select(slot) for slot in slots]].sum(1) > 0).astype(np.int64)

    def mark(select: Callable[[int], bool]) -> np.ndarray:
        return np.array([i < len(model_fields) and select(i) for i in range(fields)], np.int64)

    response = mark(lambda i: model_fields[i].response)
    need = np.array(skeleton.legs_at, np.int64).reshape(len(skeleton), fields)
    quiet = sum(1 << int(node) for node in np.flatnonzero(need @ response == 0) if node >= len(skeleton.legs))
    kinds = np.zeros(len(entries), np.int64)
    for column, slot in enumerate(slots):
        kinds[matrix[:, column] > 0] |= 1 << (slot.propagator if slot.propagator >= 0 else AMPUTATED_BIT)
    lengths = _Allowed(skeleton, Restrictions()).lengths(node for _, node in blocks)
    return Tables(
        node_class=np.array([class_of[key] for key in skeleton.node_keys], np.int64),
        need=need, accepts=(partner @ response > 0).astype(np.int64), no_response=np.int64(quiet),
        pair_start=starts, pair_stop=stops, pair_entries=np.array(listed, np.int64),
        transposed=np.array([entries[_turned(vector, slots)] for vector in entries], np.int64),
        uses=_uses(matrix, [(slot.here,) for slot in slots], fields), totals=matrix.sum(1), kinds=kinds,
        leaves=bits(lambda slot: slot.response), carries=bits(lambda slot: slot.index),
        self_start=np.array([self_where[a][0] for a, _ in blocks], np.int64),
        self_stop=np.array([self_where[a][1] for a, _ in blocks], np.int64),
        self_entries=np.array(self_listed, np.int64), self_uses=_uses(self_matrix, skeleton.self_ends, fields),
        partner=partner, any_field=np.ones(fields, np.int64), response=response,
        index_field=mark(lambda i: model_fields[i].index is not None), cycle_length=np.array(lengths, np.int64),
    )  # fmt: skip


def _matrix(vectors: Iterable[Vector], width: int) -> np.ndarray:
    listed = list(vectors)
    return np.array(listed, np.int64).reshape(len(listed), width)


def _uses(matrix: np.ndarray, ends: Iterable[tuple[int, ...]], fields: int) -> np.ndarray:
    """Legs of each field that the lines of an entry use up."""
    uses = np.zeros((len(matrix), fields), np.int64)
    for column, used in enumerate(ends):
        for end in used:
            uses[:, end] += matrix[:, column]
    return uses


def _self_factor(skeleton: Skeleton, vector: Vector) -> int:
    """Permutations of self-loops of one kind, and the flip of each that joins two equal legs."""
    return math.prod(math.factorial(m) * (2**m if a == b else 1) for m, (a, b) in zip(vector, skeleton.self_ends))


def _log_symmetry(skeleton: Skeleton, node_class: np.ndarray) -> float:
    """log2 of (permutations of nodes within classes) x (permutations of the legs at every node)."""
    sizes = [*np.bincount(node_class), *(sum(legs) for legs in skeleton.legs_at)]
    return sum(math.lgamma(size + 1) for size in sizes) / math.log(2)
