"""A verification as text, Markdown, HTML and JSON values. The blind spots are part of every form."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from html import escape
from typing import Any

from symtensor.bounds import scale
from symtensor.verify.result import LevelResult, Verification

__all__ = ["html", "markdown", "text", "to_dict"]

_HEADER = ("level", "slope", "interval", "curvature", "slope at 4 n_max", "chi2/dof")
_WIDTH = 110


def text(result: Verification) -> str:
    """Plain text for terminals, at most 110 columns where words allow."""
    rows = [_HEADER, *map(_row, result.levels)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADER))]
    table = ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows] if result.levels else []
    lines = [f"claim    {_subject(result)}", f"verdict  {result.headline}", f"data     {_data(result)}", "", *table]
    for title, entries in _sections(result):
        lines += ["", f"{title}:", *(_wrapped(entry) for entry in entries)]
    return "\n".join(lines) + "\n"


def markdown(result: Verification) -> str:
    """Markdown with a table of the levels."""
    lines = [f"**Claim** {_subject(result)}", "", f"**Verdict** {result.headline}", "", _data(result)]
    if result.levels:
        lines += ["", "| " + " | ".join(_HEADER) + " |", "|" + "---|" * len(_HEADER)]
        lines += ["| " + " | ".join(_row(found)) + " |" for found in result.levels]
    for title, entries in _sections(result):
        lines += ["", f"**{title}**", "", *(f"- {entry}" for entry in entries)]
    return "\n".join(lines) + "\n"


def html(result: Verification, figure: bool) -> str:
    """An HTML fragment: everything escaped, no scripts, nothing fetched."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in _HEADER)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _row(found)) + "</tr>" for found in result.levels)
    parts = [
        '<div class="symtensor-verification">',
        f"<p><b>Claim</b> {escape(_subject(result))}</p>",
        f"<p><b>Verdict</b> {escape(result.headline)}</p>",
        f"<p>{escape(_data(result))}</p>",
    ]
    if result.levels:
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        if figure:
            parts.append(result.svg())
    for title, entries in _sections(result):
        parts.append(f"<p><b>{escape(title)}</b></p><ul>" + "".join(f"<li>{escape(entry)}</li>" for entry in entries) + "</ul>")
    return "\n".join([*parts, "</div>"])


def to_dict(result: Verification) -> dict[str, Any]:
    """All fields as JSON values; infinities become None."""
    return {"headline": result.headline, **_json(dataclasses.asdict(result))}


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _json(entry) for name, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [_json(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _subject(result: Verification) -> str:
    other = [name for name in scale(result.scale).sizes if name != "n"]
    return f"{result.label} = {result.claim}, {''.join(f'{name} = ' for name in other)}n -> oo"


def _data(result: Verification) -> str:
    low, high = min(result.samples), max(result.samples)
    count = f"{low}" if low == high else f"{low} to {high}"
    sizes = ", ".join(map(str, result.sizes)) if len(result.sizes) <= 12 else f"{result.sizes[0]}, .., {result.sizes[-1]}"
    looks = f", looks at {', '.join(map(str, result.looks))}" if len(result.looks) > 1 else ""
    seed = "" if result.seed is None else f", seed {result.seed}"
    return f"{len(result.sizes)} sizes ({sizes}), {count} samples each{looks}; norm {result.norm_status}{seed}"


def _row(found: LevelResult) -> tuple[str, ...]:
    side = "" if found.side == "exact" else f" ({found.side})"
    flag = " irregular" if found.irregular else ""
    return (
        f"q{100 * found.level:g}{side}",
        f"{found.slope:+.3f}",
        f"[{found.low:+.3f}, {found.high:+.3f}]",
        f"{found.curvature:+.3f} ± {found.curvature_se:.3f}",
        f"{found.extrapolated:+.3f}",
        f"{found.chi2_dof:.2f}{flag}",
    )


def _sections(result: Verification) -> Sequence[tuple[str, Sequence[str]]]:
    refused = [f"q{100 * entry.level:g}: {entry.reason}" for entry in result.refused]
    sections = (
        ("Why", result.reasons),
        ("Levels refused", refused),
        ("Warnings", result.warnings),
        ("What would change it", result.what_would_change_it),
        ("What this cannot see", result.blind_spots),
    )
    return [(title, entries) for title, entries in sections if entries]


def _wrapped(entry: str) -> str:
    """One entry as an indented item, words kept whole."""
    lines, line = [], "  -"
    for word in entry.split():
        if len(line) + 1 + len(word) > _WIDTH:
            lines.append(line)
            line = "   "
        line += f" {word}"
    return "\n".join([*lines, line])
