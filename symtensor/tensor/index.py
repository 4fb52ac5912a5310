"""Index types (`Dimension`), indices, and deterministic names for summed ones."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

import sympy

from symtensor.tensor.errors import IndexClashError, IndexTypeError

# Names given to summed indices, in this order; numbered names follow when the letters are used up.
_DUMMY_LETTERS = "ijklmpqrstuvwxyz"


def check_name(name: object, what: str) -> None:
    """Raise `IndexTypeError` unless `name` is a string that can name something in generated code."""
    if not (isinstance(name, str) and name.isidentifier()):
        raise IndexTypeError(f"{what} name {name!r}: need an identifier such as 'a' or 'K_0'")


@dataclass(frozen=True, slots=True)
class Dimension:
    """The type of an index: a range 0..P-1 of symbolic size `name`.

    Two dimensions are the same if their names are. Where a dimension is an integer n, the range is 0..n-1.

    >>> P = Dimension("P")
    >>> a, b = P.indices("a b")
    >>> a
    Index('a', P)
    """

    name: str

    def __post_init__(self) -> None:
        check_name(self.name, "dimension")

    @property
    def symbol(self) -> sympy.Symbol:
        """The size as a SymPy symbol (a positive integer); it appears when a Kronecker delta is traced."""
        return sympy.Symbol(self.name, integer=True, positive=True)

    def index(self, name: str) -> Index:
        """One index of this dimension."""
        return Index(name, self)

    def indices(self, names: str) -> tuple[Index, ...]:
        """Indices of this dimension from names separated by spaces or commas.

        Raises: IndexClashError if a name is given twice, IndexTypeError if it is no identifier.
        """
        parts = names.replace(",", " ").split()
        for part in parts:
            if parts.count(part) > 1:
                raise IndexClashError(f"index {part!r} is named twice in {names!r}: give each index its own name")
        return tuple(Index(part, self) for part in parts)

    def __str__(self) -> str:
        return self.name


DimensionLike: TypeAlias = "Dimension | int"


def check_dimension(dimension: object, where: str) -> None:
    """Raise `IndexTypeError` unless `dimension` is a `Dimension` or a positive integer."""
    integer = isinstance(dimension, int) and not isinstance(dimension, bool) and dimension > 0
    if not (isinstance(dimension, Dimension) or integer):
        raise IndexTypeError(f"{where}: dimension {dimension!r} must be a Dimension or a positive integer")


def dimension_size(dimension: DimensionLike) -> sympy.Expr:
    """The size of a dimension as a SymPy expression."""
    return dimension.symbol if isinstance(dimension, Dimension) else sympy.Integer(dimension)


@dataclass(frozen=True, slots=True)
class Index:
    """A named index of a `Dimension` (or of an integer range). Equal if name and dimension are.

    >>> Index("i", 3)
    Index('i', 3)
    """

    name: str
    dimension: DimensionLike

    def __post_init__(self) -> None:
        check_name(self.name, "index")
        check_dimension(self.dimension, f"index {self.name!r}")

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Index({self.name!r}, {self.dimension})"


# What a slot may hold: an index, or a concrete component counted from 0.
Slot: TypeAlias = "Index | int"


def slot_key(slot: Slot) -> tuple[int, str, int, str]:
    """A total order of slot entries that does not depend on hashes: indices by name, then integers."""
    return (1, "", slot, "") if isinstance(slot, int) else (0, slot.name, 0, str(slot.dimension))


def listed(slots: object) -> str:
    """Names of indices for error messages, sorted: 'a, b', or 'none'."""
    return ", ".join(str(slot) for slot in sorted(slots, key=slot_key)) or "none"  # type: ignore[call-overload]


def dummy_names(taken: Container[str]) -> Iterator[str]:
    """Names for summed indices, i j k ... then i1 i2 ..., leaving out those in `taken`."""
    yield from (letter for letter in _DUMMY_LETTERS if letter not in taken)
    yield from (name for name in (f"i{number}" for number in count(1)) if name not in taken)
