"""Taylor remainders: the integral and the Lagrange form as expressions, derivatives of symbolic order, proven bounds.

With h = x - x0 and the terms of total degree below n kept, the remainder is

    integral form   R_n = sum_{|alpha| = n} (n / alpha!) h^alpha int_0^1 (1 - t)^{n-1} d^alpha f(x0 + t h) dt
    Lagrange form   R_n = sum_{|alpha| = n} (1 / alpha!) h^alpha d^alpha f(x0 + theta h),  0 < theta < 1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Any, Literal

import mpmath
import sympy

from .intervals import supremum

# Dummies: no symbol of the user's function can be confused with them.
THETA = sympy.Dummy("theta", positive=True)
T = sympy.Dummy("t", real=True)
XI = sympy.Dummy("xi")
RemainderForm = Literal["integral", "lagrange"]


class SymbolicOrderError(ValueError):
    """An operation that needs a number where the order is a symbol."""


class NthDerivative(sympy.Expr):
    """d^k f / dx^k with a symbolic order k; it becomes the derivative as soon as k is a number.

    SymPy's ``Derivative(f(x), (x, k))`` vanishes inside a finite sum over k (sympy #27852); this one does not.

    Example:
        >>> x, k = sympy.symbols("x k")
        >>> f = sympy.Function("f")
        >>> sympy.Sum(NthDerivative(f(x), x, k), (k, 1, 2)).doit()
        Derivative(f(x), x) + Derivative(f(x), (x, 2))
    """

    __slots__ = ()
    is_commutative = True

    def __new__(cls, function: Any, variable: sympy.Symbol, order: Any) -> Any:
        f, k = sympy.sympify(function), sympy.sympify(order)
        if not isinstance(variable, sympy.Symbol):
            raise TypeError(f"derivatives are taken in a symbol, not in {variable!r}")
        if k.is_Integer and k >= 0:
            return f.diff(variable, int(k))
        if k.is_integer is False or k.is_negative:
            raise ValueError(f"the order of a derivative must be an integer >= 0, not {k}")
        return sympy.Expr.__new__(cls, f, variable, k)

    def _parts(self) -> tuple[Any, Any, Any]:
        f, x, k = self.args
        return f, x, k

    def _eval_derivative(self, s: sympy.Symbol) -> Any:
        f, x, k = self._parts()
        if k.has(s):
            raise SymbolicOrderError(f"{self} has no derivative in its order {k}")
        return NthDerivative(f, x, k + 1) if s == x else NthDerivative(f.diff(s), x, k)

    def _eval_subs(self, old: sympy.Basic, new: sympy.Basic) -> Any:
        f, x, k = self._parts()
        if old != x or isinstance(new, sympy.Symbol):
            return None
        y = sympy.Dummy("y")  # differentiate first, then insert the value
        return sympy.Subs(NthDerivative(f.subs(x, y), y, k), y, new)

    def _latex(self, printer: Any) -> str:
        f, x, k = map(printer.doprint, self.args)
        return rf"\frac{{d^{{{k}}}}}{{d {x}^{{{k}}}}} {f}"


@dataclass(frozen=True, slots=True)
class RemainderBound:
    """A proven bound: |R_n| <= value on the box."""

    value: float
    order: int
    box: tuple[tuple[sympy.Symbol, float, float], ...]
    method: str

    def __repr__(self) -> str:
        ranges = ", ".join(f"{x} in [{low}, {high}]" for x, low, high in self.box)
        return f"|R_{self.order}| <= {self.value:.6g} for {ranges} ({self.method})"


@dataclass(frozen=True, slots=True)
class Remainder:
    """R_n of a Taylor series, see the formulas at the top of this module.

    ``order`` may be a symbol if there is one variable; `at_order` inserts a number.

    Raises:
        SymbolicOrderError: a symbolic order in several variables, or where a number is needed.
        ValueError: an unknown form; the integral form of R_0.
    """

    function: sympy.Expr
    variables: tuple[sympy.Symbol, ...]
    point: tuple[sympy.Expr, ...]
    order: sympy.Expr
    form: RemainderForm = "integral"

    def __post_init__(self) -> None:
        if self.form not in ("integral", "lagrange"):
            raise ValueError(f"unknown remainder form {self.form!r}: choose 'integral' or 'lagrange'")
        if not self.order.is_Integer and len(self.variables) > 1:
            raise SymbolicOrderError(f"order {self.order} in {len(self.variables)} variables: give a number")
        low = 1 if self.form == "integral" else 0
        if self.order.is_integer is False or (self.order.is_Integer and self.order < low):
            raise ValueError(f"the {self.form} form needs an integer order >= {low}, not {self.order}")

    def at_order(self, n: int) -> Remainder:
        """The same remainder at a number ``n`` in place of a symbolic order."""
        return replace(self, order=sympy.Integer(n))

    @property
    def expr(self) -> sympy.Expr:
        """The remainder as an expression: an unevaluated integral over t, or with 0 < theta < 1 unknown."""
        if not self.order.is_Integer:
            return self._symbolic_order()
        along = THETA if self.form == "lagrange" else T
        parts = [self._part(alpha, along) for alpha in self._indices()]
        total = sympy.Add(*parts)
        if self.form == "lagrange":
            return total
        n = int(self.order)
        return sympy.Integral(n * (1 - T) ** (n - 1) * total, (T, 0, 1))

    def _indices(self) -> list[tuple[int, ...]]:
        chosen = combinations_with_replacement(range(len(self.variables)), int(self.order))
        return [tuple(pick.count(i) for i in range(len(self.variables))) for pick in chosen]

    def _part(self, alpha: tuple[int, ...], along: sympy.Symbol) -> sympy.Expr:
        h = [x - x0 for x, x0 in zip(self.variables, self.point, strict=True)]
        where: dict[Any, Any] = {
            x: x0 + along * step for x, x0, step in zip(self.variables, self.point, h, strict=True)
        }
        weight = prod(step**a for step, a in zip(h, alpha, strict=True)) / sympy.Integer(prod(map(factorial, alpha)))
        return weight * self._derivative(alpha).subs(where, simultaneous=True)

    def _derivative(self, alpha: tuple[int, ...]) -> sympy.Expr:
        steps = [(x, a) for x, a in zip(self.variables, alpha, strict=True) if a]
        return self.function.diff(*steps) if steps else self.function

    def _symbolic_order(self) -> sympy.Expr:
        (x,), (x0,), n = self.variables, self.point, self.order
        h = x - x0
        along = THETA if self.form == "lagrange" else T
        derivative = sympy.Subs(NthDerivative(self.function.subs(x, XI), XI, n), XI, x0 + along * h)
        if self.form == "lagrange":
            return h**n / sympy.factorial(n) * derivative
        return h**n / sympy.factorial(n - 1) * sympy.Integral((1 - T) ** (n - 1) * derivative, (T, 0, 1))

    def evaluate(self, at: Mapping[Any, Any], digits: int = 15) -> sympy.Expr:
        """The number R_n at given values of the variables, by quadrature of the integral form."""
        if not self.order.is_Integer:
            raise SymbolicOrderError(f"order {self.order} is a symbol: choose a number by at_order(n)")
        if self.form != "integral":
            raise ValueError("the Lagrange form has an unknown theta and no value; use the integral form or bound()")
        expr = self.expr.subs(dict(at))
        if not isinstance(expr, sympy.Integral):  # the function is a polynomial of lower degree
            return expr.evalf(digits)
        if expr.free_symbols:
            raise ValueError(f"{expr} still contains {expr.free_symbols}: give all variables and parameters a value")
        integrand = sympy.lambdify(T, expr.function, "mpmath")
        with mpmath.workdps(digits + 10):
            value = mpmath.quad(integrand, [0, 1])
        return sympy.Float(value, digits)

    def bound(self, box: Mapping[sympy.Symbol, tuple[Any, Any]], pieces: int = 64) -> RemainderBound:
        """A proven bound of |R_n| on a box: sum over |alpha| = n of sup |d^alpha f| max |h|^alpha / alpha!.

        The suprema are upper bounds by interval arithmetic over ``pieces`` cells of the smallest box that contains
        ``box`` and the expansion point, so the bound also holds for every theta of the Lagrange form.

        Raises:
            SymbolicOrderError: the order is a symbol.
            EnclosureError: the derivative contains a function without an interval rule, or is unbounded on the box.
        """
        if not self.order.is_Integer:
            raise SymbolicOrderError(f"order {self.order} is a symbol: choose a number by at_order(n)")
        if set(box) != set(self.variables):
            raise ValueError(f"the box must give (low, high) for each of {self.variables}, not for {tuple(box)}")
        hull, reach = {}, []
        for x, x0 in zip(self.variables, self.point, strict=True):
            low, high = map(sympy.sympify, box[x])
            if not (x0.is_real and low.is_real and high.is_real and low <= high):
                raise ValueError(f"{x} in [{low}, {high}] around {x0}: need real numbers with low <= high")
            hull[x] = (min(low, x0), max(high, x0))
            reach.append(max(abs(low - x0), abs(high - x0)))
        # the few roundings of this sum are covered by the factor 1 + 1e-12
        value = sum(self._part_bound(alpha, hull, reach, pieces) for alpha in self._indices()) * (1 + 1e-12)
        ranges = tuple((x, float(box[x][0]), float(box[x][1])) for x in self.variables)
        return RemainderBound(value, int(self.order), ranges, f"interval arithmetic, {pieces} cells")

    def _part_bound(self, alpha: tuple[int, ...], hull: Mapping[Any, Any], reach: list[Any], pieces: int) -> float:
        weight = prod(float(r) ** a for r, a in zip(reach, alpha, strict=True)) / prod(map(factorial, alpha))
        return supremum(self._derivative(alpha), hull, pieces) * weight

    def latex(self) -> str:
        """The remainder as LaTeX."""
        name = rf"R_{{{sympy.latex(self.order)}}}"
        side = r",\quad 0 < \theta < 1" if self.form == "lagrange" else ""
        return f"{name} = {sympy.latex(self.expr)}{side}"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"
