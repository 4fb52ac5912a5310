r"""The sums of diagrams of the derivation, the same series without diagrams, and the integrals themselves."""

from __future__ import annotations

from functools import cache
from typing import Any

import mpmath
import sympy as sp

from symtensor.expansion import perturbative_moments
from symtensor.fields import DiagramSum, theory
from symtensor.fields.large_n import LargeNSum, VectorTheory, two_point

__all__ = [
    "LOOPS", "ORDER", "G", "X", "cubic_mean", "growth", "limit", "quartic_series", "quartic_two_point", "radial_mean_square",
    "total", "vector_theory", "vector_two_point",
]  # fmt: skip

#: loops of the sums of diagrams; order in 1/N
LOOPS, ORDER = 5, 2
G = sp.Symbol("g", real=True)
X = sp.Symbol("x", real=True)


@cache
def total(name: str, legs: str, kind: str = "connected", loops: int = LOOPS) -> DiagramSum:
    """A cumulant (connected) or vertex function (1pi) of ``phi3`` or ``phi4``."""
    chosen = theory(name)
    return chosen.cumulant(legs, loops) if kind == "connected" else chosen.vertex_function(legs, loops)


@cache
def vector_theory() -> VectorTheory:
    """N components with energy r phi.phi/2 + (u/(4 N)) (phi.phi)^2, temperature 1, m kept as a symbol."""
    return VectorTheory.read("r*rho/2 + u*rho^2/4")


@cache
def vector_two_point() -> LargeNSum:
    """<phi_1 phi_1> to second order in 1/N."""
    return two_point(vector_theory(), ORDER)


@cache
def quartic_series(order: int) -> tuple[Any, ...]:
    """The coefficients of g^0 .. g^order in <x^2> of the quartic theory, by Wick's theorem.

    >>> quartic_series(3)
    (1, -1/2, 2/3, -11/8)
    """
    series = perturbative_moments(-G * X**4 / 24, {X: 2}, {G: order}, {(X, X): 1})
    return tuple(sp.Rational(series[n]) for n in range(order + 1))


def growth(n: int) -> Any:
    r"""The leading growth of the coefficients of <x^2>: (-2/3)^n n! 2 sqrt(2)/pi.

    The integrand has complex saddle points at x^2 = -6/g with S = -3/(2 g). A dispersion relation in g, with the discontinuity
    given by them at one loop, yields Z_n = (-2/3)^n (n - 1)!/(sqrt(2) pi), and x^2 there multiplies it by 4 n.
    """
    return sp.Rational(-2, 3) ** n * sp.factorial(n) * 2 * sp.sqrt(2) / sp.pi


def limit(values: list[Any], start: int, degree: int = 5) -> Any:
    """Richardson extrapolation of values[k] = f(start + k) with f(n) = f_0 + f_1/n + .. to infinite n, from the last ones.

    >>> float(limit([3 + sp.Rational(1, n) for n in range(1, 10)], 1))
    3.0
    """
    last = len(values) - 1
    found = sp.S.Zero
    for k in range(degree + 1):
        n = start + last - degree + k
        weight = (-1) ** (degree - k) * sp.Rational(n**degree, sp.factorial(k) * sp.factorial(degree - k))
        found += weight * values[last - degree + k]
    return found


def quartic_two_point(g: float) -> float:
    """<x^2> with weight exp(-x^2/2 - g x^4/24), by quadrature."""
    return float(mpmath.re(_average(lambda x: x**2, lambda x: x**2 / 2 + g * x**4 / 24)))


def cubic_mean(g: float) -> float:
    """<x>/i with weight exp(-x^2/2 - i g x^3/6): an imaginary coupling, for which the integral exists."""
    return float(mpmath.im(_average(lambda x: x, lambda x: x**2 / 2 + mpmath.mpc(0, 1) * g * x**3 / 6)))


def _average(observable: Any, action: Any) -> Any:
    with mpmath.workdps(30):
        points = [-13, -6, -3, 0, 3, 6, 13]  # exp(-13^2/2) is below 10^-36
        above: Any = mpmath.quad(lambda x: observable(x) * mpmath.exp(-action(x)), points)
        return above / mpmath.quad(lambda x: mpmath.exp(-action(x)), points)


def radial_mean_square(number: int, r: float, u: float) -> Any:
    """<phi.phi>/N = <phi_1 phi_1> by the radial integral over rho = phi.phi/N, as an mpmath number with 25 digits.

    >>> round(float(radial_mean_square(3, 2.0, 1e-12)), 11)
    0.5
    """
    with mpmath.workdps(30):
        first, second = mpmath.mpf(r), mpmath.mpf(u)
        peak = (mpmath.sqrt(first**2 + 4 * second) - first) / (2 * second) if second > 1e-6 else 1 / first
        width = peak / mpmath.sqrt(number)
        points = sorted({max(peak + j * 4 * width, mpmath.mpf(0)) for j in (-3, -2, -1, 0, 1, 2, 3, 5, 8, 16)})

        def weight(rho: Any) -> Any:
            exponent = mpmath.log(rho / peak) - first * (rho - peak) - second * (rho**2 - peak**2) / 2
            return mpmath.exp(number * exponent / 2) / rho if rho > 0 else mpmath.mpf(0)

        above: Any = mpmath.quad(lambda rho: rho * weight(rho), points)
        return above / mpmath.quad(weight, points)
