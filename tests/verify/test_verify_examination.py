"""What a hostile examination found: irregular laws, huge sizes, masks, stores of other samplers, claims that read wrongly."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from symtensor.parsing import ExpressionSyntaxError
from symtensor.verify import (
    DataError,
    SamplerError,
    SizesError,
    StoreError,
    VerificationError,
    measure_rates,
    measure_sequential,
    verify_bound,
    verify_samples,
)
from symtensor.verify import slope as slope_module
from symtensor.verify.claim import read_claim
from symtensor.verify.data import read_csv
from symtensor.verify.errors import ClaimError
from symtensor.verify.slope import SCATTER, fit_slopes
from symtensor.verify.verdict import half_width, student

_SPEC = importlib.util.spec_from_file_location(
    "verify_rates_irregular", Path(__file__).parents[2] / "benchmarks" / "verify_rates.py"
)
assert _SPEC is not None and _SPEC.loader is not None
benchmark: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(benchmark)

SIZES = (20, 33, 51, 80)
LOG_N = np.log(np.array([31.0, 70, 131, 260, 499, 1061, 2040, 4101]))
RNG = np.random.default_rng(8)


def norms(n: int, samples: int, seed: int) -> np.ndarray:
    return np.sqrt(n) * np.abs(np.random.default_rng(seed).standard_normal(samples))


def below(rate: float, limit: float, replicates: int) -> bool:
    """Whether a rate is compatible with a true rate of at most `limit`, at the level 1e-4."""
    return bool(stats.binom.sf(round(rate * replicates) - 1, replicates, limit) > 1e-4)


@pytest.mark.parametrize("law", benchmark.IRREGULAR, ids=lambda law: law.name)
def test_irregular_laws_of_order_one_keep_the_error_rates(law: Any) -> None:
    """500 runs: V at most .03 and N at most .01 as observed rates, in single looks and in sequential use."""
    for samples in (200, 1000):
        found = measure_rates(law, samples, 500, seed=60 + samples).verdicts
        assert found["violated"] <= 0.03 and found["not tight"] <= 0.01
    found = measure_sequential(law, 250, looks=(250, 500, 1000), seed=61).rates.verdicts
    assert below(found["violated"], 0.03, 250) and below(found["not tight"], 0.01, 250)


def test_normal_intervals_break_these_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same laws with normal intervals throughout: the requirement is missed, so the test above can fail."""
    monkeypatch.setattr(slope_module, "SCATTER", 0.0)
    found = [measure_rates(law, 1000, 1000, seed=62).verdicts for law in (benchmark.IRREGULAR[2], benchmark.IRREGULAR[6])]
    assert max(rates["not tight"] for rates in found) > 0.015
    assert max(rates["violated"] for rates in found) > 0.045


def test_student_has_the_probability_of_the_normal_quantile() -> None:
    for z in (1.0, 2.2414, 3.0):
        for dof in (1.0, 2.0, 5.0):
            assert stats.t.sf(float(student(z, np.array(dof))), dof) == pytest.approx(stats.norm.sf(z), rel=1e-9)
        assert float(student(z, np.array(np.inf))) == z


def test_intervals_from_scatter_cover_at_their_level() -> None:
    """Scatter far above the errors: 95 % intervals hold 95 % of the slopes; normal ones would hold 81 %."""
    fits = fit_slopes(LOG_N, RNG.standard_normal((4000, 8)), np.full((4000, 8), 0.001))
    assert (fits.dof == 2).all()
    outside, normal = (np.mean(np.abs(fits.slope) > width) for width in (half_width(fits, 1.959964), 1.959964 * fits.se))
    assert abs(outside - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 4000)
    assert normal > 0.15


def test_data_without_scatter_keep_normal_intervals() -> None:
    """Two tests of probability SCATTER each raise the false alarm to at most twice that."""
    fits = fit_slopes(LOG_N, 0.1 * RNG.standard_normal((20000, 8)), np.full((20000, 8), 0.1))
    alarms = np.mean(np.isfinite(fits.dof))
    assert SCATTER - 4 * np.sqrt(SCATTER / 20000) < alarms < 2 * SCATTER + 4 * np.sqrt(2 * SCATTER / 20000)


@pytest.mark.parametrize(("count", "dof"), [(4, 1), (5, 1), (6, 1), (7, 2), (12, 4)])
def test_few_sizes_have_few_degrees_of_freedom(count: int, dof: int) -> None:
    """With 4 sizes the line goes through two points, and only the quadratic knows the scatter."""
    y = np.where(np.arange(count) % 2, 1.0, -1.0) + 0.3 * RNG.standard_normal(count)
    assert float(fit_slopes(np.log(32.0) + 0.7 * np.arange(count), y, np.full(count, 0.01)).dof) == dof


def test_the_report_says_that_the_interval_is_wider() -> None:
    def law(n: int, samples: int, seed: int) -> np.ndarray:
        return (1 + (n % 7) / 7) * (3 + np.abs(np.random.default_rng(seed).standard_normal(samples)))

    result = verify_bound(law, "1", looks=(300,))
    assert result.verdict == "inconclusive"
    assert [found.dof for found in result.levels] == [2, 2]
    assert "wider interval, by Student's t with 2 dof" in result.text()
    assert "more sizes; the sizes scatter by more than the sampling errors" in result.text()
    plain = verify_bound(norms, "sqrt(n)", looks=(300,))
    assert all(np.isinf(found.dof) for found in plain.levels) and "Student" not in plain.text()
    assert plain.to_dict()["levels"][0]["dof"] is None


