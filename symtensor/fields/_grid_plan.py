"""Networks of arrays -> pairwise contractions, each an einsum of two arrays, shared between the networks.

Times are summed one after another, in the order that needs the least memory and then the least work; what several diagrams
have in common is computed once. Every contraction is a `TensorKernel`, the sequence of calls a `CompositeKernel`.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from math import prod
from typing import Any

from symtensor.fields._grid_network import ArrayFactor, GridIndex, Network
from symtensor.kernels import Argument, Assignment, TensorKernel
from symtensor.tensor import Dimension, Index, Tensor

__all__ = ["TIME", "ContractionPlan"]

TIME = Dimension("T")

#: all orders of summation are compared up to this number of times
MOST_SEARCHED = 6

#: an intermediate array: its name in the generated function and its indices
_Operand = tuple[str, tuple[GridIndex, ...]]


@dataclass(slots=True)
class ContractionPlan:
    """Kernels and calls for some networks on a grid of `points` times; `largest` is the size of the largest array."""

    points: int
    kernels: dict[str, Any] = field(default_factory=dict)
    calls: list[Any] = field(default_factory=list)
    largest: int = 0
    products: float = 0.0
    _results: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)

    def value(self, network: Network) -> str:
        """The name of the array of a network (without its coefficient), with the open times as axes."""
        operands = [self._sliced(factor) for factor in network.factors]
        for time in self._elimination([indices for _, indices in operands], network.open_times):
            near = {index for _, indices in operands if time in indices for index in indices if index[0] != "t"}
            taken = [each for each in operands if time in each[1] or set(each[1]) <= near]
            rest = [each for each in operands if each not in taken]
            outside = {index for _, indices in rest for index in indices} | set(network.open_times)
            operands = [*rest, self._reduced(taken, outside, None)]
        return self._reduced(operands, set(network.open_times), network.open_times)[0]

    def _elimination(self, indices: Sequence[tuple[GridIndex, ...]], open_times: Sequence[GridIndex]) -> Sequence[GridIndex]:
        """The order in which to sum over the times: least memory, then least work."""
        arrays = [frozenset(i for i in group if i[0] == "t") for group in indices]
        summed = list(dict.fromkeys(i for group in indices for i in group if i[0] == "t" and i not in open_times))
        if len(summed) > MOST_SEARCHED:
            return _least_joined(arrays, summed)
        work, order = min((_work(arrays, order, self.points), order) for order in permutations(summed))
        self.products += work[1]
        return order

    def _reduced(self, operands: Sequence[_Operand], outside: set[GridIndex], final: tuple[GridIndex, ...] | None) -> _Operand:
        """All operands in one, pair by pair, the smallest result first; indices that are not `outside` are summed."""
        left = list(operands)
        while len(left) > 1:
            pairs = combinations(range(len(left)), 2)
            one, other = min(pairs, key=lambda pair: self._cost(left, pair, outside))
            rest = [each for at, each in enumerate(left) if at not in (one, other)]
            kept = {index for _, indices in rest for index in indices} | outside
            left = [*rest, self._contracted([left[one], left[other]], kept, None if rest else final)]
        return left[0] if len(operands) > 1 else self._contracted(left, outside, final)

    def _cost(self, left: Sequence[_Operand], pair: tuple[int, int], outside: set[GridIndex]) -> tuple[int, int]:
        others = {index for at, (_, indices) in enumerate(left) if at not in pair for index in indices} | outside
        union = set(left[pair[0]][1]) | set(left[pair[1]][1])
        return prod(self._size(i) for i in union & others), prod(self._size(i) for i in union)

    def _sliced(self, factor: ArrayFactor) -> _Operand:
        indices = factor.indices
        kept = tuple(dict.fromkeys(index for index in indices if index[0] != "f"))
        if kept == indices:
            return factor.array, indices
        return self._call([(factor.array, indices)], kept)

    def _size(self, index: GridIndex) -> int:
        return self.points if index[0] == "t" else int(index[-1])

    def _contracted(self, taken: Sequence[_Operand], kept: set[GridIndex], final: tuple[GridIndex, ...] | None) -> _Operand:
        ordered = sorted(taken, key=lambda operand: operand[0])
        output = tuple(dict.fromkeys(index for _, indices in ordered for index in indices if index in kept))
        output = output if final is None else final
        if len(ordered) == 1 and output == ordered[0][1]:
            return ordered[0]
        return self._call(ordered, output)

    def _call(self, operands: Sequence[_Operand], output: tuple[GridIndex, ...]) -> _Operand:
        kernel = self._kernel([indices for _, indices in operands], output)
        key = (kernel.name, tuple(name for name, _ in operands))
        if key not in self._results:
            self._results[key] = f"y{len(self._results) + 1}"
            self.calls.append(Assignment((self._results[key],), *key))
            self.largest = max(self.largest, prod(self._size(index) for index in output))
        return self._results[key], output

    def _kernel(self, inputs: Sequence[tuple[GridIndex, ...]], output: tuple[GridIndex, ...]) -> Any:
        """The kernel that contracts arrays with these indices; patterns that differ in names only are one kernel."""
        named = _indices([i for indices in inputs for i in indices if i[0] != "f"])
        name = _pattern(inputs, output, named)
        if name not in self.kernels:
            heads, expression = [], None
            for letter, indices in zip("xyzw", inputs):
                slots = tuple(i[1] if i[0] == "f" else named[i] for i in indices)
                sizes = tuple(TIME if i[0] == "t" else int(i[-1]) for i in indices)
                head = Tensor(letter, sizes)
                heads.append(Argument(letter, tuple(str(s) if isinstance(s, Dimension) else s for s in sizes)))
                expression = head[slots] if expression is None else expression * head[slots]
            assert expression is not None
            summed = [index for key, index in named.items() if key not in output]
            axes = tuple(named[i] for i in output)
            total = expression.sum(*summed) if summed else expression
            self.kernels[name] = TensorKernel(name, tuple(heads), total, axes)
        return self.kernels[name]


def _work(arrays: Sequence[frozenset[GridIndex]], order: Sequence[GridIndex], points: int) -> tuple[int, float]:
    """(most axes of an intermediate array, products) of summing in this order."""
    left, most, work = list(arrays), 0, 0.0
    for time in order:
        joined = frozenset().union(*(each for each in left if time in each))
        left = [each for each in left if time not in each] + [joined - {time}]
        most, work = max(most, len(joined) - 1), work + float(points) ** len(joined)
    return most, work


def _least_joined(arrays: Sequence[frozenset[GridIndex]], times: Sequence[GridIndex]) -> list[GridIndex]:
    """The time that is joined to the fewest others first."""
    left, waiting, order = list(arrays), list(times), []
    while waiting:
        unions = {time: frozenset().union(*(each for each in left if time in each)) for time in waiting}
        time = min(waiting, key=lambda one: len(unions[one]))
        left = [each for each in left if time not in each] + [unions[time] - {time}]
        waiting.remove(time)
        order.append(time)
    return order


def _indices(indices: Sequence[GridIndex]) -> dict[GridIndex, Index]:
    """Times t, s, u, .., components i, j, k, .. by appearance."""
    times, parts = iter("tsuvwxyz"), iter("ijklmnopqr" + string.ascii_uppercase)
    found: dict[GridIndex, Index] = {}
    for index in dict.fromkeys(indices):
        found[index] = Index(next(times), TIME) if index[0] == "t" else Index(next(parts), int(index[-1]))
    return found


def _pattern(inputs: Sequence[tuple[GridIndex, ...]], output: tuple[GridIndex, ...], named: Mapping[GridIndex, Any]) -> str:
    """A name such as ``join_ts_su_to_tu``; sizes of components are part of it."""

    def text(indices: tuple[GridIndex, ...]) -> str:
        shown = [f"{i[1]}of{i[2]}" if i[0] == "f" else named[i].name + ("" if i[0] == "t" else f"{i[-1]}") for i in indices]
        return "".join(shown) or "0"

    return "join_" + "_".join(map(text, inputs)) + "_to_" + text(output)
