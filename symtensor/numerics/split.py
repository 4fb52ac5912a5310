"""Quadrature of kinked functions of a pair (x, y) = (l11 z1, l21 z1 + l22 z2): panels that end at the kinks.

Inner integral over z2: the kinks sit at ``(c - l21 z1)/l22``.  What is left is a function of z1 with the kinks
``c/l11`` of the x factor and, at the crossings ``c/l21`` of the y factor, a boundary layer of width ``l22/|l21|``;
panels double in width away from a crossing, so that a layer of any thinness is resolved.
"""

from __future__ import annotations

import numpy as np

from symtensor.numerics.rules import Rule, panel_nodes, uniform_edges

__all__ = ["inner_panels", "outer_panels"]


#: kinks c of a factor that depends on l1 z1 + l2 z2, as (kinks, l1, l2)
Line = tuple[np.ndarray, float, float]


def outer_panels(rule: Rule, *lines: Line) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights in z1, once z2 is integrated out: edges at ``c/l1``, graded if the kink is smeared by z2."""
    points = []
    for kinks, l1, l2 in lines:
        if l1:
            offsets = _graded(l2 / abs(l1))
            points.append((kinks[:, None] / l1 + offsets).ravel())
    return panel_nodes(_edges(rule.radius, points), rule.n)


def _graded(width: float) -> np.ndarray:
    """Distances from a crossing: 0 and +- width 2^j up to the panel width 1."""
    if width <= 0:
        return np.zeros(1)
    steps = width * 2.0 ** np.arange(max(0, int(np.ceil(-np.log2(width))) + 1))
    return np.concatenate([-steps[::-1], [0.0], steps])


def inner_panels(rule: Rule, kinks: np.ndarray, shift: np.ndarray, l22: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights in z2 for each shift ``l21 z1``: arrays of shape (len(shift), nodes)."""
    edges = np.broadcast_to(uniform_edges(rule.radius), (len(shift), 2 * int(np.ceil(rule.radius)) + 1))
    if l22 > 0:
        points = np.clip((kinks - shift[:, None]) / l22, -rule.radius, rule.radius)
        edges = np.sort(np.concatenate([edges, points], axis=1), axis=1)
    return panel_nodes(edges, rule.n)


def _edges(radius: float, points: list[np.ndarray]) -> np.ndarray:
    inside = [group[np.abs(group) < radius] for group in points]
    return np.unique(np.concatenate([uniform_edges(radius), *inside]))
