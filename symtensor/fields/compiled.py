"""From a diagram sum to a generated, jitted, differentiable JAX function, through the code generator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor._codegen import compile as generate
from symtensor.fields.errors import TheoryError

if TYPE_CHECKING:
    from symtensor.fields.diagram_sum import DiagramSum

__all__ = ["CompiledSum", "compile_sum"]


@dataclass(frozen=True, eq=False)
class CompiledSum:
    """The closed form of a diagram sum as a function of the external times and the parameters (arrays broadcast).

    Attributes:
        total: the sum.
        compiled: the function with its module: `certify`, `check`, `export`, `cost` (`codegen.Compiled`).

    No quadrature is involved: the error is rounding, which `check` and `certify` measure against 30-digit values.
    """

    total: DiagramSum
    compiled: Any

    def __call__(self, *values: Any, **named: Any) -> Any:
        """The sum of all orders."""
        return self.orders(*values, **named).total

    def orders(self, *values: Any, **named: Any) -> Any:
        """A named tuple: `total`, and `order_0`, `order_1`, .. by number of loops."""
        return self.compiled(*values, **named)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names, in order: the times, latest first, then the parameters."""
        return tuple(argument.name for argument in self.compiled.arguments)

    @property
    def module(self) -> Any:
        """The generated module, with its embedded reference values."""
        return self.compiled.module

    @property
    def source(self) -> str:
        """The text of the module."""
        return self.compiled.source

    def write(self, path: str | Path) -> Path:
        """Write the module to a folder or file."""
        return self.compiled.write(path)

    def check(self, dtype: Any = None) -> Any:
        """The embedded self-check: worst relative error of every output against 30-digit values."""
        return self.module.check(dtype)

    def __repr__(self) -> str:
        return f"<CompiledSum {self.total.title}: f({', '.join(self.arguments)})>"


def compile_sum(total: DiagramSum, name: str = "", title: str = "", *, method: str = "closed", **options: Any) -> Any:
    """The function of a diagram sum; `name` is that of the function and its module.

    method: ``"closed"`` (a `CompiledSum`: the closed form), ``"grid"`` (time integrals on a grid, see
        `symtensor.fields.grid.compile_grid`, which takes the other options) or ``"frequency"`` (the spectrum by loop integrals,
        see `symtensor.fields.frequency.compile_frequency`).

    Raises: TheoryError for a method or option that does not exist, and what the other methods raise. Of the closed form:
        TheoryError for values that are not real functions of real parameters, or for a term with delta(t).
    """
    if method == "grid":
        from symtensor.fields.grid import compile_grid

        return compile_grid(total, name=name, **options)
    if method == "frequency":
        from symtensor.fields.frequency import compile_frequency

        return compile_frequency(total, name=name, **options)
    if method != "closed" or options:
        what = f"method {method!r}" if method != "closed" else f"option {next(iter(options))!r} of the closed form"
        raise TheoryError(f"there is no {what}; the methods are closed, grid (times=..) and frequency")
    return _closed_form(total, name, title)


def _closed_form(total: DiagramSum, name: str, title: str) -> CompiledSum:
    if total.contact != 0:
        raise TheoryError(
            f"{total.title} has a part proportional to delta(t), {sp.sstr(total.contact)}, which is no function; compile "
            "total.value (the rest) or the Fourier transform"
        )
    outputs = {"total": total.expr, **{f"order_{loops}": part.expr for loops, part in total.by_order().items()}}
    if any(expression.has(sp.I) for expression in outputs.values()):
        raise TheoryError(f"{total.title} has complex rates (oscillating modes); compile it on a time grid: method='grid'")
    times = [moment for moment in total.legs.moments if moment != 0]
    used = {symbol for expression in outputs.values() for symbol in expression.free_symbols} - set(times)
    parameters = sorted({*used, *total.theory.parameters}, key=str)
    called = name or re.sub(r"\W+", "_", f"{total.theory.name}_{'_'.join(total.legs.names)}")
    statement = "\n".join(total.theory.conventions)
    made = generate(outputs, [*times, *parameters], name=called, title=title or total.title, statement=statement)
    return CompiledSum(total, made)
