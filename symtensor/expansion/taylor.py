"""Taylor expansion in one or several variables, lazy, with its remainder.

    f(x) = sum_{|alpha| < n} d^alpha f(x0) / alpha! (x - x0)^alpha + R_n(x),

alpha a multi-index. The coefficients come from truncated series arithmetic along x0 + eps h (a polynomial of degree k
in h at order eps^k), not from repeated differentiation; functions without an expression, as f(x), are differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Any

import sympy
from sympy.core.function import AppliedUndef

from .coefficients import is_zero, write_sum
from .expand import ExpansionError, series
from .order_term import OrderTerm
from .remainder import Remainder, RemainderBound, RemainderForm
from .series import SHOWN_TERMS, Series, UnknownCoefficientError

MultiIndex = tuple[int, ...]


def multi_indices(length: int, degree: int) -> tuple[MultiIndex, ...]:
    """All multi-indices of ``length`` entries with sum ``degree``, the first variable's powers first."""
    chosen = combinations_with_replacement(range(length), degree)
    return tuple(tuple(pick.count(i) for i in range(length)) for pick in chosen)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TaylorSeries:
    """The Taylor series of a function, made by `taylor`.

    Attributes:
        function: f as a SymPy expression.
        variables, point: the expansion variables and the point, in one order.
        order: total degree from which on terms are dropped, or ``None`` for all orders.
    """

    function: sympy.Expr
    variables: tuple[sympy.Symbol, ...]
    point: tuple[sympy.Expr, ...]
    rule: Callable[[int], Mapping[MultiIndex, Any]]
    order: int | None = None
    _cache: dict[int, Mapping[MultiIndex, Any]] = field(default_factory=dict, init=False)

    def homogeneous(self, degree: int) -> Mapping[MultiIndex, Any]:
        """The nonzero coefficients of one total degree, computed once and only when asked for."""
        if self.order is not None and degree >= self.order:
            raise UnknownCoefficientError(f"degree {degree} is cut off: this series is truncated at order {self.order}")
        if degree not in self._cache:
            self._cache[degree] = self.rule(degree)
        return self._cache[degree]

    @property
    def evaluations(self) -> int:
        """How many degrees have been computed so far."""
        return len(self._cache)

    def coefficient(self, alpha: int | MultiIndex) -> Any:
        """d^alpha f(x0) / alpha!, for a multi-index (or an integer if there is one variable)."""
        index = self._index(alpha)
        return self.homogeneous(sum(index)).get(index, sympy.S.Zero)

    def derivative(self, alpha: int | MultiIndex) -> Any:
        """d^alpha f(x0)."""
        return self.coefficient(alpha) * prod(factorial(a) for a in self._index(alpha))

    def _index(self, alpha: int | MultiIndex) -> MultiIndex:
        index = (alpha,) if isinstance(alpha, int) else tuple(alpha)
        if len(index) != len(self.variables) or any(not isinstance(a, int) or a < 0 for a in index):
            names = ", ".join(map(str, self.variables))
            raise ValueError(f"{alpha} is no multi-index in ({names}): give {len(self.variables)} integers >= 0")
        return index

    def term(self, degree: int) -> sympy.Expr:
        """The homogeneous polynomial of the given total degree in x - x0."""
        steps = [x - x0 for x, x0 in zip(self.variables, self.point, strict=True)]
        found = self.homogeneous(degree).items()
        return sympy.Add(*(c * prod(s**a for s, a in zip(steps, alpha, strict=True)) for alpha, c in found))

    def partial_sum(self, n: int | None = None, at: Sequence[Any] | None = None) -> Any:
        """The Taylor polynomial of total degree below ``n``, at the values ``at`` of the variables if given."""
        end = self._end(n)
        polynomial = sympy.Add(*map(self.term, range(end)))
        return polynomial if at is None else polynomial.subs(dict(zip(self.variables, at, strict=True)))

    def truncate(self, n: int) -> TaylorSeries:
        """The series with all total degrees from ``n`` on in its remainder."""
        return replace(self, rule=self.homogeneous, order=n if self.order is None else min(n, self.order))

    def subs(self, values: Mapping[Any, Any]) -> TaylorSeries:
        """Substitute parameters (not the variables) in the function, the point and every coefficient."""
        given = {sympy.sympify(k): sympy.sympify(v) for k, v in values.items()}
        moved = set(given) | set().union(*(v.free_symbols for v in given.values()))
        if moved & set(self.variables):
            raise ValueError("the expansion variables cannot be substituted: use partial_sum(n, at=values)")
        return replace(
            self,
            function=self.function.subs(given),
            point=tuple(p.subs(given) for p in self.point),
            rule=lambda k: {alpha: sympy.sympify(c).subs(given) for alpha, c in self.homogeneous(k).items()},
        )

    def series(self) -> Series:
        """The terms as a `Series`: in the variable itself, or by total degree in a counting symbol (epsilon = 1)."""
        if len(self.variables) == 1:
            return Series(self.variables[0], self.point[0], self.coefficient, self.order)
        return Series(sympy.Dummy("epsilon", positive=True), 0, self.term, self.order)

    @property
    def order_term(self) -> OrderTerm | None:
        """The O-term of the truncation; with several variables in the distance epsilon = |x - x0|."""
        return self.series().order_term

    def remainder(self, n: int | sympy.Expr | None = None, form: RemainderForm = "integral") -> Remainder:
        """R_n, what the terms of total degree below ``n`` (default: this series' order) leave out, exactly."""
        order = self.order if n is None else n
        if order is None:
            raise UnknownCoefficientError("an untruncated series has no remainder: say after which order n")
        return Remainder(self.function, self.variables, self.point, sympy.sympify(order), form)

    def bound(
        self, box: Mapping[sympy.Symbol, tuple[Any, Any]], n: int | None = None, pieces: int = 64
    ) -> RemainderBound:
        """A proven bound of |R_n| on a box, by interval arithmetic; see `Remainder.bound`."""
        return self.remainder(n, "lagrange").bound(box, pieces)

    def _end(self, n: int | None) -> int:
        end = self.order if n is None else n
        if end is None:
            raise UnknownCoefficientError("this series is infinite: say up to which order its terms are wanted")
        return end

    def __repr__(self) -> str:
        return repr(self.series()) if len(self.variables) == 1 else self._written(latex=False)

    def latex(self) -> str:
        """The series as LaTeX, with its O-term."""
        return self.series().latex() if len(self.variables) == 1 else self._written(latex=True)

    def _written(self, latex: bool) -> str:
        names, point = sympy.Tuple(*self.variables), sympy.Tuple(*self.point)
        ending = r"\cdots" if latex else "..."
        if self.order is not None:
            distance = sympy.Tuple(*(x - x0 for x, x0 in zip(self.variables, self.point, strict=True)))
            ending = f"O(|{distance}|**{self.order}, {names} -> {point})"
            if latex:
                limit = rf"{sympy.latex(names)} \to {sympy.latex(point)}"
                ending = rf"\mathcal{{O}}\left(\left|{sympy.latex(distance)}\right|^{{{self.order}}},\ {limit}\right)"
        degrees = range(SHOWN_TERMS if self.order is None else self.order)
        terms = [(k, term) for k in degrees if (term := self.term(k)) != 0]
        return write_sum(terms, sympy.S.One, ending, latex)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"


