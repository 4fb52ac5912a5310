"""The strict printer: graph to Python text. What is not in its tables is an error here, never an undefined name later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy as sp

from ..errors import UnsupportedNode
from ..graph import Node, postorder
from ..passes.cse import Schedule

__all__ = ["Printer", "double", "number_text"]

# binding strength of the printed forms
_COMPARE, _SUM, _PRODUCT, _POWER, _ATOM = range(5)
_LARGEST_INTEGER = 2**31


def number_text(value: sp.Expr) -> tuple[str, int]:
    """A number as Python text and its binding strength; correctly rounded to the nearest double.

    Integers print as they are, short binary fractions as decimals, rationals as p / q (one correctly rounded division),
    the rest with 17 digits (shortest text that reads back as the same double).
    """
    if isinstance(value, sp.Rational):
        p, q = int(value.p), int(value.q)
        if q == 1 and abs(p) < _LARGEST_INTEGER:
            text = str(p)
        elif q & (q - 1) == 0 and q <= 1024 and abs(p) < _LARGEST_INTEGER:
            text = repr(p / q)
        elif max(abs(p), q) < 2**53:
            return f"{p} / {q}" if abs(p) < _LARGEST_INTEGER > q else f"{float(p)!r} / {float(q)!r}", _PRODUCT
        else:
            text = repr(double(value))
    else:
        text = repr(double(value))
    return text, _SUM if text.startswith("-") else _ATOM


def double(value: sp.Expr) -> float:
    """The double nearest to an exact number.

    Raises
    ------
    UnsupportedNode
        Not a finite real number, or beyond the doubles.
    """
    if isinstance(value, sp.Integer) and abs(int(value)) < 2**53:
        return float(int(value))
    number = sp.N(value, 40)
    if not (number.is_Float or number.is_Rational) or not number.is_finite:
        raise UnsupportedNode(f"the constant {str(value)[:80]} is not a real number")
    return float(number)


@dataclass(slots=True)
class Printer:
    """Prints nodes; `functions` maps function names to callables in the target language."""

    functions: Mapping[str, str]
    select: str
    logic: Mapping[str, str] = field(default_factory=lambda: {"and": "&", "or": "|", "not": "~"})
    names: dict[Node, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def lines(self, plan: Schedule) -> list[str]:
        """The assignments of a schedule; afterwards named nodes print as their names."""
        lines = []
        for name, node in plan.assignments:
            lines.append(f"{name} = {self.text(node)}")
            self.names[node] = name
        return lines

    def text(self, node: Node) -> str:
        """One expression."""
        return self._print(node)[0]

    def float_text(self, node: Node) -> str:
        """One expression; an integer constant prints as a float, so that it cannot make an integer array."""
        text = self.text(node)
        return text + ".0" if node.op == "const" and text.lstrip("-").isdigit() else text

    def _print(self, node: Node) -> tuple[str, int]:
        if node in self.names:
            return self.names[node], _ATOM
        match node.op:
            case "const":
                return self.number(node.value)  # type: ignore[arg-type]
            case "var":
                return str(node.value), _ATOM
            case "add":
                return self._sum(node), _SUM
            case "mul":
                return self._product(node)
            case "pow":
                return self._power(node)
            case "compare":
                left, right = (self._wrapped(argument, _SUM) for argument in node.args)
                return f"{left} {node.value} {right}", _COMPARE
            case "select":
                arguments = ", ".join([self.text(node.args[0]), *map(self.float_text, node.args[1:])])
                return f"{self.select}({arguments})", _ATOM
            case "and" | "or":
                left, right = (self._wrapped(argument, _ATOM) for argument in node.args)
                return f"({left} {self.logic[node.op]} {right})", _ATOM
            case "not":
                return f"({self.logic['not']} {self._wrapped(node.args[0], _ATOM)})".replace("~ ", "~"), _ATOM
            case "call":
                return self._call(node), _ATOM
        raise UnsupportedNode(f"no printer for the operation {node.op!r}")

    def number(self, value: sp.Expr) -> tuple[str, int]:
        """A constant; overridden where the target is not double precision."""
        return number_text(value)

    def callable(self, name: str) -> str:
        """The text of a function; it counts as used."""
        if name not in self.functions:
            raise UnsupportedNode(f"{type(self).__name__} cannot print the function {name!r}")
        self.used.add(name)
        return self.functions[name]

    def _call(self, node: Node) -> str:
        return f"{self.callable(str(node.value))}({', '.join(self.text(argument) for argument in node.args)})"

    def _wrapped(self, node: Node, strength: int) -> str:
        text, own = self._print(node)
        return text if own >= strength else f"({text})"

    def _sum(self, node: Node) -> str:
        text = ""
        for term in node.args:
            part = self._wrapped(term, _SUM)
            if not text:
                text = part
            elif part.startswith("-"):
                text += f" - {part[1:].lstrip()}"
            else:
                text += f" + {part}"
        return text

    def _product(self, node: Node) -> tuple[str, int]:
        above, below, sign = [], [], ""
        for factor in node.args:
            if factor.op == "const" and factor.value == -1:
                sign = "" if sign else "-"
            elif factor.op == "pow" and factor.value == -1 and factor not in self.names:
                below.append(self._wrapped(factor.args[0], _POWER))
            elif factor.op == "const" and factor.value.is_negative:  # type: ignore[union-attr]
                text, own = self.number(-factor.value)  # type: ignore[operator]
                above.append(text if own >= _POWER else f"({text})")
                sign = "" if sign else "-"
            else:
                above.append(self._wrapped(factor, _POWER))
        text = " * ".join(above) or "1"
        if below:
            text += " / " + (below[0] if len(below) == 1 else f"({' * '.join(below)})")
        return sign + text, _SUM if sign else _PRODUCT

    def _power(self, node: Node) -> tuple[str, int]:
        exponent = int(node.value)  # type: ignore[call-overload]
        base = self._wrapped(node.args[0], _ATOM)
        if exponent == -1:
            return f"1 / {base}", _PRODUCT
        sign = " ** " if base.startswith("(") else "**"
        return (f"{base}{sign}{exponent}", _POWER) if exponent > 0 else (f"1 / {base}{sign}{-exponent}", _PRODUCT)


def functions_of(roots: tuple[Node, ...]) -> set[str]:
    """The names of all functions below some nodes."""
    return {str(node.value) for node in postorder(roots) if node.op == "call"}
