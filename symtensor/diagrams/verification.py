"""The proof that an enumeration is complete: every diagram belongs, none is repeated, and the weights add up exactly.

The sum of 1/|Aut| over a class is known without diagrams (`weights`: moments, logarithm, Legendre transform, the inverse of the
normal ordered vertex operator for causal theories, cancelling vertices for those non-local in time, polynomials in N), for each
set of vertices by itself where there are few kinds of them. Weights are positive, so a missing, foreign or repeated diagram, or a
wrong symmetry factor, leaves a difference. Numbers of all and of connected diagrams are checked by Burnside's lemma as well.

Classes whose weight has no such series (no self-energies, a predicate of the user's, bounds on orders carried by lines) are
checked inside a larger class that has one: that class is enumerated and proved, and the predicates of `properties`, which know
nothing of the search, pick from it what must be there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from symtensor.diagrams import properties
from symtensor.diagrams.contents import contents
from symtensor.diagrams.diagram import Diagram
from symtensor.diagrams.dressed import one_over_n_order
from symtensor.diagrams.errors import IncompleteError, RequestError
from symtensor.diagrams.model import Model, Vertex
from symtensor.diagrams.part import Part
from symtensor.diagrams.request import Request

if TYPE_CHECKING:
    from symtensor.diagrams.collection import DiagramSet

__all__ = ["Verification", "belongs", "verify"]

Grade = tuple[int, ...]
#: With at most this many kinds of vertices each set of vertices is proved by itself, otherwise each loop order.
KINDS = 3


@dataclass(frozen=True, slots=True)
class Verification:
    """What was proved: number and weight of the diagrams, and the checks that they passed."""

    request: str
    count: int
    weight: Fraction
    checks: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"{self.request}: {self.count} diagrams of weight {self.weight}", *(f"  - {c}" for c in self.checks)])


@dataclass
class _Found:
    """What a list of diagrams holds, without the diagrams' graphs: distinct parts, and weights by grade."""

    parts: set[tuple[Part, ...]] = field(default_factory=set)
    weights: dict[Grade, Fraction] = field(default_factory=lambda: defaultdict(Fraction))

    @property
    def weight(self) -> Fraction:
        return sum(self.weights.values(), Fraction(0))


def verify(diagram_set: DiagramSet, diagrams: Iterable[Diagram] | None = None) -> Verification:
    """Check `diagrams` (default: the enumeration itself) against the class that `diagram_set` asks for.

    The symmetry factors of a list that is given are also counted anew one by one, so that two wrong ones cannot cancel. Raises
    IncompleteError saying what disagrees.
    """
    request = diagram_set.request
    if diagrams is None:
        diagrams = diagram_set
    else:
        diagrams = _with_right_factors(request, diagrams)
    wider = _wider(request)
    if wider is None:
        expected, grade, text = _dressed_weights(request) if request.dressed is not None else _weights(request)
        found = _read(request, diagrams, grade.of)
        _check_weights(request, found, expected, grade)
        checks = (text, *_check_number(request, len(found.parts)))
    else:
        from symtensor.diagrams.collection import DiagramSet

        found = _read(request, diagrams, lambda _: ())
        proof = DiagramSet(wider, diagram_set.executor).verify()
        every = DiagramSet(wider, diagram_set.executor)
        _check_same(request, found.parts, {diagram.parts for diagram in every if belongs(request, diagram)})
        text = f"exactly the {len(found.parts)} of {proof.count} diagrams of the class \"{wider}\" that pass the predicates"
        checks = (*proof.checks[1:], text)
    first = f"{len(found.parts)} distinct diagrams, each with the legs, vertices, orders and class asked for"
    return Verification(str(request), len(found.parts), found.weight, (first, *checks))


def _with_right_factors(request: Request, diagrams: Iterable[Diagram]) -> Iterator[Diagram]:
    for diagram in diagrams:
        if not isinstance(diagram, Diagram):
            raise RequestError(f"verify takes diagrams, got {type(diagram).__name__}")
        right = properties.automorphism_count(diagram.graph)
        if diagram.symmetry_factor != right:
            raise IncompleteError(
                f"{request}: {diagram.canonical!r} is listed with symmetry factor {diagram.symmetry_factor}; it is {right}"
            )
        yield diagram


