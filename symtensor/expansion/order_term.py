"""O-terms with a limit point and an identity of their own.

An O-term is an unknown function bounded by its scale. Two O-terms that look alike are two unknowns: they never cancel,
and one is never divided by another. SymPy's own ``O`` cancels structurally (sympy #6737) and defaults to the point 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

from .scale import LimitPointError, Scale, ScaleError, coarsest, limit_point, scale_of


class OrderDivisionError(ValueError):
    """Division by an O-term: it may be zero, so the quotient has no bound."""


class UnknownTerm(sympy.Dummy):
    """The symbol that stands for one O-term inside a SymPy expression; each entry is a new unknown."""

    __slots__ = ("term",)
    term: OrderTerm

    @property
    def free_symbols(self) -> set[sympy.Basic]:
        return {self, self.term.variable}

    def _eval_derivative(self, s: sympy.Symbol) -> sympy.Expr:
        if s == self.term.variable:
            raise ValueError(f"{self.term} has no known derivative in {s}: a bound does not bound the slope")
        return sympy.S.Zero

    def _eval_derivative_n_times(self, s: sympy.Symbol, n: Any) -> sympy.Expr:
        return self._eval_derivative(s)

    def _eval_subs(self, old: sympy.Basic, new: sympy.Basic) -> sympy.Expr | None:
        if old != self.term.variable:
            return None
        if not isinstance(new, sympy.Symbol):
            raise ValueError(
                f"{self.term} is a statement about {old} as a whole; {old} cannot become {new}, only be renamed"
            )
        return OrderTerm.from_scale(self.term.scale, new, self.term.point)._sympy_()

    def _sympystr(self, printer: Any) -> str:
        return str(self.term)

    _sympyrepr = _sympystr

    def _latex(self, printer: Any) -> str:
        return self.term.latex()


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class OrderTerm:
    """The O-term O(expr) as ``variable`` tends to ``point``.

    Args:
        expr: the growth, within the group s^p log(s)^q of the local parameter s; constant factors are dropped, and in a
            sum the dominant term counts.
        variable: the variable that moves.
        point: its limit: a finite value, ``oo`` or ``-oo``. Required: O(n) at 0 and at oo are different statements.

    It adds to and multiplies SymPy expressions; there each entry becomes a new symbol, so nothing cancels. `series`
    propagates these symbols. ``==`` is identity.

    Raises:
        ScaleError: growth outside the group, such as 2**n.
        LimitPointError: no limit point, or two different ones combined.
        OrderDivisionError: anything divided by an O-term.

    Example:
        >>> n = sympy.Symbol("n")
        >>> OrderTerm(3 * n, n, sympy.oo) + OrderTerm(n**2, n, sympy.oo)
        O(n**2, n -> oo)
    """

    scale: Scale
    variable: sympy.Symbol
    point: sympy.Expr

    _op_priority = 999.0

    def __init__(self, expr: Any, variable: sympy.Symbol, point: Any = None) -> None:
        if not isinstance(variable, sympy.Symbol):
            raise TypeError(f"the variable of an O-term must be a symbol, not {variable!r}")
        self._set(scale_of(expr, variable, point), variable, limit_point(point))

    def _set(self, scale: Scale, variable: sympy.Symbol, point: sympy.Expr) -> None:
        for name, value in (("scale", scale), ("variable", variable), ("point", point)):
            object.__setattr__(self, name, value)

    @classmethod
    def from_scale(cls, scale: Scale, variable: sympy.Symbol, point: Any) -> OrderTerm:
        """The O-term with the given scale of the local parameter."""
        result = object.__new__(cls)
        result._set(scale, variable, limit_point(point))
        return result

    @property
    def expr(self) -> sympy.Expr:
        """The scale written in the variable."""
        return self.scale.expression(self.variable, self.point)

    def require(self, variable: sympy.Symbol, point: sympy.Expr) -> None:
        """Check that this O-term is a statement about ``variable`` tending to ``point``."""
        if (self.variable, self.point) != (variable, point):
            raise LimitPointError(f"{self} says nothing about {variable} -> {point}; both need the same limit point")

    def contains(self, other: Any) -> bool:
        """Whether ``other`` (an O-term at the same point, or an expression) is O of this term's scale."""
        if isinstance(other, OrderTerm):
            other.require(self.variable, self.point)
            return other.scale.within(self.scale)
        return scale_of(other, self.variable, self.point).within(self.scale)

    def _with(self, scale: Scale) -> OrderTerm:
        return OrderTerm.from_scale(scale, self.variable, self.point)

    def _sympy_(self) -> sympy.Expr:
        symbol = UnknownTerm("~O")
        symbol.term = self
        return symbol

    def __add__(self, other: Any) -> Any:
        if isinstance(other, OrderTerm):
            other.require(self.variable, self.point)
            scale = coarsest((self.scale, other.scale))
            assert scale is not None
            return self._with(scale)
        return _with_expression(other, lambda value: self._sympy_() + value)

    __radd__ = __add__

    def __neg__(self) -> OrderTerm:
        return self._with(self.scale)

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, OrderTerm):
            return self + other
        return _with_expression(other, lambda value: self._sympy_() - value)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, OrderTerm):
            other.require(self.variable, self.point)
            return self._with(self.scale * other.scale)
        return _with_expression(other, self._times)

    __rmul__ = __mul__

    def _times(self, value: sympy.Expr) -> Any:
        if value == 0:
            return value
        try:
            return self._with(self.scale * scale_of(value, self.variable, self.point))
        except ScaleError:  # a factor such as sin(x) or 2**n is kept: `series` decides about it
            return self._sympy_() * value

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, OrderTerm):
            return other.__rtruediv__(self)
        return _with_expression(other, lambda value: self._times(1 / value))

    def __rtruediv__(self, other: Any) -> Any:
        raise OrderDivisionError(
            f"{other} / {self}: an O-term may be zero; divide by an expression with a leading term"
        )

    def __pow__(self, exponent: Any) -> OrderTerm:
        value = sympy.sympify(exponent)
        if not value.is_positive or not value.is_number:
            raise OrderDivisionError(
                f"({self})**({exponent}) has no bound; only powers with a positive number have one"
            )
        return self._with(self.scale**value)

    def __repr__(self) -> str:
        return f"O({self.expr}, {self.variable} -> {self.point})"

    def latex(self) -> str:
        """The O-term as LaTeX, with its limit point."""
        limit = f"{sympy.latex(self.variable)} \\to {sympy.latex(self.point)}"
        return rf"\mathcal{{O}}\left({sympy.latex(self.expr)},\ {limit}\right)"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"


def _with_expression(other: Any, combine: Any) -> Any:
    try:
        value = sympy.sympify(other, strict=True)
    except sympy.SympifyError:
        return NotImplemented
    return combine(value)
