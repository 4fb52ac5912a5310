r"""The sum over the components of a diagram together with the integral over its times, by dynamic programming.

Every vertex has exactly one response leg. Read the times downwards: the leg belongs to a line that goes up to a later node, since
response lines run forwards in time. When a node is put below the set S of later nodes, the lines from it to S are therefore
correlations but for one, the response line, and which one is summed over on the spot; lines to earlier nodes are decided when
those come. The cost is that of one integral, not of one for every choice of components.

Parts of responses proportional to delta(t) make one node of the two ends of their lines; of such a cluster one vertex, the root,
has the response line to S, and every other one has its own on the way to the root.

A part without legs that hangs on one line (a tadpole) is the mean of an auxiliary field, which is static: by the
fluctuation-dissipation theorem, which holds diagram by diagram, it has the value of the static theory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from symtensor.diagrams import Diagram
from symtensor.fields._down_sets import DirectedLine, TimeOrders
from symtensor.fields.large_n.time_lines import TimeRules

__all__ = ["component_integrals"]


@dataclass(frozen=True, slots=True)
class _Leg:
    """A leg of a cluster on a line to another: the vertex it is at, its weight as correlation and as response.

    `source`: it is an external response field, so that its line must go up.
    """

    vertex: int
    other: int
    correlation: Any
    response: Any
    source: bool


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Vertices at one time: legs to other clusters, and for each possible root the factor of all that is inside.

    `fixed`: it is at an external time, which is its root and has no response leg of its own.
    """

    legs: tuple[_Leg, ...]
    roots: tuple[tuple[int, Any], ...]
    fixed: bool


@dataclass(frozen=True)
class _ComponentOrders(TimeOrders):
    """Orders of the times in which a node's weight is summed over its response leg."""

    clusters: tuple[_Cluster, ...] = ()

    def weight(self, nodes: int, node: int) -> Any:
        cluster, total = self.clusters[node], self.field.zero
        up = [leg for leg in cluster.legs if nodes >> leg.other & 1]
        if any(leg.source and leg not in up for leg in cluster.legs):
            return total
        for root, inside in cluster.roots:
            for chosen in [None] if cluster.fixed else [leg for leg in up if leg.vertex == root]:
                product = inside
                for leg in up:
                    product = product * (leg.response if leg is chosen or leg.source else leg.correlation)
                total = total + product
        return total


def component_integrals(
    diagram: Diagram, rules: TimeRules, components: Mapping[str | None, str], times: Mapping[str | None, int]
) -> dict[Any, Any]:
    """{((energy, power) for each window): coefficient} of a diagram with its weight 1/|Aut|, without powers of N.

    `components` and `times` have the field of every external leg and the number of its time, 0 the latest, by its label.
    """
    reading = _Reading(diagram, rules, components, times)
    total: dict[Any, Any] = {}
    for merged in reading.contractions():
        clusters, views = reading.clusters(merged)
        if not all(cluster.roots for cluster in clusters):
            continue
        orders = _ComponentOrders(views, reading.external, rules.field, len(rules.basis), clusters)
        for key, value in orders.integral().items():
            total[key] = total[key] + value if key in total else value
    weight = rules.field.number(1) / rules.field.number(diagram.symmetry_factor)
    return {key: value * weight for key, value in total.items() if value}


