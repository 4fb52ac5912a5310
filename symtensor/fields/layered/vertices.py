r"""The arrays of the vertices: path cumulants with derivatives, shared between legs at coinciding times.

A path cumulant with pattern (a_1, .., a_q) counts the derivatives with respect to a variance that several legs have in common
at the first of these legs. Here they are shared equally, so that an array is symmetric under exchange of legs: at coinciding
times the value is that of all derivatives of the group at one leg, times prod_groups (legs in the group)^{-(derivatives of it)}.
The sum over all assignments of derivatives to legs, the only thing that counts, is the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from symtensor.activation import Activation
from symtensor.fields.layered.network import Functions, LayeredNetwork
from symtensor.fields.layered.tensor_network import set_partitions
from symtensor.numerics.path import PathArray, PathLaw, leading_order, path_cumulants

__all__ = ["NumericalPaths", "PathSource", "concentrated", "shared", "vertex_arrays"]


class PathSource(Protocol):
    """Where the order n^0 and the path cumulants come from."""

    def leading(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Kernels (T, P, P), means (T, C), estimated error."""
        ...

    def cumulants(self, pattern: tuple[int, ...], later_only: bool = False) -> PathArray:
        """The cumulant of len(pattern) legs with derivatives; see `symtensor.numerics.path.path_cumulants`."""
        ...


class NumericalPaths:
    """Path cumulants by Hermite expansion and quadrature (`symtensor.numerics.path`), each pattern once."""

    def __init__(self, network: LayeredNetwork, functions: Functions, tol: float, memory_mb: float) -> None:
        self._network, self._functions, self._tol, self._memory = network, functions, tol, memory_mb
        self._leading: tuple[np.ndarray, np.ndarray, float] | None = None
        self._found: dict[tuple[tuple[int, ...], bool], PathArray] = {}

    @property
    def _activations(self) -> tuple[Activation, ...]:
        return self._functions.functions

    def leading(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Kernels (T, P, P), means (T, C), estimated error."""
        if self._leading is None:
            net = self._network
            found = leading_order(
                self._activations, self._functions.branches, net.drive, net.alpha, net.dt, net.depth, net.kernel, tol=self._tol
            )
            self._leading = np.asarray(found.kernels), np.asarray(found.means), float(found.error)
        return self._leading

    def cumulants(self, pattern: tuple[int, ...], later_only: bool = False) -> PathArray:
        """The cumulant of len(pattern) legs with derivatives."""
        key = pattern, later_only
        if key not in self._found:
            law = PathLaw(self.leading()[0], self._network.alpha)
            self._found[key] = path_cumulants(
                law, self._activations, pattern, tol=self._tol, later_only=later_only, memory_mb=self._memory
            )
        return self._found[key]


def vertex_arrays(
    source: PathSource, names: Iterable[str], feeding: int, later_only: bool
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """The arrays ``kappa_<axes>_<pattern>`` with these names, and the error of the cumulants behind each.

    `later_only`: one derivative of two legs is needed only at the later leg (see `program.Program`).
    """
    arrays: dict[str, np.ndarray] = {}
    errors: dict[str, float] = {}
    full: dict[tuple[int, ...], np.ndarray] = {}
    for name in names:
        _, axes, digits = name.split("_")
        pattern = tuple(map(int, digits))
        if pattern not in full:
            full[pattern] = _at_later_leg(source) if later_only and pattern == (1, 0) else shared(source, pattern)
        cut = (slice(None), *(part for axis in axes for part in (slice(None), slice(None, feeding if axis == "F" else None))))
        arrays[name] = np.ascontiguousarray(full[pattern][cut[1:]])
        errors[name] = source.cumulants((0, 1), True).error if later_only and pattern == (1, 0) else _error(source, pattern)
    return arrays, errors


def _error(source: PathSource, pattern: tuple[int, ...]) -> float:
    return max(source.cumulants(each).error for each in concentrated(pattern))


def _at_later_leg(source: PathSource) -> np.ndarray:
    """The pattern (1, 0), filled where the leg with the derivative is strictly later."""
    return source.cumulants((0, 1), True).values.transpose(2, 3, 0, 1, 4)


def shared(source: PathSource, pattern: tuple[int, ...]) -> np.ndarray:
    """The cumulants of a pattern (in descending order) with derivatives shared between coinciding legs.

    Axes (T, C) for each leg, then E for each derivative.
    """
    first = source.cumulants(pattern).values
    q, derivatives = len(pattern), sum(pattern)
    if q == 1 or derivatives == 0:
        return first
    front = tuple(range(0, 2 * q, 2)) + tuple(range(1, 2 * q, 2)) + tuple(range(2 * q, 2 * q + derivatives))
    back = tuple(at for leg in range(q) for at in (leg, q + leg)) + tuple(range(2 * q, 2 * q + derivatives))
    result = first.transpose(front).copy()
    for blocks in sorted(_groupings(q), key=len, reverse=True):
        if len(blocks) == q:
            continue
        grid = np.indices((result.shape[0],) * len(blocks))
        times: list[np.ndarray] = [grid[0]] * q
        for number, block in enumerate(blocks):
            for leg in block:
                times[leg] = grid[number]
        result[tuple(times)] = _coinciding(source, pattern, blocks, times, front)
    return result.transpose(back)


def _groupings(q: int) -> list[tuple[tuple[int, ...], ...]]:
    """The set partitions of the legs."""
    found = set_partitions([(leg, 0) for leg in range(q)], None)
    return [tuple(tuple(leg for leg, _ in block) for block in blocks) for blocks in found]


def concentrated(pattern: tuple[int, ...]) -> set[tuple[int, ...]]:
    """The patterns, in descending order, with the derivatives of coinciding legs at one of them.

    >>> sorted(concentrated((1, 1)))
    [(1, 1), (2, 0)]
    """
    q = len(pattern)
    totals = [sorted((sum(pattern[leg] for leg in block) for block in blocks), reverse=True) for blocks in _groupings(q)]
    return {(*total, *[0] * (q - len(total))) for total in totals}


def _coinciding(
    source: PathSource,
    pattern: tuple[int, ...],
    blocks: tuple[tuple[int, ...], ...],
    times: list[np.ndarray],
    front: tuple[int, ...],
) -> np.ndarray:
    """The values where the legs of each block are at one time: axes (one time a block, C of each leg, E of each derivative)."""
    q = len(pattern)
    totals = [sum(pattern[leg] for leg in block) for block in blocks]
    order = sorted(range(len(blocks)), key=lambda at: -totals[at])
    legs = [blocks[at][0] for at in order] + [leg for at in order for leg in blocks[at][1:]]
    concentrated = tuple([totals[at] for at in order] + [0] * (q - len(blocks)))
    weight = np.prod([float(len(block)) ** -total for block, total in zip(blocks, totals)])
    found = source.cumulants(concentrated).values.transpose(front)[tuple(times[leg] for leg in legs)]
    starts = np.cumsum([0, *pattern])
    derivatives = [place for at in order for leg in blocks[at] for place in range(starts[leg], starts[leg + 1])]
    components = [len(blocks) + legs.index(leg) for leg in range(q)]
    pairs = [len(blocks) + q + derivatives.index(place) for place in range(starts[-1])]
    return weight * found.transpose(*range(len(blocks)), *components, *pairs)
