"""Scalar kernels: expressions of scalar arguments, elementwise on arrays."""

from __future__ import annotations

from symtensor.derivation.kernels import Argument, ScalarKernel

from ..graph import Graph
from ..ir import ScalarFunction
from ..passes import optimise, schedule
from .expression import convert

__all__ = ["lower_scalar"]


def lower_scalar(kernel: ScalarKernel) -> ScalarFunction:
    """Convert, optimise and schedule all outputs together, so that they share subexpressions."""
    graph = Graph()
    names = {argument.name: argument.name for argument in kernel.arguments}
    roots = tuple(convert(expr, names, f"{kernel.name}.{name}", graph) for name, expr in kernel.outputs)
    plan = schedule(optimise(roots, graph), taken=[*names, *(name for name, _ in kernel.outputs)])
    outputs = tuple(Argument(name) for name, _ in kernel.outputs)
    return ScalarFunction(kernel.name, kernel.arguments, outputs, plan, kernel.title)
