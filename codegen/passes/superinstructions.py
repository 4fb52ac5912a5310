"""Superinstructions: pairs of instructions that follow each other often become one.

Running an instruction costs a switch and a pass over the registers it names, whatever it computes; `fma(_,_,fma)` reads two
products and a sum at once, and `shift(scale)` is k x + c. The pairs are found by counting, so that each tape gets its own.
The name of an instruction says what it does: an underscore for each register, in the order of its operands.

Reference: M. A. Ertl and D. Gregg, "The structure and performance of efficient interpreters", JILP 5 (2003), section 5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import sympy as sp

__all__ = ["Line", "Tree", "superinstructions"]

#: limits of one instruction, pairs that are worth an entry in the table (a share of all lines), entries
_MOST_REGISTERS, _MOST_NUMBERS, _LEAST_SHARE, _LEAST_COUNT, _MOST_ENTRIES = 6, 4, 0.015, 8, 12
_Key = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Tree:
    """An operation on values (integers) or on other operations, with its numbers."""

    name: str
    args: tuple[int | Tree, ...]
    numbers: tuple[sp.Expr, ...] = ()

    @property
    def text(self) -> str:
        """`fma(_,_,scale)`; plainly `fma` if all operands are registers."""
        if not any(isinstance(arg, Tree) for arg in self.args):
            return self.name
        return f"{self.name}({','.join(arg.text if isinstance(arg, Tree) else '_' for arg in self.args)})"

    @property
    def sources(self) -> tuple[int, ...]:
        """The values that are read, from left to right."""
        return tuple(value for arg in self.args for value in (arg.sources if isinstance(arg, Tree) else (arg,)))

    @property
    def all_numbers(self) -> tuple[sp.Expr, ...]:
        """Its own numbers, then those of its operands from left to right."""
        inner = (number for arg in self.args if isinstance(arg, Tree) for number in arg.all_numbers)
        return (*self.numbers, *inner)

    def with_operand(self, position: int, tree: Tree) -> Tree:
        """The operation with the register at this place, counted from the left, replaced."""
        args = []
        for arg in self.args:
            width = len(arg.sources) if isinstance(arg, Tree) else 1
            if 0 <= position < width:
                arg = arg.with_operand(position, tree) if isinstance(arg, Tree) else tree
            args.append(arg)
            position -= width
        return replace(self, args=tuple(args))


@dataclass(frozen=True, slots=True)
class Line:
    """`value = tree`; every value is assigned once."""

    value: int
    tree: Tree


def superinstructions(lines: Sequence[Line], results: Sequence[int]) -> list[Line]:
    """The same values of `results` by fewer lines."""
    lines = list(lines)
    for _ in range(_MOST_ENTRIES):
        uses = Counter(value for line in lines for value in line.tree.sources) + Counter(results)
        once = {line.value: line.tree for line in lines if uses[line.value] == 1 and line.value not in results}
        found = Counter(key for line in lines for key, _ in _pairs(line.tree, once))
        best = min(found, key=lambda key: (-found[key], key), default=None)
        if best is None or found[best] < max(_LEAST_COUNT, _LEAST_SHARE * len(lines)):
            break
        lines = _merged(lines, once, best)
    return lines


def _pairs(tree: Tree, once: dict[int, Tree]) -> Iterator[tuple[_Key, int]]:
    """What could be merged into an operation: (its name, place of the operand, name of the operand), and the value."""
    sources, numbers = tree.sources, len(tree.all_numbers)
    for place, value in enumerate(sources):
        inner = once.get(value)
        if inner is None or inner.name == "constant" or len(sources) - 1 + len(inner.sources) > _MOST_REGISTERS:
            continue
        if numbers + len(inner.all_numbers) <= _MOST_NUMBERS:
            yield (tree.text, place, inner.text), value


def _merged(lines: list[Line], once: dict[int, Tree], key: _Key) -> list[Line]:
    """Every such pair merged, from the first line on, unless the operand has just been merged itself."""
    gone: set[int] = set()
    changed: dict[int, Tree] = {}
    for line in lines:
        value = next((value for pair, value in _pairs(line.tree, once) if pair == key and value not in changed), None)
        if value is not None:
            changed[line.value] = line.tree.with_operand(key[1], once[value])
            gone.add(value)
    return [Line(line.value, changed.get(line.value, line.tree)) for line in lines if line.value not in gone]
