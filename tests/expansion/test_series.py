"""The lazy series object: laziness by counting, arithmetic against independent routes, errors never refined."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from symtensor.expansion import (
    LimitPointError,
    OrderDivisionError,
    OrderTerm,
    Scale,
    ScaleError,
    Series,
    UndecidedZeroWarning,
    UnknownCoefficientError,
    ZeroSeriesError,
)

x, y, n, a = sympy.symbols("x y n a")
oo = sympy.oo
N = 7

fractions = st.fractions(min_value=-5, max_value=5, max_denominator=6)
lists = st.lists(fractions, min_size=N, max_size=N)
units = st.tuples(fractions.filter(bool), lists).map(lambda pair: [pair[0], *pair[1][1:]])


def lazy(values, start=0, order=None, variable=x):
    """An infinite series whose coefficients beyond the list repeat it: no polynomial, so nothing stops early."""
    return Series(variable, 0, lambda k: values[(k - start) % len(values)], order, start)


def reference(values):
    return sympy.Poly([sympy.Rational(v) for v in reversed(values)], x).as_expr()


class Counter:
    def __init__(self, function):
        self.function, self.calls = function, []

    def __call__(self, k):
        self.calls.append(k)
        return self.function(k)


# -- laziness --------------------------------------------------------------------------------------------------------


def test_a_coefficient_is_computed_on_demand_and_once():
    rule = Counter(lambda k: sympy.Integer(k + 1))
    s = Series(x, 0, rule)
    assert rule.calls == [] and s.evaluations == 0
    assert s.coefficient(5) == 6 and rule.calls == [5]
    assert s.coefficient(5) == 6 and s[5] == 6 and rule.calls == [5]
    s.truncate(7).coefficient(5)
    s.subs({a: 1}).coefficient(5)
    assert rule.calls == [5] and s.evaluations == 1


def test_arithmetic_evaluates_nothing_until_asked():
    left, right = Counter(lambda k: 1), Counter(lambda k: 1)
    s, t = Series(x, 0, left), Series(x, 0, right)
    combined = (s + t) * (2 * s - t * 3) * s**3
    assert left.calls == right.calls == []
    combined.coefficient(2)
    assert sorted(left.calls) == sorted(right.calls) == [0, 1, 2]


def test_a_scalar_multiple_needs_only_its_own_order():
    rule = Counter(lambda k: 1)
    assert (3 * Series(x, 0, rule) / 2).coefficient(4) == sympy.Rational(3, 2)
    assert rule.calls == [4]


def test_a_product_with_a_polynomial_needs_only_its_width():
    rule = Counter(lambda k: 1)
    product = Series(x, 0, rule) * Series.polynomial(x, 0, [1, 1])
    assert product.coefficient(9) == 2
    assert rule.calls == [8, 9]


def test_an_error_cuts_off_evaluation():
    rule = Counter(lambda k: 1)
    s = Series(x, 0, rule, order=3)
    with pytest.raises(UnknownCoefficientError, match="coefficient 3"):
        s.coefficient(3)
    assert rule.calls == []


def test_inverse_costs_each_coefficient_once_and_no_recursion():
    rule = Counter(lambda k: 1)
    assert (1 / Series(x, 0, rule)).coefficient(400) == 0
    assert sorted(rule.calls) == list(range(401))


# -- ring operations against independent routes ----------------------------------------------------------------------


@given(lists, lists)
@settings(max_examples=25, deadline=None)
def test_product_and_sum_are_those_of_polynomials(p, q):
    s, t = Series.polynomial(x, 0, p), Series.polynomial(x, 0, q)
    assert sympy.expand((s * t).partial_sum() - reference(p) * reference(q)) == 0
    assert sympy.expand((s + t - 2 * s).partial_sum() - reference(q) + reference(p)) == 0
    assert sympy.expand((s**3).partial_sum() - reference(p) ** 3) == 0


@given(units, st.integers(-3, 3))
@settings(max_examples=25, deadline=None)
def test_inverse_times_series_is_one(p, start):
    s = lazy(p, start)
    one = s * s.inverse()
    assert [one.coefficient(k) for k in range(-2, N)] == [0, 0, 1] + [0] * (N - 1)


@given(units, st.fractions(min_value=-2, max_value=2, max_denominator=3))
@settings(max_examples=15, deadline=None)
def test_rational_powers_follow_the_law_of_exponents(p, r):
    s = lazy([1, *p[1:]])
    assert (s**r * s ** (1 - r)).agrees(s, N)


@given(units, lists)
@settings(max_examples=6, deadline=None)
def test_composition_is_substitution(p, q):
    inner = Series.polynomial(x, 0, [0, *q])
    composed = lazy(p, variable=y).compose(inner)
    outer = sum(sympy.Rational(c) * reference([0, *q]) ** k for k, c in enumerate(p))
    assert [composed.coefficient(k) for k in range(N)] == [sympy.expand(outer).coeff(x, k) for k in range(N)]


@given(units, lists, st.integers(1, N), st.integers(1, N))
@settings(max_examples=25, deadline=None)
def test_truncations_at_different_orders_agree(p, q, low, high):  # sagemath #38868
    def value(order):
        s, t = lazy(p).truncate(order), lazy(q, variable=y).truncate(order)
        inner = Series(x, 0, lambda k: p[k % N], order, start=1)
        return s.inverse() * t.compose(inner) + s**2

    short, full = value(low), value(high)
    assert short.known == low and full.known == high
    assert short.agrees(full)


@given(units, lists, st.integers(1, N - 1), fractions.filter(bool))
@settings(max_examples=25, deadline=None)
def test_hidden_coefficients_never_show(p, q, order, change):
    """Soundness of the error: altering what the O hides leaves every coefficient that is still claimed unchanged."""

    def value(values):
        s = lazy(values, order=order)
        full = lazy(values)
        f = lazy(q, variable=y)
        inner = Series(x, 0, lambda k: values[k], order, start=1, stop=N)
        complete = Series(x, 0, lambda k: values[k], start=1, stop=N)
        cut = s.inverse() * s + s**2 * lazy(q, -1) + f.compose(inner)
        return cut, full.inverse() * full + full**2 * lazy(q, -1) + f.compose(complete)

    altered = [*p[:order], p[order] + change, *p[order + 1 :]]
    cut, one = value(p)
    _, two = value(altered)
    for k in range(cut.start, cut.known):
        assert cut.coefficient(k) == one.coefficient(k) == two.coefficient(k)


def test_an_error_hides_nothing_that_is_known():
    cosine = Series(y, 0, lambda k: 0 if k % 2 else sympy.Rational((-1) ** (k // 2), sympy.factorial(k)))
    inner = Series.polynomial(x, 0, {1: 1}) + OrderTerm(x**2, x, 0)
    assert str(cosine.compose(inner)) == "1 - x**2/2 + O(x**3, x -> 0)"


def test_differences_keep_their_error():
    s = lazy([1, 2, 3], order=4)
    assert str(s - s) == "O(x**4, x -> 0)"
    assert (s - s).known == 4


def test_error_of_products_and_powers():
    s = Series.polynomial(x, 0, [0, 0, 1]) + OrderTerm(x**5, x, 0)
    assert (s * s).error == Scale(7)
    assert (1 / s).error == Scale(1) and (1 / s).start == -2
    assert (s**3).error == Scale(9)
    assert (s ** sympy.Rational(1, 2)).error == Scale(4)
    assert (s * OrderTerm(x * sympy.log(x), x, 0)).error == Scale(3, 1)


# -- other coefficients ----------------------------------------------------------------------------------------------


def test_inverse_with_interval_coefficients_is_immediate():  # sagemath #35995
    exact = Series.polynomial(n, oo, [sympy.Rational(1, 3), 1]).inverse()
    assert str(exact.truncate(4)) == "3 - 9/n + 27/n**2 - 81/n**3 + O(n**(-4), n -> oo)"
    rule = Counter(lambda k: mpmath.iv.mpf(1) / 3 if k == 0 else mpmath.iv.mpf(1))
    inverse = Series(n, oo, rule, stop=2).inverse()
    for k in range(30):
        assert (-1) ** k * 3 ** (k + 1) in inverse.coefficient(k)
        assert inverse.coefficient(k).delta < 1e-9 * 3 ** (k + 1)
    assert rule.calls == [0, 1]


def test_an_interval_that_contains_zero_is_not_divided_by():
    with pytest.raises(ZeroSeriesError, match="may be zero"):
        Series.polynomial(n, oo, [mpmath.iv.mpf([-1, 1]), mpmath.iv.mpf(1)]).inverse()
    with pytest.raises(ZeroSeriesError, match="may be zero"):
        Series.polynomial(n, oo, [sympy.AccumBounds(-1, 2), 1]).inverse()
    assert Series.polynomial(n, oo, [sympy.AccumBounds(2, 4), 1]).inverse()[0] == sympy.AccumBounds(
        sympy.Rational(1, 4), sympy.Rational(1, 2)
    )


def test_float_coefficients_stay_floats():
    inverse = Series.polynomial(x, 0, [0.3, 1.0]).inverse()
    assert inverse.coefficient(2) == pytest.approx(1 / 0.3**3)


class Vector:
    """Objects with + and * only, and no zero of their own."""

    def __init__(self, *entries):
        self.entries = entries

    def __add__(self, other):
        return Vector(*(p + q for p, q in zip(self.entries, other.entries, strict=True)))

    def __mul__(self, other):
        if isinstance(other, Vector):
            return Vector(*(p * q for p, q in zip(self.entries, other.entries, strict=True)))
        return Vector(*(p * other for p in self.entries)) if isinstance(other, int | sympy.Expr) else NotImplemented

    __rmul__ = __mul__


def test_coefficients_may_be_any_objects_with_sum_and_product():
    s = Series(x, 0, lambda k: Vector(k + 1, 1), start=1)
    assert (s * s + s * 2).coefficient(3).entries == (2 * 3 + 3 * 2 + 8, 2 + 2)
    assert (s + Series.polynomial(x, 0, {0: Vector(5, 5)})).coefficient(0).entries == (5, 5)
    assert s.compose(Series.polynomial(y, 0, {1: 2})).coefficient(2).entries == (12, 4)
    assert "Vector" in repr(s.truncate(2))


def test_tensor_expressions_are_coefficients():
    tensor = pytest.importorskip("symtensor.tensor")
    if not hasattr(tensor, "Tensor"):
        pytest.skip("tensor expressions are not installed")
    dimension = tensor.Dimension("P")
    i, j = dimension.indices("a b")
    K = tensor.Tensor("K", (dimension, dimension), symmetry=tensor.SymmetryGroup.symmetric(2))
    V = tensor.Tensor("V", (dimension, dimension), symmetry=tensor.SymmetryGroup.symmetric(2))
    s = Series.polynomial(n, oo, [K[i, j], V[i, j]])
    square = s * s
    assert square.coefficient(1) == 2 * K[i, j] * V[i, j]
    assert (a * s + s).coefficient(1) == (1 + a) * V[i, j]
    assert (s - s).truncate(2).agrees(0 * s)
    assert "K" in s.latex()


def test_numpy_scalars_and_arrays_on_the_left():
    s = Series.polynomial(x, 0, [1, 2])
    assert isinstance(np.float64(2.0) * s, Series)
    arrays = Series(x, 0, lambda k: np.array([k, 1.0]), stop=4)
    np.testing.assert_allclose((np.array([2.0, 3.0]) * arrays).coefficient(3), [6.0, 3.0])
    np.testing.assert_allclose(arrays.partial_sum(at=0.5), [0.5 + 0.5 + 0.375, 1.875])


# -- substitution, evaluation, remainder -----------------------------------------------------------------------------


def test_parameters_are_substituted_lazily():
    rule = Counter(lambda k: a**k)
    s = Series(x, 0, rule).subs({a: 2})
    assert rule.calls == []
    assert s.coefficient(3) == 8
    with pytest.raises(ValueError, match="expansion variable"):
        s.subs({x: 1})
    with pytest.raises(ValueError, match="expansion variable"):
        s.subs({a: x})
    assert str(Series.polynomial(x, a, [0, 1]).subs({a: 3})) == "x - 3"


def test_partial_sums_and_remainder():
    s = lazy([1, 2, 3, 4])
    assert s.partial_sum(3) == 1 + 2 * x + 3 * x**2
    assert s.partial_sum(3, at=sympy.Rational(1, 2)) == sympy.Rational(11, 4)
    rest = s.remainder(3)
    assert rest.start == 3 and (rest + s.truncate(9).partial_sum(3) * 0).coefficient(3) == 4
    assert (s - rest).partial_sum(9) == s.partial_sum(3)
    at_infinity = Series.polynomial(n, oo, {-1: 2, 2: 1})
    assert at_infinity.partial_sum() == 2 * n + n**-2
    assert at_infinity.partial_sum(at=2) == sympy.Rational(17, 4)
    with pytest.raises(UnknownCoefficientError, match="infinite"):
        s.partial_sum()
    with pytest.raises(UnknownCoefficientError, match="below order 5"):
        s.truncate(3).partial_sum(5)
    with pytest.raises(TypeError, match="terms"):
        list(s)


def test_shift_map_valuation():
    s = Series(x, 0, lambda k: 0 if k < 3 else k, order=8)
    assert s.valuation() == 3
    assert s.shift(-5).coefficient(-2) == 3 and s.shift(-5).known == 3
    assert s.map(lambda c: 2 * c).coefficient(4) == 8


def test_mixed_variables_and_points_are_refused():
    with pytest.raises(LimitPointError):
        lazy([1]) + lazy([1], variable=y)
    with pytest.raises(LimitPointError):
        lazy([1]) * Series.polynomial(x, 1, [1])
    with pytest.raises(LimitPointError):
        lazy([1]) + OrderTerm(1 / x, x, oo)
    with pytest.raises(ValueError, match="expansion variable"):
        lazy([1]) * x
    with pytest.raises(ValueError, match="O-term"):
        lazy([1]) + (1 + OrderTerm(x, x, 0))


def test_impossible_divisions_and_roots():
    with pytest.raises(OrderDivisionError):
        1 / (Series.polynomial(x, 0, []) + OrderTerm(x, x, 0))
    with pytest.raises(ZeroSeriesError):
        1 / Series.polynomial(x, 0, [])
    with pytest.raises(ZeroDivisionError):
        1 / Series(x, 0, lambda k: 0)
    with pytest.raises(ScaleError, match="integer power"):
        Series.polynomial(x, 0, {1: 1}) ** sympy.Rational(1, 2)
    with pytest.raises(ValueError, match="does not tend to 0"):
        lazy([1], variable=y).compose(lazy([1, 1]))


def test_an_undecided_leading_coefficient_is_recorded():
    with pytest.warns(UndecidedZeroWarning, match="a != 0"):
        inverse = 1 / Series.polynomial(x, 0, [a, 1])
    assert inverse.assumptions == {a} and (inverse * 2 + 1).assumptions == {a}
    assert inverse.coefficient(1) == -(a**-2)
    hidden_zero = Series.polynomial(x, 0, [(a + 1) ** 2 - a**2 - 2 * a - 1, 2])
    assert hidden_zero.inverse().coefficient(-1) == sympy.Rational(1, 2)


# -- display ---------------------------------------------------------------------------------------------------------


def test_displays():
    s = Series.polynomial(x, 0, {-1: 1, 0: -a, 2: sympy.Rational(-1, 2)})
    assert str(s) == "1/x - a - x**2/2"
    assert str(s.truncate(1)) == "1/x - a + O(x, x -> 0)"
    assert s.truncate(1).latex() == r"\frac{1}{x} - a + \mathcal{O}\left(x,\ x \to 0\right)"
    assert str(lazy([1])).startswith("1 + x + x**2") and str(lazy([1])).endswith("...")
    assert lazy([1])._repr_latex_().endswith(r"\cdots$")
    assert str(Series.polynomial(x, 0, [])) == "0"
    assert str(Series(x, 0, lambda k: 0)) == "0 + ..."
    assert str(Series.polynomial(x, 1, [0, 2])) == "2*x - 2"
