"""Weights and numbers against all pairings of legs, written out one by one, for models of every kind.

Each pairing of the legs of labelled vertices is a term of Wick's theorem. Pairings that give the same multigraph are
counted together; the weight is their number over the permutations of vertices and of equal legs, and the classes are
told apart by walking through the multigraph.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import factorial, prod
from typing import Any

import pytest

from symtensor.diagrams.model import Field, Model, Propagator, Vertex
from symtensor.diagrams.theories import theory
from symtensor.diagrams.weights import burnside_series, dressed_weight_series, weight_series

Edge = tuple[int, str, int, str]
#: The lines of a diagram, sorted; amputated legs hang on vertices by lines with equal fields and a leg at the first end.
Lines = tuple[Edge, ...]


# --- the oracle -------------------------------------------------------------------------------------------------------


def pairings(ends: tuple[tuple[int, str], ...], joined: frozenset[tuple[str, str]]) -> Iterator[Lines]:
    """All ways to join the ends (node, field) in pairs that a propagator allows."""
    if not ends:
        yield ()
        return
    first, rest = ends[0], ends[1:]
    for i, other in enumerate(rest):
        if (first[1], other[1]) in joined:
            for more in pairings(rest[:i] + rest[i + 1 :], joined):
                yield ((*min(first, other), *max(first, other)), *more)


@dataclass(frozen=True)
class Drawn:
    """A multigraph: nodes 0..legs-1 are legs, the others vertices of the given names."""

    model: Model
    legs: tuple[str, ...]
    vertices: tuple[str, ...]
    lines: Lines
    amputated: bool

    @property
    def nodes(self) -> range:
        return range(len(self.legs) + len(self.vertices))

    def is_leg(self, node: int) -> bool:
        return node < len(self.legs)

    def parts(self, without: int | None = None, lines: Lines | None = None) -> list[set[int]]:
        """Connected parts, without a node, or of other lines."""
        left = {n for n in self.nodes if n != without}
        used = [e for e in (self.lines if lines is None else lines) if without not in (e[0], e[2])]
        found = []
        while left:
            part, new = set(), {min(left)}
            while new:
                part |= new
                new = {n for e in used if {e[0], e[2]} & part for n in (e[0], e[2])} - part
            found.append(part)
            left -= part
        return found

    def has_leg(self, part: set[int]) -> bool:
        return any(map(self.is_leg, part))

    def bridges(self, names: tuple[str, ...] | None = None) -> Iterator[tuple[int, Edge]]:
        count = len(self.parts())
        for i, e in enumerate(self.lines):
            inner = not self.is_leg(e[0]) and not self.is_leg(e[2])
            counts = names is None or f"{e[1]}-{e[3]}" in names or f"{e[3]}-{e[1]}" in names
            if inner and counts and len(self.parts(lines=self.lines[:i] + self.lines[i + 1 :])) > count:
                yield i, e

    def self_loop(self) -> bool:
        return any(e[0] == e[2] for e in self.lines)

    def tadpole(self) -> bool:
        for i, e in self.bridges():
            parts = self.parts(lines=self.lines[:i] + self.lines[i + 1 :])
            if any(not self.has_leg(p) for p in parts if {e[0], e[2]} & p):
                return True
        return False

    def faults(self) -> frozenset[str]:
        """The names of the filters that drop the diagram."""
        loop, tadpole = self.self_loop(), self.tadpole()
        found = {"no_self_loops": loop, "no_tadpoles": tadpole, "no_snails": loop or tadpole or self.snail()}
        return frozenset(name for name, wrong in found.items() if wrong)

    def snail(self) -> bool:
        """A part without legs behind a vertex; without legs at all: a cut vertex."""
        for part in self.parts():
            for vertex in part:
                if not self.is_leg(vertex):
                    behind = [p for p in self.parts(without=vertex) if p <= part]
                    silent = [p for p in behind if not self.has_leg(p)]
                    if silent and (self.has_leg(part) or len(behind) > 1):
                        return True
        return False

    def response(self) -> Iterator[tuple[int, int]]:
        """Response lines as (from, to); a vertex's amputated response leg leads to the leg."""
        late = {f.name for f in self.model.fields if f.response}
        for a, f, b, g in self.lines:
            if self.amputated and self.is_leg(a):
                if f in late:
                    yield b, a
            elif f in late:
                yield a, b
            elif g in late:
                yield b, a

    def obeys(self, causality: str) -> bool:
        if causality == "none":
            return True
        arrows = list(self.response())
        if causality == "local":
            left = set(self.nodes)
            while left:
                free = {n for n in left if not any(a in left and b == n for a, b in arrows)}
                if not free:
                    return False
                left -= free
            return True
        reaching = set(range(len(self.legs)))
        while new := {a for a, b in arrows if b in reaching} - reaching:
            reaching |= new
        return reaching == set(self.nodes)

    def index_loops(self) -> int:
        indexed = {f.name for f in self.model.fields if f.index}
        lines = tuple(e for e in self.lines if e[1] in indexed)
        touched = {n for e in lines for n in (e[0], e[2])}
        return sum(1 for part in self.parts(lines=lines) if part & touched and not self.has_leg(part))

    def belongs(self, kind: str, bridges: tuple[str, ...] | None) -> bool:
        if kind == "all":
            return True
        connected = len(self.parts()) == 1
        return connected and (kind == "connected" or not list(self.bridges(bridges)))

    def canonical(self, labelled: bool) -> Any:
        """The least relabelling under permutations of equal vertices (and of equal legs)."""
        names = [("leg", f, None if not labelled else i) for i, f in enumerate(self.legs)]
        names += [("vertex", name, None) for name in self.vertices]
        best = None
        for order in itertools.permutations(self.nodes):
            if all(names[i] == names[j] for i, j in enumerate(order)):
                image = tuple(sorted(_sorted_edge(order[a], f, order[b], g) for a, f, b, g in self.lines))
                best = image if best is None or image < best else best
        return best


