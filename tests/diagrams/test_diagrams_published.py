"""Counts and weights that other programs, Burnside's lemma and the literature give."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from symtensor.diagrams import DiagramSet, Tally, enumerate_diagrams
from symtensor.diagrams.weights import weight_by_loops

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "diagram_counts.json").read_text())
CLASSES = {
    "all": {"kind": "all"},
    "connected": {"kind": "connected"},
    "onepi": {"kind": "1pi"},
    "conn_notad": {"kind": "connected", "no_tadpoles": True},
    "connected_nosl": {"kind": "connected", "no_self_loops": True},
    "onepi_nosl": {"kind": "1pi", "no_self_loops": True},
}
RESPONSE = {"msrjd_kpz_cubic": "kpz", "msrjd_langevin_x3": "cubic-langevin"}
LEGS = {"phiphi": "phi:2", "sigsig": "sigma:2", "sig3": "sigma:3", "phiphisig": "phi:2,sigma:1", "vac": "phi:0"}
DRESSED = {
    "phi phi connected": ("phi:2", "connected"),
    "phi self-energy 1PI": ("phi:2", "1pi"),
    "sigma self-energy 1PI": ("sigma:2", "1pi"),
    "vacuum connected": ("phi:0", "connected"),
}


def expected(entry: dict | list) -> Tally:
    count, weight = entry if isinstance(entry, list) else (entry["count"], entry["weight"])
    return Tally(count, Fraction(weight))


@pytest.mark.parametrize("name", sorted({"|".join(key.split("|")[:2]) for key in REFERENCE["scalar"]}))
def test_scalar_theories(name: str) -> None:
    entries = {key: value for key, value in REFERENCE["scalar"].items() if key.startswith(name + "|")}
    assert entries
    for key, entry in entries.items():
        model, kind, legs, labels, loops = key.split("|")
        options = {**CLASSES[kind], "labelled": labels == "lab"}
        assert enumerate_diagrams(model, int(legs[1:]), int(loops[1:]), **options).tally() == expected(entry), key


def test_response_theories_with_and_without_the_rule() -> None:
    for key, entry in REFERENCE["msrjd"].items():
        name, kind, legs, loops = key.split("|")
        x, xt = (int("".join(filter(str.isdigit, part))) for part in legs.split(","))
        asked = {"legs": {"x": x, "xt": xt}, "loops": int(loops[1:]), "kind": kind.lower()}
        assert enumerate_diagrams(RESPONSE[name], **asked).tally() == expected(entry), key
        without = enumerate_diagrams(RESPONSE[name], causality="none", **asked).count()
        assert without == entry.get("count_without_causality", without), key


def test_index_loops_of_the_bare_model() -> None:
    for name, table in REFERENCE["on_two_field"].items():
        legs, kind, bare = name.split("|")
        assert bare == "bare"
        for loops in {key.split(",")[0] for key in table}:
            found = enumerate_diagrams("on", LEGS[legs], int(loops[1:]), kind=kind.lower())
            by = {f"{loops},loops{n}": tally for n, tally in found.tally_by(lambda d: len(d.index_loops)).items()}
            assert by == {key: expected(entry) for key, entry in table.items() if key.startswith(loops + ",")}, name


def test_dressed_diagrams_by_order_in_one_over_n() -> None:
    for name, table in REFERENCE["on_dressed"].items():
        legs, kind = DRESSED[name]
        for order, entry in table.items():
            assert enumerate_diagrams("on", legs, kind=kind, dressed=int(order)).tally() == expected(entry), name


@pytest.mark.parametrize(
    ("legs", "kind", "counts"),
    [("phi:2", "connected", (2, 23)), ("sigma:2", "connected", (4, 79)), ("phi:2", "1pi", (1, 6)), ("sigma:2", "1pi", (3, 37))],
)
def test_dressed_counts_of_the_literature(legs: str, kind: str, counts: tuple[int, int]) -> None:
    found = [enumerate_diagrams("on", legs, kind=kind, dressed=order) for order in (1, 2)]
    assert tuple(one.count() for one in found) == counts
    for order, one in zip((1, 2), found):
        assert {key[0] for key in one.by_one_over_n()} == {order}


@pytest.mark.parametrize(
    ("legs", "loops", "everything", "causal", "weight"),
    [
        ("s:1", 1, 3, 2, Fraction(3, 2)),
        ("s:3", 0, 7, 7, Fraction(7)),
        ("s:2", 1, 33, 24, Fraction(37, 2)),
        ("s:1", 2, 93, 38, Fraction(269, 12)),
        ("s:2", 2, 2206, 1144, None),
    ],
)
def test_layered_networks(legs: str, loops: int, everything: int, causal: int, weight: Fraction | None) -> None:
    assert enumerate_diagrams("layered-network", legs, loops, causality="none").count() == everything
    found = enumerate_diagrams("layered-network", legs, loops).tally()
    assert found.count == causal
    assert weight is None or found.weight == weight


@pytest.mark.parametrize(
    ("model", "legs", "loops", "options", "count"),
    [
        ("phi4", 2, 6, {"kind": "1pi"}, 415),
        ("phi4", 2, 7, {"kind": "1pi"}, 2395),
        ("phi4", 2, 8, {"kind": "1pi"}, 15237),
        ("phi3", 2, 5, {}, 4536),
        ("phi3", 2, 6, {}, 45519),
        ("phi4", 0, 8, {"kind": "vacuum"}, 359),
        ("phi4", 0, 9, {"kind": "vacuum"}, 1635),
        ("phi4", 0, 10, {"kind": "vacuum"}, 8296),
        ("kpz", "x:2", 3, {}, 1004),
        ("kpz", "x:2", 3, {"causality": "none"}, 4766),
    ],
)
def test_counts_of_other_programs(model: str, legs: int | str, loops: int, options: dict, count: int) -> None:
    assert enumerate_diagrams(model, legs, loops, **options).count() == count


@pytest.mark.parametrize(
    ("model", "legs", "loops", "kind", "causality"),
    [
        ("phi6", {"x": 2}, 6, "1pi", "none"),
        ("phi6", {"x": 4}, 5, "connected", "none"),
        ("phi3+phi4", {"x": 2}, 4, "connected", "none"),
        ("phi3+phi4", {"x": 3}, 3, "1pi", "none"),
        ("cubic-langevin", {"x": 2}, 3, "connected", "local"),
        ("cubic-langevin", {"x": 3, "xt": 1}, 2, "1pi", "local"),
        ("kpz", {"x": 1, "xt": 1}, 4, "1pi", "local"),
    ],
)
def test_weights_of_more_theories(model: str, legs: dict[str, int], loops: int, kind: str, causality: str) -> None:
    found = enumerate_diagrams(model, legs, loops, kind=kind)
    assert found.request.causality == causality
    total = found.tally()
    assert total.count > 10
    assert total.weight == weight_by_loops(found.request.model, legs, loops, kind=kind, causality=causality)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", ["kpz", "cubic-langevin", "layered-network"])
def test_vacuum_and_functions_without_a_response_leg_vanish(model: str) -> None:
    """Z = 1, and a vertex function needs an amputated response leg; without the rule there are such diagrams."""
    physical = "s" if model == "layered-network" else "x"
    for legs, kind in (({}, "vacuum"), ({physical: 2}, "1pi")):
        found = enumerate_diagrams(model, legs, 2, kind=kind)
        assert found.count() == 0
        assert found.empty_reason
        assert enumerate_diagrams(model, legs, 2, kind=kind, causality="none").count() > 0


@pytest.mark.parametrize(("model", "legs", "loops"), [("phi4", 4, 2), ("phi3", 3, 2), ("kpz", "x:2,xt:1", 1)])
def test_exchangeable_legs_are_orbits_of_labelled_ones(model: str, legs: int | str, loops: int) -> None:
    """Leg permutations act on labelled diagrams: the weights add up to the labelled ones over their number."""
    for kind in ("connected", "1pi", "all"):
        labelled = enumerate_diagrams(model, legs, loops, kind=kind)
        orbits = enumerate_diagrams(model, legs, loops, kind=kind, labelled=False).tally()
        seen = {without_labels(diagram) for diagram in labelled}
        permutations = {"phi4": 24, "phi3": 6, "kpz": 2}[model]
        assert (orbits.count, orbits.weight) == (len(seen), labelled.weight() / permutations)


def without_labels(diagram):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    graph = diagram.graph
    nodes = tuple(replace(node, label=None) for node in graph.nodes)
    return type(diagram).from_graph(replace(graph, nodes=nodes))


def test_form_485_two_loop_vacuum_has_the_figure_eight() -> None:
    """phi^3 + phi^4: sunset 1/12, figure-eight 1/8, and the dumbbell 1/8 when tadpoles are kept."""
    found = {d.canonical: d.weight for d in enumerate_diagrams("phi3+phi4", 0, 2, kind="vacuum")}
    dumbbell = {"g3.0-g3.0 g3.0-g3.1 g3.1-g3.1": Fraction(1, 8)}
    others = {"g3.0-g3.1 g3.0-g3.1 g3.0-g3.1": Fraction(1, 12), "g4.0-g4.0 g4.0-g4.0": Fraction(1, 8)}
    assert found == {**dumbbell, **others}
    assert {d.canonical: d.weight for d in enumerate_diagrams("phi3+phi4", 0, 2, kind="vacuum", no_tadpoles=True)} == others


def test_form_474_the_tadpole_is_kept_by_default() -> None:
    """phi^3 at one loop: bubble 1/2 and tadpole 1/2; the tadpole policy is an option of its own."""
    found = list(enumerate_diagrams("phi3", 2, 1))
    assert sorted((bool(d.tadpoles), d.weight) for d in found) == [(False, Fraction(1, 2)), (True, Fraction(1, 2))]
    kept = enumerate_diagrams("phi3", 2, 1, no_tadpoles=True)
    assert [d.tadpoles for d in kept] == [()]
    # d^4/dg^4 of log moments: <x^2> of exp(-x^2/2 + g x^3/6) is 1 + g^2 (E[x^8] - E[x^2] E[x^6])/72 + ..
    moments = {2: 1, 6: 15, 8: 105}
    # minus <x>^2 = (g E[x^4]/6)^2 for the connected function
    assert Fraction(moments[8] - moments[2] * moments[6], 72) - Fraction(3, 6) ** 2 == sum(d.weight for d in found)


def test_split_of_tadpoles_is_a_partition() -> None:
    whole = enumerate_diagrams("on", "phi:2", 2)
    without, having = whole.split_tadpoles()
    assert isinstance(without, DiagramSet)
    assert {*without} | {*having} == {*whole}
    assert not {*without} & {*having}
    assert without.count() > 0
    assert having.count() > 0
