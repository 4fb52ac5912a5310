r"""The equations of the kernel-only hierarchy, derived from the law of one block.

Everything below `next_phi` is computed: Wick's theorem for the increment, the law of total covariance, the functional
Taylor expansion by Price's theorem, the order in 1/n, and the order in dt.
"""

from __future__ import annotations

from functools import cache

import sympy as sp

from symtensor.expansion.functional import FunctionalTaylor, functional_taylor
from symtensor.expansion.price import ExpectationFamily
from symtensor.expansion.wick import average, covariance, gaussian_average
from symtensor.tensor import Dimension, Index, SymmetryGroup, Tensor, TensorExpr, delta

P = Dimension("P")
a, b, c, d = AXES = P.indices("a b c d")
PAIR = (a, b)
SYMMETRIC, PAIR_SYMMETRIC = SymmetryGroup.symmetric(2), SymmetryGroup.pair_symmetric()


def _symmetric(name: str, latex: str) -> Tensor:
    return Tensor(name, (P, P), symmetry=SYMMETRIC, latex=latex)


phi, eta = Tensor("phi", (P,), latex=r"\phi"), Tensor("eta", (P,), latex=r"\eta")
Sigma, G = _symmetric("Sigma", r"\Sigma"), _symmetric("G", "G")
K0, K1, Q, Delta = _symmetric("K0", "K_0"), _symmetric("K1", "K_1"), _symmetric("Q", "Q"), _symmetric("Delta", r"\Delta")
V4 = Tensor("V4", (P,) * 4, symmetry=PAIR_SYMMETRIC, latex="V_4")
X4 = Tensor("X4", (P,) * 4, latex="X")
alpha, dt, gamma = sp.Symbol("alpha", real=True), sp.Symbol("dt", positive=True), sp.Symbol("gamma", real=True)
C_W, C_b = sp.Symbol("C_W", nonnegative=True), sp.Symbol("C_b", nonnegative=True)
eps = sp.Symbol("eps", positive=True)  # 1/n
m = ExpectationFamily(P)


# -- 1. one block: Wick's theorem for the increment ----------------------------------------------------------------

LAW = {2: lambda i, j: Sigma[(*i, *j)]}  # eta | phi ~ N(0, Sigma), exactly, at any width


def next_phi(index: Index) -> TensorExpr:
    """phi' of one neuron: the block itself, the only equation of motion that is typed in."""
    return phi[index] * alpha + eta[index] * sp.sqrt(dt)


def neuron_mean(expression: TensorExpr) -> TensorExpr:
    """(1/n) sum_i of an expression at most bilinear in phi_i: phi_a phi_b becomes G_ab (no Gaussianity is used)."""
    expression = expression.canonical()
    if any(sum(factor.tensor == phi for factor in term.factors) not in (0, 2) for term in expression.terms):
        raise ValueError(f"not bilinear in phi: {expression}")
    return gaussian_average(expression, phi, G).canonical()


@cache
def block_mean() -> TensorExpr:
    """E[G'_ab | phi], exact."""
    return neuron_mean(average(next_phi(a) * next_phi(b), eta, LAW))


@cache
def block_noise() -> TensorExpr:
    """n Cov[G'_ab, G'_cd | phi], exact: the neurons are independent given phi."""
    return neuron_mean(covariance(next_phi(a) * next_phi(b), next_phi(c) * next_phi(d), eta, LAW))


# -- 2. closure: the single-neuron law is Gaussian with covariance G, so Sigma = Q(G) --------------------------------


def drive() -> TensorExpr:
    """Q_ab(K) = C_b + C_W E_{N(0,K)}[sigma_a sigma_b]."""
    ones = delta(a, a) * delta(b, b)  # all components 1: the bias is shared by the inputs
    return ones * C_b + m(0, 0, a, b) * C_W


@cache
def drift() -> FunctionalTaylor:
    """E[G' | G] as a functional of G, expanded around K_0 in Delta = G - K_0."""
    closed = block_mean().replace(Sigma, lambda i, j: drive().rename({a: i, b: j})).replace(G, lambda i, j: K0[i, j])
    return functional_taylor(closed, K0, Delta, m)


