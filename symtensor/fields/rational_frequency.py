"""From rational functions of a frequency to exponential sums in time, by partial fractions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import sympy as sp

from symtensor.fields.errors import TheoryError
from symtensor.fields.exponential_sum import ExponentialSum

__all__ = ["FrequencyError", "inverse_fourier"]


class FrequencyError(TheoryError):
    """A function of frequency that is no sum of decaying exponentials in time."""


def inverse_fourier(
    expression: Any, omega: sp.Symbol, causal: bool = False, digits: int = 30
) -> tuple[ExponentialSum, ExponentialSum]:
    """f(t) = int domega / (2 pi) exp(-i omega t) F(omega) for t > 0, and for t < 0 as a sum in |t|.

    Parameters
    ----------
    expression : F, rational in `omega`, vanishing at infinity; products of propagators 1/(A - i omega), 1/(A^2 + omega^2).
    causal : every pole belongs to t > 0; needed where the parameters do not decide the sign of a rate.
    digits : digits of the rates, where the denominator has numerical coefficients and no exact roots.

    With s = -i omega, a principal part c / (s + E)^p gives c t^(p-1) exp(-E t) / (p-1)! for t > 0 if Re E > 0, and
    -c t^(p-1) exp(-E t) / (p-1)! for t < 0 if Re E < 0.

    Raises
    ------
    FrequencyError : not rational, not vanishing at infinity (a local term), a pole on the real axis or of unknown side, or a
        factor of the denominator without exact roots.

    Examples
    --------
    >>> m, T = sp.symbols("m T", positive=True)
    >>> w, t = sp.symbols("omega t", real=True)
    >>> later, earlier = inverse_fourier(2 * T / (m**2 + w**2), w)
    >>> later.expr(t), earlier.expr(t)
    (T*exp(-m*t)/m, T*exp(-m*t)/m)
    >>> inverse_fourier(1 / (m - sp.I * w) ** 2, w)[0].expr(t)
    t*exp(-m*t)
    """
    s = sp.Dummy("s")
    top, bottom = _polynomials(sp.sympify(expression, strict=True), omega, s)
    if top.is_zero:
        return ExponentialSum.constant(0, 1), ExponentialSum.constant(0, 1)
    if top.degree() >= bottom.degree():
        raise FrequencyError(
            f"the function does not vanish for {omega} to infinity (degree {top.degree()} over {bottom.degree()}): it has a part "
            "that is local in time; subtract it"
        )
    later, earlier = [], []
    for root, multiplicity in _roots(bottom, digits):
        ahead = causal or _is_decaying(-root, omega)
        for power, coefficient in _principal_part(top, bottom, root, multiplicity):
            weight = coefficient / math.factorial(power - 1)
            if ahead:
                later.append(ExponentialSum.exponential(-root, weight, power - 1))
            else:
                earlier.append(ExponentialSum.exponential(root, (-1) ** power * weight, power - 1))
    return ExponentialSum.total(later, 1), ExponentialSum.total(earlier, 1)


def _polynomials(expression: sp.Expr, omega: sp.Symbol, s: sp.Symbol) -> tuple[sp.Poly, sp.Poly]:
    """Numerator and denominator in s = -i omega, without common factors."""
    top, bottom = sp.fraction(sp.cancel(sp.together(expression.xreplace({omega: sp.I * s}))))
    try:
        return sp.Poly(top, s), sp.Poly(bottom, s)
    except sp.PolynomialError as error:
        raise FrequencyError(f"the function is not rational in {omega}: {error}") from None


def _roots(polynomial: sp.Poly, digits: int) -> Iterator[tuple[sp.Expr, int]]:
    """Roots with multiplicities: of linear and quadratic factors exactly, of others by number if the coefficients are."""
    s = polynomial.gen
    for factor, multiplicity in polynomial.factor_list()[1]:
        if factor.degree() <= 2:
            exact = sp.roots(factor)
            yield from ((sp.radsimp(root), count * multiplicity) for root, count in exact.items())
        elif all(c.is_number for c in factor.all_coeffs()):
            yield from ((root, multiplicity) for root in factor.nroots(n=digits, maxsteps=200))
        else:
            raise FrequencyError(
                f"the factor {factor.as_expr().subs(s, sp.Symbol('s'))} of the denominator (s = -i omega) has no roots in closed "
                "form; put numbers in for the parameters"
            )


def _is_decaying(rate: sp.Expr, omega: sp.Symbol) -> bool:
    """Whether Re(rate) > 0; raises FrequencyError if that is unknown or zero."""
    real = sp.re(rate)
    if real.is_positive:
        return True
    if real.is_negative:
        return False
    reason = "lies on the real axis" if real.is_zero else "is on a side of the real axis that the parameters do not decide"
    raise FrequencyError(
        f"the pole {omega} = -i*({sp.sstr(rate)}) {reason}; declare the parameters positive, put numbers in, or pass causal=True "
        "for a function that vanishes for t < 0"
    )


def _principal_part(top: sp.Poly, bottom: sp.Poly, root: sp.Expr, multiplicity: int) -> Iterator[tuple[int, sp.Expr]]:
    """(power, c) for the terms c / (s - root)^power: the quotient of the Taylor series of both polynomials at the root."""
    above = [_taylor(top, root, j) for j in range(multiplicity)]
    below = [_taylor(bottom, root, multiplicity + j) for j in range(multiplicity)]
    quotient: list[sp.Expr] = []
    for j in range(multiplicity):
        rest = above[j] - sp.Add(*(below[j - i] * quotient[i] for i in range(j)))
        quotient.append(sp.cancel(rest / below[0]))
    yield from ((multiplicity - j, c) for j, c in enumerate(quotient) if c != 0)


def _taylor(polynomial: sp.Poly, point: sp.Expr, order: int) -> sp.Expr:
    """Taylor coefficient of the polynomial at a point."""
    derivative: Any = polynomial.diff((polynomial.gen, order)) if order else polynomial
    return sp.expand(derivative.eval(point)) / math.factorial(order)
