"""A generated module as a value: its source, and what can be done with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from symtensor.kernels import Kernel

from .analyse import Signature, analyse
from .cost import Cost, cost_of
from .formulas import formula
from .lower import lower
from .points import TOLERANCES, reference_points
from .render import render
from .spec import ModuleSpec

__all__ = ["GeneratedModule", "generate"]


@dataclass(frozen=True, slots=True)
class GeneratedModule:
    """The source of an emitted module.

    Attributes
    ----------
    name
        Module name.
    source
        Python text; the same specification gives the same bytes.
    spec
        What it was generated from.
    signatures
        Kernel name -> arguments and outputs of its function.
    cost
        Kernel name -> operations counted in the emitted code.
    """

    name: str
    source: str
    spec: ModuleSpec
    signatures: dict[str, Signature] = field(compare=False)
    cost: dict[str, Cost] = field(compare=False)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The input kernels."""
        return self.spec.kernels

    def write(self, path: str | Path) -> Path:
        """Write `name.py` into a folder, or the file itself if the path ends in `.py`; returns the file."""
        target = Path(path)
        if target.suffix != ".py":
            target = target / f"{self.name}.py"
        target.write_text(self.source, encoding="utf-8", newline="\n")
        return target

    def load(self) -> ModuleType:
        """Import the source as a private module (once per source); needs JAX."""
        from .load import load

        return load(self)

    def check(self, dtype: Any = None) -> Any:
        """Run the embedded self-check; returns its `Check(errors, tolerance, passed)`.

        Raises
        ------
        ValueError
            The module was generated without reference points, or float64 is asked for and JAX runs in float32.
        """
        if not self.spec.reference_points:
            raise ValueError(f"module {self.name} was generated without reference points; set reference_points=True")
        return self.load().self_check(dtype)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.source)


def generate(spec: ModuleSpec) -> GeneratedModule:
    """Analyse, lower, optimise and render a set of kernels.

    Parameters
    ----------
    spec
        Kernels with names, and the quadrature rule of the moment kernel.

    Returns
    -------
    GeneratedModule
        Its `source` is a self-contained module that imports JAX (and diffrax if it integrates an ODE).

    Raises
    ------
    GenerationError
        Or one of its subclasses: whatever is wrong is reported here, by name, and not by the emitted module.

    Examples
    --------
    >>> import sympy as sp
    >>> from symtensor.kernels import Argument, ScalarKernel
    >>> x = sp.Symbol("x", real=True)
    >>> kernel = ScalarKernel("well", (Argument("x"),), (("y", sp.log(1 + x**2)),))
    >>> module = generate(ModuleSpec("potential", "A potential.", (kernel,)))
    >>> print(module.source[module.source.index("    return jnp") :].splitlines()[0].strip())
    return jnp.log1p(x**2)
    """
    signatures = analyse(spec)
    functions = lower(spec)
    points = reference_points(spec) if spec.reference_points else ()
    formulas = {kernel.name: formula(kernel) for kernel in spec.kernels}
    source = render(spec, functions, signatures, formulas, points, TOLERANCES)
    return GeneratedModule(spec.name, source, spec, signatures, {f.name: cost_of(f) for f in functions})
