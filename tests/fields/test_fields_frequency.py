"""Spectra by loop integrals against the Fourier transforms of the closed forms."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import sympy as sp

from symtensor.fields import FieldTheory, TheoryError
from symtensor.fields.frequency import compile_frequency
from symtensor.numerics import loop_integrals

CUBIC = "dx = -(x + g*x^3) dt + sqrt(2*T) dW"
QUADRATIC = "dx = (-x + g*x^2) dt + sqrt(2*T) dW"
TWO = "dx = (-x + 2*y - g*x^3 + g*y^2) dt + dW1\ndy = (-y - 2*x) dt + dW2"
OMEGA = np.array([0.0, 0.3, 2.5])


@pytest.fixture(autouse=True)
def _float64() -> Any:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def closed(total: Any, values: dict[str, float]) -> np.ndarray:
    """The Fourier transform of the closed form."""
    omega = sp.Symbol("omega", real=True)
    expression = total.frequency(omega).subs({s: values[s.name] for s in total.theory.parameters})
    return np.array([complex(expression.subs(omega, w).evalf()) for w in OMEGA])


@pytest.mark.parametrize(
    ("equations", "legs", "kind", "loops", "values"),
    [
        pytest.param(CUBIC, "x,xt", "cumulant", 1, {"T": 1.0, "g": 0.05}, marks=pytest.mark.slow),
        (QUADRATIC, "x,x", "cumulant", 1, {"T": 1.0, "g": 0.1}),
        (CUBIC, "xt,x", "vertex_function", 1, {"T": 1.0, "g": 0.05}),
        pytest.param(CUBIC, "x,x", "cumulant", 2, {"T": 1.0, "g": 0.05}, marks=pytest.mark.slow),
        pytest.param(CUBIC, "xt,xt", "vertex_function", 2, {"T": 1.0, "g": 0.05}, marks=pytest.mark.slow),
        pytest.param(TWO, "x,y", "cumulant", 1, {"g": 0.1}, marks=pytest.mark.slow),
    ],
)
def test_spectrum_is_the_fourier_transform(equations: str, legs: str, kind: str, loops: int, values: dict[str, float]) -> None:
    total = getattr(FieldTheory.langevin(equations), kind)(legs, loops=loops)
    found = compile_frequency(total, nodes=32).evaluate(OMEGA, **values, tolerance=1e-7)
    assert found.converged
    exact = closed(total, values)
    assert np.max(np.abs(found.total - exact)) <= np.max(found.error) + 1e-12
    assert np.max(np.abs(exact)) > 1e-3


@pytest.mark.slow
def test_one_loop_converges_faster_than_any_power() -> None:
    total = FieldTheory.langevin(QUADRATIC).cumulant("x,x", loops=1)
    values = {"T": 1.0, "g": 0.1}
    exact = closed(total, values)
    errors = [np.max(np.abs(np.asarray(compile_frequency(total, nodes=nodes)(OMEGA, **values)) - exact)) for nodes in (8, 16, 32)]
    assert errors[1] < errors[0] / 10
    assert errors[2] < errors[1] / 200


def test_too_few_nodes_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    total = FieldTheory.langevin(QUADRATIC).cumulant("x,x", loops=1)
    monkeypatch.setattr("symtensor.fields.frequency.MOST_POINTS", 8)
    found = compile_frequency(total, nodes=4).evaluate(OMEGA, T=1.0, g=0.1, tolerance=1e-12)
    assert not found.converged
    assert "NOT converged" in repr(found)


def test_mean_shift_is_the_tadpole() -> None:
    total = FieldTheory.langevin(QUADRATIC).cumulant("x", loops=1)
    found = total.compile(method="frequency")(0.0, T=2.0, g=0.1)
    assert complex(found) == pytest.approx(0.2, abs=1e-12)


@pytest.mark.slow
def test_gradient_is_that_of_the_formula() -> None:
    total = FieldTheory.langevin(CUBIC).cumulant("x,x", loops=1)
    spectrum = compile_frequency(total, nodes=32)
    found = jax.grad(lambda g: spectrum(0.7, T=1.0, g=g).real)(0.05)
    step = 1e-5
    wanted = (spectrum(0.7, T=1.0, g=0.05 + step).real - spectrum(0.7, T=1.0, g=0.05 - step).real) / (2 * step)
    assert float(found) == pytest.approx(float(wanted), rel=1e-7)
    assert abs(float(found)) > 0.1


def test_wrong_weights_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: without the Jacobian of the map the one-loop spectrum is wrong."""
    nodes = loop_integrals.mapped_nodes
    flat = lambda count, scale: (nodes(count, scale)[0], np.full(count, 1 / (2 * count)))  # noqa: E731
    monkeypatch.setattr(loop_integrals, "mapped_nodes", flat)
    total = FieldTheory.langevin(CUBIC).cumulant("x,x", loops=1)
    values = {"T": 1.0, "g": 0.05}
    assert np.max(np.abs(np.asarray(compile_frequency(total)(OMEGA, **values)) - closed(total, values))) > 0.1


@pytest.mark.parametrize(
    ("legs", "options", "message"),
    [("x,x,x", {}, "one leg or of two legs"), ("x,x", {"nodes": 1}, "4 nodes"), ("x,x", {"scale": 0.0}, "scale")],
)
def test_requests_that_cannot_be_met(legs: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TheoryError, match=message):
        compile_frequency(FieldTheory.langevin(CUBIC).cumulant(legs, loops=1), **options)


def test_static_theories_have_no_frequencies() -> None:
    with pytest.raises(TheoryError, match="static"):
        compile_frequency(FieldTheory.static("x^2/2 + g*x^4/24", "x").cumulant("x,x", loops=1))
