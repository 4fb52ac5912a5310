"""Integer powers as chains of squares, which share intermediate results; negative ones as reciprocals of those.

x**4 becomes (x**2)**2, x**5 becomes x * (x**2)**2; a power with an array exponent, whose second derivative at 0 is
nan, never appears.
"""

from __future__ import annotations

from ..graph import Graph, Node, rebuild

__all__ = ["powers"]


def powers(roots: tuple[Node, ...], graph: Graph) -> tuple[Node, ...]:
    """Replace every power beyond the cube, and every negative power beyond -1."""
    return rebuild(roots, graph, _rule)


def _rule(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node | None:
    if node.op != "pow":
        return None
    exponent = int(node.value)  # type: ignore[call-overload]
    if exponent < -1:
        return graph.power(_chain(graph, args[0], -exponent), -1)
    return _chain(graph, args[0], exponent) if exponent > 3 else None


def _chain(graph: Graph, base: Node, exponent: int) -> Node:
    if exponent <= 3:
        return graph.power(base, exponent)
    half = graph.power(_chain(graph, base, exponent // 2), 2)
    return half if exponent % 2 == 0 else graph.mul(base, half)
