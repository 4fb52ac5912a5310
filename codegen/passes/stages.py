"""Which expensive operations to evaluate in a stage of their own, before the rest.

XLA on CPU makes one loop per output and evaluates in each of them everything that the output needs: an exponential that
27 outputs share is evaluated 27 times, however the text is written. Values that are needed by several outputs and cost
more than a store and loads are therefore computed in a first function whose results are kept (see `_once` in the
templates). Only divisions, roots and functions are worth it; staging plain arithmetic is slower.

A stage is the set of staged operations with the same number of staged operations below them, up to `MOST_STAGES`; it joins
the one before if evaluating that again for each of its operations costs little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..graph import Node, postorder

__all__ = ["COSTS", "Stage", "stages"]

#: nanoseconds per element of XLA on CPU in float64, measured; a call that is not listed counts as `_CALL`
COSTS = {
    "div": 1.7, "sqrt": 1.7, "exp": 2.5, "expm1": 4.0, "tanh": 2.5, "sech2": 6.0, "sigmoid": 5.0, "softplus": 14.0, "log": 10.0,
    "log1p": 11.0, "sin": 15.0, "cos": 15.0, "tan": 18.0, "erf": 21.0, "erfc": 21.0, "power": 28.0, "abs": 0.1, "sign": 0.1,
    "maximum": 0.1, "minimum": 0.1,
}  # fmt: skip
_CALL = 12.0
#: writing a value once, and reading it in one loop more
_STORE, _LOAD = 1.0, 0.5
#: nanoseconds per point that staging must save
_WORTH = 10.0
MOST_STAGES = 4


@dataclass(frozen=True, slots=True)
class Stage:
    """Operations evaluated together and kept, in order of evaluation."""

    nodes: tuple[Node, ...]


def stages(roots: Sequence[Node]) -> tuple[Stage, ...]:
    """The stages of a set of outputs; empty if staging saves less than `_WORTH` nanoseconds per point."""
    if len(set(roots)) < 2:
        return ()
    nodes = postorder(roots)
    needed = _needed(nodes, roots)
    staged: dict[int, Node] = {}
    saved = 0.0
    for node in nodes:
        loops = needed[node.index].bit_count()
        gain = (loops - 1) * expense(node) - _STORE - loops * _LOAD
        if gain > 0 and any(part.op != "const" for part in node.args):
            staged[node.index] = node
            saved += gain
    if saved < _WORTH:
        return ()
    levels: dict[int, list[Node]] = {}
    for index, level in _levels(nodes, staged).items():
        levels.setdefault(level, []).append(staged[index])
    found: list[list[Node]] = []
    for level in sorted(levels):
        if found and _repeated(levels[level], found[-1]) < _WORTH:
            found[-1] += levels[level]
        else:
            found.append(levels[level])
    return tuple(Stage(tuple(group)) for group in found)


def _repeated(nodes: list[Node], stage: list[Node]) -> float:
    """Nanoseconds of evaluating what `nodes` need of a stage again for each of them."""
    inside = {node.index for node in stage}
    return sum(expense(part) for node in nodes for part in postorder((node,)) if part.index in inside)


def expense(node: Node) -> float:
    """Nanoseconds of the operation itself if it is a division or a function, else 0."""
    if node.op == "pow" and int(node.value) < 0:  # type: ignore[call-overload]
        return COSTS["div"]
    return COSTS.get(str(node.value), _CALL) if node.op == "call" else 0.0


def _needed(nodes: list[Node], roots: Sequence[Node]) -> dict[int, int]:
    """Node index -> bit set of the outputs that need it."""
    needed = dict.fromkeys((node.index for node in nodes), 0)
    for place, root in enumerate(dict.fromkeys(roots)):
        needed[root.index] |= 1 << place
    for node in reversed(nodes):  # users come before their arguments
        for part in node.args:
            needed[part.index] |= needed[node.index]
    return needed


def _levels(nodes: list[Node], staged: dict[int, Node]) -> dict[int, int]:
    """Level of every staged node: staged operations on the longest way down, at most `MOST_STAGES - 1`."""
    depth: dict[int, int] = {}
    found: dict[int, int] = {}
    for node in nodes:
        below = max((depth[part.index] for part in node.args), default=0)
        if node.index in staged:
            found[node.index] = min(below, MOST_STAGES - 1)
            below += 1
        depth[node.index] = below
    return found
