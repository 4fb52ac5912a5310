"""Enclosures of a SymPy expression on a box, by interval arithmetic (mpmath) with subdivision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from itertools import product
from typing import Any

import mpmath
import sympy

iv: Any = mpmath.iv  # mpmath's interval context is built at run time and has no static types


class EnclosureError(ValueError):
    """An expression that interval arithmetic cannot enclose on the given box, naming the node."""


# Increasing on the whole real line: the image of an interval is spanned by the images of its ends.
_INCREASING: dict[Any, Callable[[Any], Any]] = {
    sympy.tanh: mpmath.tanh,
    sympy.erf: mpmath.erf,
    sympy.atan: mpmath.atan,
    sympy.sinh: mpmath.sinh,
    sympy.asinh: mpmath.asinh,
}
_DIRECT: dict[Any, Callable[[Any], Any]] = {sympy.exp: iv.exp, sympy.sin: iv.sin, sympy.cos: iv.cos}


def enclose(expr: Any, box: Mapping[sympy.Symbol, Any]) -> Any:
    """An mpmath interval that contains all values of ``expr`` on the box (symbol -> mpmath interval).

    Raises:
        EnclosureError: an unsupported function, a symbol without a range, division by an interval that contains 0.
    """
    if expr in box:
        return box[expr]
    if isinstance(expr, sympy.Rational):
        return iv.mpf(int(expr.p)) / int(expr.q)
    if expr.is_number and expr.is_real:
        return _widened(mpmath.mpf(expr.evalf(25)), mpmath.mpf(expr.evalf(25)))
    if isinstance(expr, sympy.Add | sympy.Mul):
        combine = (lambda a, b: a + b) if isinstance(expr, sympy.Add) else (lambda a, b: a * b)
        return reduce(combine, (enclose(arg, box) for arg in expr.args))
    if isinstance(expr, sympy.Pow):
        return _power(expr, box)
    return _function(expr, box)


def _function(expr: Any, box: Mapping[sympy.Symbol, Any]) -> Any:
    if not isinstance(expr, sympy.Function) or len(expr.args) != 1:
        raise EnclosureError(
            f"no interval rule for {expr}; ranges are given for {', '.join(map(str, box)) or 'no symbol'}"
        )
    x = enclose(expr.args[0], box)
    if expr.func in _DIRECT:
        return _DIRECT[expr.func](x)
    if expr.func in _INCREASING:
        f = _INCREASING[expr.func]
        return _widened(f(mpmath.mpf(x.a)), f(mpmath.mpf(x.b)))
    if isinstance(expr, sympy.cosh):
        return (iv.exp(x) + iv.exp(-x)) / 2
    if isinstance(expr, sympy.log) and x.a > 0:
        return iv.log(x)
    raise EnclosureError(f"no interval rule for {expr} with an argument in {x}")


def _power(expr: Any, box: Mapping[sympy.Symbol, Any]) -> Any:
    base, exponent = enclose(expr.base, box), expr.exp
    if isinstance(exponent, sympy.Integer):
        if exponent < 0 and 0 in base:
            raise EnclosureError(
                f"{expr} is unbounded: {expr.base} takes the value 0 on the box, or its enclosure {base} does"
            )
        return base ** int(exponent)
    if base.a <= 0:
        raise EnclosureError(f"{expr} needs a positive base, and {expr.base} is in {base}")
    return iv.exp(enclose(exponent, box) * iv.log(base))


def _widened(low: Any, high: Any) -> Any:
    """The interval [low, high] enlarged by more than the rounding error of the two ends."""
    slack = iv.mpf([-1, 1]) * mpmath.ldexp(1, 6 - iv.prec)
    ends = iv.mpf([low, high])
    return ends + slack * max(abs(low), abs(high))


def supremum(expr: sympy.Expr, box: Mapping[sympy.Symbol, tuple[Any, Any]], pieces: int = 64) -> float:
    """An upper bound of ``|expr|`` on the box, over ``pieces`` cells in all; more cells give a tighter bound."""
    return max(float(mpmath.mpf(abs(enclose(expr, cell)).b)) for cell in _cells(box, pieces))


def _cells(box: Mapping[sympy.Symbol, tuple[Any, Any]], pieces: int) -> Iterator[dict[sympy.Symbol, Any]]:
    per_axis = max(1, round(pieces ** (1 / max(1, len(box)))))
    axes = []
    for low, high in box.values():
        ends = _exact(low), _exact(high)
        steps = [ends[0] + (ends[1] - ends[0]) * i / per_axis for i in range(per_axis)] + [ends[1]]
        axes.append([iv.mpf([steps[i].a, steps[i + 1].b]) for i in range(per_axis)])
    for cell in product(*axes):
        yield dict(zip(box, cell, strict=True))


def _exact(value: Any) -> Any:
    """The interval of one number: floats as they are, SymPy numbers enclosed."""
    return iv.mpf(value) if isinstance(value, int | float) else enclose(sympy.sympify(value), {})
