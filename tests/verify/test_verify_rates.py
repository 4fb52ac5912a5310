"""Simulated error rates: the table of the specification, by z-scores; requirements; naive alternatives fail."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from symtensor.verify import LAWS, Rates, measure_rates, measure_sequential, verify_bound
from symtensor.verify import rates as rates_module
from symtensor.verify import slope as slope_module
from symtensor.verify.rates import spent

_SPEC = importlib.util.spec_from_file_location(
    "verify_rates_benchmark", Path(__file__).parents[2] / "benchmarks" / "verify_rates.py"
)
assert _SPEC is not None and _SPEC.loader is not None
benchmark: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(benchmark)

NAMES = {"C": "consistent", "N": "not tight", "V": "violated", "I": "inconclusive"}
TRUE = [key for key, law in LAWS.items() if law.truth in ("true", "loose")]


def published(key: str, column: int) -> dict[str, float]:
    text = benchmark.PUBLISHED[key][column]
    return {name: float(rate) for name, rate in re.findall(r"([CNVI]) ([\d.]+)", text)}


def worst_z(key: str, column: int, found: Rates, replicates: int) -> float:
    """Largest |z| of a verdict's rate against the published one; both are binomial, published rates rounded to .005."""
    worst = 0.0
    for letter, name in NAMES.items():
        stated = published(key, column).get(letter, 0.0)
        pooled = (stated * replicates + found.verdicts[name] * found.replicates) / (replicates + found.replicates)
        error = math.sqrt(max(pooled * (1 - pooled), 0.5 / replicates) * (1 / replicates + 1 / found.replicates))
        worst = max(worst, (abs(stated - found.verdicts[name]) - 0.005) / error)
    return worst


@pytest.mark.parametrize("key", LAWS)
def test_the_published_rates_at_200_samples(key: str) -> None:
    """400 published against 400 or 200 own replicates, the protocol to the letter (without the jump rule)."""
    count = 100 if key == "wishart" else 400
    assert worst_z(key, 0, measure_rates(LAWS[key], 200, count, seed=21, jumps=False), 400) < 4


@pytest.mark.parametrize("key", [key for key in LAWS if key != "wishart"])
def test_the_published_rates_at_1000_samples(key: str) -> None:
    assert worst_z(key, 1, measure_rates(LAWS[key], 1000, 300, seed=22, jumps=False), 400) < 4


@pytest.mark.parametrize(
    ("name", "value", "key"),
    [
        ("interval_factor", lambda alpha, levels: 1.0, "cauchy"),
        ("tolerance_at", lambda log_n: 0.3 / log_n.mean(-1), "log-missing"),
        ("upper_half", lambda count: slice(0, None), "log-slack"),
    ],
)
def test_a_wrong_protocol_is_rejected_by_the_same_comparison(
    monkeypatch: pytest.MonkeyPatch, name: str, value: Any, key: str
) -> None:
    """Intervals of one sigma, a tolerance of (log n)^0.3, slopes over all sizes: rates move by many standard errors."""
    monkeypatch.setattr(slope_module if name == "upper_half" else rates_module, name, value)
    assert worst_z(key, 0, measure_rates(LAWS[key], 200, 400, seed=21), 400) > 6


def test_true_claims_are_hardly_ever_violated_and_tight_ones_never_called_loose() -> None:
    for key in TRUE:
        if key == "wishart":
            continue
        for samples, replicates in ((200, 1000), (1000, 300)):
            found = measure_rates(LAWS[key], samples, replicates, seed=23)
            assert below(found.verdicts["violated"], 0.03, replicates), key
            if key != "two-points":
                assert below(found.verdicts["violated"], 0.005, replicates), key
            if LAWS[key].truth == "true":
                assert below(found.verdicts["not tight"], 0.01, replicates), key


def below(rate: float, limit: float, replicates: int) -> bool:
    """Whether a binomial rate is compatible with a true rate of at most `limit`, at the level 1e-4."""
    return bool(stats.binom.sf(round(rate * replicates) - 1, replicates, limit) > 1e-4)


def test_power_against_one_logarithm() -> None:
    """Required: at least .4 at S = 1000. 1000 replicates: an error of .016."""
    found = measure_rates(LAWS["log-missing"], 1000, 1000, seed=24).verdicts["violated"]
    assert found - 4 * math.sqrt(found * (1 - found) / 1000) > 0.4


def test_the_jump_rule_mends_the_two_point_law_and_touches_no_continuous_one() -> None:
    plain, mended = (
        measure_rates(LAWS["two-points"], 200, 4000, seed=25, jumps=jumps).verdicts["violated"] for jumps in (False, True)
    )
    assert 0.02 < plain < 0.04 and mended < 0.01
    for key in ("vector", "cauchy", "log-missing", "power"):
        assert measure_rates(LAWS[key], 200, 100, seed=26) == measure_rates(LAWS[key], 200, 100, seed=26, jumps=False)


