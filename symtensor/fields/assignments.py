"""The sum over components of a diagram: which component (mode) stands at which end of each line, and with what factor.

The lines of a diagram carry a *signature*: the rates of their exponentials, which depend on the modes at their ends. Assignments
with the same signatures have the same integral over times, so that the factors are summed first. Nodes are taken one by one and
only what lines still open need is kept: the cost is exponential in the lines cut at once, not in all lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from symtensor.diagrams.graph import Graph
from symtensor.fields.elements import Elements

__all__ = ["Signature", "assignments"]

Signature = tuple[tuple[int, int] | None, ...]
"""For each line the modes at its start and end, as far as its time dependence needs them; None for lines without one."""

_Entry = tuple[tuple[int, ...], Any]
_State = tuple[tuple[tuple[int, int], ...], tuple[tuple[int, tuple[int, int]], ...]]


@dataclass(frozen=True, slots=True)
class _Slot:
    """One end of a line at a node: the kind of field there."""

    line: int
    end: int
    kind: str


def assignments(elements: Elements, graph: Graph, legs: Mapping[str, int]) -> dict[Signature, Any]:
    """{signature: sum of products of vertex factors, static parts of propagators, and factors of the legs}, elements of the domain.

    `legs` maps the label of each leg to the component asked for.
    """
    states: dict[_State, Any] = {((), ()): elements.domain.one}
    for node in range(len(graph.nodes)):
        slots = _slots(graph, node)
        entries = list(_entries(elements, graph, node, slots, legs))
        states = _with_node(elements, graph, slots, entries, states)
    found: dict[Signature, Any] = {}
    for (_, modes), value in states.items():
        table = dict(modes)
        key = tuple(table.get(at) for at in range(len(graph.lines)))
        found[key] = found[key] + value if key in found else value
    return {key: value for key, value in found.items() if value}


def _slots(graph: Graph, node: int) -> tuple[_Slot, ...]:
    return tuple(
        _Slot(at, end, line.fields[end])
        for at, line in enumerate(graph.lines)
        for end, where in enumerate((line.start, line.end))
        if where == node
    )


def _entries(
    elements: Elements, graph: Graph, node: int, slots: tuple[_Slot, ...], legs: Mapping[str, int]
) -> Iterator[_Entry]:
    """(component at each slot, factor) for a node."""
    here = graph.nodes[node]
    if here.is_leg:
        amputated = graph.lines[slots[0].line].propagator is None
        for mode, factor in elements.leg(legs[str(here.label)], amputated):
            yield (mode,), factor
        return
    names, entries = elements.vertices[here.name]
    order = _matching(names, [slot.kind for slot in slots])
    for key, factor in entries.items():
        yield tuple(key[at] for at in order), factor


def _matching(legs: tuple[str, ...], kinds: list[str]) -> list[int]:
    """For each slot a leg of its kind, each leg once (legs of one kind are equal: the tensor is symmetric in them)."""
    free = list(range(len(legs)))
    order = []
    for kind in kinds:
        at = next(leg for leg in free if legs[leg] == kind)
        free.remove(at)
        order.append(at)
    return order


def _with_node(
    elements: Elements, graph: Graph, slots: tuple[_Slot, ...], entries: list[_Entry], states: dict[_State, Any]
) -> dict[_State, Any]:
    found: dict[_State, Any] = {}
    for (open_ends, modes), value in states.items():
        for components, factor in entries:
            left, seen, product = dict(open_ends), dict(modes), value * factor
            for slot, component in zip(slots, components):
                if slot.line not in left:
                    left[slot.line] = component
                    continue
                first = left.pop(slot.line)
                ends = (first, component) if slot.end == 1 else (component, first)
                weight, dependent = elements.line(graph.lines[slot.line], *ends)
                product = product * weight
                if not product:
                    break
                if dependent:
                    seen[slot.line] = ends
            if product:
                key = (tuple(sorted(left.items())), tuple(sorted(seen.items())))
                found[key] = found[key] + product if key in found else product
    return found
