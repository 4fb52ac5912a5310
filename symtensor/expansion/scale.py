"""Growth scales s^p (log 1/s)^q near a limit point: the group in which O-terms live."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sympy


class ScaleError(ValueError):
    """A growth rate outside the group of powers and powers of logarithms, such as 2**n."""


class LimitPointError(ValueError):
    """A missing, unusable or conflicting limit point."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The growth scale s^power * log(1/s)^log as the local parameter s tends to 0.

    s is ``x - x0`` at a finite limit point and ``1/x`` at ``oo`` and ``-oo``. Scales form a totally ordered group under
    multiplication, so products and comparisons of O-terms are decided, never guessed.

    Raises:
        ScaleError: an exponent that is not a real number (it could not be compared with another one).

    Example:
        >>> Scale(2).within(Scale(1)), Scale(1, 1).within(Scale(1))
        (True, False)
    """

    power: Any
    log: Any = 0

    def __post_init__(self) -> None:
        for name in ("power", "log"):
            value = sympy.sympify(getattr(self, name))
            if not (value.is_number and value.is_extended_real and value.is_finite):
                raise ScaleError(f"the {name} exponent {value} of a scale must be a real number; give it a value first")
            object.__setattr__(self, name, value)

    def __mul__(self, other: Scale) -> Scale:
        return Scale(self.power + other.power, self.log + other.log)

    def __pow__(self, exponent: Any) -> Scale:
        return Scale(self.power * exponent, self.log * exponent)

    def within(self, other: Scale) -> bool:
        """Whether this scale is O(other)."""
        if self.power == other.power:
            return bool(self.log <= other.log)
        return bool(self.power > other.power)

    @property
    def first_unknown(self) -> int:
        """The smallest integer k such that s^k is O(this scale): coefficients from k on are hidden by such an error."""
        k = int(sympy.ceiling(self.power))
        return k if Scale(k).within(self) else k + 1

    def expression(self, variable: sympy.Symbol, point: sympy.Expr) -> sympy.Expr:
        """The scale written in ``variable``, for display: (x - x0)^p log(x - x0)^q, or x^-p log(x)^q at infinity."""
        if point.is_infinite:
            positive = -variable if point == -sympy.oo else variable
            return variable**-self.power * sympy.log(positive) ** self.log
        return (variable - point) ** self.power * sympy.log(variable - point) ** self.log


def coarsest(scales: Iterable[Scale | None]) -> Scale | None:
    """The largest of the given errors; ``None`` stands for no error at all."""
    result: Scale | None = None
    for scale in scales:
        if scale is not None and (result is None or result.within(scale)):
            result = scale
    return result


def limit_point(point: Any) -> sympy.Expr:
    """Check a limit point: a finite value, ``oo`` or ``-oo``. It has no default, since O(n) at 0 and at oo differ."""
    if point is None:
        raise LimitPointError("no limit point given: write it out, for instance 0 for small x or oo for a large size n")
    value = sympy.sympify(point)
    if not isinstance(value, sympy.Expr) or value in (sympy.zoo, sympy.nan):
        raise LimitPointError(f"{value} is no limit point: give a finite value, oo or -oo")
    return value


def local_parameter(variable: sympy.Symbol, point: sympy.Expr) -> sympy.Expr:
    """The small parameter s of expansions at ``point``: x - x0, or 1/x at either infinity."""
    return 1 / variable if point.is_infinite else variable - point


def scale_of(expr: Any, variable: sympy.Symbol, point: Any) -> Scale:
    """The scale of ``expr`` as ``variable`` tends to ``point``; constant factors do not count.

    Raises:
        ScaleError: growth outside the group (2**n, exp(x), n!), naming the factor; or a zero expression.
    """
    point = limit_point(point)
    s = sympy.Dummy("s", positive=True)
    inner = {sympy.oo: 1 / s, -sympy.oo: -1 / s}.get(point, point + s)
    value = sympy.expand(sympy.sympify(expr).subs(variable, inner))
    if value == 0:
        raise ScaleError("0 is no growth scale: write the value 0 itself instead of O(0)")
    return _scale(value, s, f"{expr} as {variable} -> {point}")


def _scale(expr: Any, s: sympy.Dummy, context: str) -> Scale:
    if not expr.has(s):
        return Scale(0)
    if expr == s:
        return Scale(1)
    if isinstance(expr, sympy.Mul):
        result = Scale(0)
        for factor in expr.args:
            result = result * _scale(factor, s, context)
        return result
    if isinstance(expr, sympy.Add):
        return _dominant(expr, s, context)
    if isinstance(expr, sympy.Pow) and not expr.exp.has(s):
        base = expr.base
        if isinstance(base, sympy.Add) and not expr.exp.is_nonnegative:
            return _dominant(base, s, context, unique=True) ** expr.exp
        return _scale(base, s, context) ** expr.exp
    if isinstance(expr, sympy.Abs):
        return _scale(expr.args[0], s, context)
    if isinstance(expr, sympy.log) and _scale(expr.args[0], s, context).power != 0:
        return Scale(0, 1)
    raise ScaleError(
        f"the factor {expr.subs(s, sympy.Symbol('s'))} of {context} is outside the group s^p log(s)^q "
        f"(s is the distance to the limit point, 1/x at infinity); only powers and powers of logarithms can be compared"
    )


def _dominant(expr: Any, s: sympy.Dummy, context: str, unique: bool = False) -> Scale:
    scales = [_scale(term, s, context) for term in expr.args]
    result = coarsest(scales)
    assert result is not None
    if unique and scales.count(result) > 1:
        raise ScaleError(
            f"the sum {context} stands in a denominator and has no single dominant term; simplify it first"
        )
    return result
