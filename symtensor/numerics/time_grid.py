"""Diagram sums on a time grid, in JAX: propagators of the linear equation, quadrature weights, extrapolation in the step.

    R(t, s) = theta(t - s) exp(-A (t - s)),      C(t, s) = exp(-A (t - s)) C(s, s) for t >= s,      A C0 + C0 A^T = B = G G^T

by matrix exponentials and one linear solve: rates may coincide or be complex, and everything is differentiable in A and B.
The trapezoidal rule with steps h, 2h and 4h is extrapolated to h = 0 (error h^2). Importing this module imports JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["LEVELS", "GridRunner", "grid_arrays", "linear_propagators", "stationary_covariance"]

#: steps h, 2h, 4h
LEVELS = 3


def stationary_covariance(drift: Any, noise: Any) -> jax.Array:
    """The solution C0 (n, n) of A C0 + C0 A^T = B.

    >>> float(stationary_covariance(jnp.array([[2.0]]), jnp.array([[4.0]]))[0, 0])
    1.0
    """
    size = drift.shape[0]
    unit = jnp.eye(size, dtype=drift.dtype)
    system = jnp.kron(drift, unit) + jnp.kron(unit, drift)
    return jnp.linalg.solve(system, noise.reshape(-1)).reshape(size, size)


def linear_propagators(drift: Any, noise: Any, step: float, points: int, initial: Any = None) -> tuple[jax.Array, jax.Array]:
    """Response and correlator on the times 0, step, .., (points - 1) step.

    Parameters
    ----------
    drift, noise : A and B = G G^T, arrays (n, n); every eigenvalue of A has a positive real part.
    step : distance of the times, in the unit in which A is a rate.
    initial : covariance (n, n) of the Gaussian state at time 0; the stationary one if not given.

    Returns
    -------
    response, correlator : arrays (points, n, points, n), R[t, i, s, j] = <x_i(t) xt_j(s)> (the unit matrix at t = s, the limit
        from later t; 0 for t < s) and C[t, i, s, j] = <x_i(t) x_j(s)>.

    >>> R, C = linear_propagators(jnp.array([[1.0]]), jnp.array([[2.0]]), 0.5, 3)
    >>> bool(jnp.allclose(R[:, 0, 0, 0], jnp.exp(-0.5 * jnp.arange(3)))), float(C[1, 0, 1, 0])
    (True, 1.0)
    """
    size = drift.shape[0]
    decay = _decay(drift, step, points)
    age = np.arange(points)[:, None] - np.arange(points)[None, :]
    later = (age >= 0)[:, :, None, None]
    response = jnp.where(later, decay[np.abs(age)], 0.0)
    equal = stationary_covariance(drift, noise)
    if initial is None:
        states = jnp.broadcast_to(equal, (points, size, size))
    else:
        start = jnp.broadcast_to(jnp.asarray(initial, drift.dtype), (size, size)) - equal
        states = equal + jnp.einsum("tij,jk,tlk->til", decay, start, decay)
    forward = jnp.einsum("tsij,sjk->tsik", response, states)
    correlator = jnp.where(later, forward, forward.transpose(1, 0, 3, 2))
    return response.transpose(0, 2, 1, 3), correlator.transpose(0, 2, 1, 3)


def _decay(drift: Any, step: float, points: int) -> jax.Array:
    """exp(-A t) at the times, array (points, n, n): powers of one step, or the function itself if there is one component."""
    if drift.shape[0] == 1:
        return jnp.exp(-drift[None] * jnp.asarray(step * np.arange(points), drift.dtype)[:, None, None])
    once = jax.scipy.linalg.expm(-drift * step)
    unit = jnp.eye(drift.shape[0], dtype=drift.dtype)
    return jax.lax.scan(lambda power, _: (once @ power, power), unit, None, length=points)[1]


@dataclass(frozen=True, eq=False)
class GridRunner:
    """The numerical side of a compiled diagram sum on a grid.

    Attributes:
        linear: generated function of the parameters with outputs drift, noise and the vertex tensors.
        diagrams: generated function of parameters and arrays; a named tuple of orders.
        arrays: the array arguments of `diagrams`, as (name, letter, components): see `symtensor.fields._grid_network`.
        points: number of times of the finest grid, 4 k + 1, with distance `step`; the earliest external time is number
            `pinned` (a multiple of 4).
        initial: None (stationary), or the covariance of the Gaussian state at the first time of the grid.
    """

    linear: Callable[..., Any]
    diagrams: Callable[..., Any]
    parameters: tuple[str, ...]
    arrays: tuple[tuple[str, str, tuple[int, ...]], ...]
    orders: tuple[str, ...]
    step: float
    points: int
    pinned: int
    open_time: bool
    initial: Any = None
    _jitted: dict[str, Callable[..., Any]] = field(default_factory=dict, repr=False)

    def run(self, parameters: Mapping[str, Any], propagators: tuple[Any, Any] | None = None) -> dict[str, tuple[Any, Any]]:
        """{order: (value, error)}, compiled once; `propagators` (response, correlator) replace those of the linear equation."""
        kind = "linear" if propagators is None else "given"
        if kind not in self._jitted:
            self._jitted[kind] = jax.jit(self.evaluate)
        return self._jitted[kind](dict(parameters), propagators)

    def evaluate(self, parameters: Mapping[str, Any], propagators: tuple[Any, Any] | None = None) -> dict[str, tuple[Any, Any]]:
        """The same, not compiled."""
        given = {name: jnp.asarray(value, float) for name, value in parameters.items()}
        rows = [self.level(level, given, propagators) for level in range(LEVELS)]
        return {order: _extrapolated([row[order] for row in rows]) for order in self.orders}

    def level(self, level: int, parameters: Mapping[str, Any], propagators: tuple[Any, Any] | None = None) -> dict[str, Any]:
        """The orders with step 2^level h."""
        stride = 2**level
        points = (self.points - 1) // stride + 1
        # constants would be multiplied out by the compiler, which is slow
        linear = jax.lax.optimization_barrier(self.linear(**parameters))
        if propagators is None:
            pair = linear_propagators(linear.drift, linear.noise, self.step * stride, points, self.initial)
        else:
            pair = (propagators[0][::stride, :, ::stride], propagators[1][::stride, :, ::stride])
        arrays = grid_arrays(self.arrays, linear, pair, self.step * stride, self.pinned // stride)
        found = self.diagrams(**parameters, **arrays)
        values = found._asdict() if hasattr(found, "_asdict") else {self.orders[0]: found}
        start = self.pinned // stride
        return {name: value[start:] if self.open_time else value for name, value in values.items()}


def grid_arrays(
    wanted: Sequence[tuple[str, str, tuple[int, ...]]], linear: Any, pair: tuple[Any, Any], step: float, pinned: int
) -> dict[str, Any]:
    """The array arguments by name; `wanted` has (name, letter, components) of each, see `symtensor.fields._grid_network`."""
    response, correlator = pair
    points = response.shape[0]
    at = np.arange(points)
    half = jnp.where(at[:, None, None, None] == at[None, None, :, None], 0.5, 1.0)
    weights = jnp.where(at == 0, step / 2, step)[None, None, :, None]
    diagonal = correlator[at, :, at, :]
    make: dict[str, Callable[[], Any]] = {
        "R": lambda: response * half,
        "S": lambda: response,
        "Rw": lambda: response * half * weights,
        "Sw": lambda: response * weights,
        "C": lambda: correlator,
        "E": lambda: diagonal,
        "at": lambda: jnp.where(at == pinned, 1.0, 0.0),
        "after": lambda: jnp.where(at > pinned, 1.0, 0.0),
    }
    return {name: _block(make[letter](), parts) if letter in make else getattr(linear, name) for name, letter, parts in wanted}


def _block(array: Any, components: tuple[int, ...]) -> Any:
    """The components of one kind; a single one has no axis."""
    if array.ndim == 1:
        return array
    axes = (1, 3) if array.ndim == 4 else (1, 2)
    for axis in reversed(axes):
        array = jnp.take(array, np.array(components).reshape(-1 if len(components) > 1 else ()), axis=axis)
    return array


def _extrapolated(levels: Sequence[Any]) -> tuple[Any, Any]:
    """Value with the h^2 error removed, and the distance from the same with doubled steps."""
    fine, middle, coarse = levels
    if fine.ndim == 0:
        value, doubled = fine + (fine - middle) / 3, middle + (middle - coarse) / 3
        return value, jnp.abs(value - doubled)
    value = fine + _cubic(middle.shape[0]) @ (fine[::2] - middle) / 3
    doubled = middle[::2] + (middle[::2] - coarse) / 3
    where = np.arange(fine.shape[0]) / 4
    return value, jnp.interp(where, np.arange(coarse.shape[0]), jnp.abs(value[::4] - doubled))


def _cubic(points: int) -> np.ndarray:
    """Interpolation from `points` equidistant times to them and the midpoints between them, by cubics through four.

    The first time is used for itself only: an integral over times between 0 and t is exact at t = 0 and nowhere else, so that
    its error jumps there.
    """
    matrix = np.zeros((2 * points - 1, points))
    matrix[::2] = np.eye(points)
    count = min(points - 1, 4)
    for cell in range(points - 1):
        nodes = min(max(cell - 1, 1), points - count) + np.arange(count)
        for node in nodes:
            others = nodes[nodes != node]
            matrix[2 * cell + 1, node] = np.prod((cell + 0.5 - others) / (node - others))
    return matrix
