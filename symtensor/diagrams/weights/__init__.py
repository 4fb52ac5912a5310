"""Sums of symmetry factors and numbers of diagrams without any diagram: the proof that an enumeration is complete.

Nothing here knows how diagrams are enumerated. Weights come from zero-dimensional integrals (moments, logarithm, Legendre
transform), numbers of diagrams from Burnside's lemma.
"""

from symtensor.diagrams.weights.burnside import burnside_by_loops, burnside_series
from symtensor.diagrams.weights.dressed import dressed_weight_series
from symtensor.diagrams.weights.sums import weight_by_loops, weight_series

__all__ = ["burnside_by_loops", "burnside_series", "dressed_weight_series", "weight_by_loops", "weight_series"]
