r"""The kernel-only closures as recursions over layers, in components a <= b, from derivatives of E[h] at K_0.

    published   V' = V + dt (chi V + V chi^T + N),              K_1' = K_1 + dt (chi K_1 + C_W (1/2) D^2 E[h] [V])      (alpha = 1)
    one mode    V' = A V A^T + alpha^2 dt N + dt^2 (QQ + QQ),   K_1' = A K_1 + dt C_W (1/2) D^2 E[h] [V - w],   A = alpha^2 + dt chi

with w = K_ac K_bd + K_ad K_bc. The second is the exact theory truncated to Hermite degree 2; the first has V_4 where V_4 - w
belongs. `OneTime` is all that enters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from symtensor.activation import Activation
from symtensor.fields.layered import LayeredNetwork
from symtensor.fields.layered.vertices import PathSource
from symtensor.numerics.moments import moment_table
from symtensor.numerics.rules import Derivatives, Rule

__all__ = ["OneTime", "Part", "closures", "one_time", "one_time_by_rule", "unpacked", "wick"]


@dataclass(frozen=True, slots=True)
class OneTime:
    """Kernels (T, P, P), means (T, E), dE[h]/dK (T, E, E) and d^2 E[h]/dK^2 (T, E, E, E) over components a <= b."""

    kernels: np.ndarray
    means: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray


@dataclass(frozen=True, slots=True)
class Part:
    """V_4 (T, P, P, P, P), K_1 and U_1 (T, P, P) of a closure, a part or a truncation of the theory."""

    V4: np.ndarray
    K1: np.ndarray
    U1: np.ndarray


def one_time(source: PathSource, pairs: int) -> OneTime:
    """From the path cumulants of the exact theory; the first function is the one that feeds forward."""
    kernels, means, _ = source.leading()
    slope, curvature = source.cumulants((1,)).values, source.cumulants((2,)).values
    return OneTime(kernels, means[:, :pairs], slope[:, :pairs], curvature[:, :pairs])


def closures(network: LayeredNetwork, law: OneTime) -> dict[str, Part]:
    """`kernel_only` (published at alpha = 1), `one_mode`, and between them `V4_for_w`: one mode with V_4 in place of V_4 - w."""
    c_w, published = network.branches[0].c_w, network.alpha == 1
    covariance = _covariances(network, law, c_w, first_order=False)
    explicit = _covariances(network, law, c_w, first_order=True) if published else covariance
    w = np.stack([wick(K, K) / 2 for K in law.kernels])
    return {
        "kernel_only": _means(network, law, c_w, explicit, explicit),
        "V4_for_w": _means(network, law, c_w, covariance, covariance),
        "one_mode": _means(network, law, c_w, covariance, covariance - w),
    }


def _covariances(network: LayeredNetwork, law: OneTime, c_w: float, first_order: bool) -> np.ndarray:
    """V_4 in components, (T, E, E)."""
    alpha, dt, pairs = network.alpha, network.dt, law.means.shape[1]
    V = [wick(law.kernels[0], law.kernels[0]) / 2]
    for l in range(network.depth):
        K, Q = law.kernels[l], network.drive(law.means[l])
        chi = c_w * law.slope[l]
        if first_order:
            V.append(V[-1] + dt * (chi @ V[-1] + V[-1] @ chi.T + wick(K, Q)))
        else:
            carry = alpha**2 * np.eye(pairs) + dt * chi
            V.append(carry @ V[-1] @ carry.T + alpha**2 * dt * wick(K, Q) + dt**2 * wick(Q, Q) / 2)
    return np.stack(V)


def _means(network: LayeredNetwork, law: OneTime, c_w: float, covariance: np.ndarray, fluctuation: np.ndarray) -> Part:
    alpha, dt = network.alpha, network.dt
    source = np.einsum("tcef,tef->tc", law.curvature, fluctuation) / 2
    K1 = [np.zeros(law.means.shape[1])]
    for l in range(network.depth):
        K1.append(alpha**2 * K1[-1] + dt * c_w * (law.slope[l] @ K1[-1] + source[l]))
    size = network.inputs
    return Part(unpacked(covariance, size), unpacked(np.stack(K1), size), unpacked(source, size))


def wick(K: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """K_ac Q_bd + K_ad Q_bc + K_bc Q_ad + K_bd Q_ac over components a <= b, c <= d, (E, E).

    >>> wick(np.array([[2.0]]), np.array([[3.0]]))
    array([[24.]])
    """
    a, b = np.triu_indices(len(K))
    c, d = a[None], b[None]
    a, b = a[:, None], b[:, None]
    return K[a, c] * Q[b, d] + K[a, d] * Q[b, c] + K[b, c] * Q[a, d] + K[b, d] * Q[a, c]


def unpacked(values: np.ndarray, inputs: int) -> np.ndarray:
    """Components a <= b in the axes after the first -> two axes of inputs each."""
    rows, columns = np.triu_indices(inputs)
    place = np.empty((inputs, inputs), int)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    for axis in reversed(range(1, values.ndim)):
        values = np.take(values, place, axis=axis)
    return values


# -- with a quadrature rule that does not control its error ------------------------------------------------------------


def one_time_by_rule(network: LayeredNetwork, function: Activation, rule: Rule, derivatives: Derivatives) -> OneTime:
    """The same arrays, and the recursion of K_0 itself, with one fixed quadrature rule: what a fixed rule makes of the closure."""
    kernels, found = [np.asarray(network.kernel)], []
    for _ in range(network.depth + 1):
        found.append(_derivatives(function, kernels[-1], rule, derivatives))
        kernels.append(network.alpha**2 * kernels[-1] + network.dt * network.drive(found[-1][0]))
    means, slope, curvature = (np.stack(arrays) for arrays in zip(*found))
    return OneTime(np.stack(kernels[:-1]), means, slope, curvature)


def _derivatives(
    function: Activation, K: np.ndarray, rule: Rule, derivatives: Derivatives
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(E[h], dE[h]/dK, d^2E[h]/dK^2) over components from the moments m_ij = E[d_a^i d_b^j h_ab] by Price's theorem."""
    rows, columns = np.triu_indices(len(K))
    m = moment_table(function, K[rows, rows], K[rows, columns], K[columns, columns], rule, derivatives)
    place = {pair: at for at, pair in enumerate(zip(rows.tolist(), columns.tolist()))}
    count = len(rows)
    slope, curvature = np.zeros((count, count)), np.zeros((count, count, count))
    for e, (a, b) in enumerate(place):
        if a == b:
            slope[e, e] = m[2, 0][e] + m[1, 1][e]
            curvature[e, e, e] = (m[4, 0][e] + 4 * m[3, 1][e] + 3 * m[2, 2][e]) / 2
            continue
        variables: dict[int, Callable[[int, int], tuple[float, int, int]]] = {
            place[a, a]: lambda i, j: (0.5, i + 2, j),
            e: lambda i, j: (1.0, i + 1, j + 1),
            place[b, b]: lambda i, j: (0.5, i, j + 2),
        }
        for f, first in variables.items():
            factor, i, j = first(0, 0)
            slope[e, f] = factor * m[i, j][e]
            for g, second in variables.items():
                other, k, l = second(i, j)
                curvature[e, f, g] = factor * other * m[k, l][e]
    return m[0, 0], slope, curvature
