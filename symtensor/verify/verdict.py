"""The decision: from slopes with errors to one of four verdicts, in the order of the protocol. Vectorised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from symtensor.verify.slope import Slopes

__all__ = [
    "VERDICTS",
    "Decision",
    "Kind",
    "Status",
    "Tolerance",
    "decide",
    "half_width",
    "interval_factor",
    "student",
    "tolerance_at",
]

Kind = Literal["O", "Theta", "definite"]
Status = Literal["exact", "lower", "upper"]
#: verdicts by code
VERDICTS = ("consistent", "not tight", "violated", "inconclusive")
CONSISTENT, NOT_TIGHT, VIOLATED, INCONCLUSIVE = range(4)
#: the level at which the lower half of a claim is judged
HALF_LEVEL: dict[str, float] = {"Theta": 0.5, "definite": 0.9}


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Slopes above `delta` (one, or one per replicate) violate, slopes above `delta0` are not called consistent;
    intervals are +- `z` errors, or Student's t of the same probability where an error has few degrees of freedom.
    """

    delta: float | NDArray[np.float64]
    delta0: float
    z: float


@dataclass(frozen=True, slots=True)
class Decision:
    """Codes into `VERDICTS` and the facts behind them; every field has the batch shape.

    `half` says whether the lower half of a Theta or definite claim is supported, `level_dependent` whether the slopes
    at q50 and q90 differ by more than 2 delta and 3 sigma.
    """

    code: NDArray[np.int_]
    half: NDArray[np.bool_]
    level_dependent: NDArray[np.bool_]

    @property
    def verdict(self) -> str:
        """The verdict of a single decision."""
        return VERDICTS[int(self.code)]


def interval_factor(alpha: float, levels: int) -> float:
    """z of the two-sided normal intervals at 1 - alpha, Bonferroni over `levels`.

    >>> round(interval_factor(0.05, 2), 4)
    2.2414
    """
    return float(ndtri(1 - alpha / (2 * levels)))


def student(z: float, dof: NDArray[np.float64]) -> NDArray[np.float64]:
    """The quantile of Student's t at the probability of the normal quantile `z`; `z` itself for infinite `dof`.

    >>> student(2.2414, np.array([2.0, 5.0, np.inf])).round(2).tolist()
    [6.21, 3.16, 2.24]
    """
    dof = np.asarray(dof, dtype=np.float64)
    few = np.isfinite(dof)
    return np.where(few, -stdtrit(np.where(few, dof, 1.0), ndtr(-z)), z)


def half_width(fits: Slopes, z: float) -> NDArray[np.float64]:
    """Half the interval of every slope."""
    return student(z, fits.dof) * fits.se


def tolerance_at(log_n_top: NDArray[np.float64]) -> NDArray[np.float64]:
    """0.7 / log n_c, the local slope of (log n)^0.7 at the geometric mean n_c of the upper half (last axis)."""
    return 0.7 / np.mean(log_n_top, axis=-1)


def decide(
    fits: Slopes,
    levels: Sequence[float],
    tolerance: Tolerance,
    kind: Kind = "O",
    status: Status = "exact",
) -> Decision:
    """The verdict of the protocol from fits whose first axis runs over `levels`.

    Order: violated; inconclusive; not tight; consistent. Then the lower half of Theta (median) and definite (q90)
    claims, then the norm status: a lower bound cannot support consistent or not tight, an upper bound neither
    violated nor a lower half.

    References
    ----------
    stochastic_order.md, section 8, steps 5 and 6.
    """
    width = half_width(fits, tolerance.z)
    lower, upper = fits.slope - width, fits.slope + width
    delta = tolerance.delta
    violated = (lower > delta).any(0)
    open_ = ((lower > tolerance.delta0) | (upper > delta) | fits.irregular).any(0)
    not_tight = (upper < -delta).all(0) & (fits.extrapolated < -delta).all(0)
    code = np.select([violated, open_, not_tight], [VIOLATED, INCONCLUSIVE, NOT_TIGHT], CONSISTENT)
    dependent = _level_dependent(fits, levels, delta)
    half = np.ones(code.shape, dtype=bool)
    if kind in HALF_LEVEL:
        place = _place(levels, HALF_LEVEL[kind])
        half = np.zeros(code.shape, dtype=bool) if place is None else lower[place] >= -delta
        if kind == "definite":
            half = half & ~dependent
        if status == "upper":
            half = np.zeros(code.shape, dtype=bool)
        code = np.where((code == CONSISTENT) & ~half, INCONCLUSIVE, code)
    if status == "lower":
        code = np.where((code == CONSISTENT) | (code == NOT_TIGHT), INCONCLUSIVE, code)
    if status == "upper":
        code = np.where(code == VIOLATED, INCONCLUSIVE, code)
    return Decision(code, half, dependent)


def _level_dependent(fits: Slopes, levels: Sequence[float], delta: float | NDArray[np.float64]) -> NDArray[np.bool_]:
    median, tail = _place(levels, 0.5), _place(levels, 0.9)
    if median is None or tail is None:
        return np.zeros(fits.slope.shape[1:], dtype=bool)
    gap = np.abs(fits.slope[tail] - fits.slope[median])
    three_sigma = half_width(fits, 3.0)
    return (gap > 2 * delta) & (gap > np.hypot(three_sigma[tail], three_sigma[median]))


def _place(levels: Sequence[float], level: float) -> int | None:
    return next((place for place, value in enumerate(levels) if math.isclose(value, level)), None)
