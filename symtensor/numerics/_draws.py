"""Standard normal draws keyed by (seed, sample, layer): Threefry-2x32 counters and a vectorised Box-Muller transform.

The keys are those of `jax.random` (`fold_in(fold_in(key(seed), sample), layer)` of the Threefry generator) and the
64-bit words are those of `jax.random.bits` in its partitionable mode; both are checked bit by bit in the tests. They
are written out here because the stream then depends on no configuration flag, and because samples lie along the last
axis: everything vectorises over samples and one pass costs about a fifth of `vmap(jax.random.normal)` in float64.

One 64-bit word makes one pair of normals: 43 bits give the radius, `sqrt(-2 log u)`, and 21 bits the angle. An
equispaced angle integrates every trigonometric polynomial of degree below 2^21 exactly; the radius is cut at
sqrt(2 log 2^44) = 7.81, and its discretisation shifts the moments E z^2 and E z^4 by less than 1e-11.

References
----------
Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11 (2011), section 4.1 (Threefry).
Box, Muller, "A note on the generation of random normal deviates", Ann. Math. Statist. 29 (1958) 610.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

Key: TypeAlias = "tuple[jax.Array, jax.Array]"

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_RADIUS_BITS, _ANGLE_BITS = 43, 21
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD  # float64 pattern of sqrt(1/2)
_LOG_SERIES = [2.0 / (2 * k + 1) for k in range(11)]  # 2 artanh(f) / f in powers of f^2, |f| <= 0.1716
_SIN_SERIES = [(-1) ** k * (math.pi / 2) ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(8)]
_COS_SERIES = [(-1) ** k * (math.pi / 2) ** (2 * k) / math.factorial(2 * k) for k in range(9)]
_CHUNK_WORDS = 4096  # random words made at a time on CPU: they stay in the first-level cache


def key_words(seed: int) -> tuple[int, int]:
    """The two 32-bit words of `jax.random.key(seed)` (Threefry) for `0 <= seed < 2^63`."""
    return (seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF


def threefry(key: Key, x0: jax.Array, x1: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Threefry-2x32 with 20 rounds: encrypt the counter words `(x0, x1)` (uint32) under `key`, elementwise."""
    k0, k1 = key
    schedule = (k0, k1, k0 ^ k1 ^ jnp.uint32(_PARITY))
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = x0 ^ ((x1 << jnp.uint32(rotation)) | (x1 >> jnp.uint32(32 - rotation)))
        x0 = x0 + schedule[(group + 1) % 3]
        x1 = x1 + schedule[(group + 2) % 3] + jnp.uint32(group + 1)
    return x0, x1


def fold_in(key: Key, data: jax.Array) -> Key:
    """`jax.random.fold_in` for arrays of keys and 32-bit data (broadcast against each other)."""
    data = jnp.asarray(data, jnp.uint32)
    return threefry(key, jnp.zeros_like(data), data)


def random_words(key: Key, first: jax.Array | int, rows: int) -> jax.Array:
    """Words `first .. first + rows - 1` of the 64-bit stream of every key: shape `(rows, samples)`, uint64."""
    counter = jnp.asarray(first, jnp.uint32) + lax.broadcasted_iota(jnp.uint32, (rows, key[0].shape[0]), 0)
    high, low = threefry((key[0][None], key[1][None]), jnp.zeros_like(counter), counter)
    return (high.astype(jnp.uint64) << jnp.uint64(32)) | low.astype(jnp.uint64)


def _horner(coefficients: Sequence[float], x: jax.Array) -> jax.Array:
    value = jnp.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


def _log(u: jax.Array) -> jax.Array:
    """Natural logarithm of float64 `0 < u < 1` (normal numbers), to about 2 units in the last place."""
    bits = lax.bitcast_convert_type(u, jnp.uint64)
    exponent = (bits - jnp.uint64(_SQRT_HALF_BITS)).astype(jnp.int64) >> 52
    mantissa = lax.bitcast_convert_type(bits - (exponent.astype(jnp.uint64) << jnp.uint64(52)), jnp.float64)
    f = (mantissa - 1.0) / (mantissa + 1.0)
    return exponent.astype(jnp.int32).astype(jnp.float64) * math.log(2.0) + f * _horner(_LOG_SERIES, f * f)


def box_muller(words: jax.Array) -> jax.Array:
    """Two independent standard normals per 64-bit word: shape `(2, *words.shape)`, float64."""
    uniform = ((words >> jnp.uint64(_ANGLE_BITS)).astype(jnp.float64) + 0.5) * 2.0**-_RADIUS_BITS
    radius = jnp.sqrt(-2.0 * _log(uniform))
    quadrant = ((words >> jnp.uint64(_ANGLE_BITS - 2)) & jnp.uint64(3)).astype(jnp.int32)
    fraction = (words & jnp.uint64(2 ** (_ANGLE_BITS - 2) - 1)).astype(jnp.int32).astype(jnp.float64)
    t = (fraction + 0.5) * 2.0 ** (2 - _ANGLE_BITS) - 0.5  # quarter turns off the nearest axis, |t| < 1/2
    sine, cosine = t * _horner(_SIN_SERIES, t * t), _horner(_COS_SERIES, t * t)
    swapped = (quadrant & 1) == 1
    along, across = jnp.where(swapped, sine, cosine), jnp.where(swapped, cosine, sine)
    along = jnp.where((quadrant == 1) | (quadrant == 2), -along, along)
    across = jnp.where(quadrant >= 2, -across, across)
    return jnp.stack([radius * along, radius * across])


def normals(key: Key, rows: int, *, chunked: bool) -> jax.Array:
    """`rows` standard normals for every key: shape `(rows, samples)`, float64, a pure function of the keys.

    `chunked` makes the random words in a loop of their own. The values are the same; on CPU the loop keeps XLA from
    recomputing the generator once for every consumer of the pair (no multi-output fusion there), on a GPU it is waste.
    """
    half = (rows + 1) // 2
    chunk = max(1, _CHUNK_WORDS // key[0].shape[0])
    if chunked and half > chunk:
        starts = jnp.arange(0, half, chunk, dtype=jnp.uint32)
        words = lax.map(lambda start: random_words(key, start, chunk), starts)
        words = words.reshape(starts.shape[0] * chunk, -1)[:half]
    else:
        words = random_words(key, 0, half)
    return box_muller(words).reshape(2 * half, -1)[:rows]
