"""Joint cumulants along the path of one input: exactly by Wick's theorem for polynomials, and what is refused."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symtensor.activation import NotSquareIntegrableError, X, activation
from symtensor.expansion import joint_cumulant
from symtensor.numerics.path import PathLaw, PathNotConverged, chain, hermite, leg_orders, one_input, path_cumulants
from symtensor.numerics.path.several_inputs import several_input_cumulants

VARIANCES = (sp.Rational(6, 5), sp.Rational(7, 5), sp.Rational(2), sp.Rational(5, 2))
ALPHA: sp.Expr = sp.Rational(4, 5)
FUNCTIONS = ("x", "x**2 - x/2 + 1/3")
K = sp.symbols("K0:4", positive=True)
PHI = sp.symbols("phi0:4", real=True)
PATTERNS = [
    (1,), (2,), (3,), (4,), (0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (0, 2), (1, 2), (2, 1), (0, 3), (0, 0, 0), (1, 0, 0), (0, 0, 1),
    (0, 1, 1), (2, 0, 0), (0, 2, 0), (0, 0, 2), (1, 1, 0), (0, 0, 0, 0), (1, 0, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1),
]  # fmt: skip


def _law(alpha: sp.Expr = ALPHA) -> PathLaw:
    return PathLaw(np.array([[[float(k)]] for k in VARIANCES]), float(alpha))


@cache
def _symbolic(legs: tuple[tuple[int, int], ...], alpha: sp.Expr) -> sp.Expr:
    """The joint cumulant of the (time, function) legs as a polynomial in the variances."""
    covariance = {(PHI[s], PHI[t]): alpha ** (t - s) * K[s] for s, t in itertools.combinations_with_replacement(range(4), 2)}
    polynomials = [sp.expand(activation(FUNCTIONS[c]).expr ** 2).subs(X, PHI[t]) for t, c in legs]
    return sp.expand(joint_cumulant(polynomials, covariance))


def _exact(legs: tuple[tuple[int, int], ...], pattern: tuple[int, ...], alpha: sp.Expr) -> float:
    """The entry of the array by its definition: coinciding legs have their derivatives on the first of them."""
    times = [t for t, _ in legs]
    if any(a and times[j] in times[:j] for j, a in enumerate(pattern)):
        return 0.0
    value = _symbolic(tuple(sorted(legs)), alpha)
    for t, a in zip(times, pattern):
        value = sp.diff(value, K[t], a) if a else value
    return float(value.subs(dict(zip(K, VARIANCES))))


def _sample(pattern: tuple[int, ...], count: int) -> list[tuple[tuple[int, int], ...]]:
    """Every order type of the times occurs: drawn from all choices, with the coinciding ones not left to chance."""
    rng = np.random.default_rng(17)
    everything = list(itertools.product(itertools.product(range(4), range(2)), repeat=len(pattern)))
    chosen = [everything[at] for at in rng.permutation(len(everything))[:count]]
    chosen += [tuple((1, c) for c in (0, 1, 0, 1)[: len(pattern)])]
    for pair in itertools.combinations(range(len(pattern)), 2):
        times = rng.permutation(4)
        chosen.append(tuple((int(times[pair[0] if leg in pair else leg]), leg % 2) for leg in range(len(pattern))))
    return chosen


def _compare(pattern: tuple[int, ...], alpha: sp.Expr = ALPHA, count: int = 12) -> float:
    """Largest deviation from the exact values, over the largest of these."""
    found = path_cumulants(_law(alpha), [activation(f) for f in FUNCTIONS], pattern, tol=1e-8).values
    gaps, size = [], 0.0
    for legs in _sample(pattern, count):
        exact = _exact(legs, pattern, alpha)
        entry = found[tuple(index for leg in legs for index in leg) + (0,) * sum(pattern)]
        gaps.append(abs(entry - exact))
        size = max(size, abs(exact))
    return max(gaps) / (size or 1.0)


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_polynomials_agree_with_wick(pattern):
    assert _compare(pattern) < 1e-11


@pytest.mark.parametrize("alpha", [sp.Integer(1), sp.Integer(0), sp.Rational(-1, 2)], ids=str)
@pytest.mark.parametrize("pattern", [(0, 1), (1, 0), (0, 1, 1), (0, 0, 0, 1)], ids=str)
def test_every_alpha_agrees_with_wick(alpha, pattern):
    assert _compare(pattern, alpha, 6) < 1e-11


def test_all_entries_of_three_legs_agree_with_wick():
    pattern = (0, 1, 0)
    found = path_cumulants(_law(), [activation("x")], pattern, tol=1e-8).values[:, 0, :, 0, :, 0, 0]
    for times in itertools.product(range(4), repeat=3):
        exact = _exact(tuple((t, 0) for t in times), pattern, ALPHA)
        assert found[times] == pytest.approx(exact, rel=1e-11, abs=1e-11)


# -- each ingredient is needed: without it the comparison above fails ------------------------------------------------


def test_without_the_later_part_of_the_derivative_it_fails(monkeypatch):
    original = chain.Chain._multiplied

    def only_own(self, layer, vectors, size, derivatives, transposed=False):
        # (1/2) d^2 on everything from t on, without subtracting what acts on later times alone
        real = chain.comb
        chain.comb = lambda a, k: real(a, k) if k == a else 0
        try:
            return original(self, layer, vectors, size, derivatives, transposed)
        finally:
            chain.comb = real

    monkeypatch.setattr(chain.Chain, "_multiplied", only_own)
    assert _compare((0, 0, 0)) < 1e-11
    assert _compare((0, 1, 1)) > 1e-3


def test_without_products_of_lower_moments_it_fails(monkeypatch):
    monkeypatch.setattr(leg_orders, "_set_partitions", lambda items: [(tuple(items),)])
    assert _compare((0, 0, 0)) < 1e-11  # centred: the third cumulant is the third moment
    assert _compare((0, 0, 1)) > 1e-3  # but its derivative has products
    assert _compare((0, 0, 0, 0)) > 1e-3


def test_with_a_derivative_that_only_one_block_gets_it_fails(monkeypatch):
    original = leg_orders._shared
    monkeypatch.setattr(leg_orders, "_shared", lambda *arguments: itertools.islice(original(*arguments), 1))
    assert _compare((1, 0, 0, 0)) > 1e-3  # coinciding legs in different blocks


def test_with_another_power_of_the_correlation_it_fails(monkeypatch):
    original = chain.Chain.transfer
    monkeypatch.setattr(chain.Chain, "transfer", lambda self, s, t: original(self, s, t) ** 1.001)
    assert _compare((0, 0)) > 1e-5


# -- invariants ------------------------------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(st.permutations(range(3)), st.sampled_from(["tanh", "relu"]), st.floats(0.3, 1.0))
def test_legs_may_be_permuted_with_their_derivatives(order, name, alpha):
    """d kappa_3 with one derivative: at distinct times the pattern goes with the legs."""
    law = PathLaw(np.array([1.0, 1.3, 2.0])[:, None, None], alpha)
    functions = [activation(name), activation("x")]
    first = path_cumulants(law, functions, (1, 0, 0), tol=1e-6)
    pattern = tuple(int(leg == 0) for leg in order)
    second = path_cumulants(law, functions, pattern, tol=1e-6)  # type: ignore[arg-type]
    times = (0, 2, 1)
    value = first.values[times[0], 0, times[1], 1, times[2], 0, 0]
    components = (0, 1, 0)
    index = tuple(i for leg in order for i in (times[leg], components[leg]))
    assert second.values[(*index, 0)] == pytest.approx(value, abs=4 * (first.error + second.error))


def test_a_constant_has_no_cumulants_and_cosine_squares_follow():
    """cos^2 = 1 - sin^2: odd cumulants change sign, even ones do not."""
    law = PathLaw(np.array([0.8, 1.0, 1.5])[:, None, None], 0.9)
    sin, cos = [activation("sin")], [activation("cos(x)")]
    for pattern, sign in [((1,), -1), ((0, 1), 1), ((0, 1, 0), -1), ((0, 0, 0, 1), 1)]:
        a, b = (path_cumulants(law, f, pattern, tol=1e-9).values for f in (sin, cos))
        np.testing.assert_allclose(b, sign * a, rtol=0, atol=1e-9 * np.abs(a).max())
        assert np.abs(a).max() > 1e-3


@pytest.mark.parametrize("name", ["tanh", "gelu", "relu", "Max(0, x - 1/2)"])
def test_two_legs_agree_with_the_method_for_several_inputs(name):
    law = PathLaw(np.array([1.0, 1.4, 2.0, 2.6])[:, None, None], 0.9)
    functions = [activation(name), activation("x")]
    for pattern in [(1,), (2,), (0, 0), (0, 1)]:
        one = path_cumulants(law, functions, pattern, tol=1e-9)
        other = several_input_cumulants(law, functions, pattern, tol=1e-10)
        assert one.values.shape == other.values.shape
        np.testing.assert_allclose(one.values, other.values, rtol=0, atol=1e-9 * max(np.abs(one.values).max(), 1e-3))


def test_later_only_is_a_part_of_the_whole():
    law = _law()
    functions = [activation("tanh")]
    whole, part = (path_cumulants(law, functions, (0, 1), later_only=flag).values[:, 0, :, 0, 0] for flag in (False, True))
    np.testing.assert_allclose(part, np.triu(whole, 1), rtol=0, atol=1e-9)
    assert np.abs(np.tril(whole, -1)).max() > 0.01


def test_modes_select_degrees():
    law = _law()
    full = path_cumulants(law, [activation("x")], (0, 0)).values
    np.testing.assert_allclose(path_cumulants(law, [activation("x")], (0, 0), modes=[2]).values, full, rtol=1e-12)
    assert np.abs(path_cumulants(law, [activation("x")], (0, 0), modes=[1, 3]).values).max() < 1e-25


def test_a_layer_without_variance_is_exact():
    """phi_0 = 0: nothing correlates with it, and its variance cannot vary."""
    law = PathLaw(np.array([0.0, 1.0, 1.5])[:, None, None], 1.0)
    rest = PathLaw(law.kernels[1:], 1.0)
    functions = [activation("x"), activation("cos(x)")]
    for pattern in [(0, 1), (0, 1, 0), (1,)]:
        found, part = (path_cumulants(each, functions, pattern, tol=1e-9) for each in (law, rest))
        assert np.isfinite(found.values).all()
        inner = (slice(1, None), slice(None)) * len(pattern)
        np.testing.assert_allclose(found.values[inner], part.values, rtol=0, atol=1e-9)
        assert np.abs(found.values[0]).max() < 1e-14


def test_one_layer_is_enough():
    law = PathLaw(np.array([[[2.0]]]), 1.0)
    assert path_cumulants(law, [activation("x")], (0, 0, 0)).values.ravel() == pytest.approx([8 * 2.0**3])


# -- refused ---------------------------------------------------------------------------------------------------------


def test_what_is_not_done_is_refused():
    one, two = _law(), PathLaw(np.tile(np.eye(2), (3, 1, 1)), 1.0)
    x = [activation("x")]
    with pytest.raises(ValueError, match="one input only and the law has 2"):
        path_cumulants(two, x, (0, 0, 0))
    with pytest.raises(ValueError, match="one to 4 legs"):
        path_cumulants(one, x, (0,) * 5)
    with pytest.raises(ValueError, match="one to 4 legs"):
        path_cumulants(one, x, (-1, 0))
    with pytest.raises(ValueError, match="at most 3 for 3 legs"):
        path_cumulants(one, x, (2, 2, 0))
    with pytest.raises(ValueError, match="modes"):
        path_cumulants(one, x, (0, 0, 0), modes=[2])
    with pytest.raises(ValueError, match="no functions"):
        path_cumulants(one, [], (0, 0, 0))
    with pytest.raises(ValueError, match="not finite"):
        PathLaw(np.array([[[np.inf]]]), 1.0)


def test_memory_is_checked_before_the_work():
    law = PathLaw(np.linspace(1, 2, 60)[:, None, None], 1.0)
    with pytest.raises(ValueError, match=r"takes \d+ MB .*memory_mb is 100"):
        path_cumulants(law, [activation("x"), activation("x**2")], (0, 0, 0, 0), memory_mb=100)


def test_functions_that_are_not_integrable_are_refused():
    law = PathLaw(np.array([[[0.05]], [[0.1]]]), 1.0)
    path_cumulants(law, [activation("exp(x**2)")], (0, 0), tol=1e-6)
    with pytest.raises(NotSquareIntegrableError, match="layer 1"):
        path_cumulants(law, [activation("exp(x**2)")], (0, 0, 0))


def test_an_accuracy_out_of_reach_is_said_with_what_was_reached(monkeypatch):
    monkeypatch.setattr(one_input, "MOST_MODES", {1: 8, 2: 60, 3: 60, 4: 60})
    law = PathLaw((2 * np.exp(0.0001 * np.arange(3)))[:, None, None], 1.0)
    with pytest.raises(PathNotConverged, match="not to 1e-12 relative") as caught:
        path_cumulants(law, [activation("relu")], (0, 0, 0), tol=1e-12)
    assert caught.value.array.values.shape == (3, 1) * 3
    assert caught.value.array.error > 1e-12


def test_a_function_of_high_degrees_alone_is_seen(monkeypatch):
    """sin(7 x)^2 has nothing below degree 70: few modes look converged, at zero."""
    a, (early, late) = 7.0, (1.0, 1.001)
    sums = [np.exp(-2 * a * a * (early + late + sign * 2 * early)) for sign in (-1, 1, 0)]
    exact = (sums[0] + sums[1] - 2 * sums[2]) / 8
    law = PathLaw(np.array([early, late])[:, None, None], 1.0)
    found = path_cumulants(law, [activation("sin(7*x)")], (0, 0), tol=1e-7)
    assert exact > 0.05
    assert found.values[0, 0, 1, 0] == pytest.approx(exact, abs=found.error + 1e-12)
    monkeypatch.setattr(hermite.Tables, "missing", lambda self, modes: 0.0)
    blind = path_cumulants(law, [activation("sin(7*x)")], (0, 0), tol=1e-7)
    assert abs(blind.values[0, 0, 1, 0] - exact) > 0.05
