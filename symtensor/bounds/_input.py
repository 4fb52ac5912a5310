"""Numbers and formulas given by a user, as exact SymPy expressions: text is read by the whitelist, decimals as they show."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np
import sympy

from symtensor.parsing import parse_expression

__all__ = ["exact", "is_positive_number", "positive"]


def exact(value: Any, names: Iterable[str] = ()) -> Any:
    """The value as a SymPy expression.

    Args:
        value: a number, a SymPy expression, or text in which the ``names`` may stand.

    Raises:
        ExpressionSyntaxError: text outside the small language, naming the token.
        TypeError: neither number, expression nor text (SymPy would evaluate text inside lists and objects as code).
        ValueError: a float that is not finite.

    Example:
        >>> exact(0.1), exact("2*log(n)", ["n"]), exact("1/3")
        (1/10, 2*log(n), 1/3)
    """
    if isinstance(value, str):
        return parse_expression(value, sorted(names))
    if isinstance(value, sympy.Basic):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, float | np.floating | Decimal):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not finite; give a finite number")
        return sympy.Rational(str(value))
    if isinstance(value, Number | np.generic) and not isinstance(value, bool | np.bool_):
        # numbers alone: strict mode still evaluates text inside containers
        return sympy.sympify(value, strict=True)
    raise TypeError(f"{value!r} is no number or formula; give a number, text, or a SymPy expression")


def positive(value: Any, names: Iterable[str]) -> Any:
    """`exact`, with the named symbols declared positive, so that equal names are equal symbols."""
    wanted = set(names)
    value = exact(value, wanted)
    return value.subs({s: sympy.Symbol(s.name, positive=True) for s in value.free_symbols if s.name in wanted})


def is_positive_number(value: Any) -> bool:
    """Whether the value is a finite positive number (or text or an expression that is one)."""
    try:
        number = exact(value)
    except (TypeError, ValueError):
        return False
    return bool(isinstance(number, sympy.Expr) and number.is_number and number.is_positive and number.is_finite)
