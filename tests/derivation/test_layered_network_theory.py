"""The exact theory against published numbers and closed forms, its truncations, and what a corrupted ingredient does."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from derivations.layered_network import checks
from derivations.layered_network.closure import closures, one_time_by_rule
from derivations.layered_network.continuous import continuous_limit
from derivations.layered_network.options import OPTIONS
from derivations.layered_network.paths import Paths
from derivations.layered_network.request import Request, read_request
from derivations.layered_network.theory import Exact, baseline, exact_theory, fixed_rule, markov_theory, mode_parts
from derivations.resnet_kernel.theory import solve
from symtensor.activation import activation
from symtensor.derivation.settings import Settings
from symtensor.fields.layered import LayeredNetwork, expand
from symtensor.numerics.path import PathArray
from symtensor.numerics.rules import Rule

PAPER: dict[str, Any] = {"c_w": 2, "c_b": 0, "alpha": 1, "dt": 0.0025, "kernel": 2.0}
TWO = np.array([[1.2, 0.4], [0.4, 0.9]])


def request(**given: Any) -> Request:
    return read_request(Settings.defaults(OPTIONS, samples=0, **given))


@cache
def exact(name: str, depth: int, dt: float, alpha: float = 1.0, two: bool = False) -> Exact:
    kernel = TWO if two else 2.0
    network = LayeredNetwork.single(name, c_w=2, c_b=0.1 if two else 0, alpha=alpha, dt=dt, depth=depth, kernel=kernel)
    return exact_theory(network, 1, 1e-8, 4000.0)


def last(values: np.ndarray) -> float:
    return float(values[-1].flat[0])


def test_published_point_tanh() -> None:
    """t = 0.5 of the reference table (exact and kernel-only, six digits)."""
    found = exact("tanh", 200, 0.0025)
    published = baseline(found)["kernel_only"]
    assert f"{last(found.expansion.kernels):.5f}" == "2.54139"
    assert f"{last(found.part.V4):.4f}" == "14.6593"
    assert f"{last(found.part.K1):.5f}" == "-0.04674"
    assert f"{last(published.V4):.4f}" == "14.6047"
    assert f"{last(published.K1):.5f}" == "-0.22358"
    assert f"{last(baseline(found)['one_mode'].V4):.4f}" == "14.6082"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "depth", "V4", "K1", "closure"),
    [("tanh", 800, "48.4710", "-0.45296", ("47.7898", "-1.02667")), ("relu", 400, "248.538", "2.48803", ("176.016", "0.00000"))],
)
def test_published_point_at_later_times(name: str, depth: int, V4: str, K1: str, closure: tuple[str, str]) -> None:
    network = LayeredNetwork.single(name, **PAPER, depth=depth)
    found = exact_theory(network, 1, 1e-7, 4000.0)
    assert f"{last(found.part.V4):.6g}" == f"{float(V4):.6g}"
    assert f"{last(found.part.K1):.5f}" == K1
    published = baseline(found)["kernel_only"]
    assert f"{last(published.V4):.6g}" == f"{float(closure[0]):.6g}"
    assert f"{abs(last(published.K1)) if name == 'relu' else last(published.K1):.5f}" == closure[1]


def test_published_quadrature() -> None:
    """32 nodes at the paper's point give V_4 = 42.878 and K_0 = 4.37299; the converged closure gives 47.790."""
    network = LayeredNetwork.single("tanh", **PAPER, depth=800)
    nodes = one_time_by_rule(network, activation("tanh"), Rule("gh", 32), "inside")
    assert f"{last(nodes.kernels):.5f}" == "4.37299"
    assert f"{last(closures(network, nodes)['kernel_only'].V4):.3f}" == "42.878"
    by_parts = one_time_by_rule(network, activation("tanh"), Rule("gh", 32), "hermite")
    assert f"{last(closures(network, by_parts)['kernel_only'].V4):.3f}" == "47.809"


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1.0, 0.7])
def test_closure_is_that_of_the_kernel_only_derivation(alpha: float) -> None:
    """NumPy recursions in components a <= b against the generated hierarchy with full tensors, two inputs."""
    asked = request(n_inputs=2, depth=6, dt=0.3, alpha=alpha, c_b=0.1)
    generated = solve(asked.base)
    found = closures(asked.network, one_time_by_rule(asked.network, asked.base.activation, Rule("trapezoid", 161), "inside"))
    np.testing.assert_allclose(found["kernel_only"].V4, generated["V4"], rtol=1e-9)
    np.testing.assert_allclose(found["kernel_only"].K1, generated["K1"], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found["one_mode"].V4, generated["V4_one_mode"], rtol=1e-9)


