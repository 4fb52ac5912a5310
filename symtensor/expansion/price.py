r"""Derivatives of Gaussian expectations with respect to the covariance, by Price's theorem, symbolically.

For phi ~ N(0, K) and any (weakly differentiable) f,

    d/dK_cd E[f(phi)] = (1/2) E[ d_c d_d f(phi) ]            (ordered pairs: dE = sum_cd dE/dK_cd dK_cd)

so the derivatives of the table of expectations E[sigma(phi_a) sigma(phi_b)] are again entries of one family,

    m_ij[a, b] = E[ d_a^i d_b^j sigma(phi_a) sigma(phi_b) ],

with weak derivatives: nothing is differentiated numerically and no activation is named here.

Reference: R. Price, IRE Trans. Inf. Theory 4 (1958) 69.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import mul

from symtensor.tensor import Dimension, Factor, Index, SymmetryGroup, Tensor, TensorExpr, delta

__all__ = ["ExpectationFamily", "directional_derivative"]


@dataclass(frozen=True)
class ExpectationFamily:
    r"""The tensors m_ij[a, b] = E_{N(0,K)}[ sigma^{(i)}(phi_a) sigma^{(j)}(phi_b) ] (weak derivatives), closed under Price.

    m_ji[a, b] = m_ij[b, a], so heads exist for i >= j only: `family(0, 2, a, b)` is `m20[b, a]`.

    >>> P = Dimension("P")
    >>> a, b = P.indices("a b")
    >>> m = ExpectationFamily(P)
    >>> m(0, 2, a, b)
    TensorExpr(m20[b, a])
    """

    dimension: Dimension
    name: str = "m"
    function: str = r"\sigma"
    _heads: dict[Tensor, tuple[int, int]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def head(self, i: int, j: int) -> Tensor:
        """The tensor head m_ij, i >= j >= 0."""
        separator = "" if max(i, j) < 10 else "_"
        symmetry = SymmetryGroup.symmetric(2) if i == j else None
        latex = rf"\langle {self._derivative(i)}\,{self._derivative(j)}\rangle"
        head = Tensor(f"{self.name}{i}{separator}{j}", (self.dimension,) * 2, symmetry=symmetry, latex=latex)  # type: ignore[arg-type]
        self._heads[head] = (i, j)
        return head

    def __call__(self, i: int, j: int, a: Index | int, b: Index | int) -> TensorExpr:
        """The component m_ij[a, b]."""
        return self.head(i, j)[a, b] if i >= j else self.head(j, i)[b, a]

    def orders(self, head: Tensor) -> tuple[int, int] | None:
        """(i, j) of a head of this family; None for any other tensor."""
        return self._heads.get(head)

    def field_derivative(self, factor: Factor, index: Index) -> TensorExpr:
        """d/dphi_index under the expectation, by the product rule over the two functions."""
        i, j = self._heads[factor.tensor]
        a, b = factor.indices
        return delta(a, index) * self(i + 1, j, a, b) + delta(b, index) * self(i, j + 1, a, b)

    def gradient(self, factor: Factor, c: Index, d: Index) -> TensorExpr:
        """Price's theorem: dm/dK_cd = (1/2) E[d_c d_d ..] of one expectation, with Kronecker deltas (ordered pairs)."""
        once = self.field_derivative(factor, c)
        twice = TensorExpr.zero(*once.free, d)
        for term in once.terms:
            for position, inner in enumerate(term.factors):
                if self.orders(inner.tensor) is not None:
                    rest = [other.tensor[other.indices] for k, other in enumerate(term.factors) if k != position]
                    twice = twice + term.coefficient * reduce(mul, rest, self.field_derivative(inner, d))
        return twice / 2

    def _derivative(self, order: int) -> str:
        return self.function + ("'" * order if order < 4 else rf"^{{({order})}}")


def directional_derivative(
    expression: TensorExpr, covariance: Tensor, direction: Tensor, family: ExpectationFamily
) -> TensorExpr:
    """Derivative of `expression` along K -> K + s `direction` at s = 0.

    `expression` is a tensor polynomial in the covariance head itself and in expectations of `family` under it; every
    other tensor is held fixed. Both heads are symmetric of rank two.
    """
    c, d = _fresh(family.dimension, expression)
    total = TensorExpr.zero(*expression.free)
    for term in expression.terms:
        for position, factor in enumerate(term.factors):
            if factor.tensor == covariance:
                inner = direction[factor.indices]
            elif family.orders(factor.tensor) is not None:
                inner = (family.gradient(factor, c, d) * direction[c, d]).sum(c, d).contract_deltas()
            else:
                continue
            rest = [other.tensor[other.indices] for k, other in enumerate(term.factors) if k != position]
            total = total + (reduce(mul, rest, inner) * term.coefficient).sum(*term.summed)
    return total.canonical()


def _fresh(dimension: Dimension, expression: TensorExpr) -> tuple[Index, Index]:
    taken = {index.name for index in expression.free}
    taken |= {index.name for term in expression.terms for index in term.summed}
    names = (f"q{k}" for k in range(len(taken) + 2))
    first, second = [name for name in names if name not in taken][:2]
    return Index(first, dimension), Index(second, dimension)
