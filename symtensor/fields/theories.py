"""Theories by name, and from files."""

from __future__ import annotations

from collections.abc import Callable

from symtensor.fields.errors import TheoryError
from symtensor.fields.field_theory import FieldTheory

__all__ = ["THEORIES", "theory"]


def _static(name: str, action: str, title: str) -> Callable[[], FieldTheory]:
    return lambda: FieldTheory.static(action, ["x"], name=name, title=title)


def _langevin(name: str, equation: str, title: str) -> Callable[[], FieldTheory]:
    return lambda: FieldTheory.langevin(equation, name=name, title=title)


#: name -> constructor; nothing is built before it is asked for
THEORIES: dict[str, Callable[[], FieldTheory]] = {
    "phi3": _static("phi3", "x^2/2 + g*x^3/6", "one variable with a cubic term, zero dimensions (formal series)"),
    "phi4": _static("phi4", "x^2/2 + g*x^4/24", "one variable with a quartic term, zero dimensions"),
    "phi6": _static("phi6", "x^2/2 + g*x^6/720", "one variable with a sextic term, zero dimensions"),
    "phi3+phi4": _static("phi3+phi4", "x^2/2 + g*x^3/6 + h*x^4/24", "one variable with cubic and quartic terms"),
    "ornstein-uhlenbeck": _langevin("ornstein-uhlenbeck", "dx = -a*x dt + sqrt(2*T) dW", "linear Langevin equation"),
    "cubic-langevin": _langevin("cubic-langevin", "dx = -(x + g*x^3) dt + sqrt(2*T) dW", "quartic potential, overdamped"),
    "quadratic-langevin": _langevin(
        "quadratic-langevin", "dx = (-x + g*x^2) dt + sqrt(2*T) dW", "metastable state of a cubic potential (formal series)"
    ),
    "multiplicative-langevin": _langevin(
        "multiplicative-langevin", "dx = -x dt + sqrt(2*T)*(1 + g*x) dW", "linear drift, multiplicative Ito noise"
    ),
}
ALIASES = {"phi34": "phi3+phi4", "ou": "ornstein-uhlenbeck", "langevin": "cubic-langevin"}


def theory(name: str) -> FieldTheory:
    """The theory called `name`.

    >>> theory("phi4").parameters
    (g,)
    """
    key = ALIASES.get(name.lower(), name.lower())
    if key not in THEORIES:
        raise TheoryError(f"unknown theory {name!r}; there are {', '.join(THEORIES)}; or give the path of a theory file (.toml)")
    return THEORIES[key]()
