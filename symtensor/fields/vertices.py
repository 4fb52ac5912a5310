"""Vertices: the derivatives of the interaction at the saddle, up to any valence, and the diagram model they make.

The interaction is a local density V of the fields, with weight exp(int V): minus the action without its free part. The factor
of a vertex is the partial derivative of V; factorials are left to the symmetry factor of the diagram.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, prod
from typing import Any

import sympy as sp

from symtensor.diagrams import Field, Model, Propagator, Vertex
from symtensor.expansion import taylor
from symtensor.fields.errors import TheoryError

__all__ = ["Kind", "VertexTensor", "blocks", "derivatives", "diagram_model", "vertex_tensors"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of line: fields that the quadratic form mixes, as positions in (fields, responses)."""

    name: str
    components: tuple[int, ...]
    response: bool = False


@dataclass(frozen=True, slots=True)
class VertexTensor:
    """The factors of one set of legs: `entries` maps the component at each leg (in the order of `legs`) to its factor."""

    name: str
    legs: tuple[str, ...]
    entries: Mapping[tuple[int, ...], Any]


def derivatives(density: sp.Expr, symbols: Sequence[sp.Symbol], point: Sequence[Any], valence: int) -> dict[tuple[int, ...], Any]:
    """Partial derivatives of order 3 to `valence` at the point, nonzero ones only: {orders: value}.

    Raises TheoryError if the density has no Taylor expansion there.

    >>> x, g = sp.symbols("x g")
    >>> derivatives(-g * x**4 / 24, [x], [0], 4)
    {(4,): -g}
    """
    shifted = sp.expand(density.subs({s: s + p for s, p in zip(symbols, point) if p != 0}, simultaneous=True))
    if shifted.is_polynomial(*symbols):
        terms = sp.Poly(shifted, *symbols).terms()
        found = {powers: value for powers, value in terms if 3 <= sum(powers) <= valence}
    else:
        found = _expanded(density, symbols, point, valence)
    read = {k: sp.cancel(v * prod(map(factorial, k))) if v.free_symbols else v * prod(map(factorial, k)) for k, v in found.items()}
    return {k: v for k, v in sorted(read.items(), key=lambda item: (sum(item[0]), item[0][::-1])) if v != 0}


def _expanded(density: sp.Expr, symbols: Sequence[sp.Symbol], point: Sequence[Any], valence: int) -> dict[tuple[int, ...], Any]:
    try:
        series = taylor(density, tuple(symbols), tuple(point), valence + 1)
        return {k: sp.sympify(v) for degree in range(3, valence + 1) for k, v in series.homogeneous(degree).items()}
    except ValueError as error:
        raise TheoryError(
            f"the interaction {density} has no Taylor expansion at {dict(zip(symbols, point))} ({error}); expand around another "
            "point (point=...), or replace the function by a smooth one"
        ) from error


def vertex_tensors(table: Mapping[tuple[int, ...], Any], kinds: Sequence[Kind]) -> tuple[VertexTensor, ...]:
    """The derivatives sorted by sets of legs."""
    owner = {component: kind for kind in kinds for component in kind.components}
    place = {kind.name: at for at, kind in enumerate(kinds)}
    grouped: dict[tuple[str, ...], dict[tuple[int, ...], Any]] = {}
    for powers, value in table.items():
        components = sorted((c for c, n in enumerate(powers) for _ in range(n)), key=lambda c: (place[owner[c].name], c))
        legs = tuple(owner[c].name for c in components)
        entries = grouped.setdefault(legs, {})
        for order in _orders(tuple(components), legs):
            entries[order] = value
    return tuple(VertexTensor(_vertex_name(legs), legs, entries) for legs, entries in grouped.items())


def _orders(components: tuple[int, ...], legs: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    """All assignments of the components to legs of their own kind, each once."""
    blocks: dict[str, list[int]] = {}
    for component, leg in zip(components, legs):
        blocks.setdefault(leg, []).append(component)
    for choice in product(*(sorted(set(permutations(block))) for block in blocks.values())):
        yield tuple(component for block in choice for component in block)


def _vertex_name(legs: tuple[str, ...]) -> str:
    counts = dict.fromkeys(legs, 0)
    for leg in legs:
        counts[leg] += 1
    return "v_" + "_".join(leg + (str(count) if count > 1 else "") for leg, count in counts.items())


def diagram_model(
    name: str, kinds: Sequence[Kind], joined: Sequence[tuple[str, str]], tensors: Sequence[VertexTensor]
) -> Model:
    """The model for `symtensor.diagrams`: fields are kinds, propagators the pairs in `joined`."""
    vertices = tuple(Vertex(tensor.name, tensor.legs) for tensor in tensors)
    fields = tuple(Field(kind.name, response=kind.response) for kind in kinds)
    causality = "local" if any(kind.response for kind in kinds) else "none"
    return Model(name, fields, tuple(Propagator(*pair) for pair in joined), vertices, causality=causality)


def blocks(size: int, joined: Any) -> list[tuple[int, ...]]:
    """Connected blocks of {0, .., size - 1} under the relation `joined(i, j)`."""
    left, found = set(range(size)), []
    while left:
        block, stack = set(), [min(left)]
        while stack:
            here = stack.pop()
            if here not in block:
                block.add(here)
                stack.extend(other for other in left if other != here and joined(here, other))
        left -= block
        found.append(tuple(sorted(block)))
    return found
