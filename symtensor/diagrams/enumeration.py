"""From a request to canonical parts: contents, skeletons, searches, and disconnected diagrams put together from parts.

Everything is a generator in a fixed order. Nothing keeps the diagrams that were found: the search is orderly, and the parts of
a disconnected diagram are searched again where they are needed again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from symtensor.diagrams.contents import MAX_NODES, Content, contents
from symtensor.diagrams.dressed import dressed_skeletons
from symtensor.diagrams.errors import RequestError
from symtensor.diagrams.graph import Leg
from symtensor.diagrams.index_lines import index_fields, shares
from symtensor.diagrams.kernel.skeleton import Skeleton
from symtensor.diagrams.kernel.state import EVERY_PROPAGATOR, FREE, NO_TADPOLE, ONE_PARTICLE, Rules, new_state
from symtensor.diagrams.kernel.tables import Restrictions, SkeletonTables, tables
from symtensor.diagrams.part import Part
from symtensor.diagrams.request import Request

__all__ = ["Block", "blocks_of", "parts_of", "search", "skeletons"]

#: Blocks grow from the first to the second size, so that the first diagrams come at once.
FIRST_BLOCK, BLOCK = 1, 1024
#: Searches with at most this many results are remembered when disconnected diagrams are put together.
REMEMBERED = 2000


@dataclass(frozen=True)
class Block:
    """Some canonical diagrams of one skeleton: upper triangles (k, N (N + 1) / 2) and symmetry factors (k,)."""

    skeleton: Skeleton
    codes: np.ndarray
    factors: np.ndarray

    def factor_counts(self) -> dict[int, int]:
        """How many diagrams have each symmetry factor."""
        factors, numbers = np.unique(self.factors, return_counts=True)
        return dict(zip(factors.tolist(), numbers.tolist()))

    def parts(self) -> Iterator[Part]:
        width = self.codes.shape[1] * self.codes.itemsize
        data = self.codes.tobytes()
        skeleton = self.skeleton
        for i, factor in enumerate(self.factors.tolist()):
            yield Part(skeleton, data[i * width : (i + 1) * width], factor)


@dataclass(frozen=True)
class _Task:
    """One search: all diagrams of a skeleton that begin with some rows."""

    request: Request
    skeleton: Skeleton
    prefix: bytes = b""
    rows: int = 0


def skeletons(request: Request) -> Iterator[Skeleton]:
    """The sets of nodes of the connected diagrams that may answer the request."""
    if request.dressed is not None:
        yield from dressed_skeletons(request)
        return
    for content in contents(request):
        vertices = tuple(vertex for vertex, number in content for _ in range(number))
        yield from _by_index_lines(Skeleton(request.model, request.legs, vertices, request.amputated))


def _by_index_lines(skeleton: Skeleton) -> Iterator[Skeleton]:
    """The skeleton with every way to share its vertices out to index lines, if the model has an index."""
    fields = index_fields(skeleton.model)
    if not fields:
        yield skeleton
        return
    index_legs = sum(leg.field in fields for leg in skeleton.legs)
    for lengths in shares(skeleton.model, skeleton.vertices, index_legs):
        yield replace(skeleton, index_lengths=lengths)


def blocks_of(request: Request, executor: Executor | None = None, workers: int = 1) -> Iterator[Block]:
    """The connected (or 1PI) diagrams of a request, by content; in the same order with and without an executor."""
    for skeleton in skeletons(request):
        yield from search(request, skeleton, executor, workers)


def search(request: Request, skeleton: Skeleton, executor: Executor | None = None, workers: int = 1) -> Iterator[Block]:
    """All connected diagrams of one skeleton that the request admits; raises RequestError if it is too large."""
    if len(skeleton) > MAX_NODES:
        raise RequestError(f"{request}: {len(skeleton)} nodes in one connected diagram; at most {MAX_NODES} are possible")
    if not skeleton.vertices and (request.amputated or len(skeleton) != 2):
        return
    if executor is None:
        yield from _run(_Task(request, skeleton))
        return
    waiting: list = []
    for task in _divide(_Task(request, skeleton), 8 * workers):
        waiting.append(executor.submit(_collect, task))
        if len(waiting) > 2 * workers:
            yield from waiting.pop(0).result()
    for future in waiting:
        yield from future.result()


def _collect(task: _Task) -> list[Block]:
    return list(_run(task))


def _divide(task: _Task, pieces: int) -> Iterable[_Task]:
    """Independent tasks that together are `task`, in order: prefixes of a few rows, enough for `pieces` of them if possible."""
    tasks: list[_Task] = [task]
    for rows in range(1, len(task.skeleton) - 1):
        if len(tasks) >= pieces:
            break
        last = _Task(task.request, task.skeleton)
        tasks = [
            _Task(task.request, task.skeleton, code.tobytes(), rows) for codes, _ in _advance(last, rows - 1) for code in codes
        ]
    return tasks


def _run(task: _Task) -> Iterator[Block]:
    table = _tables(task)
    for codes, sizes in _advance(task, len(task.skeleton) - 1):
        yield Block(task.skeleton, codes, _factors(table, codes, sizes))


def _tables(task: _Task) -> SkeletonTables:
    request = task.request
    no_self_loops = request.no_self_loops or request.no_snails
    return tables(task.skeleton, Restrictions(no_self_loops, request.causality == "local"))


def _advance(task: _Task, last_row: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Run the compiled search; yields upper triangles and orbit sizes, a block at a time."""
    from symtensor.diagrams.kernel.search import advance, load_prefix

    table, count = _tables(task), len(task.skeleton)
    width = count * (count + 1) // 2
    state = new_state(table.tables)
    prefix = np.frombuffer(task.prefix, np.uint16) if task.prefix else np.zeros(1, np.uint16)
    load_prefix(table.tables, state, prefix, task.rows)
    block = FIRST_BLOCK
    while not state.position[2]:
        # allocated anew: what was handed out stays as it is
        codes, sizes = np.zeros((block, width), np.uint16), np.ones((block, count), np.int64)
        written = advance(table.tables, rules(task.request, task.skeleton), state, task.rows, last_row, codes, sizes)
        if written:
            yield codes[:written], sizes[:written]
        block = min(2 * block, BLOCK)


