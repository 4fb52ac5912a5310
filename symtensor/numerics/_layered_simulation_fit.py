"""Weighted fits of c_0 + c_1/n + c_2/n^2 + .. to estimates at several widths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from symtensor.numerics._statistics import Estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WidthFit:
    r"""Coefficients of `y(n) = sum_k c_k n^-k`, component by component.

    Attributes
    ----------
    powers : the powers k fitted; coefficients : one Estimate for each of them, with the shape of a single estimate.
    chi2, dof : sum of squared standardised residuals and its degrees of freedom; 0 where nothing fluctuates.
    shift : for each coefficient, what one more power (the next) would change it by, with the standard error of that
        change: the visible part of the truncation bias. None if there are not enough widths.
    """

    powers: tuple[int, ...]
    coefficients: tuple[Estimate, ...]
    chi2: Array
    dof: int
    shift: tuple[Estimate, ...] | None

    def coefficient(self, power: int) -> Estimate:
        """The coefficient of n^-power.

        Raises
        ------
        ValueError
            If that power was not fitted.
        """
        if power not in self.powers:
            raise ValueError(f"the coefficient of n^-{power} was not fitted; fitted are the powers {self.powers}")
        return self.coefficients[self.powers.index(power)]

    @property
    def p_value(self) -> Array:
        """Probability of a chi2 at least as large; 1 for no degrees of freedom."""
        return stats.chi2.sf(self.chi2, self.dof) if self.dof else np.ones_like(self.chi2)


def fit_in_inverse_width(
    widths: Sequence[float], estimates: Sequence[Estimate], terms: int = 2, *, first: int = 0
) -> WidthFit:
    """Weighted least squares of `terms` powers `first, first + 1, ..` of 1/n to independent estimates, one a width.

    Parameters
    ----------
    widths, estimates : at least `terms` of each; estimates of one shape, with standard errors.
    terms, first : the powers fitted.

    Returns
    -------
    WidthFit
        Standard errors are those of the estimates propagated (not rescaled by chi2).

    Raises
    ------
    ValueError
        Too few or repeated widths, or different shapes.

    Examples
    --------
    >>> estimates = [Estimate(np.array(3.0 + 2.0 / n), np.array(0.01)) for n in (8, 16, 32)]
    >>> fit = fit_in_inverse_width((8, 16, 32), estimates)
    >>> [round(float(c.mean), 6) for c in fit.coefficients], fit.dof
    ([3.0, 2.0], 1)
    """
    values = np.stack([np.asarray(e.mean, float) for e in estimates])[:, None]
    errors = np.stack([np.asarray(e.se, float) for e in estimates])[:, None]
    covariance = errors[:, :, None] ** 2
    return fit_blocks(widths, values, covariance, terms, first=(first,))


def fit_blocks(widths: Sequence[float], values: Array, covariance: Array, terms: int, first: Sequence[int]) -> WidthFit:
    """Generalised least squares of `parts` correlated estimates a width whose expectations share the coefficients.

    Parameters
    ----------
    values : (widths, parts, ..); covariance : (widths, parts, parts, ..).
    terms : number of powers of the sum of the parts, from min(first) on.
    first : first power in the expectation of each part. Part p carries the powers first[p] .. first[p + 1] - 1, the last
        part all further ones: (0, 1) says that part 0 has expectation c_0 and part 1 the rest.

    Raises
    ------
    ValueError
        See `fit_in_inverse_width`.
    """
    sizes = np.asarray(widths, float)
    if len(set(sizes.tolist())) != len(sizes) or len(sizes) != len(values):
        raise ValueError(f"widths = {tuple(widths)}: give {len(values)} different widths, one for each estimate")
    parts = len(first)
    if terms < parts or len(sizes) * parts < terms or len(sizes) < terms - (parts - 1):
        raise ValueError(f"{len(sizes)} widths do not fix {terms} powers of 1/n; give more widths or fit fewer terms")
    beta, cov, chi2, dof = _solve(sizes, values, covariance, terms, first)
    shape = values.shape[2:]
    shift = None
    if len(sizes) > terms - (parts - 1):
        more, more_cov, _, _ = _solve(sizes, values, covariance, terms + 1, first)
        # the smaller of two nested fits with the same weights is efficient: Var(difference) = difference of variances
        errors = np.sqrt([np.maximum(more_cov[..., k, k] - cov[..., k, k], 0.0) for k in range(terms)])
        shift = tuple(Estimate((more[..., k] - beta[..., k]).reshape(shape), e.reshape(shape)) for k, e in enumerate(errors))
    powers = tuple(range(first[0], first[0] + terms))
    found = tuple(Estimate(beta[..., k].reshape(shape), np.sqrt(cov[..., k, k]).reshape(shape)) for k in range(terms))
    return WidthFit(powers, found, chi2.reshape(shape), dof, shift)


def _solve(sizes: Array, values: Array, covariance: Array, terms: int, first: Sequence[int]) -> tuple[Array, Array, Array, int]:
    """Coefficients (components, terms), their covariance, chi2 and degrees of freedom."""
    parts = len(first)
    powers = np.arange(first[0], first[0] + terms)
    last = [*first[1:], first[0] + terms]
    owned = np.array([[low <= k < high for k in powers] for low, high in zip(first, last)])
    design = owned[None] * sizes[:, None, None] ** -powers[None, None].astype(float)  # (widths, parts, terms)
    y = np.moveaxis(values.reshape(len(sizes), parts, -1), -1, 0)  # (components, widths, parts)
    blocks = np.moveaxis(covariance.reshape(len(sizes), parts, parts, -1), -1, 0)
    still = np.trace(blocks, axis1=-2, axis2=-1).max(axis=-1) <= 0.0  # nothing fluctuates: a constant
    blocks = np.where(still[:, None, None, None], np.eye(parts), blocks)
    scale = np.sqrt(np.maximum(np.diagonal(blocks, axis1=-2, axis2=-1), 1e-300))
    scale = np.where(scale > 1e-150, scale, 1.0)  # a part that is a constant stays, as an exact condition, by its own scale
    correlation = blocks / (scale[..., :, None] * scale[..., None, :])
    weight = np.linalg.pinv(correlation, hermitian=True) / (scale[..., :, None] * scale[..., None, :])
    normal = np.einsum("npk,cnpq,nql->ckl", design, weight, design)
    right = np.einsum("npk,cnpq,cnq->ck", design, weight, y)
    unit = np.sqrt(np.maximum(np.diagonal(normal, axis1=-2, axis2=-1), 1e-300))
    inverse = np.linalg.pinv(normal / (unit[..., :, None] * unit[..., None, :]), hermitian=True)
    inverse = inverse / (unit[..., :, None] * unit[..., None, :])
    beta = np.einsum("ckl,cl->ck", inverse, right)
    residual = y - np.einsum("npk,ck->cnp", design, beta)
    chi2 = np.einsum("cnp,cnpq,cnq->c", residual, weight, residual)
    moving = ~still
    return beta, inverse * moving[:, None, None], chi2 * moving, len(sizes) * parts - terms
