"""Turn and mirror a connected diagram: time, labels, symmetry and weight decide which way it lies."""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass

import numpy as np

from symtensor.diagrams.draw.assemble import Placement
from symtensor.diagrams.draw.geometry import FULL, Loop, Points, turn
from symtensor.diagrams.draw.structure import Structure

__all__ = ["orient"]


def orient(structure: Structure, placed: Placement) -> Placement:
    """The best image of a placement under rotations and reflections.

    Response lines point to the left (time runs from right to left, as in Taeuber, Critical Dynamics, 2014); without
    them, lines of complex fields point to the right. Legs follow their labels: the first at the left (upper left if there are
    several), the others anticlockwise.
    """
    view = _View.of(structure, placed)
    tries = [(factor, mirror) for factor in _factors(structure, view) for mirror in (False, True)]
    factor, mirror = min(tries, key=lambda pair: round(_cost(view, *pair), 4))
    return Placement(
        {n: factor * (z.conjugate() if mirror else z) for n, z in placed.positions.items()},
        {k: c.mapped(factor, 0j, mirror) for k, c in placed.curves.items()},
    )


@dataclass(frozen=True, slots=True)
class _View:
    """What the cost looks at: points of curves, nodes and tips of self-loops, legs by label, response and other directed lines."""

    points: Points
    nodes: Points
    legs: Points
    flow: Points
    along: Points

    @classmethod
    def of(cls, structure: Structure, placed: Placement) -> _View:
        lines = [line for k, line in enumerate(structure.graph.lines) if k in placed.curves and line.directed]
        places = placed.positions
        steps = [(line.response, places[line.end] - places[line.start]) for line in lines]
        response = any(f.response for f in structure.graph.model.fields)
        for k, line in enumerate(structure.graph.lines if response else ()):
            if k in placed.curves and line.propagator is None:
                # the vertex of an amputated response field is later than the rest, that of another field earlier; inside,
                # lines may point either way, so the legs count more
                sign = 1 if structure.graph.model.field(line.fields[0]).response else -1
                steps += [(True, sign * (places[line.start] - places[line.end]))] * 3
        rows = (
            placed.points(),
            [places[n] for n in sorted(places)] + [c.point(0.5) for c in placed.curves.values() if isinstance(c, Loop)],
            [places[n] for n in sorted(structure.legs, key=lambda n: structure.label_rank[n])],
            [step for response, step in steps if response],
            [step for response, step in steps if not response],
        )
        return cls(*(np.array(row, dtype=complex) for row in rows))


def _factors(structure: Structure, view: _View) -> list[complex]:
    legs = structure.legs
    if len(legs) == 1:
        return [1 + 0j]
    if len(legs) == 2:
        return [1 + 0j, -1 + 0j]
    angles = {0.0}
    count = max(2, *(sum(structure.terminals(i, n) for i in structure.at[n]) + (n in legs) for n in structure.nodes))
    for parts in (4, count, 2 * count, 4 * count):
        if parts <= 24:
            angles.update(FULL * k / parts for k in range(parts))
    x, y = view.points.real, view.points.imag
    middle = complex(x.max() + x.min(), y.max() + y.min()) / 2
    for z in view.nodes.tolist():
        if abs(z - middle) > 1e-6 and len(angles) < 60:
            angles.update((-cmath.phase(z - middle) + k * math.pi / 2) % FULL for k in range(4))
    # nearly equal angles count once, and exactly 0 stands for those just below a full turn
    distinct = {round(a % FULL, 6) % round(FULL, 6): a for a in sorted(angles, reverse=True)}
    return [turn(a) for _, a in sorted(distinct.items())]


def _cost(view: _View, factor: complex, mirror: bool) -> float:
    def image(points: Points) -> Points:
        return factor * (np.conj(points) if mirror else points)

    points, nodes = image(view.points), image(view.nodes)
    width, height = float(np.ptp(points.real)), float(np.ptp(points.imag))
    middle = complex(points.real.max() + points.real.min(), points.imag.max() + points.imag.min()) / 2
    cost = 1.2 * max(0.0, height / (width + 1e-9) - 1.0) + 0.02 * height
    flow, along = image(view.flow).real, image(view.along).real
    if len(flow):
        cost += 8 * float(np.mean(np.sign(np.round(flow, 1)))) + 0.5 * float(np.mean(flow))
    if len(along):
        cost += 6 * float(np.mean(along < -0.05)) - 0.5 * float(np.mean(along))
    cost -= 2.0 * _mirrored(nodes - middle, False) + 1.4 * _mirrored(nodes - middle, True)
    axis = float(image(view.legs).imag.mean()) if len(view.legs) else middle.imag
    cost -= 0.12 * (np.count_nonzero(nodes.imag > axis + 0.05) - np.count_nonzero(nodes.imag < axis - 0.05))
    cost -= 0.6 * (float(points.imag.mean()) - axis)
    cost -= 0.01 * float(np.sum(nodes.real > middle.real + 0.05))
    return cost + _legs(image(view.legs))


def _legs(legs: Points) -> float:
    """How far the legs are from where their labels want them; a leg in another's place counts most."""
    count = len(legs)
    if count < 2:
        return 0.0
    first = math.pi - (math.pi / count if count % 2 == 0 and count > 2 else 0.0)
    wanted = np.exp(1j * (first + FULL * np.arange(count) / count))
    off = np.abs(np.angle((legs - legs.mean()) / wanted))
    return float(3.0 * np.mean(np.maximum(0.0, off - math.pi / count - 0.1)) + 0.25 * np.mean(off))


def _mirrored(nodes: Points, left_right: bool) -> float:
    """The share of nodes (seen from the middle) that have a mirror image among the nodes."""
    images = -np.conj(nodes) if left_right else np.conj(nodes)
    return float(np.mean(np.abs(images[:, None] - nodes[None, :]).min(axis=1) < 0.06))
