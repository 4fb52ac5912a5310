"""Put the blocks of a connected diagram together: backbone or tree first, then the parts that hang on it, then self-loops."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from symtensor.diagrams.draw.blocks import Block, BlockDrawing, draw_block
from symtensor.diagrams.draw.geometry import FULL, Arc, Curve, Loop, Points, polyline, turn
from symtensor.diagrams.draw.structure import Item, Structure
from symtensor.diagrams.graph import Graph

__all__ = ["Placement", "assemble"]

SCALES = (1.0, 0.85, 0.7, 0.55, 0.42, 0.32)
LOOP = 0.72
#: how far a hanging part keeps from everything else
CLEAR = 0.17
Weight = Callable[[Item, int], int]


class Waiting(NamedTuple):
    """A self-loop still to be drawn: its line and node, the direction chosen for it and its size."""

    line: int
    node: int
    angle: float
    scale: float = 1.0


@dataclass
class Placement:
    """Where nodes and lines are so far; self-loops come last, when it is known how much room there is."""

    positions: dict[int, complex] = field(default_factory=dict)
    curves: dict[int, Curve] = field(default_factory=dict)
    loops: list[Waiting] = field(default_factory=list)

    def scaled(self, about: complex, factor: float) -> Placement:
        shift = about * (1 - factor)
        return Placement(
            {n: factor * z + shift for n, z in self.positions.items()},
            {k: c.mapped(factor, shift) for k, c in self.curves.items()},
            [loop._replace(scale=factor * loop.scale) for loop in self.loops],
        )

    def add(self, other: Placement) -> None:
        self.positions.update(other.positions)
        self.curves.update(other.curves)
        self.loops.extend(other.loops)

    def points(self) -> Points:
        """Points all along the curves, and the nodes."""
        along = [c.point(k / 14) for c in self.curves.values() for k in range(15)]
        return np.array(along + list(self.positions.values()), dtype=complex)


def assemble(structure: Structure) -> Placement:
    """Positions and curves of a connected part of a diagram, before it is turned."""
    placed = Placement()
    assembler = _Assembler(structure)
    if not structure.legs and len(structure.items) == 1 and not structure.items[0].is_loop:
        assembler.block(placed, structure.items[0], None, 0j, math.pi, structure.ends)
    else:
        root = assembler.root()
        total = sum(structure.terminals(item, root) for item in structure.at[root]) + len(structure.legs[:1])
        assembler.vertex(placed, root, 0j, None, math.pi, total, structure.terminals)
    for node in list(placed.positions):
        assembler.hang(placed, node)
    assembler.finish_loops(placed)
    if len(structure.legs) == 2:
        assembler.stretch_legs(placed)
    return placed


class _Assembler:
    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.graph = structure.graph

    def root(self) -> int:
        """The leg that comes first, or the vertex where most blocks meet."""
        s = self.structure
        if s.legs:
            return min(s.legs, key=lambda n: s.label_rank[n])
        return max(s.nodes, key=lambda n: (len(s.at[n]), -n))

    def vertex(
        self, placed: Placement, node: int, at: complex, came: Item | None, back: float, total: float, weight: Weight
    ) -> None:
        """Place `node` and what is behind it; `back` is the direction one came from, in the middle of its sector."""
        placed.positions[node] = at
        children = [item for item in self.structure.at[node] if item != came and weight(item, node)]
        children.sort(key=lambda item: (self.structure.first_leg(item, node), item.is_loop, item.nodes, item.lines))
        ahead = sum(weight(item, node) for item in children)
        cursor = back + math.pi * (total - ahead) / total
        for item in children:
            share = FULL * weight(item, node) / total
            self.item(placed, item, node, at, cursor + share / 2, total, weight)
            cursor += share

    def item(self, placed: Placement, item: Item, node: int, at: complex, angle: float, total: float, weight: Weight) -> None:
        if item.is_loop:
            placed.loops.append(Waiting(item.lines[0], node, angle))
            return
        if self.structure.is_hanging(item, node):
            weight, total = self.structure.ends, self.structure.ends(item, node) + 1
        if not item.is_bridge:
            self.block(placed, item, node, at, angle, weight, total)
            return
        line = self.graph.lines[item.lines[0]]
        other = line.end if line.start == node else line.start
        there = at + self.bridge_length(item) * turn(angle)
        placed.curves[item.lines[0]] = Arc(at, there) if line.start == node else Arc(there, at)
        self.vertex(placed, other, there, item, angle + math.pi, total, weight)

    def bridge_length(self, item: Item) -> float:
        line = self.graph.lines[item.lines[0]]
        legs = sum(self.graph.nodes[n].is_leg for n in item.nodes)
        if legs == 2:
            return 1.6
        if legs == 1:
            return 0.5 if line.propagator is None else 0.9
        ends = [n for n in item.nodes if all(other == item or other.is_loop for other in self.structure.at[n])]
        return 0.75 if ends else 1.0

    def block(
        self, placed: Placement, item: Item, entry: int | None, at: complex, angle: float, weight: Weight, total: float = 0
    ) -> None:
        """Draw a block entered at `entry` (at the place `at`, going towards `angle`) and everything behind it."""
        s = self.structure
        behind = {u: [o for o in s.at[u] if o != item] for u in item.nodes}
        weights: dict[int, float] = {u: sum(weight(o, u) for o in behind[u]) for u in item.nodes if u != entry}
        ahead = sum(weights.values())
        weights = {u: w for u, w in weights.items() if w}
        if entry is not None:
            weights[entry] = max(1, total - ahead)
        drawing = draw_block(self.problem(item, weights, entry, angle + math.pi))
        drawing = _ordered(drawing, lambda u: min([s.first_leg(o, u) for o in behind[u]], default=0), entry)
        centre = at - drawing.positions[entry] if entry is not None else 0j
        for index, arc in drawing.arcs.items():
            line, moved = self.graph.lines[index], arc.mapped(1, centre)
            same = abs(moved.start - centre - drawing.positions[line.start]) < 1e-9
            placed.curves[index] = moved if same else Arc(moved.end, moved.start, -moved.sagitta)
        for u, z in drawing.positions.items():
            placed.positions[u] = centre + z
        # legs that fan out from a corner of a polygon would continue its sides; a narrower fan does not
        fan = (total or ahead) * (1.4 if len(weights) > 2 else 1.0)
        for u in sorted(weights):
            if u != entry:
                self.vertex(placed, u, centre + drawing.positions[u], item, drawing.outward[u] + math.pi, fan, weight)

    def problem(self, item: Item, weights: dict[int, float], entry: int | None, back: float) -> Block:
        pairs: dict[tuple[int, int], list[int]] = defaultdict(list)
        flow = []
        for index in item.lines:
            line = self.graph.lines[index]
            pairs[min(line.start, line.end), max(line.start, line.end)].append(index)
            if line.response:
                flow.append((line.start, line.end))
        s = self.structure
        legged = sum(any(s.has_legs(o, u) for o in s.at[u] if o != item) for u in item.nodes)
        busy = frozenset(u for u in item.nodes if any(o != item for o in s.at[u]))
        spine, through = s.spine(item, entry) if entry is not None and legged == 2 else ((), ())
        joined = {pair: _odd_one_in_the_middle(self.graph, rows) for pair, rows in pairs.items()}
        return Block(item.nodes, joined, weights, entry, back, busy, tuple(flow), legged <= 2, spine, frozenset(through))

    def hang(self, placed: Placement, node: int) -> None:
        """Place what hangs on `node` into the widest gap between its lines, upwards if there is a choice."""
        s = self.structure
        waiting = [o for o in s.at[node] if s.is_hanging(o, node) and not s.terminals(o, node) and o.lines[0] not in placed.curves]
        done = {loop.line for loop in placed.loops}
        waiting = [o for o in waiting if o.lines[0] not in done]
        for item in sorted(waiting, key=lambda o: (o.is_loop, -s.size(o, node), o.lines)):
            taken = [loop.angle for loop in placed.loops if loop.node == node]
            gaps = _gaps(placed, node, taken)
            angles = [angle for angle, width in gaps if width > 0.6 * gaps[0][1]]
            if item.is_loop:
                rooms = [min(CLEAR, self.room(placed, node, _ghost(placed, node, a, SCALES[2]))) for a in angles]
                roomy = angles[rooms.index(max(rooms))]
                placed.loops.append(Waiting(item.lines[0], node, roomy))
            else:
                self.hang_one(placed, item, node, angles)

    def hang_one(self, placed: Placement, item: Item, node: int, angles: list[float]) -> None:
        at = placed.positions[node]
        best: tuple[float, Placement] | None = None
        # a little smaller upwards is better than full size downwards
        for scales in (SCALES[:3], SCALES[3:]):
            for angle, scale in itertools.product(angles, scales):
                part = Placement()
                self.item(part, item, node, at, angle, self.structure.ends(item, node) + 1, self.structure.ends)
                part = part.scaled(at, scale)
                ghosts = [_ghost(part, *loop[1:]) for loop in part.loops]
                room = self.room(placed, node, np.concatenate([part.points(), *ghosts]))
                if best is None or room > best[0] + 1e-9:
                    best = room, part
                if best[0] > CLEAR:
                    placed.add(best[1])
                    return
        assert best is not None
        placed.add(best[1])

    def room(self, placed: Placement, node: int, new: Points) -> float:
        """How near the points come to what is placed; lines that touch at the common `node` are close to each other for a while."""
        at = placed.positions[node]
        parts = [_ghost(placed, *loop[1:]) for loop in placed.loops if loop.node != node]
        for curve in placed.curves.values():
            points = np.array([curve.point(k / 14) for k in range(15)], dtype=complex)
            meets = np.abs(points - at).min() < 1e-9
            parts.append(points[np.abs(points - at) > (0.55 if meets else CLEAR)])
        parts.append(np.array([z for n, z in placed.positions.items() if n != node], dtype=complex))
        old, new = np.concatenate(parts), new[np.abs(new - at) > 2 * CLEAR]
        return float(np.abs(old[:, None] - new[None, :]).min()) if len(old) and len(new) else 1.0

    def finish_loops(self, placed: Placement) -> None:
        """Draw the self-loops: those in one gap between lines share it; alone in a wide gap a loop is a circle."""
        by_node: dict[int, list[tuple[float, int]]] = defaultdict(list)
        scales = {loop.line: loop.scale for loop in placed.loops}
        for line, node, angle, _ in placed.loops:
            by_node[node].append((angle, line))
        for node, loops in sorted(by_node.items()):
            gaps = _gaps(placed, node, [])
            rows: dict[int, list[tuple[float, int]]] = defaultdict(list)
            for angle, line in loops:
                rows[min(range(len(gaps)), key=lambda k: _apart(gaps[k][0], angle) - gaps[k][1] / 2)].append((angle, line))
            for k, row in rows.items():
                middle, width = gaps[k]
                whole = len(gaps) == 1 and width > FULL - 1e-6
                share = width / len(row)
                row.sort(key=lambda pair: (_signed(pair[0] - middle), pair[1]))
                for rank, (angle, line) in enumerate(row):
                    at_angle = angle if whole else middle + share * (rank - (len(row) - 1) / 2)
                    opening = 0.8 * share if share < 2.6 else math.pi
                    placed.curves[line] = self.loop(placed, node, at_angle, opening, scales[line])

    def stretch_legs(self, placed: Placement) -> None:
        """Let the two legs of a backbone reach beyond everything that hangs on it."""
        for leg in self.structure.legs:
            index = self.graph.incident[leg][0]
            other = self.graph.other_end(index, leg)
            near, far = placed.positions[other], placed.positions[leg]
            out = (far - near) / abs(far - near)
            rest = [z for k, c in placed.curves.items() if k != index for z in polyline(c, 14)]
            reach = max((((z - far) * out.conjugate()).real for z in rest), default=-1.0) + 0.2
            if reach > 0 and not self.graph.nodes[other].is_leg:
                placed.positions[leg] = far = far + reach * out
                placed.curves[index] = Arc(far, near) if self.graph.lines[index].start == leg else Arc(near, far)

    def loop(self, placed: Placement, node: int, angle: float, opening: float, size: float) -> Loop:
        """A self-loop as large as the room in its direction allows."""
        at = placed.positions[node]
        old = placed.points()
        reach = size * (LOOP if opening > 2.6 else LOOP * 1.1)
        for scale in SCALES:
            loop = Loop(at, angle, reach * scale, opening)
            new = np.array(loop.sample(16)[3:-3], dtype=complex)
            far = old[np.abs(old - at) > CLEAR]
            if not len(far) or float(np.abs(far[:, None] - new[None, :]).min()) > 0.8 * CLEAR:
                break
        return loop


def _odd_one_in_the_middle(graph: Graph, lines: list[int]) -> tuple[int, ...]:
    """Parallel lines in an order that is symmetric where possible: pairs of equal lines outside, single ones inside."""
    kinds: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index in lines:
        kinds[tuple(sorted(graph.lines[index].fields))].append(index)
    left, middle, right = [], [], []
    for row in kinds.values():
        half = len(row) // 2
        left += row[:half]
        right = row[half : 2 * half] + right
        middle += row[2 * half :]
    return (*left, *middle, *right)


def _ghost(placed: Placement, node: int, angle: float, scale: float = 1.0) -> Points:
    """Points of a self-loop that is still to be drawn."""
    return np.array(polyline(Loop(placed.positions[node], angle, LOOP * scale), 14), dtype=complex)


def _apart(a: float, b: float) -> float:
    return abs(_signed(a - b))


def _signed(angle: float) -> float:
    return (angle + math.pi) % FULL - math.pi


def _gaps(placed: Placement, node: int, taken: list[float]) -> list[tuple[float, float]]:
    """Middle and width of the gaps between the lines at a node, the widest first, then the one that points up most."""
    at, angles = placed.positions[node], [a % FULL for a in taken]
    for curve in placed.curves.values():
        if isinstance(curve, Loop):
            continue
        for start in (True, False):
            if abs((curve.start if start else curve.end) - at) < 1e-9:
                angles.append(curve.leaving(start) % FULL)
    if not angles:
        return [(math.pi / 2, FULL)]
    angles.sort()
    gaps = [((a + b) / 2, b - a) for a, b in zip(angles, [*angles[1:], angles[0] + FULL]) if b - a > 1e-6]
    return sorted(gaps, key=lambda g: (-round(g[1], 3), -round(math.sin(g[0]), 3), round(math.cos(g[0]), 3)))


def _ordered(drawing: BlockDrawing, rank: Callable[[int], int], entry: int | None) -> BlockDrawing:
    """Mirror a block about the axis of its entry if that puts the legs on it into the order of their labels, anticlockwise."""
    if entry is None:
        return drawing
    back = drawing.outward[entry]
    ranks = [rank(u) for u in sorted((u for u in drawing.outward if u != entry), key=lambda u: (drawing.outward[u] - back) % FULL)]
    wrong = sum(a > b for i, a in enumerate(ranks) for b in ranks[i + 1 :])
    if 2 * wrong <= len(ranks) * (len(ranks) - 1) // 2:
        return drawing
    axis = turn(2 * back)
    return BlockDrawing(
        {u: axis * z.conjugate() for u, z in drawing.positions.items()},
        {k: arc.mapped(axis, 0j, True) for k, arc in drawing.arcs.items()},
        {u: 2 * back - a for u, a in drawing.outward.items()},
        drawing.cost,
    )
