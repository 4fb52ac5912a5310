"""Exact expectations of products of derivative tensors: what the cluster rule bounds, computed by Wick's theorem."""

from __future__ import annotations

from itertools import product
from math import factorial

import sympy

from .cluster import Correlation
from .derivative_networks import derivative_contraction
from .network import GaussianNetwork, Indices, NetworkSum
from .network_moments import MAX_STATES, expectation_of, prefix, tidy

__all__ = ["exact_correlation"]


def exact_correlation(
    function: GaussianNetwork | NetworkSum, correlation: Correlation, *, max_states: int = MAX_STATES
) -> sympy.Expr:
    """E of a fully contracted product of derivative tensors of a polynomial network function, as a function of the sizes.

    Every contraction runs over all parameters: it is summed over the parameter tensors.

    Raises:
        WickCostError: more than ``max_states`` classes of partial pairings in one expectation.

    Example:
        >>> from symtensor.bounds.derivative_networks import deep_linear_network
        >>> exact_correlation(deep_linear_network(1), Correlation((("a", "b"), ("a",), ("b",), ())))
        2*q**2/n
    """
    networks = {order: _derivative(function, order) for order in set(correlation.orders)}
    edges = list(dict.fromkeys(i for held in correlation.tensors for i in held))
    kinds = sorted({name for term in function.terms for name, _ in term.random})
    total = sympy.S.Zero
    for chosen in product(kinds, repeat=len(edges)):
        kind = dict(zip(edges, chosen, strict=True))
        wanted = [tuple(kind[i] for i in held) for held in correlation.tensors]
        blocks = [networks[len(held)].get(held) for held in wanted]
        if all(block is not None for block in blocks):
            total += expectation_of(_joined(correlation, [b for b in blocks if b is not None]), max_states)
    return tidy(total)


def _derivative(function: GaussianNetwork | NetworkSum, order: int) -> dict[Indices, NetworkSum]:
    """grad^order F by the parameter tensors of its slots: order! C_{order,0}."""
    found = derivative_contraction(function, order, 0, eta=1)
    return {kinds: network * factorial(order) for kinds, network in found.blocks}


def _joined(correlation: Correlation, blocks: list[NetworkSum]) -> list[tuple[NetworkSum, tuple[tuple[str, str], ...]]]:
    """The factors with the index pairs that each contraction identifies."""
    seen: dict[str, list[str]] = {}
    parts = []
    for vertex, (held, block) in enumerate(zip(correlation.tensors, blocks, strict=True)):
        joins: list[tuple[str, str]] = []
        for slot, edge in enumerate(held):
            own = sorted(f"{vertex}.{i}" for i in block.free if i.startswith(f"s{slot}."))
            joins += zip(seen[edge], own, strict=True) if edge in seen else ()
            seen.setdefault(edge, own)
        parts.append((prefix(f"{vertex}.", block), tuple(joins)))
    return parts
