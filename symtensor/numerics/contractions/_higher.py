"""Norms with two and more free slots, by products with vectors; the parameters are one vector here."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from symtensor.numerics._norm_bracket import NormBracket, bracket
from symtensor.numerics._norm_dense import starting_vectors
from symtensor.numerics._norm_lanczos import basis_size, power_of_two, top_singular
from symtensor.numerics.contractions._programs import Scalar, direction_at, frozen_coefficient
from symtensor.numerics.contractions.directions import Kind
from symtensor.numerics.contractions.taylor import Method, mixed_derivative
from symtensor.numerics.norms import ImplicitTensor, subordinate_norm

Array = NDArray[np.float64]

__all__ = ["PRODUCTS", "several_slots", "two_slots"]

PRODUCTS = 200_000  # most contractions with unit vectors for the Frobenius norm and the unfolding
_CYCLES = 2000


def two_slots(
    scalar: Scalar, theta: Any, inputs: jax.Array, operands: Any, kind: Kind, d: int, method: Method, tolerance: float, seed: int
) -> NormBracket:
    """`|grad^{2+d} F[v^d, ., .]| / (2 d!)` for every input by restarted Lanczos on `u -> d/dt grad c_d(theta + t u)`."""
    size = ravel_pytree(theta)[0].size
    start, spare = starting_vectors(size, basis_size(size), seed)
    program = _cached(_lanczos, scalar, kind, d, method, tolerance)
    value, residual, applied = (np.asarray(part) for part in program(theta, inputs, operands, start, spare))
    upper = np.where(residual <= tolerance * value, value + residual, np.inf)
    return bracket(value / 2, upper / 2, residual / 2, applied, None, 2 * tolerance)


def _cached(build: Any, scalar: Scalar, *settings: Any) -> Any:
    try:
        return build(scalar, *settings)
    except TypeError:  # a function that cannot be hashed is compiled anew
        return build.__wrapped__(scalar, *settings)


@functools.lru_cache(maxsize=32)
def _lanczos(scalar: Scalar, kind: Kind, d: int, method: Method, tolerance: float) -> Any:
    def run(theta: Any, inputs: jax.Array, operands: Any, start: jax.Array, spare: jax.Array) -> Any:
        flat, unravel = ravel_pytree(theta)

        def at(x: jax.Array, vector: Any) -> Any:
            coefficient = frozen_coefficient(scalar, x, vector, kind, d, method)
            _, product = jax.linearize(jax.grad(lambda t: coefficient(unravel(t))), flat)
            scale = power_of_two(product, start)
            scaled = lambda u: product(u) / scale  # noqa: E731
            top = top_singular(scaled, scaled, start, spare, tolerance, _CYCLES)
            return scale * top.value, scale * top.residual, top.applied

        if kind == "points":
            return lax.map(lambda x: lax.map(lambda p: at(x, jax.grad(scalar)(theta, p)), operands), inputs)
        return lax.map(lambda x: at(x, direction_at(scalar, theta, x, operands, kind)), inputs)

    return jax.jit(run)


def several_slots(
    scalar: Scalar,
    thetas: Sequence[Any],
    inputs: jax.Array,
    operands: Sequence[Any],
    kind: Kind,
    entry: tuple[int, int],
    method: Method,
    seed: int,
) -> tuple[NormBracket, Array]:
    """Bracket of the subordinate norm over D >= 3 free slots, and the Frobenius norm (NaN where it is too large to count).

    Flat over initialisations, inputs and points. Lower: the symmetric ascent. Upper: the spectral norm of the unfolding
    1 | 2..D, the root of the largest eigenvalue of `G = sum_{j..k} T[., j, .., k] T[., j, .., k]^T`, whose trace is the
    square of the Frobenius norm; the tensor is never stored.
    """
    slots, d = entry
    unravel = ravel_pytree(thetas[0])[1]
    parts = [_items(scalar, theta, inputs, given, kind) for theta, given in zip(thetas, operands)]
    batch = tuple(jnp.concatenate(column) for column in zip(*parts))
    contract = _contraction(scalar, kind, d, method, unravel)
    size = batch[0].shape[1]
    tensor = ImplicitTensor((size,) * slots, contract, batch, symmetric=True)
    found = subordinate_norm(tensor, batch_dims=1, symmetric=True, seed=seed)
    upper, frobenius = _unfolding(contract, batch, slots, size)
    factor = 1.0 / math.factorial(slots)
    upper = np.fmin(upper, found.upper)
    norm = bracket(factor * found.lower, factor * upper, factor * found.residual, found.iterations, None, 1e-9)
    return norm, factor * frobenius


def _items(scalar: Scalar, theta: Any, inputs: jax.Array, operands: Any, kind: Kind) -> tuple[jax.Array, ...]:
    """`(B, p)` parameters, `(B, ..)` inputs and `(B, k, p)` directions."""
    flat = ravel_pytree(theta)[0]

    def rows(vector: Any) -> jax.Array:
        return jnp.stack([ravel_pytree(v)[0] for v in (vector if kind == "mixed" else (vector,))])

    if kind == "points":
        gradients = lax.map(lambda p: rows(jax.grad(scalar)(theta, p)), operands)
        vectors, repeated = jnp.tile(gradients, (len(inputs), 1, 1)), jnp.repeat(inputs, len(operands), axis=0)
    else:
        vectors, repeated = lax.map(lambda x: rows(direction_at(scalar, theta, x, operands, kind)), inputs), inputs
    return jnp.broadcast_to(flat, (len(repeated), flat.size)), repeated, vectors


def _contraction(scalar: Scalar, kind: Kind, d: int, method: Method, unravel: Callable[[Any], Any]) -> Callable[..., Any]:
    """`contract(vectors, free_slot, theta, x, directions)` of the derivative of order D + d over d!, all vectors but one given."""

    def contract(vectors: Sequence[Any], free: int | None, theta: Any, x: Any, directions: Any) -> Any:
        given = tuple(unravel(v) for v in directions)
        coefficient = frozen_coefficient(scalar, x, given if kind == "mixed" else given[0], kind, d, method)
        return jax.grad(lambda t: mixed_derivative(lambda s: coefficient(unravel(s)), t, vectors))(theta)

    return contract


def _unfolding(contract: Callable[..., Any], batch: tuple[jax.Array, ...], slots: int, size: int) -> tuple[Array, Array]:
    """Spectral norm of the unfolding 1 | 2..D, rounded up, and the Frobenius norm: infinity and NaN beyond PRODUCTS products."""
    count = len(batch[0])
    indices = np.array(list(combinations_with_replacement(range(size), slots - 1))) if size ** (slots - 1) <= PRODUCTS else None
    if indices is None or count * len(indices) > PRODUCTS:
        return np.full(count, np.inf), np.full(count, np.nan)
    repeats = [math.prod(math.factorial(n) for n in np.unique(i, return_counts=True)[1]) for i in indices]
    counts = math.factorial(slots - 1) / np.array(repeats, np.float64)

    def one(item: tuple[jax.Array, ...]) -> jax.Array:
        def add(total: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            index, weight = step
            units = tuple(jnp.zeros(size).at[i].set(1.0) for i in index)
            column = contract(units, 0, *item)
            return total + weight * jnp.outer(column, column), None

        return lax.scan(add, jnp.zeros((size, size)), (jnp.asarray(indices), jnp.asarray(counts)))[0]

    gram = np.asarray(jax.jit(lambda items: lax.map(one, items))(batch))
    trace = np.trace(gram, axis1=1, axis2=2)
    # eigvalsh and the sum err by a few size * eps of the trace
    upper = np.sqrt(np.linalg.eigvalsh(gram)[:, -1] + 8 * size * np.finfo(np.float64).eps * trace)
    return upper, np.sqrt(trace)
