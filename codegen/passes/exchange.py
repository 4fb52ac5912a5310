"""Sums of which one half is the other with the two halves of the axes exchanged: X_abef + X_efab.

Products of broadcast arrays cost a load for each factor; half of them, and one transposed load, are fewer.
"""

from __future__ import annotations

from collections.abc import Sequence

from symtensor.tensor import Index, TensorExpr, Term

__all__ = ["exchanged_half"]

#: pairs of terms below which nothing is gained
_FEWEST = 2


def exchanged_half(terms: Sequence[Term], axes: Sequence[Index]) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    """(half, rest): the sum of the canonical terms is X + X with the first and second half of the axes exchanged + rest.

    `half`, the terms of X, is empty where fewer than two pairs of terms are found.
    """
    size = len(axes) // 2
    first, second = axes[:size], axes[size:]
    if len(axes) % 2 or not axes or any(a.dimension != b.dimension for a, b in zip(first, second)):
        return (), tuple(terms)
    exchange = dict(zip((*first, *second), (*second, *first)))
    waiting: dict[TensorExpr, Term] = {}
    half: list[Term] = []
    rest = []
    for term in terms:
        key = TensorExpr((term,), term.free)
        image = key.rename({index: exchange[index] for index in axes if index in term.free})
        if image == key:
            rest.append(term)
        elif key in waiting:
            half.append(max(waiting.pop(key), term, key=lambda one: _leading_diagonals(one, first)))
        else:
            waiting[image] = term
    if len(half) < _FEWEST:
        return (), tuple(terms)
    chosen = {id(term) for term in (*rest, *waiting.values())}
    return tuple(half), tuple(term for term in terms if id(term) in chosen)


def _leading_diagonals(term: Term, first: Sequence[Index]) -> int:
    """Slots that repeat an index of the first half: diagonals of leading axes are read from memory in longer runs."""
    return sum(len(slots) - len(set(slots)) for factor in term.factors if (slots := [s for s in factor.indices if s in first]))
