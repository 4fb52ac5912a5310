"""The files of a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from derivations.layered_network.diagnosis import Diagnosis, first_depth_off
from derivations.layered_network.quantities import labelled
from symtensor.derivation.hierarchy_output import write_hierarchy
from symtensor.derivation.hierarchy_run import HierarchyRun
from symtensor.derivation.results import Labelled

__all__ = ["write_results"]



def write_results(folder: Path, run: HierarchyRun, diagnosis: Diagnosis) -> None:
    """What every hierarchy leaves, with the diagnosis."""
    further = {
        "theory_continuous": _continuous(diagnosis),
        "modes": _modes(diagnosis),
        "validity": _validity(diagnosis),
        "activations": _activations(diagnosis),
        "diagrams": [total.title for total in diagnosis.exact.expansion.terms],
    }
    write_hierarchy(folder, run, "layered_network.py", labelled, further, ("theory_continuous", "modes"))


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
