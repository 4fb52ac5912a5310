"""The folder that `symtensor diagrams --out DIR` leaves: written beside it first, then moved in."""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import TextIO

from symtensor.diagrams.collection import DiagramSet
from symtensor.diagrams.diagram import Diagram
from symtensor.diagrams.errors import RequestError
from symtensor.diagrams.model_file import model_to_dict

__all__ = ["DRAWN", "check_folder", "write_document", "write_folder"]

#: So many diagrams are drawn one by one; the list and diagrams.json have all.
DRAWN = 200
ON_SHEET = 60
FOLDER = "diagrams"
_OURS = re.compile(r"\d{4,}\.(svg|tex|dot)\Z")

PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font-family: sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222; background: #fff; }}
h1 {{ font-size: 1.4em; }}
main {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(13em, 1fr)); gap: 1em; }}
figure {{ margin: 0; padding: .6em; border: 1px solid #ddd; border-radius: 4px; }}
img {{ width: 100%; height: 9em; object-fit: contain; }}
figcaption {{ font-size: .85em; overflow-wrap: anywhere; }}
code {{ font-size: .85em; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{summary}</p>
<main>
{figures}
</main>
</body>
</html>
"""


def check_folder(folder: Path) -> None:
    """Raise RequestError if results cannot go into `folder`, before any work is done."""
    if folder.exists() and not folder.is_dir():
        raise RequestError(f"--out {folder}: a file of that name is in the way; name a folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "diagrams.json").exists():
        raise RequestError(f"--out {folder}: the folder holds other files and no diagrams.json; name another folder")


def write_document(
    stream: TextIO, asked: DiagramSet, diagrams: Iterable[Diagram], limit: int | None, proof: str | None = None
) -> tuple[int, Fraction]:
    """Write the JSON document of the listed diagrams, one a line; returns their number and sum of weights.

    `complete` is false if `limit` cut the list off.
    """
    count, weight, complete = 0, Fraction(0), True
    request, model = json.dumps(str(asked.request)), json.dumps(model_to_dict(asked.request.model))
    stream.write(f'{{\n "request": {request},\n "model": {model},\n "diagrams": [')
    for diagram in diagrams:
        if limit is not None and count == limit:
            complete = False
            break
        entry = {
            "diagram": diagram.canonical, "symmetry_factor": diagram.symmetry_factor, "loops": diagram.loops,
            "orders": diagram.orders,
        }  # fmt: skip
        stream.write((",\n  " if count else "\n  ") + json.dumps(entry))
        count += 1
        weight += diagram.weight
    stream.write("\n ],\n" if count else "],\n")
    tail = {"count": count, "weight": str(weight), "complete": complete}
    tail |= {"verified": proof} if proof is not None else {}
    if not count and complete:
        tail["reason"] = asked.empty_reason or "the search found no diagram"
    stream.write(json.dumps(tail, indent=1)[2:] + "\n")
    return count, weight


def write_folder(
    folder: Path, asked: DiagramSet, diagrams: Iterable[Diagram], limit: int | None, proof: str | None = None
) -> tuple[int, Fraction]:
    """Write documents and pictures; an interrupt leaves `folder` as it was. Returns number and weight of the diagrams.

    `diagrams` are those of `asked`, which is asked again for the pictures.
    """
    check_folder(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _beside(folder) as work:
            with open(work / "diagrams.json", "w", encoding="utf-8") as stream:
                total = write_document(stream, asked, diagrams, limit, proof)
            _draw(work, asked, *total, limit)
            _move(work, folder)
    except OSError as error:
        raise RequestError(f"--out {folder}: cannot be written ({error.strerror or error})") from None
    return total


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """A temporary folder on the same file system, removed in the end."""
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _draw(work: Path, asked: DiagramSet, count: int, weight: Fraction, limit: int | None) -> None:
    (work / FOLDER).mkdir()
    figures = []
    drawn = min(DRAWN, count) if limit is None else min(DRAWN, count, limit)
    for number, diagram in enumerate(islice(asked, drawn), 1):
        name = f"{number:04d}"
        _write(work / FOLDER / f"{name}.svg", diagram.to_svg())
        _write(work / FOLDER / f"{name}.tex", diagram.to_tikz())
        _write(work / FOLDER / f"{name}.dot", diagram.to_dot())
        figures.append(_figure(name, diagram))
    _write(work / "sheet.svg", asked.sheet(min(ON_SHEET, drawn)))
    rest = f" The first {drawn} are drawn; diagrams.json has all {count}." if count > drawn else ""
    summary = f"{count} diagrams, sum of weights {weight}.{rest}"
    page = PAGE.format(title=html.escape(str(asked.request)), summary=summary, figures="\n".join(figures))
    _write(work / "index.html", page)


def _figure(name: str, diagram: Diagram) -> str:
    text = html.escape(diagram.canonical)
    links = f'<a href="{FOLDER}/{name}.tex">tex</a> <a href="{FOLDER}/{name}.dot">dot</a>'
    caption = f"{int(name)}: weight {diagram.weight} {links}<br><code>{text}</code>"
    return f'<figure><img src="{FOLDER}/{name}.svg" alt="{text}"><figcaption>{caption}</figcaption></figure>'


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _move(work: Path, folder: Path) -> None:
    """Move the finished files in; pictures of an earlier, longer list go, nothing else is touched."""
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    for path in (folder / FOLDER).iterdir():
        if _OURS.match(path.name) and not (work / FOLDER / path.name).exists():
            path.unlink()
    for path in sorted((work / FOLDER).iterdir()):
        os.replace(path, folder / FOLDER / path.name)
    for name in ("sheet.svg", "index.html", "diagrams.json"):
        os.replace(work / name, folder / name)
