"""What a diagram is: connected, one-particle irreducible, with or without tadpoles, snails, self-energy insertions.

Every predicate reads a finished `Graph` and knows nothing of how it was made, so that it can judge an enumeration.
Definitions (an *internal* line joins two vertices; the line of an external leg is never internal):

    bridge       an internal line whose removal disconnects its component
    1PI          connected, with at least one vertex, and without a bridge
    self-loop    a line with both ends on one vertex
    tadpole      a part without external legs that hangs on the rest by one internal line
    snail        a part without external legs that is attached to the rest at one vertex; every self-loop is one
    self-energy  a connected set of vertices, no external leg on it, joined to the rest by exactly two internal lines

In a component without external legs a bridge makes both of its sides tadpoles, and a cut vertex makes all of its
branches snails. A one-point diagram is no tadpole for hanging on its leg. No snails implies no tadpoles.

Cuts are found from the cycle space: give each line the set of fundamental cycles through it. A set of lines separates
some nodes from the others if and only if every cycle meets it an even number of times; so a bridge lies on no cycle, and
two lines cut together if and only if their sets are equal (Diestel, Graph Theory, section 1.9).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations

from symtensor.diagrams.errors import RequestError
from symtensor.diagrams.flow import closed_set, index_loops, obeys, open_index_lines, response_cycle
from symtensor.diagrams.graph import Graph
from symtensor.diagrams.isomorphism import are_isomorphic, automorphism_count
from symtensor.diagrams.validation import vertex_named

__all__ = [
    "Snail",
    "are_isomorphic",
    "automorphism_count",
    "bridges",
    "closed_set",
    "components",
    "has_self_energy",
    "has_snail",
    "has_tadpole",
    "index_loops",
    "is_1pi",
    "is_connected",
    "obeys",
    "open_index_lines",
    "orders",
    "response_cycle",
    "self_energies",
    "self_loops",
    "snails",
    "tadpoles",
]

Nodes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Snail:
    """A part without external legs attached at vertex `at`: its nodes (none for a self-loop) and its lines."""

    at: int
    nodes: Nodes
    lines: tuple[int, ...]


def components(graph: Graph) -> tuple[Nodes, ...]:
    """The nodes of each connected component, components by their first node."""
    found: list[Nodes] = []
    seen: set[int] = set()
    for node in range(len(graph.nodes)):
        if node not in seen:
            found.append(_reach(graph, node))
            seen.update(found[-1])
    return tuple(found)


def is_connected(graph: Graph) -> bool:
    """One component; the empty diagram has none and is not connected."""
    return bool(graph.nodes) and len(_reach(graph, 0)) == len(graph.nodes)


def bridges(graph: Graph, propagators: Collection[str] | None = None) -> tuple[int, ...]:
    """The internal lines whose removal disconnects their component; only those of the named propagators, if given.

    Raises: RequestError for a propagator (such as ``"x-xt"``) that the model does not have.
    """
    cycles = _cycles_through(graph)
    wanted = None if propagators is None else _propagator_names(graph, propagators)
    return tuple(i for i in _internal(graph) if not cycles[i] and (wanted is None or _propagator_name(graph, i) in wanted))


def is_1pi(graph: Graph, propagators: Collection[str] | None = None) -> bool:
    """Connected, with a vertex, and without a bridge (of the named propagators); the bare line is not 1PI."""
    return bool(graph.vertices) and is_connected(graph) and not bridges(graph, propagators)


def self_loops(graph: Graph) -> tuple[int, ...]:
    """The lines with both ends on one vertex."""
    return tuple(index for index, line in enumerate(graph.lines) if line.is_self_loop)


def tadpoles(graph: Graph) -> tuple[Nodes, ...]:
    """The nodes of every part without external legs that hangs on the rest by one internal line."""
    found: set[Nodes] = set()
    for index in bridges(graph):
        line = graph.lines[index]
        found.update(_reach(graph, node, lines={index}) for node in (line.start, line.end))
    return tuple(sorted(part for part in found if not _has_leg(graph, part)))


def has_tadpole(graph: Graph) -> bool:
    """Whether some part without external legs hangs on the rest by one internal line."""
    return bool(tadpoles(graph))


def snails(graph: Graph) -> tuple[Snail, ...]:
    """Every part without external legs attached to the rest at one vertex, by that vertex; self-loops first."""
    return tuple(snail for vertex in graph.vertices for snail in _snails_at(graph, vertex))


def has_snail(graph: Graph) -> bool:
    """Whether some part without external legs, or a self-loop, is attached to the rest at one vertex."""
    return any(_snails_at(graph, vertex) for vertex in graph.vertices)


def self_energies(graph: Graph) -> tuple[Nodes, ...]:
    """The nodes of every self-energy insertion, also of those inside others."""
    groups: dict[int, list[int]] = defaultdict(list)
    cycles = _cycles_through(graph)
    for index in _internal(graph):
        groups[cycles[index]].append(index)
    found = {part for group in groups.values() for pair in combinations(group, 2) for part in _between(graph, *pair)}
    return tuple(sorted(found))


def has_self_energy(graph: Graph) -> bool:
    """Whether a set of vertices without external legs is inserted between two internal lines."""
    return bool(self_energies(graph))


def orders(graph: Graph) -> dict[str, int]:
    """The power of each counting parameter of the model: those of the vertices and of the lines added up."""
    total: Counter[str] = Counter()
    for index in graph.vertices:
        total.update(vertex_named(graph.model, graph.nodes[index].name).orders)
    for line in graph.lines:
        if line.propagator is not None:
            total.update(line.propagator.orders)
    return dict(sorted(total.items()))


def _internal(graph: Graph) -> list[int]:
    nodes = graph.nodes
    return [i for i, line in enumerate(graph.lines) if not (nodes[line.start].is_leg or nodes[line.end].is_leg)]


def _propagator_name(graph: Graph, index: int) -> str | None:
    propagator = graph.lines[index].propagator
    return None if propagator is None else propagator.name


def _has_leg(graph: Graph, nodes: Nodes) -> bool:
    return any(graph.nodes[node].is_leg for node in nodes)


def _propagator_names(graph: Graph, names: Collection[str]) -> set[str]:
    """The model's names of the asked propagators; the two fields may be given in either order."""
    known = {name: p.name for p in graph.model.propagators for name in (p.name, f"{p.second}-{p.first}")}
    asked = (names,) if isinstance(names, str) else tuple(names)
    for name in asked:
        if name not in known:
            listed = ", ".join(p.name for p in graph.model.propagators)
            raise RequestError(f"model {graph.model.name!r} has no propagator {name!r}; it has {listed}")
    return {known[name] for name in asked}


