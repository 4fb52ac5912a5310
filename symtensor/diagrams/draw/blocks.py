"""The drawing of one block: an outer cycle on a circle (or polygon), the rest inside it, parallel lines as arcs.

Textbooks draw a 2-connected diagram as a circle with chords. Every candidate for the outer cycle is tried: its nodes go
on a circle, the inner ones to the barycentres of their neighbours (Tutte, Proc. London Math. Soc. 13, 743 (1963)), and the
drawing with the fewest crossings, then the most even and most symmetric one, is kept.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from symtensor.diagrams.draw.cycles import outer_cycles
from symtensor.diagrams.draw.geometry import FULL, Arc, crossings, point_distance, turn

__all__ = ["Block", "BlockDrawing", "draw_block"]

#: how far a line keeps from a node that it does not end on
CLEAR = 0.16


@dataclass(frozen=True, slots=True)
class Block:
    """What is to be drawn: lines by pair of nodes, and what hangs on the nodes.

    `weights` are the terminals behind the attached nodes, `entry` (if any) one of them, whose direction seen from the
    centre is `back`. `busy` are nodes that need free space around them, `flow` the (earlier, later) ends of the
    response lines. `curved` draws the outer cycle as a circle, else as a polygon. `spine` are the nodes, from the entry
    on, of a line of a conserved species (lines `through`) that runs straight through the block, the rest arching over it.
    """

    nodes: tuple[int, ...]
    pairs: Mapping[tuple[int, int], tuple[int, ...]]
    weights: Mapping[int, float]
    entry: int | None
    back: float
    busy: frozenset[int]
    flow: tuple[tuple[int, int], ...]
    curved: bool
    spine: tuple[int, ...] = ()
    through: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class BlockDrawing:
    """Positions about the centre 0, an arc for each line, the outward direction at each attached node, and the cost."""

    positions: dict[int, complex]
    arcs: dict[int, Arc]
    outward: dict[int, float]
    cost: float


def draw_block(block: Block) -> BlockDrawing:
    """The best drawing of a block among all candidates for its outer cycle."""
    anchored = sorted(block.weights, key=lambda n: (n != block.entry, n))
    rings = outer_cycles(block.nodes, sorted(block.pairs), anchored)
    if block.spine:
        arched = [r for ring in rings for r in (ring, ring[:1] + ring[:0:-1]) if tuple(r[: len(block.spine)]) == block.spine]
        over = [n for n in block.nodes if n not in block.spine]
        return min([_draw(block, ring, False) for ring in arched or [[*block.spine, *over]]], key=lambda d: round(d.cost, 6))
    tries = [_draw(block, ring, False) for ring in rings]
    if not block.curved:
        tries += [_draw(block, ring, True) for ring in rings if _plain_sides(block, ring)]
    return min(tries, key=lambda d: round(d.cost, 6))


def _plain_sides(block: Block, ring: list[int]) -> bool:
    """True if nodes between the corners are joined to their neighbours on the ring only, so that a straight side can take them."""
    return all(_on_ring(ring, pair) or all(n in block.weights or n not in ring for n in pair) for pair in block.pairs)


def _draw(block: Block, cycle: list[int], polygon: bool) -> BlockDrawing:
    angles = _ring_angles(block, cycle)
    radius = max(0.6, 0.42 / math.sin(math.pi / len(cycle)))
    inner = [n for n in block.nodes if n not in angles]
    radius = max(radius, 0.68 + 0.11 * len(inner) + 0.3 * sum(n in block.busy for n in inner)) if inner else radius
    places = {n: turn(angle) for n, angle in angles.items()}
    if block.spine:
        radius = max(radius, 0.4 * (len(block.spine) - 1))
        places.update(_on_chord(block.spine, places))
    if polygon:
        radius = max(radius, 0.2 * len(cycle))
        places = _on_sides(block, cycle, angles)
    places.update(_inside(block, places, inner))
    nearest = min((abs(places[a] - places[b]) for i, a in enumerate(block.nodes) for b in block.nodes[:i]), default=1.0)
    radius = min(max(radius, 0.46 / max(nearest, 1e-3)), 1.5 * radius)
    places = {n: radius * z for n, z in places.items()}
    arcs = _arcs(block, cycle, places, angles, radius)
    outward = {n: angles[n] if n in angles else cmath.phase(places[n] or turn(block.back)) for n in block.weights}
    return BlockDrawing(places, arcs, outward, _cost(block, cycle, places, arcs, radius) - 0.6 * polygon)


def _ring_angles(block: Block, cycle: list[int]) -> dict[int, float]:
    """Angles of the nodes of the outer cycle: the attached ones in the middle of their sectors, the others evenly between."""
    held = [k for k, n in enumerate(cycle) if n in block.weights]
    if len(held) < 2:
        first = held[0] if held else 0
        return {n: block.back + FULL * (k - first) / len(cycle) for k, n in enumerate(cycle)}
    total = sum(block.weights[cycle[k]] for k in held)
    cursor = block.back - math.pi * block.weights[cycle[held[0]]] / total
    stops = []
    for k in held:
        share = FULL * block.weights[cycle[k]] / total
        stops.append((k, cursor + share / 2))
        cursor += share
    stops.append((held[0] + len(cycle), stops[0][1] + FULL))
    angles = {}
    for (k0, a0), (k1, a1) in pairwise(stops):
        for k in range(k0, k1):
            angles[cycle[k % len(cycle)]] = a0 + (a1 - a0) * (k - k0) / (k1 - k0)
    return angles


def _on_sides(block: Block, cycle: list[int], angles: Mapping[int, float]) -> dict[int, complex]:
    """The outer cycle as a polygon whose corners are the attached nodes, the others on its sides."""
    held = [k for k, n in enumerate(cycle) if n in block.weights]
    places = {}
    for k0, k1 in zip(held, [*held[1:], held[0] + len(cycle)]):
        a, b = turn(angles[cycle[k0]]), turn(angles[cycle[k1 % len(cycle)]])
        for k in range(k0, k1):
            places[cycle[k % len(cycle)]] = a + (b - a) * (k - k0) / (k1 - k0)
    return places


def _on_chord(row: tuple[int, ...], places: Mapping[int, complex]) -> dict[int, complex]:
    """The nodes of the spine, evenly on the chord between its ends."""
    a, b = places[row[0]], places[row[-1]]
    return {n: a + (b - a) * k / (len(row) - 1) for k, n in enumerate(row)}


def _inside(block: Block, outer: Mapping[int, complex], inner: list[int]) -> dict[int, complex]:
    """Places of the inner nodes: weighted barycentres, with long lines weighted up, then pushed apart where they meet."""
    if not inner:
        return {}
    row = {n: k for k, n in enumerate(inner)}
    weights = dict.fromkeys(block.pairs, 1.0)
    places = dict(outer)
    for _ in range(3):
        matrix, right = np.eye(len(inner)) * 1e-9, np.zeros(len(inner), dtype=complex)
        for (a, b), weight in weights.items():
            for one, other in ((a, b), (b, a)):
                if one in row:
                    matrix[row[one], row[one]] += weight
                    if other in row:
                        matrix[row[one], row[other]] -= weight
                    else:
                        right[row[one]] += weight * outer[other]
        solved = np.linalg.solve(matrix.astype(complex), right)
        places.update(zip(inner, solved.tolist()))
        weights = {(a, b): weights[a, b] * (abs(places[a] - places[b]) + 0.05) for a, b in weights}
    return _push_apart(block, places, inner)


def _push_apart(block: Block, places: dict[int, complex], inner: list[int]) -> dict[int, complex]:
    """Move inner nodes that are too close to another node; a deterministic nudge separates coinciding ones."""
    least = 0.5
    close = [n for n in inner if any(m != n and abs(places[n] - places[m]) < least for m in block.nodes)]
    if not close:
        return {n: places[n] for n in inner}
    for k, n in enumerate(inner):
        places[n] += 0.02 * turn(0.5 + 2.4 * k)
    for _ in range(40):
        moves = {}
        for n in inner:
            push = 0j
            for m in block.nodes:
                gap = places[n] - places[m]
                if m != n and abs(gap) < least:
                    push += 0.25 * (least - abs(gap)) * gap / (abs(gap) + 1e-9)
            moves[n] = push
        for n, push in moves.items():
            moved = places[n] + push
            places[n] = moved if abs(moved) < 0.8 else 0.8 * moved / abs(moved)
    return {n: places[n] for n in inner}


def _arcs(
    block: Block, cycle: list[int], places: Mapping[int, complex], angles: Mapping[int, float], radius: float
) -> dict[int, Arc]:
    """An arc for each line: circle arcs along the outer cycle, straight lines inside, parallel lines spread evenly."""
    steps = {(a, b): (angles[b] - angles[a]) % FULL for a, b in zip(cycle, cycle[1:] + cycle[:1])}
    arcs: dict[int, Arc] = {}
    for pair, lines in sorted(block.pairs.items()):
        along = pair if pair in steps else (pair[1], pair[0])
        a, b = places[along[0]], places[along[1]]
        chord, count = abs(b - a), len(lines)
        base, gap = 0.0, min(0.64, 0.72 / (count - 1) if count > 1 else 0.0) * min(chord, 0.72)
        if pair[0] in block.spine and pair[1] in block.spine:
            arcs.update(_over_spine(block, pair, lines, places))
            continue
        if len(cycle) == 2:
            gap = 2 * radius / max(count - 1, 1)
        elif along in steps and block.curved:
            base, gap = _along_circle(steps[along], chord, radius, count)
        heights = [base + gap * (k - (count - 1) / 2) for k in range(count)]
        if count == 1 and not (along in steps and block.curved):
            heights = [_detour(Arc(a, b), [z for n, z in places.items() if n not in pair])]
        arcs.update(zip(lines, (Arc(a, b, h if abs(h) > 1e-9 else 0.0) for h in heights)))
    return arcs


def _over_spine(block: Block, pair: tuple[int, int], lines: tuple[int, ...], places: Mapping[int, complex]) -> dict[int, Arc]:
    """Lines between nodes of the spine: its own straight, the others arching over it, on the side away from the ring's sense."""
    a, b = sorted(pair, key=block.spine.index)
    start, end = places[a], places[b]
    arching = [line for line in lines if line not in block.through]
    top = 0.5 if abs(end - start) < 1.3 else 0.42
    heights = {line: abs(end - start) * (top - 0.2 * k) for k, line in enumerate(arching)}
    return {line: Arc(start, end, heights.get(line, 0.0)) for line in lines}


