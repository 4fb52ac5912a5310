r"""A term as a formula, before anything is integrated: propagators with their times, the integrand, LaTeX."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor.diagrams.graph import Line
from symtensor.diagrams.routing import times

if TYPE_CHECKING:
    from symtensor.fields.term import Term

__all__ = ["Factor", "Formula"]

_LETTERS = {"D": r"\Delta"}


@dataclass(frozen=True, slots=True)
class Factor:
    """A propagator (C correlator, R response, D static) or a vertex tensor v, with components and (later, earlier) times."""

    letter: str
    subscript: str
    labels: tuple[sp.Symbol, ...] = ()
    times: tuple[sp.Expr, sp.Expr] | None = None

    @property
    def expr(self) -> sp.Expr:
        """As a SymPy function, C_x(t - s1), or a symbol if there is nothing it depends on."""
        name = f"{self.letter}_{self.subscript}"
        arguments = (*self.labels, *(() if self.times is None else (self.times[0] - self.times[1],)))
        return sp.Function(name)(*arguments) if arguments else sp.Symbol(name)

    def latex(self, power: int = 1) -> str:
        """LaTeX, to a power."""
        kind = self.subscript.replace("_", r"\,")
        below = kind if not self.labels else f"{kind};{' '.join(sp.latex(label) for label in self.labels)}"
        exponent = f"^{{{power}}}" if power > 1 else ""
        argument = "" if self.times is None else f"({_difference(*self.times)})"
        return f"{_LETTERS.get(self.letter, self.letter)}_{{{below}}}{exponent}{argument}"


def _difference(later: sp.Expr, earlier: sp.Expr) -> str:
    if later == earlier:
        return "0"
    if earlier == 0:
        return sp.latex(later)
    return f"{'' if later == 0 else sp.latex(later)}-{sp.latex(earlier)}"


@dataclass(frozen=True, slots=True)
class Formula:
    """The parts of a term: `prefactor` (1/symmetry factor and scalar vertex factors), tensors, lines, integration variables.

    Components of lines with several are indices i1, i2, .. that are summed over (`indices`).
    """

    prefactor: sp.Expr
    tensors: tuple[Factor, ...]
    lines: tuple[Factor, ...]
    variables: tuple[sp.Symbol, ...]
    indices: tuple[sp.Symbol, ...]

    @classmethod
    def of(cls, term: Term) -> Formula:
        """The formula of a term; times of vertices are s1, s2, .."""
        graph = term.diagram.graph
        moments = _node_times(term) if term.theory.stochastic else {}
        ends, summed = _labels(term)
        lines = tuple(
            _propagator(term.theory.stochastic, line, [ends[number, end] for end in (0, 1) if (number, end) in ends], moments)
            for number, line in enumerate(graph.lines)
            if line.propagator is not None
        )
        prefactor: Any = sp.Rational(1, term.symmetry_factor)
        tensors = []
        for node, (name, factor) in zip(graph.vertices, term.vertex_factors):
            if isinstance(factor, dict):
                slots = [(n, e) for n, line in enumerate(graph.lines) for e, w in enumerate((line.start, line.end)) if w == node]
                tensors.append(Factor("v", name.removeprefix("v_"), tuple(ends[slot] for slot in slots if slot in ends)))
            else:
                prefactor = prefactor * factor
        return cls(prefactor, tuple(tensors), lines, _variables(term, moments), tuple(summed))

    @property
    def propagators(self) -> tuple[sp.Expr, ...]:
        """One SymPy expression a line."""
        return tuple(line.expr for line in self.lines)

    @property
    def integrand(self) -> sp.Expr:
        """The product of all factors."""
        return sp.Mul(self.prefactor, *(tensor.expr for tensor in self.tensors), *self.propagators)

    def latex(self) -> str:
        """LaTeX with integral signs, sums over indices and each factor in its place."""
        bare = self.prefactor == 1 and (self.lines or self.tensors)
        parts = [] if bare else [_prefactor(self.prefactor)]
        if self.indices:
            parts.append(r"\sum_{" + " ".join(sp.latex(i) for i in self.indices) + "}")
        parts += [r"\int\! d" + sp.latex(variable) for variable in self.variables]
        parts += [tensor.latex() for tensor in self.tensors]
        parts += [line.latex(count) for line, count in Counter(self.lines).items()]
        return r"\,".join(parts)


def _prefactor(value: sp.Expr) -> str:
    text = sp.latex(value)
    return f"\\left({text}\\right)" if isinstance(value, sp.Add) else text


def _labels(term: Term) -> tuple[dict[tuple[int, int], sp.Symbol], list[sp.Symbol]]:
    """The index at each end of each line that has components, and those that are summed over."""
    graph = term.diagram.graph
    wide = {kind.name for kind in term.theory.kinds if len(kind.components) > 1}
    letters = _letters()
    ends: dict[tuple[int, int], sp.Symbol] = {}
    summed = []
    for number, line in enumerate(graph.lines):
        for end, (kind, node) in enumerate(zip(line.fields, (line.start, line.end))):
            if kind not in wide:
                continue
            if graph.nodes[node].is_leg:
                ends[number, end] = sp.Symbol(term.legs.names[int(str(graph.nodes[node].label)) - 1])
            elif line.propagator is None:  # an amputated leg fixes the component of its vertex
                ends[number, end] = ends[number, 0]
            else:
                ends[number, end] = next(letters)
                summed.append(ends[number, end])
    return ends, summed


def _letters() -> Iterator[sp.Symbol]:
    number = 0
    while True:
        number += 1
        yield sp.Symbol(f"i{number}")


def _propagator(stochastic: bool, line: Line, labels: list[sp.Symbol], moments: dict[int, sp.Expr]) -> Factor:
    if not stochastic:
        return Factor("D", line.fields[0], tuple(labels))
    later, earlier = moments[line.end], moments[line.start]
    if line.response:  # R of the later end and the earlier one
        return Factor("R", line.fields[1], tuple(labels[::-1]), (later, earlier))
    if _precedes(earlier, later):
        later, earlier, labels = earlier, later, labels[::-1]
    return Factor("C", line.fields[0], tuple(labels), (later, earlier))


def _precedes(one: sp.Expr, other: sp.Expr) -> bool:
    """Which of two times of a correlator is written first: external ones before those of vertices, 0 last."""
    return _rank(one) < _rank(other)


def _rank(time: sp.Expr) -> tuple[int, int, str]:
    name = str(time)
    return (2 if time == 0 else 1 if name.startswith("s") else 0, len(name), name)


def _node_times(term: Term) -> dict[int, sp.Expr]:
    """The time of every node: those of the legs as asked for, s1, s2, .. for the vertices."""
    graph, legs = term.diagram.graph, term.legs
    routing = times(graph, [f"T{number}" for number in range(len(graph.legs))])
    given = {f"T{at}": legs.moments[legs.groups[int(str(graph.nodes[node].label)) - 1]] for at, node in enumerate(graph.legs)}
    return {node: given.get(symbol.name, sp.Symbol(symbol.name, real=True)) for node, symbol in enumerate(routing.times)}


def _variables(term: Term, moments: dict[int, sp.Expr]) -> tuple[sp.Symbol, ...]:
    if not moments:
        return ()
    graph = term.diagram.graph
    hung = {line.end for line in graph.lines if line.propagator is None}
    return tuple(s for node in graph.vertices if node not in hung and isinstance(s := moments[node], sp.Symbol))
