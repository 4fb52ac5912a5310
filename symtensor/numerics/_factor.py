"""Semidefinite Cholesky factors, batched over the last axis, exact for singular matrices (no jitter)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_EPS = float(np.finfo(np.float64).eps)


def semidefinite_factor(matrix: jax.Array) -> jax.Array:
    """Lower-triangular F with `F F^T = matrix` for positive semidefinite matrices of shape `(P, P, batch)`.

    A pivot not above `P eps matrix_jj` is zero to rounding: its column of F is zero, so that the factor has the rank of
    the matrix. Rows of equal inputs are equal bit by bit (every row is divided by the same root, the diagonal one
    too), and an input with zero variance has a zero row.

    Notes
    -----
    Right-looking Cholesky, one rank-one update per column, written as a loop so that the factor is computed once and
    not once for every use of it.
    """
    size, _, batch = matrix.shape
    floor = size * _EPS * jnp.diagonal(matrix, axis1=0, axis2=1).T  # (P, batch)
    row = jnp.arange(size)[:, None]

    def column(j: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        rest, factor = state
        current = lax.dynamic_index_in_dim(rest, j, 1, keepdims=False)  # (P, batch)
        pivot = lax.dynamic_index_in_dim(current, j, 0)  # (1, batch)
        positive = pivot > lax.dynamic_index_in_dim(floor, j, 0)
        root = jnp.sqrt(jnp.where(positive, pivot, 1.0))
        values = jnp.where(positive & (row >= j), current / root, 0.0)
        rest = rest - values[:, None] * values[None]
        return rest, lax.dynamic_update_index_in_dim(factor, values, j, 1)

    return lax.fori_loop(0, size, column, (matrix, jnp.zeros((size, size, batch))))[1]
