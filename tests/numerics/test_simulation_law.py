"""The simulated law: exactly solvable network, naive weight matrices, exact means of the controls, singular inputs.

Comparisons are z-scores at fixed seeds, with standard errors that would reject the nearest wrong answer.
"""

from __future__ import annotations

import numpy as np
import pytest

from symtensor.numerics.simulation import SimulationResult, simulate


def linear_moments(n: int, *, alpha: float, dt: float, c_w: float, c_b: float, kernel: float, depth: int):
    """Exact E G and Var G by depth for sigma = identity and one input, at any width.

    G' = alpha^2 G + 2 alpha sqrt(dt Sig G/n) z + (dt Sig/n) chi2_n with Sig = c_b + c_w G.
    """
    mean, variance = [kernel], [2 * kernel**2 / n]
    for _ in range(depth):
        m, v = mean[-1], variance[-1]
        square = m**2 + v
        noise = 4 * alpha**2 * dt * (c_b * m + c_w * square)
        noise += 2 * dt**2 * (c_b**2 + 2 * c_b * c_w * m + c_w**2 * square)
        mean.append(alpha**2 * m + dt * (c_b + c_w * m))
        variance.append((alpha**2 + dt * c_w) ** 2 * v + noise / n)
    return np.array(mean), np.array(variance)


def largest_z(estimate, exact) -> float:
    return float(np.abs(estimate.z(exact)).max())


@pytest.fixture(scope="module")
def linear(simulation_case) -> SimulationResult:
    settings = {"c_w": 1.0, "c_b": 0.2, "alpha": 1.0, "dt": 1 / 8, "depth": 8}
    ensemble, leading = simulation_case("identity", 1.0, width=32, **settings)
    return simulate(ensemble, leading, samples=16384, seed=3)


def test_published_numbers_of_the_linear_network():
    """The recursion used below reproduces the expansion 41.57.. + 85.07../n + 98.84../n^2 and the mean 2.878941."""
    settings = {"c_w": 1.0, "c_b": 0.2, "alpha": 1.0, "dt": 1 / 8, "kernel": 1.0, "depth": 8}
    mean, _ = linear_moments(10, **settings)
    assert abs(mean[-1] - 2.878941) < 5e-7
    for n in (10**4, 10**5):
        scaled = n * linear_moments(n, **settings)[1][-1]
        assert abs(scaled - (41.5719349255 + 85.0681411626 / n + 98.8422439067 / n**2)) < 200 / n**3 + 1e-9


def test_linear_network_is_exact(linear):
    mean, variance = linear_moments(32, c_w=1.0, c_b=0.2, alpha=1.0, dt=1 / 8, kernel=1.0, depth=8)
    assert largest_z(linear.K, mean[:, None, None]) < 4
    assert largest_z(linear.K1, 0.0) < 4
    assert largest_z(linear.V4, 32 * variance.reshape(-1, 1, 1, 1, 1)) < 4
    assert largest_z(linear.plain["V4"], 32 * variance.reshape(-1, 1, 1, 1, 1)) < 4
    assert largest_z(linear.plain["K"], mean[:, None, None]) < 4
    # for sigma = identity S = G, so that U1 = S1 - J K1 is 0 in every sample
    assert np.allclose(linear.S1.mean, linear.K1.mean, rtol=0, atol=1e-9)
    assert np.allclose(linear.U1.mean, 0.0, rtol=0, atol=1e-9)


def test_narrow_linear_network_resolves_the_next_order(simulation_case):
    """At width 8 the 1/n coefficient 85.07 of n Var G is told from 38.0 and 25.4 (response loops mistreated)."""
    settings = {"c_w": 1.0, "c_b": 0.2, "alpha": 1.0, "dt": 1 / 8, "depth": 8}
    ensemble, leading = simulation_case("identity", 1.0, width=8, **settings)
    last = simulate(ensemble, leading, samples=32768, seed=17).V4
    exact = 8 * linear_moments(8, kernel=1.0, **settings)[1]
    assert largest_z(last, exact.reshape(-1, 1, 1, 1, 1)) < 4
    assert 6 * last.se[-1].item() < (85.07 - 38.0) / 8


