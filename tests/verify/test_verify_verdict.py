"""The decision: every branch, and the order of the branches, by constructed slopes and constructed data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from symtensor.verify import Verification, VerificationError, verify_samples
from symtensor.verify.slope import Slopes
from symtensor.verify.verdict import Tolerance, decide, interval_factor, tolerance_at

DELTA = 0.1
TOLERANCE = Tolerance(DELTA, 0.03, 2.0)
LEVELS = (0.5, 0.9)


def slopes(q50: tuple[float, float], q90: tuple[float, float], *, end: float = 0.0, irregular: bool = False) -> Slopes:
    """Fits with given (slope, error) at the two levels."""
    slope, se = np.array([q50[0], q90[0]]), np.array([q50[1], q90[1]])
    zero = np.zeros(2)
    return Slopes(slope, se, np.full(2, np.inf), zero, zero, np.full(2, end), zero, zero, np.array([False, irregular]))


FLAT = (0.0, 0.01)
CASES: list[tuple[str, Slopes, str]] = [
    ("flat", slopes(FLAT, FLAT), "consistent"),
    ("one level grows", slopes(FLAT, (0.3, 0.05)), "violated"),
    ("grows, and irregular: violated comes first", slopes((0.3, 0.05), FLAT, irregular=True), "violated"),
    ("grows, and the other is uncertain", slopes((0.0, 1.0), (0.3, 0.05)), "violated"),
    ("exactly at delta is not above it", slopes(FLAT, (0.3, 0.1)), "inconclusive"),
    ("above delta0, below delta", slopes(FLAT, (0.06, 0.01)), "inconclusive"),
    ("just below delta0", slopes(FLAT, (0.049, 0.01)), "consistent"),
    ("uncertain", slopes(FLAT, (0.0, 0.06)), "inconclusive"),
    ("irregular", slopes(FLAT, FLAT, irregular=True), "inconclusive"),
    ("falls, but irregular", slopes((-0.5, 0.01), (-0.5, 0.01), end=-0.5, irregular=True), "inconclusive"),
    ("all fall", slopes((-0.5, 0.01), (-0.4, 0.01), end=-0.5), "not tight"),
    ("all fall, but the curve bends back", slopes((-0.5, 0.01), (-0.4, 0.01), end=-0.05), "consistent"),
    ("only one falls", slopes((-0.5, 0.01), FLAT, end=-0.5), "consistent"),
    ("falls within the tolerance", slopes((-0.09, 0.01), (-0.5, 0.01), end=-0.5), "consistent"),
]  # fmt: skip


@pytest.mark.parametrize(("fits", "verdict"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_branch_in_its_order(fits: Slopes, verdict: str) -> None:
    assert decide(fits, LEVELS, TOLERANCE).verdict == verdict


@pytest.mark.parametrize(("fits", "verdict"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_one_sided_norms_support_one_half_only(fits: Slopes, verdict: str) -> None:
    lower, upper = (decide(fits, LEVELS, TOLERANCE, "O", status).verdict for status in ("lower", "upper"))
    assert lower == (verdict if verdict == "violated" else "inconclusive")
    assert upper == (verdict if verdict != "violated" else "inconclusive")


def test_theta_needs_the_median_and_definite_needs_q90() -> None:
    median_falls = slopes((-0.5, 0.01), FLAT)
    tail_falls = slopes((-0.04, 0.02), (-0.12, 0.02))
    assert decide(median_falls, LEVELS, TOLERANCE, "Theta").verdict == "inconclusive"
    assert decide(tail_falls, LEVELS, TOLERANCE, "Theta").verdict == "consistent"
    assert decide(tail_falls, LEVELS, TOLERANCE, "definite").verdict == "inconclusive"
    assert decide(slopes(FLAT, FLAT), LEVELS, TOLERANCE, "definite").verdict == "consistent"
    for kind in ("Theta", "definite"):  # an upper bound of the norm cannot support a lower half
        assert decide(slopes(FLAT, FLAT), LEVELS, TOLERANCE, kind, "upper").verdict == "inconclusive"
    assert decide(slopes((-0.5, 0.01), (-0.4, 0.01), end=-0.5), LEVELS, TOLERANCE, "Theta").verdict == "not tight"


def test_level_dependence_needs_two_delta_and_three_sigma() -> None:
    assert decide(slopes(FLAT, (0.3, 0.01)), LEVELS, TOLERANCE).level_dependent
    assert not decide(slopes(FLAT, (0.19, 0.01)), LEVELS, TOLERANCE).level_dependent
    assert not decide(slopes(FLAT, (0.3, 0.11)), LEVELS, TOLERANCE).level_dependent
    assert not decide(slopes(FLAT, (0.3, 0.01)), (0.5, 0.8), TOLERANCE).level_dependent
    assert decide(slopes((-0.5, 0.01), FLAT), LEVELS, TOLERANCE, "definite").verdict == "inconclusive"


def test_tolerance_and_interval_of_the_protocol() -> None:
    assert interval_factor(0.05, 2) == pytest.approx(2.2414, abs=1e-4)
    log_n = np.log(np.array([512.0, 1024, 2048, 4096]))
    delta = float(tolerance_at(log_n))
    assert delta == pytest.approx(0.7 / np.log(1448.15), rel=1e-4)
    centre, step = np.log(1448.15), 1e-4  # the local slope of (log n)^0.7
    assert delta == pytest.approx(0.7 * (np.log(centre + step) - np.log(centre - step)) / (2 * step), rel=1e-4)


N = (33, 64, 131, 250, 513, 1020, 2049, 4100)


def verdict_of(law: Callable[[np.random.Generator, int], Any], claim: str = "sqrt(n)", **options: Any) -> Verification:
    """The verdict on `law(rng, n)`, 1000 samples by default."""
    rng = np.random.default_rng(7)
    return verify_samples({n: np.abs(law(rng, n)) for n in N}, claim=claim, **options)


def noisy(power: float, sigma: float = 0.3, samples: int = 1000) -> Callable[[np.random.Generator, int], Any]:
    """n^power with log-normal noise of known size."""
    return lambda rng, n: n**power * np.exp(sigma * rng.standard_normal(samples))


@pytest.mark.parametrize(
    ("power", "verdict"), [(0.5, "consistent"), (0.7, "violated"), (0.3, "not tight"), (0.57, "inconclusive"), (0.43, "consistent")]
)
def test_power_laws_with_noise_of_known_size(power: float, verdict: str) -> None:
    """Noise .3 gives slopes to .3 * 1.25/sqrt(1000)/1.55 = .008: powers off by .07 lie between delta0 and delta."""
    result = verdict_of(noisy(power))
    assert result.verdict == verdict
    for found in result.levels:
        assert abs(found.slope - (power - 0.5)) < 4 * found.se < 0.09
    assert result.levels[0].se < 0.012


def test_more_noise_makes_the_same_power_inconclusive() -> None:
    result = verdict_of(noisy(0.7, sigma=5.0))
    assert result.verdict == "inconclusive"
    assert any("samples per size" in text for text in result.what_would_change_it)


def test_a_parity_is_irregular() -> None:
    """n on even n, n^2 on odd n: no smooth curve, so no slope is trusted as a bound."""
    result = verdict_of(lambda rng, n: n ** (1 + n % 2) * np.exp(0.1 * rng.standard_normal(500)), claim="n^2")
    assert result.verdict == "inconclusive"
    assert all(found.irregular for found in result.levels)
    assert any("residues" in text for text in result.what_would_change_it)


def test_random_power_has_no_definite_bound() -> None:
    result = verdict_of(lambda rng, n: float(n) ** rng.random(2000))
    assert result.verdict == "violated" and result.level_dependent and result.no_definite_bound_visible
    assert any("no definite bound visible" in text for text in result.reasons)
    assert abs(result.levels[1].slope - 0.4) < 4 * result.levels[1].se


def test_two_points_have_a_definite_bound_but_no_theta() -> None:
    result = verdict_of(lambda rng, n: np.where(rng.random(1000) < 0.7, 1.0, n), claim="n", kind="Theta")
    assert result.verdict == "inconclusive" and result.levels[0].high < -0.9
    assert result.levels[1].slope == pytest.approx(0)
    assert any("lower half" in text for text in result.reasons)


def test_an_atom_at_the_median_never_gives_a_firm_slope() -> None:
    """The two-point law with probability 1/2: the sample median is 1 or n by chance."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        data = {n: np.where(rng.random(500) < 0.5, 1.0, n) for n in N}
        assert verify_samples(data, claim="n").verdict != "violated"


