"""Exact Wick moments of contraction networks: against brute-force Isserlis on components, closed forms and simulation."""

from __future__ import annotations

import doctest
from collections import Counter
from itertools import product

import numpy as np
import pytest
import sympy

from symtensor.bounds import (
    _input,
    _wick,
    derivative_networks,
    gaussian_tails,
    network,
    network_moments,
    neurons,
)
from symtensor.bounds._collect import collected
from symtensor.bounds._leading import leading_scale, proved_positive
from symtensor.bounds._wick import WickCostError
from symtensor.bounds.derivative_networks import (
    deep_linear_network,
    one_hidden_network,
    polynomial_of,
)
from symtensor.bounds.derivative_networks import derivative_contraction as contraction
from symtensor.bounds.gaussian_tails import (
    CARBERY_WRIGHT,
    DegreeError,
    first_moment_factor,
    hypercontractive_factor,
    small_ball,
    upper_tail,
)
from symtensor.bounds.network import DELTA, GaussianNetwork, NetworkError, NetworkSum
from symtensor.bounds.network_moments import mixed_moment, moment, moment_scale, pairing_count, trace_moment, variance
from symtensor.bounds.neurons import neuron_contraction
from symtensor.bounds.scale import Scale, ScaleError
from symtensor.expansion.gaussian import isserlis
from symtensor.parsing import ExpressionSyntaxError

n, m, p = sympy.symbols("n m p", positive=True)
q, eta = sympy.symbols("q eta", positive=True)


def test_doctests() -> None:
    for module in (_input, _wick, derivative_networks, gaussian_tails, network, neurons, network_moments):
        found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
        assert found.failed == 0, module.__name__


# ---- an oracle that reads the input: components written out, Isserlis over the entries


def by_components(term: GaussianNetwork, sizes: dict[str, int]) -> sympy.Expr:
    """E of a scalar network by summing over all index values; knows nothing of loops or isomorphism."""
    values = {i: int(size.subs({s: sizes[s.name] for s in size.free_symbols})) for i, size in term.sizes}
    variances = dict(term.variances)
    total = sympy.S.Zero
    for point in product(*(range(values[i]) for i in values)):
        at = dict(zip(values, point, strict=True))
        if any(at[held[0]] != at[held[1]] for name, held in term.factors if name == DELTA):
            continue
        entries = [(name, *(at[i] for i in held)) for name, held in term.factors if name != DELTA]
        total += isserlis(entries, lambda a, b: variances.get(a[0], 1) if a == b else 0)
    number = {s: sizes[s.name] for s in (total * term.coefficient).free_symbols if s.name in sizes}
    return sympy.expand((total * term.coefficient).subs(number))


def random_network(seed: int) -> GaussianNetwork:
    rng = np.random.default_rng(seed)
    kinds = {"a": "i", "u": "j", "W": "ij", "T": "iij"}  # slot types, so that sizes agree
    indices = {"i": ["i0", "i1"], "j": ["j0", "j1"]}
    chosen = rng.choice(list(kinds), size=rng.integers(1, 4))
    names = [*chosen, *chosen]
    factors = [(str(k), tuple(str(rng.choice(indices[t])) for t in kinds[k])) for k in names]
    sizes = dict.fromkeys(indices["i"], "m") | dict.fromkeys(indices["j"], "n")
    extra = [(DELTA, ("i0", "i1"))] if rng.random() < 0.3 else []
    return GaussianNetwork(tuple(factors + extra), sizes, variances={"W": "1/n", "u": 2})


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_against_isserlis_on_components(seed: int) -> None:
    term = random_network(seed)
    for sizes in ({"m": 2, "n": 3}, {"m": 3, "n": 1}):
        exact = term.mean().subs({s: sizes[s.name] for s in term.mean().free_symbols})
        assert sympy.expand(exact - by_components(term, sizes)) == 0


def test_the_oracle_rejects_a_lost_loop() -> None:
    """Mutation: a polynomial with one loop size replaced fails against the components."""
    term = GaussianNetwork((("W", "i j"), ("W", "i k"), ("W", "l j"), ("W", "l k")), {"i": "m", "l": "m", "j": "n", "k": "n"})
    exact = term.mean()
    assert exact == m**2 * n + m * n**2 + m * n
    wrong = m**2 * n + m * n**2 + m
    truth = by_components(term, {"m": 2, "n": 2})
    assert exact.subs({m: 2, n: 2}) == truth != wrong.subs({m: 2, n: 2})


