"""Deviation from the linearisation by width: slopes against the exact law and against the protocol, resuming, bad input."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symtensor.datasets import load
from symtensor.numerics._checkpoint import StateError, StateMismatch
from symtensor.numerics.training import TrainingError, width_scan
from symtensor.verify import verify_samples

WIDTHS = (17, 36, 75, 150)


def linear_family(n):
    """One hidden linear layer, one input."""
    return lambda theta, x: theta[0] @ theta[1] * x / n**0.5, lambda key: jax.random.normal(key, (2, n))


def tanh_family(n, inputs=64):
    """One hidden tanh layer in NTK parametrisation."""

    def model(theta, x):
        return theta["a"] @ jnp.tanh(theta["w"] @ x / inputs**0.5) / n**0.5

    def start(key):
        drawn = jax.random.normal(key, (n * (inputs + 1),))
        return {"a": drawn[:n], "w": drawn[n:].reshape(n, inputs)}

    return model, start


@pytest.fixture(scope="module")
def scan():
    """Target 2: the deviation eta^2 |f| (f - y)^2 / n of one step is of order 1/n, with exact law in v, w."""
    return width_scan(linear_family, WIDTHS, ([1.0], [2.0]), steps=3, eta0=0.1, seeds=401, record=[1])


def test_one_step_follows_its_law_at_every_width(scan) -> None:
    """Means over seeds as z-scores: f = v.w / sqrt(n) has E f^2 = 1, E f^4 = 3 (1 + 2/n), so E (F - F_lin)^2 can be estimated
    by independent draws of f in NumPy; the nearest wrong law, without the factor C' = f - y squared, is rejected."""
    measured = scan.deviation[:, 1]
    rng = np.random.default_rng(3)
    for n, values in zip(scan.widths, measured):
        v, w = rng.standard_normal((2, 20000, n))
        f = np.einsum("sn,sn->s", v, w) / n**0.5
        law = 0.1**2 * np.abs(f) * (f - 2) ** 2 / n
        wrong = 0.1**2 * np.abs(f) * np.abs(f - 2) / n
        z, z_wrong = (_z(np.log(values), np.log(other)) for other in (law, wrong))
        assert abs(z) < 4 < abs(z_wrong)


def _z(one: np.ndarray, other: np.ndarray) -> float:
    return (one.mean() - other.mean()) / np.sqrt(one.var() / len(one) + other.var() / len(other))


def test_slopes_are_minus_one_in_rms_and_minus_two_in_mse(scan) -> None:
    for step in (1, 3):
        rms, mse = scan.slope(step, widths=WIDTHS), scan.slope(step, "mse", widths=WIDTHS)
        assert rms.low < -1 < rms.high and rms.high - rms.low < 0.35
        assert rms.high < -0.75 and rms.low > -1.25
        np.testing.assert_allclose([mse.value, mse.low, mse.high], [2 * rms.value, 2 * rms.low, 2 * rms.high], rtol=1e-9)
    assert "RMS deviation, step 3, n in [17, 150]" in str(rms)
    assert scan.slope(1).widths == WIDTHS[2:]  # the upper half by default
    assert str(scan).startswith("4 widths, 401 seeds, eta = 0.1")


def test_the_protocol_agrees(scan) -> None:
    """The bootstrap slope of the median lies in the protocol's interval; a wrong power of n is called violated."""
    verdict = verify_samples(scan.samples(3), claim="1/n")
    assert verdict.verdict != "violated"
    median = next(level for level in verdict.levels if level.level == 0.5)
    assert median.low < scan.slope(3).value + 1 < median.high
    assert verify_samples(scan.samples(3), claim="1/n**2").verdict == "violated"
    assert verify_samples(scan.samples(3, "mse"), claim="1/n**3").verdict == "violated"
    with pytest.raises(TrainingError, match="step 2 was not recorded; the nearest are 1, 3"):
        scan.samples(2)


def test_widths_are_independent(scan) -> None:
    """The same seed must not give correlated runs at two widths."""
    logs = np.log(scan.deviation[:, 1])
    correlation = np.corrcoef(logs)[np.triu_indices(len(WIDTHS), 1)]
    assert np.abs(correlation).max() < 4 / np.sqrt(scan.deviation.shape[2])


@pytest.mark.slow
def test_learning_rates_scale_with_the_width(scan) -> None:
    """RMS after one step: eta^2 / n, so alpha = -1/2 gives slope -2 instead of -1."""
    small = width_scan(linear_family, WIDTHS[::3], ([1.0], [2.0]), steps=1, eta0=0.4, alpha=-0.5, seeds=201)
    np.testing.assert_allclose(small.etas, 0.4 / np.sqrt(WIDTHS[::3]))
    slope = small.slope(1)
    assert slope.low < -2 < slope.high < -1.4
    assert "eta = 0.4 n^-0.5" in repr(small)


