"""Text for mpmath: the reference at any precision, used to test the passes digit by digit."""

from __future__ import annotations

from typing import Any

import mpmath
import sympy as sp

from .base import Printer

__all__ = ["mpmath_printer", "namespace"]

_CALLABLES: dict[str, Any] = {
    "exp": mpmath.exp, "expm1": mpmath.expm1, "log": mpmath.log, "log1p": mpmath.log1p, "sqrt": mpmath.sqrt,
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan, "asin": mpmath.asin, "acos": mpmath.acos,
    "atan": mpmath.atan, "atan2": mpmath.atan2, "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh,
    "asinh": mpmath.asinh, "erf": mpmath.erf, "erfc": mpmath.erfc, "abs": abs, "sign": mpmath.sign,
    "maximum": max, "minimum": min, "power": mpmath.power, "sech2": lambda x: mpmath.sech(x) ** 2,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)), "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
}  # fmt: skip


class _MpmathPrinter(Printer):
    """Constants keep all digits."""

    def number(self, value: sp.Expr) -> tuple[str, int]:
        if isinstance(value, sp.Integer):
            return f"mpf({int(value)})", 4
        if isinstance(value, sp.Rational):
            return f"(mpf({int(value.p)}) / {int(value.q)})", 4
        return f"mpf('{sp.N(value, mpmath.mp.dps + 10)}')", 4


def namespace() -> dict[str, Any]:
    """What the text refers to; comparisons of numbers give plain booleans."""
    extra = {"mpf": mpmath.mpf, "where": lambda condition, yes, no: yes if condition else no}
    return {f"f_{name}": function for name, function in _CALLABLES.items()} | extra


def mpmath_printer() -> Printer:
    """A printer whose text is run in `namespace()` at the working precision in force when it is made."""
    logic = {"and": "and", "or": "or", "not": "not"}
    return _MpmathPrinter({name: f"f_{name}" for name in _CALLABLES}, "where", logic)
