"""Numbers and formulas given by a user, as exact SymPy expressions: text is read by the whitelist, decimals as they show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import sympy

from symtensor.parsing import parse_expression

__all__ = ["exact", "positive"]


def exact(value: Any, names: Iterable[str] = ()) -> Any:
    """The value as a SymPy expression.

    Args:
        value: a number, a SymPy expression, or text in which the ``names`` may stand.

    Raises:
        ExpressionSyntaxError: text outside the small language, naming the token.
        TypeError: neither number, expression nor text.

    Example:
        >>> exact(0.1), exact("2*log(n)", ["n"]), exact("1/3")
        (1/10, 2*log(n), 1/3)
    """
    if isinstance(value, str):
        return parse_expression(value, sorted(names))
    if isinstance(value, float | np.floating):
        return sympy.Rational(str(value))
    try:
        return sympy.sympify(value, strict=True)
    except sympy.SympifyError:
        raise TypeError(f"{value!r} is no number or formula; give a number, text, or a SymPy expression") from None


def positive(value: Any, names: Iterable[str]) -> Any:
    """`exact`, with the named symbols declared positive, so that equal names are equal symbols."""
    wanted = set(names)
    value = exact(value, wanted)
    return value.subs({s: sympy.Symbol(s.name, positive=True) for s in value.free_symbols if s.name in wanted})
