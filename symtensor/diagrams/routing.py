"""Which momentum flows along each line, and in which order the times of a diagram stand.

Momenta: a spanning tree of each component is chosen once (breadth first from its last external leg, lines in order); each
line off the tree, a chord, carries a loop momentum of its own, and conservation at the vertices fixes all other lines.
External momenta flow in and add up to zero in each component, so that of its last leg is eliminated.

Times: every vertex has a time, and so has every leg that is a source point; an amputated leg shares its vertex's time. A
response line from s to t contributes theta(t - s).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from symtensor.diagrams.errors import DiagramError, RequestError
from symtensor.diagrams.flow import response_cycle
from symtensor.diagrams.graph import Graph
from symtensor.diagrams.properties import components

__all__ = ["Routing", "TimeRouting", "momenta", "times"]

Flow = Counter[str]
"""A linear form in momenta: the integer coefficient of each."""


@dataclass(frozen=True, slots=True, repr=False)
class Routing:
    """The momentum of every line of `graph`, along the line from its start to its end.

    `tree` and `chords` are line numbers; chord number i carries `loop_momenta[i]`. `external` holds the momentum that
    flows in at each leg, where those in `eliminated` have been replaced by minus the sum of the others of the component.
    """

    graph: Graph
    tree: tuple[int, ...]
    chords: tuple[int, ...]
    loop_momenta: tuple[sp.Symbol, ...]
    external: tuple[sp.Expr, ...]
    eliminated: tuple[tuple[sp.Symbol, sp.Expr], ...]
    momenta: tuple[sp.Expr, ...]

    @property
    def loop_basis(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each loop momentum the lines it flows along, with the sign it has there."""
        signs = [[(i, int(p.as_coefficients_dict().get(k, 0))) for i, p in enumerate(self.momenta)] for k in self.loop_momenta]
        return tuple(tuple((line, sign) for line, sign in loop if sign) for loop in signs)

    def inflow(self, node: int) -> sp.Expr:
        """The sum of the momenta that flow into a node, zero at a vertex; at a leg minus what flows in from outside."""
        total = sp.S.Zero
        for line, momentum in zip(self.graph.lines, self.momenta):
            total += momentum * ((line.end == node) - (line.start == node))
        return sp.expand(total)

    def __repr__(self) -> str:
        loops = ", ".join(map(str, self.loop_momenta)) or "none"
        head = [f"momenta of a diagram of {self.graph.model.name}; loop momenta: {loops}"]
        head += [f"  {symbol} = {value} (external momenta flow in)" for symbol, value in self.eliminated]
        return "\n".join(head + [f"  {_line_text(self.graph, i)}: {p}" for i, p in enumerate(self.momenta)])

    def _repr_latex_(self) -> str:
        rows = [rf"{sp.latex(symbol)} &= {sp.latex(value)}" for symbol, value in self.eliminated]
        rows += [rf"q_{{{i}}} &= {sp.latex(p)}" for i, p in enumerate(self.momenta)]
        return _aligned(rows)


@dataclass(frozen=True, slots=True, repr=False)
class TimeRouting:
    """The time of every node of `graph` and the order that its response lines impose.

    `order` lists vertices and source points, later ones first; `orderings` holds the pairs (earlier, later) of nodes
    that a response line joins.
    """

    graph: Graph
    times: tuple[sp.Symbol, ...]
    order: tuple[int, ...]
    orderings: tuple[tuple[int, int], ...]

    def line_times(self, line: int) -> tuple[sp.Symbol, sp.Symbol]:
        """The times at the start and at the end of line number `line`."""
        value = self.graph.lines[line]
        return self.times[value.start], self.times[value.end]

    def theta(self, at_zero: sp.Expr | int = 0) -> sp.Expr:
        """The product of theta(later - earlier) over the orderings; `at_zero` is theta(0): 0 is the Ito convention."""
        theta: Any = sp.Heaviside  # its annotations admit no other value at zero than 1/2
        steps = (theta(self.times[late] - self.times[early], at_zero) for early, late in self.orderings)
        return sp.Mul(*steps)

    def __repr__(self) -> str:
        order = ", ".join(str(self.times[node]) for node in self.order)
        pairs = ", ".join(f"{self.times[early]} < {self.times[late]}" for early, late in self.orderings)
        head = f"times of a diagram of {self.graph.model.name}, latest first: {order}\n  order: {pairs or 'none'}"
        lines = [f"  {_line_text(self.graph, i)}: {', '.join(map(str, self.line_times(i)))}" for i in range(len(self.graph.lines))]
        return "\n".join([head, *lines])

    def _repr_latex_(self) -> str:
        rows = [rf"{sp.latex(self.times[early])} &< {sp.latex(self.times[late])}" for early, late in self.orderings]
        return _aligned(rows)


