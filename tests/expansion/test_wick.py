"""Averages by cumulants: Wick's theorem, moments <-> cumulants, and agreement with sampled Gaussians by exact sums."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from symtensor.expansion.wick import average, covariance, gaussian_average
from symtensor.tensor import Dimension, SymmetryGroup, Tensor

P = Dimension("P")
a, b, c, d, e, f = P.indices("a b c d e f")
x = Tensor("x", (P,))
y = Tensor("y", (P,))
K = Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2))
T = Tensor("T", (P,) * 3, symmetry=SymmetryGroup.symmetric(3))
M = Tensor("M", (P,))


def double_factorial(n: int) -> int:
    return 1 if n < 2 else n * double_factorial(n - 2)


@pytest.mark.parametrize("degree", [0, 2, 4, 6])
def test_number_of_pairings(degree: int) -> None:
    product = 1 * K[e, e]
    for index in (a, b, c, d, e, f)[:degree]:
        product = product * x[index]
    result = gaussian_average(product, x, K)
    assert len(result.terms) == double_factorial(degree - 1)


def test_odd_moments_vanish_and_keep_their_free_indices() -> None:
    result = gaussian_average(x[a] * x[b] * x[c], x, K)
    assert result.is_zero
    assert result.free == {a, b, c}


def test_other_tensors_are_held_fixed() -> None:
    assert gaussian_average(x[a] * y[b] * x[c], x, K) == K[a, c] * y[b]


def test_summed_indices_survive() -> None:
    assert gaussian_average((x[a] * x[b] * K[a, b]).sum(a, b), x, K) == (K[a, b] * K[a, b]).sum(a, b)


def test_third_cumulant_and_mean() -> None:
    cumulants = {1: lambda i: M[i], 2: lambda i, j: K[(*i, *j)], 3: lambda i, j, k: T[(*i, *j, *k)]}
    expected = (
        T[a, b, c] + M[a] * K[b, c] + M[b] * K[a, c] + M[c] * K[a, b] + M[a] * M[b] * M[c]
    )
    assert average(x[a] * x[b] * x[c], x, cumulants) == expected


def test_covariance_removes_the_disconnected_part() -> None:
    pairs = {2: lambda i, j: K[(*i, *j)]}
    assert covariance(x[a] * x[b], x[c] * x[d], x, pairs) == K[a, c] * K[b, d] + K[a, d] * K[b, c]


def test_against_exact_moments_of_signs() -> None:
    """x_a = sum_k B_ak s_k with independent signs: cumulants are sums of B with 1, -2 for orders 2, 4."""
    rng = np.random.default_rng(3)
    B = rng.standard_normal((2, 3))
    second = np.einsum("ak,bk->ab", B, B)
    fourth = -2 * np.einsum("ak,bk,ck,dk->abcd", B, B, B, B)
    S4 = Tensor("S4", (P,) * 4, symmetry=SymmetryGroup.symmetric(4))
    cumulants = {2: lambda i, j: K[(*i, *j)], 4: lambda i, j, k, l: S4[(*i, *j, *k, *l)]}
    result = average(x[a] * x[b] * x[c] * x[d], x, cumulants).evaluate({"K": second, "S4": fourth}, (a, b, c, d))
    signs = np.array(list(itertools.product((-1, 1), repeat=3)))
    samples = signs @ B.T
    exact = np.einsum("sa,sb,sc,sd->abcd", samples, samples, samples, samples) / len(samples)
    np.testing.assert_allclose(result, exact, atol=1e-12)
