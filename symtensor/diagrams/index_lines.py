"""Index lines: how the vertices of a diagram can be shared out to lines between legs and to closed loops of given lengths.

Which index line a vertex lies on, and how long it is, are invariants of a diagram. Fixing them before the search splits it into
classes of their own, each with a known number of closed loops.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from symtensor.diagrams.model import Model, Vertex

__all__ = ["closed_loops", "index_fields", "shares"]


def index_fields(model: Model) -> frozenset[str]:
    """The fields that carry the index; empty if the model has none, or several (their lines are then not told apart here)."""
    symbols = {f.index for f in model.fields if f.index is not None}
    return frozenset(f.name for f in model.fields if f.index is not None) if len(symbols) == 1 else frozenset()


def shares(model: Model, vertices: tuple[Vertex, ...], index_legs: int) -> Iterator[tuple[int, ...]]:
    """For the given vertices (equal ones next to each other) all tuples of lengths of their index lines, one after the other.

    Length 0 is a line between legs, -1 stands at vertices without the index. Each tuple is increasing over equal vertices. The
    number of vertices on loops of length l is a multiple of l.
    """
    fields = index_fields(model)
    groups = [(vertex, len(list(same))) for vertex, same in itertools.groupby(vertices)]
    on_line = [any(name in fields for name in vertex.legs) for vertex, _ in groups]
    numbers = tuple(number if on else 0 for (_, number), on in zip(groups, on_line))
    for chosen in _lengths(numbers, 0 if index_legs else 1):
        lengths: list[int] = []
        for kind, ((_, number), on) in enumerate(zip(groups, on_line)):
            lengths += [length for length, counts in chosen for _ in range(counts[kind])] if on else [-1] * number
        yield tuple(lengths)


def _lengths(numbers: tuple[int, ...], length: int) -> Iterator[tuple[tuple[int, tuple[int, ...]], ...]]:
    """How many vertices of each kind lie on lines of each length, from `length` up."""
    if not any(numbers):
        yield ()
        return
    if length > sum(numbers):
        return
    for counts in itertools.product(*(range(number, -1, -1) for number in numbers)):
        if length == 0 or sum(counts) % length == 0:
            here = ((length, counts),) if any(counts) else ()
            for rest in _lengths(tuple(n - c for n, c in zip(numbers, counts)), length + 1):
                yield here + rest


def closed_loops(lengths: tuple[int, ...]) -> int:
    """Number of closed index loops, from the length of the line that each vertex lies on."""
    return sum(lengths.count(length) // length for length in set(lengths) if length > 0)
