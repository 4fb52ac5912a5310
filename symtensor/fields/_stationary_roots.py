"""All real solutions of polynomial equations, exactly where that is possible; a numerical search elsewhere.

Exact: an equation in one unknown is factored and solved; one that is linear in an unknown eliminates it; one that factors
branches; what remains coupled, with rational coefficients, goes through a lexicographic Groebner basis of the points where the
Jacobian has an inverse (of which there are finitely many; others would be refused anyhow).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import comb, prod
from typing import Any

import mpmath
import numpy as np
import scipy.optimize
import sympy as sp

from symtensor.fields._stability import DIGITS, MAX_FACTORED, MAX_SYMBOLS, reads_zero, tidy

__all__ = ["Solutions", "polynomial_solutions", "refined", "searched"]

#: a coupled system is solved exactly up to this number of unknowns and this product of degrees
MAX_UNKNOWNS = 4
MAX_BEZOUT = 60
MAX_SOLUTIONS = 200
#: longer polynomials are not expanded
MAX_TERMS = 4000
RADII = (0.1, 0.5, 1, 2, 5, 20)
STARTS = 12
GRID = 400
#: Newton's method: steps, and the size of a point that counts as lost
STEPS = 60
LARGEST = 1e8

Point = dict[Any, Any]


@dataclass(slots=True)
class Solutions:
    """Points found; `complete` if there are no further real ones at which the Jacobian has an inverse."""

    points: list[Point] = field(default_factory=list)
    complete: bool = True


def polynomial_solutions(equations: Sequence[Any], unknowns: Sequence[Any]) -> Solutions:
    """The real solutions of polynomial equations (real for some parameters), with `complete` false if some were not found."""
    found = Solutions()
    if not all(equation.is_polynomial(*unknowns) and _terms(equation) <= MAX_TERMS for equation in equations):
        found.complete = False
        return found
    _branch([sp.expand(e) for e in equations], list(unknowns), {}, found)
    distinct: list[Point] = []
    for point in found.points:
        if not any(all(reads_zero(point[s] - other[s]) for s in unknowns) for other in distinct):
            distinct.append(point)
    found.points = distinct
    return found


def _terms(expression: Any) -> int:
    """An upper bound on the number of terms when it is expanded."""
    if expression.is_Add:
        return sum(map(_terms, expression.args))
    if expression.is_Mul:
        return prod(map(_terms, expression.args))
    if expression.is_Pow and expression.exp.is_Integer and expression.exp > 0:
        count, power = _terms(expression.base), int(expression.exp)
        return comb(count + power - 1, power)
    return 1


def _branch(equations: list[Any], unknowns: list[Any], known: Point, found: Solutions) -> None:
    equations = list(dict.fromkeys(e for e in (_numerator(e) for e in equations) if e != 0))
    left = set(unknowns)
    if any(not e.free_symbols & left for e in equations):
        return  # a constant that is not zero, for generic parameters
    if not unknowns:
        found.points.append(dict(known))
        found.complete &= len(found.points) <= MAX_SOLUTIONS
        return
    if len(equations) < len(unknowns):
        return  # a continuum of points, none of which has an inverse Jacobian
    if len(found.points) > MAX_SOLUTIONS:
        return
    for step in (_by_linear, _by_factors, _by_roots, _by_basis):
        branches = step(equations, unknowns, found)
        if branches is None:
            continue
        for values, rest in branches:
            rest = [e.subs(values) for e in rest]
            _branch(rest, [u for u in unknowns if u not in values], _completed(known, values), found)
        return
    found.complete = False


Branches = list[tuple[Point, list[Any]]] | None


def _completed(known: Point, values: Point) -> Point:
    """Earlier values may contain unknowns that are only now known."""
    return {s: v.subs(values) for s, v in known.items()} | values


def _by_linear(equations: list[Any], unknowns: list[Any], found: Solutions) -> Branches:
    """Eliminate an unknown that occurs linearly with a coefficient free of unknowns."""
    for equation in sorted(equations, key=lambda e: e.count_ops()):
        for unknown in unknowns:
            slope = sp.expand(equation.diff(unknown))
            if slope != 0 and not slope.free_symbols & set(unknowns):
                value = -equation.subs(unknown, 0) / slope
                return [({unknown: sp.cancel(value)}, [e for e in equations if e is not equation])]
    return None


def _by_factors(equations: list[Any], unknowns: list[Any], found: Solutions) -> Branches:
    for equation in equations:
        factors = _factors(equation, unknowns)
        if len(factors) > 1:
            return [({}, [factor, *(e for e in equations if e is not equation)]) for factor in factors]
        if factors and _degree(factors[0], unknowns) < _degree(equation, unknowns):
            return [({}, [factors[0] if e is equation else e for e in equations])]
    return None


def _factors(equation: Any, unknowns: list[Any]) -> list[Any]:
    """The different factors that contain unknowns: unknowns themselves, and those of the rest if it is small."""
    powers, rest = sp.Poly(equation, *unknowns).terms_gcd()
    found: list[Any] = [unknown for unknown, power in zip(unknowns, powers) if power]
    remainder = rest.as_expr()
    if len(remainder.free_symbols) <= MAX_SYMBOLS and remainder.count_ops() <= MAX_FACTORED:
        try:
            parts = [factor for factor, _ in sp.factor_list(remainder, *unknowns)[1]]
        except sp.PolynomialError:
            parts = [remainder]
    else:
        parts = [remainder]
    return [*found, *(part for part in parts if part.free_symbols & set(unknowns))]


def _by_roots(equations: list[Any], unknowns: list[Any], found: Solutions) -> Branches:
    for equation in equations:
        inside = equation.free_symbols & set(unknowns)
        if len(inside) == 1:
            (unknown,) = inside
            values = _real_roots(sp.Poly(equation, unknown), found)
            return [({unknown: value}, [e for e in equations if e is not equation]) for value in values]
    return None


def _real_roots(poly: sp.Poly, found: Solutions) -> list[Any]:
    """The roots of an irreducible polynomial that are real for some parameters."""
    if poly.domain.is_QQ or poly.domain.is_ZZ:
        return [root for root in poly.real_roots(multiple=False) for root in [root[0]]]
    steps = 0
    for (power,) in poly.monoms():
        steps = sp.igcd(steps, power)
    if poly.degree() <= 2:
        return _quadratic(poly)
    if steps % 2 == 0 and poly.degree() <= 4:
        square = sp.Dummy("square", real=True)
        reduced: Any = sp.Poly.from_list(poly.all_coeffs()[::2], gens=square)
        return [sign * sp.sqrt(tidy(y)) for y in _quadratic(reduced) for sign in (1, -1)]
    found.complete = False
    return []


def _quadratic(poly: sp.Poly) -> list[Any]:
    coefficients: list[Any] = [*(sp.S.Zero for _ in range(3 - len(poly.all_coeffs()))), *poly.all_coeffs()]
    a, b, c = coefficients
    if a == 0:
        return [tidy(-c / b)]
    if b == 0:
        root = sp.sqrt(tidy(-c / a))
        return [root, -root]
    discriminant = tidy(b**2 - 4 * a * c)
    return [sp.expand((-b + sign * sp.sqrt(discriminant)) / (2 * a)) for sign in (1, -1)]


def _by_basis(equations: list[Any], unknowns: list[Any], found: Solutions) -> Branches:
    """One Groebner basis of the coupled rest: its last element has one unknown, and the others follow."""
    polys = [sp.Poly(e, *unknowns) for e in equations]
    degrees = sp.prod(poly.total_degree() for poly in polys)
    rational = all(poly.domain.is_QQ or poly.domain.is_ZZ for poly in polys)
    if not rational or len(unknowns) > MAX_UNKNOWNS or degrees > MAX_BEZOUT or len(equations) != len(unknowns):
        return None
    inverse = sp.Dummy("inverse")
    jacobian = sp.Matrix(equations).jacobian(unknowns).det(method="berkowitz")
    basis: Any = sp.groebner([*equations, 1 - inverse * sp.expand(jacobian)], inverse, *unknowns, order="grevlex")
    if basis.exprs == [1]:
        return []
    basis = basis.fglm("lex")
    kept = [e for e in basis.exprs if not e.has(inverse)]
    last = next((e for e in kept if e.free_symbols == {unknowns[-1]}), None)
    if last is None or kept == equations:
        return None
    rest = [e for e in kept if e is not last]
    values = [root for factor, _ in sp.factor_list(last)[1] for root in _real_roots(sp.Poly(factor, unknowns[-1]), found)]
    return [({unknowns[-1]: value}, rest) for value in values]


def _degree(equation: Any, unknowns: Sequence[Any]) -> int:
    return int(sp.Poly(equation, *unknowns).total_degree())


def _numerator(equation: Any) -> Any:
    if reads_zero(equation):
        return sp.S.Zero
    return sp.expand(sp.fraction(sp.cancel(sp.together(equation)))[0])


def searched(gradient: Sequence[Any], fields: Sequence[sp.Symbol]) -> list[Point]:
    """Real zeros of functions without parameters, by Newton's method from many points; there may be others."""
    function, jacobian = _double(gradient, fields)
    starts = [[0.0] * len(fields), *(_brackets(function) if len(fields) == 1 else [])]
    for at, radius in enumerate(RADII):
        starts += [[radius * (2 * _spread(n + 1 + at * STARTS, j) - 1) for j in range(len(fields))] for n in range(STARTS)]
    found: list[Point] = []
    rough: list[Any] = []
    for start in starts:
        root = scipy.optimize.root(function, start, jac=jacobian, method="hybr")
        known = any(np.allclose(root.x, other, rtol=1e-6, atol=1e-8) for other in rough)
        if not root.success or known or not np.all(np.isfinite(root.x)):
            continue
        rough.append(root.x)
        point = refined(gradient, fields, root.x)
        if point is not None and not any(all(abs(point[s] - o[s]) < 1e-12 * (1 + abs(o[s])) for s in fields) for o in found):
            found.append(point)
    return found


