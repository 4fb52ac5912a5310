"""Arithmetic of lazy series: sums, Cauchy products, powers, composition, each with its error bookkeeping.

An error is carried as the scale of an O-term and is never refined: the output is no finer than the input allows, and
equal-looking errors do not cancel (they are different unknowns).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy

from .coefficients import add as add_coefficients
from .coefficients import is_zero, product, structurally_zero, total
from .order_term import OrderDivisionError
from .scale import Scale, ScaleError, coarsest

if TYPE_CHECKING:
    from .series import Series

__all__ = [
    "UndecidedZeroWarning",
    "ZeroSeriesError",
    "add",
    "compose",
    "is_zero",
    "leading",
    "multiply",
    "power",
    "trimmed",
]


SEARCH = 64  # how many orders are searched for a leading term


class ZeroSeriesError(ValueError, ZeroDivisionError):
    """Division by a series that is zero as far as it was searched."""


class UndecidedZeroWarning(UserWarning):
    """A division assumed a coefficient to be nonzero because this could not be decided."""


def add(left: Series, right: Series) -> Series:
    """left + right."""
    stop = None if left.stop is None or right.stop is None else max(left.stop, right.stop)

    def rule(k: int) -> Any:
        return add_coefficients(left.coefficient(k), right.coefficient(k))

    return _combine(left, right, rule, coarsest((left.error, right.error)), min(left.start, right.start), stop)


def multiply(left: Series, right: Series) -> Series:
    """left * right, the Cauchy product; a factor is not evaluated where the other one is zero as written."""
    errors = [left.error and left.error * _size(right), right.error and right.error * _size(left)]
    stop = (
        None if left.stop is None or right.stop is None else max(left.stop + right.stop - 1, left.start + right.start)
    )

    def rule(k: int) -> Any:
        low = left.start if right.stop is None else max(left.start, k - right.stop + 1)
        high = k - right.start if left.stop is None else min(k - right.start, left.stop - 1)
        return total(_products(left, right, k, range(low, high + 1)), left.zero)

    return _combine(left, right, rule, coarsest(errors), left.start + right.start, stop)


def _products(left: Series, right: Series, k: int, orders: range) -> Any:
    for i in orders:
        a = left.coefficient(i)
        if not structurally_zero(a):
            b = right.coefficient(k - i)
            if not structurally_zero(b):
                yield product(a, b)


def _size(series: Series) -> Scale:
    """An upper bound of the series' own growth: its first possible term, or its error where that is larger."""
    size = coarsest((Scale(series.start), series.error))
    assert size is not None
    return size


def _combine(
    left: Series, right: Series, rule: Callable[[int], Any], error: Scale | None, start: int, stop: int | None
) -> Series:
    assumptions = left.assumptions | right.assumptions
    return replace(left, rule=rule, order=error, start=start, stop=stop, assumptions=assumptions)


def leading(series: Series) -> tuple[int, Any, frozenset[sympy.Expr]]:
    """The first nonzero order, its coefficient, and what had to be assumed nonzero.

    Raises:
        OrderDivisionError: all known coefficients vanish, so only an O-term is left.
        ZeroSeriesError: the series is zero as far as `SEARCH` orders reach, or its leading interval contains zero.
    """
    end = _search_end(series)
    for k in range(series.start, end):
        c = series.coefficient(k)
        verdict = is_zero(c)
        if verdict is False:
            return k, c, frozenset()
        if verdict is None:
            return k, c, _assume_nonzero(c, k)
    if end == series.known:
        raise OrderDivisionError(f"{series} has no known leading term: its inverse and its roots have no bound")
    raise ZeroSeriesError(f"the coefficients of orders {series.start} to {end - 1} are zero: no inverse, no root")


def _assume_nonzero(c: Any, k: int) -> frozenset[sympy.Expr]:
    if not isinstance(c, sympy.Expr) or isinstance(c, sympy.AccumBounds):
        raise ZeroSeriesError(f"the leading coefficient {c} of order {k} may be zero; tighten it before dividing")
    text = f"assumed {c} != 0 (leading coefficient, order {k}); substitute a value to decide"
    warnings.warn(text, UndecidedZeroWarning, stacklevel=5)
    return frozenset({c})


def power(series: Series, exponent: sympy.Expr) -> Series:
    """series**exponent. Nonnegative integers multiply; others need a leading coefficient.

    With series = c s^v (1 + u) the coefficients p_m of the power follow from J. C. P. Miller's recursion
    m c p_m = sum_{j=1}^m (a j - m + j) c_{v+j} p_{m-j}, a the exponent (Knuth, TAOCP 2, section 4.7).
    """
    if exponent.has(series.variable):
        raise ValueError(f"the exponent {exponent} contains the expansion variable; expand the whole power by series()")
    if exponent.is_Integer and exponent >= 0:
        return _natural_power(series, int(exponent))
    v, c, assumed = leading(series)
    start = v * exponent
    if not start.is_Integer:
        raise ScaleError(
            f"({series.scale})**({start}) is no integer power; choose a variable whose root is taken first"
        )
    error = None if series.error is None else series.error * Scale(v) ** (exponent - 1)
    found = [1 / c if exponent == -1 else c**exponent]

    def rule(k: int) -> Any:
        while len(found) <= k - start:
            found.append(_miller(series, exponent, v, c, found))
        return found[k - int(start)]

    stop = int(start) + 1 if series.stop == v + 1 and error is None else None  # a monomial stays one
    assumptions = series.assumptions | assumed
    return replace(series, rule=rule, order=error, start=int(start), stop=stop, assumptions=assumptions)


