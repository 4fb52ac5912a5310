"""The cubic and the quadratic Langevin equation: exact routes, resummation, runs, and simulations that can tell orders apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

from derivations.cubic_langevin import DERIVATION as CUBIC
from derivations.cubic_langevin.exact import quartic_spectrum, transformed
from derivations.cubic_langevin.sums import TIME, G, T, correlation, hierarchy, response, resummed
from derivations.quadratic_langevin import DERIVATION as QUADRATIC
from derivations.quadratic_langevin.run import barrier
from derivations.quadratic_langevin.steps import formal_series
from symtensor.derivation.settings import OptionError, RunContext, Settings
from symtensor.fields.stationary_density import stationary_density_moments


def _run(derivation, tmp_path, **given):
    settings = Settings.defaults(derivation.options, out=str(tmp_path / "out"), **given)
    return derivation.run(settings, RunContext.silent()).value


def test_the_spectrum_agrees_with_the_stationary_density() -> None:
    x = sp.Symbol("x", real=True)
    exact = stationary_density_moments(-(x + sp.Rational(3, 2) * x**3), 1, x, [2], digits=18)[2]
    assert quartic_spectrum(1.5, 0.5, [0.0]).correlation(0.0) == pytest.approx(float(exact), rel=1e-11)
    assert quartic_spectrum(1.5, 0.5, [0.0]).response(0.0) == pytest.approx(1.0, rel=1e-10)


@pytest.mark.parametrize("name", ["correlation", "response"])
def test_the_error_of_two_loops_is_the_third_order(name: str) -> None:
    """At small g the exact curve minus two loops is g^3 times the third order; one loop or a wrong term would show at g^2."""
    g, times = 1e-3, np.array([0.3, 1.0, 3.0])
    spectrum = quartic_spectrum(g, 1.0, times)
    exact = getattr(spectrum, name)(times)
    total = {"correlation": correlation, "response": response}[name]().expr.subs({G: g, T: 1})
    found = np.array([float(total.subs(TIME, t)) for t in times])
    series = hierarchy().correlation("x", "x", 3) if name == "correlation" else hierarchy().response("x", "x", 3)
    third = series.values(times, {"T": 1})[3]
    assert (exact - found) / g**3 == pytest.approx(third, rel=0.05)


def test_a_rational_spectrum_becomes_its_function_of_time() -> None:
    w = sp.Symbol("w", real=True)
    values = transformed(2 * T / (1 + w**2), w, {T: 0.5}, np.array([0.1, 2.0]))
    assert values == pytest.approx(0.5 * np.exp([-0.1, -2.0]), rel=1e-12)


def test_the_resummed_series_is_closer_at_long_times() -> None:
    g, heat, times = 0.06, 0.5, np.array([0.0, 4.0])
    exact = quartic_spectrum(g, heat, times).correlation(times)
    w = sp.Symbol("omega", real=True)
    dyson = transformed(resummed("correlation", w), w, {G: g, T: heat}, times)
    bare = np.array([float(correlation().expr.subs({G: g, T: heat, TIME: t})) for t in times])
    assert abs(dyson - exact)[1] < 0.5 * abs(bare - exact)[1]


def test_the_error_of_the_spectrum_sees_a_box_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    assert quartic_spectrum(1.5, 0.5, [0.0]).error < 1e-11
    monkeypatch.setattr("derivations.cubic_langevin.exact._end", lambda g, temperature: 2.0)
    assert quartic_spectrum(1.5, 0.5, [0.0]).error > 1e-7


def test_cubic_run_with_a_simulation_that_tells_the_orders_apart(tmp_path) -> None:
    run = _run(CUBIC, tmp_path, samples=8192, duration=4.0, step=0.1, seed=3, g=0.04)
    assert run.warnings == [] and all(result.outcome.passed for result in run.checks)
    exact = {table.title: table for table in run.results.comparisons if table.source == "spectrum"}
    simulated = {table.title: table for table in run.results.comparisons if table.source == "simulation"}
    for name in ("C(t)", "R(t)"):
        assert exact[name].told_apart() == ["tree level", "one loop"]
        assert simulated[name].told_apart()[0] == "tree level"
    assert "one loop" in simulated["R(t)"].told_apart()
    assert max(abs(row.z("spectrum")) for row in simulated["exact R(t)"].rows) < simulated["exact R(t)"].threshold


def test_the_formal_series_of_the_metastable_mean() -> None:
    assert formal_series(1, 3) == (0, G * T, 5 * G**3 * T**2, 60 * G**5 * T**3)
    assert formal_series(2, 1) == (T, 4 * G**2 * T**2)


def test_quadratic_theory_alone(tmp_path) -> None:
    run = _run(QUADRATIC, tmp_path)
    assert run.warnings == [] and all(result.outcome.passed for result in run.checks)
    (table,) = run.results.comparisons
    assert table.approximations[-1] == "to the smallest term" and table.told_apart()[-1] == "two loops"
    row = table.rows[0]
    assert abs(row.measured - row.best) < 50 * math.exp(-barrier({"g": 0.1, "temperature": 1.0}))
    assert "metastable" in run.results.remarks[0]


def test_no_simulation_behind_a_low_barrier(tmp_path) -> None:
    with pytest.raises(OptionError, match="barrier"):
        _run(QUADRATIC, tmp_path, samples=128, g=0.2)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_quadratic_simulation_counts_escapes_and_rejects_the_saddle(tmp_path) -> None:
    run = _run(QUADRATIC, tmp_path, samples=512, duration=16.0, seed=1)
    tables = {table.title: table for table in run.results.comparisons if table.source == "simulation"}
    assert not tables["Mean"].failures and tables["Mean"].told_apart()[0] == "tree level"
    assert not tables["C(t)"].failures
    assert run.results.values["simulation"]["escaped"] == 0 and "escaped" in run.results.remarks[1]
