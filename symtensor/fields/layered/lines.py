r"""The lines of a layered network: retarded response and correlators, as arrays over layers and components.

A = dK/dS,   M = J A  (J = dE[h]/dK),   R = (1 - M)^{-1} = n <s J>,   n <s s> = R kappa_2 R^T,   K = A s.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve_triangular

from symtensor.fields.layered.network import LayeredNetwork

__all__ = ["block_array", "delay", "line_arrays"]


def delay(network: LayeredNetwork) -> np.ndarray:
    """dt alpha^{2(l-1-k)} for k < l, else 0; shape (depth + 1, depth + 1)."""
    layers = np.arange(network.depth + 1)
    gap = layers[:, None] - 1 - layers[None, :]
    return np.where(gap >= 0, network.dt * network.alpha ** (2.0 * np.maximum(gap, 0)), 0.0)


def block_array(network: LayeredNetwork, means: np.ndarray, order: int) -> np.ndarray:
    """d^order K_l^e / dS_k^order, (T, E, T, F, .., F); `means` as in `line_arrays`."""
    drive = network.drive.derivative(order, means)
    return delay(network).reshape(len(means), 1, len(means), *[1] * order) * np.moveaxis(drive, 1, 0)


def line_arrays(
    network: LayeredNetwork, means: np.ndarray, slope: np.ndarray, covariance: np.ndarray, wanted: Sequence[str]
) -> dict[str, np.ndarray]:
    """The lines by name (see `tensor_network`), each (T, components, T, components).

    Parameters
    ----------
    means
        S_0 of the components that feed forward, (T, F).
    slope
        dE[h_c]/dK^e, (T, C, E).
    covariance
        kappa_2 of all components at two layers, (T, C, T, C).
    wanted
        Names of the lines to return.
    """
    layers, count, feeding, pairs = network.depth + 1, slope.shape[1], means.shape[1], slope.shape[2]
    acting = block_array(network, means, 1).reshape(layers * pairs, layers * feeding)
    feedback = np.einsum("lce,lekf->lckf", slope, acting.reshape(layers, pairs, layers, feeding))
    inner = feedback[:, :feeding].reshape(layers * feeding, layers * feeding)
    identity = np.eye(layers * feeding)
    response = solve_triangular(identity - inner, identity, lower=True, unit_diagonal=True)
    full = _all_components(feedback, response, layers, count, feeding)
    correlator = full @ covariance.reshape(layers * count, layers * count) @ full.T
    correlator = (correlator + correlator.T) / 2
    select = {"C": np.eye(layers * count), "F": _feeding_rows(layers, count, feeding)}
    select["E"] = acting @ select["F"]
    sizes = {"C": count, "F": feeding, "E": pairs}
    found = {}
    for name in wanted:
        letter, rows, columns = name[0], name[2], name[3]
        if letter == "R":
            value = full if columns == "C" else {"F": response, "E": acting @ response}[rows]
        else:
            value = _between(select, rows, correlator, columns)
        found[name] = np.ascontiguousarray(value.reshape(layers, sizes[rows], layers, sizes[columns]))
    return found


def _all_components(feedback: np.ndarray, response: np.ndarray, layers: int, count: int, feeding: int) -> np.ndarray:
    """R between all components: those that do not feed forward respond to themselves at their own layer, and through M."""
    full = np.zeros((layers, count, layers, count))
    full[:, :feeding, :, :feeding] = response.reshape(layers, feeding, layers, feeding)
    others = feedback[:, feeding:].reshape(layers * (count - feeding), layers * feeding) @ response
    full[:, feeding:, :, :feeding] = others.reshape(layers, count - feeding, layers, feeding)
    for place in range(feeding, count):
        full[np.arange(layers), place, np.arange(layers), place] = 1.0
    return full.reshape(layers * count, layers * count)


def _feeding_rows(layers: int, count: int, feeding: int) -> np.ndarray:
    rows = np.zeros((layers, feeding, layers, count))
    for place in range(feeding):
        rows[np.arange(layers), place, np.arange(layers), place] = 1.0
    return rows.reshape(layers * feeding, layers * count)


def _between(select: dict[str, np.ndarray], rows: str, correlator: np.ndarray, columns: str) -> np.ndarray:
    left = correlator if rows == "C" else select[rows] @ correlator
    return left if columns == "C" else left @ select[columns].T
