"""The output folder of a run: made, recognised, and never mixed with the results of other parameters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symtensor.derivation.results import to_json, write_text
from symtensor.derivation.settings import INCIDENTAL

PARAMETERS_NAME = "parameters.json"
FORMAT = "symtensor-run-1"
#: arrays with more numbers than this are compared by a hash of their bytes
_SHOWN = 4096


class OutputError(ValueError):
    """The output folder cannot be used; the text names the folder, what is in the way, and the way out."""


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """A folder ready for results; `continued` says whether it already held a run with these parameters."""

    path: Path
    continued: bool
    note: str = ""


def prepare_output(path: Path, parameters: Mapping[str, Any], resume: bool = False) -> OutputFolder:
    """Create `path` or accept an earlier run of the same `parameters` in it, and record them in parameters.json.

    The count `samples` may grow (a run is extended); `out`, `resume` and `memory_mb` do not count. Everything already
    done is kept in either case: with `resume` and nothing to continue, `note` says so.

    Raises OutputError: not writable, not a folder, a folder that is not ours, other parameters (names which differ),
    fewer samples than are there.
    """
    path = Path(path)
    wanted = _comparable(parameters)
    _create(path)
    stored = stored_parameters(path)
    if stored is None or not _holds_results(path):
        if stored is None:
            _require_unused(path)
        write_text(path / PARAMETERS_NAME, _record(wanted))
        note = f"nothing to resume in {str(path)!r}: starting from the beginning" if resume else ""
        return OutputFolder(path, False, note)
    _require_same(path, stored, wanted)
    write_text(path / PARAMETERS_NAME, _record(wanted))
    return OutputFolder(path, True)


def stored_parameters(path: Path) -> dict[str, Any] | None:
    """The parameters of the run that `path` holds, None if it holds none. Raises OutputError if they are unreadable."""
    file = Path(path) / PARAMETERS_NAME
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise OutputError(f"{str(file)!r} cannot be read as JSON ({error}); choose another folder") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT or not isinstance(record.get("parameters"), dict):
        raise OutputError(f"{str(file)!r} was not written by symtensor; choose another output folder")
    return record["parameters"]


def _create(path: Path) -> None:
    probe = path / ".writable"
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except FileExistsError as error:
        raise OutputError(f"the output folder {str(path)!r} is an existing file; choose another name") from error
    except OSError as error:
        raise OutputError(f"the output folder {str(path)!r} is not writable: {error.strerror or error}") from error


def _holds_results(path: Path) -> bool:
    """Whether anything was computed there: a run that was refused leaves its parameters only, and may be corrected."""
    others = [entry for entry in path.iterdir() if entry.name != PARAMETERS_NAME]
    return any(entry.is_file() or any(entry.iterdir()) for entry in others)


def _require_unused(path: Path) -> None:
    entries = sorted(entry.name for entry in path.iterdir())
    if entries:
        raise OutputError(
            f"the output folder {str(path)!r} is not empty and holds no symtensor run (it has {entries[0]!r}"
            + (f" and {len(entries) - 1} more" if len(entries) > 1 else "")
            + "); nothing was changed: choose an empty or new folder"
        )


def _require_same(path: Path, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    changed = [
        f"{key} ({_short(stored.get(key))} there, {_short(wanted.get(key))} now)"
        for key in sorted(set(stored) | set(wanted))
        if key != "samples" and stored.get(key) != wanted.get(key)
    ]
    if changed:
        raise OutputError(
            f"the output folder {str(path)!r} holds a run with other parameters: {', '.join(changed)}. "
            "Give another --out, or the parameters that are there"
        )
    before, now = stored.get("samples") or 0, wanted.get("samples") or 0
    if now < before:
        raise OutputError(
            f"the output folder {str(path)!r} holds a run with {before} samples, more than the {now} asked for; "
            f"ask for at least {before}, or give another --out"
        )


def _comparable(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {key: to_json(_digest(value)) for key, value in parameters.items() if key not in INCIDENTAL}


def _digest(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.size > _SHOWN:
        return f"{value.shape} array, sha256 {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    return value


def _record(parameters: Mapping[str, Any]) -> str:
    return json.dumps({"format": FORMAT, "parameters": parameters}, indent=2, sort_keys=True, allow_nan=False) + "\n"


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."
