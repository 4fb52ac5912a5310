"""A stochastic equation for simulation: drift and noise as JAX functions, the linear equation beside it, all checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from symtensor.numerics._vector_function import vector_function

__all__ = ["Langevin", "LangevinError", "factor", "read_langevin"]

Array = NDArray[np.float64]
Function = Callable[[jax.Array], jax.Array]


class LangevinError(ValueError):
    """A stochastic equation that cannot be simulated as it is given; the message says what to change."""


@dataclass(frozen=True, slots=True, eq=False)
class Langevin:
    """u = x - point. `drift` maps (d, walkers) to (d, walkers) in x; `noise` to (d, m, walkers), None if it is constant.

    linear : A = -df/dx at the point; amplitude : G there, (d, m); covariance : C0 with A C0 + C0 A^T = G G^T.
    """

    drift: Function
    noise: Function | None
    point: Array
    linear: Array
    amplitude: Array
    covariance: Array

    @property
    def size(self) -> int:
        return len(self.point)

    @property
    def slowest(self) -> float:
        """The smallest real part of the rates."""
        return float(np.linalg.eigvals(self.linear).real.min())

    def decay(self, time: float) -> Array:
        """exp(-A t)."""
        return np.asarray(scipy.linalg.expm(-self.linear * time), np.float64)

    def step_law(self, step: float) -> tuple[Array, Array, Array]:
        """exp(-A h), a factor of the law of the noise xi of u' = exp(-A h) u + xi, and one of the joint law of (dW, xi)."""
        decay = self.decay(step)
        law = self.covariance - decay @ self.covariance @ decay.T
        # int_0^h exp(-A s) ds G, the covariance of xi and dW, from one exponential of a block matrix
        size, width = self.amplitude.shape
        block = np.zeros((2 * size, 2 * size))
        block[:size, :size], block[:size, size:] = -self.linear * step, np.eye(size) * step
        cross = scipy.linalg.expm(block)[:size, size:] @ self.amplitude
        joint = np.block([[np.eye(width) * step, cross.T], [cross, law]])
        return decay, factor(law), factor(joint)


def factor(law: Array) -> Array:
    """F with F F^T = law for a positive semidefinite matrix; rounding below zero is cut."""
    values, vectors = np.linalg.eigh((law + law.T) / 2)
    return vectors * np.sqrt(np.clip(values, 0.0, None))


def read_langevin(
    drift: Any, noise: Any, variables: Sequence[Any] | None, parameters: Mapping[Any, Any] | None, point: Any
) -> Langevin:
    """Functions, or SymPy expressions with variables and parameters; see `simulate_langevin` for the errors."""
    names = [variables] if isinstance(variables, str) or hasattr(variables, "free_symbols") else variables
    force, size = _drift(drift, names, parameters, point)
    place = np.zeros(size) if point is None else np.atleast_1d(np.asarray(point, float))
    if place.shape != (size,) or not np.all(np.isfinite(place)):
        raise LangevinError(f"the point {point} does not fit: {size} finite numbers are required")
    _check_drift(force, place)
    function, amplitude = _noise(noise, names, parameters, place)
    linear = -np.asarray(jax.jacfwd(lambda u: force(u[:, None])[:, 0])(jnp.asarray(place)))
    rates = np.linalg.eigvals(linear)
    if not rates.real.min() > 0:
        worst = rates[np.argmin(rates.real)]
        raise LangevinError(
            f"the drift is unstable at {place.tolist()}: a perturbation decays with the rate {worst:.6g}; the simulation starts "
            "from the linear process about a stable fixed point, so give one (point=..)"
        )
    covariance = scipy.linalg.solve_continuous_lyapunov(linear, amplitude @ amplitude.T)
    return Langevin(force, function, place, linear, amplitude, (covariance + covariance.T) / 2)


def _function(given: Any) -> Any:
    """The argument if it is a function and no expression, else None."""
    return given if callable(given) and not hasattr(given, "free_symbols") else None


