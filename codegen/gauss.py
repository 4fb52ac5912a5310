"""Gauss nodes and weights, correctly rounded: the same literals on every machine, which LAPACK does not promise."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import mpmath
import numpy as np

__all__ = ["gauss_hermite", "gauss_legendre"]

_DIGITS = 40
_Recurrence = Callable[[int, object, object, object], object]


@lru_cache(maxsize=32)
def gauss_hermite(n: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Probabilists' nodes and weights, E f(Z) = sum w f(z) for polynomials up to degree 2n - 1.

    The weight is n!/(n He_{n-1}(z))^2 in terms of He_n' = n He_{n-1}.
    """
    guess = np.polynomial.hermite_e.hermegauss(n)[0]
    with mpmath.workdps(_DIGITS):
        factorial = mpmath.factorial(n)
        return _rule(guess, n, lambda k, x, p, q: x * p - k * q, lambda z, p, q: n * q, lambda z, d: factorial * n / d**2)


@lru_cache(maxsize=32)
def gauss_legendre(n: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Nodes and weights on [-1, 1]; the weight is 2/((1 - x^2) P_n'(x)^2)."""
    guess = np.polynomial.legendre.leggauss(n)[0]
    with mpmath.workdps(_DIGITS):
        return _rule(
            guess, n, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1),
            lambda z, p, q: n * (q - z * p) / (1 - z * z), lambda z, d: 2 / ((1 - z * z) * d**2),
        )  # fmt: skip


def _rule(guess, n, recurrence, derivative, weight):  # type: ignore[no-untyped-def]
    """Newton from double precision on the positive half; the other half by symmetry."""
    half = []
    for start in guess[n // 2 :]:
        z = mpmath.mpf(float(start))
        for _ in range(4):
            p, q = _last_two(n, z, recurrence)
            z = z - p / derivative(z, p, q)
        z = mpmath.mpf(0) if abs(z) < mpmath.mpf(10) ** -30 else z
        half.append((float(z), float(weight(z, derivative(z, *_last_two(n, z, recurrence))))))
    mirrored = [(-z, w) for z, w in reversed(half) if z != 0]
    nodes, weights = zip(*mirrored, *half)
    return nodes, weights


def _last_two(n, x, recurrence):  # type: ignore[no-untyped-def]
    """The polynomials of degree n and n - 1 at x."""
    previous, current = mpmath.mpf(0), mpmath.mpf(1)
    for k in range(n):
        previous, current = current, recurrence(k, x, current, previous)
    return current, previous
