r"""The N-component theory with energy N s(phi.phi/N): its saddle point at large N and the dressed lines there.

With rho = phi.phi/N and a multiplier lam (on the imaginary axis, shifted by m),

    exp(-S),  S = (1/T) [N s(rho) - N lam rho/2 + lam phi.phi/2],

summing phi out leaves an action of order N for rho and lam. Its saddle is ``lam = m = 2 s'(rho)``, ``rho = T/m``: the gap
equation ``m = 2 s'(T/m)``. With ``q = m^2 + 2 T s''(rho)`` the inverse Hessian there, the bubble chain included, is

    <rho rho> = 2 T^2/(N q),   <rho lam> = -2 T m^2/(N q),   <lam lam> = -4 T m^2 s''/(N q).

References: Brezin & Wadia (eds.), The Large N Expansion (1993); Moshe & Zinn-Justin, Phys. Rep. 385 (2003) 69, section 2.
"""

from __future__ import annotations

import numbers as numbers_abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import mpmath
import sympy as sp

from symtensor.fields.errors import PointError, SourceError, UnstableError
from symtensor.parsing import parse_expression

__all__ = ["MASS", "NUMBER", "RHO", "VectorTheory", "numbers", "symbols", "with_values"]

RHO = sp.Symbol("rho", positive=True)
NUMBER = sp.Symbol("N", positive=True)
MASS = sp.Symbol("m", positive=True)
#: where numerical saddles are sought: rho from 10^-LOW to 10^HIGH, this many points a decade
LOW, HIGH, POINTS = 8, 8, 8


@dataclass(frozen=True, slots=True)
class VectorTheory:
    r"""Weight exp(-N s(phi.phi/N)/T) of an N-component phi: ``r rho/2 + u rho^2/4`` is r phi.phi/2 + (u/(4 N)) (phi.phi)^2.

    `mass` is m = T/<phi_1 phi_1> at large N: a number if the saddle is rational, else the symbol ``m``, tied to the parameters
    by `gap_equation`. Make one by `VectorTheory.read`.

    >>> theory = VectorTheory.read("r*rho/2 + u*rho^2/4")
    >>> theory.gap_equation, theory.curvature
    (m - r - u/m, m**2 + u)
    >>> VectorTheory.read("r*rho/2 + u*rho^2/4", values={"r": 1, "u": 2}).mass
    2
    """

    potential: sp.Expr
    temperature: sp.Expr = sp.S.One
    mass: sp.Expr = MASS

    @classmethod
    def read(cls, potential: Any, temperature: Any = 1, values: Mapping[str, Any] | None = None) -> VectorTheory:
        """A theory from text or SymPy; every other name than ``rho`` is a parameter, some of which may be given values.

        Raises:
            SourceError: not a function of rho, a reserved name (N, m), a value for an unknown name.
            PointError: numbers without a saddle point; UnstableError: one that is no maximum of the weight.
        """
        given = numbers(values or {})
        expression, heat = _expression(potential), _expression(temperature)
        known = {s.name for s in symbols(expression + heat)} - {"rho"}
        for name in given:
            if name not in known:
                raise SourceError(f"a value is given for {name!r}; the parameters are {', '.join(sorted(known)) or 'none'}")
        expression, heat = (with_values(e, given) for e in (expression, heat))
        _check(expression, heat, known)
        theory = cls(expression, heat)
        if not expression.free_symbols - {RHO} and not heat.free_symbols:
            theory = replace(theory, mass=_number_or_symbol(theory))
        return theory

    def slope(self, order: int) -> sp.Expr:
        """The derivative of s of the given order at the saddle, a function of the mass."""
        return _slope(self, order)

    @property
    def rho(self) -> sp.Expr:
        """The saddle value of phi.phi/N, T/m."""
        return self.temperature / self.mass

    @property
    def curvature(self) -> sp.Expr:
        """q = m^2 + 2 T s'', positive where the saddle is a maximum of the weight."""
        return sp.expand(self.mass**2 + 2 * self.temperature * self.slope(2))

    @property
    def gap_equation(self) -> sp.Expr:
        """What vanishes at the saddle, m - 2 s'(T/m)."""
        return sp.expand(self.mass - 2 * self.slope(1))

    def line(self, first: str, second: str) -> sp.Expr:
        """The dressed propagator of two of the fields ``phi``, ``rho``, ``lam`` at the saddle; 0 if they do not mix."""
        heat, mass = self.temperature, self.mass
        pair = frozenset((first, second))
        if pair == {"phi"}:
            return heat / mass
        numerator = {
            frozenset({"rho"}): 2 * heat**2,
            frozenset({"rho", "lam"}): -2 * heat * mass**2,
            frozenset({"lam"}): -4 * heat * mass**2 * self.slope(2),
        }.get(pair, sp.S.Zero)
        return numerator / (NUMBER * self.curvature)

    def with_symbol(self) -> VectorTheory:
        """The same theory with the mass left as a symbol."""
        return replace(self, mass=MASS)

    def numeric_mass(self, values: Mapping[str, Any] | None = None, digits: int = 30) -> Any:
        """The mass at numerical parameters; raises SourceError for parameters without a value, PointError without a saddle."""
        given = numbers(values or {})
        expression, heat = (with_values(e, given) for e in (self.potential, self.temperature))
        missing = [s.name for s in symbols(expression + heat) if s != RHO]
        if missing:
            raise SourceError(f"the parameters {', '.join(missing)} have no value; give them, as values={{'{missing[0]}': 1}}")
        with mpmath.workdps(digits + 10):
            root = sp.N(_saddle(expression, heat, digits), digits + 10)
            return mpmath.mpf(sp.N(heat, digits + 10)) / mpmath.mpf(root)


