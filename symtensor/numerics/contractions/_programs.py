"""Compiled programs for no and one free slot: everything of one initialisation, all inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from symtensor.numerics.contractions.directions import Direction, Kind
from symtensor.numerics.contractions.taylor import Method, line_coefficients, mixed_derivative

__all__ = ["contract_all", "direction_at", "direction_operands", "frozen_coefficient", "item", "training_vector", "tree_norm"]

Scalar = Callable[[Any, Any], Any]
Entry = tuple[int, int]


def contract_all(
    scalar: Scalar, theta: Any, inputs: jax.Array, operands: Any, kind: Kind, entries: tuple[Entry, ...], method: Method, chunk: int
) -> dict[Entry, jax.Array]:
    """Contractions at eta = 1 of one theta: `(N,)`, or `(N, M)` for gradients at M points; for D = 1 the norm."""
    return _cached(scalar, kind, entries, method, chunk)(theta, inputs, operands)


def _cached(scalar: Scalar, *settings: Hashable) -> Any:
    try:
        return _program(scalar, *settings)
    except TypeError:  # a function that cannot be hashed is compiled anew
        return _program.__wrapped__(scalar, *settings)


@functools.lru_cache(maxsize=32)
def _program(scalar: Scalar, kind: Kind, entries: tuple[Entry, ...], method: Method, chunk: int) -> Any:
    def run(theta: Any, inputs: jax.Array, operands: Any) -> dict[Entry, jax.Array]:
        def at_input(x: jax.Array) -> dict[Entry, jax.Array]:
            if kind != "points":
                return item(scalar, theta, x, direction_at(scalar, theta, x, operands, kind), kind, entries, method)
            return lax.map(lambda p: item(scalar, theta, x, jax.grad(scalar)(theta, p), kind, entries, method), operands)

        return lax.map(at_input, inputs, batch_size=min(chunk, len(inputs)))

    return jax.jit(run)


def direction_at(scalar: Scalar, theta: Any, x: Any, operands: Any, kind: Kind) -> Any:
    """The vector in the slots of one input, or the tuple of vectors."""
    if kind == "same":
        return jax.grad(scalar)(theta, x)
    if kind == "mixed":
        return tuple(jax.grad(scalar)(theta, p) for p in operands)
    return operands


def item(
    scalar: Scalar, theta: Any, x: Any, vector: Any, kind: Kind, entries: tuple[Entry, ...], method: Method
) -> dict[Entry, jax.Array]:
    """C_{0,d} and |C_{1,d}| of one input, the directions frozen."""

    def coefficient(d: int) -> Callable[[Any], Any]:
        return frozen_coefficient(scalar, x, vector, kind, d, method)

    plain = [d for D, d in entries if D == 0]
    found: dict[Entry, jax.Array] = {}
    if plain and kind != "mixed":
        values = line_coefficients(lambda t: scalar(t, x), theta, vector, max(plain), method)
        found = {(0, d): values[d] for d in plain}
    elif plain:
        found = {(0, d): coefficient(d)(theta) for d in plain}
    for D, d in entries:
        if D == 1:
            found[D, d] = tree_norm(jax.grad(coefficient(d))(theta))
    return found


def frozen_coefficient(scalar: Scalar, x: Any, vector: Any, kind: Kind, d: int, method: Method) -> Callable[[Any], Any]:
    """`theta -> (1/d!) grad^d F(theta)(x)[v_1, .., v_d]` with the vectors held fixed."""
    if kind == "mixed":
        factorial = float(functools.reduce(int.__mul__, range(1, d + 1), 1))
        return lambda t: mixed_derivative(lambda s: scalar(s, x), t, vector[:d]) / factorial
    return lambda t: line_coefficients(lambda s: scalar(s, x), t, vector, d, method)[d]


def tree_norm(tree: Any) -> jax.Array:
    """Euclidean norm over all leaves."""
    return jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(tree)))


def direction_operands(direction: Direction, function: Scalar, scalar: Scalar, theta: Any) -> Any:
    """What the program of one theta is given beside the inputs."""
    if direction.kind in ("points", "mixed"):
        return jnp.asarray(direction.points)
    if direction.kind == "training":
        # residuals for every output weight the outputs themselves
        chosen = function if direction.residuals.ndim == 2 else scalar
        return _cached_training(chosen)(theta, jnp.asarray(direction.points), jnp.asarray(direction.residuals))
    return direction.vector if direction.kind == "vector" else ()


def _cached_training(function: Scalar) -> Any:
    try:
        return training_vector(function)
    except TypeError:
        return training_vector.__wrapped__(function)


@functools.lru_cache(maxsize=32)
def training_vector(function: Scalar) -> Any:
    """Compiled `(theta, points, residuals) -> sum_x r_x grad F(x)`, one input at a time: memory of one gradient."""

    @jax.jit
    def run(theta: Any, points: jax.Array, residuals: jax.Array) -> Any:
        def add(total: Any, pair: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
            x, weight = pair
            gradient = jax.grad(lambda t: jnp.sum(weight * jnp.ravel(function(t, x))))(theta)
            return jax.tree.map(jnp.add, total, gradient), None

        return lax.scan(add, jax.tree.map(jnp.zeros_like, theta), (points, residuals))[0]

    return run
