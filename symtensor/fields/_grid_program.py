"""The kernels of a diagram sum on a time grid: arrays of the linear equation and the vertices, contractions, sums."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor._codegen import codegen
from symtensor.derivation.kernels import (
    Argument,
    ArrayKernel,
    ArrayOutput,
    Assignment,
    Component,
    CompositeKernel,
    ScalarKernel,
    TensorKernel,
)
from symtensor.fields._grid_network import Network
from symtensor.fields._grid_plan import TIME, ContractionPlan
from symtensor.fields.errors import TheoryError
from symtensor.fields.free import LinearFree
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
    sums: tuple[TensorKernel, ...]

    @classmethod
    def of(cls, total: DiagramSum, networks: Mapping[int, Sequence[Network]], points: int) -> GridProgram:
        """Plan the contractions of the networks, by number of loops, on a grid of `points` times."""
        plan = ContractionPlan(points)
        sums = []
        used: dict[str, None] = {}
        every = [each for group in networks.values() for each in group]
        open_time = any(each.open_times for each in every)
        for loops, group in networks.items():
            used |= {factor.array: None for each in group for factor in each.factors}
            if group:
                sums.append(_sum_kernel(plan, loops, group, open_time))
        arrays = tuple(_declared(total, name) for name in used)
        parameters = tuple(symbol.name for symbol in total.theory.parameters)
        taken = {name for name, *_ in arrays} | {"drift", "noise", "saddle"} | {call.targets[0] for call in plan.calls}
        clash = set(parameters) & taken
        if clash:
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
        kernels = (*self._linear(), *self.plan.kernels.values(), *self.sums, *([self._diagrams()] if self.sums else []))
        title = f"{total.title}, on a time grid."
        return codegen().ModuleSpec(named, title, kernels, statement=" ".join(total.theory.conventions), reference_points=False)

    def _diagrams(self) -> CompositeKernel:
        scalars = tuple(Argument(name, (), "parameter") for name in self.parameters)
        arrays = tuple(Argument(name, self._shape(name, letter, parts)) for name, letter, parts in self.arrays)
        calls = [Assignment((k.name,), k.name, tuple(a.name for a in k.arguments)) for k in self.sums]
        returns = tuple(Argument(name, ("T",) if self.open_time else ()) for name in self.orders)
        arguments = (*scalars, *arrays)
        return CompositeKernel("diagrams", arguments, (*self.plan.calls, *calls), returns, "The orders by number of loops.")

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

    def _linear(self) -> tuple[Any, ...]:
        """Scalar expressions of the parameters, and the arrays made of them: drift, noise, saddle, vertex tensors."""
        free, theory = self.total.theory.free, self.total.theory
        assert isinstance(free, LinearFree)
        size = len(theory.fields)
        wanted: list[tuple[str, tuple[int, ...], list[Any]]] = [
            ("drift", (size, size), list(free.drift)),
            ("noise", (size, size), list(free.noise)),
            ("saddle", (), [self.total.saddle]),
        ]
        wanted += [(name, self._tensor_shape(name), self._entries(name)) for name, letter, _ in self.arrays if letter == "tensor"]
        expressions = dict.fromkeys(sp.sympify(e) for *_, entries in wanted for e in entries)
        names = {e: f"e{at}" for at, e in enumerate(expressions)}
        arguments = tuple(Argument(name, (), "parameter") for name in self.parameters)
        step = ScalarKernel("entries", arguments, tuple((name, e) for e, name in names.items()), "Entries of the arrays.")
        outputs = tuple(ArrayOutput(name, shape, tuple(names[sp.sympify(e)] for e in entries)) for name, shape, entries in wanted)
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


def _sum_kernel(plan: ContractionPlan, loops: int, group: Sequence[Network], open_time: bool) -> TensorKernel:
    """The sum of the diagrams of one order with their coefficients."""
    axis = (TIME.index("t"),) if open_time else ()
    expression = TensorExpr.zero(*axis)
    heads: dict[str, Argument] = {}
    scalars: dict[str, Argument] = {}
    collected: dict[str, Any] = {}
    for each in group:
        name = plan.value(each)
        collected[name] = collected.get(name, sp.S.Zero) + each.coefficient
    for name, coefficient in collected.items():
        head = Tensor(name, (TIME,) if open_time else ())
        heads[name] = Argument(name, ("T",) if open_time else ())
        scalars |= {s.name: Argument(s.name, (), "parameter") for s in sorted(coefficient.free_symbols, key=str)}
        expression = expression + coefficient * head[axis]
    arguments = (*scalars.values(), *heads.values())
    return TensorKernel(f"order_{loops}", arguments, expression, axis, f"Diagrams with {loops} loops.")
