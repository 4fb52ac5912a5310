"""Candidates for the outer cycle of a 2-connected block."""

from __future__ import annotations

import networkx as nx

__all__ = ["outer_cycles"]

SMALL = 8
LIMIT = 160


def outer_cycles(nodes: tuple[int, ...], pairs: list[tuple[int, int]], anchored: list[int]) -> list[list[int]]:
    """Rings of nodes that could be the outside of a drawing: cycles through most of the `anchored` nodes; all, if there are few.

    A larger block yields the faces of a planar embedding and some long cycles. The order does not depend on hashing.
    """
    if len(nodes) == 2:
        return [_from(list(nodes), anchored[0])] if anchored else [list(nodes)]
    table: dict[int, list[int]] = {n: [] for n in nodes}
    for a, b in pairs:
        table[a].append(b)
        table[b].append(a)
    for row in table.values():
        row.sort()
    root = anchored[0] if anchored else nodes[0]
    if len(nodes) <= SMALL:
        found = _all_cycles(table, list(nodes), LIMIT)
    else:
        found = _faces(nodes, pairs, anchored) + _all_cycles(table, [root], LIMIT, len(nodes) - 1)
    if not found:
        found = _all_cycles(table, list(nodes), LIMIT)
    best = max(sum(n in cycle for n in anchored) for cycle in found)
    kept = [cycle for cycle in found if sum(n in cycle for n in anchored) == best]
    rings = [ring for cycle in kept for ring in _with(cycle, [n for n in anchored if n not in cycle])]
    return [_from(ring, root) for ring in rings][:LIMIT]


def _with(cycle: list[int], missing: list[int]) -> list[list[int]]:
    """The ring with the missing nodes put in at every place: no cycle of the block passes through all attached nodes."""
    if not missing:
        return [cycle]
    places = range(1, len(cycle) + 1)
    return [ring for k in places for ring in _with(cycle[:k] + missing[:1] + cycle[k:], missing[1:])][:LIMIT]


def _from(cycle: list[int], root: int) -> list[int]:
    if root not in cycle:
        return cycle
    k = cycle.index(root)
    return cycle[k:] + cycle[:k]


def _all_cycles(table: dict[int, list[int]], roots: list[int], limit: int, least: int = 3) -> list[list[int]]:
    """Simple cycles whose smallest node (in the order of `roots`) is one of the roots, each in one sense only."""
    found: list[list[int]] = []
    steps = 0
    for rank, root in enumerate(roots):
        barred = set(roots[:rank])
        stack = [[root]]
        while stack and len(found) < limit and steps < 60 * limit:
            path = stack.pop()
            steps += 1
            for node in reversed(table[path[-1]]):
                if node == root and len(path) >= least and path[1] < path[-1]:
                    found.append(path)
                elif node not in barred and node not in path:
                    stack.append([*path, node])
    return found


def _faces(nodes: tuple[int, ...], pairs: list[tuple[int, int]], anchored: list[int]) -> list[list[int]]:
    """The faces of a planar embedding with all `anchored` nodes on one face where that is possible."""
    graph = nx.Graph(pairs)
    apex = max(nodes) + 1
    if len(anchored) > 1:
        graph.add_edges_from((apex, n) for n in anchored)
    planar, embedding = nx.check_planarity(graph)
    if not planar:
        graph.remove_nodes_from([apex])
        planar, embedding = nx.check_planarity(graph)
        if not planar:
            return []
    if apex in embedding:
        embedding = embedding.copy()
        embedding.remove_node(apex)
    faces, seen = [], set()
    for a, b in sorted(embedding.edges()):
        if (a, b) not in seen:
            face = embedding.traverse_face(a, b, mark_half_edges=seen)
            if len(set(face)) == len(face) >= 3:
                faces.append(list(face))
    return faces
