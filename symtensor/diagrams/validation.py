"""Is this graph a diagram of its model?  The check that every reader makes, and the look-up of vertices by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from symtensor.diagrams.errors import DiagramError
from symtensor.diagrams.graph import Graph, Line, Node
from symtensor.diagrams.model import MAX_VALENCE, Model, Propagator, Vertex, VertexFamily

__all__ = ["propagator_between", "validate", "vertex_named"]


def vertex_named(model: Model, name: str) -> Vertex:
    """The vertex called `name`, also a member of a family (``V_2_1``); raises DiagramError naming those there are.

    >>> from symtensor.diagrams.theories import theory
    >>> vertex_named(theory("layered-network"), "V_2_1").legs
    ('s', 's', 'J')
    """
    for vertex in model.vertices:
        if vertex.name == name:
            return vertex
    for family in model.families:
        member = _member(family, name)
        if member is not None:
            return member
    known = [v.name for v in model.vertices] + ["_".join([f.name, *("p" for _ in f.fields)]) for f in model.families]
    raise DiagramError(f"model {model.name!r} has no vertex {name!r}; it has {', '.join(known) or 'none'}")


def _member(family: VertexFamily, name: str) -> Vertex | None:
    """The family's vertex of that name, or None where the name is not of the family's form or leaves its bounds."""
    counts = name.removeprefix(f"{family.name}_").split("_")
    if not name.startswith(f"{family.name}_") or not all(c.isascii() and c.isdigit() for c in counts):
        return None
    total = sum(map(int, counts))
    return next((v for v in family.vertices(total) if v.name == name), None) if total <= MAX_VALENCE else None


def propagator_between(model: Model, first: str, second: str) -> Propagator | None:
    """The propagator that joins legs of these two fields, in either order; None if there is none."""
    ends = sorted((first, second))
    return next((p for p in model.propagators if sorted((p.first, p.second)) == ends), None)


def validate(graph: Graph) -> Graph:
    """The graph itself, once it is known to be a diagram of its model.

    Legs come first, are 1-valent and have distinct labels; every vertex has exactly its legs used; every line joins the
    two fields of its propagator, in the direction of the model; an amputated leg hangs on a vertex by its own field.

    Raises: DiagramError naming the node or the line that is wrong.
    """
    _check_nodes(graph)
    for index, line in enumerate(graph.lines):
        _check_line(graph, index, line)
    _check_legs_used(graph)
    return graph


def _check_nodes(graph: Graph) -> None:
    fields = [f.name for f in graph.model.fields]
    for index, node in enumerate(graph.nodes):
        if node.kind not in ("leg", "vertex"):
            raise DiagramError(f"node {index} is of kind {node.kind!r}; it must be leg or vertex")
        if node.is_leg and node.name not in fields:
            raise DiagramError(f"leg {index} is of field {node.name!r}; model {graph.model.name!r} has {', '.join(fields)}")
        if node.is_leg and index and not graph.nodes[index - 1].is_leg:
            raise DiagramError(f"leg {index} comes after a vertex; put the legs first")
        if not node.is_leg and node.label is not None:
            raise DiagramError(f"vertex {index} has the label {node.label!r}; only legs have labels")
    labels = Counter(node.label for node in graph.nodes if node.label is not None)
    repeated = [label for label, count in labels.items() if count > 1]
    if repeated:
        raise DiagramError(f"duplicate leg label {repeated[0]!r}; labels are distinct, or None for legs that may be exchanged")


def _check_line(graph: Graph, index: int, line: Line) -> None:
    count = len(graph.nodes)
    for name, node in (("start", line.start), ("end", line.end)):
        if not 0 <= node < count:
            nodes = f"nodes 0 to {count - 1}" if count else "no node"
            raise DiagramError(f"line {index}: its {name} is node {node}, which does not exist; the diagram has {nodes}")
    known = [f.name for f in graph.model.fields]
    for name in line.fields:
        if name not in known:
            raise DiagramError(f"line {index}: unknown field {name!r}; model {graph.model.name!r} has {', '.join(known)}")
    if line.propagator is None:
        _check_amputated(graph, index, line)
    else:
        _check_propagator(graph.model, index, line, line.propagator)


def _check_amputated(graph: Graph, index: int, line: Line) -> None:
    start, end = graph.nodes[line.start], graph.nodes[line.end]
    if not start.is_leg or end.is_leg or line.fields[0] != line.fields[1]:
        raise DiagramError(
            f"line {index} has no propagator; such a line hangs an amputated leg (its start) on a vertex (its end) by one "
            f"field, not {_describe(start)} and {_describe(end)} by {line.fields[0]} and {line.fields[1]}"
        )


def _check_propagator(model: Model, index: int, line: Line, propagator: Propagator) -> None:
    if propagator not in model.propagators:
        known = ", ".join(p.name for p in model.propagators)
        raise DiagramError(f"line {index}: propagator {propagator.name} is not one of model {model.name!r}, which has {known}")
    if sorted(line.fields) != sorted((propagator.first, propagator.second)):
        raise DiagramError(f"line {index}: a line {propagator.name} cannot join fields {line.fields[0]} and {line.fields[1]}")
    tail = model.tail(propagator)
    if tail is not None and line.fields[0] != tail:
        raise DiagramError(
            f"line {index}: a line {propagator.name} starts at field {tail}, not {line.fields[0]}; exchange its ends"
        )
    expected = (tail is not None, model.is_response(propagator))
    if (line.directed, line.response) != expected:
        raise DiagramError(
            f"line {index}: a line {propagator.name} has directed = {expected[0]}, response = {expected[1]}, "
            f"not {line.directed}, {line.response}"
        )


def _check_legs_used(graph: Graph) -> None:
    used: list[Counter[str]] = [Counter() for _ in graph.nodes]
    for line in graph.lines:
        used[line.start][line.fields[0]] += 1
        used[line.end][line.fields[1]] += 1
    for index, (node, fields) in enumerate(zip(graph.nodes, used)):
        wanted = Counter([node.name]) if node.is_leg else Counter(vertex_named(graph.model, node.name).legs)
        if fields != wanted:
            raise DiagramError(
                f"{_describe(node)} (node {index}) has the legs {_listed(wanted.elements())}, but its lines use "
                f"{_listed(fields.elements()) or 'none'}; every leg is joined by exactly one line"
            )


def _describe(node: Node) -> str:
    return f"{node.kind} {node.name}" + (f":{node.label}" if node.label is not None else "")


def _listed(fields: Iterable[str]) -> str:
    return " ".join(sorted(fields))
