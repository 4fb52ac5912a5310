"""Reading a matrix of real numbers from .csv or .npy: every refusal says where in the file, and what would do.

CSV: comma, semicolon, tab or blanks between numbers, an optional header line of names, `#` comments. Nothing is
evaluated and nothing is unpickled.
"""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import numpy as np

SUFFIXES = (".csv", ".npy")


class InputError(ValueError):
    """Input data that cannot be used: the text names the file and the place, and what is required."""


def read_matrix(path: Path, what: str) -> np.ndarray:
    """The finite real matrix (rows, columns) in `path`; `what` says in errors what the file should hold.

    A single number is a 1 x 1 matrix. Raises InputError: missing file, wrong suffix, not numeric, complex, NaN or
    infinite (with row and column, counted from 1), ragged, empty, more than two axes.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{what} must be a .csv or .npy file, got {str(path)!r}")
    if path.is_dir():
        raise InputError(f"{what} must be a file, but {str(path)!r} is a folder")
    if not path.exists():
        raise InputError(f"{what}: there is no file {str(path)!r} (looked from {str(Path.cwd())!r})")
    try:
        values = _read_csv(path) if path.suffix.lower() == ".csv" else _read_npy(path)
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror or error}") from error
    return finite(_two_axes(values, path), str(path))


def finite(values: np.ndarray, where: str) -> np.ndarray:
    """`values` itself; raises InputError naming the first entry (row, column from 1) that is NaN or infinite."""
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        place = ", ".join(f"{axis} {index + 1}" for axis, index in zip(("row", "column"), bad[0]))
        value = values[tuple(bad[0])]
        name = "NaN" if np.isnan(value) else "infinite"
        more = f" ({len(bad)} such entries)" if len(bad) > 1 else ""
        raise InputError(f"{where}: the entry at {place} is {name}{more}; all entries must be finite numbers")
    return values


def _two_axes(values: np.ndarray, path: Path) -> np.ndarray:
    if values.size == 0:
        raise InputError(f"{str(path)!r} holds no numbers (shape {values.shape})")
    if values.ndim > 2 or (values.ndim == 1 and values.size > 1):
        raise InputError(
            f"{str(path)!r} has shape {values.shape}; a matrix with two axes is required "
            "(a kernel is P x P, raw inputs are P x features: reshape to (P, 1) for one feature each)"
        )
    return values.reshape(1, 1) if values.ndim < 2 else values


def _read_npy(path: Path) -> np.ndarray:
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        reason = "it holds Python objects" if "pickle" in str(error) and _is_npy(path) else "it is not a .npy file"
        raise InputError(f"{str(path)!r}: {reason}; save a plain array of numbers with numpy.save") from error
    if not isinstance(values, np.ndarray):
        raise InputError(f"{str(path)!r} is an archive of arrays; one array saved with numpy.save is required")
    if values.dtype.kind == "c":
        raise InputError(f"{str(path)!r} holds complex numbers ({values.dtype}); real numbers are required")
    if values.dtype.kind not in "fiub":
        raise InputError(f"{str(path)!r} is not numeric (dtype {values.dtype}); real numbers are required")
    return values.astype(np.float64)


def _is_npy(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(6) == b"\x93NUMPY"


def _read_csv(path: Path) -> np.ndarray:
    rows = _csv_rows(path)
    if rows and all(_number(field) is None for field in rows[0][1]):
        rows = rows[1:]
    if not rows:
        return np.empty((0, 0))
    width = len(rows[0][1])
    table: list[list[float]] = []
    for line, fields in rows:
        if len(fields) != width:
            raise InputError(
                f"{str(path)!r}, line {line}: {len(fields)} fields, but the rows before have {width}; "
                "every row must have the same number of columns"
            )
        table.append([_required(field, path, line, column) for column, field in enumerate(fields, start=1)])
    return np.array(table, dtype=np.float64)


def _csv_rows(path: Path) -> list[tuple[int, list[str]]]:
    """(line number, fields) of every line that is neither blank nor a comment."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} is not a text file (byte {error.start} is not UTF-8)") from error
    lines = [(number, line.split("#")[0].strip()) for number, line in enumerate(text.splitlines(), start=1)]
    return [(number, _fields(line)) for number, line in lines if line]


def _fields(line: str) -> list[str]:
    for separator in ";,\t":
        if separator in line:
            return [field.strip() for field in next(csv.reader([line], delimiter=separator))]
    return line.split()


def _number(field: str) -> float | None:
    """The real number that `field` spells, NaN and infinities included; Python's `1_000` is not a number here."""
    try:
        return None if "_" in field else float(field)
    except ValueError:
        return None


def _required(field: str, path: Path, line: int, column: int) -> float:
    value = _number(field)
    if value is None:
        raise InputError(f"{str(path)!r}, line {line}, column {column}: {_complaint(field)}")
    if not math.isfinite(value):
        raise InputError(
            f"{str(path)!r}, line {line}, column {column}: {field!r} is not a finite number; all entries must be finite"
        )
    return value


def _complaint(field: str) -> str:
    if not field:
        return "empty field; a number is required"
    shown = field if len(field) <= 40 else field[:37] + "..."
    if re.fullmatch(r"[-+.\deE]+,\d+", field):
        return f"{shown!r} has a decimal comma; write a decimal point"
    if re.fullmatch(r"\(?[-+.\deE]*[-+]?[.\deE]*[ij]\)?", field) and any(letter.isdigit() for letter in field):
        return f"{shown!r} is complex; real numbers are required"
    return f"{shown!r} is not a number"
