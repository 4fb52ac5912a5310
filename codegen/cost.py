"""Counts of what the emitted code does, so that tests can hold the generator to them; and a report of them."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from symtensor.kernels import Kernel, ScalarKernel

from .graph import Graph, Node, postorder
from .ir import Contraction, Function, MomentFunction, ScalarFunction, TapeFunction, TensorFunction
from .lower import lower
from .lower.scalar import scalar_roots
from .passes import PASSES, straight_line_work

if TYPE_CHECKING:
    from .module import GeneratedModule

__all__ = ["Cost", "CostReport", "KernelCost", "PassCost", "cost_of", "report"]

#: functions that count as arithmetic: one machine instruction or little more
_CHEAP = frozenset({"abs", "sign", "maximum", "minimum", "sqrt"})
#: compile time of XLA on one core: seconds at rest, and per operation of straight-line code (measured, order of magnitude)
_COMPILE, _COMPILE_OPERATION = 0.2, 4e-4
_CLASSES = ((1.0, "below a second"), (10.0, "seconds"), (float("inf"), "minutes"))


@dataclass(frozen=True, slots=True)
class Cost:
    """Per element of the output (scalar and tensor kernels) or per quadrature node (moments).

    Attributes
    ----------
    arithmetic
        Additions, multiplications, divisions, roots.
    transcendental
        exp, tanh and the like.
    contractions
        Pairwise einsum calls.
    """

    arithmetic: int = 0
    transcendental: int = 0
    contractions: int = 0


@dataclass(frozen=True, slots=True)
class PassCost:
    """Operations after a pass (`input`: before the first)."""

    name: str
    arithmetic: int
    transcendental: int


@dataclass(frozen=True, slots=True)
class KernelCost:
    """What one kernel costs.

    Attributes
    ----------
    form
        How it is evaluated: straight line, stages, tape, contractions.
    passes
        Operations after every pass (scalar kernels).
    work
        Operations that the compiler sees, those that outputs share counted once per output (scalar kernels).
    flops
        Multiplications and additions of the contractions, in the names of the dimensions; `flops_unpacked` without
        packing of symmetric pairs.
    largest
        Entries of the largest intermediate of the contractions.
    seconds
        Expected compile time on one CPU core, order of magnitude.
    """

    name: str
    form: str
    cost: Cost
    passes: tuple[PassCost, ...] = ()
    work: int = 0
    flops: sp.Expr = sp.S.Zero
    flops_unpacked: sp.Expr = sp.S.Zero
    largest: sp.Expr = sp.S.Zero
    seconds: float = _COMPILE

    @property
    def compile_class(self) -> str:
        """`below a second`, `seconds` or `minutes`."""
        return next(name for limit, name in _CLASSES if self.seconds < limit)


@dataclass(frozen=True, slots=True)
class CostReport:
    """Costs of the kernels of a module, by name; prints as a table."""

    kernels: tuple[KernelCost, ...]

    def __getitem__(self, name: str) -> KernelCost:
        found = {kernel.name: kernel for kernel in self.kernels}
        if name not in found:
            raise KeyError(f"no kernel {name!r}; known: {', '.join(found)}")
        return found[name]

    def rows(self) -> list[tuple[str, str, str]]:
        """(kernel, quantity, value) for everything that is not zero."""
        return [(kernel.name, *row) for kernel in self.kernels for row in _rows(kernel)]

    def __str__(self) -> str:
        lines = []
        for kernel in self.kernels:
            lines.append(kernel.name)
            lines += [f"    {quantity:<22} {value}" for quantity, value in _rows(kernel)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cells = ("".join(f"<td>{html.escape(text)}</td>" for text in row) for row in self.rows())
        return "<table><tr><th>kernel</th><th>quantity</th><th>value</th></tr><tr>" + "</tr><tr>".join(cells) + "</tr></table>"


def cost_of(function: Function) -> Cost:
    """Operations of one function; 0 for functions that only call others."""
    match function:
        case ScalarFunction() | TapeFunction():
            return _scalar(function.roots)
        case MomentFunction():
            plan = function.plan or function.value
            return _scalar(plan.results)
        case TensorFunction():
            summands = (*function.mirrored, *function.summands)
            products = [product for summand in summands for _, group in summand.parts for product in group]
            arithmetic = sum(max(len(product.factors), 1) for product in products) + bool(function.mirrored)
            return Cost(arithmetic=arithmetic, contractions=len(function.contractions))
    return Cost()


def report(module: GeneratedModule) -> CostReport:
    """What every kernel of a module costs, and what the passes did.

    Examples
    --------
    >>> import sympy as sp
    >>> from codegen import ModuleSpec, generate
    >>> from symtensor.kernels import Argument, ScalarKernel
    >>> x = sp.Symbol("x", real=True)
    >>> kernel = ScalarKernel("quartic", (Argument("x"),), (("y", x**4 + 3 * x**3 + 2 * x**2 + x + 1),))
    >>> print(report(generate(ModuleSpec("m", "A polynomial.", (kernel,)))))
    quartic
        form                   straight line
        operations, input      11
        operations, horner     7
        compile time           below a second
    """
    by_name = {kernel.name: kernel for kernel in module.kernels}
    return CostReport(tuple(_kernel(by_name[function.name], function) for function in lower(module.spec)))


def _scalar(roots: Iterable[Node]) -> Cost:
    nodes = postorder(roots)
    transcendental = sum(node.op == "call" and node.value not in _CHEAP for node in nodes)
    arithmetic = sum(node.op == "call" for node in nodes) - transcendental
    arithmetic += sum(_operations(node) for node in nodes)
    return Cost(arithmetic, transcendental)


def _operations(node: Node) -> int:
    """Multiplications and additions of a node; an integer power counts as its chain of squares."""
    if node.op == "pow":
        exponent = abs(int(node.value))  # type: ignore[call-overload]
        return max(exponent.bit_length() + exponent.bit_count() - 2, 0) + (int(node.value) < 0)  # type: ignore[call-overload]
    return max(len(node.args) - 1, 1) if node.op in ("add", "mul", "select") else 0


def _kernel(kernel: Kernel, function: Function) -> KernelCost:
    cost = cost_of(function)
    match function:
        case ScalarFunction() | TapeFunction():
            assert isinstance(kernel, ScalarKernel)
            work = straight_line_work(function.roots, 1 << 60)
            tape = isinstance(function, TapeFunction)
            seconds = 2 * _COMPILE if tape else _COMPILE + _COMPILE_OPERATION * work
            return KernelCost(kernel.name, _form(function), cost, _passes(kernel), work, seconds=seconds)
        case TensorFunction():
            steps = function.contractions
            total, unpacked = (sum((_flops(step, packed) for step in steps), sp.S.Zero) for packed in (True, False))
            largest = max((_entries(step) for step in steps), key=_at_size, default=sp.S.Zero)
            form = f"{len(steps)} contraction{'s' * (len(steps) > 1)}" if steps else "broadcast sum"
            return KernelCost(kernel.name, form, cost, (), 0, sp.expand(total), sp.expand(unpacked), largest)
    return KernelCost(kernel.name, type(function).__name__.removesuffix("Function").lower(), cost)


def _form(function: ScalarFunction | TapeFunction) -> str:
    if isinstance(function, TapeFunction):
        return f"tape of {len(function.tape.instructions)} instructions on {function.tape.size} registers"
    if not function.stages:
        return "straight line"
    kept = sum(len(stage.targets) for stage in function.stages)
    return f"straight line, {kept} shared functions in {len(function.stages)} stages before"


def _passes(kernel: ScalarKernel) -> tuple[PassCost, ...]:
    graph = Graph()
    roots = scalar_roots(kernel, graph)
    found = [PassCost("input", *_pair(roots))]
    for run in PASSES:
        roots = run(roots, graph)
        found.append(PassCost(run.__name__, *_pair(roots)))
    return tuple(found)


def _pair(roots: Iterable[Node]) -> tuple[int, int]:
    cost = _scalar(roots)
    return cost.arithmetic, cost.transcendental


def _sizes(step: Contraction) -> dict[str, sp.Expr]:
    return {
        letter: sp.Integer(extent) if isinstance(extent, int) else sp.Symbol(extent, positive=True, integer=True)
        for letter, extent in step.extents
    }


def _flops(step: Contraction, packed: bool) -> sp.Expr:
    """Multiplications and additions of one step; a packed pair has P (P + 1) / 2 values."""
    sizes = _sizes(step)
    extent = sp.Mul(*sizes.values())
    for a, b in step.pairs if packed else ():
        extent *= (sizes[a] + 1) / (2 * sizes[b])
    return extent * max(len(step.operands) - 1 + bool(set("".join(step.letters)) - set(step.output)), 1)


def _entries(step: Contraction) -> sp.Expr:
    sizes = _sizes(step)
    return sp.Mul(*(sizes[letter] for letter in step.output))


def _at_size(value: sp.Expr) -> int:
    return int(value.subs(dict.fromkeys(value.free_symbols, 32)))


def _rows(kernel: KernelCost) -> list[tuple[str, str]]:
    rows = [("form", kernel.form)]
    before: tuple[int, int] | None = None
    for each in kernel.passes:
        now = (each.arithmetic, each.transcendental)
        if now != before:
            functions = f" and {each.transcendental} functions" if each.transcendental else ""
            rows.append((f"operations, {each.name}", f"{each.arithmetic}{functions}"))
        before = now
    if kernel.flops != 0:
        saved = "" if kernel.flops == kernel.flops_unpacked else f" (unpacked {kernel.flops_unpacked})"
        rows += [("contraction flops", f"{kernel.flops}{saved}"), ("largest intermediate", f"{kernel.largest} entries")]
    return [*rows, ("compile time", kernel.compile_class)]
