"""Common subexpressions: which nodes of a graph get a name of their own.

The graph is hash-consed, so equal subexpressions are one node already and this pass is one count of uses. Long
expressions are cut, because Python's parser nests 200 parentheses at most and nobody reads a line of 1000 operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

from ..graph import Node, count_uses, postorder
from ..names import fresh_names

__all__ = ["Schedule", "schedule"]

#: nodes that cost nothing to repeat
_TRIVIAL = ("var", "const", "compare")
#: operations in one printed expression
LONGEST = 60


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
    """Name every node that is used more than once and is worth a name, and parts of expressions that grow too long."""
    nodes = postorder(roots)
    uses = count_uses(nodes, roots)
    shared = {node.index for node in nodes if uses[node.index] > 1 and node.op not in _TRIVIAL and not _negation(node)}
    kept = shared | _cuts(nodes, shared)
    names = fresh_names(prefix, taken)
    return Schedule(tuple((next(names), node) for node in nodes if node.index in kept), roots)


def _cuts(nodes: Iterable[Node], shared: Set[int]) -> set[int]:
    """Nodes to name besides the shared ones, so that no expression has more than `LONGEST` operations."""
    length: dict[int, int] = {}
    cut: set[int] = set()
    for node in nodes:
        below = {argument.index: argument for argument in node.args if argument.index not in shared}
        total = 1 + sum(length[index] for index in below)
        for argument in sorted(below.values(), key=lambda part: -length[part.index]):
            if total <= LONGEST:
                break
            if argument.op in _TRIVIAL:
                continue
            cut.add(argument.index)
            total -= length[argument.index]
            length[argument.index] = 0
        length[node.index] = 0 if node.index in shared or node.op in ("var", "const") else total
    return cut


def _negation(node: Node) -> bool:
    """A constant times one variable: as cheap as the variable."""
    return node.op == "mul" and len(node.args) == 2 and node.args[0].op == "const" and node.args[1].op == "var"
