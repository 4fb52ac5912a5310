"""Weights and numbers of diagrams without enumeration against published and independently computed values."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import pytest

from symtensor.diagrams.errors import InfiniteRequestError, ModelError, RequestError
from symtensor.diagrams.model import Field, Model, Propagator, Vertex
from symtensor.diagrams.theories import theory
from symtensor.diagrams.weights import (
    burnside_by_loops,
    burnside_series,
    dressed_weight_series,
    weight_by_loops,
    weight_series,
)

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "diagram_counts.json").read_text())
CLASSES: dict[str, dict[str, Any]] = {
    "all": {"kind": "all"},
    "connected": {"kind": "connected"},
    "onepi": {"kind": "1pi"},
    "conn_notad": {"kind": "connected", "no_tadpoles": True},
    "connected_nosl": {"kind": "connected", "no_self_loops": True},
    "onepi_nosl": {"kind": "1pi", "no_self_loops": True},
}
ON_LEGS = {"phiphisig": (2, 1), "phiphi": (2, 0), "sig3": (0, 3), "sigsig": (0, 2), "vac": (0, 0)}


def _scalar(kind: str) -> list[tuple[Model, dict[str, int], int, bool, dict[str, str]]]:
    found = []
    for key, value in REFERENCE["scalar"].items():
        name, cls, legs, labels, loops = key.split("|")
        if cls == kind:
            found.append((theory(name), {"x": int(legs[1:])}, int(loops[1:]), labels == "lab", value))
    assert len(found) > 20
    return found


@pytest.mark.parametrize("kind", CLASSES)
def test_weights_of_the_scalar_theories(kind: str) -> None:
    for model, legs, loops, labelled, value in _scalar(kind):
        weight = weight_by_loops(model, legs, loops, labelled=labelled, **CLASSES[kind])
        assert weight == Fraction(value["weight"]), (model.name, kind, legs, loops)


@pytest.mark.parametrize("kind", ["all", "connected"])
def test_numbers_of_the_scalar_theories(kind: Any) -> None:
    for model, legs, loops, labelled, value in _scalar(kind):
        count = burnside_by_loops(model, legs, loops, kind=kind, labelled=labelled)
        assert count == value["count"], (model.name, kind, legs, loops)


def test_numbers_at_high_orders() -> None:
    """Numbers of ../reference's programs for phi^4 vacuum at 8, 9, 10 loops, phi^3 at 5 and 6, KPZ at 3."""
    assert [burnside_by_loops(theory("phi4"), {}, n, kind="connected") for n in (8, 9, 10)] == [359, 1635, 8296]
    assert [burnside_by_loops(theory("phi3"), {"x": 2}, n, kind="connected") for n in (5, 6)] == [4536, 45519]
    assert burnside_by_loops(theory("kpz"), {"x": 2}, 3, kind="connected") == 4766


def test_weights_of_causal_theories() -> None:
    models = {"msrjd_kpz_cubic": theory("kpz"), "msrjd_langevin_x3": theory("cubic-langevin")}
    for key, value in REFERENCE["msrjd"].items():
        name, cls, legs, loops = key.split("|")
        match = re.fullmatch(r"x(\d),xt(\d)", legs)
        assert match
        asked: dict[str, Any] = {"kind": cls.lower()}
        numbers, order = {"x": int(match[1]), "xt": int(match[2])}, int(loops[1:])
        assert weight_by_loops(models[name], numbers, order, causality="local", **asked) == Fraction(value["weight"]), key
        every = weight_by_loops(models[name], numbers, order, causality="none", **asked)
        assert (every == Fraction(value["weight"])) == (value["count"] == value["count_without_causality"]), key
        if cls == "connected":
            count = burnside_by_loops(models[name], numbers, order, kind="connected")
            assert count == value["count_without_causality"], key


@pytest.mark.parametrize("name", ["kpz", "cubic-langevin"])
def test_vacuum_and_functions_of_response_legs_vanish(name: str) -> None:
    for legs in ({}, {"xt": 1}, {"xt": 2}):
        for loops in (1, 2, 3):
            assert weight_by_loops(theory(name), legs, loops, kind="connected", causality="local") == 0
    for legs in ({}, {"x": 1}, {"x": 2}):
        for loops in (1, 2, 3):
            assert weight_by_loops(theory(name), legs, loops, kind="1pi", causality="local") == 0


def test_layered_networks() -> None:
    """Numbers of all diagrams, and weights under the rule for vertices non-local in time (layered_networks, section 2)."""
    model = theory("layered-network")
    cases = [(1, 1, 3, "3/2"), (3, 0, 7, "7"), (2, 1, 33, "37/2"), (1, 2, 93, "269/12")]
    for legs, loops, count, weight in cases:
        assert burnside_by_loops(model, {"s": legs}, loops, kind="connected") == count
        assert weight_by_loops(model, {"s": legs}, loops, kind="connected", causality="nonlocal") == Fraction(weight)
    assert burnside_by_loops(model, {"s": 2}, 2, kind="connected") == 2206
    for kind in ("connected", "1pi"):
        assert weight_by_loops(model, {"s": 2} if kind == "1pi" else {"J": 2}, 1, kind=kind, causality="nonlocal") == 0


