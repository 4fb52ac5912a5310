"""The report of a kernel hierarchy: what was asked, what was derived, what came out, and where it stops holding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symtensor.derivation.compare import FAMILY_LEVEL, POWER
from symtensor.derivation.derivation_document import add_citations, add_statement, add_steps
from symtensor.derivation.document import Cell, Document, Math
from symtensor.derivation.formats import number
from symtensor.derivation.hierarchy_run import HierarchyRun, Quantity, component_name, components, shown_depths
from symtensor.derivation.hierarchy_tables import (
    depth_rows,
    gain_rows,
    last_depth_rows,
    quantity_headings,
    verdict_rows,
    z_heading,
)
from symtensor.derivation.model import CheckResult, run_checks
from symtensor.derivation.plots import hierarchy_figure, residual_figure, residual_parts, z_figure
from symtensor.derivation.provenance import software_citation

_INCREMENTS = (
    ("V4_source", "$V_4$ source"),
    ("V4_transport", "$V_4$ transport"),
    ("K1_source", "$K_1$ source"),
    ("K1_transport", "$K_1$ transport"),
)


def hierarchy_document(run: HierarchyRun) -> Document:
    """The whole report of `run` as a document; `.html()` is the file."""
    checks = run_checks(run.steps) if run.checks is None else run.checks
    document = Document(run.derivation.title, _subtitle(run))
    _add_summary(document, run, checks)
    _add_question(document, run)
    _add_results(document, run)
    if run.simulation is not None:
        _add_comparison(document, run)
        _add_residual(document, run)
    for add in run.sections:
        add(document)
    _add_numerics(document, run)
    add_statement(document, run.derivation)
    add_steps(document, run.steps, checks)
    _add_reproduction(document, run)
    add_citations(document, run.derivation.citations, software_citation())
    return document


def _subtitle(run: HierarchyRun) -> str:
    known = {key: run.parameters.get(key) for key in ("activation", "depth", "width", "samples")}
    inputs = "one input" if run.count == 1 else f"{run.count} inputs"
    parts = [f"{known['activation']}"] if known["activation"] else []
    parts += [inputs, f"{run.depth} layers"]
    if run.simulation is not None and known["width"] and known["samples"]:
        parts.append(f"compared with {known['samples']} simulated networks of width {known['width']}")
    elif run.simulation is None:
        parts.append("theory only")
    return ", ".join(parts).replace("$", r"\$").replace("`", "'")


def _add_summary(document: Document, run: HierarchyRun, checks: Sequence[CheckResult]) -> None:
    """Warnings, failed checks and verdicts first: a reader who stops here has not been misled."""
    for warning in run.warnings:
        document.note(f"Warning: {_literal(warning)}", "warning")
    if run.quadrature.get("converged") is False:
        error = _figure(run.quadrature.get("error"))
        document.note(
            f"The quadrature rule {_literal(str(run.quadrature.get('rule')))} is not converged: its relative error is "
            f"{error}. Every theory number below carries this error.",
            "failure",
        )
    failed = [result for result in checks if not result.outcome.passed]
    for result in failed:
        document.note(f"Step {result.step} ({result.title}): the check {result.check.name} failed.", "failure")
    if checks and not failed:
        steps = len({result.step for result in checks})
        document.note(f"Derivation steps with checks: {steps}; checks: {len(checks)}, all passed.", "success")
    if run.simulation is None:
        document.note("No simulation was asked for (`--samples 0`): the numbers below are theory only.")
        return
    document.items(_sentence(quantity, cells) for quantity, cells in verdict_rows(run))


def _sentence(quantity: Quantity, cells: Sequence[str | Cell | Math]) -> str:
    largest, threshold, outcome, _, _, alternative = (cell if isinstance(cell, str) else cell.text for cell in cells)
    figures = f"largest |z| {largest}, threshold {threshold}"
    meanings = {
        "rejected": f"the simulation rejects it ({figures})",
        "accepted": f"accepted ({figures}); the same data would have rejected: {alternative}",
        "no power": f"no power: the standard errors are too large to tell it from: {alternative} ({figures})",
        "not rejected": f"not rejected ({figures})",
    }
    return f"${quantity.latex}$ ({quantity.meaning}): {meanings[outcome]}."


def _add_question(document: Document, run: HierarchyRun) -> None:
    document.heading("What was asked")
    pairs = [(Math(f"`{key}`"), _shown(value)) for key, value in run.parameters.items()]
    document.definitions([*pairs, ("input data", run.inputs)])
    if run.count > 1 and run.labels:
        document.paragraph("Inputs, numbered as in the tables:")
        document.items((_literal(label) for label in run.labels[:50]), ordered=True)
    kernel = run.values(run.main[0].theory)[0]
    if run.count > 1:
        shown = min(run.count, 8)
        header = ["", *(str(index + 1) for index in range(shown))]
        rows = [[str(a + 1), *(number(float(kernel[a, b]), 5) for b in range(shown))] for a in range(shown)]
        document.table(header, rows, f"Input kernel $K^0${'' if shown == run.count else f' (first {shown} inputs)'}.")


def _add_results(document: Document, run: HierarchyRun) -> None:
    document.heading("Theory and simulation" if run.simulation is not None else "Theory")
    document.figure(hierarchy_figure(run), _figure_caption(run))
    main = [quantity for quantity in run.main if quantity.theory in run.theory]
    depths = shown_depths(run.depth)
    for quantity in main:
        component = component_name(components(run.count, run.values(quantity.theory).ndim - 1)[0])
        rows = [
            [str(depth), f"{run.t[depth]:.4g}", *cells]
            for depth, cells in zip(depths, depth_rows(run, quantity, depths))
        ]
        where = "" if run.count == 1 else f", component {component}"
        scores = (
            f"; {z_heading(run)}: largest over all components" if run.count > 1 and run.simulation is not None else ""
        )
        errors = "" if run.simulation is None else " Simulated values with standard error."
        caption = f"${quantity.latex}$ per depth: {quantity.meaning}{where}{scores}.{errors}"
        document.table(["depth", "t", *quantity_headings(run, quantity)], rows, caption)
    if len(depths) <= run.depth:
        document.paragraph(f"{len(depths)} of {run.depth + 1} depths are shown; all are in the data file.")
    if run.count > 1:
        _add_components(document, run)
    _add_increments(document, run, depths)


def _figure_caption(run: HierarchyRun) -> str:
    names = ", ".join(f"${quantity.latex}$" for quantity in run.main if quantity.theory in run.theory)
    text = f"{names} against depth time $t$. Lines: theory."
    if run.theory_ode:
        text += " Dashed: continuous depth, a separate approximation of the same recursion."
    if run.simulation is not None:
        text += " Points or bands: simulation, mean ± 2 standard errors."
    if run.count > 1:
        text += " Colours: components, labelled by input numbers."
    return text


def _add_components(document: Document, run: HierarchyRun) -> None:
    with document.details(f"All independent components at the last depth ({run.depth})"):
        for quantity in run.main:
            if quantity.theory in run.theory:
                headings = ["component", "theory", *([] if run.simulation is None else ["simulation", "z"])]
                caption = f"${quantity.latex}$ at depth {run.depth} (at most 40 components; all are in the data file)."
                document.table(headings, last_depth_rows(run, quantity), caption)


def _add_increments(document: Document, run: HierarchyRun, depths: Sequence[int]) -> None:
    known = [(key, title) for key, title in _INCREMENTS if key in run.theory]
    if not known:
        return
    with document.details("One layer's increments in the theory: source and transport"):
        rows = []
        for depth in depths:
            arrays = [run.values(key) for key, _ in known]
            cells = [number(float(a[(depth, *(0,) * (a.ndim - 1))])) if depth < len(a) else "" for a in arrays]
            rows.append([str(depth), *cells])
        caption = "Terms of the step from each depth to the next, first component."
        document.table(["depth", *(Math(title) for _, title in known)], rows, caption)


def _add_comparison(document: Document, run: HierarchyRun) -> None:
    document.heading("Where the theory holds")
    document.paragraph(
        "$z$ is (simulation - theory) / standard error. A theory is rejected where the largest |z| passes the "
        f"threshold that as many standard normal numbers pass with probability {FAMILY_LEVEL:.0%} (Bonferroni; "
        "neighbouring depths are correlated, so the true probability is smaller). It is accepted only if the same data "
        f"would have rejected the stated alternative with probability {POWER:.0%}; otherwise it has no power."
    )
    rows = [[Math(f"${quantity.latex}$"), *cells] for quantity, cells in verdict_rows(run)]
    header = [
        "", "max |z|", "threshold", "verdict", f"|z| > {run.z_level:g} from depth",
        f"error > {run.relative_level:.0%} from depth", "alternative",
    ]  # fmt: skip
    document.table(header, rows, "Verdicts and validity window; a dash means nowhere up to the last depth.")
    document.figure(
        z_figure(run),
        f"Largest |z| over components at each depth. Dotted: the stated level {run.z_level:g}. Dashed: the level "
        "corrected for the number of comparisons.",
    )


def _add_residual(document: Document, run: HierarchyRun) -> None:
    if run.residual is None:
        return
    document.heading("Where the error of $K_1$ comes from")
    document.paragraph(
        "The residual $K_1^{\\mathrm{sim}} - K_1^{\\mathrm{theory}}$ at a depth is the sum of what its last layer adds "
        "(source: the simulated minus the modelled $U_1$, times $\\Delta t\\, C_W$) and of what was carried over from "
        "the layer before (transport: the residual there, multiplied by $\\alpha^2 + \\Delta t\\, \\chi$)."
    )
    document.figure(residual_figure(run), "Residual of $K_1$ and its two parts, first component.")
    parts = residual_parts(run)
    rows = []
    for depth in shown_depths(run.depth):
        cells = []
        for values in parts.values():
            index = depth - (len(run.t) - len(values))
            cells.append(number(float(values[(index, *(0,) * (values.ndim - 1))]), 4) if index >= 0 else "")
        rows.append([str(depth), f"{run.t[depth]:.4g}", *cells])
    document.table(["depth", "t", *parts], rows, "Residual of $K_1$ per depth, first component.")


def _add_numerics(document: Document, run: HierarchyRun) -> None:
    document.heading("Numerical quality")
    pairs: list[tuple[str | Math, str | Math | Cell]] = [
        ("quadrature rule", str(run.quadrature.get("rule"))),
        ("relative error of the rule", _figure(run.quadrature.get("error"))),
        ("derivatives of expectations", str(run.quadrature.get("derivatives", ""))),
    ]
    if run.condition is not None:
        pairs.append(("largest condition number of a kernel", _figure(run.condition)))
    pairs += [(f"time, {name}", f"{seconds:.2f} s") for name, seconds in run.timings.items()]
    document.definitions(pairs)
    headings, rows = gain_rows(run, shown_depths(run.depth))
    if rows:
        caption = (
            "Variance gain of the control variates: plain over controlled variance (geometric mean over components)."
        )
        document.table(headings, rows, caption)


def _add_reproduction(document: Document, run: HierarchyRun) -> None:
    document.heading("How to repeat this")
    if run.command:
        document.paragraph("The same numbers come from:")
        document.code(run.command)
    if "seed" in run.parameters and run.simulation is not None:
        document.paragraph(
            f"Draws are keyed by (seed, sample, layer); the seed was {run.parameters['seed']}. The simulation is "
            "bitwise repeatable on one kind of machine, whatever the chunk size and the number of devices."
        )
    if run.files:
        document.definitions((Math(f"`{name}`"), meaning) for name, meaning in run.files)
    if run.versions:
        document.heading("Versions", 3)
        document.definitions(run.versions.items())
    if run.module_source:
        with document.details("The generated module"):
            document.code(run.module_source)


def _shown(value: Any) -> str:
    """A parameter as literal text; arrays by their shape, NaN and None as a dash."""
    if value is None:
        return "–"
    if isinstance(value, (np.ndarray, list, tuple)) and np.size(value) > 16:
        return f"array of shape {np.shape(value)}"
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_shown(item)}" for key, item in value.items())
    return str(value)


def _figure(value: Any) -> str:
    """A number with three significant digits; a dash where there is none."""
    return "–" if value is None else number(float(value), 3)


def _literal(text: str) -> str:
    """`text` from outside, so that prose takes its dollars and backticks literally."""
    return text.replace("$", r"\$").replace("`", "'")
