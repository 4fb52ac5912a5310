"""Fixed points by damped iteration with Anderson mixing, and a report of how they converged (NumPy)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

__all__ = ["Convergence", "NotConvergedWarning", "fixed_point"]


class NotConvergedWarning(UserWarning):
    """A fixed point was not reached; the report says how far it got."""


@dataclass(frozen=True, slots=True)
class Convergence:
    """How an iteration went.

    Attributes:
        converged: whether the last residual is within the tolerance.
        iterations: evaluations of the map.
        residuals: max |F(z) - z| / (1 + max |z|) at each evaluation.
        rate: geometric mean of the factors between the last residuals, at most five; below 1 if it contracts. nan for one.
        reason: one sentence.
    """

    converged: bool
    iterations: int
    residuals: tuple[float, ...]
    rate: float
    reason: str

    def __str__(self) -> str:
        state = "converged" if self.converged else "NOT converged"
        return f"{state} after {self.iterations} iterations: residual {self.residuals[-1]:.2g}, rate {self.rate:.2g}; {self.reason}"


def fixed_point(
    step: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    *,
    tolerance: float = 1e-12,
    damping: float = 1.0,
    depth: int = 5,
    most: int = 200,
) -> tuple[np.ndarray, Convergence]:
    """Solve z = step(z) by z -> z + damping (step(z) - z), extrapolated from the last `depth` steps (Anderson mixing).

    Parameters
    ----------
    start : array of any shape; `step` returns one of the same shape.
    tolerance : of max |step(z) - z| / (1 + max |z|).
    damping : between 0 (excluded) and 1.
    depth : 0 for plain iteration.
    most : evaluations of `step`.

    Returns the last point and its `Convergence`; warns with NotConvergedWarning if it is no fixed point.

    Raises
    ------
    ValueError : damping, tolerance or numbers out of range.

    References
    ----------
    H. F. Walker, P. Ni, "Anderson acceleration for fixed-point iterations", SIAM J. Numer. Anal. 49 (2011) 1715, algorithm AA.

    Examples
    --------
    >>> root, report = fixed_point(np.cos, np.array([1.0]))
    >>> bool(abs(np.cos(root) - root)[0] < 1e-12), report.converged
    (True, True)
    """
    if not (0 < damping <= 1 and tolerance > 0 and depth >= 0 and most >= 1):
        raise ValueError(
            f"damping={damping}, tolerance={tolerance}, depth={depth}, most={most}: damping is in (0, 1], the tolerance is "
            "positive, depth is 0 or more and at least one evaluation is needed"
        )
    point = np.array(start, float)
    points: list[np.ndarray] = []
    changes: list[np.ndarray] = []
    residuals: list[float] = []
    reason = f"the limit of {most} evaluations was reached; take damping below 1, a better start, or more evaluations"
    while len(residuals) < most:
        change = np.asarray(step(point), float) - point
        size = float(np.max(np.abs(change)) / (1 + np.max(np.abs(point)))) if point.size else 0.0
        residuals.append(size)
        if not np.isfinite(size):
            reason = "the iteration left the region where the map is finite; take damping below 1 or a start nearer to the solution"
            break
        if size <= tolerance:
            reason = f"within the tolerance {tolerance:g}"
            break
        points, changes = [*points[-depth:], point], [*changes[-depth:], change]
        point = _mixed(points, changes, damping) if depth else point + damping * change
    report = Convergence(residuals[-1] <= tolerance, len(residuals), tuple(residuals), _rate(residuals), reason)
    if not report.converged:
        warnings.warn(str(report), NotConvergedWarning, stacklevel=2)
    return point, report


def _mixed(points: list[np.ndarray], changes: list[np.ndarray], damping: float) -> np.ndarray:
    """The next point: the change is minimised over affine combinations of the last ones."""
    last, change = points[-1], changes[-1]
    if len(points) == 1:
        return last + damping * change
    rows = np.stack([(later - earlier).ravel() for earlier, later in pairwise(changes)], axis=1)
    weights, *_ = np.linalg.lstsq(rows, change.ravel(), rcond=1e-12)
    mixed = last + damping * change
    for weight, k in zip(weights, range(len(points) - 1)):
        mixed = mixed - weight * (points[k + 1] - points[k] + damping * (changes[k + 1] - changes[k]))
    return mixed


def _rate(residuals: list[float]) -> float:
    tail = [r for r in residuals[-6:] if r > 0 and np.isfinite(r)]
    return float((tail[-1] / tail[0]) ** (1 / (len(tail) - 1))) if len(tail) > 1 else float("nan")
