"""A report as one self-contained HTML page: it opens offline, needs no script, and nothing in it can become markup.

    doc = Document("Title", "subtitle")
    doc.heading("Result").paragraph("The variance $K_0$ grows.").equation(r"\\dot K_0 = Q(K_0)", "1")
    Path("report.html").write_text(doc.html(), encoding="utf-8")

Every method returns the document. Prose (paragraphs, list items, captions, notes) may hold inline mathematics between
dollar signs and code between backticks; table cells, definitions and code are taken literally unless marked `Math`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from symtensor.derivation.linebreak import LINE
from symtensor.derivation.mathml import inline, mathml
from symtensor.derivation.style import STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: columns of a formula below a drawing
CARD = 34
#: nothing is fetched, nothing is run: even a mistake elsewhere could not reach the network
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True, slots=True)
class Math:
    """Text of a table cell or definition in which `$..$` and backticks are interpreted; `mark` is good, bad or warn."""

    text: str
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A literal table cell with a mark (good, bad or warn) that colours it."""

    text: str
    mark: str = ""


class Document:
    """Builder of a report; `html()` is the page, `fragment()` the same without the page around it (notebooks)."""

    def __init__(self, title: str, subtitle: str = "") -> None:
        self.title = title
        self.subtitle = subtitle
        self._parts: list[str] = []
        self._contents: list[tuple[int, str, str, str]] = []
        self._counts = [0, 0]
        self._figures = 0
        self._tables = 0

    def heading(self, text: str, level: int = 2) -> Document:
        """A section heading; levels 2 and 3 are numbered and listed in the table of contents (2 only)."""
        if level not in (2, 3, 4):
            raise ValueError(f"heading level must be 2, 3 or 4, got {level}: the title is the only level 1")
        number = self._number(level)
        anchor = f"s{number.replace('.', '-')}" if number else ""
        label = f'<span class="number">{number}</span>' if number else ""
        place = f' id="{anchor}"' if anchor else ""
        self._parts.append(f"<h{level}{place}>{label}{inline(text)}</h{level}>")
        if number:
            self._contents.append((level, number, anchor, text))
        return self

    def _number(self, level: int) -> str:
        if level == 2:
            self._counts = [self._counts[0] + 1, 0]
            return str(self._counts[0])
        if level == 3 and self._counts[0]:
            self._counts[1] += 1
            return f"{self._counts[0]}.{self._counts[1]}"
        return ""

    def paragraph(self, text: str) -> Document:
        """A paragraph of prose."""
        return self._add(f"<p>{inline(text)}</p>")

    def equation(self, latex: str, label: str = "") -> Document:
        """A displayed equation with an optional label at the right margin."""
        mark = f'<span class="label">({escape(label)})</span>' if label else ""
        body = mathml(latex, display=True, line=LINE - max(len(label) - 8, 0))
        return self._add(f'<div class="equation"><div class="body">{body}</div>{mark}</div>')

    def items(self, texts: Iterable[str], ordered: bool = False) -> Document:
        """A list of prose items."""
        tag = "ol" if ordered else "ul"
        return self._add(f"<{tag}>" + "".join(f"<li>{inline(text)}</li>" for text in texts) + f"</{tag}>")

    def definitions(self, pairs: Iterable[tuple[str | Math, str | Math | Cell]]) -> Document:
        """Term and value pairs, for parameters and versions."""
        body = "".join(f"<dt>{_content(term)}</dt><dd>{_content(value)}</dd>" for term, value in pairs)
        return self._add(f"<dl>{body}</dl>")

    def table(
        self,
        header: Sequence[str | Math],
        rows: Iterable[Sequence[object]],
        caption: str = "",
        groups: Sequence[tuple[str | Math, int]] = (),
    ) -> Document:
        """A table; columns whose cells all look like numbers are set flush right.

        `groups` puts a line of spanning heads (text, number of columns) above `header`.
        """
        table = [[cell if isinstance(cell, (Math, Cell)) else Cell(str(cell)) for cell in row] for row in rows]
        if any(len(row) != len(header) for row in table):
            raise ValueError(f"every row must have {len(header)} cells, like the header")
        numeric = [_is_numeric([row[column].text for row in table]) for column in range(len(header))]
        spans = "".join(
            f'<th colspan="{span}"' + (' class="group"' if _content(text) else "") + f">{_content(text)}</th>"
            for text, span in groups
        )
        head = (f"<tr>{spans}</tr>" if groups else "") + _row("th", [_as_cell(text) for text in header], numeric)
        body = "".join(_row("td", row, numeric) for row in table)
        self._tables += bool(caption)
        title = f"<caption><b>Table {self._tables}.</b> {inline(caption)}</caption>" if caption else ""
        return self._add(f'<div class="table"><table>{title}<thead>{head}</thead><tbody>{body}</tbody></table></div>')

    def figure(self, figure: Figure, caption: str) -> Document:
        """A matplotlib figure as inline SVG, numbered, with its caption."""
        from symtensor.derivation.svg import figure_svg

        self._figures += 1
        drawing = figure_svg(figure, f"f{self._figures}", re.sub(r"[$`]", "", caption))
        title = f"<figcaption><b>Figure {self._figures}.</b> {inline(caption)}</figcaption>"
        return self._add(f"<figure>{drawing}{title}</figure>")

    def drawings(self, cards: Iterable[tuple[str, Sequence[str], str]]) -> Document:
        """A grid of pictures, each (SVG, lines of LaTeX below it, prose below that); the SVG is taken as it is."""
        parts = []
        for svg, latex, caption in cards:
            formula = "".join(f"<div>{mathml(line, display=True, line=CARD)}</div>" for line in latex)
            prose = f"<figcaption>{inline(caption)}</figcaption>" if caption else ""
            parts.append(f"<figure>{svg}{formula}{prose}</figure>")
        return self._add(f'<div class="cards">{"".join(parts)}</div>')

    def code(self, text: str) -> Document:
        """Literal text in a fixed-width font."""
        return self._add(f"<pre><code>{escape(text, quote=False)}</code></pre>")

    def note(self, text: str, kind: str = "info") -> Document:
        """A set-off remark; `kind` is info, warning, failure or success."""
        if kind not in ("info", "warning", "failure", "success"):
            raise ValueError(f"a note is info, warning, failure or success, not {kind!r}")
        return self._add(f'<div class="note {kind}"><p>{inline(text)}</p></div>')

    def check(self, passed: bool, name: str, statement: str, detail: str = "") -> Document:
        """One decided statement, with its verdict and the figures behind it."""
        word = "passed" if passed else "failed"
        more = f'<div class="detail">{inline(detail)}</div>' if detail else ""
        text = f"<b>{inline(name)}</b>: {inline(statement)}"
        return self._add(f'<div class="check {word}"><div class="mark">{word}</div><div>{text}{more}</div></div>')

    @contextmanager
    def details(self, summary: str) -> Iterator[Document]:
        """What is added inside the block is folded away behind `summary`."""
        self._parts.append(f"<details><summary>{inline(summary)}</summary>")
        try:
            yield self
        finally:
            self._parts.append("</details>")

    def fragment(self) -> str:
        """The document as one `<div>` with its style, for a notebook."""
        return f'<div class="symtensor"><style>{STYLE}</style>{self._head()}{"".join(self._parts)}</div>'

    def _head(self) -> str:
        subtitle = f'<p class="subtitle">{inline(self.subtitle)}</p>' if self.subtitle else ""
        return f"<h1>{inline(self.title)}</h1>{subtitle}"

    def html(self) -> str:
        """The complete page."""
        lines = [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{escape(_plain(self.title))}</title>\n<style>{STYLE}</style>\n</head>",
            f'<body class="symtensor">\n<main>\n{self._head()}',
            self._table_of_contents(),
            *self._parts,
            "</main>\n</body>\n</html>\n",
        ]
        return "\n".join(line for line in lines if line)

    def _table_of_contents(self) -> str:
        entries = [
            f'<li><a href="#{anchor}"><span class="number">{number}</span>{inline(text)}</a></li>'
            for level, number, anchor, text in self._contents
            if level == 2
        ]
        if len(entries) < 3:
            return ""
        return f'<nav class="contents" aria-label="Contents"><ol>{"".join(entries)}</ol></nav>'

    def _add(self, part: str) -> Document:
        self._parts.append(part)
        return self

    def _repr_html_(self) -> str:
        return self.fragment()


def _as_cell(value: str | Math) -> Math | Cell:
    return value if isinstance(value, Math) else Cell(value)


def _content(value: str | Math | Cell) -> str:
    if isinstance(value, Math):
        return inline(value.text)
    return escape(value.text if isinstance(value, Cell) else value, quote=False)


def _row(tag: str, cells: Sequence[Math | Cell], numeric: Sequence[bool]) -> str:
    parts = []
    for cell, right in zip(cells, numeric):
        classes = " ".join(name for name in ("n" if right else "", cell.mark) if name)
        parts.append(f'<{tag} class="{classes}">' if classes else f"<{tag}>")
        parts.append(_content(cell) + f"</{tag}>")
    return "<tr>" + "".join(parts) + "</tr>"


def _is_numeric(texts: Sequence[str]) -> bool:
    pattern = re.compile(r"[-+−]?(\d[\d.,]*([eE][-+−]?\d+)?|inf|nan|∞)(\s*±.*)?%?|[–—-]?")
    return bool(texts) and all(pattern.fullmatch(text.strip()) for text in texts)


def _plain(text: str) -> str:
    return re.sub(r"[$`\\{}]", "", text)