def test_controls_have_their_exact_mean_and_pay(linear):
    assert linear.control_z.max() < 4
    assert linear.groups == 64 and linear.samples == 16384
    assert np.array_equal(linear.gain["K1"][0], np.ones((1, 1)))
    assert linear.gain["K1"][1:].min() > 20
    assert linear.gain["V4"].min() > 3
    for name in ("K1", "V4"):
        expected = (linear.plain[name].se / getattr(linear, name).se) ** 2
        assert np.allclose(linear.gain[name][1:], expected[1:])


def naive_kernels(kernel, *, depth, width, c_w, c_b, alpha, dt, samples, seed):
    """Empirical kernels G of networks with explicit weight matrices and biases, tanh, `(samples, L+1, P, P)`."""
    rng, inputs = np.random.default_rng(seed), len(kernel)
    phi = rng.normal(size=(samples, width, inputs)) @ np.linalg.cholesky(kernel).T
    kernels = []
    for layer in range(depth + 1):
        kernels.append(np.einsum("sia,sib->sab", phi, phi) / width)
        if layer < depth:
            weights = rng.normal(size=(samples, width, width)) * np.sqrt(c_w / width)
            bias = rng.normal(size=(samples, width, 1)) * np.sqrt(c_b)
            phi = alpha * phi + np.sqrt(dt) * (weights @ np.tanh(phi) + bias)
    return np.stack(kernels, axis=1)


@pytest.mark.parametrize(("alpha", "dt"), [(1.0, 0.5), (0.6, 0.8), (0.0, 1.0)])
def test_law_of_the_weight_matrix_network(simulation_case, alpha, dt):
    kernel = np.array([[1.5, 0.7], [0.7, 0.8]])
    settings = {"depth": 3, "width": 6, "c_w": 1.6, "c_b": 0.3, "alpha": alpha, "dt": dt}
    ensemble, leading = simulation_case("tanh", kernel, **settings)
    result = simulate(ensemble, leading, samples=20000, seed=4)
    naive = naive_kernels(kernel, samples=20000, seed=5, **settings)
    mean, error = naive.mean(axis=0), naive.std(axis=0, ddof=1) / np.sqrt(len(naive))
    for estimate in (result.K, result.plain["K"]):
        assert np.abs((estimate.mean - mean) / np.hypot(estimate.se, error)).max() < 4.5
    centered = naive - mean
    products = np.einsum("slab,slcd->slabcd", centered, centered) * 6
    for estimate in (result.V4, result.plain["V4"]):
        scatter = np.hypot(estimate.se, products.std(axis=0) / np.sqrt(len(naive)))
        assert np.abs((estimate.mean - products.mean(axis=0)) / scatter).max() < 4.5
    assert result.control_z.max() < 4.5
    assert largest_z(result.K1, 0.0) > 6  # power: the infinite-width mean is rejected


def test_finite_width_correction_of_one_block(simulation_case):
    """One layer after a Gaussian layer the mean of G is exactly K_0; U_1 vanishes at depth 0 and not at depth 1."""
    ensemble, leading = simulation_case("tanh", 2.0, c_w=2.0, dt=0.5, depth=2, width=16)
    result = simulate(ensemble, leading, samples=30000, seed=6)
    assert largest_z(result.U1, 0.0) > 6
    assert abs(result.U1.z(0.0)[0].item()) < 4
    assert abs(result.K1.z(0.0)[1].item()) < 4
    assert np.allclose(result.U1.mean[1:], result.S1.mean[1:] - leading.J.reshape(3, 1, 1)[1:] * result.K1.mean[1:])
    assert result.gain["U1"][1:].min() > 10 and result.gain["S1"][1:].min() > 10