def _reach(graph: Graph, node: int, lines: Collection[int] = (), without: int | None = None) -> Nodes:
    """The nodes that can be reached from `node` without passing the given lines or the node `without`."""
    seen = {node}
    stack = [node]
    while stack:
        here = stack.pop()
        for index in graph.incident[here]:
            line = graph.lines[index]
            there = line.end if line.start == here else line.start
            if there not in seen and there != without and index not in lines:
                seen.add(there)
                stack.append(there)
    return tuple(sorted(seen))


def _cycles_through(graph: Graph) -> list[int]:
    """For each line the fundamental cycles of a spanning forest that pass through it, as the bits of an integer."""
    labels = [0] * len(graph.lines)
    at_node = [0] * len(graph.nodes)
    order, above = graph.spanning_forest(range(len(graph.nodes)))
    tree = set(above.values())
    for bit, index in enumerate(i for i in range(len(graph.lines)) if i not in tree):
        labels[index] = 1 << bit
        at_node[graph.lines[index].start] ^= 1 << bit
        at_node[graph.lines[index].end] ^= 1 << bit
    for node in reversed(order):
        # A cycle passes the line above a node if and only if exactly one end of its chord lies below that line.
        if node in above:
            labels[above[node]] = at_node[node]
            at_node[graph.other_end(above[node], node)] ^= at_node[node]
    return labels


def _snails_at(graph: Graph, vertex: int) -> list[Snail]:
    around = graph.incident[vertex]
    loops = sorted({i for i in around if graph.lines[i].is_self_loop})
    branches = dict.fromkeys(_reach(graph, graph.other_end(i, vertex), without=vertex) for i in around if i not in loops)
    found = [Snail(vertex, (), (index,)) for index in loops]
    for nodes in branches:
        # With no other branch at the vertex there is no rest behind it, unless the branch is a tadpole that hangs on it.
        joined = sum(graph.other_end(i, vertex) in nodes for i in around if i not in loops)
        if not _has_leg(graph, nodes) and (len(branches) + len(loops) > 1 or joined == 1):
            lines = {i for node in nodes for i in graph.incident[node]}
            found.append(Snail(vertex, nodes, tuple(sorted(lines))))
    return found


def _between(graph: Graph, first: int, second: int) -> list[Nodes]:
    """The connected parts without external legs that are joined to the rest by exactly these two lines."""
    pair = (first, second)
    starts = [node for index in pair for node in (graph.lines[index].start, graph.lines[index].end)]
    parts = {_reach(graph, node, lines=pair) for node in starts}
    return [part for part in parts if not _has_leg(graph, part) and all(_crosses(graph, i, part) for i in pair)]


def _crosses(graph: Graph, index: int, part: Nodes) -> bool:
    line = graph.lines[index]
    return (line.start in part) != (line.end in part)