# ---- closed forms


def test_wishart_traces() -> None:
    """E tr (W W^T)^k of a real Gaussian matrix; the top genus-0 part is Narayana's, the value at m = n = 1 is (2k - 1)!!."""
    W = GaussianNetwork((("W", "i j"),), {"i": "m", "j": "n"}, ())
    assert trace_moment(W, 1) == m * n
    assert trace_moment(W, 2) == sympy.expand(m * n * (m + n + 1))
    assert trace_moment(W, 3) == sympy.expand(m * n * (m**2 + n**2 + 3 * m * n + 3 * m + 3 * n + 4))
    for k in (4, 7, 10):
        value = sympy.Poly(trace_moment(W, k), m, n)
        assert value.eval({m: 1, n: 1}) == sympy.factorial2(2 * k - 1)
        for r in range(1, k + 1):
            narayana = sympy.binomial(k, r) * sympy.binomial(k, r - 1) / k
            assert value.coeff_monomial(m**r * n ** (k + 1 - r)) == narayana
        assert value.eval({m: 1}).as_expr() == sympy.expand(sympy.prod([n + 2 * i for i in range(k)]))  # chi-squared moments


def test_one_hidden_linear_layer_section_7() -> None:
    f = deep_linear_network(1)
    assert moment(f, 2) == q and moment(f, 4) == 3 * q**2 + 6 * q**2 / n and moment(f, 3) == 0
    assert contraction(f, 0, 2).second_moment() == eta**4 * q**3 / n**2
    assert contraction(f, 0, 2).mean() == 0
    assert not contraction(f, 0, 3).blocks and contraction(f, 0, 3).second_moment() == 0
    assert contraction(f, 1, 1).second_moment() == eta**3 * (q / n) * 2 * q  # eta^3 (q/n) E Th
    assert contraction(f, 0, 1).mean() == 2 * eta * q
    found = contraction(f, 0, 2).moment_scale()
    assert str(found.scale) == "1/n" and found.constant == eta**2 * q ** sympy.Rational(3, 2) and found.degree == 2
    with pytest.raises(NetworkError, match="vanishes"):
        contraction(f, 0, 3).moment_scale()


def test_c02_is_the_stated_polynomial() -> None:
    """C_{0,2} = eta^2 q f / n as random variables: the second moment of the difference is 0."""
    f = deep_linear_network(1)
    c02 = contraction(f, 0, 2).blocks[0][1]
    assert (c02 - f * (eta**2 * q / n)).second_moment() == 0
    assert (c02 - f * (2 * eta**2 * q / n)).second_moment() != 0


ACTIVATIONS = ["x", "x**2", "x**3", "x + x**2/2 - x**3/3", "1 + x**2"]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("D", "d"), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1), (1, 2)])
def test_wick_and_neuron_routes_agree(activation: str, D: int, d: int) -> None:
    by_wick = contraction(one_hidden_network(activation), D, d)
    by_neurons = neuron_contraction(activation, D, d)
    assert sympy.expand(by_wick.second_moment() - by_neurons.second_moment()) == 0
    if not D:
        assert sympy.expand(by_wick.mean() - by_neurons.mean()) == 0


@pytest.mark.parametrize("activation", ["x**2", "x**3"])
def test_third_order_contractions_agree(activation: str) -> None:
    for d in (3, 4):
        by_wick = contraction(one_hidden_network(activation), 0, d)
        assert sympy.expand(by_wick.second_moment() - neuron_contraction(activation, 0, d).second_moment()) == 0


