"""The LaTeX formula that the docstring of each emitted function shows: the input, not what became of it."""

from __future__ import annotations

from itertools import islice

import sympy as sp

from symtensor.kernels import Kernel, MomentKernel, ScalarKernel, TensorKernel

__all__ = ["formula"]

#: parts of an expression, and outputs, beyond which a formula is cut
_LONGEST, _MOST_OUTPUTS = 200, 40


def formula(kernel: Kernel) -> str:
    """LaTeX of what the kernel computes; empty for kernels that only call others."""
    match kernel:
        case ScalarKernel():
            shown = [f"{name} = {_scalar(expr)}" for name, expr in kernel.outputs[:_MOST_OUTPUTS]]
            return "\n".join([*shown, r"\ldots"] if len(kernel.outputs) > _MOST_OUTPUTS else shown)
        case TensorKernel():
            axes = "".join(axis.name for axis in kernel.axes)
            name = r"\mathrm{" + kernel.name.replace("_", r"\_") + "}"
            left = f"{name}_{{{axes}}}" if axes else name
            return f"{left} = {kernel.expression.latex()}"
        case MomentKernel():
            expectation = r"\mathrm{E}\,[\partial_a^i \partial_b^j\, \sigma(\phi_a)\, \sigma(\phi_b)]"
            return rf"m_{{ij}}[a,b] = {expectation}, \quad \phi \sim N(0, K)"
    return ""


def _scalar(expr: sp.Expr) -> str:
    """LaTeX, or an ellipsis for what would fill pages (and take SymPy minutes to print)."""
    parts = islice(sp.preorder_traversal(expr), _LONGEST + 1)
    return r"\ldots" if sum(1 for _ in parts) > _LONGEST else sp.latex(expr)
