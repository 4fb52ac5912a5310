"""The canonical form of a monomial under slot symmetries, exchange of factors and renaming of summed indices.

A term falls into connected components (factors joined by summed indices). For each, the least *code* is found: the
list of components in an order of our choice, slots permuted by the symmetry of each head, summed indices numbered in
order of appearance. The search builds that list one factor at a time and keeps every way of reaching the least prefix,
so the result is exact; ways that leave the same remaining factors are merged (what was numbered before no longer
matters), which keeps the search small although graph isomorphism is hidden in it. A component that reaches one state
with both signs equals its own negative and is zero.

The work grows with the number of automorphisms that are met on the way: a term of a few tensors of rank 4 takes a
fraction of a millisecond, a vacuum graph of several fully symmetric tensors of rank 6 takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from symtensor.tensor.delta import reduce_deltas
from symtensor.tensor.index import Index, Slot, dummy_names, slot_key
from symtensor.tensor.scalars import exact_form, normal_form
from symtensor.tensor.term import Factor, Term

if TYPE_CHECKING:
    from symtensor.tensor.tensor import Tensor

# A slot as an integer: free index, concrete component, numbered summed index, summed index without number yet.
_COMPONENT, _NUMBERED, _UNNUMBERED = 1 << 40, 2 << 40, 3 << 40

# (slots, rank of the head among the heads of the term): a factor in coded form.
_Coded: TypeAlias = "tuple[tuple[int, ...], int]"

# Beyond this many equally good prefixes, remaining factors are brought to a normal form so that more of them merge.
_MERGE_HARDER = 8


def canonical_terms(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Like terms collected, each in canonical form, in a fixed order; zero terms dropped."""
    collected: dict[tuple[tuple[Factor, ...], tuple[Index, ...]], list] = {}
    for term in terms:
        monomial = canonical_monomial(term)
        if monomial is not None:
            collected.setdefault((monomial.factors, monomial.summed), []).append(monomial.coefficient)
    result = []
    for (factors, summed), coefficients in collected.items():
        total = sum(coefficients[1:], coefficients[0])
        if exact_form(total) != 0:
            result.append(Term(normal_form(total), factors, summed))
    return tuple(sorted(result, key=_term_key))


def canonical_monomial(term: Term) -> Term | None:
    """The term with deltas reduced, slots, factors and summed indices in canonical order; None if it is zero."""
    reduced = reduce_deltas(term, identify_free=True)
    if reduced is None:
        return None
    heads = sorted({factor.tensor for factor in reduced.factors}, key=lambda head: head.sort_key)
    free = sorted(reduced.free, key=slot_key)
    sign, codes = 1, []
    for component in _components(_encoded(reduced, heads, free)):
        found = _least_code(component, heads)
        if found is None:
            return None
        codes.append(found[0])
        sign *= found[1]
    return _decoded(sign * reduced.coefficient, sorted(codes), heads, free, reduced)


def _encoded(term: Term, heads: list[Tensor], free: list[Index]) -> list[_Coded]:
    code = {index: number for number, index in enumerate(free)}
    code.update({index: _UNNUMBERED + number for number, index in enumerate(term.summed)})
    rank = {head: number for number, head in enumerate(heads)}
    return [
        (
            tuple(_COMPONENT + slot if isinstance(slot, int) else code[slot] for slot in factor.indices),
            rank[factor.tensor],
        )
        for factor in term.factors
    ]


def _components(factors: list[_Coded]) -> list[list[_Coded]]:
    """Groups of factors that are joined by summed indices."""
    groups: list[tuple[set[int], list[_Coded]]] = []
    for factor in factors:
        joined, members = {slot for slot in factor[0] if slot >= _UNNUMBERED}, [factor]
        apart = []
        for group in groups:
            if joined.isdisjoint(group[0]):
                apart.append(group)
            else:
                joined, members = joined | group[0], group[1] + members
        groups = [*apart, (joined, members)]
    return [members for _, members in groups]


def _least_code(component: list[_Coded], heads: list[Tensor]) -> tuple[tuple[_Coded, ...], int] | None:
    """The least code of a connected component and its sign; None if the component is zero."""
    states: dict[tuple[_Coded, ...], int] = {tuple(sorted(component)): 1}
    code: list[_Coded] = []
    numbered = 0
    for _ in component:
        least, states = _extended(states, numbered, heads)
        if not states:
            return None
        code.append(least)
        numbered = max(numbered, *(slot - _NUMBERED + 1 for slot in least[0]), 0)
    return tuple(code), states[()]


