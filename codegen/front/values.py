"""What is compiled, in three kinds: scalars, arrays of scalar components, tensor expressions with ordered axes."""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy.tensor.array.expressions.array_expressions import _ArrayExpr

from symtensor.expansion import FunctionalTaylor, Series, TaylorSeries
from symtensor.tensor import Index, TensorExpr

from ..errors import InputError, ShapeError, UnsupportedNode
from ..names import check_identifier, identifier
from ..strict import nodes_of
from .indexed import IndexedReader, chosen, has_indices, unrolled
from .matrices import MatrixReader

__all__ = ["ArrayValue", "TensorValue", "Value", "named_values", "read_values", "series_outputs"]


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """Components row by row; the shape () is a scalar."""

    shape: tuple[int, ...]
    entries: tuple[sp.Expr, ...]


@dataclass(frozen=True, slots=True)
class TensorValue:
    """A tensor expression and the order of its axes."""

    expression: TensorExpr
    axes: tuple[Index, ...]


Value = ArrayValue | TensorValue
Axes = Sequence[Any] | None


def named_values(expression: Any, outputs: Any) -> tuple[dict[str, Any], bool]:
    """Name -> expression, and whether there is one result without a name of its own.

    Raises
    ------
    InputError, NameClash
        Nothing to compile; names that are no identifiers or do not fit in number.
    """
    if isinstance(expression, Mapping):
        named = {check_identifier(name, "output"): value for name, value in expression.items()}
        if outputs is not None:
            raise InputError("outputs are named by the mapping; leave outputs= out")
    elif isinstance(expression, list | tuple) and not isinstance(expression, sp.Basic):
        fields = outputs if outputs is not None else getattr(expression, "_fields", [f"out{k}" for k in range(len(expression))])
        fields = fields.replace(",", " ").split() if isinstance(fields, str) else list(fields)
        if len(fields) != len(expression) or len(set(fields)) < len(fields):
            raise InputError(f"{len(expression)} expressions and {len(fields)} names of outputs {fields}; give each its own")
        named = {check_identifier(name, "output"): value for name, value in zip(fields, expression)}
    else:
        if outputs is not None and not isinstance(outputs, str):
            raise InputError(f"one expression and outputs {outputs!r}; outputs names the fields of several expressions")
        return {check_identifier(outputs or "value", "output"): expression}, True
    if not named:
        raise InputError("nothing to compile: the collection of expressions is empty")
    return named, False


def series_outputs(series: Any, what: str | None, where: str) -> tuple[Any, str]:
    """(expression or named coefficients, remark) of a truncated series.

    Raises
    ------
    InputError
        It is not truncated, so that there is no last term.
    """
    if isinstance(series, FunctionalTaylor) or (series.order is None and getattr(series, "stop", None) is None):
        raise InputError(f"{where}: this series is infinite; compile series.truncate(n), or the expression series.partial_sum(n)")
    remark = f"Terms below {series.order_term}." if series.order_term is not None else ""
    if what != "coefficients":
        return series.partial_sum(), remark
    if isinstance(series, TaylorSeries):
        degrees = [series.homogeneous(degree) for degree in range(series.order or 0)]
        found = {alpha: value for table in degrees for alpha, value in table.items()}
        return {"c_" + "_".join(map(str, alpha)): value for alpha, value in sorted(found.items())}, remark
    return {f"c{k}" if k >= 0 else f"c_m{-k}": value for k, value in series.terms()}, remark


def is_series(expression: Any) -> bool:
    """Whether it is one of the series of `symtensor.expansion`."""
    return isinstance(expression, Series | TaylorSeries | FunctionalTaylor)


def read_values(named: Mapping[str, Any], axes: Axes, where: str, args: Any = None) -> dict[str, Value]:
    """Every output as a value; components are written out only where tensors cannot express them.

    A component at a place that is computed, X[q] with q among `args`, is chosen among all components of its axis.

    Raises
    ------
    InputError
        An object of an unknown kind.
    UnsupportedNode, ShapeError
        See `indexed` and `matrices`.
    """
    indexed, matrices = IndexedReader(where), MatrixReader(where)
    places = _names(args)
    named = {
        name: chosen(value, places, f"{where}.{name}") if isinstance(value, sp.Basic) and places else value
        for name, value in named.items()
    }
    return {name: _value(value, axes, f"{where}.{name}", indexed, matrices) for name, value in named.items()}


