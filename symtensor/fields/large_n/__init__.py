"""The 1/N expansion of N-component theories with symbolic N: zero dimensions, and their Langevin dynamics in the time domain.

saddle.py, scaled.py          the theory, its saddle point and dressed lines; variables in which all orders are polynomials
static.py, terms.py           cumulants from diagrams with a dressed auxiliary line
radial.py, check.py           the same without diagrams, by parts; the exact comparison
coupling_series.py            results as series in a coupling
langevin.py, time_sum.py      correlations and responses in time
time_lines.py, component_orders.py    lines in time; components summed and times integrated in one recursion
"""

from symtensor.fields.large_n.check import LargeNCheck, MismatchError
from symtensor.fields.large_n.langevin import time_correlation, time_response
from symtensor.fields.large_n.radial import RadialExpansion
from symtensor.fields.large_n.saddle import VectorTheory
from symtensor.fields.large_n.static import cumulant, log_partition, mean_square, two_point, vertex_function
from symtensor.fields.large_n.terms import LargeNSum, LargeNTerm
from symtensor.fields.large_n.time_sum import LangevinSum, LangevinTerm

__all__ = [
    "LangevinSum",
    "LangevinTerm",
    "LargeNCheck",
    "LargeNSum",
    "LargeNTerm",
    "MismatchError",
    "RadialExpansion",
    "VectorTheory",
    "cumulant",
    "log_partition",
    "mean_square",
    "time_correlation",
    "time_response",
    "two_point",
    "vertex_function",
]
