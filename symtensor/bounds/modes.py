"""In which sense a bound holds: kinds O, o, Omega, Theta; modes P, L^k, psi2, det; uniformity U1, U2 over an index."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import sympy

from ._input import exact

__all__ = ["ALL_MOMENTS", "DET", "PSI2", "U1", "U2", "Kind", "L", "Mode", "P", "Uniform"]


class Kind(Enum):
    """O: at most; o: of smaller order; Omega: at least; Theta: both O and Omega."""

    O = "O"
    SMALL_O = "o"
    OMEGA = "Omega"
    THETA = "Theta"

    @property
    def upper(self) -> bool:
        """Whether the kind bounds from above."""
        return self is not Kind.OMEGA

    @property
    def lower(self) -> bool:
        """Whether the kind bounds from below."""
        return self in (Kind.OMEGA, Kind.THETA)

    @property
    def tex(self) -> str:
        """The symbol in LaTeX."""
        return {"O": r"\mathcal{O}", "o": "o", "Omega": r"\Omega", "Theta": r"\Theta"}[self.value]

    @property
    def upper_half(self) -> Kind:
        """What is left when only the statement from above carries over: o stays o, everything else becomes O."""
        return Kind.SMALL_O if self is Kind.SMALL_O else Kind.O


@dataclass(frozen=True, slots=True)
class Mode:
    """How strongly ||M|| <= C f holds: det => psi2 => all moments => L^k => L^j (j < k) => P.

    ``L(k)``: E ||M||^k = O(f^k). An open mode ``L(k, open=True)`` has all moments below k, as a Hoelder product with a
    factor of all moments has. ``ALL_MOMENTS`` is the open L^oo.

    Example:
        >>> PSI2.implies(L(4)), L(4).implies(L(2)), L(2).implies(L(4)), Mode.product([L(4), L(4)])
        (True, True, False, L^2)
    """

    name: str
    k: Any = None
    open: bool = False

    def __post_init__(self) -> None:
        if self.name not in ("P", "L", "psi2", "det"):
            raise ValueError(f"unknown mode {self.name!r}; the modes are P, L(k), psi2 and det")
        if (self.name == "L") != (self.k is not None):
            raise ValueError("exactly the mode L has an order k: write L(2)")
        if self.k is not None:
            order = exact(self.k)
            if not (order.is_number and order.is_extended_positive):
                raise ValueError(f"L^k needs a positive number k, given {self.k}")
            if order.is_infinite and not self.open:
                raise ValueError("a bound by a constant multiple with certainty is the mode det; all moments: ALL_MOMENTS")
            object.__setattr__(self, "k", order)

    def moment(self, k: Any) -> bool:
        """Whether E ||M||^k = O(f^k) follows."""
        if self.name != "L":
            return self.name in ("psi2", "det")
        return bool(self.k > k) or (not self.open and bool(self.k == k))

    def implies(self, other: Mode) -> bool:
        """Whether this mode is at least as strong as ``other``."""
        if other.name == "L":
            if self.name == "P":
                return False
            # an open order asks for all moments below it, a closed one has them too
            return self.moment(other.k) or (other.open and (self.name != "L" or bool(self.k >= other.k)))
        rank = {"P": 0, "L": 1, "psi2": 2, "det": 3}
        return rank[self.name] >= rank[other.name]

    @staticmethod
    def weakest(modes: Iterable[Mode]) -> Mode:
        """Mode of a sum or a maximum of a fixed number of terms (triangle inequality in every mode)."""
        found = list(modes)
        names = {mode.name for mode in found}
        if "P" in names:
            return P
        orders = [mode for mode in found if mode.name == "L"]
        if orders:
            return min(orders, key=lambda m: (m.k, not m.open))
        return PSI2 if "psi2" in names else DET

    @staticmethod
    def product(modes: Iterable[Mode], independent: bool = False) -> Mode:
        """Mode of a product: Hoelder 1/r = sum 1/k (R15), or the weakest factor if they are independent."""
        found = [mode for mode in modes if mode.name != "det"]
        if len(found) <= 1:
            return found[0] if found else DET
        if any(mode.name == "P" for mode in found):
            return P
        if independent:
            weakest = Mode.weakest(found)
            return ALL_MOMENTS if weakest == PSI2 else weakest
        orders = [mode for mode in found if mode.name == "L"]
        inverse = sum((1 / mode.k for mode in orders), sympy.S.Zero)
        # a sub-Gaussian factor costs an arbitrarily small part of the order, hence the open mode
        is_open = len(orders) < len(found) or any(mode.open for mode in orders)
        return ALL_MOMENTS if inverse == 0 else L(1 / inverse, open=is_open)

    def power(self, p: Any) -> Mode:
        """Mode of ||M||^p for p > 0."""
        if self.name == "psi2":
            return PSI2 if p <= 1 else ALL_MOMENTS
        return self if self.name != "L" else L(self.k / exact(p), self.open)

    def __repr__(self) -> str:
        if self.name != "L":
            return self.name
        if self.k == sympy.oo:
            return "all moments"
        return f"L^{self.k}" + ("-" if self.open else "")

    @property
    def tex(self) -> str:
        """The mode in LaTeX."""
        if self.name == "L":
            return rf"L^{{{sympy.latex(self.k)}{'-' if self.open else ''}}}"
        return {"P": r"\mathbb{P}", "psi2": r"\psi_2", "det": r"\mathrm{det}"}[self.name]


def L(k: Any, open: bool = False) -> Mode:
    """The mode E ||M||^k = O(f^k)."""
    return Mode("L", k, open)


P = Mode("P")
PSI2 = Mode("psi2")
DET = Mode("det")
ALL_MOMENTS = Mode("L", sympy.oo, True)


@dataclass(frozen=True, slots=True)
class Uniform:
    """U1: sup_i P(||M_i|| > h f) -> 0 for every h -> oo (in L^k and psi2: one constant for all i).

    U2: sup_i ||M_i|| / f is bounded in probability (the supremum inside). U2 implies U1, not conversely. It qualifies the
    upper half of a bound (with kind o: every h > 0; the supremum is o), never the lower one. Uniformities in several indices
    hold jointly.
    """

    level: int
    index: str

    def __repr__(self) -> str:
        return f"U{self.level}({self.index})"


def U1(index: str) -> Uniform:
    """Uniform over ``index``, supremum outside the probability."""
    return Uniform(1, index)


def U2(index: str) -> Uniform:
    """Uniform over ``index``, supremum inside the probability."""
    return Uniform(2, index)
