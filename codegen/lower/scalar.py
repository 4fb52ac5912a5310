"""Scalar kernels: expressions of scalar arguments, elementwise on arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy as sp

from symtensor.kernels import Argument, ScalarKernel

from ..graph import Graph, Node, postorder, rebuild
from ..ir import ScalarFunction, StageCall, TapeFunction
from ..names import fresh_names
from ..passes import Stage, assemble, optimise, schedule, stages, straight_line_work
from .expression import Converter

__all__ = ["lower_scalar", "scalar_roots"]


def lower_scalar(kernel: ScalarKernel, budget: int = 6000, staging: bool = True) -> ScalarFunction | TapeFunction:
    """Convert, optimise and schedule all outputs together, so that they share subexpressions.

    Parameters
    ----------
    budget
        Largest `straight_line_work` that is unrolled; a larger kernel becomes a tape.
    staging
        Whether functions that outputs share are evaluated in stages.
    """
    graph = Graph()
    names = [argument.name for argument in kernel.arguments]
    optimised = optimise(scalar_roots(kernel, graph), graph)
    outputs = tuple(Argument(name) for name, _ in kernel.outputs)
    if names and straight_line_work(optimised, budget) > budget:
        tape = assemble(optimised, names)
        return TapeFunction(kernel.name, kernel.arguments, outputs, tape, kernel.title, optimised)
    taken = [*names, *(name for name, _ in kernel.outputs)]
    calls, rest = _staged(optimised, graph, stages(optimised) if staging else (), taken)
    taken += [name for call in calls for name in (call.function, *call.targets)]
    return ScalarFunction(kernel.name, kernel.arguments, outputs, schedule(rest, taken), kernel.title, calls, optimised)


def scalar_roots(kernel: ScalarKernel, graph: Graph) -> tuple[Node, ...]:
    """The outputs as they are, before any pass; they share one conversion."""
    names = {argument.name: argument.name for argument in kernel.arguments}
    converter = Converter(names, kernel.name, graph)
    roots = []
    for name, expr in kernel.outputs:
        converter.where = f"{kernel.name}.{name}"
        roots.append(converter.convert(sp.sympify(expr)))
    return tuple(roots)


def _staged(
    roots: tuple[Node, ...], graph: Graph, found: Iterable[Stage], taken: Iterable[str]
) -> tuple[tuple[StageCall, ...], tuple[Node, ...]]:
    """The calls of the stages, and the outputs in terms of their results."""
    used = set(taken)
    functions, targets = fresh_names("stage", used), fresh_names("s", used)
    known: dict[int, Node] = {}
    calls = []
    for stage in found:
        values = tuple(graph.node(node.op, _replaced(node.args, graph, known), node.value) for node in stage.nodes)
        names = tuple(next(targets) for _ in stage.nodes)
        parameters = tuple(dict.fromkeys(str(node.value) for node in postorder(values) if node.op == "var"))
        function = next(functions)
        calls.append(StageCall(function, parameters, schedule(values, {*used, *names}), names))
        known |= {node.index: graph.var(name) for node, name in zip(stage.nodes, names)}
    return tuple(calls), _replaced(roots, graph, known)


def _replaced(roots: tuple[Node, ...], graph: Graph, known: Mapping[int, Node]) -> tuple[Node, ...]:
    return rebuild(roots, graph, lambda graph, node, args: known.get(node.index)) if known else roots
