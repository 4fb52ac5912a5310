"""The kernels of a diagram sum on a time grid: arrays of the linear equation and the vertices, contractions, sums."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor._codegen import codegen
from symtensor.fields._grid_network import Network
from symtensor.fields._grid_plan import TIME, ContractionPlan
from symtensor.fields.errors import TheoryError
from symtensor.fields.free import LinearFree
from symtensor.kernels import Argument, ArrayKernel, ArrayOutput, Assignment, Component, CompositeKernel, ScalarKernel, TensorKernel
from symtensor.tensor import Tensor, TensorExpr

if TYPE_CHECKING:
    from symtensor.fields.diagram_sum import DiagramSum

__all__ = ["GridProgram"]


@dataclass(frozen=True, eq=False)
class GridProgram:
    """What is generated: `arrays` are the array arguments as (name, letter, components), `orders` the outputs."""

    total: DiagramSum
    parameters: tuple[str, ...]
    arrays: tuple[tuple[str, str, tuple[int, ...]], ...]
    orders: tuple[str, ...]
    open_time: bool
    plan: ContractionPlan
    sums: tuple[Any, ...]

    @classmethod
    def of(cls, total: DiagramSum, networks: Mapping[int, Sequence[Network]], points: int) -> GridProgram:
        """Plan the contractions of the networks, by number of loops, on a grid of `points` times."""
        plan = ContractionPlan(points)
        groups = {f"order_{loops}": group for loops, group in networks.items() if group}
        sums = tuple(sum_kernel(plan, name, group) for name, group in groups.items())
        open_time = any(each.open_times for group in groups.values() for each in group)
        return cls.with_sums(total, [each for group in groups.values() for each in group], plan, sums, open_time)

    @classmethod
    def with_sums(
        cls, total: DiagramSum, networks: Sequence[Network], plan: ContractionPlan, sums: Sequence[Any], open_time: bool
    ) -> GridProgram:
        """The program of sums that are planned already; raises TheoryError if a name is used twice."""
        used = dict.fromkeys(factor.array for each in networks for factor in each.factors)
        arrays = tuple(_declared(total, name) for name in used)
        parameters = tuple(symbol.name for symbol in total.theory.parameters)
        taken = {name for name, *_ in arrays} | {"drift", "noise", "saddle"} | {call.targets[0] for call in plan.calls}
        if clash := set(parameters) & taken:
            raise TheoryError(f"the parameter {min(clash)!r} has the name of an array of the generated function; rename it")
        return cls(total, parameters, arrays, tuple(kernel.name for kernel in sums), open_time, plan, tuple(sums))

    @property
    def megabytes(self) -> float:
        """Float64 memory of the array arguments and the largest intermediates."""
        points = self.plan.points
        axes = {"at": 1, "after": 1, "E": 1}
        sizes = [points ** axes.get(letter, 2) * len(parts) ** 2 for _, letter, parts in self.arrays if parts]
        return 8e-6 * (2 * sum(sizes) + 3 * self.plan.largest)

    def require_memory(self, limit: float) -> None:
        """Raise TheoryError if more megabytes than `limit` are needed."""
        if self.megabytes > limit:
            raise TheoryError(
                f"{self.total.title} on {self.plan.points} times needs about {self.megabytes:,.0f} MB, more than "
                f"memory_mb={limit:,.0f}; take a larger step, a shorter horizon or fewer loops, or raise memory_mb"
            )

    def spec(self, name: str = "") -> Any:
        """The specification of the module."""
        total = self.total
        named = name or re.sub(r"\W+", "_", f"{total.theory.name}_{'_'.join(total.legs.names)}_grid")
        kernels = (*self.linear_kernels(), *self.plan.kernels.values(), *self.sums, *([self._diagrams()] if self.sums else []))
        title = f"{total.title}, on a time grid."
        return codegen().ModuleSpec(named, title, kernels, statement=" ".join(total.theory.conventions), reference_points=False)

    def _diagrams(self) -> Any:
        calls = [Assignment((k.name,), k.name, tuple(a.name for a in k.arguments)) for k in self.sums]
        returns = tuple(Argument(name, ("T",) if self.open_time else ()) for name in self.orders)
        title = "The orders by number of loops."
        return CompositeKernel("diagrams", self.arguments(), (*self.plan.calls, *calls), returns, title)

    def arguments(self) -> tuple[Any, ...]:
        """Parameters and arrays."""
        scalars = (Argument(name, (), "parameter") for name in self.parameters)
        arrays = (Argument(name, self._shape(name, letter, parts)) for name, letter, parts in self.arrays)
        return (*scalars, *arrays)

    def _shape(self, name: str, letter: str, parts: tuple[int, ...]) -> tuple[str | int, ...]:
        if letter == "tensor":
            return self._tensor_shape(name)
        inner: tuple[str | int, ...] = (len(parts),) if len(parts) > 1 else ()
        return ("T",) if letter in ("at", "after") else ("T", *inner, *(inner if letter == "E" else ("T", *inner)))

    def _kinds_of(self, name: str) -> list[Any]:
        tensor = next(t for t in self.total.theory.tensors(self.total.valence) if t.name == name)
        by_name = {kind.name: kind for kind in self.total.theory.kinds}
        return [by_name[leg] for leg in tensor.legs if len(by_name[leg].components) > 1]

    def _tensor_shape(self, name: str) -> tuple[int, ...]:
        return tuple(len(kind.components) for kind in self._kinds_of(name))

    def linear_kernels(self, extra: Sequence[tuple[str, tuple[int, ...], list[Any]]] = ()) -> tuple[Any, ...]:
        """Scalar expressions of the parameters, and the arrays made of them: drift, noise, saddle, vertex tensors, `extra`."""
        free, theory = self.total.theory.free, self.total.theory
        assert isinstance(free, LinearFree)
        size = len(theory.fields)
        wanted: list[tuple[str, tuple[int, ...], list[Any]]] = [
            ("drift", (size, size), free.drift.flat()),
            ("noise", (size, size), free.noise.flat()),
            ("saddle", (), [self.total.saddle]),
            *extra,
        ]
        wanted += [(name, self._tensor_shape(name), self._entries(name)) for name, letter, _ in self.arrays if letter == "tensor"]
        expressions = dict.fromkeys(sp.sympify(e) for *_, entries in wanted for e in entries)
        names = {e: f"e{at}" for at, e in enumerate(expressions)}
        arguments = tuple(Argument(name, (), "parameter") for name in self.parameters)
        step = ScalarKernel("entries", arguments, tuple((name, e) for e, name in names.items()), "Entries of the arrays.")
        placed = [(name, shape, tuple(names[sp.sympify(e)] for e in entries)) for name, shape, entries in wanted]
        outputs = tuple(ArrayOutput(*each) for each in placed)
        inputs = tuple(Component(name) for name in self.parameters)
        title = "Drift A and noise G G^T at the saddle, and the vertices."
        return step, ArrayKernel("linear", arguments, "entries", inputs, outputs, title)

    def _entries(self, name: str) -> list[Any]:
        theory = self.total.theory
        tensor = next(t for t in theory.tensors(self.total.valence) if t.name == name)
        by_name = {kind.name: kind for kind in theory.kinds}
        return [tensor.entries.get(key, sp.S.Zero) for key in itertools.product(*(by_name[leg].components for leg in tensor.legs))]


def _declared(total: DiagramSum, name: str) -> tuple[str, str, tuple[int, ...]]:
    if name in ("at", "after"):
        return name, name, (0,)
    letter, _, kind = name.partition("_")
    if letter == "v":
        return name, "tensor", ()
    return name, letter, next(k.components for k in total.theory.kinds if k.name == kind)


def sum_kernel(plan: ContractionPlan, name: str, group: Sequence[Network]) -> Any:
    """The sum of networks with the same open times, with their coefficients."""
    axes = tuple(TIME.index(letter) for letter, _ in zip("ts", group[0].open_times))
    collected: dict[str, Any] = {}
    for each in group:
        value = plan.value(each)
        collected[value] = collected.get(value, sp.S.Zero) + each.coefficient
    expression = TensorExpr.zero(*axes)
    scalars: dict[str, Any] = {}
    for value, coefficient in collected.items():
        scalars |= {s.name: Argument(s.name, (), "parameter") for s in sorted(coefficient.free_symbols, key=str)}
        expression = expression + coefficient * Tensor(value, (TIME,) * len(axes))[axes]
    heads = (Argument(value, ("T",) * len(axes)) for value in collected)
    return TensorKernel(name, (*scalars.values(), *heads), expression, axes)
