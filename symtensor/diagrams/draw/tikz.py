r"""Diagrams for LaTeX: a ``tikzpicture`` with a tikz-feynman ``feynman`` environment, every vertex at a place of its own.

The places come from the same layout as the SVG picture, so pdfLaTeX suffices (tikz-feynman's own placement needs LuaLaTeX).
Preamble: ``\usepackage[compat=1.1.0]{tikz-feynman}``. Ellis, Comput. Phys. Commun. 210, 103 (2017).
"""

from __future__ import annotations

import cmath
import math
from itertools import pairwise

from symtensor.diagrams.draw.geometry import Arc, Curve, Loop, bezier
from symtensor.diagrams.draw.layout import layout
from symtensor.diagrams.draw.style import GREEK, FieldStyle, halves, tilded, vertex_marks
from symtensor.diagrams.graph import Graph, Line, Node
from symtensor.diagrams.model import Model

__all__ = ["tex_escape", "tikz"]

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': r"\textquotedbl{}", "\n": " ", "\r": " ", "\t": " ",
}  # fmt: skip
_MARKS = {
    "disc": "dot", "square": "square dot", "circle": "empty dot", "diamond": "crossed dot", "box": "empty dot, shape=rectangle",
}  # fmt: skip
#: the dash patterns of the SVG styles, as TikZ options
_DASHES = {
    "": "plain", "4 3": "scalar", "9 4": "plain, dash pattern=on 7pt off 3pt", "1.5 3.5": "ghost",
    "9 3 2 3": "plain, dash pattern=on 7pt off 2pt on 1.5pt off 2pt", "14 4": "plain, dash pattern=on 11pt off 3pt",
    "9 3 2 3 2 3": "plain, dash pattern=on 7pt off 2pt on 1.5pt off 2pt on 1.5pt off 2pt",
}  # fmt: skip


def tex_escape(text: str) -> str:
    r"""The text with TeX's special characters escaped, other control characters dropped.

    >>> print(tex_escape("50% & x_1"))
    50\% \& x\_1
    """
    return "".join(_SPECIAL.get(c, c if c.isprintable() else "") for c in text)


def tikz(graph: Graph) -> str:
    r"""The diagram as a ``tikzpicture`` for tikz-feynman; place and style of everything as in the SVG picture."""
    if not graph.nodes:
        return "\\begin{tikzpicture}\n  \\node {$1$};\n\\end{tikzpicture}\n"
    drawn = layout(graph)
    marks = vertex_marks(graph)
    text = ["\\begin{tikzpicture}", "  \\begin{feynman}"]
    text += [_vertex(graph, n, drawn.positions[n], drawn.outward(n), marks.get(n, "")) for n in range(len(graph.nodes))]
    edges = []
    for k, (line, curve) in enumerate(zip(graph.lines, drawn.curves)):
        cuts = _cuts(graph.model, line, curve)
        names = [f"n{line.start}", *(f"m{k}{'abc'[i]}" for i in range(len(cuts) - 2)), f"n{line.end}"]
        for name, t in zip(names[1:-1], cuts[1:-1]):
            text.append(f"    \\vertex ({name}) at {_at(curve.point(t))};")
        first, second = halves(graph.model, line)
        for i, (t0, t1) in enumerate(pairwise(cuts)):
            style = first if (t0 + t1) / 2 < 0.5 else second
            arrow = line.directed and t0 < 0.5 <= t1
            edges.append(f"      ({names[i]}) -- [{_edge(style, curve, t0, t1, arrow)}] ({names[i + 1]})")
    text += ["    \\diagram* {", ",\n".join(edges), "    };"] if edges else []
    return "\n".join([*text, "  \\end{feynman}", "\\end{tikzpicture}", ""])


def _vertex(graph: Graph, n: int, place: complex, out: complex, mark: str) -> str:
    if mark:
        return f"    \\vertex [{_MARKS[mark]}] (n{n}) at {_at(place)} {{}};"
    label = f"label={{[label distance=0pt]{_angle(out)}:{{{_leg(graph.model, graph.nodes[n])}}}}}"
    return f"    \\vertex [{label}] (n{n}) at {_at(place)};"


def _at(z: complex) -> str:
    x, y = (f"{1.5 * value + 0.0:.3f}" for value in (z.real, z.imag))
    return f"({x.replace('-0.000', '0.000')}, {y.replace('-0.000', '0.000')})"


def _leg(model: Model, node: Node) -> str:
    if node.label is not None:
        return tex_escape(node.label)
    base = tilded(model, node.name)
    name = base or node.name
    symbol = f"\\{name}" if name in GREEK and name != "omicron" else name if len(name) == 1 else f"\\mathrm{{{tex_escape(name)}}}"
    return f"$\\tilde{{{symbol}}}$" if base else f"${symbol}$"


def _angle(z: complex) -> str:
    return f"{round(math.degrees(cmath.phase(z)), 1) % 360:g}"


def _cuts(model: Model, line: Line, curve: Curve) -> list[float]:
    """Where a line is cut into edges: at the middle if its halves differ, a circle or a teardrop also between."""
    first, second = halves(model, line)
    if isinstance(curve, Loop):
        return [0.0, 0.25, 0.5, 0.75, 1.0] if first != second else [0.0, 1 / 3, 2 / 3, 1.0]
    return [0.0, 0.5, 1.0] if first != second else [0.0, 1.0]


def _edge(style: FieldStyle, curve: Curve, t0: float, t1: float, arrow: bool) -> str:
    """The options of an edge; TikZ places control points at 0.3915 x looseness x distance from the ends."""
    options = ["photon" if style.wavy else _DASHES[style.dash]]
    if arrow:
        options.append(f"with arrow={min(0.98, (0.5 - t0) / (t1 - t0)):.2f}")
    if isinstance(curve, Arc) and curve.sagitta == 0:
        return ", ".join(options)
    a, b, c, d = bezier(curve, t0, t1)
    unit = 0.3915 * abs(d - a)
    options += [f"out={_angle(b - a)}", f"in={_angle(c - d)}"]
    options += [f"out looseness={abs(b - a) / unit:.3f}", f"in looseness={abs(c - d) / unit:.3f}"]
    return ", ".join(options)
