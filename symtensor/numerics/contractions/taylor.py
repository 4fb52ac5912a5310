"""Taylor coefficients of a JAX function along a straight line, and the same numbers by two other routes.

`F(theta + e v) = sum_k c_k e^k`. The default route walks the jaxpr of F once, carrying for each value its coefficients;
a coefficient that is zero because nothing of that order reaches it is kept as None and costs nothing, which for a line in
theta saves most products of weights. Linear and bilinear primitives are done here, elementwise functions by the rules of
`jax.experimental.jet`. Everything else, custom derivative rules included, is reduced by

    y(e) = f(x(e)):    (k + 1) y_(k+1) = [f'(x(e)) x'(e)]_k

to one order less of its own jvp, which costs a polynomial in the order, not 2^order as nested jvp does.

References
----------
Griewank, Walther, "Evaluating Derivatives", SIAM 2008, chapter 13 (Taylor arithmetic).
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import jet as jax_jet
from jax.extend import core as jex

from symtensor.numerics.contractions._equations import apply_equation, inexact, tangent_of

__all__ = ["Method", "line_coefficients", "mixed_derivative"]

Method = Literal["taylor", "jet", "nested"]
Series: TypeAlias = list[Any]  # c_0, .., c_d; None is an exact zero

# linear in the operands at these places, the others (indices, predicates) hold no series
_LINEAR: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(
        "neg real imag conj convert_element_type broadcast_in_dim reshape squeeze rev transpose slice reduce_sum cumsum copy "
        "copy_p reduce_precision expand_dims fft device_put reduce_window_sum split".split(),
        (0,),
    ),
    **dict.fromkeys(("dynamic_slice", "gather"), (0,)),
    **dict.fromkeys(("add", "add_any", "sub", "complex", "pad", "dynamic_update_slice"), (0, 1)),
    **dict.fromkeys(("concatenate", "stack", "unstack"), None),
    **dict.fromkeys(("scatter-add", "scatter_add", "scatter"), (0, 2)),
}
_BILINEAR = {"mul", "dot_general", "conv_general_dilated"}
_CALLS = {
    **dict.fromkeys(("jit", "pjit", "remat2", "checkpoint"), "jaxpr"),
    **dict.fromkeys(("closed_call", "core_call"), "call_jaxpr"),
}
_LOCALLY_CONSTANT = frozenset("stop_gradient sign floor ceil round argmax argmin is_finite lt le gt ge eq ne".split())

_COEFFICIENTS = "factorial_scaled" in inspect.signature(jax_jet.jet).parameters


def line_coefficients(
    function: Callable[[Any], Any], point: Any, direction: Any, order: int, method: Method = "taylor"
) -> list[jax.Array]:
    r"""`c_k = (1/k!) d^k/de^k F(point + e direction)` at e = 0, for k = 0, .., order.

    Parameters
    ----------
    function
        `F(theta) -> array`, theta a pytree of floating-point arrays.
    point, direction
        Pytrees of one structure.
    order
        The highest k.
    method
        "taylor": one walk with all coefficients; "jet": `jax.experimental.jet` on the whole function; "nested": nested jvp,
        whose cost grows as 2^order.

    Examples
    --------
    >>> [float(c) for c in line_coefficients(jnp.exp, 0.0, 1.0, 3)]
    [1.0, 1.0, 0.5, 0.16666666666666666]
    """
    if order == 0:
        return [function(point)]
    if method == "nested":
        return _nested(function, point, direction, order)
    leaves, structure = jax.tree.flatten(point)
    steps = jax.tree.leaves(direction)

    def flat(*parts: Any) -> Any:
        return function(jax.tree.unflatten(structure, parts))

    if method == "jet":
        return _by_jet(flat, [jnp.asarray(leaf) for leaf in leaves], [[jnp.asarray(v)] for v in steps], order)
    closed = jax.make_jaxpr(flat)(*leaves)
    padding = [None] * (order - 1)
    return [
        jnp.zeros_like(closed.out_avals[0]) if c is None else c
        for c in _walk(closed.jaxpr, closed.consts, [[p, v, *padding] for p, v in zip(leaves, steps)], order)[0]
    ]


def mixed_derivative(function: Callable[[Any], Any], point: Any, directions: Sequence[Any]) -> jax.Array:
    """`grad^d F(point)[v_1, .., v_d]` for different directions, by nested jvp: 2^d evaluations.

    Examples
    --------
    >>> float(mixed_derivative(lambda x: x[0] * x[1] ** 2, jnp.array([2.0, 3.0]), [jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0])]))
    6.0
    """
    for direction in directions:
        function = functools.partial(_directional, function, direction)
    return function(point)


def _directional(function: Callable[[Any], Any], direction: Any, point: Any) -> Any:
    return jax.jvp(function, (point,), (direction,))[1]


def _nested(function: Callable[[Any], Any], point: Any, direction: Any, order: int) -> list[jax.Array]:
    along: Callable[[Any], Any] = lambda e: function(jax.tree.map(lambda p, v: p + e * v, point, direction))  # noqa: E731
    values, zero = [], jnp.zeros(())
    for k in range(order + 1):
        values.append(along(zero) / math.factorial(k))
        along = functools.partial(_directional, along, jnp.ones(()))
    return values


def _by_jet(flat: Callable[..., Any], primals: Sequence[Any], series: Sequence[Series], order: int) -> list[Any]:
    """Coefficients by `jax.experimental.jet`, whose default convention is derivatives: e^t -> 1, 1, 1.

    Its own factorials are exp(lgamma), wrong in the last digit: later versions can be asked for coefficients instead.
    """
    factorials = [1 if _COEFFICIENTS else math.factorial(k) for k in range(order + 1)]
    terms = []
    for primal, given in zip(primals, series):
        filled = [*given, *[None] * (order - len(given))]
        terms.append([jnp.zeros_like(primal) if c is None else factorials[k] * c for k, c in enumerate(filled, 1)])
    options = {"factorial_scaled": False} if _COEFFICIENTS else {}
    value, out = jax_jet.jet(flat, list(primals), terms, **options)
    return [value, *(y / factorials[k] for k, y in enumerate(out, 1))]


def _walk(jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Series], order: int) -> list[Series]:
    """Evaluate a jaxpr on series of length order + 1."""
    blank = [None] * order
    table: dict[Any, Series] = {}

    def read(atom: Any) -> Series:
        return [atom.val, *blank] if isinstance(atom, jex.Literal) else table[atom]

    table.update(zip(jaxpr.constvars, ([c, *blank] for c in consts)))
    table.update(zip(jaxpr.invars, arguments))
    for equation in jaxpr.eqns:
        results = _apply(equation, [read(atom) for atom in equation.invars], order)
        table.update(zip(equation.outvars, results))
    return [read(atom) for atom in jaxpr.outvars]


def _apply(equation: Any, given: list[Series], order: int) -> list[Series]:
    name, params = equation.primitive.name, equation.params
    primals = [s[0] for s in given]
    active = [any(c is not None for c in s[1:]) for s in given]
    if not any(active) or name in _LOCALLY_CONSTANT:
        return [[value, *[None] * order] for value in apply_equation(equation, primals)]
    if name in _LINEAR or name == "select_n":
        return _linear(equation, given, order, tuple(range(1, len(given))) if name == "select_n" else _LINEAR[name])
    if name in _BILINEAR:
        return [_bilinear(equation, given, order)]
    if name == "div" and not active[1]:
        return [[None if c is None else c / primals[1] for c in given[0]]]
    if name in _CALLS:
        inner = params[_CALLS[name]]
        return _walk(*((inner.jaxpr, inner.consts) if hasattr(inner, "consts") else (inner, ())), given, order)
    if name == "scan":
        return _scan(params, given, order)
    if name == "cond":
        return _cond(params, given, order)
    if _elementwise(equation):
        values = _by_jet(lambda *a: apply_equation(equation, a)[0], primals, [s[1:] for s in given], order)
        return [[apply_equation(equation, primals)[0], *values[1:]]]
    return _by_own_derivative(equation, given, order)


def _elementwise(equation: Any) -> bool:
    """A function of one array with a rule in `jet`, whose result has the shape of the operand."""
    shapes = {atom.aval.shape for atom in (*equation.invars, *equation.outvars)}
    return equation.primitive in jax_jet.jet_rules and len(shapes) == 1 and not equation.primitive.multiple_results


def _linear(equation: Any, given: list[Series], order: int, places: tuple[int, ...] | None) -> list[Series]:
    places = tuple(range(len(given))) if places is None else places
    results = [[value] for value in apply_equation(equation, [s[0] for s in given])]
    for k in range(1, order + 1):
        if all(given[i][k] is None for i in places):
            terms = [None] * len(results)
        elif equation.primitive.name in ("add", "add_any", "sub") and any(given[i][k] is None for i in places):
            terms = [_one_sided(equation, given[0][k], given[1][k])]
        else:
            operands = [_filled(s, k) if i in places else s[0] for i, s in enumerate(given)]
            terms = apply_equation(equation, operands)
        for result, term in zip(results, terms):
            result.append(term)
    return results


def _one_sided(equation: Any, left: Any, right: Any) -> Any:
    term = left if right is None else (-right if equation.primitive.name == "sub" else right)
    return jnp.broadcast_to(term, equation.outvars[0].aval.shape)


def _filled(series: Series, k: int) -> Any:
    return jnp.zeros_like(series[0]) if series[k] is None else series[k]


def _bilinear(equation: Any, given: list[Series], order: int) -> Series:
    left, right = given
    result: Series = []
    for k in range(order + 1):
        terms = [
            apply_equation(equation, (left[j], right[k - j]))[0]
            for j in range(k + 1)
            if left[j] is not None and right[k - j] is not None
        ]
        result.append(functools.reduce(jnp.add, terms) if terms else None)
    return result


def _by_own_derivative(equation: Any, given: list[Series], order: int) -> list[Series]:
    """One order less of the jvp of the primitive (or of its custom rule), at the series of x and of x'."""
    places = [i for i, s in enumerate(given) if any(c is not None for c in s[1:])]
    primals = [s[0] for s in given]

    shifted = [[None if c is None else k * c for k, c in enumerate(given[i][1:], 1)] for i in places]
    for s, i in zip(shifted, places):
        s[0] = jnp.zeros_like(primals[i]) if s[0] is None else s[0]
    closed = jax.make_jaxpr(tangent_of(equation, places))(primals, [s[0] for s in shifted])
    slopes = iter(_walk(closed.jaxpr, closed.consts, [*(s[:order] for s in given), *shifted], order - 1))
    results = []
    for value in apply_equation(equation, primals):
        slope = next(slopes) if inexact(value) else [None] * order
        results.append([value, *(None if c is None else c / k for k, c in enumerate(slope, 1))])
    return results