def _miller(series: Series, exponent: sympy.Expr, v: int, c: Any, found: list[Any]) -> Any:
    m = len(found)
    p, q = (int(exponent.p), int(exponent.q)) if isinstance(exponent, sympy.Rational) else (exponent, 1)
    # Nothing is computed beyond a polynomial's end: products with exact zeros would only slow the recursion down.
    last = m if series.stop is None else min(m, series.stop - 1 - v)
    terms = []
    for j in range(1, last + 1):
        b = series.coefficient(v + j)
        if not structurally_zero(b):
            terms.append(product(product(b, found[m - j]), p * j - q * (m - j)))
    if not terms:
        return series.zero
    return total(terms, series.zero) / (q * m) / c


def _natural_power(series: Series, n: int) -> Series:
    result, square = None, series
    while n:
        if n % 2:
            result = square if result is None else multiply(result, square)
        n //= 2
        if n:
            square = multiply(square, square)
    return series.lift(1) if result is None else result


def compose(outer: Series, inner: Series) -> Series:
    """outer(inner(x)); ``inner`` must tend to the outer expansion point.

    With h the outer local parameter along the inner series, h = O(s^v) with v >= 1, the coefficient of s^m needs only
    outer orders up to m/v. An inner error e gives f'(h) e, whose size is set by the first outer term that depends on h.
    """
    h = inner.inverse() if outer.point.is_infinite else inner - outer.point
    h = _strip(h)
    if not _size(h).power > 0:
        raise ValueError(f"the inner series {inner} does not tend to {outer.point}, where the outer series is expanded")
    if outer.start < 0 or (outer.error is not None and outer.error.power < 0):
        leading(h)  # negative powers of h are bounded only if its leading term is known
    powers: dict[int, Series] = {}

    def power_of_h(k: int) -> Series:
        if k not in powers:
            below = powers.get(k - 1)
            powers[k] = multiply(below, h) if below is not None and k > 1 else power(h, sympy.Integer(k))
        return powers[k]

    error = _composed_error(outer, h)
    v = h.start
    start = outer.start * v

    def rule(m: int) -> Any:
        last = m // v if outer.stop is None else min(m // v, outer.stop - 1)
        return total(_composed(outer, power_of_h, m, last), outer.zero)

    stop = None
    if outer.start >= 0 and h.stop is not None and h.stop <= h.start and h.error is None:
        stop = 1  # the inner series is constant
    elif outer.stop is not None and h.stop is not None and outer.start >= 0:
        stop = max((outer.stop - 1) * (h.stop - 1) + 1, 1)
    assumptions = outer.assumptions | h.assumptions
    return replace(inner, rule=rule, order=error, start=start, stop=stop, zero=outer.zero, assumptions=assumptions)


def _composed(outer: Series, power_of_h: Callable[[int], Series], m: int, last: int) -> Any:
    for k in range(outer.start, last + 1):
        f = outer.coefficient(k)
        if not structurally_zero(f):
            c = power_of_h(k).coefficient(m) if k else (sympy.S.One if m == 0 else sympy.S.Zero)
            if not structurally_zero(c):
                yield product(f, c)


def _composed_error(outer: Series, h: Series) -> Scale | None:
    size = _size(h)
    errors = [None if outer.error is None else size**outer.error.power * Scale(0, outer.error.log)]
    if h.error is not None:
        end = min(e for e in (outer.known, outer.stop, outer.start + SEARCH) if e is not None)
        active = (k for k in range(outer.start, end) if k and not structurally_zero(outer.coefficient(k)))
        k = next(active, None if end == outer.stop else end)
        errors.append(None if k is None else h.error * size ** (k - 1))
    return coarsest(errors)


def trimmed(series: Series) -> Series:
    """The series without its leading zero coefficients, as far as these are decided; a sharper bound of its size."""
    try:
        return _strip(series)
    except ZeroSeriesError:
        return series


def _strip(series: Series) -> Series:
    """Drop leading zero coefficients; a series without any nonzero known term starts at its error, or is zero."""
    end = _search_end(series)
    for k in range(series.start, end):
        if is_zero(series.coefficient(k)) is not True:
            return replace(series, rule=series.coefficient, start=k)
    if end == series.known:
        return replace(series, rule=series.coefficient, start=end)
    if end == series.stop:
        return replace(series, rule=series.coefficient, start=1, stop=1)
    raise ZeroSeriesError(f"no nonzero coefficient found among the orders {series.start} to {end - 1}")


def _search_end(series: Series) -> int:
    return min(e for e in (series.known, series.stop, series.start + SEARCH) if e is not None)
