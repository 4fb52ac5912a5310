r"""What the derivations in field theory share: options, the run, the comparison of approximations with measured numbers.

A derivation gives steps (`diagram_steps`), kernels (`sum_kernel` of each diagram sum) and a function that computes:

    def compute(work: Work) -> FieldResults: ...
    DERIVATION = Derivation(.., steps=steps, kernels=kernels, options=(.., *common_options("name")), run=..)
    run_fields(DERIVATION, settings, context, compute)

`run_fields` prepares the folder, generates the module from the kernels, calls `compute` with it, runs the checks of the steps, and
writes report.html, summary.json, results.nc and the module.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symtensor._codegen import codegen
from symtensor.derivation.field_results import Compared, ComparisonTable, Curves, FieldResults, FieldRun, Panel, Points, Table
from symtensor.derivation.model import Derivation, run_checks
from symtensor.derivation.output import prepare_output
from symtensor.derivation.provenance import library_versions
from symtensor.derivation.results import RESULTS_NAME, Labelled, read_netcdf, to_json, write_netcdf, write_summary, write_text
from symtensor.derivation.settings import INCIDENTAL, Option, OptionError, RunContext, RunResult, Settings
from symtensor.kernels import Argument, ScalarKernel

if TYPE_CHECKING:
    from symtensor.fields import DiagramSum

__all__ = [
    "Compared", "ComparisonTable", "Curves", "FieldResults", "FieldRun", "Panel", "Points", "Table", "Work", "common_options",
    "few_samples", "loop_name", "partial_sums", "require_samples", "run_fields", "sum_kernel",
]  # fmt: skip

#: the fewest trajectories that give standard errors: one for each group of the simulation
FEWEST = 64
OUTPUTS = """\
report.html         read this: comparisons, curves, the derivation with every diagram; opens offline
summary.json        all numbers: values, comparisons with z-scores, checks, warnings
results.nc          the curves, as arrays with named axes (NetCDF)
{name}.py    the generated JAX module; it needs only jax
parameters.json     what the folder was made from; other parameters in the same folder are refused
simulation.nc       with --samples: what was measured, read again by a run with the same parameters"""


# -- the run ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Work:
    """What `compute` is given: settings, the module generated from the derivation's kernels, the folder, progress."""

    settings: Settings
    context: RunContext
    folder: Path
    module: Any
    timings: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[Callable[[int, int], None]]:
        """Time the block under `name`; yields `update(done, total)` of a progress bar."""
        start = time.perf_counter()
        with self.context.progress(name) as update:
            yield update
        self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - start

    def evaluate(self, kernel: str, **arguments: Any) -> dict[str, np.ndarray]:
        """The outputs of a kernel of the generated module by name, as NumPy arrays."""
        found = getattr(self.module.load(), kernel)(**arguments)
        outputs = found._asdict() if hasattr(found, "_asdict") else {kernel: found}
        return {name: np.asarray(value, float) for name, value in outputs.items()}

    def stored(
        self, key: Mapping[str, Any], compute: Callable[[], Mapping[str, Any]], name: str = "simulation"
    ) -> dict[str, np.ndarray]:
        """`compute()`, or what an earlier run in this folder stored under the same `key` (all that decides the numbers).

        `name` is that of the file, for a run with several simulations.
        """
        path, wanted = self.folder / f"{name}.nc", json.dumps(to_json(key), sort_keys=True)
        try:
            arrays, attributes = read_netcdf(path)
        except Exception:  # missing or cut short: it is computed again
            arrays, attributes = {}, {}
        if attributes.get("key") == wanted:
            self.context.note(f"the simulation is already there: read from {path.name}")
            return {n: variable.values for n, variable in arrays.items()}
        found = {n: np.atleast_1d(np.asarray(value, float)) for n, value in compute().items()}
        axes = {n: tuple(f"axis{at}_of_{size}" for at, size in enumerate(a.shape)) for n, a in found.items()}
        write_netcdf(path, {name: Labelled(a, axes[name]) for name, a in found.items()}, {"key": wanted})
        return found


def run_fields(
    derivation: Derivation, settings: Settings, context: RunContext, compute: Callable[[Work], FieldResults]
) -> RunResult:
    """Prepare the folder, generate the module, compute, check, and write everything to ``settings["out"]``.

    Raises:
        OutputError: the folder holds a run with other parameters, or is not usable; raised before work starts.
    """
    parameters = {key: value for key, value in settings.items() if key not in INCIDENTAL}
    folder = prepare_output(Path(settings["out"]), dict(settings), bool(settings["resume"]))
    if folder.note:
        context.note(folder.note)
    name = module_name(derivation)
    timings: dict[str, float] = {}
    start = time.perf_counter()
    kernels = derivation.resolved_kernels()
    package = codegen()
    module = package.generate(package.ModuleSpec(name, derivation.title, kernels, citations=_cited(derivation)))
    write_text(folder.path / f"{name}.py", module.source)
    timings["formulas and module"] = time.perf_counter() - start
    work = Work(settings, context, folder.path, module, timings)
    results = compute(work)
    with work.timed("derivation checks"):
        steps = derivation.resolved_steps()
        checks = run_checks(steps)
    run = FieldRun(derivation, parameters, steps, checks, results, module.source, library_versions(), timings, context.command)
    _write(folder.path, run)
    _tell(context, run, folder.path)
    return RunResult(output=folder.path, value=run)


