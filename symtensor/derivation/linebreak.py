"""Long sums over several lines: browsers do not break MathML, and a formula that runs off the page is not read."""

from __future__ import annotations

from html import unescape
from xml.etree.ElementTree import Element, SubElement

#: characters, indices counted by `_SMALL`, that fit a line of the page
LINE = 66.0
_SMALL = 0.62
_SIGNS = ("+", "−", "-")
_RELATIONS = ("=", "≈", "≤", "≥", "→", "≡", "∼")


def break_lines(math: Element, line: float = LINE) -> Element:
    """`math` itself if it fits a line or has nothing to break at, else a table of lines aligned after the relation.

    Lines break before a sign (+ or -) of the outermost row, filled as far as they go.
    """
    row = _outer_row(math)
    parts = list(row)
    if sum(map(_width, parts)) <= line:
        return math
    head = next((index + 1 for index, part in enumerate(parts) if _text(part) in _RELATIONS), 0)
    lines = _fill(_terms(parts[head:]), line - sum(map(_width, parts[:head])))
    if len(lines) < 2:
        return math
    broken = Element("math", math.attrib)
    table = SubElement(broken, "mtable", {"displaystyle": "true"})
    for number, content in enumerate(lines):
        if number:
            content[0].set("form", "infix")  # a sign that begins a line is still set between two terms
        cells = SubElement(table, "mtr")
        SubElement(cells, "mtd", {"columnalign": "right"}).extend(parts[:head] if number == 0 else [])
        SubElement(cells, "mtd", {"columnalign": "left"}).extend(content)
    return broken


def _outer_row(math: Element) -> Element:
    """The innermost row that still holds the whole formula."""
    row = math
    while len(row) == 1 and row[0].tag.rpartition("}")[2] == "mrow":
        row = row[0]
    return row


def _terms(parts: list[Element]) -> list[list[Element]]:
    """`parts` cut before every binary sign."""
    terms: list[list[Element]] = [[]]
    for index, part in enumerate(parts):
        binary = _text(part) in _SIGNS and index > 0 and _text(parts[index - 1]) not in ("(", "[", "{", *_SIGNS)
        if binary and terms[-1]:
            terms.append([])
        terms[-1].append(part)
    return terms


def _fill(terms: list[list[Element]], room: float) -> list[list[Element]]:
    lines: list[list[Element]] = []
    used = 0.0
    for term in terms:
        width = sum(map(_width, term))
        if lines and used + width <= room:
            lines[-1] = lines[-1] + term
            used += width
        else:
            lines.append(list(term))
            used = width
    return lines


def _width(node: Element) -> float:
    """Rough width in characters: indices are small, a fraction is as wide as its wider part."""
    tag = node.tag.rpartition("}")[2]
    children = [_width(child) for child in node]
    if tag == "mfrac":
        return max(children)
    if tag in ("msub", "msup", "munder", "mover"):
        return children[0] + _SMALL * sum(children[1:])
    if tag in ("msubsup", "munderover"):
        return children[0] + _SMALL * max(children[1:])
    if tag == "mspace":
        return 0.5
    spaces = 1.2 if tag == "mo" and _text(node) in (*_SIGNS, *_RELATIONS) else 0.0
    return len(unescape(node.text or "")) + spaces + sum(children)


def _text(node: Element) -> str:
    return unescape(node.text or "")