@pytest.mark.parametrize("key", REFERENCE["on_two_field"])
def test_index_loops(key: str) -> None:
    legs, cls, _ = key.split("|")
    phi, sigma = ON_LEGS[legs]
    expected = {}
    for name, (_, weight) in REFERENCE["on_two_field"][key].items():
        match = re.fullmatch(r"L(\d),loops(\d)", name)
        assert match
        expected[2 * (int(match[1]) - 1) + phi + sigma, int(match[2])] = Fraction(weight)
    kind: Any = cls.lower()
    asked: dict[str, Any] = {"kind": kind, "grading": {"g": (1,)}, "bound": (max(g for g, _ in expected),)}
    numbers = {"phi": phi, "sigma": sigma}
    found = weight_series(theory("on"), numbers, by_index_loops=True, **asked)
    bare_line = found.pop((0, 0), None) if kind == "connected" and not any(g == 0 for g, _ in expected) else None
    assert bare_line == (1 if kind == "connected" and (phi, sigma) in ((2, 0), (0, 2)) else None)
    assert found == expected
    # N = 1: the loops are not told apart
    summed = weight_series(theory("on"), numbers, **asked)
    assert all(summed[g,] == sum(w for (h, _), w in found.items() if h == g) for g, _ in found)


DRESSED = {
    "phi phi connected": ({"phi": 2}, "connected"),
    "phi self-energy 1PI": ({"phi": 2}, "1pi"),
    "sigma self-energy 1PI": ({"sigma": 2}, "1pi"),
    "vacuum connected": ({}, "connected"),
}


@pytest.mark.parametrize("key", REFERENCE["on_dressed"])
def test_dressed_weights(key: str) -> None:
    legs, kind = DRESSED[key]
    for order, (_, weight) in REFERENCE["on_dressed"][key].items():
        found = dressed_weight_series(theory("on"), legs, kind=kind, order=int(order))  # pyright: ignore[reportArgumentType]
        assert sum(w for (k, _), w in found.items() if k == int(order)) == Fraction(weight)


@pytest.mark.parametrize("sigma", [0, 2, 3])
def test_dressed_lines_are_bubble_chains(sigma: int) -> None:
    """Every irreducible bare diagram is a dressed one with bubbles N g^2/2 in its lines: D = 1/(1 - N g^2/2)."""
    phi = 0 if sigma else 2
    legs, top = {"phi": phi, "sigma": sigma}, 11
    bare = weight_series(theory("on"), legs, kind="1pi", grading={"g": (1,)}, bound=(top,), by_index_loops=True)
    dressed = dressed_weight_series(theory("on"), legs, kind="1pi", order=2)
    checked = 0
    for (vertices, loops), weight in bare.items():
        lines = (vertices - sigma) // 2
        order = lines - loops + bool(sigma)
        if order > 2 or (sigma == 2 and vertices == 2):
            continue
        total = Fraction(0)
        for chains in range(loops + 1):
            core = dressed.get((order, loops - chains), Fraction(0))
            if core and lines - chains:
                total += core * comb(lines - 1, chains) * Fraction(1, 2) ** chains
            elif core and not chains:
                total += core
        assert total == weight, (vertices, loops)
        checked += 1
    assert checked >= 7


def test_dressed_without_tadpoles() -> None:
    """At order 1/N the only tadpole of <phi phi> has one index loop, of the weight 1/2."""
    without = dressed_weight_series(theory("on"), {"phi": 2}, kind="connected", order=1, no_tadpoles=True)
    assert without == {(0, 0): 1, (1, 0): 1}
    unlabelled = dressed_weight_series(theory("on"), {"phi": 2}, kind="connected", order=1, labelled=False)
    assert unlabelled[1, 1] == Fraction(1, 4)
    assert dressed_weight_series(theory("on"), {"phi": 1}, kind="connected", order=2) == {}


def test_figure_eight_and_sunset() -> None:
    """phi^3 + phi^4 at two loops: sunset 1/12, dumbbell 1/8, figure-eight 1/8."""
    model = theory("phi3+phi4")
    asked: dict[str, Any] = {"kind": "connected", "grading": {"g3": (1, 0), "g4": (0, 1)}, "bound": (2, 1)}
    every = weight_series(model, {}, **asked)
    assert every[2, 0] == Fraction(1, 12) + Fraction(1, 8) and every[0, 1] == Fraction(1, 8)
    assert weight_series(model, {}, no_tadpoles=True, **asked)[2, 0] == Fraction(1, 12)
    assert weight_by_loops(model, {}, 2, kind="connected") == Fraction(1, 12) + Fraction(1, 4)
    assert burnside_by_loops(model, {}, 2, kind="connected") == 3


