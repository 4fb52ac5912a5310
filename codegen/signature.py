"""What each kernel takes and gives: names and shapes, worked out from the kernel alone and those before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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

from .errors import UnboundName
from .names import class_name
from .spec import ModuleSpec

__all__ = ["LAW_OUTPUTS", "LoopKernel", "Signature", "arguments_of", "inner_of", "signature_of", "signatures", "size_of", "step_of"]

#: number of Gaussian variables -> outputs of the law of an expectation kernel
LAW_OUTPUTS = {1: ("m1", "k11"), 2: ("m1", "m2", "k11", "k12", "k22")}
LoopKernel = ScanKernel | OdeKernel | FixedPointKernel
_CONVERGENCE = (
    Argument("converged", (), "whether the last change was within the tolerance"),
    Argument("steps", (), "iterations"),
)


@dataclass(frozen=True, slots=True)
class Signature:
    """Arguments and outputs of an emitted function; one output is an array, several are a named tuple `record`."""

    arguments: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    record: str | None


def signatures(spec: ModuleSpec) -> dict[str, Signature]:
    """Signatures without the checks, for a specification that was analysed."""
    earlier = {kernel.name: kernel for kernel in spec.kernels}
    return {kernel.name: signature_of(kernel, earlier) for kernel in spec.kernels}


def signature_of(kernel: Kernel, earlier: Mapping[str, Kernel]) -> Signature:
    """The signature of one kernel, given those it may call."""
    if isinstance(kernel, BatchKernel):
        return _batched(kernel, signature_of(inner_of(kernel, earlier), earlier))
    outputs = _outputs(kernel, earlier)
    single = len(outputs) == 1 and isinstance(kernel, ScalarKernel | TensorKernel | ArrayKernel | ExpectationKernel)
    single |= isinstance(kernel, CompositeKernel) and kernel.single
    return Signature(arguments_of(kernel, earlier), outputs, None if single else class_name(kernel.name))


def _batched(kernel: BatchKernel, inner: Signature) -> Signature:
    """A new first axis B (B2, .. if the name is taken) on the batched arguments and on every output."""
    used = {extent for value in (*inner.arguments, *inner.outputs) for extent in value.shape}
    length = next(name for name in ("B", *(f"B{n}" for n in range(2, len(used) + 3))) if name not in used)
    arguments = tuple(
        Argument(each.name, (length, *each.shape), each.meaning) if each.name in kernel.batched else each
        for each in inner.arguments
    )
    outputs = tuple(Argument(each.name, (length, *each.shape), each.meaning) for each in inner.outputs)
    return Signature(arguments, outputs, inner.record)


def arguments_of(kernel: Kernel, earlier: Mapping[str, Kernel]) -> tuple[Argument, ...]:
    """The arguments alone, of a kernel that may be wrong otherwise."""
    match kernel:
        case BatchKernel():
            return signature_of(kernel, earlier).arguments
        case MomentKernel():
            return (Argument("K", ("P", "P"), "covariance"),)
        case ScanKernel() | FixedPointKernel():
            return step_of(kernel, earlier).arguments
        case OdeKernel():
            return tuple(argument for argument in step_of(kernel, earlier).arguments if argument.name != kernel.time)
    return kernel.arguments


def _outputs(kernel: Kernel, earlier: Mapping[str, Kernel]) -> tuple[Argument, ...]:
    match kernel:
        case ScalarKernel():
            return tuple(Argument(name) for name, _ in kernel.outputs)
        case ArrayKernel():
            return tuple(Argument(output.name, output.shape) for output in kernel.outputs)
        case ExpectationKernel():
            return (Argument(kernel.name),)
        case TensorKernel():
            return (Argument(kernel.name, tuple(size_of(axis.dimension) for axis in kernel.axes)),)
        case MomentKernel():
            return tuple(Argument(f"m{i}{j}", ("P", "P")) for i, j in kernel.orders)
        case CompositeKernel():
            return kernel.returns
        case ScanKernel() | OdeKernel() | FixedPointKernel():
            return _loop_outputs(kernel, step_of(kernel, earlier))
    raise UnboundName(f"{kernel.name}: {type(kernel).__name__} has no outputs of its own")


def _loop_outputs(kernel: LoopKernel, step: CompositeKernel) -> tuple[Argument, ...]:
    by_name = {argument.name: argument for argument in step.arguments}
    states = [by_name[state] for state, _ in kernel.carry]
    if isinstance(kernel, FixedPointKernel):
        return (*states, *_CONVERGENCE)
    if isinstance(kernel, OdeKernel):
        reached = tuple(Argument(value.name, ("T", *value.shape), value.meaning) for value in states)
        return (*reached, Argument("success"), Argument("steps"))
    carried = {returned for _, returned in kernel.carry}
    rest = [value for value in step.returns if value.name not in carried]
    return tuple(Argument(value.name, ("depth + 1", *value.shape), value.meaning) for value in [*states, *rest])


def size_of(dimension: object) -> str | int:
    """A dimension as it stands in shapes: an integer, or a name."""
    return dimension if isinstance(dimension, int) else str(dimension)


def step_of(kernel: LoopKernel, earlier: Mapping[str, Kernel]) -> CompositeKernel:
    """The composite kernel that a loop repeats.

    Raises
    ------
    UnboundName
        It is not among the kernels, or no composite.
    """
    name = kernel.rhs if isinstance(kernel, OdeKernel) else kernel.step
    step = earlier.get(name)
    if not isinstance(step, CompositeKernel) or step.single:
        missing = f"is not among the earlier kernels {', '.join(earlier) or 'none'}"
        what = "is not a composite kernel with a named tuple" if step else missing
        raise UnboundName(f"{kernel.name}: its step {name!r} {what}")
    return step


def inner_of(kernel: BatchKernel, earlier: Mapping[str, Kernel]) -> Kernel:
    """The kernel that is batched."""
    inner = earlier.get(kernel.inner)
    if inner is None:
        raise UnboundName(f"{kernel.name}: {kernel.inner!r} is not among the earlier kernels {', '.join(earlier) or 'none'}")
    return inner
