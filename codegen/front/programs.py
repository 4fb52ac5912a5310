"""Recursions, flows and fixed points: a step as a composite kernel, and the loop around it."""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp

from symtensor.kernels import (
    Argument,
    Assignment,
    CompositeKernel,
    FixedPointKernel,
    OdeKernel,
    ScanKernel,
)
from symtensor.programs import FixedPoint, Ode, Scan
from symtensor.tensor import Index, Tensor, TensorExpr

from ..errors import InputError, NameClash, ShapeError
from ..names import check_identifier, identifier
from ..signature import size_of
from .arguments import Inputs
from .assemble import read_inputs, tensor_call
from .scalars import Build, scalar_calls
from .values import TensorValue, Value, read_values

__all__ = ["Program", "build_program"]

Program = Scan | Ode | FixedPoint


def build_program(build: Build, name: str, program: Program, args: Any) -> None:
    """Append the step and the loop `name`; arguments are the states (initial values) first, unless given.

    Raises
    ------
    InputError, NameClash, ShapeError
        States that are no arguments, names used twice, a formula of another shape than its state.
    """
    formulas, records = _formulas(program)
    states = [_state_name(state) for state in formulas]
    if len(set(states)) < len(states):
        raise NameClash(f"{name}: two states are called alike in emitted code: {', '.join(states)}")
    values = _values(formulas, records, states, name)
    time = program.time if isinstance(program, Ode) else None
    inputs = read_inputs(_arguments(args, list(formulas), values, time), values)
    _check(name, formulas, states, inputs, time)
    build.taken |= {name, *inputs.names, *records}
    step = _step(build, name, values, states, inputs, records)
    build.kernels.append(step)
    carry = tuple((state, target) for state, target in zip(states, (value.name for value in step.returns)))
    match program:
        case Scan():
            build.kernels.append(ScanKernel(name, step.name, carry))
        case FixedPoint():
            build.kernels.append(FixedPointKernel(name, step.name, carry))
        case Ode():
            label = identifier(time.name) if time is not None else ""
            label = label if label in {argument.name for argument in step.arguments} else ""
            build.kernels.append(OdeKernel(name, step.name, carry, time=label))


def _formulas(program: Program) -> tuple[Mapping[Any, Any], Mapping[str, Any]]:
    if isinstance(program, Scan):
        return program.step, {check_identifier(name, "record"): value for name, value in program.records.items()}
    return (program.rates if isinstance(program, Ode) else program.equations), {}


def _state_name(state: Any) -> str:
    return identifier(state.name) if isinstance(state, sp.Symbol) else state.terms[0].factors[0].tensor.name


def _values(formulas: Mapping[Any, Any], records: Mapping[str, Any], states: list[str], where: str) -> dict[str, Value]:
    """State -> its formula, record -> its formula; a tensor state fixes the axes of its formula."""
    values: dict[str, Value] = {}
    for (state, formula), label in zip(formulas.items(), states):
        if isinstance(state, sp.Symbol):
            value = read_values({label: formula}, None, where)[label]
            if value.axes if isinstance(value, TensorValue) else value.shape:
                raise ShapeError(f"{where}: the state {label} is a scalar, its formula {formula} is not")
        else:
            axes = state.terms[0].factors[0].indices
            value = _tensor_value(formula, axes, f"{where}.{label}")
            _check_symmetry(value, state.terms[0].factors[0].tensor, f"{where}.{label}")
        values[label] = value
    for record, formula in records.items():
        if record in values:
            raise NameClash(f"{where}: record {record!r} has the name of a state")
        values[record] = read_values({record: formula}, None, where)[record]
    return values


def _tensor_value(formula: Any, axes: tuple[Any, ...], where: str) -> TensorValue:
    shown = ", ".join(map(str, axes))
    if not isinstance(formula, TensorExpr):
        raise ShapeError(f"{where}: the state is a tensor with axes {shown}, its formula {formula!r} is no tensor")
    if not all(isinstance(axis, Index) for axis in axes) or set(axes) != set(formula.free):
        free = ", ".join(sorted(index.name for index in formula.free))
        raise ShapeError(f"{where}: the state has axes {shown}, its formula has the free indices {free or 'none'}")
    return TensorValue(formula, axes)


def _check_symmetry(value: TensorValue, state: Tensor, where: str) -> None:
    """A symmetry that the state is declared with must be one of its formula, because the formula relies on it."""
    for permutation, sign in state.symmetry.generators:
        moved = {axis: value.axes[place] for axis, place in zip(value.axes, permutation)}
        if value.expression.rename(moved) != sign * value.expression:
            raise ShapeError(
                f"{where}: the state {state.name} is declared with the symmetry {permutation} (sign {sign}) of its slots, its "
                "formula does not have it; declare the state without it, or symmetrise the formula"
            )


def _arguments(args: Any, states: list[Any], values: Mapping[str, Value], time: sp.Symbol | None) -> Any:
    """Without `args`: states, then parameters and tensors by name, then the time."""
    heads = [state if isinstance(state, sp.Symbol) else state.terms[0].factors[0].tensor for state in states]
    if args is None:
        found = read_inputs(None, values)
        rest = [given for given in found.given if not any(_same(given, head) for head in heads)]
        others = [given.tensor or given.symbols[0] for given in rest if time is None or given.symbols != (time,)]
        given: list[Any] = [*heads, *others]
    elif isinstance(args, Mapping):
        return {**args, **({identifier(time.name): time} if time is not None else {})}
    else:
        given = list(args) if not isinstance(args, str) else args.replace(",", " ").split()
    return [*given, *([time] if time is not None else [])]


def _same(given: Any, head: Any) -> bool:
    return given.tensor == head if given.tensor is not None else given.symbols == (head,)


def _check(name: str, formulas: Mapping[Any, Any], states: list[str], inputs: Inputs, time: sp.Symbol | None) -> None:
    known = {given.name: given for given in inputs.given}
    for state, label in zip(formulas, states):
        given = known.get(label)
        expected = state if isinstance(state, sp.Symbol) else state.terms[0].factors[0].tensor
        if given is None or not _same(given, expected):
            raise InputError(f"{name}: the state {label} is not among the arguments {', '.join(known)}; its initial value is one")
    for given in inputs.given:
        if given.tensor is None and given.shape:
            raise InputError(f"{name}: argument {given.name} is an array of components; use tensors or scalars")


def _step(
    build: Build, name: str, values: Mapping[str, Value], states: list[str], inputs: Inputs, records: Mapping[str, Any]
) -> CompositeKernel:
    """All formulas in one composite; scalar ones in one kernel."""
    targets = {label: label if label in records else build.fresh(f"{label}_next") for label in [*states, *records]}
    calls: list[Assignment] = []
    scalars = {}
    for label, value in values.items():
        if isinstance(value, TensorValue):
            calls.append(tensor_call(build, f"{name}_{label}", value, inputs, targets[label]))
        else:
            scalars[targets[label]] = inputs.rewritten(value.entries[0])
    if scalars:
        arguments = tuple(given.argument for given in inputs.given if given.tensor is None)
        calls += scalar_calls(build, f"{name}_formulas", scalars, arguments)
    returns = []
    for label in [*states, *records]:
        value = values[label]
        shape = tuple(size_of(axis.dimension) for axis in value.axes) if isinstance(value, TensorValue) else ()
        returns.append(Argument(targets[label], shape))
    used = {argument for call in calls for argument in call.arguments}
    needed = tuple(given.argument for given in inputs.given if given.name in used or given.name in states)
    return CompositeKernel(build.fresh(f"{name}_step"), needed, tuple(calls), tuple(returns), "One step.")
