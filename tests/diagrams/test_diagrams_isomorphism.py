"""Automorphisms, isomorphism and the classes of diagrams, on complete lists made here by joining legs in all ways.

The lists know nothing of the package's enumeration: every labelled multigraph is written down once, and equal ones are
found by trying all permutations of the vertices.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest

from symtensor.diagrams.graph import Graph, Line, Node
from symtensor.diagrams.model import Field, Model, Propagator, Vertex
from symtensor.diagrams.properties import (
    are_isomorphic,
    automorphism_count,
    has_tadpole,
    index_loops,
    is_1pi,
    is_connected,
    obeys,
    self_loops,
)
from symtensor.diagrams.theories import theory
from symtensor.diagrams.validation import propagator_between, validate

Slot = tuple[int, str]
Joined = tuple[tuple[Slot, Slot], ...]
COMPLEX = Model(
    "complex",
    (Field("b", conjugate="a"), Field("a"), Field("c")),
    (Propagator("a", "b"), Propagator("a", "c"), Propagator("c", "c")),
    (Vertex("g", ("a", "b", "c")),),
)


def line(model: Model, one: Slot, two: Slot) -> Line:
    """The line that joins two legs, in the direction of its propagator."""
    propagator = propagator_between(model, one[1], two[1])
    assert propagator is not None
    tail = model.tail(propagator)
    if tail is not None and one[1] != tail:
        one, two = two, one
    return Line(one[0], two[0], (one[1], two[1]), propagator, tail is not None, model.is_response(propagator))


def joinings(model: Model, slots: list[tuple[Slot, int]], least: Slot | None = None) -> Iterator[Joined]:
    """Every way to join all legs (a slot is a node and a field, with the number of legs left) up to equal legs."""
    slots = [(slot, left) for slot, left in slots if left]
    if not slots:
        yield ()
        return
    first = slots[0][0]
    for slot, left in slots:
        if (least is None or slot >= least) and propagator_between(model, first[1], slot[1]) and left > (slot == first):
            rest = Counter(dict(slots))
            rest.subtract([first, slot])
            again = slot if rest[first] else None
            for others in joinings(model, sorted(rest.items()), again):
                yield ((first, slot), *others)


def smallest(joined: Joined, groups: list[list[int]]) -> Joined:
    """The least relabelling under permutations of the nodes within each group."""
    best = None
    for images in itertools.product(*(itertools.permutations(group) for group in groups)):
        to = {a: b for group, image in zip(groups, images) for a, b in zip(group, image)}
        pairs = (sorted(((to.get(a, a), f), (to.get(b, b), g))) for (a, f), (b, g) in joined)
        candidate = tuple(sorted((a, b) for a, b in pairs))
        best = candidate if best is None or candidate < best else best
    assert best is not None
    return best


def vertex_sets(model: Model, total: int) -> Iterator[tuple[Vertex, ...]]:
    """Multisets of vertices whose valences less two add up to `total`."""
    kinds = [*model.vertices, *(v for family in model.families for v in family.vertices(total + 2))]
    for size in range(total + 1):
        for chosen in itertools.combinations_with_replacement(kinds, size):
            if sum(v.valence - 2 for v in chosen) == total:
                yield chosen


def diagrams(model: Model, legs: tuple[str, ...], loops: int, amputated: bool = False, labelled: bool = True) -> list[Graph]:
    """All diagrams, connected or not, one for each class."""
    found = []
    for chosen in vertex_sets(model, 2 * loops - 2 + len(legs)):
        count = len(legs)
        places = [(count + at, vertex) for at, vertex in enumerate(chosen)]
        nodes = [Node("leg", f, str(at + 1) if labelled else None) for at, f in enumerate(legs)]
        nodes += [Node("vertex", vertex.name) for vertex in chosen]
        groups = [[at for at, vertex in places if vertex == kind] for kind in dict.fromkeys(chosen)]
        if not labelled:
            groups += [[at for at, f in enumerate(legs) if f == kind] for kind in dict.fromkeys(legs)]
        slots = [((at, f), vertex.count(f)) for at, vertex in places for f in set(vertex.legs)]
        seen = set()
        for hung in itertools.product(*([s for s, _ in slots if s[1] == f] for f in legs)) if amputated else [()]:
            left = Counter(dict(slots)) if amputated else Counter(dict(slots) | dict.fromkeys(enumerate(legs), 1))
            left.subtract(hung)
            if min(left.values(), default=0) < 0:
                continue
            cut = tuple(((at, f), slot) for at, (f, slot) in enumerate(zip(legs, hung)))
            seen.update(smallest((*cut, *joined), groups) for joined in joinings(model, sorted(left.items())))
        found += [Graph(model, tuple(nodes), tuple(drawn(model, count, amputated, joined))) for joined in sorted(seen)]
    return [validate(graph) for graph in found]


def drawn(model: Model, legs: int, amputated: bool, joined: Joined) -> Iterator[Line]:
    for one, two in joined:
        if amputated and one[0] < legs:
            yield Line(one[0], two[0], (one[1], two[1]), None)
        else:
            yield line(model, one, two)


def tally(graphs: list[Graph], *tests: Callable[[Graph], bool]) -> tuple[int, Fraction]:
    kept = [graph for graph in graphs if all(test(graph) for test in tests)]
    return len(kept), sum((Fraction(1, automorphism_count(graph)) for graph in kept), Fraction(0))


def shuffled(graph: Graph, step: int) -> Graph:
    """The same diagram with vertices renumbered, lines reordered and undirected lines reversed."""
    vertices = list(graph.vertices)
    order = vertices[step % max(len(vertices), 1) :] + vertices[: step % max(len(vertices), 1)]
    order.reverse()
    to = dict(zip(order, vertices))
    nodes = [*(graph.nodes[at] for at in graph.legs), *(graph.nodes[old] for old in order)]
    lines = []
    for item in reversed(graph.lines):
        start, end, fields = to.get(item.start, item.start), to.get(item.end, item.end), item.fields
        if not item.directed and item.propagator is not None:
            start, end, fields = end, start, fields[::-1]
        lines.append(Line(start, end, fields, item.propagator, item.directed, item.response))
    return Graph(graph.model, tuple(nodes), tuple(lines))


def no_self_loop(graph: Graph) -> bool:
    return not self_loops(graph)


def no_tadpole(graph: Graph) -> bool:
    return not has_tadpole(graph)


@pytest.mark.parametrize(
    ("name", "legs", "loops", "tests", "count", "weight"),
    [
        # Burnside counts and zero-dimensional weights; no tadpole means none that hangs on an internal line.
        ("phi3", 0, 3, (), 8, "385/1152"),
        ("phi3", 0, 3, (is_connected,), 5, "5/16"),
        ("phi3", 0, 3, (is_1pi,), 2, "5/48"),
        ("phi3", 0, 3, (is_connected, no_tadpole), 2, "5/48"),
        ("phi3", 0, 3, (is_connected, no_self_loop), 2, "5/48"),
        ("phi3", 1, 1, (is_connected, no_tadpole), 1, "1/2"),
        ("phi3", 1, 2, (is_connected,), 3, "5/8"),
        ("phi3", 1, 2, (is_connected, no_tadpole), 1, "1/4"),
        ("phi3", 2, 2, (is_connected,), 10, "25/8"),
        ("phi3", 2, 2, (is_connected, no_tadpole), 3, "5/4"),
        ("phi3", 2, 2, (is_connected, no_self_loop), 4, "3/2"),
        ("phi4", 0, 4, (), 7, "385/3072"),
        ("phi4", 0, 4, (is_connected,), 4, "11/96"),
        ("phi4", 2, 3, (), 23, "5005/3072"),
        ("phi4", 2, 3, (is_connected, no_tadpole), 10, "11/8"),
    ],
)
def test_counts_and_weights_of_scalar_theories(
    name: str, legs: int, loops: int, tests: tuple[Callable[[Graph], bool], ...], count: int, weight: str
) -> None:
    assert tally(diagrams(theory(name), ("x",) * legs, loops), *tests) == (count, Fraction(weight))


@pytest.mark.parametrize(
    ("name", "legs", "loops", "test", "count", "weight"),
    [("phi3", 2, 2, is_1pi, 2, "1"), ("phi4", 2, 3, is_1pi, 5, "5/6")],
)
def test_amputated_vertex_functions(
    name: str, legs: int, loops: int, test: Callable[[Graph], bool], count: int, weight: str
) -> None:
    graphs = diagrams(theory(name), ("x",) * legs, loops, amputated=True)
    assert tally(graphs, test) == (count, Fraction(weight))


@pytest.mark.parametrize(
    ("name", "legs", "loops", "count", "weight"),
    [("phi3", 2, 2, 9, "25/16"), ("phi4", 2, 3, 8, "11/16"), ("phi3", 3, 1, 3, "2/3")],
)
def test_unlabelled_legs_may_be_exchanged(name: str, legs: int, loops: int, count: int, weight: str) -> None:
    graphs = diagrams(theory(name), ("x",) * legs, loops, labelled=False)
    assert tally(graphs, is_connected) == (count, Fraction(weight))


@pytest.mark.parametrize(
    ("legs", "loops", "amputated", "everything", "causal", "weight"),
    [
        (("x",), 1, False, 2, 1, "1/2"),
        (("x",), 2, False, 16, 4, "15/8"),
        (("x", "xt"), 1, False, 5, 2, "3/2"),
        (("x", "x"), 1, False, 9, 5, "7/2"),
        (("x", "xt"), 1, True, 1, 1, "1"),
        (("x", "xt"), 2, True, 11, 8, "15/2"),
        (("xt", "xt"), 2, True, 9, 8, "13/2"),
        (("xt",), 2, True, 3, 2, "5/4"),
    ],
)
def test_local_causality_of_kpz(
    legs: tuple[str, ...], loops: int, amputated: bool, everything: int, causal: int, weight: str
) -> None:
    graphs = diagrams(theory("kpz"), legs, loops, amputated)
    kind = is_1pi if amputated else is_connected
    assert tally(graphs, kind)[0] == everything
    assert tally(graphs, kind, lambda g: obeys(g, "local")) == (causal, Fraction(weight))


@pytest.mark.parametrize("legs", [(), ("x",), ("x", "x")])
def test_vertex_functions_without_a_response_leg_vanish(legs: tuple[str, ...]) -> None:
    graphs = [g for g in diagrams(theory("kpz"), legs, 2, amputated=True) if is_1pi(g)]
    assert graphs and not any(obeys(g, "local") or obeys(g, "nonlocal") for g in graphs)


@pytest.mark.parametrize(
    ("legs", "loops", "everything", "causal", "weight"),
    [(1, 1, 3, 2, "3/2"), (3, 0, 7, 7, "7"), (2, 1, 33, 24, "37/2"), (1, 2, 93, 38, "269/12")],
)
def test_nonlocal_causality_of_layered_networks(legs: int, loops: int, everything: int, causal: int, weight: str) -> None:
    graphs = [g for g in diagrams(theory("layered-network"), ("s",) * legs, loops) if is_connected(g)]
    assert len(graphs) == everything
    assert tally(graphs, lambda g: obeys(g, "nonlocal")) == (causal, Fraction(weight))


def test_index_loops_of_the_vector_model() -> None:
    graphs = [g for g in diagrams(theory("on"), ("phi", "phi"), 2) if is_connected(g)]
    by_loops = {n: tally(graphs, lambda g, n=n: len(index_loops(g)) == n) for n in range(4)}
    assert by_loops == {0: (3, 3), 1: (5, Fraction(5, 2)), 2: (2, Fraction(1, 2)), 3: (0, 0)}


SAMPLES: list[tuple[Model, tuple[str, ...], int]] = [
    (theory("phi3"), ("x",), 2),
    (theory("phi4"), ("x", "x"), 2),
    (theory("kpz"), ("x", "xt"), 1),
    (theory("layered-network"), ("s",), 1),
    (COMPLEX, ("c",), 2),
]


@pytest.mark.parametrize(("model", "legs", "loops"), SAMPLES, ids=lambda value: getattr(value, "name", None))
def test_isomorphism_tells_classes_apart_and_ignores_numbers(model: Model, legs: tuple[str, ...], loops: int) -> None:
    graphs = diagrams(model, legs, loops)
    assert len(graphs) > 2
    for at, graph in enumerate(graphs):
        for step in range(3):
            other = shuffled(graph, step)
            assert are_isomorphic(graph, validate(other))
            assert automorphism_count(graph) == automorphism_count(other)
        assert not any(are_isomorphic(graph, other) for other in graphs[:at])


def all_legs(legs: tuple[str, ...], vertices: tuple[Vertex, ...]) -> list[Slot]:
    own = [(at, f) for at, f in enumerate(legs)]
    return own + [(len(legs) + at, f) for at, vertex in enumerate(vertices) for f in vertex.legs]


def pairings(model: Model, slots: list[Slot]) -> Iterator[Joined]:
    """Wick's theorem: every way to pair the legs, all legs told apart."""
    if not slots:
        yield ()
        return
    for at in range(1, len(slots)):
        if propagator_between(model, slots[0][1], slots[at][1]):
            for rest in pairings(model, slots[1:at] + slots[at + 1 :]):
                yield ((slots[0], slots[at]), *rest)


