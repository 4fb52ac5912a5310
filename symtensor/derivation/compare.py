"""Theory against simulation: z-scores, where a theory stops holding, and whether the data could have told.

z = (simulation - theory) / standard error. A comparison that accepts is worth only what it would have rejected: a
verdict is therefore given against a stated alternative, and says "no power" when the standard error is too large to
tell the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Z_LEVEL = 3.0
RELATIVE_LEVEL = 0.05
#: family-wise error of the threshold that accounts for the number of comparisons
FAMILY_LEVEL = 0.05
#: an alternative counts as excludable if the threshold would reject it with this probability
POWER = 0.95


class ComparisonError(ValueError):
    """Theory and estimate that cannot be compared: different shapes, negative standard errors."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A theory and an estimate on the same axes (depth first), with z-scores and relative errors.

    `z` is NaN where either side is not known, infinite where a difference meets a standard error of zero.
    `relative_error` is |estimate - theory| over the largest |theory| at the same depth.
    """

    name: str
    theory: np.ndarray
    mean: np.ndarray
    se: np.ndarray
    z: np.ndarray
    relative_error: np.ndarray

    @property
    def count(self) -> int:
        """How many z-scores are known and could differ from zero (several are correlated: neighbouring depths)."""
        return int(np.sum(np.isfinite(self.z) & (self.se > 0)) + np.sum(np.isinf(self.z)))

    @property
    def max_abs_z(self) -> float:
        """The largest |z| (NaN if none is known)."""
        return _max(np.abs(self.z))

    def per_depth(self) -> np.ndarray:
        """The largest |z| at each depth, (L+1,); NaN where none is known."""
        return _depth_max(np.abs(self.z))

    def threshold(self, family_level: float = FAMILY_LEVEL) -> float:
        """|z| that the largest of `count` standard normal numbers exceeds with probability at most `family_level`."""
        return family_threshold(self.count, family_level)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`outcome` is "rejected", "accepted" (and the alternative would have been rejected), "no power", or
    "not rejected" where no alternative was stated; `reason` gives the figures."""

    outcome: str
    reason: str
    max_abs_z: float
    threshold: float


@dataclass(frozen=True, slots=True)
class ValidityWindow:
    """First depth index where max |z| exceeds `z_level`, and where the relative error exceeds `relative_level`.

    None where that never happens. The relative crossing counts only where |z| exceeds `z_level` too: elsewhere the
    estimate is too noisy to say.
    """

    z_level: float
    relative_level: float
    first_z: int | None
    first_relative: int | None
    last: int

    def describe(self, t: np.ndarray | None = None) -> str:
        """The window in words; `t` gives depth as time."""
        return (
            f"|z| > {self.z_level:g}: {self._place(self.first_z, t)}; "
            f"relative error > {self.relative_level:.0%}: {self._place(self.first_relative, t)}"
        )

    def _place(self, index: int | None, t: np.ndarray | None) -> str:
        if index is None:
            return f"nowhere up to depth {self.last}"
        return f"from depth {index}" + ("" if t is None else f" (t = {t[index]:.4g})")


def compare(theory: Any, estimate: Any, name: str = "") -> Comparison:
    """Compare `theory` with `estimate` = (mean, standard error), or an object with `.mean` and `.se`; same shapes.

    A difference within rounding (64 eps of the numbers compared) counts as zero, so that two exact results agree.
    Raises ComparisonError for different shapes or a negative standard error.
    """
    mean, se = (estimate.mean, estimate.se) if hasattr(estimate, "se") else estimate
    arrays = tuple(np.asarray(value, dtype=np.float64) for value in (theory, mean, se))
    if len({array.shape for array in arrays}) > 1:
        shapes = ", ".join(f"{what} {array.shape}" for what, array in zip(("theory", "mean", "se"), arrays))
        raise ComparisonError(f"{name or 'comparison'}: shapes differ: {shapes}")
    values, mean, se = arrays
    if np.any(se < 0):
        place = tuple(int(index) for index in np.argwhere(se < 0)[0])
        raise ComparisonError(f"{name or 'comparison'}: negative standard error {se[place]:.3g} at index {place}")
    difference = mean - values
    rounding = 64 * np.finfo(np.float64).eps * np.maximum(np.abs(mean), np.abs(values))
    difference = np.where(np.abs(difference) <= rounding, 0.0, difference)
    return Comparison(name, values, mean, se, _ratio(difference, se), _relative(difference, values))


