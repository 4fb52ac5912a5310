"""Models: which fields there are, which lines join them, and which vertices they meet in.

A *field* is a kind of leg. A *propagator* says that legs of two fields may be joined by a line. A *vertex* is a
multiset of legs. Nothing else is needed to enumerate diagrams: a response field, a complex field or an auxiliary
field differ only in the propagators they have and in the rules that prune them.

    real field        Propagator("x", "x")
    response field    Field("xt", response=True), Propagator("x", "xt"): a line from xt (earlier) to x (later)
    complex field     Field("psib", conjugate="psi"), Propagator("psi", "psib"): a line from psib to psi
    mixing            Propagator("u", "v") between two real fields
    index line        Field("phi", index="N"): phi lines carry an index; each closed index loop counts a factor N
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from symtensor.diagrams.errors import ModelError

__all__ = ["Causality", "Field", "Model", "Propagator", "Vertex", "VertexFamily"]

#: How closed response loops are treated: ``local`` drops a diagram with a closed loop of response lines; ``nonlocal``
#: drops a diagram if some nonempty set of its vertices has no response line leaving it; ``none`` keeps all.
Causality = Literal["local", "nonlocal", "none"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
MAX_VALENCE = 30


def _check_name(name: object, what: str) -> None:
    if not isinstance(name, str) or not _NAME.match(name):
        raise ModelError(f"{what} {name!r} is not a name; use letters, digits and underscores, starting with a letter")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Orders(Mapping[str, int]):
    """Powers of counting parameters by name: an immutable mapping that can be hashed and pickled."""

    pairs: tuple[tuple[str, int], ...]

    def __init__(self, powers: Mapping[str, int] | None = None) -> None:
        pairs = tuple(sorted((powers or {}).items()))
        for name, power in pairs:
            _check_name(name, "the counting parameter")
            if not isinstance(power, int) or isinstance(power, bool):
                raise ModelError(f"the power of {name!r} must be an integer, got {power!r}")
        object.__setattr__(self, "pairs", pairs)

    def __getitem__(self, name: str) -> int:
        return dict(self.pairs)[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        return repr(dict(self.pairs))


@dataclass(frozen=True, slots=True)
class Field:
    """A kind of leg.

    `response`: the field is a response field; every propagator of it is directed, from this field (earlier) to the
    other end (later). `conjugate`: the field is the conjugate of the named complex field; the line between the two is
    directed, from this field to the other. `index`: the symbol that a closed loop of this field's lines counts, as
    ``"N"``. `auxiliary`: the field mediates (drawn wavy) and may be dressed in the 1/N mode. `statistics`: only
    ``"boson"``; fermions are refused by name, because their signs are not tracked.
    """

    name: str
    response: bool = False
    conjugate: str | None = None
    index: str | None = None
    auxiliary: bool = False
    statistics: str = "boson"

    def __post_init__(self) -> None:
        _check_name(self.name, "the field")
        if self.statistics != "boson":
            raise ModelError(
                f"field {self.name!r} has statistics {self.statistics!r}: fermion signs are not tracked, so such a "
                "model is refused; use bosonic (commuting) fields only"
            )


@dataclass(frozen=True, slots=True)
class Propagator:
    """A line that may join a leg of field `first` and a leg of field `second`; `orders` are powers it carries."""

    first: str
    second: str
    orders: Mapping[str, int] = field(default_factory=Orders)

    def __post_init__(self) -> None:
        object.__setattr__(self, "orders", Orders(self.orders))

    @property
    def name(self) -> str:
        return f"{self.first}-{self.second}"


@dataclass(frozen=True, slots=True)
class Vertex:
    """A vertex: a multiset of legs, with the powers of counting parameters it carries.

    Its factor in the action is g / (product of the factorials of the leg multiplicities), so that the weight of a
    diagram is 1 / |Aut|.
    """

    name: str
    legs: tuple[str, ...]
    orders: Mapping[str, int] = field(default_factory=Orders)

    def __post_init__(self) -> None:
        _check_name(self.name, "the vertex")
        object.__setattr__(self, "legs", tuple(self.legs))
        object.__setattr__(self, "orders", Orders(self.orders))
        if not 1 <= len(self.legs) <= MAX_VALENCE:
            raise ModelError(f"vertex {self.name!r} has {len(self.legs)} legs; the valence must be 1 to {MAX_VALENCE}")

    @property
    def valence(self) -> int:
        return len(self.legs)

    def count(self, name: str) -> int:
        """How many legs of field `name`."""
        return self.legs.count(name)


@dataclass(frozen=True, slots=True)
class VertexFamily:
    """All vertices over `fields` with a valence of at least `valence` and at least `least` legs of each field.

    The loop order bounds the valence that can occur, so a family is expanded when a request is made. The vertex with
    p legs of the first field and q of the second is named ``V_p_q``.
    """

    name: str
    fields: tuple[str, ...]
    least: Mapping[str, int] = field(default_factory=Orders)
    valence: int = 3

    def __post_init__(self) -> None:
        _check_name(self.name, "the vertex family")
        object.__setattr__(self, "fields", tuple(self.fields))
        object.__setattr__(self, "least", Orders(self.least))
        if self.valence < 3:
            raise ModelError(f"family {self.name!r} starts at valence {self.valence}; at least 3, or no loop order bounds it")

    def vertices(self, valence: int) -> Iterator[Vertex]:
        """The members with at most `valence` legs, by valence, then by the number of legs of the first fields."""
        for total in range(self.valence, valence + 1):
            for counts in itertools.product(range(total, -1, -1), repeat=len(self.fields)):
                if sum(counts) == total and all(c >= self.least.get(f, 0) for c, f in zip(counts, self.fields)):
                    legs = tuple(f for c, f in zip(counts, self.fields) for _ in range(c))
                    yield Vertex("_".join([self.name, *map(str, counts)]), legs)


@dataclass(frozen=True, slots=True)
class Model:
    """A set of fields, propagators and vertices; see the module's text for how real, complex and response fields look.

    `causality` is the rule for response loops that requests use unless they choose another (`Causality`).
    Raises ModelError naming the field, propagator or vertex that is wrong.

    >>> Model("phi4", (Field("x"),), (Propagator("x", "x"),), (Vertex("g", ("x",) * 4, {"g": 1}),)).name
    'phi4'
    """

    name: str
    fields: tuple[Field, ...]
    propagators: tuple[Propagator, ...]
    vertices: tuple[Vertex, ...] = ()
    families: tuple[VertexFamily, ...] = ()
    causality: Causality = "none"
    description: str = ""

    def __post_init__(self) -> None:
        for attribute in ("fields", "propagators", "vertices", "families"):
            object.__setattr__(self, attribute, tuple(getattr(self, attribute)))
        _check_unique([f.name for f in self.fields], "field")
        _check_unique(["-".join(sorted((p.first, p.second))) for p in self.propagators], "propagator")
        _check_unique([v.name for v in self.vertices] + [f.name for f in self.families], "vertex")
        _check_unique([_legs(v) for v in self.vertices], "set of legs (one vertex per set; add the couplings)")
        self._check_references()
        self._check_directions()
        self._check_index_lines()

    def _check_references(self) -> None:
        if not self.fields:
            raise ModelError(f"model {self.name!r} has no field")
        known = {f.name for f in self.fields}
        for p in self.propagators:
            for name in (p.first, p.second):
                _check_known(name, known, f"propagator {p.name}")
        joined = {name for p in self.propagators for name in (p.first, p.second)}
        users = [(v.legs, f"vertex {v.name!r}") for v in self.vertices]
        users += [(f.fields, f"vertex family {f.name!r}") for f in self.families]
        for names, what in users:
            for name in names:
                _check_known(name, known, what)
                if name not in joined:
                    raise ModelError(
                        f"{what} has a leg of field {name!r}, which no propagator joins to anything: every diagram with "
                        f"it vanishes. Add a propagator, for example {name}-{name}, or leave the vertex out"
                    )

    def _check_directions(self) -> None:
        known = {f.name: f for f in self.fields}
        for f in self.fields:
            if f.conjugate is not None:
                _check_known(f.conjugate, set(known), f"the conjugate of field {f.name!r}")
                if f.conjugate == f.name or known[f.conjugate].conjugate is not None:
                    raise ModelError(
                        f"field {f.name!r} is the conjugate of {f.conjugate!r}, which is itself a conjugate: name one of the two "
                        "only, as Field('psi'), Field('psib', conjugate='psi'); a real field has no conjugate"
                    )
        for p in self.propagators:
            if known[p.first].response and known[p.second].response:
                raise ModelError(f"propagator {p.name} joins two response fields; that correlator vanishes, leave it out")
        if self.causality not in ("local", "nonlocal", "none"):
            raise ModelError(f"causality {self.causality!r}: it must be local, nonlocal or none")
        if self.causality != "none" and not any(f.response for f in self.fields):
            raise ModelError(f"model {self.name!r} asks for causality {self.causality!r} but has no response field")

    def _check_index_lines(self) -> None:
        index = {f.name: f.index for f in self.fields if f.index is not None}
        for p in self.propagators:
            if index.get(p.first) != index.get(p.second):
                one, other = index.get(p.first), index.get(p.second)
                raise ModelError(f"propagator {p.name} joins a field with index {one!r} to one with {other!r}")
        for v in self.vertices:
            for symbol, count in Counter(index[name] for name in v.legs if name in index).items():
                if count != 2:
                    raise ModelError(
                        f"vertex {v.name!r} has {count} legs with index {symbol!r}; an index line passes through a vertex by two. "
                        "Write a vertex with more as several that an auxiliary field joins: (phi.phi)^2 as phi phi sigma twice"
                    )
        for family in self.families:
            if any(name in index for name in family.fields):
                raise ModelError(f"vertex family {family.name!r} has legs with an index: list its vertices one by one")

    def field(self, name: str) -> Field:
        """The field called `name`; raises ModelError naming those there are."""
        for value in self.fields:
            if value.name == name:
                return value
        raise ModelError(f"model {self.name!r} has no field {name!r}; it has {', '.join(f.name for f in self.fields)}")

    def tail(self, propagator: Propagator) -> str | None:
        """The field at the tail (earlier end) of a directed propagator; None if it has no direction."""
        first, second = self.field(propagator.first), self.field(propagator.second)
        for one, other in ((first, second), (second, first)):
            if one.response or one.conjugate == other.name:
                return one.name
        return None

    def is_response(self, propagator: Propagator) -> bool:
        """True for a response line: one that ends on a response field."""
        return self.field(propagator.first).response or self.field(propagator.second).response


def _legs(vertex: Vertex) -> str:
    return ",".join(sorted(vertex.legs))


def _check_unique(names: list[str], what: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ModelError(f"duplicate {what}: {repeated[0]}")


def _check_known(name: str, known: set[str], what: str) -> None:
    if name not in known:
        raise ModelError(f"{what} uses the unknown field {name!r}; the model has {', '.join(sorted(known))}")
