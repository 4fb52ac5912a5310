"""Exact coefficients of time integrals: rational functions whose denominators are products of energies.

A coefficient is homogeneous in the rates: every internal time integrated lowers the degree by one, every power of a time
difference raises it by one. The first elementary rate is therefore set to one here and restored at the end; with a single
elementary rate (or rational rates) all arithmetic is that of rational numbers, with complex rational rates that of Gaussian
rationals. With several symbolic rates denominators stay factored: only division by linear forms is ever needed, so that a
common factor is found by trial division instead of a polynomial greatest common divisor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sympy as sp
from sympy.polys.domains import QQ, QQ_I
from sympy.polys.rings import PolyElement, PolyRing

__all__ = ["RateField", "RateFraction"]

Form = tuple[int, ...]


class RateField:
    """Coefficients for given elementary rates and opaque weights (of degree zero in the rates)."""

    def __init__(self, rates: Sequence[sp.Expr], weights: Sequence[sp.Expr] = ()) -> None:
        self.rates = tuple(rates)
        self.weights = tuple(weights)
        self._complex = len(self.rates) == 2 and all(rate.is_Rational or (rate / sp.I).is_Rational for rate in self.rates)
        self.domain: Any = QQ_I if self._complex else QQ
        self._others = 0 if self._complex else max(len(self.rates) - 1, 0)
        names = [sp.Dummy() for _ in range(self._others + len(self.weights))]
        self.ring: Any = PolyRing(names, self.domain) if names else None
        self._gens: tuple[Any, ...] = self.ring.gens if names else ()
        self._forms: dict[Form, Any] = {}
        self.one: Any = self.number(1)
        self.zero: Any = self.number(0)

    def number(self, value: Any) -> Any:
        """The value of an integer or of a rational number of the domain."""
        converted = self.domain.convert(value)
        return RateFraction(self, self.ring(converted), {}) if self.ring else converted

    def energy(self, vector: Form) -> Any:
        """The value of an energy that is not zero."""
        if self._complex:
            return self.number(self.domain.from_sympy(sp.Add(*(n * rate for n, rate in zip(vector, self.rates)))))
        if not self.ring:
            return QQ(vector[0])
        content = math.gcd(*vector) * (1 if next(n for n in vector if n) > 0 else -1)
        primitive = tuple(n // content for n in vector)
        denominator = {} if primitive == (1,) + (0,) * self._others else {primitive: -1}
        return RateFraction(self, self.ring(QQ(content)), denominator)

    def form(self, primitive: Form) -> Any:
        """The polynomial of a primitive energy, the first rate being one."""
        if primitive not in self._forms:
            self._forms[primitive] = self.ring(primitive[0]) + sum(n * g for n, g in zip(primitive[1:], self._gens) if n)
        return self._forms[primitive]

    def weight(self, expression: sp.Expr) -> Any:
        """The value of a weight: a rational number, or one of `weights`."""
        if isinstance(expression, sp.Rational):
            return self.number(QQ(expression.p, expression.q))
        return RateFraction(self, self._gens[self._others + self.weights.index(expression)], {})

    def expression(self, value: Any, degree: int) -> sp.Expr:
        """SymPy expression of a value that is homogeneous of the given degree in the rates."""
        scaled = bool(self.rates) and not self._complex
        if not self.ring:
            return self.domain.to_sympy(value) * (self.rates[0] ** degree if scaled else sp.Integer(1))
        top, top_degree = self._homogeneous(value.numerator)
        energies = (sp.Add(*(n * r for n, r in zip(form, self.rates))) ** power for form, power in value.denominator.items())
        first = self.rates[0] ** (degree - top_degree + sum(value.denominator.values())) if scaled else sp.Integer(1)
        return top * first / sp.Mul(*energies)

    def _homogeneous(self, polynomial: Any) -> tuple[sp.Expr, int]:
        """The polynomial with the first rate put back, and its degree in the rates."""
        degree = max(sum(monomial[: self._others]) for monomial in polynomial)
        base = (*self.rates[1 : self._others + 1], *self.weights)
        terms = []
        for monomial, c in sorted(polynomial.items()):
            missing = degree - sum(monomial[: self._others])
            first = self.rates[0] ** missing if missing else sp.Integer(1)
            terms.append(self.domain.to_sympy(c) * first * sp.Mul(*(b**n for b, n in zip(base, monomial))))
        return sp.Add(*terms), degree


class RateFraction:
    """numerator / product of form^power; an energy itself is the inverse of a denominator (a negative power)."""

    __slots__ = ("denominator", "field", "numerator")

    def __init__(self, field: RateField, numerator: PolyElement, denominator: dict[Form, int]) -> None:
        self.field = field
        self.numerator: Any = numerator
        self.denominator = denominator

    def __bool__(self) -> bool:
        return bool(self.numerator)

    def __mul__(self, other: RateFraction) -> RateFraction:
        powers = _sum_of_powers(self.denominator, other.denominator, 1)
        return RateFraction(self.field, self.numerator * other.numerator, powers)

    def __truediv__(self, other: RateFraction) -> RateFraction:
        """Division by a number or an energy: its numerator is a number."""
        powers = _sum_of_powers(self.denominator, other.denominator, -1)
        return RateFraction(self.field, self.numerator * (1 / other.numerator.LC), powers)

    def __add__(self, other: RateFraction) -> RateFraction:
        if not self.numerator or not other.numerator:
            return self if self.numerator else other
        if self.denominator == other.denominator:
            return RateFraction(self.field, self.numerator + other.numerator, self.denominator)._reduced()
        left, right, common = self.numerator, other.numerator, {}
        for form in {**self.denominator, **other.denominator}:
            mine, yours = self.denominator.get(form, 0), other.denominator.get(form, 0)
            common[form] = max(mine, yours)
            if mine != yours:
                lacking = self.field.form(form) ** abs(mine - yours)
                left, right = (left * lacking, right) if mine < yours else (left, right * lacking)
        return RateFraction(self.field, left + right, common)._reduced()

    def __radd__(self, other: Any) -> RateFraction:
        """`sum` starts at the integer 0."""
        return self + self.field.number(other)

    def _reduced(self) -> RateFraction:
        """Common factors divided out."""
        if not self.numerator:
            return self.field.zero
        numerator, denominator = self.numerator, {}
        for form, power in self.denominator.items():
            polynomial = self.field.form(form)
            while power > 0:
                quotient, rest = divmod(numerator, polynomial)
                if rest:
                    break
                numerator, power = quotient, power - 1
            if power:
                denominator[form] = power
        return RateFraction(self.field, numerator, denominator)


def _sum_of_powers(left: dict[Form, int], right: dict[Form, int], sign: int) -> dict[Form, int]:
    powers = dict(left)
    for form, power in right.items():
        total = powers.get(form, 0) + sign * power
        if total:
            powers[form] = total
        else:
            powers.pop(form, None)
    return powers
