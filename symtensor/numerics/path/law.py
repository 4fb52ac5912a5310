"""The law of one neuron's path at n = infinity, and arrays with an error, as values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["PathArray", "PathLaw"]


@dataclass(frozen=True, slots=True)
class PathLaw:
    """A Gaussian Markov path: Cov(phi_s(a), phi_t(b)) = alpha^{t-s} K_s(a, b) for s <= t.

    Attributes
    ----------
    kernels
        (L+1, P, P), K at every layer.
    alpha
        Coefficient of phi_t in phi_{t+1}.

    Raises
    ------
    ValueError
        The kernels have another shape, or a number is not finite.

    Examples
    --------
    >>> PathLaw(np.ones((3, 1, 1)), 1.0).inputs
    1
    """

    kernels: np.ndarray
    alpha: float

    def __post_init__(self) -> None:
        kernels = np.asarray(self.kernels, dtype=float)
        if kernels.ndim != 3 or kernels.shape[1] != kernels.shape[2] or kernels.size == 0:
            raise ValueError(f"kernels of shape {np.shape(self.kernels)}; required (L+1, P, P), one covariance for each layer")
        if not np.isfinite(kernels).all() or not np.isfinite(self.alpha):
            raise ValueError("a kernel or alpha is not finite; the layer whose kernel overflows is named by leading_order")
        object.__setattr__(self, "kernels", kernels)
        object.__setattr__(self, "alpha", float(self.alpha))

    @property
    def inputs(self) -> int:
        """P."""
        return self.kernels.shape[1]

    @property
    def depth(self) -> int:
        """L."""
        return len(self.kernels) - 1


@dataclass(frozen=True, slots=True)
class PathArray:
    """``values`` and the estimated absolute ``error`` of the worst entry: truncated modes and quadrature."""

    values: np.ndarray
    error: float
