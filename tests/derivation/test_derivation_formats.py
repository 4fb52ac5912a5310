"""Numbers in tables."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symtensor.derivation.formats import number, with_error, zscore


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4.367957, "4.36796"), (48.47, "48.4700"), (0.0, "0"), (-0.0, "0"),
        (1e-7, "1.00000e-07"), (-0.15455, "-0.154550"),
        (1e9, "1.00000e+09"), (math.nan, "–"), (math.inf, "∞"), (-math.inf, "-∞"),
    ],
)  # fmt: skip
def test_number(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("mean", "se", "long", "short"),
    [
        (14.60471, 0.0234, "14.605 ± 0.023", "14.605(23)"),
        (-0.2236, 0.05, "-0.224 ± 0.050", "-0.224(50)"),
        (118.9, 12.0, "119 ± 12", "119(12)"),
        (2.0, 0.0, "2.00000", "2.00000"),
        (1.5, math.nan, "1.50000", "1.50000"),
        (math.nan, 1.0, "–", "–"),
        (0.123456, 0.0999, "0.12 ± 0.10", "0.12(10)"),
        (3.2e9, 4.1e7, "(3.200 ± 0.041)e+9", "3.200(41)e+9"),
    ],
)
def test_with_error(mean, se, long, short):
    assert with_error(mean, se) == long
    assert with_error(mean, se, short=True) == short


@given(st.floats(-1e6, 1e6), st.floats(1e-4, 1e3))
def test_the_shown_error_is_the_error_to_two_digits(mean, se):
    shown_mean, shown_se = (float(part) for part in with_error(mean, se).split(" ± "))
    assert abs(shown_se - se) <= 0.051 * se
    assert abs(shown_mean - mean) <= 0.51 * se
    match = re.fullmatch(r"-?(\d+)(\.\d+)?\((\d+)\)", with_error(mean, se, short=True))
    assert match
    places = len(match[2] or ".") - 1
    assert int(match[3]) / 10**places == pytest.approx(shown_se, rel=1e-9)


@pytest.mark.parametrize(
    ("z", "text"),
    [(1.234, "1.23"), (-12.345, "-12.35"), (123.4, "123"), (1e5, "1.0e+05"), (math.inf, "∞"), (math.nan, "–")],
)
def test_zscore(z, text):
    assert zscore(z) == text
