"""Scalar formulas into calls of kernels: Gaussian expectations inside them become kernels of their own."""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import sympy as sp
from sympy.matrices.expressions.matexpr import MatrixElement

from symtensor.kernels import Argument, Assignment, Kernel, ScalarKernel
from symtensor.numerics.rules import Rule
from symtensor.programs import GaussianExpectation

from ..names import fresh_names
from ..strict import nodes_of
from .expectation import closed_value, expectation_kernels

__all__ = ["COMPONENTS", "Build", "arrays_in", "expectations_in", "free_symbols", "scalar_calls"]

#: components of arrays, which are arguments or are bound by one
COMPONENTS = (sp.Indexed, MatrixElement)


@dataclass(slots=True)
class Build:
    """The kernels made so far, and the names that are in use; `variance` up to which rules that are chosen must be right."""

    name: str
    rule: Rule | None = None
    variance: float = 4.0
    kernels: list[Kernel] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)

    def fresh(self, wanted: str) -> str:
        """`wanted`, or a numbered name if that is taken."""
        name = wanted if wanted not in self.taken else next(fresh_names(f"{wanted}_", self.taken))
        self.taken.add(name)
        return name


def free_symbols(expression: sp.Basic) -> set[sp.Symbol]:
    """Symbols that are not bound by an expectation or a sum; without recursion, because formulas may be deep."""
    found: set[sp.Symbol] = set()
    stack, seen = [expression], {expression}
    while stack:
        node = stack.pop()
        if isinstance(node, sp.Symbol):
            found.add(node)
        elif isinstance(node, GaussianExpectation | sp.Sum | sp.Product | sp.Integral | sp.Derivative | sp.Subs):
            found |= {symbol for symbol in node.free_symbols if isinstance(symbol, sp.Symbol)}
        elif not isinstance(node, COMPONENTS):
            fresh = [argument for argument in node.args if argument not in seen and isinstance(argument, sp.Basic)]
            seen.update(fresh)
            stack.extend(fresh)
    return found


def arrays_in(expression: sp.Basic) -> list[sp.Basic]:
    """The IndexedBase and MatrixSymbol objects whose components occur, sorted by name."""
    components = (node for node in nodes_of(expression) if isinstance(node, COMPONENTS))
    return sorted({node.base if isinstance(node, sp.Indexed) else node.parent for node in components}, key=str)


def expectations_in(expressions: Iterable[sp.Basic]) -> list[GaussianExpectation]:
    """The outermost expectations, each once, in a fixed order."""
    found: dict[GaussianExpectation, None] = {}
    for expression in expressions:
        inside = [node for node in nodes_of(expression) if isinstance(node, GaussianExpectation)]
        nested = {inner for node in inside for inner in nodes_of(node.function) if isinstance(inner, GaussianExpectation)}
        found.update(dict.fromkeys(sorted(set(inside) - nested, key=sp.default_sort_key)))
    return list(found)


def scalar_calls(
    build: Build, wanted: str, outputs: Mapping[str, sp.Expr], arguments: tuple[Argument, ...], *, all_arguments: bool = False
) -> list[Assignment]:
    """Kernels that compute the outputs, and the calls, in order; the last one assigns the outputs.

    Parameters
    ----------
    wanted
        Name of the kernel of the outputs.
    outputs
        Name -> formula in symbols named like the arguments.
    arguments
        What may be used; scalars.
    all_arguments
        Whether the last kernel takes all of them, used or not.
    """
    calls: list[Assignment] = []
    replaced: dict[sp.Expr, sp.Expr] = {}
    local: list[Argument] = []
    for node in expectations_in(outputs.values()):
        closed = closed_value(node)
        if closed is not None:
            replaced[node] = closed
            continue
        if len(outputs) == 1 and next(iter(outputs.values())) == node:
            kernel = expectation_kernels(build, wanted, node, arguments, all_arguments)
            return [Assignment(tuple(outputs), kernel.name, tuple(argument.name for argument in kernel.arguments))]
        kernel = expectation_kernels(build, f"{build.name}_mean", node, arguments, False)
        target = build.fresh(f"{kernel.name}_value")
        calls.append(Assignment((target,), kernel.name, tuple(argument.name for argument in kernel.arguments)))
        local.append(Argument(target))
        replaced[node] = sp.Symbol(target, real=True)
    formulas = {name: expr.xreplace(replaced) if replaced else expr for name, expr in outputs.items()}
    used = {symbol.name for expr in formulas.values() for symbol in free_symbols(expr)}
    chosen = [argument for argument in arguments if (all_arguments and not calls) or argument.name in used]
    if not chosen and arguments and not local:
        chosen = [arguments[0]]  # a constant takes the shape of an argument
    chosen += local
    name = build.fresh(wanted)
    build.kernels.append(ScalarKernel(name, tuple(chosen), tuple(formulas.items())))
    return [*calls, Assignment(tuple(outputs), name, tuple(argument.name for argument in chosen))]
