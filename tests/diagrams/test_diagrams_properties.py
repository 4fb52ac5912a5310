"""Bridges, tadpoles, snails, self-energies, response and index lines: examples, and random diagrams against the definitions.

The definitions are applied literally: to every subset of the vertices, by counting the lines that leave it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import networkx as nx
import pytest

from symtensor.diagrams.edge_string import from_edge_string
from symtensor.diagrams.errors import DiagramError, ModelError, RequestError
from symtensor.diagrams.graph import Graph, Line, Node
from symtensor.diagrams.model import Field, Model, Propagator, Vertex
from symtensor.diagrams.properties import (
    Snail,
    bridges,
    closed_set,
    components,
    has_self_energy,
    has_snail,
    has_tadpole,
    index_loops,
    is_1pi,
    is_connected,
    obeys,
    open_index_lines,
    orders,
    response_cycle,
    self_energies,
    self_loops,
    snails,
    tadpoles,
)
from symtensor.diagrams.subdiagrams import subdiagrams, subgraph
from symtensor.diagrams.theories import theory
from symtensor.diagrams.validation import propagator_between, validate

MIXED = Model(
    "mixed",
    (Field("x"), Field("y"), Field("xt", response=True)),
    (Propagator("x", "x"), Propagator("x", "y", {"e": 1}), Propagator("y", "y"), Propagator("x", "xt", {"e": 2})),
    tuple(Vertex(f"v{k}", tuple(legs.split()), {"g": k}) for k, legs in enumerate(["x", "x y", "xt x x", "x x x y"])),
)
LAYERS = Model(
    "layers",
    (Field("x"), Field("xt", response=True)),
    (Propagator("x", "x"), Propagator("x", "xt")),
    tuple(Vertex(f"v{k}", tuple(legs.split())) for k, legs in enumerate(["x x xt", "x xt xt", "xt xt xt"])),
)
MODELS = [theory("phi3"), theory("phi3+phi4"), theory("kpz"), LAYERS, MIXED]
#: Seeds of the random diagrams, each drawn from every model with up to 6 vertices and 3 legs.
SEEDS = range(120)


def random_graph(model: Model, seed: int) -> Graph:
    """A diagram from a random pairing of the legs of random vertices, some external legs amputated."""
    rng = random.Random(seed)
    while True:
        chosen = [rng.choice(model.vertices) for _ in range(rng.randint(0, 6))]
        legs = [rng.choice(model.fields).name for _ in range(rng.randint(0, 3))]
        nodes = [Node("leg", f, str(at)) for at, f in enumerate(legs)] + [Node("vertex", v.name) for v in chosen]
        open_ends = [(len(legs) + at, f) for at, v in enumerate(chosen) for f in v.legs]
        rng.shuffle(open_ends)
        lines = _lines(model, legs, open_ends, amputated=rng.random() < 0.5)
        if lines is not None:
            return validate(Graph(model, tuple(nodes), tuple(lines)))


def _lines(model: Model, legs: list[str], ends: list[tuple[int, str]], amputated: bool) -> list[Line] | None:
    lines = []
    waiting = list(enumerate(legs))
    for at, f in waiting if amputated else ():
        hook = next((end for end in ends if end[1] == f), None)
        if hook is None:
            return None
        ends.remove(hook)
        lines.append(Line(at, hook[0], (f, f), None))
    ends = ends if amputated else ends + waiting
    while ends:
        one = ends.pop()
        two = next((end for end in ends if propagator_between(model, one[1], end[1])), None)
        if two is None:
            return None
        ends.remove(two)
        propagator = propagator_between(model, one[1], two[1])
        assert propagator is not None
        tail = model.tail(propagator)
        if tail is not None and one[1] != tail:
            one, two = two, one
        lines.append(Line(one[0], two[0], (one[1], two[1]), propagator, tail is not None, model.is_response(propagator)))
    return lines


@pytest.fixture(params=MODELS, ids=lambda model: model.name)
def graphs(request: pytest.FixtureRequest) -> list[Graph]:
    return [random_graph(request.param, seed) for seed in SEEDS]


def as_networkx(graph: Graph, without: tuple[int, ...] = ()) -> nx.MultiGraph:
    result = nx.MultiGraph()
    result.add_nodes_from(range(len(graph.nodes)))
    result.add_edges_from((item.start, item.end) for at, item in enumerate(graph.lines) if at not in without)
    return result


def parts(graph: Graph) -> Iterator[tuple[tuple[int, ...], list[int], tuple[int, ...]]]:
    """Every connected set of vertices, the lines that leave it, and the rest of its component."""
    whole = as_networkx(graph)
    for size in range(1, len(graph.vertices) + 1):
        for part in combinations(graph.vertices, size):
            if nx.is_connected(whole.subgraph(part)):
                leaving = [at for at, item in enumerate(graph.lines) if (item.start in part) != (item.end in part)]
                yield part, leaving, tuple(set(nx.node_connected_component(whole, part[0])) - set(part))


def internal(graph: Graph, at: int) -> bool:
    return not any(graph.nodes[node].is_leg for node in (graph.lines[at].start, graph.lines[at].end))


def test_connectivity_by_definition(graphs: list[Graph]) -> None:
    for graph in graphs:
        whole = as_networkx(graph)
        found = [tuple(sorted(part)) for part in nx.connected_components(whole)]
        assert components(graph) == tuple(sorted(found))
        assert is_connected(graph) == (len(found) == 1)
        cut = [at for at in range(len(graph.lines)) if nx.number_connected_components(as_networkx(graph, (at,))) > len(found)]
        expected = tuple(at for at in cut if internal(graph, at))
        assert bridges(graph) == expected
        assert is_1pi(graph) == (len(found) == 1 and not expected and bool(graph.vertices))
        for name in {p.name for p in graph.model.propagators}:
            assert bridges(graph, [name]) == tuple(at for at in expected if graph.lines[at].propagator.name == name)  # type: ignore[union-attr]


def test_tadpoles_by_definition(graphs: list[Graph]) -> None:
    for graph in graphs:
        expected = [part for part, leaving, _ in parts(graph) if len(leaving) == 1 and internal(graph, leaving[0])]
        assert tadpoles(graph) == tuple(sorted(expected))
        assert has_tadpole(graph) == bool(expected)


def test_snails_by_definition(graphs: list[Graph]) -> None:
    for graph in graphs:
        expected: list[tuple[int, tuple[int, ...]]] = [(graph.lines[at].start, ()) for at in self_loops(graph)]
        for part, leaving, rest in parts(graph):
            ends = {node for at in leaving for node in (graph.lines[at].start, graph.lines[at].end)} - set(part)
            if len(ends) == 1 and all(internal(graph, at) for at in leaving):
                at = ends.pop()
                behind = len(rest) > 1 or any(graph.lines[loop].start == at for loop in self_loops(graph))
                if behind or len(leaving) == 1:
                    expected.append((at, part))
        assert Counter((snail.at, snail.nodes) for snail in snails(graph)) == Counter(expected)
        assert has_snail(graph) == bool(expected)
        assert has_snail(graph) or not has_tadpole(graph)


def test_self_energies_by_definition(graphs: list[Graph]) -> None:
    for graph in graphs:
        expected = [part for part, leaving, _ in parts(graph) if len(leaving) == 2 and all(internal(graph, at) for at in leaving)]
        assert self_energies(graph) == tuple(sorted(expected))
        assert has_self_energy(graph) == bool(expected)


def test_causality_by_definition(graphs: list[Graph]) -> None:
    for graph in graphs:
        arrows = nx.DiGraph((item.start, item.end) for item in graph.lines if item.response)
        cycle = response_cycle(graph)
        assert (cycle is None) == nx.is_directed_acyclic_graph(arrows) == obeys(graph, "local")
        if cycle is not None:
            steps = [graph.lines[at] for at in cycle]
            assert all(one.response and one.end == two.start for one, two in zip(steps, steps[1:] + steps[:1]))
            assert len({step.start for step in steps}) == len(steps)
        closed = set()
        hooks = {item.end for item in graph.lines if item.propagator is None and item.fields[0] == "xt"}
        for size in range(1, len(graph.vertices) + 1):
            for part in combinations(graph.vertices, size):
                left = any(item.response and item.start in part and item.end not in part for item in graph.lines)
                if not left and not hooks & set(part):
                    closed.update(part)
        assert set(closed_set(graph) or ()) == closed
        assert obeys(graph, "nonlocal") == (not closed)


def test_subdiagrams_by_definition(graphs: list[Graph]) -> None:
    for graph in graphs:
        expected = {part: leaving for part, leaving, _ in parts(graph) if len(part) < len(graph.vertices)}
        found = {item.vertices: item for item in subdiagrams(graph, kind="connected")}
        assert set(found) == set(expected)
        for part, leaving in expected.items():
            assert list(found[part].external) == leaving
            validate(found[part].graph)
            inner = [i for i in graph.lines if i.start in part and i.end in part]
            assert len(found[part].lines) == len(inner)
            assert found[part].loops == len(inner) - len(part) + 1
        irreducible = {item.vertices for item in subdiagrams(graph)}
        assert irreducible == {part for part in expected if found[part].loops and is_1pi(found[part].graph)}
        assert {item.vertices for item in subdiagrams(graph, legs=2)} == {p for p in irreducible if len(expected[p]) <= 2}


def test_samples_reach_all_cases() -> None:
    """The random diagrams contain each property and its absence, so that the comparisons above can fail."""
    graphs = [random_graph(model, seed) for model in MODELS for seed in SEEDS]
    for test in (is_connected, is_1pi, has_tadpole, has_snail, has_self_energy, response_cycle, closed_set, bridges):
        assert 10 < sum(bool(test(graph)) for graph in graphs) < len(graphs) - 10
    assert sum(has_snail(g) and not has_tadpole(g) and not self_loops(g) for g in graphs) > 3
    assert sum(closed_set(g) is None and response_cycle(g) is not None for g in graphs) > 3


def phi(text: str, name: str = "phi3+phi4") -> Graph:
    return from_edge_string(text, theory(name))


def test_bare_line_and_empty_diagram() -> None:
    bare, empty = phi("x:1-x:2"), phi("")
    assert is_connected(bare) and not is_1pi(bare) and bridges(bare) == ()
    assert components(empty) == () and not is_connected(empty) and not is_1pi(empty)
    assert not has_tadpole(empty) and not has_snail(empty) and closed_set(empty) is None


def test_one_point_diagram_hangs_on_its_leg_but_is_no_tadpole() -> None:
    one = phi("x:1-g3.0 g3.0-g3.0")
    assert is_1pi(one) and not has_tadpole(one)
    assert snails(one) == (Snail(1, (), (1,)),)


def test_tadpole_on_a_propagator() -> None:
    graph = phi("x:1-g3.0 x:2-g3.0 g3.0-g3.1 g3.1-g3.1")
    assert bridges(graph) == (2,) and tadpoles(graph) == ((3,),)
    assert {snail.nodes for snail in snails(graph)} == {(3,), ()}
    assert not is_1pi(graph)


def test_vacuum_bridges_make_tadpoles_of_both_sides() -> None:
    dumbbell = phi("g3.0-g3.0 g3.0-g3.1 g3.1-g3.1")
    assert tadpoles(dumbbell) == ((0,), (1,))
    assert snails(phi("g4.0-g4.0 g4.0-g4.0")) == (Snail(0, (), (0,)), Snail(0, (), (1,)))
    assert not has_snail(phi("g3.0-g3.1 g3.0-g3.1 g3.0-g3.1"))


def test_snail_on_two_lines_is_no_tadpole() -> None:
    graph = phi("x:1-g4.0 x:2-g4.0 g4.0-g4.1 g4.0-g4.1 g4.1-g4.2 g4.1-g4.2 g4.2-g4.2")
    assert not has_tadpole(graph) and is_1pi(graph)
    assert {(s.at, s.nodes) for s in snails(graph)} == {(2, (3, 4)), (3, (4,)), (4, ())}
    assert self_energies(graph) == ((3, 4), (4,))


def test_irreducible_in_one_kind_of_line() -> None:
    graph = from_edge_string("phi:1-g0 phi:2-g0 g0[sigma]-g1[sigma] phi:3-g1 phi:4-g1", theory("on"))
    assert not is_1pi(graph) and not is_1pi(graph, ["sigma-sigma"]) and is_1pi(graph, "phi-phi")
    with pytest.raises(RequestError, match="no propagator 'sigma-phi'; it has phi-phi, sigma-sigma"):
        is_1pi(graph, ["sigma-phi"])


def test_index_loops_and_open_lines() -> None:
    bubble = from_edge_string("sigma:1-g0 g0[phi]-g1[phi] g0[phi]-g1[phi] g1-sigma:2", theory("on"))
    assert index_loops(bubble) == ((1, 2),) and open_index_lines(bubble) == ()
    line = from_edge_string("phi:1-g0 g0[phi]-g1[phi] g0[sigma]-g1[sigma] g1-phi:2", theory("on"))
    assert index_loops(line) == () and open_index_lines(line) == ((0, 1, 3),)
    tadpole = from_edge_string("sigma:1-g0 g0[phi]-g0[phi]", theory("on"))
    assert index_loops(tadpole) == ((1,),)


def test_index_lines_that_are_not_defined() -> None:
    with pytest.raises(ModelError, match=r"has 4 legs with index 'N'.*auxiliary field"):
        Model("o4", (Field("x", index="N"),), (Propagator("x", "x"),), (Vertex("g", ("x",) * 4),))
    with pytest.raises(ModelError, match="joins a field with index 'N' to one with None"):
        Model("m", (Field("x", index="N"), Field("y")), (Propagator("x", "y"),))


def test_orders_add_up() -> None:
    graph = from_edge_string("v2.0>v2.0 v2.0[x]-v1.1[y] v1.1[x]-x:1", MIXED)
    assert orders(graph) == {"e": 3, "g": 3}
    assert orders(phi("x:1-g3.0 x:2-g3.0 g3.0-g4.1 g4.1-x:3 g4.1-g4.1")) == {"g": 3}
    assert orders(from_edge_string("V_2_1.0>s:1 V_2_1.0-V_2_1.0", theory("layered-network"))) == {}


def test_causality_rules_differ() -> None:
    # A response line that returns to its own vertex: local drops it, nonlocal keeps it if the vertex has a way out.
    graph = from_edge_string("V_1_2.0>s:1 V_1_2.0>V_1_2.0", theory("layered-network"))
    assert not obeys(graph, "local") and obeys(graph, "nonlocal") and obeys(graph, "none")
    with pytest.raises(RequestError, match="it must be local, nonlocal or none"):
        obeys(graph, "causal")


def test_sunset_has_three_subdiagrams_on_chosen_lines() -> None:
    sunset = phi("x:1-g4.0 g4.0-g4.1 g4.0-g4.1 g4.0-g4.1 g4.1-x:2")
    assert list(subdiagrams(sunset)) == []
    found = list(subdiagrams(sunset, induced=False))
    assert [item.lines for item in found] == [(1, 2), (1, 3), (2, 3)]
    assert found[0].external == (0, 3, 3, 4) and found[0].loops == 1
    assert [found[0].graph.nodes[at].label for at in found[0].graph.legs] == ["line0", "line3a", "line3b", "line4"]
    assert list(subdiagrams(sunset, induced=False, legs=3)) == []
    with pytest.raises(RequestError, match="1pi or connected"):
        next(subdiagrams(sunset, kind="bridge"))  # type: ignore[arg-type]


def test_subgraph_names_what_is_wrong() -> None:
    sunset = phi("x:1-g4.0 g4.0-g4.1 g4.0-g4.1 g4.0-g4.1 g4.1-x:2")
    assert subgraph(sunset, sunset.vertices).loops == 2
    with pytest.raises(DiagramError, match="node 0 is no vertex of the diagram; its vertices are 2, 3"):
        subgraph(sunset, [0])
    with pytest.raises(DiagramError, match="line 4 does not join two of the vertices 2, 3"):
        subgraph(sunset, [2, 3], [4])
