"""Simulation of stochastic equations dx = f(x) dt + G(x) dW (Ito) in their stationary state.

Every trajectory runs at the steps h and 2h on the same noise, so that the error of the step is measured with little scatter and
extrapolated away, and beside the linear equation about a stable fixed point, whose means are exact and take the place of its noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from symtensor.numerics import _langevin_statistics as statistics
from symtensor.numerics._ensemble import MemoryCapError, require_integer
from symtensor.numerics._langevin_model import Langevin, LangevinError, read_langevin
from symtensor.numerics._langevin_run import Plan, run_group
from symtensor.numerics._langevin_statistics import GroupMeans, Measured

__all__ = ["LangevinError", "LangevinResult", "Measured", "MemoryCapError", "simulate_langevin"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class LangevinResult:
    """Estimates at vanishing step; each is a `Measured` with `.value`, `.se`, `.step_error`, `.gain` and `.z(prediction)`.

    Attributes
    ----------
    times : lags t, from 0. step : the smaller step h. escaped : trajectories that left the bounds and were taken out, of `walkers`.
    control_z : largest |z| of the linear process against its exact means; above about 5 the run is not to be trusted.
    """

    times: Array
    step: float
    walkers: int
    escaped: int
    seed: int
    control_z: float
    model: Langevin
    names: tuple[str, ...]
    exponents: tuple[tuple[int, ...], ...]
    counts: NDArray[np.int64]
    best: GroupMeans
    fine: GroupMeans
    plain: GroupMeans

    def __repr__(self) -> str:
        steps = f"{self.step:.4g} and {2 * self.step:.4g}"
        rows = [
            f"{self.walkers} trajectories at the steps {steps}, {self.escaped} taken out, seed {self.seed}",
            f"linear process against its exact means: largest |z| = {self.control_z:.2f}",
        ]
        mean, variance = self.mean, self.covariance
        for i, name in enumerate(self.names[:8]):
            first = f"{name}: mean {mean.value[i]:.6g} +- {mean.se[i]:.2g}"
            second = f"variance {variance.value[i, i]:.6g} +- {variance.se[i, i]:.2g}"
            rows.append(f"{first}, {second} (the step alone: {variance.step_error[i, i]:+.2g})")
        return "\n".join(rows)

    def estimate(self, function: Callable[[GroupMeans], Array]) -> Measured:
        """Any function of the means: it gets a `GroupMeans` of replicates (first axis) and must keep that axis."""
        return statistics.measured(function, self.best, self.fine, self.plain, self.counts)

    @cached_property
    def mean(self) -> Measured:
        """<x>, shape (d,)."""
        size, point = self.model.size, self.model.point
        return self.estimate(lambda means: means.moments[:, :size] + point)

    @cached_property
    def correlation(self) -> Measured:
        """<x_i(t) x_j(0)> - <x_i><x_j>, shape (len(times), d, d)."""
        return self.estimate(lambda means: statistics.correlation(means, self.model.size))

    @cached_property
    def covariance(self) -> Measured:
        """The correlation at equal times, shape (d, d)."""
        return self.estimate(lambda means: statistics.correlation(means, self.model.size)[:, 0])

    @cached_property
    def response(self) -> Measured:
        """d<x_i(t)>/dh_j for a field h delta(t) added to the drift at time 0: (len(times), d, d), the unit matrix at t = 0."""
        if self.best.tangents.ndim < 4:
            raise LangevinError("responses were not simulated; ask for them, response=True")
        unit = np.zeros((len(self.times), self.model.size, self.model.size))
        unit[0] = np.eye(self.model.size)
        return self.estimate(lambda means: means.tangents + unit)

    def cumulant(self, powers: Any) -> Measured:
        """The joint cumulant at equal times of {name or index: power}; the total must not exceed `degree`."""
        wanted = self._powers(powers)
        shift = float(self.model.point[wanted.index(1)]) if sum(wanted) == 1 else 0.0
        return self.estimate(lambda means: statistics.cumulant(means, self.exponents, wanted) + shift)

    def moment(self, powers: Any) -> Measured:
        """<prod x_i^k_i> at equal times of {name or index: power}; the total must not exceed `degree`."""
        wanted = self._powers(powers)
        return self.estimate(lambda means: statistics.moment_about(means, self.exponents, wanted, self.model.point))

    def _powers(self, powers: Any) -> tuple[int, ...]:
        names = {name: i for i, name in enumerate(self.names)}
        try:
            wanted = statistics.by_names(powers, names, self.model.size)
        except (KeyError, IndexError) as error:
            raise LangevinError(f"{error} is no variable; these are {', '.join(self.names)}") from None
        if wanted not in self.exponents:
            degree = sum(self.exponents[-1])
            raise LangevinError(f"the powers {powers} were not measured; moments up to degree {degree} were: raise degree=..")
        return wanted


def simulate_langevin(
    drift: Any,
    noise: Any,
    *,
    step: float,
    times: Any,
    walkers: int,
    duration: float,
    seed: int,
    variables: Any = None,
    parameters: Mapping[Any, Any] | None = None,
    point: Any = None,
    degree: int = 2,
    response: bool = False,
    bounds: tuple[Any, Any] | None = None,
    burn_in: float | None = None,
    groups: int = 64,
    memory_mb: float = 1024,
    progress: Callable[[int, int], None] | None = None,
) -> LangevinResult:
    r"""Simulate dx = f(x) dt + G(x) dW (Ito) and estimate its stationary moments, correlations and responses.

    Parameters
    ----------
    drift : f: SymPy expressions (one, a sequence, or a mapping by variable) with `variables` and `parameters`; or a JAX function
        of x with shape (d, trajectories), to be evaluated column by column.
    noise : G: numbers or expressions, as a matrix with one row a variable or as a diagonal; or a function to (d, m, trajectories).
    step : the largest h allowed; the h used divides half the spacing of `times`. Weak order 2 if G is constant, else 1.
    times : equally spaced lags from 0, at least two.
    walkers : trajectories in all, split evenly over `groups` (rounded up). duration : measured time of each.
    point : stable fixed point about which the linear process is taken; 0 by default. It need not be exact.
    degree : highest total power of equal-time moments. response : whether to propagate tangents.
    bounds : (low, high) in x, numbers or one for each variable; a trajectory that leaves is taken out of all means and counted, so
        that the means are those of a metastable state before escape. Without bounds divergence is an error.
    burn_in : time before measurement; by default 12 relaxation times of the slowest linear mode.
    seed : the same seed gives the same numbers on one kind of device and one version of JAX.
    progress : called as progress(groups_done, groups).

    Raises
    ------
    LangevinError (a ValueError)
        The equation, the point, the times or the bounds do not fit; trajectories diverged or nearly all escaped.
    MemoryCapError (a ValueError)
        One group needs more than `memory_mb`.
    TypeError
        A function without a JAX counterpart.

    Notes
    -----
    With N groups the standardised deviations follow Student's t with N - 1 degrees of freedom, closely. `step_error` tells the
    error at h; what extrapolation leaves is of the next order, so that a step is small enough if `step_error` is a few `se`.
    The response is the mean derivative of the path with respect to its starting point.

    Examples
    --------
    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> run = simulate_langevin(-x, sp.sqrt(2), variables=[x], step=0.1, times=[0, 0.5], walkers=64, duration=2, seed=1)
    >>> bool(abs(run.covariance.value[0, 0] - 1) < 1e-10)  # linear: the control is the process itself
    True
    """
    if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise ValueError('float64 is off in JAX; call jax.config.update("jax_enable_x64", True) first')
    seed = require_integer("seed", seed, 0)
    groups, walkers = require_integer("groups", groups, 8), require_integer("walkers", walkers, 1)
    model = read_langevin(drift, noise, variables, parameters, point)
    lags = _lags(times)
    degree = require_integer("degree", degree, 2)
    plan = _plan(model, lags, step, duration, burn_in, -(-walkers // groups), degree, response, _bounds(bounds, model))
    _require_memory(plan, model.size, memory_mb)
    run, key = run_group(model, plan), jax.random.key(seed, impl="rbg")  # this generator compiles in a third of the time
    found, counts = [], []
    for group in range(groups):
        sums, count = run(jax.random.fold_in(key, group))
        found.append([[np.asarray(part) for part in sums_of] for sums_of in sums])
        counts.append(int(count))
        _require_survivors(counts, plan, groups)
        if progress is not None:
            progress(group + 1, groups)
    stacked = [GroupMeans(*(np.stack([row[path][i] for row in found]) for i in range(3))) for path in range(3)]
    single = isinstance(variables, str) or hasattr(variables, "free_symbols")
    names = [variables] if single else variables if variables is not None else [f"x{i}" for i in range(model.size)]
    return _result(model, plan, lags, stacked, np.array(counts), seed, tuple(map(str, names)))


def _result(
    model: Langevin, plan: Plan, times: Array, stacked: list[GroupMeans], counts: NDArray[np.int64], seed: int,
    names: tuple[str, ...],
) -> LangevinResult:  # fmt: skip
    fine, coarse, linear = stacked
    exact = statistics.exact_linear_means(model, plan.exponents, times, plan.response)
    weak_order = 2 if model.noise is None else 1
    best = fine.mapped(lambda a, b: a + (a - b) / (2.0**weak_order - 1.0), coarse)
    walkers = plan.walkers * len(counts)
    return LangevinResult(
        times, plan.step, walkers, int(walkers - counts.sum()), seed, statistics.worst_control(linear, exact), model, names,
        plan.exponents, counts, best.mapped(statistics.controlled, linear, exact),
        fine.mapped(statistics.controlled, linear, exact), best,
    )  # fmt: skip


def _lags(times: Any) -> Array:
    lags = np.asarray(times, float)
    regular = lags.ndim == 1 and len(lags) > 1 and np.all(np.isfinite(lags)) and lags[1] > 0
    if not regular or not np.allclose(lags, lags[1] * np.arange(len(lags)), rtol=1e-9, atol=1e-12 * lags[-1]):
        raise LangevinError("the times must be equally spaced from 0, at least two of them, for example numpy.linspace(0, 5, 21)")
    return lags[1] * np.arange(len(lags))


def _plan(
    model: Langevin, lags: Array, step: float, duration: float, burn_in: float | None, walkers: int, degree: int, response: bool,
    bounds: Any,
) -> Plan:  # fmt: skip
    wait = 12.0 / model.slowest if burn_in is None else burn_in
    for name, value, least in (("step", step, 0.0), ("duration", duration, 0.0), ("burn_in", wait, -1.0)):
        if not (math.isfinite(value) and value > least):
            raise LangevinError(f"{name} = {value} must be a positive number")
    spacing, count = float(lags[1]), len(lags) - 1
    pairs = max(1, math.ceil(spacing / (2 * step) - 1e-9))
    indices = range(model.size)
    chosen = (c for n in range(1, degree + 1) for c in itertools.combinations_with_replacement(indices, n))
    exponents = tuple(tuple(map(c.count, indices)) for c in chosen)
    records = count * max(1, math.ceil(duration / (spacing * count) - 1e-9))
    return Plan(walkers, spacing / (2 * pairs), pairs, count, math.ceil(wait / spacing), records, exponents, response, bounds)


def _bounds(bounds: Any, model: Langevin) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    if bounds is None:
        return None
    try:
        low, high = (np.broadcast_to(np.asarray(part, float), (model.size,)) for part in bounds)
    except (TypeError, ValueError):
        size = model.size
        raise LangevinError(f"the bounds {bounds!r} must be a pair (low, high) of numbers or of {size} numbers each") from None
    if not np.all((low < model.point) & (model.point < high)):
        raise LangevinError(f"the point {model.point.tolist()} must lie between the bounds {low.tolist()} and {high.tolist()}")
    return tuple(map(float, low)), tuple(map(float, high))


def _require_memory(plan: Plan, size: int, memory_mb: float) -> None:
    lagged = (plan.lags + 1) * size * (1 + 2 * size)
    floats = plan.walkers * (3 * (2 * lagged + 2 * len(plan.exponents)) + 8 * size * (size + 2))
    if floats * 8 > memory_mb * 2**20:
        raise MemoryCapError(
            f"a group of {plan.walkers} trajectories needs about {floats * 8 / 2**20:.0f} MB, more than memory_mb = {memory_mb}; "
            "use more groups, fewer times, or fewer trajectories with a longer duration"
        )


def _require_survivors(counts: list[int], plan: Plan, groups: int) -> None:
    lost = plan.walkers - counts[-1]
    if plan.bounds is None and lost:
        raise LangevinError(
            f"{lost} of {plan.walkers} trajectories diverged in group {len(counts)} of {groups}; use a smaller step, or "
            "bounds=(low, high) if the state is metastable"
        )
    if 2 * counts[-1] < plan.walkers:
        raise LangevinError(
            f"{lost} of {plan.walkers} trajectories left the bounds in group {len(counts)} of {groups}: the state is not "
            "metastable over the time of the simulation; use wider bounds, weaker noise, or a shorter duration"
        )