@pytest.mark.parametrize("activation", ["x**2", "x + x**3/6"])
def test_closed_forms_of_section_8(activation: str) -> None:
    """The table of one hidden layer at q = eta = 1, the expectations written out here; Q = D! d! C."""
    h = sympy.Symbol("x", real=True)
    phi = sympy.sympify(activation, locals={"x": h})
    f0, f1, f2, f3 = (sympy.diff(phi, h, k) if k else phi for k in range(4))

    def mean(value: sympy.Expr) -> sympy.Expr:
        return sum(c * (sympy.factorial2(k - 1) if k else 1) for (k,), c in sympy.Poly(value, h).terms() if k % 2 == 0)

    def found(D: int, d: int) -> sympy.Expr:
        value = neuron_contraction(activation, D, d, q=1, eta=1).second_moment()
        return value * (sympy.factorial(D) * sympy.factorial(d)) ** 2

    theta = mean(f0**2) + mean(f1**2)
    spread = mean(f0**4) + 2 * mean(f0**2 * f1**2) + 3 * mean(f1**4) - theta**2
    assert sympy.expand(found(0, 1) - theta**2 - spread / n) == 0
    q21 = mean(f1**4) + mean(f0**2 * f1**2) + 2 * mean(f0 * f1**2 * f2) + 3 * mean(f2**2 * f1**2)
    assert sympy.expand(found(1, 1) - q21 / n) == 0
    q22 = 4 * mean(f0**2 * f1**4) + 12 * mean(f0 * f2 * f1**4) + 15 * mean(f2**2 * f1**4)
    assert sympy.expand(found(0, 2) - q22 / n**2) == 0
    q32 = 3 * mean(f2**2 * f1**4) + 4 * mean(f0**2 * f2**2 * f1**2)
    q32 += 12 * mean(f0 * f2 * f3 * f1**3) + 15 * mean(f3**2 * f1**4)
    assert sympy.expand(found(1, 2) - q32 / n**2) == 0
    q33 = 3 * mean(f0 * f1**2 * f2) + 3 * mean(f3 * f1**3)
    assert sympy.expand(neuron_contraction(activation, 0, 3, q=1, eta=1).mean() * 6 - q33 / n) == 0


def test_fixed_inputs_enter_by_their_inner_products() -> None:
    """E (W x).(W y) = m x.y and E ((W x).(W y))^2, by the Gram matrix of two fixed inputs."""
    gram = {("x", "x"): sympy.Symbol("a"), ("x", "y"): sympy.Symbol("b"), ("y", "y"): sympy.Symbol("c")}
    f = GaussianNetwork((("W", "i j"), ("x", "j"), ("W", "i k"), ("y", "k")), {"i": m, "j": p, "k": p}, gram=gram)
    a, b, c = gram[("x", "x")], gram[("x", "y")], gram[("y", "y")]
    assert f.mean() == b * m
    assert moment(f, 2) == sympy.expand(b**2 * m**2 + a * c * m + b**2 * m)
    with pytest.raises(ValueError, match="inner products"):
        GaussianNetwork((("W", "i j"), ("x", "j"), ("W", "i j")), {"i": m, "j": p}, gram=gram).mean()  # m sum_j x_j


def test_first_layer_with_inputs_is_the_preactivation_network() -> None:
    """sqrt(q) w_i is W_ij x_j / sqrt(n_0): every second moment agrees when the input layer is written out."""
    explicit = GaussianNetwork(
        (("v", "i"), ("W", "i j"), ("x", "j")), {"i": "n", "j": "k"}, None, "1/sqrt(n)", gram={("x", "x"): q}
    )
    for D, d in ((0, 1), (0, 2), (1, 1), (2, 0)):
        short, full = contraction(deep_linear_network(1), D, d), contraction(explicit, D, d)
        assert sympy.expand(short.second_moment() - full.second_moment()) == 0


def test_variance_and_mixed_moments() -> None:
    chi = GaussianNetwork((("g", "i"), ("g", "i")), {"i": n})
    assert chi.mean() == n and chi.variance() == 2 * n
    dot = GaussianNetwork((("g", "i"), ("h", "i")), {"i": n})
    assert mixed_moment(chi, dot, dot) == sympy.expand(n * (n + 2))
    assert mixed_moment(chi, dot) == 0
    gram = GaussianNetwork.from_einsum("ij,kj->ik", ("W", "W"), {"i": n, "k": n, "j": p})
    assert variance(gram) == sympy.expand(n**2 * p + n * p)  # n(n-1) off-diagonal entries p, n diagonal ones 2p
    assert variance(chi - chi) == 0


