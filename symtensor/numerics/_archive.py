"""Arrays with a fingerprint in one file on disk: written whole or not at all, read without unpickling."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["UNREADABLE", "differences", "read_archive", "write_archive"]

#: What reading a foreign or damaged file raises.
UNREADABLE = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error)


def write_archive(path: Path, fingerprint: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write atomically: a temporary file beside `path`, flushed, then renamed. Raises OSError."""
    temporary = path.with_name(path.name + ".tmp")  # one name: a kill while writing leaves one stale file, overwritten next time
    label = np.frombuffer(json.dumps(dict(fingerprint), sort_keys=True).encode(), dtype=np.uint8)
    try:
        with temporary.open("wb") as file:
            np.savez(file, fingerprint=label, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Fingerprint and arrays; raises one of `UNREADABLE`."""
    with np.load(path, allow_pickle=False) as data:
        found = json.loads(bytes(data["fingerprint"]).decode())
        return found, {name: data[name] for name in data.files if name != "fingerprint"}


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """One text for each entry in which two fingerprints differ, with both values."""
    return [
        f"{key}: {found.get(key)!r} there, {wanted.get(key)!r} now"
        for key in sorted(found.keys() | wanted.keys())
        if found.get(key) != wanted.get(key)
    ]
