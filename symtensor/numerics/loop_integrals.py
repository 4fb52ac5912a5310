"""Loop integrals over frequencies by the trapezoidal rule on the mapped line, in JAX. Importing this module imports JAX.

    int dk/(2 pi) f(k) = sum_j f(s tan x_j) s (1 + tan^2 x_j) / (2 M),     x_j = -pi/2 + (j + 1/2) pi / M

For rational f that decay like 1/k^2 or faster the integrand is analytic and periodic in x: the error falls exponentially in M.
The scale s of a loop grows with the frequencies that its lines share with others, where the poles of f lie further apart; with
two loops or more on one line the error falls like a power, about M^-3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["FrequencyLine", "LoopDiagram", "loop_integral", "mapped_nodes", "spectrum"]

#: combinations of loop frequencies evaluated at a time
CHUNK = 4096


@dataclass(frozen=True, slots=True)
class FrequencyLine:
    """A propagator R(w) or C(w), w = sum of `flow` times (external, loop_1, ..); rows are the end of the line.

    `rows`, `columns`: components there; a single one has no axis and no letter in `subscripts`.
    """

    letter: str
    flow: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    subscripts: str


@dataclass(frozen=True, slots=True)
class LoopDiagram:
    """A diagram in frequency space: lines, vertex tensors (name, fixed components, subscripts), number of loops."""

    lines: tuple[FrequencyLine, ...]
    tensors: tuple[tuple[str, tuple[int | None, ...], str], ...]
    loops: int


def mapped_nodes(count: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for int dk/(2 pi).

    >>> k, w = mapped_nodes(32, 1.5)
    >>> round(float(np.sum(w * 2 / (1 + k**2))), 12)
    1.0
    """
    angle = -np.pi / 2 + (np.arange(count) + 0.5) * np.pi / count
    return scale * np.tan(angle), scale / np.cos(angle) ** 2 / (2 * count)


def loop_integral(diagram: LoopDiagram, linear: Any, omega: Any, nodes: int, scale: float) -> jax.Array:
    """The integral of a diagram over its loop frequencies, without coefficient, at an external frequency (a scalar).

    `linear` has the arrays drift, noise, and the vertex tensors by name.
    """
    unit, weights = mapped_nodes(nodes, 1.0)
    total = nodes**diagram.loops
    size = min(CHUNK, total)
    chunks = -(-total // size)

    def part(start: Any) -> Any:
        place = start + jnp.arange(size)
        inside = place < total
        carried, weight = [jnp.full(size, omega)], jnp.where(inside, 1.0, 0.0)
        for loop in range(1, diagram.loops + 1):
            outside = [carried[k] for k in range(loop) if any(line.flow[k] and line.flow[loop] for line in diagram.lines)]
            reach = scale * jnp.sqrt(1 + sum(((k / scale) ** 2 for k in outside), jnp.zeros(size)))
            carried.append(reach * jnp.asarray(unit)[place % nodes])
            weight = weight * reach * jnp.asarray(weights)[place % nodes]
            place = place // nodes
        return _contracted(diagram, linear, carried, weight)

    return jnp.sum(jax.lax.map(part, size * jnp.arange(chunks)), axis=0)


def _contracted(diagram: LoopDiagram, linear: Any, carried: Sequence[Any], weight: Any) -> Any:
    """The sum over a batch (letter Z) of loop frequencies of the product of all lines and tensors."""
    scalars, operands, specs = weight, [], []
    for line in diagram.lines:
        flowing = sum((c * k for c, k in zip(line.flow, carried) if c), jnp.zeros_like(weight))
        block = _block(_propagator(line.letter, linear.drift, linear.noise, flowing), line)
        if line.subscripts:
            operands.append(block)
            specs.append("Z" + line.subscripts)
        else:
            scalars = scalars * block
    for name, fixed, letters in diagram.tensors:
        operands.append(getattr(linear, name)[tuple(slice(None) if at is None else at for at in fixed)])
        specs.append(letters)
    return jnp.einsum(",".join(["Z", *specs]) + "->", scalars, *operands, optimize="auto") if operands else jnp.sum(scalars)


def _propagator(letter: str, drift: Any, noise: Any, omega: Any) -> Any:
    """R(w) = (A - i w)^-1 or C(w) = R(w) B R(-w)^T, arrays (batch, n, n)."""
    inverse = drift - 1j * omega[:, None, None] * jnp.eye(drift.shape[0])
    if drift.shape[0] == 1:
        return 1 / inverse if letter == "R" else noise / (inverse * jnp.conj(inverse))
    response = jnp.linalg.inv(inverse)
    return response if letter == "R" else response @ noise @ jnp.conj(response).transpose(0, 2, 1)


def _block(array: Any, line: FrequencyLine) -> Any:
    for axis, parts in ((2, line.columns), (1, line.rows)):
        array = jnp.take(array, np.array(parts).reshape(-1 if len(parts) > 1 else ()), axis=axis)
    return array


def spectrum(
    linear: Callable[..., Any], diagrams: Mapping[int, Sequence[tuple[int, LoopDiagram]]], nodes: int, scale: float
) -> Callable[..., dict[int, Any]]:
    """The jitted function (omega, parameters) -> {loops: sum of coefficients times diagrams}.

    `linear` maps the parameters to arrays, `coefficients` among them; diagrams are paired with their place there.
    """

    @jax.jit
    def orders(omega: Any, parameters: Mapping[str, Any]) -> dict[int, Any]:
        arrays = linear(**{name: jnp.asarray(value, float) for name, value in parameters.items()})
        arrays = jax.lax.optimization_barrier(arrays)  # constants would be multiplied out by the compiler, slowly
        given = jnp.asarray(omega, float)

        def at(one: Any) -> dict[int, Any]:
            zero = jnp.zeros((), jnp.result_type(one, 1j))
            return {
                loops: sum((arrays.coefficients[k] * loop_integral(each, arrays, one, nodes, scale) for k, each in group), zero)
                for loops, group in diagrams.items()
            }

        found = jax.lax.map(at, given.ravel())
        return {loops: value.reshape(given.shape) for loops, value in found.items()}

    return orders
