r"""Layer recursions of an MLP (alpha = 0, dt = 1) for any number of inputs, derived from the diagrams.

At alpha = 0 the pre-activations of one neuron at different layers are independent, so that joint cumulants at different layers
vanish (locality in depth), and dK_m/dS_k = C_W for k = m - 1 only. With this, every factor of a diagram stands at one layer or
joins two neighbours; the sum over layers becomes a recursion. The forms of Yaida (2020) and Roberts, Yaida & Hanin (2022) are
typed in once, to be compared with what was derived.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import sympy as sp

from derivations.resnet_kernel import equations as eq
from derivations.resnet_kernel.equations import C_W, K1, P, a, b, c, d, m
from symtensor.fields.layered import cumulant_terms
from symtensor.fields.layered.tensor_network import Array, TensorNetwork
from symtensor.tensor import Index, SymmetryGroup, Tensor, TensorExpr, delta

__all__ = ["V", "covariance_recursion", "layer_value", "mean_recursion", "published_covariance", "published_mean", "source"]

i, j, k, l = P.indices("i j k l")
#: n Cov of the variance of the next increment: Cov(K_ab, K_cd), which is V_4 - w
V = Tensor("V", (P,) * 4, symmetry=SymmetryGroup.pair_symmetric(), latex="V")
#: E[sigma_a sigma_b sigma_c sigma_d] at one layer
FOUR = Tensor("M4", (P,) * 4, symmetry=SymmetryGroup.symmetric(4), latex=r"\langle\sigma\sigma\sigma\sigma\rangle")


STRICTLY_RETARDED = "the response <K J> is strictly retarded, and locality puts both of its ends at one layer"


# -- diagrams at one layer ---------------------------------------------------------------------------------------------


def layer_value(network: TensorNetwork) -> tuple[TensorExpr, str]:
    """The amputated part of a diagram with one leg at alpha = 0, as a tensor in a, b; (zero, reason) if it vanishes."""
    layers = _layers(network)
    if any(array.name == "R_EF" and len(_layers_of(array, layers)) == 1 for array in network.internal):
        return TensorExpr.zero(a, b), STRICTLY_RETARDED
    value, *others = [_factor(array, layers) for array in network.internal]
    for factor in others:
        value = value * factor
    summed = tuple(index for index in value.free if index not in (a, b))
    coefficient = sp.Rational(network.coefficient.numerator, network.coefficient.denominator)
    return (value.sum(*summed) * coefficient).contract_deltas().canonical(), ""


def _layers(network: TensorNetwork) -> dict[int, int]:
    """Number of a time -> the time it equals: joint cumulants are at one layer."""
    same: dict[int, int] = {}

    def root(time: int) -> int:
        while same.get(time, time) != time:
            time = same[time]
        return time

    for array in network.internal:
        times = [at for kind, at in array.indices if kind == "T"]
        for time in times:
            same.setdefault(time, time)
        if array.name.startswith("kappa_"):
            for time in times[1:]:
                same[root(time)] = root(times[0])
    return {time: root(time) for time in same}


def _layers_of(array: Array, layers: dict[int, int]) -> set[int]:
    return {layers[at] for kind, at in array.indices if kind == "T"}


def _factor(array: Array, layers: dict[int, int]) -> TensorExpr:
    """One factor at one layer: pairs of inputs E0, E1 are (i, j), (k, l)."""
    times = _layers_of(array, layers)
    if array.name == "C_EE" and len(times) == 1:
        return V[i, j, k, l]
    kind, _, pattern = array.name.partition("_")
    _, _, derivatives = pattern.partition("_")
    if kind == "kappa" and len(derivatives) == 1:
        return _price(int(derivatives))
    raise ValueError(f"{array.name} at {len(times)} layers has no form at one layer")


def _price(order: int) -> TensorExpr:
    """d^order E[sigma_a sigma_b] / dK^order in ordered pairs (i, j), (k, l): the sum over a <= b in other words."""
    value = m(0, 0, a, b)
    for first, second in ((i, j), (k, l))[:order]:
        total = TensorExpr.zero(*value.free, first, second)
        for term in value.terms:
            for position, factor in enumerate(term.factors):
                if m.orders(factor.tensor) is not None:
                    product_ = term.coefficient * m.gradient(factor, first, second)
                    for at, other in enumerate(term.factors):
                        product_ = product_ if at == position else product_ * other.tensor[other.indices]
                    total = total + product_
        value = total
    return value


# -- the recursions ----------------------------------------------------------------------------------------------------


def _carried(tensor: TensorExpr, pair: tuple[Index, Index], inner: tuple[Index, Index]) -> TensorExpr:
    """J applied to the pair `inner` of a tensor, which becomes `pair`: one step of R = 1 + M R, without C_W."""
    response = eq.response_table().rename(dict(zip(eq.AXES, (*pair, *inner))))
    return (response * tensor).sum(*inner).contract_deltas().canonical()


@cache
def source() -> TensorExpr:
    """U at one layer: the sum of the amputated diagrams of the mean at order 1/n."""
    values = [layer_value(network)[0] for term in cumulant_terms(1, 1) for network in term.networks(1)]
    return sum(values[1:], values[0]).canonical()


@cache
def covariance_recursion() -> TensorExpr:
    r"""V' = C_W^2 <s s>: <s s> = R kappa_2 R^T with R = 1 + M R, and no covariance between different layers.

    What a layer adds to <s s> is kappa_2 there; what it carries over is J V J^T.
    """
    local = FOUR[a, b, c, d] - m(0, 0, a, b) * m(0, 0, c, d)
    once = _carried(V[i, j, k, l], (a, b), (i, j))
    return ((local + _carried(once, (c, d), (k, l))) * C_W**2).canonical()


@cache
def mean_recursion() -> TensorExpr:
    """K_1' = C_W S_1: the external line R = 1 + M R carries J K_1 over, the amputated diagrams add U."""
    return ((_carried(K1[i, j], (a, b), (i, j)) + source()) * C_W).canonical()


