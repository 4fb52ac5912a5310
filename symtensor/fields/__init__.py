"""Field theory: from an action or a stochastic equation to diagrams, to formulas, to compiled functions.

    reading.py, saddle.py, theory_file.py   text or SymPy -> fields, drift, noise, point of expansion
    field_theory.py, free.py, vertices.py   `FieldTheory`: propagators and vertices at the saddle; start here
    legs.py, diagram_sum.py, term.py        cumulants and vertex functions as sums of diagrams
    assignments.py, time_ordered.py         the value of a diagram: components summed, times integrated exactly
    formula.py, display.py, compiled.py     LaTeX, notebook, generated code
    dyson.py, effective.py                  resummed self-energy, effective action
    verification.py, hierarchy.py           the second route: Wick's theorem, moment equations, no diagrams
    grid.py, frequency.py, closure          numbers where there is no closed form; self-consistent closures
    large_n/, momentum/                     1/N expansion; theories whose lines carry momentum
    increment_action.py                     the discrete action of a layered network
"""

from symtensor.fields.diagram_sum import DiagramSum
from symtensor.fields.errors import PointError, SourceError, TheoryError, UnstableError, ZeroModeError
from symtensor.fields.exponential_sum import ExponentialSum
from symtensor.fields.field_theory import CONVENTIONS, FieldTheory
from symtensor.fields.gaussian_integral import NotQuadraticError, integrate_gaussian
from symtensor.fields.hierarchy import MomentHierarchy
from symtensor.fields.increment_action import IncrementAction
from symtensor.fields.loop_hierarchy import loop_cumulant
from symtensor.fields.term import Term
from symtensor.fields.theories import THEORIES, theory

__all__ = [
    "CONVENTIONS",
    "THEORIES",
    "DiagramSum",
    "ExponentialSum",
    "FieldTheory",
    "IncrementAction",
    "MomentHierarchy",
    "NotQuadraticError",
    "PointError",
    "SourceError",
    "Term",
    "TheoryError",
    "UnstableError",
    "ZeroModeError",
    "integrate_gaussian",
    "loop_cumulant",
    "theory",
]
