"""Diagrams survive JSON, networkx and one line of text; each reader names what is wrong."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import networkx as nx
import pytest

from symtensor.diagrams.errors import DiagramError, ModelError
from symtensor.diagrams.exchange import (
    from_edge_string,
    from_json,
    from_networkx,
    to_dict,
    to_edge_string,
    to_json,
    to_networkx,
    validate,
)
from symtensor.diagrams.graph import Graph, Line, Node
from symtensor.diagrams.isomorphism import are_isomorphic
from symtensor.diagrams.model import Field, Model, Propagator, Vertex
from symtensor.diagrams.theories import theory

MIXED = Model(
    "mixed",
    (Field("u"), Field("v"), Field("b", conjugate="a"), Field("a")),
    (Propagator("u", "u"), Propagator("u", "v"), Propagator("v", "v"), Propagator("a", "b")),
    (Vertex("g", ("u", "u", "v"), {"g": 1}), Vertex("h2", ("a", "b", "u"))),
)
XX = theory("phi4").propagators[0]
TADPOLE = Graph(
    theory("phi4"),
    (Node("leg", "x", "1"), Node("leg", "x", "2"), Node("vertex", "g4")),
    (Line(0, 2, ("x", "x"), XX), Line(1, 2, ("x", "x"), XX), Line(2, 2, ("x", "x"), XX)),
)
TEXTS: list[tuple[Model, str]] = [
    (theory("phi4"), "x:1-g4.0 x:2-g4.0 g4.0-g4.0"),
    (theory("phi4"), "x-g4.0 g4.0-g4.0 g4.0-x"),
    (theory("phi4"), 'x:"a b-c"/g4.0 x:"\\"["/g4.0 x:""/g4.0 x:é/g4.0'),
    (theory("phi3"), "x:1-x:2 g3.0-g3.1 g3.0-g3.1 g3.0-g3.1"),
    (theory("kpz"), "g0>x:1 g1>g0 g0-g1 x:2-g1"),
    (theory("kpz"), "x:1/g0 g0>g1 g0-g1 xt:2/g1"),
    (theory("on"), "sigma:1-g0 g0[phi]-g1[phi] g0[phi]-g1[phi] g1-sigma:2"),
    (theory("layered-network"), "V_1_2.0>s:1 V_1_2.0>V_1_2.0"),
    (MIXED, "g0[u]-g0[v] g0[u]-h2.1[u] h2.1>h2.1"),
    (MIXED, "g0[v]-g1[u] g0[u]-g1[v] g0[u]-g1[u]"),
    (MIXED, "u:1-g0[v] v:2-g0[u] b>h2.1 h2.1>a h2.1-g0[u]"),
    (theory("phi4"), ""),
]


@pytest.fixture(params=TEXTS, ids=lambda value: f"{value[0].name}-{TEXTS.index(value)}")
def graph(request: pytest.FixtureRequest) -> Graph:
    model, text = request.param
    return from_edge_string(text, model)


def test_json_round_trip(graph: Graph) -> None:
    text = to_json(graph)
    assert from_json(text) == graph
    assert from_json(text.encode()) == graph
    assert from_json(to_dict(graph)) == graph
    assert to_json(from_json(text)) == text


def test_networkx_round_trip(graph: Graph) -> None:
    written = to_networkx(graph)
    assert written.is_directed() == any(line.fields[0] != line.fields[1] for line in graph.lines)
    again = from_networkx(written, graph.model)
    assert again.nodes == graph.nodes and are_isomorphic(again, graph)
    assert not any("key" in data for _, _, data in written.edges(data=True))
    renamed = nx.relabel_nodes(written, {node: len(written) - 1 - node for node in written})
    assert are_isomorphic(from_networkx(renamed, graph.model), graph)


def test_text_round_trip(graph: Graph) -> None:
    text = to_edge_string(graph)
    again = from_edge_string(text, graph.model)
    assert are_isomorphic(again, graph)
    assert to_edge_string(again) == text


def test_text_of_a_diagram_made_by_hand() -> None:
    assert to_edge_string(validate(TADPOLE)) == "x:1-g4.0 x:2-g4.0 g4.0-g4.0"
    assert from_edge_string(to_edge_string(TADPOLE), TADPOLE.model) == TADPOLE
    kpz = theory("kpz")
    bubble = from_edge_string("g0>x:1 g1>g0 g0-g1 x:2-g1", kpz)
    assert [line.fields for line in bubble.lines] == [("xt", "x"), ("xt", "x"), ("x", "x"), ("x", "x")]
    assert [(line.directed, line.response) for line in bubble.lines] == [(True, True), (True, True), (False, False), (False, False)]
    assert to_edge_string(bubble) == "g0>x:1 g1>g0 g0-g1 x:2-g1"


def test_json_stands_as_documented() -> None:
    data = json.loads(to_json(TADPOLE))
    assert list(data) == ["format", "version", "model", "nodes", "lines"]
    assert data["format"] == "symtensor-diagram" and data["version"] == 1
    assert data["nodes"][2] == {"kind": "vertex", "name": "g4"}
    assert data["lines"][2] == {"start": 2, "end": 2, "fields": ["x", "x"], "propagator": "x-x"}
    assert data["model"]["vertices"] == [{"name": "g4", "legs": "x^4", "orders": {"g": 2}}]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "dot", "format is 'dot'; it must be 'symtensor-diagram'"),
        (("version",), 2, "version is 2; this program reads version 1"),
        (("version",), True, "version is True"),
        (("extra",), 1, "the diagram has the unknown key 'extra'"),
        (("nodes",), {}, "nodes must be a list, got {}"),
        (("nodes", 0, "kind"), "ghost", "node 0 is of kind 'ghost'; it must be leg or vertex"),
        (("nodes", 0, "label"), 1, "nodes[0].label must be a string, got 1"),
        (("nodes", 1, "label"), "1", "duplicate leg label '1'"),
        (("nodes", 0, "name"), "y", "leg 0 is of field 'y'; model 'phi4' has x"),
        (("nodes", 2, "name"), "g5", "model 'phi4' has no vertex 'g5'; it has g4"),
        (("nodes", 2, "label"), "1", "vertex 2 has the label '1'; only legs have labels"),
        (("nodes", 2, "colour"), "red", "nodes[2] has the unknown key 'colour'; allowed keys: kind, name, label"),
        (("lines", 1, "end"), 7, "lines[1].end is 7; it must be the number of a node, 0 to 2"),
        (("lines", 1, "end"), -1, "lines[1].end is -1"),
        (("lines", 1, "start"), True, "lines[1].start is True"),
        (("lines", 1, "fields"), ["x"], "lines[1].fields must name two fields"),
        (("lines", 1, "fields"), ["x", "y"], "line 1: unknown field 'y'; model 'phi4' has x"),
        (("lines", 1, "propagator"), "x-y", "lines[1].propagator is 'x-y'; model 'phi4' has x-x (null for an amputated leg)"),
        (("lines", 2, "propagator"), None, "line 2 has no propagator; such a line hangs an amputated leg"),
        (("lines", 2), None, "lines[2] must be an object with the keys start, end, fields, propagator, got None"),
        (("lines", 1, "end"), 0, "leg x:1 (node 0) has the legs x, but its lines use x x"),
    ],
)
def test_json_errors_name_the_entry(path: tuple[str | int, ...], value: Any, message: str) -> None:
    data = copy.deepcopy(to_dict(TADPOLE))
    entry: Any = data
    for step in path[:-1]:
        entry = entry[step]
    entry[path[-1]] = value
    with pytest.raises(DiagramError, match=re.escape(message)):
        from_json(json.dumps(data))


def test_json_with_too_few_entries() -> None:
    data = to_dict(TADPOLE)
    with pytest.raises(DiagramError, match=re.escape("vertex g4 (node 2) has the legs x x x x, but its lines use x x;")):
        from_json({**data, "lines": data["lines"][:2]})
    with pytest.raises(DiagramError, match="the diagram lacks the key 'lines'"):
        from_json({key: data[key] for key in data if key != "lines"})
    with pytest.raises(DiagramError, match="the number of a node, and there is none"):
        from_json({**data, "nodes": []})
    with pytest.raises(ModelError, match=re.escape("fields[0] has the unknown key 'nam'; did you mean 'name'?")):
        from_json({**data, "model": {**data["model"], "fields": [{"nam": "x"}]}})
    for text in ("{", "[" * 100000, b"\xff\xfe\x00", "3"):
        with pytest.raises(DiagramError, match=r"JSON text|must be an object"):
            from_json(text)


def line(start: int, end: int, fields: tuple[str, str], directed: bool = True, response: bool = True) -> Line:
    return Line(start, end, fields, theory("kpz").propagators[1], directed, response)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((line(0, 1, ("x", "xt")),), "line 0: a line x-xt starts at field xt, not x"),
        ((line(1, 0, ("x", "x")),), "line 0: a line x-xt cannot join fields x and x"),
        ((line(1, 0, ("xt", "x"), False),), "line 0: a line x-xt has directed = True, response = True, not False, True"),
        ((Line(1, 0, ("xt", "x"), XX),), "line 0: a line x-x cannot join fields xt and x"),
        ((Line(1, 0, ("xt", "x"), Propagator("x", "xt", {"g": 1})),), "propagator x-xt is not one of model 'kpz'"),
        ((Line(0, 1, ("x", "xt"), None),), "such a line hangs an amputated leg (its start) on a vertex (its end) by one field"),
        ((line(1, 3, ("xt", "x")),), "line 0: its end is node 3, which does not exist; the diagram has nodes 0 to 1"),
    ],
)
def test_lines_must_fit_the_model(lines: tuple[Line, ...], message: str) -> None:
    with pytest.raises(DiagramError, match=re.escape(message)):
        validate(Graph(theory("kpz"), (Node("leg", "x", "1"), Node("vertex", "g")), lines))


def test_legs_come_first() -> None:
    nodes = (Node("vertex", "g4"), Node("leg", "x"))
    with pytest.raises(DiagramError, match="leg 1 comes after a vertex"):
        validate(Graph(theory("phi4"), nodes, ()))


def test_an_attribute_named_key_is_refused() -> None:
    with pytest.raises(DiagramError, match="line 0: networkx takes an edge attribute named 'key'"):
        to_networkx(TADPOLE, {0: {"key": 5}})
    stored = to_networkx(TADPOLE)
    stored.edges[0, 2, 0]["key"] = 5
    with pytest.raises(DiagramError, match="edge 0-2: networkx takes an edge attribute named 'key'"):
        from_networkx(stored, TADPOLE.model)


def test_a_swallowed_key_is_refused() -> None:
    # networkx #3140: key=5 becomes the number of the edge, and no attribute is left to compare.
    swallowed = to_networkx(TADPOLE)
    data = dict(swallowed.edges[0, 2, 0])
    swallowed.remove_edge(0, 2)
    swallowed.add_edge(0, 2, key=5, **data)
    with pytest.raises(DiagramError, match=r"have the keys 5 where 0, 1, ... was expected"):
        from_networkx(swallowed, TADPOLE.model)
    rebuilt = nx.MultiGraph()
    rebuilt.add_nodes_from(swallowed.nodes(data=True))
    rebuilt.add_edges_from(swallowed.edges(data=True))
    assert are_isomorphic(from_networkx(rebuilt, TADPOLE.model), TADPOLE)


def test_networkx_attributes_of_the_user() -> None:
    written = to_networkx(TADPOLE, {2: {"colour": "red"}})
    assert written.edges[2, 2, 0]["colour"] == "red"
    assert from_networkx(written, TADPOLE.model) == TADPOLE
    with pytest.raises(DiagramError, match="the attribute 'fields' belongs to the format"):
        to_networkx(TADPOLE, {0: {"fields": 1}})
    with pytest.raises(DiagramError, match="attributes are given for line 3; the diagram has 3 lines"):
        to_networkx(TADPOLE, {3: {}})


def test_networkx_needs_a_direction_to_tell_the_fields_apart() -> None:
    graph = nx.MultiGraph()
    graph.add_node(0, kind="leg", name="u")
    graph.add_node(1, kind="leg", name="v")
    graph.add_edge(0, 1, fields=("v", "u"))
    with pytest.raises(DiagramError, match="only a MultiDiGraph tells at which end which is"):
        from_networkx(graph, MIXED)


def test_networkx_graph_of_the_user() -> None:
    graph = nx.MultiGraph()
    graph.add_node("v", kind="vertex", name="g4")
    graph.add_node("in", kind="leg", name="x", label="1")
    graph.add_node("out", kind="leg", name="x", label="2")
    for ends in (("in", "v"), ("v", "out"), ("v", "v")):
        graph.add_edge(*ends, fields=("x", "x"))
    assert are_isomorphic(from_networkx(graph, theory("phi4")), TADPOLE)
    graph.add_edge("v", "v")
    with pytest.raises(DiagramError, match="edge 'v'-'v' lacks the attribute 'fields'"):
        from_networkx(graph, theory("phi4"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x:1-g4.0 x:2+g4.0", "'x:2+g4.0' is no line of a diagram"),
        ("x:1-g4.0-x:2", "is no line of a diagram"),
        ("x:1-y:2", "in 'x:1-y:2': 'y' is neither a leg (fields: x) nor a vertex"),
        ("x:1-g5.0", "in 'x:1-g5.0': model 'phi4' has no vertex 'g5'; it has g4"),
        ("x:1-g4.0[y]", "vertex g4 has no leg of field 'y'; it has x"),
        ("x:1>x:2", "'x:1>x:2' (x > x) fits no line; model 'phi4' has x-x; > is for lines with a direction"),
        ("g4.0/x:1", "fits no line"),
        ("x:1-g4.0", "vertex g4 (node 1) has the legs x x x x, but its lines use x;"),
        ("x:1-g4.0 x:1-g4.0 g4.0-g4.0", "duplicate leg label '1'"),
        ('x:"\\q"-x:2', "is not a string in JSON's form"),
    ],
)
def test_text_errors_quote_the_line(text: str, message: str) -> None:
    with pytest.raises(DiagramError, match=re.escape(message)):
        from_edge_string(text, theory("phi4"))


def test_the_ends_of_a_self_loop_are_not_told_apart() -> None:
    model = Model("uv", (Field("u"), Field("v")), (Propagator("u", "v"),), (Vertex("m", ("u", "v")),))
    loop = from_edge_string("m0-m0", model)
    assert loop.lines[0].fields == ("u", "v")
    assert to_edge_string(loop) == "m0-m0"


def test_text_that_leaves_the_fields_open() -> None:
    with pytest.raises(DiagramError, match="fits more than one line; write the fields"):
        from_edge_string("g0-g1", MIXED)
    with pytest.raises(DiagramError, match="vertex number 0 is of two kinds"):
        from_edge_string("g0[u]-g0[u] g0[v]-h2.0[u]", MIXED)