@pytest.mark.parametrize(
    ("model", "legs", "loops"),
    [(theory("phi3"), ("x", "x"), 1), *SAMPLES[1:4], (COMPLEX, (), 2)],
    ids=lambda v: getattr(v, "name", None),
)
def test_automorphisms_count_the_pairings(model: Model, legs: tuple[str, ...], loops: int) -> None:
    """A diagram arises from (product of k_f! and of the numbers of equal vertices!) / |Aut| pairings."""
    expected: Counter[tuple[tuple[Vertex, ...], Joined]] = Counter()
    for chosen in vertex_sets(model, 2 * loops - 2 + len(legs)):
        groups = [[len(legs) + at for at, v in enumerate(chosen) if v == kind] for kind in dict.fromkeys(chosen)]
        expected.update((chosen, smallest(pairing, groups)) for pairing in pairings(model, all_legs(legs, chosen)))
    assert expected
    for (chosen, joined), times in expected.items():
        nodes = [Node("leg", f, str(at)) for at, f in enumerate(legs)] + [Node("vertex", v.name) for v in chosen]
        graph = Graph(model, tuple(nodes), tuple(line(model, *pair) for pair in joined))
        legs_of_vertices = math.prod(math.factorial(k) for v in chosen for k in Counter(v.legs).values())
        exchanges = math.prod(math.factorial(m) for m in Counter(chosen).values())
        assert times * automorphism_count(graph) == legs_of_vertices * exchanges


