"""Kernels to typed functions: one file per kernel kind, dispatched here."""

from __future__ import annotations

from collections.abc import Mapping

from symtensor.kernels import (
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

from ..ir import Function
from ..signature import signatures
from ..spec import ModuleSpec
from .array import lower_array
from .batch import lower_batch
from .composite import lower_composite
from .expectation import lower_expectation
from .fixed_point import lower_fixed_point
from .moments import lower_moments
from .ode import lower_ode
from .scalar import lower_scalar
from .scan import lower_scan
from .tensor import lower_tensor

__all__ = ["lower"]


def lower(spec: ModuleSpec) -> tuple[Function, ...]:
    """Every kernel of an analysed specification, in order."""
    by_name = {kernel.name: kernel for kernel in spec.kernels}
    return tuple(_lower(kernel, spec, by_name) for kernel in spec.kernels)


def _lower(kernel: Kernel, spec: ModuleSpec, by_name: Mapping[str, Kernel]) -> Function:
    match kernel:
        case ScalarKernel():
            return lower_scalar(kernel, spec.budget, spec.staging)
        case TensorKernel():
            return lower_tensor(kernel)
        case MomentKernel():
            return lower_moments(kernel, spec.rule, spec.derivatives)
        case CompositeKernel():
            return lower_composite(kernel)
        case ScanKernel():
            return lower_scan(kernel, by_name[kernel.step])  # type: ignore[arg-type]
        case OdeKernel():
            return lower_ode(kernel, by_name[kernel.rhs])  # type: ignore[arg-type]
        case ArrayKernel():
            return lower_array(kernel, by_name[kernel.step])  # type: ignore[arg-type]
        case ExpectationKernel():
            return lower_expectation(kernel, by_name[kernel.integrand], by_name[kernel.law])  # type: ignore[arg-type]
        case FixedPointKernel():
            return lower_fixed_point(kernel, by_name[kernel.step], signatures(spec)[kernel.name].outputs)  # type: ignore[arg-type]
        case BatchKernel():
            signature = signatures(spec)[kernel.name]
            return lower_batch(kernel, by_name[kernel.inner], signature.arguments, signature.outputs)
