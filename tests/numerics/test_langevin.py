"""Simulated stochastic equations against exact densities, exact series and exact linear processes, as z-scores at fixed seeds."""

from __future__ import annotations

import doctest
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from scipy import integrate, stats

from symtensor.fields.hierarchy import MomentHierarchy
from symtensor.fields.stationary_density import stationary_density_moments
from symtensor.numerics import langevin
from symtensor.numerics.langevin import LangevinError, LangevinResult, MemoryCapError, simulate_langevin

x, y, g, T = sp.symbols("x y g T", positive=True)
CUBIC, NOISE = -(x + g * x**3), sp.sqrt(2 * T)
TIMES = np.linspace(0, 3, 7)
GROUPS = 32
LIMIT = stats.t.ppf(1 - 1e-5, GROUPS - 1)


def cubic(coupling: float, **options: Any) -> LangevinResult:
    chosen = {"step": 0.125, "times": TIMES, "walkers": 32 * 64, "duration": 6, "seed": 11, "groups": GROUPS} | options
    return simulate_langevin(CUBIC, NOISE, variables=x, parameters={g: coupling, T: 1}, **chosen)


@pytest.fixture(scope="module")
def strong() -> LangevinResult:
    return cubic(0.1, step=0.25, degree=4, walkers=32 * 512, duration=16, times=[0, 1.0])


@pytest.fixture(scope="module")
def weak() -> LangevinResult:
    return cubic(0.02, response=True)


def test_moments_against_the_exact_density(strong: LangevinResult) -> None:
    """All orders in the coupling; the step alone makes an error that the data would reject, and extrapolation removes it."""
    exact = stationary_density_moments(CUBIC, NOISE, x, [2, 4], {g: "0.1", T: 1}, digits=15)
    second, fourth = float(exact[2]), float(exact[4])
    assert strong.escaped == 0
    assert strong.control_z < LIMIT
    assert abs(strong.mean.z(0.0)[0]) < LIMIT
    assert abs(strong.covariance.z(second)[0, 0]) < LIMIT
    assert abs(strong.cumulant({x: 4}).z(fourth - 3 * second**2)) < LIMIT
    assert abs(strong.moment({x: 4}).z(fourth)) < LIMIT
    assert strong.covariance.se[0, 0] < 0.001 * second
    biased = strong.covariance.z(second) + strong.covariance.step_error / strong.covariance.se
    assert abs(biased[0, 0]) > LIMIT


def test_step_error_falls_with_the_square_of_the_step(strong: LangevinResult) -> None:
    coarse, fine = strong.covariance, cubic(0.1, step=0.125, walkers=32 * 512, duration=16, times=[0, 1.0]).covariance
    ratio = coarse.step_error[0, 0] / fine.step_error[0, 0]
    spread = abs(ratio) * math.hypot(
        coarse.step_error_se[0, 0] / coarse.step_error[0, 0], fine.step_error_se[0, 0] / fine.step_error[0, 0]
    )
    assert abs(ratio - 4) < 4 * spread
    assert abs(ratio - 2) > 4 * spread  # first order is rejected


@pytest.mark.parametrize("quantity", ["correlation", "response"])
def test_time_dependence_against_the_series(weak: LangevinResult, quantity: str) -> None:
    """Two loops pass; leading order and one loop are rejected by the same data."""
    series = getattr(MomentHierarchy(CUBIC, NOISE, x, g), quantity)(x, x, 5).values(TIMES, {T: 1})
    measured = getattr(weak, quantity)
    partial = np.cumsum(0.02 ** np.arange(6)[:, None] * series, axis=0)
    worst = [np.abs(measured.z(p[:, None, None])).max() for p in partial]
    assert worst[0] > 50
    assert worst[1] > 5
    assert worst[4] < LIMIT


def test_the_linear_process_takes_its_noise_away(weak: LangevinResult) -> None:
    assert weak.covariance.gain[0, 0] > 50
    assert weak.response.value[0, 0, 0] == 1.0


def test_a_linear_equation_is_exact() -> None:
    """No error of the step; the control is the process, so that what is left is rounding."""
    drift, noise = [-x + y / 2, -x / 3 - 2 * y], [[1, 0], [sp.Rational(1, 2), 2]]
    run = simulate_langevin(
        drift, noise, variables=[x, y], step=0.5, times=[0, 1.0, 2.0], walkers=256, duration=4, seed=5, response=True, groups=8
    )
    system = MomentHierarchy(drift, noise, [x, y])
    for i, one in enumerate((x, y)):
        for j, other in enumerate((x, y)):
            exact = system.correlation(one, other, 0).values(run.times)[0], system.response(one, other, 0).values(run.times)[0]
            assert np.allclose(run.correlation.value[:, i, j], exact[0], atol=1e-11)
            assert np.allclose(run.response.value[:, i, j], exact[1], atol=1e-11)
    assert np.all(np.abs(run.correlation.step_error) < 1e-11)
    assert np.all(np.isfinite(run.correlation.z(run.correlation.value)))


