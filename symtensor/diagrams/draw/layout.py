"""Where everything in the picture of a diagram is: a point for each node, a curve for each line.

Connected parts are laid out one by one and then put side by side (or on top of each other where that gives a better format).
Lengths are in units of one line; y points up. The result depends on the diagram only, not on hashing or on random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from symtensor.diagrams.draw.assemble import Placement, assemble
from symtensor.diagrams.draw.geometry import Curve, Loop, polyline
from symtensor.diagrams.draw.orient import orient
from symtensor.diagrams.draw.structure import Structure, components
from symtensor.diagrams.graph import Graph

__all__ = ["Layout", "layout"]

GAP = 0.55


@dataclass(frozen=True)
class Layout:
    """Points of the nodes and curves of the lines, in the order of the graph's."""

    positions: tuple[complex, ...]
    curves: tuple[Curve, ...]

    @cached_property
    def box(self) -> tuple[float, float, float, float]:
        """Left, bottom, right and top of nodes and curves."""
        return _box([*self.positions, *(z for curve in self.curves for z in polyline(curve, 24))])

    def outward(self, node: int) -> complex:
        """The direction in which the single line of a leg ends."""
        for curve in self.curves:
            if not isinstance(curve, Loop):
                for start, end in ((curve.start, 0.0), (curve.end, 1.0)):
                    if abs(start - self.positions[node]) < 1e-9:
                        return curve.direction(end) * (1 if end else -1)
        return 1 + 0j


def _box(points: list[complex]) -> tuple[float, float, float, float]:
    xs, ys = [z.real for z in points], [z.imag for z in points]
    return min(xs), min(ys), max(xs), max(ys)


def layout(graph: Graph) -> Layout:
    """The layout of a diagram; time runs from right (earlier) to left (later) along response lines where possible."""
    parts = []
    for nodes in components(graph):
        structure = Structure(graph, nodes)
        parts.append(orient(structure, assemble(structure)))
    whole = _side_by_side(parts)
    return Layout(
        tuple(whole.positions[n] for n in range(len(graph.nodes))), tuple(whole.curves[k] for k in range(len(graph.lines)))
    )


def _side_by_side(parts: list[Placement]) -> Placement:
    """A row of the connected parts, or a column if they are much wider than high."""
    if not parts:
        return Placement()
    boxes = [_box(part.points().tolist()) for part in parts]
    widths, heights = [b[2] - b[0] for b in boxes], [b[3] - b[1] for b in boxes]
    row = (sum(widths) + GAP * len(parts)) / (max(heights) + GAP)
    column = (max(widths) + GAP) / (sum(heights) + GAP * len(parts))
    stacked = len(parts) > 1 and max(row / 2.2, 2.2 / row) > max(column / 2.2, 2.2 / column)
    whole, cursor = Placement(), 0.0
    for part, (left, bottom, right, top) in zip(parts, boxes):
        shift = complex(-(left + right) / 2, cursor - top) if stacked else complex(cursor - left, -(bottom + top) / 2)
        cursor += -(top - bottom + GAP) if stacked else right - left + GAP
        moved = {k: c.mapped(1, shift) for k, c in part.curves.items()}
        whole.add(Placement({n: z + shift for n, z in part.positions.items()}, moved))
    return whole
