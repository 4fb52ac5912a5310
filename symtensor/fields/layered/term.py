r"""One diagram of a layered network with its weight and its formula.

Times: T1, T2, .. of the external legs, l1, l2, .. of the J legs of vertices (where kappa stands), k1, k2, .. of their S legs.
Sums over times and components are understood. The value is evaluated through `tensor_network`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from symtensor.diagrams import Diagram
from symtensor.fields.layered.tensor_network import TensorNetwork, networks

__all__ = ["LayeredTerm"]


@dataclass(frozen=True, eq=False)
class LayeredTerm:
    """A diagram of n[Shat.S + W]: vertices d^p kappa_q / dS^p, lines <s s> and <s J>, weight 1/|Aut|."""

    diagram: Diagram

    @property
    def symmetry_factor(self) -> int:
        """|Aut|; the term carries its reciprocal."""
        return self.diagram.symmetry_factor

    @property
    def loops(self) -> int:
        """The number of loops."""
        return self.diagram.loops

    @property
    def order(self) -> int:
        """The power of 1/n: (number of legs - 1) + loops."""
        return len(self.diagram.graph.legs) - 1 + self.loops

    @property
    def vertices(self) -> tuple[tuple[int, int], ...]:
        """(p, q) of each vertex: derivatives with respect to S, legs of the cumulant."""
        return tuple(_valence(self.diagram.nodes[node].name) for node in self.diagram.graph.vertices)

    def networks(self, degree: int | None = 1) -> tuple[TensorNetwork, ...]:
        """The term as contractions of arrays, for a Sigma whose derivatives vanish beyond order `degree` (None: none vanishes)."""
        return networks(self.diagram, degree)

    @cached_property
    def _times(self) -> dict[tuple[int, int], str]:
        """(line, end) -> the time there."""
        graph = self.diagram.graph
        found: dict[tuple[int, int], str] = {}
        count = {"J": 0, "s": 0}
        for number, line in enumerate(graph.lines):
            for end, node in enumerate((line.start, line.end)):
                if graph.nodes[node].is_leg:
                    found[number, end] = f"T_{{{graph.nodes[node].label}}}" if len(graph.legs) > 1 else "T"
                    continue
                field = line.fields[end]
                count[field] += 1
                found[number, end] = f"{'l' if field == 'J' else 'k'}_{{{count[field]}}}"
        return found

    def latex(self) -> str:
        """The term as it is written on paper, at n = 1."""
        weight = rf"\frac{{1}}{{{self.symmetry_factor}}}\," if self.symmetry_factor > 1 else ""
        return weight + r"\,".join([*self._vertex_factors(), *self._line_factors()])

    def _vertex_factors(self) -> list[str]:
        graph = self.diagram.graph
        written = []
        for node in graph.vertices:
            legs: dict[str, list[str]] = {"J": [], "s": []}
            for number, line in enumerate(graph.lines):
                for end, where in enumerate((line.start, line.end)):
                    if where == node:
                        legs[line.fields[end]].append(self._times[number, end])
            cumulant = rf"\kappa_{{{len(legs['J'])}}}({', '.join(legs['J'])})"
            if not legs["s"]:
                written.append(cumulant)
                continue
            power = f"^{{{len(legs['s'])}}}" if len(legs["s"]) > 1 else ""
            below = r"\,".join(rf"\partial S_{{{time}}}" for time in legs["s"])
            written.append(rf"\frac{{\partial{power} {cumulant}}}{{{below}}}")
        return written

    def _line_factors(self) -> list[str]:
        written = []
        for number, line in enumerate(self.diagram.graph.lines):
            start, end = self._times[number, 0], self._times[number, 1]
            if line.response:
                written.append(rf"\langle s_{{{end}}} J_{{{start}}}\rangle")
            else:
                written.append(rf"\langle s_{{{start}}} s_{{{end}}}\rangle")
        return written

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def __repr__(self) -> str:
        return f"<LayeredTerm {self.diagram.canonical}: 1/{self.symmetry_factor}>"


def _valence(name: str) -> tuple[int, int]:
    _, p, q = name.split("_")
    return int(p), int(q)
