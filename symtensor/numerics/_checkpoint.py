"""State of an unfinished (or extendable) simulation on disk: written whole or not at all, refused when it differs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symtensor.numerics._archive import UNREADABLE, differences, read_archive, write_archive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

FILE = "simulation-state.npz"


class StateError(ValueError):
    """A state file cannot be used: unreadable, corrupt, or not a state file."""


class StateMismatch(StateError):
    """A state folder belongs to a simulation with other parameters."""


@dataclass(frozen=True, slots=True)
class State:
    """Group sums over the first `blocks` complete blocks of samples, and the leading-order arrays they refer to."""

    sums: NDArray[np.float64]
    blocks: int
    leading: Mapping[str, NDArray[np.float64]]


def save_state(folder: Path, state: State, fingerprint: Mapping[str, Any]) -> None:
    """Write the state atomically (temporary file in the same folder, flushed, then renamed)."""
    arrays = {"sums": state.sums, "blocks": np.int64(state.blocks)}
    arrays |= {f"leading_{name}": array for name, array in state.leading.items()}
    write_archive(folder / FILE, fingerprint, arrays)


def load_state(folder: Path, fresh: State, fingerprint: Mapping[str, Any]) -> State | None:
    """The state in `folder`, or None when there is none; `fresh` is the empty state of the present parameters.

    The input kernel and all parameters must be the same; leading-order arrays may differ by rounding.

    Raises
    ------
    StateMismatch
        If it was written with other parameters; each one that differs is named with both values.
    StateError
        If the file cannot be read.
    """
    path = folder / FILE
    if not path.exists():
        return None
    try:
        found, arrays = read_archive(path)
        leading = {name: arrays[f"leading_{name}"] for name in fresh.leading}
        state = State(arrays["sums"], int(arrays["blocks"]), leading)
    except UNREADABLE as error:
        message = f"{path} is not a readable simulation state ({error}); delete it to start again"
        raise StateError(message) from error
    _require_same(path, found, dict(fingerprint), state, fresh)
    shape = fresh.sums.shape
    if state.sums.shape != shape or state.sums.dtype != np.float64 or not np.isfinite(state.sums).all():
        raise StateError(f"{path} is damaged: sums of shape {state.sums.shape}, expected {shape}; delete it")
    return State(state.sums, state.blocks, fresh.leading)


def _require_same(path: Path, found: dict[str, Any], wanted: dict[str, Any], state: State, fresh: State) -> None:
    changes = differences(found, wanted)
    if not changes:
        changes = [
            f"leading-order array {name}"
            for name, array in fresh.leading.items()
            if state.leading[name].shape != array.shape or not np.allclose(state.leading[name], array, rtol=1e-7)
        ]
    if changes:
        listed = "; ".join(changes)
        raise StateMismatch(f"{path} belongs to other parameters ({listed}); use another folder or delete the file")


def prepare_folder(folder: Path) -> None:
    """Create the folder and check that it can be written before any work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StateError(f"cannot create the state folder {folder}: {error.strerror}") from error
    if not os.access(folder, os.W_OK):
        raise StateError(f"the state folder {folder} is not writable")