@pytest.mark.slow
def test_coloured_noise_and_causality() -> None:
    """x is driven by an auxiliary variable: its own noise is zero and it does not act back."""
    drift = [-x + y - g * x**3, -2 * y]
    run = simulate_langevin(
        drift, [0, NOISE], variables=[x, y], parameters={g: 0.05, T: 2}, step=0.125, times=TIMES, walkers=32 * 32, duration=6,
        seed=2, response=True, groups=GROUPS,
    )  # fmt: skip
    system = MomentHierarchy(drift, [0, NOISE], [x, y], g)
    powers = 0.05 ** np.arange(5)
    for i, j in [(0, 0), (0, 1), (1, 0)]:
        series = system.correlation((x, y)[i], (x, y)[j], 4).values(TIMES, {T: 2})
        assert np.abs(run.correlation.z((powers @ series)[:, None, None])[:, i, j]).max() < LIMIT
    assert np.abs(run.correlation.z(series[0][:, None, None])[:, 0, 0]).max() > LIMIT
    assert np.all(run.response.value[:, 1, 0] == 0)
    series = system.response(x, y, 4).values(TIMES, {T: 2})
    assert np.abs(run.response.z((powers @ series)[:, None, None])[:, 0, 1]).max() < LIMIT


def test_multiplicative_noise_is_ito() -> None:
    """<x^2> = T/(1 - g T); in the sense of Stratonovich T/(1 - 2 g T). The scheme has weak order 1."""
    options = {"times": [0, 0.5], "walkers": 32 * 64, "duration": 8, "seed": 3, "groups": GROUPS, "parameters": {g: 0.1, T: 1}}
    run = simulate_langevin(-x, sp.sqrt(2 * T * (1 + g * x**2)), variables=[x], step=0.05, **options)
    assert abs(run.covariance.z(1 / 0.9)[0, 0]) < LIMIT
    assert abs(run.covariance.z(1 / 0.8)[0, 0]) > 3 * LIMIT
    assert abs(run.covariance.step_error[0, 0]) > 3 * run.covariance.se[0, 0]


def metastable(coupling: float, **options: Any) -> LangevinResult:
    chosen = {"step": 0.125, "times": [0, 1.0], "walkers": 32 * 64, "duration": 8, "seed": 7, "groups": GROUPS} | options
    return simulate_langevin(-x + g * x**2, NOISE, variables=x, parameters={g: coupling, T: 1}, **chosen)


def test_mean_shift_of_a_metastable_state() -> None:
    """1/(6 g^2 T) = 16.7: no escape, the mean is T g + 5 T^2 g^3 + .., and one loop alone is rejected."""
    run = metastable(0.1, bounds=(-15, 12), walkers=32 * 512, duration=20)
    series = MomentHierarchy(-x + g * x**2, NOISE, x, g).moment({x: 1}, 5).values(parameters={T: 1})
    partial = np.cumsum(0.1 ** np.arange(6) * series)
    assert run.escaped == 0
    assert abs(run.mean.z(partial[1])[0]) > LIMIT
    assert abs(run.mean.z(partial[5])[0]) < LIMIT


@pytest.mark.slow
def test_escapes_are_counted_as_often_as_the_exact_mean_time_says() -> None:
    """1/(6 g^2 T) = 5; mean first passage from the centre: int dy e^U(y) int_{-oo}^y dz e^-U(z)."""
    coupling, top = 1 / math.sqrt(30), 9.0
    run = metastable(coupling, bounds=(-15, top), duration=25, walkers=32 * 128)

    def potential(u: float) -> float:
        return u**2 / 2 - coupling * u**3 / 3

    inner = integrate.cumulative_trapezoid(np.exp(-potential(np.linspace(-15, top, 20001))), dx=(top + 15) / 20000, initial=0)
    grid = np.linspace(-15, top, 20001)
    passage = np.trapezoid(np.where(grid >= 0, np.exp(potential(grid)) * inner, 0.0), grid)
    time = 12 + 1 + 25  # burn-in, filling of the lags, measurement
    expected = run.walkers * -np.expm1(-time / passage)
    assert 100 < expected < 400
    assert abs(run.escaped - expected) < 4 * math.sqrt(expected) + 0.05 * expected
    assert np.isfinite(run.mean.value).all()


@pytest.mark.slow
def test_vector_model_as_a_function() -> None:
    """Eight components, the drift a JAX function; <x.x>/N from the radial density, the correlation averaged over components."""
    size, coupling = 8, 0.5

    def drift(u: jax.Array) -> jax.Array:
        return -(1 + coupling / size * (u * u).sum(0)) * u

    run = simulate_langevin(
        drift, np.sqrt(2), point=np.zeros(size), step=0.125, times=[0, 0.5, 1.0], walkers=32 * 16, duration=6, seed=4, groups=GROUPS
    )
    radius = np.linspace(0, 12, 4001)
    weight = radius ** (size - 1) * np.exp(-(radius**2) / 2 - coupling * radius**4 / (4 * size))
    exact = (weight * radius**2).sum() / weight.sum() / size
    average = run.estimate(lambda means: np.trace(means.products, axis1=-2, axis2=-1) / size)
    assert abs(average.z(exact)[0]) < LIMIT
    assert average.se[0] < run.covariance.se[0, 0] / 2
    assert abs(average.z(1.0)[0]) > 10 * LIMIT


