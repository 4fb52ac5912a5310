"""Tensor kernels: sums that survive are contracted pairwise, everything else is broadcast and fused by the compiler.

A term such as `c_w/2 m20_ab V_aa,ef` has no sum: it is a product of broadcast arrays, which XLA evaluates in one loop
over the output together with all other terms. Only summed indices become `einsum` calls, two operands at a time, in the
order of `passes.contraction`. A sum over a pair of indices in which both operands are symmetric runs over a <= b only, and
so do the free pairs of such a step: an eighth of the work for two fourth-order tensors.
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportReturnType=false

from __future__ import annotations

import string
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

import sympy as sp

from symtensor.kernels import TensorKernel
from symtensor.tensor import Dimension, Factor, Index, Tensor, Term

from ..errors import NameClash, ShapeError
from ..graph import Graph, Node
from ..ir import Contraction, Operand, Product, Summand, TensorFunction
from ..names import fresh_names
from ..passes import optimise
from ..passes.contraction import SIZE, contraction_plan
from ..passes.exchange import exchanged_half
from .expression import convert

__all__ = ["lower_tensor"]


def lower_tensor(kernel: TensorKernel) -> TensorFunction:
    """Lower the canonical form of the expression.

    Raises
    ------
    ShapeError
        A dimension of the output or of a delta that no argument has.
    UnsupportedNode, UnboundName
        In coefficients.
    """
    return _Lowering(kernel).function()


@dataclass(slots=True)
class _Part:
    """An array in a product: where it comes from, the letters of its axes, and the pairs in which it is symmetric."""

    source: str
    letters: str
    pairs: frozenset[frozenset[str]] = frozenset()


@dataclass(slots=True)
class _Lowering:
    kernel: TensorKernel
    graph: Graph = field(default_factory=Graph)
    loads: dict[tuple, Operand] = field(default_factory=dict)
    contractions: dict[tuple, Contraction] = field(default_factory=dict)
    spreads: dict[tuple, Operand] = field(default_factory=dict)
    covered: bool = False
    taken: set[str] = field(default_factory=set)
    extents: dict[str, str | int] = field(default_factory=dict)  # of the letters of the term in hand

    def function(self) -> TensorFunction:
        kernel = self.kernel
        self.taken = {argument.name for argument in kernel.arguments}
        half, rest = exchanged_half(kernel.expression.canonical().terms, kernel.axes)
        mirrored, summands = self._summands(half), self._summands(rest)
        return TensorFunction(
            kernel.name, kernel.arguments, self._axes(), tuple(self.loads.values()),
            tuple(self.contractions.values()), tuple(self.spreads.values()), summands,
            tuple(self._size(axis.dimension) for axis in kernel.axes), self.covered, kernel.title,
            mirrored, self._local("half") if mirrored else "",
        )  # fmt: skip

    def _summands(self, terms: Iterable[Term]) -> tuple[Summand, ...]:
        """Terms grouped by their coefficients."""
        grouped: dict[sp.Expr, dict[sp.Expr, list[Product]]] = {}
        for term in terms:
            number, symbolic = term.coefficient.as_coeff_Mul()
            grouped.setdefault(symbolic, {}).setdefault(number, []).append(self._product(term))
        return tuple(
            Summand(self._scalar(symbolic), tuple((self._scalar(number), tuple(ps)) for number, ps in parts.items()))
            for symbolic, parts in grouped.items()
        )

    # -- scalars and sizes --------------------------------------------------------------------------------------------

    def _scalar(self, coefficient: sp.Expr) -> Node:
        names = {argument.name: argument.name for argument in self.kernel.arguments if argument.shape == ()}
        for symbol in sorted(coefficient.free_symbols, key=str):
            if symbol.name not in names and (size := self._size_or_none(symbol.name)):
                names[symbol.name] = size
        return optimise((convert(coefficient, names, f"{self.kernel.name}, coefficient", self.graph),), self.graph)[0]

    def _size_or_none(self, dimension: str) -> str:
        for argument in self.kernel.arguments:
            if dimension in argument.shape:
                return f"{argument.name}.shape[{argument.shape.index(dimension)}]"
        return ""

    def _size(self, dimension: Dimension | int) -> str:
        if isinstance(dimension, int):
            return str(dimension)
        found = self._size_or_none(dimension.name)
        if not found:
            raise ShapeError(f"{self.kernel.name}: no argument has an axis of dimension {dimension}; pass one that has")
        return found

    # -- products -----------------------------------------------------------------------------------------------------

    def _axes(self) -> str:
        return "".join(_letters(self.kernel.axes, ())[axis] for axis in self.kernel.axes)

    def _product(self, term: Term) -> Product:
        letters = _letters(self.kernel.axes, term.summed)
        parts = [part for factor in term.factors if (part := self._part(factor, letters)) is not None]
        summed = {letters[index] for index in term.summed}
        self.extents = {letter: _name(index.dimension) for index, letter in letters.items()}
        parts = self._contracted(parts, summed)
        axes = self._axes()
        self.covered |= {letter for part in parts for letter in part.letters} == set(axes)
        return Product(tuple(self._spread(part, axes) for part in parts))

    def _part(self, factor: Factor, letters: dict[Index, str]) -> _Part | None:
        head = factor.tensor
        own = "".join(letters[slot] for slot in factor.indices if isinstance(slot, Index))
        if head.is_delta and len(set(factor.indices)) == 1:
            return None  # delta_aa with a free: the vector of ones
        fixed = tuple(slot if isinstance(slot, int) else None for slot in factor.indices)
        fixed = fixed if any(slot is not None for slot in fixed) else ()
        if not fixed and not head.is_delta and head.function is None:
            return _Part(head.name, own, _symmetric_pairs(head, own))
        source = None if head.is_delta else (head.source or head).name
        key = (head.name, source, fixed)
        if key not in self.loads:
            size = self._size(head.dimensions[0]) if head.is_delta else ""
            image = None
            if head.function is not None:
                (variable,), body = head.function.variables, head.function.expr
                image = convert(body, {variable.name: str(source)}, f"{self.kernel.name}, {head.name}", self.graph)
                image = optimise((image,), self.graph)[0]
            suffix = "".join(str(slot) for slot in fixed if slot is not None)
            local = self._local(f"{head.name}_{suffix}" if suffix else head.name)
            self.loads[key] = Operand(local, source, "", fixed, size, image)
        return _Part(self.loads[key].local, own)

    def _local(self, wanted: str) -> str:
        """A name for a local variable that is not in use."""
        name = wanted if wanted not in self.taken else next(fresh_names(wanted + "_", self.taken))
        self.taken.add(name)
        return name

    def _spread(self, part: _Part, axes: str) -> str:
        if part.letters == axes or not part.letters:
            return part.source
        key = (part.source, part.letters)
        if key not in self.spreads:
            local = self._local(f"{part.source}_{part.letters}")
            self.spreads[key] = Operand(local, part.source, f"{part.letters}->{axes}")
        return self.spreads[key].local

    # -- contractions -------------------------------------------------------------------------------------------------

    def _contracted(self, parts: list[_Part], summed: set[str]) -> list[_Part]:
        """All sums done: indices of one part alone first, then each set of parts that sums connect, in the cheapest order."""
        parts = [self._summed_alone(part, parts, summed) for part in parts]
        sizes = {letter: extent if isinstance(extent, int) else SIZE for letter, extent in self.extents.items()}
        result = []
        for group in _connected(parts, summed):
            output = "".join(dict.fromkeys(letter for part in group for letter in part.letters if letter not in summed))
            ranked = list(enumerate(group))  # operands stay in the order of the term, so that equal steps are found
            for i, j in contraction_plan([part.letters for part in group], output, sizes).steps:
                pair = sorted((ranked[i], ranked[j]), key=lambda item: item[0])
                ranked = [item for place, item in enumerate(ranked) if place not in (i, j)]
                kept = {letter for _, part in ranked for letter in part.letters}
                ranked.append((pair[0][0], self._step([part for _, part in pair], kept, summed)))
            result += [part for _, part in ranked]
        return result

    def _summed_alone(self, part: _Part, parts: list[_Part], summed: set[str]) -> _Part:
        others = {letter for other in parts if other is not part for letter in other.letters}
        return self._step([part], others, summed) if (set(part.letters) & summed) - others else part

    def _step(self, parts: list[_Part], kept: set[str], summed: set[str]) -> _Part:
        together = "".join(dict.fromkeys("".join(part.letters for part in parts)))
        output = "".join(letter for letter in together if letter not in summed or letter in kept)
        key = (tuple(part.source for part in parts), tuple(part.letters for part in parts), output)
        canonical = _renamed(key)
        if canonical not in self.contractions:
            local = self._local("_".join(part.source for part in parts) + (f"_{output}" if output else "_sum"))
            extents = tuple((letter, self.extents[letter]) for letter in together)
            self.contractions[canonical] = Contraction(local, *key, _packed_pairs(parts, output), extents)
        pairs = frozenset(pair for part in parts for pair in part.pairs if pair <= set(output) and _owned(pair, parts))
        return _Part(self.contractions[canonical].local, output, pairs)


def _name(dimension: Dimension | int) -> str | int:
    return dimension if isinstance(dimension, int) else dimension.name


def _symmetric_pairs(head: Tensor, letters: str) -> frozenset[frozenset[str]]:
    """Pairs of letters whose exchange leaves the tensor as it is."""
    slots = range(len(letters))
    pairs = set()
    for i, j in combinations(slots, 2):
        exchanged = tuple(j if slot == i else i if slot == j else slot for slot in slots)
        if letters.count(letters[i]) == letters.count(letters[j]) == 1 and (exchanged, 1) in head.symmetry.elements:
            pairs.add(frozenset((letters[i], letters[j])))
    return frozenset(pairs)


def _owned(pair: frozenset[str], parts: Iterable[_Part]) -> bool:
    """Every part that has a letter of the pair is symmetric in the pair."""
    return all(pair in part.pairs for part in parts if pair & set(part.letters))


def _packed_pairs(parts: list[_Part], output: str) -> tuple[str, ...]:
    """Disjoint pairs of letters for the packed form of a step; none unless a pair is summed over."""
    if len(parts) != 2:
        return ()
    candidates = {pair for part in parts for pair in part.pairs if _owned(pair, parts)}
    candidates = {pair for pair in candidates if len(pair & set(output)) != 1}
    ordered = sorted(("".join(sorted(pair)) for pair in candidates), key=lambda pair: (pair[0] in output, pair))
    chosen: list[str] = []
    for pair in ordered:
        if not set(pair) & set("".join(chosen)):
            chosen.append(pair)
    return tuple(chosen) if any(pair[0] not in output for pair in chosen) else ()


def _connected(parts: list[_Part], summed: set[str]) -> list[list[_Part]]:
    """Parts grouped by the summed letters that they share, in order of first appearance."""
    groups: list[list[_Part]] = []
    for part in parts:
        shared = set(part.letters) & summed
        touching = [group for group in groups if any(shared & set(other.letters) for other in group)]
        groups = [group for group in groups if not any(group is other for other in touching)]
        groups.append([*(other for group in touching for other in group), part])
    return groups


def _renamed(key: tuple) -> tuple:
    """The same contraction with letters numbered by appearance, so that renamed copies are found."""
    sources, letters, output = key
    number = {letter: position for position, letter in enumerate(dict.fromkeys("".join(letters)))}
    return sources, tuple(tuple(number[x] for x in group) for group in letters), tuple(number[x] for x in output)


def _letters(axes: Iterable[Index], summed: Iterable[Index]) -> dict[Index, str]:
    """One-letter names are kept, the others get unused letters."""
    order = [*axes, *summed]
    if len(order) > len(string.ascii_letters):
        raise NameClash(f"{len(order)} indices in one term; einsum has only {len(string.ascii_letters)} letters")
    letters = {index: index.name for index in order if len(index.name) == 1 and index.name in string.ascii_letters}
    unused = (letter for letter in string.ascii_letters if letter not in letters.values())
    return {index: letters[index] if index in letters else next(unused) for index in order}
