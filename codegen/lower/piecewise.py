"""Piecewise expressions: every branch is evaluated where it holds only, so that gradients stay finite.

`where(x != 0, sin(x)/x, 1)` has the gradient nan at 0, because the branch that is not taken is differentiated too. The
branch is therefore evaluated at a point where its condition holds and it is regular (the "double where").
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportReturnType=false

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import sympy as sp

from ..graph import Node

if TYPE_CHECKING:
    from .expression import Converter

#: tried in this order as the point at which a branch that is not taken is evaluated
_CANDIDATES = tuple(map(sp.Rational, ("0", "1", "-1", "1/2", "-1/2", "2", "-2", "3", "-3", "10", "-10")))


def piecewise(converter: Converter, expr: sp.Piecewise) -> Node:
    """Nested selects.

    Raises
    ------
    UnsupportedNode
        No default branch (the value outside the conditions would be nan without a word), or a branch with a
        singularity for which no regular point is found.
    """
    if expr.args[-1].cond != sp.true:  # type: ignore[union-attr]
        raise converter.refuse(expr, ": it has no default branch; add (value, True)")
    graph = converter.graph
    holds, branches = sp.true, []
    for value, condition in expr.args:  # type: ignore[misc]
        branches.append((_guarded(converter, value, sp.And(holds, condition), expr), condition))
        holds = sp.And(holds, sp.Not(condition))
    result = branches[-1][0]
    for value, condition in reversed(branches[:-1]):
        result = graph.node("select", (converter.convert(condition), value, result))
    return result


def _guarded(converter: Converter, value: sp.Expr, holds: sp.Basic, whole: sp.Piecewise) -> Node:
    """The branch with its variables replaced by a safe point where its condition does not hold."""
    symbols = sorted(value.free_symbols, key=str)
    if not symbols or value.is_polynomial(*symbols) or holds == sp.true:
        return converter.convert(value)
    point = _safe_point(value, holds, sorted(value.free_symbols | holds.free_symbols, key=str))
    if point is None:
        raise converter.refuse(whole, f": found no point where {holds} holds and {value} is regular")
    graph, condition = converter.graph, converter.convert(holds)
    inner = type(converter)(dict(converter.names), converter.where, graph)
    inner.cache = {
        symbol: graph.node("select", (condition, converter.convert(symbol), graph.const(point[symbol])))
        for symbol in symbols
    }
    return inner.convert(value)


def _safe_point(value: sp.Expr, holds: sp.Basic, symbols: list[sp.Symbol]) -> dict[sp.Symbol, sp.Rational] | None:
    if len(symbols) > 3:
        return None
    for numbers in product(_CANDIDATES, repeat=len(symbols)):
        point = dict(zip(symbols, numbers))
        if holds.subs(point) != sp.true:
            continue
        samples = [value, *(sp.diff(value, symbol) for symbol in symbols)]
        if all(_finite(sample.subs(point)) for sample in samples):
            return point
    return None


def _finite(number: sp.Expr) -> bool:
    value = sp.N(number)
    return bool(value.is_real and value.is_finite)
