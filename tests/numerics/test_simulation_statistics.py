"""Packing and the jackknife, against plain NumPy on stored samples."""

from __future__ import annotations

import numpy as np
import pytest

from symtensor.numerics._packing import Layout
from symtensor.numerics._statistics import Estimate, group_counts, jackknife, reduce_sums

WIDTH, INPUTS, DEPTHS = 10, 2, 2
LAYOUT = Layout(INPUTS)


def stored(samples: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Per-sample values of a correlated toy problem, `(samples, depths, M)`; c has known mean 0, r is small."""
    rng = np.random.default_rng(seed)
    shape = (samples, DEPTHS, LAYOUT.pairs)
    mixing = np.random.default_rng(99).normal(size=(LAYOUT.pairs, LAYOUT.pairs))
    cg, cs = rng.normal(size=shape) @ mixing, rng.normal(size=shape)
    rg, rs = 0.3 * cg**2 + 0.1 * rng.normal(size=shape), 0.2 * rng.normal(size=shape) + 0.05
    first, second = LAYOUT.quad
    cc = cg[..., first] * cg[..., second] * WIDTH + rng.normal(size=(samples, DEPTHS, LAYOUT.quads))
    return {"cg": cg, "rg": rg, "cs": cs, "rs": rs, "cc": cc}


def rows(data: dict[str, np.ndarray]) -> np.ndarray:
    """One vector of statistics per sample and depth in the documented order."""
    first, second = LAYOUT.quad
    dg, ds, rg, cg = data["rg"] + data["cg"], data["rs"] + data["cs"], data["rg"], data["cg"]
    mixed = rg[..., first] * cg[..., second] + cg[..., first] * rg[..., second]
    products = (dg[..., first] * dg[..., second], WIDTH * mixed + data["cc"], rg[..., first] * rg[..., second])
    return np.concatenate([dg, rg, ds, data["rs"], *products], axis=-1)


def reduce_samples(data: dict[str, np.ndarray], response: np.ndarray):
    values = rows(data)
    sums = np.zeros((DEPTHS, LAYOUT.rows, 64))
    for index, value in enumerate(values):
        sums[..., index % 64] += value
    return reduce_sums(sums, len(values), WIDTH, response, LAYOUT)


def brute_force(statistic, samples: int) -> np.ndarray:
    """Delete-one-group jackknife by recomputing `statistic(kept sample indices)`; equal groups."""
    groups = min(64, samples)
    index = np.arange(samples)
    values = np.stack([statistic(index[index % groups != g]) for g in range(groups)])
    return np.sqrt((groups - 1) / groups * ((values - values.mean(axis=0)) ** 2).sum(axis=0))


RESPONSE = np.random.default_rng(9).normal(size=(DEPTHS, LAYOUT.pairs, LAYOUT.pairs))


def test_packing_round_trip_and_response():
    layout, rng = Layout(3), np.random.default_rng(1)
    matrix = rng.normal(size=(4, 3, 3))
    matrix += np.swapaxes(matrix, 1, 2)
    assert np.array_equal(layout.unpack(layout.pack(matrix)), matrix)
    response = rng.normal(size=(4, 3, 3, 3, 3))
    expected = layout.pack(np.einsum("labcd,lcd->lab", response, matrix))
    assert np.allclose(np.einsum("lAB,lB->lA", layout.pack_response(response), layout.pack(matrix)), expected)
    packed = rng.normal(size=(layout.quads,))
    dense = layout.unpack_quads(packed)
    for order in ("bacd", "abdc", "cdab"):
        assert np.array_equal(dense, np.einsum(f"abcd->{order}", dense))
    a, b = layout.quad
    p, q = layout.pair
    assert np.array_equal(dense[p[a], q[a], p[b], q[b]], packed)
    names = ("dG", "rG", "dS", "rS", "GG", "CV", "RR")
    covered = np.concatenate([np.arange(layout.rows)[layout.part(name)] for name in names])
    assert np.array_equal(covered, np.arange(layout.rows))


@pytest.mark.parametrize("samples", [192, 20])
def test_estimates_and_errors_against_stored_samples(samples):
    data = stored(samples)
    result = reduce_samples(data, RESPONSE)
    dg, ds = data["rg"] + data["cg"], data["rs"] + data["cs"]
    first, second = LAYOUT.quad

    def covariance(x):
        return np.stack([np.cov(x[:, d].T)[first, second] for d in range(DEPTHS)])

    def combination(s, g):
        return WIDTH * (s.mean(axis=0) - np.einsum("lAB,lB->lA", RESPONSE, g.mean(axis=0)))

    def v4(kept):
        r, c = data["rg"][kept], data["cg"][kept]
        cross = (r[..., first] * c[..., second] + c[..., first] * r[..., second]).mean(axis=0)
        return WIDTH * (cross + covariance(r)) + data["cc"][kept].mean(axis=0)

    every = np.arange(samples)
    checks = {
        ("plain", "K1"): lambda k: WIDTH * dg[k].mean(axis=0),
        ("plain", "S1"): lambda k: WIDTH * ds[k].mean(axis=0),
        ("plain", "U1"): lambda k: combination(ds[k], dg[k]),
        ("plain", "V4"): lambda k: WIDTH * covariance(dg[k]),
        ("controlled", "K1"): lambda k: WIDTH * data["rg"][k].mean(axis=0),
        ("controlled", "U1"): lambda k: combination(data["rs"][k], data["rg"][k]),
        ("controlled", "V4"): v4,
    }
    for (kind, name), statistic in checks.items():
        estimate = getattr(result, kind)[name]
        start = 0 if kind == "plain" or name == "V4" else 1  # depth 0 reports the plain means
        assert np.allclose(estimate.mean[start:], statistic(every)[start:], rtol=1e-10), name
        assert np.allclose(estimate.se[start:], brute_force(statistic, samples)[start:], rtol=1e-8), name
    for name in ("K1", "S1", "U1"):
        assert np.array_equal(result.controlled[name].mean[0], result.plain[name].mean[0])
        assert np.array_equal(result.controlled[name].se[0], result.plain[name].se[0])
    for depth in range(DEPTHS):
        controls = np.concatenate([data["cg"][:, depth], data["cs"][:, depth]], axis=-1)
        if samples < 64:  # one sample per group: the textbook standard error
            z = controls.mean(axis=0) / (controls.std(axis=0, ddof=1) / np.sqrt(samples))
            assert np.isclose(result.control_z[depth], np.abs(z).max())


def test_unequal_groups():
    counts = group_counts(70, 64)
    assert counts.sum() == 70 and set(counts) == {1, 2}
    sizes = np.array([3, 3, 2])
    groups = [np.array([1.0, 4.0, 2.0]), np.array([0.0, 5.0, 1.0]), np.array([7.0, 3.0])]
    total = np.concatenate(groups).mean()
    without = np.array([np.concatenate([g for k, g in enumerate(groups) if k != j]).mean() for j in range(3)])
    # for a mean the pseudo-values are the group means and theta_J is the mean
    ratio = 8 / sizes
    expected = np.sqrt(np.mean((np.array([g.mean() for g in groups]) - total) ** 2 / (ratio - 1)))
    assert np.isclose(jackknife(np.array(total), without, sizes), expected, rtol=1e-12)


def test_standard_errors_are_the_scatter_of_repetitions():
    """Over 400 repetitions of 80 samples the variance of an estimate is the mean of its squared standard error."""
    repeated = [reduce_samples(stored(80, seed=k), RESPONSE) for k in range(400)]
    for kind, name in (("controlled", "V4"), ("plain", "V4"), ("controlled", "U1"), ("plain", "K1")):
        means = np.stack([getattr(r, kind)[name].mean[1] for r in repeated])
        variances = np.stack([getattr(r, kind)[name].se[1] ** 2 for r in repeated])
        ratio = means.var(axis=0, ddof=1) / variances.mean(axis=0)
        assert np.all((ratio > 0.7) & (ratio < 1.3)), (kind, name, ratio)


def test_few_samples():
    two = reduce_samples(stored(2), RESPONSE)
    assert np.isinf(two.plain["V4"].se).all() and np.isinf(two.controlled["V4"].se).all()
    assert np.isfinite(two.plain["K1"].se).all() and np.isfinite(two.plain["V4"].mean).all()
    three = reduce_samples(stored(3), RESPONSE)
    assert np.isfinite(three.plain["V4"].se).all()


def test_z_scores():
    estimate = Estimate(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.0, 0.0]))
    assert np.array_equal(estimate.z(np.array([0.0, 2.0, 2.0])), [2.0, 0.0, np.inf])