def test_a_scan_resumes_and_grows(tmp_path, scan) -> None:
    """An interrupted scan of the first width goes on, and gives what the scan of all widths in one go gave."""
    options = {"steps": 3, "record": [1], "eta0": 0.1, "store": tmp_path}
    calls = []

    def interrupt(done, total):
        calls.append((done, total))
        if done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        width_scan(linear_family, [17], ([1.0], [2.0]), seeds=20, progress=interrupt, **options)
    assert calls == [(0, 20), (16, 20), (20, 20)]
    grown = width_scan(linear_family, [17], ([1.0], [2.0]), seeds=[7, *range(12, 24)], **options)
    assert grown.resumed == 9
    for name in ("deviation", "linear_loss", "change"):
        expected = getattr(scan, name)[:1][:, :, [7, *range(12, 24)]]
        np.testing.assert_allclose(getattr(grown, name), expected, rtol=1e-9, atol=1e-15)

    def other(n):
        return lambda theta, x: 1.01 * theta[0] @ theta[1] * x / n**0.5, linear_family(n)[1]

    with pytest.raises(StateMismatch, match="another model"):
        width_scan(other, [17], ([1.0], [2.0]), seeds=3, **options)
    with pytest.raises(StateMismatch, match=r"eta: 0.1 there, 0.2 now"):
        width_scan(linear_family, [17], ([1.0], [2.0]), seeds=3, **{**options, "eta0": 0.2})
    with pytest.raises(StateMismatch, match="data"):
        width_scan(linear_family, [17], ([1.0], [2.5]), seeds=3, **options)
    (tmp_path / "width-17.npz").write_bytes((tmp_path / "width-17.npz").read_bytes()[:200])
    with pytest.raises(StateError, match="not a readable width scan"):
        width_scan(linear_family, [17], ([1.0], [2.0]), seeds=3, **options)


@pytest.mark.filterwarnings("ignore:loss or function not finite")
def test_stopped_seeds_are_infinite_in_quantiles_and_refused_as_samples() -> None:
    def family(n):
        return lambda theta, x: theta**2 * x, lambda key: 1 + 10 * jax.random.normal(key, ()) ** 2

    found = width_scan(family, [2, 3], ([1.0], [0.0]), steps=12, eta0=0.02, seeds=12, loss=lambda f, y: f**4)
    assert all(0 < len(stops) < 12 for stops in found.stopped.values()) and len(found.stopped) == 2
    stop = found.stopped[2][0]
    assert np.isnan(found.deviation[0, -1, stop.seed]) and f"width 2: seed {stop.seed} stopped" in repr(found)
    assert found.quantile(1.0)[0, -1] == np.inf
    with pytest.raises(TrainingError, match="were stopped by step 12"):
        found.samples(12)
    with pytest.raises(TrainingError, match="is 0 or infinite"):
        found.slope(12, level=1.0)


BAD = [
    ({"widths": []}, "at least one"),
    ({"widths": [4, 4]}, "distinct"),
    ({"widths": [0, 4]}, "a width = 0"),
    ({"functions": True}, "no option 'functions'"),
    ({"eta0": 0.0}, "learning rate must be positive"),
    ({"seeds": 0}, "seeds = 0"),
]


@pytest.mark.parametrize(("change", "text"), BAD, ids=[text for _, text in BAD])
def test_bad_input_of_a_scan(change, text) -> None:
    options = {"widths": [4, 8], "steps": 1, "eta0": 0.1, "seeds": 3, **change}
    with pytest.raises((TrainingError, TypeError, ValueError), match=text):
        width_scan(linear_family, data=([1.0], [2.0]), **options)


def test_bad_requests_to_a_scan(scan) -> None:
    for request, text in (
        (lambda: scan.slope(0), "0 or infinite"),
        (lambda: scan.slope(1, "loss"), "'rms' or 'mse'"),
        (lambda: scan.slope(1, widths=[17]), "at least two"),
        (lambda: scan.slope(1, widths=[17, 18]), "width 18 is not in the scan"),
        (lambda: scan.slope(1, confidence=2), "strictly between 0 and 1"),
        (lambda: scan.quantile(1.5), "between 0 and 1"),
    ):
        with pytest.raises(TrainingError, match=text):
            request()


@pytest.mark.slow
def test_tanh_on_digits_has_the_measured_slopes() -> None:
    """weak_correlations.md, section 6, finding 1: -1.02, -1.07, -1.02, -1.01 after 1, 2, 5, 20 steps of full-batch GD."""
    data = load("digits", train=16, test=32, classes=(3, 8), targets="sign")
    widths = (65, 130, 259, 518, 1035)
    scan = width_scan(tanh_family, widths, data, steps=20, eta0=0.02, seeds=300, record=[1, 2, 5])
    for step in (1, 2, 5, 20):
        slope = scan.slope(step, widths=widths)
        assert slope.low < -0.95 and slope.high > -1.05
        assert abs(slope.value + 1) < 0.12
        assert verify_samples(scan.samples(step), claim="1/n").verdict != "violated"
        assert verify_samples(scan.samples(step), claim="n**(-3/2)").verdict == "violated"
