r"""The deviation from the linearisation as a function of the width: widths x seeds, quantiles, slopes.

The learning rate of width n is eta_0 n^alpha. Widths are independent: a seed is mixed with the width before use.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from symtensor.numerics._checkpoint import prepare_folder
from symtensor.numerics._ensemble import require_integer
from symtensor.numerics._training_input import TrainingError, read_seeds
from symtensor.numerics._training_result import Metric, Stop, metric_values, recorded_index, seed_quantile
from symtensor.numerics._training_run import TrainingWarning
from symtensor.numerics._training_store import KEPT, WidthRuns

__all__ = ["ScanSlope", "WidthScan", "width_scan"]

Array = NDArray[np.float64]
#: resamples of the seeds behind a confidence interval
RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class ScanSlope:
    """Slope of the log of a quantile of the deviation against log n, with a percentile bootstrap interval over seeds.

    Attributes
    ----------
    value, low, high : fit over `widths`, and its interval at `confidence`.
    curvature : second derivative in log n of a quadratic through all widths of the scan (nan with fewer than 3).
    level, metric, step : of which quantile, metric and step.
    """

    value: float
    low: float
    high: float
    curvature: float
    level: float
    metric: str
    step: int
    widths: tuple[int, ...]
    confidence: float

    def __str__(self) -> str:
        first, last = self.widths[0], self.widths[-1]
        return (
            f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}] (q{100 * self.level:g} of the {self.metric.upper()} deviation, "
            f"step {self.step}, n in [{first}, {last}])"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WidthScan:
    """Training runs by width: arrays (W, R, S) for width, recorded step and seed; see `TrainingResult` for their meaning.

    Attributes
    ----------
    widths : (W,) increasing. steps : (R,). seeds : (S,), the seeds asked for.
    etas : (W,) eta_0 n^alpha. parameters : (W,) their number. sharpness : (W,).
    stopped : by width, the seeds that were stopped with their step; they are NaN from there on, and infinite in quantiles.
    resumed : runs taken over from a store.
    """

    widths: tuple[int, ...]
    steps: NDArray[np.int64]
    seeds: tuple[int, ...]
    eta0: float
    alpha: float
    etas: Array
    parameters: tuple[int, ...]
    sharpness: Array
    deviation: Array
    train_deviation: Array
    change: Array
    linear_change: Array
    loss: Array
    linear_loss: Array
    residual: Array
    linear_residual: Array
    stopped: dict[int, tuple[Stop, ...]]
    compared_on: str
    resumed: int

    def samples(self, step: int, metric: Metric = "rms") -> dict[int, Array]:
        """Deviations at a recorded step by width, one per seed: what `symtensor.verify.verify_samples` takes.

        Raises TrainingError if a seed was stopped by then: a missing sample would bias every quantile.

        ``verify_samples(scan.samples(20), claim="1/n")`` is the verdict on F - F_lin = O(1/n) after 20 steps.
        """
        r = recorded_index(self.steps, step)
        values = metric_values(self.deviation[:, r], metric)
        for n, row in zip(self.widths, values):
            if np.isnan(row).any():
                lost = int(np.isnan(row).sum())
                raise TrainingError(
                    f"{lost} of {len(row)} seeds at width {n} were stopped by step {step}; lower eta0, or take an earlier step"
                )
        return dict(zip(self.widths, values))

    def quantile(self, level: float, metric: Metric = "rms") -> Array:
        """(W, R) quantile of the deviation over seeds; stopped seeds count as infinite."""
        return seed_quantile(metric_values(self.deviation, metric), level)

    def slope(
        self,
        step: int,
        metric: Metric = "rms",
        level: float = 0.5,
        *,
        widths: Sequence[int] | None = None,
        confidence: float = 0.95,
        seed: int = 0,
    ) -> ScanSlope:
        """Slope of log quantile against log n over the upper half of the widths (or over `widths`), bootstrap interval.

        Raises
        ------
        TrainingError
            Fewer than two widths, or a quantile that is 0 or infinite at one of them.

        References
        ----------
        weak_correlations.md, section 9 (medians, upper half of the grid, bootstrap 95 %).
        """
        if not 0 < confidence < 1:
            raise TrainingError(f"confidence = {confidence}; a number strictly between 0 and 1 is required")
        r = recorded_index(self.steps, step)
        values = metric_values(self.deviation[:, r], metric)
        chosen = self._chosen(widths)
        log_n, logs = np.log(np.array(self.widths, float)), _log_quantile(values, level)
        if not np.isfinite(logs[chosen]).all():
            bad = self.widths[chosen[int(np.argmin(np.isfinite(logs[chosen])))]]
            raise TrainingError(
                f"the quantile {level} at step {step}, width {bad} is 0 or infinite; at step 0 both functions agree, "
                "and stopped seeds count as infinite"
            )
        resampled = np.stack([_resampled(values[w], level, seed, n) for w, n in ((w, self.widths[w]) for w in chosen)], axis=-1)
        slopes = np.polynomial.polynomial.polyfit(log_n[chosen] - log_n[chosen].mean(), resampled.T, 1)[1]
        low, high = np.quantile(slopes, [(1 - confidence) / 2, (1 + confidence) / 2])
        value = float(np.polynomial.polynomial.polyfit(log_n[chosen] - log_n[chosen].mean(), logs[chosen], 1)[1])
        every = np.isfinite(logs)
        quadratic = every.sum() > 2
        centre = log_n[every].mean() if quadratic else 0.0
        curvature = 2 * np.polynomial.polynomial.polyfit(log_n[every] - centre, logs[every], 2)[2] if quadratic else np.nan
        used = tuple(self.widths[w] for w in chosen)
        return ScanSlope(value, float(low), float(high), float(curvature), level, metric, step, used, confidence)

    def _chosen(self, widths: Sequence[int] | None) -> list[int]:
        """Places of the widths of a fit: those given, or the upper half, at least two."""
        if widths is None:
            chosen = list(range(min(len(self.widths) // 2, max(len(self.widths) - 2, 0)), len(self.widths)))
        else:
            missing = [n for n in widths if n not in self.widths]
            if missing:
                raise TrainingError(f"width {missing[0]} is not in the scan; its widths are {', '.join(map(str, self.widths))}")
            chosen = sorted({self.widths.index(n) for n in widths})
        if len(chosen) < 2:
            raise TrainingError(f"{len(chosen)} width(s) for a slope; at least two are required")
        return chosen

    def __repr__(self) -> str:
        rule = f"{self.eta0:g}" if self.alpha == 0 else f"{self.eta0:g} n^{self.alpha:g}"
        rows = [f"{len(self.widths)} widths, {len(self.seeds)} seeds, eta = {rule}; median RMS F - F_lin, {self.compared_on}"]
        shown = np.unique(np.linspace(0, len(self.steps) - 1, min(len(self.steps), 6)).round().astype(int))
        rows.append(f"{'width':>8} " + " ".join(f"{'s = ' + str(self.steps[r]):>12}" for r in shown))
        medians = self.quantile(0.5)
        for w, n in enumerate(self.widths):
            rows.append(f"{n:>8} " + " ".join(f"{medians[w, r]:>12.4g}" for r in shown))
        for n, stops in self.stopped.items():
            rows += [f"width {n}: seed {stop.seed} stopped at step {stop.step}" for stop in stops]
        return "\n".join(rows)


def _log_quantile(values: Array, level: float) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(seed_quantile(values, level))


def _resampled(values: Array, level: float, seed: int, width: int) -> Array:
    """Log quantile of RESAMPLES draws of the seeds with replacement."""
    drawn = np.random.default_rng([seed, width]).integers(0, len(values), (RESAMPLES, len(values)))
    logs = _log_quantile(values[drawn], level)
    return np.where(np.isfinite(logs), logs, np.log(np.finfo(float).max) * np.sign(logs))


def width_scan(
    family: Callable[[int], tuple[Callable[..., Any], Callable[[jax.Array], Any]]],
    widths: Sequence[int],
    data: Any,
    *,
    steps: int,
    eta0: float,
    alpha: float = 0.0,
    seeds: int | Sequence[int] = 20,
    record: int | Sequence[int] | None = None,
    store: Path | str | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> WidthScan:
    r"""Train the models of a family and their linearisations, with learning rate eta_0 n^alpha at width n.

    Parameters
    ----------
    family : family(n) -> (model, initialiser), as `train` takes them.
    widths : distinct positive integers, taken in increasing order.
    data, steps, record : as in `train`.
    eta0, alpha : learning rate eta_0 n^alpha.
    seeds : how many, or which; widths are independent, a seed is mixed with the width.
    store : a folder. Finished runs are kept there: an interrupted scan continues, more widths or seeds extend it. Another
        model, other data or settings are refused.
    progress : called as progress(done, total), in runs.
    options : batch, loss, reduction, sampling, memory_mb, as in `train`.

    Raises
    ------
    TrainingError, TypeError
        As in `train`, before the width in question is run; StateError, StateMismatch (ValueErrors) for a store that cannot be used.

    Notes
    -----
    With m(n)-exponential weak correlation F - F_lin = O(n^alpha / m(n)): for the RMS a slope of at most alpha - 1 in log n
    if m = n, and twice that for the mean square (MSE). State the metric with every slope.

    References
    ----------
    weak_correlations.md, sections 3 and 10.

    Examples
    --------
    f = v.w x / sqrt(n) moves away from its linearisation by eta^2 f (f - y)^2 / n in one step:

    >>> jax.config.update("jax_enable_x64", True)
    >>> def family(n):
    ...     model = lambda theta, x: theta[0] @ theta[1] * x / n**0.5
    ...     return model, lambda key: jax.random.normal(key, (2, n))
    >>> scan = width_scan(family, [64, 256, 1024], ([1.0], [0.0]), steps=1, eta0=0.1, seeds=51)
    >>> slope = scan.slope(1, "rms")
    >>> slope.low < -1 < slope.high, abs(scan.slope(1, "mse").value - 2 * slope.value) < 1e-9
    (True, True)
    """
    sizes, numbers = _read_widths(widths), read_seeds(seeds)
    _refuse_options(options)
    folder = None if store is None else Path(store)
    if folder is not None:
        prepare_folder(folder)
    total, before = len(sizes) * len(numbers), 0
    results: list[WidthRuns] = []
    for n in sizes:
        model, initialiser = family(n)
        settings = {"data": data, "steps": steps, "eta": eta0 * float(n) ** alpha, "record": record, **options}
        runs = WidthRuns(n, model, initialiser, settings, folder)
        runs.complete(numbers, lambda done, before=before: progress(before + done, total) if progress else None)
        before += len(numbers)
        results.append(runs)
    _warn_stopped(results, numbers)
    return _assembled(results, sizes, numbers, float(eta0), float(alpha))


def _read_widths(widths: Sequence[int]) -> tuple[int, ...]:
    found = sorted(require_integer("a width", n, 1) for n in widths)
    if not found or len(set(found)) < len(found):
        raise TrainingError(f"widths = {list(widths)[:8]}: at least one, and distinct, are required")
    return tuple(found)


def _refuse_options(options: dict[str, Any]) -> None:
    known = ("batch", "loss", "reduction", "sampling", "memory_mb")
    unknown = sorted(options.keys() - set(known))
    if unknown:
        raise TypeError(f"width_scan has no option {unknown[0]!r}; it passes on {', '.join(known)}")


def _stops(runs: WidthRuns, seeds: tuple[int, ...]) -> tuple[Stop, ...]:
    return tuple(Stop(seed, int(step)) for seed, step in zip(seeds, runs.array("stopped", seeds)[0]) if step >= 0)


def _warn_stopped(results: list[WidthRuns], seeds: tuple[int, ...]) -> None:
    stopped = [(runs.width, stops) for runs in results if (stops := _stops(runs, seeds))]
    if stopped:
        named = ", ".join(f"{len(stops)} at width {n} (seed {stops[0].seed} at step {stops[0].step})" for n, stops in stopped)
        text = f"loss or function not finite, runs stopped: {named}; what was done before is kept. Lower eta0"
        warnings.warn(text, TrainingWarning, stacklevel=3)


def _assembled(
    results: list[WidthRuns], sizes: tuple[int, ...], seeds: tuple[int, ...], eta0: float, alpha: float
) -> WidthScan:
    arrays = {name: np.stack([runs.array(name, seeds) for runs in results]) for name in KEPT}
    stopped = {runs.width: stops for runs in results if (stops := _stops(runs, seeds))}
    first = results[0].facts
    return WidthScan(
        widths=sizes, steps=np.asarray(first["steps"]), seeds=seeds, eta0=eta0, alpha=alpha,
        etas=np.array([runs.settings["eta"] for runs in results]),
        parameters=tuple(int(runs.facts["parameters"]) for runs in results),
        sharpness=np.array([float(runs.facts["sharpness"]) for runs in results]),
        **arrays, stopped=stopped, compared_on="held-out inputs" if first["held_out"] else "training inputs",
        resumed=sum(runs.resumed for runs in results),
    )  # fmt: skip