def scalar(valence: int, *pairs: tuple[int, int]) -> Graph:
    """A vacuum diagram of a theory with one vertex."""
    model = Model("scalar", (Field("x"),), (Propagator("x", "x"),), (Vertex("g", ("x",) * valence),))
    nodes = tuple(Node("vertex", "g") for _ in range(1 + max(map(max, pairs))))
    return validate(Graph(model, nodes, tuple(line(model, (a, "x"), (b, "x")) for a, b in pairs)))


def test_sunset_and_figure_eight() -> None:
    # Parallel lines and self-loops count (pynauty #23 drops them).
    assert automorphism_count(scalar(3, (0, 1), (0, 1), (0, 1))) == 12
    assert automorphism_count(scalar(4, (0, 0), (0, 0))) == 8
    assert automorphism_count(scalar(3, (0, 0), (0, 1), (1, 1))) == 8


def test_single_and_double_lines_differ() -> None:
    # Squares with lines of multiplicity 2, 2, 2, 2 and 3, 1, 3, 1: equal where parallel lines are dropped.
    ring = scalar(4, (0, 1), (0, 1), (1, 2), (1, 2), (2, 3), (2, 3), (3, 0), (3, 0))
    uneven = scalar(4, (0, 1), (0, 1), (0, 1), (1, 2), (2, 3), (2, 3), (2, 3), (3, 0))
    assert not are_isomorphic(ring, uneven)
    assert {(item.start, item.end) for item in ring.lines} == {(item.start, item.end) for item in uneven.lines}


