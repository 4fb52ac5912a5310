"""A model in zero dimensions: every field one number (N numbers with an index), every propagator one.

The sum of 1/|Aut| over diagrams is then an integral, or, where response loops are dropped, its causal counterpart:

none       Z(phi) = E exp V(phi + x), x normal with covariance C: the legs phi are amputated.
local      Of m time slices let a response line run from an earlier slice to a later one only. A diagram D is then
           counted as often as there are strictly increasing maps of its vertices to 1..m: the strict order polynomial of
           D, which is 0 unless D is acyclic and (-1)^(vertices) at m = -1 if it is (Stanley's reciprocity). In
           operators: R = (exp(-V))^(-1) for the star product of `gaussian.star`; then the other lines are contracted.
nonlocal   The vertices from which no leg is reached along response lines form a set T that meets the rest through x
           legs only. Vertices U(x) added so that Z_(V+U)(phi, no response legs) = 1 cancel every T but the empty one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import factorial, prod

from symtensor.diagrams.errors import InfiniteRequestError, ModelError, RequestError
from symtensor.diagrams.model import Causality, Model, Propagator
from symtensor.diagrams.weights.gaussian import Contraction, contract, index_contract, star
from symtensor.diagrams.weights.ring import Grade, Poly, Powers, Ring, Series, divides

__all__ = ["Theory", "check_grading"]


def check_grading(model: Model, grading: Mapping[str, Grade], bound: Grade) -> None:
    """Raise unless every grade is a nonzero tuple of non-negative integers as long as `bound`, for a known vertex."""
    names = {v.name for v in model.vertices}
    if any(b < 0 for b in bound):
        raise RequestError(f"the bound {bound} has a negative entry; orders count from 0")
    for name, grade in grading.items():
        if name not in names:
            raise RequestError(f"the grading names {name!r}; model {model.name!r} has the vertices {', '.join(sorted(names))}")
        if len(grade) != len(bound) or any(g < 0 for g in grade):
            raise RequestError(
                f"the grade {grade} of vertex {name!r} must be {len(bound)} integers, none negative, as the bound {bound}"
            )
        if not any(grade):
            raise InfiniteRequestError(
                f"vertex {name!r} has the grade {grade}: nothing bounds how often it occurs; give it a nonzero power of "
                "a counting parameter, or leave it out of the grading"
            )


@dataclass(frozen=True)
class Theory:
    """The zero-dimensional theory of `model` under a rule for response loops, with index loops counted or not.

    Raises ModelError for an index structure whose loops cannot be counted.
    """

    model: Model
    causality: Causality = "none"
    indexed: bool = False

    def __post_init__(self) -> None:
        if self.causality not in ("local", "nonlocal", "none"):
            raise RequestError(f"causality {self.causality!r}: it must be local, nonlocal or none")
        if self.indexed:
            self._check_index()

    def _check_index(self) -> None:
        names = {f.name for f in self.model.fields if f.index is not None}
        lines = [p for p in self.model.propagators if {p.first, p.second} & names]
        if len(lines) != 1 or {lines[0].first, lines[0].second} != names:
            raise ModelError(
                f"model {self.model.name!r}: index loops are counted for one indexed field with one propagator, or a pair "
                f"joined by one; the indexed fields are {sorted(names)}, their propagators {[p.name for p in lines]}"
            )
        first, second = lines[0].first, lines[0].second
        for vertex in self.model.vertices:
            counts = (vertex.count(first), vertex.count(second))
            if counts not in (((0, 0), (2, 2)) if first == second else ((0, 0), (1, 1))):
                raise ModelError(
                    f"vertex {vertex.name!r} has the legs {', '.join(vertex.legs)}: an index line must enter and leave a vertex "
                    "once, so it needs no indexed leg or two (one of each field of a pair)"
                )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The fields, in the order of the exponents."""
        return tuple(f.name for f in self.model.fields)

    def numbers(self, propagator: Propagator) -> Contraction:
        """The numbers of the two fields of a propagator; of a response line the later field first."""
        first, second = self.names.index(propagator.first), self.names.index(propagator.second)
        return (second, first) if self.model.field(propagator.first).response else (first, second)

    def ordered(self, propagator: Propagator) -> bool:
        """True if lines of this propagator join earlier to later vertices only."""
        return self.causality == "local" and self.model.is_response(propagator)

    @cached_property
    def response(self) -> tuple[int, ...]:
        """The numbers of the response fields."""
        return tuple(i for i, f in enumerate(self.model.fields) if f.response)

    @cached_property
    def free(self) -> tuple[Contraction, ...]:
        """The lines that are contracted without regard to order."""
        return tuple(self.numbers(p) for p in self.model.propagators if not self.ordered(p))

    @cached_property
    def causal(self) -> tuple[Contraction, ...]:
        """The lines that run forward in time."""
        return tuple(self.numbers(p) for p in self.model.propagators if self.ordered(p))

    def covariance(self, lines: frozenset[str] | None = None) -> tuple[tuple[int, ...], ...]:
        """The symmetric matrix with 1 for every propagator (of those named `lines`, if given)."""
        size = len(self.names)
        matrix = [[0] * size for _ in range(size)]
        for p in self.model.propagators:
            if lines is None or p.name in lines:
                i, j = self.numbers(p)
                matrix[i][j] = matrix[j][i] = 1
        return tuple(map(tuple, matrix))

    @cached_property
    def loop_fields(self) -> frozenset[int]:
        """The numbers of the fields with an index, if index loops are counted."""
        return frozenset(i for i, f in enumerate(self.model.fields) if self.indexed and f.index is not None)

    def powers(self, legs: tuple[str, ...]) -> Powers:
        """The exponents of a multiset of legs (last: N)."""
        return (*(legs.count(name) for name in self.names), 0)

    def potential(self, grading: Mapping[str, Grade], ring: Ring) -> Series:
        """V = sum over vertices of t^grade prod phi^k / k!."""
        out: Series = {}
        for vertex in self.model.vertices:
            if vertex.name in grading and divides(grading[vertex.name], ring.bound):
                key = self.powers(vertex.legs)
                value = Fraction(1, prod(map(factorial, key)))
                out.setdefault(tuple(grading[vertex.name]), {})[key] = value
        return out

    def contracted(self, poly: Poly, sign: int = 1) -> Poly:
        """All unordered lines drawn in a polynomial; `sign` = -1: its Wick ordered form."""
        for line in self.free:
            operator = index_contract if line[0] in self.loop_fields else contract
            poly = operator(poly, line, sign)
        return poly

    def drawn(self, series: Series, ring: Ring, sign: int = 1) -> Series:
        """`contracted` for every grade; cut at the cap of `ring`."""
        out = {grade: self.contracted(poly, sign) for grade, poly in series.items()}
        return out if ring.cap is None else ring.of_degree(out, 0, ring.cap)

    def wick_ordered(self, potential: Series, ring: Ring) -> Series:
        """The vertices without self-loops (a response line that runs forward in time never makes one)."""
        return self.drawn(potential, Ring(ring.bound, ring.fields), -1)

    def vertices_joined(self, potential: Series, ring: Ring) -> Series:
        """exp V with all lines that run forward in time; the star inverse of exp(-V)."""
        whole = Ring(ring.bound, ring.fields)
        if not self.causal:
            return whole.exp(potential)
        flipped = whole.exp(whole.add((-1, potential)))
        out: Series = {whole.origin: {whole.unit: Fraction(1)}}
        for grade in whole.grades[1:]:
            part: Poly = {}
            for k, poly in flipped.items():
                rest = tuple(a - b for a, b in zip(grade, k))
                if any(k) and rest in out:
                    for key, value in star(out[rest], poly, self.causal).items():
                        part[key] = part.get(key, Fraction(0)) - value
            part = {key: value for key, value in part.items() if value}
            if part:
                out[grade] = part
        return out

    def partition(self, potential: Series, ring: Ring) -> Series:
        """Z(phi): all diagrams of the vertices with amputated legs phi (not yet `cancelled` for causality nonlocal)."""
        return self.drawn(self.vertices_joined(potential, ring), ring)

    def amputated(self, potential: Series, ring: Ring) -> Series:
        """A(phi) = log Z(phi): the connected diagrams with amputated legs, without the bare line."""
        return ring.log(self.partition(self.cancelled(potential, ring), ring))

    def cancelled(self, potential: Series, ring: Ring) -> Series:
        """V + U of causality nonlocal; V itself otherwise."""
        if self.causality != "nonlocal":
            return potential
        total = potential
        whole = Ring(ring.bound, ring.fields)
        while True:
            silent = self._without_response(self.partition(total, whole))
            silent.pop(whole.origin)
            if not silent:
                return total
            # the lowest grades of `silent` are exact, so each pass settles at least one more order
            order = min(map(sum, silent))
            lowest = {grade: poly for grade, poly in silent.items() if sum(grade) == order}
            total = whole.add((1, total), (-1, self.drawn(lowest, whole, -1)))

    def _without_response(self, series: Series) -> Series:
        out = {g: {k: c for k, c in poly.items() if not any(k[i] for i in self.response)} for g, poly in series.items()}
        return {grade: poly for grade, poly in out.items() if poly}