def family_threshold(count: int, family_level: float = FAMILY_LEVEL) -> float:
    """Bonferroni: |z| exceeded by any of `count` standard normal numbers with probability at most `family_level`."""
    from scipy.stats import norm

    return float(norm.isf(family_level / (2 * max(count, 1))))


def verdict(comparison: Comparison, alternative: Any = None, family_level: float = FAMILY_LEVEL) -> Verdict:
    """Decide `comparison`, given the values (same shape) of the nearest wrong answer that it must be able to reject."""
    threshold, largest = comparison.threshold(family_level), comparison.max_abs_z
    figures = f"max |z| = {largest:.2f} over {comparison.count} comparisons, threshold {threshold:.2f}"
    if not comparison.count and not largest > 0:
        return Verdict("no power", "no comparison with a known standard error", largest, threshold)
    if largest > threshold:
        return Verdict("rejected", figures, largest, threshold)
    if alternative is None:
        return Verdict("not rejected", f"{figures}; no alternative stated", largest, threshold)
    distance = separation(comparison, alternative)
    needed = threshold + family_threshold(1, 2 * (1 - POWER))
    figures += f"; the alternative lies {distance:.2f} standard errors away, {needed:.2f} needed"
    return Verdict("accepted" if distance >= needed else "no power", figures, largest, threshold)


def separation(comparison: Comparison, alternative: Any) -> float:
    """How far `alternative` lies from the theory, in standard errors of the estimate, where it is farthest."""
    other = np.broadcast_to(np.asarray(alternative, dtype=np.float64), comparison.theory.shape)
    distance = _max(np.abs(_ratio(other - comparison.theory, comparison.se)))
    return 0.0 if np.isnan(distance) else distance


def validity_window(
    comparison: Comparison, z_level: float = Z_LEVEL, relative_level: float = RELATIVE_LEVEL
) -> ValidityWindow:
    """Where along depth (axis 0) the theory leaves the estimate, at the two stated levels."""
    z_depth = comparison.per_depth()
    significant = np.abs(comparison.z) > z_level
    relative = _depth_max(np.where(significant, comparison.relative_error, np.nan))
    last = len(z_depth) - 1
    return ValidityWindow(z_level, relative_level, _first(z_depth > z_level), _first(relative > relative_level), last)


def compare_all(
    theory: Mapping[str, Any], simulation: Any, pairs: Mapping[str, tuple[str, str]]
) -> dict[str, Comparison]:
    """Compare `theory[key]` with `simulation.<field>` for each `name: (key, field)`; what is missing is left out."""
    result: dict[str, Comparison] = {}
    for name, (key, source) in pairs.items():
        estimate = getattr(simulation, source, None)
        if key in theory and estimate is not None:
            result[name] = compare(getattr(theory[key], "values", theory[key]), estimate, name)
    return result


def _ratio(difference: np.ndarray, se: np.ndarray) -> np.ndarray:
    """difference / se, with 0 / 0 = 0 and x / 0 = +-inf; NaN only where a number is not known."""
    known = np.where(se > 0, se, 1.0)
    at_zero = np.where(difference == 0, 0.0, np.copysign(np.inf, difference))
    with np.errstate(over="ignore"):  # infinite is the right answer there
        ratio = np.where(se == 0, at_zero, difference / known)
    return np.where(np.isnan(difference) | ~np.isfinite(se), np.nan, ratio)


def _relative(difference: np.ndarray, theory: np.ndarray) -> np.ndarray:
    scale = _depth_max(np.abs(theory)).reshape((-1,) + (1,) * (theory.ndim - 1)) if theory.ndim else np.abs(theory)
    return np.abs(_ratio(difference, np.broadcast_to(scale, theory.shape)))


def _depth_max(values: np.ndarray) -> np.ndarray:
    flat = values.reshape(len(values), -1)
    known = ~np.isnan(flat)
    largest = np.max(np.where(known, flat, -np.inf), axis=1)
    return np.where(known.any(axis=1), largest, np.nan)


def _max(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.max()) if known.size else float("nan")


def _first(mask: np.ndarray) -> int | None:
    hits = np.flatnonzero(mask)
    return int(hits[0]) if hits.size else None
