"""What every run of a kernel hierarchy leaves behind, and the pieces such a run is made of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from symtensor.derivation.hierarchy_report import hierarchy_document
from symtensor.derivation.hierarchy_run import HierarchyRun
from symtensor.derivation.model import CheckResult
from symtensor.derivation.results import RESULTS_NAME, Labelled, flatten, write_netcdf, write_summary, write_text

__all__ = ["largest_condition", "simulation_warnings", "timed", "write_hierarchy"]

#: estimates of the summary; the labelled file holds all
_ESTIMATES = ("K", "V4", "K1", "S1", "U1")
#: parts of every summary that are arrays, and so are in the labelled file too
_ARRAYS = ("theory", "theory_ode", "simulation", "z")
#: standard errors by which the mean of a control variate may be off
_LARGEST_CONTROL = 5


@contextmanager
def timed(timings: dict[str, float], name: str) -> Iterator[None]:
    """Note the wall time of what is within, in seconds."""
    start = time.perf_counter()
    yield
    timings[name] = time.perf_counter() - start


def largest_condition(kernels: np.ndarray) -> float:
    """Largest condition number of kernels (L+1, P, P) over depth (infinite where one is singular)."""
    eigenvalues = np.linalg.eigvalsh(kernels)
    smallest, largest = eigenvalues[:, 0], eigenvalues[:, -1]
    singular = smallest <= len(kernels[0]) * np.finfo(float).eps * largest
    return float(np.max(np.where(singular, np.inf, largest / np.where(singular, 1.0, smallest))))


def simulation_warnings(simulation: Any, checks: Sequence[CheckResult]) -> list[str]:
    """Checks of the derivation that failed, and control variates whose mean is not what it must be."""
    found = [f"check failed: {result.check.name} ({result.outcome.detail})" for result in checks if not result.outcome.passed]
    if simulation is not None and np.nanmax(simulation.control_z) > _LARGEST_CONTROL:
        found.append(
            f"the control variates have mean {np.nanmax(simulation.control_z):.1f} standard errors from their exact value 0: "
            "the order n^0 theory and the simulation disagree"
        )
    return found


def write_hierarchy(
    folder: Path,
    run: HierarchyRun,
    module: str,
    labelled: Callable[[str, np.ndarray], Labelled],
    further: Mapping[str, Any] | None = None,
    arrays: Sequence[str] = (),
) -> None:
    """summary.json, results.nc, the generated module and report.html.

    Parameters
    ----------
    module
        File name of the generated module.
    labelled
        Name and values -> the array with its axes.
    further
        Parts of the summary that are particular to this derivation; those named in `arrays` go to the labelled file too.
    """
    simulation = run.simulation
    summary = {
        "derivation": run.derivation.name,
        "parameters": dict(run.parameters),
        "inputs": run.inputs,
        "theory": dict(run.theory),
        "theory_ode": None if run.theory_ode is None else dict(run.theory_ode),
        **(further or {}),
        "simulation": None if simulation is None else _estimates(simulation, labelled),
        "z": {name: labelled(name, comparison.z) for name, comparison in run.comparisons().items()} or None,
        "variance_gain": None if simulation is None else _gains(simulation),
        "quadrature": dict(run.quadrature),
        "condition": run.condition,
        "checks": {f"{result.step}. {result.check.name}": result.outcome.passed for result in run.checks or ()},
        "warnings": list(run.warnings),
        "versions": dict(run.versions),
        "timings": dict(run.timings),
        "command": run.command,
    }
    write_text(folder / module, run.module_source)
    held = flatten({key: value for key, value in summary.items() if key in (*_ARRAYS, *arrays) and value is not None})
    write_netcdf(folder / RESULTS_NAME, held, {"derivation": run.derivation.name, "command": run.command})
    write_summary(folder / "summary.json", summary)
    write_text(folder / "report.html", hierarchy_document(run).html())


def _estimates(simulation: Any, labelled: Callable[[str, np.ndarray], Labelled]) -> dict[str, dict[str, Labelled]]:
    estimates = {name: getattr(simulation, name) for name in _ESTIMATES}
    return {name: {"mean": labelled(name, each.mean), "se": labelled(name, each.se)} for name, each in estimates.items()}


def _gains(simulation: Any) -> dict[str, Any]:
    """By depth: variance without over variance with control variates, median over components."""
    return {name: np.median(gain.reshape(len(gain), -1), axis=1) for name, gain in simulation.gain.items()}
