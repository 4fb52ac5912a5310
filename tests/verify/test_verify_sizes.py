"""Sizes: jitter, parities, refusals, structured grids."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from symtensor.verify import SizesError, jittered_sizes
from symtensor.verify.sizes import check_sizes, upper_half


def test_jitter_is_uniform_around_the_grid_of_the_protocol() -> None:
    offsets = np.array([np.log2(jittered_sizes(32, 4096, 8, seed=seed)) - np.arange(5, 13) for seed in range(400)])
    assert np.abs(offsets[:, 4:]).max() < 0.452  # .45 and the rounding to integers
    assert np.abs(offsets).max() < 0.45 + 0.5 / 23
    flat = offsets[:, 3:].ravel()
    # U(-.45, .45): mean 0, variance .9^2/12, by z-scores; a jitter of half the size is rejected
    z = flat.mean() / (0.9 / math.sqrt(12 * flat.size))
    assert abs(z) < 4
    variance_error = 0.9**2 * math.sqrt(1 / 180 / flat.size)
    assert abs(flat.var() - 0.9**2 / 12) < 4 * variance_error < 0.45**2 / 12


@pytest.mark.parametrize("count", [4, 5, 8, 11])
def test_both_parities_in_the_upper_half_strictly_increasing(count: int) -> None:
    for seed in range(60):
        sizes = jittered_sizes(32, 4096, count, seed=seed)
        assert len(sizes) == count
        assert all(a < b for a, b in itertools.pairwise(sizes))
        assert {n % 2 for n in sizes[upper_half(count)]} == {0, 1}


def test_same_seed_same_sizes_other_seed_other_sizes() -> None:
    assert jittered_sizes(seed=3) == jittered_sizes(seed=3) != jittered_sizes(seed=4)


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ([10, 21, 40], "3 sizes given"),
        ([33], "1 size given"),
        ([], "0 sizes given"),
        ([0, 10, 21, 40], "size 0 is not possible"),
        ([-5, 10, 21, 40], "size -5 is not possible"),
        ([1, 10, 21, 40], "size 1 is not possible"),
        ([10, 10, 21, 40], "size 10 is given twice"),
        ([10.5, 20, 31, 40], "a size is 10.5"),
        (["x", 20, 31, 40], "a size is 'x'"),
    ],
)
def test_bad_sizes_are_named(sizes: list, text: str) -> None:
    with pytest.raises(SizesError, match=text):
        check_sizes(sizes)


def test_powers_of_two_are_called_blind_and_jittered_on_request() -> None:
    kept, warning = check_sizes([32, 64, 128, 256, 512])
    assert kept == (32, 64, 128, 256, 512)
    assert "powers of two" in warning and "R17" in warning
    moved, warning = check_sizes([32, 64, 128, 256, 512], jitter=True, seed=1)
    assert "jittered to" in warning
    assert {n % 2 for n in moved[2:]} == {0, 1}
    assert max(abs(math.log2(b / a)) for a, b in zip(kept, moved)) < 0.48


def test_common_divisors_are_warned_about_and_mixed_sizes_are_not() -> None:
    assert "multiples of 10" in check_sizes([10, 30, 70, 110])[1]
    assert check_sizes([10, 31, 70, 110])[1] == ""


@pytest.mark.parametrize("arguments", [(32, 16), (1, 100), (32, 33, 8), (32, 4096, 3)])
def test_impossible_grids_are_refused(arguments: tuple[int, ...]) -> None:
    with pytest.raises(SizesError):
        jittered_sizes(*arguments)
