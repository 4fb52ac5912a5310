"""Numbers of diagrams from Burnside's lemma, without a diagram.

Isomorphism classes are the orbits of pairings of legs under permutations of equal vertices, of equal legs of a vertex,
and of unlabelled external legs. A pairing is fixed by a permutation if cycles of legs are joined to cycles of the same
length (i ways for length i), or an even cycle to itself (1 way). With a normal variable p_i for every field and cycle
length i, of covariance i for every propagator (and mean 1 for even i and a propagator that joins a field to itself),

    number = E exp( sum_i (1/i) sum_v t^(i grade_v) prod_f h_k(p_i, p_2i, ..) ) prod_legs,

h_k the complete symmetric function, labelled legs p_1, unlabelled ones h_n. The variables are summed out one cycle length
after the other, which keeps the polynomials short. Connected diagrams: the inverse Euler transform.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import product
from math import factorial, prod
from typing import Literal

from symtensor.diagrams.errors import RequestError
from symtensor.diagrams.model import Model
from symtensor.diagrams.weights.gaussian import Poly, Powers
from symtensor.diagrams.weights.ring import Grade, Ring, Series, divides
from symtensor.diagrams.weights.sums import by_loops, check_legs
from symtensor.diagrams.weights.theory import Theory, check_grading

__all__ = ["burnside_by_loops", "burnside_series"]

#: A power sum: (cycle length, number of the field).
PowerSum = tuple[int, int]
#: A monomial in power sums: sorted pairs (power sum, exponent).
Monomial = tuple[tuple[PowerSum, int], ...]
Counts = dict[Grade, Fraction]


def burnside_series(
    model: Model,
    legs: Mapping[str, int],
    *,
    kind: Literal["all", "connected"],
    grading: Mapping[str, Grade],
    bound: Grade,
    labelled: bool = True,
) -> dict[Grade, int]:
    """The numbers of diagrams of a class, by grade up to `bound`; response loops are kept (causality none).

    Legs are source points. Raises RequestError for another class, InfiniteRequestError if a grade is zero.

    >>> from symtensor.diagrams.theories import theory
    >>> burnside_series(theory("phi4"), {}, kind="connected", grading={"g4": (1,)}, bound=(4,))
    {(1,): 1, (2,): 2, (3,): 4, (4,): 10}
    """
    if kind not in ("all", "connected"):
        raise RequestError(f"the class {kind!r} has no Burnside count; choose all or connected")
    check_legs(model, legs)
    check_grading(model, grading, bound)
    count = _Count(Theory(model), {name: tuple(grade) for name, grade in grading.items()}, tuple(bound))
    wanted = tuple(legs.get(name, 0) for name in count.theory.names)
    if kind == "all":
        values = count.every(wanted, labelled)
    else:
        values = _connected(count, wanted, labelled)
    return {grade: _integer(value) for grade, value in sorted(values.items()) if value}


def burnside_by_loops(
    model: Model, legs: Mapping[str, int], loops: int, *, kind: Literal["all", "connected"], labelled: bool = True
) -> int:
    """The number of diagrams with `loops` loops; families are expanded as far as the loops allow.

    >>> from symtensor.diagrams.theories import theory
    >>> burnside_by_loops(theory("phi3"), {"x": 2}, 3, kind="connected", labelled=False)
    49
    """
    grades = by_loops(model, legs, loops)
    if grades is None:
        return 0
    full, grading, order = grades
    series = burnside_series(full, legs, kind=kind, grading=grading, bound=(order,), labelled=labelled)
    return series.get((order,), 0)


def _integer(value: Fraction) -> int:
    if value.denominator != 1:
        raise ArithmeticError(f"Burnside's lemma gave {value}, which is no number of orbits")
    return value.numerator


@dataclass(frozen=True)
class _Count:
    """The numbers of all diagrams of a theory."""

    theory: Theory
    grading: Mapping[str, Grade]
    bound: Grade

    @cached_property
    def vertices(self) -> tuple[tuple[Grade, Powers], ...]:
        """Grades and numbers of legs by field."""
        chosen = [v for v in self.theory.model.vertices if v.name in self.grading and divides(self.grading[v.name], self.bound)]
        return tuple((self.grading[v.name], self.theory.powers(v.legs)[:-1]) for v in chosen)

    def every(self, legs: Powers, labelled: bool) -> Counts:
        """The numbers of all diagrams with `legs`."""
        state = _one(self.bound)
        if not labelled:
            state = {next(iter(state)): dict(_complete_product(legs, 1))}
        elif any(legs):
            state = {next(iter(state)): {tuple(((1, f), n) for f, n in enumerate(legs) if n): Fraction(1)}}
        length = 1
        while True:
            state = self._summed(_times(state, self._vertices_of(length), self.bound), length)
            length += 1
            alive = any(key for poly in state.values() for key in poly)
            if not alive and not self._fits(length):
                return {grade: poly[()] for grade, poly in state.items() if poly.get(())}

    def _fits(self, length: int) -> bool:
        return any(divides([length * g for g in grade], self.bound) for grade, _ in self.vertices)

    @cached_property
    def _factors(self) -> dict[int, dict[Grade, dict[Monomial, Fraction]]]:
        """What `_vertices_of` found, for other numbers of legs."""
        return {}

    def _vertices_of(self, length: int) -> dict[Grade, dict[Monomial, Fraction]]:
        """exp of (1/i) sum_v t^(i grade) prod h: the vertices that a permutation moves in cycles of `length`."""
        if length not in self._factors:
            self._factors[length] = self._product(length)
        return self._factors[length]

    def _product(self, length: int) -> dict[Grade, dict[Monomial, Fraction]]:
        out = _one(self.bound)
        for grade, legs in self.vertices:
            for monomial, value in _complete_product(legs, length).items():
                step = tuple(length * g for g in grade)
                out = _times(out, _exponential(step, monomial, value / length, self.bound), self.bound)
        return out

    def _summed(self, state: dict[Grade, dict[Monomial, Fraction]], length: int) -> dict[Grade, dict[Monomial, Fraction]]:
        """The mean over the variables of one cycle length."""
        out: dict[Grade, dict[Monomial, Fraction]] = {}
        for grade, poly in state.items():
            target = out.setdefault(grade, {})
            for key, value in poly.items():
                powers = [0] * len(self.theory.names)
                for (i, f), power in key:
                    if i == length:
                        powers[f] = power
                mean = _fixed_pairings(self.theory.covariance(), length, tuple(powers))
                if mean:
                    rest = tuple(item for item in key if item[0][0] != length)
                    target[rest] = target.get(rest, Fraction(0)) + value * mean
        return out


def _one(bound: Grade) -> dict[Grade, dict[Monomial, Fraction]]:
    return {(0,) * len(bound): {(): Fraction(1)}}


def _times(
    one: dict[Grade, dict[Monomial, Fraction]], other: dict[Grade, dict[Monomial, Fraction]], bound: Grade
) -> dict[Grade, dict[Monomial, Fraction]]:
    out: dict[Grade, dict[Monomial, Fraction]] = {}
    for ga, pa in one.items():
        for gb, pb in other.items():
            grade = tuple(a + b for a, b in zip(ga, gb))
            if divides(grade, bound):
                target = out.setdefault(grade, {})
                for ka, ca in pa.items():
                    for kb, cb in pb.items():
                        key = _joined(ka, kb)
                        target[key] = target.get(key, Fraction(0)) + ca * cb
    return out


def _joined(one: Monomial, other: Monomial) -> Monomial:
    if not one or not other:
        return one or other
    powers = dict(one)
    for name, power in other:
        powers[name] = powers.get(name, 0) + power
    return tuple(sorted(powers.items()))


def _exponential(grade: Grade, monomial: Monomial, value: Fraction, bound: Grade) -> dict[Grade, dict[Monomial, Fraction]]:
    """exp(value t^grade monomial)."""
    out: dict[Grade, dict[Monomial, Fraction]] = {}
    factor, number = Fraction(1), 0
    while divides(total := tuple(number * g for g in grade), bound):
        out[total] = {tuple((name, number * power) for name, power in monomial) if number else (): factor}
        number += 1
        factor = factor * value / number
    return out


@cache
def _complete(legs: int, field: int, length: int) -> tuple[tuple[Monomial, Fraction], ...]:
    """h_legs of one field in the power sums p_(length j): sum over partitions of prod p^m / (m! j^m)."""
    out = []
    for partition in _partitions(legs, legs):
        value = Fraction(1, prod(factorial(m) * part**m for part, m in partition))
        out.append((tuple(sorted(((length * part, field), m) for part, m in partition)), value))
    return tuple(out)


def _partitions(total: int, largest: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Partitions as pairs (part, multiplicity)."""
    if total == 0:
        yield ()
        return
    for part in range(min(total, largest), 0, -1):
        for number in range(1, total // part + 1):
            for rest in _partitions(total - part * number, min(part - 1, total - part * number)):
                yield ((part, number), *rest)


@cache
def _complete_product(legs: Powers, length: int) -> dict[Monomial, Fraction]:
    out: dict[Monomial, Fraction] = {}
    for choice in product(*(_complete(number, field, length) for field, number in enumerate(legs))):
        key = tuple(sorted(item for monomial, _ in choice for item in monomial))
        out[key] = out.get(key, Fraction(0)) + prod((value for _, value in choice), start=Fraction(1))
    return out


@cache
def _fixed_pairings(lines: tuple[tuple[int, ...], ...], length: int, cycles: Powers) -> int:
    """How many pairings of `cycles` (by field) of one length a permutation leaves fixed."""
    if not any(cycles):
        return 1
    first = next(i for i, number in enumerate(cycles) if number)
    rest = tuple(n - (i == first) for i, n in enumerate(cycles))
    total = 0
    if length % 2 == 0 and lines[first][first]:
        total += _fixed_pairings(lines, length, rest)
    for other, number in enumerate(rest):
        if number and lines[first][other]:
            left = tuple(n - (i == other) for i, n in enumerate(rest))
            total += length * number * _fixed_pairings(lines, length, left)
    return total


def _connected(count: _Count, legs: Powers, labelled: bool) -> Counts:
    """Labelled legs: components with legs differ, so a logarithm in the legs. Otherwise: multisets of components."""
    size = len(legs)
    bound = (*count.bound, *legs)
    ring = Ring(bound, 0)
    series: Series = {}
    for chosen in product(*(range(n + 1) for n in legs)):
        scale = prod(map(factorial, chosen)) if labelled else 1
        for grade, value in count.every(chosen, labelled).items():
            series[(*grade, *chosen)] = {(0,): value / scale}
    logarithm = ring.log(series)
    if not (labelled and any(legs)):
        logarithm = _inverse_euler(logarithm, bound)
    scale = prod(map(factorial, legs)) if labelled else 1
    cut = len(count.bound)
    return {g[:cut]: poly[(0,)] * scale for g, poly in logarithm.items() if g[len(bound) - size :] == legs}


def _inverse_euler(logarithm: Series, bound: Grade) -> Series:
    """sum_k mu(k)/k log Z(t^k)."""
    out: Series = {}
    for grade, poly in logarithm.items():
        multiple = 1
        while divides(target := tuple(multiple * g for g in grade), bound):
            sign = _moebius(multiple)
            if sign:
                part: Poly = out.setdefault(target, {})
                part[(0,)] = part.get((0,), Fraction(0)) + poly[(0,)] * Fraction(sign, multiple)
            multiple += 1
    return out


def _moebius(number: int) -> int:
    sign, factor = 1, 2
    while number > 1:
        if number % factor == 0:
            number //= factor
            if number % factor == 0:
                return 0
            sign = -sign
        factor += 1
    return sign
