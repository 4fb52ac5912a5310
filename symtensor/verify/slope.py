"""Slopes of log quantiles against log n: weighted least squares, vectorised over a batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from symtensor.verify.sizes import upper_half

__all__ = ["IRREGULAR_CHI2", "IRREGULAR_RMS", "SCATTER", "Slopes", "fit_slopes", "weighted_fit"]

Array = NDArray[np.float64]
#: lack of fit of the quadratic that makes a level irregular: both must be exceeded
IRREGULAR_CHI2, IRREGULAR_RMS = 5.0, 0.25
#: scatter about the fit that has less than this probability under the errors alone is taken for real
SCATTER = 0.001
#: the slope is extrapolated to this multiple of the largest size
EXTRAPOLATION = 4.0


@dataclass(frozen=True, slots=True)
class Slopes:
    """Fits of a batch of curves; every field has the batch shape.

    slope, se : upper half of the sizes, error inflated by sqrt(max(1, chi2/dof)); dof : degrees of freedom of that error,
    infinite while the scatter is what the errors predict, those of the fit once it is not; curvature, curvature_se : second
    derivative in log n of a quadratic through all sizes; extrapolated : slope of that quadratic at 4 n_max;
    chi2_dof, rms : its lack of fit; irregular : chi2/dof > 5 with rms residual > 0.25.
    """

    slope: Array
    se: Array
    dof: Array
    curvature: Array
    curvature_se: Array
    extrapolated: Array
    chi2_dof: Array
    rms: Array
    irregular: NDArray[np.bool_]


def weighted_fit(x: Array, y: Array, se: Array, degree: int) -> tuple[Array, Array, Array]:
    """Polynomial of `degree` in x by least squares with weights 1/se^2: coefficients, covariance, residuals.

    x : (m,) or (.., m); y, se : (.., m). Returns (.., degree + 1) in increasing powers, (.., k, k), and (.., m).

    >>> x = np.array([0.0, 1.0, 2.0])
    >>> weighted_fit(x, 1 + 2 * x, np.ones(3), 1)[0].round(6).tolist()
    [1.0, 2.0]
    """
    powers = np.asarray(x)[..., None] ** np.arange(degree + 1)
    design = powers / se[..., None]
    # a level's errors can span many orders of magnitude (atoms): QR of the weighted design, not normal equations
    q, r = np.linalg.qr(design)
    inverse = np.linalg.inv(r)
    beta = np.einsum("...ij,...kj,...k->...i", inverse, q, y / se)
    covariance = inverse @ np.swapaxes(inverse, -1, -2)
    return beta, covariance, y - np.einsum("...ki,...i->...k", np.broadcast_to(powers, design.shape), beta)


def fit_slopes(log_n: Array, y: Array, se: Array) -> Slopes:
    """Slope of the upper half, and curvature, extrapolation and lack of fit of a quadratic through all sizes.

    log_n : (m,) or (.., m), increasing; y, se : (.., m), m >= 4.

    Notes
    -----
    Where n enters by more than a power (a factor that depends on n mod 7), the residuals are no sampling errors, and
    chi2/dof estimates their variance from the few degrees of freedom of the fit. An interval from such an error needs
    Student's t: with two of them the normal factor is exceeded in one case of seven instead of one in forty. Scatter
    counts as real where chi2 has a probability below `SCATTER` under the sampling errors alone; so do curves that a line
    cannot follow.

    References
    ----------
    stochastic_order.md, section 8, step 3 (which uses normal intervals throughout).

    >>> x = np.log([32.0, 64, 128, 256])
    >>> fit = fit_slopes(x, 0.5 * x, np.full(4, 0.1))
    >>> round(float(fit.slope), 6), round(float(fit.extrapolated), 6)
    (0.5, 0.5)
    """
    top = upper_half(y.shape[-1])
    x_top = log_n[..., top]
    beta, covariance, residuals = weighted_fit(x_top - x_top.mean(-1, keepdims=True), y[..., top], se[..., top], 1)
    centre = log_n.mean(-1, keepdims=True)
    beta2, covariance2, residuals2 = weighted_fit(log_n - centre, y, se, 2)
    end = log_n[..., -1] + np.log(EXTRAPOLATION) - centre[..., 0]
    chi2 = _chi2_dof(residuals2, se, 3)
    rms = np.sqrt(np.mean(residuals2**2, axis=-1))
    left, all_left = x_top.shape[-1] - 2, y.shape[-1] - 3
    # a line through two points has no residuals: the scatter is then that about the quadratic through all sizes
    scatter, left = (_chi2_dof(residuals, se[..., top], 2), left) if left else (chi2, all_left)
    real = (scatter * left > chdtri(left, SCATTER)) | (chi2 * all_left > chdtri(all_left, SCATTER))
    return Slopes(
        slope=beta[..., 1],
        se=np.sqrt(covariance[..., 1, 1] * np.maximum(1.0, scatter)),
        dof=np.where(real, float(left), np.inf),
        curvature=2 * beta2[..., 2],
        curvature_se=2 * np.sqrt(covariance2[..., 2, 2]) * np.sqrt(np.maximum(1.0, chi2)),
        extrapolated=beta2[..., 1] + 2 * beta2[..., 2] * end,
        chi2_dof=chi2,
        rms=rms,
        irregular=(chi2 > IRREGULAR_CHI2) & (rms > IRREGULAR_RMS),
    )


def _chi2_dof(residuals: Array, se: Array, parameters: int) -> Array:
    dof = residuals.shape[-1] - parameters
    chi2 = np.sum((residuals / se) ** 2, axis=-1)
    return chi2 / dof if dof > 0 else np.zeros_like(chi2)
