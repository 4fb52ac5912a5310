r"""From group means to estimates: extrapolation in the step, control by the linear process, jackknife.

The extrapolated mean is (2^p m(h) - m(2h))/(2^p - 1) in every group, p the weak order of the scheme. The linear process has seen
the same noise and its means are known: c (m_linear - exact) is subtracted, c the regression coefficient from the other groups, so
that the mean stays unbiased. All else is a function of means; its standard error is a delete-one-group jackknife.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symtensor.expansion.cumulants import solve_cumulants
from symtensor.expansion.moments import GaussianMoments
from symtensor.numerics._langevin_model import Langevin
from symtensor.numerics._statistics import jackknife

__all__ = ["GroupMeans", "Measured", "controlled", "exact_linear_means"]

Array = NDArray[np.float64]
Powers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """An estimate at step zero by extrapolation.

    Attributes
    ----------
    value, se : the estimate and its standard error.
    step_error, step_error_se : what the smaller step adds to it (value at that step minus `value`), measured on common noise.
    gain : variance without the control by the linear process over variance with it.
    """

    value: Array
    se: Array
    step_error: Array
    step_error_se: Array
    gain: Array

    def z(self, prediction: Any) -> Array:
        """(value - prediction)/se; 0 where both differences vanish."""
        difference = self.value - np.asarray(prediction)
        return np.divide(difference, self.se, out=np.zeros_like(difference), where=difference != 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class GroupMeans:
    """Means of every group (first axis): `moments` (G, M) of u, `products` and `tangents` (G, lags+1, d, d)."""

    moments: Array
    products: Array
    tangents: Array

    def mapped(self, change: Callable[..., Array], *others: GroupMeans) -> GroupMeans:
        """`change` applied to each of the three."""
        names = ("moments", "products", "tangents")
        return GroupMeans(*(change(*(getattr(part, name) for part in (self, *others))) for name in names))


def exact_linear_means(model: Langevin, exponents: Sequence[Powers], times: Array, response: bool) -> GroupMeans:
    """The exact means of the linear process, as one group."""
    size = model.size
    law = GaussianMoments.of([f"u{i}" for i in range(size)], model.covariance.tolist())
    moments = [float(law.moment({f"u{i}": n for i, n in enumerate(k) if n})) for k in exponents]
    products = np.stack([model.decay(t) @ model.covariance for t in times])
    return GroupMeans(np.array([moments]), products[None], np.zeros((1, len(times), size, size) if response else (1, 0)))


def controlled(means: Array, linear: Array, exact: Array) -> Array:
    """Group means with the regression on the linear process taken off; the coefficient of a group is that of the others."""
    groups = len(means)
    dm, dl = means - means.mean(0), linear - linear.mean(0)
    share = groups / (groups - 1)
    cross = (dm * dl).sum(0) - share * dm * dl
    square = (dl * dl).sum(0) - share * dl * dl
    coefficient = np.divide(cross, square, out=np.zeros_like(cross), where=square > 1e-300)
    return means - coefficient * (linear - exact)


def replicates(means: GroupMeans, counts: NDArray[np.int64]) -> GroupMeans:
    """The mean of all groups, then those without one group each; groups weigh as many trajectories as they kept."""

    def change(part: Array) -> Array:
        weight = counts.reshape((-1,) + (1,) * (part.ndim - 1)).astype(float)
        total = (weight * part).sum(0)
        return np.concatenate([(total / weight.sum())[None], (total - weight * part) / (weight.sum() - weight)])

    return means.mapped(change)


def measured(
    function: Callable[[GroupMeans], Array], best: GroupMeans, fine: GroupMeans, plain: GroupMeans, counts: NDArray[np.int64]
) -> Measured:
    """A function of replicates (first axis) as an estimate."""
    value, at_step, raw = (np.asarray(function(replicates(part, counts))) for part in (best, fine, plain))
    error = at_step - value
    # what the control makes exact still has rounding errors
    rounding = 1e-13 * np.max(np.abs(value[0]), initial=0.0)
    se, raw_se, error_se = (np.hypot(jackknife(p[0], p[1:], counts), rounding) for p in (value, raw, error))
    return Measured(value[0], se, error[0], error_se, (raw_se / se) ** 2)


def cumulant(means: GroupMeans, exponents: Sequence[Powers], powers: Powers) -> Array:
    """The joint cumulant of powers, from the monomials of replicates."""
    place = {k: i for i, k in enumerate(exponents)}
    below = [k for k in itertools.product(*(range(n + 1) for n in powers)) if any(k)]
    return solve_cumulants({k: means.moments[:, place[k]] for k in below}, [powers])[powers]


def correlation(means: GroupMeans, size: int) -> Array:
    """<u(t) u(0)^T> - <u><u>^T of replicates; the first `size` monomials are the components."""
    mean = means.moments[:, :size]
    return means.products - (mean[:, :, None] * mean[:, None, :])[:, None]


def moment_about(means: GroupMeans, exponents: Sequence[Powers], powers: Powers, point: Array) -> Array:
    """<prod x_i^k_i> of replicates, x = point + u."""
    place = {k: i for i, k in enumerate(exponents)}
    total = np.zeros(len(means.moments))
    for k in itertools.product(*(range(n + 1) for n in powers)):
        factor = prod(comb(n, m) * float(p) ** (n - m) for n, m, p in zip(powers, k, point))
        total = total + factor * (means.moments[:, place[k]] if any(k) else 1.0)
    return total


def worst_control(linear: GroupMeans, exact: GroupMeans) -> float:
    """The largest |z| of the linear process against its exact means."""
    found = [0.0]
    for name in ("moments", "products"):
        part, known = getattr(linear, name), getattr(exact, name)[0]
        se = part.std(axis=0, ddof=1) / np.sqrt(len(part))
        z = np.divide(np.abs(part.mean(0) - known), se, out=np.zeros_like(se), where=se > 0)
        found.append(float(z.max(initial=0.0)))
    return max(found)


def by_names(powers: Any, names: Mapping[str, int], size: int) -> Powers:
    """{name or index: power}, or a tuple of powers, as a tuple of powers."""
    if not isinstance(powers, Mapping):
        return tuple(int(n) for n in powers)
    found = [0] * size
    for name, power in powers.items():
        found[name if isinstance(name, int) else names[str(name)]] += int(power)
    return tuple(found)
