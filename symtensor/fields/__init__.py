"""Field theory of stochastic systems: actions with response fields, and exact Gaussian integration."""

from symtensor.fields.gaussian_integral import NotQuadraticError, integrate_gaussian
from symtensor.fields.increment_action import IncrementAction

__all__ = ["IncrementAction", "NotQuadraticError", "integrate_gaussian"]
