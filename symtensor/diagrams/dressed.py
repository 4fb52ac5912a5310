"""The 1/N mode: the auxiliary line dressed by the bubble chain, diagrams ordered by 1/N.

Each auxiliary line counts 1/N and each closed index loop N. The chain of index loops with two auxiliary legs is resummed into the
line, and the loop with one leg is the saddle point, so loops with one or two auxiliary legs are left out. What remains is finite
at every order. The order is relative to the leading term: with m index legs and s auxiliary legs,

    K = (auxiliary lines) - (index loops) - leading,
    leading = m/2 - 1 + s  (m >= 2),   s - 1  (m = 0, s >= 1),   0  (no legs)

where for connected functions the lines of the legs count; for amputated legs they do not, and s is taken off `leading`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from symtensor.diagrams.errors import RequestError
from symtensor.diagrams.graph import Graph
from symtensor.diagrams.index_lines import closed_loops
from symtensor.diagrams.kernel.skeleton import Skeleton
from symtensor.diagrams.model import Field, Model, Vertex
from symtensor.diagrams.properties import index_loops
from symtensor.diagrams.request import Request

__all__ = ["check_dressed", "dressed_skeletons", "one_over_n_order", "skeleton_order"]


def check_dressed(model: Model) -> tuple[Field, Field, Vertex]:
    """The index field, the auxiliary field and their vertex; raises RequestError if the model is of another kind."""
    indexed = [f for f in model.fields if f.index]
    auxiliary = [f for f in model.fields if f.auxiliary]
    lines = {frozenset((p.first, p.second)) for p in model.propagators}
    if len(indexed) == len(auxiliary) == len(model.vertices) == 1 and not model.families and len(model.fields) == 2:
        phi, sigma, vertex = indexed[0], auxiliary[0], model.vertices[0]
        legs = sorted((phi.name, phi.name, sigma.name))
        if sorted(vertex.legs) == legs and lines == {frozenset({phi.name}), frozenset({sigma.name})}:
            return phi, sigma, vertex
    raise RequestError(
        f"the dressed 1/N mode needs one index field, one auxiliary field, a propagator of each, and the one vertex "
        f"(index, index, auxiliary), as model 'on' has; model {model.name!r} is not of that kind"
    )


def leading_order(index_legs: int, auxiliary_legs: int, amputated: bool) -> int:
    """What (auxiliary lines) - (index loops) is for the leading term."""
    if index_legs:
        leading = index_legs // 2 - 1 + auxiliary_legs
    else:
        leading = auxiliary_legs - 1 if auxiliary_legs else 0
    return leading - auxiliary_legs if amputated else leading


def one_over_n_order(graph: Graph) -> int:
    """The order K in 1/N of a diagram of a model with one index and one auxiliary field."""
    auxiliary = {f.name for f in graph.model.fields if f.auxiliary}
    indexed = {f.name for f in graph.model.fields if f.index}
    legs = [graph.nodes[i].name for i in graph.legs]
    lines = sum(line.propagator is not None and auxiliary.issuperset(line.fields) for line in graph.lines)
    amputated = any(line.propagator is None for line in graph.lines)
    leading = leading_order(sum(name in indexed for name in legs), sum(name in auxiliary for name in legs), amputated)
    return lines - len(index_loops(graph)) - leading


def skeleton_order(skeleton: Skeleton) -> int:
    """The order K in 1/N of every connected diagram with these nodes and index lines."""
    phi, sigma, _ = check_dressed(skeleton.model)
    counts = Counter(leg.field for leg in skeleton.legs)
    outside = -counts[sigma.name] if skeleton.amputated else counts[sigma.name]
    lines = (len(skeleton.vertices) + outside) // 2
    return lines - closed_loops(skeleton.index_lengths) - leading_order(counts[phi.name], counts[sigma.name], skeleton.amputated)


def dressed_skeletons(request: Request) -> Iterator[Skeleton]:
    """All sets of nodes at the order asked for: vertices on open index lines, and index loops of length 3 and more."""
    phi, sigma, vertex = check_dressed(request.model)
    counts = request.leg_counts
    index_legs, legs = counts.get(phi.name, 0), counts.get(sigma.name, 0)
    if index_legs % 2:
        return
    order = (request.dressed or 0) + leading_order(index_legs, legs, request.amputated)
    outside = legs if request.amputated else -legs
    for loops in range(max(0, 2 * order + outside) + 1):
        vertices = 2 * (order + loops) + outside
        for on_open in range(vertices - 3 * loops + 1 if index_legs else min(1, vertices + 1)):
            for lengths in _lengths(vertices - on_open, loops, 3):
                on = (0,) * on_open + tuple(length for length in lengths for _ in range(length))
                yield Skeleton(request.model, request.legs, (vertex,) * vertices, request.amputated, on)


def _lengths(total: int, loops: int, least: int) -> Iterator[tuple[int, ...]]:
    """Partitions of `total` into `loops` parts of at least `least`, increasing."""
    if loops == 0:
        if total == 0:
            yield ()
        return
    for length in range(least, total // loops + 1):
        for rest in _lengths(total - length, loops - 1, length):
            yield (length, *rest)
