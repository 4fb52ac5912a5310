"""`series`: expand a SymPy expression, O-terms included, into a lazy `Series` at a finite point or at infinity.

The expression tree is walked once; every node becomes a series built from the series of its arguments, so an error
inside the expression reaches the result by the rules of series arithmetic. Factors that vary exponentially at the
limit point are kept apart: `sectors` returns them all, `series` keeps the algebraic part and refuses growth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import sympy

from .coefficients import structurally_zero
from .order_term import OrderTerm, UnknownTerm
from .scale import LimitPointError, ScaleError, limit_point, local_parameter, scale_of
from .series import Series
from .series_algebra import trimmed
from .tails import ErfcTail, rewrite_tails, tail_series

_NOT_ANALYTIC = (
    sympy.Abs, sympy.sign, sympy.Max, sympy.Min, sympy.Heaviside, sympy.DiracDelta, sympy.floor, sympy.ceiling,
    sympy.Piecewise, sympy.re, sympy.im, sympy.arg, sympy.conjugate, sympy.Mod,
)  # fmt: skip
_SINGULAR = (sympy.oo, -sympy.oo, sympy.zoo, sympy.nan)


class ExpansionError(ValueError):
    """A function without a power series at the point where it is needed."""


@dataclass(frozen=True, slots=True)
class Sector:
    """One exponential sector ``exp(exponent) * series`` of an expansion; ``exponent`` diverges or is 0."""

    exponent: sympy.Expr
    series: Series

    def __repr__(self) -> str:
        return repr(self.series) if self.exponent == 0 else f"exp({self.exponent})*({self.series})"

    def latex(self) -> str:
        """The sector as LaTeX."""
        if self.exponent == 0:
            return self.series.latex()
        return rf"e^{{{sympy.latex(self.exponent)}}} \left({self.series.latex()}\right)"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"


def series(expr: Any, variable: sympy.Symbol, point: Any, order: int | None = None) -> Series:
    """The expansion of ``expr`` at ``variable = point`` in powers of s = x - x0 (s = 1/x at ``oo`` and ``-oo``).

    Args:
        expr: a SymPy expression; it may contain `OrderTerm` and SymPy's ``O``, all of which reach the result.
        variable: the expansion variable.
        point: the limit point, without default.
        order: error O(s^order) of the result; ``None`` for the lazy series of all orders. The result is never finer
            than the O-terms inside ``expr`` allow.

    Exponentially small parts (e^-x at oo) have no power of s and are hidden by any O(s^order); `sectors` keeps them.

    Raises:
        ScaleError: exponential growth, such as 2**n at oo.
        ExpansionError: a function without power series there (log at 0, Abs at a kink), naming it.
        LimitPointError: an O-term of another variable or limit point inside.

    Example:
        >>> x = sympy.Symbol("x")
        >>> series(1 / (1 - x + OrderTerm(x**2, x, 0)), x, 0, 4)
        1 + x + O(x**2, x -> 0)
    """
    parts = sectors(expr, variable, point)
    s = local_parameter(variable, limit_point(point))
    result: Series | None = None
    for part in parts:
        growth = _growth(part.exponent, variable, part.series.point)
        if growth > 0:
            raise ScaleError(
                f"{expr} grows like exp({part.exponent}) as {variable} -> {point}, faster than any power of {s}; "
                f"divide by that factor, or use sectors() to see each exponential with its series"
            )
        piece = part.series if growth == 0 else _beyond_all_orders(part.series)
        result = piece if result is None else result + piece
    if result is None:
        result = Series.polynomial(variable, point, {})
    return result if order is None else result.truncate(order)


def sectors(expr: Any, variable: sympy.Symbol, point: Any, order: int | None = None) -> tuple[Sector, ...]:
    """All exponential sectors of ``expr``: expr ~ sum_j exp(q_j) * series_j with every q_j zero or divergent.

    Small tails such as 1 - erf(x) at oo are kept with their own series. In a power of a sum, such as a denominator,
    only the dominant exponential is kept (the others are beyond all orders relative to it).

    Example:
        >>> x = sympy.Symbol("x")
        >>> sectors(1 - sympy.erf(x), x, sympy.oo, 4)
        (exp(-x**2)*(1/(sqrt(pi)*x) - 1/(2*sqrt(pi)*x**3) + O(x**(-4), x -> oo)),)
    """
    point = limit_point(point)
    value = sympy.sympify(expr)
    if not isinstance(value, sympy.Expr):
        raise TypeError(f"series need an expression, not {value!r}")
    walk = _Expander(variable, point)
    value = rewrite_tails(_remove_limits(value), walk.tends_to)
    found: dict[sympy.Expr, Series] = {}
    for term in _exponential_terms(value, walk):
        exponent, part = walk.split(term)
        found[exponent] = found[exponent] + part if exponent in found else part
    chosen = found.items() if order is None else [(q, s.truncate(order)) for q, s in found.items()]
    return tuple(Sector(q, s) for q, s in sorted(chosen, key=lambda item: (item[0] != 0, str(item[0]))))


def _remove_limits(expr: Any) -> Any:
    """Replace each SymPy ``O`` by an unknown of ours, with its own limit point."""
    unknowns = {}
    for item in expr.atoms(sympy.Order):
        if len(item.variables) != 1:
            raise LimitPointError(f"{item} must have one variable and its limit; several have no common scale here")
        unknowns[item] = OrderTerm(item.expr, item.variables[0], item.point[0])._sympy_()
    # subs would let SymPy's O absorb its neighbours once more; xreplace only exchanges nodes
    return expr.xreplace(unknowns)


def _exponential_terms(expr: sympy.Expr, walk: _Expander) -> tuple[sympy.Expr, ...]:
    """The terms whose exponentials must be combined before expanding, or the whole expression if none diverges."""
    if not walk.has_divergent_exponential(expr):
        return (expr,)
    whole = sympy.expand(expr, power_base=False, log=False, trig=False)
    return tuple(sympy.Add.make_args(whole))


def _exponent(node: Any) -> Any:
    """q if the node is exp(q) up to rewriting of b**e with a moving exponent, else None."""
    if isinstance(node, sympy.exp):
        return node.args[0]
    if isinstance(node, sympy.Pow) and not node.exp.is_number:
        return node.exp * sympy.log(node.base)
    return None


def _growth(exponent: sympy.Expr, variable: sympy.Symbol, point: sympy.Expr) -> int:
    """1 if exp(exponent) grows without bound at the point, -1 if it vanishes, 0 if the exponent is 0."""
    if exponent == 0:
        return 0
    leading = min(sympy.Add.make_args(exponent), key=lambda term: scale_of(term, variable, point).power)
    power = scale_of(leading, variable, point).power
    sides = {sympy.oo: [1], -sympy.oo: [-1]}.get(point, [1, -1])
    factor = sympy.simplify(leading / local_parameter(variable, point) ** power)
    signs = {sympy.sign(factor * side ** int(power)) for side in sides}
    if signs == {sympy.S.One}:
        return 1
    if signs == {sympy.S.NegativeOne}:
        return -1
    raise ExpansionError(
        f"cannot decide whether exp({exponent}) grows or vanishes as {variable} -> {point}; "
        f"declare the sign of its parameters, or approach the point from one side (substitute x = x0 + 1/t, t -> oo)"
    )


def _beyond_all_orders(part: Series) -> Series:
    """An exponentially small part: every coefficient is 0, without having to evaluate any."""
    return replace(part, rule=lambda k: part.zero, order=None, start=0, stop=0)


class _Expander:
    """Turns expression nodes into series in one variable at one point."""

    def __init__(self, variable: sympy.Symbol, point: sympy.Expr) -> None:
        if not isinstance(variable, sympy.Symbol):
            raise TypeError(f"the expansion variable must be a symbol, not {variable!r}")
        self.variable, self.point = variable, point
        self._known: dict[sympy.Expr, Series] = {}

    def constant(self, value: Any) -> Series:
        return Series.polynomial(self.variable, self.point, [value])

    def moves(self, expr: sympy.Expr) -> bool:
        return expr.has(self.variable) or bool(expr.atoms(UnknownTerm))

    def __call__(self, expr: Any) -> Series:
        if expr not in self._known:
            self._known[expr] = self._expand(expr)
        return self._known[expr]

    def _expand(self, expr: Any) -> Series:
        if isinstance(expr, UnknownTerm):
            return self.constant(0).lift(expr.term)
        if not self.moves(expr):
            return self.constant(expr)
        if expr == self.variable:
            table = {-1: 1} if self.point.is_infinite else {0: self.point, 1: 1}
            return Series.polynomial(self.variable, self.point, table)
        if isinstance(expr, sympy.Add):
            return reduce(lambda left, right: left + right, map(self, expr.args))
        if isinstance(expr, sympy.Mul):
            return self._product([self(arg) for arg in expr.args])
        if isinstance(expr, sympy.exp):
            return self._exponential(expr.args[0])
        if isinstance(expr, sympy.Pow) and self.moves(expr.exp):
            return self._exponential(expr.exp * sympy.log(expr.base))
        if isinstance(expr, sympy.Pow):
            return self(expr.base) ** expr.exp
        return self._function(expr)

    def split(self, term: sympy.Expr) -> tuple[sympy.Expr, Series]:
        """The divergent exponent of a product, and the series of all the rest."""
        exponent, rest = sympy.S.Zero, []
        for factor in sympy.Mul.make_args(term):
            q = _exponent(factor)
            if q is not None and self.moves(q):
                exponent += q
            elif isinstance(factor, sympy.Pow) and self.has_divergent_exponential(factor.base):
                largest = self._largest_sector(factor.base)
                exponent += largest.exponent * factor.exp
                rest.append(largest.series**factor.exp)
            else:
                rest.append(self(factor))
        polar, regular = self._polar(exponent)
        return polar, self._product([regular, *rest] if exponent != 0 else rest)

    def _product(self, factors: list[Series]) -> Series:
        """The product; next to an error, leading zeros are dropped first because they decide how far it reaches."""
        if any(factor.error is not None for factor in factors):
            factors = list(map(trimmed, factors))
        return reduce(lambda left, right: left * right, factors) if factors else self.constant(1)

    def _largest_sector(self, base: sympy.Expr) -> Sector:
        """The dominant sector; in a power of a sum the others are beyond all orders relative to it."""
        parts = sectors(base, self.variable, self.point)
        return reduce(
            lambda a, b: b if _growth(sympy.expand(b.exponent - a.exponent), self.variable, self.point) > 0 else a,
            parts,
        )

    def has_divergent_exponential(self, expr: sympy.Expr) -> bool:
        """Whether some exp or power inside has an unbounded exponent at the point."""
        exponents = map(_exponent, expr.atoms(sympy.exp, sympy.Pow))
        return any(q is not None and self.diverges(q) for q in exponents)

    def _polar(self, exponent: sympy.Expr) -> tuple[sympy.Expr, Series]:
        """exp(exponent) = exp(divergent part) * series."""
        if exponent == 0:
            return sympy.S.Zero, self.constant(1)
        inner = self(sympy.expand(exponent))
        if inner.known is not None and inner.known <= 0:
            raise ExpansionError(f"exp({exponent}) has no bound: its exponent is known only up to {inner.order_term}")
        divergent = inner.partial_sum(0) if inner.start < 0 else sympy.S.Zero
        return sympy.expand(divergent), self._compose(sympy.exp, inner.remainder(0))

    def _exponential(self, exponent: Any) -> Series:
        polar, regular = self._polar(exponent)
        growth = _growth(polar, self.variable, self.point)
        if growth > 0:
            raise ScaleError(
                f"exp({exponent}) grows faster than any power of {local_parameter(self.variable, self.point)} "
                f"as {self.variable} -> {self.point}"
            )
        return regular if growth == 0 else _beyond_all_orders(regular)

    def _function(self, expr: Any) -> Series:
        if isinstance(expr, _NOT_ANALYTIC):
            raise ExpansionError(
                f"{expr} is not analytic: take the branch that holds near the point first (for instance x for Abs(x))"
            )
        moving = [i for i, arg in enumerate(expr.args) if self.moves(arg)]
        if not isinstance(expr, sympy.Function) or len(moving) != 1:
            return self._by_differentiation(expr)
        (i,) = moving
        inner = self(expr.args[i])
        if isinstance(expr, ErfcTail):
            return tail_series(self.variable).compose(inner)
        return self._compose(lambda y: expr.func(*expr.args[:i], y, *expr.args[i + 1 :]), inner)

    def _compose(self, function: Callable[[sympy.Expr], Any], inner: Series) -> Series:
        """function(inner), through the Taylor series of the function at the value that ``inner`` tends to."""
        y = sympy.Dummy("y")
        shown = function(sympy.Symbol("y"))
        if self._tends_to_infinity(inner):
            raise ExpansionError(f"{shown} has no power series where y diverges ({self.variable} -> {self.point})")
        if inner.known is not None and inner.known <= 0:
            raise ExpansionError(f"{shown} at an argument y known only up to {inner.order_term} has no bound")
        center = inner.coefficient(0)
        derivatives = [function(y)]

        def rule(k: int) -> sympy.Expr:
            while len(derivatives) <= k:
                derivatives.append(sympy.expand(derivatives[-1].diff(y)))
            return _value(derivatives[k], y, center) / sympy.factorial(k)

        rule(0)
        return Series(y, center, rule).compose(inner)

    def _tends_to_infinity(self, inner: Series) -> bool:
        return any(not structurally_zero(inner.coefficient(k)) for k in range(inner.start, min(0, inner.known or 0)))

    def _by_differentiation(self, expr: sympy.Expr) -> Series:
        """Repeated differentiation of the whole expression: derivatives and integrals of undefined functions."""
        if self.point.is_infinite or expr.atoms(UnknownTerm):
            raise ExpansionError(f"no rule expands {expr} as {self.variable} -> {self.point}")
        derivatives = [expr]

        def rule(k: int) -> sympy.Expr:
            while len(derivatives) <= k:
                derivatives.append(derivatives[-1].diff(self.variable))
            return _value(derivatives[k], self.variable, self.point) / sympy.factorial(k)

        return Series(self.variable, self.point, rule)

    def tends_to(self, argument: sympy.Expr) -> int:
        """1 or -1 if the argument tends to oo or -oo at the point, else 0."""
        if not self.diverges(argument):
            return 0
        inner = self(argument)
        divergent = inner.partial_sum(min(0, inner.known) if inner.known is not None else 0)
        return _growth(sympy.expand(divergent), self.variable, self.point)

    def diverges(self, argument: sympy.Expr) -> bool:
        """Whether the argument is unbounded at the point; False where it cannot be expanded at all."""
        if not self.moves(argument):
            return False
        try:
            return self._tends_to_infinity(self(argument))
        except ValueError:
            return False


def _value(function: sympy.Expr, y: sympy.Symbol, center: sympy.Expr) -> sympy.Expr:
    value = function.subs(y, center)
    if value.has(*_SINGULAR) or isinstance(value, sympy.AccumBounds):
        shown = function.subs(y, sympy.Symbol("y"))
        raise ExpansionError(f"{shown} is singular at y = {center} and has no power series there; choose another point")
    return value