@cache
def expectation() -> FunctionalTaylor:
    """E[sigma_a sigma_b] under N(0, G), expanded the same way."""
    return functional_taylor(m(0, 0, a, b), K0, Delta, m)


# -- 3. moments of Delta to order 1/n --------------------------------------------------------------------------------

FLUCTUATION = {1: lambda i: eps * K1[i], 2: lambda i, j: eps * V4[(*i, *j)]}  # cumulant r is of order n^{1-r} or less


def mean_at(expansion: FunctionalTaylor, order: int) -> TensorExpr:
    """Coefficient of n^-order in the mean of the expanded functional; degree 2 in Delta is complete to order 1/n."""
    return average(expansion.partial_sum(3), Delta, FLUCTUATION).coeff(eps, order)


def at_saddle(expression: TensorExpr) -> TensorExpr:
    """Order n^0: G = K_0, and Sigma = Q(K_0) by name."""
    return expression.replace(G, lambda i, j: K0[i, j]).replace(Sigma, lambda i, j: Q[i, j]).canonical()


def linear_mean(expansion: FunctionalTaylor) -> TensorExpr:
    """The part of that which the mean K_1/n of Delta carries."""
    return average(expansion.series.coefficient(1), Delta, FLUCTUATION).coeff(eps, 1)


@cache
def next_covariance() -> tuple[TensorExpr, TensorExpr]:
    """n Cov(G') at leading order by the law of total covariance: (carried by the mean, made by the noise)."""
    linear = drift().series.coefficient(1)
    other = linear.rename({a: c, b: d})
    carried = covariance(linear, other, Delta, FLUCTUATION).coeff(eps, 1)
    return carried.canonical(), at_saddle(block_noise())


def response(to: Tensor, *spectators: Index) -> TensorExpr:
    """(alpha^2 + dt chi) applied to the first pair of `to`; the other indices look on."""
    return average(drift().series.coefficient(1), Delta, {1: lambda i: to[(*i, *spectators)]}).canonical()


# -- 4. the order in dt ----------------------------------------------------------------------------------------------


def first_order(expression: TensorExpr) -> TensorExpr:
    """The O(dt) truncation at alpha = 1: what an explicit step of the published hierarchy keeps."""
    at_one = expression.subs({alpha: 1})
    return (at_one.coeff(dt, 0) + dt * at_one.coeff(dt, 1)).canonical()


def rate(expression: TensorExpr) -> TensorExpr:
    """d/dt in continuous depth: the coefficient of dt with alpha^2 = 1 - gamma dt."""
    return expression.subs({alpha: sp.sqrt(1 - gamma * dt)}).coeff(dt, 1)


@cache
def equations() -> dict[str, TensorExpr]:
    """Every right-hand side of the hierarchy, by the name of its kernel."""
    carried, made = next_covariance()
    mean, linear = mean_at(drift(), 1), response(K1)
    source = (mean - linear).canonical()
    K0_next = at_saddle(block_mean())
    V4_rate = rate(carried + made)
    return {
        "drive": drive(),
        "K0_step": K0_next,
        "K1_transport": (linear - K1[a, b]).canonical(),
        "K1_source": source,
        "U1_model": (mean_at(expectation(), 1) - linear_mean(expectation())).canonical(),
        "V4_transport": (first_order(carried) - V4[a, b, c, d]).canonical(),
        "V4_source": first_order(made),
        "V4_carry": response(X4, c, d),
        "V4_noise": made,
        "K0_rate": rate(K0_next),
        "V4_rate": V4_rate.canonical(),
        "K1_rate": rate(mean).canonical(),
        "V4_initial": covariance(phi[a] * phi[b], phi[c] * phi[d], phi, {2: lambda i, j: K0[(*i, *j)]}).canonical(),
    }


@cache
def response_table() -> TensorExpr:
    """J_ab,cd = dE[sigma_a sigma_b]/dK_cd (ordered pairs), with Kronecker deltas."""
    (term,) = m(0, 0, a, b).terms
    return m.gradient(term.factors[0], c, d).canonical()
