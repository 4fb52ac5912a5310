"""Expectation kernels: the trapezoidal rule in whitened variables, elementwise in the parameters of the law.

For functions that are analytic near the real axis its error falls exponentially with the number of nodes, faster than
that of Gauss-Hermite (Trefethen & Weideman, SIAM Review 56 (2014), section 5).
"""

from __future__ import annotations

import sympy as sp

from symtensor.kernels import Argument, ExpectationKernel, ScalarKernel

from ..errors import GenerationError
from ..ir import TemplateFunction
from ..printers import number_text

__all__ = ["lower_expectation"]

#: values of the integrand that are held at a time: half a megabyte, so that they stay in the second-level cache of a CPU
BLOCK_NUMBERS = 2**16


def lower_expectation(kernel: ExpectationKernel, integrand: ScalarKernel, law: ScalarKernel) -> TemplateFunction:
    """Sum over one axis of nodes, or two; an integrand with two outputs is their product, the first without the inner variable."""
    if kernel.rule.kind != "trapezoid":
        raise GenerationError(f"{kernel.name}: rule {kernel.rule}; an expectation kernel takes a trapezoid")
    step = 2 * sp.Rational(str(kernel.rule.radius)) / (kernel.rule.n - 1)
    axes = len(kernel.variables)
    extra = ", None" * axes
    places = dict(zip(kernel.variables, ("_x", "_y")))
    arguments = [argument.name for argument in kernel.arguments]
    values = {
        "names": ", ".join(arguments),
        "cast": f"{', '.join(arguments)}{',' if len(arguments) == 1 else ''}",
        "law": law.name,
        "law_arguments": ", ".join(argument.name for argument in law.arguments),
        "integrand": integrand.name,
        "integrand_arguments": ", ".join(
            places.get(argument.name, f"{argument.name}[...{extra}]") for argument in integrand.arguments
        ),
        "factored": len(integrand.outputs) == 2,
        "factors": [name for name, _ in integrand.outputs],
        "axes": axes,
        "block": max(1, BLOCK_NUMBERS // kernel.rule.n**axes),
        "n": kernel.rule.n,
        "step": _wrapped(step),
        "middle": number_text(sp.Rational(kernel.rule.n - 1, 2))[0],
        "weight": number_text(sp.N(step / sp.sqrt(2 * sp.pi), 40))[0],
        "rule": str(kernel.rule),
    }
    title = kernel.title or "A Gaussian expectation."
    outputs, needs = (Argument(kernel.name),), frozenset({"floats", "safe", "blocks" if arguments else "lax"})
    return TemplateFunction(kernel.name, "expectation.jinja", kernel.arguments, outputs, values, needs, title=title)


def _wrapped(value: sp.Expr) -> str:
    text, strength = number_text(value)
    return text if strength >= 4 else f"({text})"
