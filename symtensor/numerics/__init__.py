"""Numbers: Gaussian moments by quadrature (NumPy), references at many digits (mpmath), simulation (JAX, on first use)."""

from __future__ import annotations

from symtensor.numerics.covariance import CovarianceError, condition_number, require_covariance
from symtensor.numerics.expectation import Expectation, expect
from symtensor.numerics.moments import ORDERS, moment_table
from symtensor.numerics.quadrature import QuadratureNotConverged, RuleChoice, choose_rule, rule_error
from symtensor.numerics.reference import reference_moments
from symtensor.numerics.rules import CLOSED, Rule, RuleError, nodes_weights, parse_rule

__all__ = [
    "CLOSED",
    "ORDERS",
    "CovarianceError",
    "Expectation",
    "QuadratureNotConverged",
    "Rule",
    "RuleChoice",
    "RuleError",
    "choose_rule",
    "condition_number",
    "expect",
    "moment_table",
    "nodes_weights",
    "parse_rule",
    "reference_moments",
    "require_covariance",
    "rule_error",
]
