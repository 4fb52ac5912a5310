"""The tables of a kernel hierarchy, as rows of text: the report and the terminal show the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from symtensor.derivation.compare import Comparison, Verdict, validity_window, verdict
from symtensor.derivation.document import Cell, Math
from symtensor.derivation.formats import MISSING, number, with_error, zscore
from symtensor.derivation.hierarchy_run import HierarchyRun, Quantity, component_name, components, shown_depths
from symtensor.derivation.settings import PAGE

if TYPE_CHECKING:
    from rich.table import Table

_MARKS = {"rejected": "bad", "accepted": "good", "no power": "warn", "not rejected": ""}


def z_cell(value: float, level: float) -> Cell:
    """A z-score, marked where it exceeds `level`."""
    return Cell(zscore(value), "bad" if abs(value) > level else "")


def z_heading(run: HierarchyRun) -> str:
    """What the z column holds: the score of the one component, or the largest size over all components."""
    return "z" if run.count == 1 else "|z|"


def depth_z(run: HierarchyRun, comparison: Comparison) -> np.ndarray:
    """z per depth: signed for one input, the largest |z| over all components for several."""
    return comparison.z.reshape(len(run.t)) if run.count == 1 else comparison.per_depth()


def depth_rows(run: HierarchyRun, quantity: Quantity, depths: list[int], short: bool = False) -> list[list[Cell]]:
    """(theory, simulation, z) of the first component of `quantity` at `depths`; theory alone without simulation.

    Where there is a continuous-depth solution it stands after the theory.
    """
    values = run.values(quantity.theory)
    first = (0,) * (values.ndim - 1)
    estimate, comparison = run.estimate(quantity), run.comparisons().get(quantity.name)
    ode = (run.theory_ode or {}).get(quantity.ode)
    rows = []
    for depth in depths:
        place = (depth, *first)
        row = [Cell(number(float(values[place])))]
        if ode is not None and not short:
            row.append(Cell(number(float(ode.values[place]))))
        if estimate is not None and comparison is not None:
            text = with_error(float(estimate.mean[place]), float(estimate.se[place]), short)
            row += [Cell(text), z_cell(float(depth_z(run, comparison)[depth]), run.z_level)]
        rows.append(row)
    return rows


def quantity_headings(run: HierarchyRun, quantity: Quantity, short: bool = False) -> list[str]:
    """Headings of the columns that `depth_rows` returns."""
    names = ["theory"]
    if quantity.ode in (run.theory_ode or {}) and not short:
        names.append("ODE")
    if run.estimate(quantity) is not None:
        names += ["simulation", z_heading(run)]
    return names


def last_depth_rows(run: HierarchyRun, quantity: Quantity, limit: int = 40) -> list[list[str | Cell]]:
    """Every independent component (at most `limit`) at the last depth: name, theory, simulation, z."""
    values = run.values(quantity.theory)
    estimate, comparison = run.estimate(quantity), run.comparisons().get(quantity.name)
    rows: list[list[str | Cell]] = []
    for component in _independent(run.count, values.ndim - 1)[:limit]:
        place = (run.depth, *component)
        row: list[str | Cell] = [component_name(component), number(float(values[place]))]
        if estimate is not None and comparison is not None:
            row += [with_error(float(estimate.mean[place]), float(estimate.se[place]))]
            row += [z_cell(float(comparison.z[place]), run.z_level)]
        rows.append(row)
    return rows


def _independent(inputs: int, axes: int) -> list[tuple[int, ...]]:
    pairs = [(a, b) for a in range(inputs) for b in range(a, inputs)]
    if axes == 2:
        return pairs
    return [(*left, *right) for index, left in enumerate(pairs) for right in pairs[index:]]


def verdicts(run: HierarchyRun) -> dict[str, Verdict]:
    """The verdict on each quantity against its stated alternative; empty without simulation."""
    compared = run.comparisons()
    return {
        quantity.name: verdict(compared[quantity.name], run.alternative(quantity)[0])
        for quantity in run.quantities
        if quantity.name in compared
    }


def verdict_rows(run: HierarchyRun) -> list[tuple[Quantity, list[str | Cell | Math]]]:
    """(quantity, [max |z|, threshold, verdict, first |z| crossing, first relative crossing, alternative])."""
    compared, rows = run.comparisons(), []
    for quantity in run.quantities:
        if quantity.name not in compared:
            continue
        comparison = compared[quantity.name]
        alternative, description = run.alternative(quantity)
        result = verdict(comparison, alternative)
        window = validity_window(comparison, run.z_level, run.relative_level)
        crossings = [_place(run, index) for index in (window.first_z, window.first_relative)]
        cells: list[str | Cell | Math] = [zscore(result.max_abs_z), zscore(result.threshold)]
        cells += [Cell(result.outcome, _MARKS[result.outcome]), *crossings, Math(description)]
        rows.append((quantity, cells))
    return rows


def _place(run: HierarchyRun, index: int | None) -> str:
    return MISSING if index is None else f"{index} (t = {run.t[index]:.4g})"


def gain_rows(run: HierarchyRun, depths: list[int]) -> tuple[list[str], list[list[str]]]:
    """Variance gain of the control variates per depth: headings and rows; both empty if none is known."""
    gain = getattr(run.simulation, "gain", None)
    if gain is None:
        return [], []
    by_name = gain if isinstance(gain, Mapping) else {"gain": gain}
    known = {name: np.asarray(values, dtype=float) for name, values in by_name.items() if values is not None}
    rows = []
    for depth in depths:
        cells = [str(depth), f"{run.t[depth]:.4g}"]
        rows.append(cells + [number(_geometric(values[depth]), 3) for values in known.values()])
    return (["depth", "t", *known], rows) if known else ([], [])


def _geometric(values: np.ndarray) -> float:
    """The geometric mean over components: gains are ratios."""
    positive = np.asarray(values)[np.isfinite(values) & (np.asarray(values) > 0)]
    return float(np.exp(np.mean(np.log(positive)))) if positive.size else float("nan")


def terminal_table(run: HierarchyRun, width: int = PAGE) -> Table:
    """The depth table as a rich `Table`: quantities side by side, one below the other if `width` is too small."""
    from rich.console import Console

    main = [quantity for quantity in run.main if quantity.theory in run.theory]
    wide = _wide(run, _empty(run), main)
    return wide if Console(width=10 * PAGE).measure(wide).maximum <= width else _long(run, _empty(run), main)


def _empty(run: HierarchyRun) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    component = "" if run.count == 1 else f", component {component_name(components(run.count, 2)[0])}"
    what = "theory and simulation" if run.simulation is not None else "theory"
    if run.count > 1 and run.simulation is not None:
        component += " (|z|: largest over all components)"
    title = f"{escape(run.derivation.title)}: {what}{component}"
    style = {"title_justify": "left", "title_style": "bold"}
    return Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False, title=title, **style)  # type: ignore[arg-type]


def _wide(run: HierarchyRun, table: Table, main: list[Quantity]) -> Table:
    depths = shown_depths(run.depth, 12)
    for heading in ("depth", "t"):
        table.add_column(heading, justify="right", no_wrap=True)
    blocks = []
    for quantity in main:
        for name in quantity_headings(run, quantity, short=True):
            head = f"{quantity.text}" if name == "theory" else name
            table.add_column(head, justify="right", no_wrap=True)
        blocks.append(depth_rows(run, quantity, depths, short=True))
    for index, depth in enumerate(depths):
        cells = [cell for block in blocks for cell in block[index]]
        table.add_row(str(depth), f"{run.t[depth]:.3g}", *(_rich(cell) for cell in cells))
    return table


def _long(run: HierarchyRun, table: Table, main: list[Quantity]) -> Table:
    depths = shown_depths(run.depth, 8)
    for heading in ("depth", "t", "", *quantity_headings(run, main[0], short=True)):
        table.add_column(heading, justify="right", no_wrap=True)
    blocks = {quantity.text: depth_rows(run, quantity, depths, short=True) for quantity in main}
    for index, depth in enumerate(depths):
        for position, (text, block) in enumerate(blocks.items()):
            lead = (str(depth), f"{run.t[depth]:.3g}") if position == 0 else ("", "")
            table.add_row(*lead, text, *(_rich(cell) for cell in block[index]))
    return table


def _rich(cell: Cell) -> str:
    return f"[bold red]{cell.text}[/]" if cell.mark == "bad" else cell.text
