"""Every class proves itself complete, and notices what is wrong with a list: one missing, one too many, one wrong factor."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from symtensor.diagrams import (
    Diagram,
    Field,
    IncompleteError,
    Model,
    Propagator,
    Vertex,
    enumerate_diagrams,
    weights,
)

MIXED = Model(
    "mixed",
    (Field("u"), Field("v"), Field("xt", response=True)),
    (Propagator("u", "u"), Propagator("u", "v"), Propagator("v", "xt", {"h": 1})),
    (Vertex("a", ("u", "u", "v"), {"g": 1}), Vertex("b", ("xt", "v", "u"), {"g": 1}), Vertex("c", ("v",), {"j": 1})),
)
COMPLEX = Model(
    "complex", (Field("psi"), Field("psib", conjugate="psi")), (Propagator("psi", "psib"),),
    (Vertex("g", ("psi", "psi", "psib", "psib"), {"g": 1}),),
)  # fmt: skip
REQUESTS: list[tuple[str | Model, Any, int | None, dict[str, Any]]] = [
    ("phi3", 2, 2, {}),
    ("phi3", 2, 3, {"kind": "1pi"}),
    ("phi4", 0, 5, {"kind": "vacuum"}),
    ("phi4", 4, 1, {"kind": "all"}),
    ("phi3", 2, 2, {"kind": "all", "labelled": False}),
    ("phi3+phi4", 2, 2, {"no_tadpoles": True}),
    ("phi3+phi4", 3, 1, {"no_self_loops": True}),
    ("phi3", 2, 3, {"no_snails": True}),
    ("phi4", 2, 4, {"no_self_energies": True}),
    ("phi6", 4, 3, {}),
    ("phi3", 2, 3, {"where": lambda d: len(d.bridges) == 1}),
    ("kpz", "x:2", 1, {}),
    ("kpz", "x:1,xt:1", 2, {"kind": "1pi"}),
    ("kpz", "x:1,xt:1", 1, {"causality": "none"}),
    ("cubic-langevin", "x:2", 2, {"kind": "all"}),
    ("layered-network", "s:1", 1, {}),
    ("layered-network", "s:2", 1, {}),
    ("on", "phi:2", 2, {}),
    ("on", "sigma:2", 2, {"kind": "1pi"}),
    ("on", "phi:2", None, {"dressed": 2}),
    ("on", "sigma:2", None, {"dressed": 1, "kind": "1pi"}),
    ("on", "phi:2", None, {"dressed": 2, "no_tadpoles": True}),
    ("on", "sigma:2", None, {"dressed": 1, "labelled": False}),
    ("on", 0, None, {"dressed": 1}),
    ("kpz", "x:1,xt:1", 1, {"kind": "1pi", "irreducible": ["x-xt"]}),
    (COMPLEX, "psi:1,psib:1", 2, {}),
    (MIXED, "u:1,v:1", 1, {"orders": {"j": (0, 1), "g": (0, 3)}, "causality": "local"}),
    (MIXED, "v:1", None, {"orders": {"j": (0, 2), "g": (0, 2)}, "kind": "all"}),
]


@pytest.mark.parametrize(("model", "legs", "loops", "options"), REQUESTS, ids=map(str, range(len(REQUESTS))))
def test_every_class_proves_itself_and_notices_mistakes(
    model: str | Model, legs: Any, loops: int | None, options: dict[str, Any]
) -> None:
    request = enumerate_diagrams(model, legs, loops, **options)
    found = list(request)
    assert len(found) > 0
    proved = request.verify()
    assert proved.count == len(found) and proved.weight == sum(d.weight for d in found)
    assert any("generating function" in check or "effective theory" in check for check in proved.checks)
    for at in {0, len(found) // 2, len(found) - 1}:
        without = found[:at] + found[at + 1 :]
        with pytest.raises(IncompleteError):
            request.verify(without)
        with pytest.raises(IncompleteError, match="listed twice"):
            request.verify([*found, found[at]])
        wrong = [*without, _with_factor(found[at], found[at].symmetry_factor * 2)]
        with pytest.raises(IncompleteError):
            request.verify(wrong)


def _with_factor(diagram: Diagram, factor: int) -> Diagram:
    first, *rest = diagram.parts
    return Diagram(diagram.model, (replace(first, symmetry_factor=factor), *rest))


def test_two_mistakes_that_cancel_in_the_weight_are_noticed() -> None:
    """One diagram of weight 1/2 replaced by one of another class with the same weight."""
    request = enumerate_diagrams("phi3", 2, 1)
    tadpole, bubble = sorted(request, key=lambda d: len(d.self_loops), reverse=True)
    assert tadpole.weight == bubble.weight
    foreign = next(iter(enumerate_diagrams("phi3", {"x": ["a", "b"]}, 1, no_self_loops=True)))
    with pytest.raises(IncompleteError, match="does not belong"):
        request.verify([tadpole, foreign])


def test_two_wrong_factors_whose_weights_cancel_are_noticed() -> None:
    request = enumerate_diagrams("phi3", 2, 2)
    found = sorted(request, key=lambda d: d.symmetry_factor)
    by_factor = {d.symmetry_factor: d for d in found}
    two, four = by_factor[2], by_factor[4]
    forged = [d for d in found if d not in (two, four)] + [_with_factor(two, 4), _with_factor(four, 2)]
    assert sum(d.weight for d in forged) == request.weight()
    with pytest.raises(IncompleteError, match="is listed with symmetry factor"):
        request.verify(forged)


def test_the_number_is_checked_by_burnside() -> None:
    assert any("Burnside" in check for check in enumerate_diagrams("phi4", 2, 3).verify().checks)
    assert any("Burnside" in check for check in enumerate_diagrams("phi3", 2, 2, kind="all", labelled=False).verify().checks)


def test_the_generating_function_does_not_know_the_enumeration() -> None:
    allowed = {"model", "theories", "errors", "weights"}
    for path in Path(weights.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                if name.startswith("symtensor."):
                    assert name.split(".")[1] == "diagrams" and name.split(".")[2] in allowed, f"{path.name} imports {name}"


def test_orders_of_lines_alone_cannot_be_proved_and_that_is_said() -> None:
    model = Model("lines", (Field("x"),), (Propagator("x", "x", {"h": 1}),), (Vertex("g", ("x",) * 3),))
    with pytest.raises(IncompleteError, match="orders that lines carry are the only bounds"):
        enumerate_diagrams(model, 2, orders={"h": (0, 5)}).verify()


def test_empty_classes_are_proved_empty() -> None:
    assert enumerate_diagrams("kpz", 0, 2).verify().count == 0
    assert enumerate_diagrams("kpz", "x:2", 2, kind="1pi").verify().count == 0
    assert enumerate_diagrams("phi4", 1, 2).verify().count == 0
