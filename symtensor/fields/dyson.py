r"""Dyson's equation: the two-point function with its self-energy resummed.

Static:      G = (K - Sigma)^{-1},  K the Hessian of the action at the saddle.
Stochastic:  R(w) = (A - i w - Sigma_R(w))^{-1},   C(w) = R(w) (G G^T + Sigma_C(w)) R(-w)^T.

Sigma holds the diagrams, amputated, that no cut of one line separates into a part with one leg and a part with the other: the
one-particle irreducible ones and, because the expansion is around the saddle and not around the mean, those with tadpoles.
Expanded in loops, the result reproduces the cumulant to the order of Sigma.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor.diagrams import Diagram, Graph, enumerate_diagrams
from symtensor.fields.diagram_sum import DiagramSum
from symtensor.fields.errors import TheoryError
from symtensor.fields.free import LinearFree, StaticFree
from symtensor.fields.frequencies import frequency
from symtensor.fields.legs import Legs
from symtensor.fields.term import Term

if TYPE_CHECKING:
    from symtensor.fields.field_theory import FieldTheory

__all__ = ["Dyson", "self_energy"]


def self_energy(theory: FieldTheory, one: str, other: str, loops: int) -> DiagramSum:
    """The kernel Sigma between two fields (the response field later): a sum of amputated diagrams, 1 to `loops` loops."""
    legs = Legs.read(theory, (one, other), None, amputated=True)
    valence = 2 + 2 * loops
    terms: dict[int, tuple[Term, ...]] = {}
    for order in range(1, loops + 1):
        asked = enumerate_diagrams(theory.model(valence), _source_legs(theory, legs), order, where=_unseparated)
        cut = (amputated(diagram) for diagram in asked)
        wanted = [theory.kind_of(component).name for component in legs.components]
        found = (Term(theory, legs, diagram, valence) for diagram in cut if _leg_fields(diagram.graph) == wanted)
        terms[order] = tuple(term for term in found if not term.value.is_zero)
    return DiagramSum(theory, legs, loops, "1pi", 1, None, "one-line irreducible between its legs", terms)


def _source_legs(theory: FieldTheory, legs: Legs) -> Any:
    """The legs whose free lines end on the fields asked for: x for an amputated xt, xt for an amputated x."""
    if not theory.stochastic:
        return legs.diagram_legs(theory)
    size = len(theory.fields)
    partners = tuple(c - size if c >= size else c + size for c in legs.components)
    return replace(legs, components=partners).diagram_legs(theory)


def _leg_fields(graph: Graph) -> list[str]:
    """The fields of the amputated legs, by label."""
    by_label = sorted((str(graph.nodes[node].label), graph.nodes[node].name) for node in graph.legs)
    return [name for _, name in by_label]


def _unseparated(diagram: Diagram) -> bool:
    """Whether no internal line separates the two legs (and both legs end on vertices)."""
    graph = diagram.graph
    if not graph.vertices:
        return False
    return all(_joined(graph, bridge) for bridge in diagram.bridges)


def _joined(graph: Graph, without: int) -> bool:
    first, second = graph.legs
    seen, stack = {first}, [first]
    while stack:
        node = stack.pop()
        for number in graph.incident[node]:
            other = graph.other_end(number, node)
            if number != without and other not in seen:
                seen.add(other)
                stack.append(other)
    return second in seen


def amputated(diagram: Diagram) -> Diagram:
    """The diagram with the lines of its legs cut off: each leg becomes the field of the vertex that it was joined to."""
    graph = diagram.graph
    nodes, lines = list(graph.nodes), []
    for line in graph.lines:
        if not graph.nodes[line.start].is_leg and not graph.nodes[line.end].is_leg:
            lines.append(line)
            continue
        leg, vertex = (line.start, line.end) if graph.nodes[line.start].is_leg else (line.end, line.start)
        name = line.fields[0] if line.start == vertex else line.fields[1]
        nodes[leg] = replace(graph.nodes[leg], name=name)
        lines.append(replace(line, start=leg, end=vertex, fields=(name, name), propagator=None, directed=False, response=False))
    return Diagram.from_graph(Graph(graph.model, tuple(nodes), tuple(lines)))


@dataclass(frozen=True, eq=False)
class Dyson:
    """The resummed two-point functions of a theory; `of(sum)` takes the order of the self-energy from a two-point sum.

    >>> from symtensor.fields import FieldTheory
    >>> theory = FieldTheory.langevin("dx = -(x + g*x^3) dt + sqrt(2*T) dW")
    >>> theory.cumulant("x,xt", loops=1).dyson().response(sp.Symbol("w"))
    Matrix([[1/(3*T*g - I*w + 1)]])
    """

    theory: FieldTheory
    loops: int
    components: tuple[int, int]

    @classmethod
    def of(cls, total: DiagramSum) -> Dyson:
        """Raise TheoryError unless the sum is a two-point cumulant with one loop or more."""
        if len(total.legs.names) != 2 or total.kind != "connected" or total.loops < 1:
            raise TheoryError(f"Dyson's equation is for a two-point cumulant with 1 loop or more, not for {total.title}")
        return cls(total.theory, total.loops, (total.legs.components[0], total.legs.components[1]))

    @cached_property
    def _sums(self) -> dict[tuple[int, int], DiagramSum]:
        """Sigma by components: (response, field) and (response, response); a static theory has fields only."""
        names = [s.name for s in (*self.theory.fields, *self.theory.responses)]
        size = len(self.theory.fields)
        if not self.theory.stochastic:
            pairs = [(a, b) for a in range(size) for b in range(size)]
        else:
            pairs = [(a + size, b) for a in range(size) for b in range(2 * size)]
        return {(a, b): self_energy(self.theory, names[a], names[b], self.loops) for a, b in pairs}

    def terms(self) -> list[DiagramSum]:
        """The self-energies that are not zero, each a sum of diagrams."""
        return [total for total in self._sums.values() if len(total)]

    def self_energy(self, omega: Any = None) -> sp.ImmutableMatrix:
        """Sigma of a static theory, or Sigma_R(omega)."""
        size = len(self.theory.fields)
        shift = size if self.theory.stochastic else 0
        return sp.ImmutableMatrix(size, size, lambda a, b: self._transform(self._sums[a + shift, b], omega))

    def noise(self, omega: Any) -> sp.ImmutableMatrix:
        """Sigma_C(omega), the correction of the noise G G^T."""
        size = len(self.theory.fields)
        return sp.ImmutableMatrix(size, size, lambda a, b: self._both(a + size, b + size, omega))

    def _transform(self, total: DiagramSum, omega: Any) -> Any:
        return total.expr if not self.theory.stochastic else sp.sympify(total.contact + total.value.fourier(omega))

    def _both(self, a: int, b: int, omega: Any) -> Any:
        one, other = self._sums[a, b], self._sums[b, a]
        return sp.sympify(one.contact + one.value.fourier(omega) + other.value.fourier(-omega))

    def static(self) -> sp.ImmutableMatrix:
        """G of a static theory."""
        free = self.theory.free
        if not isinstance(free, StaticFree):
            raise TheoryError(f"{self.theory.name} has times: ask for response(omega) or correlator(omega)")
        return sp.ImmutableMatrix((free.hessian - self.self_energy()).inv().applyfunc(sp.cancel))

    def response(self, omega: Any) -> sp.ImmutableMatrix:
        """R(omega), fields by response fields."""
        w = frequency(omega, self.theory.parameters)
        free = self._linear()
        inverse = free.drift - sp.I * w * sp.eye(free.drift.rows) - self.self_energy(w)
        return sp.ImmutableMatrix(inverse.adjugate() / inverse.det())

    def correlator(self, omega: Any) -> sp.ImmutableMatrix:
        """C(omega) = int dt exp(i omega t) <x(t) x(0)>."""
        w = frequency(omega, self.theory.parameters)
        return sp.ImmutableMatrix(self.response(w) * (self._linear().noise + self.noise(w)) * self.response(-w).T)

    def _linear(self) -> LinearFree:
        if not isinstance(self.theory.free, LinearFree):
            raise TheoryError(f"{self.theory.name} is static: ask for static()")
        return self.theory.free

    def expr(self, omega: Any = None) -> Any:
        """The component of the two-point function that was asked for."""
        size = len(self.theory.fields)
        a, b = self.components
        if not self.theory.stochastic:
            return self.static()[a, b]
        w = frequency(omega, self.theory.parameters)
        if a < size and b < size:
            return self.correlator(w)[a, b]
        if a >= size and b >= size:
            return sp.S.Zero
        return self.response(w)[a, b - size] if a < size else self.response(-w)[b, a - size]

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {sp.latex(self.expr())}$"
