"""From group sums to estimates with standard errors: the delete-one-group jackknife."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from symtensor.numerics._packing import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

MEANS = ("K1", "S1", "U1")
QUANTITIES = ("V4", *MEANS)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its standard error, arrays of one shape with depth first."""

    mean: Array
    se: Array

    def z(self, value: Array | float) -> Array:
        """`(mean - value)/se`; 0 where both differences vanish, infinite where only the standard error does."""
        difference = np.asarray(self.mean - value)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(difference == 0.0, 0.0, difference / self.se)


def group_counts(samples: int, groups: int) -> NDArray[np.int64]:
    """Samples in each group when the group is the sample index modulo `groups`."""
    return samples // groups + (np.arange(groups) < samples % groups)


def jackknife(total: Array, without: Array, counts: NDArray[np.int64]) -> Array:
    """Standard error of an estimator from its delete-one-group values `without` (groups first), any group sizes.

    Notes
    -----
    With N = sum of counts, h_j = N/m_j and pseudo-values theta~_j = h_j theta - (h_j - 1) theta_(-j),
    se^2 = (1/g) sum_j (theta~_j - theta_J)^2 / (h_j - 1), theta_J = g theta - sum_j (1 - m_j/N) theta_(-j).

    References
    ----------
    Busing, Meijer, van der Leeden, "Delete-m jackknife for unequal m", Stat. Comput. 9 (1999) 3, equations (6)-(8).
    """
    ratio = (counts.sum() / counts).reshape((-1,) + (1,) * total.ndim)
    center = len(counts) * total - ((1.0 - 1.0 / ratio) * without).sum(axis=0)
    pseudo = ratio * total - (ratio - 1.0) * without
    return np.sqrt(((pseudo - center) ** 2 / (ratio - 1.0)).mean(axis=0))


@dataclass(frozen=True, slots=True)
class Reduced:
    """Packed estimates, by quantity: controlled, plain; the largest |z| of the controls' means, by depth."""

    controlled: Mapping[str, Estimate]
    plain: Mapping[str, Estimate]
    control_z: Array


def reduce_sums(sums: Array, samples: int, width: int, response: Array, layout: Layout) -> Reduced:
    """Estimates at every depth from `sums` of shape `(L+1, rows, groups)`; `response` is J packed `(L+1, M, M)`.

    One depth at a time, so that no array of all groups and all depths exists beside the sums themselves.
    """
    used = min(sums.shape[-1], samples)
    counts = group_counts(samples, used)
    depths = [_one_depth(at.T[:used], counts, width, matrix, layout) for at, matrix in zip(sums, response)]

    def stack(name: str) -> Estimate:
        return Estimate(np.stack([d[name][0] for d in depths]), np.stack([d[name][1] for d in depths]))

    controlled = {name: stack(name) for name in QUANTITIES}
    plain = {name: stack(f"plain {name}") for name in QUANTITIES}
    for name in MEANS:  # at depth 0 the free network is the network: the control would leave exactly zero
        for target, source in ((controlled[name].mean, plain[name].mean), (controlled[name].se, plain[name].se)):
            target[0] = source[0]
    controls = [Estimate(*depth["controls"]).z(0.0) for depth in depths]
    return Reduced(controlled, plain, np.array([np.max(np.abs(z), initial=0.0) for z in controls]))


def _one_depth(
    sums: Array, counts: NDArray[np.int64], width: int, response: Array, layout: Layout
) -> dict[str, tuple[Array, Array]]:
    total = sums.sum(axis=0)
    number = counts.sum()
    stacked = np.concatenate([total[None], total - sums])
    values = _estimators(stacked, np.concatenate([[number], number - counts]), width, response, layout)
    result = {}
    for name, value in values.items():
        se = jackknife(value[0], value[1:], counts)
        result[name] = (value[0], np.where(np.isnan(se), np.inf, se))  # covariance with one sample left: unknown
    return result


def _estimators(sums: Array, number: NDArray[np.int64], width: int, response: Array, layout: Layout) -> dict[str, Array]:
    """Unbiased estimators as functions of sums `(replicates, rows)` over `number` samples each."""
    size = number[:, None].astype(np.float64)
    dg, rg, ds, rs = (sums[:, layout.part(name)] / size for name in ("dG", "rG", "dS", "rS"))
    gg, cv, rr = (sums[:, layout.part(name)] for name in ("GG", "CV", "RR"))
    a, b = layout.quad
    n = float(width)
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = n * np.where(size > 1, (gg - size * dg[:, a] * dg[:, b]) / (size - 1.0), np.nan)
        residual = np.where(size > 1, (rr - size * rg[:, a] * rg[:, b]) / (size - 1.0), np.nan)
    return {
        "V4": cv / size + n * residual,
        "K1": n * rg,
        "S1": n * rs,
        "U1": n * (rs - rg @ response.T),
        "plain V4": plain,
        "plain K1": n * dg,
        "plain S1": n * ds,
        "plain U1": n * (ds - dg @ response.T),
        "controls": np.concatenate([dg - rg, ds - rs], axis=1),
    }
