"""The main job: expand, truncate, evaluate the published closure, simulate, compare, report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from derivations.layered_network.activations import activation_rows, path_tolerance
from derivations.layered_network.continuous import continuous_limit
from derivations.layered_network.diagnosis import Diagnosis
from derivations.layered_network.output import write_results
from derivations.layered_network.quantities import labelled, main_quantities, other_quantities, theory_arrays
from derivations.layered_network.report import sections
from derivations.layered_network.request import Request, read_request
from derivations.layered_network.steps import steps
from derivations.layered_network.theory import baseline, exact_theory, fixed_rule, markov_theory, mode_parts
from derivations.resnet_kernel.run import simulated
from derivations.resnet_kernel.theory import Continuous, Theory, continuous_depth, solve
from symtensor.derivation.hierarchy_output import largest_condition, simulation_warnings, timed
from symtensor.derivation.hierarchy_run import HierarchyRun
from symtensor.derivation.hierarchy_tables import terminal_table
from symtensor.derivation.model import CheckResult, Derivation, run_checks
from symtensor.derivation.output import prepare_output
from symtensor.derivation.provenance import library_versions
from symtensor.derivation.results import RESULTS_NAME
from symtensor.derivation.settings import RunContext, RunResult, Settings

__all__ = ["run_derivation"]


def run_derivation(derivation: Derivation, settings: Settings, context: RunContext) -> RunResult:
    """Run everything that `settings` ask for and leave the results in the folder `settings["out"]`."""
    timings: dict[str, float] = {}
    request = read_request(settings)
    folder = prepare_output(Path(settings["out"]), request.parameters(settings), settings["resume"])
    if folder.note:
        context.note(folder.note)
    t = request.base.dt * np.arange(request.base.depth + 1)
    diagnosis = _diagnose(request, timings, context)
    with timed(timings, "kernel-only theory"), context.progress("kernel-only theory"):
        published = solve(request.base)
        ode = continuous_depth(request.base, published.module, t)
    simulation = None
    if request.base.samples:
        with timed(timings, "simulation"), context.progress("simulating") as progress:
            simulation = simulated(request.base, published, folder.path, progress)
    with timed(timings, "derivation checks"):
        derived = steps()
        checks = run_checks(derived)
    run = HierarchyRun(
        derivation=derivation, steps=derived, checks=checks, parameters=_shown(request, settings),
        inputs=request.base.inputs.provenance, labels=request.base.inputs.labels, t=t,
        theory=theory_arrays(diagnosis, published, t, request.base.width),
        theory_ode={name: labelled(name, values) for name, values in {"t": t, **ode.arrays}.items()} if ode.arrays else None,
        simulation=simulation, condition=largest_condition(published["K0"]), quadrature=_quadrature(request, diagnosis, published),
        warnings=_warnings(diagnosis, published, ode, simulation, checks), module_source=diagnosis.exact.expansion.module.source,
        versions=library_versions(), timings=timings, command=context.command,
        main=main_quantities(), sources=other_quantities(request.order),
        sections=sections(diagnosis, t, simulation),
        files=(("summary.json", "all numbers, for programs"), (RESULTS_NAME, "all arrays with named axes"),
               ("layered_network.py", "the generated module")),
    )  # fmt: skip
    with timed(timings, "report"):
        write_results(folder.path, run, diagnosis)
    _tell(context, run, folder.path)
    return RunResult(output=folder.path, value=run)


def _diagnose(request: Request, timings: dict[str, float], context: RunContext) -> Diagnosis:
    function, memory_mb = request.base.activation, request.base.memory_mb
    tol = path_tolerance(function, request.base.tol)
    with timed(timings, "exact theory"), context.progress("exact theory"):
        exact = exact_theory(request.network, request.order, tol, memory_mb)
    with timed(timings, "closures and Hermite degrees"), context.progress("closures and Hermite degrees"):
        closures, markov, modes = baseline(exact), markov_theory(exact), mode_parts(exact)
        nodes = fixed_rule(request, function)
    with timed(timings, "other activations"), context.progress("other activations"):
        rows = activation_rows(request, memory_mb)
    with timed(timings, "continuous depth"), context.progress("continuous depth"):
        limit = continuous_limit(request, tol, memory_mb)
    return Diagnosis(exact, closures, markov, modes, tuple(rows), nodes, limit)


# -- what is reported --------------------------------------------------------------------------------------------------


def _quadrature(request: Request, diagnosis: Diagnosis, published: Theory) -> dict[str, Any]:
    choice = published.choice
    return {
        "rule": str(choice.rule), "error": choice.error, "derivatives": choice.derivatives,
        "converged": choice.error <= max(request.base.tol, 1e-14), "output_error": published.output_error, "tol": request.base.tol,
        "path_tol": diagnosis.exact.tol, "path_error": diagnosis.exact.expansion.error,
    }  # fmt: skip


def _warnings(
    diagnosis: Diagnosis, published: Theory, ode: Continuous, simulation: Any, checks: tuple[CheckResult, ...]
) -> tuple[str, ...]:
    found = [*diagnosis.exact.notes, *published.notes]
    found += [message for message in (ode.failure, diagnosis.limit.failure) if message]
    found += simulation_warnings(simulation, checks)
    return tuple(dict.fromkeys(found))


def _shown(request: Request, settings: Settings) -> dict[str, Any]:
    """The parameters of the report and the summary: every option, with what was made of it."""
    base = request.base
    return {**request.parameters(settings), "n_inputs": base.inputs.count, "gamma": base.gamma}


def _tell(context: RunContext, run: HierarchyRun, folder: Path) -> None:
    context.show(terminal_table(run, context.width))
    quadrature = run.quadrature
    context.say(f"exact theory: order-1/n quantities to {quadrature['path_error']:.1e} relative; kernel-only quadrature "
                f"{quadrature['rule']} ({quadrature['derivatives']}) to {quadrature['output_error']:.1e}")  # fmt: skip
    for name, latex in (("V4", "V_4"), ("K1", "K_1")):
        keys = (f"{name}_kernel_only", f"{name}_one_mode", f"{name}_markov", name)
        last = {key: float(run.values(key)[-1].flat[0]) for key in keys}
        context.say(f"{latex} at the last layer: kernel-only {last[f'{name}_kernel_only']:.6g}, one mode "
                    f"{last[f'{name}_one_mode']:.6g}, "
                    f"(G, S) {last[f'{name}_markov']:.6g}, exact {last[name]:.6g}")  # fmt: skip
    passed = sum(result.outcome.passed for result in run.checks or ())
    context.say(f"derivation: {passed} of {len(run.checks or ())} checks passed")
    for warning in run.warnings:
        context.note(f"warning: {warning}")
    context.say(f"report: {folder / 'report.html'}")
