"""Values and arguments into kernels: which kinds of kernel a compiled function consists of."""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp

from symtensor.kernels import (
    Argument,
    ArrayKernel,
    ArrayOutput,
    Assignment,
    CompositeKernel,
    ScalarKernel,
    TensorKernel,
)
from symtensor.tensor import Tensor, TensorExpr

from ..errors import UnboundName, UnsupportedNode
from ..names import identifier
from ..signature import size_of
from .arguments import Inputs, read_arguments
from .complex_numbers import split
from .scalars import COMPONENTS, Build, arrays_in, expectations_in, free_symbols, scalar_calls
from .values import ArrayValue, TensorValue, Value

__all__ = ["assemble", "read_inputs", "tensor_call", "tensors_of"]


def assemble(build: Build, name: str, values: Mapping[str, Value], args: Any, single: bool, is_complex: bool = False) -> None:
    """Append the kernels of a function `name`; it is the last one."""
    inputs = read_inputs(args, values)
    build.taken |= {name, *inputs.names}
    if any(isinstance(value, TensorValue) for value in values.values()):
        if is_complex:
            raise UnsupportedNode(f"{name}: complex numbers are supported in scalar formulas and arrays of them, not in tensors")
        _with_tensors(build, name, values, inputs, single)
    elif inputs.scalar_only and not is_complex and all(value.shape == () for value in values.values()):
        _scalars(build, name, values, inputs, single)
    else:
        _arrays(build, name, values, inputs, is_complex)


# -- inputs ------------------------------------------------------------------------------------------------------------


def read_inputs(args: Any, values: Mapping[str, Value], bound: frozenset[str] = frozenset()) -> Inputs:
    """The arguments of the values; `bound` names symbols that are provided otherwise (states)."""
    symbols: set[sp.Symbol] = set()
    tensors: dict[Tensor, None] = {}
    arrays: dict[sp.Basic, None] = {}
    sizes: set[str] = set()
    for value in values.values():
        if isinstance(value, TensorValue):
            tensors.update(dict.fromkeys(tensors_of(value.expression)))
            sizes |= {str(size_of(dimension)) for head in tensors_of(value.expression) for dimension in head.dimensions}
            symbols |= {symbol for term in value.expression.terms for symbol in free_symbols(term.coefficient)}
        else:
            for entry in value.entries:
                symbols |= free_symbols(entry)
                arrays.update(dict.fromkeys(arrays_in(entry)))
    wanted = {symbol for symbol in symbols if identifier(symbol.name) not in sizes}
    inputs = read_arguments(args, wanted, tensors, arrays)
    for array in arrays:
        if not any(str(array.name) == each.name or identifier(str(array.name)) == each.name for each in inputs.given):
            raise UnboundName(f"array {array} is not an argument; arguments: {', '.join(given.name for given in inputs.given)}")
    return inputs


def tensors_of(expression: TensorExpr) -> list[Tensor]:
    """The tensors whose arrays an expression needs."""
    return list(dict.fromkeys(head.source or head for head in expression.heads if not head.is_delta))


def _rewritten(entry: sp.Expr, inputs: Inputs, where: str) -> sp.Expr:
    result = inputs.rewritten(entry)
    left = list(result.atoms(*COMPONENTS)) if arrays_in(result) else []
    if left:
        component = min(map(str, left))
        raise UnboundName(f"{where}: component {component} is outside the shape of its array, or the array is no argument")
    return result


# -- scalars -----------------------------------------------------------------------------------------------------------


def _scalars(build: Build, name: str, values: Mapping[str, ArrayValue], inputs: Inputs, single: bool) -> None:
    outputs = {output: _rewritten(value.entries[0], inputs, f"{name}.{output}") for output, value in values.items()}
    wanted = name
    if _needs_calls(outputs):
        wanted = build.fresh(f"{name}_outer")
        build.taken.discard(wanted)
    else:
        build.taken.discard(name)
    calls = scalar_calls(build, wanted, outputs, inputs.arguments, all_arguments=True)
    if wanted != name:
        returns = tuple(Argument(output) for output in outputs)
        build.kernels.append(CompositeKernel(name, inputs.arguments, tuple(calls), returns, single=single))


def _needs_calls(outputs: Mapping[str, sp.Expr]) -> bool:
    from .expectation import closed_value

    nodes = [node for node in expectations_in(outputs.values()) if closed_value(node) is None]
    return bool(nodes) and list(outputs.values()) != nodes


