"""Diagram sums on a time grid against their closed forms, which share neither integration nor propagators."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp

from symtensor.fields import FieldTheory, TheoryError
from symtensor.fields.grid import compile_grid
from symtensor.fields.hierarchy import MomentHierarchy
from symtensor.numerics import time_grid

CUBIC = "dx = -(x + g*x^3) dt + sqrt(2*T) dW"
QUADRATIC = "dx = (-x + g*x^2) dt + sqrt(2*T) dW"
TWO = "dx = (-x + 2*y - g*x^3 + g*y^2) dt + dW1\ndy = (-y - 2*x) dt + dW2"
NOISY = "dx = (-x - g*x^3) dt + sqrt(1 + b*x^2) dW"


@pytest.fixture(autouse=True)
def _float64() -> Any:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def closed(total: Any, times: np.ndarray, values: dict[str, float]) -> np.ndarray:
    """The closed form at the times, by SymPy."""
    expression = sp.sympify(total.expr).subs({s: values[s.name] for s in total.theory.parameters})
    found = [complex(expression.subs(dict.fromkeys(expression.free_symbols, t)).evalf()) for t in times]
    assert max(abs(value.imag) for value in found) < 1e-9
    return np.array([value.real for value in found])


@pytest.mark.parametrize(
    ("equations", "legs", "loops", "values"),
    [
        (CUBIC, "x,xt", 2, {"T": 1.0, "g": 0.05}),
        pytest.param(NOISY, "x,x", 1, {"b": 0.2, "g": 0.1}, marks=pytest.mark.slow),
        pytest.param(QUADRATIC, "x,x", 2, {"T": 1.0, "g": 0.1}, marks=pytest.mark.slow),
        pytest.param(TWO, "x,y", 1, {"g": 0.1}, marks=pytest.mark.slow),
    ],
)
def test_every_order_is_the_closed_form_within_the_error(equations: str, legs: str, loops: int, values: dict[str, float]) -> None:
    total = FieldTheory.langevin(equations).cumulant(legs, loops=loops)
    grid = compile_grid(total, np.linspace(0, 4, 61))
    found = grid.evaluate(**values)
    exact = sum(closed(total.at(order), grid.times, values) for order in range(loops + 1))
    for order in range(1, loops + 1):
        part = closed(total.at(order), grid.times, values)
        assert np.max(np.abs(found.orders[order] - part)) < 2e-4 * np.max(np.abs(part))
    assert np.max(np.abs(found.total - exact)) <= np.max(found.error) + 1e-9
    assert np.max(found.error) < 1e-3
    assert found.tail < 2e-8


@pytest.mark.slow
def test_error_falls_with_the_step_like_its_fourth_power() -> None:
    total = FieldTheory.langevin(CUBIC).cumulant("x,x", loops=1).at(1)
    values = {"T": 1.0, "g": 0.05}
    errors = []
    for count in (17, 33):
        grid = compile_grid(total, np.linspace(0, 4, count))
        errors.append(np.max(np.abs(grid.evaluate(**values).total - closed(total, grid.times, values))[::4]))
    assert 10 < errors[0] / errors[1] < 25


@pytest.mark.slow
def test_a_jump_that_counts_wholly_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: R = 1 instead of 1/2 at equal times shifts the result by the first order of the step."""
    total = FieldTheory.langevin(CUBIC).cumulant("x,x", loops=1)
    values = {"T": 1.0, "g": 0.05}
    original = time_grid.grid_arrays

    def whole(wanted: Any, linear: Any, pair: Any, step: float, pinned: int) -> Any:
        return original([(name, letter.replace("R", "S"), parts) for name, letter, parts in wanted], linear, pair, step, pinned)

    monkeypatch.setattr(time_grid, "grid_arrays", whole)
    grid = compile_grid(total, np.linspace(0, 4, 41))
    found = grid.evaluate(**values)
    off = np.max(np.abs(found.total - closed(total, grid.times, values)))
    assert off > 5e-3  # 2e-6 with the half
    assert np.max(found.error) > off / 2  # the estimate sees that the order of the rule is lost


def test_coinciding_rates_have_no_closed_form_but_a_grid() -> None:
    """A drift that cannot be diagonalised: <x^2> at first order in g against the moment equations."""
    theory = FieldTheory.langevin("dx = (-x + y - g*x^3) dt + dW1\ndy = -y dt + dW2")
    found = compile_grid(theory.cumulant("x,x", loops=1, times="equal"), np.linspace(0, 2, 41)).evaluate(g=0.1)
    x, y, g = sp.symbols("x y g", real=True)
    hierarchy = MomentHierarchy([-x + y - g * x**3, -y], sp.eye(2), [x, y], g)
    series = hierarchy.moment({x: 2}, 1)
    zeroth, first = (float(sp.sympify(series[k])) for k in (0, 1))
    assert found.orders[0] == pytest.approx(zeroth, abs=1e-9)
    assert found.orders[1] == pytest.approx(0.1 * first, abs=float(found.error) + 1e-9)


