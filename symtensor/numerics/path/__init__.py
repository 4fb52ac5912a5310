"""Joint cumulants of one-neuron functions along the Gaussian path of a layered network, and their derivatives in its variances.

One input up to four times (`one_input`), any number of inputs up to two (`several_inputs`); `path_cumulants` chooses.
"""

from __future__ import annotations

from symtensor.numerics.path.cumulants import path_cumulants
from symtensor.numerics.path.law import PathArray, PathLaw
from symtensor.numerics.path.leading import KernelOverflowError, Leading, leading_order
from symtensor.numerics.path.several_inputs import PathNotConverged

__all__ = [
    "KernelOverflowError",
    "Leading",
    "PathArray",
    "PathLaw",
    "PathNotConverged",
    "leading_order",
    "path_cumulants",
]
