"""What is asked for: a model, legs, a class of diagrams, bounds on orders, and what to leave out; checked before work starts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from symtensor.diagrams.errors import RequestError
from symtensor.diagrams.graph import Leg
from symtensor.diagrams.model import Causality, Model, Orders

__all__ = ["Kind", "Request", "parse_legs"]

#: ``all``: with disconnected diagrams; ``connected``; ``1pi``: no internal line is a bridge, legs amputated.
Kind = Literal["all", "connected", "1pi"]
FILTERS = ("no_tadpoles", "no_self_loops", "no_snails", "no_self_energies")


@dataclass(frozen=True)
class Request:
    """A checked request; `symtensor.diagrams.enumerate_diagrams` documents the options."""

    model: Model
    legs: tuple[Leg, ...]
    kind: Kind
    loops: int | None
    orders: tuple[tuple[str, tuple[int, int]], ...]
    causality: Causality
    no_tadpoles: bool = False
    no_self_loops: bool = False
    no_snails: bool = False
    no_self_energies: bool = False
    irreducible: frozenset[str] | None = None
    dressed: int | None = None
    where: Callable[[Any], bool] | None = None

    @property
    def amputated(self) -> bool:
        return self.kind == "1pi"

    @property
    def labelled(self) -> bool:
        return all(leg.label is not None for leg in self.legs)

    @property
    def leg_counts(self) -> Orders:
        """Number of legs of each field."""
        return Orders(Counter(leg.field for leg in self.legs))

    @property
    def filters(self) -> tuple[str, ...]:
        """Names of the filters that are on."""
        return tuple(name for name in FILTERS if getattr(self, name))

    def __str__(self) -> str:
        legs = ", ".join(f"{name}:{count}" for name, count in self.leg_counts.items()) or "none"
        parts = [f"{self.model.name}: {self.kind} diagrams, {'' if self.labelled else 'unlabelled '}legs {legs}"]
        parts += [f"loops {self.loops}"] if self.loops is not None else []
        parts += [f"{name} in {low}..{high}" for name, (low, high) in self.orders]
        parts += [f"dressed, order {self.dressed} in 1/N"] if self.dressed is not None else []
        parts += [f"response rule {self.causality}"] if any(f.response for f in self.model.fields) else []
        parts += [name.replace("_", " ") for name in self.filters]
        parts += [f"irreducible in {', '.join(sorted(self.irreducible))}"] if self.irreducible is not None else []
        parts += [f"where {getattr(self.where, '__name__', 'predicate')}"] if self.where else []
        return ", ".join(parts)

    @classmethod
    def checked(
        cls, model: Model, legs: Any, *, kind: str, loops: int | None, orders: Mapping[str, Any] | None, labelled: bool,
        causality: str | None, irreducible: Collection[str] | None, dressed: int | None, where: Callable[[Any], bool] | None,
        **filters: bool,
    ) -> Request:  # fmt: skip
        """The request as a value; raises RequestError naming the option that cannot be met."""
        if not isinstance(model, Model):
            raise RequestError(f"model: give a Model or the name of one, got {type(model).__name__}")
        if orders is not None and not isinstance(orders, Mapping):
            raise RequestError(f"orders={orders!r}: give a mapping such as {{'g': 4}} or {{'g': (0, 4)}}")
        if where is not None and not callable(where):
            raise RequestError(f"where={where!r}: give a function of a diagram that says whether it is kept")
        named = parse_legs(model, legs, labelled)
        if kind == "vacuum":
            if named:
                raise RequestError(f"class vacuum has no legs, got {len(named)}; use class connected, or leave the legs out")
            kind = "connected"
        if kind not in get_args(Kind):
            raise RequestError(f"class {kind!r}: it must be all, connected, 1pi or vacuum")
        chosen: Kind = kind  # type: ignore[assignment]
        rule = _check_causality(model, causality)
        bounds = tuple(sorted((name, _bounds(model, name, value)) for name, value in (orders or {}).items()))
        _check_loops(kind, loops, len(named), bounds, dressed)
        _check_irreducible(model, kind, irreducible)
        if dressed is not None and irreducible is not None:
            raise RequestError("a dressed request is irreducible in all lines or in none; leave irreducible=.. out")
        return cls(
            model, named, chosen, loops, bounds, rule, irreducible=None if irreducible is None else frozenset(irreducible),
            dressed=dressed, where=where, **filters,
        )  # fmt: skip


def parse_legs(model: Model, legs: Any, labelled: bool = True) -> tuple[Leg, ...]:
    """Legs from a number (one field), ``"x:2,xt:1"``, a mapping of numbers or labels, or a sequence of `Leg`.

    Labels are 1, 2, .. in the order given unless they are given; `labelled=False` takes them away. Legs come out sorted by
    field and label. Raises RequestError for an unknown field, a negative number, a repeated label.
    """
    listed = _listed(model, legs)
    given = [leg.label for leg in listed if leg.label is not None]
    repeated = [label for label, count in Counter(given).items() if count > 1]
    if repeated:
        raise RequestError(f"leg label {repeated[0]!r} is given twice; labels tell legs apart, so each must be different")
    for leg in listed:
        if leg.label is not None and not (re.fullmatch(r"[\w.+\-' ]{1,40}", leg.label) and leg.label.strip()):
            raise RequestError(f"leg label {leg.label[:60]!r}: use 1 to 40 letters, digits, inner spaces and _ . + - '")
    if not labelled:
        listed = [Leg(leg.field) for leg in listed]
    else:
        free = (str(n) for n in range(1, 10_000) if str(n) not in set(given))
        listed = [leg if leg.label is not None else Leg(leg.field, next(free)) for leg in listed]
    place = {f.name: i for i, f in enumerate(model.fields)}
    return tuple(sorted(listed, key=lambda leg: (place[leg.field], *label_key(leg.label))))


def label_key(label: str | None) -> tuple[int, str]:
    """Sorts labels 1, 2, .., 10 as numbers and others as text."""
    return (len(label or ""), label or "")


def _listed(model: Model, legs: Any) -> list[Leg]:
    if isinstance(legs, bool) or legs is None:
        raise RequestError(f"legs = {legs!r}: give a number, or 'x:2,xt:1', or a mapping")
    if isinstance(legs, int):
        legs = {_only_field(model, legs): legs}
    if isinstance(legs, str):
        legs = _from_text(model, legs)
    if isinstance(legs, Mapping):
        return [leg for name, value in legs.items() for leg in _legs_of(model, name, value)]
    if isinstance(legs, Iterable):
        listed = [leg if isinstance(leg, Leg) else Leg(str(leg)) for leg in legs]
        for leg in listed:
            _check_field(model, leg.field)
        return listed
    raise RequestError(f"legs = {legs!r}: give a number, or 'x:2,xt:1', or a mapping")


def _from_text(model: Model, text: str) -> dict[str, Any]:
    text = text.strip()
    if re.fullmatch(r"-?\d+", text):
        count = int(text)
        return {_only_field(model, count): count}
    counts: dict[str, Any] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*(?::\s*(-?\d+))?\s*", part)
        if not match:
            raise RequestError(f"legs {text!r}: {part!r} is not FIELD or FIELD:NUMBER, as in x:2,xt:1")
        name = match[1]
        if name in counts and match[2] is not None:
            raise RequestError(f"legs {text!r}: field {name!r} is given twice")
        counts[name] = int(match[2]) if match[2] is not None else counts.get(name, 0) + 1
    return counts


def _only_field(model: Model, count: int) -> str:
    """The field a bare number of legs speaks of."""
    if len(model.fields) > 1 and count:
        example = ",".join(f"{f.name}:{count if i == 0 else 0}" for i, f in enumerate(model.fields))
        raise RequestError(f"model {model.name!r} has several fields: say which legs, for example {example} (got {count})")
    return next(f.name for f in model.fields)


def _legs_of(model: Model, name: str, value: Any) -> list[Leg]:
    _check_field(model, name)
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= 40:
            raise RequestError(f"{value} legs of field {name!r}; between 0 and 40 are possible")
        return [Leg(name)] * value
    if isinstance(value, (list, tuple)):
        return [Leg(name, str(label)) for label in value]
    raise RequestError(f"legs of field {name!r}: give a number or a list of labels, got {value!r}")


def _check_field(model: Model, name: str) -> None:
    names = [f.name for f in model.fields]
    if name not in names:
        raise RequestError(f"model {model.name!r} has no field {name!r} for a leg; it has {', '.join(names)}")
    if not any(name in (p.first, p.second) for p in model.propagators):
        raise RequestError(f"a leg of field {name!r} has no propagator to hang on: every such diagram vanishes")


def _check_causality(model: Model, causality: str | None) -> Causality:
    rule = model.causality if causality is None else causality
    if rule not in get_args(Causality):
        raise RequestError(f"response rule {rule!r}: it must be local, nonlocal or none")
    if rule != "none" and not any(f.response for f in model.fields):
        raise RequestError(f"response rule {rule!r}: model {model.name!r} has no response field; leave it out")
    return rule  # type: ignore[return-value]


def _bounds(model: Model, name: str, value: Any) -> tuple[int, int]:
    known = {key for part in (*model.vertices, *model.propagators) for key in part.orders}
    if name not in known:
        raise RequestError(
            f"model {model.name!r} counts no parameter {name!r}; it counts {', '.join(sorted(known)) or 'none'} "
            "(loops have their own option)"
        )
    pair = (value, value) if isinstance(value, int) else value
    low, high = pair if isinstance(pair, tuple) and len(pair) == 2 else (None, None)
    if isinstance(low, int) and isinstance(high, int) and low > high:
        raise RequestError(f"order of {name!r}: the lowest, {low}, is above the highest, {high}")
    if not isinstance(low, int) or not isinstance(high, int):
        raise RequestError(f"order of {name!r}: give an integer or a pair (lowest, highest), got {value!r}")
    return low, high


def _check_loops(kind: str, loops: int | None, n_legs: int, bounds: Collection[object], dressed: int | None) -> None:
    if dressed is not None:
        if loops is not None or bounds:
            raise RequestError("a dressed request is ordered by 1/N (dressed=..); it takes no loops and no other bounds")
        if kind == "all":
            raise RequestError("a dressed request is for connected or 1pi diagrams: disconnected ones have no leading order")
        if isinstance(dressed, bool) or not isinstance(dressed, int) or dressed < 0:
            raise RequestError(f"order {dressed!r} in 1/N: it must be an integer, 0 or more")
        return
    if loops is None:
        if not bounds:
            raise RequestError("nothing bounds the number of diagrams: give loops=.., or orders={'g': 4}")
        return
    if isinstance(loops, bool) or not isinstance(loops, int):
        raise RequestError(f"loops = {loops!r}: it must be an integer")
    least = 0 if kind != "all" else 1 - n_legs // 2
    if loops < min(least, 0):
        raise RequestError(
            f"loops = {loops} is below the minimum {least} of class {kind} with {n_legs} legs "
            "(L = lines - nodes + 1, legs counted as nodes: 0 for connected and 1pi, 1 - legs/2 for all)"
        )


def _check_irreducible(model: Model, kind: str, names: Collection[str] | None) -> None:
    if names is None:
        return
    if kind != "1pi":
        raise RequestError(f"irreducible={sorted(names)} belongs to class 1pi, not to {kind}")
    if isinstance(names, str):
        raise RequestError(f"irreducible={names!r}: give a list of names of propagators")
    known = [p.name for p in model.propagators]
    for name in names:
        if name not in known:
            raise RequestError(f"irreducible: model {model.name!r} has no propagator {name!r}; it has {', '.join(known)}")
