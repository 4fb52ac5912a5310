"""What the simulator refuses, by name and before any work, and its default activation callables."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy

from symtensor.activation import activation
from symtensor.numerics._elementwise import jax_function
from symtensor.numerics.simulation import Ensemble, LeadingOrder, SimulationOverflow, simulate


@pytest.fixture(scope="module")
def case(simulation_case):
    return simulation_case("tanh", 1.0, depth=2, width=8)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"samples": 1}, ValueError, "samples = 1 must be an integer of at least 2"),
        ({"samples": -3}, ValueError, "samples = -3"),
        ({"samples": 2.5}, TypeError, "samples = 2.5 must be an integer"),
        ({"samples": True}, ValueError, "samples = True"),
        ({"samples": 2**32}, ValueError, "below 2"),
        ({"seed": -1}, ValueError, "seed = -1"),
        ({"seed": "x"}, TypeError, "seed = 'x'"),
        ({"seed": 2**63}, ValueError, "seed"),
    ],
)
def test_bad_counts(case, change, error, text):
    with pytest.raises(error, match=text):
        simulate(*case, **{"samples": 10, "seed": 0, **change})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"width": 0}, "width = 0"),
        ({"depth": 0}, "depth = 0"),
        ({"dt": 0.0}, "dt = 0.0 must be positive"),
        ({"dt": -1.0}, "dt"),
        ({"c_w": -0.1}, "c_w = -0.1 is a variance"),
        ({"c_b": -0.1}, "c_b = -0.1 is a variance"),
        ({"alpha": float("nan")}, "alpha = nan is not finite"),
        ({"c_w": float("inf")}, "c_w = inf is not finite"),
    ],
)
def test_bad_parameters(change, text):
    settings = {"c_w": 1.0, "c_b": 0.0, "alpha": 1.0, "dt": 0.1, "depth": 2, "width": 4}
    with pytest.raises(ValueError, match=text):
        Ensemble(activation("tanh"), **{**settings, **change})


def test_bad_leading_order(case, simulation_case):
    ensemble, leading = case

    def run(**change):
        arrays = {name: change.get(name, getattr(leading, name)) for name in ("K", "ES", "J")}
        return simulate(ensemble, LeadingOrder(**arrays), samples=4, seed=0)

    with pytest.raises(ValueError, match=r"leading.K has shape \(2, 1, 1\), required \(3, P, P\) for depth 2"):
        run(K=leading.K[:2])
    with pytest.raises(ValueError, match=r"leading.J has shape .* required \(3, P, P, P, P\)"):
        run(J=leading.J[:, 0])
    with pytest.raises(ValueError, match=r"leading\.ES must be real and finite"):
        run(ES=leading.ES * np.nan)
    with pytest.raises(ValueError, match=r"leading\.ES must be real and finite"):
        run(ES=leading.ES * 1j)
    with pytest.raises(ValueError, match=r"leading.K\[1\] is not alpha\^2 K"):
        run(K=leading.K * np.array([1.0, 1.1, 1.0])[:, None, None])
    two, order = simulation_case("tanh", np.eye(2), depth=1, width=4)
    kernel = order.K.copy()
    kernel[0] = [[1.0, 2.0], [2.0, 1.0]]
    with pytest.raises(ValueError, match="not positive semidefinite: eigenvalue -1"):
        simulate(two, LeadingOrder(kernel, order.ES, order.J), samples=4, seed=0)
    kernel[0] = [[1.0, 0.5], [0.2, 1.0]]
    with pytest.raises(ValueError, match=r"leading\.K is not symmetric"):
        simulate(two, LeadingOrder(kernel, order.ES, order.J), samples=4, seed=0)


def test_no_device(case):
    with pytest.raises(ValueError, match="devices is empty"):
        simulate(*case, samples=4, seed=0, devices=[])


def test_float64_is_required(case):
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        simulate(*case, samples=4, seed=0)


def test_sigma_must_be_the_activation(case):
    with pytest.raises(ValueError, match=r"sigma\(-2.75\) = .* but the activation tanh has"):
        simulate(*case, samples=4, seed=0, sigma=jnp.sin)
    with pytest.raises(ValueError, match="elementwise in float64"):
        simulate(*case, samples=4, seed=0, sigma=lambda x: jnp.tanh(x).astype(jnp.float32))
    given = simulate(*case, samples=8, seed=0, sigma=lambda x: jnp.tanh(x))
    assert np.array_equal(given.V4.mean, simulate(*case, samples=8, seed=0).V4.mean)


def test_overflow_names_the_depth(simulation_case):
    """Kernels 1e100, 1e130, 1e160: the second moments leave float64 at depth 2."""
    ensemble, leading = simulation_case("identity", 1e100, c_w=1e30, alpha=0.0, dt=1.0, depth=3, width=8)
    with pytest.raises(SimulationOverflow, match="overflow float64 at depth 2"):
        simulate(ensemble, leading, samples=4, seed=0)


NAMES = ("tanh", "erf", "sin", "relu", "leaky-relu:0.2", "gelu", "softplus", "sigmoid", "identity")
EXPRESSIONS = ("Abs(x)", "Max(0,x)-0.3*Max(0,-x)", "x**3/(1+x**2)", "exp(-x**2)", "sqrt(1+x**2)", "sign(x)*Abs(x)")


@pytest.mark.parametrize("name", NAMES + EXPRESSIONS)
def test_default_callables(name):
    sigma = activation(name)
    points = np.array([-40.0, -3.0, -0.7, -1e-3, 0.0, 0.2, 1.0, 5.0, 40.0])
    values = np.asarray(jax_function(sigma)(jnp.asarray(points)))
    assert values.dtype == np.float64
    expected = [float(sympy.N(sigma.expr.subs({s: sympy.Float(p, 40) for s in sigma.expr.free_symbols}), 20)) for p in points]
    assert np.allclose(values, expected, rtol=1e-13, atol=1e-15)


def test_piecewise_and_unknown_functions():
    x = sympy.Symbol("x", real=True)

    class Fake(SimpleNamespace):
        __hash__ = object.__hash__

    pieces = sympy.Piecewise((-x, x < -1), (x**2, (x >= -1) & (x < 1)), (sympy.exp(-x), True))
    values = jax_function(Fake(name="pieces", expr=pieces))(jnp.array([-2.0, 0.5, 1.0]))
    assert np.allclose(values, [2.0, 0.25, np.exp(-1.0)])
    step = jax_function(Fake(name="step", expr=sympy.Heaviside(x)))
    assert np.array_equal(step(jnp.array([-1.0, 0.0, 2.0])), [0.0, 0.5, 1.0])
    with pytest.raises(TypeError, match="cannot evaluate gamma"):
        jax_function(Fake(name="gamma", expr=sympy.gamma(x)))