def test_gain_grows_with_width(simulation_case):
    gains = []
    for width in (16, 64):
        ensemble, leading = simulation_case("tanh", 1.3, c_w=1.5, width=width)
        result = simulate(ensemble, leading, samples=4096, seed=8)
        gains.append((result.gain["K1"][-1].item(), result.gain["V4"][-1].item()))
    assert gains[1][0] > 2.5 * gains[0][0] and gains[1][1] > 1.5 * gains[0][1]


def test_duplicated_collinear_and_zero_inputs(simulation_case):
    """Inputs (x, y, x, 2x, 0) with sigma(0) = 0: the copy is equal bit by bit, the zero input stays zero."""
    directions = np.array([[1.2, 0.0], [0.4, 0.9], [1.2, 0.0], [2.4, 0.0], [0.0, 0.0]])
    ensemble, leading = simulation_case("tanh", directions @ directions.T, c_w=1.4, dt=0.5, depth=3, width=16)
    result = simulate(ensemble, leading, samples=512, seed=2)
    for estimate in (result.plain["K"], result.plain["S1"], result.plain["V4"]):
        assert np.isfinite(estimate.mean).all() and np.isfinite(estimate.se).all()
    mean = result.plain["K"].mean - leading.K
    assert np.allclose(mean[:, 0, 0], mean[:, 2, 2], rtol=0, atol=1e-13)
    raw = result.plain["K1"].mean / 16 + leading.K
    assert np.allclose(raw[:, 0, 0], raw[:, 0, 2], rtol=1e-14) and np.allclose(raw[:, 0, 1], raw[:, 2, 1], rtol=1e-14)
    assert np.all(result.plain["K"].mean[:, 4] == 0.0) and np.all(result.plain["V4"].mean[:, 4] == 0.0)
    assert np.allclose(raw[0, 0, 3], 2 * raw[0, 0, 0], rtol=1e-12)
    assert result.control_z.max() < 4.5


def test_odd_numbers_and_single_neuron(simulation_case):
    """n P odd (the last normal of a pair is dropped), width 1, depth 1, linear: exact mean and variance."""
    ensemble, leading = simulation_case("identity", 1.5, c_w=0.7, c_b=0.1, alpha=0.5, dt=0.5, depth=1, width=1)
    result = simulate(ensemble, leading, samples=20000, seed=12)
    mean, variance = linear_moments(1, alpha=0.5, dt=0.5, c_w=0.7, c_b=0.1, kernel=1.5, depth=1)
    assert largest_z(result.K, mean[:, None, None]) < 4
    assert largest_z(result.V4, variance.reshape(-1, 1, 1, 1, 1)) < 4


def test_wrong_leading_order_is_seen_by_the_controls(simulation_case):
    """An E[sigma sigma] off by 1 % (as an unconverged quadrature gives) shows in `control_z`."""
    ensemble, leading = simulation_case("tanh", 2.0, c_w=2.0, depth=3, width=64)
    kernels, means = [leading.K[0]], 1.01 * leading.ES
    for layer in range(3):
        kernels.append(kernels[-1] + 0.25 * 2.0 * means[layer])
    wrong = type(leading)(np.array(kernels), means, leading.J)
    assert simulate(ensemble, wrong, samples=4096, seed=1).control_z.max() > 6


def test_wrong_response_costs_variance_but_no_bias(simulation_case):
    settings = {"c_w": 1.0, "c_b": 0.2, "alpha": 1.0, "dt": 1 / 8, "depth": 8}
    ensemble, leading = simulation_case("identity", 1.0, width=32, **settings)
    result = simulate(ensemble, type(leading)(leading.K, leading.ES, 0.5 * leading.J), samples=8192, seed=9)
    mean, variance = linear_moments(32, kernel=1.0, **settings)
    assert largest_z(result.K, mean[:, None, None]) < 4
    assert largest_z(result.V4, 32 * variance.reshape(-1, 1, 1, 1, 1)) < 4
