"""What a workload is, and helpers to write the hand-written side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp
from jax import lax

__all__ = ["Workload", "by_stages", "lambdified"]

Function = Callable[..., Any]


@dataclass(frozen=True)
class Workload:
    """One computation.

    Attributes
    ----------
    name, title
        Short and long name.
    points
        Elements that a time is divided by.
    arguments
        Arrays, in the order that every contender takes them.
    contenders
        Name -> what makes the function, measured with its compilation; `symtensor` and `hand` are always there. A name that
        starts with "(" is shown beside and does not run in JAX.
    flops, bytes
        Of the least work known, per point: the floor is the larger of both over the machine's rates.
    functions
        Nanoseconds per point of the exponentials and the like that are unavoidable.
    tolerance
        Largest difference of results, relative to the largest entry.
    certified
        Makes what `codegen.certify` takes: the same computation, of any size.
    """

    name: str
    title: str
    points: int
    arguments: Sequence[Any]
    contenders: Mapping[str, Callable[[], Function]]
    flops: float
    bytes: float
    functions: float = 0.0
    tolerance: float = 1e-10
    certified: Callable[[], Any] | None = None


def lambdified(symbols: Sequence[sp.Symbol], expressions: Sequence[sp.Expr]) -> Function:
    """SymPy's own emitter with its common subexpressions."""
    return sp.lambdify(symbols, list(expressions), "jax", cse=True)


def by_stages(symbols: Sequence[sp.Symbol], expressions: Sequence[sp.Expr], block: int = 4096) -> Function:
    """The best way known to write many outputs by hand: functions and reciprocals in a first loop, polynomials after it."""
    kinds = (sp.exp, sp.log, sp.sin, sp.cos, sp.tanh)
    calls: dict[sp.Expr, sp.Symbol] = {}
    rest = [_named(expr, kinds, calls) for expr in expressions]
    inner = lambdified(symbols, _inlined(calls))
    outer = lambdified([*symbols, *calls.values()], rest)

    def function(*arguments: Any) -> Any:
        kept = lax.map(lambda values: tuple(inner(*values)), arguments, batch_size=block)
        return outer(*arguments, *kept)

    return function


def _named(expr: sp.Expr, kinds: tuple[type, ...], calls: dict[sp.Expr, sp.Symbol]) -> sp.Expr:
    """The expression with every function and reciprocal replaced by a symbol, inner ones first."""
    if not expr.args:
        return expr
    made = expr.func(*(_named(argument, kinds, calls) for argument in expr.args))
    if isinstance(made, kinds):
        return calls.setdefault(made, sp.Symbol(f"s{len(calls)}", real=True))
    if isinstance(made, sp.Pow) and made.exp.is_Integer and made.exp < 0:
        return calls.setdefault(1 / made.base, sp.Symbol(f"s{len(calls)}", real=True)) ** -made.exp
    return made


def _inlined(calls: Mapping[sp.Expr, sp.Symbol]) -> list[sp.Expr]:
    known: dict[sp.Symbol, sp.Expr] = {}
    for call, symbol in calls.items():
        known[symbol] = call.xreplace(known)
    return list(known.values())

