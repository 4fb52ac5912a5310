"""What a series asks of its coefficients, whatever they are: exactness, zero tests, sums, display."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import sympy


def exact(value: Any) -> Any:
    """Integers and fractions become SymPy rationals, so that divisions stay exact; all else passes unchanged."""
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return sympy.Rational(value)
    return value


def structurally_zero(value: Any) -> bool:
    """Whether the value is zero as written; no simplification (that is `is_zero`)."""
    if isinstance(value, int | float | complex | sympy.Basic):
        return bool(value == 0)
    return getattr(value, "is_zero", False) is True


def is_zero(value: Any) -> bool | None:
    """Whether the value is zero; ``None`` if that is not decided (a symbol, an interval that contains 0)."""
    if structurally_zero(value):
        return True
    if isinstance(value, sympy.Expr) and not isinstance(value, sympy.AccumBounds):
        return _expression_is_zero(value)
    if hasattr(value, "__contains__"):  # intervals of mpmath and of SymPy
        return None if 0 in value else False
    if isinstance(getattr(value, "is_zero", None), bool):
        return value.is_zero
    return bool(value == 0)


def _expression_is_zero(value: sympy.Expr) -> bool | None:
    if value.is_zero is not None:
        return value.is_zero
    if sympy.expand(value) == 0:
        return True
    reduced = sympy.simplify(value)
    return reduced.is_zero


def add(left: Any, right: Any) -> Any:
    """left + right where a plain 0 may stand for the zero of any coefficient type."""
    if structurally_zero(left):
        return right
    return left if structurally_zero(right) else left + right


def product(left: Any, right: Any) -> Any:
    """left * right; an exact integer meets foreign types (intervals, arrays, floats) as a plain ``int``."""
    a, b = exact(left), exact(right)
    factors: list[Any] = [
        int(p) if isinstance(p, sympy.Integer) and not isinstance(q, sympy.Basic) else p for p, q in ((a, b), (b, a))
    ]
    return factors[0] * factors[1]


def total(values: Iterable[Any], zero: Any) -> Any:
    """The sum of the values, ``zero`` if there are none."""
    result = zero
    for value in values:
        result = add(result, value)
    return result


def write_sum(terms: Iterable[tuple[int, Any]], scale: sympy.Expr, ending: str, latex: bool) -> str:
    """The sum of c * scale^k in ascending order, then ``ending`` (an O-term or dots), as text or LaTeX."""
    pieces = [_write_term(c, scale**k, latex) for k, c in terms]
    if not pieces and ending in ("", "...", r"\cdots"):
        pieces.append("0")
    if ending:
        pieces.append(ending)
    text = pieces[0]
    for piece in pieces[1:]:
        text += f" - {piece[1:].lstrip()}" if piece.startswith("-") else f" + {piece}"
    return text


def _write_term(c: Any, power: sympy.Expr, latex: bool) -> str:
    write = sympy.latex if latex else sympy.sstr
    if isinstance(c, int | float | sympy.Expr):
        return write(c * power)
    text = c.latex() if latex and hasattr(c, "latex") else str(c)
    if power == 1:
        return text
    return rf"\left({text}\right) {write(power)}" if latex else f"({text})*{write(power)}"
