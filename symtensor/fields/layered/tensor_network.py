r"""A diagram of a layered network as contractions of arrays.

A vertex n d^p kappa_q / dS_{k1} .. dS_{kp} is a sum over the set partitions of its S legs into blocks (all singletons if Sigma
is linear in S) and over the J legs whose variance K each block acts on:

    d^p kappa_q / dS^p = sum_{partitions, assignments}  kappa_q^(a)[l_1 c_1 .. l_q c_q ; e ..]  prod_blocks  d^b K_{l}^e / dS^b ,
    d^b K_l^e / dS_k^{c_1} .. dS_k^{c_b} = A_b[l e, k c_1 .. c_b] = dt alpha^{2(l-1-k)} d^b Sigma^e / dS^{c_1} .. dS^{c_b}  (k < l).

For a singleton the factor A = dK/dS is part of the line. Arrays and their axes (T a time, C all components, F those that feed
forward, E the pairs of inputs):

    R_CC[T C, T C] = <s J> n at an external leg,  R_FF[T F, T F] = <s J> n,  R_EF[T E, T F] = <K J> n = A R_FF  (strictly retarded)
    C_CC, C_CE, C_CF, C_EE, C_EF, C_FF         correlators n <s s>, n <s K>, n <K K>, .. with the same axes
    kappa_<axes>_<a1 a2 ..>                    joint cumulants with a_j derivatives at leg j, those of coinciding legs shared
    A_b[T E, T F .. F]                         d^b K / dS^b of a block of b >= 2 legs

A network vanishes if its times are ordered in a circle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import TypeAlias

from symtensor.diagrams import Diagram

__all__ = ["Array", "Index", "TensorNetwork", "networks", "set_partitions"]

#: kind of axis ("T", "C", "F" or "E") and a number
Index: TypeAlias = "tuple[str, int]"
#: one end of a line: number of the line, 0 or 1
End: TypeAlias = "tuple[int, int]"


@dataclass(frozen=True, slots=True)
class Array:
    """An array by name, with its indices; an index that stands twice is one axis."""

    name: str
    indices: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class TensorNetwork:
    """coefficient x (product of `factors`) summed over all indices but those of the external legs.

    Attributes:
        external: the lines at external legs, in the order of the legs (one line joins two of them in the lowest order).
        internal: the other factors.
        open_axes: time and component of each external leg.
    """

    coefficient: Fraction
    external: tuple[Array, ...]
    internal: tuple[Array, ...]
    open_axes: tuple[tuple[Index, Index], ...]


def set_partitions(items: Sequence[End], largest: int | None) -> Iterator[tuple[tuple[End, ...], ...]]:
    """All set partitions of the items into blocks of at most `largest` (None: any size).

    >>> sum(1 for _ in set_partitions([(0, 0), (1, 0), (2, 0)], None)), sum(1 for _ in set_partitions([(0, 0), (1, 0)], 1))
    (5, 1)
    """
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for smaller in set_partitions(rest, largest):
        yield ((first,), *smaller)
        for at, block in enumerate(smaller):
            if largest is None or len(block) < largest:
                yield (*smaller[:at], (first, *block), *smaller[at + 1 :])


@lru_cache(maxsize=4096)
def networks(diagram: Diagram, degree: int | None) -> tuple[TensorNetwork, ...]:
    """The networks of a diagram; `degree` is the highest nonzero derivative of Sigma (None: no highest)."""
    graph = diagram.graph
    choices = [list(_vertex_choices(diagram, node, degree)) for node in graph.vertices]
    found = (_network(diagram, dict(zip(graph.vertices, chosen))) for chosen in product(*choices))
    return tuple(network for network in found if network is not None)


@dataclass(frozen=True, slots=True)
class _Choice:
    """One way to differentiate a vertex: its J legs, and the blocks of S legs with the J leg (by place) each acts on."""

    legs: tuple[End, ...]
    blocks: tuple[tuple[End, ...], ...]
    places: tuple[int, ...]


def _vertex_choices(diagram: Diagram, node: int, degree: int | None) -> Iterator[_Choice]:
    ends: dict[str, list[End]] = {"J": [], "s": []}
    for number, line in enumerate(diagram.graph.lines):
        for end, where in enumerate((line.start, line.end)):
            if where == node:
                ends[line.fields[end]].append((number, end))
    for blocks in set_partitions(ends["s"], degree):
        for places in product(range(len(ends["J"])), repeat=len(blocks)):
            yield _Choice(tuple(ends["J"]), blocks, places)


def _network(diagram: Diagram, choices: dict[int, _Choice]) -> TensorNetwork | None:
    """The network of one choice for every vertex; None if its times contradict each other."""
    builder = _Builder(diagram)
    builder.number_legs()
    for choice in choices.values():
        builder.add_vertex(choice)
    if not builder.ordered():
        return None
    builder.add_lines()
    legs = diagram.graph.legs
    return TensorNetwork(
        Fraction(1, diagram.symmetry_factor), tuple(builder.external), tuple(builder.internal),
        tuple((("T", at), ("C", at)) for at in range(len(legs))),
    )  # fmt: skip


class _Builder:
    """Indices of all ends of lines, then the factors."""

    def __init__(self, diagram: Diagram) -> None:
        self.graph = diagram.graph
        self.count = {"T": len(self.graph.legs), "C": len(self.graph.legs), "F": 0, "E": 0}
        self.ends: dict[End, tuple[Index, Index]] = {}
        self.earlier: set[tuple[Index, Index]] = set()  # strictly earlier, later
        self.internal: list[Array] = []
        self.external: list[Array] = []

    def fresh(self, kind: str) -> Index:
        self.count[kind] += 1
        return kind, self.count[kind] - 1

    def number_legs(self) -> None:
        """The axes of external leg j (label j + 1) are T_j, C_j."""
        for number, line in enumerate(self.graph.lines):
            for end, node in enumerate((line.start, line.end)):
                if self.graph.nodes[node].is_leg:
                    label = int(str(self.graph.nodes[node].label)) - 1
                    self.ends[number, end] = ("T", label), ("C", label)

    def add_vertex(self, choice: _Choice) -> None:
        """The cumulant of a vertex with its derivatives, and A of blocks of several legs."""
        derivatives: list[list[Index]] = [[] for _ in choice.legs]
        for leg in choice.legs:
            self.ends[leg] = self.fresh("T"), self.fresh("C" if self._meets_leg(leg) else "F")
        for block, place in zip(choice.blocks, choice.places):
            time, pair = self.ends[choice.legs[place]][0], self.fresh("E")
            derivatives[place].append(pair)
            if len(block) == 1:
                self.ends[block[0]] = time, pair
                continue
            before = self.fresh("T")
            self.earlier.add((before, time))
            for end in block:
                self.ends[end] = before, self.fresh("F")
            self.internal.append(Array(f"A_{len(block)}", (time, pair, before, *(self.ends[end][1] for end in block))))
        self.internal.append(_cumulant([self.ends[leg] for leg in choice.legs], derivatives))

    def _meets_leg(self, end: End) -> bool:
        line = self.graph.lines[end[0]]
        return self.graph.nodes[line.end if end[1] == 0 else line.start].is_leg

    def ordered(self) -> bool:
        """Whether the strict order of the times by response lines has no circle."""
        edges = set(self.earlier)
        for number, line in enumerate(self.graph.lines):
            # the J leg is not later than an S leg of a block, which is strictly earlier than its K leg: no circle of equalities
            if line.response and not self.graph.nodes[line.end].is_leg:
                edges.add((self.ends[number, 0][0], self.ends[number, 1][0]))
        return _acyclic(edges)

    def add_lines(self) -> None:
        """The arrays of the lines."""
        external: list[tuple[int, Array]] = []
        for number, line in enumerate(self.graph.lines):
            first, second = self.ends[number, 0], self.ends[number, 1]
            if line.response:
                first, second = second, first  # rows are the s end
            labels = [int(str(n.label)) for n in (self.graph.nodes[line.start], self.graph.nodes[line.end]) if n.is_leg]
            kinds = first[1][0] + second[1][0]
            if not line.response and kinds in ("EC", "FC", "FE"):
                first, second, kinds = second, first, kinds[::-1]
            array = Array(f"{'R' if line.response else 'C'}_{kinds}", (*first, *second))
            if labels:
                external.append((min(labels), array))
            else:
                self.internal.append(array)
        self.external = [array for _, array in sorted(external, key=lambda item: item[0])]


def _cumulant(legs: Sequence[tuple[Index, Index]], derivatives: Sequence[Sequence[Index]]) -> Array:
    """kappa with its legs sorted by (axis, number of derivatives), which its symmetry allows."""
    order = sorted(range(len(legs)), key=lambda at: (len(derivatives[at]), legs[at][1][0]), reverse=True)
    axes = "".join(legs[at][1][0] for at in order)
    pattern = "".join(str(len(derivatives[at])) for at in order)
    indices = [index for at in order for index in legs[at]] + [index for at in order for index in derivatives[at]]
    return Array(f"kappa_{axes}_{pattern}", tuple(indices))


def _acyclic(edges: set[tuple[Index, Index]]) -> bool:
    left = set(edges)
    while left:
        later = {late for _, late in left}
        free = {early for early, _ in left if early not in later}
        if not free:
            return False
        left = {edge for edge in left if edge[0] not in free}
    return True
