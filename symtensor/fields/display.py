"""How a diagram sum shows itself in a notebook: each diagram drawn above its term, order by order."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import sympy as sp

if TYPE_CHECKING:
    from symtensor.fields.diagram_sum import DiagramSum
    from symtensor.fields.term import Term

__all__ = ["html"]

SHOWN = 60
_GRID = "display:grid;grid-template-columns:repeat(auto-fill,minmax(16em,1fr));gap:1em"
_CARD = "margin:0;padding:.6em;border:1px solid #ddd;border-radius:4px;text-align:center"


def html(total: DiagramSum) -> str:
    """The sum as HTML with formulas between dollar signs, which notebooks typeset."""
    parts = [f"<div><p><b>{escape(total.title)}</b></p>"]
    shown = 0
    for loops, part in total.by_order().items():
        if not len(part):
            continue
        cards = [_card(term) for term in part if (shown := shown + 1) <= SHOWN]
        parts.append(f"<p>{loops} loops: {len(part)} diagrams, $\\displaystyle {sp.latex(part.expr - part.saddle)}$</p>")
        parts.append(f'<div style="{_GRID}">{"".join(cards)}</div>')
    if shown > SHOWN:
        parts.append(f"<p>The first {SHOWN} of {shown} diagrams are drawn.</p>")
    if not shown:
        parts.append(f"<p>No diagram: {escape(total.empty_reason or 'none exists')}.</p>")
    parts.append(f"<p>Sum: $\\displaystyle {sp.latex(total.expr)}$</p></div>")
    return "".join(parts)


def _card(term: Term) -> str:
    caption = f"$\\displaystyle {term.latex()}$<br>$= {sp.latex(term.expr)}$"
    return f'<figure style="{_CARD}">{term.diagram.to_svg()}<figcaption>{caption}</figcaption></figure>'