def test_like_terms_are_collected() -> None:
    a = GaussianNetwork((("g", "i"), ("h", "i")), {"i": n})
    b = GaussianNetwork((("h", "j"), ("g", "j")), {"j": n})
    other = GaussianNetwork((("g", "i"), ("h", "k")), {"i": n, "k": n})
    (only,) = collected([a, b])
    assert only.coefficient == 2
    assert len(collected([a, other])) == 2
    assert collected([a, -b])[0].coefficient == 0
    row = GaussianNetwork((("W", "i j"),), {"i": n, "j": n}, ())
    turned = GaussianNetwork((("W", "j i"),), {"i": n, "j": n}, ())
    assert len(collected([row, turned])) == 2  # W and its transpose are not like terms: free indices keep their place


# ---- scales


def test_scales_with_several_sizes() -> None:
    gram = GaussianNetwork.from_einsum("ij,kj->ik", ("W", "W"), {"i": "n", "k": "n", "j": "p"}, variances={"W": "1/p"})
    found = moment_scale(gram)
    assert found.scale == Scale.max("sqrt(n)", "n / sqrt(p)") and found.constant is None
    related = moment_scale(GaussianNetwork.from_einsum("ij,kj->ik", ("W", "W"), {"i": n, "k": n, "j": 2 * n}))
    assert str(related.scale) == "n^(3/2)" and related.constant == sympy.sqrt(6)
    fixed = moment_scale(gram, growing=["n"])
    assert str(fixed.scale) == "n"
    centred = moment_scale(GaussianNetwork((("g", "i"), ("h", "i")), {"i": n}) * "1/n")
    assert str(centred.scale) == "1/sqrt(n)" and centred.constant == 1


def test_undecided_leading_coefficients_are_recorded() -> None:
    """5 q^3 - 12 q^2 + 12 q is positive by Sturm; a sign that depends on a free constant becomes an assumption."""
    found = neuron_contraction("x - x**3/6", 1, 0).moment_scale()
    assert str(found.scale) == "1" and found.assumptions == ()
    c = sympy.Symbol("c", real=True)
    g = GaussianNetwork((("g", "i"),), {"i": n})
    h = GaussianNetwork((("h", ()),), {"i": n}) * sympy.Rational(1, 2)
    open_sign = moment_scale(g * c + h)
    assert str(open_sign.scale) == "n" and open_sign.assumptions == ()  # h, summed over its lone index, is n/2 times a normal
    mixed = moment_scale(g * (c**2 - 1))
    assert str(mixed.scale) == "sqrt(n)" and mixed.assumptions == ("(c - 1)**2*(c + 1)**2 > 0",)
    assert proved_positive(q**2 - q + 1) and not proved_positive(q**2 - 3 * q + 1) and not proved_positive(-q)
    difference = GaussianNetwork((("g", ()),), coefficient=1) * (n - m)
    with pytest.raises(ScaleError, match="negative and not dominated"):
        leading_scale(n**2 - 2 * n * m + m**2, ["n", "m"])
    assert difference.second_moment() == sympy.expand((n - m) ** 2)


def test_deep_linear_third_contraction_is_smaller_than_the_cluster_rule_says() -> None:
    found = contraction(deep_linear_network(2), 0, 3)
    assert found.second_moment() == sympy.expand(3 * eta**6 * q**4 * (n**-4 + 4 * n**-5 + 4 * n**-6))
    assert str(found.moment_scale().scale) == "1/n^2"


# ---- cost


def test_cost_is_the_number_of_classes_not_of_pairings() -> None:
    W = GaussianNetwork((("W", "i j"),), {"i": "m", "j": "n"}, ())
    assert pairing_count(*[W] * 20) == 654729075
    trace_moment(W, 10, max_states=500)
    vectors = GaussianNetwork((("g", "i"), ("g", "i")), {"i": n})
    assert moment(vectors, 12, max_states=100) == sympy.expand(sympy.prod([n + 2 * k for k in range(12)]))


