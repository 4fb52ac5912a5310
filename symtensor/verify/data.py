"""Norms from a file with columns `n` and `value`; whatever is wrong is named with its line."""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symtensor.verify.errors import DataError, DataWarning

__all__ = ["Table", "read_csv"]

#: bad rows named in one message
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Table:
    """Pairs of size (int64, or Python integers if some are larger) and norm, in the order of the file, and unused columns."""

    sizes: NDArray[Any]
    values: NDArray[np.float64]
    ignored: tuple[str, ...] = ()


def read_csv(path: Path | str, size: str = "n", value: str = "value") -> Table:
    """Read sizes and norms from comma-, semicolon- or tab-separated text with a header line.

    Blank lines and lines starting with `#` are skipped. Without a header the file must have exactly two columns.

    Parameters
    ----------
    path : the file, UTF-8.
    size, value : names of the two columns (case does not matter).

    Raises
    ------
    DataError
        No such file, missing columns, or bad rows: each with its line and what is wrong.

    Warns
    -----
    DataWarning
        Other columns, which are ignored, by name.
    """
    file = Path(path)
    try:
        content = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{str(file)!r} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    rows = list(_rows(content))
    if not rows:
        raise DataError(f"{str(file)!r} is empty; a header line '{size},{value}' and one line per sample are required")
    (at_size, at_value), ignored, body, width = _columns(file, rows, size, value)
    if not body:
        raise DataError(f"{str(file)!r} has a header and no rows")
    numbers, problems = [], []
    for line, cells in body:
        try:
            numbers.append(_pair(cells, at_size, at_value, width))
        except ValueError as error:
            problems.append(f"line {line}: {error}")
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise DataError(f"{str(file)!r}: {'; '.join(problems[:_SHOWN])}{more}")
    if ignored:
        named = ", ".join(map(repr, ignored))
        warnings.warn(f"{str(file)!r}: columns {named} are ignored; used are {size!r} and {value!r}", DataWarning, stacklevel=2)
    return Table(_sizes([n for n, _ in numbers]), np.array([v for _, v in numbers]), ignored)


def _sizes(found: list[int]) -> NDArray[Any]:
    return np.array(found, dtype=np.int64 if max(found) < 2**63 else object)


def _rows(content: str) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of the lines that say something."""
    for line, entry in enumerate(content.splitlines(), start=1):
        if entry.strip() and not entry.lstrip().startswith("#"):
            delimiter = next((mark for mark in ("\t", ";") if mark in entry), ",")
            yield line, [cell.strip() for cell in next(csv.reader([entry], delimiter=delimiter))]


def _columns(
    file: Path, rows: Sequence[tuple[int, list[str]]], size: str, value: str
) -> tuple[tuple[int, int], tuple[str, ...], Sequence[tuple[int, list[str]]], int]:
    """Places of the two columns, names of the others, the rows below the header, and cells per row."""
    line, header = rows[0]
    lowered = [name.lower() for name in header]
    places = [lowered.index(name.lower()) if name.lower() in lowered else None for name in (size, value)]
    if places[0] is not None and places[1] is not None:
        ignored = tuple(name for at, name in enumerate(header) if at not in places)
        return (places[0], places[1]), ignored, rows[1:], len(header)
    if len(header) == 2 and all(_is_number(cell) for cell in header):
        return (0, 1), (), rows, 2
    missing = " and ".join(repr(name) for name, at in zip((size, value), places) if at is None)
    raise DataError(
        f"{str(file)!r}, line {line}: no column {missing} (columns: {', '.join(map(repr, header))}); rename it, or name yours"
    )


def _pair(cells: Sequence[str], at_size: int, at_value: int, width: int) -> tuple[int, float]:
    if len(cells) != width:
        raise ValueError(f"{len(cells)} cells where {width} are expected")
    size, value = cells[at_size], cells[at_value]
    whole = _whole(size)
    if not _is_number(value):
        raise ValueError(f"value {value!r} is not a number")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"value {value!r} is not finite")
    if number < 0:
        raise ValueError(f"value {value} is negative; norms are not: take the absolute value")
    return whole, number


def _whole(cell: str) -> int:
    """The size, exactly: as a float, 1e30 would be another integer."""
    try:
        number = Decimal(cell)
    except InvalidOperation:
        raise ValueError(f"size {cell!r} is not an integer") from None
    if number.is_finite() and number.adjusted() > 300:  # before it is written out
        raise ValueError(f"size {cell[:20]} is too large; sizes are at most 1e300")
    if not number.is_finite() or number != number.to_integral_value():
        raise ValueError(f"size {cell!r} is not an integer")
    if number < 2:
        raise ValueError(f"size {cell} is not possible; sizes are at least 2")
    return int(number)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
