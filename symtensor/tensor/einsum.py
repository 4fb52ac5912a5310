"""Terms as einsum calls."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass

import sympy

from symtensor.tensor.errors import IndexClashError
from symtensor.tensor.index import Index
from symtensor.tensor.term import Factor, Term, indices_of


@dataclass(frozen=True, slots=True)
class EinsumTerm:
    """`coefficient * einsum(spec, *operands)`.

    `tensors` names the operands, one per factor (none and the spec "->" for a pure scalar). Input letters may repeat
    within an operand ('ab,aacd->abcd'); output letters are the requested axes in order. A Kronecker delta that no sum
    removes is the operand `delta_P`, an identity matrix of size P. Where a factor has concrete components, `fixed[k]`
    holds them slot by slot (None for the slots that have a letter): the operand is `array[fixed]`; `fixed` is () if
    there are none in the term.
    """

    coefficient: sympy.Expr
    spec: str
    tensors: tuple[str, ...]
    fixed: tuple[tuple[int | None, ...], ...] = ()


def einsum_terms(terms: Sequence[Term], axes: Sequence[Index]) -> tuple[EinsumTerm, ...]:
    """One `EinsumTerm` per term; `axes` must be the free indices."""
    return tuple(_einsum_term(term, axes) for term in terms)


def _einsum_term(term: Term, axes: Sequence[Index]) -> EinsumTerm:
    letters = _letters(term, axes)
    operands = ["".join(letters[slot] for slot in f.indices if isinstance(slot, Index)) for f in term.factors]
    spec = ",".join(operands) + "->" + "".join(letters[axis] for axis in axes)
    fixed = tuple(_fixed(factor) for factor in term.factors)
    has_fixed = any(component is not None for components in fixed for component in components)
    tensors = tuple(factor.tensor.name for factor in term.factors)
    return EinsumTerm(term.coefficient, spec, tensors, fixed if has_fixed else ())


def _fixed(factor: Factor) -> tuple[int | None, ...]:
    return tuple(slot if isinstance(slot, int) else None for slot in factor.indices)


def _letters(term: Term, axes: Sequence[Index]) -> dict[Index, str]:
    """Each index keeps its name if that is one letter (axes first); the others get unused letters."""
    order = [*axes, *(index for index in term.summed if index in indices_of(term.factors))]
    if len(order) > len(string.ascii_letters):
        raise IndexClashError(f"{len(order)} indices in one term: einsum has only {len(string.ascii_letters)} letters")
    letters = {index: index.name for index in order if index.name in string.ascii_letters}
    unused = (letter for letter in string.ascii_letters if letter not in letters.values())
    return {index: letters[index] if index in letters else next(unused) for index in order}
