"""Results on disk: arrays with named axes (NetCDF 3, opens in xarray, MATLAB, R, Julia) and a strict JSON summary."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

#: arrays with more numbers than this go to the labelled file; the summary then holds a reference to it
SUMMARY_LIMIT = 1_000_000
RESULTS_NAME = "results.nc"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class ResultError(ValueError):
    """A result that cannot be stored as asked; the text names the variable and the axis or shape."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """An array with one name per axis, for example K0 with axes ("depth", "a", "b")."""

    values: np.ndarray
    axes: tuple[str, ...]
    long_name: str = ""
    units: str = "1"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.asarray(self.values))
        if self.values.ndim != len(self.axes):
            raise ResultError(f"an array of shape {self.values.shape} needs one name per axis, got {self.axes}")
        if len(set(self.axes)) != len(self.axes):
            raise ResultError(f"the axes {self.axes} repeat a name; give each axis its own, for example a, b, c, d")


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A scratch path beside `path` that replaces it when the block ends well and is removed when it does not."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield scratch
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8 with Unix line ends, so that a reader never sees half a file."""
    with atomic(path) as scratch:
        scratch.write_text(text, encoding="utf-8", newline="\n")


def write_netcdf(path: Path, variables: Mapping[str, Labelled], attributes: Mapping[str, Any] | None = None) -> None:
    """Write `variables` to a NetCDF 3 file (64-bit offsets); an axis name shared by two variables is one dimension.

    Raises ResultError: a name that is not an identifier, an axis with two different lengths, a dtype that is not
    numeric, integers beyond 32 bits.
    """
    from scipy.io import netcdf_file

    sizes = _dimension_sizes(variables)
    stored = {name: _storable(name, variable.values) for name, variable in variables.items()}
    with atomic(path) as scratch, netcdf_file(str(scratch), "w", version=2) as file:
        for key, value in (attributes or {}).items():
            setattr(file, key, _attribute(value))
        for axis, size in sizes.items():
            file.createDimension(axis, size)
        for name, variable in variables.items():
            target = file.createVariable(name, stored[name].dtype, variable.axes)
            target[...] = stored[name]
            target.units = _attribute(variable.units)
            if variable.long_name:
                target.long_name = _attribute(variable.long_name)


def read_netcdf(path: Path) -> tuple[dict[str, Labelled], dict[str, Any]]:
    """The variables and global attributes of a file written by `write_netcdf` (arrays are copies)."""
    from scipy.io import netcdf_file

    with netcdf_file(str(path), "r", mmap=False) as file:
        variables = {
            name: Labelled(
                np.array(variable[...]).astype(variable[...].dtype.newbyteorder("=")),
                tuple(variable.dimensions),
                _text(getattr(variable, "long_name", b"")),
                _text(getattr(variable, "units", b"1")),
            )
            for name, variable in file.variables.items()
        }
        return variables, {key: _text(value) for key, value in file._attributes.items()}


def variable_name(*keys: str) -> str:
    """The name in the labelled file of the quantity at `keys` in the summary: ("theory", "K0") is theory_K0."""
    return "_".join(re.sub(r"\W", "_", key) for key in keys)


def flatten(tree: Mapping[str, Any], *prefix: str) -> dict[str, Labelled]:
    """The `Labelled` leaves of a nested mapping, named by `variable_name` of their path."""
    leaves: dict[str, Labelled] = {}
    for key, value in tree.items():
        if isinstance(value, Labelled):
            leaves[variable_name(*prefix, key)] = value
        elif isinstance(value, Mapping):
            leaves.update(flatten(value, *prefix, key))
    return leaves


def write_summary(
    path: Path, summary: Mapping[str, Any], limit: int = SUMMARY_LIMIT, results: str = RESULTS_NAME
) -> None:
    """Write `summary` as strict JSON: arrays are nested lists, NaN and infinities are null, keys keep their order.

    An array of more than `limit` numbers is replaced by `{"file": results, "variable": name}` with the name that
    `flatten` gives it.
    """
    write_text(path, _block(to_json(summary, limit, results), 0) + "\n")


def to_json(value: Any, limit: int = SUMMARY_LIMIT, results: str = RESULTS_NAME, path: tuple[str, ...] = ()) -> Any:
    """`value` as None, bool, int, float, str, list and dict. Raises ResultError naming what has no such form."""
    if isinstance(value, Mapping):
        return {str(key): to_json(item, limit, results, (*path, str(key))) for key, item in value.items()}
    if isinstance(value, Labelled):
        value = value.values
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.dtype.kind not in "fiubU":
            raise ResultError(f"{'.'.join(path) or 'the summary'}: an array of dtype {array.dtype} has no JSON form")
        if array.size > limit:
            return {"file": results, "variable": variable_name(*path)}
        return _null_nonfinite(array.tolist())
    if isinstance(value, (list, tuple)):
        return [to_json(item, limit, results, (*path, str(index))) for index, item in enumerate(value)]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    raise ResultError(f"{'.'.join(path) or 'the summary'}: a {type(value).__name__} has no JSON form")


def _null_nonfinite(value: Any) -> Any:
    if isinstance(value, list):
        return [_null_nonfinite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _block(value: Any, depth: int) -> str:
    """JSON with its two outer levels one entry a line: readable, without a line per number."""
    if depth == 2 or not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    pad = "  " * (depth + 1)
    entries = (f"{pad}{json.dumps(key, ensure_ascii=False)}: {_block(item, depth + 1)}" for key, item in value.items())
    return "{\n" + ",\n".join(entries) + "\n" + "  " * depth + "}"


def _dimension_sizes(variables: Mapping[str, Labelled]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    owner: dict[str, str] = {}
    for name, variable in variables.items():
        for word in (name, *variable.axes):
            if not _NAME.fullmatch(word):
                raise ResultError(f"{word!r} cannot be a name in a NetCDF file: letters, digits and _ only")
        for axis, size in zip(variable.axes, variable.values.shape):
            if sizes.setdefault(axis, size) != size:
                raise ResultError(f"axis {axis!r} has length {sizes[axis]} in {owner[axis]!r} but {size} in {name!r}")
            owner.setdefault(axis, name)
    return sizes


def _storable(name: str, values: np.ndarray) -> np.ndarray:
    """`values` in a type that NetCDF 3 has: 32- or 64-bit floats, 8-, 16- or 32-bit integers."""
    kind = values.dtype.kind
    if kind == "f":
        return values.astype("f4" if values.dtype.itemsize <= 4 else "f8")
    if kind == "b":
        return values.astype("i1")
    if kind in "iu":
        if values.size and (int(values.max()) > 2**31 - 1 or int(values.min()) < -(2**31)):
            raise ResultError(f"{name!r}: integers beyond 32 bits do not fit a NetCDF 3 file; store them as floats")
        return values.astype("i4")
    raise ResultError(f"{name!r}: dtype {values.dtype} cannot be stored in a NetCDF file; real numbers are required")


def _attribute(value: Any) -> Any:
    return value.encode("utf-8") if isinstance(value, str) else value


def _text(value: Any) -> Any:
    return value.decode("utf-8") if isinstance(value, bytes) else value
