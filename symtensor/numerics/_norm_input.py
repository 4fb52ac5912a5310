"""What the norms accept: groupings of slots, real finite float64 arrays, counted memory; every refusal says how to go on."""

from __future__ import annotations

import math
import string
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from numpy.typing import NDArray

from symtensor.numerics._ensemble import MemoryCapError

Array: TypeAlias = NDArray[np.float64]
Blocks: TypeAlias = tuple[tuple[int, ...], ...]
Grouping: TypeAlias = "str | Sequence[Sequence[int]] | None"

MOST_SLOTS = 12
_LETTERS = string.ascii_lowercase


class GroupingError(ValueError):
    """The grouping is not a partition of the index slots."""


class NormInputError(ValueError):
    """What was given has no real subordinate norm in float64; the message says what it is and what is required."""


def require_float64() -> None:
    """JAX must be in 64-bit mode; switching it on is the caller's decision."""
    if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise ValueError('float64 is off in JAX; call jax.config.update("jax_enable_x64", True) first')


def parse_grouping(grouping: Grouping, order: int) -> Blocks:
    """Blocks of slots, each to be given one Euclidean unit vector; `None` gives every slot its own.

    Text names the slots a, b, c, .. in their order and separates blocks by bars.

    Raises
    ------
    GroupingError
        If a slot is missing, repeated or unknown, or a block is empty; the slot is named.

    Examples
    --------
    >>> parse_grouping("ac|b", 3)
    ((0, 2), (1,))
    """
    if order > MOST_SLOTS:
        raise GroupingError(f"a tensor of order {order} is given; at most {MOST_SLOTS} slots are read")
    if grouping is None:
        return tuple((slot,) for slot in range(order))
    blocks = _from_text(grouping, order) if isinstance(grouping, str) else _from_numbers(grouping, order)
    if any(not block for block in blocks):
        raise GroupingError(f"grouping {_shown(grouping)} has an empty block; leave it out")
    seen = [slot for block in blocks for slot in block]
    for slot in seen:
        if seen.count(slot) > 1:
            raise GroupingError(f"grouping {_shown(grouping)} repeats slot {_name(slot)}; every slot belongs to exactly one block")
    for slot in range(order):
        if slot not in seen:
            raise GroupingError(
                f"grouping {_shown(grouping)} misses slot {_name(slot)} of an order-{order} tensor; "
                "every slot belongs to exactly one block"
            )
    return blocks


def _shown(grouping: Any) -> str:
    text = repr(grouping)
    return text if len(text) <= 80 else text[:77] + "..."


def _name(slot: int) -> str:
    return f"{_LETTERS[slot]} ({slot})"


def _from_text(text: str, order: int) -> Blocks:
    compact = "".join(text.split())
    if not compact:
        return ()
    for letter in compact:
        if letter != "|" and letter not in _LETTERS[:order]:
            known = f"the slots are {', '.join(_LETTERS[:order])}" if order else "there are no slots"
            raise GroupingError(f"{letter!r} in grouping {_shown(text)} is not a slot of an order-{order} tensor; {known}")
    return tuple(tuple(_LETTERS.index(letter) for letter in block) for block in compact.split("|"))


def _from_numbers(grouping: Sequence[Sequence[int]], order: int) -> Blocks:
    try:
        blocks = tuple(tuple(block) for block in grouping)
    except TypeError:
        raise GroupingError(
            f"grouping {_shown(grouping)} must be text such as 'ab|c' or blocks of slots such as ((0, 1), (2,))"
        ) from None
    for block in blocks:
        for slot in block:
            if isinstance(slot, bool) or not isinstance(slot, int | np.integer) or not 0 <= slot < order:
                raise GroupingError(f"slot {slot!r} in grouping {_shown(grouping)} is not one of 0..{order - 1}")
    return tuple(tuple(int(slot) for slot in block) for block in blocks)


