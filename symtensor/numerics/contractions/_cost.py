"""Work counted in the jaxpr: independent of the machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

__all__ = ["Cost", "count_work"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one evaluation does.

    Attributes
    ----------
    operations
        Floating-point operations: 2 m n k for a product of matrices, one for each entry of any other result.
    primitives
        Equations of the jaxpr, loops counted as often as they run.
    applications
        Products with vectors that an iteration for a norm made; 0 without an iteration.
    """

    operations: float
    primitives: int
    applications: int = 0


def count_work(function: Callable[..., Any], *arguments: Any) -> Cost:
    """Count the operations of a function of arrays or shapes.

    A loop of unknown length counts once.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> count_work(lambda a, b: a @ b, jnp.ones((2, 3)), jnp.ones((3, 4)))
    Cost(operations=48.0, primitives=1, applications=0)
    """
    operations, primitives = _walk(jax.make_jaxpr(function)(*arguments).jaxpr)
    return Cost(operations, primitives)


def _walk(jaxpr: Any) -> tuple[float, int]:
    operations, primitives = 0.0, 0
    for equation in jaxpr.eqns:
        inner = [getattr(j, "jaxpr", j) for j in _inner(equation.params)]
        if inner:
            parts = [_walk(j) for j in inner]
            times = equation.params.get("length", 1) if equation.primitive.name == "scan" else 1
            operations += times * max(p[0] for p in parts)
            primitives += times * max(p[1] for p in parts)
            continue
        operations += _operations(equation)
        primitives += 1
    return operations, primitives


def _inner(params: dict[str, Any]) -> list[Any]:
    found = [v for value in params.values() for v in (value if isinstance(value, tuple | list) else (value,))]
    return [v for v in found if hasattr(getattr(v, "jaxpr", v), "eqns")]


def _operations(equation: Any) -> float:
    out = float(sum(math.prod(v.aval.shape) for v in equation.outvars))
    if equation.primitive.name == "dot_general":
        (left, _), _ = equation.params["dimension_numbers"]
        return 2.0 * out * math.prod(equation.invars[0].aval.shape[i] for i in left)
    if equation.primitive.name == "conv_general_dilated":
        kernel = equation.invars[1].aval.shape
        return 2.0 * out * math.prod(kernel) / kernel[equation.params["dimension_numbers"].rhs_spec[0]]
    return out
