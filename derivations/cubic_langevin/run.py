"""The command: curves and equal-time moments of the theory beside exact results and, if asked for, a simulation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy as sp

from derivations.cubic_langevin.exact import quartic_spectrum, transformed
from derivations.cubic_langevin.steps import OMEGA
from derivations.cubic_langevin.sums import LOOPS, TIME, G, T, correlation, fourth_cumulant, hierarchy, resummed
from symtensor.derivation.field_run import (
    Compared,
    ComparisonTable,
    Curves,
    FieldResults,
    Panel,
    Points,
    Work,
    few_samples,
    loop_name,
    partial_sums,
    require_samples,
    run_fields,
)
from symtensor.derivation.model import Derivation
from symtensor.derivation.results import Labelled
from symtensor.derivation.settings import RunContext, RunResult, Settings
from symtensor.fields.stationary_density import stationary_density_moments

__all__ = ["run_derivation"]

#: time differences that are measured; the curves have DENSITY points for each, the tables a row for every second one
LAGS, DENSITY = 16, 8
BEST, RESUMMED = loop_name(LOOPS), "Dyson, two loops"
LATEX = {"correlation": "C", "response": "R"}


def run_derivation(derivation: Derivation, settings: Settings, context: RunContext) -> RunResult:
    """Run everything and leave it in the folder ``settings["out"]``."""
    require_samples(settings)
    return run_fields(derivation, settings, context, _compute)


@dataclass(frozen=True, slots=True)
class _Curve:
    """One function of time at `t`: approximations (the claimed one last), the exact one, and the size of the next order."""

    name: str
    t: np.ndarray
    theory: Mapping[str, np.ndarray]
    exact: np.ndarray
    neglected: np.ndarray

    def row(self, at: int, measured: float, se: float) -> Compared:
        """The comparison at time number `at`."""
        letter = LATEX[self.name]
        values = {name: float(curve[at]) for name, curve in self.theory.items()}
        text = f"{self.t[at]:g}"
        return Compared(f"{letter}({text})", f"{letter}({text})", values, measured, se, float(self.neglected[at]))


def _compute(work: Work) -> FieldResults:
    settings = work.settings
    g, temperature = settings["g"], settings["temperature"]
    t = np.linspace(0.0, settings["t_max"], LAGS * DENSITY + 1)
    with work.timed("exact curves"):
        spectrum = quartic_spectrum(g, temperature, t)
        density = _density_moments(g, temperature)
    with work.timed("theory"):
        exact = {"correlation": spectrum.correlation(t), "response": spectrum.response(t)}
        curves = [_curve(work, name, t, exact[name]) for name in LATEX]
        moments = _moments(work, density)
    comparisons = [*moments, *(_exact_table(curve) for curve in curves)]
    warnings = [f"spectrum: the grid is not fine enough, relative error {spectrum.error:.1e}"] if spectrum.error > 1e-9 else []
    measured = _simulated(work) if settings["samples"] else None
    values: dict[str, Any] = {
        "gT": g * temperature, "second_moment": density[2], "fourth_cumulant": density[4] - 3 * density[2] ** 2,
        "slowest_rate": float(spectrum.rates[1]), "spectrum_error": spectrum.error,
    }  # fmt: skip
    if measured is not None:
        comparisons += _simulation_tables(curves, moments, measured)
        values["simulation"] = {name: float(measured[name][0]) for name in ("escaped", "walkers", "control_z", "step_error")}
        warnings += _simulation_warnings(measured)
    return FieldResults(
        comparisons=tuple(comparisons), figures=(_figure(curves, measured), _error_figure(curves)), values=values,
        arrays=_arrays(curves), warnings=tuple(warnings), remarks=(_remark(g * temperature),),
    )  # fmt: skip


# -- theory ------------------------------------------------------------------------------------------------------------


def _curve(work: Work, name: str, t: np.ndarray, exact: np.ndarray) -> _Curve:
    g, temperature = work.settings["g"], work.settings["temperature"]
    found = partial_sums(work.evaluate(name, t=t, T=temperature, g=g))
    found = {key: np.broadcast_to(values, t.shape) for key, values in found.items()}
    found[RESUMMED] = transformed(resummed(name, OMEGA), OMEGA, {G: g, T: temperature}, t)
    found[BEST] = found.pop(BEST)
    series = hierarchy().correlation if name == "correlation" else hierarchy().response
    orders = series("x", "x", LOOPS + 1).values(t, {"T": temperature})
    return _Curve(name, t, found, exact, np.abs(orders[-1]) * g ** (LOOPS + 1))


def _density_moments(g: float, temperature: float) -> dict[int, float]:
    x = sp.Symbol("x", real=True)
    values = {"g": repr(g), "T": repr(temperature)}
    found = stationary_density_moments(-(x + G * x**3), sp.sqrt(2 * T), x, [2, 4], values, digits=20)
    return {power: float(found[power]) for power in (2, 4)}


def _moments(work: Work, density: Mapping[int, float]) -> list[ComparisonTable]:
    """<x^2> and the fourth cumulant against the stationary density."""
    g, temperature = work.settings["g"], work.settings["temperature"]
    second = partial_sums(work.evaluate("correlation", t=0.0, T=temperature, g=g))
    fourth = partial_sums(work.evaluate("fourth_cumulant", T=temperature, g=g))
    exact = (density[2], density[4] - 3 * density[2] ** 2)
    names = (("<x^2>", r"\langle x^2\rangle"), ("<x^4>_c", r"\langle x^4\rangle - 3\langle x^2\rangle^2"))
    formulas = (sp.expand(correlation().expr.subs(TIME, 0)), fourth_cumulant().expr)
    tables = []
    for (name, latex), theory, value, power, formula in zip(names, (second, fourth), exact, (2, 4), formulas):
        order = len(theory) - 1 + power // 2  # the fourth cumulant starts at order g
        next_order = hierarchy().cumulant({"x": power}, order)[order].subs(T, temperature) * g**order
        numbers = {key: float(found) for key, found in theory.items()}
        row = Compared(name, latex, numbers, value, 0.0, abs(float(next_order)), sp.latex(formula))
        tables.append(
            ComparisonTable(f"${latex}$ in the stationary state.", "stationary density", (row,), f"{name} in the stationary state")
        )
    return tables


def _exact_table(curve: _Curve) -> ComparisonTable:
    rows = tuple(curve.row(at, float(curve.exact[at]), 0.0) for at in _places(curve))
    letter = LATEX[curve.name]
    return ComparisonTable(f"${letter}(t)$ against the spectrum of the Fokker-Planck operator.", "spectrum", rows, f"{letter}(t)")


def _places(curve: _Curve) -> range:
    """The times of the tables; R(0+) = 1 holds in every order and is left out."""
    first = 0 if curve.name == "correlation" else 2 * DENSITY
    return range(first, len(curve.t), 2 * DENSITY)


# -- simulation --------------------------------------------------------------------------------------------------------


def _simulated(work: Work) -> dict[str, np.ndarray]:
    """Measured C, R, equal-time moments with standard errors; read again if this folder has them."""
    settings = work.settings
    names = ("g", "temperature", "t_max", "step", "duration", "samples", "seed")
    key = {name: settings[name] for name in names}

    def measure() -> dict[str, Any]:
        from symtensor.numerics.langevin import simulate_langevin

        x = sp.Symbol("x", real=True)
        with work.timed("simulation") as progress:
            run = simulate_langevin(
                -(x + G * x**3), sp.sqrt(2 * T), variables=x, parameters={"g": settings["g"], "T": settings["temperature"]},
                step=settings["step"], times=np.linspace(0.0, settings["t_max"], LAGS + 1), walkers=settings["samples"],
                duration=settings["duration"], seed=settings["seed"], degree=4, response=True, memory_mb=settings["memory_mb"],
                progress=progress,
            )  # fmt: skip
        estimates = {"correlation": run.correlation, "response": run.response}
        found: dict[str, Any] = {"times": run.times}
        for name, estimate in estimates.items():
            found |= {name: estimate.value[:, 0, 0], f"{name}_se": estimate.se[:, 0, 0]}
        for power in (2, 4):
            cumulant = run.cumulant({0: power})
            found |= {f"cumulant_{power}": cumulant.value, f"cumulant_{power}_se": cumulant.se}
        step_error = np.max(np.abs(run.correlation.step_error / run.correlation.se))
        return {**found, "escaped": run.escaped, "walkers": run.walkers, "control_z": run.control_z, "step_error": step_error}

    return work.stored(key, measure)


def _simulation_tables(
    curves: list[_Curve], moments: list[ComparisonTable], measured: Mapping[str, np.ndarray]
) -> list[ComparisonTable]:
    tables = []
    for table, power in zip(moments, (2, 4)):
        value, se = float(measured[f"cumulant_{power}"][0]), float(measured[f"cumulant_{power}_se"][0])
        tables.append(ComparisonTable(table.caption, "simulation", (replace(table.rows[0], measured=value, se=se),), table.title))
    for curve in curves:
        values, errors = measured[curve.name], measured[f"{curve.name}_se"]
        rows = tuple(curve.row(at, float(values[at // DENSITY]), float(errors[at // DENSITY])) for at in _places(curve))
        letter = LATEX[curve.name]
        tables.append(ComparisonTable(f"${letter}(t)$ against simulation.", "simulation", rows, f"{letter}(t)"))
        scores = [(row.measured - float(curve.exact[at])) / row.se for at, row in zip(_places(curve), rows)]
        exact = tuple(
            replace(row, theory={"spectrum": float(curve.exact[at])}, truncation=0.0) for at, row in zip(_places(curve), rows)
        )
        caption = f"The exact ${letter}(t)$ against simulation: largest $|z|$ {max(map(abs, scores)):.2f}."
        tables.append(ComparisonTable(caption, "simulation", exact, f"exact {letter}(t)"))
    return tables


def _simulation_warnings(measured: Mapping[str, np.ndarray]) -> list[str]:
    found = few_samples(float(measured["walkers"][0]))
    if measured["control_z"][0] > 5:
        found.append(f"the linear process is {measured['control_z'][0]:.1f} standard errors from its exact means: distrust the run")
    if measured["step_error"][0] > 10:
        found.append(f"the time step changes C by {measured['step_error'][0]:.0f} standard errors; use a smaller --step")
    return found


# -- report ------------------------------------------------------------------------------------------------------------


def _remark(coupling: float) -> str:
    text = (
        rf"The expansion parameter is $gT = {coupling:g}$. The series is asymptotic: its terms fall only as long as their "
        r"number is below about $1/(4gT)$."
    )
    return text if coupling < 0.1 else text + " Here that is no more than two: the bare series is of little use."


def _figure(curves: list[_Curve], measured: Mapping[str, np.ndarray] | None) -> Curves:
    panels = []
    for curve in curves:
        points: tuple[Points, ...] = ()
        if measured is not None:
            points = (Points(measured["times"], measured[curve.name], measured[f"{curve.name}_se"]),)
        lines = {**curve.theory, "exact": curve.exact}
        panels.append(Panel(f"{LATEX[curve.name]}(t)", {name: (curve.t, values) for name, values in lines.items()}, points))
    caption = "Correlation and response: bare series, the series resummed by Dyson's equation, and the exact curve."
    return Curves(caption + (" Points: simulation." if measured is not None else ""), "t", tuple(panels))


def _error_figure(curves: list[_Curve]) -> Curves:
    panels = []
    for curve in curves:
        lines = {name: (curve.t, np.abs(values - curve.exact)) for name, values in curve.theory.items()}
        lines = {name: (t[1:], error[1:]) for name, (t, error) in lines.items()}
        letter = LATEX[curve.name]
        panels.append(Panel(rf"|\Delta {letter}|", lines, log=True))
    return Curves("Distance of every approximation from the exact curve.", "t", tuple(panels))


def _arrays(curves: list[_Curve]) -> dict[str, Labelled]:
    found = {"t": Labelled(curves[0].t, ("time",), "time difference")}
    for curve in curves:
        for name, values in {**curve.theory, "exact": curve.exact}.items():
            label = re.sub(r"\W+", "_", f"{curve.name}_{name}")
            found[label] = Labelled(values, ("time",), f"{LATEX[curve.name]}(t), {name}")
    return found
