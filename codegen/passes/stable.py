"""Forms that do not cancel: exp(u) - 1, log(1 + u), 1 - tanh(u)^2.

Saturating functions (sigmoid, softplus, Phi) are recognised earlier, in SymPy form; see `symtensor.activation.stable`.
"""

from __future__ import annotations

from ..graph import Graph, Node, rebuild

__all__ = ["stable"]


def stable(roots: tuple[Node, ...], graph: Graph) -> tuple[Node, ...]:
    """Replace cancelling forms; expects folded sums (constant last, coefficient first)."""
    return rebuild(roots, graph, _rule)


def _rule(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node | None:
    if node.op == "add" and args[-1].op == "const":
        return _without_cancellation(graph, args[:-1], args[-1])
    if node.op == "call" and node.value == "log" and args[0].op == "add" and args[0].args[-1].op == "const":
        *rest, constant = args[0].args
        if constant.value == 1:
            return graph.call("log1p", graph.add(*rest))
    return None


def _without_cancellation(graph: Graph, terms: tuple[Node, ...], constant: Node) -> Node | None:
    """One term c f(u) of the sum and the constant -c (exp) or -c (tanh^2) become one function."""
    for position, term in enumerate(terms):
        coefficient, factor = _coefficient(term)
        if coefficient is None or coefficient != -constant.value:  # type: ignore[operator]
            continue
        replaced = _combined(graph, factor)
        if replaced is not None:
            sign, combined = replaced
            scaled = graph.mul(graph.const(sign * coefficient), combined)  # type: ignore[operator]
            return graph.add(*terms[:position], scaled, *terms[position + 1 :])
    return None


def _coefficient(term: Node) -> tuple[object, Node]:
    if term.op == "mul" and len(term.args) == 2 and term.args[0].op == "const":
        return term.args[0].value, term.args[1]
    return (1, term) if term.op != "mul" else (None, term)


def _combined(graph: Graph, factor: Node) -> tuple[int, Node] | None:
    """f - 1 as (sign, function): exp(u) - 1 = expm1(u), tanh(u)^2 - 1 = -sech(u)^2."""
    if factor.op == "call" and factor.value == "exp":
        return 1, graph.call("expm1", *factor.args)
    if factor.op == "pow" and factor.value == 2:
        base = factor.args[0]
        if base.op == "call" and base.value == "tanh":
            return -1, graph.call("sech2", *base.args)
    return None
