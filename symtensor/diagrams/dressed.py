"""The 1/N mode: the auxiliary line dressed by the bubble chain, diagrams ordered by 1/N.

Each auxiliary line counts 1/N and each closed index loop N. The chain of index loops with two auxiliary legs is resummed into the
line, and the loop with one leg is the saddle point, so loops with one or two auxiliary legs are left out. What remains is finite
at every order. A potential N s(phi.phi / N) that is not quadratic leaves vertices that join auxiliary legs only; each counts N, as
an index loop does, and has at least three legs. The order is relative to the leading term: with m index legs and s auxiliary legs,

    K = (auxiliary lines) - (index loops) - (vertices without index legs) - leading,
    leading = m/2 - 1 + s  (m >= 2),   s - 1  (m = 0, s >= 1),   0  (no legs)

where for connected functions the lines of the legs count; for amputated legs they do not, and s is taken off `leading`. The
auxiliary field may stand for several that mix, each line then for the matrix of their propagators: nothing here changes.
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

__all__ = ["auxiliary_vertices", "check_dressed", "dressed_skeletons", "one_over_n_order", "skeleton_order"]


def check_dressed(model: Model) -> tuple[Field, Field, Vertex]:
    """The index field, the auxiliary field and the vertex that joins them; raises RequestError if the model is of another kind."""
    indexed = [f for f in model.fields if f.index]
    auxiliary = [f for f in model.fields if f.auxiliary]
    lines = {frozenset((p.first, p.second)) for p in model.propagators}
    if len(indexed) == len(auxiliary) == 1 and not model.families and len(model.fields) == 2:
        phi, sigma = indexed[0], auxiliary[0]
        joining = [v for v in model.vertices if phi.name in v.legs]
        rest = [v for v in model.vertices if phi.name not in v.legs]
        legs = [sorted((phi.name, phi.name, sigma.name))]
        if [sorted(v.legs) for v in joining] == legs and lines == {frozenset({phi.name}), frozenset({sigma.name})}:
            _check_valences(model, rest)
            return phi, sigma, joining[0]
    raise RequestError(
        f"the dressed 1/N mode needs one index field, one auxiliary field, a propagator of each, and one vertex with an index: "
        f"(index, index, auxiliary), as model 'on' has; model {model.name!r} is not of that kind"
    )


def _check_valences(model: Model, vertices: list[Vertex]) -> None:
    for vertex in vertices:
        if vertex.valence < 3:
            raise RequestError(
                f"vertex {vertex.name!r} of model {model.name!r} has {vertex.valence} auxiliary legs and no others; in the dressed "
                "1/N mode it must have 3 or more: one leg belongs to the saddle point, two to the dressed line"
            )


def auxiliary_vertices(model: Model) -> tuple[Vertex, ...]:
    """The vertices that join auxiliary legs only; each counts a factor N."""
    indexed = {f.name for f in model.fields if f.index}
    return tuple(v for v in model.vertices if not indexed.intersection(v.legs))


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
    own = {vertex.name for vertex in auxiliary_vertices(graph.model)}
    vertices = sum(graph.nodes[i].name in own for i in graph.vertices)
    return lines - len(index_loops(graph)) - vertices - leading


def skeleton_order(skeleton: Skeleton) -> int:
    """The order K in 1/N of every connected diagram with these nodes and index lines."""
    phi, sigma, _ = check_dressed(skeleton.model)
    counts = Counter(leg.field for leg in skeleton.legs)
    outside = -counts[sigma.name] if skeleton.amputated else counts[sigma.name]
    lines = (sum(vertex.count(sigma.name) for vertex in skeleton.vertices) + outside) // 2
    own = sum(phi.name not in vertex.legs for vertex in skeleton.vertices)
    leading = leading_order(counts[phi.name], counts[sigma.name], skeleton.amputated)
    return lines - closed_loops(skeleton.index_lengths) - own - leading


def dressed_skeletons(request: Request) -> Iterator[Skeleton]:
    """All sets of nodes at the order asked for: vertices on open index lines, index loops of length 3 and more, and vertices
    without index legs."""
    phi, sigma, _ = check_dressed(request.model)
    counts = request.leg_counts
    index_legs, legs = counts.get(phi.name, 0), counts.get(sigma.name, 0)
    if index_legs % 2:
        return
    order = (request.dressed or 0) + leading_order(index_legs, legs, request.amputated)
    outside = legs if request.amputated else -legs
    grade = 2 * order + outside  # of loops and vertices of k auxiliary legs, k - 2 each, and of vertices on open lines, 1 each
    for own, rest in _own_vertices(auxiliary_vertices(request.model), grade):
        for loops in range(max(0, rest) + 1):
            for on_open in range(rest - loops + 1 if index_legs else min(1, rest + 2 * loops + 1)):
                for lengths in _lengths(rest + 2 * loops - on_open, loops, 3):
                    on = (0,) * on_open + tuple(length for length in lengths for _ in range(length))
                    yield _skeleton(request, on, own)


def _own_vertices(vertices: tuple[Vertex, ...], grade: int) -> Iterator[tuple[tuple[Vertex, ...], int]]:
    """Multisets of vertices without index legs of a total grade up to `grade`, and what they leave of it."""
    if not vertices:
        yield (), grade
        return
    most = max(0, grade) // (vertices[0].valence - 2)
    for number in range(most + 1):
        for others, rest in _own_vertices(vertices[1:], grade - number * (vertices[0].valence - 2)):
            yield (*(vertices[0],) * number, *others), rest


def _skeleton(request: Request, lengths: tuple[int, ...], own: tuple[Vertex, ...]) -> Skeleton:
    """The skeleton of vertices on index lines of the given lengths, and `own` vertices, in the order of the model's."""
    _, _, vertex = check_dressed(request.model)
    place = {v.name: i for i, v in enumerate(request.model.vertices)}
    nodes = [*((vertex, length) for length in lengths), *((v, -1) for v in own)]
    nodes.sort(key=lambda node: place[node[0].name])
    return Skeleton(request.model, request.legs, tuple(v for v, _ in nodes), request.amputated, tuple(on for _, on in nodes))


def _lengths(total: int, loops: int, least: int) -> Iterator[tuple[int, ...]]:
    """Partitions of `total` into `loops` parts of at least `least`, increasing."""
    if loops == 0:
        if total == 0:
            yield ()
        return
    for length in range(least, total // loops + 1):
        for rest in _lengths(total - length, loops - 1, length):
            yield (length, *rest)
