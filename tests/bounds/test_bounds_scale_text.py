"""Scales that do not read as they look: glued names, open fractions, constants, exponents from text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sympy

from symtensor.bounds import Scale, ScaleError, scale
from symtensor.parsing import ExpressionSyntaxError


@pytest.mark.parametrize(
    ("text", "likely"),
    [
        ("nlogn", "n log(n)"),
        ("sqrtn", "sqrt(n)"),
        ("logn", "log(n)"),
        ("Logn", "log(n)"),
        ("n^2 logn", "log(n)"),
        ("loglogn", "log(log(n))"),
        ("logloglog n", "log(log(log(n)))"),
        ("nlog n", "n log(n)"),
        ("n / nlnn", "n ln(n)"),
        ("lnn", "ln(n)"),
        ("expn", "exp(n)"),
    ],
)
def test_a_function_glued_to_a_size_is_no_size(text: str, likely: str) -> None:
    with pytest.raises(ScaleError, match=re.escape(f"write {likely!r}")):
        scale(text)


@pytest.mark.parametrize(
    "text", ["n log(n)", "sqrt n", "log n", "loglog n", "log(log n)", "n ln n", "width", "depth_1 n2", "N", "x"]
)
def test_other_names_and_written_functions_stay(text: str) -> None:
    assert scale(text).limit() == "oo"


def test_a_declared_name_may_look_like_a_function() -> None:
    assert scale("nlogn", sizes=["nlogn"]) == Scale.power_of("nlogn")
    assert scale("e^2", sizes=["e"]) == Scale.power_of("e", 2)


@pytest.mark.parametrize("text", ["e", "n^2 e", "E", "e n"])
def test_the_constant_is_no_size(text: str) -> None:
    with pytest.raises(ScaleError, match="is the constant, no size; choose another name"):
        scale(text)


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("n^1/2", "n^(1/2) or sqrt(..)"),
        ("n^-1/2", "n^(-1/2)"),
        ("n**1/2", "n**(1/2) or sqrt(..)"),
        ("n ^ 2 / 3 log n", "n^(2/3)"),
        ("(n m)^1/2", ")^(1/2)"),
        ("log(n)^-1/2", ")^(-1/2)"),
        ("log(n^1/2)", "n^(1/2)"),
        ("n^.5/2", "n^(.5/2)"),
    ],
)
def test_an_exponent_with_an_open_fraction_is_ambiguous(text: str, closed: str) -> None:
    with pytest.raises(ExpressionSyntaxError, match=re.escape(f"is ambiguous: write {closed}")):
        scale(text)


def test_a_symbolic_exponent_with_an_open_fraction_is_ambiguous() -> None:
    with pytest.raises(ExpressionSyntaxError, match=re.escape("write n^(a/2)")):
        scale("n^a/2", exponents={"a": sympy.Symbol("a", positive=True)})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("n^(1/2)", "sqrt(n)"),
        ("n^(-1/2)", "1/sqrt(n)"),
        ("n^2/m", "n^2 / m"),
        ("n^2/(3 m)", "n^2 / m"),
        ("1/n^2", "1/n^2"),
        ("(n^2)/2", "n^2"),
    ],
)
def test_closed_fractions_are_read(text: str, shown: str) -> None:
    assert str(scale(text)) == shown


def test_exponents_are_read_by_the_whitelist(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    with pytest.raises(ExpressionSyntaxError):
        scale("n^a", exponents={"a": f"__import__('os').system('touch {mark}')"})
    assert not mark.exists()
    assert scale("n^a", exponents={"a": "1/2"}) == scale("sqrt(n)")
    with pytest.raises(TypeError, match="is no number or formula"):
        scale("n^a", exponents={"a": object()})


@pytest.mark.parametrize("text", ["n^(2/3) (log n)^2 loglog n", "1/sqrt(n)", "sqrt(log n) / n", "max(m, n^2)", "min(1/m, 1/n)"])
def test_what_is_printed_is_read_back(text: str) -> None:
    assert scale(str(scale(text))) == scale(text)
