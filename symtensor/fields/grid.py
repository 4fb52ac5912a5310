r"""Diagram sums on a time grid: every diagram a network of causal arrays, contracted by generated code.

For a theory whose propagators have no closed form (coinciding or complex rates), for propagators that are given as arrays
(coloured noise, time-dependent or dressed ones), and for the transient from an initial state. Integrals over times are
trapezoidal sums; R, which jumps at equal times, counts half there, once for each order of two times that no other line and no
order of the external times implies. Steps h, 2h and 4h give the extrapolated value and its error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symtensor._codegen import codegen
from symtensor.fields._grid_network import Network, network
from symtensor.fields._grid_program import GridProgram
from symtensor.fields._jax_side import jax_side
from symtensor.fields.errors import TheoryError
from symtensor.fields.free import LinearFree
from symtensor.fields.term import Term

if TYPE_CHECKING:
    from symtensor.fields.diagram_sum import DiagramSum

__all__ = ["CompiledGrid", "GridValue", "compile_grid"]

#: what the propagators have decayed to over the horizon
TAIL = 1e-8


@dataclass(frozen=True, eq=False)
class GridValue:
    """A diagram sum on a grid.

    Attributes:
        total: the sum of all orders at `times` (a number if there is one external time in the stationary state).
        orders: {loops: value}.
        error: estimate of the error of `total` by the quadrature: the distance to the value with doubled steps.
        tail: exp(-(slowest rate) x horizon), the size of what is left out before the first time of the grid.
    """

    total: Any
    orders: Mapping[int, Any]
    error: Any
    times: np.ndarray
    step: float
    horizon: float
    tail: float

    def __repr__(self) -> str:
        worst, size = float(np.max(self.error)), float(np.max(np.abs(self.total)))
        return f"<GridValue: largest value {size:.6g}, quadrature error {worst:.1g}, step {self.step:g}, tail {self.tail:.1g}>"


@dataclass(frozen=True, eq=False)
class CompiledGrid:
    """A diagram sum as a differentiable function of the parameters, on a time grid.

    Attributes:
        arguments: names of the parameters, in order.
        module: the generated module; its function `diagrams` takes the arrays themselves.
        times: the times of the result: differences to the earliest external time, or times since the initial state.
        step, horizon: distance of the times, and how far the grid reaches back before the earliest external time.
    """

    total: DiagramSum
    arguments: tuple[str, ...]
    module: Any
    times: np.ndarray
    step: float
    horizon: float
    points: int
    program: GridProgram
    initial: Any = None

    def __call__(self, *values: Any, **named: Any) -> Any:
        """The sum of all orders at `times`; jitted, and differentiable in every parameter."""
        return self._sum(self._values(values, named), None)

    def evaluate(self, *values: Any, **named: Any) -> GridValue:
        """The sum with its orders and errors, for numbers."""
        given = self._values(values, named)
        found = self._found(given, None)
        rate = float(np.min(np.linalg.eigvals(np.asarray(self.runner.linear(**given).drift, float)).real))
        return self._report(found, math.exp(-rate * self.horizon) if self.initial is None else 0.0)

    def with_propagators(self, response: Any, correlator: Any, *values: Any, **named: Any) -> GridValue:
        """The sum with other propagators: arrays (points, n, points, n), or (points, points), on the grid `all_times`.

        R[t, i, s, j] for t >= s, at t = s the limit from later t; C[t, i, s, j] for all t and s.
        """
        size = len(self.total.theory.fields)
        shape = (self.points, size, self.points, size)
        arrays = []
        for name, array in (("response", response), ("correlator", correlator)):
            if np.size(array) != math.prod(shape) or np.shape(array)[0] != self.points:
                raise TheoryError(f"the {name} has shape {np.shape(array)}; the grid needs {shape}, times as in all_times")
            arrays.append(array.reshape(shape))
        return self._report(self._found(self._values(values, named), tuple(arrays)), math.nan)

    @property
    def all_times(self) -> np.ndarray:
        """The times of the grid of the arrays, the earliest external time (or the initial state) being 0 .. -horizon."""
        return self.step * np.arange(self.points) - self.horizon

    @property
    def source(self) -> str:
        """The text of the generated module."""
        return self.module.source

    def write(self, path: str | Path) -> Path:
        """Write the module to a folder or file."""
        return self.module.write(path)

    @cached_property
    def runner(self) -> Any:
        """The numerical side; see `symtensor.numerics.time_grid.GridRunner`."""
        loaded = self.module.load()
        pinned = round(self.horizon / self.step)
        return jax_side("time_grid").GridRunner(
            loaded.linear, loaded.diagrams, self.arguments, self.program.arrays, self.program.orders, self.step, self.points,
            pinned, self.program.open_time, self.initial,
        )  # fmt: skip

    def _found(self, given: Mapping[str, Any], arrays: Any) -> dict[str, tuple[Any, Any]]:
        found = self.runner.run(given, arrays) if self.program.orders else {}
        count = len(self.times)
        return {k: (v[:count], e[:count]) if self.program.open_time else (v, e) for k, (v, e) in found.items()}

    def _sum(self, given: Mapping[str, Any], arrays: Any) -> Any:
        return self._saddle(given) + sum(value for value, _ in self._found(given, arrays).values())

    def _saddle(self, given: Mapping[str, Any]) -> Any:
        return self.runner.linear(**given).saddle if self.total.saddle != 0 else 0.0

    def _report(self, found: Mapping[str, tuple[Any, Any]], tail: float) -> GridValue:
        shape = self.times.shape if self.program.open_time else ()
        total, error = np.full(shape, 0.0), np.zeros(shape)
        orders = {loops: np.zeros(shape) for loops in range(self.total.lowest, self.total.loops + 1)}
        for name, (value, uncertain) in found.items():
            orders[int(name.rpartition("_")[2])] = np.asarray(value)
            total, error = total + np.asarray(value), error + np.asarray(uncertain)
        return GridValue(total, orders, error, self.times, self.step, self.horizon, tail)

    def _values(self, values: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        given = {**dict(zip(self.arguments, values)), **named}
        twice = set(named) & set(self.arguments[: len(values)])
        if len(values) > len(self.arguments) or set(given) != set(self.arguments) or twice:
            raise TypeError(
                f"{len(values)} values and names {', '.join(named) or 'none'} given; the function takes "
                f"{', '.join(self.arguments) or 'no arguments'}, each once"
            )
        return given

    def __repr__(self) -> str:
        return f"<CompiledGrid {self.total.title}: f({', '.join(self.arguments)}) at {len(self.times)} times, {self.points} points>"


def compile_grid(
    total: DiagramSum,
    times: Any,
    *,
    horizon: float | None = None,
    values: Mapping[str, Any] | None = None,
    initial: Any = None,
    memory_mb: float = 4096.0,
    name: str = "",
) -> CompiledGrid:
    """The function of a diagram sum on a time grid.

    Args:
        times: equidistant times from 0: those of the later leg after the earlier one, or since the initial state for legs
            at one time; for legs at one time in the stationary state only their distance (the step) is used.
        horizon: how far back the grid reaches from the earliest time, by default until the slowest propagator has decayed to
            1e-8; needs `values` of the parameters if that rate depends on them. With `initial`, the age of the state at time 0.
        initial: None for the stationary state; else the covariance (n, n) of a Gaussian state around the saddle, 0 for the
            saddle itself.
        memory_mb: refuse sums whose arrays need more.

    Raises: TheoryError for a static theory, more than two external times, delta functions, times that are not equidistant,
        or too much memory.
    """
    step, given = _checked(total, times)
    single = len(total.legs.moments) == 1
    reach = _reach(total, horizon, values, initial, single)
    pinned = 4 * math.ceil(reach / (4 * step) - 1e-9)
    count = len(given) if initial is not None or not single else 1
    points = pinned + 4 * math.ceil((count - 1) / 4) + 1
    networks = {loops: list(_networks(total, loops, initial is not None)) for loops in range(total.lowest, total.loops + 1)}
    program = GridProgram.of(total, networks, points)
    program.require_memory(memory_mb)
    open_time = program.open_time
    module = codegen().generate(program.spec(name))
    shown = given if open_time else np.zeros(0)
    return CompiledGrid(total, program.parameters, module, shown, step, pinned * step, points, program, initial)


def _checked(total: DiagramSum, times: Any) -> tuple[float, np.ndarray]:
    if not isinstance(total.theory.free, LinearFree):
        raise TheoryError(f"{total.theory.name} is a static theory: there is no time grid; use the closed form")
    if len(total.legs.moments) > 2:
        raise TheoryError(f"<{total.legs}> has {len(total.legs.moments)} times; the grid is for one or two, use the closed form")
    given = np.asarray(times, float)
    steps = np.diff(given)
    if given.ndim != 1 or len(given) < 5 or given[0] != 0 or not np.all(steps > 0) or np.ptp(steps) > 1e-9 * given[-1]:
        raise TheoryError("the times are to be 5 or more equidistant numbers that start at 0, such as numpy.linspace(0, 10, 501)")
    return float(given[-1] / (len(given) - 1)), given


def _reach(total: DiagramSum, horizon: float | None, values: Any, initial: Any, single: bool) -> float:
    if initial is not None:
        if single:
            return 0.0
        if not (horizon and horizon > 0):
            raise TheoryError("give horizon=.., the positive time between the initial state and the earlier leg")
        return float(horizon)
    if horizon is not None:
        if not horizon > 0:
            raise TheoryError(f"horizon={horizon}: the grid has to reach back, give a positive time")
        return float(horizon)
    free = total.theory.free
    assert isinstance(free, LinearFree)
    drift = free.drift.subs({s: values[s.name] for s in total.theory.parameters if values and s.name in values})
    if drift.free_symbols:
        missing = ", ".join(sorted(map(str, drift.free_symbols)))
        raise TheoryError(f"how far back the grid reaches depends on {missing}; give horizon=.., or typical values={{..}} of them")
    rate = float(np.min(np.linalg.eigvals(np.array(drift.evalf(20).tolist(), float)).real))
    return math.log(1 / TAIL) / rate


def _networks(total: DiagramSum, loops: int, transient: bool) -> Iterable[Network]:
    """The networks of the diagrams with a number of loops; nothing is integrated in closed form for this."""
    pinned = not (transient and len(total.legs.moments) == 1)
    for diagram in total.diagrams(loops):
        term = Term(total.theory, total.legs, diagram, total.valence)
        if total.keep is not None and not total.keep(term):
            continue
        if term.contact:
            raise TheoryError(f"{total.title} has terms proportional to delta(t), which no grid shows; use total.contact for them")
        found = network(term, pinned)
        if found is not None:
            yield found