def momenta(graph: Graph, external: Mapping[str, str] | Sequence[str] | None = None, loop: str = "k") -> Routing:
    """The momentum of every line as an exact linear form in loop momenta k1, k2, ... and external momenta.

    external: names of the momenta that flow in at the legs, in the order of the legs or by label; ``p_label`` if not
    given (``p_1``, ``p_2``, ... by position for legs without a label).
    loop: the letter of the loop momenta, numbered from 1 in the order of the chords.

    Raises: RequestError for names that are missing, repeated, or equal to a loop momentum's.

    >>> from symtensor.diagrams.edge_string import from_edge_string
    >>> from symtensor.diagrams.theories import theory
    >>> routing = momenta(from_edge_string("x:1-g4.0 g4.0-g4.1 g4.0-g4.1 g4.0-g4.1 g4.1-x:2", theory("phi4")))
    >>> routing.momenta
    (p_1, -k1 - k2 + p_1, k1, k2, p_1)
    """
    names = _external_names(graph, external, "p")
    order, above = graph.spanning_forest(_roots(graph))
    tree = set(above.values())
    chords = tuple(i for i in range(len(graph.lines)) if i not in tree)
    loops = [f"{loop}{at + 1}" for at in range(len(chords))]
    _check_distinct([*names, *loops], "momentum")
    eliminated = {at: _minus_others(graph, at, part, names) for part, at in _last_legs(graph)}
    incoming = [eliminated.get(at, Counter({name: 1})) for at, name in enumerate(names)]
    flows = _tree_flows(graph, dict(zip(chords, loops)), order, above, incoming)
    symbols = {name: sp.Symbol(name) for name in (*names, *loops)}
    return Routing(
        graph,
        tuple(sorted(tree)),
        chords,
        tuple(symbols[name] for name in loops),
        tuple(_form(flow, symbols) for flow in incoming),
        tuple((symbols[names[at]], _form(flow, symbols)) for at, flow in sorted(eliminated.items())),
        tuple(_form(flow, symbols) for flow in flows),
    )


def times(graph: Graph, external: Mapping[str, str] | Sequence[str] | None = None, internal: str = "s") -> TimeRouting:
    """The times of all nodes and the order imposed by the response lines.

    external: names of the times of the legs that are source points, as in `momenta`; ``t_label`` if not given.
    internal: the letter of the vertices' times, numbered from 1. An amputated leg has the time of its vertex.

    Raises: DiagramError for a closed loop of response lines, which allows no order; RequestError as `momenta`.
    """
    cycle = response_cycle(graph)
    if cycle is not None:
        raise DiagramError(
            f"response lines {', '.join(map(str, cycle))} form a closed loop, so that no order of the times exists; with "
            "theta(0) = 0 such a diagram vanishes (causality local drops it)"
        )
    legs = _external_names(graph, external, "t")
    inner = [f"{internal}{at + 1}" for at in range(len(graph.vertices))]
    _check_distinct([*legs, *inner], "time")
    symbols = [sp.Symbol(name) for name in (*legs, *inner)]
    hung = {line.start: line.end for line in graph.lines if line.propagator is None}
    at_nodes = tuple(symbols[hung.get(node, node)] for node in range(len(graph.nodes)))
    pairs = dict.fromkeys((line.start, line.end) for line in graph.lines if line.response and line.propagator is not None)
    order = _latest_first([node for node in range(len(graph.nodes)) if node not in hung], set(pairs))
    return TimeRouting(graph, at_nodes, order, tuple(pairs))


