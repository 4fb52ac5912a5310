"""The simulated law of general layered blocks, the controls, and what is refused; z-scores at fixed seeds."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import symtensor.numerics.layered_simulation as module
from symtensor.fields.layered_exact import ExactHomogeneousNetwork, ExactLinearNetwork, Power
from symtensor.numerics.layered_simulation import LayeredBlock, MemoryCapError, SimulationOverflow, simulate_layered
from symtensor.numerics.simulation import simulate

KERNEL = ((1.0, 0.5), (0.5, 1.5))


def value(series, n: float) -> float:
    return sum(float(c) / n**k for k, c in enumerate(series))


def last(estimate, exact) -> float:
    """z-score at the last depth, one input."""
    return float(estimate.z(exact)[-1].item())


@pytest.fixture(scope="module")
def curved():
    """Linear network with c_b = 0.2 + 0.1 S + 0.05 S^2, exactly solvable, with corrections of every kind."""
    block = LayeredBlock((("identity", 1.0),), alpha=1.0, dt=0.25, depth=3, kernel=1.0, bias=lambda s: 0.2 + 0.1 * s + 0.05 * s**2)
    exact = ExactLinearNetwork(kernel=1, alpha=1, dt="1/4", c_w=1, bias=("1/5", "1/10", "1/20"), depth=3)
    return simulate_layered(block, (8, 16), {"G": "x", "H": "x**2"}, samples={8: 65536, 16: 32768}, seed=5), exact


def test_exactly_solvable_network_at_finite_width(curved):
    simulation, exact = curved
    G = (3, 0, 0)
    mean, covariance, third, fourth = exact.cumulant(G), exact.cumulant(G, G), exact.cumulant(G, G, G), exact.fourth_moment(3)
    for n in (8, 16):
        for plain in (False, True):
            assert abs(last(simulation.mean("G", n, plain=plain), n * (value(mean, n) - float(mean[0])))) < 4
            assert abs(last(simulation.mean("H", n, plain=plain), n * (value(fourth, n) - float(fourth[0])))) < 4
            assert abs(last(simulation.covariance("G", width=n, plain=plain), value(covariance, n))) < 4
            assert abs(last(simulation.third_cumulant("G", n, plain=plain), value(third, n))) < 4
        assert simulation.control_z[n].max() < 4.5
        # power: order n^0 is rejected by all three, and the controls pay
        assert last(simulation.mean("G", n), 0.0) > 10
        assert last(simulation.covariance("G", width=n), float(covariance[0])) > 10
        assert last(simulation.third_cumulant("G", n), float(third[0])) > 5
        gain = (simulation.mean("G", n, plain=True).se / simulation.mean("G", n).se)[-1].item() ** 2
        assert gain > 8 * n / 8


def test_linked_fit_reads_off_the_coefficients(curved):
    """c_0 at every width from single neurons, c_1 from the rest: both known exactly here."""
    simulation, exact = curved
    G = (3, 0, 0)
    expected = {("mean", "G"): exact.cumulant(G)[1:], ("mean", "H"): exact.fourth_moment(3)[1:]}
    expected["covariance", "G"] = exact.cumulant(G, G)
    for (quantity, name), series in expected.items():
        fit = simulation.fit(quantity, name, terms=3, linked=True)
        for power in (0, 1):
            assert abs(last(fit.coefficient(power), float(series[power]))) < 4
        assert fit.coefficient(0).se[-1].item() < 0.03 * float(series[0])
        assert fit.coefficient(1).se[-1].item() < 0.6 * abs(float(series[1]))
        assert fit.dof == 1 and fit.p_value[-1].item() > 1e-4


@pytest.mark.slow
def test_wrong_response_is_unbiased_and_seen_by_the_linked_fit(curved, monkeypatch):
    """Halved responses of first and second order: estimates at each width stay right, and the linked fit is refuted."""
    _, exact = curved

    def corrupted(*arguments):
        lead = original(*arguments)
        return dataclasses.replace(lead, response=0.5 * lead.response, curvature=0.5 * lead.curvature + 0.1)

    original = module.leading_order
    monkeypatch.setattr(module, "leading_order", corrupted)
    block = LayeredBlock((("identity", 1.0),), alpha=1.0, dt=0.25, depth=3, kernel=1.0, bias=lambda s: 0.2 + 0.1 * s + 0.05 * s**2)
    simulation = simulate_layered(block, (8, 16), {"G": "x", "H": "x**2"}, samples=32768, seed=6)
    G = (3, 0, 0)
    mean, covariance, third = exact.cumulant(G), exact.cumulant(G, G), exact.cumulant(G, G, G)
    assert abs(last(simulation.mean("G", 16), 16 * (value(mean, 16) - float(mean[0])))) < 4
    assert abs(last(simulation.covariance("G", width=16), value(covariance, 16))) < 4
    assert abs(last(simulation.third_cumulant("G", 16), value(third, 16))) < 4
    fit = simulation.fit("covariance", "G", terms=2, linked=True)
    assert abs(last(fit.coefficient(0), float(covariance[0]))) > 6 and fit.p_value[-1].item() < 1e-4


def test_two_branches_exactly_solvable():
    """alpha = 0, ReLU and identity branch: the covariance of G with S_1, and the mean under a bias variance S1 S2 / 10."""
    from sympy import symbols

    s1, s2 = symbols("S1 S2")
    exact = ExactHomogeneousNetwork(((0, 1, "3/2"), (1, 1, "1/2")), kernel=1, dt="1/2", depth=2, bias=s1 * s2 / 10)
    block = LayeredBlock((("relu", 1.5), ("identity", 0.5)), alpha=0.0, dt=0.5, depth=2, kernel=1.0, bias=lambda a, b: a * b / 10)
    simulation = simulate_layered(block, (8,), {"S1": "relu", "G": "x"}, samples=32768, seed=7)
    mean = exact.cumulant((2, Power()))
    assert abs(last(simulation.mean("G", 8), 8 * (value(mean, 8) - float(mean[0])))) < 4
    assert last(simulation.mean("G", 8), 0.0) > 5
    for pair, powers in ((("G", "S1"), (Power(), exact.branch(0))), (("S1", "S1"), (exact.branch(0),) * 2)):
        series = exact.cumulant(*((2, power) for power in powers))
        assert abs(last(simulation.covariance(*pair, width=8), value(series, 8))) < 4
    third = exact.cumulant(*[(1, exact.branch(0))] * 3)
    assert abs(simulation.third_cumulant("S1", 8).z(value(third, 8))[1].item()) < 4


def naive(block, width: int, samples: int, seed: int):
    """Kernels of networks with explicit weight matrices of both branches, `(samples, P, P)` at the last depth."""
    rng, inputs = np.random.default_rng(seed), block.inputs
    phi = rng.normal(size=(samples, width, inputs)) @ np.linalg.cholesky(block.kernel).T
    for _ in range(block.depth):
        images = [f.numpy_function()(phi) for f in block.activations]
        levels = [np.einsum("sia,sia->s", v, v) / (width * inputs) for v in images]
        deviation = np.sqrt(np.asarray(block.bias(*levels)))[:, None, None]
        eta = rng.normal(size=(samples, width, 1)) * deviation
        for image, c_w in zip(images, block.weights):
            eta = eta + rng.normal(size=(samples, width, width)) @ image * np.sqrt(c_w / width)
        phi = block.alpha * phi + np.sqrt(block.dt) * eta
    return np.einsum("sia,sib->sab", phi, phi) / width


@pytest.mark.slow
def test_law_of_two_weight_matrices_and_a_bias_that_depends_on_the_kernel():
    block = LayeredBlock(
        (("tanh", 1.5), ("relu", 0.8)), alpha=0.8, dt=0.5, depth=2, kernel=KERNEL, bias=lambda a, b: 0.1 + 2.0 * a + 1.0 * a * b
    )
    simulation = simulate_layered(block, (6,), {"G": "x"}, samples=20480, seed=8)
    kernels = naive(block, 6, 20000, 9)
    mean, error = kernels.mean(axis=0), kernels.std(axis=0) / np.sqrt(len(kernels))
    centred = kernels - mean
    products = 6 * np.einsum("sab,scd->sabcd", centred, centred)
    triples = 36 * np.einsum("sab,scd,sef->sabcdef", centred, centred, centred)
    for plain in (False, True):
        found = simulation.mean("G", 6, plain=plain)
        offset = 6 * (mean - simulation.leading.kernels[-1])
        assert np.abs((found.mean[-1] - offset) / np.hypot(found.se[-1], 6 * error)).max() < 4.5
        found = simulation.covariance("G", width=6, plain=plain)
        scatter = np.hypot(found.se[-1], products.std(axis=0) / np.sqrt(len(kernels)))
        assert np.abs((found.mean[-1] - products.mean(axis=0)) / scatter).max() < 4.5
        found = simulation.third_cumulant("G", 6, plain=plain)
        scatter = np.hypot(found.se[-1], triples.std(axis=0) / np.sqrt(len(kernels)))
        assert np.abs((found.mean[-1] - triples.mean(axis=0)) / scatter).max() < 4.5
    # power: the network whose bias variance is fixed at its value at order n^0 fluctuates less, which is seen
    lead = simulation.leading.means[0]
    levels = [lead[[3 * f, 3 * f + 2]].mean() for f in (0, 1)]
    fixed = naive(dataclasses.replace(block, depth=1, bias=lambda a, b: 0 * a + block.bias(*levels)), 6, 20000, 9)
    products = 6 * (fixed - fixed.mean(axis=0))[:, 0, 0] ** 2
    found = simulation.covariance("G", width=6)
    scatter = np.hypot(found.se[1, 0, 0, 0, 0], products.std() / np.sqrt(len(fixed)))
    assert (found.mean[1, 0, 0, 0, 0] - products.mean()) / scatter > 4


@pytest.mark.slow
def test_agrees_with_the_specialised_simulator(simulation_case):
    ensemble, leading = simulation_case("tanh", np.array(KERNEL), c_w=1.6, c_b=0.3, dt=0.5, depth=2, width=12)
    special = simulate(ensemble, leading, samples=16384, seed=10)
    block = LayeredBlock((("tanh", 1.6),), alpha=1.0, dt=0.5, depth=2, kernel=KERNEL, bias=0.3)
    general = simulate_layered(block, (12,), samples=16384, seed=11, third_cumulants=())
    found = (general.mean("G", 12), general.mean("S", 12), general.covariance("G", width=12))
    for one, other in zip(found, (special.K1, special.S1, special.V4)):
        scale = np.hypot(one.se, other.se)
        assert np.abs((one.mean - other.mean)[1:] / scale[1:]).max() < 4.5
    assert np.allclose(general.leading.kernels, leading.K, rtol=1e-9)
    assert (general.mean("G", 12).se <= special.K1.se)[2].all()


def test_equal_collinear_and_zero_inputs():
    """Inputs (x, y, x, 2x, 0) with sigma(0) = 0: copies are equal, the zero input stays zero, all is finite."""
    directions = np.array([[1.2, 0.0], [0.4, 0.9], [1.2, 0.0], [2.4, 0.0], [0.0, 0.0]])
    block = LayeredBlock((("relu", 1.4),), alpha=1.0, dt=0.5, depth=2, kernel=directions @ directions.T)
    simulation = simulate_layered(block, (8,), {"G": "x"}, samples=1024, seed=12, third_cumulants=())
    mean, covariance = simulation.mean("G", 8), simulation.covariance("G", width=8)
    for estimate in (mean, covariance):
        assert np.isfinite(estimate.mean).all() and np.isfinite(estimate.se).all()
    assert np.all(mean.mean[:, 4] == 0.0) and np.all(covariance.mean[:, 4] == 0.0)
    assert np.allclose(mean.mean[:, 0], mean.mean[:, 2], rtol=0, atol=1e-12)
    assert np.allclose(covariance.mean[:, 0, 1], covariance.mean[:, 2, 1], rtol=0, atol=1e-11)
    assert simulation.control_z[8].max() < 4.5


def test_wrong_leading_order_shows_in_the_controls(curved):
    simulation, _ = curved
    given = dataclasses.replace(simulation.leading, means=1.03 * simulation.leading.means)
    lead = Trimmed(given.kernels, given.means[:, :1])
    wrong = simulate_layered(simulation.block, (8,), {"G": "x"}, samples=16384, seed=1, leading=lead)
    assert wrong.control_z[8].max() > 6


@dataclasses.dataclass
class Trimmed:
    kernels: np.ndarray
    means: np.ndarray


SCRIPT = """
import jax; jax.config.update("jax_enable_x64", True)
from symtensor.numerics.layered_simulation import *
block = LayeredBlock((("tanh", 1.0),), alpha=1.0, dt=0.5, depth=1, kernel=1.0)
told = []
result = simulate_layered(block, (8,), samples=2000, seed=3, devices=jax.devices(), progress=lambda *x: told.append(x))
assert told[-1] == (2000, 2000) and len(told) == 4
print(len(jax.devices()), result.covariance("G", width=8).mean.tobytes().hex(), result.mean("S", 8).se.tobytes().hex())
"""


@pytest.mark.slow
def test_bitwise_independent_of_devices_and_other_widths():
    outputs = []
    for devices in (1, 2):
        flags = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}", "JAX_PLATFORMS": "cpu"}
        done = subprocess.run([sys.executable, "-c", SCRIPT], env=os.environ | flags, capture_output=True, text=True, check=True)
        outputs.append(done.stdout.split())
    assert outputs[0][0] == "1" and outputs[1][0] == "2" and outputs[0][1:] == outputs[1][1:]
    block = LayeredBlock((("tanh", 1.0),), alpha=1.0, dt=0.5, depth=1, kernel=1.0)
    together = simulate_layered(block, (4, 8), samples=2000, seed=3)
    assert together.covariance("G", width=8).mean.tobytes().hex() == outputs[0][1]


GOOD = {"branches": (("tanh", 1.0),), "alpha": 1.0, "dt": 0.5, "depth": 1, "kernel": 1.0}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"branches": ()}, "branches is empty"),
        ({"branches": (("tanh", -1.0),)}, "c_w of branch 1 = -1.0 must not be negative"),
        ({"dt": 0.0}, "dt = 0.0 must be positive"),
        ({"alpha": float("inf")}, "alpha = inf is not finite"),
        ({"depth": 0}, "depth = 0 must be an integer of at least 1"),
        ({"kernel": [[1.0, 2.0], [2.0, 1.0]]}, "not positive semi-definite"),
        ({"bias": -0.1}, "bias = -0.1 must not be negative"),
    ],
)
def test_blocks_that_are_refused(change, text):
    with pytest.raises(ValueError, match=text):
        LayeredBlock(**GOOD | change)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"widths": (8, 8)}, ValueError, "none twice"),
        ({"samples": 100}, ValueError, "samples = 100 must be an integer of at least 128"),
        ({"samples": {4: 256}}, ValueError, "no entry for width 8"),
        ({"seed": -1}, ValueError, "seed = -1"),
        ({"third_cumulants": ("phi",)}, ValueError, "third cumulant of 'phi', which is not an observable; known: G, S"),
        ({"memory_mb": 0.5}, MemoryCapError, "the cap is 0.5 MB"),
        ({"leading": Trimmed(np.ones((2, 1, 1)), np.ones((1, 2)))}, ValueError, "leading has kernels and means of shapes"),
        ({"block": LayeredBlock(**GOOD | {"bias": lambda s: s - 5.0})}, ValueError, "the bias variance is -4"),
        ({"block": LayeredBlock(**GOOD | {"branches": (("exp(x^2)", 1.0),), "kernel": 2.0})}, ValueError, "no Gaussian second"),
        ({"block": LayeredBlock(**GOOD | {"branches": (("relu", 1e100),), "depth": 3})}, ValueError, "overflows at layer 2"),
    ],
)
def test_runs_that_are_refused(change, error, text):
    arguments = {"block": LayeredBlock(**GOOD), "widths": (8,), "samples": 256, "seed": 1} | change
    with pytest.raises(error, match=text):
        simulate_layered(arguments.pop("block"), arguments.pop("widths"), **arguments)


def test_overflow_of_the_networks_is_named():
    """A bias variance that explodes above its order n^0 value: single networks overflow, the theory does not."""
    block = LayeredBlock(**GOOD | {"bias": lambda s: 1.0 + jnp.exp(8000.0 * jnp.maximum(s - 0.8, 0.0)), "depth": 2})
    with pytest.raises(SimulationOverflow, match="overflow float64 at depth"):
        simulate_layered(block, (4,), samples=512, seed=1)


def test_unknown_names_are_refused(curved):
    simulation, _ = curved
    with pytest.raises(ValueError, match="'phi' is not an observable of this simulation; known: G, H"):
        simulation.mean("phi", 8)
    with pytest.raises(ValueError, match="width 9 was not simulated"):
        simulation.mean("G", 9)
    with pytest.raises(ValueError, match="quantity = 'variance' is not one of"):
        simulation.fit("variance", "G")
    with pytest.raises(ValueError, match="linked is knowledge about means"):
        simulation.fit("third_cumulant", "G", linked=True)
