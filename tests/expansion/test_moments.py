"""Gaussian moments and cumulants: pairings, Kan's formula, integrals, samples; the cost by counting entries; named errors."""

from __future__ import annotations

import doctest
import importlib
import itertools
import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symtensor.expansion import moment_recursion, taylor
from symtensor.expansion.cumulants import cumulants_from_moments, joint_cumulant, moments_from_cumulants
from symtensor.expansion.gaussian import isserlis
from symtensor.expansion.moment_errors import CovarianceError, MomentError, NotPolynomialError
from symtensor.expansion.moments import GaussianMoments, gaussian_moment, polynomial_moment, vector_moment
from symtensor.expansion.truncated import Truncated, Truncation

x, y, z, t = sp.symbols("x y z t")
a, b, c, m, n = sp.symbols("a b c m n")
PAIR = {(x, x): a, (x, y): b, (y, y): c}
RATIONALS = st.fractions(min_value=-3, max_value=3, max_denominator=4)


def pairings(items: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """All perfect matchings, one by one: the definition, in factorial time."""
    if not items:
        yield []
        return
    first, *rest = items
    for k, other in enumerate(rest):
        for remaining in pairings(rest[:k] + rest[k + 1 :]):
            yield [(first, other), *remaining]


def by_pairings(powers: Sequence[int], covariance: Sequence[Sequence[Any]]) -> Any:
    word = [i for i, power in enumerate(powers) for _ in range(power)]
    return sum(math.prod(covariance[word[i]][word[j]] for i, j in pairs) for pairs in pairings(range(len(word))))


def kan(powers: Sequence[int], covariance: Sequence[Sequence[Fraction]], mean: Sequence[Fraction]) -> Fraction:
    """Kan, J. Multivariate Anal. 99 (2008) 542, proposition 2: another formula, with half-integer combinations of x."""
    total, order = Fraction(0), sum(powers)
    for nu in itertools.product(*(range(s + 1) for s in powers)):
        h = [Fraction(s, 2) - v for s, v in zip(powers, nu)]
        variance = sum(h[i] * covariance[i][j] * h[j] for i in range(len(h)) for j in range(len(h)))
        center = sum(u * w for u, w in zip(h, mean))
        sign = (-1) ** sum(nu) * math.prod(math.comb(s, v) for s, v in zip(powers, nu))
        for r in range(order // 2 + 1):
            value = (variance / 2) ** r * Fraction(center) ** (order - 2 * r)
            total += sign * value / (math.factorial(r) * math.factorial(order - 2 * r))
    return total


@st.composite
def laws(draw: Any) -> tuple[list[list[Fraction]], list[Fraction], tuple[int, ...]]:
    """Any symmetric matrix (indefinite and singular ones too), means, powers."""
    size = draw(st.integers(1, 3))
    entries = {(i, j): draw(RATIONALS | st.just(Fraction(0))) for i in range(size) for j in range(i + 1)}
    rows = [[entries[max(i, j), min(i, j)] for j in range(size)] for i in range(size)]
    return rows, [draw(RATIONALS) for _ in range(size)], tuple(draw(st.integers(0, 4)) for _ in range(size))


@given(laws())
@settings(max_examples=60, deadline=None)
def test_moments_are_those_of_kans_formula(law: tuple[list[list[Fraction]], list[Fraction], tuple[int, ...]]) -> None:
    rows, mean, powers = law
    found = gaussian_moment(dict(enumerate(powers)), rows, mean)
    assert isinstance(found, Fraction)
    assert found == kan(powers, rows, mean)


@pytest.mark.parametrize("powers", [(1, 1, 1, 1), (2, 2, 0, 0), (3, 1, 2, 0), (2, 2, 2, 2), (1, 2, 0, 0)])
def test_moments_are_sums_over_pairings(powers: tuple[int, ...]) -> None:
    symbols = {(min(i, j), max(i, j)): sp.Symbol(f"c{min(i, j)}{max(i, j)}") for i in range(4) for j in range(4)}
    rows = [[symbols[min(i, j), max(i, j)] for j in range(4)] for i in range(4)]
    found = gaussian_moment(dict(enumerate(powers)), sp.Matrix(rows))
    assert sp.expand(found - by_pairings(powers, rows)) == 0


def test_the_pairing_oracle_and_isserlis_agree_with_means() -> None:
    word = ("x", "x", "y", "y", "y")
    entries = {("x", "x"): a, ("x", "y"): b, ("y", "x"): b, ("y", "y"): c}
    means = {"x": m, "y": n}
    slow = isserlis(word, lambda i, j: entries[i, j], lambda i: means[i])
    fast = gaussian_moment({"x": 2, "y": 3}, {("x", "x"): a, ("y", "x"): b, ("y", "y"): c}, means)
    assert sp.expand(slow - fast) == 0


def test_symbolic_covariance_needs_no_question() -> None:
    """The user's case in Sage: E[x] = m_x, whatever the sign of det Sigma."""
    assert gaussian_moment({x: 1}, PAIR, {x: m, y: n}) == m
    assert gaussian_moment({x: 1, y: 1}, PAIR, {x: m, y: n}) == b + m * n
    negative = sp.Symbol("v", negative=True)
    assert gaussian_moment({x: 4}, negative) == 3 * negative**2
    assert gaussian_moment({x: 1, y: 3}, sp.Matrix([[0, sp.I * b], [sp.I * b, c]])) == 3 * sp.I * b * c


def test_equal_powers_of_a_correlated_pair_have_the_closed_form() -> None:
    """E x^40 y^40 = sum_j (40!)^2 b^j (ac)^{(40-j)/2} / (j! ((40-j)/2)!^2 2^{40-j}), j even."""
    moments = GaussianMoments.of([x, y], PAIR)
    found = moments.moment({x: 40, y: 40})
    terms = [
        sp.factorial(40) ** 2 * b**j * (a * c) ** ((40 - j) // 2)
        / (sp.factorial(j) * sp.factorial((40 - j) // 2) ** 2 * 2 ** (40 - j))
        for j in range(0, 41, 2)
    ]  # fmt: skip
    assert sp.expand(found - sp.Add(*terms)) == 0
    assert moments.entries <= 41 * 41 // 2 + 1


def test_the_cost_is_polynomial_in_the_powers_and_additive_over_independent_groups() -> None:
    counts = []
    for power in (10, 20, 40):
        moments = GaussianMoments.of([x, y], PAIR)
        moments.moment({x: power, y: power})
        counts.append(moments.entries)
    assert counts[1] <= 4 * counts[0] and counts[2] <= 4 * counts[1]
    one = GaussianMoments.of("abcd", [[2, 0, 1, 0], [0, 2, 0, 1], [1, 0, 2, 0], [0, 1, 0, 2]])
    value = one.moment(dict.fromkeys("abcd", 20))
    single = GaussianMoments.of("ac", [[2, 1], [1, 2]])
    assert value == single.moment({"a": 20, "c": 20}) ** 2
    assert one.entries < 2 * single.entries
    many = GaussianMoments.of(range(30), lambda i, j: int(i == j))
    assert many.moment(dict.fromkeys(range(30), 10)) == 945**30
    assert many.entries <= 30 * 6


def test_singular_zero_and_response_covariances() -> None:
    assert gaussian_moment({x: 2, y: 4}, [[1, 1], [1, 1]]) == 15
    assert gaussian_moment({x: 3, y: 2}, [[0, 0], [0, 0]], [2, 3]) == 72
    response = {("x", "x"): c, ("x", "xt"): b}
    assert gaussian_moment({"xt": 2}, response) == 0
    assert gaussian_moment({"x": 2, "xt": 2}, response) == 2 * b**2
    assert gaussian_moment({"x": 4, "xt": 2}, response) == 12 * b**2 * c
    assert gaussian_moment({"x": 1, "xt": 3}, response) == 0
    complex_pair = {("psi", "psib"): 1}
    assert [gaussian_moment({"psi": k, "psib": k}, complex_pair) for k in range(5)] == [math.factorial(k) for k in range(5)]
    assert gaussian_moment({"psi": 2}, complex_pair) == 0


def test_numbers_keep_their_kind() -> None:
    assert isinstance(gaussian_moment({"x": 2}, Fraction(1, 3)), Fraction)
    assert gaussian_moment({"x": 4}, sp.Rational(1, 3)) == Fraction(1, 3)
    assert gaussian_moment({"x": 2}, Decimal("0.1")) == Fraction(1, 10)
    assert gaussian_moment({"x": 4}, np.array([[0.5]])) == 0.75
    assert gaussian_moment({"x": 2}, np.array([[2]])) == Fraction(2)
    assert gaussian_moment({"x": 2}, 1j) == 1j
    with mpmath.workdps(40):
        third = mpmath.mpf(1) / 3
        found = gaussian_moment({"x": 4, "y": 2}, [[third, Fraction(1, 7)], [Fraction(1, 7), 1]])
        assert abs(found * 147 - 49 - 12) < mpmath.mpf(10) ** -36
    root = sp.sqrt(2)
    assert gaussian_moment({"x": 4}, root) == 6
    assert sp.expand(gaussian_moment({"x": 4}, 1 / (a + root)) - 3 / (a + root) ** 2) == 0
    assert sp.simplify(gaussian_moment({"x": 2, "y": 2}, [[sp.exp(t), 1], [1, sp.exp(-t)]]) - 3) == 0
    assert gaussian_moment({}, {}) == 1


def test_moments_by_integration() -> None:
    density = sp.exp(-((x - 1) ** 2) / 4) / sp.sqrt(4 * sp.pi)
    for power in range(5):
        assert sp.integrate(sp.expand(x**power) * density, (x, -sp.oo, sp.oo)).equals(sp.sympify(gaussian_moment({x: power}, 2, 1)))


def test_moments_by_simulation() -> None:
    """A z-score; the answer without the terms that join x and y is rejected at the same standard error."""
    rng = np.random.default_rng(7)
    rows, mean = [[1.0, 0.6], [0.6, 2.0]], [0.5, -0.3]
    sample = rng.multivariate_normal(mean, rows, size=400_000)
    values = sample[:, 0] ** 2 * sample[:, 1] ** 3
    error = values.std() / math.sqrt(len(values))
    assert abs(values.mean() - gaussian_moment({"x": 2, "y": 3}, rows, mean)) < 4 * error
    wrong = gaussian_moment({"x": 2, "y": 3}, [[1.0, 0.0], [0.0, 2.0]], mean)
    assert abs(values.mean() - wrong) > 20 * error


def test_independent_parts_factor() -> None:
    """sympy 21874: X | mu ~ N(mu, 1), mu ~ N(1, 1), so Var X = 2; Y ~ N(0, 1) apart; and 20756: two uniforms on [-1, 1]."""
    X, Y, mu, noise = sp.symbols("X Y mu e")
    parts = {(mu, mu): 1, (noise, noise): 1, (Y, Y): 1}
    assert polynomial_moment((mu + noise) * Y, parts, {mu: 1}) == 0
    assert gaussian_moment({X: 1, Y: 1}, {(X, X): 2, (Y, Y): 1}, {X: 1}) == 0
    assert polynomial_moment((mu + noise) ** 2 * Y**2, parts, {mu: 1}) == 3

    def uniforms(powers: dict[str, int]) -> Fraction:
        return math.prod((Fraction(1 - power % 2, power + 1) for power in powers.values()), start=Fraction(1))

    table = cumulants_from_moments({(i, j): uniforms({"u": i, "v": j}) for i in range(5) for j in range(5)})
    assert table[4, 0] == Fraction(-2, 15) == joint_cumulant({"u": 4}, uniforms)
    assert all(table[i, j] == 0 for i in range(1, 5) for j in range(1, 5))
    own = {k: table[k] if min(k) == 0 else 0 for k in table}
    assert moments_from_cumulants(own)[1, 1] == 0
    assert moments_from_cumulants(own)[2, 4] == Fraction(1, 15)


def test_polynomials_with_parameters() -> None:
    real = sp.Symbol("x", real=True)
    assert polynomial_moment((real - t) ** 4, {("x", "x"): 1}) == t**4 + 6 * t**2 + 3
    he4 = x**4 - 6 * x**2 + 3
    pair = {(x, x): 1, (y, y): 1, (x, y): c}
    assert polynomial_moment(he4 * he4.subs(x, y), pair) == 24 * c**4
    assert polynomial_moment(0, pair) == 0
    assert polynomial_moment(x * y, [[1, c], [c, 1]], fields=[x, y]) == c


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_vectors_component_by_component(dimension: int) -> None:
    """E (u.u)^2 (u.v)^2 u_1^2 written out in components."""
    u, v = sp.symbols(f"u:{dimension}"), sp.symbols(f"v:{dimension}")
    rows = {("u", "u"): Fraction(2), ("u", "v"): Fraction(-1, 2), ("v", "v"): Fraction(1, 3)}
    law = {}
    for i in range(dimension):
        law.update({(u[i], u[i]): rows["u", "u"], (u[i], v[i]): rows["u", "v"], (v[i], v[i]): rows["v", "v"]})
    inner = sum(one * one for one in u) ** 2 * sum(one * two for one, two in zip(u, v)) ** 2 * u[0] ** 2
    found = vector_moment({("u", "u"): 2, ("v", "u"): 2}, rows, {"u": 2}, dimension)
    assert found == polynomial_moment(inner, law) != 0


@pytest.mark.parametrize(("k", "j"), [(0, 4), (1, 0), (3, 2), (6, 6), (2, 3)])
def test_one_vector_has_the_radial_closed_form(k: int, j: int) -> None:
    """E (u.u)^k u_1^j = (j-1)!! prod_{i<k} (N + j + 2i), from the chi-square law with N + j degrees of freedom."""
    N, s = sp.symbols("N s")
    found = vector_moment({("u", "u"): k}, s, {"u": j})
    double = math.prod(range(1, j, 2)) if j % 2 == 0 else 0
    closed = double * s ** (k + sp.Rational(j, 2)) * sp.Mul(*(N + j + 2 * i for i in range(k)))
    assert sp.expand(found - closed) == 0


def test_two_correlated_vectors_of_symbolic_dimension() -> None:
    """Wishart: E (u.v)^2 = N ab + (N^2 + N) c^2 for covariances a, b and c."""
    N = sp.Symbol("N")
    rows = {("u", "u"): a, ("v", "v"): b, ("u", "v"): c}
    assert sp.expand(vector_moment({("u", "v"): 2}, rows) - (N * a * b + (N**2 + N) * c**2)) == 0
    assert vector_moment({("u", "v"): 1}, {("u", "u"): a, ("v", "v"): b}) == 0
    assert sp.expand(vector_moment({}, rows, {"u": 2, "v": 2}) - gaussian_moment({"u": 2, "v": 2}, rows)) == 0


# --- cumulants ------------------------------------------------------------------------------------------------------


@given(st.integers(1, 3).flatmap(lambda size: st.lists(RATIONALS, min_size=4**size, max_size=4**size)))
@settings(max_examples=30, deadline=None)
def test_moments_and_cumulants_are_inverse(values: list[Fraction]) -> None:
    size = round(math.log(len(values), 4))
    keys = [k for k in itertools.product(range(4), repeat=size) if sum(k) <= 4]
    table = dict(zip(keys, values)) | {(0,) * size: Fraction(1)}
    cumulants = cumulants_from_moments(table)
    assert moments_from_cumulants(cumulants) == table
    assert cumulants_from_moments(moments_from_cumulants(table | {(0,) * size: Fraction(0)})) == table | {(0,) * size: 0}


def set_partitions(items: list[Any]) -> Iterator[list[list[Any]]]:
    if not items:
        yield []
        return
    first, *rest = items
    for partition in set_partitions(rest):
        yield [[first], *partition]
        for k, block in enumerate(partition):
            yield [*partition[:k], [first, *block], *partition[k + 1 :]]


@pytest.mark.parametrize("word", ["xxy", "xxyy", "xxxyz", "xyzxy"])
def test_cumulants_are_signed_sums_over_partitions(word: str) -> None:
    """kappa = sum over partitions of (-1)^(blocks-1) (blocks-1)! prod of moments, with moments that are mere symbols."""

    def moment(powers: dict[str, int]) -> sp.Symbol:
        return sp.Symbol("m_" + "".join(name * powers.get(name, 0) for name in "xyz"))

    expected = sum(
        (-1) ** (len(p) - 1) * math.factorial(len(p) - 1) * sp.Mul(*(moment({s: block.count(s) for s in block}) for block in p))
        for p in set_partitions(list(word))
    )
    assert sp.expand(joint_cumulant(word, moment) - expected) == 0
    assert sp.expand(joint_cumulant({s: word.count(s) for s in word}, moment) - expected) == 0


def test_cumulants_of_known_laws() -> None:
    pair = {("x", "x"): a, ("x", "y"): b, ("y", "y"): c}
    assert joint_cumulant({"x": 1}, pair, {"x": m}) == m
    assert joint_cumulant({"x": 1, "y": 1}, pair, {"x": m, "y": n}) == b
    assert joint_cumulant({"x": 3, "y": 2}, pair, {"x": m, "y": n}) == 0
    exponential = cumulants_from_moments({k: math.factorial(k) for k in range(9)})
    assert exponential == {k: math.factorial(k - 1) if k else 0 for k in range(9)}
    poisson = moments_from_cumulants({k: t if k else 0 for k in range(5)})
    assert sp.expand(poisson[4] - (t + 7 * t**2 + 6 * t**3 + t**4)) == 0


def test_cumulants_of_composite_variables() -> None:
    """kappa_k(x^2) of a Gaussian is 2^(k-1) (k-1)! a^k (chi-square); polynomials in several variables, and matrices."""
    for k in range(1, 6):
        assert joint_cumulant({x**2: k}, {(x, x): a}) == 2 ** (k - 1) * math.factorial(k - 1) * a**k
    assert joint_cumulant([x**2, x * y, y**2], PAIR) == 4 * a * b * c + 4 * b**3
    assert joint_cumulant(["x", "y"], [[a, b], [b, c]]) == b
    assert joint_cumulant([x * y, y], [[a, b], [b, c]], [m, n], [x, y]) == b * n + c * m


def test_truncated_series() -> None:
    box = Truncation((((1, 0), 2), ((1, 2), 4)))
    assert all(box.allows(k) for k in box.monomials) and len(box.monomials) == 7
    one = Truncated(box, {(0, 0): 1, (1, 0): 2, (0, 1): -1})
    u, v = sp.symbols("u v")
    square = sp.Poly((1 + 2 * u - v) ** 2, u, v)
    assert (one * one).terms == {k: value for k, value in square.terms() if box.allows(k)}
    cube = sp.Poly(((1 + 2 * u - v) ** 2).subs(v, u + v), u, v)
    inner = Truncated(box, {(1, 0): 1, (0, 1): 1})
    assert (one * one).substituted({1: inner}, 1).terms == {k: value for k, value in cube.terms() if box.allows(k)}
    assert not one - one


@pytest.mark.parametrize(
    "name", ["coefficient_ring", "cumulants", "legendre", "gaussian_law", "moments", "perturbation", "truncated"]
)
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"symtensor.expansion.{name}"))
    assert result.attempted > 0 and result.failed == 0


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [sp.exp(x), sp.sin(x + y), 1 / x, sp.sqrt(x), sp.Abs(x), x**n, sp.Max(x, 0)])
def test_other_functions_are_refused_by_name_with_the_fix(function: sp.Expr) -> None:
    with pytest.raises(NotPolynomialError, match=r"expand it first: symtensor\.taylor") as caught:
        polynomial_moment(1 + y * function, PAIR)
    assert str(caught.value).startswith(str(function))


def test_the_fix_works() -> None:
    with pytest.raises(NotPolynomialError) as caught:
        polynomial_moment(sp.exp(x) * x, {(x, x): 1})
    fix = str(caught.value).partition("symtensor.")[2]
    assert fix == "taylor(exp(x), [x], [0], order).partial_sum()"
    assert polynomial_moment(taylor(sp.exp(x), [x], [0], 4).partial_sum() * x, {(x, x): 1}) == Fraction(3, 2)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: gaussian_moment({"x": -1}, 1), MomentError, "power of x is -1"),
        (lambda: gaussian_moment({"x": 1.5}, 1), MomentError, "power of x is 1.5"),
        (lambda: gaussian_moment({"x": True}, 1), MomentError, "power of x is True"),
        (lambda: gaussian_moment({"x": 2, "y": 1}, 1), CovarianceError, "one variance"),
        (lambda: gaussian_moment({"z": 2}, {("x", "x"): 1}), CovarianceError, "z has no covariance; the variables are x"),
        (lambda: gaussian_moment({"x": 1, "y": 1}, [[1, 2], [3, 1]]), CovarianceError, "not symmetric"),
        (lambda: gaussian_moment({"x": 1}, {("x", "y"): 1, ("y", "x"): 2}), CovarianceError, "as 1 and as 2"),
        (lambda: gaussian_moment({"x": 1, "y": 1}, [[1, 2, 3], [1, 2, 3]]), CovarianceError, "for the 2 variables x, y"),
        (lambda: gaussian_moment({"x": 1, "y": 1}, [1, 2]), CovarianceError, "no sequence"),
        (lambda: gaussian_moment({"x": 1}, {"x": 1}), CovarianceError, "no pair of names"),
        (lambda: gaussian_moment({"x": 1}, 1, {"y": 1}), CovarianceError, "a mean is given for y"),
        (lambda: gaussian_moment({"x": 1}, 1, [1, 2]), CovarianceError, "2 means for 1"),
        (lambda: gaussian_moment({"x": 1}, float("nan")), MomentError, "not finite"),
        (lambda: gaussian_moment({"x": 1}, sp.oo), MomentError, "not finite"),
        (lambda: gaussian_moment({"x": 1}, "v"), MomentError, "no coefficient"),
        (lambda: gaussian_moment({"x": 1}, sp.Symbol("A", commutative=False)), MomentError, "no commuting scalar"),
        (lambda: gaussian_moment({"x": 1000}, 1e200), MomentError, "overflow"),
        (lambda: gaussian_moment(dict.fromkeys("abcdefgh", 20), lambda i, j: 1), MomentError, "intermediate moments"),
        (lambda: polynomial_moment(x ** (10**9), {(x, x): 1}), MomentError, "power above"),
        (lambda: polynomial_moment(x, 1), CovarianceError, "without names"),
        (lambda: joint_cumulant([], {("x", "x"): 1}), MomentError, "of no variable"),
        (lambda: cumulants_from_moments({2: 1}), MomentError, r"\(1,\) is missing"),
        (lambda: cumulants_from_moments({0: 2, 1: 1}), MomentError, "order zero is 2; it must be 1"),
        (lambda: moments_from_cumulants({0: 1, 1: 1}), MomentError, "order zero is 1; it must be 0"),
        (lambda: moments_from_cumulants({(1, 0): 1, 1: 1}), MomentError, "different lengths"),
    ],
)
def test_bad_input_has_a_named_error(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_the_recursion_stops_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moment_recursion, "MAX_ENTRIES", 50)
    with pytest.raises(MomentError, match="more than 50 intermediate moments"):
        gaussian_moment({"x": 40, "y": 40}, [[1, 1], [1, 2]])


def test_nothing_of_the_diagram_code_is_imported() -> None:
    import subprocess
    import sys

    code = (
        "import sys, symtensor.expansion.legendre, symtensor.expansion.cumulants;"
        "assert not [m for m in sys.modules if m.startswith('symtensor.diagrams')]"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).returncode == 0
