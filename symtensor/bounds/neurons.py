r"""One hidden layer neuron by neuron: C_{D,d} with a polynomial activation is a sum over independent neurons.

f = n^{-1/2} sum_i a_i phi(u_i), u_i = w_i . x / sqrt(n_0) ~ N(0, q). The tensors grad^k f are block-diagonal over neurons
with at most one a-slot, so with g = grad f contracted d times and h_0 (no free a-slot), h_1 (one free a-slot),

    h_0 = a phi^{(D+d)} (q a phi')^d + d phi^{(D+d-1)} phi (q a phi')^{d-1},    h_1 = phi^{(D+d-1)} (q a phi')^d,
    C_{0,d} = eta^d / d!  n^{-(d+1)/2} sum_i h_0(a_i, u_i),
    ||C_{D,d}||_F^2 = eta^{D+2d} / (D! d!)^2  n^{-(d+1)} sum_i (q^D h_0^2 + D q^{D-1} h_1^2).

Moments follow from independence alone: a route to E C^2 that shares nothing with the Wick sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, prod
from typing import Any

import sympy

from ._input import exact
from .derivative_networks import ETA, polynomial_of
from .network import NetworkError
from .network_moments import MomentScale, scale_of_moment, tidy

__all__ = ["NeuronContraction", "neuron_contraction"]

A, U = sympy.symbols("a u", real=True)


@dataclass(frozen=True, slots=True)
class NeuronContraction:
    """C_{D,d} of one hidden layer with a polynomial activation, through its sum over neurons.

    Attributes:
        D: free slots.
        d: contracted slots.
        summand: h_0 for D = 0, else q^D h_0^2 + D q^{D-1} h_1^2, in a and u.
        factor: what multiplies the sum of C (D = 0) or of ||C||_F^2.
        width: the symbol n.
        variance: q, the variance of u.
    """

    D: int
    d: int
    summand: sympy.Expr
    factor: sympy.Expr
    width: sympy.Expr
    variance: sympy.Expr

    def mean(self) -> sympy.Expr:
        """E C for D = 0, E ||C||_F^2 for D >= 1."""
        return tidy(self.factor * self.width * self._expect(self.summand))

    def second_moment(self) -> sympy.Expr:
        """E C^2 for D = 0, E ||C||_F^2 for D >= 1: n E h^2 + n (n - 1) (E h)^2 for a sum over neurons."""
        if self.D:
            return self.mean()
        mean, square = self._expect(self.summand), self._expect(self.summand**2)
        n = self.width
        return tidy(self.factor**2 * (n * square + n * (n - 1) * mean**2))

    def moment_scale(self) -> MomentScale:
        """C = Theta_p(scale) by R8c."""
        names = frozenset(s.name for s in self.width.free_symbols)  # type: ignore[attr-defined]
        degree = sympy.Poly(self.summand, A, U).total_degree()
        return scale_of_moment(self.second_moment(), names, degree // 2 if self.D else degree)

    def _expect(self, value: sympy.Expr) -> sympy.Expr:
        """E of a polynomial in a ~ N(0, 1) and u ~ N(0, q): moments (k - 1)!!."""
        total = sympy.S.Zero
        for (i, j), coefficient in sympy.Poly(sympy.expand(value), A, U).terms():
            if i % 2 == 0 and j % 2 == 0:
                total += coefficient * prod(range(i - 1, 0, -2)) * prod(range(j - 1, 0, -2)) * self.variance ** (j // 2)
        return total


def neuron_contraction(activation: Any, D: int, d: int, *, width: Any = "n", q: Any = None, eta: Any = ETA) -> NeuronContraction:
    """C_{D,d} of f = n^{-1/2} sum_i a_i phi(u_i), u_i ~ N(0, q).

    Args:
        activation: a polynomial (text, SymPy expression, or coefficients, lowest first).
        width: name of the width.
        q: squared input norm |x|^2 / n_0; the symbol q by default.

    Raises:
        NetworkError: a non-polynomial activation, or negative D or d.

    Example:
        >>> neuron_contraction("identity", 0, 2).second_moment(), neuron_contraction("identity", 0, 3).second_moment()
        (eta**4*q**3/n**2, 0)
    """
    if D < 0 or d < 0:
        raise NetworkError(f"C_{{D,d}} needs D, d >= 0, given D = {D}, d = {d}")
    phi = sympy.Add(*(c * U**k for k, c in enumerate(polynomial_of(activation))))
    variance = sympy.Symbol("q", positive=True) if q is None else exact(q)
    n = sympy.Symbol(width, positive=True) if isinstance(width, str) else exact(width)
    k, v = D + d, variance * A * sympy.diff(phi, U)
    before = sympy.diff(phi, U, k - 1) if k else sympy.S.Zero
    plain = A * sympy.diff(phi, U, k) * v**d + (d * before * phi * v ** (d - 1) if d else 0)
    rate = exact(eta)
    if not D:
        factor = rate**d / factorial(d) * n ** sympy.Rational(-(d + 1), 2)
        return NeuronContraction(D, d, sympy.expand(plain), factor, n, variance)
    summand = variance**D * plain**2 + D * variance ** (D - 1) * (before * v**d) ** 2
    factor = rate ** (D + 2 * d) / (factorial(D) * factorial(d)) ** 2 * n ** -(d + 1)
    return NeuronContraction(D, d, sympy.expand(summand), factor, n, variance)
