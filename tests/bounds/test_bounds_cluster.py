"""The cluster rule: its table, its conditions, and that exact second moments and a measurement never exceed it."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
import sympy

from symtensor.bounds import cluster, correlation
from symtensor.bounds.cluster import (
    PROVED_FOR,
    ClusterError,
    Correlation,
    cluster_exponent,
    contraction_cluster,
)
from symtensor.bounds.correlation import exact_correlation
from symtensor.bounds.definite import definite_bound, is_definite
from symtensor.bounds.definite_error import NoDefiniteBoundError
from symtensor.bounds.derivative_networks import deep_linear_network, derivative_contraction, one_hidden_network
from symtensor.bounds.modes import DET, Kind, L
from symtensor.bounds.network_moments import MomentScale
from symtensor.bounds.neurons import neuron_contraction

n = sympy.Symbol("n", positive=True)
Half = sympy.S.Half


def test_doctests() -> None:
    for module in (cluster, correlation):
        assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


# ---- the table of section 6

TABLE = [
    (0, 2, True, (3, 3), 6, -2),
    (0, 3, False, (4,), 4, -1),
    (0, 4, True, (5, 5), 10, -4),
    (0, 5, False, (6,), 6, -2),
    (1, 1, True, (4,), 4, -1),
    (1, 2, True, (6,), 6, -2),
    *[(D, d, True, (2 * (d + 1),), 2 * (d + 1), -d) for D in (1, 2, 3) for d in (0, 1, 2, 3)],
]


@pytest.mark.parametrize(("D", "d", "squared", "components", "m", "s"), TABLE)
def test_table(D: int, d: int, squared: bool, components: tuple[int, ...], m: int, s: int) -> None:
    found = contraction_cluster(D, d, squared=squared)
    assert (found.components, found.m, found.exponent) == (components, m, s)
    assert found.exponent == found.even + found.odd * Half - m * Half


def test_exponents_of_the_contractions() -> None:
    """C_{0,d} = O(n^{-d/2}) for even d, O(n^{-(d-1)/2}) for odd d, |C_{1,d}| = O(n^{-d/2})."""
    for d in range(1, 8):
        expected = sympy.Rational(-d, 2) if d % 2 == 0 else sympy.Rational(1 - d, 2)
        scale = contraction_cluster(0, d, squared=True).bound().scale
        assert dict(scale.exponents).get("n", (0,))[0] == expected
        assert contraction_cluster(0, d).bound().scale == scale  # for odd d the mean has the same exponent
        assert dict(contraction_cluster(1, d).bound().scale.exponents)["n"][0] == sympy.Rational(-d, 2)


def test_bounds_say_what_they_are_about() -> None:
    mean, square, norm = contraction_cluster(0, 3).bound(), contraction_cluster(0, 2).bound(), contraction_cluster(2, 1).bound()
    assert (mean.mode, square.mode, norm.mode) == (DET, L(2), L(2))
    assert {b.kind for b in (mean, square, norm)} == {Kind.O} and {b.definite for b in (mean, square, norm)} == {None}
    assert norm.grouping == (("p0", "p1"),)
    assert "upper bound" in str(mean.provenance)


def test_graphs_by_pairs_and_products() -> None:
    by_pairs = Correlation.from_pairs([3, 2, 1, 2], [(0, 1), (0, 1), (0, 2), (3, 3)])
    assert by_pairs.components == (3, 1) and by_pairs.orders == (3, 2, 1, 2)
    other = Correlation(("a b", "a", "b"))
    for left in (by_pairs, other, Correlation(("",))):
        joint = cluster_exponent(left * other).exponent
        assert joint == cluster_exponent(left).exponent + cluster_exponent(other).exponent
    assert cluster_exponent(["", ""]).exponent == 0
    assert cluster_exponent([""]).exponent == 0


def test_ill_formed_products_are_refused() -> None:
    with pytest.raises(ClusterError, match=r"index b stands 1 time;.*doubled graph"):
        Correlation(("a b", "a"))
    with pytest.raises(ClusterError, match="stands 3 times"):
        Correlation(("a", "a", "a"))
    with pytest.raises(ClusterError, match="no tensor"):
        Correlation(())
    with pytest.raises(ClusterError, match="names tensor 2"):
        Correlation.from_pairs([1, 1], [(0, 2)])
    with pytest.raises(ClusterError, match="order 2 but has 1"):
        Correlation.from_pairs([2, 1], [(0, 1)])
    with pytest.raises(ClusterError, match="free slots"):
        contraction_cluster(1, 2, squared=False)
    with pytest.raises(ClusterError, match="D, d >= 0"):
        contraction_cluster(0, -1)


def test_conditions_are_part_of_the_result() -> None:
    open_claim = contraction_cluster(0, 2)
    assert not open_claim.proved and set(open_claim.proved_for) == set(PROVED_FOR.values())
    assert "if one of" in str(open_claim) and "polynomial activations at any depth" in str(open_claim)
    known = contraction_cluster(0, 2, architecture="polynomial")
    assert known.proved and "if one of" not in str(known)
    with pytest.raises(ClusterError, match=r"not for 'relu'.*conditional"):
        contraction_cluster(0, 2, architecture="relu")


def test_never_definite() -> None:
    found = contraction_cluster(0, 3, architecture="deep linear")
    assert found.definite is None and is_definite(found) is None
    with pytest.raises(NoDefiniteBoundError, match="never the definite one") as refused:
        definite_bound(found)
    assert refused.value.reason == "cluster rule"
    with pytest.raises(NoDefiniteBoundError, match="says nothing about being smallest"):
        definite_bound(found.bound())


# ---- against exact moments

FUNCTIONS = {
    "identity": one_hidden_network("x"),
    "quadratic": one_hidden_network("x**2"),
    "cubic": one_hidden_network("x**3"),
    "mixed": one_hidden_network("x + x**2/3"),
    "two hidden linear": deep_linear_network(2),
}


def order(found: MomentScale) -> sympy.Expr:
    """Exponent of n in E M^2."""
    return 2 * dict(found.scale.exponents).get("n", (sympy.S.Zero,))[0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_exact_second_moments_stay_below(name: str) -> None:
    """E C^2 = Theta(n^e) with e <= s, and where they agree the cluster bound happens to be tight."""
    equal = {}
    for D, d in ((0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)):
        exact = derivative_contraction(FUNCTIONS[name], D, d)
        s = contraction_cluster(D, d, squared=True).exponent
        if exact.second_moment() == 0:
            equal[D, d] = None
            continue
        found = order(exact.moment_scale())
        assert found <= s
        equal[D, d] = found == s
    assert equal[0, 1] and equal[0, 2] and equal[1, 1] and equal[2, 0]
    if name == "identity":
        assert equal[0, 3] is None and equal[1, 2] is None  # C_{0,3} = 0 where the rule says n^{-1}
    elif name == "two hidden linear":
        assert equal[0, 3] is False  # Theta(1/n^2) where the rule says n^{-1}
    else:
        assert equal[0, 3] and equal[1, 2] and equal[2, 1]


@pytest.mark.parametrize("activation", ["x**2", "x**3", "x - x**3/6"])
def test_high_orders_by_the_sum_over_neurons(activation: str) -> None:
    for D in (0, 1, 2, 3):
        for d in range(6):
            exact = neuron_contraction(activation, D, d)
            if exact.second_moment() != 0:
                assert order(exact.moment_scale()) <= contraction_cluster(D, d, squared=True).exponent


def test_high_orders_are_attained() -> None:
    """A quintic has all contractions to d = 5: E C_{0,4}^2 and (E C_{0,5})^2 are of order n^{-4}, as the rule says."""
    even, odd = neuron_contraction("x**5", 0, 4), neuron_contraction("x**5", 0, 5)
    assert order(even.moment_scale()) == order(odd.moment_scale()) == -4
    assert even.mean() == 0 and sympy.degree(odd.mean().subs(n, 1 / n), n) == 2


GRAPHS = [
    ("a", "a"), ("a b", "a", "b", ""), ("a b c", "a", "b", "c"), ("a b", "b c", "c a"), ("a b c", "a b c"), ("a a", ""),
    ("a b c", "a b", "c d", "d"), ("a b", "a b", "", ""), ("a b c d", "a b", "c d"), ("a b c d", "a", "b", "c", "d", ""),
    ("a b", "a", "b", "c d", "c", "d"), ("", "", "", ""), ("a a b", "b"), ("a b", "b c", "c d", "d a"),
]  # fmt: skip


@pytest.mark.parametrize("graph", GRAPHS)
def test_exact_correlations_of_any_graph_stay_below(graph: tuple[str, ...]) -> None:
    product = Correlation(graph)
    s = cluster_exponent(product).exponent
    for name in ("identity", "quadratic", "cubic", "two hidden linear"):
        exact = exact_correlation(FUNCTIONS[name], product)
        if exact == 0:
            continue
        leading = max(sympy.Poly(exact.subs(n, 1 / n), n).monoms(), key=lambda powers: -powers[0])[0]
        assert -leading <= s, (name, exact)


def test_a_smaller_exponent_would_be_refuted() -> None:
    """Mutation: counting an odd component with weight 0, or an even one with 1/2, is contradicted by exact moments."""
    triple = Correlation(("a b", "a", "b", "c d", "c", "d"))
    found = cluster_exponent(triple)
    exact = exact_correlation(FUNCTIONS["quadratic"], triple)
    assert sympy.limit(exact * n ** (-found.exponent), n, sympy.oo) > 0
    assert found.even + 0 * found.odd - found.m * Half < found.exponent
    single = cluster_exponent(Correlation(("a b c", "a", "b", "c")))
    exact = exact_correlation(FUNCTIONS["quadratic"], single.correlation)
    assert sympy.limit(exact * n ** (-single.exponent), n, sympy.oo) > 0
    assert single.even * Half + single.odd * Half - single.m * Half < single.exponent


def test_exact_correlation_against_numpy() -> None:
    """E[d^2 f/da db df/da df/db f] of a quadratic layer with dense derivatives: z-score, and the leading order is rejected."""
    rng = np.random.default_rng(17)
    width, samples = 4, 400_000
    a, u = rng.normal(size=(2, samples, width))
    f = (a * u**2).sum(1) / np.sqrt(width)
    ga, gu = u**2 / np.sqrt(width), 2 * a * u / np.sqrt(width)
    quadratic = (2 * ga * gu * 2 * u + gu**2 * 2 * a).sum(1) / np.sqrt(width)
    values = quadratic * f
    exact = exact_correlation(one_hidden_network("x**2", q=1), Correlation(("a b", "a", "b", "")))
    error = values.std() / np.sqrt(samples)
    assert abs(values.mean() - float(exact.subs(n, width))) < 4 * error
    assert error < 0.03 * float(exact.subs(n, width))


def test_measured_slopes_of_tanh_stay_below() -> None:
    """One hidden tanh layer (smooth): root mean squares of C_{0,2}, C_{0,3}, |C_{1,1}| over widths 32..256."""
    rng, samples = np.random.default_rng(23), 4000
    widths = np.array([32, 64, 128, 256])
    rms = {(0, 2): [], (0, 3): [], (1, 1): []}
    for width in widths:
        a, u = rng.normal(size=(2, samples, width))
        phi = np.tanh(u)
        f1 = 1 - phi**2
        f2, f3 = -2 * phi * f1, f1 * (6 * phi**2 - 2)
        c02 = (a * f2 * (a * f1) ** 2 + 2 * f1 * phi * a * f1).sum(1) / width**1.5 / 2
        c03 = (a * f3 * (a * f1) ** 3 + 3 * f2 * phi * (a * f1) ** 2).sum(1) / width**2 / 6
        c11 = ((a * f2 * a * f1 + f1 * phi) ** 2 + (f1 * a * f1) ** 2).sum(1) / width**2
        for key, square in (((0, 2), c02**2), ((0, 3), c03**2), ((1, 1), c11)):
            rms[key].append((np.sqrt(square.mean()), square.std() / square.mean() / np.sqrt(samples) / 2))
    for (D, d), found in rms.items():
        value, error = np.array(found).T
        x = np.log(widths) - np.log(widths).mean()
        slope, spread = (x @ np.log(value)) / (x @ x), np.sqrt(x**2 @ error**2) / (x @ x)
        s = float(contraction_cluster(D, d, squared=True, architecture="one smooth hidden layer").exponent) / 2
        assert abs(slope - s) < 4 * spread + 0.08, (D, d, slope)
        assert spread < 0.1  # the nearest other exponent is 1/2 away
