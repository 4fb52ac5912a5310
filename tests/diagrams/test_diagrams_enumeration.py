"""Every diagram once, with its factor: against Wick pairings, predicates and automorphisms that know nothing of the search."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, islice
from math import factorial, prod

import pytest

from symtensor.diagrams import (
    Diagram,
    Field,
    Graph,
    InfiniteRequestError,
    Leg,
    Line,
    Model,
    ModelError,
    Node,
    Propagator,
    RequestError,
    Vertex,
    enumerate_diagrams,
    properties,
    theory,
)  # fmt: skip
from symtensor.diagrams.isomorphism import are_isomorphic, automorphism_count

COMPLEX = Model(
    "complex", (Field("psi"), Field("psib", conjugate="psi")), (Propagator("psi", "psib"),),
    (Vertex("u", ("psib", "psib", "psi", "psi"), {"u": 1}),),
)  # fmt: skip
MIXING = Model(
    "mixing", (Field("u"), Field("v")), (Propagator("u", "u"), Propagator("u", "v", {"k": 1}), Propagator("v", "v")),
    (Vertex("g", ("u", "u", "v"), {"g": 1}), Vertex("m", ("v", "v"), {"m": 1}), Vertex("h", ("u",), {"h": 1})),
)  # fmt: skip
QUADRATIC = Model("quadratic", (Field("x"),), (Propagator("x", "x"),), (Vertex("m", ("x", "x"), {"m": 1}),))
MODELS = {"complex": COMPLEX, "mixing": MIXING, "quadratic": QUADRATIC}


def model_of(name: str) -> Model:
    return MODELS.get(name) or theory(name)


# --- the oracle: all pairings -----------------------------------------------------------------------------------------


def pairings(model: Model, legs: tuple[Leg, ...], vertices: tuple[Vertex, ...], amputated: bool) -> Counter[tuple[Line, ...]]:
    """All ways to join the legs of vertices and the external legs, as sorted lines with their number."""
    ends = [(n, leg.field, True) for n, leg in enumerate(legs)]
    ends += [(len(legs) + n, name, False) for n, vertex in enumerate(vertices) for name in vertex.legs]
    found: Counter[tuple[Line, ...]] = Counter()

    def join(free: list[tuple[int, str, bool]], lines: list[Line]) -> None:
        if not free:
            found[tuple(sorted(lines, key=repr))] += 1
            return
        (here, one, outer), rest = free[0], free[1:]
        for at, (there, other, _) in enumerate(rest):
            left = rest[:at] + rest[at + 1 :]
            if outer and amputated:
                if one == other and there >= len(legs):
                    join(left, [*lines, Line(here, there, (one, one), None)])
                continue
            for p in model.propagators:
                if sorted((p.first, p.second)) == sorted((one, other)):
                    join(left, [*lines, line_of(model, p, here, there, one, other)])

    join(ends, [])
    return found


def line_of(model: Model, p: Propagator, here: int, there: int, one: str, other: str) -> Line:
    tail = model.tail(p)
    if (tail is not None and tail != one) or (tail is None and (here, one) > (there, other)):
        here, there, one, other = there, here, other, one
    return Line(here, there, (one, other), p, tail is not None, model.is_response(p))


def expected_classes(
    model: Model, legs: tuple[Leg, ...], vertices: tuple[Vertex, ...], amputated: bool
) -> list[tuple[Graph, Fraction]]:
    """Diagrams up to isomorphism (decided by VF2) with their weights: pairings over the factorials of the vertices."""
    nodes = tuple(Node("leg", leg.field, leg.label) for leg in legs) + tuple(Node("vertex", v.name) for v in vertices)
    scale = prod(factorial(n) for v in vertices for n in Counter(v.legs).values())
    scale *= prod(factorial(n) for n in Counter(v.name for v in vertices).values())
    classes: list[list] = []
    for lines, number in pairings(model, legs, vertices, amputated).items():
        graph = Graph(model, nodes, lines)
        same = next((one for one in classes if are_isomorphic(one[0], graph)), None)
        if same is None:
            classes.append([graph, Fraction(0)])
            same = classes[-1]
        same[1] += Fraction(number, scale)
    return [(graph, weight) for graph, weight in classes]


def wick(asked) -> list[tuple[Graph, Fraction]]:  # type: ignore[no-untyped-def]
    """What the request should give, from all pairings of all its sets of vertices, with the predicates of `properties`."""
    request = asked.request
    found = []
    for content in asked.contents:
        vertices = tuple(vertex for vertex, number in content for _ in range(number))
        found += expected_classes(request.model, request.legs, vertices, request.amputated)
    return [(graph, weight) for graph, weight in found if answers(request, graph)]


def answers(request, graph: Graph) -> bool:  # type: ignore[no-untyped-def]
    if request.kind == "connected" and not properties.is_connected(graph):
        return False
    if request.kind == "1pi" and not properties.is_1pi(graph, request.irreducible):
        return False
    orders = properties.orders(graph)
    return (
        properties.obeys(graph, request.causality)
        and all(low <= orders.get(name, 0) <= high for name, (low, high) in request.orders)
        and not (request.no_self_loops and properties.self_loops(graph))
        and not (request.no_tadpoles and properties.has_tadpole(graph))
        and not (request.no_snails and (properties.has_snail(graph) or properties.has_tadpole(graph)))
        and not (request.no_self_energies and properties.has_self_energy(graph))
    )


SMALL = [
    ("phi3", 2, 1, {"kind": "all"}),
    ("phi3", 1, 2, {"kind": "connected"}),
    ("phi3", 3, 1, {"kind": "1pi"}),
    ("phi4", 2, 2, {"kind": "all"}),
    ("phi4", 0, 3, {"kind": "vacuum"}),
    ("phi6", 2, 2, {"kind": "connected"}),
    ("phi3+phi4", 2, 1, {"kind": "connected"}),
    ("phi3+phi4", 0, None, {"kind": "all", "orders": {"g": (0, 4)}}),
    ("kpz", "x:1,xt:1", 1, {"kind": "connected"}),
    ("kpz", "x:1,xt:1", 1, {"kind": "1pi", "causality": "none"}),
    ("kpz", "x:2", 1, {"kind": "all"}),
    ("kpz", "x:1,xt:1", 1, {"kind": "1pi", "irreducible": ["x-xt"]}),
    ("kpz", "x:1,xt:1", 1, {"kind": "1pi", "irreducible": ["x-x"], "causality": "none"}),
    ("cubic-langevin", "x:2", 1, {"kind": "connected"}),
    ("on", "phi:2", 1, {"kind": "all"}),
    ("on", "phi:2,sigma:1", 1, {"kind": "1pi", "irreducible": ["sigma-sigma"]}),
    ("on", "phi:2,sigma:1", 1, {"kind": "1pi", "irreducible": ["phi-phi"]}),
    ("layered-network", "s:1", 1, {"kind": "connected"}),
    ("layered-network", "s:1", 1, {"kind": "all", "causality": "none"}),
    ("layered-network", "s:1,J:1", 1, {"kind": "1pi"}),
    ("complex", "psi:1,psib:1", 2, {"kind": "connected"}),
    ("complex", "psi:1,psib:1", 2, {"kind": "1pi"}),
    ("mixing", "u:1", None, {"orders": {"g": (0, 1), "m": (0, 2), "h": (0, 2)}}),
    ("mixing", "u:1,v:1", None, {"kind": "all", "orders": {"g": 1, "m": (0, 1), "h": (0, 1), "k": (1, 2)}}),
    ("quadratic", 2, None, {"kind": "all", "orders": {"m": (0, 3)}}),
]
FILTERS = [{}, {"no_tadpoles": True}, {"no_self_loops": True}, {"no_snails": True}, {"no_self_energies": True}]


@pytest.mark.parametrize(("name", "legs", "loops", "options"), SMALL)
def test_wick_pairings_give_the_same_diagrams_and_weights(name: str, legs: int | str, loops: int | None, options: dict) -> None:
    asked = enumerate_diagrams(model_of(name), legs, loops, **options)
    found, right = list(asked), wick(asked)
    assert len(found) == len(right) > 0
    for diagram in found:
        (weight,) = [weight for graph, weight in right if are_isomorphic(diagram.graph, graph)]
        assert weight == diagram.weight


@pytest.mark.parametrize("options", FILTERS[1:], ids=lambda options: next(iter(options)))
@pytest.mark.parametrize(
    ("name", "legs", "loops", "kind"),
    [
        ("phi3", 2, 2, "connected"), ("phi4", 2, 2, "all"), ("phi4", 2, 3, "1pi"), ("phi3+phi4", 0, 3, "connected"),
        ("on", "phi:2", 2, "1pi"), ("kpz", "x:2", 1, "connected"),
    ],
)  # fmt: skip
def test_filters_keep_exactly_what_the_predicates_keep(name: str, legs: int | str, loops: int, kind: str, options: dict) -> None:
    every = enumerate_diagrams(name, legs, loops, kind=kind)
    kept = enumerate_diagrams(name, legs, loops, kind=kind, **options)
    assert list(kept) == [diagram for diagram in every if answers(kept.request, diagram.graph)]
    assert kept.count() < every.count() or name != "phi3"


LARGER = [
    ("phi3", 2, 3, {}), ("phi4", 4, 2, {"kind": "1pi"}), ("phi4", 2, 4, {"kind": "1pi"}), ("phi6", 2, 4, {}),
    ("phi4", 0, 3, {"kind": "all"}), ("phi3+phi4", 1, 2, {"labelled": False}), ("kpz", "x:2", 2, {}),
    ("kpz", "x:1,xt:2", 1, {"kind": "1pi"}), ("cubic-langevin", "x:1,xt:1", 2, {"kind": "1pi"}),
    ("on", "phi:2,sigma:1", 2, {}), ("on", "phi:2", None, {"dressed": 2}),
    ("layered-network", "s:2", 1, {}), ("complex", "psi:2,psib:2", 1, {"labelled": False}),
    ("phi4", 4, 0, {"kind": "all", "labelled": False}),
    ("mixing", "u:2", None, {"kind": "all", "orders": {"g": (0, 1), "m": (0, 1), "h": (0, 2)}}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "legs", "loops", "options"), LARGER)
def test_each_diagram_belongs_once_with_its_automorphisms(name: str, legs: int | str, loops: int | None, options: dict) -> None:
    asked = enumerate_diagrams(model_of(name), legs, loops, **options)
    found = list(asked)
    for diagram in found:
        assert answers(asked.request, diagram.graph)
        assert diagram.symmetry_factor == automorphism_count(diagram.graph), diagram
        assert loops is None or diagram.loops == loops
    buckets: dict[object, list[Graph]] = {}
    for diagram in found:
        key = (tuple(sorted(diagram.vertex_counts.items())), diagram.symmetry_factor, diagram.self_loops, diagram.orders.get("g"))
        buckets.setdefault(key, []).append(diagram.graph)
    assert len(set(found)) == len(found) > 0
    for graphs in buckets.values():
        assert not any(are_isomorphic(one, other) for one, other in combinations(graphs, 2))


def shuffled(graph: Graph, rng: random.Random) -> Graph:
    """The same diagram with nodes and lines in another order, undirected lines turned round at random."""
    legs, vertices = list(graph.legs), list(graph.vertices)
    rng.shuffle(legs)
    rng.shuffle(vertices)
    order = legs + vertices
    place = {node: at for at, node in enumerate(order)}
    lines = []
    for line in graph.lines:
        start, end, fields = place[line.start], place[line.end], line.fields
        if not line.directed and line.propagator is not None and rng.random() < 0.5:
            start, end, fields = end, start, fields[::-1]
        lines.append(replace(line, start=start, end=end, fields=fields))
    rng.shuffle(lines)
    return Graph(graph.model, tuple(graph.nodes[node] for node in order), tuple(lines))


@pytest.mark.parametrize(("name", "legs", "loops", "options"), SMALL + LARGER)
def test_any_numbering_of_a_graph_gives_the_same_diagram(name: str, legs: int | str, loops: int | None, options: dict) -> None:
    rng = random.Random(f"{name} {legs} {loops}")
    found = list(islice(enumerate_diagrams(model_of(name), legs, loops, **options), 400))
    for diagram in rng.sample(found, min(25, len(found))):
        again = Diagram.from_graph(shuffled(diagram.graph, rng))
        assert again == diagram
        assert hash(again) == hash(diagram)
        assert again.symmetry_factor == diagram.symmetry_factor
        assert again.canonical == diagram.canonical


# --- field cases: what hashes and simple graphs confuse -----------------------------------------------------------------


def test_two_triangles_are_no_hexagon() -> None:
    """Their Weisfeiler-Lehman hashes agree. Chains of 2-valent vertices close in p(6) = 11 ways."""
    found = list(enumerate_diagrams(QUADRATIC, 0, kind="all", orders={"m": 6}))
    assert len(found) == len(set(found)) == 11
    cycles = {tuple(sorted(len(part.nodes) for part in d.components)): d for d in found}
    assert cycles[(6,)].symmetry_factor == 12
    assert cycles[(3, 3)].symmetry_factor == 2 * 6**2
    assert cycles[(6,)] != cycles[(3, 3)]


def test_parallel_lines_count() -> None:
    """Sunset 12 and figure-eight 8 automorphisms; a single and a double line are different."""
    (sunset,) = [d for d in enumerate_diagrams("phi3", 0, 2) if not d.tadpoles]
    (eight,) = enumerate_diagrams("phi4", 0, 2)
    assert (sunset.symmetry_factor, eight.symmetry_factor) == (12, 8)
    ring, chain = (Diagram.from_string(text, QUADRATIC) for text in ("m.0-m.1 m.0-m.1", "m.0-m.0 m.1-m.1"))
    assert ring != chain
    assert (ring.symmetry_factor, chain.symmetry_factor) == (4, 8)


# --- options ------------------------------------------------------------------------------------------------------------


def test_bounds_on_several_parameters() -> None:
    both = list(enumerate_diagrams(MIXING, "u:2", orders={"g": (0, 2), "m": 1, "h": (0, 2)}))
    assert {d.orders.get("m", 0) for d in both} == {1}
    assert {d.orders.get("g", 0) for d in both} == {0, 1, 2}
    split = [d for g in range(3) for h in range(3) for d in enumerate_diagrams(MIXING, "u:2", orders={"g": g, "m": 1, "h": h})]
    assert Counter(both) == Counter(split)
    loops = enumerate_diagrams("phi3+phi4", 2, 2, orders={"g": (0, 4)})
    assert list(loops) == [d for d in enumerate_diagrams("phi3+phi4", 2, 2) if d.orders["g"] <= 4]
    assert enumerate_diagrams("phi3+phi4", 2, 2, orders={"g": 2}).count() == 0


def test_bounds_on_orders_of_lines() -> None:
    bounds = {"g": (0, 2), "m": 0, "h": (0, 1)}
    every = list(enumerate_diagrams(MIXING, "u:1,v:1", orders=bounds))
    few = list(enumerate_diagrams(MIXING, "u:1,v:1", orders={**bounds, "k": (0, 1)}))
    assert few == [d for d in every if d.orders.get("k", 0) <= 1]
    assert 0 < len(few) < len(every)


def test_predicate() -> None:
    few = enumerate_diagrams("phi4", 2, 3, where=lambda d: not d.self_loops and d.is_connected)
    assert list(few) == list(enumerate_diagrams("phi4", 2, 3, no_self_loops=True))


def test_irreducible_in_all_propagators_is_irreducible() -> None:
    for model, legs, one in (("kpz", "x:1,xt:1", "x-x"), ("on", "phi:2", "sigma-sigma"), ("on", "phi:2", "phi-phi")):
        names = [p.name for p in theory(model).propagators]
        plain = list(enumerate_diagrams(model, legs, 2, kind="1pi"))
        assert list(enumerate_diagrams(model, legs, 2, kind="1pi", irreducible=names)) == plain
        assert enumerate_diagrams(model, legs, 2, kind="1pi", irreducible=[one]).count() > len(plain)


def test_labels_given_by_the_caller() -> None:
    found = list(enumerate_diagrams("phi4", {"x": ["in", "out"]}, 1))
    assert [node.label for node in found[0].nodes if node.is_leg] == ["in", "out"]
    assert len(found) == 1
    with pytest.raises(RequestError, match=r"label 'a' is given twice"):
        enumerate_diagrams("phi4", {"x": ["a", "a"]}, 1)


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (("phi4", 2, -1), {}, r"below the minimum 0"),
        (("phi4", 4, -2), {"kind": "all"}, r"below the minimum -1"),
        (("phi4", 2, -1), {"kind": "1pi"}, r"below the minimum 0"),
        (("phi4", 2), {}, r"nothing bounds"),
        (("phi4", 2, 1), {"kind": "2pi"}, r"all, connected, 1pi or vacuum"),
        (("phi4", 2, 1), {"kind": "vacuum"}, r"vacuum has no legs"),
        (("phi4", "y:2", 1), {}, r"no field 'y'"),
        (("kpz", 2, 1), {}, r"say which legs"),
        (("phi4", 2, 1), {"causality": "local"}, r"no response field"),
        (("phi4", 2, 1), {"orders": {"h": 1}}, r"counts no parameter 'h'"),
        (("phi4", 2, 1), {"irreducible": ["x-x"]}, r"belongs to class 1pi"),
        (("kpz", "x:1,xt:1", 1), {"kind": "1pi", "irreducible": ["xt-xt"]}, r"no propagator 'xt-xt'"),
        (("phi4", 2), {"dressed": 1}, r"one index field"),
        (("on", "phi:2", 2), {"dressed": 1}, r"ordered by 1/N"),
    ],
)
def test_requests_that_cannot_be_met(arguments: tuple, options: dict, text: str) -> None:
    with pytest.raises(RequestError, match=text):
        enumerate_diagrams(*arguments, **options)


def test_valence_two_without_a_bound_is_infinite() -> None:
    """Loops do not bound mass insertions; an order does, and one order alone does not bound the other."""
    with pytest.raises(InfiniteRequestError, match=r"'m' \(valence 2\)"):
        enumerate_diagrams(QUADRATIC, 2, 0)
    with pytest.raises(InfiniteRequestError, match=r"'h'|'m'"):
        enumerate_diagrams(MIXING, "u:2", orders={"g": 1})
    assert enumerate_diagrams(QUADRATIC, 2, 0, orders={"m": 3}).count() == 1


def test_vertex_without_a_line_is_refused() -> None:
    with pytest.raises(ModelError, match=r"'y', which no propagator joins"):
        Model("bad", (Field("x"), Field("y")), (Propagator("x", "x"),), (Vertex("g", ("x", "x", "y")),))


def test_fermions_are_refused_by_name() -> None:
    with pytest.raises(ModelError, match=r"field 'psi' has statistics 'fermion'"):
        Field("psi", statistics="fermion")


def test_odd_legs_are_empty_with_a_reason() -> None:
    found = enumerate_diagrams("phi4", 3, 2)
    assert list(found) == []
    assert "odd" in found.empty_reason
    assert enumerate_diagrams("phi4", 2, 2).empty_reason == ""


# --- order, laziness, memory --------------------------------------------------------------------------------------------


def first(count: int) -> Iterator[Diagram]:
    return islice(enumerate_diagrams("phi4", 2, 14), count)


def test_an_enormous_request_starts_at_once_and_keeps_nothing() -> None:
    """phi^4 at 14 loops has more than 2e8 diagrams."""
    start = time.process_time()
    next(first(1))
    assert time.process_time() - start < 5
    peaks = []
    for count in (2_000, 20_000):
        tracemalloc.start()
        assert sum(1 for _ in first(count)) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] + 100_000
