"""Numba on first use: compiled functions are cached on disk, and compiled anew when any file of the kernel changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

__all__ = ["jit"]


@cache
def _sources() -> str:
    """A digest of all files of the kernel."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def jit(function: Callable[..., Any]) -> Any:
    """Compile `function` in nopython mode, cached next to the source (or in numba's cache directory).

    The kernel allocates nothing, so counting references to its arrays is switched off where numba lets us: it would
    take four fifths of the time. Numba's cache knows a function by its own file only; a change in a function that it
    calls would go unnoticed, so the stamp is that of the whole kernel.
    """
    try:
        compiled = numba.njit(cache=True, nogil=True, _nrt=False)(function)  # pyright: ignore[reportCallIssue]
    except (KeyError, TypeError):  # a numba that no longer has the option
        compiled = numba.njit(cache=True, nogil=True)(function)
    cache_file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = _sources()  # pyright: ignore[reportOptionalMemberAccess]
    return compiled