def _read(request: Request, diagrams: Iterable[Diagram], grade: Callable[[Diagram], Grade]) -> _Found:
    found = _Found()
    for given in diagrams:
        diagram = Diagram(given.model, given.parts)  # a graph that is made here is not kept with the one given
        if diagram.parts in found.parts:
            raise IncompleteError(f"{request}: {diagram.canonical!r} is listed twice")
        if not belongs(request, diagram):
            raise IncompleteError(f"{request}: {diagram.canonical!r} does not belong to this class")
        found.parts.add(diagram.parts)
        found.weights[grade(diagram)] += diagram.weight
    return found


def belongs(request: Request, diagram: Diagram) -> bool:
    """Does a diagram answer the request? Judged by `properties`, not by how it was found."""
    graph = diagram.graph
    legs = Counter((graph.nodes[i].name, graph.nodes[i].label) for i in graph.legs)
    if diagram.model != request.model or legs != Counter((leg.field, leg.label) for leg in request.legs):
        return False
    if any((line.propagator is None) != request.amputated for line in graph.lines if graph.nodes[line.start].is_leg):
        return False
    if request.kind == "connected" and not properties.is_connected(graph):
        return False
    if request.kind == "1pi" and not properties.is_1pi(graph, request.irreducible):
        return False
    if request.loops is not None and graph.loops != request.loops:
        return False
    counted = diagram.orders
    if any(not low <= counted.get(name, 0) <= high for name, (low, high) in request.orders):
        return False
    return properties.obeys(graph, request.causality) and _passes_filters(request, diagram) and _is_dressed(request, diagram)


def _passes_filters(request: Request, diagram: Diagram) -> bool:
    graph = diagram.graph
    return not (
        (request.no_self_loops and properties.self_loops(graph))
        or (request.no_tadpoles and properties.has_tadpole(graph))
        or (request.no_snails and (properties.has_snail(graph) or properties.has_tadpole(graph)))
        or (request.no_self_energies and properties.has_self_energy(graph))
        or (request.where is not None and not request.where(diagram))
    )


def _is_dressed(request: Request, diagram: Diagram) -> bool:
    if request.dressed is None:
        return True
    short = any(len(loop) < 3 for loop in properties.index_loops(diagram.graph))
    return not short and one_over_n_order(diagram.graph) == request.dressed


def _wider(request: Request) -> Request | None:
    """A larger class whose weight is known, or None if the request's own is."""
    lines = any(name in p.orders for p in request.model.propagators for name, _ in request.orders)
    if lines and request.loops is None:
        raise IncompleteError(
            f"{request}: orders that lines carry are the only bounds, so that no class with a known weight contains this one "
            "and is finite; bound loops or an order that vertices carry as well"
        )
    wider = replace(request, where=None, no_self_energies=False, orders=() if lines else request.orders)
    if request.dressed is not None:
        wider = replace(wider, no_self_loops=False, no_snails=False)
    return None if wider == request else wider


def _check_same(request: Request, found: set[tuple[Part, ...]], right: set[tuple[Part, ...]]) -> None:
    for parts in right - found:
        example = Diagram(request.model, parts).canonical
        raise IncompleteError(f"{request}: {len(right - found)} diagrams are missing, for example {example!r}")
    for parts in found - right:
        example = Diagram(request.model, parts).canonical
        raise IncompleteError(f"{request}: {example!r} does not belong, or has a wrong symmetry factor")


# --- weights --------------------------------------------------------------------------------------------------------


def _check_weights(request: Request, found: _Found, expected: Mapping[Grade, Fraction], grade: _Grading) -> None:
    for key in sorted({*expected, *found.weights}):
        right, got = expected.get(key, Fraction(0)), found.weights.get(key, Fraction(0))
        if right != got:
            raise IncompleteError(
                f"{request}: the weights of {grade.name(key)} add up to {got}, but the generating function says {right}: "
                f"{'diagrams are missing' if got < right else 'there are too many diagrams'}, or a symmetry factor is wrong"
            )


@dataclass(frozen=True)
class _Grading:
    """How diagrams are sorted before their weights are compared."""

    vertices: tuple[str, ...]
    by_vertex: bool
    index_loops: bool
    dressed: bool = False

    def of(self, diagram: Diagram) -> Grade:
        loops = (len(diagram.index_loops),) if self.index_loops else ()
        if self.dressed:
            return (one_over_n_order(diagram.graph), *loops)
        counts = diagram.vertex_counts
        return (*(counts.get(name, 0) for name in self.vertices), *loops) if self.by_vertex else (diagram.loops, *loops)

    def name(self, grade: Grade) -> str:
        loops = f", {grade[-1]} index loops" if self.index_loops else ""
        if self.dressed:
            return f"order {grade[0]} in 1/N{loops}"
        if not self.by_vertex:
            return f"{grade[0]} loops{loops}"
        return (", ".join(f"{n} {v}" for n, v in zip(grade, self.vertices)) or "no vertex") + loops


