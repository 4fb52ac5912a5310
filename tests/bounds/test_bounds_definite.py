"""Definite bounds: three constructors, and the refusals that name why."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
import sympy

from symtensor.bounds import definite, evidence, from_expression, quantiles, random_growth
from symtensor.bounds.definite import (
    DiscreteLaw,
    GaussianPolynomial,
    LimitLaw,
    NoDefiniteBoundError,
    definite_bound,
    is_definite,
)
from symtensor.bounds.derivative_networks import deep_linear_network, derivative_contraction
from symtensor.bounds.facts import chaos_degree, fact, gaussian, independent, known, second_moment
from symtensor.bounds.modes import Kind
from symtensor.bounds.network import GaussianNetwork
from symtensor.bounds.neurons import neuron_contraction
from symtensor.bounds.operations import contract, trace
from symtensor.bounds.quantiles import ByResidue, QuantileError, QuantileFamily, Steps, minimal_bound
from symtensor.bounds.random_growth import exp_log_normal, exp_sqrt_log_normal, long_product, power_of_uniform
from symtensor.bounds.scale import Scale
from symtensor.bounds.scale_text import scale
from symtensor.bounds.tensors import RandomTensor
from symtensor.bounds.value import Bound
from symtensor.parsing import ExpressionSyntaxError

n, eps = sympy.symbols("n eps", positive=True)
z = sympy.Symbol("z", real=True)


def test_doctests() -> None:
    for module in (definite, evidence, from_expression, quantiles, random_growth):
        assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0, module.__name__


# ---- laws without a definite bound

NONE = {
    "n^U": power_of_uniform(),
    "exp(sqrt(log n) Z)": exp_sqrt_log_normal(),
    "exp(2 log n |Z|)": exp_log_normal(2),
    "product of log n factors": long_product("log(n)"),
    "with drift": long_product("3*log(n)", mean_log=-1, sd_log=sympy.Rational(1, 2)),
    "depth log n": long_product("log(n)/2", of="network of depth"),
}


@pytest.mark.parametrize("name", NONE)
def test_no_definite_bound_exists(name: str) -> None:
    assert not minimal_bound(NONE[name]).exists
    assert is_definite(NONE[name]) is None
    with pytest.raises(NoDefiniteBoundError, match=r"no definite bound.*unbounded in n") as refused:
        definite_bound(NONE[name])
    assert refused.value.reason == "no minimal bound"
    assert NONE[name].name in str(refused.value)


def test_the_criterion_is_the_ratio_of_quantiles() -> None:
    """The same families exist as soon as the logarithmic spread stays bounded."""
    assert minimal_bound(long_product(7)).exists  # fixed depth
    assert minimal_bound(long_product("log(n)", mean_log=2, sd_log=0)).scale == Scale.power_of("n", 2)  # no randomness
    bounded = QuantileFamily("n (1 + Z^2)", n * (1 + z**2), z, n)
    assert minimal_bound(bounded).exists
    assert str(minimal_bound(QuantileFamily("sqrt(n) exp(Z)", sympy.sqrt(n) * sympy.exp(z), z, n)).scale) == "sqrt(n)"
    shrinking = QuantileFamily("n^(1 + Z/log n)", n * sympy.exp(z), z, n)
    assert minimal_bound(shrinking).exists
    # one log of spread at the level of the exponent is enough to lose it
    assert not minimal_bound(QuantileFamily("(log n)^Z", sympy.log(n) ** z, z, n)).exists


def test_simulated_quantiles_are_those_of_the_families() -> None:
    """Order statistics of n^U, exp(sqrt(log n) Z), n^{|Z|} and a product of log n factors against the stated quantiles."""
    rng, samples, size = np.random.default_rng(3), 100_000, 4096
    log = math.log(size)
    normal = rng.normal(size=samples)
    count = round(log)
    draws = {
        "n^U": (rng.uniform(size=samples) * log, NONE["n^U"], lambda p: 1 - p),
        "sqrt": (math.sqrt(log) * normal, NONE["exp(sqrt(log n) Z)"], lambda p: _normal_quantile(p)),
        "abs": (2 * log * np.abs(normal), NONE["exp(2 log n |Z|)"], lambda p: _normal_quantile((1 + p) / 2)),
        "product": (rng.normal(size=(samples, count)).sum(1), long_product(count), lambda p: _normal_quantile(p)),
    }
    for name, (values, family, level) in draws.items():
        for p in (0.5, 0.9, 0.99):
            expected = float(sympy.log(family.quantile).subs({family.size: size, family.level: level(p)}))
            below = np.mean(values <= expected)
            assert abs(below - p) < 4 * math.sqrt(p * (1 - p) / samples), (name, p)


def _normal_quantile(p: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


def test_quantiles_as_text_are_read_by_the_whitelist() -> None:
    family = QuantileFamily("n^U", "n^(1 - eps)", eps, n, increasing=False)
    assert family == QuantileFamily("n^U", n ** (1 - eps), eps, n, increasing=False)
    for bad in ("n.real", "__import__('os')", "n^(1 - delta)"):
        with pytest.raises(ExpressionSyntaxError):
            QuantileFamily("bad", bad, eps, n)
    with pytest.raises(ExpressionSyntaxError, match="foo"):
        long_product("foo(n)")


def test_vanishing_probability() -> None:
    rare = Steps("n^2 with probability 1/n", ((1, None),))
    found = minimal_bound(rare)
    assert not found.exists and "P(M != 0) -> 0" in found.why
    with pytest.raises(NoDefiniteBoundError, match=r"P\(M != 0\) -> 0") as refused:
        definite_bound(rare)
    assert refused.value.reason == "P(M != 0) -> 0"
    assert minimal_bound(Steps("n or 0", ((0.5, "n"), (1, None)))).exists  # zero half of the time is no obstacle


def test_ill_formed_quantiles() -> None:
    with pytest.raises(QuantileError, match="decreases with the level"):
        minimal_bound(QuantileFamily("n^U", n ** (1 - eps), eps, n))
    with pytest.raises(QuantileError, match="must not grow with eps"):
        Steps("wrong way", ((0.5, "1"), (1, "n")))
    with pytest.raises(QuantileError, match="increasing 0 <"):
        Steps("no", ((0.5, "n"),))
    with pytest.raises(QuantileError, match="not decided"):
        minimal_bound(QuantileFamily("sin", sympy.exp(z * sympy.sin(n)), z, n))
    with pytest.raises(QuantileError, match="positive=True"):
        QuantileFamily("x", sympy.Symbol("n") ** z, z, sympy.Symbol("n"))
    with pytest.raises(QuantileError, match="c must be positive"):
        exp_log_normal(-1)


# ---- (a) limit laws, and the traps of section 3


def test_two_point_law_is_definite_but_not_theta() -> None:
    law = DiscreteLaw((("1", 0.5), ("n", 0.5)))
    found = definite_bound(law)
    assert str(found.scale) == "n" and found.constructor == "a"
    assert found.bound.kind is Kind.O and found.bound.definite == "proved"
    assert minimal_bound(law.steps()).scale == found.scale  # the proposition agrees
    found.check()
    with pytest.raises(NoDefiniteBoundError):  # the claim O(n) alone proves nothing
        definite_bound(Bound("n", "O"))
    theta = definite_bound(DiscreteLaw((("n", 0.25), ("2*n", 0.75))))
    assert theta.bound.kind is Kind.THETA


def test_limit_laws() -> None:
    found = definite_bound(LimitLaw("sqrt(n)", 1, "CLT"))
    assert found.bound.kind is Kind.THETA and str(found.scale) == "sqrt(n)" and "CLT" in found.evidence
    partly = definite_bound(LimitLaw("n", sympy.Rational(1, 3), "thinning"))
    assert partly.bound.kind is Kind.O and partly.bound.definite == "proved"
    with pytest.raises(NoDefiniteBoundError, match="scale is too large"):
        LimitLaw("n^2", 0, "CLT")
    with pytest.raises(ValueError, match="number in"):
        LimitLaw("n", 1.5, "CLT")
    with pytest.raises(ValueError, match="add up to 1"):
        DiscreteLaw((("n", 0.5),))
    with pytest.raises(NoDefiniteBoundError, match="M = 0"):
        DiscreteLaw(((None, 1),)).limit_law()


def test_minimal_in_the_weak_sense_is_not_unique() -> None:
    """For M_n = n the function n on even, n^2 on odd n has no smaller order that bounds M, yet is not the smallest bound."""
    sequence, trap = ByResidue(("n", "n")), ByResidue(("n", "n^2"))
    assert trap.has_no_smaller_order(sequence) and not trap.is_minimal_bound(sequence)
    assert sequence.has_no_smaller_order(sequence) and sequence.is_minimal_bound(sequence)
    assert not ByResidue(("n^2", "n^2")).has_no_smaller_order(sequence)
    assert not ByResidue(("1", "n")).has_no_smaller_order(sequence)  # no bound at all
    # and f <~ g is not a total order
    other = ByResidue(("n^2", "n"))
    assert not trap.within(other) and not other.within(trap)
    assert ByResidue(("n", "n^2", "n")).within(ByResidue(("n^2", "n^2"))) and not trap.within("n")


def test_deterministic_sequences() -> None:
    assert definite_bound(ByResidue(("n", "n"))).bound.kind is Kind.THETA
    with pytest.raises(NoDefiniteBoundError, match="no single scale") as refused:
        definite_bound(ByResidue(("n", "n^2")))
    assert refused.value.reason == "no scale"


def test_a_quantile_table_alone_is_no_constructor() -> None:
    with pytest.raises(NoDefiniteBoundError, match="quantiles stated by hand are no constructor") as refused:
        definite_bound(long_product(3))
    assert refused.value.reason == "not proved"


# ---- (b) Theta


def test_theta_is_definite_and_a_claim_is_not() -> None:
    found = definite_bound(Bound("n log(n)", "Theta"))
    assert found.constructor == "b" and str(found.scale) == "n log n"
    for kind in ("O", "o", "Omega"):
        with pytest.raises(NoDefiniteBoundError, match="says nothing about being smallest"):
            definite_bound(Bound("n", kind))
    with pytest.raises(NoDefiniteBoundError, match="is no proof"):
        definite_bound(Bound("n", "O", definite="proved", provenance="because I say so"))
    with pytest.raises(TypeError, match="asked of float"):
        definite_bound(3.0)


# ---- (c) Gaussian polynomials


def test_gaussian_networks_are_theta() -> None:
    found = definite_bound(derivative_contraction(deep_linear_network(1), 0, 2))
    assert found.constructor == "c" and str(found.scale) == "1/n" and found.bound.kind is Kind.THETA
    assert found.bound.rules == ("R8c",) and found.degree == 2
    eta, q = sympy.symbols("eta q", positive=True)
    assert found.second_moment == eta**4 * q**3 / n**2
    found.check()
    assert 0 < found.small_ball(1e-4) < 0.2 and found.upper_tail(50.0) < 1e-6
    with pytest.raises(ValueError, match="gives no tails"):
        definite_bound(LimitLaw("n", 1, "x")).small_ball(0.1)


def test_a_dropped_hypothesis_of_r8c_is_named() -> None:
    from symtensor.bounds.errors import MissingHypothesisError

    step = definite_bound(GaussianNetwork((("g", "i"), ("h", "i")), {"i": "n"})).bound.step
    assert step is not None and {h.name for h in step.facts} == {"chaos_degree", "second_moment"}
    for hypothesis in step.hypotheses:
        with pytest.raises(MissingHypothesisError, match=hypothesis.name):
            step.without(hypothesis).check()


def test_vanishing_polynomial_has_none() -> None:
    for zero in (derivative_contraction(deep_linear_network(1), 0, 2).blocks[0][1],):
        with pytest.raises(NoDefiniteBoundError, match="vanishes identically"):
            definite_bound(zero - zero)
    with pytest.raises(NoDefiniteBoundError, match="vanishes identically") as refused:
        definite_bound(neuron_contraction("x", 0, 3))
    assert refused.value.reason == "P(M != 0) -> 0"
    with pytest.raises(NoDefiniteBoundError, match="M vanishes"):
        GaussianPolynomial(2, 0)


def test_norms_of_r8c() -> None:
    """Frobenius and Euclidean norms are covered, spectral and injective ones are not."""
    gram = GaussianNetwork.from_einsum("ij,kj->ik", ("W", "W"), {"i": "n", "k": "n", "j": "n"}, variances={"W": "1/n"})
    with pytest.raises(NoDefiniteBoundError, match=r"subordinate norm.*frobenius") as refused:
        definite_bound(gram)
    assert refused.value.reason == "norm"
    for norm in ("spectral", "injective"):
        with pytest.raises(NoDefiniteBoundError, match=f"does not cover the {norm} norm"):
            definite_bound(gram, norm=norm)
        with pytest.raises(NoDefiniteBoundError, match=f"not about the {norm} norm"):
            GaussianPolynomial(2, "n^2", norm)
    found = definite_bound(gram, norm="frobenius")
    assert str(found.scale) == "sqrt(n)" and found.bound.grouping == (("i", "k"),)
    found.check()
    vector = definite_bound(GaussianNetwork((("W", "i j"), ("v", "j")), {"i": "n", "j": "n"}, "j"))
    assert str(vector.scale) == "n" and vector.bound.grouping == (("i",),)
    hessian = definite_bound(derivative_contraction(deep_linear_network(2), 2, 0), norm="frobenius")
    assert str(hessian.scale) == "1"
    with pytest.raises(NoDefiniteBoundError, match="subordinate norm"):
        definite_bound(neuron_contraction("x**3", 2, 1))
    assert str(definite_bound(neuron_contraction("x**3", 2, 1), norm="frobenius").scale) == "1/sqrt(n)"


def test_the_frobenius_scale_is_not_the_spectral_one() -> None:
    """Why the norm is refused: a Gaussian matrix has Frobenius norm ~ n and spectral norm ~ sqrt n."""
    matrix = GaussianNetwork((("W", "i j"),), {"i": "n", "j": "n"}, ())
    scale = definite_bound(matrix, norm="frobenius").scale
    rng = np.random.default_rng(1)
    ratio = {k: np.linalg.norm(rng.normal(size=(10, k, k)), 2, axis=(1, 2)) / scale.evaluate({"n": k}) for k in (25, 100)}
    z_score = (ratio[25].mean() - 2 * ratio[100].mean()) / (ratio[25].std() / math.sqrt(10))
    assert ratio[100].mean() < 0.6 * ratio[25].mean() and abs(z_score) < 8


@pytest.mark.parametrize("degree", [sympy.log(n), n, sympy.Symbol("depth", positive=True, integer=True)])
def test_degree_growing_with_the_size_is_refused(degree: sympy.Expr) -> None:
    with pytest.raises(NoDefiniteBoundError, match="is not fixed") as refused:
        GaussianPolynomial(degree, "n")
    assert refused.value.reason == "degree"


def test_lipschitz_functions_have_no_wick_certificate() -> None:
    from symtensor.bounds.network import NetworkError

    with pytest.raises(NetworkError, match="only O by Chebyshev"):
        definite_bound(neuron_contraction("tanh", 0, 2))


# ---- expressions of the algebra


def tensors(*names: str) -> list[RandomTensor]:
    return [RandomTensor(name, {"i": "n"}, [gaussian()]) for name in names]


def test_inner_product_is_sqrt_n_where_r4_says_n() -> None:
    """R4 alone bounds u.v by n; with independence the exact second moment gives Theta(sqrt n)."""
    u, v = tensors("u", "v")
    product = contract(u["i"], v["i"], over="i")
    with pytest.raises(NoDefiniteBoundError, match=r"only O\(n\).*'independent' of u, v"):
        definite_bound(product)
    found = definite_bound(product, assume=[independent(u, v)])
    assert str(found.scale) == "sqrt(n)" and found.constructor == "c" and found.bound.kind is Kind.THETA
    found.check()
    square = definite_bound(contract(u["i"], u["i"], over="i"))
    assert str(square.scale) == "n"
    assert str(definite_bound(product * scale("1/n"), assume=[independent(u, v)]).scale) == "1/sqrt(n)"


def test_networks_written_as_expressions() -> None:
    W = RandomTensor("W", {"i": "m", "j": "n"}, [gaussian()])
    gram = contract(W["i", "j"], W["k", "j"], over="j")
    assert str(definite_bound(trace(gram, "i", "k")).scale) == "m n"
    with pytest.raises(NoDefiniteBoundError, match="subordinate norm"):
        definite_bound(gram)
    frobenius = definite_bound(gram, grouping=[("i", "k")])
    assert frobenius.scale == Scale.max("m sqrt(n)", "n sqrt(m)") and frobenius.bound.grouping == (("i", "k"),)
    double = contract(W["i", "j"], W["i", "j"], over=("i", "j"))
    assert str(definite_bound(double).scale) == "m n"  # N3 done exactly
    quartic = trace(contract(gram, contract(W["k", "j"], W["l", "j"], over="j"), over="k"), "i", "l")
    assert definite_bound(quartic).scale == Scale.max("m^2 n", "n^2 m")
    small = RandomTensor("A", {"i": 3, "j": "n"}, [gaussian()])
    assert str(definite_bound(contract(small["i", "j"], small["i", "j"], over=("i", "j"))).scale) == "n"


def test_expressions_without_a_proof_are_refused() -> None:
    u, v = tensors("u", "v")
    dot = contract(u["i"], v["i"], over="i")
    with pytest.raises(NoDefiniteBoundError, match="no product or contraction"):
        definite_bound(dot + dot, assume=[independent(u, v)])
    heavy = RandomTensor("c", {"i": "n"}, [known("n")])
    assert is_definite(heavy) is None
    with pytest.raises(NoDefiniteBoundError, match="not known to have independent standard Gaussian") as refused:
        definite_bound(contract(heavy["i"], heavy["i"], over="i"))
    assert refused.value.reason == "not proved"
    unknown = RandomTensor("K")
    with pytest.raises(NoDefiniteBoundError) as refused:
        definite_bound(unknown)
    assert refused.value.reason == "missing hypothesis"


def test_limits_and_theta_among_the_facts() -> None:
    limit = definite_bound(RandomTensor("K", facts=[fact("converges_to", number=2)]))
    assert limit.constructor == "a" and str(limit.scale) == "1" and limit.bound.kind is Kind.THETA
    assert is_definite(RandomTensor("K", facts=[fact("converges_to", number=0)])) is None
    stated = definite_bound(RandomTensor("K", facts=[known("n", "Theta")]))
    assert stated.constructor == "b" and str(stated.scale) == "n"
    stated.check()
    polynomial = RandomTensor("M", {"i": "n", "j": "n"}, [chaos_degree(2), second_moment("n^2", frobenius=True)])
    assert is_definite(polynomial) is None  # the spectral norm
    assert definite_bound(polynomial, grouping=[("i", "j")]).constructor == "c"


def test_stated_gaussian_polynomials() -> None:
    found = definite_bound(GaussianPolynomial(3, "n^3 + 2*n"))
    assert str(found.scale) == "n^(3/2)" and found.bound.kind is Kind.THETA
    found.check()
    assert str(definite_bound(GaussianPolynomial(2, 1 / n**2 + 1 / n**3, sizes=["n"])).scale) == "1/n"
    assert definite_bound(GaussianPolynomial(1, "n", "euclidean")).bound.grouping == (("i",),)


def test_two_sided_in_a_simulation() -> None:
    """C_{0,2} of the linear layer: quantiles of |C| / scale stay in a fixed window as n grows; n^U leaves every window."""
    rng, samples = np.random.default_rng(9), 20_000
    found = definite_bound(derivative_contraction(deep_linear_network(1, q=1), 0, 2, eta=1))
    windows = []
    for size in (16, 1024):
        g = rng.normal(size=(samples, 1)) if size > 64 else None
        v, w = (rng.normal(size=(samples, size)) for _ in range(2)) if g is None else (None, None)
        # for large n, v.w is |v| times an independent normal
        dot = (v * w).sum(1) if v is not None else np.sqrt(rng.chisquare(size, samples)) * g[:, 0]
        c = dot / math.sqrt(size) / size
        low, high = np.quantile(np.abs(c) / found.scale.evaluate({"n": size}), [0.05, 0.95])
        assert np.mean(np.abs(c) <= 0.01 / size) < found.small_ball(0.01)
        windows.append((low, high))
    assert windows[1][0] > 0.5 * windows[0][0] and windows[1][1] < 2 * windows[0][1]
    spread = [np.quantile(size ** rng.uniform(size=samples), 0.95) / size**0.5 for size in (16, 1024)]
    assert spread[1] > 4 * spread[0]


def test_certificates_display_their_bound_and_what_proves_it() -> None:
    shown = definite_bound(GaussianPolynomial(3, "n^3 + 2*n"))._repr_latex_()
    assert shown.startswith(r"$\displaystyle \Theta\left(n^{\frac{3}{2}}\right)") and "definite: (c) Gaussian polynomial" in shown