# -- the published forms -----------------------------------------------------------------------------------------------


def _derivative(first: Index, second: Index, *labels: Index) -> TensorExpr:
    """d_ij..<sigma_first sigma_second>: every label acts on one of the two functions."""
    total = TensorExpr.zero(*dict.fromkeys((first, second, *labels)))
    for choice in product((0, 1), repeat=len(labels)):
        term = m(choice.count(0), choice.count(1), first, second)
        for which, label in zip(choice, labels):
            term = term * delta((first, second)[which], label)
        total = total + term
    return total


def published_covariance() -> TensorExpr:
    """V'_(ab)(cd) = C^2 (<s_a s_b s_c s_d> - <s_a s_b><s_c s_d>) + (C^2/4) V_(ij)(km) d_ij<s_a s_b> d_km<s_c s_d>, equal widths."""
    local = (FOUR[a, b, c, d] - m(0, 0, a, b) * m(0, 0, c, d)) * C_W**2
    carried = (V[i, j, k, l] * _derivative(a, b, i, j) * _derivative(c, d, k, l)).sum(i, j, k, l).contract_deltas()
    return (local + carried * (C_W**2 / 4)).canonical()


def published_mean() -> TensorExpr:
    """K1'_ab = (C/2) K1_ij d_ij<s_a s_b> + (C/8) V_(ij)(km) d_ijkm<s_a s_b>, equal widths."""
    first = (K1[i, j] * _derivative(a, b, i, j)).sum(i, j).contract_deltas() * (C_W / 2)
    second = (V[i, j, k, l] * _derivative(a, b, i, j, k, l)).sum(i, j, k, l).contract_deltas() * (C_W / 8)
    return (first + second).canonical()
