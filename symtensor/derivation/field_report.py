"""The report of a derivation in field theory: comparisons first, then curves, then the derivation with every diagram."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symtensor.derivation.derivation_document import add_citations, add_statement, add_steps
from symtensor.derivation.document import Cell, Document, Math
from symtensor.derivation.field_results import Compared, ComparisonTable, Curves, FieldRun, Panel
from symtensor.derivation.formats import number, with_error, zscore
from symtensor.derivation.plots import COLOURS, stacked_panels
from symtensor.derivation.provenance import software_citation
from symtensor.derivation.svg import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table as RichTable

__all__ = ["comparison_rows", "curves_figure", "field_document", "terminal_table"]

_STYLES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (2, 2)), (0, (5, 2, 1, 2)), (0, (1, 1)))


def field_document(run: FieldRun) -> Document:
    """The whole report of `run`; `.html()` is the file."""
    document = Document(run.derivation.title, run.derivation.summary)
    _add_summary(document, run)
    document.heading("What was asked")
    document.definitions((Math(f"`{key}`"), _shown(value)) for key, value in run.parameters.items())
    _add_results(document, run)
    add_statement(document, run.derivation)
    add_steps(document, run.steps, run.checks)
    _add_reproduction(document, run)
    add_citations(document, run.derivation.citations, software_citation())
    return document


def _add_summary(document: Document, run: FieldRun) -> None:
    for warning in run.warnings:
        document.note(f"Warning: {_literal(warning)}", "warning")
    if run.checks and all(result.outcome.passed for result in run.checks):
        document.note(f"The {len(run.checks)} checks of the derivation passed.", "success")
    for table in run.results.comparisons:
        document.paragraph(verdict_text(table))
    for remark in run.results.remarks:
        document.paragraph(remark)


def verdict_text(table: ComparisonTable) -> str:
    """What a comparison shows, in a sentence: whether the best approximation agrees, and which others the data reject."""
    best, count = table.approximations[-1], len(table.rows)
    agreeing = count - len(table.failures)
    numbers = "number" if count == 1 else "numbers"
    text = f"Against the {table.source}: {best} agrees in {agreeing} of {count} {numbers}"
    others = [name for name in table.told_apart() if name != best]
    if others:
        text += f"; the same numbers reject {', '.join(others)}"
    elif len(table.approximations) > 1:
        text += f"; they do not tell it from {', '.join(table.approximations[:-1])} (no power)"
    return f"{text}."


def _add_results(document: Document, run: FieldRun) -> None:
    results = run.results
    if not (results.comparisons or results.figures or results.tables):
        return
    document.heading("Results")
    for curves in results.figures:
        document.figure(curves_figure(curves), curves.caption)
    for table in results.comparisons:
        _add_comparison(document, table)
    for plain in results.tables:
        document.table(plain.header, plain.rows, plain.caption)


def _add_comparison(document: Document, table: ComparisonTable) -> None:
    header, rows = comparison_rows(table)
    cells = [[Math(f"${row.latex}$"), *line] for row, line in zip(table.rows, rows)]
    if any(row.formula for row in table.rows):
        header = ["", "formula", *header[1:]]
        cells = [[line[0], Math(f"${row.formula}$" if row.formula else ""), *line[1:]] for row, line in zip(table.rows, cells)]
    note = ""
    if not table.exact:
        note = (
            f" $z$ = (measured - theory)/standard error; an approximation is rejected beyond {table.threshold:.2f} standard errors "
            "(chance 5% for the whole table) plus the truncation, which is the size of the first order that is left out."
        )
    document.table(header, cells, table.caption + note)


def comparison_rows(table: ComparisonTable) -> tuple[list[str], list[list[Any]]]:
    """Headings, the first for the quantity, and the cells behind it; z-scores, or errors if the other route is exact."""
    names = table.approximations
    truncated = any(row.truncation for row in table.rows)
    header = ["", *names, table.source, *(f"{'error' if table.exact else 'z'}, {name}" for name in names)]
    header += [*(["truncation"] if truncated else []), "verdict"]
    rows = []
    for row in table.rows:
        cells: list[Any] = [number(value) for value in row.theory.values()]
        cells.append(with_error(row.measured, row.se) if row.se else number(row.measured, 8))
        cells += [_distance(table, row, name) for name in names]
        cells += [number(row.truncation, 2)] if truncated else []
        rows.append([*cells, _verdict(table, row)])
    return header, rows


def _distance(table: ComparisonTable, row: Compared, name: str) -> Cell:
    if table.exact:
        return Cell(number(row.theory[name] - row.measured, 2))
    return Cell(zscore(row.z(name)), "bad" if name in row.rejected(table.threshold) else "")


def _verdict(table: ComparisonTable, row: Compared) -> Cell:
    others = [name for name in row.rejected(table.threshold) if name != table.approximations[-1]]
    if not row.agrees(table.threshold):
        return Cell("rejected", "bad")
    if row.se and abs(row.z(table.approximations[-1])) > table.threshold:
        return Cell("within truncation" + (f", not {', '.join(others)}" if others else ""), "warn")
    if others or len(row.theory) == 1:
        return Cell("agrees" + (f", not {', '.join(others)}" if others else ""), "good")
    return Cell("agrees, no power", "warn")


def terminal_table(table: ComparisonTable) -> RichTable:
    """The comparison as a rich table: every approximation, the other route, the distance of the best one, the verdict."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table as RichTable

    title = table.title or re.sub(r"[$`]", "", table.caption)
    shown = RichTable(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False, title=escape(title), title_justify="left")
    best = table.approximations[-1]
    for at, name in enumerate(("", *table.approximations, table.source, "error" if table.exact else "z", "")):
        shown.add_column(name, justify="right" if at else "left", no_wrap=at == 0)
    for row in table.rows:
        values = [number(value, 5) for value in row.theory.values()]
        measured = with_error(row.measured, row.se, short=True) if row.se else number(row.measured, 6)
        verdict = _verdict(table, row).text.partition(", not")[0]
        shown.add_row(escape(row.name), *values, measured, _distance(table, row, best).text, verdict)
    others = [name for name in table.told_apart() if name != best]
    if others:
        shown.caption = f"the same numbers reject {', '.join(others)}"
        shown.caption_justify = "left"
    return shown


