r"""Cumulants from moments at increasing times, and all orders of the times from these.

The legs of a cumulant that coincide form a group. d^b kappa is the sum over set partitions of the legs, with weight
(-1)^(blocks - 1) (blocks - 1)!, of products of moments; the b_g derivatives of a group are shared by the blocks that
have legs in it (Leibniz), for a moment does not depend on a variance at which it has no leg.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import factorial, prod

import numpy as np

from symtensor.numerics.path.hermite import multiset_index

__all__ = ["Moment", "PackedCumulants", "fill", "groupings"]

#: (sizes, derivatives) -> (T,) * m + (multisets of each size)
Moment = Callable[[tuple[int, ...], tuple[int, ...]], np.ndarray]


@dataclass(slots=True)
class PackedCumulants:
    """Cumulants with derivatives at all increasing times t_1 < .. < t_m out of T, in the order of ``itertools.combinations``.

    Attributes
    ----------
    moment
        Moments of centred components.
    layers
        T.
    count
        C.
    """

    moment: Moment
    layers: int
    count: int
    _moments: dict[tuple[tuple[int, ...], tuple[int, ...]], np.ndarray]

    @classmethod
    def of(cls, moment: Moment, layers: int, count: int) -> PackedCumulants:
        """No moment is computed yet."""
        return cls(moment, layers, count, {})

    def times(self, groups: int) -> np.ndarray:
        """(N, m): the increasing times."""
        found = np.array(list(combinations(range(self.layers), groups)), dtype=int)
        return found.reshape(-1, groups)

    def cumulant(self, sizes: tuple[int, ...], derivatives: tuple[int, ...]) -> np.ndarray:
        """(N, C, .., C): one axis for each leg, group by group."""
        times = self.times(len(sizes))
        legs = [group for group, size in enumerate(sizes) for _ in range(size)]
        total = np.zeros((len(times),) + (self.count,) * len(legs))
        for partition in _set_partitions(list(range(len(legs)))):
            weight = (-1) ** (len(partition) - 1) * factorial(len(partition) - 1)
            for shared, multiplicity in _shared(partition, legs, derivatives):
                if len(partition) > 1 and any(len(block) == 1 and not sum(b) for block, b in zip(partition, shared)):
                    continue  # a centred component has no mean
                factors = [self._block(block, b, legs, times) for block, b in zip(partition, shared)]
                term = factors[0]
                for factor in factors[1:]:
                    term = term * factor
                total += weight * multiplicity * term
        return total

    def _block(self, block: tuple[int, ...], derivatives: tuple[int, ...], legs: Sequence[int], times: np.ndarray) -> np.ndarray:
        """The moment of some legs, with an axis of length 1 for each of the others."""
        groups = sorted({legs[leg] for leg in block})
        sizes = tuple(sum(legs[leg] == group for leg in block) for group in groups)
        key = sizes, tuple(derivatives[group] for group in groups)
        if key not in self._moments:
            self._moments[key] = self._expanded(*key)
        chosen = self._moments[key][tuple(times[:, group] for group in groups)]
        shape = [self.count if leg in block else 1 for leg in range(len(legs))]
        return chosen.reshape(len(times), *shape)

    def _expanded(self, sizes: tuple[int, ...], derivatives: tuple[int, ...]) -> np.ndarray:
        found = self.moment(sizes, derivatives)
        for axis, size in enumerate(sizes):
            found = np.take(found, multiset_index(self.count, size)[1], axis=len(sizes) + axis)
        return found


def fill(packed: PackedCumulants, pattern: tuple[int, ...], out: np.ndarray, increasing: bool = False) -> None:
    """Fill out[l1, c1, .., lq, cq] in every order of the times, or increasing ones only.

    Coinciding legs have their derivatives on the first.
    """
    kept: dict[tuple[tuple[int, ...], tuple[int, ...]], np.ndarray] = {}
    for places in groupings(len(pattern)):
        groups = max(places) + 1
        if groups > packed.layers or (increasing and list(places) != list(range(len(pattern)))):
            continue
        first = [places.index(group) for group in range(groups)]
        if any(pattern[leg] for leg in range(len(pattern)) if leg != first[places[leg]]):
            continue
        sizes = tuple(places.count(group) for group in range(groups))
        key = sizes, tuple(pattern[leg] for leg in first)
        if key not in kept:
            kept[key] = packed.cumulant(*key)
        # canonical leg of each position: groups one after the other, equal legs in their order
        order = sorted(range(len(pattern)), key=lambda leg: (places[leg], leg))
        slot = [order.index(leg) for leg in range(len(pattern))]
        times = packed.times(groups)
        index: list[np.ndarray | slice] = []
        for leg in range(len(pattern)):
            index += [times[:, places[leg]], slice(None)]
        if len(pattern) == 1:
            out[times[:, 0]] = kept[key]
        else:
            # arrays that are separated by slices put their axis first
            out[tuple(index)] = np.transpose(kept[key], (0, *(1 + s for s in slot)))


def groupings(legs: int) -> Iterator[tuple[int, ...]]:
    """All ways to put legs in order with ties: the number of its group for each of them.

    >>> [len(list(groupings(q))) for q in (1, 2, 3, 4)]
    [1, 3, 13, 75]
    """
    for places in product(range(legs), repeat=legs):
        if set(places) == set(range(max(places) + 1)):
            yield places


def _set_partitions(items: list[int]) -> Iterator[tuple[tuple[int, ...], ...]]:
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for smaller in _set_partitions(rest):
        yield ((first,), *smaller)
        for at, block in enumerate(smaller):
            yield (*smaller[:at], (first, *block), *smaller[at + 1 :])


def _shared(
    partition: tuple[tuple[int, ...], ...], legs: Sequence[int], derivatives: tuple[int, ...]
) -> Iterator[tuple[tuple[tuple[int, ...], ...], int]]:
    """Ways to share the derivatives of every group among blocks with legs in it, with their multinomial weights."""
    blocks = len(partition)
    options = []
    for group, number in enumerate(derivatives):
        able = [at for at, block in enumerate(partition) if any(legs[leg] == group for leg in block)]
        options.append([counts for counts in product(range(number + 1), repeat=blocks) if sum(counts) == number
                        and all(count == 0 or at in able for at, count in enumerate(counts))])  # fmt: skip
    for chosen in product(*options):
        weight = prod(factorial(sum(counts)) // prod(map(factorial, counts)) for counts in chosen)
        yield tuple(tuple(counts[at] for counts in chosen) for at in range(blocks)), weight
