"""Common subexpressions: which nodes of a graph get a name of their own.

The graph is hash-consed, so equal subexpressions are one node already and this pass is one count of uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..graph import Node, postorder
from ..names import fresh_names

__all__ = ["Schedule", "schedule"]

#: nodes that cost nothing to repeat
_TRIVIAL = ("var", "const", "compare")


@dataclass(frozen=True, slots=True)
class Schedule:
    """`assignments` in order of evaluation (name, node), then `results`; named nodes print as their names."""

    assignments: tuple[tuple[str, Node], ...]
    results: tuple[Node, ...]

    @property
    def names(self) -> dict[Node, str]:
        """Node -> its name."""
        return {node: name for name, node in self.assignments}


def schedule(roots: tuple[Node, ...], taken: Iterable[str], prefix: str = "t") -> Schedule:
    """Name every node that is used more than once and is worth a name."""
    nodes = postorder(roots)
    uses: dict[Node, int] = dict.fromkeys(nodes, 0)
    for node in nodes:
        for argument in node.args:
            uses[argument] += 1
    for root in roots:
        uses[root] += 1
    names = fresh_names(prefix, taken)
    named = [node for node in nodes if uses[node] > 1 and node.op not in _TRIVIAL and not _negation(node)]
    return Schedule(tuple((next(names), node) for node in named), roots)


def _negation(node: Node) -> bool:
    """A constant times one variable: as cheap as the variable."""
    return node.op == "mul" and len(node.args) == 2 and node.args[0].op == "const" and node.args[1].op == "var"