def curves_figure(curves: Curves) -> Figure:
    """The figure of `curves`: lines of the theory, measured points with 2 standard errors."""
    figure, frames = stacked_panels(len(curves.panels), 2.9)
    for axes, panel in zip(frames, curves.panels):
        _draw(axes, panel)
    frames[-1].set_xlabel(f"${curves.xlabel}$")
    return figure


def _draw(axes: Axes, panel: Panel) -> None:
    for at, (label, (x, y)) in enumerate(panel.lines.items()):
        style = {"color": COLOURS[at % len(COLOURS)], "ls": _STYLES[at % len(_STYLES)], "lw": 1.4, "zorder": 3}
        axes.plot(np.asarray(x), np.asarray(y), label=label, **style)
    for points in panel.points:
        style = {"fmt": "o", "ms": 3.2, "lw": 1, "capsize": 2, "color": INK, "alpha": 0.8, "zorder": 4}
        axes.errorbar(points.x, points.mean, 2 * points.se, label=points.label, **style)
    if panel.log:
        axes.set_yscale("log")
    axes.set_ylabel(f"${panel.ylabel}$", rotation=0, labelpad=24)
    if len(panel.lines) + len(panel.points) > 1:
        axes.legend(loc="best", fontsize=8, frameon=False, labelcolor=INK)


def _add_reproduction(document: Document, run: FieldRun) -> None:
    document.heading("How to repeat this")
    if run.command:
        document.paragraph("The same numbers come from:")
        document.code(run.command)
    document.definitions((f"time, {name}", f"{seconds:.2f} s") for name, seconds in run.timings.items())
    document.heading("Versions", 3)
    document.definitions(run.versions.items())
    with document.details("The generated module"):
        document.code(run.module_source)


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return ", ".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)


def _literal(text: str) -> str:
    """`text` from outside, so that prose takes its dollars and backticks literally."""
    return text.replace("$", r"\$").replace("`", "'")
