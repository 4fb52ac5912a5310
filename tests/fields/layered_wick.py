"""Path cumulants of monomials by Wick's theorem: a second route to `symtensor.numerics.path`, for one input.

Derivatives of moments are moments (Price's theorem at distinct times); those of cumulants follow by Leibniz' rule over the
set partitions of the legs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import factorial, prod

import numpy as np

from symtensor.fields.layered import LayeredNetwork
from symtensor.numerics.path import PathArray


def partitions(items: tuple[int, ...]) -> list[list[list[int]]]:
    """All set partitions."""
    if not items:
        return [[]]
    smaller = partitions(items[1:])
    alone = [[[items[0]], *blocks] for blocks in smaller]
    joined = [[[items[0], *blocks[at]], *blocks[:at], *blocks[at + 1 :]] for blocks in smaller for at in range(len(blocks))]
    return alone + joined


class WickPaths:
    """h_c = phi^(2 k_c), k_c the given powers; the first powers are those of the branches."""

    def __init__(self, network: LayeredNetwork, powers: Sequence[int]) -> None:
        self.network, self.powers = network, tuple(powers)
        self.kernel = [float(network.kernel[0, 0])]
        means = []
        for layer in range(network.depth + 1):
            k = self.kernel[layer]
            means.append([prod(range(1, 2 * power, 2)) * k**power for power in self.powers])
            drive = network.drive(np.array(means[-1][: len(network.branches)]))
            self.kernel.append(network.alpha**2 * k + network.dt * float(drive[0, 0]))
        self.means = np.array(means)
        self.moment = lru_cache(maxsize=None)(self._moment)
        self.derivative = lru_cache(maxsize=None)(self._derivative)
        self.kept: dict[tuple[int, ...], PathArray] = {}

    def leading(self) -> tuple[np.ndarray, np.ndarray, float]:
        return np.array(self.kernel[:-1]).reshape(-1, 1, 1), self.means, 0.0

    def covariance(self, first: int, second: int) -> float:
        return self.network.alpha ** abs(second - first) * self.kernel[min(first, second)]

    def _moment(self, times: tuple[int, ...], powers: tuple[int, ...]) -> float:
        """E prod_i phi(times_i)^powers_i, times increasing."""
        live = [(t, n) for t, n in zip(times, powers) if n]
        if not live:
            return 1.0
        times, powers = tuple(t for t, _ in live), tuple(n for _, n in live)
        total = 0.0
        for at in range(len(times)):
            left = list(powers)
            left[0] -= 1
            if left[at] > 0:
                number = left[at]
                left[at] -= 1
                total += number * self.covariance(times[0], times[at]) * self.moment(times, tuple(left))
        return total

    def _derivative(self, times: tuple[int, ...], powers: tuple[int, ...], by: tuple[int, ...]) -> float:
        """The derivative of a moment with respect to the variances at the places `by` of `times`."""
        if not by:
            return self.moment(times, powers)
        at, rest = by[0], by[1:]
        total = 0.0
        for other in range(at, len(times)):
            left = list(powers)
            left[at] -= 1
            left[other] -= 1
            number = powers[at] * (powers[other] if other != at else (powers[at] - 1) / 2)
            if number and min(left) >= 0:
                total += number * self.network.alpha ** (times[other] - times[at]) * self.derivative(times, tuple(left), rest)
        return total

    def cumulant(self, legs: tuple[int, ...], components: tuple[int, ...], pattern: tuple[int, ...]) -> float:
        """One entry."""
        if any(a and legs[j] in legs[:j] for j, a in enumerate(pattern)):
            return 0.0
        times = tuple(sorted(set(legs)))
        by = [times.index(legs[j]) for j, a in enumerate(pattern) for _ in range(a)]
        total = 0.0
        for blocks in partitions(tuple(range(len(legs)))):
            sign = (-1) ** (len(blocks) - 1) * factorial(len(blocks) - 1)
            powers = []
            for block in blocks:
                counted = [0] * len(times)
                for leg in block:
                    counted[times.index(legs[leg])] += 2 * self.powers[components[leg]]
                powers.append(tuple(counted))
            for places in product(range(len(blocks)), repeat=len(by)):
                parts = [tuple(sorted(b for b, place in zip(by, places) if place == at)) for at in range(len(blocks))]
                total += sign * prod(self.derivative(times, p, part) for p, part in zip(powers, parts))
        return total

    def cumulants(self, pattern: tuple[int, ...], later_only: bool = False) -> PathArray:
        if pattern not in self.kept:
            layers, count, q = self.network.depth + 1, len(self.powers), len(pattern)
            values = np.zeros((layers, count) * q)
            for legs in product(range(layers), repeat=q):
                for components in product(range(count), repeat=q):
                    place = tuple(x for pair in zip(legs, components) for x in pair)
                    values[place] = self.cumulant(legs, components, pattern)
            self.kept[pattern] = PathArray(values.reshape(*values.shape, *[1] * sum(pattern)), 0.0)
        return self.kept[pattern]
