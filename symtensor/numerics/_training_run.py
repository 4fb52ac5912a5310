"""The driver of a training run: seeds in groups that fit into memory, records in between, and what comes out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from symtensor.numerics._draws import key_words
from symtensor.numerics._ensemble import require_integer
from symtensor.numerics._training_input import (
    Data,
    Loss,
    Model,
    Plan,
    Start,
    TrainingError,
    read_data,
    read_loss,
    read_plan,
    read_seeds,
    read_start,
)
from symtensor.numerics._training_memory import seeds_at_once
from symtensor.numerics._training_result import Stop, TrainingResult, masked
from symtensor.numerics._training_step import (
    Measured,
    Moving,
    batch_indices,
    make_advance,
    make_measure,
    make_sharpness,
    over_seeds,
)

__all__ = ["Training", "TrainingWarning", "train", "training_draws", "warn"]

#: all steps are recorded up to this many, and about this many, evenly in log s, beyond
RECORDS = 64
#: the linearised mean update of a square loss grows where eta times the largest eigenvalue exceeds this
UNSTABLE = 2.0


class TrainingWarning(UserWarning):
    """Some seeds were stopped because their numbers were not finite, or the learning rate is too large for the linear model."""


def train(
    model: Model,
    theta0: Any,
    data: Any,
    *,
    steps: int,
    eta: float,
    batch: Literal["full", "single"] | int = "full",
    loss: str | Loss = "square",
    reduction: Literal["sum", "mean"] = "sum",
    sampling: Literal["independent", "epochs"] = "independent",
    seeds: int | Sequence[int] = 1,
    record: int | Sequence[int] | None = None,
    gradients: bool = False,
    functions: bool = False,
    memory_mb: float = 2048,
    progress: Callable[[int, int], None] | None = None,
) -> TrainingResult:
    r"""Gradient descent of `model` and of its linearisation at theta(0), with the same batches.

    Parameters
    ----------
    model : F = model(theta, x) of a pytree theta and one input x: a number, or a vector of K outputs.
    theta0 : the initial parameters, or an initialiser theta0(key) of a JAX key. Computed with in float64.
    data : (inputs (N, ..), targets (N,) or (N, K)), with held-out inputs (M, ..) as third entry, or a `datasets.Dataset`.
        Functions are compared on the held-out inputs, on the training inputs if there are none.
    steps, eta : number of updates; learning rate, positive.
    batch : "full" (gradient descent), "single" (one input a step), or inputs per step.
    loss : "square" |F - y|^2 / 2, "logistic" (y = +-1), "softmax" (one-hot y), or a JAX function C(F, y) of one input.
    reduction : "sum" of the gradients over the batch, as in the reference, or their "mean".
    sampling : "independent" draws each batch anew (without repetition inside), "epochs" takes shuffled passes.
    seeds : how many, or which; a seed gives the key of the initialiser, `jax.random.key(seed)`, and the draws of the batches.
        A run does not depend on the other seeds.
    record : every so many steps, or which steps; by default all up to 64, evenly in log s beyond. 0 and the last are added.
    gradients : also measure by how much the scaled gradients move (N_held-out K reverse passes per record).
    functions : keep both functions on the compared inputs.
    memory_mb : cap on an estimate of what is allocated; seeds run together as far as it allows.
    progress : called as progress(done, total), in records.

    Returns
    -------
    TrainingResult
        Deviations of functions, losses and residuals by recorded step and seed.

    Raises
    ------
    TrainingError (a ValueError), TypeError
        Whatever does not fit, by name, before any work; MemoryCapError (a ValueError) if one seed exceeds `memory_mb`.

    Warns
    -----
    TrainingWarning
        A seed whose function or loss is no longer finite stops there (seed and step are named; what was done is kept); or the
        linear model is unstable at this learning rate.

    Notes
    -----
    .. math:: \theta \to \theta - \eta \sum_{x} \nabla F(\theta)(x)\, C'(F(\theta)(x), y), \quad
        F_{lin}(s+1)(x) = F_{lin}(s)(x) - \sum_{x_s} \Theta_0(x, x_s)\, C'(F_{lin}(s)(x_s), y).

    F_lin is evaluated by a forward derivative along theta_lin - theta(0): memory is linear in the parameters.

    References
    ----------
    weak_correlations.md, section 1.

    Examples
    --------
    f = theta^2 with one input: one step from theta = 1 with C' = 1 - y = 1 and eta = 0.1 gives .64, the linear model .6, and
    the difference is C_{0,2} g^2 = eta^2/2 f'' f'^2 = .04.

    >>> jax.config.update("jax_enable_x64", True)
    >>> run = train(lambda t, x: x * t**2, jnp.array(1.0), ([1.0], [0.0]), steps=1, eta=0.1)
    >>> [round(float(d), 12) for d in run.deviation[:, 0]]
    [0.0, 0.04]
    """
    options = {"batch": batch, "loss": loss, "reduction": reduction, "sampling": sampling, "record": record, "memory_mb": memory_mb}
    training = Training(model, theta0, data, steps=steps, eta=eta, gradients=gradients, functions=functions, **options)
    result = training.run(read_seeds(seeds), progress)
    warn(result)
    return result


class Training:
    """A run that was read, checked and compiled once, for any number of groups of seeds of one size."""

    __slots__ = ("given", "memory_mb", "model", "named", "plan", "rate", "runner", "shown", "start", "together")

    def __init__(
        self,
        model: Model,
        theta0: Any,
        data: Any,
        *,
        steps: int,
        eta: float,
        batch: Any = "full",
        loss: str | Loss = "square",
        reduction: str = "sum",
        sampling: str = "independent",
        record: int | Sequence[int] | None = None,
        gradients: bool = False,
        functions: bool = False,
        memory_mb: float = 2048,
    ) -> None:
        if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
            raise TrainingError('float64 is off in JAX; call jax.config.update("jax_enable_x64", True) first')
        self.model, self.memory_mb, self.together = model, memory_mb, 0
        self.shown = _record_steps(require_integer("steps", steps, 1), record)
        self.rate = _rate(eta)
        self.given = read_data(data)
        self.plan = read_plan(batch, sampling, reduction, len(self.given.inputs))
        self.start = read_start(model, theta0, self.given)
        self.named, function = read_loss(loss, self.start.output)
        self.runner = _Runner(model, function, self.plan, self.start, self.given, self.rate, gradients, functions)

    def run(self, seeds: tuple[int, ...], progress: Callable[[int, int], None] | None = None) -> TrainingResult:
        """The result for these seeds; groups have the size of the first call's, so that nothing is compiled twice."""
        if self.start.shared and self.plan.full and len(seeds) > 1:
            raise TrainingError(f"{len(seeds)} seeds of one full-batch run: give an initialiser theta0(key), or smaller batches")
        self.together = self.together or seeds_at_once(
            self.model, self.start, self.given, self.plan, len(seeds), self.memory_mb
        )
        shown, total = self.shown, len(self.shown) * -(-len(seeds) // self.together)
        parts = []
        for first in range(0, len(seeds), self.together):
            group = seeds[first : first + self.together]
            collected = []
            for found in self.runner.records(group + seeds[:1] * (self.together - len(group)), shown):
                collected.append(found)
                if progress is not None:
                    progress(len(parts) * len(shown) + len(collected), total)
            parts.append(self.runner.collected(collected, shown, len(group)))
        return self._result(seeds, {name: _joined([part[name] for part in parts]) for name in parts[0]})

    def _result(self, seeds: tuple[int, ...], arrays: dict[str, Any]) -> TrainingResult:
        stopped, steps, plan = arrays.pop("stopped"), np.array(self.shown), self.plan
        return TrainingResult(
            steps=steps, seeds=seeds, **masked(arrays, steps, stopped), sharpness=self.runner.sharpness,
            stopped=tuple(Stop(seed, int(step)) for seed, step in zip(seeds, stopped) if step >= 0),
            eta=self.rate, batch=plan.batch, examples=plan.examples, loss_name=self.named, reduction=plan.reduction,
            sampling=plan.sampling, parameters=self.start.parameters, compared_on=self.given.compared_on,
        )  # fmt: skip


def training_draws(seed: int, steps: int, examples: int, batch: int = 1, sampling: str = "independent") -> NDArray[np.int64]:
    """The training inputs that a run of `seed` uses in each step, (steps, batch).

    Examples
    --------
    >>> draws = training_draws(3, steps=4, examples=6, batch=3, sampling="epochs")
    >>> [sorted(draws[2 * k : 2 * k + 2].ravel().tolist()) for k in range(2)]
    [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]]
    """
    plan = read_plan(batch, sampling, "sum", require_integer("examples", examples, 1))
    return batch_indices(require_integer("seed", seed, 0), require_integer("steps", steps, 1), plan).astype(np.int64)


def _rate(eta: Any) -> float:
    if isinstance(eta, bool) or not isinstance(eta, (int, float, np.floating, np.integer)):
        raise TypeError(f"eta = {eta!r}: a positive number is required")
    if not 0 < eta < math.inf:
        raise TrainingError(f"eta = {eta}: the learning rate must be positive and finite (with 0 nothing is trained)")
    return float(eta)


def _record_steps(steps: int, record: int | Sequence[int] | None) -> list[int]:
    """The recorded steps, increasing, with 0 and the last."""
    if record is None:
        if steps <= RECORDS:
            return list(range(steps + 1))
        found = np.rint(np.geomspace(1, steps, RECORDS)).astype(int).tolist()
    elif isinstance(record, (int, np.integer)):
        found = list(range(0, steps, require_integer("record", record, 1)))
    else:
        found = [require_integer("a recorded step", step, 0) for step in record]
        if found and max(found) > steps:
            raise TrainingError(f"step {max(found)} is to be recorded, but there are {steps} steps")
    return sorted({0, *found, steps})


class _Runner:
    """The compiled functions of one run; a group of seeds at a time."""

    __slots__ = ("_sharpness", "advance", "begin", "data", "eta", "functions", "gradients", "measure", "plan", "sharpness", "start")

    def __init__(
        self, model: Model, loss: Loss, plan: Plan, start: Start, data: Data, eta: float, gradients: bool, functions: bool
    ) -> None:
        self.plan, self.start, self.data, self.eta = plan, start, data, eta
        self.gradients, self.functions = gradients, functions
        self.advance = jax.jit(over_seeds(make_advance(model, loss, plan), start.shared, 3), donate_argnums=1)
        # what runs rarely is compiled with less effort: two to four times sooner, and products are library calls anyhow
        measured = over_seeds(make_measure(model, loss, gradients), start.shared, 2)
        self.measure = jax.jit(measured, compiler_options=_effort(0))
        self.begin = jax.jit(self._begin, compiler_options=_effort(1))
        self._sharpness = jax.jit(make_sharpness(model, loss), compiler_options=_effort(0))
        self.sharpness = math.nan

    def _begin(self, keys: jax.Array) -> tuple[Any, Moving]:
        """theta(0), and everything at its start."""
        theta0, size = self.start.draw(keys), len(keys)
        full = jax.tree.map(lambda a: jnp.broadcast_to(a, (size, *a.shape)), theta0) if self.start.shared else theta0
        moving = Moving(full, jax.tree.map(jnp.zeros_like, full), jnp.full(size, -1, dtype=jnp.int64))
        return theta0, moving

    def _measure_sharpness(self, theta0: Any) -> float:
        """Largest eigenvalue of the linearised mean update, at the initial parameters of the first seed."""
        first = theta0 if self.start.shared else jax.tree.map(lambda a: a[0], theta0)
        vector = np.random.default_rng(0).standard_normal((self.plan.examples, *self.start.output))
        found = float(self._sharpness(first, self.data.inputs, self.data.targets, vector))
        return found * self.eta * self.plan.weight * self.plan.batch / self.plan.examples

    def records(self, seeds: tuple[int, ...], shown: list[int]) -> Iterator[tuple[Any, ...]]:
        """(measured, function, linear function, stopped) at each recorded step, until no seed is left."""
        words = np.array([key_words(seed) for seed in seeds], dtype=np.uint32).reshape(len(seeds), 2)
        theta0, moving = self.begin(jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32"))
        count = 0 if self.plan.full else shown[-1]
        draws = np.stack([batch_indices(seed, count, self.plan) for seed in seeds])
        inputs, targets, held_out = self.data.inputs, self.data.targets, self.data.held_out
        if math.isnan(self.sharpness):
            self.sharpness = self._measure_sharpness(theta0)
        for before, step in zip([0, *shown], shown):
            if step > before:
                moving = self.advance(theta0, moving, draws, self.eta, before, step, inputs, targets)
            found, function, linear = self.measure(theta0, moving, self.eta, inputs, targets, held_out)
            if step == 0:  # one function, evaluated in two ways: what differs is rounding
                found = found._replace(deviation=found.deviation * 0, train_deviation=found.train_deviation * 0)
            finite = np.all([np.isfinite(np.asarray(values)) for values in found], axis=0)
            moving = moving._replace(stopped=jnp.where((moving.stopped < 0) & ~finite, step, moving.stopped))
            stopped = np.asarray(moving.stopped)
            kept = (np.asarray(function), np.asarray(linear)) if self.functions else (None, None)
            yield tuple(np.asarray(values) for values in found), *kept, stopped
            if (stopped >= 0).all():
                return

    def collected(self, found: list[tuple[Any, ...]], shown: list[int], seeds: int) -> dict[str, Any]:
        """Arrays (R, S, ..) of one group, NaN where no seed was left."""
        missing = len(shown) - len(found)

        def stacked(rows: list[Any]) -> Any:
            array = np.stack(rows)[:, :seeds]
            return np.concatenate([array, np.full((missing, *array.shape[1:]), np.nan)]) if missing else array

        arrays: dict[str, Any] = {name: stacked([row[0][i] for row in found]) for i, name in enumerate(Measured._fields)}
        if not self.gradients:
            arrays["gradient_change"] = None
        for place, name in ((1, "function"), (2, "linear_function")):
            arrays[name] = stacked([row[place] for row in found]) if self.functions else None
        return arrays | {"stopped": found[-1][3][:seeds]}


def _effort(level: int) -> dict[str, Any] | None:
    return {"xla_backend_optimization_level": level} if jax.default_backend() == "cpu" else None


def _joined(parts: list[Any]) -> Any:
    """Groups of seeds side by side: (R, S, ..), or (S,)."""
    if parts[0] is None:
        return None
    return np.concatenate(parts, axis=min(parts[0].ndim - 1, 1))


def warn(result: TrainingResult) -> None:
    """Say which seeds were stopped, or that the linear model is unstable."""
    advice = ", or take reduction='mean'" if result.reduction == "sum" and result.batch > 1 else ""
    stops, worst = result.stopped, result.sharpness
    text = ""
    if stops:
        named = ", ".join(f"seed {stop.seed} at step {stop.step}" for stop in stops[:5])
        more = f" and {len(stops) - 5} more" if len(stops) > 5 else ""
        text = f"loss or function not finite: {named}{more}; what was done before is kept. Lower eta"
    elif result.loss_name == "square" and worst > UNSTABLE:
        text = (
            f"the largest eigenvalue of the linear model's mean update is {worst:.3g} > 2: it diverges. "
            f"Divide eta by {worst / UNSTABLE:.2g} or more"
        )
    if text:
        warnings.warn(text + advice, TrainingWarning, stacklevel=3)
