"""Tensor expressions: indices with dimensions, heads with slot symmetries, explicit sums, canonical form, einsum.

An expression is an immutable value. Summation is always explicit (`.sum`), there is no metric and no index position;
coefficients are commuting SymPy scalars.

>>> P = Dimension("P")
>>> a, b, c, d = P.indices("a b c d")
>>> K = Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2), latex="K_0")
>>> Q = Tensor("Q", (P, P), symmetry=SymmetryGroup.symmetric(2))
>>> N = K[a, c] * Q[b, d] + K[a, d] * Q[b, c] + K[b, c] * Q[a, d] + K[b, d] * Q[a, c]
>>> N.has_symmetry(SymmetryGroup.pair_symmetric(), (a, b, c, d))
True
>>> [term.spec for term in N.einsum((a, b, c, d))]
['ac,bd->abcd', 'ad,bc->abcd', 'bc,ad->abcd', 'bd,ac->abcd']
"""

from symtensor.tensor.einsum import EinsumTerm
from symtensor.tensor.errors import (
    ArrayError,
    CoefficientError,
    IndexClashError,
    IndexTypeError,
    SymmetryError,
    TensorError,
)
from symtensor.tensor.expr import TensorExpr
from symtensor.tensor.index import Dimension, Index
from symtensor.tensor.symmetry import SymmetryGroup
from symtensor.tensor.tensor import Tensor, delta
from symtensor.tensor.term import Factor, Term

__all__ = [
    "ArrayError",
    "CoefficientError",
    "Dimension",
    "EinsumTerm",
    "Factor",
    "Index",
    "IndexClashError",
    "IndexTypeError",
    "SymmetryError",
    "SymmetryGroup",
    "Tensor",
    "TensorError",
    "TensorExpr",
    "Term",
    "delta",
]