def refined(gradient: Sequence[Any], fields: Sequence[sp.Symbol], start: Sequence[Any]) -> Point | None:
    """The zero that Newton's method reaches from a point, to `DIGITS` digits; None if it does not get there."""
    symbols, column = list(fields), sp.Matrix(list(gradient))
    # expressions, not text: every part of them has passed the whitelist or was built by the caller with SymPy
    function, jacobian = (sp.lambdify(symbols, part, "mpmath") for part in (list(gradient), column.jacobian(symbols)))
    with mpmath.workdps(DIGITS + 15):
        point = mpmath.matrix([mpmath.mpf(str(sp.N(v, DIGITS))) for v in start])
        size = mpmath.inf
        for _ in range(STEPS):
            try:
                step = mpmath.lu_solve(
                    mpmath.matrix(jacobian(*point)), mpmath.matrix(list(map(mpmath.mpmathify, function(*point))))
                )
                point, size = point - step, mpmath.norm(step, mpmath.inf)
            except (ValueError, ZeroDivisionError, OverflowError, TypeError):
                return None
            if size <= mpmath.mpf(10) ** -(DIGITS + 5) * (1 + mpmath.norm(point, mpmath.inf)):
                break
        else:
            return None
        if any(mpmath.im(v) != 0 or abs(v) > LARGEST for v in point):
            return None
        small = mpmath.mpf(10) ** -DIGITS
        return {
            s: sp.S.Zero if abs(v) < small else sp.Float(str(mpmath.nstr(v, DIGITS + 5)), DIGITS) for s, v in zip(fields, point)
        }