@pytest.mark.parametrize("sizes", [(10**100, 10**200, 10**300, 10**400), (10**301, 33, 67, 131)])
def test_sizes_without_a_float_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(SizesError, match="digits; sizes are at most 1e300"):
        verify_bound(norms, "1", sizes=sizes)


@pytest.mark.filterwarnings("ignore:all sizes are multiples")
def test_sizes_beyond_the_tolerance_say_so() -> None:
    with pytest.raises(VerificationError, match=r"at sizes around 1e\+2\d\d the tolerance .* is not above delta0 = 0.03"):
        verify_bound(norms, "1", sizes=(10**200, 10**250, 10**260, 10**290))


def test_masks_are_not_dropped() -> None:
    masked = np.ma.masked_less(np.arange(1.0, 101), 3)
    with pytest.raises(SamplerError, match="returned masked norms"):
        verify_bound(lambda n, samples, seed: np.ma.masked_less(norms(n, samples, seed), 3), "sqrt(n)", sizes=SIZES)
    with pytest.raises(DataError, match=r"the norms at n = 20 are masked at 2 places; leave these out \(.compressed\(\)\)"):
        verify_samples(dict.fromkeys(SIZES, masked), claim="1")
    with pytest.raises(DataError, match="the values are masked"):
        verify_samples(np.repeat(SIZES, 25), masked, "1")
    with pytest.raises(DataError, match="some sizes are masked"):
        verify_samples(np.ma.masked_less(np.repeat(SIZES, 25), 30), np.ones(100), "1")
    unmasked = {n: np.ma.masked_array(norms(n, 100, n)) for n in SIZES}
    assert verify_samples(unmasked, claim="sqrt(n)").samples == (100,) * 4


@pytest.mark.parametrize("wrong", SIZES)
def test_a_sampler_that_differs_at_any_size_is_noticed(wrong: int, tmp_path: Path) -> None:
    path = tmp_path / "norms.npz"
    verify_bound(norms, "sqrt(n)", sizes=SIZES, looks=(100,), store=path, label="a")

    def other(n: int, samples: int, seed: int) -> np.ndarray:
        return norms(n, samples, seed) * (2 if n == wrong else 1)

    with pytest.raises(StoreError, match=f"first block at n = {wrong} differs"):
        verify_bound(other, "sqrt(n)", sizes=SIZES, looks=(100, 200), store=path, label="a")
    again = verify_bound(norms, "sqrt(n)", sizes=SIZES, looks=(100,), store=path, label="a")
    assert again.resumed == 400


def test_a_damaged_store_is_not_to_be_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "norms.npz"
    objects = tmp_path / "objects.npz"
    np.savez(objects, fingerprint=np.array([{}], dtype=object))
    for content in (b"garbage", b"", objects.read_bytes()):
        path.write_bytes(content)
        with pytest.raises(StoreError, match="is not a readable store of a verification; delete it") as caught:
            verify_bound(norms, "sqrt(n)", sizes=SIZES, looks=(100,), store=path)
        assert "pickle" not in str(caught.value)
    with pytest.raises(StoreError, match=r"[Ii]s a directory"):
        verify_bound(norms, "sqrt(n)", sizes=SIZES, looks=(100,), store=tmp_path)


def test_sizes_of_a_file_are_exact(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("n,value\n1e30,1\n1000000000000000000000000000001,2\n64.0,3\n9007199254740993,4\n", encoding="utf-8")
    assert read_csv(path).sizes.tolist() == [10**30, 10**30 + 1, 64, 2**53 + 1]
    path.write_text("n,value\n9007199254740993,4\n", encoding="utf-8")
    assert read_csv(path).sizes.dtype == np.int64
    for size, text in (("1e301", "too large"), ("1e999999999", "too large"), ("1e-999999", "not an integer"), ("nan", "not an"),
                       ("33.5", "not an integer"), ("1", "not possible"), ("-1e400", "too large")):  # fmt: skip
        path.write_text(f"n,value\n{size},1\n", encoding="utf-8")
        with pytest.raises(DataError, match=text):
            read_csv(path)


@pytest.mark.parametrize("claim", ["nlogn", "sqrtn", "logn", "logloglog n", "e"])
def test_glued_claims_are_refused(claim: str) -> None:
    """As a size of its own, each would be the size of the data, and data of order n consistent with it."""
    with pytest.raises(ValueError, match=r"write|is the constant"):
        read_claim(claim)


@pytest.mark.parametrize("claim", ["n^1/2", "n^-1/2"])
def test_open_fractions_are_refused(claim: str) -> None:
    with pytest.raises(ExpressionSyntaxError, match="is ambiguous: write"):
        read_claim(claim)


def test_a_size_of_another_name_is_said_to_be_the_size_of_the_data() -> None:
    data = {n: n * np.abs(RNG.standard_normal(300)) for n in (33, 67, 131, 262, 518, 1043)}
    assert "O(N), N = n -> oo" in verify_samples(data, claim="N").text()
    assert "O(n), n -> oo" in verify_samples(data, claim="n").text()
    with pytest.raises(ClaimError, match="several size parameters"):
        verify_samples(data, claim="N n")