@dataclass(frozen=True)
class _ByVertex:
    """The sets of vertices that a request allows, each as a grade of its own: one unit for each kind of vertex."""

    request: Request

    @cached_property
    def kinds(self) -> dict[str, Vertex]:
        return {vertex.name: vertex for content in contents(self.request) for vertex, _ in content}

    @cached_property
    def grades(self) -> dict[str, Grade]:
        return {name: tuple(int(name == other) for other in self.kinds) for name in self.kinds}

    @cached_property
    def wanted(self) -> set[Grade]:
        numbers = [{vertex.name: n for vertex, n in content} for content in contents(self.request)]
        return {tuple(content.get(name, 0) for name in self.kinds) for content in numbers}

    @property
    def bound(self) -> Grade:
        return tuple(max(column) for column in zip(*self.wanted))

    @property
    def model(self) -> Model:
        """The model with the vertices that can occur, families written out."""
        return replace(self.request.model, vertices=tuple(self.kinds.values()), families=())


def _weights(request: Request) -> tuple[Mapping[Grade, Fraction], _Grading, str]:
    """Exact weights of the contents of a request."""
    from symtensor.diagrams.weights import weight_series

    allowed = _ByVertex(request)
    kinds = allowed.kinds
    by_vertex = len(kinds) <= KINDS or request.loops is None
    indexed = [f for f in request.model.fields if f.index]
    # loops through lines of several propagators (response fields with an index) have weights, but are not told apart
    joined = {p.name for p in request.model.propagators if any(f.name in (p.first, p.second) for f in indexed)}
    grading = _Grading(tuple(kinds), by_vertex, len(joined) == 1)
    if by_vertex:
        grades, bound, wanted = allowed.grades, allowed.bound, allowed.wanted
    else:
        grades = {name: (vertex.valence - 2,) for name, vertex in kinds.items()}
        order = 2 * ((request.loops or 0) - 1) + len(request.legs)
        bound, wanted = (order,), {(order,)}
    series = weight_series(
        allowed.model, request.leg_counts, kind=request.kind, causality=request.causality, grading=grades, bound=bound,
        labelled=request.labelled, no_self_loops=request.no_self_loops, no_tadpoles=request.no_tadpoles,
        no_snails=request.no_snails, by_index_loops=grading.index_loops, bridges=request.irreducible,
    )  # fmt: skip
    expected = {key: value for key, value in series.items() if key[: len(bound)] in wanted}
    if not by_vertex:
        expected = {(request.loops or 0, *key[1:]): value for key, value in expected.items()}
    each = "each set of vertices" if by_vertex else "the loop order"
    return expected, grading, f"the weights of {each} add up to the coefficients of the zero-dimensional generating function"


def _dressed_weights(request: Request) -> tuple[Mapping[Grade, Fraction], _Grading, str]:
    from symtensor.diagrams.weights import dressed_weight_series

    order = request.dressed or 0
    series = dressed_weight_series(
        request.model, request.leg_counts, kind=_connected_kind(request), order=order, labelled=request.labelled,
        no_tadpoles=request.no_tadpoles,
    )  # fmt: skip
    expected = {key: value for key, value in series.items() if key[0] == order}
    text = "the weights at this order in 1/N, by index loops, are those of the effective theory of the dressed line"
    return expected, _Grading((), False, True, dressed=True), text


def _connected_kind(request: Request) -> Literal["connected", "1pi"]:
    return "1pi" if request.amputated else "connected"


def _check_number(request: Request, found: int) -> list[str]:
    """Burnside's lemma, where it counts the class."""
    kind = request.kind
    if kind == "1pi" or request.causality != "none" or request.filters or request.dressed is not None:
        return []
    from symtensor.diagrams.weights import burnside_series

    allowed = _ByVertex(request)
    if len(allowed.kinds) > KINDS:
        return []
    series = burnside_series(
        allowed.model, request.leg_counts, kind=kind, grading=allowed.grades, bound=allowed.bound, labelled=request.labelled
    )
    right = sum(series.get(grade, 0) for grade in allowed.wanted)
    if right != found:
        raise IncompleteError(f"{request}: {found} diagrams were found, but Burnside's lemma counts {right}")
    return ["their number is the one that Burnside's lemma counts"]