def _expression(value: Any) -> sp.Expr:
    if isinstance(value, str):
        return parse_expression(value, {"rho": RHO}, parameters=True)
    expression: Any = value if isinstance(value, sp.Expr) else _number(value, "the potential or the temperature")
    return expression.xreplace({s: RHO for s in symbols(expression) if s.name == "rho"})


def symbols(expression: Any) -> list[sp.Symbol]:
    """The symbols of an expression by name."""
    return sorted((s for s in expression.free_symbols if isinstance(s, sp.Symbol)), key=str)


def numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by name, as exact numbers (decimals as the rationals they print as)."""
    return {str(name): _number(value, f"the value of {name}") for name, value in values.items()}


def _number(value: Any, what: str) -> Any:
    """A finite real number, exact; text is not read here."""
    number: Any = value if isinstance(value, sp.Expr) else sp.nan
    if isinstance(value, (numbers_abc.Real, mpmath.mpf)) and not isinstance(value, bool) and mpmath.isfinite(value):
        number = sp.nsimplify(value, rational=True)
    if not number.is_number or number.is_finite is not True or number.is_real is not True:
        raise SourceError(f"{what} is {value!r}; a finite real number is required")
    return number


def with_values(expression: Any, values: Mapping[str, Any]) -> Any:
    """The expression with values put in for the symbols with these names."""
    return expression.xreplace({s: values[s.name] for s in symbols(expression) if s.name in values})


def _check(expression: sp.Expr, heat: sp.Expr, names: set[str]) -> None:
    if not expression.has(RHO):
        raise SourceError(f"the potential {expression} does not depend on rho = phi.phi/N; write for example r*rho/2 + u*rho^2/4")
    if heat.has(RHO) or heat.is_positive is False:
        raise SourceError(f"the temperature {heat} must be a positive number or parameter")
    for name in {"N", "m"} & names:
        raise SourceError(f"the name {name!r} is reserved (N: number of components, m: mass at the saddle); choose another")


@lru_cache(maxsize=512)
def _slope(theory: VectorTheory, order: int) -> sp.Expr:
    return sp.expand(sp.diff(theory.potential, RHO, order).subs(RHO, theory.rho))


def _number_or_symbol(theory: VectorTheory) -> sp.Expr:
    """The mass if it is rational, else the symbol."""
    rho = _saddle(theory.potential, theory.temperature, 30)
    mass = theory.temperature / rho if isinstance(rho, sp.Expr) else MASS
    return mass if mass.is_Rational else MASS


def _saddle(potential: sp.Expr, heat: sp.Expr, digits: int) -> Any:
    """The lowest minimum of s(rho)/T - log(rho)/2 over rho > 0, the saddle that dominates; exact for polynomials in numbers."""
    force = sp.expand(2 * RHO * sp.diff(potential, RHO) - heat)
    with mpmath.workdps(digits + 10):
        exact = force.is_polynomial(RHO) and all(c.is_Rational for c in sp.Poly(force, RHO).all_coeffs())
        real: list[Any] = sp.Poly(force, RHO).real_roots() if exact else _roots(force, digits)  # type: ignore[assignment]
        found = [r for r in real if r > 0]
        slope, energy = _numerical(sp.diff(force, RHO)), _numerical(potential / heat - sp.log(RHO) / 2)
        numbers = [(mpmath.mpf(sp.N(r, digits + 10)) if exact else r, r) for r in found]
        stable = [(x, r) for x, r in numbers if slope(x) > -(mpmath.mpf(10) ** (-digits // 2))]
        if not stable:
            raise PointError(
                f"the potential {potential} at temperature {heat} has no saddle point: 2 rho s'(rho) - T has no change of sign "
                "from below for positive rho; the potential must grow at large rho"
            )
        x, root = min(stable, key=lambda pair: energy(pair[0]))
        if slope(x) < mpmath.mpf(10) ** (-digits // 2):
            raise UnstableError(
                f"the saddle rho = {mpmath.nstr(x, 8)} is degenerate, m^2 + 2 T s'' = 0: there is no expansion in 1/N"
            )
        return root


def _roots(force: sp.Expr, digits: int) -> list[Any]:
    """Where a function of rho > 0 changes sign, numerically."""
    function = _numerical(force)
    grid = [mpmath.mpf(10) ** (mpmath.mpf(k) / POINTS) for k in range(-LOW * POINTS, HIGH * POINTS + 1)]
    with mpmath.workdps(15):
        values = [function(x) for x in grid]
    brackets = [(a, b) for a, b, f, g in zip(grid, grid[1:], values, values[1:]) if f < 0 <= g or g < 0 <= f]
    return [mpmath.findroot(function, pair, solver="illinois", tol=mpmath.mpf(10) ** (-2 * digits)) for pair in brackets]


def _numerical(expression: sp.Expr) -> Callable[[Any], Any]:
    """An expression in rho as a function of numbers, at the precision that is set."""

    def value(x: Any) -> Any:
        result = sp.N(expression, mpmath.mp.dps, subs={RHO: sp.Float(x, mpmath.mp.dps)})
        if not result.is_Float and not result.is_Integer and result != 0:
            raise PointError(f"{expression} is no real number at rho = {mpmath.nstr(x, 6)}; the potential must be real for rho > 0")
        return mpmath.mpf(sp.Float(result, mpmath.mp.dps))

    return value
