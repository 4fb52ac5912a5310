r"""Exact Gaussian integrals of the exponential of a quadratic polynomial, symbolically.

    Int d^k x exp(c + b.x - x.A x/2) = (2 pi)^{k/2} det(A)^{-1/2} exp(c + b.A^{-1} b/2)

Valid for Re A > 0, and by analytic continuation as a formal rule for the imaginary linear terms of response fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy as sp

__all__ = ["NotQuadraticError", "integrate_gaussian"]


class NotQuadraticError(ValueError):
    """The exponent is not a quadratic polynomial with invertible quadratic part in the integration variables."""


def integrate_gaussian(exponent: Any, variables: Sequence[sp.Symbol]) -> tuple[sp.Expr, sp.Expr]:
    r"""Integrate exp(exponent) over all of R in each variable; return (prefactor, remaining exponent).

    Raises
    ------
    NotQuadraticError
        If the exponent is not quadratic in the variables, or its quadratic form has a zero mode.

    Examples
    --------
    >>> x, s = sp.symbols("x s", positive=True)
    >>> integrate_gaussian(-x**2 / (2 * s), [x])
    (sqrt(2)*sqrt(pi)*sqrt(s), 0)
    """
    exponent = sp.expand(exponent)
    polynomial = _polynomial(exponent, variables)
    if polynomial.total_degree() > 2:
        raise NotQuadraticError(f"the exponent has degree {polynomial.total_degree()} in {list(variables)}; expand it first")
    at_zero = dict.fromkeys(variables, sp.S.Zero)
    linear = sp.Matrix([exponent.diff(v).subs(at_zero) for v in variables])
    quadratic = -sp.hessian(exponent, list(variables))
    determinant: Any = sp.factor(quadratic.det())
    if determinant == 0:
        raise NotQuadraticError(f"the quadratic form in {list(variables)} has a zero mode: {quadratic.nullspace()[0].T}")
    shift: Any = (linear.T * quadratic.adjugate() * linear)[0, 0] / (2 * determinant)
    prefactor = (2 * sp.pi) ** sp.Rational(len(variables), 2) / sp.sqrt(determinant)
    return prefactor, sp.cancel(exponent.subs(at_zero) + shift)


def _polynomial(exponent: sp.Expr, variables: Sequence[sp.Symbol]) -> sp.Poly:
    try:
        return sp.Poly(exponent, *variables)
    except sp.PolynomialError as error:
        raise NotQuadraticError(f"the exponent is not a polynomial in {list(variables)}: {exponent}") from error
