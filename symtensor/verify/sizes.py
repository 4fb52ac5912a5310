"""Sizes at which a bound is measured: geometric, jittered, of both parities (rule R17: a structured grid is blind)."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from symtensor.verify.errors import SizesError

__all__ = ["LEAST_SIZES", "MOST_SIZE", "check_sizes", "jittered_sizes", "upper_half"]

#: two points in the upper half are the least a slope needs
LEAST_SIZES = 4
#: a larger size has no float
MOST_SIZE = 10**300
#: jitter in units of the grid's step in log n; below one half, so that the order is kept
_JITTER = 0.45


def jittered_sizes(n_min: int = 32, n_max: int = 4096, count: int = 8, *, seed: int = 0) -> tuple[int, ...]:
    r"""`count` increasing sizes around a geometric grid from `n_min` to `n_max`, with both parities in the upper half.

    .. math:: n_j = \mathrm{round}\,\exp(\log n_{min} + (j + U_j)\,h), \quad U_j \sim U(-0.45, 0.45),

    h the step of the grid in log n. The end points are jittered too: the largest size exceeds `n_max` by at most
    the factor exp(0.45 h), 1.37 for the default grid 2^5, 2^6, .., 2^12.

    Raises
    ------
    SizesError
        Fewer than 4 sizes, n_min < 2, or a range too narrow for `count` distinct sizes.

    References
    ----------
    stochastic_order.md, section 8, step 1 and rule R17.

    Examples
    --------
    >>> jittered_sizes(32, 4096, seed=0) == jittered_sizes(32, 4096, seed=0)
    True
    >>> {n % 2 for n in jittered_sizes(64, 1024, 5)} == {0, 1}
    True
    """
    low, high, count = (_integer(name, value) for name, value in (("n_min", n_min), ("n_max", n_max), ("count", count)))
    if count < LEAST_SIZES:
        raise SizesError(f"count = {count}: a slope with an error needs at least {LEAST_SIZES} sizes")
    if low < 2 or high <= low:
        raise SizesError(f"n_min = {low}, n_max = {high}: sizes from at least 2, and n_max > n_min")
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(8,)))
    step = math.log(high / low) / (count - 1)
    centres = math.log(low) + step * np.arange(count)
    sizes = np.rint(np.exp(centres + step * rng.uniform(-_JITTER, _JITTER, count))).astype(int).tolist()
    if len({n % 2 for n in sizes[count // 2 :]}) == 1:
        sizes[int(rng.integers(count // 2, count))] += 1
    if sizes[0] < 2 or any(b <= a for a, b in itertools.pairwise(sizes)):
        raise SizesError(
            f"{count} sizes between {low} and {high} are not distinct after rounding; widen the range or ask for fewer"
        )
    return tuple(sizes)


def check_sizes(sizes: Iterable[Any], *, jitter: bool = False, seed: int = 0) -> tuple[tuple[int, ...], str]:
    """The sizes as increasing integers, and a warning if they share a divisor (empty if not).

    Powers of two only are replaced by jittered sizes if `jitter`; the warning says which.

    Raises
    ------
    SizesError
        Not integers, below 2, above 1e300, repeated, or fewer than 4.

    Examples
    --------
    >>> check_sizes([250, 33, 67, 131])
    ((33, 67, 131, 250), '')
    >>> check_sizes([2, 4, 8, 16])[1][:35]
    'all sizes are powers of two (2, 4, '
    """
    found = sorted(_integer("a size", value) for value in sizes)
    if bad := [n for n in found if n < 2]:
        raise SizesError(f"size {bad[0]} is not possible: sizes are integers of at least 2 (log n must be positive)")
    if found and found[-1] > MOST_SIZE:
        raise SizesError(f"a size has {len(str(found[-1])[:5000])} digits; sizes are at most 1e300 (they are divided as floats)")
    if len(set(found)) < len(found):
        twice = next(a for a, b in itertools.pairwise(found) if a == b)
        raise SizesError(f"size {twice} is given twice; samples of one size belong to one entry")
    if len(found) < LEAST_SIZES:
        given = f"{len(found)} size{'s' if len(found) != 1 else ''} given ({_listed(found)})"
        raise SizesError(f"{given}; at least {LEAST_SIZES} are required, 8 over two decades are good")
    if all(n & (n - 1) == 0 for n in found):
        return _powers_of_two(found, jitter, seed)
    if (divisor := math.gcd(*found)) > 1:
        text = f"all sizes are multiples of {_short(divisor)} ({_listed(found)}): sizes that are not were never seen (rule R17)"
        return tuple(found), f"{text}; mix in others"
    return tuple(found), ""


def _powers_of_two(found: list[int], jitter: bool, seed: int) -> tuple[tuple[int, ...], str]:
    """Jitter each by 2^U(-.45, .45) if asked, keeping the order and both parities in the upper half."""
    blind = f"all sizes are powers of two ({_listed(found)}): such a grid is blind to every other n, odd n first (rule R17)"
    if not jitter:
        return tuple(found), f"{blind}; measure at sizes in between too"
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(8, 2)))
    sizes = [max(2, round(n * 2 ** rng.uniform(-_JITTER, _JITTER))) for n in found]
    for place in range(1, len(sizes)):
        sizes[place] = max(sizes[place], sizes[place - 1] + 1)
    if len({n % 2 for n in sizes[len(sizes) // 2 :]}) == 1:
        sizes[-1] += 1
    return tuple(sizes), f"{blind}; jittered to {_listed(sizes)} (jitter=False keeps the grid)"


def upper_half(count: int) -> slice:
    """The last half of `count` sizes, the middle one included: where the slope is measured.

    >>> upper_half(8), upper_half(5)
    (slice(4, None, None), slice(2, None, None))
    """
    return slice(count // 2, None)


def _integer(name: str, value: Any) -> int:
    try:
        whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
        return int(value) if whole else operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise SizesError(f"{name} is {value!r}; sizes are positive integers") from None


def _short(value: int) -> str:
    return str(value) if value < 10**15 else f"{value:.3g}"


def _listed(values: Iterable[int]) -> str:
    texts = [_short(value) for value in values]
    return ", ".join(texts if len(texts) <= 8 else [*texts[:4], "..", *texts[-2:]])
