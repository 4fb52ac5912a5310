"""Semidefinite Cholesky factors, batched over the last axis, exact for singular matrices (no jitter)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_EPS = float(np.finfo(np.float64).eps)


def semidefinite_factor(matrix: jax.Array) -> jax.Array:
    """Lower-triangular F with `F F^T = matrix` for positive semidefinite matrices of shape `(P, P, batch)`.

    An input whose remaining variance is at most `P eps matrix_jj` is determined by the ones before, to rounding: what
    is left of its row is zero, so that the factor has the rank of the matrix. Rows of equal inputs are equal bit by bit
    (every row is divided by the same root, the diagonal one too), and an input with zero variance has a zero row.

    Notes
    -----
    Right-looking Cholesky, one rank-one update per column, written as a loop so that the factor is computed once and
    not once for every use of it.
    """
    size, _, batch = matrix.shape
    floor = size * _EPS * _diagonal(matrix)
    row = jnp.arange(size)[:, None]

    def column(j: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        rest, factor = state
        free = _diagonal(rest) > floor
        current = jnp.where(free, lax.dynamic_index_in_dim(rest, j, 1, keepdims=False), 0.0)
        pivot = lax.dynamic_index_in_dim(current, j, 0)  # (1, batch), zero if input j is not free
        root = jnp.sqrt(jnp.where(pivot > 0.0, pivot, 1.0))
        values = jnp.where((pivot > 0.0) & (row >= j), current / root, 0.0)
        rest = rest - values[:, None] * values[None]
        return rest, lax.dynamic_update_index_in_dim(factor, values, j, 1)

    return lax.fori_loop(0, size, column, (matrix, jnp.zeros((size, size, batch))))[1]


def aligned_factor(factor: jax.Array, target: jax.Array) -> jax.Array:
    """`F O` with an orthogonal O that brings it close to `target`: `(P, P, batch)` and `(P, P)`.

    Any `F O` is a factor of the same matrix, so the law of `F O z` is unchanged as long as O does not see z; a small
    `|F O - target|` couples networks and free networks tightly, for every input alike (Cholesky alone favours the first).

    Notes
    -----
    Two sweeps of plane rotations, each the exact maximiser of `tr(target^T F O)` in its plane (orthogonal Procrustes;
    one rotation is the solution for two inputs). Rows are rotated alike, so equal inputs keep equal rows, and zero
    rows stay zero.
    """
    size = factor.shape[0]
    planes = np.array([(p, q) for p in range(size) for q in range(p + 1, size)] * 2, dtype=np.int32).reshape(-1, 2)
    if not len(planes):
        return factor

    def rotate(k: jax.Array, current: jax.Array) -> jax.Array:
        p, q = jnp.asarray(planes)[k]
        left, right = (lax.dynamic_index_in_dim(current, axis, 1, keepdims=False) for axis in (p, q))  # (P, batch)
        first, second = (lax.dynamic_index_in_dim(target, axis, 1) for axis in (p, q))  # (P, 1)
        along = jnp.sum(first * left + second * right, axis=0)
        across = jnp.sum(first * right - second * left, axis=0)
        length = jnp.sqrt(along**2 + across**2)
        known = length > 0.0
        c = jnp.where(known, along / jnp.where(known, length, 1.0), 1.0)
        s = jnp.where(known, across / jnp.where(known, length, 1.0), 0.0)
        current = lax.dynamic_update_index_in_dim(current, c * left + s * right, p, 1)
        return lax.dynamic_update_index_in_dim(current, c * right - s * left, q, 1)

    return lax.fori_loop(0, len(planes), rotate, factor)


def _diagonal(matrix: jax.Array) -> jax.Array:
    return jnp.diagonal(matrix, axis1=0, axis2=1).T  # (P, batch)
