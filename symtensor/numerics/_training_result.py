"""What training runs of a model and its linearisation gave, by recorded step and seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from symtensor.numerics._training_input import TrainingError

__all__ = ["Decay", "Stop", "TrainingResult", "fit_decay"]

Array = NDArray[np.float64]
Metric = Literal["rms", "mse"]

#: a residual below this part of the first one is rounding, and takes no part in a fit
FLOOR = 1e-12
#: a fit of the decay needs this many records
LEAST_RECORDS = 4


@dataclass(frozen=True, slots=True)
class Stop:
    """A seed whose run was stopped at `step`, because its loss or function was not finite there."""

    seed: int
    step: int


@dataclass(frozen=True, slots=True, eq=False)
class Decay:
    r"""Fit of an exponential decay A exp(-s/T) to the residual |C'| (RMS over training inputs) of each seed.

    The SGD corollary assumes C'(F_lin(s), y) = O(exp(-s/T)) uniformly in s; this is that hypothesis, measured.

    Attributes
    ----------
    T : (S,) time of decay in steps, from the fitted slope -1/T of log |C'| against s; infinite or negative: no decay.
    T_se : (S,) its standard error from the scatter about the fit (successive records are not independent: a lower bound).
    r_squared : (S,) part of the variance of log |C'| that the line explains; 1 for a pure exponential.
    T_early, T_late : (S,) the same for the first and the second half of the records: several modes give T_late > T_early.
    constant : (S,) least A / |C'(0)| with |C'(s)| <= A exp(-s/T) at all records, for the fitted T.
    records : (S,) how many records were used (those above the rounding floor).
    """

    T: Array
    T_se: Array
    r_squared: Array
    T_early: Array
    T_late: Array
    constant: Array
    records: NDArray[np.int64]

    @property
    def exponential(self) -> NDArray[np.bool_]:
        """(S,) whether one exponential describes the run: decay, r_squared >= 0.9, and both halves within a factor 2 in T."""
        decays = (self.T > 0) & np.isfinite(self.T) & (self.T_early > 0) & (self.T_late > 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = self.T_late / self.T_early
        return decays & (self.r_squared >= 0.9) & (ratio <= 2) & (ratio >= 0.5)


def fit_decay(steps: Sequence[int], residual: Array) -> Decay:
    """Least squares of log residual against the step; steps (R,), residual (R, S).

    Raises
    ------
    TrainingError
        Fewer than 4 records with a residual that is positive and above rounding.

    Examples
    --------
    >>> s = np.arange(20)
    >>> decay = fit_decay(s, 3 * np.exp(-s / 5.0)[:, None])
    >>> round(float(decay.T[0]), 6), bool(decay.exponential[0])
    (5.0, True)
    """
    s = np.asarray(steps, dtype=np.float64)
    rows = [_fit_one(s, np.asarray(residual[:, k])) for k in range(residual.shape[1])]
    columns = [np.array(column) for column in zip(*rows)]
    return Decay(*columns[:6], records=columns[6].astype(np.int64))


def _fit_one(s: Array, values: Array) -> tuple[float, ...]:
    with np.errstate(invalid="ignore"):
        used = np.isfinite(values) & (values > FLOOR * values[0])
    # from the first record at the floor on, everything is rounding
    used &= np.cumsum(~used) == 0
    x, y = s[used], np.log(values[used])
    if len(x) < LEAST_RECORDS:
        raise TrainingError(f"{len(x)} records above rounding; a fit of the decay needs {LEAST_RECORDS}: record more steps")
    slope, intercept, error = _line(x, y)
    scatter, total = np.sum((y - intercept - slope * x) ** 2), np.sum((y - y.mean()) ** 2)
    half = len(x) // 2
    early, late = (_line(*part)[0] for part in ((x[: half + 1], y[: half + 1]), (x[half:], y[half:])))
    with np.errstate(divide="ignore", invalid="ignore"):
        times = [float(-1 / np.float64(value)) for value in (slope, early, late)]
        relative = float(error / np.float64(slope) ** 2)
    constant = float(np.exp(np.max(y - slope * x) - y[0]))
    return (times[0], relative, float(1 - scatter / total) if total > 0 else 0.0, times[1], times[2], constant, len(x))


def _line(x: Array, y: Array) -> tuple[float, float, float]:
    """Slope, intercept, standard error of the slope."""
    centred = x - x.mean()
    spread = np.sum(centred**2)
    slope = np.sum(centred * y) / spread
    intercept = y.mean() - slope * x.mean()
    left = len(x) - 2
    error = np.sqrt(np.sum((y - intercept - slope * x) ** 2) / left / spread) if left else np.inf
    return float(slope), float(intercept), float(error)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TrainingResult:
    r"""Deviation of the trained model from its linearisation trained by the same updates.

    All arrays have shape (R, S): recorded step, seed. Means run over inputs and outputs. A seed whose run was stopped has
    NaN from that step on; `quantile` counts it as infinite.

    Attributes
    ----------
    steps : (R,) recorded steps. seeds : (S,).
    deviation : RMS of F - F_lin on `compared_on` ("held-out inputs", or "training inputs" if none were given).
    train_deviation : the same on the training inputs.
    change, linear_change : RMS of F(s) - F(0) and of F_lin(s) - F(0), on the compared inputs: the scale of `deviation`.
    loss, linear_loss : mean of C over the training inputs.
    residual, linear_residual : RMS of C' over the training inputs.
    gradient_change : sqrt(eta) |grad F(theta(s)) - grad F(theta(0))|, RMS over compared inputs, or None.
    function, linear_function : (R, S, M) or (R, S, M, K) both functions on the compared inputs, or None.
    sharpness : eta w (b/N) times the largest eigenvalue of J^T C'' J at theta(0) of the first seed, N training inputs, b in a
        batch, w = 1 or 1/b: the linear model of a square loss diverges in the mean above 2. A lower bound (power iteration).
    stopped : seeds that were stopped, with their step.
    """

    steps: NDArray[np.int64]
    seeds: tuple[int, ...]
    deviation: Array
    train_deviation: Array
    change: Array
    linear_change: Array
    loss: Array
    linear_loss: Array
    residual: Array
    linear_residual: Array
    gradient_change: Array | None
    function: Array | None
    linear_function: Array | None
    sharpness: float
    stopped: tuple[Stop, ...]
    eta: float
    batch: int
    examples: int
    loss_name: str
    reduction: str
    sampling: str
    parameters: int
    compared_on: str

    @property
    def deviation_rms(self) -> Array:
        """(R, S) root of the mean square of F - F_lin."""
        return self.deviation

    @property
    def deviation_mse(self) -> Array:
        """(R, S) mean square of F - F_lin: its slope in the width is twice that of the RMS."""
        return self.deviation**2

    def at(self, step: int) -> int:
        """Index of a recorded step; raises TrainingError naming the recorded steps next to it."""
        return recorded_index(self.steps, step)

    def quantile(self, level: float, metric: Metric = "rms") -> Array:
        """(R,) quantile of the deviation over seeds; a stopped seed counts as infinite."""
        return seed_quantile(metric_values(self.deviation, metric), level)

    def decay(self, linear: bool = True) -> Decay:
        """The exponential fit to the residual of the linear model (the hypothesis of the SGD corollary), or of the model."""
        return fit_decay(self.steps.tolist(), self.linear_residual if linear else self.residual)

    def growth(self, level: float = 0.5, since: int | None = None) -> float:
        """Exponent g of deviation ~ s^g, of the quantile over seeds, for the recorded steps from `since` on.

        By default from the square root of the last step, the second half in log s. The corollary says 0: the deviation does
        not grow with the number of steps.
        """
        first = int(np.sqrt(self.steps[-1])) if since is None else since
        values = self.quantile(level)
        used = (self.steps >= max(first, 1)) & np.isfinite(values) & (values > 0)
        if used.sum() < 2:
            raise TrainingError(f"{int(used.sum())} usable records from step {first} on; two are required: record more steps")
        return _line(np.log(self.steps[used]), np.log(values[used]))[0]

    def __repr__(self) -> str:
        kind = "gradient descent" if self.batch == self.examples else f"batches of {self.batch} ({self.sampling})"
        rows = [
            f"{kind}, {self.examples} inputs, {self.loss_name} loss ({self.reduction}), eta = {self.eta:.6g}, "
            f"{self.parameters} parameters, {len(self.seeds)} seed(s)",
            f"mean-update eigenvalue at the start (unstable above 2): {self.sharpness:.4g}",
            f"{'step':>8} {'loss':>12} {'loss, linear':>12} {'RMS change':>12} {'RMS F - F_lin':>14}   medians, {self.compared_on}",
        ]
        shown = np.unique(np.linspace(0, len(self.steps) - 1, min(len(self.steps), 12)).round().astype(int))
        columns = [seed_quantile(a, 0.5) for a in (self.loss, self.linear_loss, self.change, self.deviation)]
        for r in shown:
            numbers = " ".join(f"{column[r]:>{width}.4g}" for column, width in zip(columns, (12, 12, 12, 14)))
            rows.append(f"{self.steps[r]:>8} {numbers}")
        rows += [f"seed {stop.seed} stopped at step {stop.step}: not finite" for stop in self.stopped]
        return "\n".join(rows)


def recorded_index(steps: NDArray[np.int64], step: int) -> int:
    """Index of a recorded step; raises TrainingError naming the nearest recorded steps."""
    found = np.flatnonzero(steps == step)
    if not len(found):
        near = steps[np.argsort(np.abs(steps - step), kind="stable")[:2]]
        raise TrainingError(f"step {step} was not recorded; the nearest are {', '.join(map(str, sorted(near.tolist())))}")
    return int(found[0])


def metric_values(rms: Array, metric: str) -> Array:
    """The deviation in the metric asked for; raises TrainingError for another name."""
    if metric not in ("rms", "mse"):
        raise TrainingError(f"metric = {metric!r}; required: 'rms' or 'mse' (its square)")
    return rms if metric == "rms" else rms**2


def seed_quantile(values: Array, level: float) -> Array:
    """Quantile over the last axis, with NaN (stopped) counted as infinite."""
    if not 0 <= level <= 1:
        raise TrainingError(f"level = {level}; a number between 0 and 1 is required")
    ordered = np.sort(np.where(np.isnan(values), np.inf, values), axis=-1)
    position = level * (ordered.shape[-1] - 1)
    below = int(np.floor(position))
    above = min(below + 1, ordered.shape[-1] - 1)
    low, high, part = ordered[..., below], ordered[..., above], position - below
    with np.errstate(invalid="ignore"):
        return np.where(part > 0, (1 - part) * low + part * high, low)


def masked(values: dict[str, Any], steps: NDArray[np.int64], stopped: NDArray[np.int64]) -> dict[str, Any]:
    """Arrays (R, S, ..) with NaN from the step on at which a seed was stopped (-1: never)."""
    gone = (stopped[None, :] >= 0) & (steps[:, None] >= stopped[None, :])
    return {
        name: None if array is None else np.where(gone.reshape(gone.shape + (1,) * (array.ndim - 2)), np.nan, array)
        for name, array in values.items()
    }