def test_sequential_use_with_spending() -> None:
    """200 runs: no wrong verdict on true continuous claims; loose ones at once; power .86 at about 2500 samples."""
    for key in ("vector", "maximum", "cauchy", "vector-loose"):
        found = measure_sequential(LAWS[key], 100, seed=27)
        assert found.rates.verdicts["violated"] == 0
        assert (found.rates.verdicts["not tight"] > 0) == (key == "vector-loose")
    assert measure_sequential(LAWS["vector-loose"], 100, seed=27).first_look == 1.0
    found = measure_sequential(LAWS["log-missing"], 200, seed=28)
    assert abs(found.rates.verdicts["violated"] - 0.86) < 4 * math.sqrt(0.86 * 0.14 * (1 / 200 + 1 / 200))
    assert 2000 < found.mean_samples < 3000
    assert sum(spent(0.05, 5, j) for j in range(5)) < 0.05


def test_naive_alternatives_fail_where_the_protocol_does_not() -> None:
    """A t-test on the log mean rejects true claims; a bare slope rejects the Cauchy mean; a ratio misses slow growth."""
    replicates = 400
    vector, maximum = (benchmark.naive(LAWS[key], replicates) for key in ("vector", "maximum"))
    assert abs(vector["t-test"] - 0.40) < 4 * math.sqrt(0.4 * 0.6 * 2 / replicates)
    assert abs(maximum["t-test"] - 0.96) < 0.05
    assert benchmark.naive(LAWS["cauchy"], replicates)["slope"] > 0.1
    slow = benchmark.Law("slow", benchmark._slow, "sqrt(n)", np.sqrt, "false")
    assert benchmark.naive(slow, replicates)["ratio"] < 0.1
    for key in ("vector", "maximum", "cauchy"):
        assert measure_rates(LAWS[key], 200, replicates, seed=3).verdicts["violated"] < 0.01
    assert measure_rates(slow, 200, 100, seed=3).verdicts["consistent"] == 0


def test_the_simulation_is_the_code_that_users_run() -> None:
    """The batched rates and `verify_bound` agree: same law, one look, 60 runs each, verdict by verdict."""
    law = LAWS["log-slack"]
    runs = [verify_bound(law.sampler(), law.claim, looks=(200,), seed=seed).verdict for seed in range(60)]
    found = measure_rates(law, 200, 2000, seed=29).verdicts
    for name in ("consistent", "inconclusive", "violated"):
        error = math.sqrt(max(found[name] * (1 - found[name]), 0.01) / 60)
        assert abs(runs.count(name) / 60 - found[name]) < 4 * error


def test_rates_are_reproducible() -> None:
    assert measure_rates(LAWS["cauchy"], 200, 30, seed=1) == measure_rates(LAWS["cauchy"], 200, 30, seed=1)


@pytest.mark.parametrize("key", ["vector", "wishart", "maximum", "cauchy", "two-points", "power", "log-missing"])
def test_laws_are_what_they_say(key: str) -> None:
    """Each fast law against a direct simulation of the object itself, by a two-sample Kolmogorov-Smirnov test."""
    n, samples = 12, 4000
    rng = np.random.default_rng(30)
    g = rng.standard_normal((samples, 12))
    direct = {
        "vector": lambda: np.linalg.norm(g, axis=1),
        "wishart": lambda: np.array(
            [np.abs(np.linalg.eigvalsh(x.T @ x / n) - 1).max() for x in rng.standard_normal((samples, n, 5))]
        ),
        "maximum": lambda: np.abs(g).max(axis=1),
        "cauchy": lambda: np.abs(rng.standard_cauchy((samples, n)).mean(axis=1)),
        "two-points": lambda: rng.choice([1.0, n], samples),
        "power": lambda: np.exp(rng.uniform(0, np.log(n), samples)),
        "log-missing": lambda: np.abs(np.sqrt(n) * np.log(n) * g[:, 0]),
    }[key]()
    fast = LAWS[key].sampler()(n, samples, 31)
    assert stats.ks_2samp(direct, fast, method="asymp").pvalue > 1e-3
    assert stats.ks_2samp(direct, 1.1 * fast, method="asymp").pvalue < 1e-3  # the test sees ten per cent


@pytest.mark.slow
@pytest.mark.parametrize("key", LAWS)
def test_the_whole_table(key: str) -> None:
    """All three columns at the replicates of the specification."""
    for column, (samples, stated, levels) in enumerate(
        ((200, 400, (0.5, 0.9)), (1000, 400, (0.5, 0.9)), (5000, 100, (0.5, 0.9, 0.99)))
    ):
        found = measure_rates(LAWS[key], samples, 2 * stated, levels=levels, seed=40 + column, jumps=False)
        assert worst_z(key, column, found, stated) < 4
