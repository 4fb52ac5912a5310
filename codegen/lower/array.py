"""Array kernels: components of arguments into a scalar kernel, its outputs into arrays."""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportArgumentType=false

from __future__ import annotations

from symtensor.kernels import Argument, ArrayKernel, ArrayOutput, Component, ScalarKernel

from ..ir import TemplateFunction
from ..printers import number_text
from ..printers.layout import tuple_text

__all__ = ["lower_array"]

_LOCAL = "_entries"


def lower_array(kernel: ArrayKernel, step: ScalarKernel) -> TemplateFunction:
    """One call of the scalar kernel; every output is a stack of its results, in the order of the entries."""
    single = len(step.outputs) == 1
    texts = {name: _LOCAL if single else f"{_LOCAL}.{name}" for name, _ in step.outputs}
    values = {
        "step": step.name,
        "local": _LOCAL,
        "inputs": [_component(part) for part in kernel.inputs],
        "results": [_stacked(output, texts) for output in kernel.outputs],
    }
    needs = {"stacked"} if any(output.shape for output in kernel.outputs) else set()
    if len(kernel.outputs) > 1:
        needs.add("NamedTuple")
    if any(output.is_complex for output in kernel.outputs):
        needs.add("lax")
    outputs = tuple(Argument(output.name, output.shape) for output in kernel.outputs)
    title = kernel.title or "Arrays whose components are expressions."
    return TemplateFunction(kernel.name, "array.jinja", kernel.arguments, outputs, values, frozenset(needs), title=title)


def _component(part: Component) -> str:
    text = f"{part.argument}[..., {', '.join(map(str, part.place))}]" if part.place else part.argument
    return f"jnp.{part.part}({text})" if part.part else text


def _stacked(output: ArrayOutput, texts: dict[str, str]) -> tuple[str, str]:
    entries = [texts[entry] if isinstance(entry, str) else _number(entry) for entry in output.entries]
    if not output.is_complex:
        return output.name, _array(entries, output.shape)
    half = len(entries) // 2
    parts = (_array(entries[:half], output.shape), _array(entries[half:], output.shape))
    return output.name, f"lax.complex(*jnp.broadcast_arrays({', '.join(parts)}))"


def _array(entries: list[str], shape: tuple[int, ...]) -> str:
    return f"_stacked({tuple_text(list(map(str, shape)))}, {', '.join(entries)})" if shape else entries[0]


def _number(value: object) -> str:
    text, _ = number_text(value)
    return f"{text}.0" if text.lstrip("-").isdigit() else text
