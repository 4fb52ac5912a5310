"""Functions of the mass at the saddle as power series in a coupling: the gap equation solved order by order, exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor.fields.errors import SourceError

if TYPE_CHECKING:
    from symtensor.fields.large_n.saddle import VectorTheory

__all__ = ["in_coupling"]

#: a truncated power series: coefficients of the powers 0, 1, .. of the coupling, in a field of rational functions
Power = list[Any]


def in_coupling(theory: VectorTheory, expression: sp.Expr, coupling: Any, order: int) -> sp.Expr:
    """A rational function of m and the parameters, expanded in `coupling` around 0, up to the given power.

    Raises: SourceError if the coupling is no parameter, the mass is a number, or the theory without it is not Gaussian.
    """
    from symtensor.fields.large_n.saddle import MASS, RHO, symbols

    named = [s for s in symbols(theory.potential) if s.name == str(coupling)]
    if not named or theory.mass != MASS:
        raise SourceError(
            f"{coupling!s} is no parameter of the potential {theory.potential} with an open mass; to expand in it give it no value"
        )
    symbol = named[0]
    bare: Any = 2 * sp.diff(theory.potential.subs(symbol, 0), RHO)
    if sp.simplify(sp.diff(bare, RHO)) != 0 or bare == 0:
        raise SourceError(
            f"at {symbol} = 0 the slope of the potential is {bare / 2}; the potential must be a multiple of rho there"
        )
    parameters = [s for s in symbols(expression + theory.gap_equation) if s not in (MASS, symbol)]
    ring = sp.QQ.frac_field(*parameters) if parameters else sp.QQ
    arithmetic = _Arithmetic(ring, order, symbol, MASS)
    mass: Power = [ring.from_sympy(bare), *([ring.zero] * order)]
    force = MASS - theory.gap_equation
    for _ in range(order):  # each round settles one more power
        mass = arithmetic.substituted(force, mass)
    found = arithmetic.substituted(expression, mass)
    return sp.Add(*(ring.to_sympy(c) * symbol**k for k, c in enumerate(found)))


class _Arithmetic:
    """Truncated power series over a field."""

    def __init__(self, ring: Any, order: int, symbol: sp.Symbol, mass: sp.Symbol) -> None:
        self.ring, self.order, self.symbol, self.mass = ring, order, symbol, mass

    def substituted(self, expression: sp.Expr, mass: Power) -> Power:
        """The expression with the series of the mass put in, term by term."""
        total = self._constant(self.ring.zero)
        for term in sp.Add.make_args(expression):
            numerator, denominator = (self._polynomial(part, mass) for part in sp.fraction(sp.together(term)))
            total = [a + b for a, b in zip(total, self.product(numerator, self.inverse(denominator)))]
        return total

    def _polynomial(self, part: sp.Expr, mass: Power) -> Power:
        """Horner's rule in the mass; coefficients are polynomials in the coupling."""
        polynomial = sp.Poly(part, self.mass, self.symbol)
        rows: dict[int, Power] = {}
        for (in_mass, in_coupling_), c in polynomial.terms():
            row = rows.setdefault(in_mass, self._constant(self.ring.zero))
            if in_coupling_ <= self.order:
                row[in_coupling_] += self.ring.from_sympy(c)
        total = self._constant(self.ring.zero)
        for power in range(max(rows), -1, -1):
            total = self.product(total, mass)
            total = [a + b for a, b in zip(total, rows.get(power, self._constant(self.ring.zero)))]
        return total

    def _constant(self, value: Any) -> Power:
        return [value, *([self.ring.zero] * self.order)]

    def product(self, left: Power, right: Power) -> Power:
        """The Cauchy product."""
        return [sum((left[i] * right[k - i] for i in range(k + 1)), self.ring.zero) for k in range(self.order + 1)]

    def inverse(self, series: Power) -> Power:
        """1/series; the constant term is not zero at a Gaussian starting point."""
        found = [1 / series[0] if series[0] else self._fail()]
        for k in range(1, self.order + 1):
            found.append(-found[0] * sum((series[i] * found[k - i] for i in range(1, k + 1)), self.ring.zero))
        return found

    def _fail(self) -> Any:
        raise SourceError(f"the expression has a pole at {self.symbol} = 0, so that it has no power series there")