def _names(args: Any) -> frozenset[str]:
    """Names of the arguments that are symbols."""
    items = args.values() if isinstance(args, Mapping) else args.replace(",", " ").split() if isinstance(args, str) else args or ()
    items = items if isinstance(items, Iterable) else ()
    return frozenset(identifier(str(item)) for item in items if isinstance(item, str | sp.Symbol | sp.Idx))


def _value(value: Any, axes: Axes, where: str, indexed: IndexedReader, matrices: MatrixReader) -> Value:
    indexed.where = matrices.where = where
    if isinstance(value, TensorExpr):
        return TensorValue(value, _ordered(value, axes, where))
    if isinstance(value, sp.MatrixBase | sp.NDimArray):
        array = sp.ImmutableDenseNDimArray(value.tolist() if isinstance(value, sp.MatrixBase) else value)
        flat = tuple(array.reshape(len(array)).tolist()) if len(array) else ()
        if not flat:
            raise ShapeError(f"{where}: an array of shape {value.shape} has no entries")
        return ArrayValue(tuple(map(int, array.shape)), tuple(_scalar(entry, where) for entry in flat))
    if isinstance(value, sp.MatrixExpr | sp.Trace):
        return _matrix(value, axes, where, matrices)
    if isinstance(value, _ArrayExpr):
        raise InputError(f"{where}: {type(value).__name__} is not read; write it with indices (IndexedBase, Sum) or as_explicit()")
    expression = _scalar(value, where)
    if any(isinstance(node, sp.Trace) for node in nodes_of(expression)):
        return TensorValue(matrices.scalar(expression), ())
    return _indexed(expression, axes, where, indexed) if has_indices(expression) else ArrayValue((), (expression,))


def _scalar(value: Any, where: str) -> sp.Expr:
    if isinstance(value, str):
        raise InputError(f"{where}: text is read only as the whole of what is compiled, with args naming its symbols")
    try:
        expression = sp.sympify(value, strict=True)
    except sp.SympifyError:
        expression = None
    if not isinstance(expression, sp.Expr):
        kinds = "a SymPy expression, matrix or array, a tensor expression, a series, a kernel, a Scan, Ode or FixedPoint"
        raise InputError(f"{where}: cannot compile {str(value)[:60]!r} ({type(value).__name__}); needed is {kinds}")
    return expression


def _matrix(value: Any, axes: Axes, where: str, matrices: MatrixReader) -> Value:
    try:
        if isinstance(value, sp.Trace):
            return TensorValue(matrices.scalar(value), ())
        expression, found = matrices.read(value)
    except UnsupportedNode:
        if not all(size.is_Integer for size in getattr(value, "shape", ())):
            raise
        return _value(value.doit().as_explicit(), axes, where, IndexedReader(where), matrices)
    return TensorValue(expression, found)


def _indexed(expression: sp.Expr, axes: Axes, where: str, indexed: IndexedReader) -> Value:
    try:
        read = indexed.read(expression)
    except UnsupportedNode as error:
        free = sorted(str(s) for s in expression.free_symbols if str(s) in indexed.sizes)
        names = tuple(map(str, axes)) if axes is not None else tuple(free)
        if sorted(names) != free:
            raise ShapeError(f"{where}: axes {names} are not the free indices {tuple(free)}, each once") from None
        try:
            return _value(unrolled(expression, names, indexed.sizes, where), axes, where, indexed, MatrixReader(where))
        except ShapeError:
            raise error from None
    return TensorValue(read, _ordered(read, axes, where))


def _ordered(expression: TensorExpr, axes: Axes, where: str) -> tuple[Index, ...]:
    """The axes asked for (indices or their names), or the free indices sorted by name, as einsum does."""
    by_name = {index.name: index for index in expression.free}
    if axes is None:
        return tuple(by_name[name] for name in sorted(by_name))
    names = [axis.name if isinstance(axis, Index) else str(axis) for axis in axes]
    if sorted(names) != sorted(by_name):
        raise ShapeError(f"{where}: axes {tuple(names)} are not the free indices {tuple(sorted(by_name))}, each once")
    return tuple(by_name[name] for name in names)
