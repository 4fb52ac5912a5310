"""Certified lower bounds for three and more slots: alternating maximisation, and one vector for symmetric tensors.

Both climb the multilinear form from many starts at once. Neither finds the maximum for certain (that is NP-hard, N10):
the unit vectors where they stop are the certificate of the lower bound.

References
----------
De Lathauwer, De Moor, Vandewalle, "On the best rank-1 approximation of higher-order tensors", SIAM J. Matrix Anal.
Appl. 21 (2000) 1324 (alternating maximisation).
Kolda, Mayo, "Shifted power method for computing tensor eigenpairs", SIAM J. Matrix Anal. Appl. 32 (2011) 1095.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from symtensor.numerics._norm_lanczos import _looped

Vectors: TypeAlias = tuple[jax.Array, ...]
Contract: TypeAlias = "Callable[[Vectors, int], jax.Array]"  # all slots' vectors (starts, d_b), free slot -> (starts, d_free)

_PACE = 20.0  # what a start may still gain over what it gained in a sweep: gains that shrink by 0.95 a sweep
_CURVATURE = 20.0  # what a start may still gain: residual^2 / value over a curvature of a fortieth of the value
_ENOUGH = 0.1  # share of the gain promised by the gradient that a step must bring
_SLACK = 1e-14  # values that differ by less than this relative amount are equal to rounding


class Ascent(NamedTuple):
    """Best stationary point: `|T[v_1, .., v_r]|`, the vectors, `max_b |T[.., free b, ..] - value v_b|`, sweeps."""

    value: jax.Array
    vectors: Vectors
    residual: jax.Array
    applied: jax.Array


def alternating(contract: Contract, starts: Vectors, tolerance: float, sweeps: int) -> Ascent:
    """Replace one vector after the other by the best one given the others; the value never decreases.

    `starts` has one array `(starts, d_b)` per slot, b = 1..r; all run until none that could become the best one gains
    `tolerance` in a sweep.
    """
    order, every = len(starts), starts[0].shape[0]

    def sweep(state: tuple) -> tuple:
        vectors, before, _, count = state
        value = before
        for slot in range(order):
            image = contract(vectors, slot)
            value = jnp.linalg.norm(image, axis=1)
            unit = jnp.where(value[:, None] > 0, image / jnp.where(value > 0, value, 1.0)[:, None], vectors[slot])
            vectors = (*vectors[:slot], unit, *vectors[slot + 1 :])
        return vectors, value, _promising(value, _PACE * (value - before), tolerance), count + 1

    begin = (tuple(_normalised(v) for v in starts), jnp.zeros(every), jnp.ones(every, bool), jnp.zeros((), jnp.int32))
    vectors, value, _, count = lax.while_loop(lambda s: s[2].any() & (s[3] < sweeps), sweep, begin)
    best = jnp.argmax(value)
    chosen = tuple(v[best] for v in vectors)
    images = [contract(tuple(v[None] for v in chosen), slot)[0] for slot in range(order)]
    reached = images[-1] @ chosen[-1]  # evaluated anew at the vectors that are returned
    residual = jnp.max(jnp.stack([jnp.linalg.norm(image - reached * v) for image, v in zip(images, chosen)]))
    return Ascent(jnp.abs(reached), chosen, residual, count)


def shifted_power(contract: Contract, start: jax.Array, order: int, tolerance: float, steps: int) -> Ascent:
    """Climb `+-T[v, .., v]` with one unit vector: `v <- T[v, .., v, .] + shift v`, the shift as small as ascent permits.

    A step that gains less than a share of what its gradient promises (it would jump to and fro over the summit) is undone
    and the shift doubled, since a large shift always climbs; otherwise the shift shrinks. Even orders have maxima and
    minima: every other start goes down.
    """
    every = start.shape[0]
    sign = jnp.where((jnp.arange(every) % 2 == 1) & (order % 2 == 0), -1.0, 1.0)

    def evaluate(v: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        image = sign[:, None] * contract((v,) * order, order - 1)
        value = jnp.sum(image * v, axis=1)
        return image, value, jnp.linalg.norm(image - value[:, None] * v, axis=1)

    def step(state: tuple) -> tuple:
        v, image, value, residual, shift, count = state
        candidate = _normalised(image + shift[:, None] * v)
        image2, value2, residual2 = evaluate(candidate)
        size = jnp.linalg.norm(image, axis=1)
        due = _ENOUGH * residual**2 / jnp.maximum(size + shift, jnp.finfo(value.dtype).tiny)
        better = value2 >= value + due - _SLACK * jnp.abs(value)
        pick = functools.partial(jnp.where, better[:, None])
        shift = jnp.where(better, 0.5 * shift, jnp.maximum(2.0 * shift, 0.25 * size))
        chosen = (pick(candidate, v), pick(image2, image))
        return (*chosen, jnp.where(better, value2, value), jnp.where(better, residual2, residual), shift, count + 1)

    def unfinished(state: tuple) -> jax.Array:
        _, _, value, residual, _, count = state
        size = jnp.where(value == 0, 1.0, jnp.abs(value))
        return _promising(value, _CURVATURE * residual**2 / size, tolerance).any() & (count < steps)

    v = _normalised(start)
    state = (v, *evaluate(v), jnp.zeros(every), jnp.zeros((), jnp.int32))
    v, _, value, residual, _, count = lax.while_loop(unfinished, step, state)
    best = jnp.argmax(value)
    return Ascent(jnp.abs(value[best]), (v[best],) * order, residual[best], count)


def _promising(value: jax.Array, gain: jax.Array, tolerance: float) -> jax.Array:
    """Starts that may still gain more than the tolerance, and might become the best one."""
    return (gain > tolerance * jnp.abs(value)) & (value + gain >= jnp.max(value))


def _normalised(v: jax.Array) -> jax.Array:
    """Rows of unit length; a zero row becomes the first unit vector."""
    length = jnp.linalg.norm(v, axis=1, keepdims=True)
    return jnp.where(length > 0, v / jnp.where(length > 0, length, 1.0), jnp.zeros_like(v).at[:, 0].set(1.0))


def dense_contract(tensor: jax.Array) -> Contract:
    """Contractions of an explicit tensor, all starts in one matrix product per slot (r copies of the tensor)."""
    order = tensor.ndim
    unfolded = [jnp.moveaxis(tensor, slot, -1).reshape(-1, tensor.shape[slot]) for slot in range(order)]

    def contract(vectors: Vectors, free: int) -> jax.Array:
        rest = [v for slot, v in enumerate(vectors) if slot != free]
        outer = functools.reduce(lambda left, v: (left[:, :, None] * v[:, None, :]).reshape(v.shape[0], -1), rest)
        return outer @ unfolded[free]

    return contract


def largest_fibre(tensor: jax.Array) -> Vectors:
    """Start of at least the lower bounds of N6: the largest fibre along the longest axis, and its unit vectors.

    Its length is at least the largest entry and at least `|T|_F sqrt(max d_k / prod d_k)`, the mean over the fibres.
    """
    axis = max(range(tensor.ndim), key=lambda slot: tensor.shape[slot])
    fibres = jnp.moveaxis(tensor, axis, -1)
    flat = fibres.reshape(-1, tensor.shape[axis])
    best = jnp.argmax(jnp.sum(flat * flat, axis=1))
    places = jnp.unravel_index(best, fibres.shape[:-1])
    rest = [jax.nn.one_hot(place, size, dtype=tensor.dtype) for place, size in zip(places, fibres.shape[:-1])]
    return (*rest[:axis], flat[best], *rest[axis:])


@functools.partial(jax.jit, static_argnames=("lanes", "tolerance", "sweeps"))
def alternating_batch(tensors: jax.Array, starts: Vectors, *, lanes: int, tolerance: float, sweeps: int) -> Ascent:
    """`alternating` for every tensor `(batch, d_1, .., d_r)` from the same starts and from its own largest fibre."""

    def one(tensor: jax.Array) -> Ascent:
        own = largest_fibre(tensor)
        joined = tuple(jnp.concatenate([v, first[None]]) for v, first in zip(starts, own))
        return alternating(dense_contract(tensor), joined, tolerance, sweeps)

    return _looped(one, tensors, lanes)


@functools.partial(jax.jit, static_argnames=("lanes", "tolerance", "steps"))
def symmetric_batch(tensors: jax.Array, start: jax.Array, *, lanes: int, tolerance: float, steps: int) -> Ascent:
    """`shifted_power` for every symmetric tensor `(batch, n, .., n)` from the same starts `(starts, n)`."""
    order = tensors.ndim - 1

    def one(tensor: jax.Array) -> Ascent:
        unfolded = tensor.reshape(-1, tensor.shape[-1])

        def contract(vectors: Vectors, free: int) -> jax.Array:
            rest = vectors[1:]
            outer = functools.reduce(lambda left, v: (left[:, :, None] * v[:, None, :]).reshape(v.shape[0], -1), rest)
            return outer @ unfolded

        return shifted_power(contract, start, order, tolerance, steps)

    return _looped(one, tensors, lanes)
