"""Layered networks of finite width n: the exact expansion in 1/n by diagrams.

network.py, drive.py        the model and the covariance Sigma(S) of a block
model.py                    the effective action, printed
term.py, diagram_terms.py    cumulants as sums of diagrams, written and drawn: `cumulant_terms`
tensor_network.py           a diagram as networks of vertex arrays and lines
plan.py, program.py         contraction order, kernels, generated module
lines.py, vertices.py       the arrays: lines, and path cumulants shared between coinciding times
expansion.py, result.py     numbers: `expand`; sensitivity.py their errors
"""

from symtensor.fields.layered.diagram_terms import LayeredSum, cumulant_terms
from symtensor.fields.layered.errors import LayeredError, LayeredMemoryError, NetworkError
from symtensor.fields.layered.expansion import expand
from symtensor.fields.layered.network import Branch, Functions, LayeredNetwork
from symtensor.fields.layered.result import LayeredExpansion
from symtensor.fields.layered.term import LayeredTerm

__all__ = [
    "Branch",
    "Functions",
    "LayeredError",
    "LayeredExpansion",
    "LayeredMemoryError",
    "LayeredNetwork",
    "LayeredSum",
    "LayeredTerm",
    "NetworkError",
    "cumulant_terms",
    "expand",
]
