r"""Weak Gaussian moments at 30 digits by Mehler's formula: an independent route to what the emitted code does.

With sigma(sqrt(k) z) = sum_p f_p he_p(z) in normalised Hermite polynomials, correlation rho and i + j derivatives,

    m_ij = k11^(-i/2) k22^(-j/2) sum_p rho^p sqrt((p+1)..(p+i)) f_{p+i} sqrt((p+1)..(p+j)) g_{p+j},

for smooth and kinked functions alike (a weak derivative only shifts the coefficients). Only integrals in one coordinate
are needed, and no Cholesky factor: nothing is shared with the emitted double sums. Singular pairs are one-dimensional.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np

from symtensor.activation import Activation
from symtensor.kernels import MomentKernel

from ..gauss import legendre_rule
from ..ir import Method

__all__ = ["oracle_moments"]

_PANEL_POINTS = 40
_MAX_TERMS, _MAX_RADIUS = 900, 120

Order = tuple[int, int]
_Nodes = list[tuple[Any, Any]]
_Total = Callable[[_Nodes], list[Any]]


def oracle_moments(kernel: MomentKernel, K: np.ndarray, method: Method, digits: int) -> dict[Order, np.ndarray]:
    """(i, j) -> P x P object array, at the working precision of the caller.

    Raises
    ------
    ArithmeticError
        A pair so nearly singular that the series does not settle.
    """
    size = len(K)
    line = _line(kernel.activation, digits, mpmath.mp.prec)
    orders = tuple(dict.fromkeys([*kernel.orders, *((j, i) for i, j in kernel.orders)]))
    tables = {order: np.empty((size, size), dtype=object) for order in orders}
    for a in range(size):
        for b in range(a, size):
            entry = _pair(line, (K[a, a], K[a, b], K[b, b]), orders, method)
            for i, j in orders:
                tables[i, j][a, b] = tables[j, i][b, a] = entry[i, j]
    return tables


def _pair(line: _Line, k: tuple[Any, Any, Any], orders: Sequence[Order], method: Method) -> dict[Order, Any]:
    k11, k12, k22 = k
    if k11 * k22 - k12 * k12 > mpmath.eps * 1000 * k11 * k22:
        return _mehler(line, k11, k12, k22, orders)
    s = mpmath.sqrt(k11)
    t = k12 / s if s else mpmath.sqrt(k22)
    if method in ("inside", "closed"):
        return _smooth_singular(line, s, t, orders)
    return _representative(line, k, s, t, orders)


def _smooth_singular(line: _Line, s: Any, t: Any, orders: Sequence[Order]) -> dict[Order, Any]:
    """E[sigma^(i)(s Z) sigma^(j)(t Z)] of a smooth function; s = 0 is no special case."""

    def products(z: Any) -> list[Any]:
        return [line.derivative(i, s * z) * line.derivative(j, t * z) for i, j in orders]

    return dict(zip(orders, line.integral(products, (s, t))))


def _representative(line: _Line, k: tuple[Any, Any, Any], s: Any, t: Any, orders: Sequence[Order]) -> dict[Order, Any]:
    """Derivatives within the range of a singular covariance, by parts in the one coordinate that is left."""
    k11, k12, k22 = k
    sigma = line.activation.mpmath_function()

    def products(z: Any) -> list[Any]:
        g = sigma(s * z) * sigma(t * z)
        return [g, g * (z * z - 1), g * (z**4 - 6 * z * z + 3)]

    c0, c2, c4 = line.integral(products, (s, t))
    values = {order: mpmath.mpf(0) for order in orders} | {(0, 0): c0}
    if k11 and k22:
        values |= {(1, 1): c2 / (2 * k12), (2, 2): c4 / (6 * k12**2)}
    elif k11:
        values |= {(2, 0): c2 / k11, (4, 0): c4 / k11**2}
    elif k22:
        values |= {(0, 2): c2 / k22, (0, 4): c4 / k22**2}
    return values


def _mehler(line: _Line, k11: Any, k12: Any, k22: Any, orders: Sequence[Order]) -> dict[Order, Any]:
    rho = k12 / mpmath.sqrt(k11 * k22)
    terms = 24 + (int((line.digits + 12) * mpmath.log(10) / -mpmath.log(abs(rho))) if rho else 0)
    if terms > _MAX_TERMS:
        raise ArithmeticError(f"correlation {mpmath.nstr(rho, 8)}: the reference series needs {terms} terms")
    f, g = line.coefficients(k11, terms + 8), line.coefficients(k22, terms + 8)

    def shifted(values: list[Any], p: int, order: int) -> Any:
        return mpmath.sqrt(mpmath.rf(p + 1, order)) * values[p + order]

    return {
        (i, j): mpmath.fsum(rho**p * shifted(f, p, i) * shifted(g, p, j) for p in range(terms))
        / (mpmath.sqrt(k11) ** i * mpmath.sqrt(k22) ** j)
        for i, j in orders
    }


@lru_cache(maxsize=16)
def _line(activation: Activation, digits: int, precision: int) -> _Line:
    """One per activation and working precision, so that values of the function are computed once."""
    return _Line(activation, digits)


class _Line:
    """Integrals against the normal density in one coordinate: trapezoid, or Gauss-Legendre between kinks."""

    def __init__(self, activation: Activation, digits: int) -> None:
        self.activation = activation
        self.digits = digits
        self.kinks = [mpmath.mpmathify(kink.evalf(mpmath.mp.dps + 5)) for kink in activation.kinks]
        self._coefficients: dict[str, list[Any]] = {}
        self._derivatives: dict[tuple[int, Any], Any] = {}
        self._functions: dict[int, Callable[[Any], Any]] = {}

    def derivative(self, k: int, x: Any) -> Any:
        """sigma^(k)(x), remembered: pairs that share a variance share the places."""
        found = self._derivatives.get((k, x))
        if found is None:
            if k not in self._functions:
                self._functions[k] = self.activation.mpmath_function(k)
            found = self._derivatives[k, x] = self._functions[k](x)
        return found

    def integral(self, function: Callable[[Any], list[Any]], scales: Sequence[Any]) -> list[Any]:
        """E of each component of function(Z), built from functions of `scale * Z`; refined until it settles."""

        def total(nodes: _Nodes) -> list[Any]:
            rows = [[w * value for value in function(z)] for z, w in nodes]
            return [mpmath.fsum(column) for column in zip(*rows)]

        return self._settled(total, lambda z: max(map(abs, function(z))), scales, 0)

    def coefficients(self, variance: Any, count: int) -> list[Any]:
        """f_p = E[sigma(sqrt(k) Z) he_p(Z)], p < count."""
        key = f"{variance} {count}"
        if key not in self._coefficients:
            sigma, scale = self.activation.mpmath_function(), mpmath.sqrt(variance)
            self._coefficients[key] = self._settled(
                lambda nodes: _projections([(z, w * sigma(scale * z)) for z, w in nodes], count),
                lambda z: abs(sigma(scale * z)), (scale,), count,
            )  # fmt: skip
        return self._coefficients[key]

    def _settled(self, total: _Total, size: Callable[[Any], Any], scales: Sequence[Any], count: int) -> list[Any]:
        """`total` of the nodes; the trapezoid is halved, which keeps every node, until nothing moves."""
        radius = self._radius(size, count)
        edges = [kink / scale for kink in self.kinks for scale in scales if scale]
        if edges:
            return total(_panels(edges, radius))
        # the error of the trapezoid is exponential in 1/step: halving the step squares it
        limit = mpmath.mpf(10) ** (-(self.digits + 6) * 2 // 3)
        value = total(_trapezoid(radius, 0, mpmath.mp.prec))
        for level in range(1, 7):
            previous, new = value, total(_trapezoid(radius, level, mpmath.mp.prec))
            value = [x / 2 + y for x, y in zip(previous, new)]
            if all(abs(x - y) <= limit * (1 + abs(y)) for x, y in zip(previous, value)):
                return value
        raise ArithmeticError(f"{self.activation.name}: the reference quadrature did not settle to {self.digits} digits")

    def _radius(self, size: Callable[[Any], Any], count: int) -> Any:
        """Where function times density (times the Hermite polynomials, which add a factor exp(z^2/4)) is negligible."""
        radius = mpmath.mpf(12) if count == 0 else mpmath.mpf(18)
        rate = 2 if count == 0 else 4
        floor = mpmath.mpf(10) ** -(self.digits + 6)
        while max(size(radius), size(-radius)) * mpmath.exp(-radius * radius / rate) > floor:
            radius += 2
            if radius > _MAX_RADIUS:
                raise ArithmeticError(f"{self.activation.name}: no Gaussian expectation within {_MAX_RADIUS} standard deviations")
        return radius


def _projections(weighted: _Nodes, count: int) -> list[Any]:
    """Sums over nodes of value times he_p(z), by the recurrence sqrt(p+1) he_{p+1} = z he_p - sqrt(p) he_{p-1}.

    In fixed point, because value times he_p is bounded (the weight is in the value) and integers are ten times faster;
    he_p grows by at most exp(z^2/4), which is what the rounding of a small value is amplified by.
    """
    largest = max(abs(float(z)) for z, _ in weighted)
    bits = mpmath.mp.prec + 20 + int(largest**2 / 4 * 1.45)
    roots = [int(mpmath.floor(mpmath.ldexp(mpmath.sqrt(p), bits))) for p in range(count + 1)]
    inverse = [0, *(int(mpmath.floor(mpmath.ldexp(1 / mpmath.sqrt(p), bits))) for p in range(1, count + 1))]
    totals = [0] * count
    for z, value in weighted:
        place, previous, current = int(mpmath.ldexp(z, bits)), 0, int(mpmath.ldexp(value, bits))
        for p in range(count):
            totals[p] += current
            step = (place * current - roots[p] * previous) >> bits
            previous, current = current, (step * inverse[p + 1]) >> bits
    return [mpmath.ldexp(mpmath.mpf(total), -bits) for total in totals]


@lru_cache(maxsize=32)
def _trapezoid(radius: Any, level: int, precision: int) -> _Nodes:
    """Nodes and weights; from level 1 on only the nodes that halving the step adds. `precision` is part of the key."""
    count = 64 * 2**level
    step = radius / count
    return [(k * step, step * mpmath.npdf(k * step)) for k in range(-count, count + 1) if level == 0 or k % 2]


def _panels(edges: Sequence[Any], radius: Any) -> _Nodes:
    whole = [mpmath.mpf(k) for k in range(-int(radius), int(radius) + 1)]
    places = sorted({-radius, radius, *whole, *(edge for edge in edges if abs(edge) < radius)})
    rule = legendre_rule(_PANEL_POINTS)
    nodes = []
    for left, right in pairwise(places):
        half = (right - left) / 2
        nodes += [(left + half * (1 + x), half * w * mpmath.npdf(left + half * (1 + x))) for x, w in rule]
    return nodes
