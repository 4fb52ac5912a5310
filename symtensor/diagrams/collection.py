"""The answer to a request: a lazy, ordered set of diagrams that can count, weigh, verify and draw itself."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

from symtensor.diagrams import properties
from symtensor.diagrams.contents import Content, check_size, contents
from symtensor.diagrams.diagram import Diagram
from symtensor.diagrams.dressed import check_dressed, one_over_n_order, skeleton_order
from symtensor.diagrams.enumeration import blocks_of, parts_of, skeletons
from symtensor.diagrams.errors import RequestError
from symtensor.diagrams.graph import Leg
from symtensor.diagrams.index_lines import closed_loops, index_fields
from symtensor.diagrams.kernel.skeleton import Skeleton
from symtensor.diagrams.model import Model
from symtensor.diagrams.request import Request
from symtensor.diagrams.theories import theory

if TYPE_CHECKING:
    from symtensor.diagrams.verification import Verification

__all__ = ["DiagramSet", "Tally", "enumerate_diagrams"]

SHOWN = 24


@dataclass(frozen=True, slots=True)
class Tally:
    """Number of diagrams and sum of their weights 1/|Aut|."""

    count: int
    weight: Fraction

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.count + other.count, self.weight + other.weight)


def enumerate_diagrams(
    model: Model | str,
    legs: int | str | Mapping[str, Any] | Iterable[Leg | str] = 0,
    loops: int | None = None,
    *,
    kind: str = "connected",
    orders: Mapping[str, int | tuple[int, int]] | None = None,
    labelled: bool = True,
    causality: str | None = None,
    no_tadpoles: bool = False,
    no_self_loops: bool = False,
    no_snails: bool = False,
    no_self_energies: bool = False,
    irreducible: Collection[str] | None = None,
    dressed: int | None = None,
    where: Callable[[Diagram], bool] | None = None,
    executor: Executor | None = None,
) -> DiagramSet:
    """All diagrams of a correlation or vertex function, each exactly once, with its symmetry factor.

    The result is lazy: iterating it generates diagrams in a fixed order, without keeping them. `model` is a `Model` or the name of
    one. `legs` is a number (one field), ``"x:2,xt:0"``, a mapping of numbers or of lists of labels, or a list of `Leg`.

    kind: ``"all"`` (with disconnected diagrams), ``"connected"``, ``"1pi"`` (legs amputated; with `irreducible`, no bridge among
        the propagators named, as ``["x-xt"]``), ``"vacuum"`` (connected without legs).
    loops: L = lines - nodes + 1, legs counted as nodes. orders: an integer or (lowest, highest) for counting parameters of the
        model; several may be bounded at once, with or without `loops`.
    labelled: legs are told apart by labels; otherwise legs of one field may be exchanged.
    causality: rule for response loops (`Causality`), the model's unless given. ``local``: diagrams with a closed loop of response
        lines are never built; ``nonlocal``: nor are those with a set of vertices that no response line leaves; ``none``: all stay.
    no_tadpoles: no part without legs hangs on one line. no_self_loops: no line with both ends on one vertex. no_snails: no part
        without legs is attached at one line or one vertex. no_self_energies: no connected set of vertices, none of them with a
        leg, is joined to the rest by exactly two internal lines (corrections of the legs themselves stay).
    where: any predicate on `Diagram`.
    dressed: the order in 1/N (`symtensor.diagrams.dressed`): the auxiliary line is dressed by the bubble chain.
    executor: runs independent searches of connected diagrams (threads do: the kernel releases the interpreter lock); the
        order of the results is the same.

    Raises RequestError, InfiniteRequestError (the bounds leave infinitely many), ModelError.

    >>> [d.symmetry_factor for d in enumerate_diagrams("phi3", legs=2, loops=1)]
    [2, 2]
    >>> enumerate_diagrams("phi4", legs=2, loops=4, kind="1pi").tally()
    Tally(count=18, weight=Fraction(115, 48))
    """
    chosen = theory(model) if isinstance(model, str) else model
    request = Request.checked(
        chosen, legs, kind=kind, loops=loops, orders=orders, labelled=labelled, causality=causality, irreducible=irreducible,
        dressed=dressed, where=where, no_tadpoles=no_tadpoles, no_self_loops=no_self_loops, no_snails=no_snails,
        no_self_energies=no_self_energies,
    )  # fmt: skip
    if executor is not None and not hasattr(executor, "submit"):
        raise RequestError(f"executor={executor!r}: give a concurrent.futures executor")
    if dressed is not None:
        check_dressed(chosen)
    else:
        check_size(request)
        contents(request)  # refuses infinite requests now, not at the first diagram
    return DiagramSet(request, executor)


class DiagramSet:
    """The diagrams that answer a `Request`, generated in a fixed order each time they are asked for."""

    def __init__(self, request: Request, executor: Executor | None = None) -> None:
        self.request = request
        self.executor = executor

    def __iter__(self) -> Iterator[Diagram]:
        model, keep = self.request.model, self._keep()
        for parts in parts_of(self.request, self.executor, self._workers):
            diagram = Diagram(model, parts)
            if keep is None or keep(diagram):
                yield diagram

    @property
    def _workers(self) -> int:
        return int(getattr(self.executor, "_max_workers", 1) or 1)

    def _keep(self) -> Callable[[Diagram], bool] | None:
        """What is filtered after a diagram is built, or None if nothing is."""
        request = self.request
        bounded = dict(request.orders)
        on_lines = any(name in p.orders for p in request.model.propagators for name in bounded)
        tests: list[Callable[[Diagram], bool]] = []
        if on_lines:
            tests.append(lambda d: all(low <= d.orders.get(name, 0) <= high for name, (low, high) in bounded.items()))
        if request.no_self_energies:
            tests.append(lambda d: not properties.has_self_energy(d.graph))
        if request.where is not None:
            tests.append(request.where)
        return (lambda d: all(test(d) for test in tests)) if tests else None

    def count(self) -> int:
        """Number of diagrams (counted by enumeration)."""
        return self.tally().count

    def weight(self) -> Fraction:
        """Sum of 1/|Aut|."""
        return self.tally().weight

    def tally(self) -> Tally:
        """Count and weight, without building the diagrams where no filter needs them."""
        total: Counter[int] = Counter()
        if self.request.kind == "all" or self._keep() is not None:
            total.update(diagram.symmetry_factor for diagram in self)
        else:
            for block in blocks_of(self.request, self.executor, self._workers):
                total.update(block.factor_counts())
        return _tally(total)

    def tally_by(self, key: Callable[[Diagram], Any]) -> dict[Any, Tally]:
        """Count and weight for each value of `key`, sorted by it."""
        totals: dict[Any, Tally] = {}
        for diagram in self:
            value = key(diagram)
            totals[value] = totals.get(value, Tally(0, Fraction(0))) + Tally(1, diagram.weight)
        return dict(sorted(totals.items()))

    def by_index_loops(self) -> dict[int, Tally]:
        """Count and weight by the number of closed index loops, the power of N, for models with an index."""
        if not any(f.index for f in self.request.model.fields):
            raise RequestError(f"model {self.request.model.name!r} has no field with an index, so no index loops")
        return self._tally_by(lambda s: closed_loops(s.index_lengths), lambda d: len(d.index_loops))

    def by_one_over_n(self) -> dict[tuple[int, int], Tally]:
        """Count and weight by (order in 1/N, closed index loops), for models as `symtensor.diagrams.dressed` has them."""
        check_dressed(self.request.model)
        return self._tally_by(
            lambda s: (skeleton_order(s), closed_loops(s.index_lengths)), lambda d: (one_over_n_order(d.graph), len(d.index_loops))
        )

    def _tally_by(self, of_skeleton: Callable[[Skeleton], Any], of_diagram: Callable[[Diagram], Any]) -> dict[Any, Tally]:
        """By something that the skeleton decides, where index lines are part of it and no filter needs the diagram."""
        if self.request.kind == "all" or self._keep() is not None or not index_fields(self.request.model):
            return self.tally_by(of_diagram)
        totals: dict[Any, Counter[int]] = defaultdict(Counter)
        for block in blocks_of(self.request, self.executor, self._workers):
            totals[of_skeleton(block.skeleton)].update(block.factor_counts())
        return {key: _tally(factors) for key, factors in sorted(totals.items())}

    def split_tadpoles(self) -> tuple[DiagramSet, DiagramSet]:
        """Two lazy sets: the diagrams without tadpoles, and those with (the shift of the saddle or of the mean)."""
        where = self.request.where
        without = {**self.request.__dict__, "no_tadpoles": True}
        having = {**self.request.__dict__, "where": lambda d: bool(d.tadpoles) and (where is None or where(d))}
        return DiagramSet(Request(**without), self.executor), DiagramSet(Request(**having), self.executor)

    @property
    def contents(self) -> tuple[Content, ...]:
        """The multisets of vertices that balance legs and orders (for dressed requests: none listed)."""
        return () if self.request.dressed is not None else contents(self.request)

    @property
    def empty_reason(self) -> str:
        """Why the set must be empty; an empty text if nothing speaks against diagrams before the search."""
        request = self.request
        if request.dressed is not None:
            return "" if any(True for _ in skeletons(request)) else "no set of vertices has this order in 1/N with these legs"
        no_mass = all(vertex.valence > 2 for vertex in request.model.vertices)
        if request.amputated and request.loops == 0 and len(request.legs) == 2 and no_mass:
            return "a vertex function needs at least one vertex; the bare line is not 1PI"
        if not self.contents:
            return _why_no_content(request)
        if not request.legs and request.kind != "all" and all(not content for content in self.contents):
            return "only the empty diagram has so few loops and no legs, and it is of class all"
        if request.causality != "none" and not self._has_response_leg():
            if not request.legs:
                return "vacuum diagrams vanish: every response line would end in a closed loop of response lines (Z = 1)"
            if request.amputated:
                return "without an amputated response leg every diagram has a closed loop of response lines, and vanishes"
        return ""

    def _has_response_leg(self) -> bool:
        response = {f.name for f in self.request.model.fields if f.response}
        if self.request.amputated:
            return any(leg.field in response for leg in self.request.legs)
        return any(leg.field not in response for leg in self.request.legs)

    def verify(self, diagrams: Iterable[Diagram] | None = None) -> Verification:
        """Prove that the enumeration (or the list `diagrams`) is complete and right; see `symtensor.diagrams.verification`.

        Raises IncompleteError, naming class, expected and found, if a diagram is missing, repeated, foreign or has a wrong factor.
        """
        from symtensor.diagrams.verification import verify

        return verify(self, diagrams)

    def to_json(self) -> str:
        """All diagrams as one JSON document: request, then for each its canonical line, symmetry factor and loops."""
        listed = [{"diagram": d.canonical, "symmetry_factor": d.symmetry_factor, "loops": d.loops} for d in self]
        return json.dumps({"request": str(self.request), "diagrams": listed}, indent=1)

    def sheet(self, limit: int = 60) -> str:
        """A picture (SVG) of the first `limit` diagrams in a grid, each over its weight."""
        from symtensor.diagrams.draw import sheet

        items = [(d.graph, str(d.weight)) for d in islice(self, limit + 1)]
        return sheet(items[:limit], title=str(self.request) + (" (more not shown)" if len(items) > limit else ""))

    def _repr_html_(self) -> str:
        return self.sheet(SHOWN)

    def __repr__(self) -> str:
        return f"<DiagramSet {self.request}>"


def _tally(factors: Mapping[int, int]) -> Tally:
    """From the number of diagrams with each symmetry factor."""
    return Tally(sum(factors.values()), sum((Fraction(n, f) for f, n in factors.items()), Fraction(0)))


def _why_no_content(request: Request) -> str:
    if request.kind == "all" and request.loops is not None and 2 * request.loops < 2 - len(request.legs):
        return f"{request.loops} loops is below the minimum 1 - legs/2 of class all (L = lines - nodes + 1, legs counted as nodes)"
    vertices = request.model.vertices
    if not request.model.families and vertices and all(v.valence % 2 == 0 for v in vertices) and len(request.legs) % 2:
        return f"{len(request.legs)} legs is odd, and every vertex of {request.model.name!r} has an even number of legs"
    loops = "" if request.loops is None else f" and {request.loops} loops"
    return f"no set of vertices of {request.model.name!r} joins {len(request.legs)} legs{loops}: the legs cannot all be paired"
