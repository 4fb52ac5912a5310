"""Long expressions over several lines, broken before operators."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["WIDTH", "Sum", "assignment", "call_lines", "tuple_text"]

WIDTH = 116
_BREAK = re.compile(r" (?=[+\-*/|&] )")


@dataclass(frozen=True, slots=True)
class Sum:
    """`prefix * (term + term ..)`; a term is text (a leading minus is its sign) or another sum."""

    prefix: str
    terms: tuple[str | Sum, ...]

    def flat(self) -> str:
        """On one line."""
        text = _signed([term if isinstance(term, str) else term.flat() for term in self.terms])
        if not self.prefix:
            return text
        return f"{self.prefix} * ({text})" if len(self.terms) > 1 else f"{self.prefix} * {text}"

    def lines(self, width: int) -> list[str]:
        """On as many lines as it takes."""
        flat = self.flat()
        if len(flat) <= width:
            return [flat]
        inner: list[str] = []
        room = width - 4 if self.prefix else width
        for position, term in enumerate(self.terms):
            sign, rest = _sign(term)
            head, *more = rest.lines(room - 2) if isinstance(rest, Sum) else _broken(rest, room - 2)
            inner += [head if position == 0 and not sign.strip("+ ") else f"{sign}{head}" if position else f"-{head}", *more]
        if not self.prefix:
            return inner
        return [f"{self.prefix} * (", *(f"    {line}" for line in inner), ")"]


def _sign(term: str | Sum) -> tuple[str, str | Sum]:
    if isinstance(term, str):
        return ("- ", term[1:]) if term.startswith("-") else ("+ ", term)
    return ("- ", Sum(term.prefix[1:], term.terms)) if term.prefix.startswith("-") else ("+ ", term)


def _signed(texts: list[str]) -> str:
    rest = (f" - {text[1:]}" if text.startswith("-") else f" + {text}" for text in texts[1:])
    return texts[0] + "".join(rest)


def _broken(text: str, width: int) -> list[str]:
    """Lines of one long expression; each continuation starts with an operator."""
    if len(text) <= width:
        return [text]
    lines: list[str] = []
    for piece in _BREAK.split(text):
        if lines and len(lines[-1]) + 1 + len(piece) <= width - 4:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return [lines[0], *(f"    {line}" for line in lines[1:])]


def assignment(name: str, value: str | Sum, width: int = WIDTH) -> list[str]:
    """`name = value`, or with the keyword `return` in place of `name =`."""
    opening = "return" if name == "return" else f"{name} ="
    flat = value if isinstance(value, str) else value.flat()
    if len(opening) + 1 + len(flat) <= width:
        return [f"{opening} {flat}"]
    if isinstance(value, Sum) and value.prefix:
        head, *rest = value.lines(width)
        return [f"{opening} {head}", *rest]
    inner = value.lines(width - 4) if isinstance(value, Sum) else _broken(value, width - 4)
    return [f"{opening} (", *(f"    {line}" for line in inner), ")"]


def call_lines(opening: str, parts: list[str], closing: str, width: int = WIDTH + 4) -> list[str]:
    """`opening part, part closing` on one line if it fits, else one part per line."""
    flat = opening + ", ".join(parts) + closing
    if len(flat) <= width:
        return [flat]
    return [opening, *(f"    {part}," for part in parts), closing]


def tuple_text(parts: list[str]) -> str:
    """A tuple as text; one element keeps its comma."""
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
