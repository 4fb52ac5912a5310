"""The idx format of MNIST and FashionMNIST."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symtensor.datasets.errors import DatasetError, read_bytes

__all__ = ["read_idx"]

#: third byte of the magic number -> type, big-endian
TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: Path | str, dimensions: int | None = None) -> NDArray[Any]:
    """The array of an idx file, plain or gzip.

    Parameters
    ----------
    path : the file.
    dimensions : how many are expected: 3 for images (N, rows, columns), 1 for labels (N,).

    Raises
    ------
    DatasetError
        No such file, another magic number, another number of dimensions, or more or fewer bytes than the header says.

    Notes
    -----
    Two zero bytes, a type (0x08: unsigned byte), the number of dimensions d, d sizes as big-endian 32-bit integers, then
    the entries, last index fastest. MNIST's images start with 00 00 08 03 (2051), its labels with 00 00 08 01 (2049).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "labels"
    ...     _ = file.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    ...     read_idx(file, dimensions=1).tolist()
    [7, 2, 1]
    """
    file = Path(path)
    content = read_bytes(file)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in TYPES or not content[3]:
        raise DatasetError(
            f"{str(file)!r} is no idx file: it starts with {content[:4].hex(' ') or 'nothing'}, an idx file with 00 00, a type and "
            "the number of dimensions (MNIST images 00 00 08 03, labels 00 00 08 01)"
        )
    found, start = content[3], 4 + 4 * content[3]
    if dimensions is not None and found != dimensions:
        kinds = {1: "labels", 3: "images"}
        raise DatasetError(
            f"{str(file)!r} has {found} dimension(s), {kinds.get(dimensions, 'this file')} must have {dimensions}; "
            "are the files of images and labels exchanged?"
        )
    if len(content) < start:
        raise DatasetError(f"{str(file)!r} is truncated: {len(content)} bytes, its header alone has {start}")
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", found, 4))
    kind = np.dtype(TYPES[content[2]])
    expected = start + math.prod(shape) * kind.itemsize
    if len(content) != expected:
        what = "truncated" if len(content) < expected else "too long"
        raise DatasetError(f"{str(file)!r} is {what}: {len(content)} bytes, its header says {expected} (shape {shape})")
    return np.frombuffer(content, kind, offset=start).reshape(shape).astype(kind.newbyteorder("="))
