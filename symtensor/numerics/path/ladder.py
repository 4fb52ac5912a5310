"""Derivatives as ladder operators on Hermite coefficients: lowering for a function, raising for its partner."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from symtensor.numerics.path.hermite_kernels import offset, second_derivative

__all__ = ["differentiated", "lowered", "raised"]


@lru_cache(maxsize=32)
def _labels(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Total degree n and exponent j of the second coordinate of every coefficient up to a degree."""
    n = np.concatenate([np.full(N + 1, N) for N in range(degree + 1)])
    j = np.concatenate([np.arange(N + 1) for N in range(degree + 1)])
    return n, j


def lowered(coefficients: np.ndarray, slope: np.ndarray, plane: bool, degree: int) -> np.ndarray:
    """Coefficients of ``slope . grad f``; what would need degree + 1 is zero.

    Parameters
    ----------
    coefficients
        (..., blocks) up to total degree `degree`.
    slope
        (..., 2) of leading shape that broadcasts against the coefficients without their last axis.
    plane
        Two coordinates or one.
    """
    result = np.zeros(np.broadcast_shapes(coefficients.shape[:-1], slope.shape[:-1]) + coefficients.shape[-1:])
    if not plane:
        result[..., :-1] = slope[..., :1] * np.sqrt(np.arange(1, degree + 1)) * coefficients[..., 1:]
        return result
    n, j = _labels(degree - 1) if degree else (np.zeros(0, int), np.zeros(0, int))
    above = offset(n + 1) + j  # type: ignore[arg-type]
    first, second = coefficients[..., above], coefficients[..., above + 1]
    result[..., : len(n)] = slope[..., :1] * np.sqrt(n - j + 1) * first + slope[..., 1:] * np.sqrt(j + 1) * second
    return result


def differentiated(coefficients: np.ndarray, form: np.ndarray, plane: bool, degree: int) -> np.ndarray:
    """Coefficients of ``sum_ij form_ij d_i d_j f``; what would need degree + 2 is zero.

    Parameters
    ----------
    coefficients
        (layers, functions, blocks).
    form
        (layers, 2, 2).
    """
    if plane:
        return second_derivative(np.ascontiguousarray(coefficients), np.ascontiguousarray(form), degree)
    result = np.zeros_like(coefficients)
    n = np.arange(degree - 1)
    result[..., : len(n)] = form[:, :1, :1] * np.sqrt((n + 1) * (n + 2.0)) * coefficients[..., 2:]
    return result


def raised(coefficients: np.ndarray, slope: np.ndarray, plane: bool, degree: int) -> np.ndarray:
    """The adjoint of :func:`lowered`: <raised(x), y> = <x, lowered(y)> up to the highest degree."""
    result = np.zeros(np.broadcast_shapes(coefficients.shape[:-1], slope.shape[:-1]) + coefficients.shape[-1:])
    if not plane:
        result[..., 1:] = slope[..., :1] * np.sqrt(np.arange(1, degree + 1)) * coefficients[..., :-1]
        return result
    n, j = _labels(degree)
    below = offset(n - 1) + j  # type: ignore[arg-type]
    first = (n > 0) & (j < n)
    second = j > 0
    result[..., first] += slope[..., :1] * np.sqrt((n - j)[first]) * coefficients[..., below[first]]
    result[..., second] += slope[..., 1:] * np.sqrt(j[second]) * coefficients[..., below[second] - 1]
    return result
