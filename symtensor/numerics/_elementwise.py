"""A JAX callable for an activation, by a strict walk over its SymPy expression."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import sympy

if TYPE_CHECKING:
    from symtensor.activation import Activation

Function = Callable[[jax.Array], jax.Array]

_STABLE: dict[str, Function] = {"softplus": jax.nn.softplus, "sigmoid": jax.nn.sigmoid}
_FUNCTIONS: dict[str, Callable[..., jax.Array]] = {
    "exp": jnp.exp,
    "log": jnp.log,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tan": jnp.tan,
    "sinh": jnp.sinh,
    "cosh": jnp.cosh,
    "tanh": jnp.tanh,
    "asinh": jnp.arcsinh,
    "atan": jnp.arctan,
    "erf": jax.scipy.special.erf,
    "erfc": jax.scipy.special.erfc,
    "Abs": jnp.abs,
    "sign": jnp.sign,
    "Max": lambda *values: functools.reduce(jnp.maximum, values),
    "Min": lambda *values: functools.reduce(jnp.minimum, values),
}
_PROBES = (-2.75, -1.3, -0.4, 0.15, 0.9, 2.2)
_RELATIONS = {
    sympy.StrictLessThan: operator.lt,
    sympy.LessThan: operator.le,
    sympy.StrictGreaterThan: operator.gt,
    sympy.GreaterThan: operator.ge,
}


@functools.lru_cache(maxsize=16)
def jax_function(activation: Activation) -> Function:
    """The activation as an elementwise JAX function (float64 in, float64 out).

    Raises
    ------
    TypeError
        If the expression holds a function without a JAX counterpart; the function is named.
    """
    if activation.name in _STABLE:
        return _STABLE[activation.name]
    expression = sympy.sympify(activation.expr)
    evaluate(expression, jnp.zeros((1,)))  # an unsupported node is refused here, not in the middle of a run
    return lambda x: evaluate(expression, x)


def require_same_function(function: Function, activation: Activation) -> None:
    """Refuse a callable that is not the named activation, by values at a few points.

    Raises
    ------
    ValueError
        If a value differs from the activation's expression; the point and both values are given.
    """
    expression = sympy.sympify(activation.expr)
    values = function(jnp.array(_PROBES, jnp.float64))
    if values.shape != (len(_PROBES),) or values.dtype != jnp.float64:
        raise ValueError(f"sigma must be elementwise in float64, it gives shape {values.shape} of {values.dtype}")
    for point, value in zip(_PROBES, values.tolist()):
        values_at = [(symbol, sympy.Float(point, 30)) for symbol in expression.free_symbols]
        expected = float(sympy.N(expression.subs(values_at), 17))  # type: ignore[arg-type]
        if not abs(value - expected) <= 1e-7 * (1.0 + abs(expected)):
            raise ValueError(f"sigma({point}) = {value}, but the activation {activation.name} has {expected} there")


def evaluate(node: sympy.Basic, x: jax.Array) -> jax.Array:
    """Value of an expression in one symbol at `x`."""
    if node.is_Symbol:
        return x
    if node.is_number and not node.free_symbols:
        return jnp.full_like(x, float(node))  # type: ignore[arg-type]
    if isinstance(node, sympy.Add | sympy.Mul):
        combine = operator.add if isinstance(node, sympy.Add) else operator.mul
        return functools.reduce(combine, (evaluate(argument, x) for argument in node.args))
    if isinstance(node, sympy.Pow):
        return _power(node, x)
    if isinstance(node, sympy.Piecewise):
        return _piecewise(node, x)
    if isinstance(node, sympy.Heaviside):
        return jnp.heaviside(evaluate(node.args[0], x), float(node.args[1]))  # type: ignore[arg-type]
    name = type(node).__name__
    if name not in _FUNCTIONS:
        raise TypeError(f"the simulator cannot evaluate {name} in the activation; supported: {sorted(_FUNCTIONS)}")
    return _FUNCTIONS[name](*(evaluate(argument, x) for argument in node.args))


def _power(node: sympy.Pow, x: jax.Array) -> jax.Array:
    base, exponent = node.args
    if base is sympy.E:
        return jnp.exp(evaluate(exponent, x))
    value = evaluate(base, x)
    if exponent.is_Integer:
        return jax.lax.integer_pow(value, int(exponent))  # type: ignore[arg-type]
    if exponent == sympy.Rational(1, 2):
        return jnp.sqrt(value)
    return jnp.power(value, evaluate(exponent, x))


def _piecewise(node: sympy.Piecewise, x: jax.Array) -> jax.Array:
    value = jnp.full_like(x, jnp.nan)  # reached only by a Piecewise without a default
    for branch, condition in reversed(node.args):  # type: ignore[misc]
        value = jnp.where(_condition(condition, x), evaluate(branch, x), value)
    return value


def _condition(node: sympy.Basic, x: jax.Array) -> jax.Array:
    if node in (sympy.true, sympy.false):
        return jnp.full(x.shape, node is sympy.true or node == sympy.true)
    if isinstance(node, sympy.And | sympy.Or):
        combine = jnp.logical_and if isinstance(node, sympy.And) else jnp.logical_or
        return functools.reduce(combine, (_condition(argument, x) for argument in node.args))
    for kind, compare in _RELATIONS.items():
        if isinstance(node, kind):
            return compare(evaluate(node.args[0], x), evaluate(node.args[1], x))
    raise TypeError(f"the simulator cannot evaluate the condition {node} of a Piecewise activation")
