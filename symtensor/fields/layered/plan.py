"""Networks of arrays -> contractions of two arrays at a time, shared between all networks of a module.

The order of contraction of each network is the cheapest of all (dynamic programming over its subsets) among those whose
intermediate arrays stay below a size, if there are any. An index may stand in any number of arrays: it is summed when the
last of them is contracted. Equal contractions of equal arrays, whatever their indices are called, are done once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from symtensor.fields.layered.tensor_network import Array, Index
from symtensor.kernels import Argument, Assignment, TensorKernel
from symtensor.tensor import Dimension, Tensor, TensorExpr
from symtensor.tensor import Index as TensorIndex

__all__ = ["AXES", "Plan", "canonical", "shape_of"]

#: the axes of all arrays: times, components, components that feed forward, pairs of inputs
AXES: dict[str, Dimension] = {kind: Dimension(kind) for kind in "TCFE"}


def canonical(factors: Sequence[Array], fixed: Sequence[Index]) -> tuple[Array, ...]:
    """The factors in an order, with indices renumbered, that do not depend on how the indices are numbered.

    Indices in `fixed` keep their numbers. Where indices cannot be told apart by what they join, equal networks may come out
    different, which only costs a contraction.
    """
    colour: dict[Index, str] = {index: index[0] for array in factors for index in array.indices}
    colour |= {index: f"{index[0]}={at}" for at, index in enumerate(fixed)}
    for _ in range(len(factors)):
        seen: dict[Index, list[str]] = {index: [] for index in colour}
        for array in factors:
            around = ",".join(colour[index] for index in array.indices)
            for place, index in enumerate(array.indices):
                seen[index].append(f"{array.name}[{around}]{place}")
        ranked = {text: rank for rank, text in enumerate(sorted({c + "".join(sorted(seen[i])) for i, c in colour.items()}))}
        colour = {i: c[:1] + str(ranked[c + "".join(sorted(seen[i]))]) for i, c in colour.items()}
    ordered = sorted(factors, key=lambda array: (array.name, [colour[index] for index in array.indices]))
    renamed: dict[Index, Index] = {index: index for index in fixed}
    for array in ordered:
        for index in array.indices:
            if index not in renamed:
                renamed[index] = (index[0], 1000 + len(renamed))
    return tuple(Array(array.name, tuple(renamed[index] for index in array.indices)) for array in ordered)


@dataclass(slots=True)
class Plan:
    """Kernels and calls; `sizes` gives the length of each kind of axis, `limit` the size that no intermediate should exceed."""

    sizes: Mapping[str, int]
    limit: float = float("inf")
    kernels: dict[str, TensorKernel] = field(default_factory=dict)
    calls: list[Assignment] = field(default_factory=list)
    largest: int = 0
    products: float = 0.0
    _patterns: dict[object, str] = field(default_factory=dict)
    _results: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)

    def contract(self, factors: Sequence[Array], output: tuple[Index, ...]) -> str:
        """The name of the array of a network, with the indices `output` as axes; other indices are summed."""
        if len(factors) == 1:
            return self._call(factors, output).name if factors[0].indices != output else factors[0].name
        return self._build(self._order(factors, output), list(factors), set(output), output).name

    def size(self, indices: frozenset[Index] | tuple[Index, ...]) -> int:
        """The number of entries of an array with these indices."""
        return prod(self.sizes[kind] for kind, _ in indices)

    # -- the order -----------------------------------------------------------------------------------------------------

    def _order(self, factors: Sequence[Array], output: tuple[Index, ...]) -> dict[int, int]:
        """For each set of factors (as bits) that is contracted, one of the two parts it is contracted from."""
        bit = {index: 1 << at for at, index in enumerate(dict.fromkeys(i for array in factors for i in array.indices))}
        own = [sum(bit[index] for index in set(array.indices)) for array in factors]
        full = (1 << len(factors)) - 1
        inside = [0] * (full + 1)
        for bits in range(1, full + 1):
            inside[bits] = inside[bits & (bits - 1)] | own[(bits & -bits).bit_length() - 1]
        outside = sum(bit[index] for index in set(output))
        kept = [inside[bits] & (inside[full ^ bits] | outside) for bits in range(full + 1)]
        size = _Sizes([self.sizes[kind] for kind, _ in bit])
        best: dict[int, tuple[float, float, int]] = {1 << at: (0.0, 0.0, 0) for at in range(len(own))}
        for bits in sorted(range(1, full + 1), key=int.bit_count):
            if bits not in best and (bits == full or _connected(bits, own)):
                best[bits] = _cheapest(bits, best, kept, size, max(0.0, size[kept[bits]] - self.limit))
        return {bits: part for bits, (_, _, part) in best.items()}

    def _build(self, order: Mapping[int, int], factors: list[Array], output: set[Index], final: tuple[Index, ...]) -> Array:
        def build(bits: int, wanted: tuple[Index, ...] | None) -> Array:
            if not order[bits]:
                return self._diagonal(factors[bits.bit_length() - 1])
            pair = [build(order[bits], None), build(bits ^ order[bits], None)]
            pair.sort(key=lambda array: array.name)
            outside = {i for at, array in enumerate(factors) if not bits >> at & 1 for i in array.indices} | output
            kept = tuple(dict.fromkeys(i for array in pair for i in array.indices if i in outside))
            return self._call(pair, kept if wanted is None else wanted)

        return build((1 << len(factors)) - 1, final)

    def _diagonal(self, array: Array) -> Array:
        """An array with a repeated index as one without."""
        once = tuple(dict.fromkeys(array.indices))
        return array if once == array.indices else self._call([array], once)

    # -- kernels -------------------------------------------------------------------------------------------------------

    def _call(self, operands: Sequence[Array], output: tuple[Index, ...]) -> Array:
        kernel = self._kernel([array.indices for array in operands], output)
        key = (kernel, tuple(array.name for array in operands))
        if key not in self._results:
            self._results[key] = f"y{len(self._results) + 1}"
            self.calls.append(Assignment((self._results[key],), *key))
            self.largest = max(self.largest, self.size(output))
            self.products += self.size(frozenset(index for array in operands for index in array.indices))
        return Array(self._results[key], output)

    def _kernel(self, inputs: Sequence[tuple[Index, ...]], output: tuple[Index, ...]) -> str:
        """The kernel of a contraction; those that differ in the names of the indices only are one."""
        number: dict[Index, int] = {}
        for index in (index for indices in inputs for index in indices):
            number.setdefault(index, len(number))
        pattern = (tuple(tuple((i[0], number[i]) for i in indices) for indices in inputs), tuple(number[i] for i in output))
        if pattern not in self._patterns:
            name = f"contract_{len(self._patterns) + 1}"
            named = {index: TensorIndex(f"{index[0].lower()}{at}", AXES[index[0]]) for index, at in number.items()}
            heads = [Tensor(letter, tuple(AXES[i[0]] for i in indices)) for letter, indices in zip("xy", inputs)]
            factors = [head[tuple(named[i] for i in indices)] for head, indices in zip(heads, inputs)]
            product = factors[0] * factors[1] if len(factors) > 1 else factors[0]
            summed = [named[i] for i in number if i not in output]
            expression: TensorExpr = product.sum(*summed) if summed else product
            arguments = tuple(Argument(head.name, tuple(i[0] for i in indices)) for head, indices in zip(heads, inputs))
            self._patterns[pattern] = name
            self.kernels[name] = TensorKernel(name, arguments, expression, tuple(named[i] for i in output))
        return self._patterns[pattern]


class _Sizes(dict[int, int]):
    """The number of entries of an array with a set of indices (as bits)."""

    def __init__(self, lengths: Sequence[int]) -> None:
        super().__init__({0: 1})
        self._lengths = lengths

    def __missing__(self, bits: int) -> int:
        lowest = bits & -bits
        self[bits] = found = self._lengths[lowest.bit_length() - 1] * self[bits ^ lowest]
        return found


def _cheapest(
    bits: int, best: Mapping[int, tuple[float, float, int]], kept: Sequence[int], size: _Sizes, excess: float
) -> tuple[float, float, int]:
    """(largest excess over the limit, products, part) of the best way to contract a set of factors from two parts of it."""
    lowest, part = bits & -bits, (bits - 1) & bits
    found = (float("inf"), float("inf"), 0)
    while part:
        rest = bits ^ part
        if part & lowest and part in best and rest in best:
            one, other = best[part], best[rest]
            work = one[1] + other[1] + size[kept[part] | kept[rest]]
            found = min(found, (max(one[0], other[0], excess), work, part))
        part = (part - 1) & bits
    return found


def _connected(bits: int, own: Sequence[int]) -> bool:
    """Whether the factors of a set hang together by common indices."""
    members = [mask for at, mask in enumerate(own) if bits >> at & 1]
    reached, left = members[0], members[1:]
    while joined := [mask for mask in left if mask & reached]:
        left = [mask for mask in left if not mask & reached]
        for mask in joined:
            reached |= mask
    return not left


def shape_of(name: str) -> tuple[str, ...]:
    """The axes of an array that a module is given, by its name.

    >>> shape_of("kappa_CF_10"), shape_of("R_EF"), shape_of("A_2")
    (('T', 'C', 'T', 'F', 'E'), ('T', 'E', 'T', 'F'), ('T', 'E', 'T', 'F', 'F'))
    """
    letter, _, rest = name.partition("_")
    if letter == "A":
        return ("T", "E", "T", *"F" * int(rest))
    axes, _, pattern = rest.partition("_")
    shape = tuple(part for axis in axes for part in ("T", axis))
    return (*shape, *"E" * sum(map(int, pattern))) if letter == "kappa" else shape