def _drift(drift: Any, names: Any, parameters: Any, point: Any) -> tuple[Function, int]:
    if function := _function(drift):
        if names is None and point is None:
            raise LangevinError("how many variables a drift function has is not known; give variables=[..] or point=[..]")
        return function, len(names) if names is not None else len(np.atleast_1d(point))
    if names is None:
        raise LangevinError("the drift is given as expressions; name their variables, variables=[..]")
    rows = _rows(drift, names)
    return vector_function(rows, names, parameters), len(names)


def _rows(given: Any, names: Any) -> list[Any]:
    if isinstance(given, Mapping):
        by_name = {str(name): part for name, part in given.items()}
        given = [by_name.get(str(name), 0) for name in names]
    rows = list(given) if hasattr(given, "__iter__") else [given]
    if any(isinstance(part, str) for part in rows) or isinstance(given, str):
        raise LangevinError("the drift is text; read it first (symtensor.fields.read_equations)")
    if len(rows) != len(names):
        raise LangevinError(f"the drift has {len(rows)} components for {len(names)} variables")
    return rows


def _check_drift(force: Function, place: Array) -> None:
    """The shape, the type, and that one column of x does not feel another."""
    columns = jnp.asarray(place[:, None] + np.array([0.0, 0.125, -0.25]) * (1 + np.abs(place[:, None])))
    value = jnp.asarray(force(columns))
    if value.shape != columns.shape or value.dtype != jnp.float64:
        raise LangevinError(
            f"the drift gives shape {value.shape} of {value.dtype} for x of shape {columns.shape}; it must give float64 of the "
            "same shape, variables first, trajectories last"
        )
    alone = np.concatenate([np.asarray(force(columns[:, i : i + 1])) for i in range(3)], axis=1)
    if not np.allclose(alone, np.asarray(value), rtol=1e-9, atol=1e-12, equal_nan=True):
        raise LangevinError("the drift mixes the trajectories, which lie along the last axis; sum over axis 0 only")
    if not np.all(np.isfinite(alone[:, 0])):
        raise LangevinError(f"the drift is {alone[:, 0].tolist()} at the point {place.tolist()}; it must be finite there")


def _noise(noise: Any, names: Any, parameters: Any, place: Array) -> tuple[Function | None, Array]:
    size = len(place)
    if given := _function(noise):
        return given, _amplitude(np.asarray(given(jnp.asarray(place)[:, None])), size)
    nested: Any = noise.tolist() if hasattr(noise, "tolist") else noise
    if isinstance(nested, Mapping):
        nested = [nested.get(name, nested.get(str(name), 0)) for name in names or ()]
    if not isinstance(nested, list | tuple):  # one amplitude for all
        nested = [nested] * size
    if not isinstance(nested[0], list | tuple):
        nested = [[part if i == j else 0 for j in range(len(nested))] for i, part in enumerate(nested)]
    if len(nested) != size or len({len(row) for row in nested}) != 1:
        raise LangevinError(f"the noise matrix has {len(nested)} rows for {size} variables; one row of G a variable is required")
    function = vector_function([list(row) for row in nested], names or [f"x{i}" for i in range(size)], parameters)
    amplitude = _amplitude(np.asarray(function(jnp.asarray(place)[:, None])), size)
    known = {str(name) for name in names or ()}
    varies = any(str(s) in known for row in nested for part in row for s in getattr(part, "free_symbols", ()))
    return (function if varies else None), amplitude


def _amplitude(value: Array, size: int) -> Array:
    if value.ndim != 3 or value.shape[0] != size or value.shape[2] != 1:
        raise LangevinError(f"the noise gives shape {value.shape} for x of shape ({size}, 1); ({size}, m, 1) is required")
    if not np.all(np.isfinite(value)):
        raise LangevinError("the noise amplitude at the point is not finite")
    return value[:, :, 0].astype(float)
