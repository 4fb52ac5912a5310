"""SymPy's matrix expressions (A*B + C.T, Trace(A*A), ..) as tensor expressions."""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportReturnType=false

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import add, mul
from typing import Any

import sympy as sp
from sympy.matrices.expressions.hadamard import HadamardPower, HadamardProduct

from symtensor.tensor import Dimension, Index, Tensor, TensorExpr, delta

from ..errors import ShapeError, UnsupportedNode
from ..names import identifier
from .arguments import tensor_of

__all__ = ["MatrixReader"]


@dataclass(slots=True)
class MatrixReader:
    """Reads matrix expressions entry by entry; every summed index has a name of its own."""

    where: str
    heads: dict[sp.MatrixSymbol, Tensor] = field(default_factory=dict)
    count: int = 0

    def read(self, expression: sp.MatrixExpr) -> tuple[TensorExpr, tuple[Index, Index]]:
        """The entry (i, j) as a tensor expression, and its indices.

        Raises
        ------
        UnsupportedNode
            An inverse, a determinant, or another operation that is no sum of products.
        """
        row, column = (Index(name, self._size(size)) for name, size in zip("ij", expression.shape))
        return self._entry(expression, row, column), (row, column)

    def scalar(self, expression: sp.Expr) -> TensorExpr:
        """A scalar with traces inside."""
        match expression:
            case sp.Trace():
                index = self._fresh(expression.arg.shape[0])
                other = self._fresh(expression.arg.shape[0])
                return self._entry(expression.arg, index, other).rename({other: index}).sum(index)
            case sp.Add():
                return reduce(add, map(self.scalar, expression.args))
            case sp.Mul():
                return reduce(mul, map(self.scalar, expression.args))
        if expression.atoms(sp.MatrixSymbol):
            raise self._refuse(expression)
        return TensorExpr.scalar(expression)

    def _refuse(self, expression: Any) -> UnsupportedNode:
        hint = "; solve linear systems outside and pass the result" if "Inverse" in type(expression).__name__ else ""
        return UnsupportedNode(
            f"{self.where}: cannot generate code for {type(expression).__name__} in {str(expression)[:80]}; matrix expressions "
            f"are sums and products, transposes, Hadamard products, traces, identities{hint}"
        )

    def _size(self, size: Any) -> Dimension | int:
        if size.is_Integer:
            return int(size)
        if not isinstance(size, sp.Symbol):
            raise ShapeError(f"{self.where}: matrix size {size} is neither an integer nor a symbol")
        return Dimension(identifier(size.name))

    def _fresh(self, size: Any) -> Index:
        self.count += 1
        return Index(f"k{self.count}", self._size(size))

    def _entry(self, expression: Any, row: Index, column: Index) -> TensorExpr:
        match expression:
            case sp.MatrixSymbol():
                head = self.heads.setdefault(expression, tensor_of(expression))
                return head[row, column]
            case sp.MatAdd():
                return reduce(add, (self._entry(term, row, column) for term in expression.args))
            case sp.MatMul():
                return self._product(expression, row, column)
            case sp.Transpose():
                return self._entry(expression.arg, column, row)
            case HadamardProduct():
                return reduce(mul, (self._entry(factor, row, column) for factor in expression.args))
            case HadamardPower() if expression.exp.is_Integer and expression.exp.is_positive:
                return reduce(mul, [self._entry(expression.base, row, column)] * int(expression.exp))
            case sp.MatPow() if expression.exp.is_Integer and expression.exp.is_positive:
                return self._chain([expression.base] * int(expression.exp), row, column)
            case sp.Identity():
                return delta(row, column)
            case sp.ZeroMatrix():
                return TensorExpr.zero(row, column)
        raise self._refuse(expression)

    def _product(self, expression: sp.MatMul, row: Index, column: Index) -> TensorExpr:
        scalar, matrices = expression.as_coeff_matrices()
        return self._chain(matrices, row, column) * self.scalar(scalar)

    def _chain(self, matrices: list[Any], row: Index, column: Index) -> TensorExpr:
        inner = [self._fresh(matrix.shape[1]) for matrix in matrices[:-1]]
        ends = [row, *inner, column]
        total = reduce(mul, (self._entry(matrix, left, right) for matrix, left, right in zip(matrices, ends, ends[1:])))
        return total.sum(*inner) if inner else total
