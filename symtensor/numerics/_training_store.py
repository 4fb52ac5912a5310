"""The runs of one width of a scan, in memory and in one file of its own: complete them, keep them, take them over."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symtensor.numerics._archive import UNREADABLE, differences, read_archive, write_archive
from symtensor.numerics._checkpoint import StateError, StateMismatch
from symtensor.numerics._training_input import read_data
from symtensor.numerics._training_result import TrainingResult
from symtensor.numerics._training_run import Training

__all__ = ["KEPT", "WidthRuns", "mixed_seed"]

Array = NDArray[np.float64]
#: seeds between two writes of the state
SEEDS_PER_WRITE = 16
#: version of the map from (parameters, width, seed) to a run; part of a saved state's identity
_LAW = 1
#: what is kept of every run, by recorded step and seed
KEPT = ("deviation", "train_deviation", "change", "linear_change", "loss", "linear_loss", "residual", "linear_residual")


def mixed_seed(seed: int, width: int) -> int:
    """A seed of its own for every width: draws at different widths are independent."""
    high, low = np.random.SeedSequence([seed, width]).generate_state(2, np.uint32).tolist()
    return (int(high) << 31 | int(low) >> 1) % 2**63


class WidthRuns:
    """The runs of one width, in memory and on disk."""

    __slots__ = ("arrays", "facts", "fingerprint", "path", "resumed", "seeds", "settings", "training", "width")

    def __init__(self, width: int, model: Any, initialiser: Any, settings: dict[str, Any], folder: Path | None) -> None:
        self.width, self.settings = width, settings
        self.training = Training(model, initialiser, **settings)
        self.path = None if folder is None else folder / f"width-{width}.npz"
        self.seeds: list[int] = []
        self.arrays: dict[str, Array] = {}
        self.facts: dict[str, Any] = {}
        self.resumed = 0
        self.fingerprint = _fingerprint(width, settings)

    def complete(self, seeds: tuple[int, ...], report: Callable[[int], None]) -> None:
        """Run what is missing of the seeds, a few at a time; write after each group.

        The first stored run is made again with the first group and compared: a model has no fingerprint.
        """
        self._load()
        missing = [seed for seed in seeds if seed not in self.seeds]
        self.resumed = done = len(seeds) - len(missing)
        report(done)
        size = SEEDS_PER_WRITE if self.path is not None else max(len(missing), 1)
        probe = self.seeds[:1]
        while missing or probe:
            chunk, missing = missing[: size - len(probe)], missing[size - len(probe) :]
            found = self.training.run(tuple(mixed_seed(seed, self.width) for seed in [*probe, *chunk]))
            if probe:
                self._compare(found)
            if chunk:
                self._add(chunk, found, len(probe))
                self._save()
                done += len(chunk)
                report(done)
            probe = []

    def _add(self, seeds: list[int], found: TrainingResult, skip: int) -> None:
        stopped = {stop.seed: stop.step for stop in found.stopped}
        new = {name: np.asarray(getattr(found, name))[:, skip:] for name in KEPT}
        new["stopped"] = np.array([[stopped.get(seed, -1) for seed in found.seeds[skip:]]], dtype=np.float64)
        self.arrays = {name: np.concatenate([self.arrays[name], new[name]], axis=1) if self.arrays else new[name] for name in new}
        self.seeds += seeds
        if not self.facts:
            self.facts = {
                "steps": found.steps,
                "parameters": np.int64(found.parameters),
                "sharpness": np.float64(found.sharpness),
                "held_out": np.bool_(found.compared_on == "held-out inputs"),
            }

    def _save(self) -> None:
        if self.path is not None:
            seeds = np.array(self.seeds, dtype=np.uint64)
            write_archive(self.path, self.fingerprint, {**self.arrays, **self.facts, "seeds": seeds})

    def _load(self) -> None:
        """Take over what is stored, if it was made with the same parameters."""
        if self.path is None or not self.path.exists():
            return
        try:
            found, arrays = read_archive(self.path)
            seeds = arrays.pop("seeds").tolist()
            facts = {name: arrays.pop(name) for name in ("steps", "parameters", "sharpness", "held_out")}
            if any(arrays[name].shape != (len(facts["steps"]), len(seeds)) for name in KEPT):
                raise ValueError("arrays of different shapes")
        except UNREADABLE as error:
            raise StateError(f"{self.path} is not a readable width scan ({error}); delete it to start again") from error
        self._refuse(differences(found, self.fingerprint))
        self.seeds, self.arrays, self.facts = seeds, arrays, facts

    def _compare(self, again: TrainingResult) -> None:
        """The first stored run must come out the same."""
        stored = self.arrays["deviation"][:, 0]
        if again.parameters != int(self.facts["parameters"]) or not np.array_equal(again.steps, self.facts["steps"]):
            self._refuse(["the model's parameters or the recorded steps"])
        # rounding alone moves a deviation by this part of the function's change
        floor = 1e-12 * float(np.nanmax(np.abs(self.arrays["change"][:, 0])))
        if not np.allclose(again.deviation[:, 0], stored, rtol=1e-6, atol=floor, equal_nan=True):
            self._refuse([f"the run of seed {self.seeds[0]} gives other deviations: another model, initialisation, or loss"])

    def _refuse(self, changes: list[str]) -> None:
        if changes:
            raise StateMismatch(f"{self.path} belongs to another scan ({'; '.join(changes)}); use another folder or delete it")

    def array(self, name: str, seeds: tuple[int, ...]) -> Array:
        """(R, S) in the order of the seeds asked for."""
        return self.arrays[name][:, [self.seeds.index(seed) for seed in seeds]]


def _fingerprint(width: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Everything that decides a run, as JSON values; the model itself is checked by running it."""
    data = read_data(settings["data"])
    digest = hashlib.sha256()
    for part in (data.inputs, data.targets, data.held_out):
        digest.update(str(part.shape).encode() + np.ascontiguousarray(np.asarray(part), dtype="<f8").tobytes())
    loss = settings.get("loss", "square")
    record = settings["record"]
    return {
        "law": _LAW,
        "width": width,
        "data (sha256)": digest.hexdigest()[:16],
        "eta": float(settings["eta"]),
        "steps": int(settings["steps"]),
        "record": record if record is None or isinstance(record, int) else [int(step) for step in record],
        "batch": settings.get("batch", "full"),
        "sampling": settings.get("sampling", "independent"),
        "reduction": settings.get("reduction", "sum"),
        "loss": loss if isinstance(loss, str) else "function",
    }