def taylor(
    function: Any, variables: sympy.Symbol | Sequence[sympy.Symbol], point: Any, order: int | None = None
) -> TaylorSeries:
    """The Taylor series of ``function`` around ``variables = point``.

    Args:
        function: a SymPy expression without O-terms (those go to `series`).
        variables: one symbol, or several.
        point: one finite value, or as many as there are variables; may be symbolic.
        order: drop total degrees from ``order`` on; ``None`` keeps the series lazy and infinite.

    Raises:
        ExpansionError: the function has no Taylor series at the point (pole, kink, logarithm).

    Example:
        >>> x, y = sympy.symbols("x y")
        >>> t = taylor(sympy.exp(x) * sympy.sin(y), (x, y), (0, 0))
        >>> t.coefficient((2, 1)), t.partial_sum(3)
        (1/2, x*y + y)
    """
    names = (variables,) if isinstance(variables, sympy.Symbol) else tuple(variables)
    values = tuple(map(sympy.sympify, point if isinstance(point, tuple | list) else (point,)))
    expr = sympy.sympify(function)
    _check(expr, names, values, order)
    make = _differentiated if expr.atoms(AppliedUndef) else _along_a_line
    return TaylorSeries(expr, names, values, make(expr, names, values), order)


def _check(expr: Any, names: tuple[Any, ...], values: tuple[Any, ...], order: int | None) -> None:
    if not isinstance(expr, sympy.Expr):
        raise TypeError(f"a Taylor series needs an expression, not {expr!r}")
    if not names or len(set(names)) != len(names) or not all(isinstance(x, sympy.Symbol) for x in names):
        raise ValueError(f"the variables {names} must be one or several different symbols")
    if len(values) != len(names):
        raise ValueError(f"{len(names)} variables {names} need a point with {len(names)} entries, not {values}")
    if any(v.is_infinite or v is sympy.nan for v in values):
        raise ValueError(f"a Taylor point must be finite, not {values}; series() expands at infinity")
    if order is not None and (not isinstance(order, int) or order < 0):
        raise ValueError(f"the order must be an integer >= 0 or None, not {order!r}")


def _along_a_line(
    expr: sympy.Expr, names: tuple[sympy.Symbol, ...], values: tuple[sympy.Expr, ...]
) -> Callable[[int], Mapping[MultiIndex, Any]]:
    eps = sympy.Dummy("epsilon")
    steps = [sympy.Dummy(f"h_{x}") for x in names]
    where: dict[Any, Any] = {x: x0 + eps * h for x, x0, h in zip(names, values, steps, strict=True)}
    line = expr.subs(where, simultaneous=True)
    try:
        body = series(line, eps, 0)
    except ValueError as error:
        raise ExpansionError(
            f"{expr} has no Taylor series at {sympy.Tuple(*values)} (pole, kink or branch point)"
        ) from error
    if any(is_zero(body.coefficient(k)) is not True for k in range(body.start, 0)):
        raise ExpansionError(
            f"{expr} has a pole at {sympy.Tuple(*values)}: no Taylor series there; series() gives Laurent's"
        )

    def rule(degree: int) -> Mapping[MultiIndex, Any]:
        polynomial = sympy.Poly(sympy.expand(body.coefficient(degree)), *steps)
        return {alpha: c for alpha, c in polynomial.terms() if c != 0}

    return rule


def _differentiated(
    expr: sympy.Expr, names: tuple[sympy.Symbol, ...], values: tuple[sympy.Expr, ...]
) -> Callable[[int], Mapping[MultiIndex, Any]]:
    at: dict[Any, Any] = dict(zip(names, values, strict=True))

    def coefficient(alpha: MultiIndex) -> sympy.Expr:
        steps = [(x, a) for x, a in zip(names, alpha, strict=True) if a]
        derivative = expr.diff(*steps) if steps else expr
        return derivative.subs(at) / prod(factorial(a) for a in alpha)

    return lambda degree: {alpha: coefficient(alpha) for alpha in multi_indices(len(names), degree)}