def _along_circle(step: float, chord: float, radius: float, count: int) -> tuple[float, float]:
    """Middle height and spacing of the parallel lines between neighbours on the circle (outside is to the right)."""
    height = -radius * (1 - math.cos(step / 2))
    if count == 1:
        return height, 0.0
    if step < 1.48:
        return height / 2, min(0.4 * chord, 0.5)
    if abs(height) > 0.35 * chord:
        gap = abs(height) * (1.0 if count == 2 else 1.3 / (count - 1))
    else:
        gap = min(abs(height), 0.75 * chord / (count - 1)) if count > 2 else abs(height) + 0.1 * chord
    return height + gap * (count - 1) / 2, gap


def _detour(arc: Arc, points: list[complex]) -> float:
    """The smallest height at which a line keeps clear of other nodes; 0 if it does so when straight."""
    if not points:
        return 0.0
    for height in (0.0, 0.22, -0.22, 0.38, -0.38, 0.52, -0.52):
        if min(point_distance(points, Arc(arc.start, arc.end, height * arc.chord))) > CLEAR:
            return height * arc.chord
    return 0.0


def _cost(block: Block, cycle: list[int], places: Mapping[int, complex], arcs: Mapping[int, Arc], radius: float) -> float:
    ends = {line: pair for pair, lines in block.pairs.items() for line in lines}
    close, crossed = 0, crossings(list(arcs.values()), 9)
    for line, arc in arcs.items():
        others = [z for n, z in places.items() if n not in ends[line]]
        close += sum(d < CLEAR for d in point_distance(others, arc)) if others else 0
    lengths = [arc.length for arc in arcs.values()]
    spread = (max(lengths) - min(lengths)) / (sum(lengths) / len(lengths))
    bent = sum(arc.sagitta != 0 for line, arc in arcs.items() if _is_chord(block, cycle, ends[line]))
    nodes = block.nodes
    nearest = min((abs(places[a] - places[b]) for i, a in enumerate(nodes) for b in nodes[:i]), default=1.0)
    hidden = sum(n in block.busy and n not in cycle for n in nodes)
    return (
        (1.3 + 1.2 * crossed if crossed else 0.0)
        + 12 * close
        + 0.5 * spread
        + 1.5 * bent
        + 0.5 * sum(n not in cycle for n in nodes)
        + 20 * max(0.0, 0.4 - nearest)
        + 5 * hidden
        + 0.4 * radius
        - 2.0 * _symmetry(block, places)
        + 0.8 * _against(block, places)
    )


