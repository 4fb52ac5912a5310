"""The command: the series about the metastable state, where it stops to help, and the simulation with its escapes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from derivations.quadratic_langevin.steps import LOOPS, G, T, formal_series
from symtensor.derivation.field_run import (
    Compared,
    ComparisonTable,
    Curves,
    FieldResults,
    Panel,
    Points,
    Table,
    Work,
    few_samples,
    partial_sums,
    require_samples,
    run_fields,
)
from symtensor.derivation.formats import number
from symtensor.derivation.model import Derivation
from symtensor.derivation.results import Labelled
from symtensor.derivation.settings import OptionError, RunContext, RunResult, Settings
from symtensor.fields.hierarchy import MomentHierarchy

__all__ = ["LEAST_BARRIER", "barrier", "run_derivation"]

#: the barrier over T below which no simulation is started
LEAST_BARRIER = 15
#: orders of the formal series that are listed
ORDERS = 24
#: time differences of the simulation, and the spacing of the curve within them
LAGS, DENSITY, T_MAX = 12, 8, 3.0
#: the absorbing bounds, in units of the distance 1/g of the barrier
BOUNDS = (-6.0, 1.5)


def barrier(settings: Mapping[str, Any]) -> float:
    """The height of the barrier over the temperature, 1/(6 g^2 T)."""
    return 1 / (6 * settings["g"] ** 2 * settings["temperature"])


def run_derivation(derivation: Derivation, settings: Settings, context: RunContext) -> RunResult:
    """Run everything and leave it in the folder ``settings["out"]``.

    Raises OptionError: a simulation is asked for, and the barrier is too low for a metastable state.
    """
    if require_samples(settings) and barrier(settings) < LEAST_BARRIER:
        largest = math.sqrt(1 / (6 * LEAST_BARRIER * settings["temperature"]))
        raise OptionError(
            f"--samples {settings['samples']}: the barrier is {barrier(settings):.3g} T, and below {LEAST_BARRIER} T escapes "
            f"spoil the averages; take --g at most {largest:.4g} at this temperature, or --samples 0"
        )
    return run_fields(derivation, settings, context, _compute)


def _compute(work: Work) -> FieldResults:
    g, temperature = work.settings["g"], work.settings["temperature"]
    with work.timed("formal series"):
        series = {power: _terms(power, g, temperature) for power in (1, 2)}
    with work.timed("theory"):
        t = np.linspace(0.0, T_MAX, LAGS * DENSITY + 1)
        curve = partial_sums(work.evaluate("correlation", t=t, T=temperature, g=g))
        average = partial_sums(work.evaluate("mean", T=temperature, g=g))
    well = _well_moments(g, temperature)
    theory = {1: average, 2: {name: values[0] for name, values in curve.items()}}
    comparisons = [_well_table(theory, well, series, work.settings)]
    measured = _simulated(work) if work.settings["samples"] else None
    values: dict[str, Any] = {
        "barrier": barrier(work.settings), "well_mean": well[1], "well_variance": well[2],
        "terms_mean": [float(term) for term in series[1]], "escape_rate": math.exp(-barrier(work.settings)) / (2 * math.pi),
    }  # fmt: skip
    if measured is not None:
        comparisons += _simulation_tables(average, curve, series, work.settings, measured)
        values["simulation"] = {name: float(measured[name][0]) for name in ("escaped", "walkers", "control_z")}
    return FieldResults(
        comparisons=tuple(comparisons), figures=(_divergence(series, well, work.settings), _curve_figure(t, curve, measured)),
        tables=(_term_table(series, well),), values=values, arrays=_arrays(t, curve), remarks=_remarks(work, measured),
        warnings=_warnings(work, measured),
    )  # fmt: skip


_NAMES = {1: ("<x>", r"\langle x\rangle"), 2: ("<x^2>_c", r"\langle x^2\rangle_c")}


def _terms(power: int, g: float, temperature: float) -> list[float]:
    """The orders of the formal series of a cumulant, tree level first."""
    numbers = {G: sp.Rational(repr(g)), T: sp.Rational(repr(temperature))}
    return [float(term.subs(numbers)) for term in formal_series(power, ORDERS)]


def _well_moments(g: float, temperature: float) -> dict[int, float]:
    """Mean and variance of the density restricted to x < 1/g: it differs from the metastable one by about exp(-barrier)."""
    with mpmath.workdps(30):
        force, heat, top = mpmath.mpf(g), mpmath.mpf(temperature), 1 / mpmath.mpf(g)
        width = mpmath.sqrt(heat)
        points = [-12 * width, -4 * width, 0, min(4 * width, top), top]

        def moment(power: int) -> Any:
            return mpmath.quad(lambda x: x**power * mpmath.exp((force * x**3 / 3 - x**2 / 2) / heat), points)

        norm, first, second = (moment(power) for power in (0, 1, 2))
        return {1: float(first / norm), 2: float(second / norm - (first / norm) ** 2)}


def _smallest(terms: list[float]) -> int:
    """The order of the smallest term that does not vanish."""
    sizes = {order: abs(term) for order, term in enumerate(terms) if term}
    return min(sizes, key=lambda order: sizes[order])


def _rest(terms: list[float]) -> float:
    """What an approximation with LOOPS loops leaves out: the later terms up to the smallest; all have one sign."""
    return sum(terms[LOOPS + 1 : max(_smallest(terms), LOOPS + 1) + 1])


def _well_table(
    theory: Mapping[int, Mapping[str, Any]], well: Mapping[int, float], series: Mapping[int, list[float]], settings: Settings
) -> ComparisonTable:
    """Approximations by loops, and the series cut at its smallest term, against the density restricted to the well."""
    # where the well ends changes its averages by the density there, which reaches to 1/g
    end = {power: math.exp(-barrier(settings)) / settings["g"] ** power for power in (1, 2)}
    rows = []
    for power, (name, latex) in _NAMES.items():
        terms = series[power]
        last = _smallest(terms)
        numbers = {key: float(value) for key, value in theory[power].items()} | {"to the smallest term": sum(terms[: last + 1])}
        rows.append(Compared(name, latex, numbers, well[power], 0.0, abs(terms[last]) + end[power]))
    caption = (
        r"Approximations by loops, and the formal series up to its smallest term, against the density restricted to the well. "
        r"Truncation: the smallest term, and $g^{-n} e^{-\Delta U/T}$ for the moment $n$."
    )
    return ComparisonTable(caption, "well", tuple(rows), "Mean and variance in the well")


def _term_table(series: Mapping[int, list[float]], well: Mapping[int, float]) -> Table:
    rows = []
    total = 0.0
    for loops, term in enumerate(series[1]):
        total += term
        rows.append((str(loops), number(term), number(total, 10), number(total - well[1], 3)))
    caption = (
        r"The formal series of the mean: terms, sums, and the distance from the mean of the density restricted to the well "
        r"$x < 1/g$. The terms fall, and then grow."
    )
    return Table(caption, ("loops", "term", "sum", "distance"), tuple(rows))


# -- simulation --------------------------------------------------------------------------------------------------------


def _simulated(work: Work) -> dict[str, np.ndarray]:
    settings = work.settings
    names = ("g", "temperature", "step", "duration", "samples", "seed")

    def measure() -> dict[str, Any]:
        from symtensor.numerics.langevin import simulate_langevin

        x = sp.Symbol("x", real=True)
        with work.timed("simulation") as progress:
            run = simulate_langevin(
                -x + G * x**2, sp.sqrt(2 * T), variables=x, parameters={"g": settings["g"], "T": settings["temperature"]},
                step=settings["step"], times=np.linspace(0.0, T_MAX, LAGS + 1), walkers=settings["samples"],
                duration=settings["duration"], seed=settings["seed"], degree=2,
                bounds=(BOUNDS[0] / settings["g"], BOUNDS[1] / settings["g"]), memory_mb=settings["memory_mb"], progress=progress,
            )  # fmt: skip
        found: dict[str, Any] = {"times": run.times, "escaped": run.escaped, "walkers": run.walkers, "control_z": run.control_z}
        found |= {"mean": run.mean.value, "mean_se": run.mean.se}
        return found | {"correlation": run.correlation.value[:, 0, 0], "correlation_se": run.correlation.se[:, 0, 0]}

    return work.stored({name: settings[name] for name in names}, measure)


def _simulation_tables(
    average: Mapping[str, Any], curve: Mapping[str, np.ndarray], series: Mapping[int, list[float]], settings: Settings,
    measured: Mapping[str, np.ndarray],
) -> list[ComparisonTable]:  # fmt: skip
    """Mean and C(t) against the trajectories that have not escaped; truncation: the later terms of the formal series."""
    name, latex = _NAMES[1]
    numbers = {key: float(value) for key, value in average.items()}
    row = Compared(name, latex, numbers, float(measured["mean"][0]), float(measured["mean_se"][0]), _rest(series[1]))
    caption = "Mean of the trajectories that have not escaped."
    tables = [ComparisonTable(caption, "simulation", (row,), "Mean")]
    x, t = sp.Symbol("x", real=True), measured["times"]
    orders = MomentHierarchy(-x + G * x**2, sp.sqrt(2 * T), x, G).correlation(x, x, 2 * LOOPS + 2)
    third = orders.values(t, {"T": settings["temperature"]})[-1] * settings["g"] ** (2 * LOOPS + 2)
    neglected = third * _rest(series[2]) / third[0]
    found = []
    for at in range(0, LAGS + 1, 2):
        numbers = {name: float(values[at * DENSITY]) for name, values in curve.items()}
        point, se = float(measured["correlation"][at]), float(measured["correlation_se"][at])
        found.append(Compared(f"C({t[at]:g})", f"C({t[at]:g})", numbers, point, se, float(neglected[at])))
    caption = (
        "$C(t)$ of the trajectories that have not escaped. The truncation is the third order, by the moment hierarchy, times what "
        "the later terms add to it at $t = 0$."
    )
    return [*tables, ComparisonTable(caption, "simulation", tuple(found), "C(t)")]


# -- report ------------------------------------------------------------------------------------------------------------


def _remarks(work: Work, measured: Mapping[str, np.ndarray] | None) -> tuple[str, ...]:
    height = barrier(work.settings)
    rate = math.exp(-height) / (2 * math.pi)
    text = (
        rf"The series is asymptotic about a metastable state behind a barrier of ${height:.3g}\,T$; its terms fall up to order "
        rf"${max(int(height), 1)}$ or so, and no sum of it is defined beyond $e^{{-{height:.3g}}} = {math.exp(-height):.1e}$."
    )
    if measured is None:
        return (text,)
    time = work.settings["duration"] + T_MAX + 12
    expected = float(measured["walkers"][0]) * time * rate
    seen = (
        f"{int(measured['escaped'][0])} of {int(measured['walkers'][0])} trajectories escaped and were taken out; the rate of "
        f"Kramers, {rate:.1e}, lets expect about {expected:.2g} in the time of the simulation."
    )
    return (text, seen)


def _warnings(work: Work, measured: Mapping[str, np.ndarray] | None) -> tuple[str, ...]:
    found = [] if measured is None else few_samples(float(measured["walkers"][0]))
    if barrier(work.settings) < LEAST_BARRIER:
        found.append(f"the barrier is only {barrier(work.settings):.3g} T: the well is hardly metastable, and no simulation is run")
    if measured is not None and measured["control_z"][0] > 5:
        found.append(f"the linear process is {measured['control_z'][0]:.1f} standard errors from its exact means: distrust the run")
    if measured is not None and measured["escaped"][0] > 0.01 * measured["walkers"][0]:
        found.append("more than one trajectory in a hundred has escaped: the averages are those of the survivors")
    return tuple(found)


def _divergence(series: Mapping[int, list[float]], well: Mapping[int, float], settings: Mapping[str, Any]) -> Curves:
    """Size of the terms and of the error of the mean against the order at which the series is cut."""
    orders = np.arange(1, ORDERS + 1)
    terms = np.abs(np.array(series[1][1:]))
    errors = np.maximum(np.abs(np.cumsum(series[1])[1:] - well[1]), 1e-17)
    scale = abs(well[1])
    level = np.full(len(orders), math.exp(-barrier(settings)))
    lines = {"term": (orders, terms / scale), "error of the sum": (orders, errors / scale), r"$e^{-\Delta U/T}$": (orders, level)}
    caption = (
        "The mean: relative size of each term, and relative distance of the sum to that order from the mean in the well. The "
        "series gets better until the terms are as small as the probability to be on the barrier, and then worse."
    )
    return Curves(caption, r"\mathrm{loops}", (Panel(r"\langle x\rangle", lines, log=True),))


def _curve_figure(t: np.ndarray, curve: Mapping[str, np.ndarray], measured: Mapping[str, np.ndarray] | None) -> Curves:
    points: tuple[Points, ...] = ()
    if measured is not None:
        points = (Points(measured["times"], measured["correlation"], measured["correlation_se"]),)
    caption = "Fluctuations about the mean." + (" Points: simulation." if measured is not None else "")
    return Curves(caption, "t", (Panel("C(t)", {name: (t, values) for name, values in curve.items()}, points),))


def _arrays(t: np.ndarray, curve: Mapping[str, np.ndarray]) -> dict[str, Labelled]:
    found = {"t": Labelled(t, ("time",), "time difference")}
    for name, values in curve.items():
        found[f"correlation_{name.replace(' ', '_')}"] = Labelled(values, ("time",), f"C(t), {name}")
    return found
