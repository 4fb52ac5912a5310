"""The scale of a positive rational function of the sizes whose coefficients are expressions in fixed symbols."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy

from .scale import Comparison, Scale, ScaleError
from .scale_text import from_sympy

__all__ = ["leading_scale", "proved_positive"]


def leading_scale(value: sympy.Expr, names: Iterable[str]) -> tuple[Scale, tuple[str, ...]]:
    """The scale of a sum of monomials in the sizes, and what had to be assumed about its leading coefficients.

    Raises:
        ScaleError: a negative term is not dominated by positive ones.
    """
    wanted = frozenset(names)
    parts: dict[Scale, Any] = {}
    for term in sympy.Add.make_args(sympy.expand(value)):
        sizes = [s for s in term.free_symbols if s.name in wanted]  # type: ignore[attr-defined]
        coefficient, monomial = term.as_independent(*sizes) if sizes else (term, sympy.S.One)
        scale = from_sympy(monomial, wanted) if sizes else Scale.one()
        parts[scale] = parts.get(scale, sympy.S.Zero) + coefficient
    parts = {scale: sympy.factor(c) for scale, c in parts.items() if sympy.expand(c) != 0}
    proved = [scale for scale, c in parts.items() if proved_positive(c)]
    # what is of smaller order than a proved term does not matter, whatever its sign
    rest = {s: c for s, c in parts.items() if s not in proved and not any(s.compare(p) is Comparison.LESS for p in proved)}
    rest = {s: c for s, c in rest.items() if not any(s.compare(other) is Comparison.LESS for other in rest)}
    for scale, c in rest.items():
        if proved_positive(-c):
            raise ScaleError(f"the term {c} * {scale} of {value} is negative and not dominated by positive ones")
    return Scale.max(*proved, *rest), tuple(f"{c} > 0" for c in rest.values())


def proved_positive(value: Any) -> bool:
    """Whether a constant is positive: by SymPy's assumptions, or a polynomial in one positive symbol without positive root."""
    if value.is_positive is not None:
        return bool(value.is_positive)
    sign = 1
    factored: Any = sympy.factor(value)
    for factor in sympy.Mul.make_args(factored):
        if factor.is_positive:
            continue
        if factor.is_negative:
            sign = -sign
            continue
        found = _polynomial_sign(factor)
        if not found:
            return False
        sign *= found
    return sign > 0


def _polynomial_sign(value: Any) -> int:
    """1 or -1 for a rational polynomial in one positive symbol that has no root on (0, oo), by Sturm's theorem; 0 otherwise."""
    base, power = value.as_base_exp()
    symbols = list(base.free_symbols)
    if len(symbols) != 1 or not symbols[0].is_positive or not power.is_Integer or not base.is_polynomial(symbols[0]):
        return 0
    poly: Any = sympy.Poly(base, symbols[0])
    if not poly.domain.is_ZZ and not poly.domain.is_QQ:
        return 0
    if poly.count_roots(0, sympy.oo) - (poly.eval(0) == 0):
        return 0
    at_one = 1 if poly.eval(1) > 0 else -1
    return at_one if power % 2 else 1
