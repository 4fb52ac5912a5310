r"""Both tails of a polynomial of fixed degree q in Gaussians, as numbers: what stands behind rule R8c.

Above (hypercontractivity, Nelson, Gross):  (E|M|^p)^{1/p} <= (p - 1)^{q/2} sigma,  sigma^2 = E M^2, p >= 2; optimised in p it
gives P(|M| > t sigma) <= exp(-(q / 2e) t^{2/q}) from t = e^{q/2} on.

Below (Carbery, Wright 2001):  P(|M| <= eps sigma) <= C q eps^{1/q} with an absolute constant that the paper does not compute.
A number follows from three explicit facts. (i) Paley and Zygmund with E M^4 <= 9^q sigma^4: P(|M| >= theta sigma) >=
(1 - theta^2)^2 9^{-q} =: p_0. (ii) The dilation inequality for log-concave measures (Nazarov, Sodin, Volberg 2002; Fradelizi
EJP 14 (2009), Theorem 1 and Fact 2): P(|M| > s) >= P(|M| > T_q(t) s)^{2/(t+1)}, T_q the Chebyshev polynomial, t >= 1.
(iii) Taking t from T_q(t) eps = theta,

    P(|M| <= eps sigma) <= 1 - p_0^{2/(t+1)} <= 2 log(1/p_0) / (t + 1) = O(q eps^{1/q}),    T_q(t) <= 2^{q-1} t^q .
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy

from ._input import exact

__all__ = [
    "CARBERY_WRIGHT",
    "DegreeError",
    "check_degree",
    "first_moment_factor",
    "hypercontractive_factor",
    "small_ball",
    "upper_tail",
]

#: C in P(|M| <= eps sigma) <= C q eps^{1/q} that the explicit bound of `small_ball` stays below
CARBERY_WRIGHT = 10.2
#: theta^2 in the Paley-Zygmund step
_THETA_SQUARED = 0.5


class DegreeError(ValueError):
    """A degree that is no fixed positive integer."""


def check_degree(degree: Any) -> int:
    """The degree as an integer.

    Raises:
        DegreeError: a symbol or a function of the sizes: the constants of R8c grow exponentially in the degree.
    """
    value = exact(degree)
    if not (isinstance(value, sympy.Expr) and value.is_number):
        raise DegreeError(f"the degree {degree} is not fixed: R8c needs one integer, because its constants grow like 9^degree")
    if not value.is_Integer or value < 1:
        raise DegreeError(f"the degree is a positive integer, given {degree}")
    return int(value)


def hypercontractive_factor(degree: Any, p: float) -> float:
    """(p - 1)^{q/2}, the factor in (E|M|^p)^{1/p} <= factor * (E M^2)^{1/2}.

    Raises:
        ValueError: p < 2.

    Example:
        >>> hypercontractive_factor(2, 4)
        3.0
    """
    q = check_degree(degree)
    if not p >= 2:
        raise ValueError(f"the bound compares a moment p >= 2 with the second one, given p = {p}")
    return float((p - 1) ** (q / 2))


def first_moment_factor(degree: Any) -> float:
    """c with (E M^2)^{1/2} <= c E|M|: 3^q, from ||M||_2 <= ||M||_1^{1/3} ||M||_4^{2/3}.

    It makes ||M||_F = Theta_p(sqrt(E ||M||_F^2)) of a tensor polynomial follow from the scalar ||M||_F^2.
    """
    return float(3 ** check_degree(degree))


def upper_tail(degree: Any, t: float) -> float:
    """A bound on P(|M| > t sigma): Markov at the best p >= 2 of the hypercontractive moments.

    Example:
        >>> upper_tail(1, 1.0), upper_tail(2, 30.0) < 1e-4
        (1.0, True)
    """
    q = check_degree(degree)
    if t <= 1:
        return 1.0
    # ((p - 1)^{q/2} / t)^p over p >= 2, on a grid that contains the optimum for large t: p - 1 ~ t^{2/q} / e
    p = 2 + np.concatenate([[0.0], np.geomspace(1e-3, max(1.0, 2 * t ** (2 / q)), 400)])
    return float(min(1.0, math.exp(np.min(p * (q / 2 * np.log(p - 1) - math.log(t))))))


def small_ball(degree: Any, eps: float) -> float:
    """A bound on P(|M| <= eps sqrt(E M^2)), at most `CARBERY_WRIGHT` q eps^{1/q}, for every polynomial of this degree.

    Raises:
        ValueError: a negative eps.

    Example:
        >>> small_ball(1, 1e-3) < 0.011, small_ball(3, 0.0)
        (True, 0.0)
    """
    q = check_degree(degree)
    if eps < 0:
        raise ValueError(f"eps is a multiple of the standard size and not negative, given {eps}")
    theta = math.sqrt(_THETA_SQUARED)
    if eps >= theta:
        return 1.0
    if eps == 0:
        return 0.0
    t = math.cosh(math.acosh(theta / eps) / q)
    log_inverse = q * math.log(9) - 2 * math.log(1 - _THETA_SQUARED)
    return float(-math.expm1(-2 * log_inverse / (t + 1)))
