"""Checks before anything is lowered: names, shapes, what each kernel needs and gives.

Everything that could be wrong with a set of kernels is reported here, at generation time, by the name of the kernel and
of the offending argument.
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from symtensor.derivation.kernels import (
    Argument,
    CompositeKernel,
    Kernel,
    MomentKernel,
    OdeKernel,
    ScalarKernel,
    ScanKernel,
    TensorKernel,
)
from symtensor.tensor import IndexClashError

from .errors import GenerationError, NameClash, ShapeError, UnboundName
from .names import GENERATED, check_identifier, class_name
from .spec import ModuleSpec

__all__ = ["Signature", "analyse", "signatures"]

#: parameters that loops add to those of their step
_LOOP_PARAMETERS = {ScanKernel: ("depth",), OdeKernel: ("ts", "rtol", "atol", "max_steps", "success", "steps")}


@dataclass(frozen=True, slots=True)
class Signature:
    """Arguments and outputs of an emitted function; one output is an array, several are a named tuple `record`."""

    arguments: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    record: str | None


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
        _unique((*_arguments(kernel, earlier), *map(Argument, _LOOP_PARAMETERS.get(type(kernel), ()))), kernel.name)
        _CHECKS[type(kernel)](kernel, found, earlier)
        signature = _signature(kernel, earlier)
        taken = GENERATED | records | {other.name for other in spec.kernels}
        if signature.record in taken:
            raise NameClash(f"{kernel.name}: its result is called {signature.record}, which is taken; rename the kernel")
        records |= {signature.record} - {None}
        found[kernel.name], earlier[kernel.name] = signature, kernel
    return found


def signatures(spec: ModuleSpec) -> dict[str, Signature]:
    """Signatures without the checks, for a specification that was analysed."""
    earlier = {kernel.name: kernel for kernel in spec.kernels}
    return {kernel.name: _signature(kernel, earlier) for kernel in spec.kernels}


def _unique(arguments: Iterable[Argument], where: str) -> None:
    seen: set[str] = set()
    for argument in arguments:
        check_identifier(argument.name, f"{where}: argument")
        if argument.name in seen:
            raise NameClash(f"{where}: two arguments or outputs are called {argument.name!r}")
        seen.add(argument.name)


def _signature(kernel: Kernel, earlier: Mapping[str, Kernel]) -> Signature:
    outputs = _outputs(kernel, earlier)
    single = len(outputs) == 1 and isinstance(kernel, ScalarKernel | TensorKernel)
    return Signature(_arguments(kernel, earlier), outputs, None if single else class_name(kernel.name))


def _arguments(kernel: Kernel, earlier: Mapping[str, Kernel]) -> tuple[Argument, ...]:
    match kernel:
        case MomentKernel():
            return (Argument("K", ("P", "P"), "covariance"),)
        case ScanKernel() | OdeKernel():
            name = kernel.step if isinstance(kernel, ScanKernel) else kernel.rhs
            return _step(kernel, name, earlier).arguments
    return kernel.arguments


def _outputs(kernel: Kernel, earlier: Mapping[str, Kernel]) -> tuple[Argument, ...]:
    match kernel:
        case ScalarKernel():
            return tuple(Argument(name) for name, _ in kernel.outputs)
        case TensorKernel():
            return (Argument(kernel.name, tuple(_size(axis.dimension) for axis in kernel.axes)),)
        case MomentKernel():
            return tuple(Argument(f"m{i}{j}", ("P", "P")) for i, j in kernel.orders)
        case CompositeKernel():
            return kernel.returns
        case ScanKernel():
            step = _step(kernel, kernel.step, earlier)
            carried = {returned for _, returned in kernel.carry}
            rest = [value for value in step.returns if value.name not in carried]
            return tuple(
                Argument(value.name, ("depth + 1", *value.shape), value.meaning) for value in [*_states(kernel, step), *rest]
            )
    step = _step(kernel, kernel.rhs, earlier)
    states = tuple(Argument(value.name, ("T", *value.shape), value.meaning) for value in _states(kernel, step))
    return (*states, Argument("success"), Argument("steps"))


def _states(kernel: ScanKernel | OdeKernel, step: CompositeKernel) -> list[Argument]:
    by_name = {argument.name: argument for argument in step.arguments}
    return [by_name[state] for state, _ in kernel.carry]


def _size(dimension: object) -> str | int:
    return dimension if isinstance(dimension, int) else str(dimension)


def _step(kernel: ScanKernel | OdeKernel, name: str, earlier: Mapping[str, Kernel]) -> CompositeKernel:
    step = earlier.get(name)
    if not isinstance(step, CompositeKernel):
        what = "is not a composite kernel" if step else f"is not among the earlier kernels {', '.join(earlier) or 'none'}"
        raise UnboundName(f"{kernel.name}: its step {name!r} {what}")
    return step


# -- checks per kind ---------------------------------------------------------------------------------------------------


def _check_scalar(kernel: ScalarKernel, found: Mapping[str, Signature], earlier: Mapping[str, Kernel]) -> None:
    if not kernel.outputs:
        raise GenerationError(f"{kernel.name}: a scalar kernel needs at least one output")
    _unique((*kernel.arguments, *(Argument(name) for name, _ in kernel.outputs)), kernel.name)
    for argument in kernel.arguments:
        if argument.shape != ():
            raise ShapeError(f"{kernel.name}: argument {argument.name} has shape {argument.shape}; scalar kernels take scalars")


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
        shape = tuple(_size(dimension) for dimension in array.dimensions)
        if argument.shape != shape:
            raise ShapeError(f"{kernel.name}: argument {array.name} has shape {argument.shape}, its tensor has {shape}")
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
            if shape != wanted.shape and not isinstance(earlier[call.kernel], ScalarKernel):
                raise ShapeError(f"{kernel.name}: {given} has shape {shape}, {call.kernel} wants {wanted.shape} for {wanted.name}")
        for target in call.targets:
            check_identifier(target, f"{kernel.name}: local")
            if target in values:
                raise NameClash(f"{kernel.name}: {target!r} is assigned twice")
        if isinstance(earlier[call.kernel], ScalarKernel):
            signature = _elementwise(signature, [_shape_of(name, values, kernel.name) for name in call.arguments])
        values.update(_bound(call.targets, signature, call.kernel, kernel.name))
    for value in kernel.returns:
        check_identifier(value.name, f"{kernel.name}: returned value")
        shape = _shape_of(value.name, values, kernel.name)
        if shape != value.shape:
            raise ShapeError(f"{kernel.name}: returned {value.name} is declared {value.shape}, it has shape {shape}")
    _unique(kernel.returns, kernel.name)


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


def _check_loop(kernel: ScanKernel | OdeKernel, found: Mapping[str, Signature], earlier: Mapping[str, Kernel]) -> None:
    step = _step(kernel, kernel.step if isinstance(kernel, ScanKernel) else kernel.rhs, earlier)
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
    _unique(_outputs(kernel, earlier), kernel.name)


_CHECKS = {
    ScalarKernel: _check_scalar,
    TensorKernel: _check_tensor,
    MomentKernel: _check_moments,
    CompositeKernel: _check_composite,
    ScanKernel: _check_loop,
    OdeKernel: _check_loop,
}