def _double(gradient: Sequence[Any], fields: Sequence[sp.Symbol]) -> tuple[Any, Any]:
    """The functions and their Jacobian in double precision; not a number where they are not real."""
    symbols, column = list(fields), sp.Matrix(list(gradient))
    parts = [sp.lambdify(symbols, part, "scipy") for part in (list(gradient), column.jacobian(symbols))]

    def evaluated(part: Any, shape: tuple[int, ...], point: Any) -> Any:
        with np.errstate(all="ignore"):
            try:
                return np.asarray(part(*(np.float64(v) for v in point)), dtype=float).reshape(shape)
            except (TypeError, ZeroDivisionError, OverflowError):
                return np.full(shape, np.nan)

    count = len(symbols)
    return partial(evaluated, parts[0], (count,)), partial(evaluated, parts[1], (count, count))


def _brackets(function: Any) -> list[list[float]]:
    """Points next to every change of sign of a function of one variable, on a grid that is finest around zero."""
    places = [float(np.sinh(8 * n / GRID)) / 10 for n in range(-GRID, GRID + 1)]
    signs = [np.sign(function([place])[0]) for place in places]
    return [[(a + b) / 2] for (a, s), (b, t) in pairwise(zip(places, signs)) if s * t <= 0]


def _spread(n: int, axis: int) -> float:
    """The n-th point of Halton's sequence in the base of an axis: the same points every time, spread evenly."""
    base, factor, value = int(sp.prime(axis + 1)), 1.0, 0.0  # type: ignore[arg-type]
    while n:
        factor /= base
        n, digit = divmod(n, base)
        value += factor * digit
    return value
