"""The sections of the report that belong to this derivation: truncations beside the exact theory, and where they fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from derivations.layered_network.diagnosis import WINDOW, Diagnosis, first_depth_off
from symtensor.derivation.document import Document, Math
from symtensor.derivation.formats import MISSING, number, with_error
from symtensor.derivation.hierarchy_run import shown_depths

__all__ = ["sections"]

NAMES = {"V4": "V_4", "K1": "K_1"}


def sections(diagnosis: Diagnosis, t: np.ndarray, simulation: Any) -> tuple[Callable[[Document], None], ...]:
    """What is added to the report, in order."""
    return (
        lambda document: _truncations(document, diagnosis, t, simulation),
        lambda document: _closure_error(document, diagnosis, t),
        lambda document: _activations(document, diagnosis),
        lambda document: _quadrature(document, diagnosis),
        lambda document: _limit(document, diagnosis),
        *((lambda document: _higher_order(document, diagnosis, t),) if diagnosis.exact.expansion.order > 1 else ()),
    )


def _first(values: np.ndarray, depth: int) -> float:
    return float(values[(depth, *(0,) * (values.ndim - 1))])


def _truncations(document: Document, found: Diagnosis, t: np.ndarray, simulation: Any) -> None:
    document.heading("Closures beside the exact theory")
    document.paragraph(
        "kernel-only is the published closure at converged expectations (first order in $dt$ where $\\alpha = 1$), one mode the "
        "exact theory truncated to Hermite degree 2 of the two-time covariances, (G, S) the hierarchy in which the fluctuations of "
        "$G$ and $S$ at one layer carry all memory, exact the sum of all diagrams at order $1/n$."
    )
    depths = shown_depths(len(t) - 1)
    for key, latex in NAMES.items():
        exact = getattr(found.exact.part, key)
        columns = {
            "kernel-only": getattr(found.closures["kernel_only"], key), "one mode": getattr(found.closures["one_mode"], key),
            "(G, S)": getattr(found.markov, key), "exact": exact,
        }  # fmt: skip
        estimate = None if simulation is None else getattr(simulation, key)
        rows = [
            [str(l), f"{t[l]:.4g}", *(number(_first(values, l)) for values in columns.values()),
             *([] if estimate is None else [with_error(_first(estimate.mean, l), _first(estimate.se, l))])]
            for l in depths
        ]  # fmt: skip
        header = ["depth", "t", *columns, *([] if estimate is None else ["simulation"])]
        document.table(header, rows, f"${latex}$ per depth, first component; the simulation is at finite $n$ and differs by "
                                     f"$O(1/n)$.")
        windows = [
            [name, _window(first_depth_off(values, exact), t)] for name, values in columns.items() if name != "exact"
        ]
        document.table(
            ["closure", f"off by more than {WINDOW:.0%} from"], windows,
            f"Validity of closures for ${latex}$ against the exact theory, largest component; a dash means nowhere.",
        )  # fmt: skip


def _window(depth: int | None, t: np.ndarray) -> str:
    return MISSING if depth is None else f"depth {depth} (t = {t[depth]:.4g})"


def _closure_error(document: Document, found: Diagnosis, t: np.ndarray) -> None:
    document.heading("What the error of the closure consists of")
    document.paragraph(
        "At order $1/n$ the theory is linear in the two-time covariances, and those are sums over Hermite degrees, so that "
        "kernel-only minus exact is a sum: what the explicit step leaves out (order $dt^2$ per layer), for $K_1$ what $V_4$ in "
        "place of "
        "$V_4 - w$ adds, and minus the contribution of every degree but 2. Odd degrees vanish for odd and even activations."
    )
    for key, latex in NAMES.items():
        parts = found.closure_error(key)
        total = getattr(found.closures["kernel_only"], key) - getattr(found.exact.part, key)
        rows = [
            [str(l), f"{t[l]:.4g}", number(_first(total, l), 4), *(number(_first(part, l), 4) for part in parts.values())]
            for l in shown_depths(len(t) - 1)
        ]
        header: list[str | Math] = ["depth", "t", "kernel-only - exact", *(_part_name(name) for name in parts)]
        document.table(header, rows, f"Error of the closure for ${latex}$ and its parts, first component.")


def _part_name(name: str) -> str | Math:
    return Math("$V_4$ for $V_4 - w$") if name.startswith("V_4") else name


def _activations(document: Document, found: Diagnosis) -> None:
    document.heading("Other activations in the same network")
    rows = []
    for row in found.rows:
        if row.failure:
            rows.append([row.name, *[MISSING] * 9])
            continue
        cells = [number(row.K0)]
        for key in NAMES:
            closures = (row.closures["kernel_only"], row.closures["one_mode"], row.markov, row.exact)
            cells += [number(_first(getattr(each, key), -1)) for each in closures]
        rows.append([row.name, *cells])
    header: list[str | Math] = ["activation", Math("$K_0$"), *["kernel-only", "one mode", "(G, S)", "exact"] * 2]
    groups: list[tuple[str | Math, int]] = [("", 2), (Math("$V_4$"), 4), (Math("$K_1$"), 4)]
    rows = [row[: len(header)] + [MISSING] * (len(header) - len(row)) for row in rows]
    document.table(header, rows, "Last layer, first input alone.", groups=groups)
    document.items(f"{row.name}: {row.failure}".replace("$", r"\$").replace("`", "'") for row in found.rows if row.failure)


def _quadrature(document: Document, found: Diagnosis) -> None:
    document.heading("The effect of 32-point quadrature")
    document.paragraph(
        "The published numbers use 32 Gauss-Hermite nodes. The closure evaluated with them differs from the closure itself; "
        "what is "
        "left to the exact theory is the error of the closure. Derivatives are taken inside the expectation for smooth "
        "activations, and "
        "by parts for those with a kink."
    )
    rows = []
    for row in found.rows:
        if row.gauss_hermite is None:
            continue
        nodes, converged = row.gauss_hermite, row.closures["kernel_only"]
        cells = []
        for key in NAMES:
            values = [_first(getattr(each, key), -1) for each in (nodes, converged, row.exact)]
            cells += [number(value) for value in values] + [_share(values)]
        rows.append([row.name, *cells])
    header = ["activation", *["32 nodes", "converged", "exact", "share"] * 2]
    groups: list[tuple[str | Math, int]] = [("", 1), (Math("$V_4$"), 4), (Math("$K_1$"), 4)]
    caption = (
        "Kernel-only closure with 32 nodes and converged, last layer, first input; share: of the deviation from exact due to "
        "quadrature."
    )
    document.table(header, rows, caption, groups=groups)


def _share(values: list[float]) -> str:
    nodes, converged, exact = values
    parts = abs(nodes - converged), abs(converged - exact)
    return f"{parts[0] / sum(parts):.0%}" if sum(parts) > 0 else MISSING


def _limit(document: Document, found: Diagnosis) -> None:
    document.heading("Continuous depth")
    limit = found.limit
    if limit.failure:
        document.note(limit.failure[0].upper() + limit.failure[1:] + ".", "info")
        return
    steps = ", ".join(f"{step:.4g}" for step in limit.steps)
    document.paragraph(f"The exact theory at $dt$ = {steps}, extrapolated to $dt \\to 0$ at fixed $t$, with its estimated error.")
    rows = []
    for l in shown_depths(len(limit.t) - 1, 10):
        pairs = ((_first(limit.arrays[name], l), _first(limit.arrays[f"{name}_error"], l)) for name in ("K0", "V4", "K1"))
        rows.append([f"{limit.t[l]:.4g}", *(with_error(value, error) for value, error in pairs)])
    document.table(["t", Math("$K_0$"), Math("$V_4$"), Math("$K_1$")], rows, "Exact theory in continuous depth, first component.")


def _higher_order(document: Document, found: Diagnosis, t: np.ndarray) -> None:
    document.heading("Beyond order $1/n$")
    arrays = found.exact.arrays()
    names = {"K1": "K_1", "K2": "K_2", "V4": "V_4", "V4_1": "V_{4,1}", "kappa3": r"n^2 \kappa_3"}
    rows = [
        [str(l), f"{t[l]:.4g}", *(number(_first(arrays[name], l)) for name in names)] for l in shown_depths(len(t) - 1)
    ]
    caption = (
        "$E\\,G = K_0 + K_1/n + K_2/n^2$, $n\\,\\mathrm{Cov}\\,G = V_4 + V_{4,1}/n$, and the leading third cumulant, by the "
        "diagrams "
        f"counted above: {'; '.join(total.title for total in found.exact.expansion.terms)}."
    )
    document.table(["depth", "t", *(Math(f"${latex}$") for latex in names.values())], rows, caption)
