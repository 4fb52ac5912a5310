"""Pictures of diagrams: SVG, sheets of SVG, TikZ-Feynman and DOT.

>>> from symtensor.diagrams.graph import Graph
>>> from symtensor.diagrams.theories import theory
>>> svg(Graph(theory("phi4"), (), ())).count(">1<")
1
"""

from __future__ import annotations

from symtensor.diagrams.draw.dot import dot
from symtensor.diagrams.draw.layout import Layout, layout
from symtensor.diagrams.draw.sheet import sheet
from symtensor.diagrams.draw.svg import svg
from symtensor.diagrams.draw.tikz import tikz

__all__ = ["Layout", "dot", "layout", "sheet", "svg", "tikz"]
