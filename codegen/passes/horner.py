"""Polynomials in nested (Horner) form: the factor shared by most terms is taken out, again and again.

Only sums of monomials are touched. Powers and products of sums stay as they are: expanding them would lose digits near
a root of high order. The work is n log n in the number of terms times their degree.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from ..graph import Graph, Node, rebuild

__all__ = ["horner"]

_Monomial = dict[Node, int]
_Term = tuple["Node | None", _Monomial]


def horner(roots: tuple[Node, ...], graph: Graph) -> tuple[Node, ...]:
    """Rewrite every sum of at least two monomials."""
    return rebuild(roots, graph, _rule)


def _rule(graph: Graph, node: Node, args: tuple[Node, ...]) -> Node | None:
    if node.op != "add":
        return None
    terms = [_monomial(argument) for argument in args]
    return _nested(graph, terms)


def _monomial(term: Node) -> _Term:
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


def _nested(graph: Graph, terms: list[_Term]) -> Node:
    """Depth first without recursion: `None` on the stack puts a nested sum together once its quotient is done."""
    done: list[list[Node]] = [[]]  # finished terms of the sums that are open
    stack: list[tuple[list[_Term], Node | None] | None] = [(terms, None)]
    opened: list[Node | None] = []
    while stack:
        work = stack.pop()
        if work is None:
            total, factor = graph.add(*done.pop()), opened.pop()
            done[-1].append(total if factor is None else graph.mul(factor, total))
            continue
        group, factor = work
        quotients, rest = _taken_out(graph, group)
        opened.append(factor)
        done.append([])
        stack.append(None)
        done[-1] += [_product(graph, constant, powers) for constant, powers in rest]
        stack.extend(reversed(quotients))
    return done[0][0]


def _taken_out(graph: Graph, terms: list[_Term]) -> tuple[list[tuple[list[_Term], Node]], list[_Term]]:
    """(quotient, power taken out) for the atom in most terms, then for the atom in most of the others, ..; what is left.

    The heap holds outdated counts too: an entry is valid if it agrees with the count now.
    """
    places: dict[Node, dict[int, None]] = {}
    for place, (_, powers) in enumerate(terms):
        for atom in powers:
            places.setdefault(atom, {})[place] = None
    rank = {atom: number for number, atom in enumerate(places)}
    heap = [(-len(where), rank[atom], atom) for atom, where in places.items() if len(where) > 1]
    heapify(heap)
    quotients: list[tuple[list[_Term], Node]] = []
    left = dict(enumerate(terms))
    while heap:
        count, _, shared = heappop(heap)
        where = places[shared]
        if -count != len(where) or len(where) < 2:
            continue
        least = min(terms[place][1][shared] for place in where)
        divided = [(terms[place][0], _divided(terms[place][1], shared, least)) for place in where]
        quotients.append((divided, graph.power(shared, least)))
        for place in list(where):
            del left[place]
            for atom in terms[place][1]:
                del places[atom][place]
                if len(places[atom]) > 1:
                    heappush(heap, (-len(places[atom]), rank[atom], atom))
    return quotients, list(left.values())


def _divided(powers: Mapping[Node, int], atom: Node, exponent: int) -> _Monomial:
    left = {key: value - exponent if key is atom else value for key, value in powers.items()}
    return {key: value for key, value in left.items() if value}


def _product(graph: Graph, constant: Node | None, powers: _Monomial) -> Node:
    factors = [graph.power(atom, exponent) for atom, exponent in powers.items()]
    if constant is not None or not factors:
        factors.insert(0, constant if constant is not None else graph.const(1))
    return graph.mul(*factors)
