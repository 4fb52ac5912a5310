"""O-terms: limit point, own identity, growth group."""

from __future__ import annotations

import pytest
import sympy

from symtensor.expansion import LimitPointError, OrderDivisionError, OrderTerm, Scale, ScaleError, series

x, n = sympy.symbols("x n")
oo = sympy.oo


@pytest.mark.parametrize(
    ("expr", "variable", "point", "scale"),
    [
        (3 * x**2, x, 0, Scale(2)),
        (x + x**2, x, 0, Scale(1)),
        (x + x**2, x, oo, Scale(-2)),
        (sympy.sqrt(x), x, 0, Scale(sympy.Rational(1, 2))),
        (x**2 - 1, x, 1, Scale(1)),
        ((x**2 - 1) ** 2 / (x - 1), x, 1, Scale(1)),
        (x * sympy.log(x), x, 0, Scale(1, 1)),
        (sympy.log(n) ** 2 / n, n, oo, Scale(1, 2)),
        (sympy.log(3 * n**2 + 1), n, oo, Scale(0, 1)),
        (1 / (n**2 + n), n, oo, Scale(2)),
        (sympy.Abs(x) ** 3, x, -oo, Scale(-3)),
        (7, x, 0, Scale(0)),
    ],
)
def test_scale_in_the_growth_group(expr, variable, point, scale):
    assert OrderTerm(expr, variable, point).scale == scale


@pytest.mark.parametrize(
    "expr", [2**n, sympy.exp(n), sympy.factorial(n), sympy.log(sympy.log(n)), n ** sympy.Symbol("k")]
)
def test_growth_outside_the_group_is_refused(expr):
    with pytest.raises(ScaleError):
        OrderTerm(expr, n, oo)


def test_two_to_the_n_is_named_and_in_no_power():  # sympy #26856
    with pytest.raises(ScaleError, match=r"2\*\*n"):
        OrderTerm(2**n, n, oo)
    with pytest.raises(ScaleError, match=r"2\*\*n"):
        series(2**n, n, oo, 5)
    assert str(series(2**n, n, -oo, 5)) == "O(n**(-5), n -> -oo)"


def test_the_limit_point_must_be_given():  # sympy #8978
    with pytest.raises(LimitPointError, match="limit point"):
        OrderTerm(n, n)
    with pytest.raises(LimitPointError):
        OrderTerm(n, n, sympy.zoo)
    large = n**2 + OrderTerm(n, n, oo)
    assert str(large) == "n**2 + O(n, n -> oo)"
    assert str(series(large, n, oo)) == "n**2 + O(n, n -> oo)"
    small = series(n**2 + OrderTerm(n, n, 0), n, 0)
    assert str(small) == "O(n, n -> 0)"


def test_different_limit_points_do_not_mix():
    with pytest.raises(LimitPointError, match="n -> oo"):
        OrderTerm(n, n, 0) + OrderTerm(n, n, oo)
    with pytest.raises(LimitPointError):
        series(x + OrderTerm(1 / x, x, oo), x, 0)
    with pytest.raises(LimitPointError):
        series(x + OrderTerm(n, n, 0), x, 0)


def test_equal_looking_terms_are_different_unknowns():  # diofant #31
    one, two = OrderTerm(x**2, x, 0), OrderTerm(x**2, x, 0)
    assert one != two
    assert str(one - two) == str(one - one) == "O(x**2, x -> 0)"
    assert (x + one) - (x + two) != 0
    assert (x + one) - (x + one) != 0
    difference = sympy.sin(x + one) - sympy.sin(x + two)
    assert difference != 0
    assert str(series(difference, x, 0, 6)) == "O(x**2, x -> 0)"


def test_a_value_minus_itself_is_zero():
    value = x + OrderTerm(x**2, x, 0)
    assert value - value == 0  # one unknown, not two


def test_division_is_refused():
    term = OrderTerm(x, x, 0)
    for quotient in (lambda: term / OrderTerm(x, x, 0), lambda: term / term, lambda: 1 / term, lambda: x / term):
        with pytest.raises(OrderDivisionError):
            quotient()
    with pytest.raises(OrderDivisionError):
        term**-1
    with pytest.raises(OrderDivisionError):
        series(1 / (x**3 + OrderTerm(x**2, x, 0)), x, 0)


def test_arithmetic_of_scales():
    term = OrderTerm(x**2, x, 0)
    assert (term + OrderTerm(x, x, 0)).scale == Scale(1)
    assert (term * OrderTerm(x * sympy.log(x), x, 0)).scale == Scale(3, 1)
    assert (5 * x * term).scale == (term * x).scale == Scale(3)
    assert (term / x**3).scale == Scale(-1)
    assert (term**3).scale == Scale(6)
    assert 0 * term == 0
    assert str(series(sympy.sin(x) * term, x, 0)) == "O(x**3, x -> 0)"


def test_contains_compares_scales():
    term = OrderTerm(x * sympy.log(x), x, 0)
    assert term.contains(OrderTerm(x, x, 0)) and term.contains(5 * x**2)
    assert not term.contains(sympy.sqrt(x))
    assert not OrderTerm(x, x, 0).contains(term)


def test_display_carries_the_limit_point():
    term = OrderTerm(n**-2, n, -oo)
    assert str(term) == "O(n**(-2), n -> -oo)"
    assert term.latex() == r"\mathcal{O}\left(\frac{1}{n^{2}},\ n \to -\infty\right)"
    assert term._repr_latex_() == f"$\\displaystyle {term.latex()}$"
    assert r"n \to -\infty" in sympy.latex(n + term)


def test_an_o_term_has_no_derivative_and_only_a_renaming():
    value = sympy.cos(x) + OrderTerm(x**2, x, 0)
    with pytest.raises(ValueError, match="derivative"):
        value.diff(x)
    with pytest.raises(ValueError, match="renamed"):
        value.subs(x, 0.1)
    assert str(value.subs(x, n)) == "O(n**2, n -> 0) + cos(n)"


def test_first_unknown_order():
    assert Scale(2).first_unknown == 2
    assert Scale(2, 1).first_unknown == 2
    assert Scale(2, -1).first_unknown == 3  # x^2 is larger than x^2 / log x, so its coefficient is still known
    assert Scale(sympy.Rational(5, 2)).first_unknown == 3


def test_bad_arguments():
    with pytest.raises(TypeError):
        OrderTerm(x, 3, 0)  # type: ignore[arg-type]
    with pytest.raises(ScaleError):
        OrderTerm(0, x, 0)
    with pytest.raises(ScaleError, match="power"):
        Scale(sympy.Symbol("k"))
