"""Semidefinite factors: exact for singular matrices, equal rows for equal inputs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symtensor.numerics._factor import aligned_factor, semidefinite_factor

FACTOR = jax.jit(semidefinite_factor)
ALIGNED = jax.jit(aligned_factor)


def factor(*matrices: np.ndarray) -> np.ndarray:
    return np.moveaxis(np.asarray(FACTOR(jnp.asarray(np.stack(matrices, axis=-1)))), -1, 0)


def test_positive_definite_is_the_cholesky_factor():
    matrices = [np.cov(np.random.default_rng(k).normal(size=(4, 20))) for k in range(3)]
    assert np.allclose(factor(*matrices), np.linalg.cholesky(np.stack(matrices)), rtol=1e-13, atol=1e-14)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 4), st.integers(0, 2**32 - 1), st.sampled_from([1e-150, 1e-6, 1.0, 1e12]))
def test_any_rank_is_reproduced(rank, seed, scale):
    root = np.random.default_rng(seed).normal(size=(4, rank)) * np.sqrt(scale)
    matrix = root @ root.T
    (result,) = factor(matrix)
    assert np.array_equal(result, np.tril(result))
    # a dropped pivot is below 4 eps of its diagonal, so that an element is off by at most the root of that
    assert np.allclose(result @ result.T, matrix, rtol=0, atol=1e-7 * np.abs(matrix).max(initial=0.0))


def test_rank_deficient_examples_to_rounding():
    duplicate = np.array([[2.0, 2.0, 0.3], [2.0, 2.0, 0.3], [0.3, 0.3, 0.7]]) / 3
    doubled = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) / 7
    zero_input = np.diag([0.0, 1.1, 0.0])
    constant = np.full((3, 3), 0.1)
    for matrix, rank in ((duplicate, 2), (doubled, 1), (zero_input, 1), (constant, 1), (np.zeros((3, 3)), 0)):
        (result,) = factor(matrix)
        assert np.allclose(result @ result.T, matrix, rtol=4e-16, atol=0)
        assert (np.abs(result).max(axis=0) > 0).sum() == rank
        assert np.isfinite(result).all()


@pytest.mark.parametrize("value", [0.1, 1 / 3, 2.7, 1e-8])
def test_equal_inputs_have_bitwise_equal_rows(value):
    matrix = np.array([[1.0, 0.2, 1.0, 0.2], [0.2, 0.9, 0.2, 0.9], [1.0, 0.2, 1.0, 0.2], [0.2, 0.9, 0.2, 0.9]]) * value
    (result,) = factor(matrix)
    assert np.array_equal(result[0], result[2])
    assert np.array_equal(result[1], result[3])


def aligned(factor: np.ndarray, target: np.ndarray) -> np.ndarray:
    return np.asarray(ALIGNED(jnp.asarray(factor[..., None]), jnp.asarray(target)))[..., 0]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_alignment_keeps_the_matrix_and_comes_close(size):
    """The same covariance, and a distance to the target no worse than 1 % above the best rotation's (by SVD)."""
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, size + 2))
    target = np.linalg.cholesky(root @ root.T / size)
    shift = 0.1 * rng.normal(size=(size, size))
    own = np.linalg.cholesky(target @ target.T + shift @ shift.T)
    result = aligned(own, target)
    assert np.allclose(result @ result.T, own @ own.T, rtol=1e-14, atol=1e-14)
    left, _, right = np.linalg.svd(own.T @ target)
    best = np.linalg.norm(own @ (left @ right) - target)
    assert np.linalg.norm(result - target) <= 1.01 * best
    assert best <= np.linalg.norm(own - target) + 1e-15


def test_alignment_of_singular_factors():
    """Equal rows stay equal bit by bit, zero rows zero, and a zero target or factor is no division by zero."""
    (own,) = factor(np.array([[1.0, 1.0, 0.0, 0.3], [1.0, 1.0, 0.0, 0.3], [0, 0, 0, 0], [0.3, 0.3, 0.0, 0.5]]))
    target = np.array(own[[3, 3, 2, 0]])
    result = aligned(own, target)
    assert np.array_equal(result[0], result[1])
    assert not result[2].any()
    assert np.allclose(result @ result.T, own @ own.T, rtol=1e-14, atol=1e-15)
    assert np.array_equal(aligned(own, np.zeros((4, 4))), own)
    assert not aligned(np.zeros((4, 4)), target).any()
