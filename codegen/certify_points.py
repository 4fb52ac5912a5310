"""Where a certificate looks: the declared domain of every argument, and points in it at all scales.

Errors hide at small arguments (cancellation), at large ones (overflow, saturation) and at special points (removable
singularities), so the magnitudes are drawn in three classes, and zeros, ones and the ends of the domain are visited first.
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import sympy as sp

from symtensor.kernels import Argument, ScalarKernel

from .errors import GenerationError

__all__ = ["Interval", "domain_of", "sample_points"]

#: magnitudes of an unbounded argument
_SMALL, _ORDINARY, _LARGE = (1e-9, 1e-1), 2.0, 30.0


@dataclass(frozen=True, slots=True)
class Interval:
    """Values of one argument: low <= value <= high, the ends left out if open; whole numbers if `integer`."""

    name: str
    low: float = -_LARGE
    high: float = _LARGE
    open_low: bool = False
    open_high: bool = False
    integer: bool = False
    nonzero: bool = False

    def __contains__(self, value: float) -> bool:
        above = value > self.low or (value == self.low and not self.open_low)
        below = value < self.high or (value == self.high and not self.open_high)
        return above and below and not (self.nonzero and value == 0) and not (self.integer and value != round(value))

    def __str__(self) -> str:
        left, right = "(" if self.open_low else "[", ")" if self.open_high else "]"
        return f"{self.name} in {left}{self.low:g}, {self.high:g}{right}" + (" whole" if self.integer else "")


def domain_of(kernel: ScalarKernel, given: Mapping[str, tuple[float, float]] | None = None) -> dict[str, Interval]:
    """The domain of each argument: what is given, within what the assumptions of its symbol allow.

    Raises
    ------
    GenerationError
        A domain for an argument that does not exist, empty, or not a pair of finite numbers.
    """
    given = dict(given or {})
    symbols: dict[str, sp.Symbol] = {}
    for _, expr in kernel.outputs:
        symbols |= {symbol.name: symbol for symbol in sp.sympify(expr).free_symbols}
    names = [argument.name for argument in kernel.arguments]
    return {name: _interval(name, symbols.get(name), given.get(name)) for name in names}


def check_domain(arguments: tuple[Argument, ...], given: Mapping[str, tuple[float, float]]) -> None:
    """Raise unless every domain is one of these arguments' and an interval of finite numbers."""
    names = [argument.name for argument in arguments]
    for name, ends in given.items():
        if name not in names:
            raise GenerationError(f"domain of {name!r}, which is not an argument; arguments: {', '.join(names)}")
        if len(ends) != 2 or not all(np.isfinite(ends)) or not ends[0] < ends[1]:
            raise GenerationError(f"domain of {name}: {ends}; give a pair of finite numbers (low, high) with low < high")


def _interval(name: str, symbol: sp.Symbol | None, ends: tuple[float, float] | None) -> Interval:
    low, high = (-_LARGE, _LARGE) if ends is None else map(float, ends)
    open_low = open_high = False
    if symbol is not None and symbol.is_nonnegative and low <= 0:
        low, open_low = 0.0, bool(symbol.is_positive)
    if symbol is not None and symbol.is_nonpositive and high >= 0:
        high, open_high = 0.0, bool(symbol.is_negative)
    integer, nonzero = symbol is not None and bool(symbol.is_integer), symbol is not None and bool(symbol.is_nonzero)
    if low >= high:
        raise GenerationError(f"domain of {name}: ({low:g}, {high:g}) is empty under the assumptions of the symbol")
    return Interval(name, low, high, open_low, open_high, integer, nonzero)


def sample_points(domain: Mapping[str, Interval], seed: int, dtype: str = "float64") -> Iterator[dict[str, float]]:
    """Points without end, each a number of this type: special points first, then random ones.

    >>> points = sample_points({"x": Interval("x"), "y": Interval("y", 0, 1)}, 0)
    >>> next(points), next(points)
    ({'x': 0.0, 'y': 0.0}, {'x': 1.0, 'y': 1.0})
    """
    rng = np.random.default_rng(seed)
    yield from _distinct(_special(domain, rng, dtype))
    while True:
        yield {name: _random(interval, rng, dtype) for name, interval in domain.items()}


def _special(domain: Mapping[str, Interval], rng: np.random.Generator, dtype: str) -> Iterator[dict[str, float]]:
    """All zeros, all ones, all ends; then each argument at its own special values, the others ordinary."""
    for value in (0.0, 1.0):
        if all(value in interval for interval in domain.values()):
            yield dict.fromkeys(domain, value)
    for name, interval in domain.items():
        for value in (0.0, interval.low, interval.high):
            number = _rounded(value, interval, dtype)
            if number in interval:
                yield {key: _random(other, rng, dtype, 0) for key, other in domain.items()} | {name: number}


def _distinct(points: Iterator[dict[str, float]]) -> Iterator[dict[str, float]]:
    seen: set[tuple[float, ...]] = set()
    for point in points:
        if (key := tuple(point.values())) not in seen:
            seen.add(key)
            yield point


def _random(interval: Interval, rng: np.random.Generator, dtype: str, kind: int | None = None) -> float:
    """One value: ordinary (half of them), small, or from the whole interval."""
    kind = int(rng.choice(4, p=(0.5, 0.25, 0.15, 0.1))) if kind is None else kind
    for _ in range(200):
        value = _rounded(_drawn(interval, rng, kind), interval, dtype)
        if value in interval:
            return value
        kind = 2
    raise GenerationError(f"no number of type {dtype} found in {interval}")


def _drawn(interval: Interval, rng: np.random.Generator, kind: int) -> float:
    low, high = interval.low, interval.high
    if kind == 0:
        left, right = max(low, -_ORDINARY), min(high, _ORDINARY)
        return rng.uniform(left, right) if left < right else rng.uniform(low, high)
    if kind == 1:  # near 0, or near an end if 0 is outside
        size = 10 ** rng.uniform(*np.log10(_SMALL))
        if interval.integer:
            return float(rng.integers(-2, 3))
        if low <= 0 <= high:
            return float(rng.choice((-1, 1))) * size
        return low + size * (high - low) if rng.uniform() < 0.5 else high - size * (high - low)
    if kind == 2 or low * high <= 0:
        return rng.uniform(low, high)
    return float(np.sign(low) * np.exp(rng.uniform(*sorted(np.log(np.abs((low, high)))))))


def _rounded(value: float, interval: Interval, dtype: str) -> float:
    """The nearest number of this type; a rounded end of the interval is moved inside."""
    kind = np.dtype(dtype).type
    number = kind(round(value) if interval.integer else value)
    inside = interval.low <= number <= interval.high
    return float(number if inside else np.nextafter(number, kind((interval.low + interval.high) / 2)))
