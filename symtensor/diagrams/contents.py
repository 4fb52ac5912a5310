"""Which vertices a request allows: the integer points between its bounds.

Unknowns are the number of each vertex and of each propagator. Every leg is joined, so for each field the legs at the vertices
and outside balance the ends of the lines; the loop order and the orders of counting parameters are linear too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from symtensor.diagrams.errors import InfiniteRequestError, RequestError
from symtensor.diagrams.model import MAX_VALENCE, Vertex
from symtensor.diagrams.request import Request

__all__ = ["MAX_NODES", "Content", "check_size", "contents", "usable_vertices"]

#: Sets of nodes are bits of one integer in the kernel.
MAX_NODES = 60

#: A multiset of vertices as pairs (vertex, number), in the order of the model.
Content = tuple[tuple[Vertex, int], ...]


@dataclass(frozen=True)
class _Row:
    """lowest <= coefficients . unknowns <= highest."""

    coefficients: np.ndarray
    lowest: float
    highest: float


def check_size(request: Request) -> None:
    """Raise RequestError if even the fewest vertices are more nodes than one connected diagram may have."""
    valences = [vertex.valence for vertex in request.model.vertices]
    if request.loops is None or request.model.families or not valences or max(valences) < 3:
        return
    fewest = -(-(2 * (request.loops - 1) + len(request.legs)) // (max(valences) - 2)) + len(request.legs)
    if fewest > MAX_NODES:
        raise RequestError(f"{request}: at least {fewest} nodes; at most {MAX_NODES} are possible in one connected diagram")


def usable_vertices(request: Request) -> tuple[Vertex, ...]:
    """The model's vertices, with families expanded as far as the loop order lets them occur."""
    model = request.model
    if not model.families:
        return model.vertices
    if request.loops is None:
        raise InfiniteRequestError(
            f"model {model.name!r} has the vertex family {model.families[0].name!r}, which has vertices of every valence; "
            "only a loop order bounds it: give loops=.."
        )
    if any(vertex.valence < 3 for vertex in model.vertices):
        raise InfiniteRequestError("a vertex family together with vertices of valence 1 or 2: no loop order bounds their valence")
    largest = 2 * (request.loops - 1) + len(request.legs) + 2
    if largest > MAX_VALENCE:
        raise RequestError(
            f"{request}: the family {model.families[0].name!r} has vertices of up to {largest} legs at this loop order; at most "
            f"{MAX_VALENCE} legs are possible. Ask for fewer loops"
        )
    return (*model.vertices, *(vertex for family in model.families for vertex in family.vertices(largest)))


@lru_cache(maxsize=128)
def contents(request: Request) -> tuple[Content, ...]:
    """All multisets of vertices that can answer the request, few vertices first; raises InfiniteRequestError."""
    vertices = usable_vertices(request)
    rows = _rows(request, vertices)
    upper = _bounds_by_loops(request, vertices)
    if upper is None:
        upper = _bounds_by_programming(rows, len(vertices) + len(request.model.propagators), vertices)
    if upper is None:
        return ()
    found = {point[: len(vertices)] for point in _points(rows, upper)}
    ordered = sorted(found, key=lambda numbers: (sum(numbers), tuple(-n for n in numbers)))
    return tuple(tuple((v, n) for v, n in zip(vertices, numbers) if n) for numbers in ordered)


def _rows(request: Request, vertices: Sequence[Vertex]) -> list[_Row]:
    model, legs = request.model, request.leg_counts
    lines = model.propagators
    rows = []
    for f in model.fields:
        ends = [-((p.first == f.name) + (p.second == f.name)) for p in lines]
        outside = legs.get(f.name, 0) * (-1 if request.amputated else 1)
        rows.append(_row([v.count(f.name) for v in vertices] + ends, -outside, -outside))
    if request.loops is not None:
        budget = 2 * (request.loops - 1) + len(request.legs)
        rows.append(_row([v.valence - 2 for v in vertices] + [0] * len(lines), budget, budget))
    for name, (low, high) in request.orders:
        rows.append(_row([part.orders.get(name, 0) for part in (*vertices, *lines)], low, high))
    return rows


def _row(coefficients: list[int], low: int, high: int) -> _Row:
    return _Row(np.array(coefficients, float), low, high)


def _bounds_by_loops(request: Request, vertices: Sequence[Vertex]) -> np.ndarray | None:
    """The largest number of each vertex and propagator, if the loop order alone bounds all of them."""
    if request.loops is None or any(vertex.valence < 3 for vertex in vertices):
        return None
    budget = max(0, 2 * (request.loops - 1) + len(request.legs))
    numbers = [budget // (vertex.valence - 2) for vertex in vertices]
    legs = len(request.legs) + max((n * v.valence for n, v in zip(numbers, vertices)), default=0)
    return np.array(numbers + [legs // 2] * len(request.model.propagators), float)


def _bounds_by_programming(rows: list[_Row], count: int, vertices: Sequence[Vertex]) -> np.ndarray | None:
    """The largest value of each unknown (None if there is no solution); raises InfiniteRequestError naming unbounded vertices."""
    from scipy.optimize import linprog

    matrix = np.array([row.coefficients for row in rows])
    both = np.vstack([matrix, -matrix])
    limits = np.array([row.highest for row in rows] + [-row.lowest for row in rows])
    upper = np.zeros(count)
    for unknown in range(count):
        objective = np.zeros(count)
        objective[unknown] = -1
        result = linprog(objective, A_ub=both, b_ub=limits, bounds=(0, None), method="highs")
        if result.status == 3 or (result.status == 4 and unknown < len(vertices)):
            name = vertices[unknown].name if unknown < len(vertices) else "a propagator"
            valence = f" (valence {vertices[unknown].valence})" if unknown < len(vertices) else ""
            raise InfiniteRequestError(
                f"nothing bounds the number of vertices {name!r}{valence}: infinitely many diagrams answer the request. "
                "Bound an order that they carry, for example orders={'g': (0, 4)}"
            )
        if result.status == 2:
            return None
        upper[unknown] = np.floor(-result.fun + 1e-7)
    return upper


def _points(rows: list[_Row], upper: np.ndarray) -> Iterator[tuple[int, ...]]:
    """Integer points by depth-first search; what the remaining unknowns can add at least and at most cuts branches."""
    matrix = np.array([row.coefficients for row in rows])
    lowest, highest = np.array([row.lowest for row in rows]), np.array([row.highest for row in rows])
    reach = matrix * upper
    least = np.vstack([np.cumsum(np.minimum(reach, 0)[:, ::-1], axis=1)[:, ::-1].T, np.zeros(len(rows))])
    most = np.vstack([np.cumsum(np.maximum(reach, 0)[:, ::-1], axis=1)[:, ::-1].T, np.zeros(len(rows))])

    def extend(point: tuple[int, ...], total: np.ndarray) -> Iterator[tuple[int, ...]]:
        at = len(point)
        if np.any(total + least[at] > highest) or np.any(total + most[at] < lowest):
            return
        if at == len(upper):
            yield point
            return
        for value in range(int(upper[at]), -1, -1):
            yield from extend((*point, value), total + value * matrix[:, at])

    yield from extend((), np.zeros(len(rows)))
