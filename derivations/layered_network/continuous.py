r"""Continuous depth as the limit dt -> 0 of the exact theory at fixed depth time, with an estimated error.

The discrete theory at dt, dt/2, dt/4 (or, where that would be large, at 4 dt, 2 dt, dt) is f(dt) = f_0 + f_1 dt + f_2 dt^2 + ..;
two steps of Richardson extrapolation remove f_1 and f_2, and the change by the second step estimates the error.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from derivations.layered_network.request import Request
from derivations.layered_network.theory import exact_theory

__all__ = ["Limit", "continuous_limit"]

#: layers times pairs of inputs at which the finest theory is still quick
MOST = 200
NAMES = ("K0", "V4", "K1")


@dataclass(frozen=True, slots=True)
class Limit:
    """`arrays` at the times `t`: K0, V4, K1 and for each the estimated error `<name>_error`; `failure` says why there is none."""

    t: np.ndarray = field(default_factory=lambda: np.zeros(0))
    steps: tuple[float, ...] = ()
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    failure: str = ""


def continuous_limit(request: Request, tol: float, memory_mb: float) -> Limit:
    """Extrapolate the exact theory to dt -> 0, if that limit exists (alpha = 1, or gamma given)."""
    base = request.base
    if base.gamma is None:
        return Limit(failure=(
            f"alpha = {base.alpha!r} has no continuous-depth limit: it needs alpha = 1, or alpha^2 = 1 - gamma dt with --gamma "
            f"given"
        ))  # fmt: skip
    pairs = len(request.network.pairs)
    if 4 * base.depth * pairs <= MOST:
        refinements, depth, dt = (1, 2, 4), base.depth, base.dt
    elif base.depth % 4 == 0 and base.depth >= 16 and base.gamma * 4 * base.dt < 1:
        refinements, depth, dt = (1, 2, 4), base.depth // 4, 4 * base.dt
    else:
        return Limit(failure=(
            f"no extrapolation to dt -> 0: dt/4 has {4 * base.depth} layers of {pairs} pairs of inputs, too many, and 4 dt needs a "
            "number of layers that is a multiple of 4 and at least 16"
        ))  # fmt: skip
    coarse = _scaled(request, depth, dt)
    values = []
    for refine in refinements:
        network = coarse.network_of(base.activation, refine=refine)
        arrays = exact_theory(network, 1, tol, memory_mb).arrays()
        values.append({name: arrays[name][::refine] for name in NAMES})
    found: dict[str, np.ndarray] = {}
    for name in NAMES:
        found[name], found[f"{name}_error"] = _richardson(*(value[name] for value in values))
    return Limit(dt * np.arange(depth + 1), tuple(dt / refine for refine in refinements), found)


def _scaled(request: Request, depth: int, dt: float) -> Request:
    gamma = request.base.gamma or 0.0
    return replace(request, base=replace(request.base, depth=depth, dt=dt, alpha=float(np.sqrt(1 - gamma * dt))))


def _richardson(coarse: np.ndarray, middle: np.ndarray, fine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(limit, estimated error) from values at dt, dt/2, dt/4.

    >>> dt = np.array([0.4, 0.2, 0.1])
    >>> limit, error = _richardson(*(3 + 2 * dt - dt**2 + dt**3))
    >>> bool(abs(limit - 3) < error < 0.05)
    True
    """
    first, second = 2 * middle - coarse, 2 * fine - middle
    limit = (4 * second - first) / 3
    return limit, np.abs(limit - second)
