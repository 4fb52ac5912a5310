"""The main job: derive, generate, evaluate, simulate, compare, report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.resnet_kernel.request import Request, read_request
from derivations.resnet_kernel.steps import steps
from derivations.resnet_kernel.theory import Continuous, Theory, continuous_depth, solve
from symtensor.derivation.hierarchy_output import largest_condition, simulation_warnings, timed, write_hierarchy
from symtensor.derivation.hierarchy_run import HierarchyRun
from symtensor.derivation.hierarchy_tables import terminal_table
from symtensor.derivation.model import Derivation, run_checks
from symtensor.derivation.output import prepare_output
from symtensor.derivation.provenance import library_versions
from symtensor.derivation.results import RESULTS_NAME, Labelled
from symtensor.derivation.settings import RunContext, RunResult, Settings

if TYPE_CHECKING:
    from symtensor.numerics.simulation import SimulationResult

__all__ = ["run_derivation", "simulated"]

_AXES = {1: ("depth",), 3: ("depth", "a", "b"), 5: ("depth", "a", "b", "c", "d")}
_MEANING = {
    "t": "depth time l dt", "K0": "kernel at infinite width", "V4": "n Cov(G)", "K1": "n (E G - K_0)", "K": "E G",
    "V4_kernel_only": "n Cov(G), kernel-only closure", "K1_kernel_only": "n (E G - K_0), kernel-only closure",
    "U1_model": "n (E S - E[sigma sigma]) - J K_1, kernel-only closure", "U1_exact": "the same, exact where known (depth 0)",
    "V4_one_mode": "n Cov(G), the same closure with the step exact in dt",
    "K1_source": "increment of K_1 over one layer made by V_4", "K1_transport": "increment of K_1 carried by the mean",
    "V4_source": "increment of V_4 over one layer made by the noise", "V4_transport": "increment of V_4 carried by the mean",
    "S1": "n (E S - E[sigma sigma])", "U1": "S_1 - J K_1",
}  # fmt: skip


def run_derivation(derivation: Derivation, settings: Settings, context: RunContext) -> RunResult:
    """Run everything that `settings` ask for and leave the results in the folder `settings["out"]`."""
    timings: dict[str, float] = {}
    request = read_request(settings)
    folder = prepare_output(Path(settings["out"]), request.parameters(settings), settings["resume"])
    if folder.note:
        context.note(folder.note)
    with timed(timings, "theory"), context.progress("theory"):
        theory = solve(request)
    t = request.dt * np.arange(request.depth + 1)
    with timed(timings, "continuous depth"), context.progress("continuous depth"):
        ode = continuous_depth(request, theory.module, t)
    simulation = None
    if request.samples:
        with timed(timings, "simulation"), context.progress("simulating") as progress:
            simulation = simulated(request, theory, folder.path, progress)
    with timed(timings, "derivation checks"):
        derived = steps()
        checks = run_checks(derived)
    run = HierarchyRun(
        derivation=derivation, steps=derived, checks=checks, parameters=_shown(request, settings),
        inputs=request.inputs.provenance, labels=request.inputs.labels, t=t,
        theory=_theory(theory, t), theory_ode=_ode(ode, t), simulation=simulation,
        residual=_residual(request, theory, simulation), condition=largest_condition(theory["K0"]),
        quadrature=_quadrature(request, theory),
        warnings=_warnings(request, theory, ode, simulation, checks), module_source=theory.module.source,
        versions=library_versions(), timings=timings, command=context.command,
        files=(("summary.json", "all numbers, for programs"), (RESULTS_NAME, "all arrays with named axes"),
               ("resnet_kernel.py", "the generated module")),
    )  # fmt: skip
    with timed(timings, "report"):
        write_hierarchy(folder.path, run, "resnet_kernel.py", _labelled)
    _tell(context, run, folder.path)
    return RunResult(output=folder.path, value=run)


# -- simulation ------------------------------------------------------------------------------------------------------


def simulated(request: Request, theory: Theory, folder: Path, progress: Any) -> SimulationResult:
    """The ensemble of the request, beside free networks with the converged order n^0; its state is kept in `folder`."""
    from symtensor.numerics.simulation import Ensemble, LeadingOrder, simulate

    ensemble = Ensemble(request.activation, request.c_w, request.c_b, request.alpha, request.dt, request.depth, request.width)
    leading = LeadingOrder(*(theory.leading[name] for name in ("K0", "ES", "J")))
    return simulate(
        ensemble, leading, samples=request.samples, seed=request.seed, sigma=theory.module.load().activation,
        state=folder / "simulation", memory_mb=request.memory_mb, progress=progress,
    )  # fmt: skip


def _residual(request: Request, theory: Theory, simulation: SimulationResult | None) -> dict[str, np.ndarray] | None:
    """K_1(simulation) - K_1(theory) at depth l + 1 = (alpha^2 + dt chi) residual_l + dt C_W (U_1 - U_1 model)_l."""
    if simulation is None:
        return None
    residual = simulation.K1.mean - theory["K1"]
    carried = np.einsum("labcd,lcd->lab", theory["J"], residual)
    source = request.dt * request.c_w * (simulation.U1.mean - theory["U1_model"])
    transport = request.alpha**2 * residual + request.dt * request.c_w * carried
    return {"source": source[:-1], "transport": transport[:-1]}


# -- what is reported ------------------------------------------------------------------------------------------------


def _labelled(name: str, values: np.ndarray) -> Labelled:
    return Labelled(values, _AXES[values.ndim], _MEANING.get(name, ""))


def _theory(theory: Theory, t: np.ndarray) -> dict[str, Labelled]:
    exact = np.full_like(theory["U1_model"], np.nan)
    exact[0] = 0.0  # G_0 is a mean over neurons of unbiased sigma sigma: E S_0 = E_{K_0}[sigma sigma] and K_1(0) = 0
    arrays = {
        "t": t, "K0": theory["K0"], "V4_kernel_only": theory["V4"], "K1_kernel_only": theory["K1"],
        "V4_one_mode": theory["V4_one_mode"], "U1_model": theory["U1_model"], "U1_exact": exact,
        **{name: theory[name] for name in ("K1_source", "K1_transport", "V4_source", "V4_transport")},
    }  # fmt: skip
    return {name: _labelled(name, values) for name, values in arrays.items()}


def _ode(ode: Continuous, t: np.ndarray) -> dict[str, Labelled] | None:
    if not ode.arrays:
        return None
    return {name: _labelled(name, values) for name, values in {"t": t, **ode.arrays}.items()}


def _quadrature(request: Request, theory: Theory) -> dict[str, Any]:
    choice = theory.choice
    error = max(choice.error, _near_singular_error(request, theory)[1])
    return {
        "rule": str(choice.rule), "error": error, "derivatives": choice.derivatives,
        "converged": choice.error <= max(request.tol, 1e-14), "output_error": theory.output_error, "tol": request.tol,
    }  # fmt: skip


def _warnings(
    request: Request, theory: Theory, ode: Continuous, simulation: SimulationResult | None, checks: tuple
) -> tuple[str, ...]:
    found = list(theory.notes)
    found += [ode.failure] if ode.failure else []
    found += _near_singular(request, theory)
    found += simulation_warnings(simulation, checks)
    return tuple(found)


def _near_singular_error(request: Request, theory: Theory) -> tuple[float, float]:
    """(1 - rho^2, bound): kinked activations lose digits where two inputs are nearly, but not exactly, collinear."""
    K0 = theory["K0"]
    variances = np.diagonal(K0, axis1=1, axis2=2)
    scale = variances[:, :, None] * variances[:, None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        defect = np.where(scale > 0, 1 - K0**2 / scale, 1.0)
    near = defect[(defect > 500 * np.finfo(float).eps) & (defect < 1e-6)]
    if request.activation.smooth or not near.size:
        return 1.0, 0.0
    return float(np.min(near)), float(np.finfo(float).eps / np.min(near))


def _near_singular(request: Request, theory: Theory) -> list[str]:
    defect, bound = _near_singular_error(request, theory)
    if not bound:
        return []
    return [
        f"two inputs are nearly collinear (1 - rho^2 = {defect:.1e}): second derivatives of {request.activation.name} "
        f"there are known to about {bound:.1e} relative"
    ]


def _shown(request: Request, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the report and the summary: every option, with what was made of it."""
    return {**request.parameters(settings), "n_inputs": request.inputs.count, "gamma": request.gamma}  # type: ignore[arg-type]


def _tell(context: RunContext, run: HierarchyRun, folder: Path) -> None:
    context.show(terminal_table(run, context.width))
    quadrature = run.quadrature
    context.say(f"quadrature {quadrature['rule']} ({quadrature['derivatives']}): moments to {quadrature['error']:.1e}, "
                f"K_0, V_4, K_1 to {quadrature['output_error']:.1e}")  # fmt: skip
    passed = sum(result.outcome.passed for result in run.checks or ())
    context.say(f"derivation: {passed} of {len(run.checks or ())} checks passed")
    for warning in run.warnings:
        context.note(f"warning: {warning}")
    context.say(f"report: {folder / 'report.html'}")
