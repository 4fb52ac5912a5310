"""`verify_bound`: seeds, resumption bit by bit, brackets, JAX, and samplers that misbehave."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from symtensor.bounds import Scale, ScaleError, scale
from symtensor.verify import (
    LAWS,
    ClaimError,
    SamplerError,
    StoreError,
    StructuredGridWarning,
    VerificationError,
    verify_bound,
)
from symtensor.verify.draw import block_seed, plan_blocks

SIZES = (17, 34, 61, 128, 257, 500)


def vector(n: int, samples: int, seed: int) -> np.ndarray:
    """||g|| by its chi law."""
    return np.sqrt(2 * np.random.default_rng(seed).standard_gamma(n / 2, samples))


def test_equal_arguments_equal_results_other_seed_other_numbers() -> None:
    first, again, other = (verify_bound(vector, "sqrt(n)", sizes=SIZES, seed=seed) for seed in (1, 1, 2))
    assert first == again and first.levels[0].log_ratio == again.levels[0].log_ratio
    assert first.levels[0].log_ratio != other.levels[0].log_ratio and other.verdict == "consistent"


def test_claims_as_text_scale_and_bound() -> None:
    found = [verify_bound(vector, claim, sizes=SIZES) for claim in ("sqrt(n)", scale("sqrt(n)"))]
    assert isinstance(scale("sqrt(n)"), Scale) and found[0] == found[1]
    assert verify_bound(vector, "n", sizes=SIZES).verdict == "not tight"
    assert verify_bound(vector, "1", sizes=SIZES).verdict == "violated"


def test_a_bound_brings_its_kind_and_a_consistent_verdict_becomes_a_bound() -> None:
    value = pytest.importorskip("symtensor.bounds.value")
    result = verify_bound(vector, value.Bound(scale("sqrt(n)"), "Theta"), sizes=SIZES)
    assert result.kind == "Theta" and result.verdict == "consistent"
    bound = result.bound()
    assert bound.kind is value.Kind.O and bound.definite is None and str(bound.mode) == "P"
    assert str(bound.provenance).startswith("measured: consistent")
    with pytest.raises(VerificationError, match="supports no bound"):
        verify_bound(vector, "1", sizes=SIZES).bound()
    with pytest.raises(ClaimError, match="kind 'o'"):
        verify_bound(vector, value.Bound(scale("n"), "o"), sizes=SIZES)


@pytest.mark.parametrize("claim", ["2^n", "n^n", "exp(n)", "sin(n)"])
def test_claims_outside_the_scale_group_are_refused(claim: str) -> None:
    with pytest.raises(ScaleError):
        verify_bound(vector, claim, sizes=SIZES)


def test_claims_that_cannot_be_evaluated_are_named() -> None:
    with pytest.raises(ClaimError, match="no positive value at n = 2"):
        verify_bound(vector, "loglog(n)", sizes=(2, 17, 34, 61))
    with pytest.raises(ClaimError, match="several size parameters"):
        verify_bound(vector, "n*m", sizes=SIZES)


def test_interrupted_and_resumed_is_the_uninterrupted_run_bit_by_bit(tmp_path: Path) -> None:
    whole = verify_bound(LAWS["cauchy"].sampler(), "1", sizes=SIZES, budget=1000)
    assert whole.verdict == "inconclusive" and whole.looks == (250, 500, 1000)
    calls: list[tuple[int, int]] = []
    store = tmp_path / "norms.npz"
    draw = LAWS["cauchy"].sampler()

    def fragile(n: int, samples: int, seed: int) -> Any:
        calls.append((n, seed))
        if len(calls) in (4, 11, 24, 27):  # the last while the store is compared
            raise KeyboardInterrupt
        return draw(n, samples, seed)

    for _ in range(4):
        with pytest.raises(KeyboardInterrupt) as stop:
            verify_bound(fragile, "1", sizes=SIZES, budget=1000, store=store, label="Cauchy mean")
        assert "the same call continues" in stop.value.__notes__[0]
    resumed = verify_bound(fragile, "1", sizes=SIZES, budget=1000, store=store, label="Cauchy mean")
    assert resumed == whole and resumed.resumed == 250 * 12
    # nothing is drawn twice but the block in flight, and at each of four restarts the first one of every stored size
    assert len(calls) == 24 + 3 + (3 + 6 + 3 + 6)


def test_a_larger_budget_extends_the_store(tmp_path: Path) -> None:
    sampler = LAWS["cauchy"].sampler()
    verify_bound(sampler, "1", sizes=SIZES, budget=500, store=tmp_path / "s.npz")
    extended = verify_bound(sampler, "1", sizes=SIZES, budget=2000, store=tmp_path / "s.npz")
    assert extended.resumed == 3000 and extended == verify_bound(sampler, "1", sizes=SIZES, budget=2000)


def test_a_store_of_another_run_is_refused_by_name(tmp_path: Path) -> None:
    store = tmp_path / "s.npz"
    verify_bound(vector, "sqrt(n)", sizes=SIZES, store=store, label="v")
    with pytest.raises(StoreError, match="seed: 0 there, 1 now"):
        verify_bound(vector, "sqrt(n)", sizes=SIZES, store=store, label="v", seed=1)
    with pytest.raises(StoreError, match="sizes"):
        verify_bound(vector, "sqrt(n)", sizes=(*SIZES, 901), store=store, label="v")
    with pytest.raises(StoreError, match="does not draw"):
        verify_bound(lambda n, s, seed: 2 * vector(n, s, seed), "sqrt(n)", sizes=SIZES, store=store, label="v")
    store.write_bytes(b"PK\x03\x04 damaged")
    with pytest.raises(StoreError, match="not a readable store"):
        verify_bound(vector, "sqrt(n)", sizes=SIZES, store=store, label="v")


def test_blocks_have_distinct_seeds_and_constant_shape() -> None:
    seen: dict[int, set[int]] = {}
    seeds: list[int] = []

    def sampler(n: int, samples: int, seed: int) -> np.ndarray:
        seen.setdefault(n, set()).add(samples)
        seeds.append(seed)
        return LAWS["cauchy"].sampler()(n, samples, seed)

    verify_bound(sampler, "1", sizes=SIZES)
    assert all(shapes == {250} for shapes in seen.values())
    assert len(set(seeds)) == len(seeds) == 6 * 16 and max(seeds) < 2**31
    plan = plan_blocks(SIZES, 250, 0, None, 1)
    assert len({block_seed(plan, i, b) for i in range(6) for b in range(2000)}) == 12000


def test_blocks_respect_the_memory_cap() -> None:
    largest: dict[int, int] = {}

    def sampler(n: int, samples: int, seed: int) -> np.ndarray:
        largest[n] = max(largest.get(n, 0), 8 * n * n * samples)
        return vector(n, samples, seed)

    result = verify_bound(sampler, "sqrt(n)", sizes=SIZES, sample_bytes=lambda n: 8 * n * n, memory_mb=2, looks=(100,))
    assert max(largest.values()) <= 2 * 2**20 and result.samples == (100,) * 6
    with pytest.raises(VerificationError, match="one sample at n = 500 takes 2 MB"):
        verify_bound(sampler, "sqrt(n)", sizes=SIZES, sample_bytes=lambda n: 8 * n * n, memory_mb=1)


def test_progress_counts_norms_up_to_the_look() -> None:
    reports: list[tuple[int, int]] = []
    verify_bound(vector, "sqrt(n)", sizes=SIZES, progress=lambda done, wanted: reports.append((done, wanted)))
    assert reports == [(250 * (k + 1), 1500) for k in range(6)]


def test_sequential_spending_and_requested_levels() -> None:
    result = verify_bound(LAWS["log-missing"].sampler(), "sqrt(n)", seed=3)
    assert result.look_alpha == 0.05 / 2 ** len(result.looks)
    waited = verify_bound(vector, "sqrt(n)", sizes=SIZES, levels=(0.5, 0.9, 0.99))
    assert waited.samples[0] == 1000 and not waited.refused  # q99 was asked for, and 250 samples cannot give it
    assert verify_bound(vector, "sqrt(n)", sizes=SIZES, looks=(250,)).look_alpha == 0.05


def test_powers_of_two_are_jittered_with_a_warning() -> None:
    """M = n on odd n, 1 on even n: a grid of powers of two never sees it."""

    def hidden(n: int, samples: int, seed: int) -> np.ndarray:
        return (n if n % 2 else 1) * np.exp(0.1 * np.random.default_rng(seed).standard_normal(samples))

    grid = (32, 64, 128, 256, 512, 1024)
    with pytest.warns(StructuredGridWarning, match="jittered"):
        seen = verify_bound(hidden, "1", sizes=grid, looks=(250,))
    assert seen.verdict != "consistent" and "powers of two" in seen.warnings[0]
    with pytest.warns(StructuredGridWarning, match="R17"):
        blind = verify_bound(hidden, "1", sizes=grid, jitter=False, looks=(250,))
    assert blind.verdict == "consistent" and "multiples of 32" in blind.text()


def bracket(low: float, high: float) -> Callable[[int, int, int], Any]:
    """Norms of order sqrt(n) known only between n^low and n^high times themselves."""

    def sample(n: int, samples: int, seed: int) -> Any:
        exact = vector(n, samples, seed)
        return SimpleNamespace(lower=exact * n**low, upper=exact * n**high)

    return sample


@pytest.mark.parametrize(
    ("low", "high", "claim", "kind", "verdict"),
    [
        (0.0, 0.5, "sqrt(n)", "O", "inconclusive"),
        (0.0, 0.5, "n", "O", "consistent"),
        (0.0, 0.5, "n", "Theta", "inconclusive"),
        (0.0, 0.5, "n^2", "O", "not tight"),
        (0.0, 0.5, "1", "O", "violated"),
        (0.0, 0.0, "sqrt(n)", "Theta", "consistent"),
        (-0.02, 0.02, "sqrt(n)", "Theta", "consistent"),
        (-0.02, 0.02, "sqrt(n)", "definite", "consistent"),
    ],
)
def test_brackets_support_each_verdict_from_its_side(low: float, high: float, claim: str, kind: str, verdict: str) -> None:
    """An order-3 tensor is like this: sqrt(n) from below, n from the unfoldings."""
    result = verify_bound(bracket(low, high), claim, kind=kind, sizes=SIZES, looks=(500,))
    assert result.verdict == verdict
    assert result.norm_status == ("exact" if low == high else "bracket")
    if low != high:
        assert {found.side for found in result.levels} == {"lower", "upper"}


def test_half_open_brackets_are_one_sided() -> None:
    def half(low: float, high: float) -> Any:
        return lambda n, s, seed: SimpleNamespace(lower=low * vector(n, s, seed), upper=high * vector(n, s, seed))

    for open_, status, verdicts in (
        (half(1.0, np.inf), "lower", ("violated", "inconclusive", "inconclusive")),
        (half(0.0, 1.0), "upper", ("inconclusive", "consistent", "not tight")),
    ):
        for claim, verdict in zip(("1", "sqrt(n)", "n"), verdicts):
            result = verify_bound(open_, claim, sizes=SIZES, budget=250)
            assert (result.norm_status, result.verdict) == (status, verdict)


def test_one_sided_samplers() -> None:
    lower = verify_bound(vector, "sqrt(n)", sizes=SIZES, norm_status="lower", budget=250)
    upper = verify_bound(vector, "1", sizes=SIZES, norm_status="upper", budget=250)
    assert lower.verdict == upper.verdict == "inconclusive"
    assert any("bracket" in text for text in lower.what_would_change_it)
    assert verify_bound(vector, "1", sizes=SIZES, norm_status="lower", budget=250).verdict == "violated"


def test_a_jax_sampler_compiles_once_per_size() -> None:
    jax = pytest.importorskip("jax")
    traced: list[int] = []

    def program(n: int, samples: int, key: Any) -> Any:
        traced.append(n)
        return jax.numpy.linalg.norm(jax.random.normal(key, (samples, n)), axis=1)

    compiled = jax.jit(program, static_argnums=(0, 1))
    result = verify_bound(lambda n, s, seed: compiled(n, s, jax.random.key(seed)), "sqrt(n)", sizes=SIZES, looks=(500, 750))
    assert result.verdict == "consistent" and traced == list(SIZES)


Bad = Callable[[int, int, int], Any]
BAD: list[tuple[str, Bad, str]] = [
    ("NaN", lambda n, s, seed: np.where(np.arange(s) == 3, np.nan, 1.0), r"nan in sample 3 \(1 of 250"),
    ("infinity", lambda n, s, seed: np.full(s, np.inf), "inf in sample 0"),
    ("negative", lambda n, s, seed: np.random.default_rng(seed).standard_normal(s), "take abs first"),
    ("shape", lambda n, s, seed: np.ones((s, 2)), r"shape \(250, 2\); one norm per sample"),
    ("scalar", lambda n, s, seed: 1.0, r"shape \(\)"),
    ("text", lambda n, s, seed: ["a"] * s, "not an array of 250 real norms"),
    ("complex", lambda n, s, seed: np.ones(s) * 1j, "complex"),
    ("nothing", lambda n, s, seed: None, "NoneType"),
    ("bracket", lambda n, s, seed: SimpleNamespace(lower=2 * np.ones(s), upper=np.ones(s)), "lower bound 2 above upper bound 1"),
    ("seed", lambda n, s, seed: np.random.default_rng(0).random(s) + 1, "ignores its seed"),
    ("constant", lambda n, s, seed: np.full(s, float(n)), "constant data"),
]  # fmt: skip


@pytest.mark.parametrize(("sampler", "text"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_samplers_are_named_with_their_call(sampler: Bad, text: str) -> None:
    with pytest.raises(VerificationError, match=text):
        verify_bound(sampler, "sqrt(n)", sizes=SIZES, looks=(500,))


def test_bad_arguments_are_named() -> None:
    for options, text in [
        ({"seed": -1}, "seed is -1"), ({"seed": 0.5}, "seed is 0.5"), ({"looks": ()}, "looks is empty"),
        ({"budget": 1}, "budget is 1"),
        ({"sizes": 5}, "sizes is 5"), ({"sizes": (10, 20, 31)}, "3 sizes given"),
    ]:  # fmt: skip
        with pytest.raises(VerificationError, match=re.escape(text)):
            verify_bound(vector, "sqrt(n)", **options)
    with pytest.raises(SamplerError, match="not a function"):
        verify_bound([1, 2], "sqrt(n)")  # pyright: ignore[reportArgumentType]
