"""`verify_bound` for samplers and `verify_samples` for data: the protocol of stochastic order, section 8."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symtensor.verify.analyse import Setting, analyse, make_setting, require_random
from symtensor.verify.claim import read_claim
from symtensor.verify.draw import Plan, Sampler, blocks_until, draw_block, plan_blocks, require_fresh, require_integer
from symtensor.verify.errors import DataWarning, SamplerError, StructuredGridWarning, VerificationError
from symtensor.verify.levels import enough_samples
from symtensor.verify.rates import LOOKS, spent
from symtensor.verify.result import Verification
from symtensor.verify.samples import grouped
from symtensor.verify.sizes import check_sizes, jittered_sizes
from symtensor.verify.store import load_store, save_store

__all__ = ["verify_bound", "verify_samples"]

Array = NDArray[np.float64]
Progress = Callable[[int, int], None]


def verify_bound(
    sampler: Sampler,
    claim: Any,
    *,
    kind: str | None = None,
    sizes: Iterable[int] | None = None,
    levels: Sequence[float] = (0.5, 0.9),
    alpha: float = 0.05,
    delta0: float = 0.03,
    delta: float | None = None,
    looks: Sequence[int] = LOOKS,
    budget: int | None = None,
    norm_status: str = "exact",
    jitter: bool = True,
    seed: int = 0,
    store: Path | str | None = None,
    progress: Progress | bool | None = None,
    sample_bytes: Callable[[int], float] | None = None,
    memory_mb: float = 1024,
    label: str | None = None,
) -> Verification:
    r"""Measure whether ||M_n|| = O(f(n)), from samples at finite n, and say what the measurement cannot.

    Parameters
    ----------
    sampler
        `sampler(n, samples, seed)` returns `samples` independent norms at size n: an array (samples,), NumPy or JAX, or
        an object with arrays `lower` and `upper` that bracket the norms (a `NormBracket`). Always called with the same
        `samples` at one n, so that a jitted function compiles once per size. `seed` is an integer below 2^31, another
        one for every call.
    claim
        The scale f: text such as `"sqrt(n) log(n)"`, a `Scale`, or a `Bound`, whose kind counts then.
    kind
        `"O"` (default), `"Theta"`, or `"definite"` (f is the smallest upper bound).
    sizes
        By default 8 jittered sizes around 2^5, .., 2^12; see `jittered_sizes` for others. At least 4. Powers of two
        only are jittered, with a warning, unless `jitter=False`.
    levels
        Quantile levels p. Those with S (1 - p) < 10 are refused and reported.
    alpha, delta0, delta
        Error probability; slopes above delta violate, slopes above delta0 are not called consistent. By default
        delta = 0.7 / log n_c, n_c the geometric mean of the upper half of the sizes.
    looks, budget
        Samples per size at which a verdict is tried; the first that is not inconclusive counts (and no requested level
        is still to come). Look j spends alpha / 2^{j+1}; a single look spends alpha. `budget` caps the samples per size.
    norm_status
        What the sampler's numbers are: `"exact"` norms, or `"lower"` or `"upper"` bounds of them.
    seed, store, label
        The seed of everything. `store` is a file that keeps all norms after every block: an interrupted run continues
        there bit by bit, a larger budget extends it. `label` names the sampler in the report and in the store.
    progress
        Called as `progress(done, wanted)` with numbers of norms after every block, wanted being those of the present
        look; True writes a line to the error stream.
    sample_bytes, memory_mb
        With `sample_bytes(n)`, what one sample costs the sampler, blocks are made small enough for the cap.

    Returns
    -------
    Verification
        Its text is the report. Equal arguments give equal results, interrupted or not.

    Raises
    ------
    VerificationError
        And its subclasses SizesError, ClaimError, SamplerError, StoreError; ScaleError for a claim outside the scales.

    Notes
    -----
    .. math:: s_{top} = \frac{d}{d \log n} \log \frac{q_p(n)}{f(n)}

    over the upper half of the sizes; violated if its interval lies above delta at any level, inconclusive if it reaches
    above delta or lies above delta0, not tight if it lies below -delta at all levels, consistent otherwise.

    References
    ----------
    stochastic_order.md, section 8; the notion of bound: Shem-Ur, Oz, arXiv 2401.04013.

    Examples
    --------
    >>> def norm(n, samples, seed):
    ...     return np.linalg.norm(np.random.default_rng(seed).standard_normal((samples, n)), axis=1)
    >>> result = verify_bound(norm, "sqrt(n)", sizes=(20, 33, 51, 80, 127, 200))
    >>> result.verdict, result.samples[0]
    ('consistent', 250)
    >>> verify_bound(norm, "n", sizes=(20, 33, 51, 80, 127, 200)).verdict
    'not tight'
    """
    seed = require_integer("seed", seed, 0)
    wanted = read_claim(claim, kind)
    chosen, note = _sizes(sizes, jitter, seed)
    if note:
        warnings.warn(note, StructuredGridWarning, stacklevel=2)
    name = label if label is not None else str(getattr(sampler, "__name__", type(sampler).__name__))
    setting = make_setting(wanted, chosen, levels, alpha, delta0, delta, norm_status, name, seed, (note,) if note else ())
    planned = _looks(looks, budget)
    plan = plan_blocks(chosen, planned[0], seed, sample_bytes, memory_mb)
    pool = _Pool(sampler, plan, name, None if store is None else Path(store), _reporter(progress))
    return _sequential(setting, pool, planned)


def verify_samples(
    sizes: Any,
    values: Any = None,
    claim: Any = None,
    *,
    kind: str | None = None,
    levels: Sequence[float] = (0.5, 0.9),
    alpha: float = 0.05,
    delta0: float = 0.03,
    delta: float | None = None,
    norm_status: str = "exact",
    label: str = "samples",
) -> Verification:
    """The verdict on norms that were measured elsewhere, independent for each size; one look at all of them.

    Parameters
    ----------
    sizes, values
        A mapping from size to its norms (then `values` is left out); sizes (N,) and values (N,), one pair per sample;
        or sizes (m,) and values (m, S) or m sequences.
    claim, kind, levels, alpha, delta0, delta, norm_status, label
        As for `verify_bound`.

    Raises
    ------
    DataError, SizesError, ClaimError, ScaleError, VerificationError
        Negative or non-finite values and mismatched lengths are named with their place.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> data = {n: n * abs(rng.standard_normal(1500)) for n in (30, 61, 118, 247, 501, 1003)}
    >>> verify_samples(data, claim="sqrt(n)").verdict
    'violated'
    """
    if claim is None:
        raise VerificationError("no claim is given; write for example claim='sqrt(n)'")
    groups = grouped(sizes, values)
    wanted = read_claim(claim, kind)
    chosen, note = check_sizes(groups)
    if note:
        warnings.warn(note, StructuredGridWarning, stacklevel=2)
    notes = [note] if note else []
    counts = [len(groups[n]) for n in chosen]
    if min(counts) < max(counts) / 4:
        fewest = chosen[int(np.argmin(counts))]
        few = f"n = {fewest} has {min(counts)} samples, others up to {max(counts)}: the fewest decide which levels can be used"
        warnings.warn(few, DataWarning, stacklevel=2)
        notes.append(few)
    setting = make_setting(wanted, chosen, levels, alpha, delta0, delta, norm_status, label, None, tuple(notes))
    drawn = [groups[n][None] for n in chosen]
    require_random(setting, drawn)
    return analyse(setting, drawn, alpha, (min(counts),))


def _sizes(sizes: Iterable[int] | None, jitter: bool, seed: int) -> tuple[tuple[int, ...], str]:
    if sizes is None:
        return jittered_sizes(seed=seed), ""
    if isinstance(sizes, (str, Mapping)) or not isinstance(sizes, Iterable):
        raise VerificationError(f"sizes is {sizes!r}; a sequence of at least 4 sizes is required, or None for the default grid")
    return check_sizes(sizes, jitter=jitter, seed=seed)


def _looks(looks: Sequence[int], budget: int | None) -> tuple[int, ...]:
    found = tuple(sorted({require_integer("a look", look, 2) for look in looks}))
    if not found:
        raise VerificationError("looks is empty; give the samples per size at which to look, for example (250, 500, 1000)")
    if budget is None:
        return found
    most = require_integer("budget", budget, 2)
    return (*(look for look in found if look < most), most)


def _reporter(progress: Progress | bool | None) -> Progress | None:
    if progress is True:
        return _write_line
    return progress if callable(progress) else None


def _write_line(done: int, wanted: int) -> None:
    end = "\n" if done == wanted else ""
    print(f"\r{done}/{wanted} norms", end=end, file=sys.stderr, flush=True)


class _Pool:
    """Norms drawn so far, block by block, kept in the store."""

    def __init__(self, sampler: Sampler, plan: Plan, label: str, store: Path | None, report: Progress | None) -> None:
        if not callable(sampler):
            raise SamplerError(f"the sampler is {type(sampler).__name__}, not a function (n, samples, seed) -> norms")
        self.sampler, self.plan, self.label, self.store, self.report = sampler, plan, label, store, report
        found = self._stored()
        self.drawn: list[Array] = found if found is not None else [np.zeros((0, 0)) for _ in plan.sizes]
        self.resumed = sum(values.shape[1] for values in self.drawn)

    def _stored(self) -> list[Array] | None:
        if self.store is None:
            return None
        try:
            return load_store(self.store, self.plan, self.label, self.sampler)
        except KeyboardInterrupt as stop:
            stop.add_note(f"the norms in {str(self.store)!r} are untouched; the same call continues")
            raise

    def until(self, samples: int) -> list[Array]:
        """At least `samples` norms at every size, the first `samples` of which are returned."""
        missing = list(blocks_until(self.plan, [values.shape[1] for values in self.drawn], samples))
        wanted = sum(max(values.shape[1], -(-samples // b) * b) for values, b in zip(self.drawn, self.plan.blocks))
        try:
            for place, block in missing:
                self._draw(place, block, wanted)
        except KeyboardInterrupt as stop:
            kept = sum(values.shape[1] for values in self.drawn)
            where = f"kept in {str(self.store)!r}; the same call continues" if self.store else "lost: no store was given"
            stop.add_note(f"{kept} norms of {wanted} are {where}")
            raise
        require_fresh(self.drawn, self.plan)
        return [values[:, :samples] for values in self.drawn]

    def _draw(self, place: int, block: int, wanted: int) -> None:
        values = draw_block(self.sampler, self.plan, place, block)
        rows = {len(v) for v in self.drawn if v.shape[1]} | {len(values)}
        if len(rows) > 1:
            raise SamplerError(f"the sampler brackets the norm at some sizes only (n = {self.plan.sizes[place]}); always or never")
        before = self.drawn[place]
        self.drawn[place] = values if before.shape[1] == 0 else np.concatenate([before, values], axis=1)
        if self.store is not None:
            save_store(self.store, self.plan, self.label, self.drawn)
        if self.report is not None:
            self.report(sum(v.shape[1] for v in self.drawn), wanted)


def _sequential(setting: Setting, pool: _Pool, looks: tuple[int, ...]) -> Verification:
    """Look with growing numbers of samples until a verdict stands."""
    result = None
    for j, samples in enumerate(looks):
        drawn = pool.until(samples)
        require_random(setting, drawn)
        result = analyse(setting, drawn, spent(setting.alpha, len(looks), j), looks[: j + 1], pool.resumed)
        waiting = any(not enough_samples(samples, p) and enough_samples(looks[-1], p) for p in setting.levels)
        if result.verdict == "violated" or (result.verdict != "inconclusive" and not waiting):
            break
    assert result is not None
    return result
