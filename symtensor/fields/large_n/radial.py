r"""Second route without diagrams: cumulants of phi_1, rho, lam in powers of 1/N by integration by parts of the radial integral.

In scaled variables (`scaled`), with delta = rho - 1 and h(rho) = 1/2 - rho s'(rho), integrating
d/d rho [delta^j rho^(N/2) exp(-N s)] gives

    j <delta^(j-1) rho> + N <delta^j h> = 0,

and h = h_1 delta + h_2 delta^2 + .., h_1 = -1/(2 p): with <delta^k> = O(N^(-k/2)) each order in 1/N follows from the one
before. Components and the multiplier are moments of rho too:

    <phi_1^(2a) f(rho)> = (2a - 1)!! N^a / (N (N + 2) .. (N + 2a - 2)) <rho^a f>,   <lam f> = <2 s' f - (2/N) f'>.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from math import factorial, prod
from typing import Any

import sympy as sp

from symtensor.expansion.cumulants import solve_cumulants
from symtensor.fields.large_n.saddle import VectorTheory
from symtensor.fields.large_n.scaled import ScaledTheory, dimension

__all__ = ["RadialExpansion"]

#: a polynomial in delta: its coefficients, elements of the ring of the scaled theory
Polynomial = list[Any]


class RadialExpansion:
    """All cumulants of a theory up to N^-order, from moments of rho.

    >>> theory = VectorTheory.read("r*rho/2 + u*rho^2/4", values={"r": 1, "u": 2})
    >>> RadialExpansion(theory, 2).cumulant({"rho": 1})
    (1/2, -2/9, 32/243)
    """

    def __init__(self, theory: VectorTheory, order: int) -> None:
        self.theory, self.order = theory, order
        self.degree = 2 * order  # higher powers of delta are of higher order in 1/N
        self.scaled = ScaledTheory(theory, self.degree + 2)
        self.one, self.zero = self.scaled.ring.one, self.scaled.ring.zero
        self.moments = self._moments()

    def _moments(self) -> list[Any]:
        """<delta^k> for k up to the degree."""
        ratios = {i: self._ratio(i) for i in range(2, self.degree + 1)}
        table: list[dict[int, Any]] = [{0: self.one}]
        for n in range(1, self.order + 1):
            before, here = table[-1], {}
            for k in range(2 * n, 0, -1):
                known = (before.get(k - 2, self.zero) + before.get(k - 1, self.zero)) * (k - 1) * 2 * self.scaled.p
                here[k] = known - sum((ratios[i] * here[k - 1 + i] for i in range(2, 2 * n - k + 2)), self.zero)
            table.append(here)
        orders = [[(n, row[k]) for n, row in enumerate(table) if k in row] for k in range(self.degree + 1)]
        return [sum((self.scaled.x**n * value for n, value in found), self.zero) for found in orders]

    def _ratio(self, i: int) -> Any:
        """h_i / h_1 = 2 p (s_(i+1) + i s_i)/i!, where 2 p s_2 = 1 - p."""
        p, slope = self.scaled.p, self.scaled.slope
        own = 2 * (1 - p) if i == 2 else 2 * p * i * slope(i)
        return (2 * p * slope(i + 1) + own) / factorial(i)

    def cumulant(self, legs: Mapping[str, int]) -> tuple[sp.Expr, ...]:
        """The coefficients of N^0, N^-1, .. of the joint cumulant of ``{"phi": 2, "rho": 1, "lam": 1}`` and the like."""
        value = self.scaled_cumulant(legs)
        unit = dimension(self.theory, legs.items())
        return tuple(unit * self.scaled.written(self.scaled.coefficient(value, n)) for n in range(self.order + 1))

    def scaled_cumulant(self, legs: Mapping[str, int]) -> Any:
        """The cumulant in scaled variables, a polynomial in x = 1/N.

        A leg lam is taken times p, because s_2 = (1/p - 1)/2 is no polynomial, and divided at the end.
        """
        top = tuple(legs.get(name, 0) for name in ("phi", "rho", "lam"))
        below = [k for k in itertools.product(*(range(n + 1) for n in top)) if any(k)]
        value = solve_cumulants({k: self._moment(*k) for k in below}, [top])[top]
        exact = self.scaled.truncated(value, self.order)
        return self.scaled.ring.from_dict({(n, power - top[2], *rest): c for (n, power, *rest), c in exact.terms()})

    def energy(self) -> Any:
        """p times what the fluctuations add to <s>, a polynomial in x: p s_i <delta^i>/i!, with p s_2 = (1 - p)/2."""
        taylor = [c / (2 * factorial(i)) for i, c in enumerate(self._force(-1))]
        return self.scaled.truncated(self._expectation(taylor, 0), self.order)

    def _force(self, shift: int = 0) -> Polynomial:
        """p times the derivatives of 2 s' at the saddle; from the one of order `shift` on (-1: of 2 s, whose value is left out)."""
        p, slope = self.scaled.p, self.scaled.slope
        orders = range(1 + shift, self.degree + 2 + shift)
        known = {0: self.zero, 1: p, 2: 1 - p}
        return [known[k] if k in known else 2 * p * slope(k) for k in orders]

    def _moment(self, phi: int, rho: int, lam: int) -> Any:
        """p^lam <phi_1^phi rho^rho lam^lam>, a polynomial in x."""
        if phi % 2:
            return self.zero
        polynomial = self._power([self.one], rho)
        force = [c / factorial(i) for i, c in enumerate(self._force())]
        for _ in range(lam):
            contact = [-2 * self.scaled.x * self.scaled.p * k * c for k, c in enumerate(polynomial)][1:]
            parts = itertools.zip_longest(self._product(polynomial, force), contact, fillvalue=self.zero)
            polynomial = [a + b for a, b in parts]
        return self._expectation(polynomial, phi)

    def _expectation(self, polynomial: Polynomial, phi: int) -> Any:
        """<phi_1^phi f(delta)> up to the order."""
        half = phi // 2
        value = sum((c * m for c, m in zip(self._power(polynomial, half), self.moments)), self.zero) * prod(range(1, phi, 2))
        for i in range(1, half):
            geometric = sum(((-2 * i * self.scaled.x) ** n for n in range(self.order + 1)), self.zero)
            value = self.scaled.truncated(value * geometric, self.order)
        return self.scaled.truncated(value, self.order)

    def _power(self, polynomial: Polynomial, power: int) -> Polynomial:
        """The polynomial times rho^power, rho = 1 + delta."""
        for _ in range(power):
            polynomial = self._product(polynomial, [self.one, self.one])
        return polynomial

    def _product(self, left: Polynomial, right: Polynomial) -> Polynomial:
        found = [self.zero] * min(len(left) + len(right) - 1, self.degree + 1)
        for (i, a), (j, b) in itertools.product(enumerate(left), enumerate(right)):
            if i + j <= self.degree:
                found[i + j] += a * b
        return found