def _sorted_edge(a: int, f: str, b: int, g: str) -> Edge:
    return (*min((a, f), (b, g)), *max((a, f), (b, g)))


@cache
def drawn(model: Model, legs: tuple[str, ...], content: tuple[str, ...], amputated: bool) -> tuple[tuple[Drawn, Fraction], ...]:
    """All multigraphs with these legs and vertices, with the weight of their pairings."""
    joined = frozenset(pair for p in model.propagators for pair in ((p.first, p.second), (p.second, p.first)))
    table = {v.name: v.legs for v in model.vertices}
    ends = tuple((len(legs) + i, f) for i, name in enumerate(content) for f in table[name])
    found: Counter[Lines] = Counter()
    if amputated:
        for hung in itertools.permutations(range(len(ends)), len(legs)):
            if all(ends[j][1] == f for j, f in zip(hung, legs)):
                hooks = tuple((i, f, *ends[j]) for i, (j, f) in enumerate(zip(hung, legs)))
                rest = tuple(e for j, e in enumerate(ends) if j not in hung)
                found.update(tuple(sorted((*hooks, *lines))) for lines in pairings(rest, joined))
    else:
        whole = (*enumerate(legs), *ends)
        found.update(tuple(sorted(lines)) for lines in pairings(whole, joined))
    orders = prod(map(factorial, Counter(content).values()))
    orders *= prod(factorial(n) for name in content for n in Counter(table[name]).values())
    return tuple((Drawn(model, legs, content, lines, amputated), Fraction(n, orders)) for lines, n in found.items())


def contents(grading: Mapping[str, tuple[int, ...]], bound: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[str, ...]]]:
    names = sorted(grading)
    for counts in itertools.product(range(sum(bound) + 1), repeat=len(names)):
        grade = tuple(sum(c * grading[n][i] for c, n in zip(counts, names)) for i in range(len(bound)))
        if all(g <= b for g, b in zip(grade, bound)):
            yield grade, tuple(n for c, n in zip(counts, names) for _ in range(c))


# --- models -----------------------------------------------------------------------------------------------------------


def _model(name: str, fields: str, lines: str, *vertices: str, causality: Any = "none") -> Model:
    """Fields ending on t are response fields; a vertex is its legs, and so is its name."""
    made = tuple(Field(f, response=f.endswith("t")) for f in fields.split())
    joined = tuple(Propagator(*line.split("-")) for line in lines.split())
    return Model(name, made, joined, tuple(Vertex("_".join(v.split()), tuple(v.split())) for v in vertices), causality=causality)


