"""Integration over internal times: against sums over all orders, quadrature, and what is known in closed form."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.integrate
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symtensor.fields.time_ordered import DivergentTimeIntegral, TimedLine, TimeOrderError, integrate_times

a, b, c, T, g = sp.symbols("a b c T g", positive=True)
t, t1, t2 = sp.symbols("t t1 t2", positive=True)
response, correlation = TimedLine.response, TimedLine.correlation


def gap(one: Any, other: Any) -> Any:
    """Difference of two numbers, with all their digits."""
    with mpmath.workdps(50):
        return abs(one - other)


# -- the second route: every order of all times, n! of them, each a chain of windows -----------------------------------


def chain(lines: Sequence[TimedLine], order: Sequence[int]) -> tuple[list[float], list[float]]:
    """Weight of every node of an order (latest first), and the energy below it."""
    place = {node: n for n, node in enumerate(order)}
    weights, energies = [1.0] * len(order), [0.0] * len(order)
    for line in lines:
        end_later = place[line.end] < place[line.start]
        top, bottom = sorted((place[line.start], place[line.end]))
        weights[top] *= float(line.weights[0 if end_later else 1])
        for n in range(top, bottom):
            energies[n] += float(line.rates[0 if end_later else 1])
    return weights, energies


def window_value(energies: Sequence[float], window: float) -> float:
    """Entry of exp(bidiagonal * window); shifted so that all terms are positive (scipy's expm fails for nearly equal energies)."""
    shift = max(energies)
    matrix = (np.diag([shift - e for e in energies]) + np.diag([1.0] * (len(energies) - 1), 1)) * window / 2**6
    power = total = np.eye(len(energies))
    for n in range(1, 25):
        power = power @ matrix / n
        total = total + power
    return float(np.linalg.matrix_power(total, 2**6)[0, -1]) * math.exp(-shift * window)


def sum_over_orders(lines: Sequence[TimedLine], external: int, internal: int, windows: Sequence[float]) -> float:
    """Between two external times an order is an entry of the exponential of a bidiagonal matrix."""
    total = 0.0
    for order in itertools.permutations(range(external + internal)):
        marks = [order.index(node) for node in range(external)]
        weights, energies = chain(lines, order)
        if marks != sorted(marks) or not all(weights):
            continue
        value = math.prod(weights)
        value /= math.prod(energies[: marks[0]]) * math.prod(energies[marks[-1] : -1])
        for (first, last), window in zip(itertools.pairwise(marks), windows):
            value *= window_value(energies[first:last], window)
        total += value
    return total


rates = st.fractions(Fraction(1, 2), 3, max_denominator=3).map(lambda f: sp.Rational(f.numerator, f.denominator))
weights = st.integers(0, 3).map(sp.Integer)


@st.composite
def diagrams(draw: st.DrawFn) -> tuple[list[TimedLine], int, int]:
    external, internal = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    nodes = external + internal
    lines = []
    for node in range(1, nodes):
        other = draw(st.integers(0, node - 1))
        lines.append(TimedLine(node, other, (draw(weights), draw(weights)), (draw(rates), draw(rates)), equal=sp.Integer(0)))
    for _ in range(draw(st.integers(0, 3))):
        start, end = draw(st.permutations(range(nodes)))[:2] if nodes > 1 else (0, 0)
        lines.append(TimedLine(start, end, (draw(weights), draw(weights)), (draw(rates), draw(rates)), equal=sp.Integer(0)))
    return lines, external, internal


def test_resonance_that_rounding_hides() -> None:
    """Energies 1/2 + 8/3 and 1/2 + 5/3 + 1 below t_0 and below the internal time: t exp(-19 t/6)."""
    third = sp.Rational(1, 3)
    lines = [response(1, 0, third / 2 * 3), response(2, 0, 8 * third), response(1, 2, 5 * third), response(1, 2, 1)]
    assert integrate_times(lines, 2, 1).expr(t) == t * sp.exp(-19 * t / 6)
    floating = [replace(line, rates=(float(line.rates[0]),) * 2) for line in lines]
    assert integrate_times(floating, 2, 1).expr(t) == t * sp.exp(-19 * t / 6)


@given(diagrams(), st.lists(st.floats(0.1, 2), min_size=2, max_size=2))
@settings(max_examples=80, deadline=None)
def test_sets_of_nodes_give_what_all_orders_give(diagram: tuple[list[TimedLine], int, int], windows: list[float]) -> None:
    lines, external, internal = diagram
    used = windows[: external - 1]
    expected = sum_over_orders(lines, external, internal, used)
    found = integrate_times(lines, external, internal).evaluate(*used)
    assert float(found) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_a_changed_rate_weight_or_direction_changes_the_value() -> None:
    lines = [response(2, 0, 1), correlation(2, 3, 2, 3, 1), response(3, 1, sp.Rational(3, 2)), correlation(0, 1, 1, 2)]
    expected = sum_over_orders(lines, 2, 2, [0.7])
    for n, line in enumerate(lines):
        for changed in (
            replace(line, rates=(line.rates[0] + 1, line.rates[1] + 1)),
            replace(line, weights=(line.weights[0] + 1, line.weights[1] * 2)),
            replace(line, start=line.end, end=line.start, weights=(3 * line.weights[1], 5)),
        ):
            other = integrate_times([*lines[:n], changed, *lines[n + 1 :]], 2, 2).evaluate(0.7)
            assert abs(float(other) - expected) > 1e-3 * abs(expected)


# -- quadrature --------------------------------------------------------------------------------------------------------


def line_value(line: TimedLine, times: Sequence[float]) -> float:
    lag = times[line.end] - times[line.start]
    side = 0 if lag > 0 else 1
    return float(line.weights[side]) * math.exp(-float(line.rates[side]) * abs(lag))


def test_two_internal_times_against_nested_quadrature() -> None:
    half = sp.Rational(1, 2)
    lines = [response(2, 0, 1), correlation(1, 3, 2, 3, half), correlation(2, 3, 3 * half, 1), correlation(3, 0, 1, 2)]
    times = [0.8, 0.0]

    def integrand(s: float, u: float) -> float:
        return math.prod(line_value(line, [*times, u, s]) for line in lines)

    def inner(u: float) -> float:
        edges = sorted({-30.0, 0.0, 0.8, u, 30.0})
        return sum(scipy.integrate.quad(integrand, lo, hi, args=(u,), epsabs=1e-12)[0] for lo, hi in itertools.pairwise(edges))

    edges = [-30.0, 0.0, 0.8, 30.0]
    expected = sum(scipy.integrate.quad(inner, lo, hi, epsabs=1e-10)[0] for lo, hi in itertools.pairwise(edges))
    assert float(integrate_times(lines, 2, 2).evaluate(0.8)) == pytest.approx(expected, rel=1e-8)


# -- closed forms ------------------------------------------------------------------------------------------------------


def test_correlation_of_a_linear_equation_from_its_noise() -> None:
    """C(t) = B int ds R(t - s) R(-s) = B/(2a) exp(-a t); two modes: C_ab = B/(a+b) exp(-a t)."""
    one = integrate_times([response(2, 0, a), response(2, 1, b)], 2, 1)
    assert sp.simplify(one.expr(t) - sp.exp(-a * t) / (a + b)) == 0
    assert len(one.terms) == 1


def test_chain_of_responses_and_its_resonance() -> None:
    """Equal rates: t^n/n! exp(-a t); different ones tend to it."""
    links = [response(1, 2, a), response(2, 3, a), response(3, 4, a), response(4, 0, a)]
    chained = integrate_times(links, 2, 3)
    assert chained.expr(t) == t**3 * sp.exp(-a * t) / 6
    near = [replace(line, rates=(a * (1 + n * sp.Rational(1, 10**9)),) * 2) for n, line in enumerate(links)]
    close = integrate_times(near, 2, 3).evaluate(2, values={a: 1})
    assert abs(close / mpmath.mpf(8) * 6 * mpmath.exp(2) - 1) < 1e-8
    assert abs(close / mpmath.mpf(8) * 6 * mpmath.exp(2) - 1) > 1e-12


def test_three_point_function_at_tree_level() -> None:
    """<x x x> at equal times for dx = -(a x + g x^2) dt + sqrt(2T) dW: vertex -2g, three ways to choose the response leg.

    Gradient system: the cumulant is that of exp(-(a x^2/2 + g x^3/3)/T), -2 g T^2 / a^3.
    """
    lines = [response(1, 0, a), correlation(1, 0, a, T / a), correlation(1, 0, a, T / a)]
    assert sp.simplify(3 * (-2 * g) * integrate_times(lines, 1, 1).value + 2 * g * T**2 / a**3) == 0


def test_theta_of_zero_vanishes_and_effects_do_not_precede_causes() -> None:
    assert integrate_times([response(0, 0, a)], 1, 0).is_zero
    assert integrate_times([response(0, 1, a)], 2, 0).is_zero
    assert integrate_times([response(1, 2, a), response(2, 1, a), response(1, 0, a)], 1, 2).is_zero
    assert integrate_times([response(1, 0, a)], 2, 0).expr(t) == sp.exp(-a * t)


def test_three_times_and_equal_time_limits() -> None:
    """Limits of the function of three times are the functions of merged nodes."""
    lines = [response(3, 0, a), correlation(3, 1, a, T / a, b), correlation(2, 3, c, 1), response(4, 3, b), correlation(4, 2, a, 1)]
    full = integrate_times(lines, 3, 2)

    def merged(number: Sequence[int]) -> list[TimedLine]:
        return [replace(line, start=number[line.start], end=number[line.end]) for line in lines]

    first = integrate_times(merged([0, 0, 1, 2, 3]), 2, 2)
    last = integrate_times(merged([0, 1, 1, 2, 3]), 2, 2)
    at, lag = {a: sp.Rational(7, 5), b: sp.Rational(4, 5), c: sp.Rational(9, 5), T: 1}, sp.Rational(1, 3)
    for limit, expected in ((full.equal_time(0), first), (full.equal_time(1), last)):
        assert not expected.is_zero
        assert gap(limit.evaluate(lag, values=at), expected.evaluate(lag, values=at)) < 1e-28


def test_floating_rates_are_exact_and_resonances_are_found_in_them() -> None:
    chained = integrate_times([response(1, 2, 0.3), response(2, 0, sp.Float(0.1) + sp.Float(0.2))], 2, 1)
    assert chained.expr(t) == t * sp.exp(-3 * t / 10)
    complex_pair = integrate_times([response(1, 2, 1 + 2 * sp.I), response(2, 0, 1 - 2 * sp.I)], 2, 1)
    exact = mpmath.exp(-0.5) * mpmath.sin(1) / 2
    assert abs(complex_pair.evaluate(0.5) - exact) < 1e-15


def test_algebraic_rates() -> None:
    """Rates (3 +- sqrt(5))/2 add up to 3, which is recognised."""
    high, low = (3 + sp.sqrt(5)) / 2, (3 - sp.sqrt(5)) / 2
    chained = integrate_times([response(1, 2, high), response(1, 2, low), response(2, 0, 3)], 2, 1)
    assert chained.expr(t) == t * sp.exp(-3 * t)


def test_delta_lines_merge_their_ends() -> None:
    """(1/N) (delta(t) - k exp(-b t)) as an auxiliary line: the local part is the diagram with one node fewer."""
    k = sp.Symbol("k", positive=True)
    lines = [response(2, 0, a), response(1, 3, c), response(3, 2, b, -k, delta=1)]
    expected = integrate_times([response(2, 0, a), response(1, 2, c)], 2, 1) + integrate_times(
        [response(2, 0, a), response(1, 3, c), response(3, 2, b, -k)], 2, 2
    )
    at = {a: 1, b: sp.Rational(5, 2), c: sp.Rational(3, 2), k: 2}
    assert gap(integrate_times(lines, 2, 2).evaluate(1, values=at), expected.evaluate(1, values=at)) < 1e-28
    with pytest.raises(TimeOrderError, match=r"delta\(0\)"):
        integrate_times([*lines, response(3, 2, b, 1, delta=1)], 2, 2)


def test_unequal_weights_stay_exact_symbols() -> None:
    u, v = sp.symbols("u v")
    line = TimedLine(1, 0, (u, v), (a, b), equal=sp.Integer(0))
    assert sp.simplify(integrate_times([line], 1, 1).value - u / a - v / b) == 0


# -- cost and errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [(a, a, a), (a, b, c), (0.7, 1.3, 1.9)])
def test_six_internal_times_take_less_than_a_second(values: tuple[object, ...]) -> None:
    """720 orders; every vertex of the cubic type, correlations across."""
    lines = [response(2, 0, values[0]), correlation(1, 7, values[1], T)]
    lines += [response(3 + n, 2 + n, values[n % 3]) for n in range(5)]
    lines += [correlation(2 + n, 2 + (n + 2) % 6, values[(n + 1) % 3], T) for n in range(6)]
    start = time.process_time()
    found = integrate_times(lines, 2, 6)
    assert time.process_time() - start < 1
    assert not found.is_zero


def test_divergences_name_the_cut() -> None:
    with pytest.raises(DivergentTimeIntegral, match=r"\{node 2, node 3\}.*later than every"):
        integrate_times([response(1, 0, a), correlation(2, 3, a, 1)], 2, 2)
    with pytest.raises(DivergentTimeIntegral, match=r"\{t_0\}.*far past"):
        integrate_times([response(1, 0, 0)], 1, 1)


@pytest.mark.parametrize(
    ("lines", "external", "internal", "message"),
    [
        ([], 0, 2, "at least one external time"),
        ([], 1, 40, "at most"),
        ([response(5, 0, a)], 1, 1, "ends at node 5"),
        ([TimedLine(0, 0, (1, 2), (a, a))], 1, 0, "give equal="),
    ],
)
def test_what_is_no_diagram_is_refused(lines: list[TimedLine], external: int, internal: int, message: str) -> None:
    with pytest.raises(TimeOrderError, match=message):
        integrate_times(lines, external, internal)


def test_growing_lines_are_refused() -> None:
    with pytest.raises(TimeOrderError, match="grows with time"):
        response(1, 0, -2)
    with pytest.raises(TimeOrderError, match="has 1 rates"):
        TimedLine(0, 1, (a, a), (a,))
    with pytest.raises(ValueError, match="not finite"):
        integrate_times([response(1, 0, sp.oo)], 1, 1)
