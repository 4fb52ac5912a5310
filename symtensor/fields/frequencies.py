"""A frequency as an argument: a symbol, a number or an expression; text is a name, and never evaluated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy as sp

from symtensor.fields.errors import TheoryError
from symtensor.parsing import name_problem

__all__ = ["frequency"]


def frequency(omega: Any = None, parameters: Iterable[sp.Symbol] = ()) -> sp.Expr:
    """The frequency as an expression; the real symbol ``omega`` if none is given.

    Raises: TheoryError for text that is no name, for a value that is not finite, or a name that a parameter has.

    >>> frequency(), frequency("w")
    (omega, w)
    """
    if omega is None or isinstance(omega, str):
        name = "omega" if omega is None else omega
        if problem := name_problem(name):
            raise TheoryError(f"the frequency {name[:60]!r}: {problem}; give a symbol, a number, or a name")
        if name in {str(s) for s in parameters}:
            raise TheoryError(f"{name!r} is a parameter of the theory; give the frequency another symbol")
        return sp.Symbol(name, real=True)
    try:
        value = sp.sympify(omega, strict=True)
    except sp.SympifyError:
        raise TheoryError(f"the frequency {omega!r} is no symbol, number or expression") from None
    if value.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
        raise TheoryError(f"the frequency {omega!r} is not finite")
    return value