def test_gradient_in_every_parameter_is_that_of_the_formula() -> None:
    total = FieldTheory.langevin("dx = (-a*x + g*x^2) dt + sqrt(2*T) dW").cumulant("x", loops=1)
    grid = compile_grid(total, np.linspace(0, 1, 21), values={"a": 1.3})
    at = {"T": 1.0, "a": 1.3, "g": 0.1}
    names = grid.arguments
    found = jax.grad(lambda values: grid(*values))(jnp.array([at[name] for name in names]))
    parameters = {s.name: s for s in total.theory.parameters}
    wanted = [float(total.expr.diff(parameters[name]).subs({parameters[k]: v for k, v in at.items()})) for name in names]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_given_arrays_replace_the_propagators() -> None:
    """The propagators of another rate, given as arrays, are those of the theory with that rate."""
    theory = FieldTheory.langevin("dx = -(a*x + g*x^3) dt + sqrt(2*T) dW")
    total = theory.cumulant("x,x", loops=1)
    grid = compile_grid(total, np.linspace(0, 2, 41), horizon=14.0)
    age = grid.all_times[:, None] - grid.all_times[None, :]
    response, correlator = np.where(age >= 0, np.exp(-1.5 * age), 0.0), np.exp(-1.5 * np.abs(age)) / 1.5
    found = grid.with_propagators(response, correlator, T=7.0, a=1.0, g=0.1)
    same = grid.evaluate(T=1.0, a=1.5, g=0.1)
    np.testing.assert_allclose(found.total, same.total, atol=1e-12)
    with pytest.raises(TheoryError, match="the correlator has shape"):
        grid.with_propagators(response, correlator[:-1], T=1.0, a=1.5, g=0.1)


def test_transient_obeys_the_moment_equation() -> None:
    """From the saddle: d<x^2>/dt = 2 T - 2 <x^2> - 2 g <x^4>, with <x^4> = 3 C0^2 at first order; and it becomes stationary."""
    total = FieldTheory.langevin(CUBIC).cumulant("x,x", loops=1, times="equal")
    grid = compile_grid(total, np.linspace(0, 8, 161), initial=0.0)
    found = grid.evaluate(T=1.0, g=0.1)
    linear = 1 - np.exp(-2 * grid.times)
    np.testing.assert_allclose(found.orders[0], linear, atol=1e-12)
    first = found.orders[1]
    decay = np.exp(-2 * grid.times)
    np.testing.assert_allclose(first, -0.3 * (1 - 4 * grid.times * decay - decay**2), atol=np.max(found.error))
    assert first[0] == 0
    assert first[-1] == pytest.approx(-0.3, abs=1e-4)


def test_the_generated_module_uses_einsum_and_imports_only_jax() -> None:
    grid = FieldTheory.langevin(QUADRATIC).cumulant("x,x", loops=1).compile(method="grid", times=np.linspace(0, 2, 21))
    assert "def diagrams(" in grid.source
    assert "einsum" in grid.source
    imported = {line.split()[1].split(".")[0] for line in grid.source.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= {"jax", "__future__", "typing", "functools", "jaxtyping", "math"}


@pytest.mark.parametrize(
    ("legs", "options", "message"),
    [
        ("x,x,x", {}, "3 times; the grid is for one or two"),
        ("x,x", {"times": [0.0, 1.0, 3.0, 4.0, 5.0]}, "equidistant"),
        ("x,x", {"horizon": -1.0}, "positive time"),
        ("x,x", {"memory_mb": 0.1}, "MB, more than"),
        ("x,x", {"initial": 0.0}, "give horizon"),
    ],
)
def test_requests_that_cannot_be_met(legs: str, options: dict[str, Any], message: str) -> None:
    total = FieldTheory.langevin(CUBIC).cumulant(legs, loops=1)
    with pytest.raises(TheoryError, match=message):
        total.compile(method="grid", **{"times": np.linspace(0, 2, 21), **options})


def test_a_rate_with_parameters_needs_values() -> None:
    total = FieldTheory.langevin("dx = -(a*x + g*x^3) dt + dW").cumulant("x,x", loops=1)
    with pytest.raises(TheoryError, match="depends on a"):
        compile_grid(total, np.linspace(0, 2, 21))


def test_unknown_methods_and_delta_functions_are_refused() -> None:
    theory = FieldTheory.langevin(CUBIC)
    with pytest.raises(TheoryError, match="no method 'wavelet'"):
        theory.cumulant("x,x", loops=1).compile(method="wavelet")
    with pytest.raises(TheoryError, match="delta"):
        compile_grid(theory.vertex_function("xt,x", loops=1), np.linspace(0, 2, 21))