def _each(model: Model) -> dict[str, tuple[int, ...]]:
    return {v.name: (1,) for v in model.vertices}


MIXING = _model("mixing", "u v", "u-u u-v", "u u v", "u v v", "v")
TWO_RESPONSE = _model("two_response", "x y xt yt", "x-x x-y x-xt y-yt x-yt", "xt xt x", "yt x y", "x xt yt", causality="local")
NO_NOISE = _model("no_noise", "x xt", "x-xt", "xt x x", "xt xt x", "xt xt", "xt", causality="local")
SQUARES = _model("squares", "x xt", "x-x x-xt", "x x xt", "x x xt xt", "x x", causality="local")
LOW = _model("low", "x", "x-x", "x", "x x", "x x x")
SOURCED = _model("sourced", "s jt", "s-s s-jt", "jt", "s s", "jt s s", "jt jt s", causality="nonlocal")
FORCED = _model("forced", "s jt", "s-s s-jt", "jt jt", "s", "jt s s", causality="nonlocal")
COMPLEX = Model(
    "complex", (Field("psi"), Field("psib", conjugate="psi"), Field("a")), (Propagator("psi", "psib"), Propagator("a", "a")),
    (Vertex("g", ("psi", "psi", "psib", "psib")), Vertex("h", ("psi", "psib", "a"))),
)  # fmt: skip
PAIR = Model(
    "pair", (Field("psi", index="N"), Field("psib", conjugate="psi", index="N"), Field("a")),
    (Propagator("psi", "psib"), Propagator("a", "a")), (Vertex("h", ("psi", "psib", "a")), Vertex("m", ("psi", "psib", "a", "a"))),
)  # fmt: skip
VECTOR = Model(
    "vector", (Field("phi", index="N"), Field("b")), (Propagator("phi", "phi"), Propagator("b", "b")),
    (Vertex("g", ("phi", "phi", "b")), Vertex("h", ("phi", "phi")), Vertex("k", ("b", "b", "b"))),
)  # fmt: skip
PHI34 = theory("phi3+phi4")

