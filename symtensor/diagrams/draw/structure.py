"""A connected diagram as a tree of blocks: bridges, 2-connected parts and self-loops, joined at cut vertices."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from symtensor.diagrams.graph import Graph
from symtensor.diagrams.model import Model

__all__ = ["Item", "Structure", "components"]


@dataclass(frozen=True, slots=True)
class Item:
    """A block: its nodes (one for a self-loop) and its lines, by index."""

    nodes: tuple[int, ...]
    lines: tuple[int, ...]

    @property
    def is_loop(self) -> bool:
        return len(self.nodes) == 1

    @property
    def is_bridge(self) -> bool:
        return len(self.nodes) == 2 and len(self.lines) == 1


def components(graph: Graph) -> list[tuple[int, ...]]:
    """The nodes of each connected part, by the smallest node."""
    simple = nx.Graph()
    simple.add_nodes_from(range(len(graph.nodes)))
    simple.add_edges_from((line.start, line.end) for line in graph.lines)
    return sorted(tuple(sorted(part)) for part in nx.connected_components(simple))


def _conserved(model: Model) -> dict[str, int]:
    """The conserved species of each field that has one; auxiliary and response fields have none."""
    joined = nx.Graph()
    joined.add_nodes_from(f.name for f in model.fields)
    joined.add_edges_from((p.first, p.second) for p in model.propagators)
    species = {}
    for k, names in enumerate(nx.connected_components(joined)):
        special = any(model.field(name).auxiliary or model.field(name).response for name in names)
        counts = {sum(leg in names for leg in v.legs) for v in model.vertices}
        if not special and not model.families and counts <= {0, 2} and any(v.valence > 2 for v in model.vertices):
            species.update(dict.fromkeys(names, k))
    return species


class Structure:
    """The block tree of the connected part `nodes`, and how many terminals lie behind each block.

    With two or more legs the terminals are the legs; a part without legs is *hanging* and is no terminal, except at a
    vertex where three or more branches with legs meet, which would leave it no room. With fewer legs the terminals are
    the leg and the end blocks of the tree. Sectors of the plane are shared out among the terminals (the equal-angle
    drawing of unrooted trees), which does not depend on where one starts.
    """

    def __init__(self, graph: Graph, nodes: tuple[int, ...]) -> None:
        self.graph = graph
        self.nodes = nodes
        self.legs = [n for n in nodes if graph.nodes[n].is_leg]
        self.by_legs = len(self.legs) >= 2
        self.items = self._blocks()
        self.at: dict[int, list[Item]] = {n: [] for n in nodes}
        for item in self.items:
            for node in item.nodes:
                self.at[node].append(item)
        self._ends: dict[tuple[Item, int], int] = {}
        self._terminals: dict[tuple[Item, int], int] = {}

    def _blocks(self) -> list[Item]:
        pairs: dict[frozenset[int], list[int]] = defaultdict(list)
        inside = set(self.nodes)
        loops = []
        for index, line in enumerate(self.graph.lines):
            if line.start not in inside:
                continue
            if line.is_self_loop:
                loops.append(Item((line.start,), (index,)))
            else:
                pairs[frozenset((line.start, line.end))].append(index)
        simple = nx.Graph()
        simple.add_edges_from(sorted((min(pair), max(pair)) for pair in pairs))
        blocks = []
        for edges in nx.biconnected_component_edges(simple):
            found = [(min(edge), max(edge)) for edge in edges]
            lines = sorted(index for edge in found for index in pairs[frozenset(edge)])
            blocks.append(Item(tuple(sorted({n for edge in found for n in edge})), tuple(lines)))
        return sorted(blocks, key=lambda b: (b.nodes, b.lines)) + loops

    @cached_property
    def label_rank(self) -> dict[int, int]:
        """The position of each leg in the order of labels (numbers by value), then of fields."""

        def key(node: int) -> tuple[int, int, str, int]:
            label = self.graph.nodes[node].label
            if label is None:
                return (1, 0, "", node)
            return (0, int(label), "", node) if label.isdecimal() else (0, 1 << 30, label, node)

        return {node: rank for rank, node in enumerate(sorted(self.legs, key=key))}

    def _beyond(self, item: Item, node: int) -> list[tuple[Item, int]]:
        """The blocks behind `item` seen from `node`, each with the vertex they hang on."""
        return [(other, u) for u in item.nodes if u != node for other in self.at[u] if other != item]

    def first_leg(self, item: Item, node: int) -> int:
        """The smallest label rank behind `item`; large if there is no leg."""
        own = [self.label_rank[u] for u in item.nodes if u != node and u in self.label_rank]
        return min(own + [self.first_leg(o, u) for o, u in self._beyond(item, node)], default=len(self.nodes))

    def has_legs(self, item: Item, node: int) -> bool:
        return self.first_leg(item, node) < len(self.nodes)

    def ends(self, item: Item, node: int) -> int:
        """The number of end blocks behind `item`, at least 1: the item itself."""
        key = (item, node)
        if key not in self._ends:
            self._ends[key] = max(1, sum(self.ends(o, u) for o, u in self._beyond(item, node)))
        return self._ends[key]

    def is_hanging(self, item: Item, node: int) -> bool:
        """True for a part without legs of a diagram that is laid out by its legs."""
        return self.by_legs and not self.has_legs(item, node)

    def terminals(self, item: Item, node: int) -> int:
        """The number of terminals behind `item`, seen from `node`."""
        if not self.by_legs:
            return self.ends(item, node)
        key = (item, node)
        if key not in self._terminals:
            if self.is_hanging(item, node):
                branches = sum(self.has_legs(other, node) for other in self.at[node])
                self._terminals[key] = int(branches >= 3)
            else:
                own = sum(u != node and u in self.label_rank for u in item.nodes)
                self._terminals[key] = own + sum(self.terminals(o, u) for o, u in self._beyond(item, node))
        return self._terminals[key]

    def spine(self, item: Item, entry: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Nodes and lines of a conserved line through a block, from `entry` to the only other node with legs behind it.

        A species (fields joined by propagators) is conserved if no vertex has other than none or two of its legs, as a
        complex field or the N-component field of an O(N) model; books draw such a line straight. Empty if there is none.
        """
        exits = [u for u in item.nodes if u != entry and any(self.has_legs(o, u) for o in self.at[u] if o != item)]
        species = _conserved(self.graph.model)
        if len(exits) != 1 or not species:
            return (), ()
        starts = [k for k in item.lines if entry in self._ends_of(k) and self.graph.lines[k].fields[0] in species]
        for first in starts if len(starts) == 1 else []:
            line, nodes, lines = first, [entry], []
            while True:
                value = self.graph.lines[line]
                nodes.append(self.graph.other_end(line, nodes[-1]))
                lines.append(line)
                if nodes[-1] == exits[0]:
                    return tuple(nodes), tuple(lines)
                onward = [k for k in item.lines if k not in lines and nodes[-1] in self._ends_of(k)]
                onward = [k for k in onward if species.get(self.graph.lines[k].fields[0]) == species[value.fields[0]]]
                if len(onward) != 1:
                    break
                line = onward[0]
        return (), ()

    def _ends_of(self, line: int) -> tuple[int, int]:
        return self.graph.lines[line].start, self.graph.lines[line].end

    def size(self, item: Item, node: int) -> int:
        """The number of lines in and behind `item`."""
        return len(item.lines) + sum(self.size(o, u) for o, u in self._beyond(item, node))
