"""The compiled block against a NumPy network simulated neuron by neuron with the same normals, and its variants."""

from __future__ import annotations

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symtensor.numerics import _blocks
from symtensor.numerics._blocks import GROUPS, Constants, Law, Plan, build_block, plan_block
from symtensor.numerics._draws import fold_in, key_words, normals
from symtensor.numerics._packing import Layout
from symtensor.numerics.simulation import simulate

NORMALS = jax.jit(normals, static_argnums=1, static_argnames="chunked")
FOLD_IN = jax.jit(fold_in)
LAW = Law(alpha=0.9, dt=0.4, c_w=1.3, c_b=0.2)
SEED = 21


@pytest.fixture(scope="module")
def case(simulation_case):
    kernel = np.array([[1.2, 0.5], [0.5, 0.9]])
    return simulation_case("tanh", kernel, c_w=1.3, c_b=0.2, alpha=0.9, dt=0.4, depth=3, width=6)


def procrustes(factor: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The `factor @ O`, O a rotation, closest to `target` (two inputs: the plane rotations of the simulator are exact)."""
    left, _, right = np.linalg.svd(factor.T @ target)
    rotation = left @ right
    assert np.linalg.det(rotation) > 0
    return factor @ rotation


def reference_statistics(leading, sample: int, width: int, tracked: int) -> np.ndarray:
    """`(L+1, rows)` of one sample, by loops over neurons and unpacked matrices."""
    words = key_words(SEED)
    key = FOLD_IN((jnp.uint32(words[0]), jnp.uint32(words[1])), jnp.array([sample], jnp.uint32))
    inputs, depths = leading.K.shape[-1], len(leading.K)
    pairs = list(itertools.combinations_with_replacement(range(inputs), 2))
    network = free = np.zeros((width, inputs))
    drive, drives, s = np.zeros((inputs, inputs)), np.zeros((tracked, inputs, inputs)), None
    rows = []
    for layer in range(depths):
        z = np.asarray(NORMALS(FOLD_IN(key, jnp.uint32(layer)), width * inputs, chunked=False)).reshape(width, inputs)
        if layer == 0:
            network = free = z @ np.linalg.cholesky(leading.K[0]).T
        else:
            free_factor = np.linalg.cholesky(LAW.c_b + LAW.c_w * leading.ES[layer - 1])
            factor = procrustes(np.linalg.cholesky(LAW.c_b + LAW.c_w * s), free_factor)
            network = LAW.alpha * network + np.sqrt(LAW.dt) * z @ factor.T
            free = LAW.alpha * free + np.sqrt(LAW.dt) * z @ free_factor.T
        kernel, mean, response = leading.K[layer], leading.ES[layer], leading.J[layer]
        s = np.tanh(network).T @ np.tanh(network) / width
        dg, ds = network.T @ network / width - kernel, s - mean
        cg = free.T @ free / width - kernel + drive
        cs = np.tanh(free).T @ np.tanh(free) / width - mean + np.einsum("abcd,cd->ab", response, drive)
        single = [np.outer(free[i], free[i]) - kernel + drives[i] for i in range(tracked)]
        vectors = [np.array([m[p] for p in pairs]) for m in (dg, dg - cg, ds, ds - cs)]
        g, r, c = vectors[0], vectors[1], vectors[0] - vectors[1]
        quads = list(itertools.combinations_with_replacement(range(len(pairs)), 2))
        moments = [np.mean([m[pairs[a]] * m[pairs[b]] for m in single]) for a, b in quads]
        products = [[g[a] * g[b] for a, b in quads]]
        products += [[m + width * (r[a] * c[b] + c[a] * r[b]) for m, (a, b) in zip(moments, quads)]]
        products += [[r[a] * r[b] for a, b in quads]]
        rows.append(np.concatenate([*vectors, *products]))
        drive = LAW.alpha**2 * drive + LAW.dt * LAW.c_w * cs
        noise = [np.outer(v, v) - mean for v in np.tanh(free[:tracked])]
        responses = [np.einsum("abcd,cd->ab", response, x) for x in drives]
        drives = np.array([LAW.alpha**2 * x + LAW.dt * LAW.c_w * (m + j) for x, m, j in zip(drives, noise, responses)])
    return np.stack(rows)


def constants_of(leading) -> Constants:
    layout = Layout(leading.K.shape[-1])
    factors = np.sqrt(LAW.dt) * np.linalg.cholesky(LAW.c_b + LAW.c_w * leading.ES[:-1])
    factors = np.concatenate([np.linalg.cholesky(leading.K[:1]), factors])
    arrays = (layout.pack(leading.K), layout.pack(leading.ES), layout.pack_response(leading.J), factors)
    return Constants(*(jnp.asarray(array) for array in arrays))


@pytest.mark.parametrize(("loops", "lanes"), [(True, 8), (False, 8), (True, 128)])
def test_block_against_a_network_in_numpy(case, loops, lanes):
    """First sample 64, a block cut after 5 or 70 samples: sums by group, groups without samples exactly zero."""
    _, leading = case
    plan = Plan(Layout(2), width=6, depth=3, samples=lanes, tracked=4)
    block = jax.jit(build_block(plan, LAW, jnp.tanh, loops=loops))
    count = 5 if lanes < GROUPS else 70
    words = jnp.array(key_words(SEED), jnp.uint32)
    sums = np.asarray(block(words, jnp.uint32(64), jnp.int32(count), constants_of(leading)))
    expected = np.zeros(plan.output_shape)
    for index in range(count):
        expected[..., index % plan.groups] += reference_statistics(leading, 64 + index, 6, 4)
    assert sums.shape == plan.output_shape
    assert np.allclose(sums, expected, rtol=1e-10, atol=1e-12)
    assert np.all(sums[..., count:] == 0.0)


def test_plan_is_a_function_of_width_and_inputs():
    for width, inputs in ((1, 1), (64, 1), (64, 4), (1024, 4), (4096, 4), (2**15, 2), (64, 20)):
        plan = plan_block(width, inputs, 5)
        assert plan.samples & (plan.samples - 1) == 0 and 8 <= plan.samples <= 512
        assert 1 <= plan.tracked <= width and plan.groups == min(GROUPS, plan.samples)
        assert dataclasses.replace(plan_block(width, inputs, 900), depth=5) == plan
    assert plan_block(64, 4, 5).tracked == 64 and plan_block(64, 12, 5).tracked < 64


def test_block_size_changes_rounding_only(case, monkeypatch):
    """Blocks of 8, 64 and 512 samples give the same groups and estimates; 300 samples end inside a block."""
    results = []
    for lanes in (8, 64, 512):
        monkeypatch.setattr(_blocks, "_FEWEST", lanes)
        monkeypatch.setattr(_blocks, "_MOST", lanes)
        assert plan_block(6, 2, 3).samples == lanes
        results.append(simulate(*case, samples=300, seed=SEED))
    for other in results[1:]:
        for name in ("K", "V4", "K1", "S1", "U1"):
            left, right = getattr(results[0], name), getattr(other, name)
            assert np.allclose(left.mean, right.mean, rtol=1e-9, atol=1e-12)
            assert np.allclose(left.se, right.se, rtol=1e-9, atol=1e-12)


def test_simulation_is_the_mean_over_reference_samples(case):
    """End to end: plain and controlled estimates of 9 samples from the NumPy networks."""
    ensemble, leading = case
    result = simulate(ensemble, leading, samples=9, seed=SEED)
    layout = Layout(2)
    rows = np.stack([reference_statistics(leading, k, 6, 6) for k in range(9)])
    plain, residual = rows[..., layout.part("dG")], rows[..., layout.part("rG")]
    assert np.allclose(layout.pack(result.plain["K1"].mean), 6 * plain.mean(axis=0), rtol=1e-9)
    assert np.allclose(layout.pack(result.K1.mean)[1:], 6 * residual.mean(axis=0)[1:], rtol=1e-9)
    covariance = np.stack([6 * np.cov(plain[:, depth].T) for depth in range(4)])
    a, b = layout.pair
    dense = result.plain["V4"].mean[:, a, b][:, :, a, b]
    assert np.allclose(dense, covariance, rtol=1e-9)
    error = 6 * plain.std(axis=0, ddof=1) / 3
    assert np.allclose(layout.pack(result.plain["K1"].se), error, rtol=1e-9)
