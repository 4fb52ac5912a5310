"""Largest eigenvalue of a symmetric operator by restarted Lanczos; the spectral norm as that of v -> A^T A v.

Krylov-Schur form of the method: a basis of at most 24 vectors, each new one orthogonalised twice against all of them
(full reorthogonalisation), and at a restart the leading Ritz vectors stay together with the last residual direction.
With the Gram operator this is Golub-Kahan-Lanczos with the right vectors kept: the residual of the Ritz pair divided
by sigma is the residual `|A^T u - sigma v|` of the singular pair, so nothing is lost by the square.

References
----------
Golub, Kahan, "Calculating the singular values and pseudo-inverse of a matrix", SIAM J. Numer. Anal. B 2 (1965) 205.
Stewart, "A Krylov-Schur algorithm for large eigenproblems", SIAM J. Matrix Anal. Appl. 23 (2002) 601.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

Operator = Callable[[jax.Array], jax.Array]

BASIS = 24  # Krylov vectors between restarts: beyond that the orthogonalisation costs more than it saves
_KEPT = 8
_EPS = 2.0**-52


class Top(NamedTuple):
    """Leading eigenpair: value, unit vector (n,), residual norm `|G v - value v|`, applications of the operator."""

    value: jax.Array
    vector: jax.Array
    residual: jax.Array
    applied: jax.Array


class _Cycle(NamedTuple):
    basis: jax.Array  # (k + 1, n): orthonormal rows, the last one the direction of the residual
    projected: jax.Array  # (k, k), upper triangle
    coupling: jax.Array  # norm of the last residual


class _State(NamedTuple):
    cycle: _Cycle  # ready for the next turn: the leading Ritz vector is the last one kept
    value: jax.Array
    residual: jax.Array
    count: jax.Array


def basis_size(n: int) -> int:
    """Krylov vectors that `top_eigenpair` keeps in dimension n."""
    return min(n, BASIS)


def top_eigenpair(apply: Operator, start: jax.Array, spare: jax.Array, tolerance: float, cycles: int) -> Top:
    """Largest eigenvalue of the symmetric, positive semidefinite operator `apply`, one vector at a time.

    Parameters
    ----------
    apply
        `(n,) -> (n,)`, symmetric and positive semidefinite: shift an indefinite operator.
    start, spare
        Generic vectors of shape `(n,)` and `(k, n)`: where the iteration begins, and where it goes on when the Krylov
        space is invariant, so that an eigenvalue the start vector cannot see is not mistaken for absent.
    tolerance
        Stop at a residual of `tolerance` times the value.
    cycles
        Most restarts.
    """
    size, n = basis_size(start.shape[0]), start.shape[0]
    kept = min(_KEPT, max(1, size // 3))

    def rayleigh_ritz(cycle: _Cycle) -> tuple[jax.Array, jax.Array, jax.Array]:
        upper = jnp.triu(cycle.projected)
        values, vectors = jnp.linalg.eigh(upper + jnp.triu(upper, 1).T)
        residual = jnp.abs(cycle.coupling * vectors[-1, -1])
        return values, vectors, residual

    def unfinished(state: _State) -> jax.Array:
        return (state.residual > tolerance * jnp.abs(state.value)) & (state.count < cycles)

    def turn(state: _State) -> _State:
        cycle = _extend(apply, spare, state.cycle, kept)
        values, vectors, residual = rayleigh_ritz(cycle)
        ritz = vectors.T @ cycle.basis[:size]
        basis = jnp.zeros_like(cycle.basis).at[:kept].set(ritz[-kept:]).at[kept].set(cycle.basis[size])
        projected = jnp.zeros_like(cycle.projected).at[jnp.arange(kept), jnp.arange(kept)].set(values[-kept:])
        return _State(_Cycle(basis, projected, cycle.coupling), values[-1], residual, state.count + 1)

    unit = start / jnp.linalg.norm(start)
    complete = size == n  # one cycle spans the whole space and is exact
    begin = 0 if complete else kept
    basis = jnp.zeros((size + 1, n), start.dtype).at[begin].set(unit)
    # before the first restart nothing is kept: zero vectors of value -1 stand in, below every value of `apply`, so that
    # the first cycle is the same compiled code as every other one
    projected = jnp.zeros((size, size), start.dtype).at[jnp.arange(begin), jnp.arange(begin)].set(-1.0)
    fresh = _Cycle(basis, projected, jnp.zeros((), start.dtype))
    if complete:
        cycle = _extend(apply, spare, fresh, 0)
        values, vectors, residual = rayleigh_ritz(cycle)
        return Top(values[-1], _unit(vectors[:, -1] @ cycle.basis[:size]), residual, jnp.asarray(size, jnp.int32))
    state = _State(fresh, jnp.zeros((), start.dtype), jnp.full((), jnp.inf, start.dtype), jnp.zeros((), jnp.int32))
    state = lax.while_loop(unfinished, turn, state)
    return Top(state.value, _unit(state.cycle.basis[kept - 1]), state.residual, state.count * (size - kept))


def _unit(v: jax.Array) -> jax.Array:
    return v / jnp.linalg.norm(v)


def _extend(apply: Operator, spare: jax.Array, cycle: _Cycle, begin: int) -> _Cycle:
    """Lanczos steps from vector `begin` until the basis is full."""
    size = cycle.projected.shape[0]

    def step(j: jax.Array, cycle: _Cycle) -> _Cycle:
        image = apply(cycle.basis[j])
        small = 16 * _EPS * jnp.sqrt(image @ image)

        def closed(state: tuple) -> jax.Array:
            return (state[2] == 2) & (jnp.sqrt(state[0] @ state[0]) <= small)

        def sweep(state: tuple) -> tuple:
            """One Gram-Schmidt pass; two make a vector orthogonal. Then, if nothing was left, two for a fresh one."""
            w, along, passes = state
            w = jnp.where(closed(state), spare[j], w)
            part = cycle.basis @ w
            return w - part @ cycle.basis, along + jnp.where(passes < 2, part, 0.0), passes + 1

        state = (image, jnp.zeros_like(cycle.basis[:, 0]), jnp.zeros((), jnp.int32))
        rest, along, passes = lax.while_loop(lambda s: (s[2] < 2) | closed(s) | (s[2] == 3), sweep, state)
        length = jnp.sqrt(rest @ rest)
        fresh = passes > 2  # below rounding the space was invariant: a fresh direction, to which nothing is coupled
        full = fresh & (length <= 1e-8)  # not even a fresh one is left: the basis is complete
        unit = jnp.where(full, 0.0, rest / jnp.where(length > 0, length, 1.0))
        projected = cycle.projected.at[:, j].set(along[:size])
        return _Cycle(cycle.basis.at[j + 1].set(unit), projected, jnp.where(fresh, 0.0, length))

    return lax.fori_loop(begin, size, step, cycle)


class Singular(NamedTuple):
    """Leading singular triple: value, unit vectors u and v, `|A^T u - value v|`, applications of A and A^T."""

    value: jax.Array
    left: jax.Array
    right: jax.Array
    residual: jax.Array
    applied: jax.Array


def top_singular(
    matvec: Operator, rmatvec: Operator, start: jax.Array, spare: jax.Array, tolerance: float, cycles: int
) -> Singular:
    """Largest singular value of the operator `matvec: (n,) -> (m,)` with transpose `rmatvec`.

    Its size should be moderate (`power_of_two`): the Gram operator squares the entries.
    """
    top = top_eigenpair(lambda v: rmatvec(matvec(v)), start, spare, 0.5 * tolerance, cycles)
    image = matvec(top.vector)
    value = jnp.sqrt(image @ image)
    left = jnp.where(value > 0, image / jnp.where(value > 0, value, 1.0), jnp.zeros_like(image).at[0].set(1.0))
    gap = rmatvec(left) - value * top.vector
    return Singular(value, left, top.vector, jnp.sqrt(gap @ gap), top.applied + 1)


def power_of_two(matvec: Operator, start: jax.Array) -> jax.Array:
    """A power of two near the size of an operator: dividing by it is exact, and its Gram operator stays in range."""
    size = jnp.max(jnp.abs(matvec(start)))
    return jnp.where(size > 0, jnp.exp2(jnp.clip(jnp.round(jnp.log2(jnp.where(size > 0, size, 1.0))), -1022, 1023)), 1.0)


@functools.partial(jax.jit, static_argnames=("lanes", "tolerance", "cycles"))
def singular_batch(
    matrices: jax.Array, start: jax.Array, spare: jax.Array, *, lanes: int, tolerance: float, cycles: int
) -> Singular:
    """`top_singular` of every matrix `(batch, m, n)` with n <= m, `lanes` of them side by side, the others in a loop.

    One matrix at a time stays in the cache over its iterations; many small ones fill the vector registers.
    """

    def one(matrix: jax.Array) -> Singular:
        return top_singular(lambda v: matrix @ v, lambda u: u @ matrix, start, spare, tolerance, cycles)

    return _looped(one, matrices, lanes)


@functools.partial(jax.jit, static_argnames=("lanes",))
def below(matrices: jax.Array, bounds: jax.Array, *, lanes: int) -> jax.Array:
    """Whether `|A| < bound` is proved: `bound^2 - A^T A` has a Cholesky factor (Sylvester's law of inertia)."""

    def one(item: tuple[jax.Array, jax.Array]) -> jax.Array:
        matrix, bound = item
        scaled = matrix / jnp.where(bound > 0, bound, 1.0)
        shifted = jnp.eye(matrix.shape[1], dtype=matrix.dtype) - scaled.T @ scaled
        return (bound > 0) & jnp.isfinite(jnp.linalg.cholesky(shifted)).all()

    return _looped(one, (matrices, bounds), lanes)


def _looped(one: Callable[[Any], Any], items: Any, lanes: int) -> Any:
    """`one` over the leading axis: a loop over groups of `lanes` items, the last one filled up with zeros."""
    if lanes == 1:
        return lax.map(one, items)
    count = jax.tree.leaves(items)[0].shape[0]
    groups = -(-count // lanes)

    def grouped(x: jax.Array) -> jax.Array:
        filled = jnp.pad(x, [(0, groups * lanes - count)] + [(0, 0)] * (x.ndim - 1))
        return filled.reshape((groups, lanes, *x.shape[1:]))

    out = lax.map(jax.vmap(one), jax.tree.map(grouped, items))
    return jax.tree.map(lambda x: x.reshape((groups * lanes, *x.shape[2:]))[:count], out)