def require_unmasked(name: str, value: Any) -> None:
    """Masked entries would be read as the numbers under the mask."""
    if np.ma.is_masked(value):
        raise NormInputError(
            f"{name} has {int(np.ma.count_masked(value))} masked entries, which have no value; give numbers (.filled(0) for zeros)"
        )


def plain_array(name: str, value: Any) -> NDArray[Any]:
    """`value` as an array of any type; raises NormInputError for rows of different length and for masked entries."""
    require_unmasked(name, value)
    try:
        return np.asarray(value)
    except ValueError:
        raise NormInputError(
            f"{name} is a nested sequence whose rows differ in length; all rows of an array are equally long"
        ) from None


def require_real_array(name: str, value: Any, *, cast: bool) -> Array:
    """`value` as a float64 array without NaN, infinities or axes of length zero."""
    array = plain_array(name, value)
    if array.dtype.kind == "c":
        raise NormInputError(
            f"{name} is complex ({array.dtype}); only real norms are computed, and for three or more slots the real and "
            "the complex norm differ (N9); give a real tensor"
        )
    if array.dtype.kind not in "iuf":
        raise NormInputError(f"{name} has dtype {array.dtype}; a real numeric array is required")
    if array.dtype.kind == "f" and array.dtype.itemsize < 8 and not cast:
        raise NormInputError(
            f"{name} has dtype {array.dtype}, in which a relative residual of 1e-10 means nothing; compute it in float64, or "
            "pass cast=True to take the norm of these rounded entries"
        )
    if array.size == 0:
        raise NormInputError(f"{name} has shape {array.shape}, which holds no entries; every axis needs at least one")
    array = array.astype(np.float64, copy=False)
    if not (np.isfinite(array.max()) and np.isfinite(array.min())):  # NaN wins both; no temporary of the array's size
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise NormInputError(f"{name} has the entry {array[where]} at {where}; all entries must be finite")
    return array


def require_tolerance(tolerance: float) -> float:
    if not 1e-12 <= tolerance <= 1e-2:
        raise ValueError(f"tolerance = {tolerance} must lie between 1e-12 (rounding) and 1e-2")
    return float(tolerance)


def blocked(tensor: Array, batch_dims: int, blocks: Blocks) -> Array:
    """One axis per block of more than one dimension, the batch flattened: `(batch, d_1, .., d_r)`.

    A block of dimension 1 has the unit vectors +1 and -1 only and drops out, which can leave an exact two-slot case.
    """
    shape = tensor.shape[batch_dims:]
    order = [batch_dims + slot for block in blocks for slot in block]
    sizes = [math.prod(shape[slot] for slot in block) for block in blocks]
    moved = np.transpose(tensor, (*range(batch_dims), *order))
    return moved.reshape((math.prod(tensor.shape[:batch_dims]), *(size for size in sizes if size > 1)))


def bipartitions(order: int) -> Iterator[tuple[int, ...]]:
    """The side that holds axis 0, for every splitting of `order` axes into two non-empty sides."""
    for mask in range(2 ** (order - 1) - 1):
        yield (0, *(axis for axis in range(1, order) if mask >> (axis - 1) & 1))


def chunk_length(what: str, one: int, cap: int, batch: int) -> int:
    """How many items of `one` predicted bytes fit under the cap."""
    if one > cap:
        raise MemoryCapError(
            f"{what} needs about {_megabytes(one)} for one tensor, the cap is {_megabytes(cap)}; raise memory, use fewer "
            "restarts, or give the tensor by its contractions (ImplicitTensor)"
        )
    return max(1, min(batch, cap // one))


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.3g} MB"


def powers_of_two(tensors: Array) -> Array:
    """Factors by which to divide each item so that squares stay in range: 1, or a power of two (exact) near its size."""
    flat = tensors.reshape(len(tensors), -1)
    largest = np.maximum(flat.max(axis=1), -flat.min(axis=1))
    extreme = (largest > 0) & ((largest > 1e100) | (largest < 1e-100))
    return np.exp2(np.clip(np.round(np.log2(np.where(extreme, largest, 1.0))), -1022, 1023))