@pytest.mark.parametrize("two", [False, True])
def test_degree_two_is_the_one_mode_recursion(two: bool) -> None:
    found = exact("tanh", 6, 0.3, two=two)
    recursion, parts = baseline(found)["one_mode"], mode_parts(found)
    np.testing.assert_allclose(parts["2"].V4, recursion.V4, rtol=1e-7)
    np.testing.assert_allclose(parts["2"].K1, recursion.K1, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(parts["2"].U1, recursion.U1, rtol=1e-6, atol=1e-9)
    for key in ("V4", "K1"):
        total = sum(getattr(part, key) for part in parts.values())
        np.testing.assert_allclose(total, getattr(found.part, key), rtol=1e-12, atol=1e-14)
    assert np.abs(parts["odd, 1 to 7"].V4).max() < 1e-12  # tanh is odd, so that h is even
    assert last(parts["4"].V4) > 0.01 * (last(found.part.V4) - last(parts["2"].V4))


def test_odd_degrees_carry_the_error_of_a_one_sided_activation() -> None:
    found = exact("relu", 6, 0.3)
    parts = mode_parts(found)
    missing = last(found.part.K1) - last(parts["2"].K1)
    assert last(parts["odd, 1 to 7"].K1) / missing == pytest.approx(1, abs=0.1)
    assert abs(last(baseline(found)["kernel_only"].K1)) < 1e-10


@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_g_s_hierarchy_helps(name: str) -> None:
    """It is exact at depth 1, where no memory is carried, and later closer to the exact theory than one mode."""
    found = exact(name, 6, 0.3)
    markov, one_mode = markov_theory(found), baseline(found)["one_mode"]
    np.testing.assert_allclose(markov.V4[:2], found.part.V4[:2], rtol=1e-9)
    for key in ("V4", "K1"):
        target = last(getattr(found.part, key))
        assert abs(last(getattr(markov, key)) - target) < 0.35 * abs(last(getattr(one_mode, key)) - target)
        assert last(getattr(markov, key)) != pytest.approx(target, rel=1e-6)


def test_g_s_hierarchy_is_exact_without_memory_and_for_a_linear_network() -> None:
    for name, alpha, dt in (("tanh", 0.0, 1.0), ("identity", 1.0, 0.3)):
        found = exact(name, 4, dt, alpha)
        markov = markov_theory(found)
        np.testing.assert_allclose(markov.V4, found.part.V4, rtol=1e-9)
        np.testing.assert_allclose(markov.K1, found.part.K1, rtol=1e-7, atol=1e-10)


class _Corrupted(Paths):
    """One kind of vertex off by 10 %."""

    pattern: tuple[int, ...] = ()

    def cumulants(self, pattern: tuple[int, ...], later_only: bool = False) -> PathArray:
        values = super().cumulants(pattern, later_only)
        return PathArray(1.1 * values.values, values.error) if pattern == self.pattern else values


@pytest.mark.parametrize("pattern", [(2,), (0, 1), (0, 0)])
def test_a_corrupted_vertex_is_noticed(pattern: tuple[int, ...]) -> None:
    """Every factor of K_1 matters: the closed form rejects each of them off by 10 %."""
    network = LayeredNetwork.single("tanh", **checks.EXAMPLE)
    expected = checks.closed_form(checks.example())["K1"]
    paths = _Corrupted(network, network.functions(), 1e-9, 2000.0)
    paths.pattern = pattern
    found = expand(network, 1, tol=1e-9, paths=paths).mean("G", 1).ravel()
    assert np.abs(found - expected).max() > 0.01 * np.abs(expected).max()


def test_continuous_depth() -> None:
    """The extrapolation from a coarse grid agrees with that from a fine one within its own error; K_0 with the ODE value."""
    found = continuous_limit(request(kernel="2.0", dt=0.1, depth=20), 1e-8, 4000.0)
    assert abs(last(found.arrays["K0"]) - 4.3683157) < 2 * last(found.arrays["K0_error"]) < 1e-4
    coarse = continuous_limit(request(kernel="2.0", dt=0.25, depth=8), 1e-8, 4000.0)
    for name in ("V4", "K1"):
        gap = abs(last(coarse.arrays[name]) - last(found.arrays[name]))
        assert gap < last(coarse.arrays[f"{name}_error"])
        assert last(found.arrays[f"{name}_error"]) < last(coarse.arrays[f"{name}_error"]) / 3


def test_continuous_depth_needs_a_limit() -> None:
    assert "no continuous-depth limit" in continuous_limit(request(kernel="2.0", alpha=0.5, depth=4), 1e-8, 4000.0).failure
    with_gamma = continuous_limit(request(kernel="2.0", gamma=0.5, depth=4), 1e-8, 4000.0)
    assert with_gamma.failure == ""


@pytest.mark.parametrize("kernel", [[[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [2.0, 4.0]]])
@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_singular_kernels(kernel: list, name: str) -> None:
    """Equal, zero and proportional inputs: the first input alone is unchanged, and equal inputs have equal components."""
    both = LayeredNetwork.single(name, c_w=2, alpha=1, dt=0.5, depth=2, kernel=np.array(kernel))
    one = LayeredNetwork.single(name, c_w=2, alpha=1, dt=0.5, depth=2, kernel=1.0)
    two_inputs, single = exact_theory(both, 1, 1e-8, 4000.0).arrays(), exact_theory(one, 1, 1e-8, 4000.0).arrays()
    for key in ("K0", "V4", "K1", "S1"):
        np.testing.assert_allclose(two_inputs[key].reshape(3, -1)[:, 0], single[key].reshape(3, -1)[:, 0], rtol=1e-6, atol=1e-8)
    if kernel[0] == kernel[1]:
        np.testing.assert_allclose(two_inputs["K1"][:, 0, 1], two_inputs["K1"][:, 0, 0], rtol=1e-6, atol=1e-8)


def test_no_weights_no_drive() -> None:
    """C_W = 0: fluctuations of independent Gaussian neurons, V_4 = 2 K^2 and no correction of the mean."""
    network = LayeredNetwork.single("tanh", c_w=0, c_b=0.3, alpha=1, dt=0.5, depth=2, kernel=1.0)
    found = exact_theory(network, 1, 1e-9, 4000.0)
    np.testing.assert_allclose(found.part.V4.ravel(), 2 * found.expansion.kernels.ravel() ** 2, rtol=1e-10)
    assert np.abs(found.part.K1).max() < 1e-12


def test_fixed_rule_of_a_kinked_activation_is_by_parts() -> None:
    asked = request(kernel="2.0", activation="relu", depth=3)
    assert np.isfinite(fixed_rule(asked, asked.base.activation).V4).all()
