r"""Exact moments of the stationary density of one stochastic equation in one variable, by quadrature.

The density of dx = f dt + G dW (Ito) without current is ``p(x) = exp(Phi(x))/D(x)``, D = G^2, ``Phi' = 2 f/D``. On the line the
trapezoidal rule converges exponentially for analytic densities; Phi is carried from point to point by Gauss-Legendre rules.

References: Risken, The Fokker-Planck Equation (1989), equation (5.13); Trefethen & Weideman, SIAM Rev. 56 (2014) 385.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import sympy as sp

from symtensor.fields._scalars import exact
from symtensor.fields.drift_diffusion import read_drift_diffusion
from symtensor.fields.errors import SourceError, TheoryError

__all__ = ["DensityMoments", "stationary_density_moments"]

MAX_POINTS = 4000
_FUNCTIONS = {"exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "atan", "asinh", "erf"}


@dataclass(frozen=True, slots=True)
class DensityMoments:
    """``m[k]`` = E[x^k]; `error` is the largest change, relative to 1 + |m[k]|, at the last halving of the grid."""

    moments: Mapping[int, Any]
    error: Any

    def __getitem__(self, power: int) -> Any:
        return self.moments[power]


def stationary_density_moments(
    drift: Any, noise: Any, variable: Any, powers: Sequence[int], parameters: Mapping[Any, Any] | None = None, digits: int = 30
) -> DensityMoments:
    """E[x^k] of the stationary state of dx = f dt + G dW, as mpmath numbers good to `digits` digits.

    Args:
        drift, noise: f and G in SymPy; `noise` must not vanish anywhere.
        powers: the k.
        parameters: values of the other symbols, numbers or decimals as text.

    Raises:
        SourceError: a parameter without a value, a function that is not known here.
        TheoryError: the density is not normalisable, or too wide or too rough for the grid.

    Example:
        >>> x = sp.Symbol("x")
        >>> m = stationary_density_moments(-x, 2, x, [2, 4], digits=20)
        >>> print(mpmath.nstr(m[2], 15), mpmath.nstr(m[4], 15), m.error < mpmath.mpf(10) ** -20)
        2.0 12.0 True
    """
    equations = read_drift_diffusion(drift, noise, variable)
    if len(equations.variables) != 1:
        raise SourceError(f"the density of {len(equations.variables)} variables has no closed form; give one equation")
    x = equations.variables[0]
    put = {str(n): exact(sp.Rational(v) if isinstance(v, str) else v) for n, v in (parameters or {}).items()}
    values = {s: put[s.name] for s in equations.symbols.values() if s.name in put and s != x}
    force, strength = equations.drift[0].xreplace(values), equations.diffusion[0][0].xreplace(values)
    missing = (force.free_symbols | strength.free_symbols) - {x}
    if missing:
        name = min(map(str, missing))
        raise SourceError(f"the parameter {name} has no value; give parameters={{{name!r}: ..}}")
    _require_confinement(force, strength, x)
    with mpmath.workdps(digits + 15):
        return _refined(_function(force, x), _function(strength, x), list(powers), digits)


def _require_confinement(force: Any, strength: Any, x: sp.Symbol) -> None:
    """Where both are polynomials the tails are known."""
    if not (force.is_polynomial(x) and strength.is_polynomial(x)):
        return
    top, bottom = sp.Poly(force, x), sp.Poly(strength, x)
    confined = top.degree() % 2 == 1 and top.LC() * bottom.LC() < 0 and top.degree() >= bottom.degree()
    if not confined:
        raise TheoryError(
            f"the drift {sp.sstr(force)} does not confine {x} against the noise strength {sp.sstr(strength)}: the stationary "
            "density does not exist or has a power tail. About a metastable state use the formal series (MomentHierarchy)"
        )


def _refined(force: Callable[[Any], Any], strength: Callable[[Any], Any], powers: list[int], digits: int) -> DensityMoments:
    spacing, before, goal = mpmath.mpf(1), None, mpmath.mpf(10) ** -digits
    rule = _gauss_legendre(max(8, digits // 2))
    for _ in range(14):
        points = _points(force, strength, spacing, rule, digits)
        found = _moments(points, powers)
        if before is not None and len(points) > 30:
            error = max(abs(found[k] - before[k]) / (1 + abs(found[k])) for k in powers)
            if error < goal:
                return DensityMoments(found, error)
        before, spacing = found, spacing / 2
    raise TheoryError(f"the density is not resolved to {digits} digits on {MAX_POINTS} points; rescale x or ask for fewer digits")


def _moments(points: list[tuple[Any, Any]], powers: list[int]) -> dict[int, Any]:
    top = max(log for _, log in points)
    weights = [(x, mpmath.exp(log - top)) for x, log in points]
    norm = mpmath.fsum(w for _, w in weights)
    return {k: mpmath.fsum(w * x**k for x, w in weights) / norm for k in powers}


def _points(
    force: Callable[[Any], Any], strength: Callable[[Any], Any], spacing: Any, rule: list[tuple[Any, Any]], digits: int
) -> list[tuple[Any, Any]]:
    """(x, log p(x)) on a grid that reaches to negligible values."""
    found = [(mpmath.mpf(0), -mpmath.log(_positive(strength, mpmath.mpf(0))))]
    top = found[0][1]
    for direction in (1, -1):
        for point in _outward(force, strength, direction * spacing, rule):
            found.append(point)
            if len(found) > MAX_POINTS:
                raise TheoryError(
                    f"the stationary density does not fall off within {MAX_POINTS * float(spacing):.3g} of the origin; it is not "
                    "normalisable, or x has to be rescaled or shifted"
                )
            top = max(top, point[1])
            if point[1] < top - (digits + 12) * mpmath.log(10) and force(point[0]) * direction < 0:
                break
    return found


def _outward(
    force: Callable[[Any], Any], strength: Callable[[Any], Any], step: Any, rule: list[tuple[Any, Any]]
) -> Iterator[tuple[Any, Any]]:
    x, potential = mpmath.mpf(0), mpmath.mpf(0)
    while True:
        potential += step * mpmath.fsum(w * 2 * force(x + step * u) / _positive(strength, x + step * u) for u, w in rule)
        x += step
        yield x, potential - mpmath.log(_positive(strength, x))


def _positive(strength: Callable[[Any], Any], x: Any) -> Any:
    value = strength(x)
    if not value > 0:
        where = f"{mpmath.nstr(value, 6)} at x = {mpmath.nstr(x, 6)}"
        raise TheoryError(f"the noise strength is {where}; it must be positive on the line")
    return value


def _gauss_legendre(count: int) -> list[tuple[Any, Any]]:
    """Nodes and weights on (0, 1) by Newton's method."""
    found = []
    for i in range(count):
        x = mpmath.cos(mpmath.pi * (i + mpmath.mpf(3) / 4) / (count + mpmath.mpf(1) / 2))
        for _ in range(100):
            below, here = mpmath.mpf(1), x
            for n in range(2, count + 1):
                below, here = here, ((2 * n - 1) * x * here - (n - 1) * below) / n
            slope = count * (x * here - below) / (x * x - 1)
            change = here / slope
            x -= change
            if abs(change) < mpmath.eps * 8:
                break
        found.append(((1 + x) / 2, 1 / ((1 - x * x) * slope**2)))
    return found


def _function(expression: Any, x: sp.Symbol) -> Callable[[Any], Any]:
    """The expression as a function of an mpmath number."""
    if expression == x:
        return lambda value: value
    if expression.is_number:
        rational = isinstance(expression, sp.Rational)
        number = mpmath.mpf(expression.p) / expression.q if rational else mpmath.mpf(str(expression.evalf(mpmath.mp.dps)))
        return lambda value: number
    parts = [_function(part, x) for part in expression.args]
    if isinstance(expression, sp.Add):
        return lambda value: mpmath.fsum(part(value) for part in parts)
    if isinstance(expression, sp.Mul):
        return lambda value: mpmath.fprod(part(value) for part in parts)
    if isinstance(expression, sp.Pow):
        return lambda value: parts[0](value) ** parts[1](value)
    name = type(expression).__name__
    if name not in _FUNCTIONS:
        raise SourceError(f"the function {name} is not known here; known: {', '.join(sorted(_FUNCTIONS))}")
    function = getattr(mpmath, name)
    return lambda value: function(parts[0](value))