def test_corrupted_samples_are_flagged_though_the_verdict_does_not_see_them() -> None:
    def law(rng: np.random.Generator, n: int) -> np.ndarray:
        values = np.sqrt(n) * np.exp(0.1 * rng.standard_normal(1000))
        if n == 513:
            values[:15] *= 1e6
        return values

    result = verdict_of(law)
    assert result.verdict == "consistent"
    assert [(jump.before, jump.after) for jump in result.jumps] == [(250, 513), (513, 1020)]
    assert result.jumps[0].factor > 1e4
    assert verdict_of(noisy(0.5)).jumps == ()
    assert verdict_of(lambda rng, n: np.sqrt(n) * rng.standard_cauchy(1000)).jumps == ()


def test_refused_levels_are_reported_and_all_refused_is_inconclusive() -> None:
    result = verdict_of(noisy(0.5, samples=60))
    assert [entry.level for entry in result.refused] == [0.9] and result.headline.count("levels p <= 0.5") == 1
    assert any("at least 100 samples" in text for text in result.what_would_change_it)
    assert verdict_of(noisy(0.5, samples=12)).verdict == "inconclusive"
    zeros = verdict_of(lambda rng, n: np.where(rng.random(500) < 0.7, 0.0, np.abs(rng.standard_normal(500))), claim="1")
    assert [entry.level for entry in zeros.refused] == [0.5] and "quantile is 0" in zeros.refused[0].reason


def test_theta_without_its_level_is_refused() -> None:
    with pytest.raises(VerificationError, match=r"judged at level 0\.5"):
        verdict_of(noisy(0.5), kind="Theta", levels=(0.8, 0.9))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"alpha": 0}, "alpha"), ({"alpha": 1.2}, "alpha"), ({"delta": 0.01}, "delta"), ({"delta0": -1}, "delta0"),
        ({"norm_status": "about"}, "norm_status"), ({"kind": "Omega"}, "Omega"), ({"levels": (0.5, 2)}, "between 0 and 1"),
    ],
)  # fmt: skip
def test_bad_settings_are_named(options: dict[str, Any], text: str) -> None:
    with pytest.raises(VerificationError, match=text):
        verdict_of(noisy(0.5), **options)
