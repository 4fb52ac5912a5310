"""What the code generator is given: the planned diagrams of the expansion at order 1/n."""

from __future__ import annotations

from symtensor.fields.layered.expansion import sums_of_order
from symtensor.fields.layered.program import Output, Program
from symtensor.kernels import Kernel

__all__ = ["kernels"]


def kernels() -> tuple[Kernel, ...]:
    """Mean and covariance at order 1/n as sums of contractions of path cumulants and lines, planned for typical sizes."""
    outputs = [
        Output("covariance" if total.legs == 2 else "mean", total, equal=total.legs != 2)
        for total in sums_of_order(1, ("mean", "covariance"))
    ]
    return Program.of(outputs, 1, {"T": 21, "C": 6, "F": 3, "E": 3}).spec().kernels
