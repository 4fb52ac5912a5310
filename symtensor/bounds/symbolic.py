"""SymPy expressions in sizes, with O-terms of `symtensor.expansion` inside, as expressions of this package."""

from __future__ import annotations

import sympy

from symtensor.expansion import LimitPointError
from symtensor.expansion.order_term import UnknownTerm

from .expr import Expr, add, as_expr, deterministic_scale, order_term, outer, power, scaled
from .functions import Function, X, as_function
from .scale import ScaleError
from .scale_text import from_sympy

__all__ = ["from_symbols"]


def from_symbols(value: sympy.Expr, known: dict[sympy.Basic, Expr] | None = None) -> Expr:
    """Sums, products, powers and functions of sizes (which tend to infinity) and O-terms at infinity.

    One O-term that occurs twice is one unknown; it still does not cancel.

    Raises:
        LimitPointError: SymPy's O at another point than infinity; sizes tend to infinity.
        ScaleError: growth outside the group, such as 2**n.
    """
    known = {} if known is None else known
    if value not in known:
        known[value] = _read(value, known)
    return known[value]


def _read(value: sympy.Expr, known: dict[sympy.Basic, Expr]) -> Expr:
    if isinstance(value, UnknownTerm):
        return order_term(value.term)
    if isinstance(value, sympy.Order):
        return _sympy_order(value)
    if not value.has(UnknownTerm, sympy.Order):
        return as_expr(value) if value.is_number else _deterministic(value)
    parts = [from_symbols(arg, known) for arg in value.args]  # type: ignore[arg-type]
    if isinstance(value, sympy.Add):
        return add(*parts)
    if isinstance(value, sympy.Mul):
        return outer(*parts)
    if isinstance(value, sympy.Pow) and value.exp.is_number:
        return power(parts[0], value.exp)
    if len(value.args) == 1:
        phi = as_function(type(value)(X))  # type: ignore[call-arg]
        return Expr("apply", (parts[0],), Function(str(value.func), phi.expr, phi.growth, phi.continuous), (), parts[0].family)
    raise ScaleError(f"{value} is no sum, product, power or function of one argument of O-terms and sizes")


def _deterministic(value: sympy.Expr) -> Expr:
    sizes = frozenset(s.name for s in value.free_symbols)  # type: ignore[attr-defined]
    sign, size = value.as_coeff_Mul()
    if sign.is_negative:
        return scaled(sign, deterministic_scale(from_sympy(size, sizes)))
    if isinstance(value, sympy.Add):  # the parts may have both signs
        return add(*(_deterministic(term) if term.free_symbols else as_expr(term) for term in value.args))
    return deterministic_scale(from_sympy(value, sizes))


def _sympy_order(value: sympy.Order) -> Expr:
    if any(point != sympy.oo for point in value.point):
        raise LimitPointError(f"{value} is a statement at {value.point}, but sizes tend to infinity: write O(f, (n, oo))")
    inside: sympy.Expr = value.args[0]  # type: ignore[assignment]
    return order_term(from_sympy(inside, frozenset(s.name for s in value.variables)))
