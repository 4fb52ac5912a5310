"""The LaTeX formula that the docstring of each emitted function shows: the input, not what became of it."""

from __future__ import annotations

import sympy as sp

from symtensor.derivation.kernels import Kernel, MomentKernel, ScalarKernel, TensorKernel

__all__ = ["formula"]


def formula(kernel: Kernel) -> str:
    """LaTeX of what the kernel computes; empty for kernels that only call others."""
    match kernel:
        case ScalarKernel():
            return "\n".join(f"{name} = {sp.latex(expr)}" for name, expr in kernel.outputs)
        case TensorKernel():
            axes = "".join(axis.name for axis in kernel.axes)
            name = r"\mathrm{" + kernel.name.replace("_", r"\_") + "}"
            left = f"{name}_{{{axes}}}" if axes else name
            return f"{left} = {kernel.expression.latex()}"
        case MomentKernel():
            expectation = r"\mathrm{E}\,[\partial_a^i \partial_b^j\, \sigma(\phi_a)\, \sigma(\phi_b)]"
            return rf"m_{{ij}}[a,b] = {expectation}, \quad \phi \sim N(0, K)"
    return ""