def _external_names(graph: Graph, external: Mapping[str, str] | Sequence[str] | None, letter: str) -> list[str]:
    legs = [graph.nodes[node] for node in graph.legs]
    if external is None:
        return [f"{letter}_{at + 1 if leg.label is None else leg.label}" for at, leg in enumerate(legs)]
    if isinstance(external, Mapping):
        missing = [leg.label for leg in legs if leg.label not in external]
        if missing:
            raise RequestError(f"no name is given for the leg labelled {missing[0]!r}; given are {', '.join(external) or 'none'}")
        return [external[leg.label] for leg in legs if leg.label is not None]
    if isinstance(external, str) or len(external) != len(legs):
        raise RequestError(f"names of the legs: {len(legs)} are required, one a leg, got {external!r}")
    return list(external)


def _check_distinct(names: list[str], what: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise RequestError(f"the {what} {repeated[0]!r} is named twice; give the legs other names, or the loops another letter")


def _roots(graph: Graph) -> list[int]:
    last = dict(_last_legs(graph))
    return [last.get(part, part[0]) for part in components(graph)]


def _last_legs(graph: Graph) -> list[tuple[tuple[int, ...], int]]:
    """Each component with external legs, and its last leg."""
    return [(part, max(legs)) for part in components(graph) if (legs := [node for node in part if graph.nodes[node].is_leg])]


def _minus_others(graph: Graph, last: int, part: tuple[int, ...], names: list[str]) -> Flow:
    return Counter({names[node]: -1 for node in part if graph.nodes[node].is_leg and node != last})


def _tree_flows(graph: Graph, chords: dict[int, str], order: list[int], above: dict[int, int], incoming: list[Flow]) -> list[Flow]:
    """The flow of every line: chords carry their own; a tree line carries off all that is put in below it."""
    flows: list[Flow] = [Counter() for _ in graph.lines]
    put_in: list[Flow] = [Counter(incoming[node]) if node < len(incoming) else Counter() for node in range(len(graph.nodes))]
    for index, name in chords.items():
        flows[index][name] = 1
        put_in[graph.lines[index].start][name] -= 1
        put_in[graph.lines[index].end][name] += 1
    for node in reversed(order):
        if node not in above:
            continue
        index = above[node]
        outwards = 1 if graph.lines[index].start == node else -1
        flows[index] = Counter({name: outwards * c for name, c in put_in[node].items() if c})
        put_in[graph.other_end(index, node)].update(put_in[node])
    return flows


def _form(flow: Flow, symbols: dict[str, sp.Symbol]) -> sp.Expr:
    return sp.Add(*(count * symbols[name] for name, count in flow.items()))


def _latest_first(nodes: list[int], pairs: set[tuple[int, int]]) -> tuple[int, ...]:
    """A topological order: a node comes as soon as all later ones have come, the lowest number first."""
    order: list[int] = []
    while len(order) < len(nodes):
        free = [n for n in nodes if n not in order and all(late in order for early, late in pairs if early == n)]
        order.append(min(free))
    return tuple(order)


def _line_text(graph: Graph, index: int) -> str:
    line = graph.lines[index]
    kind = line.propagator.name if line.propagator is not None else "amputated"
    ends = []
    for node in (line.start, line.end):
        value = graph.nodes[node]
        ends.append(f"{value.name}:{value.label if value.label is not None else node}" if value.is_leg else f"{value.name}.{node}")
    return f"line {index} {ends[0]} -> {ends[1]} ({kind})"


def _aligned(rows: list[str]) -> str:
    return "" if not rows else "$$\\begin{aligned}" + r" \\ ".join(rows) + "\\end{aligned}$$"
