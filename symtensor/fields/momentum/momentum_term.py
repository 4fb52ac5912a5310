r"""One diagram of a theory with momenta: factors, times integrated exactly, the integrand in the loop momenta."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor.diagrams import Diagram
from symtensor.fields.exponential_sum import ExponentialSum
from symtensor.fields.frequencies import frequency
from symtensor.fields.momentum.routes import Route, route
from symtensor.fields.momentum.vectors import in_one_dimension, multiplied_out
from symtensor.fields.time_ordered import TimedLine, integrate_times

if TYPE_CHECKING:
    from symtensor.fields.momentum.theory import MomentumTheory

__all__ = ["MomentumTerm"]

TIME = sp.Symbol("t", nonnegative=True)


@dataclass(frozen=True, eq=False)
class MomentumTerm:
    """A diagram with its value before the integration over the loop momenta.

    Attributes:
        kind: ``"connected"`` or ``"1pi"``.
        times: ``"t,0"``, ``"equal"``, ``"integrated"``; ``""`` of a static theory.
    """

    theory: MomentumTheory
    diagram: Diagram
    kind: str
    times: str

    @property
    def symmetry_factor(self) -> int:
        """|Aut|, by which the term is divided."""
        return self.diagram.symmetry_factor

    @property
    def loops(self) -> int:
        """The number of loops."""
        return self.diagram.loops

    @cached_property
    def route(self) -> Route:
        """The wave vectors of the lines."""
        return route(self.diagram)

    @property
    def loop_momenta(self) -> tuple[sp.Symbol, ...]:
        """The wave vectors that are integrated over."""
        return self.route.loops

    @cached_property
    def vertex_factors(self) -> tuple[tuple[str, Any], ...]:
        """(name, factor at the wave vectors of the legs) of each vertex."""
        found = []
        for node in self.diagram.graph.vertices:
            vertex = self.theory.vertex(self.diagram.nodes[node].name)
            arriving = self.route.legs(self.diagram, node)
            momenta = []
            for leg in vertex.legs:
                at = next(n for n, (name, _) in enumerate(arriving) if name == leg)
                momenta.append(arriving.pop(at)[1])
            found.append((vertex.name, vertex.at(momenta)))
        return tuple(found)

    @property
    def sign(self) -> int:
        """The product of the signs written in front of the vertex factors."""
        negative = sum(bool(factor.could_extract_minus_sign()) for _, factor in self.vertex_factors)
        return -1 if negative % 2 else 1

    @cached_property
    def propagators(self) -> tuple[tuple[str, sp.Expr, Any], ...]:
        """(kind, wave vector, factor) of each line: C with its equal-time value, R with 1, D the static one."""
        found = []
        for line, momentum in self._lines:
            letter = "D" if not self.theory.stochastic else "R" if line.response else "C"
            found.append((letter, momentum, sp.S.One if letter == "R" else self.theory.line(momentum)))
        return tuple(found)

    @property
    def _lines(self) -> list[tuple[Any, sp.Expr]]:
        return [(line, p) for line, p in zip(self.diagram.lines, self.route.momenta) if line.propagator is not None]

    @cached_property
    def vanishes(self) -> bool:
        """Whether a vertex factor is zero, such as that of a KPZ tadpole, whose line has no momentum; or the time integral is."""
        flat = in_one_dimension if self.theory.dimension == 1 else multiplied_out
        if any(sp.expand(flat(factor)) == 0 for _, factor in self.vertex_factors):
            return True
        return self.theory.stochastic and self._forward.is_zero and self._backward.is_zero

    @cached_property
    def prefactor(self) -> Any:
        """(1/symmetry factor) x (vertex factors) x (equal-time factors of the lines)."""
        factors = [factor for _, factor in self.vertex_factors] + [factor for *_, factor in self.propagators]
        return sp.Mul(sp.Rational(1, self.symmetry_factor), *factors)

    # -- times ---------------------------------------------------------------------------------------------------------

    @cached_property
    def _rates(self) -> dict[sp.Expr, sp.Symbol]:
        """One elementary rate for each wave vector, up to its sign."""
        found: dict[sp.Expr, sp.Symbol] = {}
        for _, momentum in self._lines:
            key = _unsigned(momentum)
            found.setdefault(key, sp.Symbol(f"r{len(found) + 1}", positive=True))
        return found

    @cached_property
    def contact(self) -> bool:
        """Whether a function of two times is proportional to delta(t): both amputated legs hang on one vertex."""
        return self.kind == "1pi" and self.times == "t,0" and len(set(self._ends)) == 1

    @property
    def _ends(self) -> list[int]:
        """For each leg, by its label, the node at its time: its own, or the vertex that it hangs on."""
        graph = self.diagram.graph
        hung = {line.start: line.end for line in graph.lines if line.propagator is None}
        return [hung.get(node, node) for node in sorted(graph.legs, key=lambda node: int(str(graph.nodes[node].label)))]

    def _integrated(self, backward: bool = False) -> ExponentialSum:
        ends = self._ends[::-1] if backward else self._ends
        two = self.times == "t,0" and not self.contact
        fixed = ends if two or self.times == "equal" else ends[:1]
        place = {node: (at if two else 0) for at, node in enumerate(fixed)}
        external = 2 if two else 1
        inner = [node for node in self.diagram.graph.vertices if node not in place]
        place |= {node: external + at for at, node in enumerate(inner)}
        lines = []
        for line, momentum in self._lines:
            make = TimedLine.response if line.response else TimedLine.correlation
            lines.append(make(place[line.start], place[line.end], self._rates[_unsigned(momentum)], sp.S.One))
        return integrate_times(lines, external, len(inner))

    @cached_property
    def _forward(self) -> ExponentialSum:
        return self._integrated()

    @cached_property
    def _backward(self) -> ExponentialSum:
        return self._integrated(backward=True) if self.times == "t,0" and not self.contact else self._forward

    def _written(self, expression: Any) -> Any:
        """Rates by the function of the wave vectors that they stand for."""
        return expression.subs({symbol: self.theory.rate_at(momentum) for momentum, symbol in self._rates.items()})

    # -- the integrand -------------------------------------------------------------------------------------------------

    @cached_property
    def integrand(self) -> Any:
        """The integrand in the loop momenta, all times integrated: a function of t > 0 where two times are kept.

        Without loops it is the value. Of a `contact` term it is the factor of delta(t).
        """
        if not self.theory.stochastic:
            return self.prefactor
        return self.prefactor * self._written(self._forward.expr(*([TIME] if self._forward.windows else [])))

    def integrand_at(self, omega: Any = None) -> Any:
        """The integrand of the Fourier transform int dt exp(i omega t) f(t), both signs of t; omega is a symbol if not given.

        A static theory, equal or integrated times: the integrand, which does not depend on it.
        """
        if not self.theory.stochastic or not self._forward.windows:
            return self.integrand
        w = frequency(omega)
        both = self._forward.fourier(w) + self._backward.fourier(-w)
        return self.prefactor * self._written(both)

    def latex(self) -> str:
        """The term as it is written on paper: at the frequency omega where two times are kept."""
        text = self.theory.latex(self.integrand_at())
        if not self.loops:
            return text
        return measure_latex(self.loop_momenta, self.theory.dimension) + r"\," + text

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def __repr__(self) -> str:
        return f"<MomentumTerm {self.diagram.canonical}: 1/{self.symmetry_factor}, {sp.sstr(self.integrand_at())}>"


def measure_latex(loops: tuple[sp.Symbol, ...], dimension: Any) -> str:
    """The integral signs over loop momenta."""
    if dimension == 1:
        return r"\,".join(rf"\int\!\frac{{d{sp.latex(q)}}}{{2\pi}}" for q in loops)
    d = sp.latex(dimension)
    return r"\,".join(rf"\int\!\frac{{d^{{{d}}}{sp.latex(q)}}}{{(2\pi)^{{{d}}}}}" for q in loops)


def _unsigned(momentum: sp.Expr) -> sp.Expr:
    return sp.expand(-momentum) if momentum.could_extract_minus_sign() else momentum
