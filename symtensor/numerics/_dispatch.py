"""Running blocks in index order over the available devices, with the state kept on disk."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from symtensor.numerics._blocks import Constants, Plan
from symtensor.numerics._checkpoint import State, save_state

_SHORTEST_INTERVAL = 0.5  # seconds between two writes of the state, at least
_WRITE_SHARE = 0.05  # share of the run time that writing may take


class SimulationOverflow(ValueError):
    """Pre-activations left the range of float64."""


@dataclass
class Saver:
    """Writes the state when enough time has passed for the writing to stay a small share of the run."""

    folder: Path | None
    fingerprint: Mapping[str, Any]
    _due: float = field(default_factory=lambda: time.perf_counter() + _SHORTEST_INTERVAL)
    _saved: int = -1

    def offer(self, state: State, *, last: bool = False) -> None:
        """Write `state` if it is due, or if it is the `last` one and differs from what is on disk."""
        if self.folder is None or state.blocks in (0, self._saved):
            return
        start = time.perf_counter()
        if not last and start < self._due:
            return
        save_state(self.folder, state, self.fingerprint)
        end = time.perf_counter()
        self._saved = state.blocks
        self._due = end + max(_SHORTEST_INTERVAL, (end - start) / _WRITE_SHARE)


def block_results(
    compiled: Callable[[Any], Callable[..., jax.Array]],
    plan: Plan,
    words: tuple[int, int],
    constants: Constants,
    devices: Sequence[Any],
    blocks: range,
    samples: int,
) -> Iterator[NDArray[np.float64]]:
    """Sums of the blocks, in index order; every device runs the same single-device program on its own block.

    `compiled(device)` gives the executable of a device; all are compiled at the same time.
    """
    devices = devices[: max(1, len(blocks))]
    with ThreadPoolExecutor(len(devices)) as pool:
        executables = list(pool.map(compiled, devices))
    placed = [jax.device_put((np.array(words, np.uint32), constants), device) for device in devices]
    pending: deque[jax.Array] = deque()
    for block in blocks:
        if len(pending) == len(devices):
            yield np.asarray(pending.popleft())
        turn = block % len(devices)
        key, local = placed[turn]
        first = block * plan.samples
        scalars = jax.device_put((np.uint32(first), np.int32(min(plan.samples, samples - first))), devices[turn])
        pending.append(executables[turn](key, *scalars, local))
    while pending:
        yield np.asarray(pending.popleft())


def accumulate(
    results: Iterator[NDArray[np.float64]],
    plan: Plan,
    state: State,
    samples: int,
    saver: Saver,
    progress: Callable[[int, int], None] | None,
) -> NDArray[np.float64]:
    """Add block sums to `state` in order and return the sums over all samples, the incomplete last block included.

    The incomplete block is not part of what is saved, so that more samples continue the run as one longer run. On an
    interrupt, or when a block overflows, the complete blocks so far are on disk before the exception goes on.
    """
    complete = samples // plan.samples
    total, adding = state.sums, False
    try:
        for block, result in enumerate(results, start=state.blocks):
            _require_finite(result)
            place = block * plan.samples % total.shape[-1]
            if block < complete:
                adding = True
                updated = total[..., place : place + plan.groups]
                updated += result
                state = State(total, block + 1, state.leading)
                adding = False
                saver.offer(state)
            else:
                saver.offer(state, last=True)  # before the incomplete block goes into the same array
                updated = total[..., place : place + plan.groups]
                updated += result
            if progress is not None:
                progress(min(samples, (block + 1) * plan.samples), samples)
    finally:
        # an interrupt between adding a block and counting it would save sums that hold the block twice
        if not adding:
            saver.offer(state, last=True)
    return total


def _require_finite(result: NDArray[np.float64]) -> None:
    finite = np.isfinite(result).all(axis=(1, 2))
    if not finite.all():
        depth = int(np.argmin(finite))
        raise SimulationOverflow(
            f"the simulated networks overflow float64 at depth {depth}; lower the depth, dt, c_w or the input kernel"
        )
