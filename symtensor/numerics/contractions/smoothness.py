"""Operations with kinks or jumps on the way from the parameters to the value: found in the jaxpr before anything is computed.

Automatic differentiation drops the delta terms of such a derivative without a word: for ReLU the second derivative is a
delta function and AD returns 0. A first derivative of a kinked function is right almost everywhere and is let through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
from jax.extend import core as jex

from symtensor.numerics.contractions._equations import inexact, tangent_of

__all__ = ["KinkedOperationError", "require_smooth", "rough_operations"]

KINKS = frozenset(
    (
        "max min abs clamp reduce_max reduce_min cummax cummin sort top_k reduce_window_max reduce_window_min rem "
        "select_and_gather_add"
    ).split()
)
JUMPS = frozenset("sign floor ceil round argmax argmin nextafter".split())
_COMPARISONS = frozenset("lt le gt ge lt_to le_to".split())
_NO_PIECES = frozenset("stop_gradient eq ne is_finite".split())  # no dependence, or only on a set of measure zero
_LEVELS = 6  # custom rules of custom rules that are looked into

# None: does not depend on the parameters; otherwise the rough operations met on the way
Found: TypeAlias = frozenset[str] | None


class KinkedOperationError(ValueError):
    """A derivative was asked for whose delta terms automatic differentiation would drop."""


def rough_operations(function: Callable[..., Any], *arguments: Any, fixed: Sequence[Any] = ()) -> frozenset[str]:
    """Names of the primitives with kinks or jumps that act on what depends on `arguments` and reach the value.

    Parameters
    ----------
    function
        `function(*arguments, *fixed) -> array`.
    arguments, fixed
        Pytrees of arrays or of shapes; what depends on `fixed` only is constant.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> sorted(rough_operations(lambda t: jnp.sum(jnp.maximum(t, 0.0)), jnp.ones(3)))
    ['max']
    >>> sorted(rough_operations(lambda t: jax.nn.logsumexp(t), jnp.ones(3)))  # its maximum is subtracted and cancels
    []
    """
    closed = jax.make_jaxpr(function)(*arguments, *fixed)
    varying = sum(len(jax.tree.leaves(a)) for a in arguments)
    given: list[Found] = [frozenset() if i < varying else None for i in range(len(closed.jaxpr.invars))]
    return frozenset().union(*(f for f in _walk(closed.jaxpr, given, 0) if f))


def require_smooth(function: Callable[..., Any], theta: Any, x: Any, order: int) -> None:
    """Refuse derivatives of the given order in theta of a function with kinks (from order 2) or jumps (from order 1).

    Raises
    ------
    KinkedOperationError
        Naming the primitive and what can be done instead.
    """
    found = rough_operations(function, theta, fixed=(x,))
    wrong = sorted(name for name in found if order >= 2 or (order == 1 and name.split()[0] in JUMPS))
    if wrong:
        raise KinkedOperationError(
            f"the function applies {', '.join(map(repr, wrong))} to what depends on theta, and derivatives of order {order} are "
            "asked for: from the second on (the first, for jumps) they have delta terms that automatic differentiation drops "
            "(it gives 0 for relu''). Use a smooth activation (tanh, erf, gelu, softplus); or ask for orders with D + d <= 1; "
            "or take Gaussian expectations by Stein's identity E f'(Z) = E Z f(Z) (symtensor.numerics.moment_table with "
            "derivatives='hermite'); assume_smooth=True if you know that the pieces join smoothly"
        )


def _walk(jaxpr: Any, given: Sequence[Found], level: int) -> list[Found]:
    table: dict[Any, Found] = dict.fromkeys(jaxpr.constvars)
    table.update(zip(jaxpr.invars, given))
    before_abs: dict[Any, Found] = {}
    for equation in jaxpr.eqns:
        arguments = [None if isinstance(atom, jex.Literal) else table[atom] for atom in equation.invars]
        name = equation.primitive.name
        if name == "log" and equation.invars[0] in before_abs:  # log|x| has no delta terms: where x = 0 it is not finite
            arguments = [before_abs[equation.invars[0]]]
        table.update(zip(equation.outvars, _apply(equation, arguments, level)))
        if name == "abs":
            before_abs[equation.outvars[0]] = arguments[0]
    return [None if isinstance(atom, jex.Literal) else table[atom] for atom in jaxpr.outvars]


def _apply(equation: Any, given: list[Found], level: int) -> list[Found]:
    name, params, count = equation.primitive.name, equation.params, len(equation.outvars)
    if all(found is None for found in given) or name in _NO_PIECES:
        return [None] * count
    met = frozenset().union(*(found for found in given if found))
    if name.startswith("custom_jvp"):
        return [met | _custom_rule(equation, level)] * count
    if name == "scan":
        return _fixed_point(params["jaxpr"].jaxpr, given, params["num_consts"], params["num_carry"], level)
    if name == "while":
        return _while(params, given, level)
    if name == "cond":
        branches = [_walk(b.jaxpr, given[1:], level) for b in params["branches"]]
        chosen = None if given[0] is None else given[0] | {"cond on a comparison"}
        return [_joined(chosen, *parts) for parts in zip(*branches)]
    inner = next((params[key] for key in ("jaxpr", "call_jaxpr") if key in params), None)
    if inner is not None and hasattr(getattr(inner, "jaxpr", inner), "eqns"):
        inner = getattr(inner, "jaxpr", inner)
        if len(inner.invars) == len(given):
            return _walk(inner, given, level)
    if name in KINKS or name in JUMPS:
        met |= {name}
    elif name in _COMPARISONS:
        met |= {"select on a comparison"}
    return [met] * count


def _joined(*parts: Found) -> Found:
    known = [part for part in parts if part is not None]
    return frozenset().union(*known) if known else None


def _fixed_point(jaxpr: Any, given: list[Found], constants: int, carried: int, level: int) -> list[Found]:
    state = list(given)
    while True:
        out = _walk(jaxpr, state, level)
        merged = [_joined(a, b) for a, b in zip(state[constants : constants + carried], out[:carried])]
        if merged == state[constants : constants + carried]:
            return out
        state[constants : constants + carried] = merged


def _while(params: dict[str, Any], given: list[Found], level: int) -> list[Found]:
    tests, constants = params["cond_nconsts"], params["body_nconsts"]
    carried = len(given) - tests - constants
    out = _fixed_point(params["body_jaxpr"].jaxpr, given[tests:], constants, carried, level)
    (stop,) = _walk(params["cond_jaxpr"].jaxpr, [*given[:tests], *out], level)
    return out if stop is None else [_joined(found, stop, frozenset({"while on a comparison"})) for found in out]


def _custom_rule(equation: Any, level: int) -> frozenset[str]:
    """What the derivative rule applies: the derivatives are taken of that, not of the function it stands for."""
    if level >= _LEVELS:
        return frozenset()
    shapes = [jax.ShapeDtypeStruct(atom.aval.shape, atom.aval.dtype) for atom in equation.invars]
    places = [i for i, shape in enumerate(shapes) if inexact(shape)]
    closed = jax.make_jaxpr(tangent_of(equation, places))(shapes, [shapes[i] for i in places])
    out = _walk(closed.jaxpr, [frozenset()] * len(closed.jaxpr.invars), level + 1)
    return frozenset().union(*(found for found in out if found))
