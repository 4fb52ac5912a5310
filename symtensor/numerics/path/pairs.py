"""Pairs of inputs as components, and which derivatives in the covariance each of them has."""

from __future__ import annotations

import numpy as np

__all__ = ["derivative_forms", "pair_list", "pair_number"]

Pair = tuple[int, int]


def pair_list(inputs: int) -> list[Pair]:
    """The pairs (a, b), a <= b, in the order of ``numpy.triu_indices``.

    Examples
    --------
    >>> pair_list(2)
    [(0, 0), (0, 1), (1, 1)]
    """
    return [(a, b) for a in range(inputs) for b in range(a, inputs)]


def pair_number(inputs: int) -> np.ndarray:
    """(P, P) symmetric array of the position of each pair in :func:`pair_list`."""
    number = np.zeros((inputs, inputs), dtype=int)
    for index, (a, b) in enumerate(pair_list(inputs)):
        number[a, b] = number[b, a] = index
    return number


def derivative_forms(pair: Pair, inverse: np.ndarray) -> list[tuple[Pair, np.ndarray]]:
    """The derivatives d/dK^{pq} of a function of one pair as quadratic forms in the derivatives along z.

    With ``z = inverse @ (phi_a, phi_b)``: d/dK^{aa} = (1/2) d_a^2, d/dK^{ab} = d_a d_b, and d_p = sum_i inverse[i, p] d/dz_i.
    On a singular pair `inverse` is the pseudo-inverse, and the forms are a representative that is right for variations of
    the covariance within its range.

    Parameters
    ----------
    inverse
        (..., 2, 2).

    Returns
    -------
    list
        (pair, form) with form of shape (..., 2, 2), symmetric: d/dK^{pq} = sum_ij form_ij d_i d_j.
    """
    if pair[0] == pair[1]:
        # both columns of the pseudo-inverse belong to the one input
        u = inverse[..., :, 0] + inverse[..., :, 1]
        return [(pair, _symmetric(u, u) / 2)]
    a, b = pair
    u, v = inverse[..., :, 0], inverse[..., :, 1]
    return [((a, a), _symmetric(u, u) / 2), ((a, b), _symmetric(u, v)), ((b, b), _symmetric(v, v) / 2)]


def _symmetric(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    outer = u[..., :, None] * v[..., None, :]
    return (outer + np.swapaxes(outer, -1, -2)) / 2
