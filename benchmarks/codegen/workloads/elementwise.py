"""(a) Taylor coefficients, (b) gradient and Hessian, (c) a dense polynomial: scalar expressions on batches."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from math import factorial
from typing import Any

import jax.numpy as jnp
import numpy as np
import sympy as sp

import symtensor

from .workload import Workload, by_stages, lambdified

__all__ = ["hessian", "polynomial", "taylor_coefficients"]


def _arrays(count: int, batch: int, low: float = -1.0, high: float = 1.0) -> list[Any]:
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.uniform(low, high, batch)) for _ in range(count)]


def _compiled(symbols: Sequence[sp.Symbol], outputs: Sequence[sp.Expr]) -> Any:
    named = {f"y{place}": expr for place, expr in enumerate(outputs)}
    return symtensor.compile(named if len(outputs) > 1 else outputs[0], symbols, reference_points=False)


def _contenders(
    symbols: Sequence[sp.Symbol], outputs: Sequence[sp.Expr], hand: Callable[[], Any]
) -> Mapping[str, Callable[[], Any]]:
    found = {
        "symtensor": lambda: _compiled(symbols, outputs).function,
        "hand": hand,
        "lambdify": lambda: lambdified(symbols, outputs),
    }
    try:
        import sympy2jax
    except ImportError:
        pass
    else:

        def emitted() -> Any:
            module = sympy2jax.SymbolicModule(list(outputs))
            return lambda *values: module(**{symbol.name: value for symbol, value in zip(symbols, values)})

        found["sympy2jax"] = emitted
    try:
        import symengine
    except ImportError:
        pass
    else:

        def llvm() -> Any:
            function = symengine.Lambdify(symbols, list(outputs), backend="llvm", cse=True, order="F")
            return lambda *values: list(function(np.stack([np.asarray(value) for value in values])))

        found["(symengine)"] = llvm
    found["(numba)"] = lambda: _numba(symbols, outputs)
    return found


def _numba(symbols: Sequence[sp.Symbol], outputs: Sequence[sp.Expr]) -> Any:
    """One loop over the points with all outputs, fast math."""
    import numba

    replaced, reduced = sp.cse(list(outputs))
    names = [symbol.name for symbol in symbols]
    lines = [f"def f(out, {', '.join(names)}):", f"  for i in range({names[0]}.shape[0]):"]
    lines += [f"    {name}_ = {name}[i]" for name in names]
    local = {symbol: sp.Symbol(f"{symbol.name}_") for symbol in symbols}
    lines += [f"    {symbol} = {sp.pycode(expr.xreplace(local))}" for symbol, expr in replaced]
    lines += [f"    out[{place}, i] = {sp.pycode(expr.xreplace(local))}" for place, expr in enumerate(reduced)]
    scope: dict[str, Any] = {"math": __import__("math")}
    exec("\n".join(lines), scope)
    compiled = numba.njit(scope["f"], fastmath=True)

    def function(*values: Any) -> Any:
        arrays = [np.asarray(value) for value in values]
        out = np.empty((len(outputs), len(arrays[0])))
        compiled(out, *arrays)
        return list(out)

    return function


def taylor_coefficients(batch: int = 100_000) -> Workload:
    """The 35 coefficients to order 4 of tanh(a tanh(b tanh(c x + d y) + e y z))."""
    x, y, z = symbols = sp.symbols("x y z", real=True)
    a, b, c, d, e = (sp.Rational(k, 10) for k in (13, 7, 9, -6, 11))
    expr = sp.tanh(a * sp.tanh(b * sp.tanh(c * x + d * y) + e * y * z))
    derivatives: dict[tuple[int, ...], sp.Expr] = {(0, 0, 0): expr}
    outputs = []
    for power in sorted((p for p in itertools.product(range(5), repeat=3) if sum(p) <= 4), key=lambda p: (sum(p), p)):
        if sum(power):
            slot = next(slot for slot in range(3) if power[slot])
            below = tuple(k - (place == slot) for place, k in enumerate(power))
            derivatives[power] = sp.diff(derivatives[below], symbols[slot])
        outputs.append(derivatives[power] / sp.prod(map(factorial, power)))
    contenders = _contenders(symbols, outputs, lambda: by_stages(symbols, outputs))
    return Workload("a", "35 Taylor coefficients", batch, _arrays(3, batch), contenders, 1500, 8 * 38, 3 * 2.5, 1e-9,
                    lambda: _compiled(symbols, outputs))  # fmt: skip


def hessian(batch: int = 100_000) -> Workload:
    """Gradient and Hessian of a rational, exponential and trigonometric function of six variables."""
    x = sp.symbols("x0:6", real=True)
    f = sp.exp(-(x[0] ** 2) - x[1] * x[2]) * sp.sin(x[3] + x[4] * x[0]) / (1 + x[5] ** 2 + x[1] ** 2)
    f += sp.log(1 + x[2] ** 2 * x[3] ** 2) / (2 + sp.exp(x[4] - x[5])) + x[0] * x[1] / (1 + x[4] ** 2) ** 2
    outputs = [sp.diff(f, v) for v in x] + [sp.diff(f, v, w) for place, v in enumerate(x) for w in x[place:]]
    contenders = _contenders(x, outputs, lambda: by_stages(x, outputs))
    functions = 2 * 2.5 + 2 * 15 + 10 + 4 * 1.7
    title = "gradient + Hessian, 6 variables"
    return Workload("b", title, batch, _arrays(6, batch), contenders, 290, 8 * 33, functions, 1e-12,
                    lambda: _compiled(x, outputs))  # fmt: skip


def polynomial(batch: int = 100_000, degree: int = 10) -> Workload:
    """A dense polynomial in four variables: 1001 terms at degree 10."""
    symbols = sp.symbols("x y z w", real=True)
    numbers = random.Random(1)
    table = {
        power: sp.Rational(numbers.randrange(-99, 99), numbers.randrange(1, 99))
        for power in itertools.product(range(degree + 1), repeat=4)
        if sum(power) <= degree
    }
    output = sp.Add(*(number * sp.Mul(*map(sp.Pow, symbols, power)) for power, number in table.items()))

    def nested(power: tuple[int, ...], values: Sequence[Any]) -> Any:
        """Horner in the variable that comes next, highest power first."""
        if len(power) == 4:
            return float(table[power])
        result = None
        for k in range(degree - sum(power), -1, -1):
            coefficient = nested((*power, k), values)
            result = coefficient if result is None else result * values[len(power)] + coefficient
        return result

    contenders = _contenders(symbols, [output], lambda: lambda *values: nested((), values))
    title = f"polynomial of {len(table)} terms"
    return Workload("c", title, batch, _arrays(4, batch), contenders, 2 * len(table), 8 * 5, 0, 1e-9,
                    lambda: _compiled(symbols, [output]))  # fmt: skip
