"""A graph as a tape: instructions of at most three operands on a small file of registers, for graphs too large to unroll.

Every operation of a straight line costs the compiler about a millisecond, and more than linearly where much is shared; a
tape is data, run by one loop whose body is compiled once. Products that are used once are fused into the sum that uses
them (`fma`, `axpy`, `mulk`), so that a Horner step is one instruction. Registers are given out by linear scan and free
again after their last use.

Instructions (x, y, z registers; k a number)
    add x + y    mul x y    div x / y    fma x y + z    axpy k x + y    mulk x y + k    scale k x    shift x + k
    reciprocal 1 / x    constant k    select x ? y : z    < <= == != and or not (0 or 1)    and every function of the graph
and the pairs of them that are frequent (`superinstructions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import sympy as sp

from ..errors import UnsupportedNode
from ..graph import Node, count_uses, postorder
from .superinstructions import Line, Tree, superinstructions

__all__ = ["Instruction", "Tape", "assemble", "straight_line_work"]


@dataclass(frozen=True, slots=True)
class Instruction:
    """`registers[target] = op(registers[sources], numbers)`."""

    op: str
    target: int
    sources: tuple[int, ...]
    numbers: tuple[sp.Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Tape:
    """A program: argument k starts in register k, result k ends in register `results[k]`."""

    instructions: tuple[Instruction, ...]
    inputs: tuple[str, ...]
    results: tuple[int, ...]
    size: int

    @property
    def operations(self) -> tuple[str, ...]:
        """The instructions it uses, sorted."""
        return tuple(sorted({instruction.op for instruction in self.instructions}))


def straight_line_work(roots: Sequence[Node], enough: int) -> int:
    """Operations that the compiler sees in straight-line code: those that outputs share count once per output.

    Counting stops above `enough`.
    """
    work = 0
    for root in dict.fromkeys(roots):
        work += sum(len(node.args) for node in postorder((root,)))
        if work > enough:
            break
    return work


def assemble(roots: Sequence[Node], inputs: Sequence[str]) -> Tape:
    """Select instructions and give out registers.

    Parameters
    ----------
    roots
        Results, of optimised graphs (powers are squares, cubes and reciprocals).
    inputs
        Names of the variables, in the order of their registers.

    Raises
    ------
    UnsupportedNode
        A power that the passes would have removed.
    """
    selection = _Selection(list(inputs))
    nodes = postorder(roots)
    selection.uses = count_uses(nodes, roots)
    selection.fused = {node.index for user in nodes for node in _absorbed(user, selection.uses)}
    for node in nodes:
        if node.op not in ("const", "var") and node.index not in selection.fused:
            selection.values[node.index] = selection.select(node)
    results = [selection.value(root) for root in roots]
    return _registers(superinstructions(selection.lines, results), tuple(inputs), results)


def _absorbed(user: Node, uses: dict[int, int]) -> list[Node]:
    """Arguments that become part of the instructions of their user."""
    if user.op == "add":
        return [part for part in user.args if uses[part.index] == 1 and (_scaled(part) or _pair(part))]
    if user.op == "mul" and len(user.args) > 1:
        return [part for part in user.args if uses[part.index] == 1 and part.op == "pow" and part.value == -1]
    return []


def _scaled(node: Node) -> bool:
    """A number times one factor."""
    return node.op == "mul" and len(node.args) == 2 and node.args[0].op == "const" and not _reciprocal(node.args[1])


def _pair(node: Node) -> bool:
    """A product of two factors or a square."""
    if node.op == "pow":
        return node.value == 2
    return node.op == "mul" and len(node.args) == 2 and not any(part.op == "const" or _reciprocal(part) for part in node.args)


def _reciprocal(node: Node) -> bool:
    return node.op == "pow" and node.value == -1


@dataclass(slots=True)
class _Selection:
    """Instructions on values, each assigned once; value k < len(inputs) is an input."""

    inputs: list[str]
    uses: dict[int, int] = field(default_factory=dict)
    fused: set[int] = field(default_factory=set)
    values: dict[int, int] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.count = len(self.inputs)

    def emit(self, op: str, *sources: int, number: sp.Expr | None = None) -> int:
        """Append an instruction; its value."""
        self.lines.append(Line(self.count, Tree(op, sources, () if number is None else (number,))))
        self.count += 1
        return self.count - 1

    def value(self, node: Node) -> int:
        """The value of a node that was selected, a variable or a number."""
        if node.index not in self.values:
            if node.op == "var":
                self.values[node.index] = self.inputs.index(str(node.value))
            else:
                self.values[node.index] = self.emit("constant", number=node.value)  # type: ignore[arg-type]
        return self.values[node.index]

    def select(self, node: Node) -> int:
        """Instructions of one node."""
        match node.op:
            case "add":
                return self._sum(node)
            case "mul":
                return self._product(node)
            case "pow":
                return self._power(node)
            case "call" | "compare":
                return self.emit(str(node.value), *map(self.value, node.args))
            case "select" | "and" | "or" | "not":
                return self.emit(node.op, *map(self.value, node.args))
        raise UnsupportedNode(f"no instruction for the operation {node.op!r}")

    def _power(self, node: Node) -> int:
        base = self.value(node.args[0])
        if node.value == -1:
            return self.emit("reciprocal", base)
        if node.value not in (2, 3):
            raise UnsupportedNode(f"no instruction for the power {node.value}; run the passes first")
        square = self.emit("mul", base, base)
        return square if node.value == 2 else self.emit("mul", square, base)

    def _sum(self, node: Node) -> int:
        number: sp.Expr | None = None
        plain, scaled, pairs = [], [], []
        for part in node.args:
            if part.op == "const":
                number = part.value  # type: ignore[assignment]
            elif part.index not in self.fused:
                plain.append(self.value(part))
            elif _scaled(part):
                scaled.append((self.value(part.args[1]), part.args[0].value))
            else:
                pairs.append((self.value(part.args[0]), self.value(part.args[-1])))
        if plain:
            total = plain.pop(0)
        elif pairs:
            total = self.emit("mulk", *pairs.pop(), number=number) if number is not None else self.emit("mul", *pairs.pop())
            number = None
        else:
            source, factor = scaled.pop(0)
            total = self.emit("scale", source, number=factor)
        for source in plain:
            total = self.emit("add", total, source)
        for source, factor in scaled:
            total = self.emit("axpy", source, total, number=factor)
        for left, right in pairs:
            total = self.emit("fma", left, right, total)
        return total if number is None else self.emit("shift", total, number=number)

    def _product(self, node: Node) -> int:
        number = node.args[0].value if node.args[0].op == "const" else None
        factors = node.args if number is None else node.args[1:]
        above = [self.value(part) for part in factors if part.index not in self.fused]
        below = [self.value(part.args[0]) for part in factors if part.index in self.fused]
        top, bottom = self._chain(above), self._chain(below)
        if top is None:
            assert bottom is not None
            total = self.emit("reciprocal", bottom)
        else:
            total = top if bottom is None else self.emit("div", top, bottom)
        return total if number is None else self.emit("scale", total, number=number)  # type: ignore[arg-type]

    def _chain(self, values: list[int]) -> int | None:
        total = values[0] if values else None
        for value in values[1:]:
            total = self.emit("mul", total, value)  # type: ignore[arg-type]
        return total


def _registers(lines: list[Line], inputs: tuple[str, ...], results: list[int]) -> Tape:
    """Linear scan: a value keeps its register until its last use, results to the end."""
    last = {value: place for place, line in enumerate(lines) for value in line.tree.sources}
    last |= dict.fromkeys(results, len(lines))
    register = {value: value for value in range(len(inputs))}
    free = [value for value in range(len(inputs)) if value not in last]
    size = len(inputs)
    instructions = []
    for place, line in enumerate(lines):
        value, sources = line.value, line.tree.sources
        read = tuple(register[source] for source in sources)
        for source in dict.fromkeys(sources):
            if last[source] == place:
                heappush(free, register[source])
        if free:
            register[value] = heappop(free)
        else:
            register[value], size = size, size + 1
        instructions.append(Instruction(line.tree.text, register[value], read, line.tree.all_numbers))
        if value not in last:
            heappush(free, register[value])
    return Tape(tuple(instructions), inputs, tuple(register[value] for value in results), size)
