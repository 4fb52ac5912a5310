"""Gradients of emitted scalar functions by JAX, at many points at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .jax_backend import require_dtype

if TYPE_CHECKING:
    from ..module import GeneratedModule

__all__ = ["derivative_products", "gradients"]


def gradients(
    module: GeneratedModule, name: str, points: Mapping[str, np.ndarray], dtype: str, compiled: bool = True
) -> dict[str, dict[str, np.ndarray]]:
    """d output / d argument of an elementwise function: output -> argument -> values at the points.

    Parameters
    ----------
    points
        Argument -> one value per point.
    compiled
        False: operation by operation, for functions whose derivatives would take long to compile.

    Notes
    -----
    Reverse mode; a function that has none (a loop of unknown length) is differentiated forwards.
    """
    import jax
    import jax.numpy as jnp

    require_dtype(dtype)
    names = list(points)
    columns = [jnp.asarray(points[key], dtype) for key in names]
    outputs = [output.name for output in module.signatures[name].outputs]
    function = getattr(module.load(), name)

    def of_scalars(*values: Any) -> Any:
        result = function(**dict(zip(names, values)))
        return tuple(result) if isinstance(result, tuple) else (result,)

    def evaluate(mode: Any) -> Any:
        derivative = jax.vmap(mode(of_scalars, argnums=tuple(range(len(names)))))
        if compiled:
            return jax.jit(derivative)(*columns)
        with jax.disable_jit():
            return derivative(*columns)

    try:
        table = evaluate(jax.jacrev)
    except (ValueError, NotImplementedError):
        table = evaluate(jax.jacfwd)
    return {output: {key: np.asarray(value) for key, value in zip(names, row)} for output, row in zip(outputs, table)}


def derivative_products(
    module: GeneratedModule, name: str, arguments: Mapping[str, Any], direction: Mapping[str, np.ndarray], dtype: str
) -> tuple[dict[str, np.ndarray], float]:
    """J v forwards, output by output, and sum_k <1, (J v)_k> in reverse, for the direction v of the array arguments.

    The second number comes from the gradient of the sum of all outputs, so it tests `jax.grad` and not only `jax.jvp`.
    """
    import jax
    import jax.numpy as jnp

    require_dtype(dtype)
    static = {key: value for key, value in arguments.items() if isinstance(value, int)}
    given = {key: jnp.asarray(np.asarray(value, dtype=float), dtype) for key, value in arguments.items() if key not in static}
    along = {key: jnp.asarray(np.asarray(direction[key], dtype=float), dtype) for key in given}
    outputs = [output.name for output in module.signatures[name].outputs]
    function = getattr(module.load(), name)

    def values(given: dict[str, Any]) -> dict[str, Any]:
        result = function(**given, **static)
        return dict(zip(outputs, result)) if isinstance(result, tuple) else {outputs[0]: result}

    def total(given: dict[str, Any]) -> Any:
        return sum(jnp.sum(value) for value in values(given).values())

    _, forwards = jax.jvp(values, (given,), (along,))
    gradient = jax.grad(total)(given)
    reverse = sum(float(jnp.sum(gradient[key] * along[key])) for key in given)
    return {key: np.asarray(value) for key, value in forwards.items()}, reverse
