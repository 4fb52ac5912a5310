"""Log-log plot of the quantiles over the claimed scale. matplotlib is imported when a figure is made."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import numpy as np

from symtensor.verify.result import LevelResult, Verification
from symtensor.verify.sizes import upper_half

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["figure", "figure_svg"]

_COLOURS = ("#2f7fc1", "#d9822b", "#3a9a62", "#b05bb5")
_MARKERS = {"exact": "o", "lower": "^", "upper": "v"}
#: drawn in the colour of the surrounding page
_INK = "#1a1d21"


def figure(result: Verification) -> Figure:
    """Quantiles q_p(n)/f(n) with bands of two standard errors, slopes of the upper half, and the tolerance as a wedge.

    Raises ValueError if no level could be used.
    """
    from matplotlib.figure import Figure

    if not result.levels:
        raise ValueError("nothing to plot: every level was refused; see `refused` for the reasons")
    drawn = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = drawn.add_subplot()
    n = np.asarray(result.sizes, dtype=float)
    levels = sorted({found.level for found in result.levels})
    for found in result.levels:
        _draw_level(axes, n, found, _COLOURS[levels.index(found.level) % len(_COLOURS)])
    _draw_tolerance(axes, n, result)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("n", color=_INK)
    axes.set_ylabel("quantile / f(n)", color=_INK)
    axes.set_title(result.headline, fontsize=8, color=_INK)
    axes.tick_params(colors=_INK, which="both")
    for spine in axes.spines.values():
        spine.set_color(_INK)
    axes.legend(fontsize=8, frameon=False, labelcolor=_INK)
    return drawn


def _draw_level(axes: Axes, n: np.ndarray, found: LevelResult, colour: str) -> None:
    y, se = np.asarray(found.log_ratio), np.minimum(np.asarray(found.errors), 50.0)
    side = "" if found.side == "exact" else f" ({found.side})"
    label = f"q{100 * found.level:g}{side}: slope {found.slope:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
    axes.plot(n, np.exp(y), _MARKERS[found.side], color=colour, ms=4, label=label)
    axes.fill_between(n, np.exp(y - 2 * se), np.exp(y + 2 * se), color=colour, alpha=0.22, lw=0)
    top = upper_half(len(n))
    x, weight = np.log(n[top]), 1 / np.asarray(found.errors)[top] ** 2
    # the line of this slope that is nearest in the weights of the fit
    centre = np.average(y[top] - found.slope * x, weights=weight)
    axes.plot(n[top], np.exp(centre + found.slope * x), color=colour, lw=1.4)


def _draw_tolerance(axes: Axes, n: np.ndarray, result: Verification) -> None:
    first = result.levels[-1]
    top = upper_half(len(n))
    start = np.exp(first.log_ratio[top.start])
    growth = (n[top] / n[top][0]) ** result.delta
    axes.fill_between(
        n[top], start / growth, start * growth, color="#8a929c", alpha=0.18, lw=0, label=f"tolerance n^±{result.delta:.3f}"
    )  # fmt: skip


def figure_svg(drawn: Figure) -> str:
    """The figure as an `<svg>` element without dates; text and axes take the colour of the page around it."""
    import matplotlib

    stream = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "symtensor", "svg.fonttype": "path"}):
        drawn.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    content = stream.getvalue()
    content = re.sub(r"<metadata>.*?</metadata>", "", content[content.index("<svg") :], flags=re.DOTALL)
    return content.replace(_INK, "currentColor").strip()