CASES: list[tuple[Model, dict[str, int], dict[str, tuple[int, ...]], tuple[int, ...]]] = [
    (MIXING, {}, {"u_u_v": (1, 0), "u_v_v": (1, 0), "v": (0, 1)}, (3, 2)),
    (MIXING, {"u": 1}, _each(MIXING), (3,)),
    (MIXING, {"u": 1, "v": 1}, {"u_u_v": (1, 0), "u_v_v": (1, 0), "v": (0, 1)}, (2, 1)),
    (TWO_RESPONSE, {"x": 1, "y": 1}, _each(TWO_RESPONSE), (2,)),
    (TWO_RESPONSE, {"xt": 1, "yt": 1}, _each(TWO_RESPONSE), (2,)),
    (TWO_RESPONSE, {"x": 1, "yt": 1}, _each(TWO_RESPONSE), (2,)),
    (NO_NOISE, {"x": 2}, _each(NO_NOISE), (3,)),
    (NO_NOISE, {"x": 1, "xt": 1}, _each(NO_NOISE), (2,)),
    (NO_NOISE, {"xt": 2}, _each(NO_NOISE), (2,)),
    (SQUARES, {}, _each(SQUARES), (2,)),
    (SQUARES, {"x": 2}, _each(SQUARES), (2,)),
    (SQUARES, {"x": 1, "xt": 1}, {"x_x_xt": (1, 0), "x_x_xt_xt": (1, 1)}, (3, 1)),
    (LOW, {}, _each(LOW), (4,)),
    (LOW, {"x": 1}, _each(LOW), (4,)),
    (LOW, {"x": 2}, {"x": (1, 0), "x_x": (0, 1), "x_x_x": (0, 1)}, (2, 3)),
    (SOURCED, {"s": 1}, _each(SOURCED), (2,)),
    (SOURCED, {"s": 2}, _each(SOURCED), (2,)),
    (SOURCED, {"s": 1, "jt": 1}, _each(SOURCED), (2,)),
    (FORCED, {"s": 2}, _each(FORCED), (3,)),
    (FORCED, {"jt": 1}, _each(FORCED), (3,)),
    (COMPLEX, {"psi": 1, "psib": 1}, {"g": (2,), "h": (1,)}, (3,)),
    (COMPLEX, {"a": 2}, {"g": (2,), "h": (1,)}, (2,)),
    (COMPLEX, {}, {"g": (1, 0), "h": (0, 1)}, (2, 2)),
    (PHI34, {}, {"g3": (1, 0), "g4": (0, 1)}, (2, 1)),
    (PHI34, {"x": 2}, {"g3": (1, 0), "g4": (0, 1)}, (2, 1)),
    (PHI34, {"x": 3}, {"g3": (1, 0), "g4": (0, 1)}, (1, 1)),
    (VECTOR, {"phi": 2}, _each(VECTOR), (3,)),
    (VECTOR, {"b": 2}, _each(VECTOR), (3,)),
    (VECTOR, {}, _each(VECTOR), (3,)),
    (PAIR, {"psi": 1, "psib": 1}, _each(PAIR), (3,)),
    (PAIR, {"a": 1}, _each(PAIR), (3,)),
]
LARGER: list[tuple[Model, dict[str, int], dict[str, tuple[int, ...]], tuple[int, ...]]] = [
    (NO_NOISE, {"xt": 2}, _each(NO_NOISE), (3,)),
    (NO_NOISE, {"x": 1, "xt": 1}, _each(NO_NOISE), (3,)),
    (SOURCED, {"s": 1}, _each(SOURCED), (3,)),
    (FORCED, {"s": 1, "jt": 1}, _each(FORCED), (3,)),
    (COMPLEX, {"psi": 1, "psib": 1}, {"g": (2,), "h": (1,)}, (4,)),
    (TWO_RESPONSE, {"x": 1, "y": 1}, _each(TWO_RESPONSE), (3,)),
    (SQUARES, {}, _each(SQUARES), (3,)),
    (SOURCED, {"s": 2}, _each(SOURCED), (3,)),
    (SOURCED, {"s": 1, "jt": 1}, _each(SOURCED), (3,)),
    (COMPLEX, {"a": 2}, {"g": (2,), "h": (1,)}, (4,)),
    (LOW, {"x": 2}, _each(LOW), (4,)),
]
EVERY = [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in LARGER)]
NAMES = ("model", "legs", "grading", "bound")
FILTERS = [(), ("no_self_loops",), ("no_tadpoles",), ("no_self_loops", "no_tadpoles"), ("no_snails",)]


def _kept(graph: Drawn, filters: tuple[str, ...]) -> bool:
    return not graph.faults() & set(filters)


@pytest.mark.parametrize(NAMES, EVERY)
def test_weights_are_sums_over_pairings(
    model: Model, legs: dict[str, int], grading: dict[str, tuple[int, ...]], bound: tuple[int, ...]
) -> None:
    names = tuple(f for f, n in sorted(legs.items()) for _ in range(n))
    rules = ["none", "local", "nonlocal"] if model.causality != "none" else ["none"]
    indexed = any(f.index for f in model.fields)
    for kind in ("all", "connected", "1pi"):
        graphs = []
        for grade, content in contents(grading, bound):
            for graph, weight in drawn(model, names, content, kind == "1pi"):
                if graph.belongs(kind, None):
                    key = (*grade, graph.index_loops()) if indexed else grade
                    graphs.append((key, weight, graph, graph.faults()))
        for rule, filters in itertools.product(rules, FILTERS):
            expected: dict[tuple[int, ...], Fraction] = {}
            for key, weight, graph, faults in graphs:
                if not faults & set(filters) and graph.obeys(rule):
                    expected[key] = expected.get(key, Fraction(0)) + weight
            options: dict[str, Any] = {"kind": kind, "causality": rule, **dict.fromkeys(filters, True)}
            found = weight_series(model, legs, grading=grading, bound=bound, by_index_loops=indexed, **options)
            assert found == expected, (model.name, legs, kind, rule, filters)


def test_the_cases_tell_the_filters_apart() -> None:
    """An oracle that never differs proves nothing: each rule and each filter removes something somewhere."""
    names, content = ("x", "x"), ("g3", "g3", "g4")
    graphs = [g for g, _ in drawn(PHI34, names, content, False)]
    sets = [frozenset(i for i, g in enumerate(graphs) if _kept(g, f)) for f in FILTERS]
    assert len(set(sets)) == len(sets) and all(sets)
    graphs = [g for _, content in contents(_each(SQUARES), (2,)) for g, _ in drawn(SQUARES, names, content, False)]
    sets = [frozenset(i for i, g in enumerate(graphs) if g.obeys(rule)) for rule in ("none", "local", "nonlocal")]
    assert len(set(sets)) == len(sets) and all(sets)


