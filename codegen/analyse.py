"""Checks before anything is lowered: names, shapes, what each kernel needs and gives.

Everything that could be wrong with a set of kernels is reported here, at generation time, by the name of the kernel and
of the offending argument.
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy as sp

from symtensor.kernels import (
    Argument,
    ArrayKernel,
    BatchKernel,
    CompositeKernel,
    ExpectationKernel,
    FixedPointKernel,
    Kernel,
    MomentKernel,
    OdeKernel,
    ScalarKernel,
    ScanKernel,
    TensorKernel,
)
from symtensor.tensor import IndexClashError

from .errors import GenerationError, NameClash, ShapeError, UnboundName
from .names import GENERATED, check_identifier
from .signature import LAW_OUTPUTS, LoopKernel, Signature, arguments_of, inner_of, signature_of, signatures, size_of, step_of
from .spec import ModuleSpec
from .strict import check_expressions

__all__ = ["KERNEL_KINDS", "Signature", "analyse", "signatures"]

#: parameters that loops add to those of their step
_LOOP_PARAMETERS = {
    ScanKernel: ("depth",),
    OdeKernel: ("ts", "rtol", "atol", "max_steps", "success", "steps"),
    FixedPointKernel: ("tol", "max_steps", "converged", "steps"),
}


def analyse(spec: ModuleSpec) -> dict[str, Signature]:
    """Signatures of all kernels, by name.

    Raises
    ------
    NameClash
        A name that is not an identifier, reserved, or used twice.
    UnboundName
        A symbol, tensor head, local or kernel that nothing provides.
    ShapeError
        An argument of another shape than what it stands for.
    GenerationError
        An empty set of kernels, an object that is no kernel, wrong numbers of arguments.
    """
    check_identifier(spec.name, "module name")
    if not spec.kernels:
        raise GenerationError(f"module {spec.name}: no kernels; pass at least one")
    found: dict[str, Signature] = {}
    earlier: dict[str, Kernel] = {}
    records: set[str | None] = set()
    for kernel in spec.kernels:
        if type(kernel) not in _CHECKS:
            raise GenerationError(f"module {spec.name}: {type(kernel).__name__} is no kernel")
        check_identifier(kernel.name, "kernel")
        if kernel.name in found:
            raise NameClash(f"two kernels are called {kernel.name!r}")
        _unique((*arguments_of(kernel, earlier), *map(Argument, _LOOP_PARAMETERS.get(type(kernel), ()))), kernel.name)
        _CHECKS[type(kernel)](kernel, found, earlier)
        signature = signature_of(kernel, earlier)
        taken = GENERATED | records | {other.name for other in spec.kernels}
        if signature.record in taken and not isinstance(kernel, BatchKernel):
            raise NameClash(f"{kernel.name}: its result is called {signature.record}, which is taken; rename the kernel")
        records |= {signature.record} - {None}
        found[kernel.name], earlier[kernel.name] = signature, kernel
    return found


def _unique(arguments: Iterable[Argument], where: str) -> None:
    seen: set[str] = set()
    for argument in arguments:
        check_identifier(argument.name, f"{where}: argument")
        if argument.name in seen:
            raise NameClash(f"{where}: two arguments or outputs are called {argument.name!r}")
        seen.add(argument.name)


# -- checks per kind ---------------------------------------------------------------------------------------------------


def _check_scalar(kernel: ScalarKernel, found: Mapping[str, Signature], earlier: Mapping[str, Kernel]) -> None:
    if not kernel.outputs:
        raise GenerationError(f"{kernel.name}: a scalar kernel needs at least one output")
    _unique((Argument(name) for name, _ in kernel.outputs), kernel.name)
    for argument in kernel.arguments:
        if argument.shape != ():
            raise ShapeError(f"{kernel.name}: argument {argument.name} has shape {argument.shape}; scalar kernels take scalars")
    check_expressions({f"{kernel.name}.{name}": sp.sympify(expr) for name, expr in kernel.outputs})


def _check_tensor(kernel: TensorKernel, found: Mapping[str, Signature], earlier: Mapping[str, Kernel]) -> None:
    by_name = {argument.name: argument for argument in kernel.arguments}
    if len(set(kernel.axes)) != len(kernel.axes) or frozenset(kernel.axes) != kernel.expression.free:
        axes = ", ".join(axis.name for axis in kernel.axes)
        free = ", ".join(sorted(index.name for index in kernel.expression.free))
        raise IndexClashError(f"{kernel.name}: axes ({axes}) are not the free indices ({free}) of its expression, each once")
    for head in kernel.expression.heads:
        array = head.source or head
        argument = by_name.get(array.name)
        if argument is None:
            raise UnboundName(f"{kernel.name}: tensor {array.name!r} is not an argument; arguments: {', '.join(by_name)}")
        shape = tuple(size_of(dimension) for dimension in array.dimensions)
        if argument.shape != shape:
            raise ShapeError(f"{kernel.name}: argument {array.name} has shape {argument.shape}, its tensor has {shape}")
    coefficients = {term.coefficient: None for term in kernel.expression.terms}
    check_expressions({f"{kernel.name}, coefficient {each}": each for each in coefficients})
    sizes = {size for argument in kernel.arguments for size in argument.shape if isinstance(size, str)}
    for term in kernel.expression.terms:
        for symbol in sorted(term.coefficient.free_symbols, key=str):
            known = by_name.get(symbol.name)
            if known is None and symbol.name not in sizes:
                raise UnboundName(f"{kernel.name}: coefficient symbol {symbol.name!r} is not an argument")
            if known is not None and known.shape != ():
                raise ShapeError(f"{kernel.name}: {symbol.name} is a coefficient, its argument has shape {known.shape}")


def _check_moments(kernel: MomentKernel, found: Mapping[str, Signature], earlier: Mapping[str, Kernel]) -> None:
    if any(isinstance(other, MomentKernel) for other in earlier.values()):
        raise GenerationError(f"{kernel.name}: a module holds one moment kernel; generate another module for the second")


def _check_composite(kernel: CompositeKernel, found: Mapping[str, Signature], earlier: Mapping[str, Kernel]) -> None:
    values: dict[str, tuple | Signature] = {argument.name: argument.shape for argument in kernel.arguments}
    for argument in kernel.arguments:
        if argument.name in found:
            raise NameClash(f"{kernel.name}: argument {argument.name!r} hides the kernel of this name; rename one")
    for call in kernel.assignments:
        if call.kernel not in found:
            raise UnboundName(f"{kernel.name}: calls {call.kernel!r}, which is not among the earlier kernels {', '.join(found)}")
        signature = found[call.kernel]
        if isinstance(earlier[call.kernel], ScanKernel | OdeKernel):
            raise GenerationError(f"{kernel.name}: {call.kernel!r} is a loop over depth; a composite calls kernels of one layer")
        if len(call.arguments) != len(signature.arguments):
            wanted = ", ".join(argument.name for argument in signature.arguments)
            raise GenerationError(f"{kernel.name}: {call.kernel} takes ({wanted}), got ({', '.join(call.arguments)})")
        for given, wanted in zip(call.arguments, signature.arguments):
            shape = _shape_of(given, values, kernel.name)
            if shape != wanted.shape and not isinstance(earlier[call.kernel], ScalarKernel | ExpectationKernel):
                raise ShapeError(f"{kernel.name}: {given} has shape {shape}, {call.kernel} wants {wanted.shape} for {wanted.name}")
        for target in call.targets:
            check_identifier(target, f"{kernel.name}: local")
            if target in values:
                raise NameClash(f"{kernel.name}: {target!r} is assigned twice")
        if isinstance(earlier[call.kernel], ScalarKernel | ExpectationKernel):
            signature = _elementwise(signature, [_shape_of(name, values, kernel.name) for name in call.arguments])
        values.update(_bound(call.targets, signature, call.kernel, kernel.name))
    for value in kernel.returns:
        check_identifier(value.name, f"{kernel.name}: returned value")
        shape = _shape_of(value.name, values, kernel.name)
        if shape != value.shape:
            raise ShapeError(f"{kernel.name}: returned {value.name} is declared {value.shape}, it has shape {shape}")
    _unique(kernel.returns, kernel.name)
    if kernel.single and len(kernel.returns) != 1:
        raise GenerationError(f"{kernel.name}: {len(kernel.returns)} values are returned, single wants one")


def _elementwise(signature: Signature, shapes: list[tuple]) -> Signature:
    """A scalar kernel gives arrays of the largest shape it is given."""
    shape = max(shapes, key=len, default=())
    return Signature(signature.arguments, tuple(Argument(out.name, shape) for out in signature.outputs), signature.record)


def _shape_of(name: str, values: Mapping[str, tuple | Signature], where: str) -> tuple:
    local, _, field = name.partition(".")
    if local not in values:
        raise UnboundName(f"{where}: {name!r} is neither an argument nor an earlier target; known: {', '.join(values)}")
    value = values[local]
    if not isinstance(value, Signature):
        if field:
            raise UnboundName(f"{where}: {name!r}: {local} is an array and has no fields")
        return value
    shapes = {output.name: output.shape for output in value.outputs}
    if field not in shapes:
        raise UnboundName(f"{where}: {name!r} is no field; {local} has {', '.join(shapes)}")
    return shapes[field]


def _bound(targets: tuple[str, ...], signature: Signature, called: str, where: str) -> dict[str, tuple | Signature]:
    if signature.record is None and len(targets) == 1:
        return {targets[0]: signature.outputs[0].shape}
    if len(targets) == 1:
        return {targets[0]: signature}
    if len(targets) != len(signature.outputs):
        raise GenerationError(f"{where}: {called} returns {len(signature.outputs)} values, got targets {', '.join(targets)}")
    return dict(zip(targets, (output.shape for output in signature.outputs)))


def _check_loop(kernel: LoopKernel, found: Mapping[str, Signature], earlier: Mapping[str, Kernel]) -> None:
    step = step_of(kernel, earlier)
    arguments = {argument.name: argument for argument in step.arguments}
    returns = {value.name: value for value in step.returns}
    if not kernel.carry or len(dict(kernel.carry)) < len(kernel.carry):
        raise GenerationError(f"{kernel.name}: carry {kernel.carry} is empty or names a state twice")
    for state, returned in kernel.carry:
        if state not in arguments:
            raise UnboundName(f"{kernel.name}: state {state!r} is not an argument of {step.name}")
        if returned not in returns:
            raise UnboundName(f"{kernel.name}: {returned!r} is not returned by {step.name}")
        if arguments[state].shape != returns[returned].shape:
            raise ShapeError(
                f"{kernel.name}: state {state} has shape {arguments[state].shape}, {returned} has {returns[returned].shape}"
            )
    _unique(signature_of(kernel, earlier).outputs, kernel.name)


def _check_time(kernel: OdeKernel, found: Mapping[str, Signature], earlier: Mapping[str, Kernel]) -> None:
    shapes = {argument.name: argument.shape for argument in step_of(kernel, earlier).arguments}
    if kernel.time and (shapes.get(kernel.time) != () or kernel.time in dict(kernel.carry)):
        raise UnboundName(f"{kernel.name}: time {kernel.time!r} is no scalar argument of {kernel.rhs}, or is a state")
    _check_loop(kernel, found, earlier)


def _check_array(kernel: ArrayKernel, found: Mapping[str, Signature], earlier: Mapping[str, Kernel]) -> None:
    step = _scalar_kernel(kernel.name, kernel.step, earlier)
    shapes = {argument.name: argument.shape for argument in kernel.arguments}
    if len(kernel.inputs) != len(step.arguments):
        count = f"{len(step.arguments)} arguments, got {len(kernel.inputs)} components"
        raise GenerationError(f"{kernel.name}: {step.name} takes {count}")
    for part in kernel.inputs:
        shape = shapes.get(part.argument)
        if shape is None:
            raise UnboundName(f"{kernel.name}: component of {part.argument!r}, which is no argument; there are {', '.join(shapes)}")
        if len(part.place) != len(shape) or not all(isinstance(n, int) and 0 <= i < n for i, n in zip(part.place, shape)):
            raise ShapeError(f"{kernel.name}: component {part.place} of {part.argument}, which has shape {shape}")
    known = {name for name, _ in step.outputs}
    for output in kernel.outputs:
        count = (2 if output.is_complex else 1) * int(sp.prod(output.shape))
        if count == 0 or len(output.entries) != count:
            entries = f"{len(output.entries)} entries, needs {count}"
            raise ShapeError(f"{kernel.name}: {output.name} of shape {output.shape} has {entries}")
        for entry in output.entries:
            if isinstance(entry, str) and entry not in known:
                raise UnboundName(f"{kernel.name}: entry {entry!r} of {output.name} is no output of {step.name}")
    _unique((Argument(output.name) for output in kernel.outputs), kernel.name)


def _check_expectation(kernel: ExpectationKernel, found: Mapping[str, Signature], earlier: Mapping[str, Kernel]) -> None:
    integrand = _scalar_kernel(kernel.name, kernel.integrand, earlier)
    law = _scalar_kernel(kernel.name, kernel.law, earlier)
    wanted = LAW_OUTPUTS.get(len(kernel.variables))
    if wanted is None or tuple(name for name, _ in law.outputs) != wanted:
        raise GenerationError(f"{kernel.name}: 1 or 2 variables, and a law with outputs {LAW_OUTPUTS[1]} or {LAW_OUTPUTS[2]}")
    if len(integrand.outputs) > len(kernel.variables):
        raise GenerationError(f"{kernel.name}: {integrand.name} has {len(integrand.outputs)} outputs; it is to be one function")
    provided = {argument.name for argument in kernel.arguments}
    for name in [argument.name for argument in integrand.arguments if argument.name not in kernel.variables] + [
        argument.name for argument in law.arguments
    ]:
        if name not in provided:
            raise UnboundName(f"{kernel.name}: {name!r} is neither a Gaussian variable nor an argument")
    for argument in kernel.arguments:
        if argument.shape != ():
            raise ShapeError(f"{kernel.name}: argument {argument.name} has shape {argument.shape}; an expectation takes scalars")


def _scalar_kernel(where: str, name: str, earlier: Mapping[str, Kernel]) -> ScalarKernel:
    step = earlier.get(name)
    if not isinstance(step, ScalarKernel):
        raise UnboundName(f"{where}: {name!r} is no scalar kernel among the earlier kernels {', '.join(earlier) or 'none'}")
    return step


def _check_batch(kernel: BatchKernel, found: Mapping[str, Signature], earlier: Mapping[str, Kernel]) -> None:
    inner = inner_of(kernel, earlier)
    if isinstance(inner, BatchKernel | FixedPointKernel):
        raise GenerationError(f"{kernel.name}: {inner.name} is a {type(inner).__name__}; its arguments have batch axes already")
    names = {argument.name for argument in found[inner.name].arguments}
    if not kernel.batched or not set(kernel.batched) <= names or len(set(kernel.batched)) < len(kernel.batched):
        there = ", ".join(sorted(names))
        raise UnboundName(f"{kernel.name}: batched {kernel.batched} are not arguments of {inner.name} ({there}), each once")


_CHECKS = {
    ScalarKernel: _check_scalar,
    TensorKernel: _check_tensor,
    MomentKernel: _check_moments,
    CompositeKernel: _check_composite,
    ScanKernel: _check_loop,
    OdeKernel: _check_time,
    FixedPointKernel: _check_loop,
    ArrayKernel: _check_array,
    ExpectationKernel: _check_expectation,
    BatchKernel: _check_batch,
}

#: every kind of kernel
KERNEL_KINDS: tuple[type, ...] = tuple(_CHECKS)
