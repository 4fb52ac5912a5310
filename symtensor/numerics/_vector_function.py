"""JAX functions of a vector from SymPy expressions, by a strict walk over their trees."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import sympy as sp

from symtensor.numerics._elementwise import _FUNCTIONS as FUNCTIONS

__all__ = ["vector_function"]


def vector_function(
    expressions: Any, variables: Sequence[Any], parameters: Mapping[Any, Any] | None = None
) -> Callable[[jax.Array], jax.Array]:
    """x of shape (len(variables), walkers) -> values of shape (*shape of expressions, walkers).

    Raises TypeError for a function without a JAX counterpart, ValueError for a symbol without a value.
    """
    names = [str(name) for name in variables]
    values = {str(name): sp.sympify(value) for name, value in (parameters or {}).items()}
    nested = expressions.tolist() if isinstance(expressions, sp.MatrixBase) else expressions
    table = _mapped(nested, lambda part: _prepared(sp.sympify(part), names, values))

    def function(x: jax.Array) -> jax.Array:
        put = dict(zip(names, x))
        return jnp.stack(_stacked(table, lambda part: _value(part, put, x[0])))

    return function


def _mapped(parts: Any, change: Callable[[Any], Any]) -> list[Any]:
    return [_mapped(part, change) if isinstance(part, list | tuple) else change(part) for part in parts]


def _stacked(parts: Any, change: Callable[[Any], jax.Array]) -> list[jax.Array]:
    return [jnp.stack(_stacked(part, change)) if isinstance(part, list) else change(part) for part in parts]


def _prepared(expression: sp.Expr, names: Sequence[str], values: Mapping[str, Any]) -> sp.Expr:
    """Parameters replaced by their values; the remaining symbols are variables, all functions are known."""
    parameters = [s for s in expression.free_symbols if str(s) in values and str(s) not in names]
    found: Any = expression.xreplace({s: values[str(s)] for s in parameters})
    unknown = sorted(str(s) for s in found.free_symbols if str(s) not in names)
    if unknown:
        raise ValueError(f"the parameter {unknown[0]} has no value; give parameters={{{unknown[0]!r}: ..}}")
    for node in sp.preorder_traversal(found):
        known = node.is_Symbol or node.is_number or isinstance(node, sp.Add | sp.Mul | sp.Pow) or type(node).__name__ in FUNCTIONS
        if not known:
            supported = ", ".join(sorted(FUNCTIONS))
            raise TypeError(f"the simulator cannot evaluate {type(node).__name__} in {found}; supported: {supported}")
        if node.is_number and not sp.im(node) == 0:
            raise ValueError(f"the coefficient {node} is not real")
    return found


def _value(node: Any, put: Mapping[str, jax.Array], like: jax.Array) -> jax.Array:
    if node.is_Symbol:
        return put[str(node)]
    if node.is_number:
        return jnp.full_like(like, float(node))
    parts = node.args
    if isinstance(node, sp.Add | sp.Mul):
        combine = operator.add if isinstance(node, sp.Add) else operator.mul
        return functools.reduce(combine, (_value(part, put, like) for part in parts))
    if isinstance(node, sp.Pow):
        return _power(node, put, like)
    return FUNCTIONS[type(node).__name__](*(_value(part, put, like) for part in parts))


def _power(node: Any, put: Mapping[str, jax.Array], like: jax.Array) -> jax.Array:
    base, exponent = node.args
    if base is sp.E:
        return jnp.exp(_value(exponent, put, like))
    value = _value(base, put, like)
    if exponent.is_Integer:
        return jax.lax.integer_pow(value, int(exponent))
    if exponent == sp.S.Half:
        return jnp.sqrt(value)
    return jnp.power(value, _value(exponent, put, like))
