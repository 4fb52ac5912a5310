"""Canonical order of sums and products, so that equal mathematics prints the same text whatever order it came in."""

from __future__ import annotations

from hashlib import sha256

import sympy as sp

from ..graph import Graph, Node, rebuild

__all__ = ["order"]


def order(roots: tuple[Node, ...], graph: Graph) -> tuple[Node, ...]:
    """Sort the arguments of commutative operations: constants first, then by size and structure, constants of sums last."""
    keys: dict[int, tuple] = {}

    def rule(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node:
        if node.op in ("add", "mul"):
            args = tuple(sorted(args, key=lambda argument: (_place(node.op, argument), keys[argument.index])))
        made = graph.node(node.op, args, node.value)
        if made.index not in keys:  # its arguments were made here too, so they have keys
            keys[made.index] = _key(made, keys)
        return made

    return rebuild(roots, graph, rule)


def _place(op: str, argument: Node) -> int:
    """Constants lead a product and close a sum."""
    if argument.op != "const":
        return 0
    return -1 if op == "mul" else 1


#: sizes count a shared node once per use, so they are exponential in the depth; beyond this they are equal
_LARGEST_SIZE = 2**60


def _key(node: Node, keys: dict[int, tuple]) -> tuple:
    """A total order by structure; the digest keeps keys of deep graphs short."""
    below = tuple(keys[argument.index] for argument in node.args)
    size = min(1 + sum(key[0] for key in below), _LARGEST_SIZE)
    return (size, _RANK[node.op], _value_text(node.value), _digest(below))


def _value_text(value: object) -> str:
    """`str(value)`; the printer of SymPy is slow for numbers."""
    if isinstance(value, sp.Rational):
        return str(value.p) if value.q == 1 else f"{value.p}/{value.q}"
    return str(value)


def _digest(below: tuple[tuple, ...]) -> str:
    return sha256(repr(below).encode()).hexdigest()[:24] if below else ""


_RANK = {op: rank for rank, op in enumerate(("var", "const", "pow", "mul", "add", "call", "select", "compare", "and", "or", "not"))}
