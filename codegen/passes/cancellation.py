r"""Differences that cancel, in forms that do not: conjugates of square roots, half angles, complements, logarithms near 1.

    c - sqrt(u)        (c^2 - u) / (c + sqrt(u))      if c^2 - u loses its constant, e.g. 1 - sqrt(1 - x^2)
    sqrt(u) - sqrt(v)  (u - v) / (sqrt(u) + sqrt(v))  if u - v is a number
    1 - cos u, cosh u - 1                             2 sin(u/2)^2, 2 sinh(u/2)^2
    1 - erf u, 1 - sigmoid u, 1 -+ tanh u             erfc u, sigmoid(-u), 2 sigmoid(-+2u)
    log cosh u, log sqrt(1 + w)                       log1p(2 sinh(u/2)^2), log1p(w)/2
    log(u + sqrt(u^2 + 1))                            asinh u

What is 0/0 or cancels in one variable without such a form is left to `removable`; what remains is found by certificates.
Reference: N. J. Higham, Accuracy and Stability of Numerical Algorithms (2002), section 1.7.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy as sp

from ..graph import Graph, Node, rebuild

__all__ = ["cancellation"]


def cancellation(roots: tuple[Node, ...], graph: Graph) -> tuple[Node, ...]:
    """Replace cancelling differences; expects folded sums (constant last, coefficient first)."""
    return rebuild(roots, graph, _rule)


def _rule(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node | None:
    if node.op == "add":
        return _with_constant(graph, args) or _roots(graph, args)
    if node.op == "call" and node.value == "log":
        return _log(graph, args[0])
    return None


def _split(term: Node) -> tuple[Any, Node]:
    """(rational coefficient, rest)."""
    if term.op == "mul" and len(term.args) == 2 and term.args[0].op == "const":
        return term.args[0].value, term.args[1]
    return sp.S.One, term


def _with_constant(graph: Graph, args: tuple[Node, ...]) -> Node | None:
    """c f(u) + constant with constant = -+ c."""
    constant = args[-1]
    if constant.op != "const":
        return None
    for place, term in enumerate(args[:-1]):
        coefficient, factor = _split(term)
        if factor.op != "call" or constant.value not in (coefficient, -coefficient):
            continue
        combined = _complement(graph, factor, constant.value == coefficient)
        if combined is not None:
            return graph.add(*args[:place], graph.mul(graph.const(coefficient), combined), *args[place + 1 : -1])
    return None


def _complement(graph: Graph, factor: Node, plus: bool) -> Node | None:
    """f(u) + 1 (`plus`) or f(u) - 1."""
    u = factor.args[0]

    def scaled(number: Any) -> Node:
        if u.op == "mul" and u.args[0].op == "const":
            product = u.args[0].value * number
            return graph.mul(*u.args[1:]) if product == 1 else graph.mul(graph.const(product), *u.args[1:])
        return graph.mul(graph.const(number), u)

    match (factor.value, plus):
        case ("cos", False):
            return graph.mul(graph.const(-2), graph.power(graph.call("sin", scaled(sp.S.Half)), 2))
        case ("cos", True):
            return graph.mul(graph.const(2), graph.power(graph.call("cos", scaled(sp.S.Half)), 2))
        case ("cosh", False):
            return graph.mul(graph.const(2), graph.power(graph.call("sinh", scaled(sp.S.Half)), 2))
        case ("erf", False):
            return graph.mul(graph.const(-1), graph.call("erfc", u))
        case ("sigmoid", False):
            return graph.mul(graph.const(-1), graph.call("sigmoid", scaled(-1)))
        case ("tanh", False):
            return graph.mul(graph.const(-2), graph.call("sigmoid", scaled(-2)))
        case ("tanh", True):
            return graph.mul(graph.const(2), graph.call("sigmoid", scaled(2)))
    return None


# -- square roots ------------------------------------------------------------------------------------------------------


def _roots(graph: Graph, args: tuple[Node, ...]) -> Node | None:
    """One pair a sqrt(u) + b sqrt(v) (or a constant for a sqrt(u)) of opposite signs, by its conjugate."""
    parts = [(place, *found) for place, term in enumerate(args) if (found := _root(graph, term)) is not None]
    for i, first, under in parts:
        for j, second, below in parts:
            if i >= j or (first > 0) == (second > 0) or (under.op == "const" and below.op == "const"):
                continue
            numerator = _combination(graph, ((first**2, under), (-(second**2), below)))
            if not _gains(numerator, under, below):
                continue
            opposite = graph.const(-args[j].value) if args[j].op == "const" else graph.mul(graph.const(-1), args[j])  # type: ignore[operator]
            denominator = graph.add(args[i], opposite)
            fraction = graph.mul(numerator, graph.power(denominator, -1))
            return graph.add(fraction, *(term for place, term in enumerate(args) if place not in (i, j)))
    return None


def _root(graph: Graph, term: Node) -> tuple[Any, Node] | None:
    """(a, u) of a sqrt(u); a constant c is c sqrt(1)."""
    if term.op == "const":
        return (term.value, graph.const(1)) if isinstance(term.value, sp.Rational) else None
    coefficient, factor = _split(term)
    if factor.op == "call" and factor.value == "sqrt" and isinstance(coefficient, sp.Rational):
        return coefficient, factor.args[0]
    return None


def _combination(graph: Graph, parts: Iterable[tuple[Any, Node]]) -> Node:
    """The sum of number * node, like terms of sums collected."""
    terms: dict[Node, Any] = {}
    one = graph.const(1)
    for number, node in parts:
        for term in node.args if node.op == "add" else (node,):
            coefficient, rest = (term.value, one) if term.op == "const" else _split(term)
            terms[rest] = terms.get(rest, sp.S.Zero) + number * coefficient  # type: ignore[operator]
    constant = terms.pop(one, sp.S.Zero)
    kept = [rest if number == 1 else graph.mul(graph.const(number), rest) for rest, number in terms.items() if number != 0]
    if constant != 0 or not kept:
        kept.append(graph.const(constant))
    return graph.add(*kept)


def _gains(numerator: Node, under: Node, below: Node) -> bool:
    """Whether the difference of the squares has lost what cancels, and the conjugate sum cannot vanish."""
    if numerator.op == "const":
        return numerator.value != 0
    constant = under.op == "const" or below.op == "const"
    return constant and (numerator.op != "add" or numerator.args[-1].op != "const")


# -- logarithms --------------------------------------------------------------------------------------------------------


def _log(graph: Graph, inside: Node) -> Node | None:
    """log(f) where f is known as 1 + something small, or as exp(asinh u)."""
    if inside.op == "call" and inside.value == "cosh":
        less = _complement(graph, inside, False)
        return graph.call("log1p", less) if less is not None else None
    if inside.op == "call" and inside.value == "sqrt":
        under = inside.args[0]
        if under.op == "add" and under.args[-1].op == "const" and under.args[-1].value == 1:
            return graph.mul(graph.const(sp.S.Half), graph.call("log1p", graph.add(*under.args[:-1])))
        return None
    return _asinh(graph, inside)


def _asinh(graph: Graph, inside: Node) -> Node | None:
    if inside.op != "add" or len(inside.args) != 2:
        return None
    for u, root in (inside.args, inside.args[::-1]):
        square = graph.add(graph.power(u, 2), graph.const(1))
        if root.op == "call" and root.value == "sqrt" and root.args[0] is square:
            return graph.call("asinh", u)
    return None
