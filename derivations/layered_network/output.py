"""The files of a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from derivations.layered_network.diagnosis import Diagnosis, first_depth_off
from derivations.layered_network.quantities import labelled
from symtensor.derivation.hierarchy_report import hierarchy_document
from symtensor.derivation.hierarchy_run import HierarchyRun
from symtensor.derivation.results import RESULTS_NAME, Labelled, flatten, write_netcdf, write_summary, write_text

__all__ = ["write_results"]

#: estimates of the summary; the labelled file holds all
_ESTIMATES = ("K", "V4", "K1", "S1", "U1")


def write_results(folder: Path, run: HierarchyRun, diagnosis: Diagnosis) -> None:
    """summary.json, results.nc, the generated module, and the report."""
    simulation = run.simulation
    z = {name: labelled(name, comparison.z) for name, comparison in run.comparisons().items()}
    summary = {
        "derivation": run.derivation.name,
        "parameters": dict(run.parameters),
        "inputs": run.inputs,
        "theory": dict(run.theory),
        "theory_ode": None if run.theory_ode is None else dict(run.theory_ode),
        "theory_continuous": _continuous(diagnosis),
        "modes": _modes(diagnosis),
        "validity": _validity(diagnosis),
        "activations": _activations(diagnosis),
        "simulation": None if simulation is None else _estimates(simulation),
        "z": z or None,
        "variance_gain": None if simulation is None else _gains(simulation),
        "quadrature": dict(run.quadrature),
        "diagrams": [total.title for total in diagnosis.exact.expansion.terms],
        "condition": run.condition,
        "checks": {f"{result.step}. {result.check.name}": result.outcome.passed for result in run.checks or ()},
        "warnings": list(run.warnings),
        "versions": dict(run.versions),
        "timings": dict(run.timings),
        "command": run.command,
    }
    write_text(folder / "layered_network.py", run.module_source)
    groups = ("theory", "theory_ode", "theory_continuous", "modes", "simulation", "z")
    arrays = flatten({key: summary[key] for key in groups if summary[key] is not None})
    write_netcdf(folder / RESULTS_NAME, arrays, {"derivation": run.derivation.name, "command": run.command})
    write_summary(folder / "summary.json", summary)
    write_text(folder / "report.html", hierarchy_document(run).html())


def _continuous(diagnosis: Diagnosis) -> dict[str, Labelled] | None:
    limit = diagnosis.limit
    if limit.failure:
        return None
    arrays = {"t": limit.t, **limit.arrays}
    return {name: labelled(name, values, "time") for name, values in arrays.items()}


def _modes(diagnosis: Diagnosis) -> dict[str, dict[str, Labelled]]:
    """Contribution of each Hermite degree to V_4, K_1, U_1."""
    return {
        "degree_" + re.sub(r"\W+", "_", name): {key: labelled(key, getattr(part, key)) for key in ("V4", "K1", "U1")}
        for name, part in diagnosis.modes.items()
    }


def _validity(diagnosis: Diagnosis) -> dict[str, dict[str, int | None]]:
    """The first depth where each truncation is off by more than the stated level."""
    exact = diagnosis.exact.part
    closures = diagnosis.closures
    truncations = {"kernel_only": closures["kernel_only"], "one_mode": closures["one_mode"], "markov": diagnosis.markov}
    return {
        key: {name: first_depth_off(getattr(part, key), getattr(exact, key)) for name, part in truncations.items()}
        for key in ("V4", "K1")
    }


def _activations(diagnosis: Diagnosis) -> dict[str, Any]:
    """The last layer of each activation, first input."""
    found: dict[str, Any] = {}
    for row in diagnosis.rows:
        if row.failure:
            found[row.name] = {"failure": row.failure}
            continue
        theories = {"exact": row.exact, "markov": row.markov, **row.closures, "32_nodes": row.gauss_hermite}
        found[row.name] = {"K0": row.K0} | {
            f"{key}_{name}": float(np.ravel(getattr(part, key)[-1])[0]) for name, part in theories.items() for key in ("V4", "K1")
        }
    return found


def _estimates(simulation: Any) -> dict[str, dict[str, Labelled]]:
    estimates = {name: getattr(simulation, name) for name in _ESTIMATES}
    return {name: {"mean": labelled(name, each.mean), "se": labelled(name, each.se)} for name, each in estimates.items()}


def _gains(simulation: Any) -> dict[str, Any]:
    """By depth: variance without over variance with control variates, median over components."""
    return {name: np.median(gain.reshape(len(gain), -1), axis=1) for name, gain in simulation.gain.items()}
