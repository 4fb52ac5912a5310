"""Power series of graph nodes in one variable, numerically in 60 digits: where a quotient or a sum is 0/0 or cancels.

A series is (valuation, coefficients): t**valuation * (c0 + c1 t + ..), a fixed number of coefficients, c0 != 0 unless the
series is zero to this order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import sympy as sp
from mpmath.libmp import NoConvergence

from ..graph import Node, postorder

__all__ = ["DIGITS", "NoSeries", "Series", "exact_number", "series_of"]

DIGITS = 60
#: what is smaller than the terms it is made of by this factor is a rounding error of zero
_NOTHING = mpmath.mpf(10) ** -40


class NoSeries(ValueError):
    """A node has no power series here, or none that is known."""


@dataclass(frozen=True, slots=True)
class Series:
    """t**valuation * sum_k coefficients[k] t**k."""

    valuation: int
    coefficients: tuple[Any, ...]

    @property
    def is_zero(self) -> bool:
        """Whether nothing is left to this order."""
        return not any(self.coefficients)


def _normal(valuation: int, coefficients: Sequence[Any], size: int) -> Series:
    skipped = next((place for place, value in enumerate(coefficients) if value != 0), len(coefficients))
    if skipped == len(coefficients):
        return Series(0, (mpmath.mpf(0),) * size)
    kept = coefficients[skipped : skipped + size]
    return Series(valuation + skipped, tuple(kept) + (mpmath.mpf(0),) * (size - len(kept)))


def series_of(roots: Sequence[Node], atom: Node, center: Any, size: int) -> list[Series]:
    """Series of nodes around atom = center + t.

    Raises
    ------
    NoSeries
        A node that depends on something else than the atom, or is not known to be analytic there.
    """
    found: dict[int, Series] = {atom.index: _normal(0, [mpmath.mpf(center), mpmath.mpf(1)], size)}
    with mpmath.workdps(DIGITS):
        for node in postorder(roots):
            if node.index not in found:
                below = [found[argument.index] for argument in node.args if argument.index in found]
                if len(below) < len(node.args):
                    continue  # below the atom, or without a series
                try:
                    found[node.index] = _combined(node, below, size)
                except (NoSeries, ZeroDivisionError, ValueError, NoConvergence):
                    continue
        if any(root.index not in found for root in roots):
            raise NoSeries("no power series")
    return [found[root.index] for root in roots]


def _combined(node: Node, below: list[Series], size: int) -> Series:
    match node.op:
        case "const":
            return _normal(0, [mpmath.mpf(sp.N(node.value, DIGITS)._to_mpmath(mpmath.mp.prec))], size)  # pyright: ignore
        case "add":
            return _sum(below, size)
        case "mul":
            total = below[0]
            for factor in below[1:]:
                total = _product(total, factor, size)
            return total
        case "pow":
            return _power(below[0], int(node.value), size)  # type: ignore[call-overload]
        case "call" if len(below) == 1:
            return _composed(str(node.value), below[0], size)
    raise NoSeries(node.op)


def _sum(parts: Sequence[Series], size: int) -> Series:
    live = [part for part in parts if not part.is_zero]
    if not live:
        return _normal(0, [mpmath.mpf(0)], size)
    least = min(part.valuation for part in live)
    # terms of high order are known to fewer places, relative to the lowest one
    known = min(part.valuation - least + size for part in live)
    columns: list[list[Any]] = [[] for _ in range(min(known, size))]
    for part in live:
        for place, value in enumerate(part.coefficients):
            at = place + part.valuation - least
            if at < len(columns):
                columns[at].append(value)
    return _normal(least, [_total(column) for column in columns], size)


def _total(terms: Sequence[Any]) -> Any:
    """The sum, zero if it is a rounding error of its terms: coefficients of different order are not compared."""
    value = mpmath.fsum(terms)
    return mpmath.mpf(0) if abs(value) <= _NOTHING * max(map(abs, terms), default=mpmath.mpf(0)) else value


def _product(left: Series, right: Series, size: int) -> Series:
    totals = [
        _total([left.coefficients[k] * right.coefficients[place - k] for k in range(place + 1)]) for place in range(size)
    ]
    return _normal(left.valuation + right.valuation, totals, size)


def _power(base: Series, exponent: int, size: int) -> Series:
    if exponent < 0:
        base, exponent = _reciprocal(base, size), -exponent
    total = base
    for _ in range(exponent - 1):
        total = _product(total, base, size)
    return total


def _reciprocal(base: Series, size: int) -> Series:
    if base.is_zero:
        raise NoSeries("division by a zero series")
    first, result = base.coefficients[0], [1 / base.coefficients[0]]
    for place in range(1, size):
        result.append(-mpmath.fsum(base.coefficients[k] * result[place - k] for k in range(1, place + 1)) / first)
    return Series(-base.valuation, tuple(result))


def _composed(name: str, argument: Series, size: int) -> Series:
    """f of a series, by the differential equation of f (Griewank & Walther, Evaluating Derivatives, section 13.2)."""
    if argument.valuation < 0:
        raise NoSeries("a pole inside a function")
    zeros = (mpmath.mpf(0),) * min(argument.valuation, size)
    s = [*zeros, *argument.coefficients][:size]
    rule = _FUNCTIONS.get(name)
    if rule is None or not _REGULAR.get(name, lambda center: True)(s[0]):
        raise NoSeries(f"{name} at {s[0]}")
    first, *rest = rule(s)
    return _normal(0, [mpmath.mpf(0) if abs(first) <= _NOTHING else first, *rest], size)  # sin(pi + t)


_List = list[Any]


def _times(left: _List, right: _List) -> _List:
    return [mpmath.fsum(left[k] * right[place - k] for k in range(place + 1)) for place in range(len(left))]


def _over(left: _List, right: _List) -> _List:
    result: _List = []
    for place in range(len(left)):
        known = mpmath.fsum(right[k] * result[place - k] for k in range(1, place + 1))
        result.append((left[place] - known) / right[0])
    return result


def _slope(s: _List) -> _List:
    """The derivative; the place that is lost is filled with a 0 that integration drops again."""
    return [*(place * value for place, value in enumerate(s) if place), mpmath.mpf(0)]


def _integral(first: Any, slope: _List) -> _List:
    return [first, *(value / place for place, value in enumerate(slope[:-1], start=1))]


def _plus(s: _List, constant: Any, factor: Any = 1) -> _List:
    return [factor * s[0] + constant, *(factor * value for value in s[1:])]


def _exp(s: _List) -> _List:
    result = [mpmath.exp(s[0])]
    for place in range(1, len(s)):
        result.append(mpmath.fsum(k * s[k] * result[place - k] for k in range(1, place + 1)) / place)
    return result


def _log(s: _List) -> _List:
    return _integral(mpmath.log(s[0]), _over(_slope(s), s))


def _sqrt(s: _List) -> _List:
    result = [mpmath.sqrt(s[0])]
    for place in range(1, len(s)):
        known = mpmath.fsum(result[k] * result[place - k] for k in range(1, place))
        result.append((s[place] - known) / (2 * result[0]))
    return result


def _sin_cos(s: _List) -> tuple[_List, _List]:
    sine, cosine = [mpmath.sin(s[0])], [mpmath.cos(s[0])]
    for place in range(1, len(s)):
        weights = [k * s[k] / place for k in range(1, place + 1)]
        next_sine = mpmath.fsum(weight * cosine[place - k] for k, weight in enumerate(weights, start=1))
        next_cosine = -mpmath.fsum(weight * sine[place - k] for k, weight in enumerate(weights, start=1))
        sine.append(next_sine)
        cosine.append(next_cosine)
    return sine, cosine


def _hyperbolic(s: _List, sign: int) -> _List:
    up, down = _exp(s), _exp(_plus(s, 0, -1))
    return [(one + sign * other) / 2 for one, other in zip(up, down)]


def _tanh(s: _List) -> _List:
    return _over(_hyperbolic(s, -1), _hyperbolic(s, 1))


def _inverse(first: Any, s: _List, denominator: _List) -> _List:
    return _integral(first, _over(_slope(s), denominator))


def _erf(s: _List) -> _List:
    density = _exp(_plus(_times(s, s), 0, -1))
    return _integral(mpmath.erf(s[0]), [2 / mpmath.sqrt(mpmath.pi) * value for value in _times(_slope(s), density)])


def _sigmoid(s: _List) -> _List:
    one = [mpmath.mpf(1)] + [mpmath.mpf(0)] * (len(s) - 1)
    return _over(one, _plus(_exp(_plus(s, 0, -1)), 1))


_FUNCTIONS: dict[str, Callable[[_List], _List]] = {
    "exp": _exp,
    "expm1": lambda s: _plus(_exp(s), -1),
    "log": _log,
    "log1p": lambda s: _log(_plus(s, 1)),
    "sqrt": _sqrt,
    "sin": lambda s: _sin_cos(s)[0],
    "cos": lambda s: _sin_cos(s)[1],
    "tan": lambda s: _over(*_sin_cos(s)),
    "sinh": lambda s: _hyperbolic(s, -1),
    "cosh": lambda s: _hyperbolic(s, 1),
    "tanh": _tanh,
    "sech2": lambda s: _plus(_times(_tanh(s), _tanh(s)), 1, -1),
    "atan": lambda s: _inverse(mpmath.atan(s[0]), s, _plus(_times(s, s), 1)),
    "asinh": lambda s: _inverse(mpmath.asinh(s[0]), s, _sqrt(_plus(_times(s, s), 1))),
    "asin": lambda s: _inverse(mpmath.asin(s[0]), s, _sqrt(_plus(_times(s, s), 1, -1))),
    "acos": lambda s: _inverse(mpmath.acos(s[0]), s, _plus(_sqrt(_plus(_times(s, s), 1, -1)), 0, -1)),
    "erf": _erf,
    "erfc": lambda s: _plus(_erf(s), 1, -1),
    "sigmoid": _sigmoid,
    "softplus": lambda s: _log(_plus(_exp(s), 1)),
}
#: where the constant term of the argument has to be
_REGULAR: dict[str, Callable[[Any], bool]] = {
    "log": lambda center: center > 0,
    "sqrt": lambda center: center > 0,
    "log1p": lambda center: center > -1,
    "asin": lambda center: abs(center) < 1,
    "acos": lambda center: abs(center) < 1,
    "tan": lambda center: abs(center) < 1.5,
}


def exact_number(value: Any) -> sp.Expr:
    """The rational number that a 60-digit coefficient is, if there is one with a short denominator, else its 40 digits."""
    with mpmath.workdps(DIGITS):
        plain = Fraction(str(mpmath.nstr(value, DIGITS, min_fixed=-mpmath.inf, max_fixed=mpmath.inf)))
        near = plain.limit_denominator(10**20)
        if abs(near - plain) <= Fraction(1, 10**45) * max(abs(plain), Fraction(1, 10**25)):
            return sp.Rational(near.numerator, near.denominator)
        return sp.Rational(plain.numerator, plain.denominator)


def evaluate(roots: Sequence[Node], values: Mapping[int, Any]) -> list[Any]:
    """Values of nodes in mpmath, given those of the atoms by index."""
    from ..printers.mpmath import namespace

    functions, found = namespace(), dict(values)
    for node in postorder(roots):
        if node.index in found or any(argument.index not in found for argument in node.args):
            continue
        args = [found[argument.index] for argument in node.args]
        match node.op:
            case "const":
                found[node.index] = mpmath.mpf(sp.N(node.value, mpmath.mp.dps)._to_mpmath(mpmath.mp.prec))  # pyright: ignore
            case "add":
                found[node.index] = mpmath.fsum(args)
            case "mul":
                found[node.index] = mpmath.fprod(args)
            case "pow":
                found[node.index] = args[0] ** int(node.value)  # type: ignore[call-overload]
            case "call":
                found[node.index] = functions[f"f_{node.value}"](*args)
    return [found[root.index] for root in roots]
