"""Forms that do not cancel or overflow: exp(u) - 1, log(1 + u), 1 - tanh(u)^2, sigmoid, softplus, 1 + erf(u)."""

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
        return _log(graph, args[0])
    if node.op == "pow" and int(node.value) < 0 and args[0].op == "add":  # type: ignore[call-overload]
        return _sigmoid(graph, args[0], int(node.value))  # type: ignore[call-overload]
    return None


def _log(graph: Graph, inside: Node) -> Node | None:
    """log(1 + exp(u)) = softplus(u), log(1 + u) = log1p(u)."""
    *rest, constant = inside.args
    if constant.value != 1:
        return None
    if len(rest) == 1 and rest[0].op == "call" and rest[0].value == "exp":
        return graph.call("softplus", *rest[0].args)
    return graph.call("log1p", graph.add(*rest))


def _sigmoid(graph: Graph, base: Node, exponent: int) -> Node | None:
    """(c + c exp(u))**-n = (sigmoid(-u) / c)**n."""
    if len(base.args) != 2 or base.args[1].op != "const":
        return None
    coefficient, factor = _coefficient(base.args[0])
    if coefficient != base.args[1].value or factor.op != "call" or factor.value != "exp":
        return None
    value = graph.call("sigmoid", graph.mul(graph.const(-1), *factor.args))
    scaled = value if coefficient == 1 else graph.mul(graph.const(1 / base.args[1].value), value)  # type: ignore[operator]
    return graph.power(scaled, -exponent)


def _without_cancellation(graph: Graph, terms: tuple[Node, ...], constant: Node) -> Node | None:
    """One term c f(u) of the sum and the constant -c (exp, tanh^2, cos) or c (erf) become one function."""
    for position, term in enumerate(terms):
        coefficient, factor = _coefficient(term)
        if coefficient is None:
            continue
        ratio = constant.value / coefficient  # type: ignore[operator]
        replaced = _combined(graph, factor) if ratio == -1 else _complement(graph, factor) if ratio == 1 else None
        if replaced is not None:
            sign, combined = replaced
            scaled = graph.mul(graph.const(sign * coefficient), combined)  # type: ignore[operator]
            return graph.add(*terms[:position], scaled, *terms[position + 1 :])
    return None


def _complement(graph: Graph, factor: Node) -> tuple[int, Node] | None:
    """f + 1 as (sign, function): 1 + erf(u) = erfc(-u)."""
    if factor.op == "call" and factor.value == "erf":
        return 1, graph.call("erfc", graph.mul(graph.const(-1), *factor.args))
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
