r"""Scaled variables, in which every coefficient of the 1/N expansion is a polynomial with rational coefficients.

In units where T = 1 and m = 1 a theory is the numbers ``s_k -> s^(k) T^(k-1) / m^k`` and p = m^2/q, with 2 s_2 = 1/p - 1. The
dressed lines are then 2 p/N, -2 p/N and -2 (1 - p)/N, so that all orders are polynomials in p, s_3, s_4, ..; a leg phi counts
(T/m)^(1/2), a leg rho T/m, a leg lam m, and amputated legs the reciprocals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy as sp
from sympy.polys.rings import ring

from symtensor.fields.large_n.saddle import VectorTheory

__all__ = ["ScaledTheory", "dimension"]


@dataclass(frozen=True)
class ScaledTheory:
    """The ring QQ[x, p, s_3, .., s_top] of a theory: x = 1/N; derivatives of s that vanish are zero in it."""

    theory: VectorTheory
    top: int

    @cached_property
    def valences(self) -> tuple[int, ...]:
        """The orders from 3 to `top` of the derivatives of s that do not vanish."""
        return tuple(k for k in range(3, self.top + 1) if self.theory.slope(k) != 0)

    @cached_property
    def ring(self) -> Any:
        return ring(["x", "p", *(f"s_{k}" for k in self.valences)], sp.QQ)[0]

    @property
    def x(self) -> Any:
        return self.ring.gens[0]

    @property
    def p(self) -> Any:
        return self.ring.gens[1]

    def slope(self, order: int) -> Any:
        """s_k for k >= 3."""
        return self.ring.gens[2 + self.valences.index(order)] if order in self.valences else self.ring.zero

    def line(self, first: str, second: str) -> Any:
        """A dressed line of two of phi, rho, lam without its power of N."""
        pair = {first, second}
        if pair == {"phi"}:
            return self.ring.one
        if pair == {"lam"}:
            return 2 * (self.p - 1)
        return 2 * self.p if pair == {"rho"} else -2 * self.p

    def truncated(self, value: Any, order: int) -> Any:
        """A ring element without powers of x beyond `order`."""
        return self.ring.from_dict({powers: c for powers, c in value.terms() if powers[0] <= order})

    def coefficient(self, value: Any, order: int) -> Any:
        """The coefficient of x^order."""
        return self.ring.from_dict({(0, *powers[1:]): c for powers, c in value.terms() if powers[0] == order})

    def written(self, value: Any) -> sp.Expr:
        """A polynomial without x in the variables of the theory, over a power of q."""
        heat, mass, curvature = self.theory.temperature, self.theory.mass, self.theory.curvature
        most = max((powers[1] for powers in value), default=0)
        rows: list[sp.Expr] = [sp.S.Zero] * (most + 1)
        for (_, power, *slopes), c in value.terms():
            factors = [self.theory.slope(k) * heat ** (k - 1) / mass**k for k in self.valences]
            rows[power] += sp.QQ.to_sympy(c) * sp.Mul(*(f**n for f, n in zip(factors, slopes)))
        over = sp.Add(*(row * mass ** (2 * i) * curvature ** (most - i) for i, row in enumerate(rows)))
        return sp.factor_terms(sp.expand(over)) / curvature**most


def dimension(theory: VectorTheory, legs: Iterable[tuple[str, int]], amputated: bool = False) -> sp.Expr:
    """The factor that gives a function of the given legs back its dimension."""
    half = sp.Rational(1, 2)
    units: Mapping[str, sp.Expr] = {"phi": theory.rho**half, "rho": theory.rho, "lam": theory.mass}
    return sp.Mul(*(units[name] ** (-count if amputated else count) for name, count in legs))
