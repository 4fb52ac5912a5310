"""Objects of known order, drawn by `symtensor.numerics.ensembles`: the true scale stands, its neighbours do not."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from symtensor.numerics.ensembles import ENSEMBLES, sample_norms
from symtensor.verify import Verification, jittered_sizes, verify_bound

SIZES = jittered_sizes(16, 128, 6, seed=1)


@functools.cache
def remembered(name: str, n: int, samples: int, seed: int) -> Any:
    """One draw for all claims about it; brackets stay brackets."""
    return sample_norms(name, n, samples, seed, restarts=4)


def verdict(name: str, claim: str, **options: Any) -> Verification:
    return verify_bound(functools.partial(remembered, name), claim, **{"sizes": SIZES, "looks": (250,), **options})


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("wishart fixed", "centred sum", "normal maximum", "layer kernel")]


@pytest.mark.parametrize("name", ["gaussian vector", *SLOW])
def test_concentrated_norms_are_theta_of_their_scale_and_of_no_neighbour(name: str) -> None:
    """A power n^(1/2) too much or too little is seen at 6 sizes up to 128; a norm that concentrates needs few samples."""
    true = ENSEMBLES[name].scale
    assert true is not None
    options = {"looks": (200 if name == "gaussian vector" else 1000,), "delta": 0.2}
    assert verdict(name, true, kind="Theta", **options).verdict == "consistent"
    assert verdict(name, f"({true}) / n^(1/2)", **options).verdict == "violated"
    assert verdict(name, f"({true}) * n^(1/2)", **options).verdict == "not tight"


@pytest.mark.slow
def test_a_gaussian_matrix_has_norm_of_order_sqrt_n() -> None:
    options = {"sizes": (9, 14, 23, 36), "looks": (100,), "delta": 0.25}
    assert verdict("gaussian matrix", "sqrt(n)", kind="Theta", **options).verdict == "consistent"
    assert verdict("gaussian matrix", "1", **options).verdict == "violated"
    assert verdict("gaussian matrix", "n", **options).verdict == "not tight"


@pytest.mark.slow
def test_heavy_tails_are_never_called_violated_at_their_scale() -> None:
    for name in ("cauchy mean", "stable sum", "cauchy vector"):
        result = verdict(name, str(ENSEMBLES[name].scale), looks=(500,))
        assert result.verdict in ("consistent", "inconclusive")
        wrong = verdict(name, f"({ENSEMBLES[name].scale}) / n^(3/2)", looks=(500,))
        assert wrong.verdict == "violated"


@pytest.mark.slow
def test_order_three_is_bracketed_and_the_bracket_decides_only_outside_itself() -> None:
    """sqrt(n) from below by alternating maximisation, n from above by unfoldings: claims in between stay open."""

    draw = functools.partial(remembered, "iid order 3")
    options: dict[str, Any] = {"sizes": (3, 6, 11, 20), "looks": (100,), "delta": 0.3}
    found = {claim: verify_bound(draw, claim, **options) for claim in ("1 / sqrt(n)", "sqrt(n)", "n", "n^2")}
    assert {claim: result.verdict for claim, result in found.items()} == {
        "1 / sqrt(n)": "violated", "sqrt(n)": "inconclusive", "n": "consistent", "n^2": "not tight",
    }  # fmt: skip
    assert all(result.norm_status == "bracket" for result in found.values())
    assert verify_bound(draw, "n", kind="Theta", **options).verdict == "inconclusive"
