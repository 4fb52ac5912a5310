"""Expressions over random tensors: nodes of a graph with labelled slots, whose order `bound` derives.

A node is an identity: two nodes that look alike are two nodes, shared subexpressions are shared nodes. Labels name
slots; nothing is contracted or summed because two labels agree, only because `contract`, `trace` or `sum_over` says so.
"""

from __future__ import annotations

from typing import Any

import sympy

from symtensor.expansion import OrderTerm

from ._input import exact
from .errors import MissingHypothesisError
from .scale import Scale, SizeParameter, as_scale
from .tensors import RandomTensor
from .value import check_blocks

__all__ = ["Expr", "add", "as_expr", "deterministic_scale", "leaf", "order_term", "outer", "power", "scaled"]

Sizes = tuple[tuple[str, Scale], ...]
NAMES = {
    "outer": "(x)", "contract": "contract", "sum_over": "sum", "max_over": "max", "expectation": "E",
    "inverse": "inv", "power": "norm", "max_of": "max",
}  # fmt: skip


class Expr:
    """One node: an operation, its children, and the labels of slots and family indices it depends on.

    Attributes:
        op: name of the operation (``leaf``, ``sum``, ``outer``, ``contract``, ...).
        children: the operands.
        data: what the operation needs beyond them (labels, exponent, function).
        slots: free slots, label -> size.
        family: family indices it depends on, index -> number of members.
        tensors: names of the random tensors inside.
        unknowns: whether an O-term is inside (an unknown, dependent on everything).
    """

    __slots__ = ("children", "data", "family", "op", "slots", "tensors", "unknowns")

    def __init__(self, op: str, children: tuple[Expr, ...], data: Any, slots: Sizes, family: Sizes) -> None:
        self.op = op
        self.children = children
        self.data = data
        self.slots = slots
        self.family = family
        if family and slots:
            clash = sorted({name for name, _ in family} & {name for name, _ in slots})
            if clash:
                raise ValueError(f"{clash[0]!r} would be a slot and a family index at once; rename one of them")
        own = frozenset((data.name,)) if op == "leaf" else frozenset()
        if op == "given_event":
            own = frozenset((data,))  # another law: independence must include the event
        elif op == "reindexed" and data[1] is not None:
            own = frozenset((data[1],))
        # an expectation is a deterministic value: it depends on the laws, not on the draws
        inside = () if op == "expectation" else tuple(child.tensors for child in children)
        self.tensors: frozenset[str] = own.union(*inside) if own or len(inside) != 1 else inside[0]
        self.unknowns: bool = op == "oterm" or any(child.unknowns for child in children)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the free slots."""
        return tuple(label for label, _ in self.slots)

    @property
    def singletons(self) -> tuple[tuple[str, ...], ...]:
        """The grouping of the subordinate norm: every slot its own unit vector."""
        return tuple((label,) for label in self.labels)

    @property
    def valence(self) -> int:
        """Number of free slots; 0 for a scalar."""
        return len(self.slots)

    def depends_on(self, index: str) -> bool:
        """Whether the node is a family over ``index``."""
        return any(name == index for name, _ in self.family)

    def size(self, label: str) -> Scale:
        """Size of a slot or number of members of a family index."""
        for name, value in (*self.slots, *self.family):
            if name == label:
                return value
        raise ValueError(f"{self} has no label {label!r}; its slots: {self.labels}, its indices: {_names(self.family)}")

    def __add__(self, other: Any) -> Expr:
        return add(self, other)

    __radd__ = __add__

    def __neg__(self) -> Expr:
        return scaled(-1, self)

    def __sub__(self, other: Any) -> Expr:
        return add(self, -as_expr(other))

    def __rsub__(self, other: Any) -> Expr:
        return add(other, -self)

    def __mul__(self, other: Any) -> Expr:
        return outer(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Expr:
        divisor = as_expr(other)
        if divisor.op == "oterm" and not divisor.data.kind.lower:
            raise MissingHypothesisError(
                "R21", "Omega of the divisor", f"{self} / {divisor}",
                "an O-term is an unknown that may be 0; divide by something with a lower bound (kind Theta)",
                "O(f)/O(f) is undefined",
            )  # fmt: skip
        if divisor.valence:
            raise ValueError(f"cannot divide by {divisor} with slots {divisor.labels}; use inverse(...) and contract(...)")
        if divisor.op in ("number", "scale"):
            return scaled(1 / as_scale(divisor.data) if divisor.op == "scale" else 1 / divisor.data, self)
        return outer(self, power(divisor, -1))

    def __rtruediv__(self, other: Any) -> Expr:
        return as_expr(other) / self

    def __pow__(self, exponent: Any) -> Expr:
        if self.valence:
            raise ValueError(f"{self} has slots {self.labels}: its norm to a power is power(M, p), M^2 is a contraction")
        return power(self, exponent)

    def __repr__(self) -> str:
        from .display import describe

        return describe(self)


def _names(sizes: Sizes) -> tuple[str, ...]:
    return tuple(name for name, _ in sizes)


def merged(*sizes: Sizes) -> Sizes:
    """Union of family indices; one index has one size."""
    found: dict[str, Scale] = {}
    for name, value in (item for part in sizes for item in part):
        if found.setdefault(name, value) != value:
            raise ValueError(f"the index {name!r} runs over {found[name]} in one factor and over {value} in another")
    return tuple(found.items())


def families(children: tuple[Expr, ...]) -> Sizes:
    """Family indices of several nodes."""
    first = children[0].family if children else ()
    if all(child.family == first for child in children):
        return first
    return merged(*(child.family for child in children))


def leaf(tensor: RandomTensor, labels: tuple[str, ...]) -> Expr:
    """A random tensor with labels for its slots."""
    if len(labels) != len(tensor.slots):
        raise ValueError(f"{tensor} has {len(tensor.slots)} slots, given the labels {labels}")
    check_distinct(labels, str(tensor.name))
    clash = set(labels) & set(_names(tensor.family))
    if clash:
        raise ValueError(f"{tensor.name}{list(labels)}: {sorted(clash)[0]!r} is a family index of {tensor.name}, not a slot")
    slots = tuple((label, size) for label, (_, size) in zip(labels, tensor.slots, strict=True))
    return Expr("leaf", (), tensor, slots, tensor.family)


def check_distinct(labels: tuple[str, ...], what: str) -> None:
    """Refuse a label that occurs twice: it would be a contraction or a diagonal that nobody asked for."""
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ValueError(
            f"the label {twice[0]!r} occurs twice in {what}; use trace(M, 'i', 'j') or contract(..., over=...) to sum it"
        )


class OrderSymbol:
    """The unknown behind one O-term: kind, scale, and an identity of its own."""

    __slots__ = ("kind", "mode", "scale")

    def __init__(self, scale: Scale, kind: Any, mode: Any) -> None:
        self.scale, self.kind, self.mode = scale, kind, mode


def order_term(scale: Any, kind: Any = "O", mode: Any = None) -> Expr:
    """A new unknown scalar O(scale), o(scale) or Theta(scale); two of them never cancel (R21).

    ``scale`` may be an `symtensor.expansion.OrderTerm` at infinity.
    """
    from .modes import DET, Kind, P

    if isinstance(scale, OrderTerm):  # a statement about a function of n, hence deterministic
        scale.require(scale.variable, sympy.oo)
        scale = Scale.power_of(scale.variable.name, -scale.scale.power, scale.scale.log)
        mode = DET if mode is None else mode
    return Expr("oterm", (), OrderSymbol(as_scale(scale), Kind(kind), P if mode is None else mode), (), ())


def deterministic_scale(scale: Any) -> Expr:
    """A deterministic scalar of exactly this order."""
    return Expr("scale", (), as_scale(scale), (), ())


def as_expr(value: Any) -> Expr:
    """An expression from a tensor, a number, a size, a scale, an O-term, or a SymPy expression that contains them."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, RandomTensor):
        return value.expr
    if isinstance(value, SizeParameter | Scale):
        return deterministic_scale(value)
    if isinstance(value, OrderTerm):
        return order_term(value)
    if isinstance(value, str):
        raise TypeError(f"{value!r} is no expression: give a tensor, a number, a size or an O-term; scale(..) reads text")
    try:
        number = exact(value)
    except TypeError:
        raise TypeError(f"{value!r} is no expression: give a tensor, a number, a size or an O-term") from None
    if number.is_number and number.is_finite and number.is_extended_real:
        return Expr("number", (), number, (), ())
    from .symbolic import from_symbols

    return from_symbols(number)