def _on_ring(cycle: list[int], pair: tuple[int, int]) -> bool:
    gap = abs(cycle.index(pair[0]) - cycle.index(pair[1])) if pair[0] in cycle and pair[1] in cycle else 0
    return gap in (1, len(cycle) - 1)


def _is_chord(block: Block, cycle: list[int], pair: tuple[int, int]) -> bool:
    arching = pair[0] in block.spine and pair[1] in block.spine
    return len(block.pairs[pair]) == 1 and not _on_ring(cycle, pair) and not arching


def _symmetry(block: Block, places: Mapping[int, complex]) -> float:
    """The share of lines that have a mirror image, about the axis along or across the entry; both count a little more."""
    shares = []
    for tilt in (0.0, math.pi / 2):
        axis = turn(2 * (block.back + tilt))
        image = {}
        for n, z in places.items():
            mirrored = axis * z.conjugate()
            image[n] = next((m for m, w in places.items() if abs(w - mirrored) < 0.05), None)
        good = 0
        for (a, b), lines in block.pairs.items():
            u, v = image[a], image[b]
            if u is not None and v is not None:
                good += len(block.pairs.get((min(u, v), max(u, v)), ())) == len(lines)
        shares.append(good / len(block.pairs))
    return max(shares) + 0.25 * min(shares)


def _against(block: Block, places: Mapping[int, complex]) -> float:
    """The share of response lines against the majority, along the axis of the entry."""
    if not block.flow or block.entry is None:
        return 0.0
    ahead = [((places[b] - places[a]) * turn(-block.back)).real for a, b in block.flow]
    forward, backward = sum(x > 1e-6 for x in ahead), sum(x < -1e-6 for x in ahead)
    return min(forward, backward) / len(ahead)
