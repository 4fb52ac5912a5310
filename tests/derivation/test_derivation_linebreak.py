"""Long formulas over several lines."""

from __future__ import annotations

import re

import pytest

from symtensor.derivation.mathml import mathml


def rows(latex: str, **options) -> list[str]:
    """The lines of a formula as plain text, relation and right-hand side together."""
    html = mathml(latex, display=True, **options)
    parts = re.findall(r"<mtr>(.*?)</mtr>", html) or [html]
    return [re.sub(r"<[^>]+>", "", part) for part in parts]


def test_a_short_formula_stays_on_its_line():
    assert rows("a = b + c") == ["a=b+c"]


def test_a_long_sum_is_broken_before_signs_and_loses_nothing():
    latex = "V_4 = " + " + ".join(rf"\frac{{C_W}}{{2}} K_{{a{letter}}} Q" for letter in "bcdefghijklm") + " - z"
    lines = rows(latex)
    assert len(lines) > 1
    assert lines[0].startswith("V4=") and all(line[0] in "+−" for line in lines[1:])
    assert "".join(lines) == re.sub(r"<[^>]+>", "", mathml(latex))


def test_a_sign_that_begins_a_line_keeps_its_spacing():
    html = mathml(" + ".join("abcdefghijklmnopqrstuvwxyz" * 2), display=True)
    assert html.count('<mo form="infix">+</mo>') == len(re.findall("<mtr>", html)) - 1 > 0


def test_a_shorter_line_breaks_earlier():
    latex = "a = " + " + ".join("bcdefghij")
    assert len(rows(latex)) == 1 < len(rows(latex, line=20)) < len(rows(latex, line=10))


def test_a_leading_minus_and_a_minus_after_a_bracket_are_no_places_to_break():
    lines = rows("a = -b (-c) + d", line=4)
    assert lines == ["a=−b(−c)", "+d"]


@pytest.mark.parametrize(
    "latex", ["x" * 200, r"\frac{" + "x" * 200 + "}{2}", r"b \left(" + " + ".join("a" * 90) + r"\right)"]
)
def test_what_cannot_be_broken_is_left_whole(latex):
    assert len(rows(latex)) == 1


def test_inline_formulas_are_never_broken():
    assert "<mtable" not in mathml(" + ".join("a" * 100))
