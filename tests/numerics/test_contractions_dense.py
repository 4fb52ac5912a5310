"""Contractions against full derivative tensors, exact solutions, and each route against the others."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from symtensor.numerics.contractions import (
    along,
    derivative_contractions,
    gradient_at,
    line_coefficients,
    mixed_gradients,
    training_direction,
)
from symtensor.numerics.neural_networks import fully_connected

X = np.array([[0.4, -1.1], [0.9, 0.3]])
ETA = 0.3


def tensors(net, theta, x, highest):
    """grad^k F as full arrays, by nested jacfwd."""
    flat, unravel = ravel_pytree(theta)
    function = lambda t: net.apply(unravel(t), jnp.asarray(x))  # noqa: E731
    out = [np.asarray(function(flat))]
    for _ in range(highest):
        function = jax.jacfwd(function)
        out.append(np.asarray(jax.jit(function)(flat)))
    return out


def contracted(tensor, vectors):
    """The last slots contracted with vectors."""
    return functools.reduce(lambda t, v: t @ v, vectors, tensor)


def factor(D, d):
    return ETA ** (D / 2 + d) / (math.factorial(D) * math.factorial(d))


@pytest.fixture(scope="module")
def one_hidden():
    net = fully_connected((2, 7), "tanh")  # 21 parameters
    theta = net.init(jax.random.key(3))
    return net, theta, [tensors(net, theta, x, 4) for x in X]


@pytest.fixture(scope="module")
def two_hidden():
    net = fully_connected((2, 3, 2), [["tanh", "sin", "x^3"], "erf"], sigma_b=0.4)
    theta = net.init(jax.random.key(5))
    return net, theta, [tensors(net, theta, x, 4) for x in X]


CASES = [
    ("one_hidden", "taylor", {}),
    pytest.param("two_hidden", "taylor", {}, marks=pytest.mark.slow),
    pytest.param("one_hidden", "nested", {}, marks=pytest.mark.slow),
    pytest.param("two_hidden", "nested", {}, marks=pytest.mark.slow),
    pytest.param("one_hidden", "taylor", {2: (0, 2)}, marks=pytest.mark.slow),
    pytest.param("two_hidden", "taylor", {2: (0, 2)}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("case", "method", "two"), CASES)
def test_same_input_against_dense_tensors(case, method, two, request):
    net, theta, dense = request.getfixturevalue(case)
    result = derivative_contractions(net.apply, theta, X, orders={0: 4, 1: 3} | two, eta=ETA, method=method)
    for i, T in enumerate(dense):
        for d in range(5):
            exact = factor(0, d) * contracted(T[d], [T[1]] * d)
            assert abs(result[0, d].values[i] - exact) <= 1e-12 * max(abs(exact), 1e-3)
        for d in range(4):
            exact = factor(1, d) * np.linalg.norm(contracted(T[1 + d], [T[1]] * d))
            assert abs(result[1, d].values[i] - exact) <= 1e-12 * exact
        for d in two.get(2, ()):
            exact = factor(2, d) * np.linalg.norm(contracted(T[2 + d], [T[1]] * d), 2)
            assert abs(result[2, d].values[i] - exact) <= 1e-10 * exact
            assert result[2, d].status == "exact"


def test_jet_agrees_with_the_other_routes(one_hidden):
    net, theta, _ = one_hidden
    one, other = (derivative_contractions(net.apply, theta, X, orders={0: 5, 1: 2}, method=m) for m in ("taylor", "jet"))
    for entry in one:
        np.testing.assert_allclose(entry.values, other[entry.D, entry.d].values, rtol=1e-11, atol=1e-15)


@pytest.mark.slow
def test_other_inputs_mixed_inputs_and_the_training_direction(two_hidden):
    net, theta, dense = two_hidden
    points = np.array([[1.0, 0.2], [-0.5, 0.7], [0.1, 0.1]])
    gradients = [tensors(net, theta, p, 1)[1] for p in points]
    crossed = derivative_contractions(net.apply, theta, X, orders={0: 3, 1: 2, 2: (1,)}, eta=ETA, directions=gradient_at(points))
    mixed = derivative_contractions(net.apply, theta, X, orders={0: 3, 1: 2, 2: (2,)}, eta=ETA, directions=mixed_gradients(points))
    r = np.array([0.7, -1.3, 0.4])
    trained = derivative_contractions(net.apply, theta, X, orders={0: 3, 1: 2}, eta=ETA, directions=training_direction(points, r))
    step = r @ np.array(gradients)
    assert crossed[0, 1].values.shape == (2, 3) and crossed.axes == ("input", "point")
    for i, T in enumerate(dense):
        for D, d in ((0, 1), (0, 2), (0, 3), (1, 1), (1, 2)):
            size = np.abs if D else np.asarray
            for j, v in enumerate(gradients):
                exact = factor(D, d) * contracted(T[D + d], [v] * d)
                exact = np.linalg.norm(exact) if D else exact
                assert abs(crossed[D, d].values[i, j] - size(exact)) <= 1e-12 * max(abs(exact), 1e-2)
            for result, vectors in ((mixed, gradients[:d]), (trained, [step] * d)):
                exact = factor(D, d) * contracted(T[D + d], vectors)
                exact = np.linalg.norm(exact) if D else exact
                assert abs(result[D, d].values[i] - size(exact)) <= 1e-12 * max(abs(exact), 1e-2)
        exact = factor(2, 1) * np.linalg.norm(T[3] @ gradients[1], 2)
        assert abs(crossed[2, 1].values[i, 1] - exact) <= 1e-10 * exact
        exact = factor(2, 2) * np.linalg.norm(T[4] @ gradients[0] @ gradients[1], 2)
        assert abs(mixed[2, 2].values[i] - exact) <= 1e-10 * exact


def test_mixed_derivatives_by_polarisation(one_hidden):
    """The same mixed contraction from derivatives along single lines only, with signs summed over the corners of a cube."""
    net, theta, _ = one_hidden
    x = jnp.asarray(X[0])
    points = jnp.asarray([[1.0, 0.2], [-0.5, 0.7], [0.1, 0.1]])
    gradients = [jax.grad(net.apply)(theta, p) for p in points]
    total = 0.0
    for signs in np.ndindex(2, 2, 2):
        s = 1 - 2 * np.array(signs)
        v = jax.tree.map(lambda *g, s=s: sum(si * gi for si, gi in zip(s, g)), *gradients)
        total += np.prod(s) * float(line_coefficients(lambda t: net.apply(t, x), theta, v, 3)[3])
    polarised = total / 8 / math.factorial(3)  # = grad^3 F[v1, v2, v3] / 3!  with c_3 = grad^3 F[v^3] / 3!
    direct = derivative_contractions(net.apply, theta, X, orders={0: (3,)}, directions=mixed_gradients(points))
    assert abs(direct[0, 3].values[0] - polarised) < 1e-13


@pytest.mark.slow
def test_three_free_slots_are_bracketed_and_the_frobenius_norm_is_exact(two_hidden):
    net, theta, dense = two_hidden
    result = derivative_contractions(net.apply, theta, X, orders={3: (0, 1)}, eta=ETA)
    rng = np.random.default_rng(0)
    for i, T in enumerate(dense):
        for d in (0, 1):
            entry, C = result[3, d], factor(3, d) * contracted(T[3 + d], [T[1]] * d)
            assert abs(entry.frobenius[i] - np.linalg.norm(C)) <= 1e-10 * np.linalg.norm(C)
            unfolded = np.linalg.norm(C.reshape(len(C), -1), 2)
            assert abs(entry.norm.upper[i] - unfolded) <= 1e-6 * unfolded
            u = rng.standard_normal((2000, len(C)))
            u /= np.linalg.norm(u, axis=1, keepdims=True)
            sampled = np.abs(np.einsum("ijk,ni,nj,nk->n", C, u, u, u, optimize=True)).max()
            assert sampled <= entry.norm.lower[i] <= entry.norm.upper[i]


def test_exactly_solvable_linear_network():
    """f = sqrt(q/n) v.w: C_{0,2} = eta^2 q f/n and nothing beyond; one step leaves the linear model by C_{0,2} g^2."""
    n, eta, x, y = 50, 0.2, np.array([[0.5, -1.0, 2.0]]), 0.7
    net = fully_connected((3, n), "identity")
    theta = net.init(jax.random.key(2))
    result = derivative_contractions(net.apply, theta, x, orders={0: 5, 1: 2, 2: (0,)}, eta=eta)
    W, a = np.asarray(theta[0]["W"]), np.asarray(theta[1]["W"])[0]
    q = float(x[0] @ x[0]) / 3
    w = W @ x[0] / np.sqrt(3 * q)
    f, Th = np.sqrt(q / n) * a @ w, q / n * (a @ a + w @ w)
    expected = [f, eta * Th, eta**2 * q * f / n, 0.0, 0.0, 0.0]
    for d, value in enumerate(expected):
        assert abs(result[0, d].values[0] - value) <= 1e-12 * max(1.0, abs(value))
    assert abs(result[1, 1].values[0] - eta**1.5 * np.sqrt(q / n * Th)) <= 1e-12
    assert abs(result[2, 0].values[0] - eta / 2 * np.sqrt(q / n)) <= 1e-12
    assert result[0, 3].values[0] == 0.0  # the zero is exact, not rounded
    gradient = jax.grad(net.apply)(theta, jnp.asarray(x[0]))
    g = f - y
    after = net.apply(jax.tree.map(lambda t, v: t - eta * g * v, theta, gradient), jnp.asarray(x[0]))
    linear = f - eta * Th * g
    assert abs(float(after) - linear - result[0, 2].values[0] * g**2) <= 1e-12
    assert abs(float(after) - (f - eta * Th * g + eta**2 * q * f * g**2 / n)) <= 1e-12


@pytest.mark.slow
def test_one_step_of_training_is_the_series_in_the_contractions(two_hidden):
    """F(theta - eta g v) = sum_d (-g)^d C_{0,d}, and the norm of the gradient changes by the vectors behind C_{1,d}."""
    net, theta, _ = two_hidden
    g, eta, x = 0.8, 0.05, jnp.asarray(X[0])
    result = derivative_contractions(net.apply, theta, X[:1], orders={0: 12}, eta=eta)
    v = jax.grad(net.apply)(theta, x)
    moved = float(net.apply(jax.tree.map(lambda t, s: t - eta * g * s, theta, v), x))
    partial = np.cumsum([(-g) ** d * result[0, d].values[0] for d in range(13)])
    assert abs(partial[-1] - moved) < 1e-12
    assert abs(partial[3] - moved) > 1e-10  # the later terms are needed


def test_the_direction_is_frozen(one_hidden):
    """C_{1,1} is (H v), half of the gradient of |v|^2 = v.v: a direction that moved along would give twice as much."""
    net, theta, _ = one_hidden
    result = derivative_contractions(net.apply, theta, X, orders={1: (1,)})
    moving = jax.grad(lambda t: sum(jnp.sum(g**2) for g in jax.tree.leaves(jax.grad(net.apply)(t, jnp.asarray(X[0])))))(theta)
    size = float(jnp.linalg.norm(ravel_pytree(moving)[0]))
    assert abs(result[1, 1].values[0] - size / 2) < 1e-13


@pytest.mark.slow
def test_a_given_vector_and_powers_of_eta(one_hidden):
    net, theta, _ = one_hidden
    v = jax.tree.map(jnp.ones_like, theta)
    one, half = (
        derivative_contractions(net.apply, theta, X, orders={0: 3, 1: 2, 2: 1}, eta=e, directions=along(v)) for e in (1, 0.5)
    )
    for entry in one:
        ratio = half[entry.D, entry.d].norm.lower / entry.norm.lower
        np.testing.assert_allclose(ratio, 0.5 ** (entry.D / 2 + entry.d), rtol=1e-9)
    exact = line_coefficients(lambda t: net.apply(t, jnp.asarray(X[1])), theta, v, 3, "nested")
    np.testing.assert_allclose([one[0, d].values[1] for d in range(4)], exact, rtol=1e-12)
