"""Dyson's equation on a two-time grid, in JAX: dressed propagators from self-energies. Importing this module imports JAX.

    R = R0 + R0 (S + Sigma_R) R,     C = P C0 P^T + R (N + Sigma_C) R^T,     P = 1 + R (S + Sigma_R)

S and N act at one time (Hartree, multiplicative noise), Sigma_R is causal, Sigma_C symmetric; products are integrals by the
trapezoidal rule, in which R and Sigma_R count half at equal times. R0, C0 solve the linear equation, so that an equation without
self-energy is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symtensor.numerics.time_grid import grid_arrays, linear_propagators

__all__ = ["ClosureStep", "dressed_propagators", "require_double"]


def dressed_propagators(
    free: tuple[Any, Any], local: Any, causal: Any, white: Any, noise: Any, step: float
) -> tuple[jax.Array, jax.Array]:
    """Solve Dyson's equation by one linear solve.

    Parameters
    ----------
    free : R0 and C0, arrays (T, n, T, n), R0 being the unit matrix at equal times.
    local : S, array (T, n, n).
    causal : Sigma_R[t, i, s, j] for t >= s, array (T, n, T, n); what it holds for t < s is not used.
    white : N, array (T, n, n).
    noise : Sigma_C, like `causal`.
    step : distance of the times.

    Returns R and C, arrays (T, n, T, n).
    """
    points, size = local.shape[:2]
    full = (points * size, points * size)
    at = np.arange(points)
    weights = jnp.repeat(jnp.where(at == 0, step / 2, step), size)
    same, later = (at[:, None] == at[None, :])[:, None, :, None], (at[:, None] > at[None, :])[:, None, :, None]
    half = jnp.where(same, 0.5, 1.0)
    started = (at > 0)[:, None, None, None]  # an integral up to time 0 vanishes
    diagonal = jnp.zeros((points, size, points, size), local.dtype).at[at, :, at, :].set(local)
    past = jnp.where(later | same, causal * half, 0.0) * started
    kernel = diagonal.reshape(full) + past.reshape(full) * weights
    free_half = (free[0] * half * started).reshape(full)
    turned = (free_half * weights) @ kernel
    own = jnp.where(same, turned.reshape(points, size, points, size), 0.0).reshape(full)
    unit = jnp.eye(full[0], dtype=local.dtype)
    right = free[0].reshape(full) - (turned + own) / 2  # R counts half at its own earlier time, and is 1 there
    response = jnp.linalg.solve(unit - turned, right)
    response_half = (response.reshape(points, size, points, size) * half * started).reshape(full)
    moved = response_half * weights
    passed = unit + moved @ kernel
    lower = jnp.where(later, noise, 0.0)
    mirrored = lower + lower.transpose(2, 3, 0, 1) + jnp.where(same, noise, 0.0)
    correlator = passed @ free[1].reshape(full) @ passed.T + moved @ mirrored.reshape(full) @ moved.T
    correlator = correlator + _white(moved, white, weights)
    shape = (points, size, points, size)
    return response.reshape(shape), correlator.reshape(shape)


def _white(moved: Any, white: Any, weights: Any) -> Any:
    """int du R(t, u) N(u) R(s, u)^T: at u = t = s both lines end, which counts half once."""
    points, size = white.shape[:2]
    at = np.arange(points)
    place = jnp.zeros((points, size, points, size), white.dtype).at[at, :, at, :]
    weight = weights.reshape(points, size)[:, 0, None, None]
    ends = jnp.where(at > 0, 1.0, 0.0)[:, None, None] * weight / 4
    full = (points * size, points * size)
    return moved @ place.set(white / weight).reshape(full) @ moved.T + place.set(white * ends).reshape(full)


def require_double() -> None:
    """Raise ValueError if JAX runs in float32: residuals of a fixed point would stop at 1e-7."""
    if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise ValueError('self-consistent equations need float64; set jax.config.update("jax_enable_x64", True)')


@dataclass(eq=False)
class ClosureStep:
    """One iteration of a self-consistent closure on a two-time grid, as a map of one vector (mean, R, C).

    Attributes:
        linear, energies: generated functions of the parameters (mean included) and arrays; see `symtensor.fields.closure`.
        arrays: the array arguments of `energies`; outputs: its results, by names such as causal_0_1, noise_0_0_local, tau_0.
        given: numbers of the parameters.
        initial: covariance of the state at time 0, or None for the stationary one of the linear equation.
    """

    linear: Callable[..., Any]
    energies: Callable[..., Any] | None
    arrays: Any
    outputs: tuple[str, ...]
    mean_names: tuple[str, ...]
    given: Mapping[str, float]
    step: float
    points: int
    initial: Any = None

    def __post_init__(self) -> None:
        self._jitted = jax.jit(self._advance)
        self._shape = (self.points, len(self.mean_names), self.points, len(self.mean_names))

    def __call__(self, state: np.ndarray) -> np.ndarray:
        """The next state."""
        mean, (response, correlator) = self.split(state)
        return np.concatenate([np.asarray(part).ravel() for part in self._jitted(mean, response, correlator)[:3]])

    def start(self, mean: np.ndarray) -> np.ndarray:
        """The linear equation at a mean."""

        def solved(at: Any) -> tuple[Any, Any]:
            linear = self.linear(**self._parameters(at))
            return linear_propagators(linear.drift, linear.noise, self.step, self.points, self.initial)

        free = jax.jit(solved)(mean)
        return np.concatenate([mean, *(np.asarray(part).ravel() for part in free)])

    def split(self, state: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Mean, (R, C)."""
        size = len(self.mean_names)
        response, correlator = np.split(state[size:], 2)
        return state[:size], (response.reshape(self._shape), correlator.reshape(self._shape))

    def mean_moves(self, state: np.ndarray) -> bool:
        """Whether the average force does not vanish at all times."""
        mean, (response, correlator) = self.split(state)
        return bool(np.max(np.abs(self._jitted(mean, response, correlator)[3])) > 1e-9)

    def _parameters(self, mean: Any) -> dict[str, Any]:
        values = {**self.given, **{name: mean[k] for k, name in enumerate(self.mean_names)}}
        return {name: jnp.asarray(value, float) for name, value in values.items()}

    def _advance(self, mean: Any, response: Any, correlator: Any) -> tuple[Any, Any, Any, Any]:
        size, points = len(self.mean_names), self.points
        parameters = self._parameters(mean)
        linear = jax.lax.optimization_barrier(self.linear(**parameters))  # constants would be multiplied out by the compiler
        found: dict[str, Any] = {}
        if self.energies is not None:
            arrays = grid_arrays(self.arrays, linear, (response, correlator), self.step, 0)
            values = self.energies(**parameters, **arrays)
            found = values._asdict() if hasattr(values, "_asdict") else {self.outputs[0]: values}

        def table(name: str, shape: tuple[int, ...], suffix: str = "") -> Any:
            zero = jnp.zeros(shape)
            rows = [[found.get(f"{name}_{a}_{b}{suffix}", zero) for b in range(size)] for a in range(size)]
            stacked = jnp.stack([jnp.stack(row) for row in rows])
            return jnp.moveaxis(stacked, (0, 1), (1, 3) if len(shape) == 2 else (1, 2))

        free = linear_propagators(linear.drift, linear.noise, self.step, points, self.initial)
        once, twice = (points,), (points, points)
        local, causal = table("causal", once, "_local"), table("causal", twice)
        white, noise = table("noise", once, "_local"), table("noise", twice)
        solved = dressed_propagators(free, local, causal, white, noise, self.step)
        force = linear.force + jnp.stack([found.get(f"tau_{a}", jnp.zeros(points)) for a in range(size)], axis=1)
        return mean + jnp.linalg.solve(linear.drift, force[-1]), *solved, force
