r"""Which step of the emitted code loses digits: a first-order rounding analysis of the graph after all passes.

A rounding error eps of node v reaches the output f multiplied by |v df/dv|. Against what the problem itself makes of
rounded arguments, eps (|f| + sum_i |x_i df/dx_i|), this gives the amplification of v. Where the operand of a step is
amplified and the result is not, that step is the one that cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mpmath
from mpmath.libmp import NoConvergence

from .certificate import Cancellation
from .graph import Node, postorder
from .printers.mpmath import namespace

__all__ = ["find_cancellations", "node_text"]

#: amplification from which a step is reported: two digits beyond what the problem loses
_REPORTED = 100
_DIGITS = 60
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip
_FAILURES = (ZeroDivisionError, ValueError, OverflowError, TypeError, NoConvergence)


@dataclass(slots=True)
class _Analysis:
    """Values and derivatives of a graph in mpmath."""

    nodes: list[Node]
    functions: Mapping[str, Any] = field(default_factory=namespace)

    def values(self, point: Mapping[str, Any]) -> dict[int, Any]:
        """Node index -> value; nodes that have none are missing."""
        found: dict[int, Any] = {}
        for node in self.nodes:
            try:
                args = [found[argument.index] for argument in _needed(node, found)]
                value = self._value(node, args, point)
                if isinstance(value, bool) or (isinstance(value, mpmath.mpf) and mpmath.isfinite(value)):
                    found[node.index] = value
            except (KeyError, *_FAILURES):
                continue
        return found

    def _value(self, node: Node, args: list[Any], point: Mapping[str, Any]) -> Any:
        match node.op:
            case "const":
                return _number(node.value)
            case "var":
                return point[str(node.value)]
            case "add":
                return mpmath.fsum(args)
            case "mul":
                return mpmath.fprod(args)
            case "pow":
                return args[0] ** int(node.value)  # type: ignore[call-overload]
            case "call":
                return self.functions[f"f_{node.value}"](*args)
            case "compare":
                return _COMPARISONS[str(node.value)](*args)
            case "select":
                return args[-1]
            case "and" | "or":
                return (all if node.op == "and" else any)(args)
            case "not":
                return not args[0]
        raise KeyError(node.op)

    def adjoints(self, root: Node, values: Mapping[int, Any]) -> dict[int, Any]:
        """d root / d node of every node below the root that has a value."""
        found: dict[int, Any] = {root.index: mpmath.mpf(1)}
        for node in reversed(self.nodes):
            weight = found.get(node.index)
            if weight is None or weight == 0 or node.index not in values:
                continue
            for argument, partial in self._partials(node, values):
                found[argument.index] = found.get(argument.index, mpmath.mpf(0)) + weight * partial
        return found

    def _partials(self, node: Node, values: Mapping[int, Any]) -> Iterable[tuple[Node, Any]]:
        args = node.args
        match node.op:
            case "add":
                return [(argument, 1) for argument in args]
            case "mul":
                numbers = [values[argument.index] for argument in args]
                return [(x, mpmath.fprod(numbers[:k] + numbers[k + 1 :])) for k, x in enumerate(args)]
            case "pow":
                exponent = int(node.value)  # type: ignore[call-overload]
                return [(args[0], exponent * values[args[0].index] ** (exponent - 1))]
            case "select":
                return [(args[1] if values.get(args[0].index) else args[2], 1)]
            case "call":
                return list(self._slopes(node, values))
        return []

    def _slopes(self, node: Node, values: Mapping[int, Any]) -> Iterable[tuple[Node, Any]]:
        """By central differences: two digits of a derivative are enough here."""
        function = self.functions[f"f_{node.value}"]
        numbers = [values[argument.index] for argument in node.args]
        for place, argument in enumerate(node.args):
            step = (abs(numbers[place]) or mpmath.mpf(1)) * mpmath.mpf(10) ** (-_DIGITS // 3)
            try:
                up, down = (function(*numbers[:place], numbers[place] + way * step, *numbers[place + 1 :]) for way in (1, -1))
                yield argument, mpmath.re(up - down) / (2 * step)
            except _FAILURES:
                continue


def _needed(node: Node, found: Mapping[int, Any]) -> list[Node]:
    """The arguments to evaluate; of a select the condition and the branch taken only."""
    if node.op != "select":
        return list(node.args)
    return [node.args[0], node.args[1] if found[node.args[0].index] else node.args[2]]


def _number(value: Any) -> Any:
    import sympy as sp

    if isinstance(value, sp.Rational):
        return mpmath.mpf(int(value.p)) / int(value.q)
    return mpmath.mpf(sp.N(value, mpmath.mp.dps)._to_mpmath(mpmath.mp.prec))  # pyright: ignore[reportAttributeAccessIssue]


def find_cancellations(
    roots: Mapping[str, Node], points: Iterable[Mapping[str, float]], most: int = 5
) -> tuple[Cancellation, ...]:
    """The steps that lose more than two digits beyond the condition of the problem, the worst point of each.

    Parameters
    ----------
    roots
        Output -> its node after all passes.
    points
        Where to look.
    most
        Steps reported, those that lose most first.
    """
    analysis = _Analysis(postorder(roots.values()))
    worst: dict[tuple[str, int], tuple[Any, Node, Mapping[str, float]]] = {}
    with mpmath.workdps(_DIGITS):
        for point in points:
            values = analysis.values({name: mpmath.mpf(value) for name, value in point.items()})
            for output, root in roots.items():
                if root.index not in values:
                    continue
                for node, loss in _losses(analysis, root, values):
                    key = (output, node.index)
                    if key not in worst or loss > worst[key][0]:
                        worst[key] = (loss, node, point)
    ranked = sorted(worst.items(), key=lambda item: (-item[1][0], item[0]))
    return tuple(
        Cancellation(output, node_text(node), float(mpmath.log10(loss)), dict(point))
        for (output, _), (loss, node, point) in ranked[:most]
    )


def _losses(analysis: _Analysis, root: Node, values: Mapping[int, Any]) -> Iterable[tuple[Node, Any]]:
    adjoint = analysis.adjoints(root, values)
    below = [node for node in analysis.nodes if node.index in adjoint and node.index in values]
    spread = mpmath.fsum(abs(values[node.index] * adjoint[node.index]) for node in below if node.op == "var")
    budget = abs(values[root.index]) + spread
    if budget < mpmath.mpf(10) ** -300:  # smaller than any float: no digits to lose
        return
    for node in below:
        own = abs(values[node.index] * adjoint[node.index])
        if node.op in ("var", "const", "select"):
            continue
        operands = [
            abs(values[argument.index] * partial * adjoint[node.index])
            for argument, partial in analysis._partials(node, values)
            if argument.op not in ("var", "const") and argument.index in values
        ]
        loss = max(operands, default=mpmath.mpf(0)) / budget
        if loss >= _REPORTED and own * 10 <= loss * budget:
            yield node, loss


def node_text(node: Node, room: int = 90) -> str:
    """A node as a formula; what is deep below it is shortened to `..`."""
    for depth in (8, 5, 4, 3, 2):
        text = _text(node, depth)
        if len(text) <= room:
            return text
    return _text(node, 1)


def _text(node: Node, depth: int) -> str:
    if node.op in ("var", "const"):
        return str(node.value)
    if depth == 0:
        return ".."
    parts = [_text(argument, depth - 1) for argument in node.args]
    match node.op:
        case "add":
            return " + ".join(parts).replace("+ -", "- ")
        case "mul":
            factors = [f"({part})" if argument.op == "add" else part for part, argument in zip(parts, node.args)]
            return "-" + "*".join(factors[1:]) if parts[0] == "-1" else "*".join(factors)
        case "pow":
            base = parts[0] if node.args[0].op in ("var", "call") else f"({parts[0]})"
            return f"{base}**{node.value}" if int(node.value) > 0 else f"{base}**({node.value})"  # type: ignore[call-overload]
        case "call":
            return f"{node.value}({', '.join(parts)})"
        case "compare":
            return f" {node.value} ".join(parts)
    return f"{node.op}({', '.join(parts)})"
