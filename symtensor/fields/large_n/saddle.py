r"""The N-component theory with energy N s(phi.phi/N): its saddle point at large N and the dressed lines there.

With rho = phi.phi/N and a multiplier lam (on the imaginary axis, shifted by m),

    exp(-S),  S = (1/T) [N s(rho) - N lam rho/2 + lam phi.phi/2],

summing phi out leaves an action of order N for rho and lam. Its saddle is ``lam = m = 2 s'(rho)``, ``rho = T/m``: the gap
equation ``m = 2 s'(T/m)``. With ``q = m^2 + 2 T s''(rho)`` the inverse Hessian there, the bubble chain included, is

    <rho rho> = 2 T^2/(N q),   <rho lam> = -2 T m^2/(N q),   <lam lam> = -4 T m^2 s''/(N q).

References: Brezin & Wadia (eds.), The Large N Expansion (1993); Moshe & Zinn-Justin, Phys. Rep. 385 (2003) 69, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import mpmath
import sympy as sp

from symtensor.fields.errors import PointError, SourceError, UnstableError
from symtensor.parsing import parse_expression

__all__ = ["MASS", "NUMBER", "RHO", "VectorTheory"]

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
        given = {str(name): sp.nsimplify(value, rational=True) for name, value in (values or {}).items()}
        expression, heat = _expression(potential), _expression(temperature)
        known = {s.name for s in (expression.free_symbols | heat.free_symbols) if isinstance(s, sp.Symbol)} - {"rho"}
        for name in given:
            if name not in known:
                raise SourceError(f"a value is given for {name!r}; the parameters are {', '.join(sorted(known)) or 'none'}")
        expression, heat = (_with_values(e, given) for e in (expression, heat))
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
        pair = tuple(sorted((first, second)))
        if pair == ("phi", "phi"):
            return heat / mass
        numerator = {
            ("rho", "rho"): 2 * heat**2,
            ("lam", "rho"): -2 * heat * mass**2,
            ("lam", "lam"): -4 * heat * mass**2 * self.slope(2),
        }.get(pair, sp.S.Zero)
        return numerator / (NUMBER * self.curvature)

    def with_symbol(self) -> VectorTheory:
        """The same theory with the mass left as a symbol."""
        return replace(self, mass=MASS)

    def numeric_mass(self, values: Mapping[str, Any] | None = None, digits: int = 30) -> mpmath.mpf:
        """The mass at numerical parameters; raises SourceError for parameters without a value, PointError without a saddle."""
        given = {str(k): sp.nsimplify(v, rational=True) for k, v in (values or {}).items()}
        expression, heat = (_with_values(e, given) for e in (self.potential, self.temperature))
        missing = sorted(s.name for s in (expression.free_symbols | heat.free_symbols) - {RHO})
        if missing:
            raise SourceError(f"the parameters {', '.join(missing)} have no value; give them, as values={{'{missing[0]}': 1}}")
        with mpmath.workdps(digits + 10):
            return mpmath.mpf(sp.N(heat, digits + 10)) / _minimum(expression, heat, digits)


def _expression(value: Any) -> sp.Expr:
    if isinstance(value, str):
        return parse_expression(value, {"rho": RHO}, parameters=True)
    expression = sp.sympify(value) if isinstance(value, (int, sp.Basic)) else sp.nsimplify(value, rational=True)
    return expression.xreplace({s: RHO for s in expression.free_symbols if s.name == "rho"})


def _with_values(expression: sp.Expr, values: Mapping[str, Any]) -> sp.Expr:
    return sp.sympify(expression).xreplace({s: values[s.name] for s in expression.free_symbols if s.name in values})


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
    rho = _minimum(theory.potential, theory.temperature, 40)
    guess = sp.nsimplify(sp.Float(str(rho), 45), rational=True, tolerance=sp.Rational(1, 10**30))
    residual: Any = sp.simplify((2 * RHO * sp.diff(theory.potential, RHO) - theory.temperature).subs(RHO, guess))
    return theory.temperature / guess if residual == 0 and theory.temperature.is_Rational else MASS


def _minimum(potential: sp.Expr, heat: sp.Expr, digits: int) -> mpmath.mpf:
    """The lowest minimum of s(rho)/T - log(rho)/2 over rho > 0, the saddle that dominates."""
    with mpmath.workdps(digits + 10):
        force = _numerical(2 * RHO * sp.diff(potential, RHO) - heat)
        grid = [mpmath.mpf(10) ** (mpmath.mpf(k) / POINTS) for k in range(-LOW * POINTS, HIGH * POINTS + 1)]
        forces = [force(x) for x in grid]
        brackets = [(a, b) for a, b, f, g in zip(grid, grid[1:], forces, forces[1:]) if f < 0 <= g]
        found = [mpmath.findroot(force, pair, solver="illinois", tol=mpmath.mpf(10) ** (-2 * digits)) for pair in brackets]
        if not found:
            raise PointError(
                f"the potential {potential} at temperature {heat} has no saddle point: 2 rho s'(rho) - T has no change of sign "
                "from below for positive rho; the potential must grow at large rho"
            )
        best = min(found, key=_numerical(potential / heat - sp.log(RHO) / 2))
        if abs(_numerical(sp.diff(2 * RHO * sp.diff(potential, RHO), RHO))(best)) < mpmath.mpf(10) ** (-digits // 2):
            raise UnstableError(f"the saddle rho = {mpmath.nstr(best, 8)} is degenerate: m^2 + 2 T s'' = 0, and 1/N is no small parameter")
        return best


def _numerical(expression: sp.Expr) -> Callable[[mpmath.mpf], mpmath.mpf]:
    """An expression in rho as a function of numbers, at the precision that is set."""

    def value(x: mpmath.mpf) -> mpmath.mpf:
        result = sp.N(expression, mpmath.mp.dps, subs={RHO: sp.Float(x, mpmath.mp.dps)})
        if not result.is_Float and not result.is_Integer and result != 0:
            raise PointError(f"{expression} is no real number at rho = {mpmath.nstr(x, 6)}; the potential must be real for rho > 0")
        return mpmath.mpf(sp.Float(result, mpmath.mp.dps))

    return value
