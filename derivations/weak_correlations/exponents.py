r"""Exponents of C_{D,d} of networks: by composition, by the cluster rule, exactly by second moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import factorial
from typing import Any

import numpy as np
import sympy as sp

from derivations.weak_correlations.composition import Part, hidden_layer, input_layer, read_out, residual_block
from symtensor.activation import Activation, activation
from symtensor.bounds import Scale, contraction_cluster, deep_linear_network, derivative_contraction, neuron_contraction

__all__ = [
    "ARCHITECTURES", "architecture", "cluster_scale", "derived_scale", "exact_scale", "exponent_law", "power_of",
    "smooth_second_moment",
]  # fmt: skip

#: names of the architectures of the report, with the part before the read-out
ARCHITECTURES = ("one hidden layer", "two hidden layers", "residual block", "three hidden layers")
#: range and step of the trapezoidal rule, in standard deviations: its error falls like exp(-2 pi a / step) with the width a of
#: the strip of analyticity, where Gauss-Hermite nodes converge like exp(-a sqrt(2 nodes)) only
REACH, STEP = 14.0, 0.02


@cache
def architecture(name: str) -> Part:
    """The last hidden layer's preactivation as a part.

    Raises:
        ValueError: an unknown name.
    """
    first = input_layer()
    parts = {
        ARCHITECTURES[0]: lambda: first, ARCHITECTURES[1]: lambda: hidden_layer(first),
        ARCHITECTURES[2]: lambda: residual_block(first), ARCHITECTURES[3]: lambda: hidden_layer(hidden_layer(first)),
    }  # fmt: skip
    if name not in parts:
        raise ValueError(f"unknown architecture {name!r}; there are: {', '.join(ARCHITECTURES)}")
    return parts[name]()


@cache
def derived_scale(name: str, D: int, d: int) -> Scale:
    """The bound of C_{D,d} by composition; beyond one hidden layer the neurons are taken as uncorrelated (a hypothesis)."""
    return read_out(architecture(name), D, d, uncorrelated=True)[0].scale


def power_of(found: Scale, size: str = "n") -> Any:
    """The exponent c of n^-c, logarithms left out."""
    powers = dict(found.exponents)
    return -sp.Rational(powers[size][0]) if size in powers else sp.Rational(0)


def exponent_law(name: str) -> Callable[[int, int], Any]:
    """(D, d) -> c with C_{D,d} = O(n^-c polylog) for all orders, by c(D, d + 2) = c(D, d) + 1 and equality for D >= 2.

    Two more gradients add one power of n because every one brings n^{-1/2} at its neuron; the report checks the law on the table.
    """
    base = {(D, d): power_of(derived_scale(name, D, d)) for D in range(3) for d in range(4) if D + d}

    def law(D: int, d: int) -> Any:
        if (D, d) == (0, 0):
            return sp.Rational(0)
        inside = d if d < 4 else 2 + d % 2
        return base[min(D, 2), inside] + sp.Rational(d - inside, 2)

    return law


def cluster_scale(D: int, d: int) -> Scale:
    """The cluster rule's bound of |C_{0,d}| or of the Frobenius norm of C_{D,d}."""
    return contraction_cluster(D, d, architecture="one smooth hidden layer").bound().scale


@cache
def exact_scale(name: str, D: int, d: int, hidden: int = 1) -> str:
    """Theta by the exact second moment (R8c): |C| for D <= 1, the Frobenius norm for D >= 2; "0" if it vanishes identically."""
    if hidden == 1:
        found = neuron_contraction(name, D, d)
        return "0" if found.second_moment() == 0 else str(found.moment_scale().scale)
    if activation(name).name != "identity":
        raise ValueError(f"exact moments of {hidden} hidden layers are computed for linear networks, not for {name!r}")
    network = derivative_contraction(deep_linear_network(hidden), D, d)
    if not network.blocks or network.second_moment() == 0:
        return "0"
    return str(network.moment_scale().scale)


@dataclass(frozen=True, slots=True)
class NeuronMoments:
    """E h, E h^2 over one neuron: for D = 0 of the summand of C_{0,d}, for D >= 1 of that of the squared Frobenius norm."""

    D: int
    d: int
    mean: float
    square: float

    def second_moment(self, width: float) -> float:
        """E C^2 for D = 0, E ||C||_F^2 for D >= 1, at learning rate 1, exactly in the width."""
        factor = 1 / (factorial(self.D) * factorial(self.d)) ** 2 * width ** -(self.d + 1)
        if self.D:
            return factor * width * self.mean
        return factor * (width * self.square + width * (width - 1) * self.mean**2)

    def exponent(self, width: float = 1e12) -> float:
        """The local exponent of its square root in the width."""
        low, high = (self.second_moment(width * factor) for factor in (1.0, 2.0))
        return 0.5 * float(np.log2(high / low)) if low > 0 else float("nan")


def smooth_second_moment(phi: str | Activation, D: int, d: int, q: float = 1.0) -> NeuronMoments:
    r"""Moments of C_{D,d} of one hidden layer with any smooth activation, by Gaussian quadrature: f = n^{-1/2} sum_i a_i phi(u_i).

    With h_0 = a phi^{(D+d)} (q a phi')^d + d phi^{(D+d-1)} phi (q a phi')^{d-1} and h_1 = phi^{(D+d-1)} (q a phi')^d the sums over
    neurons are those of `symtensor.bounds.neuron_contraction`; the weight a is integrated exactly.

    Raises:
        KinkedDerivativeError: an activation whose derivatives have delta terms.

    Example:
        >>> moments = smooth_second_moment("tanh", 0, 3)
        >>> round(6 * moments.mean / 6, 4)                     # n E Q_33 of weak_correlations.md, section 8
        -1.728
    """
    shape = activation(phi)
    nodes = np.arange(-REACH, REACH + STEP / 2, STEP)
    weight = np.exp(-(nodes**2) / 2)
    u, weight = np.sqrt(q) * nodes, weight / weight.sum()
    k = D + d
    value, slope = (shape.numpy_function(j)(u) for j in (0, 1))
    top = shape.numpy_function(k)(u)
    below = shape.numpy_function(k - 1)(u) if k else np.zeros_like(u)
    # h_0 = a^{d+1} A + a^{d-1} B
    first = top * (q * slope) ** d
    second = d * below * value * (q * slope) ** (d - 1) if d else np.zeros_like(u)

    def moment(power: int) -> float:
        return float(factorial(power) / (2 ** (power // 2) * factorial(power // 2))) if power >= 0 and power % 2 == 0 else 0.0

    mean = float(weight @ (first * moment(d + 1) + second * moment(d - 1)))
    square = float(weight @ (first**2 * moment(2 * d + 2) + 2 * first * second * moment(2 * d) + second**2 * moment(2 * d - 2)))
    if not D:
        return NeuronMoments(D, d, mean, square)
    free = float(weight @ (below * (q * slope) ** d) ** 2) * moment(2 * d)
    return NeuronMoments(D, d, q**D * square + D * q ** (D - 1) * free, float("nan"))
