"""Refine a quadrature rule until the answer stops moving: nodes and radius."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Literal

import numpy as np

from symtensor.numerics.rules import Rule

__all__ = ["ROUNDING", "refine", "resolving_rule"]

ROUNDING = 1e-14
_RADII = (7.0, 8.5, 10.0, 12.0, 15.0, 19.0, 24.0, 30.0, 38.0, 48.0, 60.0)
_STEPS = (0.6, 0.48, 0.38, 0.3, 0.24, 0.2, 0.16, 0.13, 0.1, 0.08, 0.065, 0.05, 0.04, 0.032, 0.025, 0.02, 0.016)
_LARGEST = 1500
_PANEL_NODES = (6, 8, 12, 16, 24, 32, 48)

#: a grid with this many nodes on either side sees features of a thousandth of a standard deviation
_RESOLVED = 6000

Refinable = Literal["trapezoid", "split"]


def refine(
    kind: Refinable,
    difference: Callable[[Rule, Rule], float],
    tol: float,
    confirm: Callable[[Rule, Rule], float] | None = None,
) -> tuple[Rule, float]:
    """The cheapest rule of a family whose relative difference to a finer and wider one is at most ``tol``.

    Parameters
    ----------
    kind
        Family of rules.
    difference
        Relative difference of the results of two rules.
    tol
        Aim.
    confirm
        A dearer difference that has the last word (default: ``difference``).

    Returns
    -------
    (rule, error)
        The best rule met if none reaches ``tol``.
    """
    confirm = confirm or difference
    best, least, level = _rule(kind, _RADII[0], 0), np.inf, 0
    for radius, wider in pairwise(_RADII):
        while level < _levels(kind, radius):
            rule = _rule(kind, radius, level)
            nodes = difference(rule, _rule(kind, radius, level + 1))
            tail = difference(rule, _rule(kind, wider, level))
            error = max(nodes, tail, ROUNDING)
            if error <= tol:
                error = max(confirm(rule, _rule(kind, wider, level + 1)), ROUNDING)
            if error < least:
                best, least = rule, error
            if error <= tol:
                return best, least
            # cutting off a tail also spoils the convergence in the nodes, so the radius comes first if it matters
            if tail > tol and tail > 0.1 * nodes:
                break
            level += 1
        else:
            break
    return best, least


def resolving_rule(rule: Rule) -> Rule:
    """A rule that shares no nodes with `rule` and sees what falls between them: refinement alone cannot, because two
    coarse grids that both miss a narrow feature agree."""
    if rule.kind == "split":
        return Rule("split", 240, rule.radius + 0.37)
    return Rule("trapezoid", 2 * _RESOLVED + 1, rule.radius + 0.37)


def _rule(kind: Refinable, radius: float, level: int) -> Rule:
    if kind == "split":
        return Rule(kind, _PANEL_NODES[level], radius)
    # nodes at the multiples of the step, so that widening the radius adds nodes and moves none
    count = int(np.ceil(radius / _STEPS[level]))
    return Rule(kind, 2 * count + 1, round(count * _STEPS[level], 3))


def _levels(kind: Refinable, radius: float) -> int:
    if kind == "split":
        return len(_PANEL_NODES) - 1
    return sum(2 * radius / step < _LARGEST for step in _STEPS) - 1
