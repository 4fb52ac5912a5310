"""Many diagrams in one picture: a grid of equal cells."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice

from symtensor.diagrams.draw.svg import Picture, captioned, document, label, number, picture
from symtensor.diagrams.graph import Graph

__all__ = ["sheet"]

WIDEST = 240.0
HIGHEST = 200.0
PAGE = 1100.0
GAP = 10.0


def sheet(
    items: Iterable[tuple[Graph, str | None]], *, columns: int | None = None, title: str | None = None, limit: int = 200
) -> str:
    """An SVG document with a picture for each (diagram, caption), row by row, in the order given.

    A caption that starts with p/q is set as a fraction. Large pictures are reduced to the size of a cell. At most
    `limit` are drawn; the others are counted and a last line says how many there are. `columns` is chosen for a page of
    reading width if it is not given.
    Raises ValueError for a limit or a number of columns below 1.
    """
    if limit < 1 or (columns is not None and columns < 1):
        raise ValueError(f"a sheet needs a limit and columns of at least 1, got limit={limit}, columns={columns}")
    source = iter(items)
    cells = [(_fitted(picture(graph)), caption) for graph, caption in islice(source, limit)]
    left_over = sum(1 for _ in source)
    width = max((captioned(*cell).width for cell in cells), default=120.0) + GAP
    columns = columns or max(1, min(int(PAGE // width), math.ceil(math.sqrt(1.8 * len(cells)))))
    rows = [cells[k : k + columns] for k in range(0, len(cells), columns)]
    body, y = [], GAP
    if title:
        body.append(label(GAP, y + 18, title, 17, italic=False, anchor="start"))
        y += 34
    for row in rows:
        height = max(drawn.height for drawn, _ in row)
        done = [captioned(drawn, caption, height) for drawn, caption in row]
        for k, cell in enumerate(done):
            x = GAP / 2 + k * width + (width - cell.width) / 2
            body.append(f'<g transform="translate({number(x)} {number(y)})">{cell.body}</g>')
        y += max(cell.height for cell in done) + GAP
    if left_over:
        body.append(label(GAP, y + 14, f"... and {left_over} more", 15, italic=False, anchor="start"))
        y += 28
    text = max(len(title or "") * 9.0, 150.0 if left_over else 0.0) + 2 * GAP
    return document(Picture("".join(body), max(min(columns, max(len(cells), 1)) * width + GAP, text), y + GAP / 2))


def _fitted(cell: Picture) -> Picture:
    """The picture, reduced if it is larger than a cell."""
    factor = min(1.0, WIDEST / cell.width, HIGHEST / cell.height)
    if factor == 1.0:
        return cell
    return Picture(f'<g transform="scale({factor:.4f})">{cell.body}</g>', factor * cell.width, factor * cell.height)
