"""Backward recursion of conditional moments over layers, shared by the exactly solvable networks of `layered_exact`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import sympy as sp
from sympy.polys.rings import PolyElement, PolyRing

#: coefficients of 1, 1/n, 1/n^2, ..
WidthSeries: TypeAlias = "tuple[sp.Rational, ...]"
Index: TypeAlias = "tuple[int, ...]"


def exact_number(value: Any, name: str) -> sp.Rational:
    """A rational from an integer, fraction, text or float (read as the decimal it prints as)."""
    try:
        number = sp.Rational(str(value)) if isinstance(value, float) else sp.Rational(value)
    except (TypeError, ValueError):
        number = sp.nan
    if not isinstance(number, sp.Rational) or not number.is_finite:
        raise ValueError(f"{name} = {value!r} is not a rational number; give an integer, a fraction or a finite decimal")
    return number


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _parts(index: Index) -> Iterator[tuple[int, Index, Index]]:
    """Multi-indices j <= index that hold the first factor of `index`: (number of choices, j, index - j)."""
    first = next(place for place, power in enumerate(index) if power)
    for chosen in itertools.product(*(range(power + 1) for power in index)):
        if chosen[first]:
            ways = math.prod(
                math.comb(power - (place == first), taken - (place == first))
                for place, (power, taken) in enumerate(zip(index, chosen))
            )
            yield ways, chosen, tuple(power - taken for power, taken in zip(index, chosen))


def cumulant_from_moments(factors: Sequence[Any], moment: Any) -> Any:
    """Joint cumulant of `factors` (a sequence, repetitions allowed) from the function `moment(sequence)`."""
    known: dict[Index, Any] = {}

    def cumulant(places: Index) -> Any:
        if places not in known:
            total, rest = moment([factors[p] for p in places]), places[1:]
            for size in range(len(rest)):
                for others in itertools.combinations(rest, size):
                    left = [factors[p] for p in rest if p not in others]
                    total = total - cumulant((places[0], *others)) * moment(left)
            known[places] = total
        return known[places]

    return cumulant(tuple(range(len(factors))))


def series(value: PolyElement, shift: int, orders: int | None) -> WidthSeries:
    """Coefficients of n^shift times a polynomial in x (generator 0 of its ring), from n^0 on."""
    table = {monomial[0] - shift: sp.Rational(str(coefficient)) for monomial, coefficient in value.terms()}
    require(not any(power < 0 for power in table), "a cumulant of means of n neurons is not as small as it must be")
    last = max(table, default=0) if orders is None else orders
    return tuple(table.get(power, sp.Integer(0)) for power in range(last + 1))  # type: ignore[return-value]


class Chain:
    """Backward recursion over layers of conditional moments; subclasses say what one layer does."""

    __slots__ = ()
    ring: PolyRing
    orders: int | None

    def _cut(self, value: PolyElement, orders: int | None) -> PolyElement:
        """Drop powers of x = 1/n beyond `orders`."""
        if orders is None:
            return value
        return self.ring.from_dict({monomial: c for monomial, c in value.terms() if monomial[0] <= orders})

    def _moments(self, index: Index, cumulant: Any, known: dict[Index, PolyElement], orders: int | None) -> PolyElement:
        """Moment of a multi-index from joint cumulants: m(k) = sum over j <= k with the first factor of kappa(j) m(k - j)."""
        if not any(index):
            return self.ring.one
        if index not in known:
            total = self.ring.zero
            for ways, j, rest in _parts(index):
                total += ways * cumulant(j) * self._moments(rest, cumulant, known, orders)
            known[index] = self._cut(total, orders)
        return known[index]
