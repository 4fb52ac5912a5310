"""Automorphisms counted and isomorphism decided without the canonical form of the enumeration: the oracle for it.

Two nodes are joined by a *bundle*: the multiset of the lines between them, each with the field at this end, the field
at that end, the propagator and the direction. The self-loops of a node belong to its colour, next to its kind, name and
label. So parallel lines, self-loops, directions and line types all count, and no attribute called `key` is needed, which
networkx would take for the number of a parallel edge and leave out of the comparison.
"""

from __future__ import annotations

from collections import Counter
from math import factorial, prod
from operator import eq

import networkx as nx

from symtensor.diagrams.graph import Graph, Line

__all__ = ["are_isomorphic", "automorphism_count"]

Strand = tuple[str, str, str, str]
Bundle = tuple[Strand, ...]


def automorphism_count(graph: Graph) -> int:
    """|Aut| of the diagram: permutations of nodes, of parallel lines, and of the ends of self-loops.

    The nodes' part keeps kinds, names, labels and all bundles; it is counted by orbits and stabilisers: the product over
    the nodes of the number of images that a node can have once all earlier nodes are fixed. The lines' part is m! for m
    equal lines between two nodes, and m! 2^m for m self-loops that join two legs of the same field (m! otherwise).

    >>> from symtensor.diagrams.edge_string import from_edge_string
    >>> from symtensor.diagrams.theories import theory
    >>> automorphism_count(from_edge_string("g3.0-g3.1 g3.0-g3.1 g3.0-g3.1", theory("phi3")))
    12
    >>> automorphism_count(from_edge_string("g4.0-g4.0 g4.0-g4.0", theory("phi4")))
    8
    """
    colours, bundles = _colours(graph), _bundles(graph)
    count = _line_permutations(graph)
    fixed: list[int] = []
    for node in range(len(graph.nodes)):
        count *= sum(_extends(colours, bundles, [*fixed, image]) for image in range(node, len(graph.nodes)))
        fixed.append(node)
    return count


def are_isomorphic(graph: Graph, other: Graph) -> bool:
    """Whether the diagrams are equal up to the numbering of nodes and lines; exact (VF2 after cheap invariants).

    Unlabelled legs of one field may be exchanged. The models themselves are not compared, only names in the diagrams.
    """
    if sorted(_colours(graph)) != sorted(_colours(other)) or _census(graph) != _census(other):
        return False
    one, two = _directed(graph), _directed(other)
    matcher = nx.algorithms.isomorphism.DiGraphMatcher(one, two, node_match=eq, edge_match=eq)
    return matcher.is_isomorphic()


def _strand(line: Line, end: int) -> Strand:
    """The line as seen from its start (0) or its end (1)."""
    name = line.propagator.name if line.propagator is not None else ""
    direction = ("out", "in")[end] if line.directed else ""
    return line.fields[end], line.fields[1 - end], name, direction


def _colours(graph: Graph) -> list[tuple[str, str, str, Bundle]]:
    """For each node its kind, name, label and self-loops."""
    loops: list[list[Strand]] = [[] for _ in graph.nodes]
    for line in graph.lines:
        if line.is_self_loop:
            loops[line.start].append(min(_strand(line, 0), _strand(line, 1)))
    # A label that reads None must not be taken for a missing one.
    labels = ["" if node.label is None else f":{node.label}" for node in graph.nodes]
    return [(node.kind, node.name, label, tuple(sorted(own))) for node, label, own in zip(graph.nodes, labels, loops)]


def _bundles(graph: Graph) -> dict[tuple[int, int], Bundle]:
    """For each ordered pair of joined nodes the lines between them, as seen from the first."""
    table: dict[tuple[int, int], list[Strand]] = {}
    for line in graph.lines:
        if not line.is_self_loop:
            table.setdefault((line.start, line.end), []).append(_strand(line, 0))
            table.setdefault((line.end, line.start), []).append(_strand(line, 1))
    return {pair: tuple(sorted(strands)) for pair, strands in table.items()}


def _census(graph: Graph) -> Counter[Bundle]:
    return Counter(_bundles(graph).values())


def _line_permutations(graph: Graph) -> int:
    own = Counter((line.start, min(_strand(line, 0), _strand(line, 1))) for line in graph.lines if line.is_self_loop)
    # Every pair of nodes stands in the table twice, once from each side.
    bundles = [bundle for (start, end), bundle in _bundles(graph).items() if start < end]
    parallel = [m for bundle in bundles for m in Counter(bundle).values()]
    flips = prod(2**m for (_, strand), m in own.items() if strand[0] == strand[1])
    return flips * prod(map(factorial, parallel)) * prod(map(factorial, own.values()))


def _extends(colours: list[tuple[str, str, str, Bundle]], bundles: dict[tuple[int, int], Bundle], images: list[int]) -> bool:
    """Whether the assignment of images to the first nodes is part of an automorphism: plain backtracking."""
    node = len(images) - 1
    image = images[-1]
    if colours[node] != colours[image] or image in images[:-1]:
        return False
    if any(bundles.get((node, k)) != bundles.get((image, images[k])) for k in range(node)):
        return False
    if len(images) == len(colours):
        return True
    return any(_extends(colours, bundles, [*images, candidate]) for candidate in range(len(colours)))


def _directed(graph: Graph) -> nx.DiGraph:
    """A simple graph for VF2: an arc each way between joined nodes, with the bundle as seen from its tail."""
    result = nx.DiGraph()
    for node, colour in enumerate(_colours(graph)):
        result.add_node(node, colour=colour)
    for (start, end), bundle in _bundles(graph).items():
        result.add_edge(start, end, bundle=bundle)
    return result
