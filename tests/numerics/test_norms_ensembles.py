"""Ground-truth ensembles: the published constants as z-scores, reproducibility, and brackets for three slots."""

from __future__ import annotations

import math

import numpy as np
import pytest

from symtensor.numerics.ensembles import ENSEMBLES, _tanh_kernel, sample_norms, sampler
from symtensor.numerics.norms import NormBracket


def z_score(values, exact):
    return (np.mean(values) - exact) / (np.std(values, ddof=1) / np.sqrt(len(values)))


def test_vectors_and_sums():
    n = 100
    assert abs(z_score(sample_norms("gaussian vector", n, 4000, 1) ** 2, n)) < 4
    assert abs(z_score(sample_norms("centred sum", n, 4000, 1) ** 2, n)) < 4
    fourth = 0.394294449039746  # E tanh(Z)^2 by an independent rule below
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    moment = [float(weights @ np.tanh(nodes) ** k / np.sqrt(2 * np.pi)) for k in (2, 4)]
    assert _tanh_kernel() == pytest.approx(moment[0], abs=1e-9) and moment[0] == pytest.approx(fourth, abs=1e-6)
    gaps = sample_norms("layer kernel", n, 4000, 1)
    assert abs(z_score(gaps**2, (moment[1] - moment[0] ** 2) / n)) < 4


def stable_median(index):
    """Median of |X| with characteristic function exp(-|t|^index): P(|X| <= x) = (2/pi) int sin(t x)/t exp(-t^index) dt."""
    t = (np.arange(40_000) + 0.5) * 1e-3
    x = np.linspace(0.5, 1.5, 201)
    below = 2 / np.pi * 1e-3 * (np.sin(x[:, None] * t) / t * np.exp(-(t**index))).sum(axis=1)
    return float(np.interp(0.5, below, x))


def test_heavy_tails_by_quantiles():
    """Medians: |Cauchy| 1, |stable 3/2| n^(2/3) times that of one; the errors are those of order statistics."""
    samples = 4000
    assert stable_median(1.0) == pytest.approx(1.0, abs=1e-3)
    for name, n, exact in (("cauchy mean", 200, 1.0), ("stable sum", 50, stable_median(1.5) * 50 ** (2 / 3))):
        values = sample_norms(name, n, samples, 2)
        assert abs(np.sum(values > exact) - samples / 2) < 4 * np.sqrt(samples / 4)
        assert abs(np.sum(values > 1.2 * exact) - samples / 2) > 4 * np.sqrt(samples / 4)  # 20 % off would be seen


def test_maxima():
    n, samples, level = 128, 4000, 2.5
    expected = math.erf(level / math.sqrt(2)) ** n
    below = np.mean(sample_norms("normal maximum", n, samples, 3) < level)
    assert abs(below - expected) < 4 * np.sqrt(expected * (1 - expected) / samples)


def test_two_values_and_uniform_power():
    n = 1000
    assert abs(np.mean(sample_norms("two values", n, 4000, 1) > 1) - 0.5) < 4 * 0.5 / np.sqrt(4000)
    exponent = np.log(sample_norms("uniform power", n, 4000, 1)) / np.log(n)
    assert abs(z_score(exponent, 0.5)) < 4 and ENSEMBLES["uniform power"].scale is None


@pytest.mark.slow
def test_a_gaussian_rectangle_has_its_edge():
    """256 x 128: Gordon's bound from above; Tracy-Widom centring puts the mean ratio at 0.987 (one draw spreads by .012)."""
    ratio = sample_norms("gaussian rectangle", 256, 200, 1) / (16 + np.sqrt(128))
    assert abs(z_score(ratio, 0.9866)) < 4 and ratio.mean() < 1


@pytest.mark.slow
def test_wishart_norms():
    """p = 5: the oracle is NumPy on matrices of its own."""
    n = 50
    values = sample_norms("wishart fixed", n, 1000, 1)
    x = np.random.default_rng(4).standard_normal((4000, 5, n))
    oracle = np.abs(np.linalg.eigvalsh(x @ np.swapaxes(x, 1, 2) / n - np.eye(5))).max(axis=1)
    error = np.hypot(values.std() / np.sqrt(1000), oracle.std() / np.sqrt(4000))
    assert abs(values.mean() - oracle.mean()) < 4 * error and error < 0.02 * oracle.mean()


def test_draws_depend_on_seed_size_and_index_only():
    few, many = (sample_norms("gaussian vector", 100, count, 1) for count in (100, 4000))
    assert np.allclose(few, many[:100], rtol=1e-12)
    assert np.array_equal(sampler("gaussian vector")(100, 700, 5), sample_norms("gaussian vector", 100, 700, 5))
    first, other = sample_norms("gaussian vector", 100, 700, 5), sample_norms("gaussian vector", 100, 700, 6)
    assert len(np.unique(np.concatenate([first, other]))) == 1400
    capped = sample_norms("gaussian vector", 100, 700, 5, memory=50_000)
    assert np.allclose(capped, first, rtol=1e-12)


def test_order_three_is_a_bracket():
    n = 10
    norms = sample_norms("symmetric order 3", n, 30, 1)
    assert isinstance(norms, NormBracket) and (norms.status == "bracket").all()
    assert (norms.lower < norms.upper).all()
    assert np.array_equal(sampler("symmetric order 3", "upper")(n, 30, 1), norms.upper)
    assert np.array_equal(sampler("symmetric order 3")(n, 30, 1), norms.lower)


@pytest.mark.slow
def test_goe_edge():
    """|2 - largest eigenvalue|: the oracle is NumPy on matrices of its own; n^(2/3) times it stays bounded."""
    means = []
    for n in (24, 96):
        values = n ** (2 / 3) * sample_norms("goe edge", n, 1500, 1)
        a = np.random.default_rng(n).standard_normal((1500, n, n))
        oracle = n ** (2 / 3) * np.abs(2 - np.linalg.eigvalsh((a + np.swapaxes(a, 1, 2)) / np.sqrt(2 * n))[:, -1])
        error = np.sqrt((values.var() + oracle.var()) / 1500)
        assert abs(values.mean() - oracle.mean()) < 4 * error and error < 0.05 * oracle.mean()
        means.append(values.mean())
    assert abs(means[1] / means[0] - 1) < 0.15  # any other power of n: 4^(1/3) = 1.6


@pytest.mark.slow
def test_symmetrised_order_3_at_64():
    """1.602 +- 0.007 by power iteration, below the limit 1.6570; from above n (1 + n^(-1/2))."""
    norms = sample_norms("symmetric order 3", 64, 60, 1, restarts=16)
    ratio = norms.lower / 8
    error = np.hypot(ratio.std(ddof=1) / np.sqrt(60), 0.007)
    assert abs(ratio.mean() - 1.602) < 3 * error and ratio.mean() < 1.6570
    assert (norms.upper < 64 * 1.2).all() and (norms.upper > norms.lower).all()


@pytest.mark.slow
def test_iid_order_3_is_between_sqrt_n_and_n():
    norms = sample_norms("iid order 3", 64, 6, 1)
    assert ((norms.lower > 8) & (norms.lower < 3 * 8)).all()  # at most sqrt n_1 + sqrt n_2 + sqrt n_3
    assert np.allclose(norms.upper, 64 * (1 + 1 / 8), rtol=0.02)  # 1.12 n
