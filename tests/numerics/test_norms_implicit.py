"""Tensors given by contractions, and the closed forms of one hidden layer (arXiv 2401.04013) at width 4096.

f(theta) = n^(-1/2) sum_i a_i tanh(w_i), one input of length 1. Theta, Q_21, Q_32, Q_33 come from implicit contractions
(nested jvp, one vjp); the spread of Q_22 and the Hessian norm from the 2 x 2 neuron blocks, checked against the implicit
route on a few networks.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from symtensor.numerics.norms import ImplicitTensor, block_norm, derivative_tensor, subordinate_norm

WIDTH = 4096


def network(theta):
    a, w = jnp.split(theta, 2)
    return jnp.sum(a * jnp.tanh(w)) / np.sqrt(a.shape[0])


def gradient(theta):
    """grad f by hand, batched."""
    a, w = np.split(theta, 2, axis=-1)
    return np.concatenate([np.tanh(w), a / np.cosh(w) ** 2], axis=-1) / np.sqrt(a.shape[-1])


def slopes(theta):
    """a, tanh and its first two derivatives at w."""
    a, w = np.split(theta, 2, axis=-1)
    first = np.cosh(w) ** -2.0
    return a, np.tanh(w), first, -2 * np.tanh(w) * first


def hessian_blocks(theta):
    """`(.., n, 2, 2)` blocks [[0, phi'], [phi', a phi'']]/sqrt n over (a_i, w_i)."""
    a, _, first, second = slopes(theta)
    rows = np.stack([np.stack([0 * a, first], -1), np.stack([first, a * second], -1)], -2)
    return rows / np.sqrt(a.shape[-1])


@pytest.fixture(scope="module")
def thetas():
    return np.random.default_rng(11).standard_normal((1000, 2 * WIDTH))


def within_one_percent(values, exact, share=0.004):
    """The mean agrees within 1 %, with a standard error that would show a deviation of 1 %."""
    assert values.std(ddof=1) / np.sqrt(len(values)) < share * abs(exact)
    assert abs(values.mean() - exact) < 0.01 * abs(exact)


def test_an_implicit_tensor_is_the_dense_one():
    generator = np.random.default_rng(0)
    dense = generator.standard_normal((12, 2, 3, 4))
    letters = "abc"

    def contract(vectors, free, tensor):
        rest = [letters[i] for i in range(3) if i != free]
        return jnp.einsum(f"abc,{rest[0]},{rest[1]}->{letters[free]}", tensor, *vectors)

    implicit = subordinate_norm(ImplicitTensor((2, 3, 4), contract, (dense,)), batch_dims=1)
    assert np.allclose(implicit.lower, subordinate_norm(dense, batch_dims=1).lower, rtol=1e-9)
    assert (implicit.status == "lower").all() and np.isinf(implicit.upper).all()
    form = np.einsum("zabc,za,zb,zc->z", dense, *implicit.vectors)
    assert np.allclose(np.abs(form), implicit.lower, rtol=1e-12)


def test_no_tensor_is_stored():
    """Order 3 with 20000 entries a side: the dense tensor would take 64 TB."""
    d = 20000
    u = np.random.default_rng(1).standard_normal(d) / np.sqrt(d)

    def contract(vectors, free, direction):
        return direction * jnp.dot(direction, vectors[0]) * jnp.dot(direction, vectors[1])

    norm = subordinate_norm(ImplicitTensor((d,) * 3, contract, (u,), symmetric=True), restarts=4, memory=2**25)
    assert norm.lower == pytest.approx(np.linalg.norm(u) ** 3, rel=1e-9)


def test_derivative_tensors_against_dense_ones():
    theta = np.random.default_rng(2).standard_normal(6)
    v = gradient(theta)
    blocks = hessian_blocks(theta)
    hessian = np.zeros((6, 6))
    for i in range(3):
        hessian[np.ix_([i, 3 + i], [i, 3 + i])] = blocks[i]
    norm = subordinate_norm(derivative_tensor(network, theta, 2))
    assert norm.exact and norm.value == pytest.approx(np.linalg.norm(hessian, 2), rel=1e-10)
    q21 = subordinate_norm(derivative_tensor(network, theta, 1, directions=[v]))
    assert q21.exact and q21.value == pytest.approx(np.linalg.norm(hessian @ v), rel=1e-12)
    q22 = subordinate_norm(derivative_tensor(network, theta, 0, directions=[v, v]))
    assert q22.value == pytest.approx(abs(v @ hessian @ v), rel=1e-12) and q22.vectors == ()


def test_first_order_norms_of_one_hidden_layer(thetas):
    """sqrt(n) |Q_21| = .7941, n |Q_32| = 3.5427, Theta = .85870, n E Q_33 = -1.7280 by implicit contractions."""
    v = gradient(thetas)
    within_one_percent((v**2).sum(axis=1), 0.85870)
    first = subordinate_norm(derivative_tensor(network, thetas, 1), batch_dims=1)
    assert np.allclose(first.value, np.linalg.norm(v, axis=1), rtol=1e-12)
    for directions, exact, power in ((1, 0.7941, 0.5), (2, 3.5427, 1.0)):
        norm = subordinate_norm(derivative_tensor(network, thetas, 1, directions=[v] * directions), batch_dims=1)
        assert norm.exact.all()
        within_one_percent(WIDTH**power * norm.value, exact)
    third = subordinate_norm(derivative_tensor(network, thetas, 0, directions=[v] * 3), batch_dims=1)
    within_one_percent(-WIDTH * third.value, -1.7280)  # negative throughout: its fluctuation vanishes


def test_spread_of_q22_from_neuron_blocks(thetas):
    """n sd Q_22 = .8529: Q_22 is a sum over neurons, odd in each a_i, so that its variance is the mean of squares."""
    few = thetas[:100]
    v = gradient(few)
    pairs = np.stack(np.split(v, 2, axis=1), -1)
    blocks = np.einsum("sni,snij,snj->sn", pairs, hessian_blocks(few), pairs)
    one = subordinate_norm(derivative_tensor(network, few, 0, directions=[v, v]), batch_dims=1)
    assert np.allclose(one.value, np.abs(blocks.sum(axis=1)), rtol=1e-9, atol=1e-12)
    a, phi, first, second = slopes(thetas)
    parts = (2 * a * phi * first**2 + a**3 * first**2 * second) / WIDTH**1.5
    assert np.allclose(parts[:100], blocks, rtol=1e-10, atol=1e-14)
    spread = np.sqrt(WIDTH**2 * (parts**2).sum(axis=1).reshape(10, 100).mean(axis=1))
    within_one_percent(spread, 0.8529, share=0.005)


def test_hessian_norm_from_blocks(thetas):
    """.676 sqrt(2 log n / n) at n = 4096 (N8: the largest 2 x 2 block, its eigenvalues by hand)."""
    a, _, first, second = slopes(thetas)
    curvature = np.abs(a * second)
    largest = (curvature + np.sqrt(curvature**2 + 4 * first**2)).max(axis=1) / (2 * np.sqrt(WIDTH))  # 2 x 2 by hand
    within_one_percent(largest / np.sqrt(2 * np.log(WIDTH) / WIDTH), 0.676)


@pytest.mark.slow
def test_hessian_norm_by_lanczos_is_that_of_the_largest_block(thetas):
    """n = 4096: products with H alone, 8192 parameters, against the block route."""
    for theta in thetas[:3]:
        blocks = block_norm(hessian_blocks(theta), 2)
        free = subordinate_norm(derivative_tensor(network, theta, 2))
        assert blocks.exact and free.exact and free.value == pytest.approx(float(blocks.value), rel=1e-9)