def module_name(derivation: Derivation) -> str:
    """The name of the generated module."""
    return re.sub(r"\W+", "_", derivation.name)


def _cited(derivation: Derivation) -> tuple[str, ...]:
    return tuple(citation.text() for citation in derivation.citations)


def _write(folder: Path, run: FieldRun) -> None:
    results = run.results
    if results.arrays:
        write_netcdf(folder / RESULTS_NAME, dict(results.arrays), {"derivation": run.derivation.name, "command": run.command})
    summary = {
        "derivation": run.derivation.name,
        "parameters": dict(run.parameters),
        "values": dict(results.values),
        "comparisons": [_record(table) for table in results.comparisons],
        "checks": {f"{result.step}. {result.check.name}": result.outcome.passed for result in run.checks},
        "warnings": run.warnings,
        "versions": dict(run.versions),
        "timings": dict(run.timings),
        "command": run.command,
    }
    write_summary(folder / "summary.json", summary)
    write_text(folder / "report.html", run.document().html())


def _record(table: ComparisonTable) -> dict[str, Any]:
    """A comparison for summary.json."""
    rows = {
        row.name: {
            "theory": dict(row.theory), "measured": row.measured, "se": row.se, "truncation": row.truncation,
            "z": None if row.se == 0 else {name: row.z(name) for name in row.theory}, "agrees": row.agrees(table.threshold),
            "rejected": row.rejected(table.threshold),
        }
        for row in table.rows
    }  # fmt: skip
    return {"caption": table.caption, "source": table.source, "threshold": table.threshold, "rows": rows}


def _tell(context: RunContext, run: FieldRun, folder: Path) -> None:
    from symtensor.derivation.field_report import terminal_table

    for table in run.results.comparisons:
        context.show(terminal_table(table))
    passed = sum(result.outcome.passed for result in run.checks)
    context.say(f"derivation: {passed} of {len(run.checks)} checks passed")
    for warning in run.warnings:
        context.note(f"warning: {warning}")
    context.say(f"report: {folder / 'report.html'}")


# -- helpers ------------------------------------------------------------------------------------------------------------


def common_options(name: str, samples: int = 0, simulation: bool = True) -> tuple[Option, ...]:
    """--samples, --seed, --memory-mb (if there is a simulation), --out, --resume."""
    shared = (
        Option("--out", str, f"out/{name}", "folder of the results", metavar="DIR", group="output"),
        Option("--resume", bool, False, "go on with the run in --out; options that are not given are taken from there",
               group="output"),
    )  # fmt: skip
    if not simulation:
        return shared
    return (
        Option("--samples", int, samples, f"simulated trajectories, at least {FEWEST}; 0 skips the simulation", metavar="M",
               group="simulation", minimum=0),
        Option("--seed", int, 0, "seed of the simulation", group="simulation", minimum=0),
        Option("--memory-mb", float, 1024.0, "cap on the memory of the simulation", metavar="MB", group="simulation", above=0),
        *shared,
    )  # fmt: skip


def require_samples(settings: Settings) -> int:
    """The number of trajectories. Raises OptionError for too few to have a standard error."""
    samples = settings["samples"]
    if 0 < samples < FEWEST:
        raise OptionError(
            f"--samples {samples} is too few for standard errors; ask for at least {FEWEST}, or for 0 to skip the simulation"
        )
    return samples


def few_samples(walkers: float) -> list[str]:
    """A warning if a group of the simulation has so few trajectories that skewed averages may have too small standard errors."""
    if walkers >= 16 * FEWEST:
        return []
    return [
        f"only {walkers:.0f} trajectories: skewed averages may have standard errors that are too small; take --samples "
        f"{16 * FEWEST} or more"
    ]


def loop_name(loops: int) -> str:
    """The name of an approximation that ends with this number of loops."""
    words = ("tree level", "one loop", "two loops", "three loops", "four loops", "five loops", "six loops")
    return words[loops] if loops < len(words) else f"{loops} loops"


def sum_kernel(total: DiagramSum, name: str, title: str = "") -> ScalarKernel:
    """The kernel of a diagram sum: arguments are the times, latest first, then the parameters; outputs order_0, order_1, ..

    Raises:
        ValueError: a part proportional to delta(t), or complex rates, which are no functions of real arguments.
    """
    import sympy as sp

    if total.contact != 0 or total.expr.has(sp.I):
        raise ValueError(f"{total.title} has a part with delta(t) or complex rates, and is no kernel of real arguments")
    times = [moment for moment in total.legs.moments if isinstance(moment, sp.Symbol)]
    outputs = tuple((f"order_{loops}", part.expr) for loops, part in total.by_order().items())
    used = {symbol for _, expression in outputs for symbol in expression.free_symbols} - set(times)
    parameters = sorted({*used, *total.theory.parameters}, key=str)
    meaning = dict.fromkeys(map(str, times), "time difference")
    arguments = tuple(Argument(str(s), (), meaning.get(str(s), "parameter")) for s in (*times, *parameters))
    return ScalarKernel(name, arguments, outputs, title or total.title)


def partial_sums(outputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """{"tree level": .., "one loop": .., ..} from the outputs order_0, order_1, .. of a kernel: each the sum so far."""
    loops = sorted(int(name.removeprefix("order_")) for name in outputs if name.startswith("order_"))
    total, found = 0.0, {}
    for number in loops:
        total = total + np.asarray(outputs[f"order_{number}"], float)
        found[loop_name(number)] = total
    return found
