"""Drawing norms in blocks: each block of each size has its own seed, so that any interruption continues bit by bit."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symtensor.verify.errors import SamplerError, VerificationError

__all__ = ["BLOCK", "Plan", "Sampler", "block_seed", "blocks_until", "draw_block", "plan_blocks"]

Array = NDArray[np.float64]
#: `(n, samples, seed) -> (samples,)` norms, or an object with arrays `lower` and `upper`
Sampler = Callable[[int, int, int], Any]
#: samples drawn at once where memory does not ask for fewer
BLOCK = 250
#: a stretch of the golden section of 2^31, odd: consecutive blocks get distant, distinct seeds
_STRIDE = 0x4F1BBCDD
#: a norm may come out this far below 0 by rounding, relative to the largest
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes, samples per block at each size, and the seed: everything that decides the numbers besides the sampler."""

    sizes: tuple[int, ...]
    blocks: tuple[int, ...]
    seed: int


def plan_blocks(
    sizes: Sequence[int],
    first_look: int,
    seed: int,
    sample_bytes: Callable[[int], float] | None,
    memory_mb: float,
) -> Plan:
    """Samples per call at every size: at most 250, at most the first look, and within the memory cap.

    Raises VerificationError if one sample alone exceeds the cap, naming the size.
    """
    blocks = []
    for n in sizes:
        block = min(BLOCK, first_look)
        if sample_bytes is not None:
            each = float(sample_bytes(n))
            if not each > 0:
                raise VerificationError(f"sample_bytes({n}) is {each:g}; the bytes of one sample are positive")
            block = min(block, int(memory_mb * 2**20 / each))
            if block < 1:
                raise VerificationError(
                    f"one sample at n = {n} takes {each / 2**20:.0f} MB, above the cap memory_mb = {memory_mb:g}; "
                    "raise the cap or leave out the largest sizes"
                )
        blocks.append(block)
    return Plan(tuple(sizes), tuple(blocks), seed)


def block_seed(plan: Plan, place: int, block: int) -> int:
    """The seed of one block: below 2^31 (JAX takes it without 64-bit mode), distinct within a run."""
    start = int(np.random.SeedSequence(plan.seed, spawn_key=(31,)).generate_state(1)[0])
    return (start + _STRIDE * (place + len(plan.sizes) * block)) % 2**31


def blocks_until(plan: Plan, done: Sequence[int], samples: int) -> Iterator[tuple[int, int]]:
    """(size index, block index) of the blocks that are missing for `samples` samples at every size."""
    for place, block in enumerate(plan.blocks):
        yield from ((place, index) for index in range(done[place] // block, -(-samples // block)))


def draw_block(sampler: Sampler, plan: Plan, place: int, block: int) -> Array:
    """One block of norms, (1, samples), or (2, samples) with lower and upper bounds if the sampler brackets the norm.

    Raises
    ------
    SamplerError
        Not an array of real numbers, wrong shape, NaN, infinity (but for an unknown upper bound), a negative norm, or a
        bracket with lower > upper.
    """
    n, samples, seed = plan.sizes[place], plan.blocks[place], block_seed(plan, place, block)
    where = f"sampler(n={n}, samples={samples}, seed={seed})"
    drawn = sampler(n, samples, seed)
    if not (hasattr(drawn, "lower") and hasattr(drawn, "upper")):
        return _norms(drawn, samples, where)[None]
    low = _norms(drawn.lower, samples, f"{where}.lower")
    high = _norms(drawn.upper, samples, f"{where}.upper", unbounded=True)
    if (crossed := low > high * (1 + 1e-9)).any():
        worst = int(np.argmax(crossed))
        raise SamplerError(f"{where}: lower bound {low[worst]:g} above upper bound {high[worst]:g} in sample {worst}")
    return np.stack([low, np.maximum(low, high)])


def _norms(drawn: Any, samples: int, where: str, unbounded: bool = False) -> Array:
    if np.ma.is_masked(drawn):
        raise SamplerError(f"{where} returned masked norms, which have no value; return one number for every sample")
    try:
        given = np.asarray(drawn)
        if np.iscomplexobj(given) or given.dtype.kind in "OSUMm":
            raise TypeError(f"entries of type {given.dtype}")
        values = given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise SamplerError(f"{where} returned {type(drawn).__name__}, not an array of {samples} real norms ({error})") from None
    if values.shape != (samples,):
        raise SamplerError(f"{where} returned shape {values.shape}; one norm per sample, shape ({samples},), is required")
    if (bad := ~(np.isfinite(values) | (unbounded & (values == np.inf)))).any():
        place = int(np.argmax(bad))
        text = f"{where} returned {values[place]} in sample {place} ({int(bad.sum())} of {samples} are not finite)"
        raise SamplerError(f"{text}; a verdict over corrupted samples would be worthless: mend the sampler")
    if (values < -_ROUNDING * np.abs(values[np.isfinite(values)]).max(initial=0.0)).any():
        place = int(np.argmin(values))
        raise SamplerError(f"{where} returned {values[place]:g} in sample {place}; a norm is not negative: take abs first")
    return np.abs(values)


def require_fresh(found: Sequence[Array], plan: Plan) -> None:
    """Refuse a sampler that returns the same block for two seeds; blocks with few distinct values may coincide."""
    for place, values in enumerate(found):
        block = plan.blocks[place]
        if values.shape[1] < 2 * block:
            continue
        first, second = values[:, :block], values[:, block : 2 * block]
        if len(np.unique(first)) >= min(10, block) > 1 and np.array_equal(first, second):
            raise SamplerError(
                f"the sampler returned the same {block} norms for two seeds at n = {plan.sizes[place]}: it ignores its seed; "
                "use np.random.default_rng(seed) or jax.random.key(seed)"
            )


def require_integer(name: str, value: Any, least: int) -> int:
    """`value` as an integer of at least `least`; raises VerificationError naming it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise VerificationError(f"{name} is {value!r}; an integer of at least {least} is required") from None
    if number < least:
        raise VerificationError(f"{name} is {number}; at least {least} is required")
    return number
