"""Words of a verification: why the verdict came out, what would change it, and what it can never say."""

from __future__ import annotations

import math

from symtensor.verify.result import LevelResult, Verification
from symtensor.verify.verdict import HALF_LEVEL

__all__ = ["blind_spots", "change_advice", "explain"]

#: half-width of a slope that only a jump of the quantile function explains
_JUMPING = 1.5
#: samples per size that nobody should be told to draw
_TOO_MANY = 1e6


def _name(found: LevelResult) -> str:
    side = "" if found.side == "exact" else f" of the {found.side} bound"
    return f"q{100 * found.level:g}{side}"


def _interval(found: LevelResult) -> str:
    return f"[{found.low:+.3f}, {found.high:+.3f}]"


def explain(result: Verification, half: bool) -> tuple[str, ...]:
    """Which conditions of the decision were met."""
    if not result.levels:
        return ("no level could be used",)
    delta = result.delta
    texts = []
    for found in result.levels:
        name = _name(found)
        if found.low > delta:
            texts.append(f"{name} grows faster than f: slope in {_interval(found)}, above the tolerance {delta:.3f}")
        elif found.low > result.delta0:
            texts.append(
                f"{name} may grow faster than f: slope in {_interval(found)}, above {result.delta0:g}, not above {delta:.3f}"
            )
        elif found.high > delta:
            texts.append(f"{name} is too uncertain: slope in {_interval(found)} reaches beyond the tolerance {delta:.3f}")
        elif found.high < -delta:
            end = f"extrapolated slope {found.extrapolated:+.3f}" + ("" if found.extrapolated < -delta else ", which bends back")
            texts.append(f"{name} grows slower than f: slope in {_interval(found)}, {end}")
        else:
            texts.append(f"{name} grows like f: slope in {_interval(found)}, within the tolerance {delta:.3f}")
        if math.isfinite(found.dof):
            texts.append(f"{name} scatters by more than its errors: a wider interval, by Student's t with {found.dof:g} dof")
        if found.irregular:
            texts.append(f"{name} is irregular in n: no smooth curve fits (chi2/dof {found.chi2_dof:.1f}, rms {found.rms:.2f})")
    return (*texts, *_limits(result, half))


def _limits(result: Verification, half: bool) -> tuple[str, ...]:
    texts = []
    if result.level_dependent:
        texts.append("quantiles grow at different rates: no definite bound visible")
    if result.kind in HALF_LEVEL and not half:
        texts.append(f"the lower half of the {result.kind} claim is not supported at q{100 * HALF_LEVEL[result.kind]:g}")
    if result.norm_status == "lower":
        texts.append("the numbers are lower bounds of the norm: they can support only violated")
    if result.norm_status == "upper":
        texts.append("the numbers are upper bounds of the norm: they can support only consistent and not tight, and no lower half")
    if result.norm_status == "bracket":
        texts.append("the norm is bracketed: violated rests on the lower bounds, consistent and not tight on the upper bounds")
    texts += [
        f"q99/q50 jumps by a factor {jump.factor:.3g} from n = {jump.before} to {jump.after}: look for corrupted samples"
        for jump in result.jumps
    ]
    return tuple(texts)


def change_advice(result: Verification, half: bool) -> tuple[str, ...]:
    """What would change the verdict, with numbers where they can be estimated."""
    texts = [f"level {refused.level:g}: {_refused_advice(refused.level, refused.reason)}" for refused in result.refused]
    if result.verdict == "violated":
        texts.append("a slope that falls back below the tolerance at larger n, or an error in the samples; not more samples")
    if result.verdict == "not tight":
        texts.append("a smaller claim: name the scale the data follow; or a slope that returns to 0 at larger n")
    if result.verdict == "consistent":
        texts.append(
            f"a slope above {result.delta:.3f} at larger n; events rarer than the largest level; other residue classes of n"
        )
    if result.verdict == "inconclusive":
        texts += _inconclusive(result, half)
    return tuple(dict.fromkeys(texts))


def _refused_advice(level: float, reason: str) -> str:
    if "has no logarithm" in reason:
        return f"{reason}; take higher levels"
    return f"{reason}; at least {math.ceil(10 / min(level, 1 - level) - 1e-9)} samples per size"


def _inconclusive(result: Verification, half: bool) -> list[str]:
    texts = []
    for found in result.levels:
        name, width = _name(found), (found.high - found.low) / 2
        if found.irregular:
            texts.append(f"{name}: more sizes in between; the sequence may depend on residues of n, or have an atom at this level")
        elif math.isfinite(found.dof) and found.low <= result.delta < found.high:
            texts.append(
                f"{name}: more sizes; the sizes scatter by more than the sampling errors, which more samples do not change"
            )
        elif found.low <= result.delta and found.high > result.delta and width > 0:
            texts.append(_samples_needed(result, found, name, width))
        elif found.low > result.delta0:
            texts.append(f"{name}: larger n, where a transient would have gone and a growing factor would have grown")
    if result.level_dependent:
        texts.append("a claim about one quantile instead of the norm: the quantiles have different orders")
    if result.kind in HALF_LEVEL and not half and result.norm_status in ("exact", "lower", "bracket"):
        texts.append("a smaller claimed scale or a mere O claim, if the low slope is real; more samples, if it is uncertain")
    if result.norm_status in ("lower", "upper"):
        texts.append("the exact norm (at most two index blocks), or a bracket from both sides")
    return texts or ["more samples and larger sizes"]


def _samples_needed(result: Verification, found: LevelResult, name: str, width: float) -> str:
    """Extrapolate the half-width as S^{-1/2}, to the nearer decision from the present slope."""
    distance = abs(result.delta - found.slope)
    needed = math.inf if distance == 0 else min(result.samples) * (width / distance) ** 2
    if width > _JUMPING:
        return f"{name}: other levels; the quantile function jumps near this one (an atom), so that its error does not shrink"
    if needed > _TOO_MANY:
        return f"{name}: larger sizes; its slope lies on the tolerance, which shrinks like 1/log n"
    way = "consistent" if found.slope < result.delta else "violated"
    return f"{name}: about {_rounded(needed)} samples per size, if its slope stays at {found.slope:+.3f} (then {way} at this level)"


def _rounded(value: float) -> int:
    """Two digits, upwards."""
    unit = 10 ** max(math.floor(math.log10(value)) - 1, 0)
    return math.ceil(value / unit) * unit


def blind_spots(result: Verification) -> tuple[str, ...]:
    """What no verdict of this kind can exclude, with the numbers of this one."""
    low, high = result.range
    used = max((found.level for found in result.levels), default=0.0)
    divisor = math.gcd(*result.sizes)
    grid = f"; these sizes are all multiples of {divisor}" if divisor > 1 else ""
    return (
        f"finite range: n in [{low}, {high}] is compatible with O(1) and with any growth beyond n = {high}",
        f"rare events: {min(result.samples)} samples per size and levels up to {used:g} do not see what has a probability "
        f"well below {max(1 - used, 1 / min(result.samples)):.2g}",
        f"other sizes: a bound may fail on residue classes or sparse sequences of n that were not drawn (R17){grid}",
        f"slow factors: less than n^{result.delta:.3f}, such as loglog n or (log n)^(1/2), cannot be told from a transient",
    )
