"""Numbers and convolutions of exponential sums."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mpmath
import sympy as sp

if TYPE_CHECKING:
    from symtensor.fields.exponential_sum import Energy, ExponentialSum, Key

__all__ = ["convolution", "evaluate"]

#: extra digits after which a sum that still cancels is taken as zero
MOST_DIGITS = 2000


def evaluate(summed: ExponentialSum, times: Sequence[Any], values: Mapping[Any, Any], digits: int) -> Any:
    """See `ExponentialSum.evaluate`; the working precision grows until the terms that cancel leave enough digits."""
    bound = {sp.Symbol(key) if isinstance(key, str) else key: value for key, value in values.items()}
    names = {symbol.name: value for symbol, value in ((s, v) for s, v in bound.items() if isinstance(s, sp.Symbol))}
    given = [s for s in _symbols(summed) if s in bound or s.name in names]
    parameters = {s: sp.sympify(bound.get(s, names.get(s.name)), strict=True) for s in given}
    missing = sorted(s.name for s in _symbols(summed) if s not in parameters)
    if missing:
        raise ValueError(f"no value given for {', '.join(missing)}; values= needs one for every parameter")
    working = digits + 10
    while True:
        with mpmath.workdps(working):
            parts = list(_parts(summed, [_number(t, working) for t in times], parameters, working))
            total = mpmath.fsum(parts)
            size = max((abs(part) for part in parts), default=mpmath.mpf(0))
            lost = 0 if size == 0 else working if total == 0 else float(mpmath.log10(size / abs(total)))
        if working - lost >= digits + 5 or working > MOST_DIGITS:
            with mpmath.workdps(digits):
                return +total
        working = 2 * working if total == 0 else int(digits + 10 + lost + 5)


def _symbols(summed: ExponentialSum) -> list[Any]:
    found: set[Any] = {s for expression in (*summed.rates, *summed.terms.values()) for s in expression.free_symbols}
    return sorted(found, key=lambda s: s.name)


def _number(value: Any, digits: int) -> Any:
    """An mpmath number; mpmath numbers are taken as they are."""
    if isinstance(value, (mpmath.mpf, mpmath.mpc)):
        return value
    number = sp.sympify(value, strict=True).evalf(digits)
    if not number.is_number or number.has(sp.zoo, sp.nan):
        raise ValueError(f"{value} has no finite value here; finite numbers are required")
    return mpmath.mpmathify(number)


def _parts(summed: ExponentialSum, times: Sequence[Any], parameters: Mapping[Any, Any], digits: int) -> Iterator[Any]:
    rates = [_number(rate.xreplace(parameters), digits) for rate in summed.rates]
    for key, coefficient in summed.terms.items():
        at = coefficient.xreplace(parameters)
        if at.has(sp.zoo, sp.nan, sp.oo):
            raise ValueError(
                f"the coefficient {coefficient} has a pole at the given values: energies that were taken as different are equal "
                "there; put the values in before the time integral is done"
            )
        part = _number(at, digits)
        for t, (energy, power) in zip(times, key):
            part *= t**power * mpmath.exp(-mpmath.fsum(n * rate for n, rate in zip(energy, rates)) * t)
        yield part


def convolution(left: ExponentialSum, right: ExponentialSum) -> Iterator[tuple[Key, sp.Expr]]:
    """Terms of int_0^t ds f(t - s) g(s) for two sums in one window over the same rates.

    Equal energies: p! q! / (p+q+1)! t^(p+q+1) exp(-E t). Otherwise the partial fractions of
    p! q! / ((s + E)^(p+1) (s + F)^(q+1)).
    """
    for ((e, p),), c in left.terms.items():
        for ((f, q),), d in right.terms.items():
            scale = c * d * math.factorial(p) * math.factorial(q)
            if e == f:
                yield ((e, p + q + 1),), scale / math.factorial(p + q + 1)
                continue
            gap = left.energy(tuple(b - a for a, b in zip(e, f)))
            yield from _half(e, p, q, scale, gap)
            yield from _half(f, q, p, scale, -gap)


def _half(energy: Energy, p: int, q: int, scale: sp.Expr, gap: sp.Expr) -> Iterator[tuple[Key, sp.Expr]]:
    """Principal part of 1 / ((s + E)^(p+1) (s + E + gap)^(q+1)) at s = -E, as terms in time."""
    for j in range(p + 1):
        taylor = (-1) ** j * math.comb(q + j, j) * gap ** (-q - 1 - j)
        yield ((energy, p - j),), scale * taylor / math.factorial(p - j)