# -- arrays ------------------------------------------------------------------------------------------------------------


def _arrays(build: Build, name: str, values: Mapping[str, ArrayValue], inputs: Inputs, is_complex: bool) -> None:
    formulas = {
        output: tuple(_rewritten(entry, inputs, f"{name}.{output}") for entry in value.entries) for output, value in values.items()
    }
    arguments, parts = inputs.arguments, dict(inputs.components)
    if is_complex:
        formulas, parts = split(formulas, inputs, build)
    outputs, entries = _entries(values, formulas, is_complex)
    step_arguments = tuple(Argument(part) for part in parts)
    calls = scalar_calls(build, f"{name}_entries", entries, step_arguments)
    if len(calls) > 1 or not isinstance(build.kernels[-1], ScalarKernel):
        raise UnsupportedNode(f"{name}: an expectation without closed form stands inside an array; make it an output of its own")
    places = tuple(parts[argument.name] for argument in build.kernels[-1].arguments)
    build.kernels.append(ArrayKernel(name, arguments, calls[0].kernel, places, outputs))


def _entries(
    values: Mapping[str, ArrayValue], formulas: Mapping[str, tuple[sp.Expr, ...]], is_complex: bool
) -> tuple[tuple[ArrayOutput, ...], dict[str, sp.Expr]]:
    """Outputs, and the formulas of their different entries that are no numbers, under names of their own."""
    names: dict[sp.Expr, str] = {}
    outputs = []
    for output, flat in formulas.items():
        entries = []
        for entry in flat:
            if not entry.free_symbols and entry.is_number and entry.is_real and (names or len(flat) > 1):
                entries.append(entry)
            else:
                entries.append(names.setdefault(entry, f"e{len(names)}"))
        outputs.append(ArrayOutput(output, values[output].shape, tuple(entries), is_complex))
    if not names:  # constants only: one of them is computed, so that there is something to call
        first = outputs[0]
        names[first.entries[0]] = "e0"
        outputs[0] = ArrayOutput(first.name, first.shape, ("e0", *first.entries[1:]), is_complex)
    return tuple(outputs), {name: entry for entry, name in names.items()}


# -- tensors -----------------------------------------------------------------------------------------------------------


def tensor_call(build: Build, wanted: str, value: TensorValue, inputs: Inputs, target: str) -> Assignment:
    """A tensor kernel with the arguments it uses, and its call."""
    expression = value.expression.map_coefficients(inputs.rewritten)
    heads = {head.name for head in tensors_of(expression)}
    symbols = {symbol.name for term in expression.terms for symbol in term.coefficient.free_symbols}
    sizes = {str(size_of(axis.dimension)) for axis in value.axes} | symbols
    used = [
        given.argument
        for given in inputs.given
        if given.name in heads | symbols or any(isinstance(size, str) and size in sizes for size in given.shape)
    ]
    kernel = TensorKernel(build.fresh(wanted), tuple(used), expression, value.axes)
    build.kernels.append(kernel)
    return Assignment((target,), kernel.name, tuple(argument.name for argument in used))


def _with_tensors(build: Build, name: str, values: Mapping[str, Value], inputs: Inputs, single: bool) -> None:
    if single:
        ((_, value),) = values.items()
        expression = value.expression.map_coefficients(inputs.rewritten)
        build.kernels.append(TensorKernel(name, inputs.arguments, expression, value.axes))
        return
    calls: list[Assignment] = []
    returns: list[Argument] = []
    for output, value in values.items():
        if isinstance(value, TensorValue):
            calls.append(tensor_call(build, f"{name}_{output}", value, inputs, output))
            shape = tuple(size_of(axis.dimension) for axis in value.axes)
        else:
            if value.shape:
                raise UnsupportedNode(f"{name}.{output}: arrays of components and tensors are compiled as separate functions")
            formula = {output: _rewritten(value.entries[0], inputs, f"{name}.{output}")}
            calls += scalar_calls(build, f"{name}_{output}", formula, _scalar_arguments(inputs))
            shape = ()
        returns.append(Argument(output, shape))
    build.kernels.append(CompositeKernel(name, inputs.arguments, tuple(calls), tuple(returns)))


def _scalar_arguments(inputs: Inputs) -> tuple[Argument, ...]:
    return tuple(given.argument for given in inputs.given if given.shape == () and given.tensor is None)
