"""Price's theorem and the functional Taylor expansion, against closed forms and exact polynomials."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest
import sympy as sp

from symtensor.expansion.functional import functional_taylor
from symtensor.expansion.price import ExpectationFamily, directional_derivative
from symtensor.tensor import Dimension, SymmetryGroup, Tensor

P = Dimension("P")
a, b = P.indices("a b")
SYMMETRIC = SymmetryGroup.symmetric(2)
K = Tensor("K", (P, P), symmetry=SYMMETRIC)
D = Tensor("D", (P, P), symmetry=SYMMETRIC)
m = ExpectationFamily(P)
TAYLOR = functional_taylor(m(0, 0, a, b), K, D, m)


def tables(power: int, covariance: np.ndarray, orders: int) -> dict[str, np.ndarray]:
    """m_ij of sigma(x) = x^power for every pair, from Gaussian moments by Isserlis (no quadrature, no Price)."""

    def moment(p: int, q: int, kaa: float, kab: float, kbb: float) -> float:
        # E x^p y^q = sum over the number r of mixed pairs
        total = 0.0
        for r in range(min(p, q) + 1):
            if (p - r) % 2 or (q - r) % 2:
                continue
            weight = factorial(p) * factorial(q) / (
                factorial(r) * factorial((p - r) // 2) * factorial((q - r) // 2) * 2 ** ((p + q - 2 * r) // 2)
            )
            total += weight * kaa ** ((p - r) // 2) * kab**r * kbb ** ((q - r) // 2)
        return total

    def derivative(k: int) -> tuple[float, int]:
        return (factorial(power) / factorial(power - k), power - k) if k <= power else (0.0, 0)

    n = len(covariance)
    result = {}
    for i in range(orders + 1):
        for j in range(i + 1):
            (ci, pi), (cj, pj) = derivative(i), derivative(j)
            values = [
                [ci * cj * moment(pi, pj, covariance[s, s], covariance[s, t], covariance[t, t]) for t in range(n)]
                for s in range(n)
            ]
            result[f"m{i}{j}"] = np.array(values)
    return result


@pytest.mark.parametrize("power", [1, 2, 3])
def test_taylor_of_a_polynomial_is_exact(power: int) -> None:
    """E[x^p y^p] has degree p in K, so the series to that order is the value at K + D: all derivatives are right."""
    rng = np.random.default_rng(power)
    root, other = rng.standard_normal((2, 3, 3))
    covariance, shift = root @ root.T, 0.3 * (other + other.T)
    arrays = {**tables(power, covariance, 2 * power), "D": shift}
    total = TAYLOR.partial_sum(power + 1).evaluate(arrays, (a, b))
    exact = tables(power, covariance + shift, 0)["m00"]
    np.testing.assert_allclose(total, exact, rtol=1e-12)


def test_next_order_of_a_polynomial_vanishes() -> None:
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    arrays = {**tables(2, covariance, 6), "D": np.eye(2)}
    assert np.abs(TAYLOR.derivative(3).evaluate(arrays, (a, b))).max() == 0


def test_integral_remainder_is_an_identity() -> None:
    """For sigma = x^3 and order 2: Q(K + D) - Q - DQ[D] equals the integral of the integrand at K + s D."""
    covariance, shift = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[0.4, -0.2], [-0.2, 0.3]])
    remainder = TAYLOR.remainder(2)
    nodes, weights = np.polynomial.legendre.leggauss(8)
    s, w = (nodes + 1) / 2, weights / 2
    symbol = sp.Symbol("s")
    integral = sum(
        wk * float(remainder.weight(symbol).subs(symbol, sk))
        * remainder.integrand.evaluate({**tables(3, covariance + sk * shift, 4), "D": shift}, (a, b))
        for sk, wk in zip(s, w)
    )
    below = TAYLOR.partial_sum(2).evaluate({**tables(3, covariance, 4), "D": shift}, (a, b))
    np.testing.assert_allclose(below + integral, tables(3, covariance + shift, 0)["m00"], rtol=1e-12)


def test_series_is_lazy_and_cached() -> None:
    fresh = functional_taylor(m(0, 0, a, b), K, D, m)
    calls = []
    original = fresh.derivative
    object.__setattr__(fresh, "derivative", lambda order: calls.append(order) or original(order))
    fresh.series.coefficient(2)
    fresh.series.coefficient(2)
    assert calls == [2]


def test_covariance_itself_is_differentiated() -> None:
    expression = K[a, b] * K[a, b] * m(0, 0, a, b)
    derivative = directional_derivative(expression, K, D, m)
    assert derivative == 2 * K[a, b] * D[a, b] * m(0, 0, a, b) + K[a, b] * K[a, b] * TAYLOR.derivative(1)


def test_orientation_of_mixed_moments() -> None:
    assert m(0, 2, a, b) == m(2, 0, b, a)
    assert m(1, 1, a, b) == m(1, 1, b, a)
    assert m(2, 0, a, b) != m(2, 0, b, a)


def test_refuses_an_unsymmetric_fluctuation() -> None:
    with pytest.raises(ValueError, match="fluctuation X must be a symmetric tensor"):
        functional_taylor(m(0, 0, a, b), K, Tensor("X", (P, P)), m)
    with pytest.raises(ValueError, match="remainder starts at order 1"):
        TAYLOR.remainder(0)
