"""Ode kernels: a right-hand side integrated in continuous depth."""

from __future__ import annotations

from symtensor.kernels import Argument, CompositeKernel, OdeKernel

from ..ir import LoopFunction

__all__ = ["lower_ode"]


def lower_ode(kernel: OdeKernel, rhs: CompositeKernel) -> LoopFunction:
    """Outputs: the states at the requested times; what the right-hand side returns besides is not recorded."""
    states = {argument.name: argument for argument in rhs.arguments}
    outputs = tuple(Argument(name, ("T", *states[name].shape), states[name].meaning) for name, _ in kernel.carry)
    arguments = tuple(argument for argument in rhs.arguments if argument.name != kernel.time)
    passed = tuple(argument.name for argument in rhs.arguments)
    return LoopFunction(
        kernel.name, "ode", rhs.name, arguments, kernel.carry, (), outputs, kernel.title, passed, kernel.time
    )  # fmt: skip
