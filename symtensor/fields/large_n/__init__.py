"""The 1/N expansion of N-component theories with symbolic N, in zero dimensions and for their Langevin dynamics."""

from symtensor.fields.large_n.check import LargeNCheck, MismatchError
from symtensor.fields.large_n.radial import RadialExpansion
from symtensor.fields.large_n.saddle import VectorTheory
from symtensor.fields.large_n.static import cumulant, log_partition, mean_square, two_point, vertex_function
from symtensor.fields.large_n.terms import LargeNSum, LargeNTerm

__all__ = [
    "LargeNCheck", "LargeNSum", "LargeNTerm", "MismatchError", "RadialExpansion", "VectorTheory", "cumulant", "log_partition", "mean_square", "two_point", "vertex_function",
]  # fmt: skip
