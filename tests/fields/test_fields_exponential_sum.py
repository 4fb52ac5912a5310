"""Exponential sums: algebra and calculus against the functions they stand for, transforms against each other."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import pytest
import scipy.integrate
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symtensor.fields._float_rates import simplest_rational
from symtensor.fields._linear_rates import linear_rates
from symtensor.fields.exponential_sum import ExponentialSum
from symtensor.fields.rational_frequency import FrequencyError, inverse_fourier
from symtensor.fields.time_ordered import TimedLine, integrate_times

a, b, k, T = sp.symbols("a b k T", positive=True)
t, s, w = sp.symbols("t s omega", real=True)
exponential = ExponentialSum.exponential

def gap(one: Any, other: Any) -> Any:
    """Difference of two numbers, with all their digits."""
    with mpmath.workdps(50):
        return abs(one - other)


sums = st.lists(st.tuples(st.integers(1, 3), st.integers(-4, 4), st.integers(0, 2)), max_size=4).map(
    lambda parts: ExponentialSum.total([exponential(sp.Rational(rate, 2), c, p) for rate, c, p in parts], 1)
)


@given(sums, sums)
@settings(max_examples=60, deadline=None)
def test_algebra_is_that_of_the_functions(f: ExponentialSum, g: ExponentialSum) -> None:
    x, y = f.expr(t), g.expr(t)
    for found, expected in ((f + g, x + y), (f - g, x - y), (f * g, x * y), (3 * f, 3 * x), (f.derivative(), sp.diff(x, t))):
        assert sp.expand(found.expr(t) - expected) == 0
    assert sp.expand(f.equal_time().value - x.subs(t, 0)) == 0


@given(sums, sums)
@settings(max_examples=25, deadline=None)
def test_transform_of_a_convolution_is_the_product(f: ExponentialSum, g: ExponentialSum) -> None:
    assert sp.cancel(f.convolve(g).laplace(s) - f.laplace(s) * g.laplace(s)) == 0


@given(sums)
@settings(max_examples=25, deadline=None)
def test_inverse_transform_returns_the_function(f: ExponentialSum) -> None:
    later, earlier = inverse_fourier(f.fourier(w), w)
    assert sp.expand(later.expr(t) - f.expr(t)) == 0
    assert earlier.is_zero


def test_transform_against_quadrature() -> None:
    f = exponential(sp.Rational(3, 2), 2, 1) + exponential(1, -1)
    real = scipy.integrate.quad(lambda u: float(f.evaluate(u)) * float(sp.cos(0.7 * u)), 0, 40, epsabs=1e-11)[0]
    assert float(sp.re(f.fourier(sp.Rational(7, 10)))) == pytest.approx(real, abs=1e-9)


def test_two_sided_functions_of_frequency() -> None:
    """Chain of two responses driven by noise: R C R, against the integral over internal times."""
    spectrum = 2 * T / ((a - sp.I * w) * (b - sp.I * w) * (a**2 + w**2))
    later, earlier = inverse_fourier(spectrum, w)
    at = {a: 1, b: sp.Rational(5, 2), T: sp.Rational(3, 4)}

    def chain(tip: int, source: int) -> ExponentialSum:
        noise = TimedLine.correlation(2, source, a, T / a)
        return integrate_times([TimedLine.response(2, 3, a), TimedLine.response(3, tip, b), noise], 2, 2)

    for found, expected in ((later, chain(0, 1)), (earlier, chain(1, 0))):
        assert gap(found.evaluate(0.6, values=at), expected.evaluate(0.6, values=at)) < 1e-28
    assert gap(later.equal_time().evaluate(values=at), earlier.equal_time().evaluate(values=at)) < 1e-28


def test_resummed_propagator_with_roots() -> None:
    """1/(a - i omega - k/(b - i omega)): two roots of a quadratic; against the geometric series in time."""
    full, none = inverse_fourier(1 / (a - sp.I * w - k / (b - sp.I * w)), w, causal=True)
    at = {a: 2, b: 3, k: sp.Rational(1, 10)}
    bare, loop = exponential(at[a]), exponential(at[b], at[k])
    term = series = bare
    last = term
    for _ in range(10):
        last, term = term, bare.convolve(loop).convolve(term)
        series = series + term
    assert none.is_zero
    assert gap(full.evaluate(1, values=at), series.evaluate(1)) < 1e-28
    assert gap(full.evaluate(1, values=at), (series - term - last).evaluate(1)) > 1e-26


def test_numerical_roots() -> None:
    cubic = (1 - sp.I * w) * (2 - sp.I * w) * (3 - sp.I * w) + sp.Rational(1, 3)
    later, earlier = inverse_fourier(1 / cubic, w, digits=40)
    assert earlier.is_zero
    assert abs(later.equal_time().evaluate()) < 1e-30
    assert abs(complex(later.fourier(0.4)) - complex((1 / cubic).subs(w, 0.4))) < 1e-13


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (w / (a - sp.I * w), "local in time"),
        (sp.exp(w) / (a + w**2), "not rational"),
        (1 / w**2, "lies on the real axis"),
        (1 / (sp.Symbol("q") - sp.I * w), "do not decide"),
        (1 / (a + k * w + w**5), "no roots in closed form"),
    ],
)
def test_frequency_functions_that_are_refused(function: sp.Expr, message: str) -> None:
    with pytest.raises(FrequencyError, match=message):
        inverse_fourier(function, w)


def test_evaluation_reaches_its_digits_in_spite_of_cancellation() -> None:
    """(exp(-a t) - exp(-b t))/(b - a) with rates that differ by 1e-20: t exp(-t) to first order."""
    gap = sp.Rational(1, 10**20)
    f = exponential(1, 1 / gap) - exponential(1 + gap, 1 / gap)
    with mpmath.workdps(40):
        exact = 2 * mpmath.exp(-2) * (1 - mpmath.mpf(10) ** -20)
        assert abs(f.evaluate(2, digits=30) / exact - 1) < mpmath.mpf(10) ** -29
    assert ExponentialSum.constant(0, 1).evaluate(1) == 0


def test_evaluation_names_what_is_missing_or_singular() -> None:
    f = exponential(a, 1 / (b - a))
    with pytest.raises(ValueError, match="no value given for a, b"):
        f.evaluate(1)
    with pytest.raises(ValueError, match="has a pole at the given values"):
        f.evaluate(1, values={"a": 1, "b": 1})
    with pytest.raises(ValueError, match="2 time difference"):
        f.expr(1, 2)
    assert f.evaluate(1, values={"a": 1, b: 2}) == pytest.approx(float(mpmath.exp(-1)))


def test_sums_over_different_rates_are_combined() -> None:
    f = exponential(a / 2) + exponential(a + b) + exponential(a / 2, -1)
    assert f.expr(t) == sp.exp(-(a + b) * t)
    with pytest.raises(ValueError, match="cannot be combined"):
        f + ExponentialSum.constant(1, 2)
    assert (f + 1).expr(t) == sp.exp(-(a + b) * t) + 1
    assert ExponentialSum.constant(0).value == 0


def test_terms_must_fit() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        ExponentialSum((a,), 1, {(((1, 2), 0),): sp.Integer(1)})
    with pytest.raises(ValueError, match="counted from 0"):
        exponential(a).derivative(1)


def test_latex_is_the_expression() -> None:
    assert exponential(a, T, 1).latex() == r"T t e^{- a t}"


def test_hidden_relations_between_rates() -> None:
    """Fractions and nested roots that add up: the vectors add up as well."""
    root = sp.sqrt((a - b) ** 2 + 4 * k)
    for left, right, both in (
        (a / (a + b), b / (a + b), sp.Integer(1)),
        ((a + b + root) / 2, (a + b - root) / 2, a + b),
        (sp.sqrt(3 + 2 * sp.sqrt(2)), 2 - sp.sqrt(2), sp.Integer(3)),
        (k / (a + root), a, k / (a + root) + a),
    ):
        basis, (x, y, z) = linear_rates([left, right, both])
        assert tuple(m + n for m, n in zip(x, y)) == z
        for vector, rate in ((x, left), (y, right)):
            value = sp.Add(*(n * r for n, r in zip(vector, basis))) - rate
            assert abs(sp.N(value.subs({a: 1.3, b: 0.4, k: 0.7}), 20)) < 1e-12
    assert len(linear_rates([sp.sqrt(5), sp.sqrt(7), sp.sqrt(35), 1, sp.I])[0]) == 5


@given(st.fractions(Fraction(1, 1000), 1000, max_denominator=1000))
def test_simplest_rational_recovers_what_was_rounded(value: Fraction) -> None:
    assert simplest_rational(sp.Float(float(value))) == sp.Rational(value.numerator, value.denominator)


def test_relations_between_computed_rates_are_made_exact() -> None:
    """Three equally coupled populations: eigenvalues 1 + q, 1 - q/2 (twice), with rounding; and one that is the sum of two."""
    q = float(sp.sqrt(sp.Rational(1, 7)))
    twice, again, other = 1 - q / 2, (1 - q / 2) * (1 + 3e-15), 1 + q
    _, (x, y, z, sum_of_two) = linear_rates([twice, again, other, twice + other + 1e-15])
    assert x == y != z
    assert tuple(m + n for m, n in zip(x, z)) == sum_of_two
    lines = [TimedLine.response(1, 2, twice, 0.3), TimedLine.response(2, 0, again)]
    assert integrate_times(lines, 2, 1).evaluate(2) == pytest.approx(0.6 * float(mpmath.exp(-2 * twice)), rel=1e-12)
    pair = sp.Float(twice) + sp.I * sp.Float(q)
    _, (up, down, double) = linear_rates([pair, sp.conjugate(pair), 2 * twice + 1e-15])
    assert tuple(m + n for m, n in zip(up, down)) == double


@given(st.floats(0.1, 10), st.floats(0.1, 10))
def test_exact_rates_stay_within_rounding(one: float, other: float) -> None:
    basis, vectors = linear_rates([one, other])
    for vector, rate in zip(vectors, (one, other)):
        assert float(sp.Add(*(n * r for n, r in zip(vector, basis)))) == pytest.approx(rate, rel=2e-10)
