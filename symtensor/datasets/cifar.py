"""CIFAR-10 and CIFAR-100: pickled batches, read without executing anything, and binary batches."""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symtensor.datasets.errors import DatasetError, read_bytes

__all__ = ["PIXELS", "read_cifar_binary", "read_cifar_pickle"]

#: bytes of an image: three planes (red, green, blue) of 32 x 32, row by row
PIXELS = 3 * 32 * 32
_BYTE_TYPES = ("u1", "uint8", "B")
_LABELS = ("labels", "fine_labels")

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]


@dataclass(slots=True)
class _Plain:
    """Stands in for whatever a pickle of an array builds: it keeps what it is given and does nothing."""

    arguments: tuple[Any, ...] = ()
    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Array(_Plain):
    """An array that was pickled by `_reconstruct` (protocols up to 4): the state holds version, shape, type, order, bytes."""


class _Buffer(_Plain):
    """An array that was pickled by `_frombuffer` (protocol 5): bytes, type, shape, order."""


class _Type(_Plain):
    """A numpy dtype."""


class _Class(_Plain):
    """The class ndarray, which is only passed on."""


def _encode(text: Any = "", encoding: Any = "latin1", *_: Any) -> bytes:
    """Bytes are pickled as text in protocol 2 by Python 3."""
    return text.encode("latin-1") if isinstance(text, str) else bytes(text)


def _stand_ins() -> dict[tuple[str, str], Callable[..., Any]]:
    found: dict[tuple[str, str], Callable[..., Any]] = {
        ("numpy", "ndarray"): lambda *a: _Class(a),
        ("numpy", "dtype"): lambda *a: _Type(a),
        ("_codecs", "encode"): _encode,
    }
    for core in ("numpy.core", "numpy._core"):
        found[f"{core}.multiarray", "_reconstruct"] = lambda *a: _Array(a)
        found[f"{core}.numeric", "_frombuffer"] = lambda *a: _Buffer(a)
    return found


class _Reader(pickle.Unpickler):
    """Knows the five names that arrays are pickled with, and replaces them by objects that do nothing."""

    def find_class(self, module: str, name: str) -> Any:
        known = _stand_ins()
        if (module, name) not in known:
            raise _Refused(f"{module}.{name}")
        return known[module, name]


class _Refused(Exception):
    """A pickle that wants to call something else."""


def read_cifar_pickle(path: Path | str) -> tuple[Images, Labels]:
    """Images (N, 32, 32, 3) and labels (N,) of a batch of CIFAR-10 or CIFAR-100 (fine labels) in Python's pickle format.

    The file is never executed: of all functions that a pickle may name only those of an array are accepted, and even they are
    replaced by objects that keep their arguments.

    Raises
    ------
    DatasetError
        No such file, a damaged or truncated file, a pickle that is no CIFAR batch or calls anything else (it is named), numbers of
        images and labels that differ.
    """
    file = Path(path)
    content = read_bytes(file)
    try:
        found = _Reader(io.BytesIO(content), encoding="bytes").load()
    except _Refused as error:
        raise DatasetError(f"{str(file)!r} is refused: the pickle calls {error}, which no CIFAR batch does") from None
    except Exception as error:  # damaged bytes can make an unpickler raise almost anything
        raise DatasetError(f"{str(file)!r} is no pickle, or truncated or damaged ({type(error).__name__}: {error})") from error
    if not isinstance(found, dict):
        raise DatasetError(f"{str(file)!r} holds a {type(found).__name__}; a CIFAR batch is a dictionary with 'data' and 'labels'")
    entries = {key.decode("latin-1") if isinstance(key, bytes) else key: value for key, value in found.items()}
    label_name = next((name for name in _LABELS if name in entries), None)
    if "data" not in entries or label_name is None:
        keys = ", ".join(sorted(map(str, entries))) or "none"
        raise DatasetError(f"{str(file)!r} has the entries {keys}; a CIFAR batch has 'data' and 'labels' (or 'fine_labels')")
    rows = _rows(file, entries["data"])
    return _checked(file, rows, _integers(file, entries[label_name]), 100 if label_name == "fine_labels" else 10)


def _rows(file: Path, data: Any) -> Images:
    """The pixels as (N, 3072), from what the pickle said about its array."""
    if isinstance(data, _Array) and isinstance(data.state, tuple) and len(data.state) == 5:
        _, shape, kind, fortran, content = data.state
    elif isinstance(data, _Buffer) and len(data.arguments) == 4:
        content, kind, shape, order = data.arguments
        fortran = order in ("F", b"F")
    else:
        raise DatasetError(f"{str(file)!r}: 'data' is no array; (N, {PIXELS}) unsigned bytes are required")
    name = kind.arguments[0] if isinstance(kind, _Type) and kind.arguments else kind
    name = name.decode("latin-1") if isinstance(name, bytes) else name
    sized = isinstance(shape, tuple) and all(isinstance(n, int) and n >= 0 for n in shape)
    if name not in _BYTE_TYPES or not sized or len(shape) != 2 or shape[1] != PIXELS:
        raise DatasetError(f"{str(file)!r}: 'data' has type {name!r} and shape {shape!r}; required: (N, {PIXELS}) unsigned bytes")
    if not isinstance(content, (bytes, bytearray)) or len(content) != math.prod(shape):
        raise DatasetError(f"{str(file)!r} is damaged: 'data' has not the {math.prod(shape)} bytes of its shape {shape}")
    return np.frombuffer(content, np.uint8).reshape(shape, order="F" if fortran else "C")


def _integers(file: Path, labels: Any) -> Labels:
    if not isinstance(labels, (list, tuple)) or not all(isinstance(label, int) for label in labels):
        raise DatasetError(f"{str(file)!r}: the labels are no list of integers")
    return np.array([min(max(label, -1), 2**31) for label in labels], dtype=np.int64)


def read_cifar_binary(path: Path | str, labels: int = 1) -> tuple[Images, Labels]:
    """Images (N, 32, 32, 3) and labels (N,) of a binary batch: per image `labels` bytes, the last of which is used, and pixels.

    CIFAR-10 has one label byte, CIFAR-100 two (coarse, fine).

    Raises
    ------
    DatasetError
        No such file, an empty one, a size that is no multiple of a record's, or a label out of range.
    """
    file = Path(path)
    content = np.frombuffer(read_bytes(file), np.uint8)
    record = labels + PIXELS
    if not content.size or content.size % record:
        raise DatasetError(
            f"{str(file)!r} has {content.size} bytes; a CIFAR batch has a multiple of {record} ({labels} label byte(s) and "
            f"{PIXELS} pixels per image): truncated, or no binary batch"
        )
    rows = content.reshape(-1, record)
    return _checked(file, rows[:, labels:], rows[:, labels - 1].astype(np.int64), 10 if labels == 1 else 100)


def _checked(file: Path, rows: Images, labels: Labels, classes: int) -> tuple[Images, Labels]:
    if len(rows) != len(labels):
        raise DatasetError(f"{str(file)!r} has {len(rows)} images and {len(labels)} labels; they belong together one by one")
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        raise DatasetError(f"{str(file)!r}: label {wrong[0]} is {labels[wrong[0]]}, not one of 0, .., {classes - 1}")
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)), labels


def concatenated(parts: Sequence[tuple[Images, Labels]]) -> tuple[Images, Labels]:
    """Batches one after the other."""
    return np.concatenate([images for images, _ in parts]), np.concatenate([labels for _, labels in parts])
