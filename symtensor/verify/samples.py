"""A user's own norms, in any of three shapes, as one array per size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symtensor.verify.errors import DataError

__all__ = ["grouped"]


def grouped(sizes: Any, values: Any = None) -> dict[Any, NDArray[np.float64]]:
    """Norms by size: from a mapping, from pairs (N,) and (N,), or from (m,) and (m, S) or m sequences.

    Raises
    ------
    DataError
        Lengths that do not fit, values that are not finite non-negative numbers; with size and place.

    Examples
    --------
    >>> {n: v.tolist() for n, v in grouped([8, 9, 8], [1.0, 2.0, 3.0]).items()}
    {8: [1.0, 3.0], 9: [2.0]}
    """
    if isinstance(sizes, Mapping):
        if values is not None:
            raise DataError("sizes is a mapping from size to norms, so values has no meaning; pass claim=.. by name")
        return {n: _checked(n, norms) for n, norms in sizes.items()}
    if values is None:
        raise DataError("values is missing; give one value per size entry, or a mapping from size to norms")
    if np.ma.is_masked(sizes):
        raise DataError("some sizes are masked; leave out these entries, in values too")
    given = list(np.asarray(sizes).tolist()) if np.ndim(sizes) == 1 else None
    if given is None:
        raise DataError(f"sizes has {np.ndim(sizes)} dimensions; a sequence of sizes is required")
    if len(given) != len(values):
        raise DataError(f"{len(given)} sizes and {len(values)} values; they belong together one by one")
    if any(np.ndim(entry) for entry in values):
        if len(set(given)) < len(given):
            raise DataError("a size is given twice; with one sequence of norms per size, every size occurs once")
        return {n: _checked(n, norms) for n, norms in zip(given, values)}
    numbers = _numbers("the values", values)
    collected: dict[Any, list[float]] = {}
    for n, value in zip(given, numbers.tolist()):
        collected.setdefault(n, []).append(value)
    return {n: _checked(n, norms) for n, norms in collected.items()}


def _numbers(name: str, values: Sequence[Any]) -> NDArray[np.float64]:
    if np.ma.is_masked(values):
        raise DataError(f"{name} are masked at {int(np.ma.count_masked(values))} places; leave these out (.compressed())")
    try:
        given = np.asarray(values)
        if np.iscomplexobj(given) or given.dtype.kind in "OSUMm":
            raise TypeError(f"entries of type {given.dtype}")
        return given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} are not real numbers ({error})") from None


def _checked(n: Any, norms: Any) -> NDArray[np.float64]:
    values = _numbers(f"the norms at n = {n}", norms)
    if values.ndim != 1 or not values.size:
        raise DataError(f"the norms at n = {n} have shape {values.shape}; a sequence of at least one number is required")
    bad = ~np.isfinite(values) | (values < 0)
    if bad.any():
        place = int(np.argmax(bad))
        fix = "take abs first" if values[place] < 0 else "leave it out only if you know why it is there"
        raise DataError(f"value {place} at n = {n} is {values[place]}; norms are finite and not negative: {fix}")
    return values
