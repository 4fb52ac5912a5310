"""Hermite coefficients of f(phi_a) f(phi_b) in whitened coordinates of the pair, at every layer.

``(phi_a, phi_b) = B z`` with the Cholesky factor B of K restricted to the pair; a singular pair (one input, equal or
proportional inputs, zero input) has one coordinate or none, exactly, without jitter.  The coefficients are
``f_ij = E[f f He_i(z1) He_j(z2)] / sqrt(i! j!)``; the nodes end at the kinks, so no derivative of f is ever taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symtensor.activation import Activation
from symtensor.numerics.covariance import cholesky_pair
from symtensor.numerics.moments import SINGULAR
from symtensor.numerics.path.hermite_kernels import conditional_coefficients, hermite_table, offset
from symtensor.numerics.rules import Rule, nodes_weights
from symtensor.numerics.split import inner_panels, outer_panels

__all__ = ["Frame", "PairTable", "frame", "line_coefficients", "pair_table", "plane_coefficients"]


@dataclass(frozen=True, slots=True)
class Frame:
    """Whitened coordinates of one pair at every layer.

    Attributes
    ----------
    pair
        (a, b), a <= b.
    factor
        (L+1, 2, 2), B with (phi_a, phi_b) = B z; columns of absent coordinates are zero.
    inverse
        (L+1, 2, 2), the pseudo-inverse of B.
    plane
        True if two coordinates are needed at some layer.
    """

    pair: tuple[int, int]
    factor: np.ndarray
    inverse: np.ndarray
    plane: bool


def frame(kernels: np.ndarray, pair: tuple[int, int]) -> Frame:
    """The whitened coordinates of a pair at the kernels (L+1, P, P)."""
    a, b = pair
    k11, k12, k22 = kernels[:, a, a], kernels[:, a, b], kernels[:, b, b]
    l11, l21, l22 = cholesky_pair(k11, k12, k22)
    singular = k11 * k22 - k12 * k12 <= SINGULAR * k11 * k22
    # with a zero first input all the variance is the second's, along the first coordinate
    first_zero = k11 == 0
    l21 = np.where(first_zero, np.sqrt(k22), l21)
    l22 = np.where(singular | first_zero, 0.0, l22)
    factor = np.zeros((len(kernels), 2, 2))
    factor[:, 0, 0], factor[:, 1, 0], factor[:, 1, 1] = l11, l21, l22
    return Frame(pair, factor, _pseudo_inverse(factor), bool((l22 > 0).any()))


def _pseudo_inverse(factor: np.ndarray) -> np.ndarray:
    l11, l21, l22 = factor[:, 0, 0], factor[:, 1, 0], factor[:, 1, 1]
    inverse = np.zeros_like(factor)
    regular = l22 > 0
    length = l11**2 + l21**2
    line = ~regular & (length > 0)
    inverse[line, 0, 0] = l11[line] / length[line]
    inverse[line, 0, 1] = l21[line] / length[line]
    inverse[regular, 0, 0] = 1 / l11[regular]
    inverse[regular, 1, 0] = -l21[regular] / (l11[regular] * l22[regular])
    inverse[regular, 1, 1] = 1 / l22[regular]
    return inverse


@dataclass(frozen=True, slots=True)
class PairTable:
    """Hermite coefficients of all functions of one pair at every layer.

    Attributes
    ----------
    frame
        The coordinates.
    degree
        Highest total degree.
    coefficients
        (L+1, functions, blocks): in one coordinate blocks = degree + 1, in two the blocks of ``hermite_kernels``.
    """

    frame: Frame
    degree: int
    coefficients: np.ndarray

    def block(self, degree: int) -> slice:
        """Where the coefficients of one total degree are."""
        if self.frame.plane:
            return slice(offset(degree), offset(degree + 1))
        return slice(degree, degree + 1)

    def norms(self, coefficients: np.ndarray | None = None) -> np.ndarray:
        """(..., degree + 1): Euclidean norm of the coefficients (or others of this pair) of each total degree."""
        values = self.coefficients if coefficients is None else coefficients
        if not self.frame.plane:
            return np.abs(values)
        starts = offset(np.arange(self.degree + 1))  # type: ignore[arg-type]
        return np.sqrt(np.add.reduceat(values**2, starts, axis=-1))


def pair_table(
    kernels: np.ndarray, pair: tuple[int, int], functions: Sequence[Activation], rules: Sequence[Rule], degree: int
) -> PairTable:
    """The coefficients of f(phi_a) f(phi_b) for every function f up to a total degree, by one rule for each function."""
    coordinates = frame(kernels, pair)
    evaluate = plane_coefficients if coordinates.plane else line_coefficients
    columns = [evaluate(coordinates.factor, function, rule, degree) for function, rule in zip(functions, rules)]
    return PairTable(coordinates, degree, np.stack(columns, axis=1))


def _kinks(function: Activation) -> np.ndarray:
    return np.array([float(kink) for kink in function.kinks])


def line_coefficients(factor: np.ndarray, function: Activation, rule: Rule, degree: int) -> np.ndarray:
    """(L+1, degree + 1): coefficients of f(s z) f(t z), (s, t) the first column of the factors."""
    s, t = factor[:, 0, 0], factor[:, 1, 0]
    sigma, kinks = function.numpy_function(), _kinks(function)
    shared = rule.kind != "split" or not np.any(kinks)
    if shared:
        # kinks at the origin, if any: the same nodes serve every layer
        z, w = outer_panels(rule, (kinks, 1.0, 0.0)) if rule.kind == "split" else nodes_weights(rule)
        values = w * sigma(s[:, None] * z) * sigma(t[:, None] * z)
        return values @ hermite_table(degree, z).T
    result = np.empty((len(s), degree + 1))
    for layer in range(len(s)):
        z, w = outer_panels(rule, (kinks, s[layer], 0.0), (kinks, t[layer], 0.0))
        result[layer] = hermite_table(degree, z) @ (w * sigma(s[layer] * z) * sigma(t[layer] * z))
    return result


def plane_coefficients(factor: np.ndarray, function: Activation, rule: Rule, degree: int) -> np.ndarray:
    """(L+1, blocks): coefficients of f(l11 z1) f(l21 z1 + l22 z2) in the blocks of total degree."""
    result = np.empty((len(factor), offset(degree + 1)))
    n = np.concatenate([np.full(N + 1, N) for N in range(degree + 1)])
    j = np.concatenate([np.arange(N + 1) for N in range(degree + 1)])
    for layer, B in enumerate(factor):
        z1, w1, inner = conditional(B, function, rule, degree)
        outer = hermite_table(degree, z1) * (w1 * function.numpy_function()(B[0, 0] * z1))
        table = outer @ inner.T
        result[layer] = table[n - j, j]
    return result


def conditional(B: np.ndarray, function: Activation, rule: Rule, degree: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(z1, w1, T): nodes and weights in z1 and T[j] = E[f(l21 z1 + l22 z2) He_j(z2)] / sqrt(j!) at each of them."""
    sigma, kinks = function.numpy_function(), _kinks(function)
    l11, l21, l22 = B[0, 0], B[1, 0], B[1, 1]
    if rule.kind == "split":
        z1, w1 = outer_panels(rule, (kinks, l11, 0.0), (kinks, l21, l22))
    else:
        z1, w1 = nodes_weights(rule)
    return z1, w1, conditional_at(l21 * z1, l22, function, rule, degree, sigma, kinks)


def conditional_at(shift, l22, function, rule, degree, sigma=None, kinks=None) -> np.ndarray:  # type: ignore[no-untyped-def]
    """T[j] = E[f(shift + l22 z) He_j(z)] / sqrt(j!), shape (degree + 1, len(shift))."""
    sigma = sigma or function.numpy_function()
    if l22 == 0:
        result = np.zeros((degree + 1, len(shift)))
        result[0] = sigma(shift)
        return result
    if rule.kind == "split":
        z2, w2 = inner_panels(rule, _kinks(function) if kinks is None else kinks, shift, l22)
        return conditional_coefficients(w2 * sigma(shift[:, None] + l22 * z2), z2, degree)
    z2, w2 = nodes_weights(rule)
    values = w2 * sigma(shift[:, None] + l22 * z2)
    return hermite_table(degree, z2) @ values.T
