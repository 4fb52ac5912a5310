"""Scan kernels: a step iterated over depth, with every state and record kept."""

from __future__ import annotations

from symtensor.kernels import Argument, CompositeKernel, ScanKernel

from ..ir import LoopFunction

__all__ = ["lower_scan"]


def lower_scan(kernel: ScanKernel, step: CompositeKernel) -> LoopFunction:
    """Outputs: the states under their argument names, then what the step returns besides, each with an axis of depth."""
    states = {argument.name: argument for argument in step.arguments}
    carried = {returned for _, returned in kernel.carry}
    records = tuple(value for value in step.returns if value.name not in carried)
    outputs = [Argument(name, ("depth + 1", *states[name].shape), states[name].meaning) for name, _ in kernel.carry]
    outputs += [Argument(value.name, ("depth + 1", *value.shape), value.meaning) for value in records]
    return LoopFunction(
        kernel.name, "scan", step.name, step.arguments, kernel.carry, tuple(value.name for value in records),
        tuple(outputs), kernel.title,
    )  # fmt: skip
