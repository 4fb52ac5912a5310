r"""The command: theory at one loop, the share of each diagram, and simulations at three noise strengths if asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from derivations.rate_network.network import PAIRS, VARIABLES, D, Network, read_network
from derivations.rate_network.steps import CLASSES, class_of, kernels, steps
from symtensor.derivation.document import Math
from symtensor.derivation.field_run import (
    Compared,
    ComparisonTable,
    Curves,
    FieldResults,
    Panel,
    Points,
    Table,
    Work,
    loop_name,
    partial_sums,
    require_samples,
    run_fields,
)
from symtensor.derivation.formats import number
from symtensor.derivation.model import Derivation
from symtensor.derivation.results import Labelled
from symtensor.derivation.settings import RunContext, RunResult, Settings

__all__ = ["run_derivation"]

Array = NDArray[np.float64]
#: time differences that are measured; the curves have DENSITY points for each, the tables a row for every second one
LAGS, DENSITY = 8, 16
#: noise strengths of the simulations, in units of D
FRACTIONS = (0.25, 0.5, 1.0)
TREE, ONE = loop_name(0), loop_name(1)
LEFT_OUT = "What one loop leaves out is estimated by the two-loop term, continued as a geometric series."
#: equal-time quantities by name: LaTeX, variables
MOMENTS = {
    "<u>": (r"\langle u\rangle", (0,)),
    "<v>": (r"\langle v\rangle", (1,)),
    "Var u": (r"\langle u^2\rangle_c", (0, 0)),
    "Cov(u, v)": (r"\langle u v\rangle_c", (0, 1)),
    "Var v": (r"\langle v^2\rangle_c", (1, 1)),
}


def run_derivation(derivation: Derivation, settings: Settings, context: RunContext) -> RunResult:
    """Run everything for the network of the options and leave it in the folder ``settings["out"]``."""
    require_samples(settings)
    network = read_network(settings)
    _ = network.theory  # a network without one stable fixed point is refused before anything is written
    asked = replace(derivation, steps=partial(steps, network), kernels=partial(kernels, network))
    return run_fields(asked, settings, context, partial(_compute, network=network))


def _compute(work: Work, network: Network) -> FieldResults:
    noise, samples = work.settings["noise"], work.settings["samples"]
    t = np.linspace(0.0, work.settings["t_max"], LAGS * DENSITY + 1)
    with work.timed("theory"):
        curves = {pair: partial_sums(work.evaluate(f"c_{pair}", t=t, D=noise)) for pair in PAIRS}
        curves = {pair: {name: np.broadcast_to(v, t.shape) for name, v in found.items()} for pair, found in curves.items()}
        coefficients = {name: _coefficients(work, network, variables) for name, (_, variables) in MOMENTS.items()}
    measured = (
        [_simulated(work, network, f * noise, f"simulation_{n}") for n, f in enumerate(FRACTIONS, start=1)] if samples else []
    )
    comparisons: list[ComparisonTable] = []
    if measured:
        with work.timed("two loops, for the truncation"):
            one = {pair: (found[ONE] - found[TREE])[::DENSITY] for pair, found in curves.items()}
            neglected = {p: _remainder(one[p], _two_loops(network, p, t[::DENSITY]) * noise**3) for p in PAIRS}
        comparisons = [
            _moment_table(coefficients, measured), _scaling_table(coefficients, measured),
            *(_curve_table(pair, curves[pair], neglected[pair], measured[-1]) for pair in PAIRS),
        ]  # fmt: skip
    figures = (_figure(t, curves, measured), _diagram_figure(work, network, t), _scaling_figure(coefficients, noise, measured))
    values: dict[str, Any] = {
        "fixed_point": [float(x) for x in network.point], "rates": [str(sp.N(r, 10)) for r in network.linear.rates],
        "coefficients": {name: list(c) for name, c in coefficients.items()},
        "moments": {name: dict(_theory(name, c, noise)) for name, c in coefficients.items()},
    }  # fmt: skip
    if measured:
        values["simulation"] = {
            f"D = {m['noise'][0]:g}": {name: float(m[name][0]) for name in ("walkers", "control_z", "step_error")} for m in measured
        }
    return FieldResults(
        comparisons=tuple(comparisons), figures=figures, tables=(_theory_table(coefficients, noise), _shares(work, network)),
        values=values, arrays=_arrays(t, curves), remarks=(_remark(coefficients, noise),), warnings=tuple(_warnings(measured)),
    )  # fmt: skip


# -- theory ------------------------------------------------------------------------------------------------------------


def _coefficients(work: Work, network: Network, variables: tuple[int, ...]) -> tuple[float, float, float]:
    """Tree level, one loop and two loops of an equal-time cumulant at D = 1; the last by the moment hierarchy."""
    names = "".join(str(VARIABLES[i]) for i in variables)
    found = work.evaluate(f"mean_{names}", D=1.0) if len(variables) == 1 else work.evaluate(f"c_{names}", t=0.0, D=1.0)
    legs = {i: variables.count(i) for i in variables}
    two = network.without_diagrams(legs, 2).values(None, {D: 1})[2]
    return float(found["order_0"]), float(found["order_1"]), float(two)


def _two_loops(network: Network, pair: str, times: Array) -> Array:
    one, other = PAIRS[pair]
    return network.without_diagrams([{one: 1}, {other: 1}], 2).values(times, {D: 1})[2]


def _power(name: str) -> int:
    """The power of D at tree level."""
    return len(MOMENTS[name][1]) - 1


def _theory(name: str, coefficients: tuple[float, ...], noise: float) -> dict[str, float]:
    tree, one, _ = (c * noise ** (_power(name) + loops) for loops, c in enumerate(coefficients))
    return {TREE: tree, ONE: tree + one}


def _truncation(name: str, coefficients: tuple[float, ...], noise: float) -> float:
    power = _power(name)
    return float(_remainder(coefficients[1] * noise ** (power + 1), coefficients[2] * noise ** (power + 2)))


def _remainder(one: Any, two: Any) -> Array:
    """What one loop leaves out if further orders fall by the ratio of two loops to one; infinite if they do not fall."""
    largest = float(np.max(np.abs(one)))
    ratio = float(np.max(np.abs(two))) / largest if largest else np.inf
    return np.abs(two) / (1 - ratio) if ratio < 1 else np.full(np.shape(two), np.inf)


def _theory_table(coefficients: Mapping[str, tuple[float, ...]], noise: float) -> Table:
    rows = []
    for name, found in coefficients.items():
        theory = _theory(name, found, noise)
        correction = theory[ONE] - theory[TREE]
        two = found[2] * noise ** (_power(name) + 2)
        cells = [number(v) for v in (theory[TREE], correction, theory[ONE])] + [number(two, 3)]
        rows.append((Math(f"${MOMENTS[name][0]}$"), *cells, f"{100 * correction / theory[TREE]:.2f} %"))
    caption = rf"Equal-time moments at $D = {noise:g}$; the two-loop term, by the moment hierarchy, is what one loop leaves out."
    return Table(caption, ("", TREE, "one-loop term", ONE, "two-loop term", "one loop / tree"), tuple(rows))


def _shares(work: Work, network: Network) -> Table:
    """The part of every one-loop diagram in the equal-time covariances, relative to tree level."""
    noise, names = work.settings["noise"], ("uu", "uv", "vv")
    terms = {pair: list(network.covariance(pair).at(1)) for pair in names}
    parts = {pair: list(work.evaluate(f"diagrams_{pair}", t=0.0, D=noise).values()) for pair in names}
    trees = {pair: float(work.evaluate(f"c_{pair}", t=0.0, D=noise)["order_0"]) for pair in names}
    by_diagram = {pair: dict(zip((term.diagram.canonical for term in terms[pair]), parts[pair])) for pair in names}
    rows: list[tuple[Any, ...]] = []
    for at, term in enumerate(terms["uu"], start=1):
        kind = class_of(term)
        shares = [by_diagram[pair].get(term.diagram.canonical) for pair in names]
        cells = ["0" if s is None else f"{100 * float(s) / trees[p]:+.3f} %" for s, p in zip(shares, names)]
        rows.append((str(at), kind, CLASSES[kind], str(term.symmetry_factor), *cells))
    totals = [f"{100 * float(sum(parts[pair])) / trees[pair]:+.3f} %" for pair in names]
    rows.append(("sum", "", "", "", *totals))
    header = ("diagram", "class", "what it does", "symmetry factor", *(Math(rf"$\langle {a}{b}\rangle$") for a, b in names))
    caption = (
        rf"Each one-loop diagram of the covariance at equal times and $D = {noise:g}$, relative to tree level; diagrams are "
        "numbered as they are drawn below. All are proportional to $D$."
    )
    return Table(caption, header, tuple(rows))


def _remark(coefficients: Mapping[str, tuple[float, ...]], noise: float) -> str:
    ratios = {name: abs(c[2]) * noise / abs(c[1]) for name, c in coefficients.items() if c[1]}
    worst = max(ratios, key=lambda name: ratios[name])
    text = (
        f"The two-loop term is at most {100 * ratios[worst]:.2g} % of the one-loop term (${MOMENTS[worst][0]}$); the ratio is "
        "proportional to $D$."
    )
    return text if ratios[worst] < 0.5 else text + " One loop is not enough at this noise strength."


# -- simulation --------------------------------------------------------------------------------------------------------


def _simulated(work: Work, network: Network, noise: float, file: str) -> dict[str, Array]:
    """Means, C(t) with standard errors at one noise strength; read again if this folder has them."""
    from symtensor.numerics.langevin import simulate_langevin

    settings = work.settings
    names = ("samples", "duration", "step", "seed", "t_max")
    key = {
        "drift": [sp.sstr(f) for f in network.drift().values()], "point": [sp.sstr(x) for x in network.point], "noise": noise,
        **{name: settings[name] for name in names},
    }  # fmt: skip

    def measure() -> dict[str, Any]:
        with work.timed("simulation") as progress:
            run = simulate_langevin(
                list(network.drift().values()), sp.sqrt(2 * D), variables=VARIABLES, parameters={"D": noise},
                point=[float(x) for x in network.point], step=settings["step"],
                times=np.linspace(0.0, settings["t_max"], LAGS + 1), walkers=settings["samples"], duration=settings["duration"],
                seed=settings["seed"], memory_mb=settings["memory_mb"], progress=progress,
            )  # fmt: skip
        error = np.max(np.abs(run.correlation.step_error / run.correlation.se))
        return {
            "times": run.times, "mean": run.mean.value, "mean_se": run.mean.se, "correlation": run.correlation.value,
            "correlation_se": run.correlation.se, "walkers": run.walkers, "control_z": run.control_z, "step_error": error,
            "noise": noise,
        }  # fmt: skip

    return work.stored(key, measure, file)


def _measured(name: str, found: Mapping[str, Array]) -> tuple[float, float]:
    variables = MOMENTS[name][1]
    if len(variables) == 1:
        return float(found["mean"][variables[0]]), float(found["mean_se"][variables[0]])
    place = (0, *variables)
    return float(found["correlation"][place]), float(found["correlation_se"][place])


def _moment_table(coefficients: Mapping[str, tuple[float, ...]], measured: list[dict[str, Array]]) -> ComparisonTable:
    rows = []
    for found in measured:
        noise = float(found["noise"][0])
        for name, numbers in coefficients.items():
            value, se = _measured(name, found)
            latex = rf"{MOMENTS[name][0]},\ D = {noise:g}"
            truncation = _truncation(name, numbers, noise)
            rows.append(Compared(f"{name}, D = {noise:g}", latex, _theory(name, numbers, noise), value, se, truncation))
    caption = f"Means and equal-time covariances at three noise strengths. {LEFT_OUT}"
    return ComparisonTable(caption, "simulation", tuple(rows), "Means and equal-time covariances")


def _scaling_table(coefficients: Mapping[str, tuple[float, ...]], measured: list[dict[str, Array]]) -> ComparisonTable:
    """The exponent k of the correction, measured - tree ~ D^k, between the two largest noise strengths."""
    low, high = measured[-2:]
    rows = []
    for name, numbers in coefficients.items():
        corrections, errors, next_orders = [], [], []
        for found in (low, high):
            noise = float(found["noise"][0])
            value, se = _measured(name, found)
            corrections.append(value - _theory(name, numbers, noise)[TREE])
            errors.append(se / corrections[-1])
            next_orders.append(1 + numbers[2] * noise / numbers[1] if numbers[1] else 1.0)
        ratio, doubling = corrections[1] / corrections[0], np.log(float(high["noise"][0] / low["noise"][0]))
        if ratio <= 0 or next_orders[1] / next_orders[0] <= 0:
            continue  # a correction that is zero within its error has no exponent
        exponent, se = float(np.log(ratio) / doubling), float(np.hypot(*errors) / doubling)
        one = float(_power(name) + 1)
        shift = float(np.log(next_orders[1] / next_orders[0]) / doubling)
        latex = rf"d\ln|{MOMENTS[name][0]} - \mathrm{{tree}}|/d\ln D"
        rows.append(Compared(f"exponent of {name}", latex, {ONE: one}, exponent, se, abs(shift)))
    caption = "How the corrections grow with the noise: exponents of $D$; the truncation is the shift that two loops make."
    return ComparisonTable(caption, "simulation", tuple(rows), "How the corrections grow with the noise")


def _curve_table(pair: str, curve: Mapping[str, Array], neglected: Array, found: Mapping[str, Array]) -> ComparisonTable:
    one, other = PAIRS[pair]
    rows = []
    for at in range(0, LAGS + 1, 2):
        theory = {name: float(values[at * DENSITY]) for name, values in curve.items()}
        value, se = float(found["correlation"][at, one, other]), float(found["correlation_se"][at, one, other])
        name = f"<{pair[0]}({found['times'][at]:g}) {pair[1]}(0)>"
        latex = rf"\langle {pair[0]}({found['times'][at]:g})\,{pair[1]}(0)\rangle_c"
        rows.append(Compared(name, latex, theory, value, se, float(neglected[at])))
    caption = rf"$\langle {pair[0]}(t)\,{pair[1]}(0)\rangle_c$. {LEFT_OUT}"
    return ComparisonTable(caption, "simulation", tuple(rows), f"<{pair[0]}(t) {pair[1]}(0)>")


def _warnings(measured: list[dict[str, Array]]) -> list[str]:
    found = []
    for run in measured:
        noise = float(run["noise"][0])
        if run["control_z"][0] > 5:
            found.append(f"D = {noise:g}: the linear process is {run['control_z'][0]:.1f} standard errors from its exact means")
        if run["step_error"][0] > 10:
            found.append(f"D = {noise:g}: the step changes C by {run['step_error'][0]:.0f} standard errors; use a smaller --step")
    return found


# -- figures -----------------------------------------------------------------------------------------------------------


def _figure(t: Array, curves: Mapping[str, Mapping[str, Array]], measured: list[dict[str, Array]]) -> Curves:
    panels = []
    for pair, curve in curves.items():
        points: tuple[Points, ...] = ()
        if measured:
            place = (slice(None), *PAIRS[pair])
            points = (Points(measured[-1]["times"], measured[-1]["correlation"][place], measured[-1]["correlation_se"][place]),)
        lines = {name: (t, values) for name, values in curve.items()}
        panels.append(Panel(rf"\langle {pair[0]}(t)\,{pair[1]}\rangle", lines, points))
    return Curves("Covariances as functions of time, tree level and one loop.", "t", tuple(panels))


def _diagram_figure(work: Work, network: Network, t: Array) -> Curves:
    panels = []
    for pair in ("uu", "uv", "vu", "vv"):
        found = work.evaluate(f"diagrams_{pair}", t=t, D=work.settings["noise"])
        sums = {name: np.zeros(len(t)) for name in CLASSES}
        for term, values in zip(network.covariance(pair).at(1), found.values()):
            sums[class_of(term)] = sums[class_of(term)] + values
        panels.append(Panel(rf"\langle {pair[0]}(t)\,{pair[1]}\rangle_1", {name: (t, values) for name, values in sums.items()}))
    return Curves("The one-loop covariances by classes of diagrams.", "t", tuple(panels))


def _scaling_figure(coefficients: Mapping[str, tuple[float, ...]], noise: float, measured: list[dict[str, Array]]) -> Curves:
    strengths = np.linspace(0.0, 1.1 * noise, 45)
    panels = []
    for name, (tree, one, two) in coefficients.items():
        power = _power(name) + 1
        lines = {
            ONE: (strengths, np.full(len(strengths), one)),
            "with the two-loop term": (strengths, one + two * strengths),
        }
        points: tuple[Points, ...] = ()
        if measured:
            x = np.array([float(found["noise"][0]) for found in measured])
            values = np.array([_measured(name, found) for found in measured])
            points = (Points(x, (values[:, 0] - tree * x ** (power - 1)) / x**power, values[:, 1] / x**power),)
        unit = "D" if power == 1 else f"D^{power}"
        panels.append(Panel(rf"\Delta{MOMENTS[name][0]}/{unit}", lines, points))
    caption = "Corrections to tree level, divided by the power of $D$ that one loop has; constant as far as one loop suffices."
    return Curves(caption, "D", tuple(panels))


def _arrays(t: Array, curves: Mapping[str, Mapping[str, Array]]) -> dict[str, Labelled]:
    found = {"t": Labelled(t, ("time",), "time difference")}
    for pair, curve in curves.items():
        for name, values in curve.items():
            found[f"c_{pair}_{name.replace(' ', '_')}"] = Labelled(
                values, ("time",), f"<{pair[0]}(t) {pair[1]}(0)> connected, {name}"
            )
    return found
