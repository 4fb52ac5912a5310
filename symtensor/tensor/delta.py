"""Kronecker deltas: contraction over summed indices, and the normal form of what remains."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from symtensor.tensor.errors import IndexClashError
from symtensor.tensor.index import DimensionLike, Index, Slot, dimension_size, slot_key
from symtensor.tensor.term import Factor, Term, indices_of

if TYPE_CHECKING:
    from symtensor.tensor.tensor import Tensor


@dataclass(slots=True)
class _Class:
    """Index values that the deltas of a term set equal: integers, free indices and summed indices of one dimension."""

    head: Tensor
    members: set[Slot] = field(default_factory=set)

    def split(self, term: Term) -> tuple[list[int], list[Index], list[Index]]:
        ordered = sorted(self.members, key=slot_key)
        integers = [slot for slot in ordered if isinstance(slot, int)]
        free = [slot for slot in ordered if isinstance(slot, Index) and slot in term.free]
        summed = [slot for slot in ordered if isinstance(slot, Index) and slot not in term.free]
        return integers, free, summed


def reduce_deltas(term: Term, *, identify_free: bool) -> Term | None:
    """Eliminate summed indices that a delta sets equal to another index; None if the term is zero.

    Only summed indices disappear; the free indices stay exactly the same. Two different integers set equal give zero,
    equal ones give 1, and a traced delta gives the dimension. With `identify_free`, free indices set equal by a delta
    are also written the same way in the other factors (delta_ab V_b becomes delta_ab V_a), which makes the form unique.
    """
    others = [factor for factor in term.factors if not factor.tensor.is_delta]
    if len(others) == len(term.factors):
        return term
    mapping: dict[Index, Slot] = {}
    remaining: list[tuple[_Class, Slot, list[Index]]] = []
    for cls in _classes(factor for factor in term.factors if factor.tensor.is_delta):
        integers, free, summed = cls.split(term)
        if len(integers) > 1:
            return None
        root = (integers + free + summed)[0]
        mapping.update({index: root for index in summed if index != root})
        if identify_free:
            mapping.update({index: root for index in free if index != root})
        remaining.append((cls, root, [index for index in free if index != root]))
    factors = [factor.relabelled(mapping) for factor in others]
    reduced = _with_remaining_deltas(term, factors, remaining, mapping)
    if reduced.free != term.free:
        raise IndexClashError(f"internal: delta contraction changed the free indices of {term}")
    return reduced


def _with_remaining_deltas(
    term: Term, factors: list[Factor], remaining: list[tuple[_Class, Slot, list[Index]]], mapping: dict[Index, Slot]
) -> Term:
    """Append delta_(root, index) for the free indices of each class; a class of summed indices only may be a trace."""
    present = indices_of(factors)
    coefficient, vanished = term.coefficient, set(mapping)
    for cls, root, tied in remaining:
        factors += [Factor(cls.head, (root, index)) for index in tied]
        if isinstance(root, int) or root in present or tied:
            continue
        if root in term.free:  # delta_aa with a free: the vector of ones, which must keep its index
            factors.append(Factor(cls.head, (root, root)))
        else:
            coefficient = coefficient * dimension_size(root.dimension)
            vanished.add(root)
    return Term(coefficient, tuple(factors), tuple(index for index in term.summed if index not in vanished))


def _classes(deltas: Iterable[Factor]) -> list[_Class]:
    """Connected components of "a delta ties these slots", in order of appearance; integers belong to a dimension."""
    home: dict[tuple[DimensionLike, Slot], _Class] = {}
    for delta in deltas:
        dimension = delta.tensor.dimensions[0]
        first, second = (home.get((dimension, slot)) or _Class(delta.tensor) for slot in delta.indices)
        first.members.update(delta.indices, second.members)
        for slot in first.members:
            home[dimension, slot] = first
    unique = {id(cls): cls for cls in home.values()}
    return list(unique.values())
