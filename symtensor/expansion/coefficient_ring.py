"""Numbers and symbols as the elements of one ring, so that long recursions run on exact arithmetic and not on expressions.

Rationals are elements of QQ. With symbols, every entry is a polynomial over QQ (or QQ<i>, or floats) in the symbols and
in whatever else occurs in it (sqrt(2), exp(-t), 1/m), each such part a generator of its own; no question about signs or
positivity is ever put to SymPy. Floats, complex numbers and mpmath numbers calculate with themselves.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import sympy as sp
from sympy.polys.rings import sring

from .moment_errors import MomentError, NotPolynomialError

__all__ = ["CoefficientRing", "as_polynomial", "plain"]

MAX_EXPONENT = 10_000


@dataclass(frozen=True, slots=True)
class CoefficientRing:
    """How coefficients are calculated with (`rational`, `zero`, `one`) and written down for the user (`write`).

    Example:
        >>> ring, (a, b) = CoefficientRing.containing([sp.Symbol("v"), Fraction(1, 2)])
        >>> ring.write((a + b) * (a + b))
        v**2 + v + 1/4
    """

    kind: Literal["rational", "symbolic", "inexact"]
    zero: Any
    one: Any

    @classmethod
    def containing(cls, values: Sequence[Any]) -> tuple[CoefficientRing, list[Any]]:
        """The smallest ring that holds all values, and the values as its elements.

        Raises:
            MomentError: a value is no finite commuting scalar.
        """
        read = [plain(value) for value in values]
        if all(isinstance(value, Fraction) for value in read):
            return cls("rational", sp.QQ(0), sp.QQ(1)), [_rational(value) for value in read]
        if any(isinstance(value, sp.Basic) for value in read):
            return cls._symbolic([sp.sympify(value) for value in read])
        return cls("inexact", 0, 1), read

    @classmethod
    def _symbolic(cls, values: list[Any]) -> tuple[CoefficientRing, list[Any]]:
        ring, elements = sring(values, field=True)
        return cls("symbolic", ring.zero, ring.one), list(elements)

    def rational(self, numerator: int, denominator: int = 1) -> Any:
        """numerator/denominator as something that multiplies elements."""
        if self.kind == "inexact":
            return numerator if denominator == 1 else numerator / denominator
        value = sp.QQ(numerator, denominator)
        return value if self.kind == "rational" else self.one.ring.domain.convert(value)

    def write(self, element: Any) -> Any:
        """An element as the user reads it: a Fraction, an expanded SymPy expression, or the inexact number itself.

        Raises:
            MomentError: floating-point numbers have overflowed.
        """
        if self.kind == "rational":
            return Fraction(int(element.numerator), int(element.denominator))
        if self.kind == "symbolic":
            expression = element.as_expr()
            return expression if all(g.is_Symbol for g in self.one.ring.symbols) else sp.expand(expression)
        if isinstance(element, float | complex) and not abs(element) < float("inf"):
            raise MomentError(f"floating-point overflow (the result is {element}); give exact numbers, for example Fraction")
        return element


def _rational(value: Fraction) -> Any:
    return sp.QQ(value.numerator, value.denominator)


def plain(value: Any) -> Any:
    """A value as a Fraction, an inexact number, or a SymPy expression that is no rational number.

    Raises:
        MomentError: the value is no finite commuting scalar.

    Example:
        >>> plain(sp.Rational(1, 3)), plain(0.5), plain(sp.Symbol("v"))
        (Fraction(1, 3), 0.5, v)
    """
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, bool | str):
        raise MomentError(f"{value!r} is no coefficient; give a number or a SymPy expression")
    if isinstance(value, sp.Basic):
        return _plain_expression(value)
    if isinstance(value, numbers.Rational | Decimal) and value == value and abs(value) != float("inf"):
        value = Fraction(value)
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if not (isinstance(value, numbers.Number) or hasattr(value, "_mpf_") or hasattr(value, "_mpc_")):
        raise MomentError(f"{value!r} is no coefficient; give a number or a SymPy expression")
    if not abs(value) < float("inf"):  # type: ignore[operator]
        raise MomentError(f"the coefficient {value!r} is not finite")
    return value


def _plain_expression(value: sp.Basic) -> Any:
    if isinstance(value, sp.Rational):
        return Fraction(int(value.p), int(value.q))
    if not isinstance(value, sp.Expr) or not value.is_commutative:
        raise MomentError(f"{value} is no commuting scalar; give a number or a SymPy expression")
    if value.has(sp.oo, -sp.oo, sp.nan, sp.zoo, sp.Order):
        raise MomentError(f"the coefficient {value} is not finite or contains an O-term; give finite expressions")
    return value


def as_polynomial(expression: Any, variables: Sequence[sp.Symbol]) -> list[tuple[tuple[int, ...], sp.Expr]]:
    """The terms (exponents, coefficient) of a polynomial in the variables, in a fixed order.

    Raises:
        NotPolynomialError: a part of the expression is no polynomial in the variables.

    Example:
        >>> x, g = sp.symbols("x g")
        >>> as_polynomial(g * (x + 1) ** 2, [x])
        [((2,), g), ((1,), 2*g), ((0,), g)]
    """
    expression = sp.sympify(expression)
    if not isinstance(expression, sp.Expr):
        raise NotPolynomialError(f"{expression} is a {type(expression).__name__}; give a SymPy expression")
    names = ", ".join(map(str, variables))
    if not expression.is_polynomial(*variables):
        nodes = (node for node in sp.postorder_traversal(expression) if isinstance(node, sp.Expr))
        part = next((node for node in nodes if not node.is_polynomial(*variables)), expression)
        point = ", ".join("0" for _ in variables)
        raise NotPolynomialError(
            f"{part} is not a polynomial in {names}, and only polynomials have moments here; expand it first: "
            f"symtensor.taylor({part}, [{names}], [{point}], order).partial_sum()"
        )
    for power in expression.atoms(sp.Pow):
        if power.has(*variables) and power.exp > MAX_EXPONENT:
            raise MomentError(f"{power} has a power above {MAX_EXPONENT}; that many moments are not computed")
    if not variables:
        return [((), expression)] if expression != 0 else []
    polynomial = sp.Poly(expression, *variables)
    return [] if polynomial.is_zero else [(tuple(map(int, k)), c) for k, c in polynomial.terms()]
