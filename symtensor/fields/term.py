"""One term of a diagram sum: a diagram with its factors, its formula and its value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor.diagrams import Diagram
from symtensor.fields.assignments import Signature, assignments
from symtensor.fields.elements import Integral
from symtensor.fields.exponential_sum import ExponentialSum
from symtensor.fields.formula import Formula
from symtensor.fields.free import DIGITS, LinearFree
from symtensor.fields.legs import Legs
from symtensor.fields.time_ordered import TimedLine

if TYPE_CHECKING:
    from symtensor.fields.field_theory import FieldTheory

__all__ = ["Term"]


@dataclass(frozen=True, eq=False)
class Term:
    """A diagram of a theory and what it stands for.

    Attributes:
        diagram: the diagram, with `symmetry_factor`, picture, canonical text.
        valence: the largest valence of the vertices that were taken from the theory.
    """

    theory: FieldTheory
    legs: Legs
    diagram: Diagram
    valence: int

    @property
    def symmetry_factor(self) -> int:
        """|Aut|; the term carries its reciprocal."""
        return self.diagram.symmetry_factor

    @property
    def loops(self) -> int:
        """The number of loops."""
        return self.diagram.loops

    @cached_property
    def vertex_factors(self) -> tuple[tuple[str, Any], ...]:
        """(name, factor) of each vertex; the factor is an expression, or {components: expression} if there are several."""
        tensors = {tensor.name: tensor for tensor in self.theory.tensors(self.valence)}
        found = []
        for node in self.diagram.graph.vertices:
            tensor = tensors[self.diagram.nodes[node].name]
            single = all(len(self._kind(leg).components) == 1 for leg in tensor.legs)
            found.append((tensor.name, next(iter(tensor.entries.values())) if single else dict(tensor.entries)))
        return tuple(found)

    def _kind(self, name: str) -> Any:
        return next(kind for kind in self.theory.kinds if kind.name == name)

    @property
    def sign(self) -> int:
        """The product of the signs of the vertex factors that carry an explicit minus."""
        negative = 0
        for _, factor in self.vertex_factors:
            entries = factor.values() if isinstance(factor, dict) else [factor]
            negative += all(entry.could_extract_minus_sign() for entry in entries)
        return -1 if negative % 2 else 1

    @cached_property
    def formula(self) -> Formula:
        """The term before integration: propagators, times, integrand."""
        return Formula.of(self)

    @property
    def propagators(self) -> tuple[sp.Expr, ...]:
        """One symbolic propagator a line, such as C_x(t - s1)."""
        return self.formula.propagators

    @property
    def variables(self) -> tuple[sp.Symbol, ...]:
        """The times that are integrated over."""
        return self.formula.variables

    @property
    def integrand(self) -> sp.Expr:
        """(1/symmetry factor) x (vertex factors) x (propagators), before the integration and the sum over components."""
        return self.formula.integrand

    @cached_property
    def contact(self) -> bool:
        """Whether all legs of a vertex function with several times hang on one vertex: a term proportional to delta(t)."""
        return len(self.legs.moments) > 1 and len(set(self._group_nodes())) < len(self.legs.moments)

    @cached_property
    def value(self) -> ExponentialSum:
        """The value, as a sum of exponentials in the differences of the external times; a constant for a static theory.

        For a `contact` term it is the factor of the delta functions.
        """
        elements = self.theory.elements(self.valence)
        found = assignments(elements, self.diagram.graph, self.legs.by_label)
        windows = 0 if self.contact else len(self.legs.windows)
        weight = elements.domain.convert(sp.Rational(1, self.symmetry_factor))
        sums: dict[tuple[sp.Expr, ...], dict[Any, Any]] = {}
        for signature, factor in found.items():
            rates, terms = self._integral(signature)
            total, scaled = sums.setdefault(rates, {}), weight * factor
            for key, coefficient in terms.items():
                total[key] = total[key] + scaled * coefficient if key in total else scaled * coefficient
        parts = [
            ExponentialSum(rates, windows, {key: elements.write(value) for key, value in terms.items() if value})
            for rates, terms in sums.items()
        ]
        joined = ExponentialSum.total(parts, windows)
        return joined if len(parts) < 2 else joined.map(elements.canonical)

    def _group_nodes(self) -> list[int]:
        """For each group of equal times a node that stands for it: a leg, or the vertex an amputated leg hangs on."""
        graph = self.diagram.graph
        hung = {line.start: line.end for line in graph.lines if line.propagator is None}
        nodes: dict[int, int] = {}
        for node in graph.legs:
            group = self.legs.groups[int(str(graph.nodes[node].label)) - 1]
            nodes.setdefault(group, hung.get(node, node))
        return [nodes[group] for group in sorted(nodes)]

    def _integral(self, signature: Signature) -> Integral:
        """The integral over the times of the vertices of the product of exponentials."""
        elements = self.theory.elements(self.valence)
        if not isinstance(self.theory.free, LinearFree):
            return (), {(): elements.domain.one}
        place, external, internal = self._places()
        size = len(self.theory.fields)
        lines = []
        for line, modes in zip(self.diagram.lines, signature):
            if modes is None:
                continue
            start, end = place[line.start], place[line.end]
            if line.response:
                lines.append(TimedLine.response(start, end, elements.rates[modes[0] % size]))
            else:
                first, second = (elements.rates[mode] for mode in modes)
                lines.append(TimedLine(start, end, (sp.S.One, sp.S.One), (second, first), equal=sp.S.One))
        return elements.integral(lines, external, internal)

    def _places(self) -> tuple[dict[int, int], int, int]:
        """Node -> position for the integration: external times first (latest first), then vertices."""
        graph = self.diagram.graph
        hung = {line.start: line.end for line in graph.lines if line.propagator is None}
        place: dict[int, int] = {}
        contact = self.contact
        for node in graph.legs:
            group = self.legs.groups[int(str(graph.nodes[node].label)) - 1]
            place[hung.get(node, node)] = 0 if contact else group
            place[node] = place[hung.get(node, node)]
        external = 1 if contact else max(len(self.legs.moments), 1)
        inner = [node for node in graph.vertices if node not in place]
        for at, node in enumerate(inner):
            place[node] = external + at
        return place, external, len(inner)

    @property
    def expr(self) -> sp.Expr:
        """The value in closed form."""
        return expression(self.value, self.legs, self.contact)

    def latex(self) -> str:
        """The term as it is written on paper, before integration."""
        return self.formula.latex()

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()} = {sp.latex(self.expr)}$"

    def __repr__(self) -> str:
        return f"<Term {self.diagram.canonical}: 1/{self.symmetry_factor}, {sp.sstr(self.expr)}>"


def expression(value: ExponentialSum, legs: Legs, contact: bool = False) -> sp.Expr:
    """The sum of exponentials in the times of the legs; coefficients are expanded, or factored if they are fractions."""
    if contact:
        return tidy(value.value) * sp.Mul(*(sp.DiracDelta(window) for window in legs.windows))
    if any(rate.is_number and rate.has(sp.I) for rate in value.rates):
        return _real_parts(value, legs)
    return sp.Add(*_terms(value.map(tidy), legs))


def _real_parts(value: ExponentialSum, legs: Legs) -> sp.Expr:
    """A sum with oscillating modes: the real parts of its terms, since conjugate terms cancel the imaginary ones."""
    waves: dict[tuple[sp.Expr, sp.Expr], list[sp.Expr]] = {}
    for key, coefficient in value.terms.items():
        energies = [value.energy(energy) for energy, _ in key]
        decay = sp.exp(-sp.Add(*(_shown(sp.re(energy)) * time for energy, time in zip(energies, legs.windows))))
        phase = sp.Add(*(_shown(sp.im(energy)) * time for energy, time in zip(energies, legs.windows)))
        envelope = decay * sp.Mul(*(time**p for time, (_, p) in zip(legs.windows, key)))
        real, imaginary = sp.expand(coefficient).as_real_imag()
        if phase.could_extract_minus_sign():
            phase, imaginary = -phase, -imaginary
        wave = waves.setdefault((envelope, phase), [sp.S.Zero, sp.S.Zero])
        wave[:] = wave[0] + real, wave[1] + imaginary
    return sp.Add(
        *(
            part * envelope * function
            for (envelope, phase), (real, imaginary) in waves.items()
            for total, function in ((tidy(real), sp.cos(phase)), (tidy(imaginary), sp.sin(phase)))
            for part in sp.Add.make_args(total)
        )
    )


def _shown(rate: Any) -> Any:
    """A rate; one that stands for a decimal number (rates are made exact to find relations between them) as a decimal again."""
    long = rate.is_Rational and sp.Integer(rate.q) > 10**12
    return rate.evalf(DIGITS) if long else rate


def _terms(value: ExponentialSum, legs: Legs) -> list[sp.Expr]:
    """One term an exponential; sums in a coefficient are multiplied out."""
    found = []
    for key, coefficient in value.terms.items():
        one = ExponentialSum(value.rates, value.windows, {key: sp.S.One}).expr(*legs.windows)
        found += [part * one for part in sp.Add.make_args(coefficient)]
    return found


def tidy(coefficient: sp.Expr) -> Any:
    """A polynomial expanded, a fraction factored."""
    _, below = sp.fraction(coefficient)
    if not below.free_symbols:
        return sp.expand(coefficient)
    return sp.factor(coefficient) if sp.count_ops(coefficient) < 2000 else sp.together(coefficient)