def test_no_snails_of_phi4() -> None:
    """phi^4, two legs: one loop and the double scoop go, the sunset 1/6 stays; the vacuum keeps 1/48 at three loops."""
    model = theory("phi4")
    two = [weight_by_loops(model, {"x": 2}, n, kind="connected", no_snails=True) for n in (0, 1, 2)]
    assert two == [1, 0, Fraction(1, 6)]
    none = [weight_by_loops(model, {}, n, kind="connected", no_snails=True) for n in (1, 2, 3, 4)]
    assert none == [0, 0, Fraction(1, 48), Fraction(1, 48)]


def test_wrong_requests_are_named() -> None:
    phi4 = theory("phi4")
    grade: dict[str, Any] = {"grading": {"g4": (1,)}, "bound": (2,)}
    any_kind: Any = "connected"
    with pytest.raises(InfiniteRequestError, match="g4"):
        weight_series(phi4, {}, kind=any_kind, grading={"g4": (0,)}, bound=(2,))
    with pytest.raises(RequestError, match="unknown"):
        weight_series(phi4, {}, kind=any_kind, grading={"unknown": (1,)}, bound=(2,))
    with pytest.raises(RequestError, match="must be 2 integers"):
        weight_series(phi4, {}, kind=any_kind, grading={"g4": (1,)}, bound=(2, 2))
    with pytest.raises(RequestError, match="negative"):
        weight_series(phi4, {}, kind=any_kind, grading={"g4": (1,)}, bound=(-1,))
    with pytest.raises(RequestError, match="2pi"):
        weight_series(phi4, {}, kind="2pi", **grade)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ModelError, match="no field 'y'"):
        weight_series(phi4, {"y": 1}, kind=any_kind, **grade)
    with pytest.raises(RequestError, match="-1"):
        weight_series(phi4, {"x": -1}, kind=any_kind, **grade)
    with pytest.raises(RequestError, match="y-y"):
        weight_series(phi4, {}, kind="1pi", bridges=["y-y"], **grade)
    with pytest.raises(RequestError, match="class 1pi only"):
        weight_series(phi4, {}, kind="all", bridges=["x-x"], **grade)
    with pytest.raises(RequestError, match="causality"):
        weight_series(phi4, {}, kind="all", causality="retarded", **grade)  # pyright: ignore[reportArgumentType]
    with pytest.raises(RequestError, match="Burnside"):
        burnside_series(phi4, {}, kind="1pi", **grade)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ModelError, match="index loops"):
        weight_series(phi4, {}, kind="all", by_index_loops=True, **grade)
    with pytest.raises(ModelError, match="dressed"):
        dressed_weight_series(phi4, {"x": 2}, kind="connected", order=1)
    with pytest.raises(RequestError, match="1/N"):
        dressed_weight_series(theory("on"), {}, kind="all", order=1)


def test_an_index_must_pass_through_a_vertex_once() -> None:
    fields = (Field("psi", index="N"), Field("psib", conjugate="psi", index="N"))
    pairing = Model("pairing", fields, (Propagator("psi", "psib"),), (Vertex("g", ("psi", "psi")),))
    with pytest.raises(ModelError, match="enter and leave"):
        weight_series(pairing, {}, kind="all", grading={"g": (1,)}, bound=(1,), by_index_loops=True)


def test_vertices_with_two_legs_are_not_bounded_by_loops() -> None:
    mass = Model("mass", (Field("x"),), (Propagator("x", "x"),), (Vertex("m", ("x", "x")),))
    with pytest.raises(InfiniteRequestError, match="'m'"):
        weight_by_loops(mass, {"x": 2}, 1, kind="connected")
    # bounded by their number they are: a chain of n mass insertions has weight 1
    chain = weight_series(mass, {"x": 2}, kind="connected", grading={"m": (1,)}, bound=(4,))
    assert chain == {(n,): 1 for n in range(5)}
    ring = weight_series(mass, {}, kind="connected", grading={"m": (1,)}, bound=(4,))
    assert ring == {(n,): Fraction(1, 2 * n) for n in range(1, 5)}


@pytest.mark.slow
def test_numbers_at_very_high_orders() -> None:
    """phi^3 with eight loops: the number exceeds the weight, and unlabelled legs at most halve it."""
    labelled = burnside_by_loops(theory("phi3"), {"x": 2}, 8, kind="connected")
    unlabelled = burnside_by_loops(theory("phi3"), {"x": 2}, 8, kind="connected", labelled=False)
    assert labelled > weight_by_loops(theory("phi3"), {"x": 2}, 8, kind="connected")
    assert labelled / 2 < unlabelled < labelled
