"""The dressed 1/N mode with vertices that join auxiliary legs only, as a potential that is not quadratic has them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from symtensor.diagrams import Diagram, Field, IncompleteError, Model, Propagator, RequestError, Vertex, enumerate_diagrams
from symtensor.diagrams.dressed import one_over_n_order


def _model(*valences: int, first: bool = True) -> Model:
    """phi with an index, sigma, their vertex, and sigma^k for each valence, before or after it in the model."""
    joining = [Vertex("g", ("phi", "phi", "sigma"), {"g": 1})]
    own = [Vertex(f"s_{k}", ("sigma",) * k, {"s": 1}) for k in valences]
    vertices = joining + own if first else own + joining
    fields = (Field("phi", index="N"), Field("sigma", auxiliary=True))
    return Model("general", fields, (Propagator("phi", "phi"), Propagator("sigma", "sigma")), tuple(vertices))


REQUESTS = [
    ("phi:2", "connected", 2), ("sigma:2", "connected", 1), ("phi:2,sigma:1", "connected", 1), ("sigma:1", "connected", 2),
    (0, "vacuum", 1), ("phi:2", "1pi", 2), ("sigma:2", "1pi", 1), ("sigma:3", "1pi", 0),
]  # fmt: skip


@pytest.mark.parametrize(("legs", "kind", "order"), REQUESTS)
@pytest.mark.parametrize("first", [True, False], ids=["after", "before"])
def test_the_enumeration_is_complete(legs: str | int, kind: str, order: int, first: bool) -> None:
    found = enumerate_diagrams(_model(3, 4, 5, 6, first=first), legs, kind=kind, dressed=order)
    proof = found.verify()
    assert proof.count == found.count() > enumerate_diagrams("on", legs, kind=kind, dressed=order).count()
    assert {key[0] for key in found.by_one_over_n()} == {order}


def test_orders_count_the_vertices() -> None:
    """The cubic vertex stands for an index loop of length three: same order, no loop."""
    model = _model(3)
    loop = Diagram.from_string("sigma:1-g0 sigma:2-g1 sigma:3-g2 g0[phi]-g1[phi] g1[phi]-g2[phi] g0[phi]-g2[phi]", model)
    vertex = Diagram.from_string("sigma:1-s_3.0 sigma:2-s_3.0 sigma:3-s_3.0", model)
    assert one_over_n_order(loop.graph) == one_over_n_order(vertex.graph) == 0
    assert set(enumerate_diagrams(model, "sigma:3", dressed=0)) == {loop, vertex}
    assert enumerate_diagrams(model, "sigma:3", dressed=0).weight() == Fraction(2)


def test_valences_that_the_order_excludes_change_nothing() -> None:
    """At order 1/N two legs of phi admit vertices of up to three auxiliary legs."""
    assert (
        enumerate_diagrams(_model(3, 7), "phi:2", dressed=1).count()
        == enumerate_diagrams(_model(3), "phi:2", dressed=1).count()
        == 3
    )


def test_a_missing_diagram_is_found() -> None:
    request = enumerate_diagrams(_model(3, 4), "sigma:1", dressed=2)
    found = list(request)
    for index in range(len(found)):
        with pytest.raises(IncompleteError):
            request.verify(found[:index] + found[index + 1 :])


@pytest.mark.parametrize("valence", [1, 2])
def test_what_belongs_to_the_saddle_and_the_line_is_refused(valence: int) -> None:
    with pytest.raises(RequestError, match=f"has {valence} auxiliary legs"):
        enumerate_diagrams(_model(valence), "phi:2", dressed=1)
