r"""Spectra of diagram sums by loop integrals over frequencies: f(w) = int dt exp(i w t) f(t), over both signs of t.

Every line carries a frequency, conserved at the vertices; R(w) = (A - i w)^{-1}, C(w) = R(w) G G^T R(-w)^T. No rates or modes
are needed, so that this holds for coinciding and complex rates, and it checks the closed form by another route.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from symtensor._codegen import codegen
from symtensor.fields._grid_network import ArrayFactor, GridIndex, term_ends, vertex_value
from symtensor.fields._grid_plan import ContractionPlan
from symtensor.fields._grid_program import GridProgram
from symtensor.fields._jax_side import jax_side
from symtensor.fields.errors import TheoryError
from symtensor.fields.free import LinearFree
from symtensor.fields.term import Term

if TYPE_CHECKING:
    from symtensor.fields.diagram_sum import DiagramSum

__all__ = ["CompiledFrequency", "FrequencyValue", "compile_frequency"]

#: combinations of loop frequencies beyond which the nodes are not doubled any more
MOST_POINTS = 2**22


@dataclass(frozen=True, eq=False)
class FrequencyValue:
    """A spectrum with the error of its loop integrals: the distance to the value with half as many nodes.

    `converged` says whether every frequency is within the tolerance asked for.
    """

    total: np.ndarray
    orders: Mapping[int, np.ndarray]
    error: np.ndarray
    nodes: int
    converged: bool

    def __repr__(self) -> str:
        state = "converged" if self.converged else "NOT converged"
        return f"<FrequencyValue at {self.total.size} frequencies: error {np.max(self.error):.1g} with {self.nodes} nodes, {state}>"


@dataclass(frozen=True, eq=False)
class CompiledFrequency:
    """The spectrum of a diagram sum as a differentiable function of frequency and parameters; complex numbers.

    Attributes:
        arguments: ``omega`` (a number or an array), then the parameters.
        nodes: of the trapezoidal rule for each loop in a direct call; `evaluate` doubles them until the error is small.
        scale: of the map k = scale tan(x), near the rates of the linear equation.
    """

    total: DiagramSum
    arguments: tuple[str, ...]
    module: Any
    nodes: int
    scale: float
    diagrams: Mapping[int, tuple[Any, ...]]
    _jitted: dict[int, Callable[..., Any]] = field(default_factory=dict, repr=False)

    def __call__(self, omega: Any, *values: Any, **named: Any) -> Any:
        """The sum of all orders, with `nodes` nodes a loop."""
        return sum(self._orders(omega, self._values(values, named), self.nodes).values())

    def evaluate(self, omega: Any, *values: Any, tolerance: float = 1e-8, **named: Any) -> FrequencyValue:
        """Double the nodes until the sum changes by less than `tolerance` (times 1 + its largest value), or there are too many."""
        given, nodes = self._values(values, named), self.nodes
        before = self._orders(omega, given, nodes)
        while True:
            nodes *= 2
            orders = self._orders(omega, given, nodes)
            total, last = (np.asarray(sum(found.values())) for found in (orders, before))
            error = np.abs(total - last)
            done = bool(np.max(error) <= tolerance * (1 + np.max(np.abs(total))))
            if done or (2 * nodes) ** max(self.total.loops, 1) > MOST_POINTS:
                return FrequencyValue(total, {k: np.asarray(v) for k, v in orders.items()}, error, nodes, done)
            before = orders

    @cached_property
    def _linear(self) -> Any:
        return self.module.load().linear

    def _orders(self, omega: Any, given: Mapping[str, Any], nodes: int) -> dict[int, Any]:
        if nodes not in self._jitted:
            self._jitted[nodes] = jax_side("loop_integrals").spectrum(self._linear, self.diagrams, nodes, self.scale)
        return self._jitted[nodes](omega, dict(given))

    def _values(self, values: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        names = self.arguments[1:]
        given = {**dict(zip(names, values)), **named}
        if len(values) > len(names) or set(given) != set(names) or set(named) & set(names[: len(values)]):
            wanted = ", ".join(self.arguments)
            raise TypeError(f"the function takes {wanted}, each once; got {len(values)} values and {sorted(named)}")
        return given

    def __repr__(self) -> str:
        return f"<CompiledFrequency {self.total.title}: f({', '.join(self.arguments)})>"


def compile_frequency(total: DiagramSum, *, nodes: int = 32, scale: float = 1.0, name: str = "") -> CompiledFrequency:
    """The spectrum of a function of two legs at two times, or the mean (at omega = 0), by loop integrals.

    Args:
        nodes: for each loop; a direct call uses as many, `evaluate` starts from them.
        scale: positive, of the order of the rates of the linear equation.

    Raises: TheoryError for a static theory, other legs or times, nodes or a scale out of range.
    """
    if not isinstance(total.theory.free, LinearFree):
        raise TheoryError(f"{total.theory.name} is a static theory: it has no frequencies")
    if len(total.legs.names) > 2 or len(total.legs.moments) != len(total.legs.names):
        raise TheoryError(f"the spectrum is that of a function of one leg or of two legs at two times, not of <{total.legs}>")
    if nodes < 4 or not scale > 0:
        raise TheoryError(f"nodes={nodes}, scale={scale}: 4 nodes or more and a positive scale are needed")
    coefficients: list[Any] = []
    arrays: dict[str, None] = {}
    diagrams: dict[int, tuple[Any, ...]] = {}
    for loops in range(total.lowest, total.loops + 1):
        found = []
        for diagram in total.diagrams(loops):
            term = Term(total.theory, total.legs, diagram, total.valence)
            if total.keep is None or total.keep(term):
                value, coefficient = _diagram(term)
                found.append((len(coefficients), value))
                coefficients.append(coefficient)
                arrays |= dict.fromkeys(tensor for tensor, *_ in value.tensors)
        diagrams[loops] = tuple(found)
    parameters = tuple(symbol.name for symbol in total.theory.parameters)
    declared = tuple((array, "tensor", ()) for array in arrays)
    program = GridProgram(total, parameters, declared, (), False, ContractionPlan(1), ())
    kernels = program.linear_kernels([("coefficients", (len(coefficients),), coefficients)] if coefficients else [])
    called = name or f"{total.theory.name}_{'_'.join(total.legs.names)}_spectrum"
    title = f"{total.title}: arrays of its loop integrals."
    spec = codegen().ModuleSpec(called, title, kernels, statement=" ".join(total.theory.conventions), reference_points=False)
    return CompiledFrequency(total, ("omega", *parameters), codegen().generate(spec), nodes, scale, diagrams)


def _diagram(term: Term) -> tuple[Any, Any]:
    """(lines and tensors in frequency space, coefficient)."""
    side = jax_side("loop_integrals")
    graph = term.diagram.graph
    routing = term.diagram.momenta()
    flows = [_flow(momentum, routing.loop_momenta) for momentum in routing.momenta]
    ends = term_ends(term)
    letters: dict[GridIndex, str] = {}
    for index in ends.values():
        if index is not None and index[0] == "c":
            letters.setdefault(index, string.ascii_lowercase[len(letters)])
    lines = []
    for number, line in enumerate(graph.lines):
        if line.propagator is None:
            continue
        kind = next(kind for kind in term.theory.kinds if kind.name == (line.fields[1] if line.response else line.fields[0]))
        (rows, row), (columns, column) = (_side(kind.components, ends[number, end], letters) for end in (1, 0))
        lines.append(side.FrequencyLine("R" if line.response else "C", flows[number], rows, columns, row + column))
    coefficient: Any = sp.Rational(1, term.symmetry_factor)
    tensors = []
    for node, (name, _) in zip(graph.vertices, term.vertex_factors):
        value = vertex_value(term, node, name, ends)
        if isinstance(value, ArrayFactor):
            fixed = tuple(index[1] if index[0] == "f" else None for index in value.indices)
            tensors.append((value.array, fixed, "".join(letters[index] for index in value.indices if index[0] == "c")))
        else:
            coefficient = coefficient * value
    return side.LoopDiagram(tuple(lines), tuple(tensors), len(routing.loop_momenta)), coefficient


def _flow(momentum: sp.Expr, loops: tuple[sp.Symbol, ...]) -> tuple[int, ...]:
    """Coefficients of the external and the loop frequencies: exp(i w t) takes w out at the leg at t, label 1."""
    table = momentum.as_coefficients_dict()
    external = table.get(sp.Symbol("p_2"), 0) - table.get(sp.Symbol("p_1"), 0)
    return (int(external), *(int(table.get(loop, 0)) for loop in loops))


def _side(components: tuple[int, ...], index: GridIndex | None, letters: Mapping[GridIndex, str]) -> tuple[tuple[int, ...], str]:
    """Components at one end of a line, and their letter if there are several."""
    if index is None:
        return components, ""
    return ((components[index[1]],), "") if index[0] == "f" else (components, letters[index])
