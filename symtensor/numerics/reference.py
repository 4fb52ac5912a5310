"""Weak Gaussian moments at many digits: mpmath, sharing no numerical code with the NumPy tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import mpmath

from symtensor.activation import Activation

__all__ = ["reference_moments"]

Number = float | int | str | Any


def reference_moments(
    activation: Activation,
    k11: Number,
    k12: Number,
    k22: Number,
    digits: int = 30,
    orders: Iterable[tuple[int, int]] = ((0, 0),),
) -> dict[tuple[int, int], Any]:
    """E[sigma^(i)(x) sigma^(j)(y)] to a number of digits, by nested quadrature that refines itself.

    Parameters
    ----------
    activation
        The function; for a kinked one, orders beyond the first derivative raise (their delta terms are not functions).
    k11, k12, k22
        Covariance of (x, y); floats are taken exactly, decimal strings at full precision.
    digits
        Decimal digits wanted.
    orders
        The (i, j) wanted.

    Returns
    -------
    dict
        (i, j) -> mpmath.mpf.

    Notes
    -----
    Smooth functions: trapezoid with the step halved until two results agree.  Kinked ones: Gauss-Legendre between the
    kinks.  Two independent nested integrals, so seconds rather than milliseconds.

    Examples
    --------
    >>> from symtensor.activation import activation
    >>> mpmath.nstr(reference_moments(activation("tanh"), 1, 1, 1)[0, 0], 12)
    '0.394294490398'
    """
    with mpmath.workdps(digits + 10):
        a, c, b = (mpmath.mpf(entry) for entry in (k11, k12, k22))
        l11 = mpmath.sqrt(a)
        l21 = c / l11 if l11 else mpmath.mpf(0)
        rest = b - l21 * l21
        # correlation +-1 up to the rounding of its entries is exactly singular
        l22 = mpmath.sqrt(rest) if rest > b * mpmath.mpf(10) ** (5 - digits) else mpmath.mpf(0)
        result = {}
        for i, j in orders:
            f, g = activation.mpmath_function(i), activation.mpmath_function(j)
            result[i, j] = _nested(activation, (l11, l21, l22), f, g, digits)
        return {order: +value for order, value in result.items()}


def _nested(activation: Activation, factor: Any, f: Callable, g: Callable, digits: int) -> Any:
    l11, l21, l22 = factor
    kinks = [mpmath.mpmathify(kink.evalf(mpmath.mp.dps)) for kink in activation.kinks]

    def inner(z1: Any) -> Any:
        center = l21 * z1
        if not l22:
            return g(center)
        return _expectation(lambda z2: g(center + l22 * z2), [(kink - center) / l22 for kink in kinks], digits)

    if not l11:
        return f(mpmath.mpf(0)) * inner(mpmath.mpf(0))
    if not l21:
        return _expectation(lambda z: f(l11 * z), [kink / l11 for kink in kinks], digits) * inner(mpmath.mpf(0))
    edges = [kink / l11 for kink in kinks] + [kink / l21 for kink in kinks]
    if kinks and l22:
        width = l22 / abs(l21)
        graded = [width * 4**power for power in range(40) if width * 4**power < 1]
        edges += [kink / l21 + sign * step for kink in kinks for step in graded for sign in (1, -1)]
    return _expectation(lambda z: f(l11 * z) * inner(z), edges, digits)


def _expectation(function: Callable, edges: list, digits: int) -> Any:
    """E function(Z), smooth between the edges."""
    radius = mpmath.sqrt(2 * (digits + 4) * mpmath.log(10)) + 1
    if not edges:
        return _trapezoid(function, radius, digits)
    inside = sorted({edge for edge in edges if abs(edge) < radius})
    points = sorted({-radius, *(mpmath.mpf(k) for k in range(-int(radius), int(radius) + 1)), radius, *inside})
    return mpmath.quad(lambda z: function(z) * mpmath.npdf(z), points, method="gauss-legendre")


def _trapezoid(function: Callable, radius: Any, digits: int) -> Any:
    def weighted(z: Any) -> Any:
        return function(z) * mpmath.npdf(z)

    step, count = radius / 16, 16
    total = mpmath.fsum(weighted(k * step) for k in range(-count, count + 1))
    scale = mpmath.fsum(abs(weighted(k * step)) for k in range(-count, count + 1)) * step
    previous = total * step
    for _ in range(8):
        # halving the step keeps every node: only the midpoints are new
        total += mpmath.fsum(weighted((k + mpmath.mpf(1) / 2) * step) for k in range(-count, count))
        step, count = step / 2, 2 * count
        value = total * step
        if abs(value - previous) <= scale * mpmath.mpf(10) ** (-digits):
            return value
        previous = value
    raise ArithmeticError(f"the reference quadrature did not settle to {digits} digits")
