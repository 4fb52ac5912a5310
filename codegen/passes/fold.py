"""Exact folding: nested sums and products flattened, constants combined exactly, like terms and factors collected."""

from __future__ import annotations

import sympy as sp

from ..graph import Graph, Node, rebuild

__all__ = ["fold"]

#: functions with an exact value at a constant that SymPy simplifies by itself
_AT_ZERO = {"exp": 1, "cos": 1, "cosh": 1, "sin": 0, "tan": 0, "sinh": 0, "tanh": 0, "asin": 0, "atan": 0, "asinh": 0,
            "erf": 0, "erfc": 1, "abs": 0, "sqrt": 0, "sign": 0, "expm1": 0, "log1p": 0, "sech2": 1}  # fmt: skip


def fold(roots: tuple[Node, ...], graph: Graph) -> tuple[Node, ...]:
    """The same values with fewer operations; nothing is rounded."""
    return rebuild(roots, graph, _rule)


def _rule(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node | None:
    match node.op:
        case "add":
            return _sum(graph, args)
        case "mul":
            return _product(graph, args)
        case "pow":
            return _power(graph, args[0], int(node.value))  # type: ignore[call-overload]
        case "call":
            return _call(graph, str(node.value), args)
        case "select":
            return args[1] if args[1] is args[2] else None
    return None


def _call(graph: Graph, name: str, args: tuple[Node, ...]) -> Node | None:
    if name in _AT_ZERO and args[0].is_zero:
        return graph.const(_AT_ZERO[name])
    if name in ("maximum", "minimum") and args[0] is args[1]:
        return args[0]
    return None


def _sum(graph: Graph, args: tuple[Node, ...]) -> Node:
    constant: sp.Expr = sp.S.Zero
    terms: dict[Node, sp.Expr] = {}
    stack = list(args[::-1])
    while stack:
        term = stack.pop()
        if term.op == "add":
            stack.extend(term.args[::-1])
        elif term.op == "const":
            constant += term.value  # type: ignore[operator]
        else:
            coefficient, rest = _split(graph, term)
            terms[rest] = terms.get(rest, sp.S.Zero) + coefficient
    summed = [_scaled(graph, coefficient, rest) for rest, coefficient in terms.items() if coefficient != 0]
    if constant != 0 or not summed:
        summed.append(graph.const(constant))
    return graph.add(*summed)


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


def _product(graph: Graph, args: tuple[Node, ...]) -> Node:
    constant: sp.Expr = sp.S.One
    exponents: dict[Node, int] = {}
    stack = list(args[::-1])
    while stack:
        factor = stack.pop()
        if factor.op == "mul":
            stack.extend(factor.args[::-1])
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


def _power(graph: Graph, base: Node, exponent: int) -> Node:
    if base.op == "const" and (base.value != 0 or exponent > 0):
        return graph.const(base.value**exponent)  # type: ignore[operator]
    if base.op == "pow":
        return graph.power(base.args[0], int(base.value) * exponent)  # type: ignore[call-overload]
    if base.op == "mul":
        return _product(graph, tuple(_power(graph, factor, exponent) for factor in base.args))
    if base.op == "call" and base.value == "sqrt" and exponent % 2 == 0:
        return _power(graph, base.args[0], exponent // 2)
    return graph.power(base, exponent)
