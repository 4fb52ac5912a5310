"""Where an emitted module is checked: small arguments with short exact decimals, and what they must give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import mpmath
import numpy as np
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
from symtensor.tensor import SymmetryGroup

from .backends.reference import ReferenceBackend, exact
from .certify_points import Interval, domain_of
from .errors import GenerationError
from .reference_text import DIGITS, ReferencePoint
from .signature import signatures
from .spec import ModuleSpec

__all__ = ["TOLERANCES", "reference_points", "test_arguments"]

#: error accepted by the self-check, relative to the largest entry of an array
TOLERANCES = {"float64": 1e-8, "float32": 5e-4}
_SCALARS = ("0.5", "0.75", "0.25", "1.25", "0.875", "0.375", "1.5", "0.625")
#: of loops: smaller, so that the state stays of order one
_LOOP_SCALARS = ("0.25", "0.125", "0.5", "0.1875", "0.375", "0.3125", "0.4375", "0.0625")
#: covariances of two inputs: regular, proportional inputs, one input zero (with the same variances, which is cheaper)
_COVARIANCES = (
    (("1", "0.125"), ("0.125", "0.25")),
    (("0.25", "0.5"), ("0.5", "1")),
    (("0", "0"), ("0", "1")),
)
_LAYERS = 2
#: of the search for a covariance that is positive; the rules of expectations are right up to this variance
_ATTEMPTS, _LARGEST_VARIANCE = 32, 4.0


def reference_points(spec: ModuleSpec) -> tuple[ReferencePoint, ...]:
    """The points embedded in a module: every kernel at least once, except integrations and expectations of two variables.

    A point at which the reference does not exist (no expectation at this variance, say) is left out.
    """
    backend = ReferenceBackend(spec, DIGITS)
    points = []
    for kernel in spec.kernels:
        for arguments in test_arguments(kernel, spec) if not _is_slow(kernel, spec) else ():
            try:
                expected = backend.evaluate(kernel.name, arguments)
            except (ArithmeticError, GenerationError):
                continue
            points.append(ReferencePoint(kernel.name, arguments, expected))
    return tuple(points)


def test_arguments(kernel: Kernel, spec: ModuleSpec, salt: int = 0) -> Iterator[dict[str, Any]]:
    """Arguments of a kernel by name: arrays of mpmath numbers. Another `salt` gives other ones of the same kind."""
    arguments = signatures(spec)[kernel.name].arguments
    match kernel:
        case OdeKernel():
            return
        case MomentKernel():
            for covariance in _COVARIANCES:
                yield {"K": _covariance(covariance, spec, salt)}
        case ScalarKernel():
            yield from _of_both_signs(kernel, salt)
        case TensorKernel():
            groups = {(head.source or head).name: head.symmetry for head in kernel.expression.heads}
            yield {argument.name: _value(argument, place, groups, 2, salt) for place, argument in enumerate(arguments)}
        case ArrayKernel():
            if not any(part.part for part in kernel.inputs):  # the self-check reads real numbers
                groups = {argument.name: SymmetryGroup.trivial(len(argument.shape)) for argument in arguments}
                yield {argument.name: _value(argument, place, groups, 2, salt) for place, argument in enumerate(arguments)}
        case ExpectationKernel():
            yield from _with_a_law(kernel, spec, salt)
        case BatchKernel():
            inner = next(other for other in spec.kernels if other.name == kernel.inner)
            for first, second in zip(test_arguments(inner, spec, salt), test_arguments(inner, spec, salt + 2)):
                yield {name: np.stack([first[name], second[name]]) if name in kernel.batched else first[name] for name in first}
        case CompositeKernel() | ScanKernel() | FixedPointKernel():
            size = 1 if isinstance(kernel, ScanKernel) else 2
            step = kernel if isinstance(kernel, CompositeKernel) else _step(kernel, spec)
            fed = _covariance_arguments(step, spec)
            numbers = _SCALARS if size == 2 else _LOOP_SCALARS
            values = {
                argument.name: _value(argument, place, {}, size, salt, numbers) for place, argument in enumerate(arguments)
            }
            values |= {name: _covariance(_COVARIANCES[0], spec, salt)[:size, :size] for name in fed}
            yield values if size == 2 else values | {"depth": _LAYERS}


def _of_both_signs(kernel: ScalarKernel, salt: int) -> Iterator[dict[str, Any]]:
    """Positive and negative arguments, each within what the assumptions of its symbol allow."""
    domain = domain_of(kernel)
    found: list[dict[str, Any]] = []
    for sign in (1, -1):
        values = {
            argument.name: _allowed(_scalar(place, salt) * sign, domain[argument.name])
            for place, argument in enumerate(kernel.arguments)
        }
        if values not in found:
            found.append(values)
            yield values


def _allowed(value: Any, interval: Interval) -> Any:
    """The value, its opposite, or the nearest larger whole number of either sign: the first that the interval holds."""
    whole = mpmath.ceil(abs(value)) * mpmath.sign(value)
    return next((choice for choice in (value, -value, whole, -whole) if float(choice) in interval), value)


def _is_slow(kernel: Kernel, spec: ModuleSpec) -> bool:
    """Whether its reference would take minutes: an expectation over two variables, or something that calls one."""
    match kernel:
        case ExpectationKernel():
            return len(kernel.variables) > 1
        case CompositeKernel():
            called = {call.kernel for call in kernel.assignments}
        case ScanKernel() | FixedPointKernel():
            called = {kernel.step}
        case BatchKernel():
            called = {kernel.inner}
        case _:
            return False
    return any(_is_slow(other, spec) for other in spec.kernels if other.name in called)


def _with_a_law(kernel: ExpectationKernel, spec: ModuleSpec, salt: int) -> Iterator[dict[str, Any]]:
    """Two sets of arguments for which the law of the expectation exists."""
    law = next(other for other in spec.kernels if other.name == kernel.law)
    assert isinstance(law, ScalarKernel)
    wanted = 2
    for attempt in range(_ATTEMPTS):
        values = {
            argument.name: _scalar(place * (attempt + 1) + attempt, salt) * (-1) ** ((attempt >> place) & 1)
            for place, argument in enumerate(kernel.arguments)
        }
        numbers = {name: float(expr.subs({s: float(values[str(s)]) for s in expr.free_symbols})) for name, expr in law.outputs}
        variances = (numbers["k11"], numbers.get("k22", numbers["k11"]))
        rest = variances[0] * variances[1] - numbers.get("k12", 0.0) ** 2
        if min(variances) > 0 and max(variances) <= _LARGEST_VARIANCE and rest > 0:
            yield values
            wanted -= 1
        if not wanted:
            return


def _step(kernel: ScanKernel | FixedPointKernel, spec: ModuleSpec) -> CompositeKernel:
    found = next(step for step in spec.kernels if step.name == kernel.step)
    assert isinstance(found, CompositeKernel)
    return found


def _covariance_arguments(step: CompositeKernel, spec: ModuleSpec) -> list[str]:
    """Arguments that a moment kernel takes directly."""
    moments = {kernel.name for kernel in spec.kernels if isinstance(kernel, MomentKernel)}
    names = {argument.name for argument in step.arguments}
    return [call.arguments[0] for call in step.assignments if call.kernel in moments and call.arguments[0] in names]


def _covariance(rows: Any, spec: ModuleSpec, salt: int) -> np.ndarray:
    """A covariance, scaled by a power of two so far that the expectation exists with room to spare."""
    critical = min(
        (sp.N(kernel.activation.critical_variance) for kernel in spec.kernels if isinstance(kernel, MomentKernel)),
        default=sp.oo,
    )
    scale = mpmath.mpf(1) if salt == 0 else mpmath.mpf(3) / 4
    while critical != sp.oo and critical > 0 and scale * 8 > critical:
        scale /= 2
    return exact(rows) * scale


def _scalar(place: int, salt: int, numbers: tuple[str, ...] = _SCALARS) -> np.ndarray:
    return exact(numbers[(place + 3 * salt) % len(numbers)])


def _value(
    argument: Argument,
    place: int,
    groups: Mapping[str, SymmetryGroup],
    size: int,
    salt: int,
    numbers: tuple[str, ...] = _SCALARS,
) -> np.ndarray:
    if argument.shape == ():
        return _scalar(place, salt, numbers)
    shape = tuple(extent if isinstance(extent, int) else size for extent in argument.shape)
    group = groups.get(argument.name) or _natural_group(shape)
    values = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        images = [(tuple(index[slot] for slot in permutation), sign) for permutation, sign in group.elements]
        least, sign = min(images)
        number = sum((3 + 2 * slot) * entry for slot, entry in enumerate(least)) + 5 * place + 7 * salt
        values[index] = mpmath.mpf(sign * ((number * 11) % 17 - 6)) / 8
    return values


def _natural_group(shape: tuple[int, ...]) -> SymmetryGroup:
    """Symmetric in each pair of axes and in the pairs, if the axes are equal; this is right for any kernel's arrays."""
    if len(set(shape)) > 1 or len(shape) % 2:
        return SymmetryGroup.trivial(len(shape))
    return SymmetryGroup.pair_symmetric(len(shape) // 2)
