"""Quadrature of kinked functions of a pair (x, y) = (l11 z1, l21 z1 + l22 z2): panels that end at the kinks.

Inner integral over z2: the kinks sit at ``(c - l21 z1)/l22``.  What is left is a function of z1 with the kinks
``c/l11`` of the x factor and, at the crossings ``c/l21`` of the y factor, a boundary layer of width ``l22/|l21|``;
panels double in width away from a crossing, so that a layer of any thinness is resolved.
"""

from __future__ import annotations

import numpy as np

from symtensor.numerics.rules import Rule, panel_nodes, uniform_edges

__all__ = ["inner_panels", "line_panels", "outer_panels"]


def line_panels(rule: Rule, kinks: np.ndarray, scales: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights in one coordinate z for functions of ``scale * z``, for several scales at once."""
    points = [kinks / scale for scale in scales if scale != 0]
    return panel_nodes(_edges(rule.radius, points), rule.n)


def outer_panels(rule: Rule, kinks: np.ndarray, l11: float, l21: float, l22: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights in z1, graded around the crossings of the y factor."""
    points = [kinks / l11] if l11 else []
    if l21:
        width = l22 / abs(l21)
        steps = [0.0]
        while width * 2 ** len(steps) < 2.0 and len(steps) < 60:
            steps.append(width * 2 ** (len(steps) - 1))
        offsets = np.array([*(-np.array(steps[:0:-1])), *steps])
        points.append((kinks[:, None] / l21 + offsets).ravel())
    return panel_nodes(_edges(rule.radius, points), rule.n)


def inner_panels(
    rule: Rule, kinks: np.ndarray, shift: np.ndarray, l22: float
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights in z2 for each shift ``l21 z1``: arrays of shape (len(shift), nodes)."""
    edges = np.broadcast_to(uniform_edges(rule.radius), (len(shift), 2 * int(np.ceil(rule.radius)) + 1))
    if l22 > 0:
        points = np.clip((kinks - shift[:, None]) / l22, -rule.radius, rule.radius)
        edges = np.sort(np.concatenate([edges, points], axis=1), axis=1)
    return panel_nodes(edges, rule.n)


def _edges(radius: float, points: list[np.ndarray]) -> np.ndarray:
    inside = [group[np.abs(group) < radius] for group in points]
    return np.unique(np.concatenate([uniform_edges(radius), *inside]))
