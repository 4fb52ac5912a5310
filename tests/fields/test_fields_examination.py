"""Findings of an examination by a sceptical reader: text is never evaluated, names do not collide, jumps are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sympy as sp

from symtensor.fields import FieldTheory, TheoryError

CUBIC = FieldTheory.langevin("dx = -(x + g*x^3) dt + s dW")


def code(target: Path) -> str:
    return f"__import__('pathlib').Path({str(target)!r}).touch()"


@pytest.mark.parametrize(
    "ask",
    [
        lambda text: CUBIC.cumulant("x,x", 1).frequency(text),
        lambda text: CUBIC.cumulant("x,x", 1).dyson().response(text),
        lambda text: CUBIC.cumulant("x,x", 1).dyson().correlator(text),
        lambda text: CUBIC.cumulant("x,x", 1).value.evaluate(1, values={"g": text, "s": 1}),
        lambda text: CUBIC.cumulant("x,x", 1, times=f"{text},0"),
        lambda text: CUBIC.cumulant(text, 1),
        lambda text: FieldTheory.static(text, "x"),
        lambda text: FieldTheory.langevin(f"dx = -x dt + {text} dW"),
        lambda text: FieldTheory.langevin("dx = -a*x dt + dW", values={"a": text}),
        lambda text: FieldTheory.langevin("dx = -x dt + dW", point={"x": text}),
    ],
)
def test_text_is_never_evaluated(ask: Callable[[str], Any], tmp_path: Path) -> None:
    target = tmp_path / "evaluated"
    with pytest.raises((ValueError, TypeError)):
        ask(code(target))
    assert not target.exists()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: CUBIC.cumulant("x,x", 0, times="g,0"), "name of a field or parameter"),
        (lambda: FieldTheory.langevin("dx = -t*x dt + dW").cumulant("x,x", 0), "contain the time t"),
        (lambda: CUBIC.cumulant("x,x", 0, times="E,0"), "is the constant"),
        (lambda: FieldTheory.langevin("dx = -omega*x dt + dW").cumulant("x,x", 0).frequency(), "'omega' is a parameter"),
        (lambda: CUBIC.cumulant("x,x", 0).frequency(sp.nan), "not finite"),
        (lambda: FieldTheory.langevin("dx = -sign(x) dt + dW"), "jump or a kink"),
        (lambda: FieldTheory.static("x^2 + x*abs(x)/4", "x"), "jump or a kink"),
        (lambda: FieldTheory.static("x^2/2 + oo*x^4", "x"), "not finite"),
        (lambda: FieldTheory.langevin("dx = -x dt + s" + chr(0) + " dW"), "control character"),
        (lambda: FieldTheory.static("x^2/2 + g*x^4", "x", values={"q": 1}), "names q"),
    ],
)
def test_what_is_refused(ask: Callable[[], Any], words: str) -> None:
    with pytest.raises(TheoryError, match=words):
        ask()
