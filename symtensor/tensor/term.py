"""Monomials: a coefficient times tensor components, summed over some of their indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import sympy

from symtensor.tensor.errors import IndexClashError
from symtensor.tensor.index import Index, Slot, dummy_names, slot_key

if TYPE_CHECKING:
    from symtensor.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Factor:
    """A component of a tensor: one index, or one integer counted from 0, per slot."""

    tensor: Tensor
    indices: tuple[Slot, ...]

    def relabelled(self, mapping: Mapping[Index, Slot]) -> Factor:
        """This component with indices replaced (all at once)."""
        slots = (mapping.get(slot, slot) if isinstance(slot, Index) else slot for slot in self.indices)
        return Factor(self.tensor, tuple(slots))


@dataclass(frozen=True, slots=True)
class Term:
    """`coefficient * product of factors`, summed over `summed` (sorted); every other index is in `free`.

    Raises: IndexClashError if one name stands for two indices, or a summed index occurs nowhere.
    """

    coefficient: sympy.Expr
    factors: tuple[Factor, ...]
    summed: tuple[Index, ...] = ()
    free: frozenset[Index] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        used = indices_of(self.factors)
        if len({index.name for index in used}) < len(used):
            _raise_ambiguous(used)
        for index in self.summed:
            if index not in used:
                raise IndexClashError(f"summed index {index} occurs in no factor: sum only over indices of the term")
        object.__setattr__(self, "summed", tuple(sorted(self.summed, key=slot_key)))
        object.__setattr__(self, "free", frozenset(used.difference(self.summed)))

    @property
    def names(self) -> set[str]:
        """The names of all indices, free and summed."""
        return {index.name for index in indices_of(self.factors)}


def indices_of(factors: Iterable[Factor]) -> set[Index]:
    """All indices (not integers) of some factors."""
    return {slot for factor in factors for slot in factor.indices if isinstance(slot, Index)}


def relabelled(term: Term, mapping: Mapping[Index, Slot]) -> Term:
    """The term with *free* indices replaced; summed indices that stand in the way get fresh names."""
    moved = renamed_apart(term, {slot.name for slot in mapping.values() if isinstance(slot, Index)})
    free_mapping = {index: slot for index, slot in mapping.items() if index in moved.free}
    factors = tuple(factor.relabelled(free_mapping) for factor in moved.factors)
    return Term(moved.coefficient, factors, moved.summed)


def renamed_apart(term: Term, taken: set[str]) -> Term:
    """The same term with summed indices renamed so that none is called as something in `taken`."""
    clashing = [index for index in term.summed if index.name in taken]
    if not clashing:
        return term
    fresh = dummy_names(taken | term.names)
    mapping = {index: Index(next(fresh), index.dimension) for index in clashing}
    factors = tuple(factor.relabelled(mapping) for factor in term.factors)
    return Term(term.coefficient, factors, tuple(mapping.get(index, index) for index in term.summed))


def multiplied(left: Term, right: Term) -> Term:
    """The product; a free index of both stays one free index, summed indices are kept apart."""
    left = renamed_apart(left, {index.name for index in right.free})
    right = renamed_apart(right, left.names)
    return Term(left.coefficient * right.coefficient, left.factors + right.factors, left.summed + right.summed)


def _raise_ambiguous(used: set[Index]) -> None:
    ordered = sorted(used, key=slot_key)
    first, second = next(pair for pair in pairwise(ordered) if pair[0].name == pair[1].name)
    raise IndexClashError(
        f"index {first} occurs with dimension {first.dimension} and with dimension {second.dimension}: rename one"
    )
