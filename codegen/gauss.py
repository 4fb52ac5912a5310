"""Gauss nodes and weights at many digits, and correctly rounded: the same literals on every machine, unlike LAPACK's."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import mpmath
import numpy as np

__all__ = ["gauss_hermite", "gauss_legendre", "legendre_rule"]

_DIGITS = 40
Rule = tuple[tuple[float, ...], tuple[float, ...]]


@lru_cache(maxsize=32)
def gauss_hermite(n: int) -> Rule:
    """Probabilists' nodes and weights, E f(Z) = sum w f(z) for polynomials up to degree 2n - 1.

    The weight is n!/(n He_{n-1}(z))^2, where n He_{n-1} = He_n'.
    """
    with mpmath.workdps(_DIGITS):
        factorial = mpmath.factorial(n)
        return _rounded(
            _gauss(
                np.polynomial.hermite_e.hermegauss(n)[0],
                lambda x: _last_two(n, x, lambda k, p, q: x * p - k * q),
                lambda x, p, q: n * q,
                lambda x, slope: factorial / slope**2,
            )
        )


@lru_cache(maxsize=32)
def gauss_legendre(n: int) -> Rule:
    """Nodes and weights on [-1, 1]."""
    with mpmath.workdps(_DIGITS):
        return _rounded(legendre_rule(n))


def legendre_rule(n: int) -> list[tuple[Any, Any]]:
    """Gauss-Legendre (node, weight) pairs at the working precision; the weight is 2/((1 - x^2) P_n'(x)^2)."""
    return _gauss(
        np.polynomial.legendre.leggauss(n)[0],
        lambda x: _last_two(n, x, lambda k, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)),
        lambda x, p, q: n * (q - x * p) / (1 - x * x),
        lambda x, slope: 2 / ((1 - x * x) * slope**2),
    )


def _gauss(guess, last_two, derivative, weight):  # type: ignore[no-untyped-def]
    """Newton from double precision on the right half; the left half by symmetry."""
    half = []
    for start in guess[len(guess) // 2 :]:
        x = mpmath.mpf(float(start))
        for _ in range(5):
            p, q = last_two(x)
            x -= p / derivative(x, p, q)
        if len(guess) % 2 and not half:
            x = mpmath.mpf(0)
        half.append((x, weight(x, derivative(x, *last_two(x)))))
    return [(-x, w) for x, w in reversed(half) if x != 0] + half


def _last_two(n, x, recurrence):  # type: ignore[no-untyped-def]
    """The orthogonal polynomials of degree n and n - 1 at x."""
    previous, current = mpmath.mpf(0), mpmath.mpf(1)
    for k in range(n):
        previous, current = current, recurrence(k, current, previous)
    return current, previous


def _rounded(rule: list[tuple[Any, Any]]) -> Rule:
    nodes, weights = zip(*((float(x), float(w)) for x, w in rule))
    return nodes, weights
