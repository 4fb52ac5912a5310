"""The named models of the command line."""

from __future__ import annotations

from symtensor.diagrams.errors import ModelError
from symtensor.diagrams.model import Field, Model, Propagator, Vertex, VertexFamily

__all__ = ["THEORIES", "theory"]

_X = Field("x")
_XT = Field("xt", response=True)
_RESPONSE = ((_X, _XT), (Propagator("x", "x"), Propagator("x", "xt")))


def _scalar(name: str, *valences: int) -> Model:
    """One real field with an interaction g_k x^k / k! for each valence k, of order k - 2 in g."""
    vertices = tuple(Vertex(f"g{k}", ("x",) * k, {"g": k - 2}) for k in valences)
    terms = " + ".join(f"g{k} x^{k}/{k}!" for k in valences)
    return Model(name, (_X,), (Propagator("x", "x"),), vertices, description=f"one real field, {terms}")


THEORIES: dict[str, Model] = {
    "phi3": _scalar("phi3", 3),
    "phi4": _scalar("phi4", 4),
    "phi6": _scalar("phi6", 6),
    "phi3+phi4": _scalar("phi3+phi4", 3, 4),
    "kpz": Model(
        "kpz", *_RESPONSE, (Vertex("g", ("xt", "x", "x"), {"g": 1}),), causality="local",
        description="KPZ/Burgers: response field xt, vertex xt x x, white noise in <x x>",
    ),
    "cubic-langevin": Model(
        "cubic-langevin", *_RESPONSE, (Vertex("g", ("xt", "x", "x", "x"), {"g": 1}),), causality="local",
        description="dx = -(x + g x^3) dt + noise: response field xt, vertex xt x x x",
    ),
    "on": Model(
        "on", (Field("phi", index="N"), Field("sigma", auxiliary=True)),
        (Propagator("phi", "phi"), Propagator("sigma", "sigma")), (Vertex("g", ("phi", "phi", "sigma"), {"g": 1}),),
        description="N-component phi with an auxiliary field: g sigma phi.phi / 2",
    ),
    "layered-network": Model(
        "layered-network", (Field("s"), Field("J", response=True)), (Propagator("s", "s"), Propagator("s", "J")),
        families=(VertexFamily("V", ("s", "J"), {"J": 1}),), causality="nonlocal",
        description="layered conditionally Gaussian network: vertices (p, q) with q >= 1, p + q >= 3, non-local in depth",
    ),
}  # fmt: skip
ALIASES = {"phi34": "phi3+phi4", "kpz-burgers": "kpz", "o(n)": "on"}


def theory(name: str) -> Model:
    """The model called `name` (aliases: phi34 for phi3+phi4).

    >>> theory("phi4").vertices[0].valence
    4
    """
    key = ALIASES.get(name.lower(), name.lower())
    if key not in THEORIES:
        raise ModelError(f"unknown model {name!r}; named models: {', '.join(THEORIES)}; or give the path of a model file")
    return THEORIES[key]