def test_refusal_states_pairings_and_estimate() -> None:
    W = GaussianNetwork((("W", "i j"),), {"i": "m", "j": "n"}, ())
    with pytest.raises(WickCostError, match=r"6\.55e\+08 pairings \(factors W: 20\).*more than 20 classes.*about"):
        trace_moment(W, 10, max_states=20)


# ---- errors


def test_ill_formed_networks_are_refused() -> None:
    with pytest.raises(NetworkError, match="index j has no size"):
        GaussianNetwork((("W", "i j"),), {"i": "n"})
    with pytest.raises(NetworkError, match="W has sizes"):
        GaussianNetwork((("W", "i j"), ("W", "j i")), {"i": "n", "j": "m"})
    with pytest.raises(NetworkError, match="size 0"):
        GaussianNetwork((("g", "i"),), {"i": 0})
    with pytest.raises(NetworkError, match="stands nowhere"):
        GaussianNetwork((("g", "i"),), {"i": n}, summed="k")
    with pytest.raises(NetworkError, match="variance -1 of g"):
        GaussianNetwork((("g", "i"),), {"i": n}, variances={"g": -1})
    with pytest.raises(NetworkError, match="either random or fixed"):
        GaussianNetwork((("x", "i"),), {"i": n}, variances={"x": 1}, gram={("x", "x"): 1})
    with pytest.raises(NetworkError, match="free indices i"):
        moment(GaussianNetwork((("g", "i"),), {"i": n}, ()), 2)
    with pytest.raises(NetworkError, match="variance 1 in one network and 2"):
        mixed_moment(
            GaussianNetwork((("g", "i"), ("g", "i")), {"i": n}),
            GaussianNetwork((("g", "i"), ("g", "i")), {"i": n}, variances={"g": 2}),
        )
    with pytest.raises(NetworkError, match="cannot be added"):
        NetworkSum((GaussianNetwork((("g", "i"),), {"i": n}, ()), GaussianNetwork((("g", "i"),), {"i": n})))
    with pytest.raises(NetworkError, match="power of at least 1"):
        moment(GaussianNetwork((("g", "i"), ("g", "i")), {"i": n}), 0)
    with pytest.raises(NetworkError, match="identifies two indices"):
        GaussianNetwork((("W", "i j"),), {"i": n, "j": n}).renamed({"i": "j"})
    with pytest.raises(NetworkError, match="no Gaussian tensor"):
        contraction(deep_linear_network(1), 0, 1, parameters=["z"])


def test_text_is_read_by_the_whitelist() -> None:
    f = GaussianNetwork((("g", "i"),), {"i": "n"}, coefficient="0.1/sqrt(n)")
    assert f.second_moment() == sympy.Rational(1, 100)
    for bad in ("__import__('os')", "n.real", "1/sqrt(k)"):
        with pytest.raises(ExpressionSyntaxError):
            GaussianNetwork((("g", "i"),), {"i": "n"}, coefficient=bad)
    with pytest.raises(ExpressionSyntaxError):
        GaussianNetwork((("g", "i"),), {"i": "n"}, variances={"g": "lambda: 1"})
    with pytest.raises(TypeError, match="no number or formula"):
        GaussianNetwork((("g", "i"),), {"i": "n"}, coefficient=object())


