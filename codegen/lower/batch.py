"""Batch kernels: another kernel along a new first axis of some arguments."""

from __future__ import annotations

from symtensor.kernels import Argument, BatchKernel, Kernel, OdeKernel, ScanKernel

from ..ir import TemplateFunction

__all__ = ["INNER_PARAMETERS", "lower_batch"]

#: parameters that a kernel has beside its arguments: text of the definition, text of the call, static names
INNER_PARAMETERS: dict[type, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    ScanKernel: (("*", "depth: int"), ("depth=depth",), ("depth",)),
    OdeKernel: (
        ("ts: Array", "rtol: float | None = None", "atol: float | None = None", "*", "max_steps: int = 256"),
        ("ts", "rtol", "atol", "max_steps=max_steps"),
        ("max_steps",),
    ),
}


def lower_batch(
    kernel: BatchKernel, inner: Kernel, arguments: tuple[Argument, ...], outputs: tuple[Argument, ...]
) -> TemplateFunction:
    """`jax.vmap` over the batched arguments; what is not batched is shared."""
    parameters, passed, static = INNER_PARAMETERS.get(type(inner), ((), (), ()))
    names = [argument.name for argument in arguments]
    axes = ["0" if name in kernel.batched else "None" for name in names]
    values = {
        "inner": inner.name,
        "names": names,
        "axes": ", ".join(axes) + ("," if len(axes) == 1 else ""),
        "passed": passed,
        "static": static,
    }
    needs = frozenset({"partial"} if static else ())
    documented = (Argument(", ".join(text.partition("=")[0] for text in passed), (), f"as in {inner.name}"),) if passed else ()
    title = kernel.title or f"A batch of {inner.name}."
    return TemplateFunction(
        kernel.name, "batch.jinja", arguments, outputs, values, needs, parameters, documented, title
    )  # fmt: skip
