"""Coefficients: finite commuting SymPy scalars, and the normal form in which they are compared."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import sympy

from symtensor.tensor.errors import ArrayError, CoefficientError

_INFINITE = (sympy.nan, sympy.zoo, sympy.oo, sympy.S.NegativeInfinity)
# Digits of intermediate results when a coefficient becomes a float64, so that the result is correctly rounded.
_DIGITS = 25


def is_scalar(value: object) -> bool:
    """Whether SymPy reads `value` as an expression (strings are never read)."""
    return _read(value) is not None


def _read(value: object) -> sympy.Expr | None:
    if isinstance(value, sympy.Expr):
        return value
    try:
        expression = sympy.sympify(value, strict=True)
    except sympy.SympifyError:
        return None
    return expression if isinstance(expression, sympy.Expr) else None


def as_scalar(value: object) -> sympy.Expr:
    """`value` as a SymPy expression.

    Raises: CoefficientError if it is no number or SymPy expression, does not commute, or is not finite.
    """
    scalar = _read(value)
    if scalar is None:
        raise CoefficientError(f"coefficient {value!r} ({type(value).__name__}): need a number or SymPy expression")
    if not scalar.is_commutative:
        names = ", ".join(sorted(str(s) for s in scalar.free_symbols if not s.is_commutative)) or str(scalar)
        raise CoefficientError(f"non-commuting {names} in coefficient {scalar}: only commuting scalars are allowed")
    if scalar.has(*_INFINITE):
        raise CoefficientError(f"coefficient {scalar} is not finite (division by zero?)")
    return scalar


@lru_cache(maxsize=4096)
def normal_form(scalar: sympy.Expr) -> sympy.Expr:
    """Expanded sum of monomials, or an expanded fraction where a denominator is a sum.

    Unique for rational functions of the symbols (functions such as exp(x) count as symbols of their own): equality
    is decided by comparing. Identities between functions (sin^2 + cos^2 = 1) are not applied.
    """
    if scalar.is_Number or scalar.is_Symbol:
        return scalar
    expanded = sympy.expand(scalar)
    denominators = (power for power in expanded.atoms(sympy.Pow) if power.exp.could_extract_minus_sign())
    if all(power.base.is_Symbol or power.base.is_Number for power in denominators):
        return expanded
    return sympy.cancel(sympy.together(expanded))


@lru_cache(maxsize=4096)
def exact_form(scalar: sympy.Expr) -> sympy.Expr:
    """The normal form with floats replaced by the rationals they are, so that 0.5 and 1/2 compare equal."""
    floats = scalar.atoms(sympy.Float)
    return normal_form(scalar.xreplace({number: sympy.Rational(number) for number in floats}) if floats else scalar)


def numeric_value(scalar: sympy.Expr, values: Mapping[str, float]) -> float | complex:
    """The number a coefficient has for symbol values by name.

    Raises: ArrayError naming a symbol without a value, CoefficientError if the result is not a finite number.
    """
    known = {}
    for symbol in sorted(scalar.free_symbols, key=str):
        if str(symbol) not in values:
            raise ArrayError(f"no value for symbol {symbol} in coefficient {scalar}: pass scalars={{'{symbol}': ..}}")
        known[symbol] = sympy.sympify(values[str(symbol)], strict=True)
    number = sympy.N(scalar.xreplace(known), _DIGITS)
    if not number.is_number or number.has(*_INFINITE):
        raise CoefficientError(f"coefficient {scalar} is {number} at {known}: need a finite number")
    value = complex(number)
    return value.real if value.imag == 0 else value
