"""Sums and products of very many arguments as balanced trees of short ones.

Python parses `a + b + c + ..` into a tree as deep as the sum is long, and fails at some thousands; a balanced sum also has
a rounding error that grows with the logarithm of the number of terms.
"""

from __future__ import annotations

from ..graph import Graph, Node, rebuild

__all__ = ["WIDEST", "split"]

#: arguments of one printed sum or product
WIDEST = 48


def split(roots: tuple[Node, ...], graph: Graph) -> tuple[Node, ...]:
    """Group the arguments of sums and products, in order, until none has more than `WIDEST`."""
    return rebuild(roots, graph, _rule)


def _rule(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node | None:
    if node.op not in ("add", "mul") or len(args) <= WIDEST:
        return None
    parts = list(args)
    while len(parts) > 1:
        parts = [_grouped(graph, node.op, tuple(parts[start : start + WIDEST])) for start in range(0, len(parts), WIDEST)]
    return parts[0]


def _grouped(graph: Graph, op: str, args: tuple[Node, ...]) -> Node:
    return args[0] if len(args) == 1 else graph.node(op, args)
