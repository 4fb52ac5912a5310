"""Integer powers as chains of squares, which share intermediate results; negative ones as reciprocals of those.

x**4 becomes (x**2)**2, x**5 becomes x * (x**2)**2; a power with an array exponent, whose second derivative at 0 is
nan, never appears. A base with several negative powers is divided by once: they are powers of one reciprocal.
"""

from __future__ import annotations

from ..graph import Graph, Node, postorder, rebuild

__all__ = ["powers"]


def powers(roots: tuple[Node, ...], graph: Graph) -> tuple[Node, ...]:
    """Replace every power beyond the cube, and every negative power beyond -1."""
    exponents: dict[Node, set[int]] = {}
    for node in postorder(roots):
        if node.op == "pow" and int(node.value) < 0:  # type: ignore[call-overload]
            exponents.setdefault(node.args[0], set()).add(int(node.value))  # type: ignore[call-overload]
    several = {base.index for base, found in exponents.items() if len(found) > 1}

    def rule(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node | None:
        if node.op != "pow":
            return None
        exponent = int(node.value)  # type: ignore[call-overload]
        if exponent < -1:
            if node.args[0].index in several:
                return _chain(graph, graph.power(args[0], -1), -exponent)
            return graph.power(_chain(graph, args[0], -exponent), -1)
        return _chain(graph, args[0], exponent) if exponent > 3 else None

    return rebuild(roots, graph, rule)


def _chain(graph: Graph, base: Node, exponent: int) -> Node:
    if exponent <= 3:
        return graph.power(base, exponent)
    half = graph.power(_chain(graph, base, exponent // 2), 2)
    return half if exponent % 2 == 0 else graph.mul(base, half)
