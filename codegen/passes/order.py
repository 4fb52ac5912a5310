"""Canonical order of sums and products, so that equal mathematics prints the same text whatever order it came in."""

from __future__ import annotations

from ..graph import Graph, Node, postorder, rebuild

__all__ = ["order"]


def order(roots: tuple[Node, ...], graph: Graph) -> tuple[Node, ...]:
    """Sort the arguments of commutative operations: constants first, then by size and structure, constants of sums last."""
    keys: dict[int, tuple] = {}

    def rule(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node:
        if node.op in ("add", "mul"):
            args = tuple(sorted(args, key=lambda argument: (_place(node.op, argument), keys[argument.index])))
        made = graph.node(node.op, args, node.value)
        for below in postorder((made,)) if made.index not in keys else ():
            if below.index not in keys:
                keys[below.index] = _key(below, keys)
        return made

    return rebuild(roots, graph, rule)


def _place(op: str, argument: Node) -> int:
    """Constants lead a product and close a sum."""
    if argument.op != "const":
        return 0
    return -1 if op == "mul" else 1


def _key(node: Node, keys: dict[int, tuple]) -> tuple:
    """A total order by structure; the digest keeps keys of deep graphs short."""
    below = tuple(keys[argument.index] for argument in node.args)
    size = 1 + sum(key[0] for key in below)
    return (size, _RANK.index(node.op), str(node.value), _digest(below))


def _digest(below: tuple[tuple, ...]) -> str:
    from hashlib import sha256

    return sha256(repr(below).encode()).hexdigest()[:24] if below else ""


_RANK = ("var", "const", "pow", "mul", "add", "call", "select", "compare", "and", "or", "not")
