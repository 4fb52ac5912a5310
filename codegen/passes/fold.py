"""Exact folding: nested sums and products flattened, constants combined exactly, like terms and factors collected.

A sum or product inside another one is dissolved only if it is used nowhere else: dissolving shared ones would undo the
sharing, and a chain of n partial sums would become n**2 terms.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy as sp

from ..graph import Graph, Node, count_uses, postorder

__all__ = ["fold"]

#: functions with an exact value at a constant that SymPy simplifies by itself
_AT_ZERO = {"exp": 1, "cos": 1, "cosh": 1, "sin": 0, "tan": 0, "sinh": 0, "tanh": 0, "asin": 0, "atan": 0, "asinh": 0,
            "erf": 0, "erfc": 1, "abs": 0, "sqrt": 0, "sign": 0, "expm1": 0, "log1p": 0, "sech2": 1}  # fmt: skip


def fold(roots: tuple[Node, ...], graph: Graph) -> tuple[Node, ...]:
    """The same values with fewer operations; nothing is rounded."""
    nodes = postorder(roots)
    uses = count_uses(nodes, roots)
    folding = _Folding(graph)
    new: dict[int, Node] = {}
    for node in nodes:
        args = tuple(new[argument.index] for argument in node.args)
        made = folding.rule(node, args)
        new[node.index] = made
        gone = folding.collapsed(made, args)
        folding.uses[made.index] = folding.uses.get(made.index, 0) + uses[node.index] - gone
    return tuple(new[root.index] for root in roots)


@dataclass(slots=True)
class _Folding:
    """`uses` counts the uses of the nodes made so far."""

    graph: Graph
    uses: dict[int, int] = field(default_factory=dict)

    def rule(self, node: Node, args: tuple[Node, ...]) -> Node:
        """The folded node."""
        graph = self.graph
        match node.op:
            case "add":
                return self._sum(args)
            case "mul":
                return self._product(args)
            case "pow":
                return self._power(args[0], int(node.value))  # type: ignore[call-overload]
            case "call":
                made = _call(graph, str(node.value), args)
            case "select":
                made = args[1] if args[1] is args[2] else None
            case _:
                made = None
        return graph.node(node.op, args, node.value) if made is None else made

    def collapsed(self, made: Node, args: tuple[Node, ...]) -> int:
        """Uses of a node that end because a node above it folded to it: one for 1 * u or 0 + u, two for `select(c, u, u)`."""
        below = (part for part in args if part is not made and self.uses.get(part.index, 1) <= 1)
        return args.count(made) + sum(part.args.count(made) for part in below)

    def _dissolves(self, part: Node, op: str) -> bool:
        return part.op == op and self.uses.get(part.index, 1) <= 1

    def _sum(self, args: tuple[Node, ...]) -> Node:
        graph = self.graph
        constant: sp.Expr = sp.S.Zero
        terms: dict[Node, sp.Expr] = {}
        stack = list(args[::-1])
        while stack:
            term = stack.pop()
            if self._dissolves(term, "add"):
                stack.extend(term.args[::-1])
            elif term.op == "const":
                constant += term.value  # type: ignore[operator]
            else:
                coefficient, rest = _split(graph, term)
                terms[rest] = terms[rest] + coefficient if rest in terms else coefficient
        summed = [_scaled(graph, coefficient, rest) for rest, coefficient in terms.items() if coefficient != 0]
        if constant != 0 or not summed:
            summed.append(graph.const(constant))
        return graph.add(*summed)

    def _product(self, args: tuple[Node, ...]) -> Node:
        graph = self.graph
        constant: sp.Expr = sp.S.One
        exponents: dict[Node, int] = {}
        stack = list(args[::-1])
        while stack:
            factor = stack.pop()
            if self._dissolves(factor, "mul"):
                stack.extend(factor.args[::-1])
            elif factor.op == "mul" and factor.args[0].op == "const":  # its number moves out, the shared rest stays
                stack.append(graph.mul(*factor.args[1:]))
                constant *= factor.args[0].value  # type: ignore[operator]
            elif factor.op == "const":
                constant *= factor.value  # type: ignore[operator]
            else:
                base, exponent = (factor.args[0], int(factor.value)) if factor.op == "pow" else (factor, 1)  # type: ignore[call-overload]
                exponents[base] = exponents.get(base, 0) + exponent
        if constant == 0:
            return graph.const(0)
        factors = [graph.power(base, exponent) for base, exponent in exponents.items() if exponent != 0]
        if constant != 1 or not factors:
            factors.insert(0, graph.const(constant))
        return graph.mul(*factors)

    def _power(self, base: Node, exponent: int) -> Node:
        graph = self.graph
        if base.op == "const" and (base.value != 0 or exponent > 0):
            return graph.const(base.value**exponent)  # type: ignore[operator]
        if base.op == "pow":
            return graph.power(base.args[0], int(base.value) * exponent)  # type: ignore[call-overload]
        if self._dissolves(base, "mul"):
            return self._product(tuple(self._power(factor, exponent) for factor in base.args))
        if base.op == "call" and base.value == "sqrt" and exponent % 2 == 0:
            return self._power(base.args[0], exponent // 2)
        return graph.power(base, exponent)


def _call(graph: Graph, name: str, args: tuple[Node, ...]) -> Node | None:
    if name in _AT_ZERO and args[0].is_zero:
        return graph.const(_AT_ZERO[name])
    if name in ("maximum", "minimum") and args[0] is args[1]:
        return args[0]
    return None


def _split(graph: Graph, term: Node) -> tuple[sp.Expr, Node]:
    """A folded product as (constant, rest)."""
    if term.op == "mul" and term.args[0].op == "const":
        return term.args[0].value, graph.mul(*term.args[1:])  # type: ignore[return-value]
    return sp.S.One, term


def _scaled(graph: Graph, coefficient: sp.Expr, rest: Node) -> Node:
    if coefficient == 1:
        return rest
    factors = rest.args if rest.op == "mul" else (rest,)
    return graph.mul(graph.const(coefficient), *factors)
