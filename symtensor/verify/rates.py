"""Error rates of the protocol by simulation: how often each verdict comes out when the law is known.

The decision code is the one of `verify_bound`, run on many replicates at once. Use it before spending a budget: give a
law of the order you want to exclude, and read off the power.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symtensor.verify.laws import Law
from symtensor.verify.levels import log_quantile
from symtensor.verify.sizes import jittered_sizes, upper_half
from symtensor.verify.slope import Slopes, fit_slopes
from symtensor.verify.verdict import INCONCLUSIVE, VERDICTS, Tolerance, decide, interval_factor, tolerance_at

__all__ = ["LOOKS", "Rates", "SequentialRates", "measure_rates", "measure_sequential", "spent"]

Array = NDArray[np.float64]
#: numbers of samples per size at which a sequential verification looks
LOOKS = (250, 500, 1000, 2000, 4000)
#: numbers drawn at once, which bounds the memory
_NUMBERS = 4_000_000


@dataclass(frozen=True, slots=True)
class Rates:
    """Fractions of each verdict over `replicates`, and of level dependence."""

    replicates: int
    verdicts: dict[str, float]
    level_dependent: float

    def error(self, verdict: str) -> float:
        """Binomial standard error of a rate; at 0 or 1 that of one replicate in excess."""
        rate = self.verdicts[verdict]
        return math.sqrt(max(rate * (1 - rate), 1 / self.replicates) / self.replicates)

    @property
    def text(self) -> str:
        """`C .98 I .02`, largest first, zeros left out."""
        letters: dict[str, str] = dict(zip(VERDICTS, "CNVI"))
        shown = sorted(((rate, letters[name]) for name, rate in self.verdicts.items() if rate > 0), reverse=True)
        return " ".join(f"{letter} {rate:.3f}" for rate, letter in shown)


@dataclass(frozen=True, slots=True)
class SequentialRates:
    """Final verdicts of a sequential verification, the mean number of samples per size, and the first look's share."""

    rates: Rates
    mean_samples: float
    first_look: float


def spent(alpha: float, looks: int, j: int) -> float:
    """The error probability of look j: alpha/2^{j+1}, whose sum stays below alpha; alpha for a single look.

    >>> [spent(0.05, 5, j) for j in range(2)], spent(0.05, 1, 0)
    ([0.025, 0.0125], 0.05)
    """
    return alpha if looks == 1 else alpha / 2 ** (j + 1)


def measure_rates(
    law: Law, samples: int, replicates: int, *, levels: Sequence[float] = (0.5, 0.9), alpha: float = 0.05, seed: int = 0,
    jumps: bool = True,
) -> Rates:  # fmt: skip
    """Simulate `replicates` verifications of `law` at 8 jittered sizes in 2^5..2^12 with `samples` each.

    Returns the rates of the four verdicts. `jumps` as in `levels.log_quantile`. Memory stays below about 100 MB for scalar laws.

    >>> from symtensor.verify.laws import LAWS
    >>> measure_rates(LAWS["vector-loose"], 100, 20).verdicts["not tight"]
    1.0
    """
    rng = np.random.default_rng(seed)
    codes, dependent = [], []
    for sizes in _replicates(replicates, samples, seed):
        log_n, f = np.log(sizes), law.scale(sizes)
        y, se = _log_quantiles(np.sort(law.draw(rng, sizes, samples), axis=-1), levels, f, jumps)
        code, flag = _judge(fit_slopes(log_n, y, se), log_n, levels, alpha, law)
        codes.append(code)
        dependent.append(flag)
    return _rates(np.concatenate(codes), np.concatenate(dependent))


def measure_sequential(
    law: Law,
    replicates: int,
    *,
    looks: Sequence[int] = LOOKS,
    levels: Sequence[float] = (0.5, 0.9),
    alpha: float = 0.05,
    seed: int = 0,
    jumps: bool = True,
) -> SequentialRates:
    """As `measure_rates`, looking at growing numbers of samples and stopping at the first verdict not inconclusive."""
    rng = np.random.default_rng(seed)
    codes, used, dependent = [], [], []
    for sizes in _replicates(replicates, looks[-1], seed):
        log_n, f = np.log(sizes), law.scale(sizes)
        values = law.draw(rng, sizes, looks[-1])
        final = np.full(len(sizes), INCONCLUSIVE)
        flags = np.zeros(len(sizes), dtype=bool)
        stop = np.full(len(sizes), looks[-1])
        for j, samples in enumerate(looks):
            open_ = final == INCONCLUSIVE
            if not open_.any():
                break
            y, se = _log_quantiles(np.sort(values[open_, :, :samples], axis=-1), levels, f[open_], jumps)
            code, flag = _judge(fit_slopes(log_n[open_], y, se), log_n[open_], levels, spent(alpha, len(looks), j), law)
            final[open_], flags[open_] = code, flag
            stop[open_] = samples
        codes.append(final)
        used.append(stop)
        dependent.append(flags)
    stops = np.concatenate(used)
    rates = _rates(np.concatenate(codes), np.concatenate(dependent))
    return SequentialRates(rates, float(stops.mean()), float(np.mean(stops == looks[0])))


def _replicates(replicates: int, samples: int, seed: int) -> list[Array]:
    """Sizes of all replicates in batches of bounded memory, each replicate with its own jitter."""
    sizes = np.array([jittered_sizes(seed=seed * 1_000_003 + k) for k in range(replicates)], dtype=float)
    batch = max(1, _NUMBERS // (8 * samples))
    return [sizes[start : start + batch] for start in range(0, replicates, batch)]


def _log_quantiles(ordered: Array, levels: Sequence[float], f: Array, jumps: bool) -> tuple[Array, Array]:
    pairs = [log_quantile(ordered, level, jumps=jumps) for level in levels]
    return np.stack([y - np.log(f) for y, _ in pairs]), np.stack([se for _, se in pairs])


def _judge(
    fits: Slopes, log_n: Array, levels: Sequence[float], alpha: float, law: Law
) -> tuple[NDArray[np.int_], NDArray[np.bool_]]:
    """Verdict codes of a batch in which every replicate has its own sizes, hence its own tolerance."""
    delta = tolerance_at(log_n[..., upper_half(log_n.shape[-1])])
    decision = decide(fits, levels, Tolerance(delta, 0.03, interval_factor(alpha, len(levels))), law.kind)
    return decision.code, decision.level_dependent


def _rates(codes: NDArray[np.int_], dependent: NDArray[np.bool_]) -> Rates:
    shares = {name: float(np.mean(codes == code)) for code, name in enumerate(VERDICTS)}
    return Rates(len(codes), shares, float(np.mean(dependent)))
