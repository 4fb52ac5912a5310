r"""Taylor expansion of a tensor-valued functional Q(K) of a covariance around K_0, with remainder.

    Q(K_0 + D) = sum_{k < N} (1/k!) D^k Q(K_0)[D, .., D] + R_N,
    R_N = Int_0^1 ds (1-s)^{N-1}/(N-1)!  D^N Q(K_0 + s D)[D, .., D]

The derivatives come from Price's theorem (`price.directional_derivative`), so Q is any tensor polynomial in K and in
Gaussian expectations under K, and D any symmetric tensor in range(K_0) (x) range(K_0).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from symtensor.expansion.price import ExpectationFamily, directional_derivative
from symtensor.expansion.series import Series
from symtensor.tensor import SymmetryGroup, Tensor, TensorExpr

__all__ = ["FunctionalTaylor", "IntegralRemainder", "functional_taylor"]


@dataclass(frozen=True)
class FunctionalTaylor:
    """The lazy Taylor series of a functional; order k is homogeneous of degree k in the fluctuation.

    Attributes
    ----------
    functional, covariance, fluctuation, family
        What is expanded, in which tensor, along which symmetric direction, with which expectations.
    series
        Order-indexed and cached: `series.coefficient(k)` is D^k Q[D, .., D] / k!, computed when first asked for.
    """

    functional: TensorExpr
    covariance: Tensor
    fluctuation: Tensor
    family: ExpectationFamily

    @cached_property
    def series(self) -> Series:
        """The series in a bookkeeping parameter that counts powers of the fluctuation."""
        zero = TensorExpr.zero(*self.functional.free)
        return Series(sp.Symbol("epsilon"), 0, self._coefficient, zero=zero)

    @cached_property
    def _derivatives(self) -> list[TensorExpr]:
        return [self.functional.canonical()]

    def derivative(self, order: int) -> TensorExpr:
        """D^order Q[D, .., D] (without 1/order!)."""
        while len(self._derivatives) <= order:
            last = self._derivatives[-1]
            self._derivatives.append(directional_derivative(last, self.covariance, self.fluctuation, self.family))
        return self._derivatives[order]

    def _coefficient(self, order: int) -> TensorExpr:
        return self.derivative(order) / sp.factorial(order)

    def partial_sum(self, order: int) -> TensorExpr:
        """The sum of the terms of degree < order in the fluctuation."""
        total = TensorExpr.zero(*self.functional.free)
        for k in range(order):
            total = total + self.series.coefficient(k)
        return total

    def remainder(self, order: int) -> IntegralRemainder:
        """What `partial_sum(order)` leaves out, exactly."""
        return IntegralRemainder(self, order)

    def latex(self, order: int = 3) -> str:
        """The terms below `order`, and the remainder as an O-term in the fluctuation."""
        return f"{self.partial_sum(order).latex()} + O(\\|{self.fluctuation.latex}\\|^{{{order}}})"

    def _repr_latex_(self) -> str:
        return f"$$ {self.latex()} $$"


@dataclass(frozen=True, slots=True)
class IntegralRemainder:
    """R_N = Int_0^1 ds (1-s)^{N-1}/(N-1)! D^N Q(K_0 + s D)[D, .., D]: an exact identity, not an estimate."""

    expansion: FunctionalTaylor
    order: int

    def __post_init__(self) -> None:
        if self.order < 1:
            raise ValueError(f"the remainder starts at order 1, got {self.order}")

    @property
    def integrand(self) -> TensorExpr:
        """D^N Q[D, .., D]; its expectations are to be taken at the covariance K_0 + s D."""
        return self.expansion.derivative(self.order)

    def weight(self, s: sp.Expr) -> sp.Expr:
        """(1-s)^{N-1}/(N-1)!"""
        return (1 - s) ** (self.order - 1) / sp.factorial(self.order - 1)

    def latex(self) -> str:
        """The remainder in LaTeX."""
        s = sp.Symbol("s")
        covariance = f"{self.expansion.covariance.latex} + s\\,{self.expansion.fluctuation.latex}"
        weight = "" if self.order == 1 else rf"\Big({sp.latex(self.weight(s))}\Big)\,"
        return rf"\int_0^1 ds\, {weight}\Big[{self.integrand.latex()}\Big]_{{{covariance}}}"

    def _repr_latex_(self) -> str:
        return f"$$ {self.latex()} $$"


def functional_taylor(
    functional: TensorExpr, covariance: Tensor, fluctuation: Tensor, family: ExpectationFamily
) -> FunctionalTaylor:
    """Expand a tensor functional of the covariance around `covariance`, to any order, lazily.

    Raises
    ------
    ValueError
        If the covariance or the fluctuation is not a symmetric tensor of rank two over one dimension.

    Examples
    --------
    >>> from symtensor.tensor import Dimension, SymmetryGroup
    >>> P = Dimension("P")
    >>> a, b = P.indices("a b")
    >>> K, D = (Tensor(name, (P, P), symmetry=SymmetryGroup.symmetric(2)) for name in "KD")
    >>> m = ExpectationFamily(P)
    >>> first = functional_taylor(m(0, 0, a, b), K, D, m).series.coefficient(1)
    >>> first == m(1, 1, a, b) * D[a, b] + (m(2, 0, a, b) * D[a, a] + m(0, 2, a, b) * D[b, b]) / 2
    True
    """
    for role, head in (("covariance", covariance), ("fluctuation", fluctuation)):
        if head.dimensions != (family.dimension,) * 2 or head.symmetry != SymmetryGroup.symmetric(2):
            raise ValueError(
                f"the {role} {head.name} must be a symmetric tensor of rank 2 over {family.dimension}; "
                f"got rank {head.rank} with symmetry {head.symmetry}"
            )
    return FunctionalTaylor(functional, covariance, fluctuation, family)
