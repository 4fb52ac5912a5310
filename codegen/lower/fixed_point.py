"""Fixed-point kernels: a step iterated until it changes nothing."""

from __future__ import annotations

from symtensor.kernels import Argument, CompositeKernel, FixedPointKernel

from ..ir import TemplateFunction
from ..printers.layout import tuple_text

__all__ = ["lower_fixed_point"]

_DOCUMENTED = (
    Argument("tol", (), "largest change accepted, relative to max(1, |state|); by default 8 units of rounding"),
    Argument("max_steps", (), "static; the iteration stops here, and `converged` says so"),
)


def lower_fixed_point(kernel: FixedPointKernel, step: CompositeKernel, outputs: tuple[Argument, ...]) -> TemplateFunction:
    """The states are the initial guess and the result; derivatives come from the implicit function theorem."""
    states = [state for state, _ in kernel.carry]
    shapes = {argument.name: argument.shape for argument in step.arguments}
    arguments = [argument.name for argument in step.arguments]
    values = {
        "step": step.name,
        "arguments": ", ".join(arguments),
        "cast": f"{', '.join(arguments)}{',' if len(arguments) == 1 else ''}",
        "unpacked": f"{', '.join(states)}{',' if len(states) == 1 else ''}",
        "initial": tuple_text(states),
        "next": tuple_text([f"_now.{returned}" for _, returned in kernel.carry]),
        "count": len(states),
        "elementwise": all(shapes[state] == () for state in states),
    }
    return TemplateFunction(
        kernel.name, "fixed_point.jinja", step.arguments, outputs, values,
        frozenset({"NamedTuple", "lax", "partial", "floats", "Callable"}),
        ("tol: float | None = None", "*", "max_steps: int = 1000"), _DOCUMENTED,
        kernel.title or "The state that the step leaves as it is, by iteration from the given one.",
    )  # fmt: skip