def test_two_triangles_and_a_hexagon_differ() -> None:
    # networkx #7593: their Weisfeiler-Lehman hashes are equal.
    hexagon = scalar(2, *((at, (at + 1) % 6) for at in range(6)))
    triangles = scalar(2, (0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3))
    assert not are_isomorphic(hexagon, triangles)
    assert (automorphism_count(hexagon), automorphism_count(triangles)) == (12, 72)


def test_kinds_of_parallel_lines_are_compared() -> None:
    # networkx #3140: line types stored under the name `key` are not compared, and these two squares would be equal.
    vertex = Vertex("w", ("a", "a", "b", "b"))
    model = Model("two", (Field("a"), Field("b")), (Propagator("a", "a"), Propagator("b", "b")), (vertex,))

    def square(*kinds: str) -> Graph:
        pairs = [((at, f), ((at + 1) % 4, f)) for at, both in enumerate(kinds) for f in both]
        return validate(Graph(model, (Node("vertex", "w"),) * 4, tuple(line(model, *pair) for pair in pairs)))

    assert not are_isomorphic(square("aa", "bb", "aa", "bb"), square("ab", "ab", "ab", "ab"))
    assert are_isomorphic(square("aa", "bb", "aa", "bb"), square("bb", "aa", "bb", "aa"))
    assert automorphism_count(square("aa", "bb", "aa", "bb")) == 4 * 2**4
    assert automorphism_count(square("ab", "ab", "ab", "ab")) == 8


