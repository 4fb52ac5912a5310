"""Canonical form of a given graph: the largest matrix among all relabellings, by branch and bound with automorphisms.

The kernel meets diagrams in canonical form already; this is for graphs that come from elsewhere. Rows are chosen one by one,
each as large as possible. A leaf as large as the best one is an automorphism; it prunes the siblings that it maps to each other
(B. D. McKay, Congressus Numerantium 30 (1981) 45).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from symtensor.diagrams.graph import Graph
from symtensor.diagrams.kernel.skeleton import Skeleton
from symtensor.diagrams.kernel.tables import tables
from symtensor.diagrams.part import Part, line_factor, matrix_of, skeleton_of

__all__ = ["canonical_part", "canonical_parts"]

Row = tuple[int, ...]
Cells = list[list[int]]


def canonical_parts(graph: Graph) -> tuple[Part, ...]:
    """The connected parts of a valid graph in canonical form, sorted."""
    from symtensor.diagrams.properties import components

    parts = [canonical_part(graph, nodes) for nodes in components(graph)]
    return tuple(sorted(parts, key=Part.sort_key))


def canonical_part(graph: Graph, nodes: tuple[int, ...]) -> Part:
    """The canonical form of the connected part of `graph` with the given nodes."""
    skeleton, order = skeleton_of(graph, nodes)
    table = tables(skeleton)
    entries, loops = matrix_of(graph, table, order)
    best = _Search(entries, loops, _cells(skeleton)).run()
    entries, loops = entries[np.ix_(best.order, best.order)], loops[best.order]
    triangle = [value for a in range(len(order)) for value in (loops[a], *entries[a, a + 1 :])]
    factor = best.automorphisms * line_factor(table, entries, loops)
    return Part(skeleton, np.array(triangle, np.uint16).tobytes(), factor)


def _cells(skeleton: Skeleton) -> Cells:
    cells: Cells = []
    keys = skeleton.node_keys
    for node, key in enumerate(keys):
        if node and key == keys[node - 1]:
            cells[-1].append(node)
        else:
            cells.append([node])
    return cells


@dataclass
class _Search:
    entries: np.ndarray
    loops: np.ndarray
    cells: Cells
    order: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    found: list[dict[int, int]] = field(default_factory=list)
    automorphisms: int = 1

    def run(self) -> _Search:
        self._extend([], self.cells, ahead=True)
        self.automorphisms = math.prod(self._orbit(level) for level in range(len(self.order)))
        return self

    def _row(self, node: int, cells: Cells) -> tuple[Row, Cells]:
        """The row of `node` with the others arranged as large as possible, and the cells that it leaves."""
        row, refined = [int(self.loops[node])], []
        for cell in cells:
            groups: dict[int, list[int]] = {}
            for other in cell:
                if other != node:
                    groups.setdefault(int(self.entries[node, other]), []).append(other)
            for value in sorted(groups, reverse=True):
                row += [value] * len(groups[value])
                refined.append(groups[value])
        return tuple(row), refined

    def _extend(self, order: list[int], cells: Cells, ahead: bool) -> bool:
        """Place all remaining nodes; True if a leaf equal to the best one was met, so that siblings need no more search.

        `ahead`: this branch is larger than the best leaf so far (or there is none), and overwrites it.
        """
        level = len(order)
        if not cells:
            if ahead:
                self.order = order
                return False
            self.found.append(dict(zip(self.order, order)))
            return True
        tried: list[int] = []
        for node in list(cells[0]):
            on_best = self.order[:level] == order and len(self.order) > level
            if tried and on_best and self._same_orbit(order, node, tried):
                continue
            tried.append(node)
            row, refined = self._row(node, cells)
            if ahead or row > self.rows[level]:
                self.rows[level:] = [row]
                self._extend([*order, node], refined, True)
                ahead = False
            elif row == self.rows[level] and self._extend([*order, node], refined, False) and self.order[:level] != order:
                return True
        return False

    def _fixing(self, prefix: list[int]) -> list[dict[int, int]]:
        return [image for image in self.found if all(image[node] == node for node in prefix)]

    def _orbits(self, prefix: list[int]) -> dict[int, int]:
        """Representative of each node under the automorphisms found that fix `prefix`."""
        parent = {node: node for node in range(len(self.loops))}

        def root(node: int) -> int:
            while parent[node] != node:
                node = parent[node]
            return node

        for image in self._fixing(prefix):
            for one, other in image.items():
                parent[max(root(one), root(other))] = min(root(one), root(other))
        return {node: root(node) for node in parent}

    def _same_orbit(self, prefix: list[int], node: int, tried: list[int]) -> bool:
        representative = self._orbits(prefix)
        return any(representative[node] == representative[other] for other in tried)

    def _orbit(self, level: int) -> int:
        representative = self._orbits(self.order[:level])
        mine = representative[self.order[level]]
        return sum(1 for value in representative.values() if value == mine)
