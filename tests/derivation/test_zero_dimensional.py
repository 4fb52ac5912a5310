"""Zero dimensions: large orders, integrals, 1/N, the run."""

from __future__ import annotations

import math

import mpmath
import pytest
import sympy as sp
from scipy.integrate import quad

from derivations.zero_dimensional import DERIVATION
from derivations.zero_dimensional.sums import (
    LOOPS,
    G,
    cubic_mean,
    growth,
    limit,
    quartic_series,
    quartic_two_point,
    radial_mean_square,
    total,
)
from symtensor.derivation.settings import RunContext, Settings


def test_the_series_without_diagrams_is_that_of_the_diagrams() -> None:
    diagrams = sp.Poly(total("phi4", "x,x").expr, G)
    assert [diagrams.coeff_monomial(G**n) for n in range(LOOPS + 1)] == list(quartic_series(LOOPS))


@pytest.mark.parametrize("factor", [1, sp.Rational(101, 100), sp.Rational(2, 3)])
def test_the_growth_has_its_factor_and_no_other(factor: sp.Rational) -> None:
    values = [sp.N(factor * c / growth(n), 40) for n, c in enumerate(quartic_series(30)) if n]
    assert (abs(limit(values, 1) - 1) < 1e-5) == (factor == 1)


def test_integrals_against_another_quadrature() -> None:
    def weight(x: float) -> float:
        return float(mpmath.exp(-(x**2) / 2 - 0.3 * x**4 / 24))

    assert quartic_two_point(0.3) == pytest.approx(quad(lambda x: x**2 * weight(x), -9, 9)[0] / quad(weight, -9, 9)[0], rel=1e-9)
    # the leading orders -g/2 + 5 g^3/8
    assert cubic_mean(0.01) == pytest.approx(-0.005 + 5e-6 / 8, abs=1e-9)


def test_the_radial_integral_against_gamma_functions() -> None:
    """At r -> 0 <phi.phi>/N is a ratio of gamma functions: rho^2 has the law of a gamma variable."""
    n, u = 6, 2.0
    exact = mpmath.gamma(mpmath.mpf(n + 2) / 4) / mpmath.gamma(mpmath.mpf(n) / 4) * mpmath.sqrt(4 / (n * mpmath.mpf(u)))
    assert float(radial_mean_square(n, 1e-14, u)) == pytest.approx(float(exact), rel=1e-9)


def test_the_run(tmp_path) -> None:
    settings = Settings.defaults(DERIVATION.options, out=str(tmp_path / "out"))
    run = DERIVATION.run(settings, RunContext.silent()).value
    assert run.warnings == [] and all(result.outcome.passed for result in run.checks)
    for table, least in zip(run.results.comparisons, (4, 4, 2)):
        assert not table.failures and len(table.told_apart()) >= least
    powers = [[float(cell) for cell in row[1:]] for row in run.results.tables[0].rows]
    assert powers[-1] == pytest.approx([1, 2, 3], abs=0.02)
    best = run.results.values["best"]
    assert abs(best["smallest_term"] - 1.5 / 0.2) <= 1.5
    assert math.exp(-1.5 / 0.2) < best["error"] < 5 * math.exp(-1.5 / 0.2)