def test_direction_is_compared() -> None:
    model = theory("kpz")
    nodes = (Node("vertex", "g"), Node("vertex", "g"))
    there = Graph(
        model, nodes, (line(model, (0, "xt"), (1, "x")), line(model, (1, "xt"), (0, "x")), line(model, (0, "x"), (1, "x")))
    )
    loops = Graph(
        model, nodes, (line(model, (0, "xt"), (0, "x")), line(model, (1, "xt"), (1, "x")), line(model, (0, "x"), (1, "x")))
    )
    assert automorphism_count(validate(there)) == 2
    assert automorphism_count(validate(loops)) == 2
    assert not are_isomorphic(there, loops)


def test_direction_is_compared_where_the_fields_do_not_tell_it() -> None:
    nodes = (Node("vertex", "g"),) * 3

    def triangle(*arrows: tuple[int, int]) -> Graph:
        return Graph(theory("phi3"), nodes, tuple(Line(a, b, ("x", "x"), Propagator("x", "x"), directed=True) for a, b in arrows))

    assert not are_isomorphic(triangle((0, 1), (1, 2), (2, 0)), triangle((0, 1), (1, 2), (0, 2)))
    assert automorphism_count(triangle((0, 1), (1, 2), (2, 0))) == 3
    assert automorphism_count(triangle((0, 1), (1, 2), (0, 2))) == 1


def test_labels_are_compared() -> None:
    model = theory("phi4")
    lines = tuple(line(model, (at, "x"), (4 + at // 2, "x")) for at in range(4)) + (line(model, (4, "x"), (5, "x")),) * 2

    def graph(*labels: str | None) -> Graph:
        legs = tuple(Node("leg", "x", label) for label in labels)
        return validate(Graph(model, (*legs, Node("vertex", "g4"), Node("vertex", "g4")), lines))

    assert are_isomorphic(graph("1", "2", "3", "4"), graph("4", "3", "1", "2"))
    assert not are_isomorphic(graph("1", "2", "3", "4"), graph("1", "3", "2", "4"))
    assert not are_isomorphic(graph("None", "2", "3", "4"), graph(None, "2", "3", "4"))
    assert automorphism_count(graph("1", "2", "3", "4")) == 2
    assert automorphism_count(graph(None, None, None, None)) == 16
    assert automorphism_count(graph("1", "2", None, None)) == 4
