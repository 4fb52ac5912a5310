"""Norms of explicit arrays: which method for which grouping, in chunks that fit under the memory cap."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from symtensor.numerics._norm_bracket import Array, NormBracket, bracket, reshaped
from symtensor.numerics._norm_input import Blocks, NormInputError, bipartitions, blocked, chunk_length, powers_of_two
from symtensor.numerics._norm_lanczos import basis_size, below, singular_batch
from symtensor.numerics._norm_power import alternating_batch, symmetric_batch

CYCLES = 2000
_SMALL = 2500  # entries: tensors up to this size run side by side on a CPU, larger ones one after the other in the cache
_SIDE_BY_SIDE = 16


@dataclass(frozen=True, slots=True)
class Search:
    """How hard to look."""

    restarts: int
    tolerance: float
    seed: int
    memory: int
    sweeps: int


def starting_vectors(n: int, size: int, seed: int) -> tuple[Array, Array]:
    """Generic vectors for Lanczos: `(n,)` and `(size, n)`."""
    draws = np.random.default_rng([seed, n]).standard_normal((size + 1, n))
    return draws[0], draws[1:]


def random_starts(shape: Sequence[int], search: Search) -> tuple[Array, ...]:
    """One `(restarts, d)` array per slot."""
    generator = np.random.default_rng([search.seed, *shape])
    return tuple(generator.standard_normal((search.restarts, d)) for d in shape)


def require_finite_result(values: Array) -> None:
    if not np.isfinite(values).all():
        raise NormInputError("the norm is not finite; the tensor or its products with vectors leave the range of float64")


def require_symmetric(array: Array, batch_dims: int, blocks: Blocks) -> None:
    """Every exchange of neighbouring slots leaves the tensor as it is, to rounding."""
    shape, order = array.shape[batch_dims:], array.ndim - batch_dims
    if any(len(block) > 1 for block in blocks):
        raise NormInputError("symmetric=True uses one vector for all slots; leave the grouping out")
    if len(set(shape)) > 1:
        raise NormInputError(f"symmetric=True, but the slots have sizes {shape}; all must be equal")
    for slot in range(order - 1):
        gap = np.abs(array - np.swapaxes(array, batch_dims + slot, batch_dims + slot + 1)).max()
        if gap > 1e-12 * np.abs(array).max():
            raise NormInputError(
                f"symmetric=True, but exchanging slots {slot} and {slot + 1} changes entries by up to {gap:.3g}; average the "
                "tensor over all permutations of its slots, or leave symmetric out"
            )


def dense_norm(
    array: Array, batch_dims: int, blocks: Blocks, search: Search, *, symmetric: bool, certify: bool
) -> NormBracket:
    """The norm of `(batch.., d_1, .., d_r)` by the number of blocks that have more than one dimension."""
    batch = array.shape[:batch_dims]
    sizes = [math.prod(array.shape[batch_dims + slot] for slot in block) for block in blocks]
    tensors = blocked(array, batch_dims, blocks)
    scale = powers_of_two(tensors) if len(tensors) else np.ones(0)
    order = tensors.ndim - 1
    if order <= 1:
        norm = euclidean(tensors.reshape(len(tensors), -1), order, search.tolerance)
    else:
        solve = _matrices if order == 2 else _many
        norm = _chunked(tensors, scale, search, lambda part: solve(part, search, symmetric, certify))
    return reshaped(_with_unit_blocks(norm, sizes), batch)


def euclidean(values: Array, order: int, tolerance: float) -> NormBracket:
    """Euclidean norms of the rows of `(batch, d)`, without overflow; absolute values at order 0."""
    largest = np.abs(values).max(axis=1, keepdims=True)
    scaled = values / np.where(largest > 0, largest, 1.0)
    length = np.sqrt((scaled * scaled).sum(axis=1))
    first = np.zeros_like(values)
    first[:, 0] = 1.0
    unit = np.where(largest > 0, scaled / np.where(length > 0, length, 1.0)[:, None], first)
    norms = length * largest[:, 0]
    return bracket(norms, norms, 0.0, 0, (unit,) if order else (), tolerance)


def _with_unit_blocks(norm: NormBracket, sizes: Sequence[int]) -> NormBracket:
    """Put back the vectors of the blocks of dimension 1 that dropped out."""
    found = iter(norm.vectors or ())
    ones = np.ones((len(norm.lower), 1))
    vectors = tuple(next(found) if size > 1 else ones for size in sizes)
    return NormBracket(norm.lower, norm.upper, norm.status, norm.residual, norm.iterations, vectors)


Solver = Callable[[Array], NormBracket]


def _chunked(tensors: Array, scale: Array, search: Search, solve: Solver) -> NormBracket:
    """Solve chunk by chunk on scaled tensors; equal chunks, so that one compiled program serves all but the last."""
    shape = tensors.shape[1:]
    what = f"the norm of tensors {shape} with {search.restarts} restarts" if len(shape) > 2 else f"the norm of matrices {shape}"
    length = chunk_length(what, item_bytes(shape, search.restarts), search.memory, len(tensors))
    parts = []
    for begin in range(0, len(tensors), length):
        part, size = tensors[begin : begin + length], scale[begin : begin + length]
        solved = solve(part if (size == 1).all() else part / size.reshape((-1,) + (1,) * len(shape)))
        lower, upper, residual = solved.lower * size, solved.upper * size, solved.residual * size
        parts.append(NormBracket(lower, upper, solved.status, residual, solved.iterations, solved.vectors))
    return _joined(parts)


def _joined(parts: Sequence[NormBracket]) -> NormBracket:
    if len(parts) == 1:
        return parts[0]
    vectors = tuple(np.concatenate(v) for v in zip(*(p.vectors or () for p in parts)))
    return NormBracket(
        np.concatenate([p.lower for p in parts]),
        np.concatenate([p.upper for p in parts]),
        np.concatenate([p.status for p in parts]),
        np.concatenate([p.residual for p in parts]),
        np.concatenate([p.iterations for p in parts]),
        vectors,
    )


def item_bytes(shape: Sequence[int], restarts: int) -> int:
    """Predicted peak memory of one tensor, in bytes: its copies, the searched vectors, and one unfolding with its Gram."""
    entries = math.prod(shape)
    sides = [math.prod(shape[axis] for axis in side) for side in bipartitions(len(shape))]
    narrow = max(min(side, entries // side) for side in sides)
    size = basis_size(narrow)
    matrix = 2 * entries + 4 * (size + 1) * narrow + 8 * size**2
    if len(shape) == 2:
        return 8 * matrix
    proof = 3 * narrow**2 if narrow <= _PROVED else 0
    starts = restarts + 1
    ascent = (2 + len(shape)) * entries + starts * (2 * entries // min(shape) + 4 * sum(shape))
    return 8 * max(matrix + entries + proof, ascent)


_DIRECT = 256  # columns: all eigenvalues of the Gram matrix cost no more than the Lanczos iteration
_PROVED = 4096  # columns: a Cholesky factor of this size is still cheap beside the Lanczos iteration


def _lanes(entries: int, batch: int) -> int:
    """Tensors side by side: a few small ones on a CPU, elsewhere all."""
    if jax.default_backend() != "cpu":
        return batch
    return min(batch, _SIDE_BY_SIDE) if entries <= _SMALL else 1


def _matrices(part: Array, search: Search, symmetric: bool, certify: bool) -> NormBracket:
    """Two blocks: the largest singular value. A symmetric matrix needs no method of its own."""
    del symmetric
    value, left, right, residual, applied = _leading(part, search)
    upper = np.where(residual <= search.tolerance * value, value + residual, np.inf)
    fallback = np.sqrt((part * part).sum(axis=(1, 2)))
    if certify:
        bounds = (value + residual) * (1 + 0.25 * search.tolerance)
        upper = np.where(_proved(part, bounds) | (value == 0), bounds, np.inf)
    return bracket(value, np.minimum(upper, fallback), residual, applied, (left, right), search.tolerance)


def _leading(part: Array, search: Search) -> tuple[Array, ...]:
    flipped = part.shape[1] < part.shape[2]
    matrices = np.swapaxes(part, 1, 2) if flipped else part
    n = matrices.shape[2]
    start, spare = starting_vectors(n, basis_size(n), search.seed)
    lanes = _lanes(matrices[0].size, len(matrices))
    out = singular_batch(matrices, start, spare, lanes=lanes, tolerance=search.tolerance, cycles=CYCLES)
    value, left, right, residual, applied = (np.asarray(x) for x in out)
    require_finite_result(value)
    return (value, right, left, residual, applied) if flipped else (value, left, right, residual, applied)


def _proved(part: Array, bounds: Array) -> np.ndarray:
    flipped = part.shape[1] < part.shape[2]
    matrices = np.swapaxes(part, 1, 2) if flipped else part
    return np.asarray(below(matrices, jnp.asarray(bounds), lanes=_lanes(matrices[0].size, len(matrices))))


def _many(part: Array, search: Search, symmetric: bool, certify: bool) -> NormBracket:
    """Three and more blocks: vectors from below, unfoldings and the Frobenius norm from above."""
    del certify  # unfoldings are always proved
    starts = random_starts(part.shape[1:], search)
    lanes = _lanes(part[0].size * search.restarts, len(part))
    if symmetric:
        out = symmetric_batch(part, starts[0], lanes=lanes, tolerance=search.tolerance, steps=search.sweeps)
    else:
        out = alternating_batch(part, starts, lanes=lanes, tolerance=search.tolerance, sweeps=search.sweeps)
    lower, residual = np.asarray(out.value), np.asarray(out.residual)
    require_finite_result(lower)
    upper = np.sqrt((part * part).reshape(len(part), -1).sum(axis=1))
    for unfolding in unfoldings(part, symmetric):
        upper = np.minimum(upper, _unfolding_bound(unfolding, search))
    vectors = tuple(np.asarray(v) for v in out.vectors)
    return bracket(lower, upper, residual, np.asarray(out.applied), vectors, search.tolerance)


def unfoldings(part: Array, symmetric: bool) -> Iterator[Array]:
    """The tensors as matrices `(batch, m, n)`, for every splitting of the slots; one of each size if symmetric."""
    shape, seen = part.shape[1:], set()
    for side in bipartitions(len(shape)):
        other = tuple(axis for axis in range(len(shape)) if axis not in side)
        kind = min(len(side), len(other)) if symmetric else side
        if kind in seen:
            continue
        seen.add(kind)
        moved = np.transpose(part, (0, *(1 + axis for axis in itertools.chain(side, other))))
        yield moved.reshape(len(part), math.prod(shape[axis] for axis in side), -1)


def _unfolding_bound(matrices: Array, search: Search) -> Array:
    """A proved upper bound of the spectral norms; infinite where the proof fails.

    Narrow matrices: eigenvalues of the n x n Gram matrix. Rounding changes it by at most `m eps |A|_F^2` in the product
    (Higham, "Accuracy and stability of numerical algorithms", section 3.5) and by a few n eps times its norm after.
    Others: a Lanczos value, made a little larger and proved by a Cholesky factor.
    """
    narrow = min(matrices.shape[1:])
    if narrow > _PROVED:
        return np.full(len(matrices), np.inf)
    if narrow <= _DIRECT:
        short = matrices if matrices.shape[1] == narrow else np.swapaxes(matrices, 1, 2)
        largest = np.linalg.eigvalsh(short @ np.swapaxes(short, 1, 2))[:, -1]
        rounding = np.finfo(np.float64).eps * (max(matrices.shape[1:]) + 16 * narrow)
        return np.sqrt(np.maximum(largest, 0.0) + rounding * (short * short).sum(axis=(1, 2)))
    value, _, _, residual, _ = _leading(matrices, search)
    bounds = (value + residual) * (1 + 0.25 * search.tolerance)
    return np.where(_proved(matrices, bounds), bounds, np.inf)