@dataclass(frozen=True)
class _Reading:
    """A diagram with the components that its legs have where they are no response fields, and where they are."""

    diagram: Diagram
    rules: TimeRules
    components: Mapping[str | None, str]
    times: Mapping[str | None, int]

    @property
    def external(self) -> int:
        return len(set(self.times.values()))

    @cached_property
    def means(self) -> tuple[frozenset[int], dict[int, Any]]:
        """The lines of tadpoles, those that they hang on included, and the product of the values of the tadpoles at each node."""
        parts = [set(part) for part in self.diagram.tadpoles]
        parts = [part for part in parts if not any(part < other for other in parts)]
        lines: set[int] = set()
        values: dict[int, Any] = {}
        for part in parts:
            value = self.rules.field.one
            for i, line in enumerate(self.diagram.lines):
                if line.start in part or line.end in part:
                    lines.add(i)
                    value = value * self.rules.static(self.fixed(line.start, line.fields[0]), self.fixed(line.end, line.fields[1]))
                    outside = {line.start, line.end} - part
                    if outside:
                        place = outside.pop()
            for node in part:
                value = value * self.rules.static_vertex(self.valence(node))
            values[place] = values[place] * value if place in values else value
        return frozenset(lines), values

    @cached_property
    def kept(self) -> set[int]:
        """The nodes outside all tadpoles."""
        return set(range(len(self.diagram.nodes))) - {node for part in self.diagram.tadpoles for node in part}

    def valence(self, node: int) -> int:
        """The valence of a vertex of s, 0 for an index vertex."""
        name = self.diagram.nodes[node].name
        return 0 if name == "g" else int(name.removeprefix("s_"))

    def fixed(self, node: int, field: str) -> str:
        """The component of a leg in the static theory."""
        value = self.diagram.nodes[node]
        if field == "phi":
            return "x"
        own = self.components[value.label] if value.is_leg else "lam" if value.name == "g" else "rho"
        return "lam" if own == "mu" else own

    def plain(self, node: int, field: str) -> str:
        """The component of a leg that is not the response leg of its vertex; an external leg's own."""
        value = self.diagram.nodes[node]
        if value.is_leg:
            return self.components[value.label]
        return "x" if field == "phi" else "mu" if value.name == "g" else "rho"

    def tilde(self, node: int, field: str) -> str:
        """The component of a leg that is the response leg of its vertex; an external leg's own."""
        value = self.diagram.nodes[node]
        if value.is_leg:
            return self.components[value.label]
        return "xt" if field == "phi" else "rhot" if value.name == "g" else "mut"

    def factor(self, node: int, response: str) -> Any:
        """The factor of a vertex with the given response leg; 1 for an external leg."""
        value = self.diagram.nodes[node]
        if value.is_leg:
            return self.rules.field.one
        return self.rules.vertex(response, self.valence(node))

    def contractions(self) -> Iterator[tuple[int, ...]]:
        """Sets of auxiliary lines, without a cycle and joining no two external times, that act as delta(t)."""
        auxiliary = [i for i, line in enumerate(self.diagram.lines) if line.fields[0] == "sigma" and i not in self.means[0]]
        for size in range(len(auxiliary) + 1):
            for chosen in itertools.combinations(auxiliary, size):
                groups = self.groups(chosen)
                if groups is not None:
                    yield chosen

    def groups(self, merged: Sequence[int]) -> list[list[int]] | None:
        """Nodes by cluster, those at external times first; None if a line closes a cycle or two external times coincide."""
        at = [self.times[n.label] if n.is_leg else None for n in self.diagram.nodes]
        gone = {n for i in self.means[0] for n in (self.diagram.lines[i].start, self.diagram.lines[i].end)} - self.kept
        root = [next(j for j, time in enumerate(at) if j == i or (time is not None and time == at[i])) for i in range(len(at))]
        for i in merged:
            line = self.diagram.lines[i]
            low, high = sorted((root[line.start], root[line.end]))
            if low == high:
                return None
            root = [low if r == high else r for r in root]
        groups = [[i for i, r in enumerate(root) if r == name] for name in sorted(set(root)) if name not in gone]
        if any(len({at[i] for i in group if at[i] is not None}) > 1 for group in groups):
            return None
        groups.sort(key=lambda group: min((at[i] for i in group if at[i] is not None), default=self.external))  # type: ignore[type-var]
        return groups

    def clusters(self, merged: Sequence[int]) -> tuple[tuple[_Cluster, ...], tuple[tuple[DirectedLine, ...], ...]]:
        """The clusters, and the lines between them as both ends see them."""
        groups = self.groups(merged) or []
        number = {node: n for n, group in enumerate(groups) for node in group}
        legs: list[list[_Leg]] = [[] for _ in groups]
        views: list[list[DirectedLine]] = [[] for _ in groups]
        inside = [self.rules.field.one for _ in groups]
        for node, value in self.means[1].items():
            inside[number[node]] = inside[number[node]] * value
        for i, line in enumerate(self.diagram.lines):
            if i in self.means[0]:
                continue
            a, b = number[line.start], number[line.end]
            plain = (self.plain(line.start, line.fields[0]), self.plain(line.end, line.fields[1]))
            correlation = self.rules.field.zero if "xt" in plain else self.rules.correlation(*plain)
            if a == b:
                inside[a] = inside[a] * correlation if i not in merged else inside[a]
                continue
            energy = self.rules.rate(line.fields[0] == "sigma")
            for here, there, side in ((a, b, 0), (b, a, 1)):
                node, other = (line.start, line.end) if side == 0 else (line.end, line.start)
                legs[here].append(self._leg(node, there, line.fields[side], self.plain(other, line.fields[1 - side]), correlation))
                views[here].append(DirectedLine(there, self.rules.field.one, energy))
        made = [self._cluster(group, legs[n], inside[n], merged) for n, group in enumerate(groups)]
        return tuple(made), tuple(map(tuple, views))

    def _leg(self, node: int, there: int, field: str, later: str, correlation: Any) -> _Leg:
        response = self.tilde(node, field)
        known = response in ("xt", "rhot", "mut") and later != "xt"
        value = self.rules.response(later, response) * self.factor(node, response) if known else self.rules.field.zero
        return _Leg(node, there, correlation, value, self.diagram.nodes[node].is_leg and response == "xt")

    def _cluster(self, group: list[int], legs: list[_Leg], inside: Any, merged: Sequence[int]) -> _Cluster:
        nodes = self.diagram.nodes
        fixed = [node for node in group if nodes[node].is_leg]
        roots = []
        for root in fixed[:1] or group:
            factor = inside * self._towards([*fixed] if fixed else [root], group, merged)
            if factor:
                roots.append((root, factor))
        return _Cluster(tuple(legs), tuple(roots), bool(fixed))

    def _towards(self, reached: list[int], group: list[int], merged: Sequence[int]) -> Any:
        """Local weights and factors of all vertices of a cluster but the root, the response leg of each leading to the root."""
        factor, waiting = self.rules.field.one, [i for i in merged if self.diagram.lines[i].start in group]
        while waiting:
            i = next(i for i in waiting if {self.diagram.lines[i].start, self.diagram.lines[i].end} & set(reached))
            waiting.remove(i)
            line = self.diagram.lines[i]
            parent, child = (line.start, line.end) if line.start in reached else (line.end, line.start)
            response = self.tilde(child, "sigma")
            if response not in ("rhot", "mut"):
                return self.rules.field.zero
            factor = factor * self.rules.local(self.plain(parent, "sigma"), response) * self.factor(child, response)
            reached.append(child)
        return factor
