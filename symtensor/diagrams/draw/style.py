"""How the lines of a model look: each half of a line takes the style of the field at its end."""

from __future__ import annotations

from dataclasses import dataclass

from symtensor.diagrams.graph import Graph, Line, Node
from symtensor.diagrams.model import Model

__all__ = ["GREEK", "MARKS", "FieldStyle", "field_style", "halves", "leg_text", "tilded", "vertex_marks"]

#: dash patterns (in pixels) of the first, second, ... field that is neither a response field nor auxiliary
PATTERNS = ("", "9 4", "1.5 3.5", "9 3 2 3", "14 4", "9 3 2 3 2 3")
RESPONSE = "4 3"
_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi omega"
).split()
GREEK: dict[str, str] = dict(zip(_NAMES, "αβγδεζηθικλμνξπρστυφχψω"))
#: marks of vertices that their lines do not tell apart
MARKS = ("disc", "square", "circle", "diamond", "box")


@dataclass(frozen=True, slots=True)
class FieldStyle:
    """`dash` is an SVG dash pattern ("" for a full line); `wavy` for an auxiliary field."""

    dash: str = ""
    wavy: bool = False
    response: bool = False


def field_style(model: Model, name: str) -> FieldStyle:
    """The style of a field: response fields dashed, auxiliary ones wavy, further fields by their place in the model."""
    value = model.field(name)
    if value.auxiliary:
        return FieldStyle(wavy=True)
    if value.response:
        return FieldStyle(RESPONSE, response=True)
    plain: list[set[str]] = []
    for other in model.fields:
        if other.auxiliary or other.response:
            continue
        # a complex field and its conjugate are one line, which an arrow directs
        pair = next((p for p in plain if other.name in p), None)
        if pair is None:
            pair = next((p for p in plain if other.conjugate in p), None)
        if pair is None:
            plain.append({other.name} | ({other.conjugate} if other.conjugate else set()))
        else:
            pair.add(other.name)
    place = next(k for k, pair in enumerate(plain) if name in pair)
    return FieldStyle(PATTERNS[place % len(PATTERNS)])


def halves(model: Model, line: Line) -> tuple[FieldStyle, FieldStyle]:
    """The styles of the half at `line.start` and of the half at `line.end`."""
    return field_style(model, line.fields[0]), field_style(model, line.fields[1])


def vertex_marks(graph: Graph) -> dict[int, str]:
    """A mark for each vertex; they differ only where two kinds of vertex of the model have the same fields in number."""
    same: dict[int, list[str]] = {}
    for vertex in graph.model.vertices:
        same.setdefault(vertex.valence, []).append(vertex.name)
    rank = {name: k for names in same.values() for k, name in enumerate(names)}
    return {n: MARKS[rank.get(graph.nodes[n].name, 0) % len(MARKS)] for n in graph.vertices}


def tilded(model: Model, name: str) -> str | None:
    """The field that the response field `name` belongs to, if its name is that field's with a t for the tilde (xt of x).

    >>> from symtensor.diagrams.theories import theory
    >>> tilded(theory("kpz"), "xt")
    'x'
    """
    names = {f.name for f in model.fields}
    return name[:-1] if name.endswith("t") and name[:-1] in names and model.field(name).response else None


def leg_text(model: Model, node: Node) -> str:
    """The text at a leg: its label, or the name of its field with Greek letters and tildes."""
    if node.label is not None:
        return node.label
    base = tilded(model, node.name)
    return GREEK.get(base, base) + "\u0303" if base else GREEK.get(node.name, node.name)
