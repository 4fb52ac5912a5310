"""The figures of a kernel hierarchy against depth. Figures are plain objects: pyplot's global state is not touched.

matplotlib is imported when a figure is made, not when this module is.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from symtensor.derivation.compare import validity_window
from symtensor.derivation.hierarchy_run import HierarchyRun, Quantity, component_name, components
from symtensor.derivation.svg import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: four colours that differ in lightness and hue, readable on white and on black
COLOURS = ("#2f7fc1", "#d9822b", "#3a9a62", "#b05bb5")
_GREY = "#8a929c"
_WIDTH = 8.2
#: up to this many depths a simulation is drawn as points with error bars, beyond as a band
_POINTS = 40
_THEORY, _CONTINUOUS, _SIMULATED = "theory", "continuous depth", "simulation ± 2 s.e."


def hierarchy_figure(run: HierarchyRun) -> Figure:
    """K_0, V_4 and K_1 against depth: theory as lines, continuous depth dashed, simulation with 2 standard errors."""
    main = [quantity for quantity in run.main if quantity.theory in run.theory]
    figure, panels = stacked_panels(len(main), 2.5)
    for position, (axes, quantity) in enumerate(zip(panels, main)):
        _draw_quantity(axes, run, quantity)
        _legend(axes, run, explain=position == 0)
        axes.set_ylabel(f"${quantity.latex}$", rotation=0, labelpad=18)
    panels[-1].set_xlabel("$t$")
    return figure


def _draw_quantity(axes: Axes, run: HierarchyRun, quantity: Quantity) -> None:
    values = run.values(quantity.theory)
    ode = (run.theory_ode or {}).get(quantity.ode)
    estimate = run.estimate(quantity)
    for colour, component in zip(COLOURS, components(run.count, values.ndim - 1)):
        place = (slice(None), *component)
        label = _THEORY if run.count == 1 else component_name(component)
        if estimate is not None:
            _draw_estimate(axes, run.t, estimate.mean[place], estimate.se[place], colour, _SIMULATED)
        axes.plot(run.t, values[place], color=colour, lw=1.4, label=label, zorder=3)
        if ode is not None:
            axes.plot(
                run.t, ode.values[place], color=colour, alpha=0.8, lw=1, ls=(0, (4, 3)), label=_CONTINUOUS, zorder=4
            )
    _mark_window(axes, run, quantity)


def _legend(axes: Axes, run: HierarchyRun, explain: bool) -> None:
    """Components in every panel; what a line or band means only in the first (`explain`)."""
    handles, labels = axes.get_legend_handles_labels()
    kept = [index for index, label in enumerate(labels) if label not in labels[:index]]
    if not explain:
        kept = [index for index in kept if labels[index] not in (_SIMULATED, _CONTINUOUS, _THEORY)]
    if kept:
        columns = 2 if run.count > 1 else 1
        entries = [handles[index] for index in kept], [labels[index] for index in kept]
        axes.legend(*entries, loc="best", fontsize=8, frameon=False, labelcolor=INK, ncols=columns)


def _draw_estimate(axes: Axes, t: np.ndarray, mean: np.ndarray, se: np.ndarray, colour: str, label: str) -> None:
    if len(t) <= _POINTS:
        style: dict[str, Any] = {"fmt": "o", "ms": 3.2, "lw": 1, "capsize": 2, "alpha": 0.75, "zorder": 2}
        axes.errorbar(t, mean, 2 * se, color=colour, label=label, **style)
    else:
        axes.fill_between(t, mean - 2 * se, mean + 2 * se, color=colour, alpha=0.28, lw=0, label=label, zorder=1)


def _mark_window(axes: Axes, run: HierarchyRun, quantity: Quantity) -> None:
    """A thin vertical line where the theory leaves the simulation by the stated z level."""
    comparison = run.comparisons().get(quantity.name)
    if comparison is None:
        return
    first = validity_window(comparison, run.z_level, run.relative_level).first_z
    if first is not None:
        label = f"|z| > {run.z_level:g} from here"
        axes.axvline(float(run.t[first]), color=INK, lw=0.8, ls=(0, (1, 2)), label=label, zorder=0)


def z_figure(run: HierarchyRun) -> Figure:
    """Largest |z| over components per depth, with the stated level and the level corrected for the number of depths."""
    figure, (axes,) = stacked_panels(1, 2.9)
    compared = run.comparisons()
    drawn = [quantity for quantity in run.quantities if quantity.name in compared]
    thresholds = [compared[quantity.name].threshold() for quantity in drawn]
    colours = {quantity.name: colour for quantity, colour in zip(drawn, cycle((*COLOURS, INK)))}
    for quantity in drawn:
        largest = compared[quantity.name].per_depth()
        heights = np.where(np.isfinite(largest), largest, np.nan)
        marker = "o" if len(run.t) <= _POINTS or np.sum(np.isfinite(heights)) == 1 else ""
        style: dict[str, Any] = {"color": colours[quantity.name], "marker": marker, "ms": 3.2, "lw": 1.2}
        axes.plot(run.t, heights, label=f"${quantity.latex}$", **style)
    axes.axhline(run.z_level, color=INK, lw=0.8, ls=(0, (1, 2)))
    axes.axhline(max(thresholds, default=run.z_level), color=_GREY, lw=0.8, ls=(0, (4, 3)))
    axes.set_yscale("symlog", linthresh=2 * max(thresholds, default=run.z_level))
    axes.set_ylim(bottom=0)
    axes.set_ylabel("max |z|")
    axes.set_xlabel("$t$")
    axes.legend(loc="best", fontsize=8, frameon=False, labelcolor=INK, ncols=2)
    return figure


def residual_figure(run: HierarchyRun) -> Figure:
    """K_1 (simulated) - K_1 (theory) and its two summands, source and transport, first component."""
    assert run.residual is not None
    figure, (axes,) = stacked_panels(1, 2.9)
    place = (slice(None), 0, 0)
    for (name, values), colour in zip(residual_parts(run).items(), (INK, *COLOURS)):
        t = run.t[len(run.t) - len(values) :]
        axes.plot(t, values[place], color=colour, lw=1.3, label=name, marker="o" if len(t) <= _POINTS else "", ms=3)
    axes.axhline(0, color=_GREY, lw=0.6)
    axes.set_xlabel("$t$")
    axes.legend(loc="best", fontsize=8, frameon=False, labelcolor=INK)
    return figure


def residual_parts(run: HierarchyRun) -> dict[str, np.ndarray]:
    """total, source and transport of the K_1 residual; each with first axis 0..L or 1..L."""
    parts: dict[str, np.ndarray] = {}
    quantity = next((item for item in run.main if item.name == "K1"), None)
    estimate = run.estimate(quantity) if quantity else None
    if quantity is not None and estimate is not None:
        parts["total"] = np.asarray(estimate.mean) - run.values(quantity.theory)
    return {**parts, **{name: np.asarray(values) for name, values in (run.residual or {}).items()}}


def stacked_panels(count: int, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of `count` panels one above the other with a shared depth axis, in the page's ink."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height * count), layout="constrained")
    grid = figure.subplots(count, 1, sharex=True, squeeze=False)
    panels = [row[0] for row in grid]
    for axes in panels:
        axes.tick_params(colors=INK, labelsize=9, direction="in", length=3)
        axes.xaxis.label.set_color(INK)
        axes.yaxis.label.set_color(INK)
        axes.grid(color=_GREY, alpha=0.22, lw=0.5)
        axes.set_axisbelow(True)
        axes.margins(x=0.015)
        for side, spine in axes.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(INK)
            spine.set_linewidth(0.7)
    return figure, panels
