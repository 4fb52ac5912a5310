"""Covariance matrices given by a user: checked with a message that names what is wrong, and factored without jitter."""

from __future__ import annotations

import numpy as np

__all__ = ["CovarianceError", "cholesky_pair", "condition_number", "require_covariance"]

EPSILON = float(np.finfo(float).eps)


class CovarianceError(ValueError):
    """The numbers are not a covariance; the message names the entry or the eigenvalue."""


def require_covariance(matrix: np.ndarray, name: str = "covariance") -> np.ndarray:
    """A symmetric positive semi-definite matrix of float64, or an error that says why it is not one.

    Parameters
    ----------
    matrix
        (P, P), or a number for P = 1.  Singular matrices are fine.
    name
        What the message calls it.

    Returns
    -------
    numpy.ndarray
        (P, P), exactly symmetric.

    Raises
    ------
    CovarianceError
        Not square, NaN or infinite, not symmetric, a negative variance, or a negative eigenvalue (reported) beyond
        rounding.
    """
    if np.iscomplexobj(matrix):
        raise CovarianceError(f"{name} is complex; a covariance is real")
    try:
        K = np.atleast_2d(np.asarray(matrix, dtype=float))
    except (TypeError, ValueError):
        raise CovarianceError(f"{name} is not an array of real numbers") from None
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not K.size:
        raise CovarianceError(f"{name} has shape {np.shape(matrix)}; required: square, (P, P)")
    if not np.isfinite(K).all():
        a, b = map(int, np.argwhere(~np.isfinite(K))[0])
        raise CovarianceError(f"{name}[{a}, {b}] is {K[a, b]}; every entry is a finite number")
    size = float(np.abs(K).max())
    skew = np.abs(K - K.T)
    if skew.max() > 1e-10 * size:
        a, b = map(int, np.unravel_index(skew.argmax(), K.shape))
        raise CovarianceError(f"{name} is not symmetric: [{a}, {b}] is {K[a, b]:.6g} and [{b}, {a}] is {K[b, a]:.6g}")
    K = (K + K.T) / 2
    variances = np.diagonal(K)
    if variances.min() < 0:
        a = int(variances.argmin())
        raise CovarianceError(f"{name}[{a}, {a}] is {variances[a]:.6g}; a variance is not negative")
    lowest = float(np.linalg.eigvalsh(K)[0])
    if lowest < -1e-10 * size:
        raise CovarianceError(f"{name} is not positive semi-definite: its lowest eigenvalue is {lowest:.6g}")
    return K


def condition_number(matrix: np.ndarray) -> float:
    """Largest over smallest eigenvalue of the correlation matrix within its range (1 for a zero matrix)."""
    deviation = np.sqrt(np.diagonal(matrix))
    live = deviation > 0
    correlation = matrix[np.ix_(live, live)] / np.outer(deviation[live], deviation[live])
    eigenvalues = np.linalg.eigvalsh(correlation) if live.any() else np.ones(1)
    inside = eigenvalues[eigenvalues > 100 * EPSILON * eigenvalues[-1]]
    return float(inside[-1] / inside[0])


def cholesky_pair(k11: np.ndarray, k12: np.ndarray, k22: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(l11, l21, l22) with x = l11 z1, y = l21 z1 + l22 z2; exact zeros for singular pairs, no jitter."""
    l11 = np.sqrt(k11)
    l21 = np.divide(k12, l11, out=np.zeros_like(k12), where=l11 > 0)
    # det/k11 rather than k22 - l21^2, so that equal entries give an exact zero
    l22 = np.sqrt(np.maximum(np.divide(k11 * k22 - k12 * k12, k11, out=k22.copy(), where=k11 > 0), 0.0))
    return l11, l21, l22