def _dense(series: Series) -> Series:
    return [_filled(series, k) for k in range(len(series))] if inexact(series[0]) else [series[0]]


def _sparse(dense: Sequence[Any], order: int) -> Series:
    return [*dense, *[None] * (order + 1 - len(dense))]


def _scan(params: dict[str, Any], given: list[Series], order: int) -> list[Series]:
    """The body on series; carried values have all their coefficients, so that their structure does not change."""
    inner, first, second = params["jaxpr"], params["num_consts"], params["num_consts"] + params["num_carry"]
    fixed = given[:first]

    def body(carry: list[Series], item: list[Series]) -> tuple[list[Series], list[Series]]:
        arguments = [*fixed, *(_sparse(c, order) for c in carry), *(_sparse(c, order) for c in item)]
        out = [_dense(s) for s in _walk(inner.jaxpr, inner.consts, arguments, order)]
        return out[: params["num_carry"]], out[params["num_carry"] :]

    carried, scanned = [_dense(s) for s in given[first:second]], [_dense(s) for s in given[second:]]
    final, stacked = lax.scan(body, carried, scanned, length=params["length"], reverse=params["reverse"])
    return [_sparse(s, order) for s in (*final, *stacked)]


def _cond(params: dict[str, Any], given: list[Series], order: int) -> list[Series]:
    active = [_dense(s) for s in given[1:]]
    branches = [
        lambda *args, b=branch: [_dense(s) for s in _walk(b.jaxpr, b.consts, [_sparse(a, order) for a in args], order)]
        for branch in params["branches"]
    ]
    return [_sparse(s, order) for s in lax.switch(given[0][0], branches, *active)]
