"""The sums of diagrams of the derivation, and the routes without diagrams that go further."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy as sp

from symtensor.fields import DiagramSum, FieldTheory, theory
from symtensor.fields.dyson import Dyson
from symtensor.fields.hierarchy import MomentHierarchy

__all__ = [
    "LOOPS", "TIME", "G", "T", "correlation", "dyson", "fourth_cumulant", "hierarchy", "response", "resummed", "static_two_point",
]  # fmt: skip

LOOPS = 2
TIME = sp.Symbol("t", nonnegative=True)
G, T = sp.symbols("g T", real=True)


@cache
def correlation() -> DiagramSum:
    """<x(t) x(0)>."""
    return theory("cubic-langevin").cumulant("x,x", LOOPS)


@cache
def response() -> DiagramSum:
    """<x(t) xt(0)>."""
    return theory("cubic-langevin").cumulant("x,xt", LOOPS)


@cache
def fourth_cumulant() -> DiagramSum:
    """<x^4> - 3 <x^2>^2 at equal times; tree level is of order g, one loop of order g^2."""
    return theory("cubic-langevin").cumulant("x,x,x,x", 1, "equal")


@cache
def dyson() -> Dyson:
    """The two-point functions with the self-energy of two loops resummed."""
    return correlation().dyson()


def resummed(name: str, omega: Any) -> Any:
    """C(omega) or R(omega) from Dyson's equation; `name` is correlation or response."""
    matrix = dyson().correlator(omega) if name == "correlation" else dyson().response(omega)
    return matrix[0, 0]


@cache
def hierarchy() -> MomentHierarchy:
    """The route without diagrams, also for the orders beyond those of the sums."""
    x = sp.Symbol("x", real=True)
    return MomentHierarchy(-(x + G * x**3), sp.sqrt(2 * T), x, G)


@cache
def static_two_point() -> DiagramSum:
    """<x x> of the static theory with weight exp(-U/T)."""
    return FieldTheory.static("(x^2/2 + g*x^4/4)/T", "x", name="quartic").cumulant("x,x", LOOPS)