def add(*terms: Any) -> Expr:
    """The sum of a fixed number of terms with the same slots (R1)."""
    children = tuple(child for child in map(as_expr, terms) if not (child.op == "number" and child.data == 0))
    if not children:
        return as_expr(0)
    if len(children) == 1:
        return children[0]
    first = dict(children[0].slots)
    for child in children[1:]:
        if dict(child.slots) != first:
            raise ValueError(f"cannot add {child} with slots {dict(child.slots)} to slots {first}; rename or transpose")
    return Expr("sum", children, None, children[0].slots, families(children))


def scaled(coefficient: Any, expr: Any) -> Expr:
    """c_n M for a deterministic c_n given as a number or a scale (R2)."""
    child = as_expr(expr)
    if isinstance(coefficient, Scale | SizeParameter | str):
        return Expr("scaled", (child,), as_scale(coefficient), child.slots, child.family)
    number = exact(coefficient)
    if number == 0:
        return as_expr(0)
    if not (number.is_number and number.is_finite and number.is_extended_real):
        raise ValueError(f"the coefficient {coefficient!r} must be a real number or a scale such as scale('1/sqrt(n)')")
    return Expr("scaled", (child,), number, child.slots, child.family)


def outer(*factors: Any) -> Expr:
    """The outer product of factors with different labels (R3); a number or a scale multiplies (R2)."""
    children = [as_expr(factor) for factor in factors]
    plain = [child for child in children if child.op in ("number", "scale")]
    rest = tuple(child for child in children if child.op not in ("number", "scale"))
    if not rest:
        rest, plain = tuple(children[:1]), children[1:]
    labels = tuple(label for child in rest for label in child.labels)
    check_distinct(labels, "a product (slots of different factors need different labels)")
    result = rest[0]
    if len(rest) > 1:
        slots = tuple(slot for child in rest for slot in child.slots)
        result = Expr("outer", rest, None, slots, families(rest))
    for factor in plain:
        result = scaled(factor.data, result)
    return result


def power(expr: Any, exponent: Any, grouping: Any = None) -> Expr:
    """||M||^p, a scalar (R5); for a scalar |M|^p. ``grouping`` chooses the norm, the singletons by default."""
    child = as_expr(expr)
    value = exact(exponent)
    if not (value.is_number and value.is_extended_real and value.is_finite) or value == 0:
        raise ValueError(f"||M||^p needs a real number p other than 0, given {exponent!r}")
    blocks = None if grouping is None else tuple(tuple(block) for block in grouping)
    if blocks is not None:
        check_blocks(blocks, child.labels)
    return Expr("power", (child,), (value, blocks), (), child.family)
