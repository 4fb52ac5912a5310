"""What is asked for: the legs of a correlation or vertex function, and the order of their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor.diagrams.graph import Leg
from symtensor.fields.errors import TheoryError
from symtensor.parsing import name_problem

if TYPE_CHECKING:
    from symtensor.fields.field_theory import FieldTheory

__all__ = ["Legs"]


@dataclass(frozen=True, slots=True)
class Legs:
    """Legs by label 1, 2, ..: names, components, and the group of equal times each belongs to (0 is the latest).

    `moments` are the distinct times, latest first, as symbols or 0; a static theory has one group and no time.
    """

    names: tuple[str, ...]
    components: tuple[int, ...]
    groups: tuple[int, ...]
    moments: tuple[sp.Expr, ...]

    @classmethod
    def read(cls, theory: FieldTheory, legs: Any, times: Sequence[Any] | str | None, amputated: bool) -> Legs:
        """Raise TheoryError for an unknown field, or times that are out of order or not as many as the legs."""
        names = _names(legs)
        components = tuple(theory.component(name) for name in names)
        if not theory.stochastic:
            if times is not None:
                raise TheoryError(f"{theory.name} is a static theory: its fields have no times, leave times={times!r} out")
            return cls(names, components, (0,) * len(names), ())
        if amputated and times is None and len(names) == 2:
            responses = [c >= len(theory.fields) for c in components]
            if responses == [False, True]:  # the response leg of a self-energy is the later one
                names, components = names[::-1], components[::-1]
        chosen = _times(len(names), times)
        taken = {str(s) for s in (*theory.fields, *theory.responses, *theory.parameters)}
        for name in chosen:
            if name in taken:
                raise TheoryError(f"the time {name!r} has the name of a field or parameter; choose others by times=")
        distinct = tuple(dict.fromkeys(chosen))
        groups = tuple(distinct.index(name) for name in chosen)
        if list(groups) != sorted(groups):
            given = ", ".join(chosen)
            raise TheoryError(f"the times {given}: name the legs latest first, and legs at equal times one after the other")
        moments = tuple(sp.S.Zero if name == "0" else sp.Symbol(name, real=True) for name in distinct)
        if len(moments) == 2 and moments[1] == 0:
            moments = (sp.Symbol(distinct[0], nonnegative=True), sp.S.Zero)
        return cls(names, components, groups, moments)

    @property
    def windows(self) -> tuple[sp.Expr, ...]:
        """The differences of successive times, each not negative."""
        return tuple(a - b for a, b in zip(self.moments, self.moments[1:]))

    @property
    def by_label(self) -> dict[str, int]:
        """Label -> component."""
        return {str(at + 1): component for at, component in enumerate(self.components)}

    def diagram_legs(self, theory: FieldTheory) -> list[Leg]:
        """The legs as the diagrams know them."""
        return [Leg(theory.kind_of(component).name, str(at + 1)) for at, component in enumerate(self.components)]

    def __str__(self) -> str:
        if not self.moments:
            return " ".join(self.names)
        return " ".join(f"{name}({sp.sstr(self.moments[group])})" for name, group in zip(self.names, self.groups))


def _names(legs: Any) -> tuple[str, ...]:
    if isinstance(legs, str):
        legs = [part.strip() for part in legs.split(",")] if legs.strip() else []
    names = tuple(str(leg) for leg in legs)
    if not names:
        raise TheoryError("no legs are given; name the fields of the function, as 'x,x' or 'x,xt'")
    if "" in names:
        raise TheoryError(f"the legs {', '.join(names)!r} have an empty entry; write 'x,x'")
    return names


def _times(count: int, times: Sequence[Any] | str | None) -> tuple[str, ...]:
    if times is None:
        if count == 1:
            return ("0",)
        return ("t", "0") if count == 2 else (*(f"t{i + 1}" for i in range(count - 1)), "0")
    if isinstance(times, str):
        times = ["0"] * count if times == "equal" else [part.strip() for part in times.split(",")]
    chosen = tuple(str(name) for name in times)
    if len(chosen) != count:
        raise TheoryError(f"{len(chosen)} times for {count} legs; name one a leg, the latest first, equal names for equal times")
    for name in chosen:
        if name != "0" and (problem := name_problem(name)):
            raise TheoryError(f"the time {name!r}: {problem}; or write 0")
    if "0" in chosen[:-1] and chosen[-1] != "0":
        raise TheoryError(f"the times {', '.join(chosen)}: 0 is the earliest time and comes last")
    return chosen
