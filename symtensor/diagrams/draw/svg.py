"""Diagrams as SVG: one self-contained picture, dark lines on a light ground so that it reads in light and dark notebooks."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from symtensor.diagrams.draw.geometry import Arc, Curve, bezier
from symtensor.diagrams.draw.layout import Layout, layout
from symtensor.diagrams.draw.style import FieldStyle, halves, leg_text, vertex_marks
from symtensor.diagrams.graph import Graph

__all__ = ["Picture", "caption_text", "captioned", "document", "label", "number", "picture", "svg"]

UNIT = 58.0
INK = "#1a1a1a"
PAPER = "#ffffff"
FONT = "font-family=\"'STIX Two Text','Times New Roman',Times,serif\""
MARGIN = 14.0
CAPTION = 34.0
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Picture:
    """SVG elements for the area (0, 0, width, height), in pixels."""

    body: str
    width: float
    height: float


def svg(graph: Graph, *, caption: str | None = None, width: float | None = None, height: float | None = None) -> str:
    """The picture of a diagram as an SVG document.

    `caption` stands below it, a leading p/q as a fraction. The picture keeps its proportions; `width` and `height`
    (pixels) bound it. Directed lines carry an arrow; a response line is dashed at the response field's half (earlier)
    and solid at the other, with time running from right to left where possible; lines of auxiliary fields are wavy.
    """
    return document(captioned(picture(graph), caption), width, height)


def document(content: Picture, width: float | None = None, height: float | None = None) -> str:
    """A whole SVG document around a picture."""
    bounds = [given / own for given, own in ((width, content.width), (height, content.height)) if given]
    factor = min(bounds, default=1.0)
    w, h = number(content.width), number(content.height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(factor * content.width)}" '
        f'height="{number(factor * content.height)}" viewBox="0 0 {w} {h}" role="img">'
        f'<rect width="{w}" height="{h}" rx="4" fill="{PAPER}"/>{content.body}</svg>'
    )


def picture(graph: Graph) -> Picture:
    """The diagram, without the document around it; the empty diagram is 1."""
    return _diagram(graph) if graph.nodes else Picture(label(40, 35, "1", 24, italic=False), 80, 54)


def captioned(drawn: Picture, caption: str | None, height: float | None = None) -> Picture:
    """A picture, centred in `height` if that is given, with its caption below."""
    height = height or drawn.height
    width = drawn.width if caption is None else max(drawn.width, 12 + 7.5 * len(caption))
    shift = (width - drawn.width) / 2, (height - drawn.height) / 2
    body = f'<g transform="translate({number(shift[0])} {number(shift[1])})">{drawn.body}</g>' if any(shift) else drawn.body
    if caption is None:
        return Picture(body, width, height)
    return Picture(body + caption_text(caption, width / 2, height + 8), width, height + CAPTION)


def number(value: float) -> str:
    """A rounded number without a negative zero or needless digits."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _clean(text: str) -> str:
    """Text that XML can hold, escaped."""
    return escape(_CONTROL.sub("\ufffd", text))


def label(x: float, y: float, text: str, size: float = 15, italic: bool = True, anchor: str = "middle") -> str:
    slant = ' font-style="italic"' if italic else ""
    return (
        f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" {FONT} font-size="{number(size)}"{slant} '
        f'fill="{INK}">{_clean(text)}</text>'
    )


def caption_text(caption: str, x: float, y: float) -> str:
    """A caption centred at `x` with its top at `y`; a leading p/q becomes a fraction.

    >>> caption_text("1/12", 50, 10).count("<text")
    2
    """
    found = re.match(r"\s*(-?)(\d+)/(\d+)(.*)$", caption, re.DOTALL)
    if not found:
        return label(x, y + 15, caption, 14, italic=False)
    sign, top, bottom, rest = found.groups()
    bar = 7.0 * max(len(top), len(bottom)) + 5
    total = bar + 6.8 * len(rest) + (9 if sign else 0)
    middle = x - total / 2 + bar / 2 + (9 if sign else 0)
    parts = [
        label(middle, y + 8.5, top, 13, italic=False),
        f'<path d="M{number(middle - bar / 2)} {number(y + 12)}h{number(bar)}" stroke="{INK}" stroke-width="1"/>',
        label(middle, y + 24, bottom, 13, italic=False),
    ]
    if sign:
        parts.append(label(middle - bar / 2 - 6, y + 16, "−", 13, italic=False))
    if rest.strip():
        parts.append(label(middle + bar / 2 + 4, y + 16.5, rest.strip(), 14, italic=False, anchor="start"))
    return "".join(parts)


def _diagram(graph: Graph) -> Picture:
    drawn = layout(graph)
    left, bottom, right, top = drawn.box
    pad = MARGIN / UNIT
    for n in graph.legs:
        reach = 0.3 + 8.6 / UNIT * len(leg_text(graph.model, graph.nodes[n]))  # 8.6: width of a character
        tip = drawn.positions[n] + 0.24 * drawn.outward(n)
        wide = reach - 0.24
        left, right = min(left, tip.real - wide), max(right, tip.real + wide)
        bottom, top = min(bottom, tip.imag - 0.12), max(top, tip.imag + 0.12)
    pen = _Pen(complex(left - pad, top + pad))
    parts = [_line(pen, graph, k, curve) for k, curve in enumerate(drawn.curves)]
    marks = vertex_marks(graph)
    parts += [_vertex(pen, drawn.positions[n], marks[n], graph.nodes[n].name, n) for n in graph.vertices]
    parts += [_leg(pen, drawn, graph, n) for n in graph.legs]
    return Picture("".join(parts), (right - left + 2 * pad) * UNIT, (top - bottom + 2 * pad) * UNIT)


