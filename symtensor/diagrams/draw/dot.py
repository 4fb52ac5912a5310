"""Diagrams for Graphviz: an undirected-looking digraph that keeps the styles of fields and the directions of lines."""

from __future__ import annotations

from symtensor.diagrams.draw.layout import layout
from symtensor.diagrams.draw.style import FieldStyle, halves, leg_text, vertex_marks
from symtensor.diagrams.graph import Graph

__all__ = ["dot", "dot_escape"]

_SHAPES = {
    "disc": "point, width=0.08", "square": 'square, style=filled, fillcolor=black, width=0.1, label=""',
    "circle": 'circle, width=0.1, label=""', "diamond": 'diamond, style=filled, fillcolor=black, width=0.14, label=""',
    "box": 'square, width=0.1, label=""',
}  # fmt: skip


def dot_escape(text: str) -> str:
    r"""A quoted DOT string in which nothing is special: backslashes and quotes are escaped, line breaks kept as \n.

    >>> print(dot_escape('a "b" \\N'))
    "a \"b\" \\N"
    """
    safe = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n").replace("\x00", "")
    return f'"{safe}"'


def dot(graph: Graph) -> str:
    """The diagram in the DOT language, with the layout's places as `pos` (kept by ``neato -n``).

    Directed lines have an arrow; response lines are dashed, auxiliary ones bold (Graphviz has no wavy lines), further
    fields dotted. The fields at the two ends stand in the attribute `fields`, the vertex's name in `tooltip`.
    """
    text = ["digraph diagram {", "  edge [dir=none];", "  node [fontsize=12];"]
    drawn = layout(graph)
    marks = vertex_marks(graph)
    for n, node in enumerate(graph.nodes):
        place = _place(drawn.positions[n])
        if node.is_leg:
            text.append(f"  n{n} [shape=plaintext, label={dot_escape(leg_text(graph.model, node))}, {place}];")
        else:
            text.append(f"  n{n} [shape={_SHAPES[marks[n]]}, tooltip={dot_escape(node.name)}, {place}];")
    for line in graph.lines:
        first, second = halves(graph.model, line)
        options = [f"fields={dot_escape('-'.join(line.fields))}", *_style(first, second, line.response)]
        if line.directed:
            options.append("dir=forward")
        text.append(f"  n{line.start} -> n{line.end} [{', '.join(options)}];")
    return "\n".join([*text, "}", ""])


def _place(z: complex) -> str:
    """The `pos` attribute, in points; adding 0 after rounding removes a negative zero."""
    x, y = (round(72 * value, 1) + 0.0 for value in (z.real, z.imag))
    return f'pos="{x},{y}!"'


def _style(first: FieldStyle, second: FieldStyle, response: bool) -> list[str]:
    if first.wavy or second.wavy:
        return ["style=bold"]
    if response or first.response:
        return ["style=dashed"]
    return ["style=dotted"] if first.dash or second.dash else []