@pytest.mark.parametrize("bridges", [("u-u",), ("u-v",), ()])
def test_bridges_of_some_propagators_only(bridges: tuple[str, ...]) -> None:
    legs, grading, bound = {"u": 1, "v": 1}, _each(MIXING), (3,)
    for filters in ((), ("no_tadpoles",)):
        expected: dict[tuple[int, ...], Fraction] = {}
        for grade, content in contents(grading, bound):
            for graph, weight in drawn(MIXING, ("u", "v"), content, True):
                if graph.belongs("1pi", bridges) and _kept(graph, filters):
                    expected[grade] = expected.get(grade, Fraction(0)) + weight
        options: dict[str, Any] = dict.fromkeys(filters, True)
        assert weight_series(MIXING, legs, kind="1pi", grading=grading, bound=bound, bridges=bridges, **options) == expected


@pytest.mark.parametrize(NAMES, EVERY)
def test_numbers_are_those_of_distinct_multigraphs(
    model: Model, legs: dict[str, int], grading: dict[str, tuple[int, ...]], bound: tuple[int, ...]
) -> None:
    names = tuple(f for f, n in sorted(legs.items()) for _ in range(n))
    for labelled in (True, False):
        every: dict[str, dict[tuple[int, ...], set[Any]]] = {"all": {}, "connected": {}}
        for grade, content in contents(grading, bound):
            if len(content) > 4:
                continue
            for graph, _ in drawn(model, names, content, False):
                for kind, table in every.items():
                    if graph.belongs(kind, None):
                        table.setdefault(grade, set()).add((content, graph.canonical(labelled)))
        for kind, table in every.items():
            options: dict[str, Any] = {"kind": kind, "labelled": labelled}
            found = burnside_series(model, legs, grading=grading, bound=bound, **options)
            short = {g for g, content in contents(grading, bound) if len(content) > 4}
            assert {g: n for g, n in found.items() if g not in short} == {g: len(n) for g, n in table.items() if g not in short}, (
                model.name,
                legs,
                kind,
                labelled,
            )


@pytest.mark.parametrize(("legs", "top"), [({"phi": 2}, 4), ({"sigma": 1}, 3)])
def test_dressed_weights_are_sums_over_pairings(legs: dict[str, int], top: int) -> None:
    """Bare diagrams without index loops of one or two legs: lines and loops counted on each."""
    model = theory("on")
    names = tuple(f for f, n in sorted(legs.items()) for _ in range(n))
    n = legs.get("sigma", 0)
    leading = n - 1 if n else 0
    for kind, tadpoles in itertools.product(("connected", "1pi"), (True, False)):
        expected: dict[tuple[int, int], Fraction] = {}
        for vertices in range(top + 1):
            for graph, weight in drawn(model, names, ("g",) * vertices, kind == "1pi"):
                amputated = n if kind == "1pi" else 0
                kept = (tadpoles or not graph.tadpole()) and not _short_loop(graph)
                if vertices + (kind == "connected") and kept and graph.belongs(kind, None):
                    lines = sum(1 for e in graph.lines if e[1] == "sigma") - amputated
                    key = (lines - graph.index_loops() - (leading - amputated), graph.index_loops())
                    expected[key] = expected.get(key, Fraction(0)) + weight
        options: dict[str, Any] = {"kind": kind, "no_tadpoles": not tadpoles}
        found = dressed_weight_series(model, legs, order=1, **options)
        # a diagram with v vertices has (v + sources)/2 auxiliary lines
        fits = {k: w for k, w in found.items() if 2 * (k[0] + leading + k[1]) - n <= top}
        assert fits == {k: w for k, w in expected.items() if k[0] <= 1} and fits


def _short_loop(graph: Drawn) -> bool:
    lines = tuple(e for e in graph.lines if e[1] == "phi")
    touched = {n for e in lines for n in (e[0], e[2])}
    return any(len(part) < 3 for part in graph.parts(lines=lines) if part & touched and not graph.has_leg(part))
