"""From a diagram sum to a generated, jitted, differentiable JAX function, through the code generator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor._codegen import codegen
from symtensor.fields.errors import TheoryError

if TYPE_CHECKING:
    from symtensor.fields.diagram_sum import DiagramSum

__all__ = ["CompiledSum", "compile_sum"]


@dataclass(frozen=True, eq=False)
class CompiledSum:
    """A diagram sum as a function of the external times and the parameters (arrays broadcast; float32 or float64).

    Attributes:
        arguments: names, in order: the times, latest first, then the parameters.
        module: the generated module, with its source and its embedded 30-digit reference values.

    The closed form is exact: its error is rounding, which `check` measures against the reference values.
    """

    total: DiagramSum
    arguments: tuple[str, ...]
    module: Any

    def __call__(self, *values: Any, **named: Any) -> Any:
        """The sum of all orders."""
        return self.orders(*values, **named).total

    def orders(self, *values: Any, **named: Any) -> Any:
        """A named tuple: `total`, and `order_0`, `order_1`, .. by number of loops."""
        return self.function(**self._bound(values, named))

    @property
    def function(self) -> Any:
        """The jitted function of the generated module."""
        return self.module.load().correction

    @property
    def source(self) -> str:
        """The text of the module."""
        return self.module.source

    def write(self, path: str | Path) -> Path:
        """Write the module to a folder or file."""
        return self.module.write(path)

    def check(self, dtype: Any = None) -> Any:
        """The embedded self-check: worst relative error of every output against 30-digit values."""
        return self.module.check(dtype)

    def _bound(self, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        if len(values) > len(self.arguments):
            raise TypeError(f"{len(values)} arguments; the function takes {', '.join(self.arguments)}")
        given = dict(zip(self.arguments, values))
        unknown = [name for name in named if name not in self.arguments or name in given]
        if unknown:
            raise TypeError(f"unexpected or repeated argument {unknown[0]!r}; the function takes {', '.join(self.arguments)}")
        given |= named
        missing = [name for name in self.arguments if name not in given]
        if missing:
            raise TypeError(f"missing argument {missing[0]!r}; the function takes {', '.join(self.arguments)}")
        return {name: given[name] for name in self.arguments}

    def __repr__(self) -> str:
        return f"<CompiledSum {self.total.title}: f({', '.join(self.arguments)})>"


def compile_sum(total: DiagramSum, name: str = "", title: str = "") -> CompiledSum:
    """The function of the closed form of a diagram sum.

    Raises: TheoryError for values that are not real functions of real parameters, or for a term with delta(t).
    """
    if total.contact != 0:
        raise TheoryError(
            f"{total.title} has a part proportional to delta(t), {sp.sstr(total.contact)}, which is no function; compile "
            "total.value (the rest) or the Fourier transform"
        )
    outputs = [("total", total.expr)]
    outputs += [(f"order_{loops}", part.expr) for loops, part in total.by_order().items()]
    times = [moment for moment in total.legs.moments if moment != 0]
    for _, expression in outputs:
        if expression.has(sp.I):
            raise TheoryError(f"{total.title} has complex rates (oscillating modes); compile it on a time grid: method='grid'")
    used = set().union(*(expression.free_symbols for _, expression in outputs)) - set(times)
    parameters = sorted({*used, *total.theory.parameters}, key=lambda s: s.name)
    generator = codegen()
    from symtensor.derivation.kernels import Argument, ScalarKernel

    meaning = dict.fromkeys(times, "time")
    arguments = tuple(Argument(s.name, (), meaning.get(s, "parameter")) for s in (*times, *parameters))
    kernel = ScalarKernel("correction", arguments, tuple(outputs), title or total.title)
    module_name = name or re.sub(r"\W+", "_", f"{total.theory.name}_{'_'.join(total.legs.names)}")
    spec = generator.ModuleSpec(module_name, title or f"{total.title}.", (kernel,), statement="\n".join(total.theory.conventions))
    return CompiledSum(total, tuple(a.name for a in arguments), generator.generate(spec))
