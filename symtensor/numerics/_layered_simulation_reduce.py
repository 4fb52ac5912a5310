"""From group sums of one width to scaled cumulants with their jackknife replicates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from symtensor.numerics._statistics import group_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from symtensor.numerics._layered_simulation_model import Functions

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Replicates:
    """An estimator on all samples, and on all but one group: `total (..)`, `without (groups, ..)`.

    The covariance of two estimators follows from their pseudo-values (delete-m jackknife for unequal groups); sums of
    estimators are sums of replicates, so that correlations are kept.
    """

    total: Array
    without: Array
    counts: NDArray[np.int64]

    def deviations(self) -> Array:
        """Pseudo-values less their mean, scaled so that the covariance of x and y is sum_j dev_x[j] dev_y[j]."""
        ratio = (self.counts.sum() / self.counts).reshape((-1,) + (1,) * self.total.ndim)
        center = len(self.counts) * self.total - ((1.0 - 1.0 / ratio) * self.without).sum(axis=0)
        pseudo = ratio * self.total - (ratio - 1.0) * self.without
        return (pseudo - center) / np.sqrt((ratio - 1.0) * len(self.counts))

    def standard_error(self) -> Array:
        return np.sqrt((self.deviations() ** 2).sum(axis=0))

    def __add__(self, other: Replicates) -> Replicates:
        return Replicates(self.total + other.total, self.without + other.without, self.counts)

    def take(self, index: tuple[Any, ...]) -> Replicates:
        """Components by an index into the trailing axes (depth first): `total[index]`."""
        return Replicates(self.total[index], self.without[(slice(None), *index)], self.counts)


@dataclass(frozen=True, slots=True)
class WidthSums:
    """Sums over the samples of one width: `(L+1, rows, groups)`."""

    functions: Functions
    width: int
    samples: int
    sums: Array

    @property
    def counts(self) -> NDArray[np.int64]:
        return group_counts(self.samples, self.sums.shape[-1])

    def _averages(self, name: str) -> tuple[Array, Array]:
        """Mean of a statistic over all samples (L+1, size), and over all but one group (groups, L+1, size)."""
        part = self.sums[:, self.functions.parts[name]]
        total, counts = part.sum(axis=-1), self.counts
        without = np.moveaxis(total[..., None] - part, -1, 0)
        return total / counts.sum(), without / (counts.sum() - counts)[:, None, None]

    def _apply(self, names: tuple[str, ...], formula: Callable[..., Array]) -> Replicates:
        totals, withouts = zip(*(self._averages(name) for name in names))
        return Replicates(formula(*totals), formula(*withouts), self.counts)

    def mean(self) -> tuple[Replicates, Replicates]:
        """n (E S - S_0), (L+1, components): the second-order response of single neurons, and the rest, which is O(1/n).

        At depth 0 the control is the network, and would leave exactly zero: the plain mean is the rest there.
        """
        response, rest = self._apply(("q",), lambda q: q), self._apply(("r-q",), lambda r: self.width * r)
        plain = self.plain_mean()
        rest.total[0], rest.without[:, 0] = plain.total[0], plain.without[:, 0]
        return response, rest

    def plain_mean(self) -> Replicates:
        return self._apply(("D",), lambda d: self.width * d)

    def covariance(self) -> tuple[Replicates, Replicates]:
        """n Cov over pairs of components as the part of the linear response, mean_i c_i c_i, and the rest, which is O(1/n)."""
        a, b = self.functions.quads
        rest = self._apply(("DD-cc", "r"), lambda dd, r: self.width * (dd - r[..., a] * r[..., b]))
        return self._apply(("cc",), lambda cc: cc), rest

    def plain_covariance(self) -> Replicates:
        a, b = self.functions.quads
        factor = self.width * self.samples / (self.samples - 1.0)
        return self._apply(("DD", "D"), lambda dd, d: factor * (dd - d[..., a] * d[..., b]))

    def third_cumulant(self, *, plain: bool = False) -> Replicates:
        """n^2 times the third cumulant over the triples."""
        a, b, c = self.functions.triples
        table, n = self.functions.quad_table, self.width
        ab, ac, bc = table[a, b], table[a, c], table[b, c]

        def formula(ddd: Array, dd: Array, d: Array) -> Array:
            mixed = dd[..., ab] * d[..., c] + dd[..., ac] * d[..., b] + dd[..., bc] * d[..., a]
            return ddd - mixed + 2.0 * d[..., a] * d[..., b] * d[..., c]

        if plain:
            return self._apply(("DDD", "DD", "D"), lambda ddd, dd, d: n**2 * formula(ddd, dd, d))
        names = ("ccc", "DDD-ccc", "cc", "DD-cc", "r")
        return self._apply(
            names, lambda ccc, ddd, cc, dd, r: n**2 * formula(ccc / n**2 + ddd, cc / n + dd, r)
        )

    def control_z(self) -> Array:
        """(L+1,): largest |z| of the sample means of the controls, whose exact value is 0."""
        controls = self._apply(("D", "r"), lambda d, r: d - r)
        error = controls.standard_error()
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(np.abs(controls.total) <= 1e-13, 0.0, np.abs(controls.total) / error)
        return z.max(axis=1)