def test_functions_and_expressions_are_the_same_equation() -> None:
    """Two runs with one seed, once from SymPy and once from a function: the same numbers; groups have noise of their own."""
    calls: list[tuple[int, int]] = []
    options = {"step": 0.5, "times": [0, 1.0], "walkers": 64, "duration": 2, "seed": 1, "groups": 8}
    one = simulate_langevin(
        -x - sp.tanh(x) / 3, 2, variables=[x], progress=lambda done, whole: calls.append((done, whole)), **options
    )
    other = simulate_langevin(lambda u: -u - jnp.tanh(u) / 3, [[2.0]], point=[0.0], **options)
    assert np.allclose(one.correlation.value, other.correlation.value, rtol=1e-12)
    assert not np.array_equal(one.plain.moments[0], one.plain.moments[1])
    assert calls == [(i + 1, 8) for i in range(8)]


def test_the_point_of_expansion_shifts_the_variables() -> None:
    """A double well about 1: the mean is near 1, moments are those of x and not of the deviation."""
    options = {"step": 0.125, "times": [0, 1.0], "walkers": 512, "duration": 5, "seed": 1, "groups": 8}
    run = simulate_langevin(x - x**3, sp.Rational(1, 5), variables=[x], point=[1], bounds=(0, 3), **options)
    mean, second = run.mean.value[0], run.moment({x: 2}).value
    assert 0.9 < mean < 1
    assert run.moment({x: 1}).value == pytest.approx(mean)
    assert run.cumulant({"x": 1}).value == pytest.approx(mean)
    assert second - mean**2 == pytest.approx(run.covariance.value[0, 0], rel=1e-6)


def test_the_result_reads_as_a_report(strong: LangevinResult) -> None:
    text = repr(strong)
    assert "0 taken out, seed 11" in text
    assert f"variance {strong.covariance.value[0, 0]:.6g}" in text


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"drift": x - x**3}, LangevinError, "rate -1"),
        ({"drift": "-x"}, LangevinError, "is text"),
        ({"drift": [-x, -y]}, LangevinError, "2 components for 1"),
        ({"drift": -g * x}, ValueError, "g has no value"),
        ({"drift": -sp.gamma(x)}, TypeError, "gamma"),
        ({"drift": lambda u: -u.sum() * u}, LangevinError, "mixes the trajectories"),
        ({"drift": lambda u: -u[:1, :1]}, LangevinError, "gives shape"),
        ({"drift": lambda u: -u, "variables": None}, LangevinError, r"variables=\[..\] or point"),
        ({"noise": [[1], [1]]}, LangevinError, "2 rows for 1"),
        ({"point": [0, 0]}, LangevinError, "point"),
        ({"times": [0, 1, 3]}, LangevinError, "equally spaced"),
        ({"times": [0]}, LangevinError, "at least two"),
        ({"step": 0}, LangevinError, "step = 0"),
        ({"duration": math.inf}, LangevinError, "duration = inf"),
        ({"walkers": 0}, ValueError, "walkers"),
        ({"seed": -1}, ValueError, "seed"),
        ({"bounds": (1, 2)}, LangevinError, "between the bounds"),
        ({"bounds": 3}, LangevinError, "must be a pair"),
        ({"walkers": 10**9}, MemoryCapError, "more groups"),
        ({"drift": -x + x**2}, LangevinError, "diverged"),
        ({"drift": -x + x**2, "bounds": (-9, 9), "noise": 3}, LangevinError, "left the bounds"),
    ],
)
def test_bad_input(change: dict, error: type[Exception], words: str) -> None:
    given = {"drift": -x, "noise": 1, "variables": [x], "step": 0.1, "times": [0, 1], "walkers": 32, "duration": 1, "seed": 0}
    given |= {"groups": 8} | change
    with pytest.raises(error, match=words):
        simulate_langevin(given.pop("drift"), given.pop("noise"), **given)


def test_bad_questions(weak: LangevinResult, strong: LangevinResult) -> None:
    with pytest.raises(LangevinError, match="degree 2"):
        weak.cumulant({x: 3})
    with pytest.raises(LangevinError, match="'q' is no variable"):
        weak.moment({"q": 1})
    with pytest.raises(LangevinError, match="response=True"):
        _ = strong.response


def test_single_precision_is_refused() -> None:
    with jax.enable_x64(False), pytest.raises(ValueError, match="float64 is off"):
        cubic(0.1)


@pytest.mark.slow
def test_doctest() -> None:
    assert doctest.testmod(langevin).failed == 0