def _extended(
    states: dict[tuple[_Coded, ...], int], numbered: int, heads: list[Tensor]
) -> tuple[_Coded, dict[tuple[_Coded, ...], int]]:
    """The least next factor over all states, and the states it leads to (none if they contradict in sign)."""
    least: _Coded | None = None
    choices: list[tuple[tuple[_Coded, ...], int, int, dict[int, int]]] = []
    for remaining, sign in states.items():
        previous = None
        for position, factor in enumerate(remaining):
            if factor == previous:  # equal factors are next to each other; one of them is enough
                continue
            previous = factor
            slots, rank = factor
            for permutation, element_sign in heads[rank].symmetry.elements:
                image, numbers = _numbered_image(slots, permutation, numbered)
                candidate = (image, rank)
                if least is None or candidate < least:
                    least, choices = candidate, []
                if candidate == least:
                    choices.append((remaining, position, sign * element_sign, numbers))
    assert least is not None
    return least, _merged(choices, heads)


def _numbered_image(
    slots: tuple[int, ...], permutation: tuple[int, ...], numbered: int
) -> tuple[tuple[int, ...], dict[int, int]]:
    """The permuted slots, and the numbers that their unnumbered summed indices get in order of appearance."""
    numbers: dict[int, int] = {}
    image = []
    for source in permutation:
        slot = slots[source]
        if slot >= _UNNUMBERED:
            slot = numbers.setdefault(slot, _NUMBERED + numbered + len(numbers))
        image.append(slot)
    return tuple(image), numbers


def _merged(
    choices: list[tuple[tuple[_Coded, ...], int, int, dict[int, int]]], heads: list[Tensor]
) -> dict[tuple[_Coded, ...], int]:
    merged: dict[tuple[_Coded, ...], int] = {}
    harder = len(choices) > _MERGE_HARDER
    for remaining, position, sign, numbers in choices:
        rest = remaining[:position] + remaining[position + 1 :]
        if numbers:
            rest = tuple((tuple(numbers.get(slot, slot) for slot in slots), rank) for slots, rank in rest)
        if harder:
            least = [_least_image(factor, heads) for factor in rest]
            rest = tuple(factor for factor, _ in least)
            for _, element_sign in least:
                sign *= element_sign
        state = tuple(sorted(rest))
        if merged.setdefault(state, sign) != sign or sign == 0:
            return {}
    return merged


def _least_image(factor: _Coded, heads: list[Tensor]) -> tuple[_Coded, int]:
    """The factor with the least order of slots and its sign, which is 0 if both signs occur (the factor is zero)."""
    slots, rank = factor
    images: dict[tuple[int, ...], int] = {}
    for permutation, sign in heads[rank].symmetry.elements:
        image = tuple(slots[source] for source in permutation)
        if images.setdefault(image, sign) != sign:
            return factor, 0
    least = min(images)
    return (least, rank), images[least]


def _decoded(coefficient, codes: list[tuple[_Coded, ...]], heads: list[Tensor], free: list[Index], term: Term) -> Term:
    """The term that the codes of its components describe, with names for the summed indices."""
    names = dummy_names({index.name for index in free})
    factors: list[tuple[tuple, Factor]] = []
    summed: list[Index] = []
    for code in codes:
        numbers: dict[int, Index] = {}
        for slots, rank in code:
            indices: list[Slot] = []
            for slot, dimension in zip(slots, heads[rank].dimensions, strict=True):
                if slot >= _NUMBERED:
                    if slot not in numbers:
                        numbers[slot] = Index(next(names), dimension)
                    indices.append(numbers[slot])
                else:
                    indices.append(slot - _COMPONENT if slot >= _COMPONENT else free[slot])
            factor = Factor(heads[rank], tuple(indices))
            factors.append(((rank, tuple(slot_key(slot) for slot in indices)), factor))
        summed.extend(numbers.values())
    factors.sort(key=lambda entry: entry[0])
    return Term(coefficient, tuple(factor for _, factor in factors), tuple(summed))


def _term_key(term: Term) -> tuple:
    return tuple((factor.tensor.sort_key, tuple(map(slot_key, factor.indices))) for factor in term.factors)
