"""Floating-point rates as exact numbers that keep the relations between them.

Eigenvalues that are equal, or one the sum of two others, differ by rounding when they are computed. Taken as different they
would give coefficients of the size 1/(rounding) that cancel; with the relation made exact they give powers of time.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import sympy as sp

__all__ = ["aligned", "simplest_rational"]


def aligned(rates: Iterable[sp.Expr]) -> dict[sp.Expr, sp.Expr]:
    """Exact values of the rates that are numbers with floating-point parts.

    Every such rate is expressed by those before it (exact rates first), if a relation with small integers holds to 3/4 of
    its digits. What is changed is less than that.

    >>> third, half = sp.Float(1) / 3, sp.sqrt(2).evalf() / 2
    >>> aligned([half, third, half + third, half * (1 + 1e-15)])[half + third] == sum(aligned([half, third]).values())
    True
    """
    numbers = [rate for rate in rates if rate.is_number and rate != 0]
    inexact = [rate for rate in numbers if rate.has(sp.Float)]
    found: dict[sp.Expr, sp.Expr] = {}
    basis = [rate for rate in numbers if rate not in inexact] if inexact else []
    for rate in inexact:
        expressed = _by_relation(rate, basis)
        found[rate] = _exact(rate) if expressed is None else expressed
        if expressed is None:
            basis.append(found[rate])
    return found


def _exact(rate: sp.Expr) -> Any:
    return rate.xreplace({number: simplest_rational(number) for number in rate.atoms(sp.Float)})


def _by_relation(rate: sp.Expr, basis: Sequence[sp.Expr]) -> sp.Expr | None:
    """The rate as a combination of the basis with small rational coefficients, or None."""
    if not basis:
        return None
    digits = min(int(number._prec) for number in rate.atoms(sp.Float)) * math.log10(2)
    # small enough that combinations of unrelated rates do not come near zero by chance
    largest = max(2, int(10 ** (0.3 * digits / (len(basis) + 1)) / 2))
    with mpmath.workdps(int(digits) + 15):
        mix = mpmath.mpf(random.Random(0).getrandbits(200)) / 2**200
        numbers: list[Any] = [mpmath.mpmathify(sp.N(value, int(digits) + 15)) for value in (rate, *basis)]
        size = max(abs(number) for number in numbers)
        projected = [(mpmath.re(number) + mix * mpmath.im(number)) / size for number in numbers]
        if min(map(abs, projected)) < mpmath.mpf(10) ** (-digits / 2):
            return None
        relation: Any = mpmath.pslq(projected, tol=mpmath.mpf(10) ** (-0.75 * digits), maxcoeff=largest, maxsteps=10**4)
    if relation is None or not relation[0]:
        return None
    return sp.Add(*(sp.Rational(-n, relation[0]) * value for n, value in zip(relation[1:], basis)))


def simplest_rational(number: sp.Float) -> Any:
    """The rational with the smallest denominator within 4 units in the last place of a floating-point number.

    >>> simplest_rational(sp.Float(0.1) + sp.Float(0.2))
    3/10
    """
    if not number.is_finite or number == 0:
        return number if not number.is_finite else sp.Integer(0)
    exact = Fraction(*map(int, sp.Rational(number).as_numer_denom()))
    width = abs(exact) * Fraction(8, 2 ** int(number._prec))
    found = _simplest_between(abs(exact) - width, abs(exact) + width)
    return sp.Rational(found.numerator, found.denominator) * (1 if exact > 0 else -1)


def _simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """Rational of smallest denominator in [low, high], 0 < low < high, by continued fractions."""
    whole = math.ceil(low)
    if whole <= high:
        return Fraction(whole)
    floor = math.floor(low)
    return floor + 1 / _simplest_between(1 / (high - floor), 1 / (low - floor))
