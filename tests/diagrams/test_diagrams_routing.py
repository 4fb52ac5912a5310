"""Momenta are conserved and independent; times are ordered as the response lines say."""

from __future__ import annotations

import itertools

import pytest
import sympy as sp

from symtensor.diagrams.edge_string import from_edge_string
from symtensor.diagrams.errors import DiagramError, RequestError
from symtensor.diagrams.graph import Graph
from symtensor.diagrams.properties import bridges, components
from symtensor.diagrams.routing import momenta, times
from symtensor.diagrams.theories import theory

SUNSET = "x:1-g4.0 g4.0-g4.1 g4.0-g4.1 g4.0-g4.1 g4.1-x:2"
KPZ = "g0>x:1 g1>g0 g2>g0 g1-g2 g1-g3 g3>g2 x:2-g3"
TEXTS = [
    ("phi4", SUNSET),
    ("phi4", "x:1/g4.0 g4.0-g4.1 g4.0-g4.1 g4.0-g4.1 x:2/g4.1"),
    ("phi3", "x:1-g3.0 g3.0-g3.1 g3.1-g3.2 g3.0-g3.2 g3.1-g3.3 g3.2-x:2 g3.3-g3.3"),
    ("phi3", "x-g3.0 x-g3.0 g3.0-g3.1 g3.1-x g3.1-x"),
    ("phi3", "x:a-g3.0 g3.0-g3.0"),
    ("phi3", "x:1-x:2 x:3-g3.0 x:4-g3.0 x:5-g3.0 g3.1-g3.2 g3.1-g3.2 g3.1-g3.2"),
    ("phi4", "g4.0-g4.0 g4.0-g4.0"),
    ("kpz", KPZ),
]


@pytest.fixture(params=TEXTS, ids=lambda value: f"{value[0]}-{TEXTS.index(value)}")
def graph(request: pytest.FixtureRequest) -> Graph:
    name, text = request.param
    return from_edge_string(text, theory(name))


def test_momentum_is_conserved(graph: Graph) -> None:
    routing = momenta(graph)
    for vertex in graph.vertices:
        assert routing.inflow(vertex) == 0
    for leg, incoming in zip(graph.legs, routing.external):
        assert sp.expand(routing.inflow(leg) + incoming) == 0
    for part in components(graph):
        assert sp.expand(sum(routing.external[node] for node in part if graph.nodes[node].is_leg)) == 0


def test_loop_momenta_are_a_basis(graph: Graph) -> None:
    """As many as independent loops; each is a closed loop; together of full rank."""
    routing = momenta(graph)
    assert len(routing.loop_momenta) == len(graph.lines) - len(graph.nodes) + len(components(graph))
    assert sorted(routing.tree + routing.chords) == list(range(len(graph.lines)))
    rows = []
    for loop in routing.loop_basis:
        ends: dict[int, int] = {}
        for index, sign in loop:
            assert sign in (1, -1)
            ends[graph.lines[index].start] = ends.get(graph.lines[index].start, 0) - sign
            ends[graph.lines[index].end] = ends.get(graph.lines[index].end, 0) + sign
        assert not any(ends.values())
        rows.append([dict(loop).get(index, 0) for index in range(len(graph.lines))])
    if rows:
        assert sp.Matrix(rows).rank() == len(rows)
    for chord, symbol in zip(routing.chords, routing.loop_momenta):
        assert routing.momenta[chord] == symbol


def test_bridges_carry_external_momenta_only(graph: Graph) -> None:
    routing = momenta(graph)
    loops = set(routing.loop_momenta)
    for index in bridges(graph):
        assert not routing.momenta[index].free_symbols & loops


def test_sunset_and_its_names() -> None:
    graph = from_edge_string(SUNSET, theory("phi4"))
    k1, k2, q = sp.symbols("l1 l2 q")
    for names in (["q", "r"], {"1": "q", "2": "r"}):
        routing = momenta(graph, names, loop="l")
        assert routing.momenta == (q, q - k1 - k2, k1, k2, q)
        assert routing.eliminated == ((sp.Symbol("r"), -q),)
    assert routing == momenta(graph, names, loop="l")
    assert repr(routing).splitlines()[:3] == [
        "momenta of a diagram of phi4; loop momenta: l1, l2",
        "  r = -q (external momenta flow in)",
        "  line 0 x:1 -> g4.2 (x-x): q",
    ]
    assert r"q_{2} &= l_{1}" in routing._repr_latex_()


def test_tadpole_hangs_at_momentum_zero() -> None:
    routing = momenta(from_edge_string("x:1-g3.0 x:2-g3.0 g3.0-g3.1 g3.1-g3.1", theory("phi3")))
    assert routing.momenta == (sp.Symbol("p_1"), -sp.Symbol("p_1"), 0, sp.Symbol("k1"))


@pytest.mark.parametrize(
    ("names", "loop", "message"),
    [
        (["q"], "k", "2 are required"),
        ("qr", "k", "2 are required"),
        ({"1": "q"}, "k", "leg labelled '2'"),
        (["q", "q"], "k", "'q' is named twice"),
        (["k1", "q"], "k", "'k1' is named twice"),
    ],
)
def test_names_that_cannot_be_used(names: list[str] | dict[str, str] | str, loop: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        momenta(from_edge_string(SUNSET, theory("phi4")), names, loop)


def test_times_follow_the_response_lines() -> None:
    graph = from_edge_string(KPZ, theory("kpz"))
    routing = times(graph)
    place = {node: at for at, node in enumerate(routing.order)}
    assert sorted(place) == list(range(len(graph.nodes)))
    responses = [line for line in graph.lines if line.response]
    assert len(responses) == 4 and all(place[line.end] < place[line.start] for line in responses)
    assert set(routing.orderings) == {(line.start, line.end) for line in responses}
    s1, t1 = routing.line_times(0)
    assert (s1, t1) == (sp.Symbol("s1"), sp.Symbol("t_1"))
    assert repr(routing).splitlines()[1].startswith("  order: s1 < t_1, s2 < s1")
    assert r"s_{1} &< t_{1}" in routing._repr_latex_()


def test_theta_is_one_exactly_on_ordered_times() -> None:
    graph = from_edge_string("g0>x:1 g1>g0 g1-g0 x:2-g1", theory("kpz"))
    theta = times(graph, ["t", "u"]).theta()
    symbols = sp.symbols("t s1 s2 u")
    for values in itertools.permutations(range(4)):
        t, s1, s2, _ = values
        assert theta.subs(dict(zip(symbols, values))) == int(s2 < s1 < t)
    equal = dict(zip(symbols, (2, 1, 1, 0)))
    assert theta.subs(equal) == 0
    assert times(graph, ["t", "u"]).theta(sp.Rational(1, 2)).subs(equal) == sp.Rational(1, 2)


def test_amputated_legs_share_the_time_of_their_vertex() -> None:
    graph = from_edge_string("x:1/g0 xt:2/g1 g0>g1 g0-g1", theory("kpz"))
    routing = times(graph)
    assert routing.line_times(0) == (sp.Symbol("s1"), sp.Symbol("s1"))
    assert routing.order == (3, 2)


def test_closed_response_loops_have_no_order() -> None:
    graph = from_edge_string("x:1-g0 g0>g1 g1>g0 g1-x:2", theory("kpz"))
    with pytest.raises(DiagramError, match="lines 1, 2 form a closed loop"):
        times(graph)
