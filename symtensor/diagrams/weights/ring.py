"""Truncated power series with polynomial coefficients, in exact rationals.

A *series* maps a grade (a tuple of exponents of the counting variables, each at most its bound) to a polynomial. A
*polynomial* maps a tuple of exponents, those of the fields followed by that of the index symbol N, to a rational.
Both are plain dicts and are never changed once returned.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import add, sub

from symtensor.diagrams.weights.gaussian import Contraction, Poly, Powers, star

__all__ = ["Grade", "Poly", "Powers", "Ring", "Series", "divides"]

Grade = tuple[int, ...]
Series = dict[Grade, Poly]


def divides(low: Iterable[int], high: Iterable[int]) -> bool:
    """True if no entry of `low` exceeds that of `high`."""
    return all(a <= b for a, b in zip(low, high))


def _clean(series: Series) -> Series:
    kept = {g: {k: c for k, c in poly.items() if c} for g, poly in series.items()}
    return {g: poly for g, poly in kept.items() if poly}


def _accumulate(out: Poly, poly: Poly, factor: Fraction | int = 1) -> None:
    for key, value in poly.items():
        out[key] = out[key] + factor * value if key in out else factor * value


@dataclass(frozen=True)
class Ring:
    """Series with grades up to `bound` in `fields` fields and N, of total degree at most `cap` in the fields (None: any).

    >>> ring = Ring((3,), 1)
    >>> ring.exp({(1,): {(2, 0): Fraction(1)}})[(3,)]
    {(6, 0): Fraction(1, 6)}
    """

    bound: Grade
    fields: int
    cap: int | None = None

    @cached_property
    def unit(self) -> Powers:
        """The exponents of the monomial 1."""
        return (0,) * (self.fields + 1)

    @cached_property
    def origin(self) -> Grade:
        """The grade zero."""
        return (0,) * len(self.bound)

    @cached_property
    def grades(self) -> tuple[Grade, ...]:
        """All grades, by their sum."""
        return tuple(sorted(itertools.product(*(range(b + 1) for b in self.bound)), key=lambda g: (sum(g), g)))

    def constant(self, value: Fraction | int) -> Series:
        """The series of one number."""
        return {self.origin: {self.unit: Fraction(value)}} if value else {}

    def variable(self, index: int) -> Series:
        """The series of the field number `index`."""
        return {self.origin: {tuple(int(i == index) for i in range(self.fields + 1)): Fraction(1)}}

    def add(self, *terms: tuple[Fraction | int, Series]) -> Series:
        """The linear combination of `terms`, pairs (factor, series)."""
        out: Series = {}
        for factor, series in terms:
            for grade, poly in series.items():
                _accumulate(out.setdefault(grade, {}), poly, factor)
        return _clean(out)

    def multiply_poly(self, one: Poly, other: Poly, out: Poly, factor: Fraction | int = 1) -> None:
        """Add `factor` times the product of two polynomials to `out`, without the terms above the cap."""
        limit = self.cap
        for ka, ca in one.items():
            ca = ca * factor
            for kb, cb in other.items():
                key = tuple(map(add, ka, kb))
                if limit is None or sum(key) - key[-1] <= limit:
                    out[key] = out[key] + ca * cb if key in out else ca * cb

    def multiply(self, one: Series, other: Series) -> Series:
        """The product, truncated."""
        out: Series = {}
        for ga, pa in one.items():
            for gb, pb in other.items():
                grade = tuple(map(add, ga, gb))
                if divides(grade, self.bound):
                    self.multiply_poly(pa, pb, out.setdefault(grade, {}))
        return _clean(out)

    def exp(self, exponent: Series) -> Series:
        """exp of a series without a part of grade zero, from |g| E_g = sum_k |k| a_k E_{g-k}."""
        self._check_nilpotent(exponent)
        out: Series = {self.origin: {self.unit: Fraction(1)}}
        for grade in self.grades[1:]:
            part: Poly = {}
            for k, rest in self._splits(exponent, grade):
                if rest in out:
                    self.multiply_poly(exponent[k], out[rest], part, Fraction(sum(k), sum(grade)))
            part = {key: c for key, c in part.items() if c}
            if part:
                out[grade] = part
        return out

    def log(self, argument: Series) -> Series:
        """log of a series whose part of grade zero is 1, from |g| z_g = sum_k |k| a_k z_{g-k}."""
        if argument.get(self.origin) != {self.unit: 1}:
            raise ArithmeticError(f"the logarithm needs 1 at order zero, got {argument.get(self.origin)}")
        out: Series = {}
        for grade in self.grades[1:]:
            part: Poly = dict(argument.get(grade, {}))
            for k, rest in self._splits(out, grade):
                if rest in argument:
                    self.multiply_poly(out[k], argument[rest], part, Fraction(-sum(k), sum(grade)))
            part = {key: c for key, c in part.items() if c}
            if part:
                out[grade] = part
        return out

    def reciprocal(self, argument: Series) -> Series:
        """1 over a series whose part of grade zero is 1."""
        return self.exp(self.add((-1, self.log(argument))))

    def _splits(self, series: Series, grade: Grade) -> Iterator[tuple[Grade, Grade]]:
        for k in list(series):
            if divides(k, grade):
                yield k, tuple(map(sub, grade, k))

    def _check_nilpotent(self, series: Series) -> None:
        if self.origin in series:
            raise ArithmeticError("the exponential needs a series without a part of order zero")

    def star(self, later: Series, earlier: Series, lines: tuple[Contraction, ...]) -> Series:
        """The star product of `gaussian.star`, grade by grade."""
        out: Series = {}
        for ga, pa in later.items():
            for gb, pb in earlier.items():
                grade = tuple(map(add, ga, gb))
                if divides(grade, self.bound):
                    _accumulate(out.setdefault(grade, {}), star(pa, pb, lines))
        return _clean(out)

    def derivative(self, series: Series, index: int) -> Series:
        """The derivative with respect to the field number `index`."""
        out: Series = {}
        for grade, poly in series.items():
            part = {(*key[:index], key[index] - 1, *key[index + 1 :]): c * key[index] for key, c in poly.items() if key[index]}
            if part:
                out[grade] = part
        return out

    def of_degree(self, series: Series, low: int, high: int | None = None) -> Series:
        """The terms whose total degree in the fields is from `low` to `high`."""
        out: Series = {}
        for grade, poly in series.items():
            kept = {k: c for k, c in poly.items() if low <= sum(k) - k[-1] and (high is None or sum(k) - k[-1] <= high)}
            if kept:
                out[grade] = kept
        return out

    def substitute(self, series: Series, values: tuple[Series, ...], powers: dict[Powers, Series] | None = None) -> Series:
        """The series with every field replaced by one of `values`, truncated at the cap of this ring.

        `powers` keeps products of `values` from one call with the same values to the next.
        """
        powers = {} if powers is None else powers
        powers.setdefault((0,) * self.fields, self.constant(1))
        out: Series = {}
        for grade, poly in series.items():
            for key, factor in poly.items():
                for shift, value in self._power(powers, key[:-1], values).items():
                    total = tuple(map(add, grade, shift))
                    if divides(total, self.bound):
                        target = out.setdefault(total, {})
                        _accumulate(target, {(*k[:-1], k[-1] + key[-1]): c for k, c in value.items()}, factor)
        return _clean(out)

    def _power(self, powers: dict[Powers, Series], key: Powers, values: tuple[Series, ...]) -> Series:
        if key not in powers:
            index = next(i for i, power in enumerate(key) if power)
            lower = (*key[:index], key[index] - 1, *key[index + 1 :])
            powers[key] = self.multiply(self._power(powers, lower, values), values[index])
        return powers[key]