def test_results_do_not_depend_on_the_hash_seed() -> None:
    import os
    import subprocess
    import sys

    code = (
        "from symtensor.bounds.derivative_networks import *;"
        "c = derivative_contraction(deep_linear_network(2), 1, 1); print(c.second_moment(), c.blocks)"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


@pytest.mark.parametrize("activation", ["tanh", "relu", "sin(x)"])
def test_non_polynomials_have_no_exact_second_moment(activation: str) -> None:
    with pytest.raises(NetworkError, match=r"no polynomial.*Chebyshev"):
        neuron_contraction(activation, 0, 2)
    with pytest.raises(NetworkError, match="no polynomial"):
        one_hidden_network(activation)


def test_equal_names_are_equal_sizes() -> None:
    """A symbol without assumptions is the size of that name; nothing is left uncancelled."""
    plain = sympy.Symbol("n")
    f = GaussianNetwork((("v", "i"), ("w", "i")), {"i": plain}, coefficient=1 / sympy.sqrt(plain))
    assert moment(f, 2) == 1
    assert polynomial_of("x + 2*x**3") == (0, 1, 0, 2)


# ---- against simulation of the input (no formula of this module)


def test_contractions_of_a_deep_linear_net_against_dense_numpy() -> None:
    """C_{0,d} are the coefficients of e -> f(theta + e grad f); two hidden layers, width 5, second moments within 4 s.e."""
    rng = np.random.default_rng(7)
    width, samples = 5, 200_000
    v, w = rng.normal(size=(2, samples, width))
    W = rng.normal(size=(samples, width, width))

    def f(v: np.ndarray, W: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.einsum("si,sij,sj->s", v, W, w) / width

    gv = np.einsum("sij,sj->si", W, w) / width
    gW = np.einsum("si,sj->sij", v, w) / width
    gw = np.einsum("si,sij->sj", v, W) / width
    nodes = np.array([-1.0, 0.0, 1.0, 2.0])
    values = np.array([f(v + e * gv, W + e * gW, w + e * gw) for e in nodes])
    coefficients = np.linalg.solve(np.vander(nodes, increasing=True), values)
    for d in (1, 2, 3):
        exact = contraction(deep_linear_network(2, q=1), 0, d, eta=1)
        target = float(exact.second_moment().subs(n, width))
        square = coefficients[d] ** 2
        z = (square.mean() - target) / (square.std() / np.sqrt(samples))
        assert abs(z) < 4
        error = square.std() / np.sqrt(samples) / target
        assert error < 0.06  # small enough to reject the leading order alone
        found = exact.moment_scale()
        assert found.constant is not None
        leading = float(found.constant**2) * found.scale.evaluate({"n": width}) ** 2
        assert abs(leading - target) > 4 * error * target
        mean_z = (coefficients[d].mean() - float(exact.mean().subs(n, width))) / (coefficients[d].std() / np.sqrt(samples))
        assert abs(mean_z) < 4


def test_hessian_frobenius_norm_of_a_cubic_layer_against_numpy() -> None:
    rng = np.random.default_rng(3)
    width, samples = 6, 100_000
    a, u = rng.normal(size=(2, samples, width))
    ours = neuron_contraction("x**3", 2, 0, q=1, eta=1)
    hessian = (2 * (3 * u**2) ** 2 + (a * 6 * u) ** 2).sum(1) / width / 4  # ||H||_F^2 / (2!)^2
    z = (hessian.mean() - float(ours.second_moment().subs(n, width))) / (hessian.std() / np.sqrt(samples))
    assert abs(z) < 4


# ---- both tails of R8c as numbers


def polynomials(rng: np.random.Generator, samples: int) -> dict[str, tuple[int, np.ndarray]]:
    g = rng.normal(size=(samples, 6))
    W = rng.normal(size=(samples, 3, 3))
    return {
        "x": (1, g[:, 0]),
        "x + 3": (1, g[:, 0] + 3),
        "x^2": (2, g[:, 0] ** 2),
        "x^2 - 1": (2, g[:, 0] ** 2 - 1),
        "x y": (2, g[:, 0] * g[:, 1]),
        "x^4": (4, g[:, 0] ** 4),
        "x y z": (3, g[:, :3].prod(1)),
        "tr W^3": (3, np.trace(W @ W @ W, axis1=1, axis2=2)),
        "f": (2, (g[:, :3] * g[:, 3:]).sum(1)),
    }


def test_small_ball_is_never_exceeded() -> None:
    samples = 400_000
    for name, (degree, values) in polynomials(np.random.default_rng(11), samples).items():
        sigma = np.sqrt(np.mean(values**2))
        for eps in (0.3, 0.1, 0.01, 1e-4):
            bound = small_ball(degree, eps)
            hit = np.mean(np.abs(values) <= eps * sigma)
            z = (hit - bound) / np.sqrt(max(bound * (1 - bound), 1e-12) / samples)
            assert z < 4, (name, eps)
            assert bound <= CARBERY_WRIGHT * degree * eps ** (1 / degree)


def test_small_ball_exponent_is_right() -> None:
    """P(|x^k| <= eps sigma) scales as eps^(1/k); a bound of the next smaller exponent, of degree k - 1, is rejected."""
    rng, samples = np.random.default_rng(5), 400_000
    x = rng.normal(size=samples)
    for k in (2, 3, 4):
        sigma = float(np.sqrt(float(sympy.factorial2(2 * k - 1))))
        wide, narrow = (np.mean(np.abs(x) ** k <= eps * sigma) for eps in (1e-3, 1e-6))
        error = np.sqrt(1 / (samples * narrow) + 1 / (samples * wide))
        expected = np.log(1e3) / k
        curvature = (1e-3 * sigma) ** (2 / k) / 3  # the Gaussian density is not flat
        assert abs(np.log(wide / narrow) - expected) < 4 * error + curvature
        assert small_ball(k - 1, 1e-40) < np.sqrt(2 / np.pi) * (1e-40 * sigma) ** (1 / k) * 0.999
        ratios = [small_ball(k, 1e-9 * 2.0**-j) / small_ball(k, 1e-9 * 2.0 ** -(j + 1)) for j in range(20)]
        assert np.allclose(ratios, 2 ** (1 / k), rtol=0.02)


def test_dilation_inequality_behind_the_small_ball() -> None:
    """P(|M| > s) >= P(|M| > T_q(t) s)^(2/(t+1)): z-scores over polynomials, levels and dilations."""
    samples = 200_000
    for name, (degree, values) in polynomials(np.random.default_rng(2), samples).items():
        size = np.abs(values)
        for s in np.quantile(size, [0.02, 0.2, 0.5]):
            for t in (1.2, 2.0, 4.0):
                high = np.cosh(degree * np.arccosh(t)) * s
                left, right = np.mean(size > s), np.mean(size > high)
                power = 2 / (t + 1)
                slope = power * max(right, 1 / samples) ** (power - 1)
                error = np.sqrt(left * (1 - left) / samples) + slope * np.sqrt(right * (1 - right) / samples)
                assert left - right**power > -4 * error, (name, s, t)


def test_hypercontractive_moments_exactly() -> None:
    """(E M^p)^(1/p) <= (p - 1)^(q/2) sqrt(E M^2) for networks, moments by Wick; a degree too small is refuted by x^3."""
    examples = {
        "dot": GaussianNetwork((("u", "i"), ("v", "i")), {"i": 3}),
        "trace": GaussianNetwork((("W", "i j"), ("W", "j k"), ("W", "k i")), {"i": 2, "j": 2, "k": 2}),
        "centred": GaussianNetwork((("u", "i"), ("u", "i")), {"i": 2}) - GaussianNetwork((), {"i": 2}),
    }
    for example in examples.values():
        second = float(moment(example, 2))
        for k in (4, 6):
            ratio = float(moment(example, k)) ** (1 / k) / np.sqrt(second)
            assert ratio <= hypercontractive_factor(example.degree, k)
    cube = float(sympy.factorial2(23)) ** (1 / 8) / np.sqrt(15)
    assert hypercontractive_factor(1, 8) < cube < hypercontractive_factor(3, 8)


def test_upper_tail_and_first_moment() -> None:
    samples = 400_000
    for name, (degree, values) in polynomials(np.random.default_rng(13), samples).items():
        sigma = np.sqrt(np.mean(values**2))
        assert sigma <= first_moment_factor(degree) * np.mean(np.abs(values)), name
        for t in (2.0, 5.0, 12.0):
            bound = upper_tail(degree, t)
            hit = np.mean(np.abs(values) > t * sigma)
            assert (hit - bound) / np.sqrt(max(bound, 1 / samples) / samples) < 4, (name, t)
    assert upper_tail(2, 40.0) < upper_tail(2, 20.0) < 1e-2
    assert Counter(upper_tail(q, 0.5) for q in (1, 2)) == {1.0: 2}


def test_degrees_are_fixed_integers() -> None:
    for bad in (sympy.log(n), n, 0, 1.5):
        with pytest.raises(DegreeError, match="degree"):
            small_ball(bad, 0.1)
    with pytest.raises(ValueError, match="p >= 2"):
        hypercontractive_factor(2, 1)
    with pytest.raises(ValueError, match="not negative"):
        small_ball(2, -1)
