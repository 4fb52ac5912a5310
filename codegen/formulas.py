"""The LaTeX formula that the docstring of each emitted function shows: the input, not what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import sympy as sp

from symtensor.kernels import Kernel, MomentKernel, ScalarKernel, TensorKernel

__all__ = ["formula"]

#: parts of one expression, and of all outputs together, beyond which formulas are cut
_LONGEST, _MOST_PARTS = 200, 400


def formula(kernel: Kernel) -> str:
    """LaTeX of what the kernel computes; empty for kernels that only call others."""
    match kernel:
        case ScalarKernel():
            return "\n".join(_outputs(kernel))
        case TensorKernel():
            axes = "".join(axis.name for axis in kernel.axes)
            name = r"\mathrm{" + kernel.name.replace("_", r"\_") + "}"
            left = f"{name}_{{{axes}}}" if axes else name
            return f"{left} = {kernel.expression.latex()}"
        case MomentKernel():
            expectation = r"\mathrm{E}\,[\partial_a^i \partial_b^j\, \sigma(\phi_a)\, \sigma(\phi_b)]"
            return rf"m_{{ij}}[a,b] = {expectation}, \quad \phi \sim N(0, K)"
    return ""


def _outputs(kernel: ScalarKernel) -> Iterator[str]:
    """One formula a line, an ellipsis for one that would fill pages (and take SymPy minutes to print) and for the last ones."""
    left = _MOST_PARTS
    for name, expr in kernel.outputs:
        size = sum(1 for _ in islice(sp.preorder_traversal(expr), _LONGEST + 1))
        if left <= 0:
            yield r"\ldots"
            return
        left -= 1 if size > _LONGEST else size
        yield rf"{name} = \ldots" if size > _LONGEST else f"{name} = {sp.latex(expr)}"
