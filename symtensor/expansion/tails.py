"""Functions at infinity, written so that their exponentially small tails stay visible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from .series import Series


class ErfcTail(sympy.Function):
    """E(u) = exp(u^2) erfc(u), the algebraic part of the complementary error function at u -> oo."""

    nargs = 1


def tail_series(variable: sympy.Symbol) -> Series:
    """E(u) ~ sum_j (-1)^j (2 j)! / (j! 4^j sqrt(pi)) u^-(2 j + 1) at u -> oo (DLMF 7.12.1); alternating, asymptotic."""

    def rule(k: int) -> Any:
        if k % 2 == 0:
            return sympy.S.Zero
        j = (k - 1) // 2
        return sympy.Rational((-1) ** j * sympy.factorial(2 * j), sympy.factorial(j) * 4**j) / sympy.sqrt(sympy.pi)

    return Series(sympy.Dummy("u"), sympy.oo, rule, start=1)


def _erf(u: sympy.Expr, side: int) -> sympy.Expr:
    return side * (1 - sympy.exp(-(u**2)) * ErfcTail(side * u))


def _erfc(u: sympy.Expr, side: int) -> sympy.Expr:
    return 1 - _erf(u, side)


def _tanh(u: sympy.Expr, side: int) -> sympy.Expr:
    small = sympy.exp(-2 * side * u)
    return side * (1 - 2 * small / (1 + small))


def _coth(u: sympy.Expr, side: int) -> sympy.Expr:
    return 1 / _tanh(u, side)


def _sinh(u: sympy.Expr, side: int) -> sympy.Expr:
    return (sympy.exp(u) - sympy.exp(-u)) / 2


def _cosh(u: sympy.Expr, side: int) -> sympy.Expr:
    return (sympy.exp(u) + sympy.exp(-u)) / 2


def _atan(u: sympy.Expr, side: int) -> sympy.Expr:
    return side * sympy.pi / 2 - sympy.atan(1 / u)


_AT_INFINITY: dict[Any, Callable[[sympy.Expr, int], sympy.Expr]] = {
    sympy.erf: _erf,
    sympy.erfc: _erfc,
    sympy.tanh: _tanh,
    sympy.coth: _coth,
    sympy.sinh: _sinh,
    sympy.cosh: _cosh,
    sympy.atan: _atan,
}


def rewrite_tails(expr: Any, tends_to: Callable[[Any], int]) -> Any:
    """Rewrite functions whose argument tends to oo or -oo into exponentials and functions that have a power series.

    Args:
        expr: the expression.
        tends_to: argument -> 1 or -1 if it tends to oo or -oo, else 0.
    """
    if not expr.args:
        return expr
    new = [rewrite_tails(arg, tends_to) for arg in expr.args]
    result = expr if all(a is b for a, b in zip(new, expr.args, strict=True)) else expr.func(*new)
    rule = _AT_INFINITY.get(result.func)
    side = tends_to(result.args[0]) if rule is not None else 0
    return rule(result.args[0], side) if rule is not None and side else result
