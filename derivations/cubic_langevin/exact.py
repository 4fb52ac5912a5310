r"""Functions of time by routes that are exact up to rounding: the spectrum of the Fokker-Planck operator, and resummed functions.

With the stationary density p = psi_0^2, the Fokker-Planck operator of dx = -U'(x) dt + sqrt(2 T) dW is similar to

    H = -T d^2/dx^2 + U'(x)^2/(4 T) - U''(x)/2,   H psi_0 = 0,

and C(t) = sum_n <0|x|n>^2 exp(-lambda_n t), R(t) = -C'(t)/T (Risken, The Fokker-Planck Equation, section 5.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

__all__ = ["Spectrum", "quartic_spectrum", "transformed"]

Array = NDArray[np.float64]
#: points of the grid on which H is diagonalised; its error is measured with three quarters of them in a smaller box
POINTS = 240


@dataclass(frozen=True, slots=True)
class Spectrum:
    """C(t) = sum_n weights[n] exp(-rates[n] t); `error` is the largest change of C with the coarser, smaller grid, over C(0)."""

    rates: Array
    weights: Array
    temperature: float
    error: float = 0.0

    def correlation(self, t: Any) -> Array:
        """C(t)."""
        return np.exp(-np.multiply.outer(np.asarray(t, float), self.rates)) @ self.weights

    def response(self, t: Any) -> Array:
        """R(t) = -C'(t)/T."""
        return np.exp(-np.multiply.outer(np.asarray(t, float), self.rates)) @ (self.rates * self.weights) / self.temperature


def quartic_spectrum(g: float, temperature: float, times: Any) -> Spectrum:
    """The spectrum for U = x^2/2 + g x^4/4, resolved so that `error` at `times` is near rounding.

    >>> spectrum = quartic_spectrum(1e-9, 0.5, [0.0, 1.0])
    >>> bool(abs(spectrum.correlation(1.0) - 0.5 * np.exp(-1.0)) < 1e-8)
    True
    """
    end = _end(g, temperature)
    fine, coarse = _diagonalised(g, temperature, end, POINTS), _diagonalised(g, temperature, 0.95 * end, 3 * POINTS // 4)
    values = fine.correlation(times)
    error = float(np.max(np.abs(values - coarse.correlation(times))) / fine.correlation(0.0))
    return Spectrum(fine.rates, fine.weights, temperature, error)


def _diagonalised(g: float, temperature: float, end: float, points: int) -> Spectrum:
    """H on equally spaced points, with the kinetic energy of functions that are band limited there."""
    x = np.linspace(-end, end, points)
    spacing = x[1] - x[0]
    apart = np.subtract.outer(np.arange(points), np.arange(points))
    with np.errstate(divide="ignore"):
        kinetic = np.where(apart == 0, np.pi**2 / 3, 2.0 * (-1.0) ** apart / apart.astype(float) ** 2) / spacing**2
    force, stiffness = x + g * x**3, 1 + 3 * g * x**2
    rates, states = np.linalg.eigh(temperature * kinetic + np.diag(force**2 / (4 * temperature) - stiffness / 2))
    kept = rates - rates[0] < 1e3  # faster modes have no weight
    overlaps = (states[:, 0] * x) @ states[:, kept]
    weights = overlaps**2
    weights[0] = 0.0  # <x> = 0
    return Spectrum(rates[kept] - rates[0], weights, temperature)


def _end(g: float, temperature: float) -> float:
    """Where U/(2 T) = 36, so that psi_0 is below rounding."""
    level = 72 * temperature
    return float(np.sqrt(4 * level / (1 + np.sqrt(1 + 4 * g * level))))


def transformed(spectrum: sp.Expr, omega: sp.Symbol, values: Mapping[sp.Symbol, Any], times: Any) -> Array:
    """int d omega/(2 pi) exp(-i omega t) F(omega), t > 0, of a rational F with simple poles, as the sum of its residues.

    With s = -i omega it is the sum over the poles with Re s < 0 of Res F exp(s t).

    >>> w = sp.Symbol("w")
    >>> bool(np.isclose(transformed(1 / (2 - sp.I * w), w, {}, 1.0), np.exp(-2.0)))
    True
    """
    s = sp.Dummy("s")
    exact: Any = {symbol: sp.Rational(str(value)) for symbol, value in values.items()}
    above, below = (sp.Poly(part, s) for part in sp.fraction(sp.cancel(spectrum.subs(exact).subs(omega, sp.I * s))))
    top, bottom = (np.array([complex(c) for c in part.all_coeffs()]) for part in (above, below))
    poles = np.roots(bottom)
    poles = poles[poles.real < 0]
    residues = np.polyval(top, poles) / np.polyval(np.polyder(bottom), poles)
    return (np.exp(np.multiply.outer(np.asarray(times, float), poles)) @ residues).real
