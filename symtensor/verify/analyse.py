"""From samples to a verdict: quantiles, slopes, decision, for exact norms, one-sided bounds, and brackets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from symtensor.verify.advice import blind_spots, change_advice, explain
from symtensor.verify.claim import Claim
from symtensor.verify.errors import VerificationError
from symtensor.verify.levels import check_levels, enough_samples, log_quantile
from symtensor.verify.result import Jump, LevelResult, RefusedLevel, Verification
from symtensor.verify.sizes import upper_half
from symtensor.verify.slope import Slopes, fit_slopes
from symtensor.verify.verdict import (
    HALF_LEVEL,
    VERDICTS,
    Decision,
    Status,
    Tolerance,
    decide,
    half_width,
    interval_factor,
    tolerance_at,
)

__all__ = ["Setting", "analyse", "make_setting", "require_random"]

Array = NDArray[np.float64]
_STATUSES = ("exact", "lower", "upper")
#: lower and upper norms that agree to this are exact
_EXACT = 1e-10
#: a jump of q99/q50: at least this factor, and this many standard errors
_JUMP_FACTOR, _JUMP_ERRORS = 2.0, 5.0


@dataclass(frozen=True, slots=True)
class Setting:
    """What a verdict is relative to: claim, sizes, levels, tolerances, error probability, status of the norms."""

    claim: Claim
    sizes: tuple[int, ...]
    log_f: Array
    levels: tuple[float, ...]
    alpha: float
    delta0: float
    delta: float
    status: Status
    label: str
    seed: int | None
    warnings: tuple[str, ...] = ()


def make_setting(
    claim: Claim,
    sizes: tuple[int, ...],
    levels: Sequence[float],
    alpha: float,
    delta0: float,
    delta: float | None,
    status: str,
    label: str,
    seed: int | None,
    warnings: tuple[str, ...] = (),
) -> Setting:
    """Check the numbers a verdict depends on; raises VerificationError naming the one that is wrong."""
    known = check_levels(levels)
    if not 0 < alpha < 1:
        raise VerificationError(f"alpha = {alpha}: a probability strictly between 0 and 1 is required, for example 0.05")
    if status not in _STATUSES:
        raise VerificationError(f"norm_status = {status!r}; it is one of {', '.join(_STATUSES)}")
    half = HALF_LEVEL.get(claim.kind)
    if half is not None and not any(math.isclose(level, half) for level in known):
        raise VerificationError(f"a {claim.kind} claim is judged at level {half:g}; add it to levels = {known}")
    natural = float(tolerance_at(np.log(np.asarray(sizes, float))[upper_half(len(sizes))]))
    chosen = natural if delta is None else float(delta)
    if delta is None and 0 < chosen <= delta0 < math.inf:
        raise VerificationError(
            f"at sizes around {math.exp(0.7 / natural):.3g} the tolerance 0.7/log n_c = {natural:.3g} is not above "
            f"delta0 = {delta0:g}; take smaller sizes, or a smaller delta0"
        )
    if not 0 <= delta0 < chosen < math.inf:
        raise VerificationError(f"delta0 = {delta0:g} and delta = {chosen:g}: 0 <= delta0 < delta is required")
    log_f = claim.log_values(sizes)
    return Setting(claim, sizes, log_f, known, alpha, delta0, chosen, status, label, seed, warnings)  # pyright: ignore[reportArgumentType]


def require_random(setting: Setting, drawn: Sequence[Array]) -> None:
    """Refuse data that do not vary at any size: there is nothing random to verify."""
    if all(values.shape[1] > 1 and bool((values == values[:, :1]).all()) for values in drawn):
        raise VerificationError(
            f"constant data: at every size all samples are equal (n = {setting.sizes[0]}: {drawn[0][0, 0]:g}); "
            "a deterministic sequence has no quantiles to compare, or the sampler ignores its seed"
        )


def analyse(setting: Setting, drawn: Sequence[Array], look_alpha: float, looks: tuple[int, ...], resumed: int = 0) -> Verification:
    """The verdict from norms of shape (1, S_n) per size, or (2, S_n) with lower and upper bounds."""
    ordered = [np.sort(values, axis=-1) for values in drawn]
    samples = tuple(values.shape[1] for values in drawn)
    rows = _sides(drawn, setting.status)
    bracket = len(rows) == 2
    levels, refused = _admitted(setting, ordered, min(samples), [row for row, _ in rows])
    z = interval_factor(look_alpha, max(len(levels), 1))
    tolerance = Tolerance(setting.delta, setting.delta0, z)
    found: list[LevelResult] = []
    decisions: list[Decision] = []
    if levels:
        for row, side in rows:
            y, se = _curves(setting, [values[row] for values in ordered], levels)
            fits = fit_slopes(np.log(np.asarray(setting.sizes, float)), y, se)
            kind = "O" if bracket and side == "upper" else setting.claim.kind
            decisions.append(decide(fits, levels, tolerance, kind, side))
            found += _results(fits, levels, side, z, y, se)
    verdict = _combined(decisions, setting.claim.kind)
    result = Verification(
        verdict=verdict, claim=setting.claim.text, scale=str(setting.claim.scale), kind=setting.claim.kind,
        label=setting.label, levels=tuple(found),
        refused=tuple(refused), level_dependent=any(bool(decision.level_dependent) for decision in decisions),
        jumps=_jumps(setting.sizes, [values[rows[-1][0]] for values in ordered]), delta=setting.delta, delta0=setting.delta0,
        alpha=setting.alpha, look_alpha=look_alpha, sizes=setting.sizes, samples=samples, looks=looks,
        norm_status="bracket" if bracket else rows[0][1], seed=setting.seed,
        reasons=(), what_would_change_it=(), blind_spots=(), warnings=setting.warnings, resumed=resumed,
    )  # fmt: skip
    half = not decisions or bool(decisions[0].half)
    return replace(
        result, reasons=explain(result, half), what_would_change_it=change_advice(result, half), blind_spots=blind_spots(result)
    )


def _sides(drawn: Sequence[Array], status: Status) -> list[tuple[int, Status]]:
    """Which rows count, as what: a bracket that closes is exact; one without a finite upper bound is a lower bound."""
    if len(drawn[0]) == 1:
        return [(0, status)]
    bounded = all(bool(np.isfinite(values[1]).all()) for values in drawn)
    if bounded and all(bool((values[1] - values[0] <= _EXACT * values[1]).all()) for values in drawn):
        return [(0, "exact")]
    sides: list[tuple[int, Status]] = [(0, "lower"), (1, "upper")]
    if not bounded:
        return sides[:1]
    return sides if all(bool((values[0] > 0).any()) for values in drawn) else sides[1:]


def _admitted(
    setting: Setting, ordered: Sequence[Array], samples: int, rows: Sequence[int]
) -> tuple[tuple[float, ...], list[RefusedLevel]]:
    """Levels with enough samples beyond them and positive quantiles, and the others with the reason."""
    kept: list[float] = []
    refused: list[RefusedLevel] = []
    for level in setting.levels:
        if not enough_samples(samples, level):
            side = "beyond" if level >= 0.5 else "below"
            count = samples * min(level, 1 - level)
            refused.append(RefusedLevel(level, f"{samples} samples leave {count:.3g} {side} it; 10 are required"))
            continue
        used = ((n, values[row]) for n, values in zip(setting.sizes, ordered) for row in rows)
        zero = [n for n, values in used if log_quantile(values, level)[0] == -np.inf]
        if zero:
            refused.append(RefusedLevel(level, f"the quantile is 0 at n = {zero[0]}: it has no logarithm and no order"))
        else:
            kept.append(level)
    return tuple(kept), refused


def _curves(setting: Setting, rows: Sequence[Array], levels: Sequence[float]) -> tuple[Array, Array]:
    """log(q_p / f) and its error, (levels, sizes)."""
    pairs = [[log_quantile(values, level) for values in rows] for level in levels]
    y = np.array([[float(value) for value, _ in line] for line in pairs])
    return y - setting.log_f, np.array([[float(error) for _, error in line] for line in pairs])


def _results(fits: Slopes, levels: Sequence[float], side: Status, z: float, y: Array, se: Array) -> list[LevelResult]:
    width = half_width(fits, z)
    return [
        LevelResult(
            level=level, side=side, slope=float(fits.slope[i]), se=float(fits.se[i]), dof=float(fits.dof[i]),
            low=float(fits.slope[i] - width[i]), high=float(fits.slope[i] + width[i]),
            curvature=float(fits.curvature[i]), curvature_se=float(fits.curvature_se[i]),
            extrapolated=float(fits.extrapolated[i]), chi2_dof=float(fits.chi2_dof[i]), rms=float(fits.rms[i]),
            irregular=bool(fits.irregular[i]), log_ratio=tuple(map(float, y[i])), errors=tuple(map(float, se[i])),
        )
        for i, level in enumerate(levels)
    ]  # fmt: skip


def _combined(decisions: Sequence[Decision], kind: str) -> str:
    """One verdict from one side, or from both sides of a bracket: each side says only what it supports."""
    if not decisions:
        return "inconclusive"
    if len(decisions) == 1:
        return decisions[0].verdict
    lower, upper = decisions
    if lower.verdict == "violated":
        return "violated"
    if upper.verdict == "consistent" and kind in HALF_LEVEL:
        independent = kind == "Theta" or not bool(upper.level_dependent)
        return "consistent" if bool(lower.half) and independent else "inconclusive"
    return upper.verdict if upper.verdict in VERDICTS[:2] else "inconclusive"


def _jumps(sizes: Sequence[int], ordered: Sequence[Array]) -> tuple[Jump, ...]:
    """Neighbouring sizes between which q99/q50 changes by a factor 2 and 5 errors, the typical error of all sizes.

    The typical, not the own error: corrupted samples widen their own order statistics and would hide behind them.
    """
    if min(len(values) for values in ordered) < 100:
        return ()
    tails = [log_quantile(values, 0.99, jumps=False) for values in ordered]
    medians = [log_quantile(values, 0.5) for values in ordered]
    with np.errstate(invalid="ignore"):
        ratio = np.array([float(tail[0] - median[0]) for tail, median in zip(tails, medians)])
        steps = np.diff(ratio)
    typical = math.hypot(*(float(np.median([float(error) for _, error in side])) for side in (tails, medians)))
    threshold = max(math.log(_JUMP_FACTOR), _JUMP_ERRORS * math.sqrt(2) * typical)
    return tuple(
        Jump(sizes[i], sizes[i + 1], math.exp(min(float(step), 700.0)))
        for i, step in enumerate(steps)
        if math.isfinite(step) and abs(step) > threshold
    )
