"""The command: exponents (derived, exact, measured), deviation in training by width, criterion by architecture, metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from derivations.weak_correlations.exponents import (
    ARCHITECTURES,
    cluster_scale,
    derived_scale,
    exact_scale,
    exponent_law,
    smooth_second_moment,
)
from derivations.weak_correlations.measure import OPERATORS, VECTORS, family_of, measured_contractions, numbers_of, training_data
from derivations.weak_correlations.theorems import deviation_exponent, largest_rate
from symtensor.activation import activation
from symtensor.activation.growth_condition import growth_condition
from symtensor.bounds import Scale
from symtensor.derivation.document import Cell, Math
from symtensor.derivation.field_run import Curves, FieldResults, Panel, Points, Table, Work, run_fields
from symtensor.derivation.model import Derivation
from symtensor.derivation.results import Labelled
from symtensor.derivation.settings import OptionError, RunContext, RunResult, Settings

__all__ = ["PUBLISHED", "metric_table", "run_derivation"]

#: log-log slopes of "MSE_test(f, f_lin)" printed in arXiv 2401.04013 (MNIST, two hidden layers), by alpha
PUBLISHED = {
    Fraction(0): -1.14, Fraction(-1, 4): -1.14, Fraction(-1, 2): -1.30, Fraction(-3, 4): -1.73, Fraction(-1): -2.72,
}  # fmt: skip
#: spectral norms concentrate, so that fewer initialisations suffice
FEWER = 100
MARKS = {"consistent": "good", "violated": "bad", "not tight": "warn", "inconclusive": "warn"}


def run_derivation(derivation: Derivation, settings: Settings, context: RunContext) -> RunResult:
    """Run everything and leave it in the folder ``settings["out"]``."""
    if not settings["model"] and not activation(settings["activation"]).smooth:
        raise OptionError(
            f"--activation {settings['activation']}: it has a kink, so that derivatives of order 2 and above have delta terms; "
            "the theorems assume an analytic activation (tanh, erf, gelu, softplus, ..)"
        )
    return run_fields(derivation, settings, context, _compute)


@dataclass(frozen=True, slots=True)
class _Correlation:
    """One line of the table of exponents."""

    D: int
    d: int
    derived: Scale
    verification: Any


def _compute(work: Work) -> FieldResults:
    settings = work.settings
    sizes, widths = numbers_of(settings["sizes"], "--sizes"), numbers_of(settings["widths"], "--widths")
    alphas = numbers_of(settings["alphas"], "--alphas", Fraction)
    data = training_data(settings)
    name, family = family_of(settings, data.inputs.shape[1])
    law = name if name in ARCHITECTURES else ARCHITECTURES[0]
    lines = _correlations(work, family, data.inputs[0], sizes, law)
    scans = {alpha: _trained(work, family, data, widths, alpha) for alpha in alphas}
    slopes = _slopes(scans, settings["steps"])
    tables = (_exponent_table(lines, name, settings), _slope_table(slopes, scans), _criterion_table(name, lines), metric_table(),
              _corollary_table(scans))  # fmt: skip
    return FieldResults(
        figures=(_width_figure(scans, settings["steps"]), _step_figure(scans)), tables=tables,
        values=_values(lines, slopes, scans), arrays=_arrays(scans), remarks=_remarks(name, lines, slopes, settings),
        warnings=_warnings(name, settings, scans),
    )  # fmt: skip


# -- measurements ----------------------------------------------------------------------------------------------------


def _correlations(work: Work, family: Any, x: np.ndarray, sizes: tuple[int, ...], law: str) -> list[_Correlation]:
    from symtensor.verify import verify_samples

    settings = work.settings
    keys = ("activation", "depth", "model", "data", "classes", "train", "sizes", "samples", "seed")

    coarse = sizes[:: 2 if len(sizes) >= 8 else 1]
    plans = {"contractions": (sizes, settings["samples"], VECTORS), "operators": (coarse, FEWER, OPERATORS)}
    found: dict[str, np.ndarray] = {}
    for name, (chosen, samples, pairs) in plans.items():

        def measure(chosen: Any = chosen, samples: int = samples, pairs: Any = pairs, name: str = name) -> Mapping[str, Any]:
            with work.timed(name) as progress:
                return measured_contractions(family, x, chosen, samples, settings["seed"], progress, pairs)

        found |= work.stored({key: settings[key] for key in keys}, measure, name)
    lines = []
    for D, d in (*VECTORS, *OPERATORS):
        claim = derived_scale(law, D, d)
        samples = dict(zip(coarse if D == 2 else sizes, found[f"C_{D}_{d}"]))
        lines.append(_Correlation(D, d, claim, verify_samples(samples, claim=claim, label=f"C_{D},{d}")))
    return lines


def _trained(work: Work, family: Any, data: Any, widths: tuple[int, ...], alpha: Fraction) -> Any:
    from symtensor.numerics.training import width_scan

    settings = work.settings
    given = settings["batch"]
    batch = given if given in ("full", "single") else numbers_of(given, "--batch")[0]
    with work.timed(f"training, alpha = {alpha}") as progress:
        return width_scan(
            family, widths, (data.inputs, data.targets, data.test_inputs), steps=settings["steps"], eta0=settings["eta"],
            alpha=float(alpha), seeds=settings["seeds"], batch=batch, reduction="mean",
            store=work.folder / f"training_{str(alpha).replace('/', 'over')}", progress=progress,
        )  # fmt: skip


def _slopes(scans: Mapping[Fraction, Any], step: int) -> dict[tuple[Fraction, str], Any]:
    return {(alpha, metric): scan.slope(step, metric) for alpha, scan in scans.items() for metric in ("rms", "mse")}


# -- tables ----------------------------------------------------------------------------------------------------------


def _exponent_table(lines: list[_Correlation], name: str, settings: Settings) -> Table:
    rows = []
    for line in lines:
        level = line.verification.levels[0] if line.verification.levels else None
        offset = float(line.derived.evaluate({"n": 4096.0}) / line.derived.evaluate({"n": 2048.0}))
        shift = np.log2(offset)
        slope = "{:.2f} [{:.2f}, {:.2f}]".format(*(v + shift for v in (level.slope, level.low, level.high))) if level else ""
        word = line.verification.verdict
        rows.append((
            Math(f"$C_{{{line.D},{line.d}}}$"), Math(f"${line.derived.latex()}$"),
            Math(f"${cluster_scale(line.D, line.d).latex()}$"),
            *(exact_scale(phi, line.D, line.d) for phi in ("identity", "x^2", "x + x^3/6")),
            _smooth_cell(settings, line.D, line.d), slope, Cell(word, MARKS[word]),
        ))  # fmt: skip
    caption = (
        f"Exponents for {name}. Derived: the bound by composition, logarithms included. Cluster: the rule's upper bound "
        f"(Frobenius norm for "
        "$D \\ge 2$). Exact: $\\Theta$ by the second moment of one hidden layer with the polynomial activation (Frobenius "
        "for $D \\ge 2$, so "
        "not the subordinate norm). Quadrature: local exponent of the exact second moment of one hidden layer. Measured: "
        "slope of the median "
        "with its interval; verdict: the verification protocol against the derived bound, with its tolerance."
    )
    header = ("", "derived", "cluster", "exact: x", "exact: x^2", "exact: x + x^3/6", "quadrature", "measured", "verdict")
    return Table(caption, header, tuple(rows))


def _smooth_cell(settings: Settings, D: int, d: int) -> str:
    if settings["model"]:
        return ""
    return f"{smooth_second_moment(settings['activation'], D, d).exponent():.2f}"


def _slope_table(slopes: Mapping[tuple[Fraction, str], Any], scans: Mapping[Fraction, Any]) -> Table:
    rows = []
    for (alpha, metric), slope in slopes.items():
        factor = 2 if metric == "mse" else 1
        lead = factor * (2 * alpha - 1)
        bounds = {name: factor * (alpha - rate) for name, rate in (("m = n", Fraction(1)), ("m = n^(2/3)", Fraction(2, 3)))}
        within = slope.low <= float(bounds["m = n"])
        rows.append((
            str(alpha), metric.upper(), f"{slope.value:.3f} [{slope.low:.3f}, {slope.high:.3f}]", f"{slope.curvature:.2f}",
            *(f"{float(value):.2f}" for value in bounds.values()), f"{float(lead):.2f}",
            Cell("within the bound" if within else "above the bound", "good" if within else "bad"),
        ))  # fmt: skip
    first = next(iter(scans.values()))
    caption = (
        f"Slope of the median of $F - F_{{lin}}$ in $\\log n$ after {int(first.steps[-1])} steps, upper half of the widths, "
        f"bootstrap 95% "
        r"intervals; functions are compared on held-out images. Bounds of Theorem 3.2, $r/m$ with $r = n^\alpha$, and the "
        r"leading law "
        r"$r^2/n$ of the derivation, for the metric of the line: the mean square has twice the slope of the RMS distance."
    )
    header = ("alpha", "metric", "measured slope", "curvature", "bound, m = n", "bound, m = n^(2/3)", "r^2/n", "verdict")
    return Table(caption, header, tuple(rows))


def _criterion_table(name: str, lines: list[_Correlation]) -> Table:
    rows = []
    for other in ARCHITECTURES:
        law = exponent_law(other)
        rates = {kind: largest_rate(law, kind) for kind in ("fixed", "exponential")}
        order, kinds, _ = deviation_exponent(law)
        text = "measured in this run" if other == name else ""
        rows.append((
            other, *(Math(f"$n^{{{rate.exponent}}}$ ($C_{{{rate.worst[0]},{rate.worst[1]}}}$)") for rate in rates.values()),
            Math(f"$O(n^{{-{order}}})$"), Math("$" + ",\\ ".join(kinds) + "$"), text,
        ))  # fmt: skip
    caption = "Largest allowed rate of both definitions with the correlation that stops it; the deviation, its leading terms."
    return Table(caption, ("architecture", "m, fixed", "m, exponential", "deviation", "leading terms", ""), tuple(rows))


def metric_table() -> Table:
    """The published slopes against the bounds of Theorem 3.2, read as a squared and as an unsquared distance."""
    rows = []
    for alpha, slope in PUBLISHED.items():
        cells: list[Any] = [str(alpha), f"{slope:.2f}"]
        for factor in (2, 1):
            for rate in (Fraction(1), Fraction(2, 3)):
                value = float(factor * (alpha - rate))
                cells.append(Cell(f"{value:.2f}", "good" if slope <= value else "bad"))
        rows.append((*cells, f"{float(2 * alpha - 1):.2f}"))
    caption = (
        r"Slopes printed for ``MSE_test(f, f_lin)'' against the bounds of Theorem 3.2; a green cell is a bound that the "
        r"slope keeps. Read as a "
        r"squared error no printed slope keeps either bound; read as an RMS distance all keep $m = n^{2/3}$."
    ).replace("``", '"').replace("''", '"')
    header = ("alpha", "printed slope", "MSE, m = n", "MSE, m = n^(2/3)", "RMS, m = n", "RMS, m = n^(2/3)", "RMS, r^2/n")
    return Table(caption, header, tuple(rows))


def _corollary_table(scans: Mapping[Fraction, Any]) -> Table:
    from symtensor.numerics.training import fit_decay

    rows = []
    for alpha, scan in scans.items():
        try:
            decay = fit_decay(scan.steps.tolist(), scan.linear_residual[-1])
        except ValueError as error:
            rows.append((str(alpha), "", "", "", Cell(str(error), "warn")))
            continue
        share = float(np.mean(decay.exponential))
        holds = share > 0.5
        rows.append((
            str(alpha), f"{np.median(decay.T):.3g}", f"{np.median(decay.r_squared):.3f}",
            f"{np.median(decay.T_late / decay.T_early):.2f}",
            Cell(f"exponential in {share:.0%} of the seeds" + ("" if holds else ": not satisfied"), "good" if holds else "warn"),
        ))  # fmt: skip
    caption = (
        r"The hypothesis of the SGD corollary, measured: fit of $e^{-s/T}$ to the residual of the linear model at the "
        r"largest width "
        r"(medians over seeds; late over early $T$ is 1 for one exponential)."
    )
    return Table(caption, ("alpha", "T (steps)", "R squared", "T late / T early", "hypothesis"), tuple(rows))


# -- figures, values, words --------------------------------------------------------------------------------------------


def _width_figure(scans: Mapping[Fraction, Any], step: int) -> Curves:
    panels = []
    for alpha, scan in scans.items():
        n, at = np.array(scan.widths, float), int(np.flatnonzero(scan.steps == step)[0])
        values = scan.deviation[:, at]
        median = scan.quantile(0.5)[:, at]
        law = median[-1] * (n / n[-1]) ** float(2 * alpha - 1)
        se = 1.25 * np.nanstd(values, axis=1) / np.sqrt(values.shape[1])
        lines = {"n^(2 alpha - 1)": (np.log2(n), np.log10(law))}
        points = (Points(np.log2(n), np.log10(median), se / (median * np.log(10)), "median over seeds ± 2 s.e."),)
        panels.append(Panel(rf"\log_{{10}}|F-F_{{lin}}|,\ \alpha={alpha}", lines, points))
    return Curves("RMS deviation on held-out images against the width, with the leading law.", r"\log_2 n", tuple(panels))


def _step_figure(scans: Mapping[Fraction, Any]) -> Curves:
    panels = []
    for alpha, scan in scans.items():
        medians = scan.quantile(0.5)
        lines = {f"n = {n}": (scan.steps[1:], medians[w, 1:]) for w, n in enumerate(scan.widths)}
        panels.append(Panel(rf"|F-F_{{lin}}|,\ \alpha={alpha}", lines, log=True))
    return Curves("The deviation over the steps, median over seeds.", "s", tuple(panels))


def _values(lines: list[_Correlation], slopes: Mapping[tuple[Fraction, str], Any], scans: Mapping[Fraction, Any]) -> dict[str, Any]:
    correlations = {
        f"C_{line.D}_{line.d}": {
            "derived": str(line.derived), "verdict": line.verification.verdict, "headline": line.verification.headline,
            "levels": {f"q{100 * level.level:g}": [level.slope, level.low, level.high] for level in line.verification.levels},
        }
        for line in lines
    }  # fmt: skip
    deviation = {
        f"alpha {a} {m}": {"slope": s.value, "low": s.low, "high": s.high, "curvature": s.curvature} for (a, m), s in slopes.items()
    }
    stopped = {f"alpha {a}": {str(n): len(stops) for n, stops in scan.stopped.items()} for a, scan in scans.items()}
    return {"correlations": correlations, "deviation": deviation, "stopped": stopped}


def _arrays(scans: Mapping[Fraction, Any]) -> dict[str, Labelled]:
    first = next(iter(scans.values()))
    found = {"width": Labelled(np.array(first.widths), ("width",), "width"), "step": Labelled(first.steps, ("step",), "step")}
    for at, (alpha, scan) in enumerate(scans.items()):
        found[f"deviation_{at}"] = Labelled(scan.deviation, ("width", "step", "seed"), f"RMS F - F_lin, alpha = {alpha}")
        found[f"linear_residual_{at}"] = Labelled(scan.linear_residual, ("width", "step", "seed"), f"residual, alpha = {alpha}")
    return found


def _remarks(
    name: str, lines: list[_Correlation], slopes: Mapping[tuple[Fraction, str], Any], settings: Settings
) -> tuple[str, ...]:
    against = [f"$C_{{{line.D},{line.d}}}$" for line in lines if line.verification.verdict == "violated"]
    verdict = f"{', '.join(against)} grow faster than derived." if against else "no derived bound is violated."
    text = f"Correlations of {name}: {verdict}"
    alpha = next(iter(slopes))[0]
    slope = slopes[alpha, "rms"]
    found = (
        rf"Training ($\eta = \eta_0 n^{{{alpha}}}$, {settings['steps']} steps): the RMS deviation has slope {slope.value:.2f} "
        rf"[{slope.low:.2f}, {slope.high:.2f}] in the width, the mean square {slopes[alpha, 'mse'].value:.2f}. State the "
        rf"metric with the slope."
    )
    return (text, found)


def _warnings(name: str, settings: Settings, scans: Mapping[Fraction, Any]) -> tuple[str, ...]:
    found = []
    if settings["model"]:
        found.append(f"for {name} no bound is derived: its correlations are judged against those of {ARCHITECTURES[0]}")
    else:
        growth = growth_condition(settings["activation"])
        if not growth.satisfied:
            found.append(f"the growth condition is {growth.verdict} for {growth.activation} ({growth.reason})")
        if settings["depth"] > 3:
            found.append(f"bounds are derived for up to three hidden layers; those of {ARCHITECTURES[0]} are used")
    for alpha, scan in scans.items():
        for n, stops in scan.stopped.items():
            found.append(f"alpha = {alpha}, width {n}: seed {stops[0].seed} stopped at step {stops[0].step}" +
                         (f" and {len(stops) - 1} more" if len(stops) > 1 else ""))  # fmt: skip
        if float(np.max(scan.sharpness)) > 2:
            found.append(f"alpha = {alpha}: the linear model is unstable (sharpness {np.max(scan.sharpness):.2g} > 2); lower --eta")
    return tuple(found)
