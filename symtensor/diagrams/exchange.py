"""Diagrams as JSON and as networkx graphs, written and read back; for one line of text see `edge_string`.

JSON, version 1. One object per diagram, which stands alone because it holds its model:

    format   "symtensor-diagram"
    version  1
    model    the model in the form of a model file (`model_file`): name, fields, propagators, vertices, ...
    nodes    list of {"kind": "leg" | "vertex", "name": field of the leg or name of the vertex, "label": string},
             legs first; "label" is left out for vertices and for legs that may be exchanged
    lines    list of {"start": node, "end": node, "fields": [field at start, field at end], "propagator": name or null};
             null for the line by which an amputated leg (its start) hangs on a vertex; a propagator with a direction
             runs from start to end

Keys come in this order and the text is the same on every run. Readers accept no other key, check every value, and end
with `validate`; a new version of the format gets a new number.

networkx. A MultiGraph if every line joins two legs of the same field, else a MultiDiGraph in which each edge runs from the
start to the end of its line, with these attributes:

    graph    model (name)
    node     kind, name, label (None where there is none)
    edge     fields (at start and end), propagator (name or None), directed, response

No attribute is called `key`: networkx takes `add_edge(..., key=value)` for the number of a parallel edge and stores no
attribute, and an isomorphism test then does not see the value. Such attributes are refused in both directions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import networkx as nx

from symtensor.diagrams.edge_string import from_edge_string, to_edge_string
from symtensor.diagrams.errors import DiagramError
from symtensor.diagrams.graph import Graph, Line, Node
from symtensor.diagrams.model import Model, Propagator
from symtensor.diagrams.model_file import model_from_dict, model_to_dict
from symtensor.diagrams.validation import propagator_between, validate

__all__ = [
    "from_edge_string",
    "from_json",
    "from_networkx",
    "to_dict",
    "to_edge_string",
    "to_json",
    "to_networkx",
    "validate",
]

FORMAT = "symtensor-diagram"
VERSION = 1
_TOP = ("format", "version", "model", "nodes", "lines")
_KEY = (
    "networkx takes an edge attribute named 'key' for the number of a parallel edge, so that its value is lost and isomorphism "
    "tests do not see it; give the attribute another name, for example 'name'"
)
_EDGE = ("fields", "propagator", "directed", "response")


def to_dict(graph: Graph) -> dict[str, Any]:
    """The diagram as the object of the JSON format."""
    nodes = [{"kind": n.kind, "name": n.name, **({} if n.label is None else {"label": n.label})} for n in graph.nodes]
    lines = [
        {"start": line.start, "end": line.end, "fields": list(line.fields), "propagator": line.propagator and line.propagator.name}
        for line in graph.lines
    ]
    return {"format": FORMAT, "version": VERSION, "model": model_to_dict(graph.model), "nodes": nodes, "lines": lines}


def to_json(graph: Graph) -> str:
    """The diagram as one line of JSON; `from_json` reads it back to an equal graph."""
    return json.dumps(to_dict(graph))


def from_json(data: str | bytes | Mapping[str, Any]) -> Graph:
    """The diagram that a JSON text (or the object of one) describes.

    Raises: DiagramError naming the entry that is wrong, as in ``lines[2].end``; ModelError for the model's entries.
    """
    top = _object(_parsed(data), "the diagram", _TOP, _TOP)
    if top["format"] != FORMAT:
        raise DiagramError(f"format is {_short(top['format'])}; it must be {FORMAT!r}")
    if type(top["version"]) is not int or top["version"] != VERSION:
        raise DiagramError(f"version is {_short(top['version'])}; this program reads version {VERSION}")
    model = model_from_dict(top["model"])
    nodes = tuple(_node(entry, f"nodes[{at}]") for at, entry in enumerate(_list(top["nodes"], "nodes")))
    lines = tuple(_line(model, entry, f"lines[{at}]", len(nodes)) for at, entry in enumerate(_list(top["lines"], "lines")))
    return validate(Graph(model, nodes, lines))


def to_networkx(graph: Graph, line_attributes: Mapping[int, Mapping[str, Any]] | None = None) -> nx.MultiGraph:
    """The diagram as a networkx multigraph; nodes are numbered as in the diagram, edges stand in the order of the lines.

    line_attributes: further attributes by line number.

    Raises: DiagramError for a line that does not exist, and for an attribute named ``key`` or like one of the format's.
    """
    extra = dict(line_attributes or {})
    for index, attributes in extra.items():
        if index not in range(len(graph.lines)):
            raise DiagramError(f"attributes are given for line {index}; the diagram has {len(graph.lines)} lines, from 0")
        if "key" in attributes:
            raise DiagramError(f"line {index}: {_KEY}")
        taken = [name for name in attributes if name in _EDGE]
        if taken:
            raise DiagramError(f"line {index}: the attribute {taken[0]!r} belongs to the format; give yours another name")
    result = nx.MultiGraph() if all(line.fields[0] == line.fields[1] for line in graph.lines) else nx.MultiDiGraph()
    result.graph["model"] = graph.model.name
    for index, node in enumerate(graph.nodes):
        result.add_node(index, kind=node.kind, name=node.name, label=node.label)
    for index, line in enumerate(graph.lines):
        name = None if line.propagator is None else line.propagator.name
        values = (line.fields, name, line.directed, line.response)
        # Not add_edge(..., **attributes): an attribute of any name must stay an attribute.
        number = result.add_edge(line.start, line.end)
        result.edges[line.start, line.end, number].update({**dict(zip(_EDGE, values)), **extra.get(index, {})})
    return result


def from_networkx(graph: nx.Graph, model: Model) -> Graph:
    """The diagram of `model` that a networkx graph describes, by the attributes in the module's text.

    Nodes may be any hashable values; legs come first in the result, in the order of the graph. `fields` is required on
    every edge; `propagator` may be left out for all but amputated legs. Other attributes are ignored.

    Raises: DiagramError naming the node or the edge, also for an edge attribute named ``key``.
    """
    _refuse_key(graph)
    entries = sorted(graph.nodes(data=True), key=lambda entry: entry[1].get("kind") != "leg")
    nodes = tuple(
        _node({k: v for k, v in data.items() if k in ("kind", "name", "label") and v is not None}, f"node {name!r}")
        for name, data in entries
    )
    number = {name: at for at, (name, _) in enumerate(entries)}
    lines = [_edge(graph, model, number, u, v, data) for u, v, data in graph.edges(data=True)]
    return validate(Graph(model, nodes, tuple(sorted(lines, key=lambda line: (line.start, line.end, line.fields)))))


def _refuse_key(graph: nx.Graph) -> None:
    for u, v, data in graph.edges(data=True):
        if "key" in data:
            raise DiagramError(f"edge {u!r}-{v!r}: {_KEY}")
    if not isinstance(graph, nx.MultiGraph):
        return
    numbers: dict[Any, list[Any]] = {}
    for u, v, number in graph.edges(keys=True):
        numbers.setdefault((u, v) if graph.is_directed() else frozenset((u, v)), []).append(number)
    for pair, found in numbers.items():
        if any(type(n) is not int for n in found) or sorted(found) != list(range(len(found))):
            u, v = (*pair, *pair)[:2]
            raise DiagramError(
                f"edges {u!r}-{v!r} have the keys {', '.join(map(repr, found))} where 0, 1, ... was expected: {_KEY}. If edges "
                "were only removed, copy the rest with add_edges_from(graph.edges(data=True)) into a new graph"
            )


def _edge(graph: nx.Graph, model: Model, number: Mapping[Any, int], u: Any, v: Any, data: Mapping[str, Any]) -> Line:
    where = f"edge {u!r}-{v!r}"
    if "fields" not in data:
        raise DiagramError(f"{where} lacks the attribute 'fields' (the fields at its start and its end)")
    fields = _fields(data["fields"], where)
    start, end = number[u], number[v]
    if not graph.is_directed():
        if fields[0] != fields[1]:
            raise DiagramError(
                f"{where} joins the fields {fields[0]} and {fields[1]}; only a MultiDiGraph tells at which end which is"
            )
        start, end = sorted((start, end))
    found = propagator_between(model, *fields)
    name = data.get("propagator", found and found.name)
    return _line(model, {"start": start, "end": end, "fields": fields, "propagator": name}, where, len(number))


def _parsed(data: str | bytes | Mapping[str, Any]) -> object:
    if isinstance(data, Mapping):
        return data
    if not isinstance(data, (str, bytes, bytearray)):
        raise DiagramError(f"a diagram is read from JSON text or a mapping, got {type(data).__name__}")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DiagramError(f"not a JSON text: {error}") from None


def _object(data: object, where: str, allowed: tuple[str, ...], required: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise DiagramError(f"{where} must be an object with the keys {', '.join(allowed)}, got {_short(data)}")
    for key in data:
        if key not in allowed:
            raise DiagramError(f"{where} has the unknown key {key!r}; allowed keys: {', '.join(allowed)}")
    for key in required:
        if key not in data:
            raise DiagramError(f"{where} lacks the key {key!r}; required keys: {', '.join(required)}")
    return data


def _list(data: object, where: str) -> list[object]:
    if not isinstance(data, list | tuple):
        raise DiagramError(f"{where} must be a list, got {_short(data)}")
    return list(data)


def _node(data: object, where: str) -> Node:
    entry = _object(data, where, ("kind", "name", "label"), ("kind", "name"))
    for key, value in entry.items():
        if not isinstance(value, str) and not (key == "label" and value is None):
            raise DiagramError(f"{where}.{key} must be a string, got {_short(value)}")
    return Node(entry["kind"], entry["name"], entry.get("label"))


def _line(model: Model, data: object, where: str, nodes: int) -> Line:
    keys = ("start", "end", "fields", "propagator")
    entry = _object(data, where, keys, keys)
    for key in ("start", "end"):
        if type(entry[key]) is not int or not 0 <= entry[key] < nodes:
            known = f"the number of a node, 0 to {nodes - 1}" if nodes else "the number of a node, and there is none"
            raise DiagramError(f"{where}.{key} is {_short(entry[key])}; it must be {known}")
    fields = _fields(entry["fields"], f"{where}.fields")
    propagator = _propagator(model, entry["propagator"], f"{where}.propagator")
    if propagator is None:
        return Line(entry["start"], entry["end"], fields, None)
    directed = model.tail(propagator) is not None
    return Line(entry["start"], entry["end"], fields, propagator, directed, model.is_response(propagator))


def _fields(data: object, where: str) -> tuple[str, str]:
    if not isinstance(data, list | tuple) or len(data) != 2 or not all(isinstance(name, str) for name in data):
        raise DiagramError(f"{where} must name two fields, at the start and at the end of the line, got {_short(data)}")
    return data[0], data[1]


def _propagator(model: Model, name: object, where: str) -> Propagator | None:
    found = next((p for p in model.propagators if p.name == name), None)
    if found is None and name is not None:
        known = ", ".join(p.name for p in model.propagators)
        raise DiagramError(f"{where} is {_short(name)}; model {model.name!r} has {known} (null for an amputated leg)")
    return found


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
