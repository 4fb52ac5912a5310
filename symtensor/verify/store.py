"""Norms drawn so far, on disk: one file, replaced as a whole after every block, refused when it belongs to another run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symtensor.numerics._archive import UNREADABLE, differences, read_archive, write_archive
from symtensor.verify.draw import Plan, Sampler, draw_block
from symtensor.verify.errors import StoreError

__all__ = ["load_store", "save_store"]

Array = NDArray[np.float64]
_FORMAT = "symtensor-verify-1"


def save_store(path: Path, plan: Plan, label: str, drawn: Sequence[Array]) -> None:
    """Write all norms atomically: a temporary file beside `path`, flushed, then renamed.

    Raises StoreError if the place cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_archive(path, _fingerprint(plan, label), {f"size{place}": values for place, values in enumerate(drawn)})
    except OSError as error:
        raise StoreError(f"the store {str(path)!r} cannot be written: {error.strerror or error}") from error


def load_store(path: Path, plan: Plan, label: str, sampler: Sampler) -> list[Array] | None:
    """The norms stored at `path`, None if there are none yet.

    A sampler has no fingerprint, so the first block of every stored size is drawn again and compared. A sampler that
    differs in later blocks only is not noticed.

    Raises
    ------
    StoreError
        Unreadable; other sizes, seed, block sizes or label (each named); or samples that this sampler does not draw.
    """
    if not path.exists():
        return None
    try:
        found, arrays = read_archive(path)
        drawn = [np.array(arrays[f"size{place}"], dtype=np.float64) for place in range(len(found["sizes"]))]
    except UNREADABLE as error:
        # NumPy's own words would advise to unpickle the file, which runs code from it
        why = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
        raise StoreError(f"{str(path)!r} is not a readable store of a verification{why}; delete it or give another name") from None
    changed = differences(found, _fingerprint(plan, label))
    if changed:
        raise StoreError(f"{str(path)!r} belongs to another verification ({'; '.join(changed)}); give another store")
    if any(v.ndim != 2 or v.shape[0] not in (0, 1, 2) or v.shape[1] % b for v, b in zip(drawn, plan.blocks)):
        raise StoreError(f"{str(path)!r} is damaged: its arrays are no whole blocks; delete it to start again")
    for place, values in enumerate(drawn):
        if not values.shape[1]:
            continue
        again = draw_block(sampler, plan, place, 0)
        first = values[:, : plan.blocks[place]]
        if again.shape != first.shape or not np.allclose(again, first, rtol=1e-6, atol=0):
            raise StoreError(
                f"{str(path)!r} holds samples that this sampler does not draw (first block at n = {plan.sizes[place]} differs); "
                "give another store, or the sampler it was made with"
            )
    return drawn


def _fingerprint(plan: Plan, label: str) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "sizes": list(plan.sizes),
        "samples per block": list(plan.blocks),
        "seed": plan.seed,
        "label": label,
    }
