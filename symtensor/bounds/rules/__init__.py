"""The rules, one file per family; `RULES` maps an identifier to its statement, hypotheses and function."""

from __future__ import annotations

from . import algebra, families, functions, ground, limits, moments, norms
from .base import RULES, Call, Given, Rule, apply_rule, conclude

__all__ = [
    "RULES", "Call", "Given", "Rule", "algebra", "apply_rule", "conclude", "families", "functions", "ground", "limits",
    "moments", "norms",
]  # fmt: skip
