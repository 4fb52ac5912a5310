"""Tapes as text: one instruction a line, and the operations that the emitted module runs them with."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from ..ir import TapeFunction
from ..passes import Tape
from .base import double
from .jax import jax_printer
from .layout import WIDTH, tuple_text

__all__ = ["MOST_TAKEN_APART", "operation_lines", "table_body", "table_name", "tape_body", "tape_lines"]

#: outputs that a compiled function returns one by one; XLA spends about 20 ms on each, so more of them come as one array
MOST_TAKEN_APART = 32

#: instruction -> text in x, y, z (registers) and k (its number)
_ARITHMETIC = {
    "add": "x + y", "mul": "x * y", "div": "x / y", "fma": "x * y + z", "axpy": "k * x + y", "mulk": "x * y + k",
    "scale": "k * x", "shift": "x + k", "reciprocal": "1 / x", "constant": "jnp.full_like(x, k)",
    "select": "jnp.where(x != 0, y, z)", "<": "(x < y).astype(x.dtype)", "<=": "(x <= y).astype(x.dtype)",
    "==": "(x == y).astype(x.dtype)", "!=": "(x != y).astype(x.dtype)", "and": "x * y", "or": "jnp.maximum(x, y)",
    "not": "1 - x",
}  # fmt: skip
_BINARY = frozenset({"atan2", "maximum", "minimum", "power"})


def tape_lines(tape: Tape) -> list[str]:
    """`operation target source source source #number`."""
    return [
        " ".join(
            [line.op, str(line.target), *map(str, line.sources)]
            + ([] if line.number is None else [f"#{double(line.number)!r}"])
        )
        for line in tape.instructions
    ]  # fmt: skip


def operation_lines(tapes: Iterable[Tape], used: set[str]) -> list[str]:
    """Entries of the table of operations: those that some tape uses, and `constant`, which pads a tape."""
    names = sorted({"constant", *(name for tape in tapes for name in tape.operations)})
    printer = jax_printer()
    lines = []
    for name in names:
        text = _ARITHMETIC.get(name)
        if text is None:
            text = f"{printer.callable(name)}({'x, y' if name in _BINARY else 'x'})"
        lines.append(f'"{name}": lambda x, y, z, k: {text},')
    used |= printer.used
    return lines


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
