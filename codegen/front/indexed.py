"""SymPy's Indexed expressions (x[i], Sum(A[i, j]*x[j], (j, 0, n - 1))) as tensor expressions.

An index that occurs in a term and is not summed is free: nothing is contracted because a name repeats. A term without one
of the free indices of the others is constant along it.
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from operator import mul
from typing import Any

import sympy as sp

from symtensor.tensor import Dimension, Index, Tensor, TensorExpr, delta

from ..errors import InputError, ShapeError, UnsupportedNode
from ..names import identifier
from ..strict import nodes_of
from .arguments import tensor_of

__all__ = ["IndexedReader", "chosen", "has_indices", "unrolled"]


def has_indices(expression: sp.Basic) -> bool:
    """Whether a component with an index that is no number occurs, or a sum over components."""
    components = (node for node in nodes_of(expression) if isinstance(node, sp.Indexed))
    return any(not index.is_Integer for component in components for index in component.indices)


def chosen(expression: sp.Basic, places: frozenset[str], where: str) -> sp.Basic:
    """X[q] as a piecewise function of q, for every index q that is an argument; beyond its ends the axis goes on constant.

    Raises
    ------
    InputError
        An array without a shape in integers.
    """
    found: dict[sp.Basic, sp.Basic] = {}
    for component in sorted(expression.atoms(sp.Indexed), key=sp.default_sort_key):
        computed = {index: slot for slot, index in enumerate(component.indices) if identifier(str(index)) in places}
        if not computed:
            continue
        sizes = [_known_size(component, index, slot, where) for index, slot in computed.items()]
        branches = []
        for position in product(*map(range, sizes)):  # the first that holds, row by row
            at = list(zip(computed, position, sizes))
            holds = [_place(index) < k + 1 for index, k, size in at if k < size - 1]
            branches.append((component.subs({index: k for index, k, _ in at}), sp.And(*holds)))
        found[component] = sp.Piecewise(*branches)
    return expression.xreplace(found)


def _place(index: sp.Basic) -> sp.Basic:
    return index.label if isinstance(index, sp.Idx) else index


def _known_size(component: sp.Indexed, index: sp.Basic, slot: int, where: str) -> int:
    size = (component.base.shape or (None,) * len(component.indices))[slot]
    if size is None or not sp.sympify(size).is_Integer:
        raise InputError(
            f"{where}: the place {index} of {component} is an argument, which needs an array of known size: "
            f"write IndexedBase({str(component.base)!r}, shape=(..)) with integers"
        )
    return int(size)


@dataclass(slots=True)
class IndexedReader:
    """Reads one expression; `images` keeps elementwise functions of components that were met."""

    where: str
    heads: dict[sp.IndexedBase, Tensor] = field(default_factory=dict)
    sizes: dict[str, Any] = field(default_factory=dict)
    images: dict[tuple[Tensor, sp.Expr], Tensor] = field(default_factory=dict)

    def read(self, expression: sp.Expr) -> TensorExpr:
        """The tensor expression.

        Raises
        ------
        UnsupportedNode
            A function of several different components, an index used as a number.
        ShapeError
            An index that runs over axes of different sizes, or a sum that is not over a whole axis.
        """
        self._collect_sizes(expression)
        return self._read(expression)

    def _collect_sizes(self, expression: sp.Expr) -> None:
        """The size of the axis that each index runs over."""
        for component in sorted(expression.atoms(sp.Indexed), key=sp.default_sort_key):
            head = self._head(component.base)
            for slot, index in enumerate(component.indices):
                if index.is_Integer:
                    continue
                if not isinstance(index, sp.Symbol | sp.Idx):
                    raise UnsupportedNode(f"{self.where}: index {index} of {component} is neither a symbol nor an integer")
                size, name = head.dimensions[slot], identifier(str(index.name))
                known = self.sizes.setdefault(name, size)
                if known != size:
                    raise ShapeError(f"{self.where}: index {index} runs over axes of size {known} and {size} ({component})")

    def _head(self, base: sp.IndexedBase) -> Tensor:
        if base not in self.heads:
            if base.shape is None:
                raise InputError(f"{self.where}: {base} has no shape; write IndexedBase({str(base)!r}, shape=(..))")
            self.heads[base] = tensor_of(base)
        return self.heads[base]

    def _index(self, index: Any) -> Index | int:
        return int(index) if index.is_Integer else Index(identifier(str(index.name)), self.sizes[identifier(str(index.name))])

    def _read(self, expression: sp.Expr) -> TensorExpr:
        match expression:
            case sp.Indexed():
                head = self._head(expression.base)
                if len(expression.indices) != head.rank:
                    raise ShapeError(f"{self.where}: {expression} has {len(expression.indices)} indices, its shape {head.rank}")
                return head[tuple(self._index(index) for index in expression.indices)]
            case sp.Add():
                return self._sum([self._read(term) for term in expression.args])
            case sp.Mul():
                return reduce(mul, (self._read(factor) for factor in expression.args))
            case sp.Sum():
                return self._summed(expression)
            case sp.KroneckerDelta():
                self._require_known(expression)
                return delta(*(self._index(index) for index in expression.args))
            case sp.Pow() if expression.exp.is_Integer and expression.exp.is_positive and expression.atoms(sp.Indexed):
                return reduce(mul, [self._read(expression.base)] * int(expression.exp))
        if expression.atoms(sp.Indexed):
            return self._image(expression)
        indices = {symbol for symbol in expression.free_symbols if identifier(str(symbol)) in self.sizes}
        if indices:
            raise UnsupportedNode(f"{self.where}: the index {sorted(map(str, indices))[0]} is used as a number in {expression}")
        return TensorExpr.scalar(expression)

    def _require_known(self, expression: sp.KroneckerDelta) -> None:
        sizes = {self.sizes.get(identifier(str(index.name))) for index in expression.args if not index.is_Integer}
        if None in sizes:
            raise ShapeError(f"{self.where}: an index of {expression} occurs in no component, so its size is unknown")

    def _sum(self, terms: list[TensorExpr]) -> TensorExpr:
        free = sorted(frozenset().union(*(term.free for term in terms)), key=lambda index: index.name)
        spread = [reduce(mul, (delta(index, index) for index in free if index not in term.free), term) for term in terms]
        return reduce(lambda left, right: left + right, spread)

    def _summed(self, expression: sp.Sum) -> TensorExpr:
        body = self._read(expression.function)
        for index, low, high in expression.limits:
            size = self.sizes.get(identifier(str(index)))
            if size is None:
                raise ShapeError(f"{self.where}: the index {index} of {expression} occurs in no component, so its range is unknown")
            end = size if isinstance(size, int) else size.symbol
            if low != 0 or not _same(high, end - 1):
                raise ShapeError(
                    f"{self.where}: the sum over {index} is from {low} to {high}, its axis goes from 0 to {end} - 1; only sums "
                    "over a whole axis are contracted (write a sum of components for others)"
                )
            over = Index(identifier(str(index)), size)
            body = body.sum(over) if over in body.free else body * end
        return body

    def _image(self, expression: sp.Expr) -> TensorExpr:
        components = sorted(expression.atoms(sp.Indexed), key=sp.default_sort_key)
        bound = set().union(*(component.free_symbols for component in components)) | set(components)
        others = expression.free_symbols - bound
        if len(components) > 1 or others or expression.atoms(sp.Sum):
            found = ", ".join(map(str, [*components, *sorted(others, key=str)]))
            raise UnsupportedNode(
                f"{self.where}: {type(expression).__name__} in {str(expression)[:80]} is a function of {found}; in sums over "
                "axes of symbolic size functions take one component and no parameters (with integer sizes anything goes)"
            )
        (component,) = components
        head, variable = self._head(component.base), sp.Symbol("t", real=True)
        body = expression.xreplace({component: variable})
        key = (head, body)
        if key not in self.images:
            self.images[key] = head.map(f"{head.name}_image{len(self.images)}", sp.Lambda(variable, body))
        return self.images[key][tuple(self._index(index) for index in component.indices)]


def _same(left: Any, right: Any) -> bool:
    """Whether two sizes are equal; symbols are compared by their names, because dimensions are."""
    difference = sp.expand(left - right)
    renamed = {symbol: sp.Symbol(identifier(symbol.name)) for symbol in difference.free_symbols}
    return sp.expand(difference.xreplace(renamed)) == 0


def unrolled(expression: sp.Expr, axes: tuple[str, ...], sizes: Mapping[str, Any], where: str) -> sp.NDimArray:
    """All components of an expression whose axes have integer sizes, sums written out; `axes` are the free indices.

    Raises
    ------
    ShapeError
        An axis of symbolic size.
    """
    symbolic = sorted(str(size) for size in sizes.values() if isinstance(size, Dimension))
    if symbolic:
        raise ShapeError(f"{where}: axes of size {', '.join(symbolic)} cannot be written out; give integer sizes")
    shape = [int(sizes[axis]) for axis in axes]
    symbols = {identifier(str(s)): s for s in expression.free_symbols if identifier(str(s)) in axes}
    flat = []
    for place in range(int(sp.prod(shape))):
        numbers: dict[Any, int] = {}
        for axis, size in reversed(list(zip(axes, shape))):
            place, numbers[symbols[axis]] = divmod(place, size)
        flat.append(expression.subs(numbers).doit())
    return sp.ImmutableDenseNDimArray(flat, shape)
