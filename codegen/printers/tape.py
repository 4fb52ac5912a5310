"""Tapes as text: one instruction a line, and the operations that the emitted module runs them with."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from itertools import count
from string import Formatter

from ..ir import TapeFunction
from ..passes import Tape
from .base import Printer, double
from .jax import jax_printer
from .layout import WIDTH, tuple_text

__all__ = ["MOST_TAKEN_APART", "operation_lines", "table_body", "table_name", "tape_body", "tape_lines"]

#: outputs that a compiled function returns one by one; XLA spends about 20 ms on each, so more of them come as one array
MOST_TAKEN_APART = 32

#: instruction -> text in registers {0}, {1}, {2} and its number {k}
_ARITHMETIC = {
    "add": "{0} + {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "fma": "{0} * {1} + {2}", "axpy": "{k} * {0} + {1}",
    "mulk": "{0} * {1} + {k}", "scale": "{k} * {0}", "shift": "{0} + {k}", "reciprocal": "1 / {0}",
    "constant": "jnp.full_like(x[0], {k})", "select": "jnp.where({0} != 0, {1}, {2})",
    "<": "({0} < {1}).astype(x[0].dtype)", "<=": "({0} <= {1}).astype(x[0].dtype)", "==": "({0} == {1}).astype(x[0].dtype)",
    "!=": "({0} != {1}).astype(x[0].dtype)", "and": "{0} * {1}", "or": "jnp.maximum({0}, {1})", "not": "1 - {0}",
}  # fmt: skip
_BINARY = frozenset({"atan2", "maximum", "minimum", "power"})
_NUMBERED = frozenset({"axpy", "mulk", "scale", "shift", "constant"})


def tape_lines(tape: Tape) -> list[str]:
    """`operation target source .. source #number .. #number`."""
    return [
        " ".join(
            [line.op, str(line.target), *map(str, line.sources), *(f"#{double(number)!r}" for number in line.numbers)]
        )
        for line in tape.instructions
    ]  # fmt: skip


def operation_lines(tapes: Iterable[Tape], used: set[str]) -> list[str]:
    """Entries of the table of operations: those that some tape uses, and `constant`, which pads a tape."""
    names = sorted({"constant", *(name for tape in tapes for name in tape.operations)})
    printer = jax_printer()
    lines = [f'"{name}": lambda x, k: {_Formula(printer).text(name)},' for name in names]
    used |= printer.used
    return lines


class _Formula:
    """The text of one instruction, read from its name: `fma(_,_,scale)` is `x[0] * x[1] + (k[0] * x[2])`."""

    def __init__(self, printer: Printer) -> None:
        self.printer = printer
        self.registers, self.numbers = count(), count()

    def text(self, name: str) -> str:
        head, _, rest = name.partition("(")
        template = _ARITHMETIC.get(head) or self._call(head)
        number = f"k[{next(self.numbers)}]" if head in _NUMBERED else ""
        wanted = len({field for _, field, _, _ in Formatter().parse(template) if field not in (None, "k")})
        operands = _split(rest.removesuffix(")")) if rest else ["_"] * wanted
        return template.format(*map(self._operand, operands), k=number)

    def _operand(self, name: str) -> str:
        return f"x[{next(self.registers)}]" if name == "_" else f"({self.text(name)})"

    def _call(self, head: str) -> str:
        return f"{self.printer.callable(head)}({'{0}, {1}' if head in _BINARY else '{0}'})"


def _split(text: str) -> list[str]:
    """Operands between the commas that are in no parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def tape_body(function: TapeFunction, record: str | None) -> list[str]:
    """The call of the interpreter, which returns the outputs in order."""
    call = _call(function)
    if record is None:
        return [f"values = {call[0]}", *call[1:], "return values[0]"]
    if len(function.outputs) <= MOST_TAKEN_APART:
        return [f"values = {call[0]}", *call[1:], f"return {record}(*values)"]
    return [f"return {record}(*{table_name(function)}({', '.join(argument.name for argument in function.arguments)}))"]


def table_body(function: TapeFunction) -> list[str] | None:
    """Body of a function that returns all outputs as one array; None where one compiled function takes them apart."""
    if len(function.outputs) <= MOST_TAKEN_APART:
        return None
    call = _call(function)
    return [f"return {call[0]}", *call[1:]]


def table_name(function: TapeFunction) -> str:
    return f"_{function.name}_table"


def _call(function: TapeFunction) -> list[str]:
    tape = function.tape
    results = textwrap.wrap(", ".join(map(str, tape.results)), WIDTH - 12)
    lines = ["_run(", f"    _{function.name}_tape,", f"    {tuple_text(list(tape.inputs))},", f"    {tape.size},"]
    lines += [f"    [{results[0]}],"] if len(results) == 1 else ["    [", *(f"        {line}" for line in results), "    ],"]
    return [*lines, ")"]
