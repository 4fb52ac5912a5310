"""Random tensors with named slots and the facts that are known about them; facts are the hypotheses of the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ._input import exact, is_positive_number
from .facts import FACTS, Fact
from .scale import Scale, as_scale

if TYPE_CHECKING:
    from .expr import Expr

__all__ = ["RandomTensor"]


def _size(name: str, label: str, value: Any) -> Scale:
    """A size that grows (or may grow), or a positive integer for one that stays fixed."""
    found = as_scale(value)
    if found.limit() == "0":
        raise ValueError(f"{name}: the size of {label!r} is {found}, which tends to 0; a size is a positive integer or grows")
    if is_positive_number(value) and not exact(value).is_integer:
        raise ValueError(f"{name}: the size of {label!r} is a positive integer or grows, given {value}")
    return found


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RandomTensor:
    """A random tensor M_n with named slots, possibly a family M_n^i over indices i.

    Indexing gives an expression with labels for the slots: ``W["i", "j"]``. Equal labels in two tensors say which slots
    are contracted, but only `contract` and `trace` contract; a product is an outer product.

    Args:
        name: an identifier; facts and assumptions refer to it.
        slots: label -> size (`SizeParameter`, scale, text, or a positive number for a fixed dimension).
        facts: what is known: `gaussian()`, `iid_entries()`, `known("sqrt(n)", mode=PSI2)`, `sigma_min("sqrt(n)")`, ...
        family: index -> number of members, for a family of tensors; facts then hold for every member, and "for every"
            is pointwise unless a fact says more (`iid_over("i")`, `known(..., uniform=U1("i"))`).

    Raises:
        ValueError: a name that is no identifier, or a fact that is about something else.

    Example:
        >>> from symtensor.bounds import bound, contract, gaussian, independent
        >>> u, v = (RandomTensor(name, {"i": "n"}, [gaussian()]) for name in "uv")
        >>> bound(contract(u["i"], v["i"], over="i"))
        O(n) [all moments], n -> oo
        >>> bound(contract(u["i"], v["i"], over="i"), assume=[independent(u, v)])
        O(sqrt(n)) [L^2], n -> oo
    """

    name: str
    slots: tuple[tuple[str, Scale], ...]
    facts: tuple[Fact, ...]
    family: tuple[tuple[str, Scale], ...]

    def __init__(
        self,
        name: str,
        slots: Mapping[str, Any] | None = None,
        facts: Iterable[Fact] = (),
        family: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"a random tensor needs a name such as 'W', given {name!r}")
        sizes = {**(slots or {}), **(family or {})}
        if len(sizes) != len(slots or {}) + len(family or {}):
            raise ValueError(f"{name}: a label is either a slot or a family index, not both")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "slots", tuple((k, _size(name, k, v)) for k, v in (slots or {}).items()))
        object.__setattr__(self, "family", tuple((k, _size(name, k, v)) for k, v in (family or {}).items()))
        object.__setattr__(self, "facts", tuple(self._own(fact) for fact in facts))

    def _own(self, fact: Fact) -> Fact:
        if not isinstance(fact, Fact) or fact.name not in FACTS:
            raise ValueError(f"{self.name}: {fact!r} is no fact; use gaussian(), known(...), moment(k, f), ...")
        if fact.subjects and self.name not in fact.subjects:
            raise ValueError(f"the fact '{fact}' is not about {self.name}: pass it to bound(..., assume=[...])")
        if fact.index is not None and fact.name.endswith("_over") and fact.index not in dict(self.family):
            known = ", ".join(dict(self.family)) or "none"
            raise ValueError(f"{self.name} has no family index {fact.index!r} (its indices: {known}); declare family={{..}}")
        return fact if fact.subjects else replace(fact, subjects=(self.name,))

    def __getitem__(self, labels: str | tuple[str, ...]) -> Expr:
        """The tensor as an expression with these labels for its slots."""
        from .expr import leaf

        return leaf(self, labels if isinstance(labels, tuple) else (labels,))

    @property
    def expr(self) -> Expr:
        """The tensor as an expression with its own labels."""
        return self[tuple(label for label, _ in self.slots)]

    def __repr__(self) -> str:
        inner = ", ".join(f"{label}: {size}" for label, size in self.slots)
        return f"{self.name}({inner})"

    def __add__(self, other: Any) -> Expr:
        return self.expr + other

    def __radd__(self, other: Any) -> Expr:
        return other + self.expr

    def __sub__(self, other: Any) -> Expr:
        return self.expr - other

    def __rsub__(self, other: Any) -> Expr:
        return other - self.expr

    def __mul__(self, other: Any) -> Expr:
        return self.expr * other

    def __rmul__(self, other: Any) -> Expr:
        return other * self.expr

    def __truediv__(self, other: Any) -> Expr:
        return self.expr / other

    def __rtruediv__(self, other: Any) -> Expr:
        return other / self.expr

    def __neg__(self) -> Expr:
        return -self.expr
