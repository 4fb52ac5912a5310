"""Subordinate (injective, spectral) norms of tensors and of batches of tensors, each with its status.

    |M|_J = max | M[v^1, .., v^s] |   over Euclidean unit vectors, one for each block of the grouping J

At most two blocks are exact. For three or more the norm is NP-hard even to approximate (N10): what is returned is a
bracket, below by vectors that attain it, above by the spectral norms of all unfoldings. Importing this module imports JAX.

References
----------
Hillar, Lim, "Most tensor problems are NP-hard", J. ACM 60 (2013) 45.
Friedland, Lim, "Nuclear norm of higher-order tensors", Math. Comp. 87 (2018) 1255 (real and complex norms differ, N9).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from symtensor.numerics import _norm_dense as dense
from symtensor.numerics._ensemble import MemoryCapError, require_integer
from symtensor.numerics._norm_bracket import NormBracket, NotExactError, bracket, reshaped
from symtensor.numerics._norm_implicit import (
    ImplicitTensor,
    ascent_program,
    derivative_tensor,
    plain_program,
    run_capped,
    singular_program,
)
from symtensor.numerics._norm_input import (
    Grouping,
    GroupingError,
    NormInputError,
    parse_grouping,
    plain_array,
    require_float64,
    require_real_array,
    require_tolerance,
    require_unmasked,
)
from symtensor.numerics._norm_lanczos import basis_size

__all__ = [
    "GroupingError",
    "ImplicitTensor",
    "MemoryCapError",
    "NormBracket",
    "NormInputError",
    "NotExactError",
    "block_norm",
    "derivative_tensor",
    "spectral_norm",
    "subordinate_norm",
]

MEMORY = 2**31
_CYCLES = 2000


def subordinate_norm(
    tensor: Any,
    grouping: Grouping = None,
    *,
    batch_dims: int = 0,
    symmetric: bool = False,
    restarts: int = 16,
    tolerance: float = 1e-10,
    seed: int = 0,
    memory: int = MEMORY,
    certify: bool = False,
    cast: bool = False,
    sweeps: int = 500,
) -> NormBracket:
    r"""Largest value of the multilinear form on unit vectors, one for each block of index slots.

    Parameters
    ----------
    tensor
        `(batch.., d_1, .., d_r)`, real and finite; or an :class:`ImplicitTensor`, whose operands carry the batch axes.
    grouping
        A partition of the slots, as text (`"ab|c"`: slots a and b share one vector) or numbers (`((0, 1), (2,))`).
        None: every slot its own vector. One block is the Frobenius norm, two a largest singular value.
    batch_dims
        Leading axes that count tensors.
    symmetric
        Use one vector for all slots (Banach 1938, N7); the symmetry of an explicit tensor is checked.
    restarts, seed, sweeps
        Random starts of the search for three and more blocks, the seed of all starts, and the most sweeps.
    tolerance
        Relative: of the residual of singular pairs, and for calling lower and upper bounds equal.
    memory
        Cap in bytes on what is allocated beside the given tensor; the batch is cut into chunks that fit.
    certify
        Prove the upper bound of two-block norms by a Cholesky factor of `upper^2 - A^T A`. Without it the upper bound
        rests on the start vector being generic, which fails with a probability of about 1e-8 at most (a start that
        misses the leading singular vector to ten digits). Unfoldings of three and more blocks are always proved.
    cast
        Accept float32 data, and take the norm of these rounded numbers in float64.

    Returns
    -------
    NormBracket
        NumPy arrays over the batch axes.

    Raises
    ------
    GroupingError, NormInputError, MemoryCapError, ValueError, TypeError
        For slots missing or repeated, NaN, complex, float32 or empty input, a tensor that is not symmetric, a tensor
        that does not fit under the cap.

    Notes
    -----
    Upper bounds for three and more blocks: the smallest of `|M|_J'` over the two-block coarsenings J' of the grouping
    and the Frobenius norm (N6: each is at least the norm). Lower bounds: alternating maximisation from random starts and
    from the largest fibre, so that `max entry` and `|M|_F sqrt(max d_k / prod d_k)` (N6) are never missed.

    Examples
    --------
    >>> import jax; jax.config.update("jax_enable_x64", True)
    >>> norm = subordinate_norm(np.diag([3.0, -4.0]))
    >>> round(float(norm.value), 9), str(norm.status)
    (4.0, 'exact')
    >>> round(float(subordinate_norm(np.diag([3.0, -4.0]), "ab").value), 9)
    5.0
    """
    require_float64()
    tolerance = require_tolerance(tolerance)
    restarts, seed = require_integer("restarts", restarts, 1), require_integer("seed", seed, 0)
    batch_dims = require_integer("batch_dims", batch_dims, 0)
    search = dense.Search(restarts, tolerance, seed, require_integer("memory", memory, 1), require_integer("sweeps", sweeps, 1))
    if isinstance(tensor, ImplicitTensor):
        return _implicit(tensor, grouping, batch_dims, symmetric or tensor.symmetric, search)
    array = require_real_array("tensor", tensor, cast=cast)
    if array.ndim < batch_dims:
        raise NormInputError(f"tensor has shape {array.shape}, fewer axes than batch_dims = {batch_dims}")
    blocks = parse_grouping(grouping, array.ndim - batch_dims)
    if symmetric:
        dense.require_symmetric(array, batch_dims, blocks)
    return dense.dense_norm(array, batch_dims, blocks, search, symmetric=symmetric, certify=certify)


def spectral_norm(
    matvec: Callable[..., Any],
    rmatvec: Callable[..., Any],
    shape: tuple[int, int],
    *,
    operands: Sequence[Any] = (),
    batch_dims: int = 0,
    tolerance: float = 1e-10,
    seed: int = 0,
    memory: int = MEMORY,
) -> NormBracket:
    """Largest singular value of an operator known by its products with vectors.

    Parameters
    ----------
    matvec, rmatvec
        `matvec(v, *operands)`: `(n,) -> (m,)`, and its transpose `(m,) -> (n,)`, in JAX.
    shape
        `(m, n)`.
    operands
        Arrays the products depend on, with `batch_dims` batch axes in front.

    Raises
    ------
    NormInputError
        If the two products are not transposes of each other, or give NaN.

    Examples
    --------
    >>> import jax; jax.config.update("jax_enable_x64", True)
    >>> shift = spectral_norm(lambda v: 2 * jnp.roll(v, 1), lambda u: 2 * jnp.roll(u, -1), (50, 50))
    >>> round(float(shift.value), 9)
    2.0
    """
    require_float64()
    seed, memory = require_integer("seed", seed, 0), require_integer("memory", memory, 1)
    search = dense.Search(1, require_tolerance(tolerance), seed, memory, 1)
    if len(shape) != 2 or any(require_integer("shape", d, 1) < 1 for d in shape):
        raise NormInputError(f"shape {shape} must be (m, n)")
    batch, flat = _flat_operands(tuple(operands), batch_dims)
    return _two_slots(matvec, rmatvec, (int(shape[0]), int(shape[1])), batch, flat, search)


def block_norm(blocks: Any, order: int, **options: Any) -> NormBracket:
    """Norm of a block-diagonal tensor from its blocks: N8.

    Parameters
    ----------
    blocks
        `(batch.., N, d_1, .., d_r)`, N blocks of one shape; or a list of blocks `(d_1, .., d_r)` of any shapes.
    order
        r, at least 1: the number of slots of each block.
    options
        As for :func:`subordinate_norm` (grouping, symmetric, restarts, ..).

    Returns
    -------
    NormBracket
        r >= 2: the maximum over the blocks; r = 1: the l2 sum. `vectors` is None: they live in one block each.

    Notes
    -----
    A grouping of all slots into one block is the Frobenius norm and adds up in l2 as well.

    Examples
    --------
    >>> import jax; jax.config.update("jax_enable_x64", True)
    >>> block_norm([np.eye(2), 3 * np.ones((1, 2))], 2).upper.round(6).item()
    4.242641
    """
    order = require_integer("order", order, 1)
    several = len(parse_grouping(options.get("grouping"), order)) > 1
    if isinstance(blocks, list | tuple):
        parts = [subordinate_norm(_of_order(block, order), **options) for block in blocks]
        if not parts:
            raise NormInputError("no blocks are given; at least one is needed")
        fields = {name: np.stack([getattr(p, name) for p in parts], -1) for name in ("lower", "upper", "residual", "iterations")}
    else:
        array = plain_array("blocks", blocks)
        if array.ndim < order + 1:
            raise NormInputError(f"blocks of shape {array.shape} have no axis of blocks beside {order} slots")
        norms = subordinate_norm(array, batch_dims=array.ndim - order, **options)
        fields = {name: getattr(norms, name) for name in ("lower", "upper", "residual", "iterations")}
    merge = (lambda x: x.max(axis=-1)) if several else (lambda x: np.sqrt((x * x).sum(axis=-1)))
    lower, upper = merge(fields["lower"]), merge(fields["upper"])
    tolerance = options.get("tolerance", 1e-10)
    return bracket(lower, upper, fields["residual"].max(-1), fields["iterations"].sum(-1), None, tolerance)


def _of_order(block: Any, order: int) -> Any:
    array = plain_array("a block", block)
    if array.ndim != order:
        raise NormInputError(f"a block of shape {array.shape} does not have order {order}")
    return array


def _flat_operands(operands: tuple[Any, ...], batch_dims: int) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """The batch shape, and the operands (at least one) with one flat batch axis."""
    for x in operands:
        require_unmasked("an operand", x)
    arrays = tuple(jnp.asarray(x) for x in operands)
    shapes = {x.shape[:batch_dims] for x in arrays}
    if len(shapes) > 1 or any(x.ndim < batch_dims for x in arrays):
        raise NormInputError(
            f"operands of shapes {[x.shape for x in arrays]} do not share {batch_dims} batch axes; put them in front of each"
        )
    if batch_dims and not arrays:
        raise NormInputError(f"batch_dims = {batch_dims} needs operands that carry the batch")
    for x in arrays:
        if jnp.issubdtype(x.dtype, jnp.floating) and x.dtype != jnp.float64:
            raise NormInputError(f"an operand has dtype {x.dtype}; float64 is required for a residual of 1e-10")
    batch = next(iter(shapes), ())
    return batch, tuple(x.reshape((math.prod(batch), *x.shape[batch_dims:])) for x in arrays)


def _looped_operands(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    return operands if operands else (jnp.zeros(1),)


def _two_slots(
    matvec: Callable, rmatvec: Callable, shape: tuple[int, int], batch: tuple[int, ...], operands: tuple, search: dense.Search
) -> NormBracket:
    _require_transposed(matvec, rmatvec, shape, tuple(x[0] for x in operands))
    flipped = shape[0] < shape[1]
    forth, back = (rmatvec, matvec) if flipped else (matvec, rmatvec)
    if not operands:  # a batch of one, carried by an operand nobody reads
        forth, back = _ignoring(forth), _ignoring(back)
    start, spare = dense.starting_vectors(min(shape), basis_size(min(shape)), search.seed)
    program = singular_program(forth, back, search.tolerance, _CYCLES)
    out = run_capped(program, (_looped_operands(operands), start, spare), search.memory)
    value, left, right, residual, applied = (np.asarray(x) for x in out)
    dense.require_finite_result(value)
    upper = np.where(residual <= search.tolerance * value, value + residual, np.inf)
    vectors = (right, left) if flipped else (left, right)
    return reshaped(bracket(value, upper, residual, applied, vectors, search.tolerance), batch)


@functools.lru_cache(maxsize=16)  # the same function object again: its compiled program is found
def _ignoring(product: Callable) -> Callable:
    return lambda v, _: product(v)


def _require_transposed(matvec: Callable, rmatvec: Callable, shape: tuple[int, int], operands: tuple) -> None:
    """<u, A v> = <A^T u, v> on one pair of generic vectors; shapes first."""
    generator = np.random.default_rng(1)
    u, v = (generator.standard_normal(d) for d in shape)
    image, pulled = matvec(jnp.asarray(v), *operands), rmatvec(jnp.asarray(u), *operands)
    if jnp.shape(image) != u.shape or jnp.shape(pulled) != v.shape:
        raise NormInputError(
            f"matvec and rmatvec give shapes {jnp.shape(image)} and {jnp.shape(pulled)}, required {u.shape} and {v.shape}"
        )
    if not (jnp.isfinite(image).all() and jnp.isfinite(pulled).all()):
        raise NormInputError("a product with a vector is not finite; all entries of the operator must be finite")
    one, other = float(u @ np.asarray(image)), float(np.asarray(pulled) @ v)
    size = float(np.linalg.norm(u) * np.linalg.norm(image) + np.linalg.norm(pulled) * np.linalg.norm(v))
    if abs(one - other) > 1e-8 * size:
        raise NormInputError(
            f"rmatvec is not the transpose of matvec: u.(A v) = {one:.6g} but (A^T u).v = {other:.6g} for random u, v"
        )


def _implicit(tensor: ImplicitTensor, grouping: Grouping, batch_dims: int, symmetric: bool, search: dense.Search) -> NormBracket:
    blocks = parse_grouping(grouping, tensor.order)
    if any(len(block) > 1 for block in blocks):
        raise GroupingError(
            f"grouping {grouping!r} joins slots of an implicit tensor, which is known only by its contractions with vectors, "
            "one for each slot; for two groups give the products with grouped vectors to spectral_norm"
        )
    if symmetric and len(set(tensor.shape)) > 1:
        raise NormInputError(f"shape {tensor.shape} cannot be symmetric: all slots need one size")
    batch, operands = _flat_operands(tensor.operands, batch_dims)
    contract = tensor.contract if operands else _unread(tensor.contract)
    if tensor.order <= 1:
        values = np.asarray(run_capped(plain_program(contract, tensor.order), (_looped_operands(operands),), search.memory))
        dense.require_finite_result(values)
        return reshaped(dense.euclidean(values, tensor.order, search.tolerance), batch)
    if tensor.order == 2:
        pair = _matrix_products(contract)
        shape = (tensor.shape[0], tensor.shape[1])
        return reshaped(_two_slots(*pair, shape, (len(_looped_operands(operands)[0]),), _looped_operands(operands), search), batch)
    return _implicit_ascent(tensor, contract, symmetric, batch, operands, search)


@functools.lru_cache(maxsize=16)  # the same function object again: its compiled program is found
def _unread(contract: Callable) -> Callable:
    return lambda vectors, free, _: contract(vectors, free)


@functools.lru_cache(maxsize=16)  # the same function object again: its compiled program is found
def _matrix_products(contract: Callable) -> tuple[Callable, Callable]:
    return (lambda v, *ops: contract((v,), 0, *ops)), (lambda u, *ops: contract((u,), 1, *ops))


def _implicit_ascent(
    tensor: ImplicitTensor, contract: Callable, symmetric: bool, batch: tuple[int, ...], operands: tuple, search: dense.Search
) -> NormBracket:
    program = ascent_program(contract, tensor.order, symmetric, search.tolerance, search.sweeps)
    starts = dense.random_starts(tensor.shape, search)
    out = run_capped(program, (_looped_operands(operands), starts), search.memory)
    value, residual, applied = (np.asarray(x) for x in (out.value, out.residual, out.applied))
    dense.require_finite_result(value)
    upper = np.full(value.shape, np.inf)
    vectors = tuple(np.asarray(v) for v in out.vectors)
    return reshaped(bracket(value, upper, residual, applied, vectors, search.tolerance), batch)
