"""Like terms of a sum of networks: terms that differ by the names of summed indices are added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

import sympy

from ._wick import Classes, Component, canonical, connected
from .network import DELTA, GaussianNetwork

__all__ = ["collected"]

Key = tuple[tuple[Component, ...], tuple[tuple[int, int], ...]]


def collected(terms: Iterable[GaussianNetwork]) -> tuple[GaussianNetwork, ...]:
    """The terms with isomorphic ones added up; a term whose coefficient cancels is left out unless it is the last."""
    given = list(terms)
    names = sorted({name for term in given for name, _ in term.factors if name != DELTA})
    free = sorted({i for term in given for i in term.free})
    kinds: dict[Hashable, int] = {name: kind for kind, name in enumerate([*names, *(("free", i) for i in free)])}
    sizes = sorted({size for term in given for _, size in term.sizes}, key=sympy.default_sort_key)
    colors = {size: color for color, size in enumerate(sizes)}
    found: dict[Key, list[GaussianNetwork]] = {}
    for term in given:
        found.setdefault(_key(term, kinds, colors), []).append(term)
    merged = [(group[0], sympy.Add(*(term.coefficient for term in group))) for group in found.values()]
    kept = [(term, value) for term, value in merged if sympy.expand(value) != 0] or merged[:1]
    return tuple(GaussianNetwork(term.factors, term.sizes, term.summed, value, term.variances, term.gram) for term, value in kept)


def _key(term: GaussianNetwork, kinds: dict[Hashable, int], colors: dict[sympy.Expr, int]) -> Key:
    """Canonical components with the free indices marked, and the loops of indices that no factor holds."""
    classes = Classes()
    for name, held in term.factors:
        if name == DELTA:
            classes.join(*held)
    sizes = dict(term.sizes)
    labels = {i: classes.find(i) for i in sizes}
    order = {label: position for position, label in enumerate(dict.fromkeys(labels.values()))}
    color = [0] * len(order)
    for i, label in labels.items():
        color[order[label]] = colors[sizes[i]]
    factors = [(kinds[name], tuple(order[labels[i]] for i in held)) for name, held in term.factors if name != DELTA]
    factors += [(kinds["free", i], (order[labels[i]],)) for i in term.free]
    used = {i for _, held in factors for i in held}
    loops = Counter(color[i] for i in range(len(order)) if i not in used)
    return tuple(sorted(canonical(group, color) for group in connected(factors))), tuple(sorted(loops.items()))
