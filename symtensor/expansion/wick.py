r"""Averages of tensor polynomials over a random field given by its cumulants; Wick's theorem is the Gaussian case.

The moment of a product is the sum over set partitions of the product of cumulants of the blocks,

    E[x_1 .. x_k] = sum_{pi} prod_{B in pi} kappa(x_i, i in B),

and for a centred Gaussian field only blocks of two survive (Isserlis 1918, Wick 1950). Moments are polynomial in the
covariance, so no positivity is asked of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import mul

from sympy import S
from sympy.utilities.iterables import multiset_partitions

from symtensor.tensor import Factor, Index, Tensor, TensorExpr, Term

__all__ = ["average", "covariance", "gaussian_average"]

Slots = tuple[Index | int, ...]
Cumulants = Mapping[int, Callable[..., TensorExpr]]


def average(expression: TensorExpr, field: Tensor, cumulants: Cumulants) -> TensorExpr:
    """Average `expression` over the random tensor `field`; every other tensor in it is held fixed.

    `cumulants[r](slots_1, .., slots_r)` is the joint cumulant of r components of the field, each given by its tuple of
    indices; an order that is missing vanishes. Free indices are unchanged.

    >>> from symtensor.tensor import Dimension, SymmetryGroup, Tensor
    >>> P = Dimension("P")
    >>> a, b, c, d = P.indices("a b c d")
    >>> x, K = Tensor("x", (P,)), Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2))
    >>> pairs = {2: lambda i, j: K[(*i, *j)]}
    >>> average(x[a] * x[b] * x[c] * x[d], x, pairs) == K[a, b] * K[c, d] + K[a, c] * K[b, d] + K[a, d] * K[b, c]
    True
    """
    return _total((_average_term(term, field, cumulants) for term in expression.terms), expression)


def gaussian_average(expression: TensorExpr, field: Tensor, covariance: Tensor) -> TensorExpr:
    """Average over a centred Gaussian field with `covariance[slots, slots]` (Wick's theorem)."""
    return average(expression, field, {2: lambda i, j: covariance[(*i, *j)]})


def covariance(left: TensorExpr, right: TensorExpr, field: Tensor, cumulants: Cumulants) -> TensorExpr:
    """Covariance of two tensor polynomials in the random `field`: E[left right] - E[left] E[right]."""
    joint = average(left * right, field, cumulants)
    return joint - average(left, field, cumulants) * average(right, field, cumulants)


def _average_term(term: Term, field: Tensor, cumulants: Cumulants) -> TensorExpr | None:
    random = [factor.indices for factor in term.factors if factor.tensor == field]
    fixed = [_expr(factor) for factor in term.factors if factor.tensor != field]
    moment = _moment(random, cumulants)
    if moment is None:
        return None
    return (reduce(mul, fixed, moment) * term.coefficient).sum(*term.summed)


def _moment(slots: list[Slots], cumulants: Cumulants) -> TensorExpr | None:
    """E of the product of the field's components; None where it vanishes for want of a cumulant."""
    if not slots:
        return TensorExpr.scalar(S.One)
    total = None
    for partition in multiset_partitions(list(range(len(slots)))):
        if any(len(block) not in cumulants for block in partition):
            continue
        blocks = [cumulants[len(block)](*(slots[int(i)] for i in block)) for block in partition]
        product = reduce(mul, blocks)
        total = product if total is None else total + product
    return total


def _expr(factor: Factor) -> TensorExpr:
    return factor.tensor[factor.indices]


def _total(parts, like: TensorExpr) -> TensorExpr:
    present = [part for part in parts if part is not None]
    return reduce(lambda left, right: left + right, present) if present else TensorExpr.zero(*like.free)
