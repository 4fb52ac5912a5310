"""Scalar expressions as a hash-consed graph: equal subexpressions are one node, so every pass is linear in its size.

Operations
    const  value: an exact SymPy number          var   value: a name
    add, mul  n-ary                              pow   value: an integer exponent other than 0 and 1
    call   value: the name of a function         compare  value: one of < <= == !=
    select (condition, if true, if false)        and, or, not
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import sympy as sp

__all__ = ["Graph", "Node", "count_uses", "postorder", "rebuild"]


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operation; identity is equality, because nodes are only made by :class:`Graph`."""

    index: int
    op: str
    args: tuple[Node, ...] = field(repr=False)  # the text of a deep graph would be exponential
    value: object = None

    @property
    def is_zero(self) -> bool:
        return self.op == "const" and self.value == 0


@dataclass(slots=True)
class Graph:
    """Makes nodes, each structure once."""

    _table: dict[tuple, Node] = field(default_factory=dict)

    def node(self, op: str, args: Iterable[Node] = (), value: object = None) -> Node:
        """The node with this operation, arguments and value."""
        operands = tuple(args)
        key = (op, tuple([operand.index for operand in operands]), value)
        found = self._table.get(key)
        if found is None:
            found = self._table[key] = Node(len(self._table), op, operands, value)
        return found

    def const(self, value: sp.Expr | int) -> Node:
        """An exact number."""
        return self.node("const", (), value if isinstance(value, sp.Basic) else sp.sympify(value))

    def var(self, name: str) -> Node:
        """An argument."""
        return self.node("var", (), name)

    def add(self, *args: Node) -> Node:
        """The sum; no folding (see `passes.fold`)."""
        return args[0] if len(args) == 1 else self.node("add", args)

    def mul(self, *args: Node) -> Node:
        """The product; no folding."""
        return args[0] if len(args) == 1 else self.node("mul", args)

    def power(self, base: Node, exponent: int) -> Node:
        """An integer power; exponents 0 and 1 are resolved."""
        if exponent == 0:
            return self.const(1)
        return base if exponent == 1 else self.node("pow", (base,), exponent)

    def call(self, name: str, *args: Node) -> Node:
        """A function by its name in the printers' tables."""
        return self.node("call", args, name)


def postorder(roots: Iterable[Node]) -> list[Node]:
    """All nodes below the roots, arguments before their users, each once; without recursion."""
    done: dict[int, Node] = {}
    for root in roots:
        stack = [root]
        while stack:
            node = stack[-1]
            pending = [argument for argument in node.args if argument.index not in done] if node.index not in done else ()
            if pending:
                stack.extend(pending[::-1])
            else:
                done.setdefault(node.index, node)
                stack.pop()
    return list(done.values())


def count_uses(nodes: Iterable[Node], roots: Iterable[Node]) -> dict[int, int]:
    """Node index -> how often it is an argument or a root; `nodes` are all nodes below the roots."""
    uses: dict[int, int] = {}
    for node in nodes:
        uses.setdefault(node.index, 0)
        for argument in node.args:
            uses[argument.index] = uses.get(argument.index, 0) + 1
    for root in roots:
        uses[root.index] = uses.get(root.index, 0) + 1
    return uses


def rebuild(
    roots: tuple[Node, ...], graph: Graph, rule: Callable[[Graph, Node, tuple[Node, ...]], Node | None]
) -> tuple[Node, ...]:
    """Rebuild from the leaves: `rule(graph, node, new arguments)` gives the replacement, or None to keep the node."""
    new: dict[int, Node] = {}
    for node in postorder(roots):
        args = tuple(new[argument.index] for argument in node.args)
        replaced = rule(graph, node, args)
        new[node.index] = graph.node(node.op, args, node.value) if replaced is None else replaced
    return tuple(new[root.index] for root in roots)
