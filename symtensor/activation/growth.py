"""How fast a function grows against a Gaussian: the largest variance with a finite second moment."""

from __future__ import annotations

from typing import Any

import sympy as sp

from symtensor.activation.pieces import ActivationError, Piece, spelled

__all__ = ["critical_variance"]

#: bounded, or growing slower than any exp(epsilon x^2)
_TEMPERATE = (sp.sin, sp.cos, sp.tanh, sp.erf, sp.atan, sp.asinh, sp.log, sp.tan)


def critical_variance(pieces: tuple[Piece, ...], x: sp.Symbol) -> sp.Expr:
    """sup {K : E sigma(sqrt(K) Z)^2 < oo} of a function given by its smooth pieces.

    With ``rate = lim sup log|sigma(x)| / x^2`` over both directions, ``E sigma^2`` is finite for ``4 rate K < 1``.

    Returns
    -------
    sympy.Expr
        1/4 for exp(x^2), oo for polynomial growth and exp(x), 0 for exp(x^4).

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> critical_variance((Piece(-sp.oo, sp.oo, sp.exp(x**2)),), x)
    1/4
    """
    left = _rate(pieces[0].expr.subs(x, -x), x)
    right = _rate(pieces[-1].expr, x)
    rate = sp.Max(left, right)
    if rate <= 0:
        return sp.oo
    return sp.S.Zero if rate is sp.oo else sp.nsimplify(1 / (4 * rate)) if rate.is_Rational else 1 / (4 * rate)


def _rate(expr: Any, x: sp.Symbol) -> sp.Expr:
    """lim log|expr| / x^2 as x -> +oo; for a sum the largest rate (an upper bound if leading terms cancel)."""
    if expr.is_polynomial(x):
        return sp.S.Zero
    inner: Any = expr.args[0]
    match expr:
        case sp.Add():
            return sp.Max(*(_rate(term, x) for term in expr.args))
        case sp.Mul():
            rates = [_rate(factor, x) for factor in expr.args]
            if sp.oo in rates and -sp.oo in rates:
                raise _undecided(expr)
            return sp.Add(*rates)
        case sp.exp():
            return _over_square(inner, x)
        case sp.sinh() | sp.cosh():
            return abs(_over_square(inner, x))
        case sp.erfc():
            exponent = _over_square(inner, x, power=1)
            return -(exponent**2) if exponent.is_positive else sp.S.Zero
        case sp.Pow():
            if not expr.exp.has(x):
                return expr.exp * _rate(expr.base, x)
            return _over_square(expr.exp * sp.log(expr.base), x)
    if isinstance(expr, _TEMPERATE):
        # log(exp(u)) grows like u, which is temperate as long as u does not itself grow like an exponential
        if isinstance(expr, sp.log | sp.asinh) and inner.has(sp.exp, sp.sinh, sp.cosh):
            return _rate_of_log(inner, x)
        return sp.S.Zero
    raise _undecided(expr)


def _rate_of_log(argument: Any, x: sp.Symbol) -> sp.Expr:
    exponents: set[Any] = {node.args[0] for node in argument.atoms(sp.exp, sp.sinh, sp.cosh)}
    return sp.Max(0, *(_rate(exponent, x) for exponent in exponents if exponent.has(x)))


def _over_square(exponent: sp.Expr, x: sp.Symbol, power: int = 2) -> sp.Expr:
    """lim exponent / x^power as x -> +oo, an extended real."""
    if exponent.is_polynomial(x):
        polynomial = sp.Poly(exponent, x)
        degree, leading = int(polynomial.degree()), polynomial.LC()
        if degree > power:
            return sp.oo if leading > 0 else -sp.oo
        return leading if degree == power else sp.S.Zero
    inner = sp.S.Zero if _bounded(exponent) else None
    if inner is not None:
        return inner
    try:
        limit = sp.limit(exponent / x**power, x, sp.oo)
    except (NotImplementedError, ValueError, TypeError):
        raise _undecided(sp.exp(exponent)) from None
    if limit.is_extended_real and not limit.has(sp.Limit):
        return limit
    raise _undecided(sp.exp(exponent))


def _bounded(expr: sp.Expr) -> bool:
    if isinstance(expr, sp.sin | sp.cos | sp.tanh | sp.erf | sp.erfc | sp.atan) or expr.is_number:
        return True
    if isinstance(expr, sp.Add | sp.Mul):
        return all(_bounded(argument) for argument in expr.args)
    return isinstance(expr, sp.Pow) and bool(expr.exp.is_integer and expr.exp.is_nonnegative) and _bounded(expr.base)


def _undecided(expr: sp.Expr) -> ActivationError:
    return ActivationError(
        f"cannot decide how fast {spelled(expr)} grows, hence for which variances its Gaussian expectation exists; "
        "rewrite it in exp of polynomials, tanh, erf, sin, cos, log and powers"
    )
