"""A matplotlib figure as SVG that stands inside an HTML page: deterministic bytes, no fonts needed, own identifiers.

Text and axes drawn in `INK` take the colour of the surrounding page, so one figure serves light and dark.
"""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#1a1d21"


def figure_svg(figure: Figure, prefix: str, label: str) -> str:
    """`figure` as an `<svg>` element; identifiers start with `prefix`, `label` is read to who cannot see it.

    The same figure gives the same bytes: the salt of matplotlib's identifiers is fixed and no date is written.
    """
    import matplotlib

    stream = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "symtensor", "svg.fonttype": "path"}):
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = re.sub(r'href="#', f'href="#{prefix}-', text)
    text = text.replace("url(#", f"url(#{prefix}-").replace(INK, "currentColor")
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text).replace("xlink:href", "href")
    opening = f'<svg role="img" aria-label="{escape(label)}" '
    return re.sub(r"\n\s*", "\n", text.replace("<svg ", opening, 1)).strip()
