"""Random numbers: the stream is the one of `jax.random`, the transform is exact, the law is the normal law."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from symtensor.numerics._draws import box_muller, fold_in, key_words, normals, random_words

NORMALS = jax.jit(normals, static_argnums=1, static_argnames="chunked")


def keys_of(seed: int, samples: int):
    words = key_words(seed)
    return fold_in((jnp.uint32(words[0]), jnp.uint32(words[1])), jnp.arange(samples, dtype=jnp.uint32))


@pytest.mark.parametrize("seed", [0, 7, 2**32 + 5, 2**63 - 1])
def test_keys_are_those_of_jax_random(seed):
    reference = jax.random.key(seed, impl="threefry2x32")
    assert np.array_equal(jax.random.key_data(reference), np.array(key_words(seed), dtype=np.uint32))
    expected = jax.vmap(lambda s: jax.random.key_data(jax.random.fold_in(jax.random.fold_in(reference, s), 3)))(jnp.arange(5))
    high, low = fold_in(keys_of(seed, 5), jnp.uint32(3))
    assert np.array_equal(np.stack([high, low], axis=1), expected)


def test_words_are_the_bits_of_jax_random():
    high, low = keys_of(11, 3)
    with jax.threefry_partitionable(True):
        expected = [
            jax.random.bits(jax.random.wrap_key_data(jnp.stack([h, l]), impl="threefry2x32"), (10,), jnp.uint64)
            for h, l in zip(high, low)
        ]
    assert np.array_equal(random_words((high, low), 0, 10).T, np.stack(expected))
    assert np.array_equal(random_words((high, low), 4, 6), random_words((high, low), 0, 10)[4:])


def test_box_muller_against_the_formula():
    edge = [0, 2**64 - 1, 2**21 - 1, 2**21, (2**43 - 1) << 21, 1 << 63]
    words = np.concatenate([np.array(edge, np.uint64), np.random.default_rng(0).integers(0, 2**64, 20000, np.uint64)])
    z = np.asarray(box_muller(jnp.asarray(words)))
    for word, along, across in zip(words.tolist()[:300], z[0].tolist(), z[1].tolist()):
        radius = mpmath.sqrt(-2 * mpmath.log(((word >> 21) + mpmath.mpf(1) / 2) / mpmath.mpf(2) ** 43))
        turn = ((word & (2**21 - 1)) + mpmath.mpf(1) / 2) / 2**21 - mpmath.mpf(1) / 8
        assert abs(along - radius * mpmath.cospi(2 * turn)) < 4e-15
        assert abs(across - radius * mpmath.sinpi(2 * turn)) < 4e-15
    radius = np.sqrt(-2 * np.log(((words >> np.uint64(21)).astype(float) + 0.5) * 2.0**-43))
    assert np.allclose(np.hypot(*z), radius, rtol=1e-14, atol=1e-15)


def test_discretisation_of_the_radius_is_negligible():
    """Exact second and fourth moment over the grid of 2^43 radii: E r^2 = 2, E r^4 = 8 to 1e-11."""
    with mpmath.workdps(60):
        cells, half = mpmath.mpf(2) ** 43, mpmath.mpf(1) / 2
        # sums of log^k((j + 1/2)/N), j < N, as differences of Hurwitz zeta derivatives (asymptotic at the upper end)
        log_sum = mpmath.loggamma(cells + half) - mpmath.loggamma(half) - cells * mpmath.log(cells)
        assert abs(-2 * log_sum / cells - 2) < 1e-11
        # the first 10^4 cells exactly, the rest by the midpoint error term f''/24
        first = 10**4
        exact = mpmath.fsum(mpmath.log((j + half) / cells) ** 2 for j in range(first))
        u = first / cells
        tail = 2 - u * (mpmath.log(u) ** 2 - 2 * mpmath.log(u) + 2)  # integral of log^2 from u to 1
        slope = 2 * mpmath.log(u) / u  # derivative of log^2 at u; it vanishes at 1
        midpoint = tail + slope / (24 * cells**2)  # sum/N = integral - (f'(1) - f'(u))/(24 N^2)
        assert abs(4 * (exact / cells + midpoint) - 8) < 1e-10


@pytest.mark.parametrize("rows", [1, 2, 301])
def test_chunks_do_not_change_the_values(rows):
    key = keys_of(3, 64)
    flat, chunked = (np.asarray(NORMALS(key, rows, chunked=c)) for c in (False, True))
    assert flat.shape == (rows, 64)
    assert np.allclose(flat, chunked, rtol=1e-14, atol=1e-15)
    fewer = np.asarray(NORMALS(keys_of(3, 8), rows, chunked=True))
    assert np.allclose(fewer, chunked[:, :8], rtol=1e-14, atol=1e-15)


def test_moments_and_correlations():
    samples, rows = 256, 1024
    z = np.asarray(NORMALS(keys_of(5, samples), rows, chunked=True))
    count = z.size
    for power, mean in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0), (6, 15.0)):
        variance = math.prod(range(1, 2 * power, 2)) - mean**2
        assert abs((z**power).mean() - mean) < 4.5 * math.sqrt(variance / count)
    half = rows // 2
    for left, right in ((z[:half], z[half:]), (z[:-1], z[1:]), (z[:, :-1], z[:, 1:])):
        for f in (lambda v: v, lambda v: v**2 - 1):
            product = f(left) * f(right)
            assert abs(product.mean()) < 4.5 * product.std() / math.sqrt(product.size)
    tail = math.erfc(3 / math.sqrt(2))
    assert abs((np.abs(z) > 3).mean() - tail) < 4.5 * math.sqrt(tail / count)
