"""Kernels to typed functions: one file per kernel kind, dispatched here."""

from __future__ import annotations

from collections.abc import Mapping

from symtensor.derivation.kernels import (
    CompositeKernel,
    Kernel,
    MomentKernel,
    OdeKernel,
    ScalarKernel,
    ScanKernel,
    TensorKernel,
)

from ..ir import Function
from ..spec import ModuleSpec
from .composite import lower_composite
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
            return lower_scalar(kernel)
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