def rules(request: Request, skeleton: Skeleton) -> Rules:
    """The kernel's rules for a request."""
    mask = EVERY_PROPAGATOR
    if request.irreducible is not None and len(request.irreducible) < len(request.model.propagators):
        mask = sum(1 << i for i, p in enumerate(request.model.propagators) if p.name in request.irreducible)
    no_tadpoles = request.no_tadpoles or request.no_snails
    return Rules(
        n_legs=len(skeleton.legs), bridge_rule=ONE_PARTICLE if request.kind == "1pi" else NO_TADPOLE if no_tadpoles else FREE,
        bridge_mask=mask, local=int(request.causality == "local"), nonlocal_=int(request.causality == "nonlocal"),
        no_snails=int(request.no_snails), by_length=int(bool(skeleton.index_lengths)),
    )  # fmt: skip


def _factors(table: SkeletonTables, codes: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """|Aut|: node automorphisms times the permutations of parallel lines and self-loops; Python integers where 63 bits may
    not do."""
    kind = np.int64 if table.log_symmetry < 62 else object
    count = sizes.shape[1]
    diagonal = np.cumsum([0, *range(count, 1, -1)])
    upper = np.setdiff1d(np.arange(codes.shape[1]), diagonal)
    factors = sizes.astype(kind).prod(axis=1)
    factors = factors * table.pair_factor.astype(kind)[codes[:, upper]].prod(axis=1)
    return factors * table.self_factor.astype(kind)[codes[:, diagonal]].prod(axis=1)


# --- disconnected diagrams ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Piece:
    """A connected part to be: its legs and vertices."""

    legs: tuple[Leg, ...]
    numbers: tuple[int, ...]


def parts_of(request: Request, executor: Executor | None = None, workers: int = 1) -> Iterator[tuple[Part, ...]]:
    """The diagrams of a request as tuples of sorted canonical parts."""
    if request.kind != "all":
        for block in blocks_of(request, executor, workers):
            for part in block.parts():
                yield (part,)
        return
    for content in contents(request):
        yield from _assemble(request, content)


def _assemble(request: Request, content: Content) -> Iterator[tuple[Part, ...]]:
    vertices = tuple(vertex for vertex, _ in content)
    finder = _Finder(request, vertices)
    for pieces in _partitions(request.legs, tuple(number for _, number in content), finder):
        groups = [(piece, len(list(same))) for piece, same in itertools.groupby(pieces)]
        for parts in _choose(finder, groups):
            yield tuple(sorted(parts, key=Part.sort_key))


def _choose(finder: _Finder, groups: Sequence[tuple[_Piece, int]]) -> Iterator[tuple[Part, ...]]:
    """One part for each piece; equal pieces get a multiset of parts."""
    if not groups:
        yield ()
        return
    (piece, copies), rest = groups[0], groups[1:]
    for chosen in _multisets(finder, piece, copies, 0):
        for others in _choose(finder, rest):
            yield chosen + others


def _multisets(finder: _Finder, piece: _Piece, copies: int, start: int) -> Iterator[tuple[Part, ...]]:
    if copies == 0:
        yield ()
        return
    for index, part in enumerate(itertools.islice(finder.parts(piece), start, None), start):
        for others in _multisets(finder, piece, copies - 1, index):
            yield (part, *others)


class _Finder:
    """Finds the connected parts of a piece; short lists are remembered, long ones searched again."""

    def __init__(self, request: Request, vertices: tuple) -> None:
        self.request, self.vertices = request, vertices
        self.short = lru_cache(maxsize=512)(self._short)

    def _skeleton(self, piece: _Piece) -> Skeleton:
        chosen = tuple(v for v, number in zip(self.vertices, piece.numbers) for _ in range(number))
        return Skeleton(self.request.model, piece.legs, chosen)

    def _search(self, piece: _Piece) -> Iterator[Part]:
        for skeleton in _by_index_lines(self._skeleton(piece)):
            for block in search(self.request, skeleton):
                yield from block.parts()

    def _short(self, piece: _Piece) -> tuple[Part, ...] | None:
        found = tuple(itertools.islice(self._search(piece), REMEMBERED + 1))
        return found if len(found) <= REMEMBERED else None

    def exists(self, piece: _Piece) -> bool:
        found = self.short(piece)
        return found is None or bool(found)

    def parts(self, piece: _Piece) -> Iterable[Part]:
        found = self.short(piece)
        return found if found is not None else self._search(piece)


def _partitions(legs: tuple[Leg, ...], numbers: tuple[int, ...], finder: _Finder) -> Iterator[tuple[_Piece, ...]]:
    """All ways to share legs and vertices out to connected pieces that exist, equal pieces next to each other.

    The piece of the first leg comes first; without legs left, pieces come in decreasing order.
    """
    labelled = all(leg.label is not None for leg in legs)

    def share(legs: tuple[Leg, ...], numbers: tuple[int, ...], largest: tuple[object, ...] | None) -> Iterator[tuple[_Piece, ...]]:
        if not legs and not any(numbers):
            yield ()
            return
        ordered = not (labelled and legs)
        for piece, legs_left, numbers_left in _first_pieces(legs, numbers, labelled):
            if ordered and largest is not None and _rank(piece) > largest:
                continue
            if finder.exists(piece):
                for others in share(legs_left, numbers_left, _rank(piece) if ordered else None):
                    yield (piece, *others)

    yield from share(legs, numbers, None)


def _rank(piece: _Piece) -> tuple[object, ...]:
    return (tuple(sorted(leg.field for leg in piece.legs)), sum(piece.numbers), piece.numbers)


def _first_pieces(
    legs: tuple[Leg, ...], numbers: tuple[int, ...], labelled: bool
) -> Iterator[tuple[_Piece, tuple[Leg, ...], tuple[int, ...]]]:
    for mine in _leg_choices(legs, labelled):
        rest = list(legs)
        for leg in mine:
            rest.remove(leg)
        for chosen in itertools.product(*(range(number, -1, -1) for number in numbers)):
            if mine or any(chosen):
                yield _Piece(mine, chosen), tuple(rest), tuple(n - c for n, c in zip(numbers, chosen))


def _leg_choices(legs: tuple[Leg, ...], labelled: bool) -> Iterator[tuple[Leg, ...]]:
    """The legs of the next piece: with labels those with the first leg; without, any number of each field."""
    if labelled:
        if not legs:
            yield ()
            return
        for size in range(len(legs)):
            for others in itertools.combinations(legs[1:], size):
                yield (legs[0], *others)
        return
    fields = list(dict.fromkeys(leg.field for leg in legs))
    counts = [sum(leg.field == name for leg in legs) for name in fields]
    for chosen in itertools.product(*(range(count, -1, -1) for count in counts)):
        yield tuple(Leg(name) for name, count in zip(fields, chosen) for _ in range(count))
