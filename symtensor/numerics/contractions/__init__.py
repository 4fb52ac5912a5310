"""Derivative contractions C_{D,d} of JAX functions: derivatives contracted with gradients, by Taylor mode, never as tensors."""

from __future__ import annotations

from symtensor.numerics.contractions._cost import Cost, count_work
from symtensor.numerics.contractions._errors import ContractionError
from symtensor.numerics.contractions.compute import derivative_contractions
from symtensor.numerics.contractions.directions import (
    Direction,
    along,
    gradient_at,
    mixed_gradients,
    same_input,
    training_direction,
)
from symtensor.numerics.contractions.result import Contraction, DerivativeContractions
from symtensor.numerics.contractions.smoothness import KinkedOperationError, require_smooth, rough_operations
from symtensor.numerics.contractions.taylor import Method, line_coefficients, mixed_derivative

__all__ = [
    "Contraction",
    "ContractionError",
    "Cost",
    "DerivativeContractions",
    "Direction",
    "KinkedOperationError",
    "Method",
    "along",
    "count_work",
    "derivative_contractions",
    "gradient_at",
    "line_coefficients",
    "mixed_derivative",
    "mixed_gradients",
    "require_smooth",
    "rough_operations",
    "same_input",
    "training_direction",
]