@dataclass(frozen=True, slots=True)
class _Pen:
    """From the layout's coordinates (y up) to pixels (y down)."""

    corner: complex

    def at(self, z: complex) -> tuple[float, float]:
        return (z.real - self.corner.real) * UNIT, (self.corner.imag - z.imag) * UNIT

    def xy(self, z: complex) -> str:
        x, y = self.at(z)
        return f"{number(x)} {number(y)}"

    def path(self, curve: Curve, t0: float = 0.0, t1: float = 1.0) -> str:
        """Path data of a part of a curve."""
        if isinstance(curve, Arc):
            part = curve if (t0, t1) == (0.0, 1.0) else curve.piece(t0, t1)
            if part.sagitta == 0:
                return f"M{self.xy(part.start)}L{self.xy(part.end)}"
            flags = f"{int(abs(2 * part.bend) > math.pi + 1e-9)} {int(part.sagitta > 0)}"
            return f"M{self.xy(part.start)}A{number(part.radius * UNIT)} {number(part.radius * UNIT)} 0 {flags} {self.xy(part.end)}"
        if curve.is_circle:
            radius = number(curve.reach / 2 * UNIT)
            stops = [t0, t1] if t1 - t0 <= 0.5 else [t0, (t0 + t1) / 2, t1]
            parts = (f"A{radius} {radius} 0 0 0 {self.xy(curve.point(t))}" for t in stops[1:])
            return f"M{self.xy(curve.point(t0))}" + "".join(parts)
        a, b, c, d = bezier(curve, t0, t1)
        return f"M{self.xy(a)}C{self.xy(b)} {self.xy(c)} {self.xy(d)}"

    def wave(self, curve: Curve, t0: float = 0.0, t1: float = 1.0) -> str:
        """A wavy line along a part of a curve, with a whole number of waves."""
        count = 2 * max(2, round(curve.length * (t1 - t0) / 0.25))
        text = [f"M{self.xy(curve.point(t0))}"]
        for k in range(count):
            middle, end = (t0 + (t1 - t0) * (k + part) / count for part in (0.5, 1.0))
            control = curve.point(middle) + curve.direction(middle) * 1j * (0.13 if k % 2 == 0 else -0.13)
            text.append(f"Q{self.xy(control)} {self.xy(curve.point(end))}")
        return "".join(text)

    def arrow(self, curve: Curve, t: float) -> str:
        """A filled arrow head along the curve."""
        point, along = curve.point(t), curve.direction(t)
        corners = (point + z * along for z in (0.085, -0.085 + 0.065j, -0.045, -0.085 - 0.065j))
        return f'<path d="M{"L".join(map(self.xy, corners))}Z" fill="{INK}"/>'


def _line(pen: _Pen, graph: Graph, index: int, curve: Curve) -> str:
    line = graph.lines[index]
    first, second = halves(graph.model, line)
    pieces = [(first, 0.0, 1.0)] if first == second else [(first, 0.0, 0.5), (second, 0.5, 1.0)]
    body = "".join(_stroke(pen, curve, style, t0, t1) for style, t0, t1 in pieces)
    if line.directed:
        body += pen.arrow(curve, 0.5)
    name = quoteattr(_CONTROL.sub("\ufffd", "-".join(line.fields)))
    return f'<g data-line="{index}" data-fields={name}>{body}</g>'


def _stroke(pen: _Pen, curve: Curve, style: FieldStyle, t0: float, t1: float) -> str:
    data = pen.wave(curve, t0, t1) if style.wavy else pen.path(curve, t0, t1)
    dash = f' stroke-dasharray="{style.dash}"' if style.dash else ""
    return f'<path d="{data}" fill="none" stroke="{INK}" stroke-width="1.5"{dash}/>'


def _vertex(pen: _Pen, place: complex, mark: str, name: str, node: int) -> str:
    x, y = pen.at(place)
    hollow = f'fill="{PAPER}" stroke="{INK}" stroke-width="1.5"'
    shape = {
        "disc": f'<circle cx="{number(x)}" cy="{number(y)}" r="3" fill="{INK}"/>',
        "circle": f'<circle cx="{number(x)}" cy="{number(y)}" r="3.6" {hollow}/>',
        "square": f'<path d="M{number(x - 3.3)} {number(y - 3.3)}h6.6v6.6h-6.6z" fill="{INK}"/>',
        "box": f'<path d="M{number(x - 3.3)} {number(y - 3.3)}h6.6v6.6h-6.6z" {hollow}/>',
        "diamond": f'<path d="M{number(x - 4.6)} {number(y)}l4.6 -4.6l4.6 4.6l-4.6 4.6z" fill="{INK}"/>',
    }[mark]
    return f'<g data-vertex="{node}"><title>{_clean(name)}</title>{shape}</g>'


def _leg(pen: _Pen, drawn: Layout, graph: Graph, node: int) -> str:
    """The label beyond the end of a leg."""
    text = leg_text(graph.model, graph.nodes[node])
    out = drawn.outward(node)
    x, y = pen.at(drawn.positions[node] + 0.14 * out)
    anchor = "start" if out.real > 0.35 else "end" if out.real < -0.35 else "middle"
    return f'<g data-leg="{node}">{label(x, y + 4.5 - 5 * out.imag, text, 15, anchor=anchor)}</g>'
