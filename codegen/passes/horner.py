"""Polynomials in nested (Horner) form: the factor shared by most terms is taken out, again and again.

Only sums of monomials are touched. Powers and products of sums stay as they are: expanding them would lose digits near
a root of high order.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..graph import Graph, Node, rebuild

__all__ = ["horner"]

_Monomial = dict[Node, int]


def horner(roots: tuple[Node, ...], graph: Graph) -> tuple[Node, ...]:
    """Rewrite every sum of at least two monomials."""
    return rebuild(roots, graph, _rule)


def _rule(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node | None:
    if node.op != "add":
        return None
    terms = [_monomial(argument) for argument in args]
    return _nested(graph, terms)


def _monomial(term: Node) -> tuple[Node | None, _Monomial]:
    """(constant factor or None, atom -> positive exponent)."""
    constant, powers = None, {}
    for factor in term.args if term.op == "mul" else (term,):
        if factor.op == "const":
            constant = factor
        elif factor.op == "pow" and int(factor.value) > 0:  # type: ignore[call-overload]
            powers[factor.args[0]] = int(factor.value)  # type: ignore[call-overload]
        else:
            powers[factor] = 1
    return constant, powers


def _nested(graph: Graph, terms: list[tuple[Node | None, _Monomial]]) -> Node:
    counts: dict[Node, int] = {}
    for _, powers in terms:
        for atom in powers:
            counts[atom] = counts.get(atom, 0) + 1
    shared = max(counts, key=lambda atom: counts[atom], default=None)  # the first one among equals
    if shared is None or counts[shared] < 2:
        return graph.add(*(_product(graph, constant, powers) for constant, powers in terms))
    least = min(powers[shared] for _, powers in terms if shared in powers)
    quotient = [(constant, _divided(powers, shared, least)) for constant, powers in terms if shared in powers]
    rest = [term for term in terms if shared not in term[1]]
    nested = graph.mul(graph.power(shared, least), _nested(graph, quotient))
    return graph.add(nested, _nested(graph, rest)) if rest else nested


def _divided(powers: Mapping[Node, int], atom: Node, exponent: int) -> _Monomial:
    left = {key: value - exponent if key is atom else value for key, value in powers.items()}
    return {key: value for key, value in left.items() if value}


def _product(graph: Graph, constant: Node | None, powers: _Monomial) -> Node:
    factors = [graph.power(atom, exponent) for atom, exponent in powers.items()]
    if constant is not None or not factors:
        factors.insert(0, constant if constant is not None else graph.const(1))
    return graph.mul(*factors)
