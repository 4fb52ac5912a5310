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


def _diagonal(matrix: jax.Array) -> jax.Array:
    return jnp.diagonal(matrix, axis1=0, axis2=1).T  # (P, batch)
