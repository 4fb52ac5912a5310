"""Public cases in which order symbols let people down, on the side of bounds: sizes tend to infinity, O-terms are unknowns."""

from __future__ import annotations

import pytest
import sympy
from bounds_examples import scalar

from symtensor.bounds import (
    DET,
    Kind,
    MissingHypothesisError,
    ScaleError,
    apply,
    as_expr,
    bound,
    deterministic_scale,
    known,
    order_term,
    power,
    scale,
    stochastic_taylor,
    taylor_remainder,
)
from symtensor.expansion import LimitPointError, OrderTerm

n = sympy.Symbol("n", positive=True)
x = sympy.Symbol("x")


def order(expr) -> tuple[str, str]:
    found = bound(as_expr(expr))
    found.check()
    return found.kind.value, str(found.scale)


def test_an_o_inside_reaches_the_result_sympy_24913():
    """1/(1 - x + O(x^2)) = 1 + x + O(x^2) with x = 1/n, although more terms of 1/(1 - x) are known."""
    small = deterministic_scale("1/n") + order_term("1/n^2", mode=DET)
    expansion = stochastic_taylor("1/(1 - x)", small, order=1)
    assert expansion.coefficients == (1, 1)
    assert (expansion.remainder.scale, expansion.remainder.kind) == (scale("1/n^2"), Kind.THETA)
    assert order(1 / (as_expr(1) - small)) == ("Theta", "1")
    error = stochastic_taylor("x", small - deterministic_scale("1/n"), order=0).remainder
    assert error.scale.within("1/n")


def test_equal_o_terms_do_not_cancel_diofant_31():
    first, second = (as_expr(OrderTerm(n**-2, n, sympy.oo)) for _ in range(2))
    assert order(first - second) == ("O", "1/n^2")
    sines = [taylor_remainder("sin(x)", deterministic_scale("1/n") * order_term("1/n", mode=DET), 0, 0) for _ in range(2)]
    assert order(sines[0] - sines[1]) == ("O", "1/n^2")
    in_sympy = OrderTerm(n, n, sympy.oo)._sympy_() - OrderTerm(n, n, sympy.oo)._sympy_()
    assert order(in_sympy) == ("O", "n")
    with pytest.raises(MissingHypothesisError, match="R21"):
        first / second
    with pytest.raises(MissingHypothesisError, match="lower bound Omega"):
        bound(as_expr(1 / OrderTerm(n, n, sympy.oo)._sympy_()))


def test_exponential_growth_is_refused_sympy_26856():
    with pytest.raises(ScaleError, match=r"2\*\*n"):
        scale("2^n")
    with pytest.raises(ScaleError, match=r"2\*\*n"):
        as_expr(2**n + OrderTerm(n, n, sympy.oo))
    with pytest.raises(ScaleError):
        known("2^n")


def test_the_limit_point_is_checked_sympy_15539():
    with pytest.raises(LimitPointError, match="-> -oo"):
        order_term(OrderTerm(x**-6, x, -sympy.oo))
    with pytest.raises(LimitPointError):
        as_expr(OrderTerm(x, x, 0))


def test_sizes_tend_to_infinity_and_it_is_printed_sympy_8978():
    """n^2 + O(n) is n^2, not O(n) at 0."""
    found = bound(as_expr(n**2 + OrderTerm(n, n, sympy.oo)))
    assert str(found) == "Theta(n^2) [det], n -> oo"
    with pytest.raises(LimitPointError, match="sizes tend to infinity"):
        as_expr(sympy.O(n) + n**2)
    assert order(sympy.O(n, (n, sympy.oo)) + n**2) == ("Theta", "n^2")


def test_inexact_coefficients_do_not_hang_sagemath_35995():
    base = as_expr(0.3333333333333333) + deterministic_scale("1/n")
    assert order(power(base, -1)) == ("Theta", "1")
    expansion = stochastic_taylor("1/(1/3 + x)", deterministic_scale("1/n"), order=3)
    assert expansion.coefficients == (3, -9, 27, -81)
    assert (expansion.remainder.kind, str(expansion.remainder.scale)) == (Kind.THETA, "1/n^4")


def test_o_terms_inside_expressions_of_sympy():
    big = OrderTerm(n, n, sympy.oo)._sympy_()
    assert order(3 * big * n + n**3) == ("Theta", "n^3")
    assert order(big**2 - big * n) == ("O", "n^2")
    assert order(sympy.tanh(big)) == ("O", "1")
    with pytest.raises(MissingHypothesisError, match="growth"):
        bound(as_expr(sympy.exp(big)))


def test_stochastic_taylor_displays_and_refuses():
    d = scalar("D", known("1/sqrt(n)", "Theta")).expr
    expansion = stochastic_taylor("exp(x)", d, order=2)
    assert repr(expansion) == "1 + D + (1/2)*D**2 + Theta(1/n^(3/2)) [P], n -> oo"
    assert r"\frac{1}{2}" in expansion.latex() and expansion._repr_latex_().startswith("$")
    assert str(expansion.terms[2].scale) == "1/n" and expansion.terms[2].kind is Kind.THETA
    assert 1 not in stochastic_taylor("cos(x)", d, order=2).terms
    for build, error in (
        (lambda: stochastic_taylor("exp(x)", scalar("D", known(1)), order=1), MissingHypothesisError),
        (lambda: stochastic_taylor("abs(x)", d, order=1), MissingHypothesisError),
        (lambda: stochastic_taylor("exp(x)", d, order=-1), ValueError),
        (lambda: stochastic_taylor("exp(x)", d, order=1.5), ValueError),  # type: ignore[arg-type]
    ):
        with pytest.raises(error):
            build()


def test_functions_are_read_with_what_they_allow():
    big = scalar("x", known("n"))
    assert order(apply("gelu(x)", big)) == ("O", "n")
    assert order(apply("sigmoid(x)", big)) == ("O", "1")
    assert order(apply("relu(x)", big)) == ("O", "n")
    with pytest.raises(MissingHypothesisError):
        bound(apply("1/x", big))
    with pytest.raises(MissingHypothesisError):
        bound(apply("exp(x)", big))
