"""Actions and stochastic equations as text or as SymPy expressions, read into values. Text is parsed, never evaluated.

The language is that of `symtensor.parsing`: numbers (decimals are exact), ``+ - * / ^``, elementary functions, and for fields
with components ``x[1]``, ``dot(x, x)`` and ``sum(i, x[i]^2)``. Names in text become real symbols; symbols that are given
(fields or parameters as `sympy.Symbol`) keep their assumptions. Every name that is no field is a parameter, unless the
parameters are listed: then any other name is an error. Equations are read by `read_equations`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

from symtensor.fields._names import Declared, Names
from symtensor.fields.equations import Equations, read_equations
from symtensor.fields.errors import SourceError

__all__ = ["ActionText", "Equations", "read_action", "read_equations"]


@dataclass(frozen=True, slots=True)
class ActionText:
    """An action S of a static theory with the weight exp(-S).

    Attributes:
        expression: S.
        fields: the components of all fields, in the order of their declaration.
        parameters: all other symbols of S, and the declared parameters, sorted by name.
        components: the name of each field with its components.
    """

    expression: sp.Expr
    fields: tuple[sp.Symbol, ...]
    parameters: tuple[sp.Symbol, ...]
    components: tuple[tuple[str, tuple[sp.Symbol, ...]], ...]

    @property
    def gradient(self) -> tuple[sp.Expr, ...]:
        """dS/dx of every component."""
        return tuple(sp.diff(self.expression, symbol) for symbol in self.fields)


def read_action(action: Any, fields: Declared, parameters: Declared = None) -> ActionText:
    """Read the action S of a static theory, weight exp(-S).

    Args:
        action: text, or a SymPy expression (its floats become exact decimals).
        fields: names or symbols; ``{"x": 3}`` declares the components x_1, x_2, x_3, written x[1] .. x[3] in text.
        parameters: names, symbols or ``{"J": (2, 2)}``; if not given, every name that is no field is a parameter.

    Raises:
        SourceError: text that is no formula, an unknown symbol, a clash of names, a field that S does not contain.

    Example:
        >>> read_action("x^2/2 + g*x^4/24", ["x"])
        ActionText(expression=g*x**4/24 + x**2/2, fields=(x,), parameters=(g,), components=(('x', (x,)),))
        >>> read_action("r*dot(x, x)/2 + u*dot(x, x)^2/4", {"x": 2}, ["r", "u"]).expression
        r*(x_1**2 + x_2**2)/2 + u*(x_1**2 + x_2**2)**2/4
    """
    names = Names.read(fields, parameters)
    if not names.fields:
        raise SourceError("an action needs at least one field; give fields=['x']")
    if isinstance(action, str):
        expression = names.parse(action)
    else:
        names = names.matched([action])
        expression = names.adopt(action, "the action")
    missing = [symbol.name for symbol in names.symbols if symbol not in expression.free_symbols]
    if missing:
        raise SourceError(f"the action does not contain the field {', '.join(missing)}, so nothing fixes it; leave it out")
    components = tuple(zip(names.fields, names.groups))
    return ActionText(expression, names.symbols, names.used([expression]), components)
