"""One equation of a jaxpr as a function of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["apply_equation", "inexact", "tangent_of"]


def apply_equation(equation: Any, values: Sequence[Any]) -> list[Any]:
    """The results of one equation at other operands, custom derivative rules kept."""
    params = equation.primitive.get_bind_params(equation.params)
    functions: Sequence[Any] = ()
    if isinstance(params, tuple):  # JAX up to 0.8 gives the functions apart, later versions among the parameters
        functions, params = params
    out = equation.primitive.bind(*functions, *values, **params)
    return list(out) if equation.primitive.multiple_results else [out]


def tangent_of(equation: Any, places: Sequence[int]) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
    """`(operands, tangents of those at the places) -> tangents of the results`, by the rule of the primitive or its own."""

    def tangent(values: Sequence[Any], tangents: Sequence[Any]) -> Any:
        def some(*parts: Any) -> Any:
            full = list(values)
            for i, part in zip(places, parts):
                full[i] = part
            return [jnp.asarray(y) for y in apply_equation(equation, full) if inexact(y)]

        return jax.jvp(some, tuple(values[i] for i in places), tuple(tangents))[1]

    return tangent


def inexact(value: Any) -> bool:
    """Whether the entries are real or complex numbers, which have derivatives."""
    return bool(jnp.issubdtype(jnp.result_type(value), jnp.inexact))
