"""A diagram as one line of text: its lines, each by its two ends.

    x:1-g0 g0-g0 g0-x:2

is a leg of field x labelled 1, joined to vertex g number 0, a self-loop there, and a leg labelled 2.

    ends        ``x:1`` a leg with its label (quoted as in ``x:"a b"`` unless of letters, digits and underscores); ``x`` a leg
                without a label, a new one each time; ``g0`` vertex number 0, of kind g; ``g3.0`` the same for a kind whose
                name ends in a digit
    lines       ``-`` a line without, ``>`` with a direction (from its start to its end); ``/`` hangs an amputated leg on
                a vertex, leg first
    fields      ``g0[u]-g1[v]`` where the model leaves open which fields are joined

The empty text is the empty diagram. Text written from a diagram and read back gives an isomorphic diagram: vertices and
lines keep their order, legs come in the order in which the text mentions them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from symtensor.diagrams.errors import DiagramError
from symtensor.diagrams.graph import Graph, Line, Node
from symtensor.diagrams.model import Model, Propagator
from symtensor.diagrams.validation import validate, vertex_named

__all__ = ["from_edge_string", "to_edge_string"]

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_PLAIN = re.compile(r"\w+\Z")
_END = rf'({_NAME})(?:\.([0-9]+)|:(\w+|"(?:[^"\\]|\\.)*"))?(?:\[({_NAME})\])?'
_LINE = re.compile(rf"{_END}([->/]){_END}(?:\s+|\Z)")
_NUMBERED = re.compile(r"(.*[^0-9])([0-9]+)\Z")


@dataclass(frozen=True, slots=True)
class _End:
    """One end of a line as written: its node, the number if it is a vertex, the fields possible or written there."""

    node: Node
    number: int | None
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """One line as written."""

    text: str
    start: _End
    sign: str
    end: _End


def to_edge_string(graph: Graph) -> str:
    """The diagram as one line of text.

    >>> from symtensor.diagrams.theories import theory
    >>> text = "x:1-g3.0 g3.0-g3.1 g3.0-g3.1 g3.1-x:2"
    >>> to_edge_string(from_edge_string(text, theory("phi3"))) == text
    True
    """
    numbers = {node: at for at, node in enumerate(graph.vertices)}
    return " ".join(line_text(graph, line, numbers) for line in graph.lines)


def from_edge_string(text: str, model: Model) -> Graph:
    """The diagram of `model` that a line of text describes.

    Raises: DiagramError quoting the line of the diagram that cannot be read, has no propagator or more than one possible
    one, and for all that `validate` refuses.
    """
    if not isinstance(text, str):
        raise DiagramError(f"a diagram is read from text such as x:1-g0, got {type(text).__name__}")
    pieces = list(_pieces(text, model))
    ends = [end for piece in pieces for end in (piece.start, piece.end)]
    legs = [end.node for end in ends if end.number is None]
    vertices = {end.number: end.node for end in ends if end.number is not None}
    for piece in pieces:
        for end in (piece.start, piece.end):
            if end.number is not None and end.node != vertices[end.number]:
                kinds = f"{end.node.name} and {vertices[end.number].name}"
                raise DiagramError(f"in {piece.text!r}: vertex number {end.number} is of two kinds, {kinds}")
    places = {number: len(legs) + at for at, number in enumerate(sorted(vertices))}
    next_leg = iter(range(len(legs)))
    lines: list[Line] = []
    for piece in pieces:
        start, end = (next(next_leg) if e.number is None else places[e.number] for e in (piece.start, piece.end))
        lines.append(_line(model, piece, start, end))
    return validate(Graph(model, (*legs, *(vertices[number] for number in sorted(vertices))), tuple(lines)))


def _pieces(text: str, model: Model) -> Iterator[_Piece]:
    at = len(text) - len(text.lstrip())
    while at < len(text):
        match = _LINE.match(text, at)
        if match is None:
            rest = text[at:].split()[0]
            raise DiagramError(f"{rest!r} is no line of a diagram; write two ends joined by -, > or /, as in x:1-g0 or g0>x:2")
        groups, quoted = match.groups(), match[0].strip()
        yield _Piece(quoted, _end(model, quoted, *groups[:4]), groups[4], _end(model, quoted, *groups[5:]))
        at = match.end()


def _end(model: Model, quoted: str, name: str, number: str | None, label: str | None, field: str | None) -> _End:
    is_field = any(f.name == name for f in model.fields)
    compact = _NUMBERED.match(name)
    if label is None and number is None and not is_field and compact is not None:
        name, number = compact[1], compact[2]
    try:
        node, fields = _node(model, name, number, label)
    except DiagramError as error:
        raise DiagramError(f"in {quoted!r}: {error}") from None
    if field is not None and field not in fields:
        raise DiagramError(f"in {quoted!r}: {node.kind} {name} has no leg of field {field!r}; it has {', '.join(fields)}")
    return _End(node, None if number is None else int(number), fields if field is None else (field,))


def _node(model: Model, name: str, number: str | None, label: str | None) -> tuple[Node, tuple[str, ...]]:
    """The node and the fields of its legs."""
    if number is not None:
        return Node("vertex", name), tuple(dict.fromkeys(vertex_named(model, name).legs))
    if all(f.name != name for f in model.fields):
        fields = ", ".join(f.name for f in model.fields)
        raise DiagramError(f"{name!r} is neither a leg (fields: {fields}) nor a vertex with its number, as in g0 or g3.0")
    return Node("leg", name, _unquoted(label)), (name,)


def _unquoted(label: str | None) -> str | None:
    if label is None or not label.startswith('"'):
        return label
    try:
        return json.loads(label)
    except ValueError:
        raise DiagramError(f"the label {label} is not a string in JSON's form") from None


def _line(model: Model, piece: _Piece, start: int, end: int) -> Line:
    found = _candidates(model, piece.start, piece.sign, piece.end, start == end)
    if len(found) != 1:
        given = f"{' or '.join(piece.start.fields)} {piece.sign} {' or '.join(piece.end.fields)}"
        known = ", ".join(p.name for p in model.propagators)
        wrong = "fits more than one line; write the fields, as in g0[x]-g1[x]" if found else "fits no line"
        raise DiagramError(f"{piece.text!r} ({given}) {wrong}; model {model.name!r} has {known}; > is for lines with a direction")
    fields, propagator = found[0]
    if propagator is None:
        return Line(start, end, fields, None)
    return Line(start, end, fields, propagator, piece.sign == ">", model.is_response(propagator))


def _candidates(model: Model, start: _End, sign: str, end: _End, loop: bool) -> list[tuple[tuple[str, str], Propagator | None]]:
    """The lines that the written text may mean; the two ends of a self-loop without direction are not told apart."""
    if sign == "/":
        hangs = start.number is None and end.number is not None
        return [((name, name), None) for name in start.fields if hangs and name in end.fields]
    found: dict[tuple[str, str], Propagator] = {}
    for propagator in model.propagators:
        tail = model.tail(propagator)
        for fields in ((propagator.first, propagator.second), (propagator.second, propagator.first)):
            suits = tail is None if sign == "-" else tail == fields[0]
            seen = fields in found or (loop and fields[::-1] in found)
            if suits and not seen and fields[0] in start.fields and fields[1] in end.fields:
                found[fields] = propagator
    return list(found.items())


def line_text(graph: Graph, line: Line, numbers: dict[int, int]) -> str:
    """One line as written, given the numbers of the vertices."""
    sign = "/" if line.propagator is None else ">" if line.directed else "-"
    ends = [_written(graph, node, numbers) for node in (line.start, line.end)]
    open_ends = [_end_of(graph, node, numbers) for node in (line.start, line.end)]
    if len(_candidates(graph.model, open_ends[0], sign, open_ends[1], line.is_self_loop)) > 1:
        ends = [text + ("" if end.number is None else f"[{field}]") for text, end, field in zip(ends, open_ends, line.fields)]
    return sign.join(ends)


def _end_of(graph: Graph, node: int, numbers: dict[int, int]) -> _End:
    value = graph.nodes[node]
    legs = (value.name,) if value.is_leg else vertex_named(graph.model, value.name).legs
    return _End(value, numbers.get(node), legs)


def _written(graph: Graph, node: int, numbers: dict[int, int]) -> str:
    value = graph.nodes[node]
    if value.is_leg:
        label = value.label
        return value.name if label is None else f"{value.name}:{label if _PLAIN.match(label) else json.dumps(label)}"
    compact = f"{value.name}{numbers[node]}"
    plain = not value.name[-1].isdigit() and all(f.name != compact for f in graph.model.fields)
    return compact if plain else f"{value.name}.{numbers[node]}"
