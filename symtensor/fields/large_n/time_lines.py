r"""Lines and vertices of the Langevin model at large N as values of an exact field, without powers of N.

For t > 0 every line falls off as exp(-m t) or, auxiliary ones, exp(-M t), M = 2 m + k, whether it is a correlation or a response;
its later end is never a response field. So a line is given by its rate and three weights: `correlation`, `response` (earlier end
the response field) and `local`, the coefficient of delta(t) in the response.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy as sp

from symtensor.fields._linear_rates import linear_rates
from symtensor.fields._rate_field import RateField
from symtensor.fields.large_n.saddle import VectorTheory
from symtensor.fields.large_n.scaled import ScaledTheory

__all__ = ["SHIFT", "UNITS", "TimeRules"]

#: what the bubble adds to the decay rate 2 m of rho, k = 4 T s''/m; a symbol where it is no rational number
SHIFT = sp.Symbol("k", real=True)
#: powers of the rates (m, k) and of T in a field; a correlation has the sums of those of its fields
UNITS: Mapping[str, tuple[Any, Any]] = {
    "x": (-sp.Rational(1, 2), sp.Rational(1, 2)), "xt": (sp.Rational(1, 2), -sp.Rational(1, 2)),
    "rho": (-sp.S.One, sp.S.One), "mu": (sp.S.One, sp.S.Zero),
}  # fmt: skip


@dataclass(frozen=True)
class TimeRules:
    """The field of the coefficients at T = 1, and weights of lines and vertices in it."""

    scaled: ScaledTheory

    @property
    def theory(self) -> VectorTheory:
        return self.scaled.theory

    @cached_property
    def exact_shift(self) -> sp.Expr:
        """k = 4 T s''/m in the parameters of the theory."""
        return sp.expand(4 * self.theory.temperature * self.theory.slope(2) / self.theory.mass)

    @cached_property
    def shift(self) -> sp.Expr:
        """k, as a number or a symbol."""
        known = self.exact_shift.is_Rational and (self.theory.mass.is_Rational or self.exact_shift == 0)
        return self.exact_shift if known else SHIFT

    @cached_property
    def slopes(self) -> dict[int, sp.Expr]:
        """The scaled derivatives s^(n) T^(n-1)/m^n, n > 2, that do not vanish: numbers or symbols."""
        heat, mass = self.theory.temperature, self.theory.mass
        exact = {n: self.theory.slope(n) * heat ** (n - 1) / mass**n for n in self.scaled.valences}
        return {n: value if value.is_Rational else sp.Symbol(f"s_{n}", real=True) for n, value in exact.items()}

    @cached_property
    def basis(self) -> tuple[sp.Expr, ...]:
        return linear_rates((self.theory.mass, self.shift))[0]

    @cached_property
    def field(self) -> RateField:
        return RateField(self.basis, tuple(s for s in self.slopes.values() if not s.is_Rational))

    def rate(self, auxiliary: bool) -> tuple[int, ...]:
        """The rate of a line as a vector over the basis."""
        mass, shift = linear_rates((self.theory.mass, self.shift))[1]
        return tuple(2 * a + b for a, b in zip(mass, shift)) if auxiliary else mass

    @cached_property
    def _elements(self) -> tuple[Any, Any, Any, Any]:
        """m, k, M and g/T = 2 s''/T = k m/2, at T = 1."""
        field, shift = self.field, linear_rates((self.theory.mass, self.shift))[1][1]
        mass, decay = field.energy(self.rate(False)), field.energy(self.rate(True))
        k = field.energy(shift) if any(shift) else field.zero
        return mass, k, decay, k * mass * field.number(sp.QQ(1, 2))

    def correlation(self, first: str, second: str) -> Any:
        """The weight of a correlation of two of x, rho, mu (both x, or none)."""
        mass, _, decay, slope = self._elements
        if first == second == "x":
            return self.field.one / mass
        value = self.field.number(4) / mass / decay
        for name in (first, second):
            value = value * slope if name == "mu" else value
        return value

    def static(self, first: str, second: str) -> Any:
        """The line of two of x, rho, lam of the static theory, x standing for phi."""
        mass, k, decay, _ = self._elements
        pair = {first, second}
        if pair == {"lam"}:
            return k * mass * mass * self.field.number(-2) / decay
        return mass * self.field.number(-4) / decay if "lam" in pair else self.correlation(first, second)

    def static_vertex(self, valence: int = 0) -> Any:
        """The factor of a vertex of the static theory."""
        minus_half = self.field.number(sp.QQ(-1, 2))
        return self.vertex("mut", valence) * minus_half if valence else self.field.number(-1)

    def response(self, later: str, earlier: str) -> Any:
        """The weight of a response of x, rho or mu to the response field xt, rhot or mut."""
        mass, k, _, slope = self._elements
        if (later, earlier) == ("rho", "mut"):
            return self.field.number(-2) / mass
        value = self.field.one if later == "x" else k * self.field.number(-1)
        return value * slope if (later, earlier) == ("mu", "rhot") else value

    def local(self, later: str, earlier: str) -> Any:
        """The coefficient of delta(t) in the response."""
        if (later, earlier) == ("mu", "rhot"):
            return self._elements[3]
        return self.field.one if (later, earlier) in (("rho", "rhot"), ("mu", "mut")) else self.field.zero

    def vertex(self, response: str, valence: int = 0) -> Any:
        """The factor of a vertex with the given response leg; `valence` is that of a vertex of s."""
        if response != "mut":
            return self.field.number({"xt": -1, "rhot": 2}[response])
        value = self.field.number(2)
        known: Any = self.slopes[valence]
        scaled = self.field.number(sp.QQ(known.p, known.q)) if known.is_Rational else self.field.weight(known)
        for _ in range(valence):
            value = value * self._elements[0]
        return value * scaled

    def written(self, value: Any, degree: Any) -> sp.Expr:
        """A coefficient of the given degree in the rates, T = 1, in the parameters of the theory (k and m stay)."""
        found: Any = self.field.expression(value, degree)
        heat, mass = self.theory.temperature, self.theory.mass
        names = {s: self.theory.slope(n) * heat ** (n - 1) / mass**n for n, s in self.slopes.items() if s.is_Symbol}
        return found.xreplace(names)
