"""The error of this package, and reading a file's bytes with a message that names it."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

__all__ = ["DatasetError", "read_bytes"]

GZIP = b"\x1f\x8b"


class DatasetError(ValueError):
    """A data file is missing, damaged, or not what was asked for; the file is named."""


def read_bytes(path: Path) -> bytes:
    """Content of a file, unpacked if it is gzip (by its first bytes, whatever its name); raises DatasetError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    if not content.startswith(GZIP):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise DatasetError(f"{str(path)!r} is a damaged or truncated gzip file ({error}); copy it again") from error
