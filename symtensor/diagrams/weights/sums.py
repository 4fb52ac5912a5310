"""The sum of 1/|Aut| over a class of diagrams, without a diagram."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import factorial, gcd, prod
from typing import Literal

from symtensor.diagrams.errors import InfiniteRequestError, RequestError
from symtensor.diagrams.model import Causality, Model
from symtensor.diagrams.weights.functions import Matrix, legendre, to_sources
from symtensor.diagrams.weights.ring import Grade, Ring, Series
from symtensor.diagrams.weights.snails import without_snails
from symtensor.diagrams.weights.theory import Theory, check_grading

__all__ = ["Kind", "by_loops", "check_legs", "expanded", "weight_by_loops", "weight_series", "without_tadpoles"]

Kind = Literal["all", "connected", "1pi"]


def weight_series(
    model: Model,
    legs: Mapping[str, int],
    *,
    kind: Kind,
    grading: Mapping[str, Grade],
    bound: Grade,
    causality: Causality = "none",
    labelled: bool = True,
    no_self_loops: bool = False,
    no_tadpoles: bool = False,
    no_snails: bool = False,
    by_index_loops: bool = False,
    bridges: Collection[str] | None = None,
) -> dict[tuple[int, ...], Fraction]:
    """The sum of 1/|Aut| over the diagrams of a class, by grade.

    Vertex v multiplies t^grading[v]; vertices that `grading` leaves out do not occur. The result has every grade up to
    `bound` with a nonzero weight; with `by_index_loops` keys end with the number of closed index loops. `legs` are the
    numbers of external legs by field: source points (kinds all, connected) or amputated fields (1pi, where the bare line
    is no diagram). The empty diagram is of kind all only. `bridges` names the propagators whose lines may not be bridges
    in kind 1pi (default: all). `labelled` = False divides by the permutations of equal legs.

    Raises InfiniteRequestError if a grade is zero, RequestError for legs, bounds or kinds that do not exist, ModelError for
    an index structure whose loops cannot be counted.

    >>> from symtensor.diagrams.theories import theory
    >>> weight_series(theory("phi4"), {"x": 2}, kind="1pi", grading={"g4": (1,)}, bound=(2,))
    {(1,): Fraction(1, 2), (2,): Fraction(5, 12)}
    """
    if kind not in ("all", "connected", "1pi"):
        raise RequestError(f"the class {kind!r} does not exist; choose all, connected or 1pi")
    check_legs(model, legs)
    check_grading(model, grading, bound)
    theory = Theory(model, causality, by_index_loops)
    counts = tuple(legs.get(name, 0) for name in theory.names)
    query = _Query(theory, kind, counts, no_self_loops, no_tadpoles, no_snails, _named(model, bridges, kind))
    series = query.series({name: tuple(grade) for name, grade in grading.items()}, tuple(bound))
    scale = prod(map(factorial, counts)) if labelled else 1
    out = {(*g, *((k[-1],) if by_index_loops else ())): c * scale for g, poly in series.items() for k, c in poly.items()}
    return dict(sorted(out.items()))


def check_legs(model: Model, legs: Mapping[str, int]) -> None:
    """Raise unless `legs` maps fields of the model to non-negative integers."""
    for name, number in legs.items():
        model.field(name)
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise RequestError(f"the number of {name!r} legs must be an integer, 0 or more; got {number!r}")


def _named(model: Model, bridges: Collection[str] | None, kind: Kind) -> frozenset[str] | None:
    if bridges is None:
        return None
    if kind != "1pi":
        raise RequestError(f"bridges are forbidden in the class 1pi only, not in {kind!r}; leave `bridges` out")
    known = {p.name for p in model.propagators}
    unknown = sorted(set(bridges) - known)
    if unknown:
        raise RequestError(f"no propagator is called {unknown[0]!r}; model {model.name!r} has {', '.join(sorted(known))}")
    return frozenset(bridges)


@dataclass(frozen=True)
class _Query:
    """What is summed: the series of the coefficients of prod j^n, or of prod phi^n for amputated legs."""

    theory: Theory
    kind: Kind
    legs: tuple[int, ...]
    no_self_loops: bool
    no_tadpoles: bool
    no_snails: bool
    bridges: frozenset[str] | None

    def series(self, grading: Mapping[str, Grade], bound: Grade) -> Series:
        degree = sum(self.legs)
        amputated = self._amputated(grading, bound)
        ring = Ring(bound, len(self.legs), degree)
        if self.kind == "1pi":
            parts = self._irreducible(amputated, ring)
            chosen = {g: {k: c for k, c in poly.items() if k[:-1] == self.legs} for g, poly in parts.items()}
            return {g: poly for g, poly in chosen.items() if poly}
        sources = to_sources(amputated, self.theory.covariance(), bound, self.legs)
        if self.kind == "all":
            sources = Ring((*bound, *self.legs), len(self.legs)).exp(sources)
        return {g[: len(bound)]: poly for g, poly in sources.items() if g[len(bound) :] == self.legs}

    def _irreducible(self, amputated: Series, ring: Ring) -> Series:
        degree = sum(self.legs)
        lines = self.theory.covariance(self.bridges)
        if not (self.no_tadpoles or self.no_snails):
            return legendre(amputated, lines, ring, degree)
        # with fewer than two legs a bridge makes a tadpole; with more no part of one leg occurs in a tree
        return legendre(ring.of_degree(amputated, 2), lines, ring, degree) if degree > 1 else amputated

    def _amputated(self, grading: Mapping[str, Grade], bound: Grade) -> Series:
        """The connected amputated diagrams with the filters; for kind 1pi to any number of legs that tadpoles may take."""
        fields, degree = len(self.legs), sum(self.legs)
        whole = Ring(bound, fields)
        if self.no_snails:
            return self._without_snails(grading, bound)
        potential = self.theory.potential(grading, whole)
        if self.no_self_loops:
            potential = self.theory.wick_ordered(potential, whole)
        lines = self.theory.covariance()
        # without a mean field nothing of a higher degree enters an irreducible part
        bridged = self.no_tadpoles or self.kind == "1pi"
        cap = None if bridged and _has_mean(self.theory, potential, bound) else max(degree, 1)
        ring = Ring(bound, fields, cap)
        amputated = self.theory.amputated(potential, ring)
        return without_tadpoles(amputated, lines, ring, degree) if self.no_tadpoles else amputated

    def _without_snails(self, grading: Mapping[str, Grade], bound: Grade) -> Series:
        """A without snails; the number of vertices, a grade of its own there, is summed over."""
        vertices = {name: (*grade, 1) for name, grade in grading.items()}
        most = sum(bound) // min(map(sum, grading.values()), default=1)
        ring = Ring((*bound, most), len(self.legs), max(sum(self.legs), 1))
        potential = self.theory.potential(vertices, ring)
        counted = without_snails(self.theory, potential, ring)
        return ring.add(*((1, {g[:-1]: poly}) for g, poly in counted.items()))


def _has_mean(theory: Theory, potential: Series, bound: Grade) -> bool:
    low = Ring(bound, len(theory.names), 1)
    return bool(low.of_degree(theory.amputated(potential, low), 1))


def without_tadpoles(amputated: Series, lines: Matrix, ring: Ring, degree: int) -> Series:
    """A without parts that hang on one line and have no leg.

    Two or more legs: trees of irreducible parts with at least two legs. One leg or none: a single irreducible part.
    """
    low = Ring(ring.bound, ring.fields, max(degree, 1))
    parts = legendre(amputated, lines, low, max(degree, 1))
    negative = tuple(tuple(-c for c in row) for row in lines)
    trees = legendre(low.of_degree(parts, 2), negative, low, max(degree, 1))
    return low.add((1, low.of_degree(parts, 0, 1)), (1, trees))


def weight_by_loops(
    model: Model,
    legs: Mapping[str, int],
    loops: int,
    *,
    kind: Kind,
    causality: Causality = "none",
    labelled: bool = True,
    no_self_loops: bool = False,
    no_tadpoles: bool = False,
    no_snails: bool = False,
    bridges: Collection[str] | None = None,
) -> Fraction:
    """The sum of 1/|Aut| over the diagrams with `loops` loops, L = lines - nodes + 1 with the legs as nodes.

    Vertex families are expanded as far as the loops allow. Raises InfiniteRequestError for vertices with fewer than three
    legs, which the number of loops does not bound.

    >>> from symtensor.diagrams.theories import theory
    >>> weight_by_loops(theory("phi3"), {"x": 2}, 1, kind="connected")
    Fraction(1, 1)
    """
    grades = by_loops(model, legs, loops)
    if grades is None:
        return Fraction(0)
    full, grading, order = grades
    series = weight_series(
        full, legs, kind=kind, causality=causality, grading=grading, bound=(order,), labelled=labelled,
        no_self_loops=no_self_loops, no_tadpoles=no_tadpoles, no_snails=no_snails, bridges=bridges,
    )  # fmt: skip
    return series.get((order,), Fraction(0))


def by_loops(model: Model, legs: Mapping[str, int], loops: int) -> tuple[Model, dict[str, Grade], int] | None:
    """The model without families, the grading k - 2, and its order 2 (loops - 1) + legs; None if nothing has so few loops.

    Orders are divided by the greatest common divisor of the grades; an order that this does not divide has no diagram.
    """
    check_legs(model, legs)
    order = 2 * (loops - 1) + sum(legs.values())
    if order < 0:
        return None
    full = expanded(model, order + 2)
    grading = {v.name: (v.valence - 2,) for v in full.vertices if v.valence <= order + 2}
    for vertex in full.vertices:
        if vertex.valence < 3:
            raise InfiniteRequestError(
                f"vertex {vertex.name!r} has {vertex.valence} legs: the number of loops does not bound how often it occurs; "
                "bound the order in a counting parameter instead"
            )
    step = gcd(*(g for (g,) in grading.values())) if grading else 1
    if order % step:
        return None
    return full, {name: (g // step,) for name, (g,) in grading.items()}, order // step


def expanded(model: Model, valence: int) -> Model:
    """The model with its vertex families replaced by their members of at most `valence` legs."""
    if not model.families:
        return model
    members = tuple(v for family in model.families for v in family.vertices(valence))
    return replace(model, vertices=(*model.vertices, *members), families=())
