"""Tensor heads: a name, the dimension of each slot, a slot symmetry; and the Kronecker delta."""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy

from symtensor.tensor.errors import IndexTypeError, SymmetryError
from symtensor.tensor.expr import TensorExpr
from symtensor.tensor.index import DimensionLike, Index, Slot, check_dimension, check_name
from symtensor.tensor.symmetry import SymmetryGroup
from symtensor.tensor.term import Factor, Term


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor head; `head[a, b]` is an expression.

    Args:
        name: identifier under which its array is passed to `evaluate` and to generated code.
        dimensions: one `Dimension` or positive integer per slot; `()` is a scalar, written `head[()]`.
        symmetry: slot symmetry, none by default.
        latex: how the head is typeset (`name` by default); heads that differ only here are equal.
        source, function: set by `map`, for an elementwise image of another head.
        is_delta: set by `delta`, for the Kronecker delta.

    Raises: IndexTypeError for a bad name or dimension, SymmetryError if the group does not fit the slots.

    >>> from symtensor.tensor import Dimension
    >>> P = Dimension("P")
    >>> a, b = P.indices("a b")
    >>> K = Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2), latex="K_0")
    >>> K[a, b] == K[b, a]
    True
    """

    name: str
    dimensions: tuple[DimensionLike, ...]
    symmetry: SymmetryGroup = None  # type: ignore[assignment]  # None is replaced by the trivial group
    latex: str = field(default="", compare=False)
    source: Tensor | None = None
    function: sympy.Lambda | None = None
    is_delta: bool = False
    sort_key: tuple = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name(self.name, "tensor")
        object.__setattr__(self, "dimensions", tuple(self.dimensions))
        for dimension in self.dimensions:
            check_dimension(dimension, f"tensor {self.name}")
        if self.symmetry is None:
            object.__setattr__(self, "symmetry", SymmetryGroup.trivial(self.rank))
        _check_symmetry(self)
        dimensions = tuple(map(str, self.dimensions))
        key = (self.name, dimensions, self.symmetry.elements, self.is_delta, str(self.function), str(self.source))
        object.__setattr__(self, "sort_key", key)

    @property
    def rank(self) -> int:
        """The number of slots."""
        return len(self.dimensions)

    def __getitem__(self, indices: Slot | tuple[Slot, ...]) -> TensorExpr:
        """The component with these indices (integers count from 0). A repeated index is not summed.

        Raises: IndexTypeError for the wrong number of indices, an index of another dimension, or a value out of range.
        """
        slots = indices if isinstance(indices, tuple) else (indices,)
        if len(slots) != self.rank:
            raise IndexTypeError(f"{self.name} has {self.rank} slots, got {len(slots)} indices: {_shown(slots)}")
        checked = tuple(_checked(slot, self, position) for position, slot in enumerate(slots))
        term = Term(sympy.Integer(1), (Factor(self, checked),))
        return TensorExpr((term,), term.free)

    def map(self, name: str, function: sympy.Lambda, latex: str = "") -> Tensor:
        """The head whose components are `function` of the same component of this one (an indicator, an activation).

        Arrays are passed for *this* head; the image keeps its symmetry (without signs).

        Raises: IndexTypeError if `function` is not a SymPy Lambda of one argument without other symbols.

        >>> from symtensor.tensor import Dimension
        >>> t = sympy.Symbol("t")
        >>> x = Tensor("x", (Dimension("N"),))
        >>> step = x.map("step_x", sympy.Lambda(t, sympy.Piecewise((1, t > 0), (0, True))))
        """
        if not (isinstance(function, sympy.Lambda) and len(function.args[0].args) == 1 and not function.free_symbols):
            raise IndexTypeError(f"image {name} of {self.name}: need a Lambda of one argument, got {function}")
        if any(sign < 0 for _, sign in self.symmetry.elements):
            raise SymmetryError(f"image {name} of {self.name}: images of antisymmetric tensors are not supported")
        return Tensor(name, self.dimensions, self.symmetry, latex, self, function)

    def __hash__(self) -> int:
        return hash((self.name, self.dimensions))

    def __str__(self) -> str:
        return self.name


def delta(first: Slot, second: Slot) -> TensorExpr:
    """The Kronecker delta; concrete indices are compared by value. Nothing is summed: see `contract_deltas`.

    Raises: IndexTypeError if the indices have different dimensions.

    >>> from symtensor.tensor import Dimension
    >>> P = Dimension("P")
    >>> a, b = P.indices("a b")
    >>> V = Tensor("V", (P,))
    >>> (delta(a, b) * V[b]).sum(b).contract_deltas()
    TensorExpr(V[a])
    """
    for slot in (first, second):
        if isinstance(slot, Index):
            return _delta_head(slot.dimension)[first, second]
    if not (_is_integer(first) and _is_integer(second)):
        raise IndexTypeError(f"delta of {first!r} and {second!r}: need indices or integers")
    return TensorExpr.scalar(int(first == second))


def _delta_head(dimension: DimensionLike) -> Tensor:
    return Tensor(f"delta_{dimension}", (dimension,) * 2, SymmetryGroup.symmetric(2), r"\delta", is_delta=True)


def _is_integer(slot: object) -> bool:
    return isinstance(slot, int) and not isinstance(slot, bool)


def _shown(slots: tuple) -> str:
    return "[" + ", ".join(map(str, slots)) + "]"


def _checked(slot: object, head: Tensor, position: int) -> Slot:
    dimension = head.dimensions[position]
    if isinstance(slot, Index):
        if slot.dimension != dimension:
            raise IndexTypeError(
                f"index {slot} of dimension {slot.dimension} in slot {position} of {head.name}, which has dimension "
                f"{dimension}: use an index of {dimension}"
            )
        return slot
    if isinstance(slot, int) and not isinstance(slot, bool):
        if slot < 0 or (isinstance(dimension, int) and slot >= dimension):
            raise IndexTypeError(f"component {slot} in slot {position} of {head.name}: outside 0..{dimension}-1")
        return slot
    raise IndexTypeError(f"{slot!r} in slot {position} of {head.name}: need an Index or an integer")


def _check_symmetry(head: Tensor) -> None:
    if not isinstance(head.symmetry, SymmetryGroup) or head.symmetry.degree != head.rank:
        raise SymmetryError(f"tensor {head.name} has {head.rank} slots, its symmetry is a {head.symmetry}")
    for permutation, _ in head.symmetry.generators:
        for slot, image in enumerate(permutation):
            if head.dimensions[slot] != head.dimensions[image]:
                raise SymmetryError(
                    f"symmetry of {head.name} exchanges slot {slot} of dimension {head.dimensions[slot]} with slot "
                    f"{image} of dimension {head.dimensions[image]}: only slots of one dimension can be exchanged"
                )
