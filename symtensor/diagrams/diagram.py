"""A diagram: immutable, in canonical form, with everything one asks of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from symtensor.diagrams import properties
from symtensor.diagrams.edge_string import to_edge_string
from symtensor.diagrams.graph import Graph, Line, Node
from symtensor.diagrams.model import Model
from symtensor.diagrams.part import Part
from symtensor.diagrams.reading import line_order, reader

if TYPE_CHECKING:
    from symtensor.diagrams.routing import Routing, TimeRouting

__all__ = ["Diagram"]


class Diagram:
    """A diagram of a model in canonical form: legs are numbered first, then vertices.

    Two diagrams are equal if and only if they are isomorphic (legs' labels, kinds of vertices and lines kept).

    >>> from symtensor.diagrams import enumerate_diagrams
    >>> sunset = list(enumerate_diagrams("phi4", legs=2, loops=2, kind="1pi", no_self_loops=True))[0]
    >>> sunset.symmetry_factor, sunset.loops, sunset.is_1pi
    (6, 2, True)
    """

    __slots__ = ("__dict__", "model", "parts", "symmetry_factor")
    model: Model
    parts: tuple[Part, ...]
    symmetry_factor: int

    def __init__(self, model: Model, parts: tuple[Part, ...]) -> None:
        """A diagram with the given canonical parts, which must be sorted by `Part.sort_key`."""
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "parts", parts)
        factor = parts[0].symmetry_factor if len(parts) == 1 else _symmetry_factor(parts)
        object.__setattr__(self, "symmetry_factor", factor)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a diagram cannot be changed (attribute {name!r})")

    @classmethod
    def from_graph(cls, graph: Graph) -> Diagram:
        """The diagram of a graph with nodes and lines in any order; raises DiagramError if the graph is not valid."""
        from symtensor.diagrams.canonical import canonical_parts
        from symtensor.diagrams.validation import validate

        ordered = graph.legs_first()
        validate(ordered)
        return cls(graph.model, canonical_parts(ordered))

    @classmethod
    def from_json(cls, text: str) -> Diagram:
        """Read what `to_json` wrote; raises DiagramError naming what is wrong."""
        from symtensor.diagrams.exchange import from_json

        return cls.from_graph(from_json(text))

    @classmethod
    def from_string(cls, text: str, model: Model | str) -> Diagram:
        """Read a line such as ``x:1-g4.0 x:2-g4.0 g4.0-g4.0`` (the form of `canonical`)."""
        from symtensor.diagrams.edge_string import from_edge_string
        from symtensor.diagrams.theories import theory

        return cls.from_graph(from_edge_string(text, theory(model) if isinstance(model, str) else model))

    @cached_property
    def graph(self) -> Graph:
        """The nodes (legs first) and the sorted lines."""
        readers = [reader(part.skeleton) for part in self.parts]
        if len(readers) == 1:
            return Graph(self.model, readers[0].nodes, readers[0].lines(self.parts[0].code))
        nodes = [(not node.is_leg, p, i, node) for p, part in enumerate(readers) for i, node in enumerate(part.nodes)]
        nodes.sort(key=lambda item: item[:3])
        number = {(p, i): n for n, (_, p, i, _) in enumerate(nodes)}
        lines = [
            replace(line, start=number[p, line.start], end=number[p, line.end])
            for p, part in enumerate(self.parts)
            for line in readers[p].lines(part.code)
        ]
        return Graph(self.model, tuple(node for *_, node in nodes), tuple(sorted(lines, key=line_order)))

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.graph.nodes

    @property
    def lines(self) -> tuple[Line, ...]:
        return self.graph.lines

    @property
    def weight(self) -> Fraction:
        """1 / symmetry factor."""
        return Fraction(1, self.symmetry_factor)

    @property
    def loops(self) -> int:
        """L = lines - nodes + 1, legs counted as nodes."""
        return self.graph.loops

    @property
    def vertex_counts(self) -> dict[str, int]:
        """Number of vertices of each kind."""
        return dict(Counter(vertex.name for part in self.parts for vertex in part.skeleton.vertices))

    @property
    def orders(self) -> dict[str, int]:
        """Power of each counting parameter of the model."""
        return properties.orders(self.graph)

    @property
    def is_connected(self) -> bool:
        return len(self.parts) == 1

    @property
    def is_1pi(self) -> bool:
        """Connected, with a vertex, and no internal line is a bridge (legs' lines do not count)."""
        return properties.is_1pi(self.graph)

    @property
    def bridges(self) -> tuple[int, ...]:
        """Numbers of the internal lines whose removal disconnects."""
        return properties.bridges(self.graph)

    @property
    def self_loops(self) -> tuple[int, ...]:
        """Numbers of the lines with both ends on one vertex."""
        return properties.self_loops(self.graph)

    @property
    def tadpoles(self) -> tuple[tuple[int, ...], ...]:
        """Node sets of the parts without legs that hang on the rest by one line."""
        return properties.tadpoles(self.graph)

    @property
    def snails(self) -> tuple[properties.Snail, ...]:
        """Parts without legs attached to the rest at one vertex."""
        return properties.snails(self.graph)

    @property
    def self_energies(self) -> tuple[tuple[int, ...], ...]:
        """Node sets of the self-energy insertions."""
        return properties.self_energies(self.graph)

    @property
    def index_loops(self) -> tuple[tuple[int, ...], ...]:
        """Closed index loops, each as the numbers of its lines; each counts a factor N."""
        return properties.index_loops(self.graph)

    @property
    def response_cycle(self) -> tuple[int, ...] | None:
        """The lines of a closed loop of response lines, or None."""
        return properties.response_cycle(self.graph)

    @property
    def components(self) -> tuple[Diagram, ...]:
        """The connected parts, each as a diagram."""
        return tuple(Diagram(self.model, (part,)) for part in self.parts)

    def subdiagrams(self, **options: Any) -> Iterator[Any]:
        """Proper subdiagrams; see `symtensor.diagrams.subdiagrams.subdiagrams`."""
        from symtensor.diagrams.subdiagrams import subdiagrams

        return subdiagrams(self.graph, **options)

    def momenta(self, **options: Any) -> Routing:
        """Momentum of every line; see `symtensor.diagrams.routing.momenta`."""
        from symtensor.diagrams.routing import momenta

        return momenta(self.graph, **options)

    def times(self, **options: Any) -> TimeRouting:
        """Times of the vertices and their order; see `symtensor.diagrams.routing.times`."""
        from symtensor.diagrams.routing import times

        return times(self.graph, **options)

    @cached_property
    def canonical(self) -> str:
        """One line of text that is equal for equal diagrams, and can be read back by `from_string`."""
        if len(self.parts) == 1:
            return reader(self.parts[0].skeleton).text(self.parts[0].code)
        return to_edge_string(self.graph)

    def to_json(self) -> str:
        """The diagram with its model, in the stable form of `symtensor.diagrams.exchange`."""
        from symtensor.diagrams.exchange import to_json

        return to_json(self.graph)

    def to_networkx(self) -> Any:
        """A networkx multigraph; attributes as `symtensor.diagrams.exchange.to_networkx` says."""
        from symtensor.diagrams.exchange import to_networkx

        return to_networkx(self.graph)

    def to_tikz(self) -> str:
        """A picture for TikZ-Feynman."""
        from symtensor.diagrams.draw import tikz

        return tikz(self.graph)

    def to_dot(self) -> str:
        """A picture for Graphviz."""
        from symtensor.diagrams.draw import dot

        return dot(self.graph)

    def to_svg(self, **options: Any) -> str:
        """A picture as SVG."""
        from symtensor.diagrams.draw import svg

        return svg(self.graph, **options)

    def _repr_svg_(self) -> str:
        return self.to_svg(caption=f"1/{self.symmetry_factor}" if self.symmetry_factor > 1 else "1")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Diagram) and self.parts == other.parts and self.model == other.model

    def __hash__(self) -> int:
        return hash(self.parts)

    def __repr__(self) -> str:
        return f"<Diagram of {self.model.name}: {self.canonical or '1'}, symmetry factor {self.symmetry_factor}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Diagram, (self.model, self.parts))


def _symmetry_factor(parts: Iterable[Part]) -> int:
    """Product over the parts, times the permutations of equal ones."""
    copies = Counter(parts)
    return math.prod(part.symmetry_factor**number * math.factorial(number) for part, number in copies.items())
