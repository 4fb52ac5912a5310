"""Composite kernels: calls of other kernels in sequence."""

from __future__ import annotations

from symtensor.kernels import CompositeKernel

from ..ir import Call, CompositeFunction

__all__ = ["lower_composite"]


def lower_composite(kernel: CompositeKernel) -> CompositeFunction:
    """The names were checked by `analyse`; nothing else happens here."""
    calls = tuple(Call(step.targets, step.kernel, step.arguments) for step in kernel.assignments)
    return CompositeFunction(kernel.name, kernel.arguments, calls, kernel.returns, kernel.title)
