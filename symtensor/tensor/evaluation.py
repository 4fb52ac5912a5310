"""Values of tensor expressions on NumPy arrays, by einsum and, independently, by loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import sympy

from symtensor.tensor.einsum import einsum_terms
from symtensor.tensor.errors import ArrayError, SymmetryError
from symtensor.tensor.index import DimensionLike, Index
from symtensor.tensor.scalars import numeric_value
from symtensor.tensor.term import Term

if TYPE_CHECKING:
    from symtensor.tensor.expr import TensorExpr
    from symtensor.tensor.tensor import Tensor

# An array counts as symmetric if it differs from its image by less than this times its largest entry.
SYMMETRY_TOLERANCE = 1e-8


def evaluate_einsum(
    expression: TensorExpr,
    heads: Sequence[Tensor],
    arrays: Mapping[str, np.ndarray],
    axes: Sequence[Index],
    scalars: Mapping[str, float],
    sizes: Mapping[str, int],
    check: bool,
) -> np.ndarray:
    """Sum of einsum calls over the canonical terms of `expression`."""
    operands, known = _prepared(expression, heads, arrays, sizes, check)
    terms = expression.canonical().terms
    values = {**known, **scalars}
    result = np.zeros(tuple(_size(axis.dimension, known) for axis in axes))
    for term, call in zip(terms, einsum_terms(terms, axes), strict=True):
        coefficient = numeric_value(call.coefficient, values)
        if not term.factors:
            result = result + coefficient
            continue
        for factor in term.factors:
            if factor.tensor.is_delta:
                operands[factor.tensor.name, True] = np.eye(_size(factor.tensor.dimensions[0], known))
        chosen = [operands[factor.tensor.name, factor.tensor.is_delta] for factor in term.factors]
        if call.fixed:
            chosen = [array[_selection(fixed)] for array, fixed in zip(chosen, call.fixed, strict=True)]
        result = result + coefficient * np.einsum(call.spec, *chosen, optimize=len(chosen) > 2)
    return np.asarray(result)


def evaluate_loops(
    expression: TensorExpr,
    heads: Sequence[Tensor],
    arrays: Mapping[str, np.ndarray],
    axes: Sequence[Index],
    scalars: Mapping[str, float],
    sizes: Mapping[str, int],
    check: bool,
) -> np.ndarray:
    """Every component of every term by loops over all values of all indices."""
    operands, known = _prepared(expression, heads, arrays, sizes, check)
    values = {**known, **scalars}
    shape = tuple(_size(axis.dimension, known) for axis in axes)
    result = np.zeros(shape, dtype=complex)
    for term in expression.terms:
        coefficient = numeric_value(term.coefficient, values)
        summed = [range(_size(index.dimension, known)) for index in term.summed]
        for position in product(*map(range, shape)):
            for inner in product(*summed):
                assignment = dict(zip((*axes, *term.summed), position + inner))
                result[position] += coefficient * _component(term, operands, assignment)
    return result if np.iscomplexobj(result) and np.any(np.imag(result)) else np.real(result)


def _component(term: Term, operands: Mapping, assignment: Mapping[Index, int]) -> complex:
    value: complex = 1.0
    for factor in term.factors:
        slots = tuple(slot if isinstance(slot, int) else assignment[slot] for slot in factor.indices)
        value *= float(slots[0] == slots[1]) if factor.tensor.is_delta else operands[factor.tensor.name, False][slots]
    return value


def _selection(fixed: tuple[int | None, ...]) -> tuple[int | slice, ...]:
    return tuple(slice(None) if component is None else component for component in fixed)


def _prepared(
    expression: TensorExpr,
    heads: Sequence[Tensor],
    arrays: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    check: bool,
) -> tuple[dict[tuple[str, bool], np.ndarray], dict[str, int]]:
    """Checked operands by (head name, is a delta), and the sizes of the dimensions by name."""
    operands, known = {}, dict(sizes)
    for head in heads:
        base = head.source or head
        if base.name not in arrays:
            raise ArrayError(f"no array for the tensor {base.name}: given are {', '.join(sorted(arrays)) or 'none'}")
        array = np.asarray(arrays[base.name])
        _check_shape(base, array, known)
        if check:
            check_symmetry(base, array)
        operands[head.name, False] = array if head.source is None else _image(head, array)
    _check_components(expression, known)
    return operands, known


def _image(head: Tensor, array: np.ndarray) -> np.ndarray:
    assert head.function is not None
    function: Callable = sympy.lambdify(head.function.args[0], head.function.expr, "numpy")
    return np.broadcast_to(np.asarray(function(array.astype(float)), dtype=float), array.shape)


def _check_shape(head: Tensor, array: np.ndarray, known: dict[str, int]) -> None:
    """Compare the shape with the dimensions; symbolic sizes are learnt from the first array that shows them."""
    if array.ndim != head.rank:
        raise ArrayError(f"array for {head.name} has shape {array.shape}: need {head.rank} axes ({_shape(head)})")
    for slot, (dimension, size) in enumerate(zip(head.dimensions, array.shape, strict=True)):
        expected = dimension if isinstance(dimension, int) else known.setdefault(dimension.name, size)
        if size != expected:
            raise ArrayError(
                f"array for {head.name} has shape {array.shape}: axis {slot} of dimension {dimension} must have size "
                f"{expected} (shape {_shape(head)})"
            )


def _check_components(expression: TensorExpr, known: Mapping[str, int]) -> None:
    for factor in (factor for term in expression.terms for factor in term.factors):
        for slot, dimension in zip(factor.indices, factor.tensor.dimensions, strict=True):
            if isinstance(slot, int) and slot >= _size(dimension, known):
                raise ArrayError(
                    f"component {slot} of {factor.tensor.name}: {dimension} is {_size(dimension, known)} here"
                )


def _shape(head: Tensor) -> str:
    return "(" + ", ".join(map(str, head.dimensions)) + ")"


def check_symmetry(head: Tensor, array: np.ndarray) -> None:
    """Raise `SymmetryError` unless `array` has the symmetry of `head`, up to `SYMMETRY_TOLERANCE`."""
    scale = float(np.max(np.abs(array), initial=0.0))
    for permutation, sign in head.symmetry.generators:
        deviation = float(np.max(np.abs(array - sign * np.transpose(array, permutation)), initial=0.0))
        if deviation > SYMMETRY_TOLERANCE * scale:
            raise SymmetryError(
                f"array for {head.name} lacks the declared symmetry (slots {permutation}, sign {sign:+d}): it deviates "
                f"by {deviation:.3g} at a scale of {scale:.3g}; symmetrise it or declare another group"
            )


def _size(dimension: DimensionLike, known: Mapping[str, int]) -> int:
    if isinstance(dimension, int):
        return dimension
    if dimension.name not in known:
        raise ArrayError(
            f"the size of dimension {dimension} is unknown: no array has it; pass sizes={{'{dimension}': ..}}"
        )
    return known[dimension.name]
