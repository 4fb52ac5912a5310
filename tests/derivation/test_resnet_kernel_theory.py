"""The numbers of the hierarchy: published values, closed forms, an independent recursion, continuous depth, P inputs."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, special

from derivations.resnet_kernel import DERIVATION
from derivations.resnet_kernel.request import read_request
from derivations.resnet_kernel.theory import KernelDiverged, Theory, continuous_depth, solve
from symtensor.activation import NotSquareIntegrableError
from symtensor.derivation.settings import Settings

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "kernel_hierarchy.json").read_text())
PAPER = {"kernel": "2.0", "c_w": 2.0, "c_b": 0.0, "dt": 0.0025, "depth": 800, "samples": 0}


def request(**settings):
    return read_request(Settings.defaults(DERIVATION.options, **settings))


@lru_cache(maxsize=16)
def paper(activation: str) -> Theory:
    return solve(request(activation=activation, **PAPER))


def agrees(value: float, digits: str) -> bool:
    """`value` rounds to the printed `digits` (half a unit in the last place)."""
    unit = 10.0 ** -len(digits.partition(".")[2])
    return abs(value - float(digits)) <= 0.5 * unit * (1 + 1e-9)


@pytest.mark.parametrize("row", REFERENCE["rows"], ids=lambda row: f"{row['activation']}-{row['layer']}")
def test_published_recursion(row: dict) -> None:
    theory = paper(row["activation"])
    assert agrees(theory["K0"][row["layer"], 0, 0], row["K0"])
    assert agrees(theory["V4"][row["layer"], 0, 0, 0, 0], row["V4"])
    assert agrees(theory["K1"][row["layer"], 0, 0], row["K1"])
    assert theory.choice.error <= 1e-10
    assert theory.output_error <= 1e-8


# -- an independent one-input recursion: composite Gauss-Legendre split at 0, derivatives by hand-made Hermite sums ----

FUNCTIONS = {
    "tanh": np.tanh, "erf": special.erf, "sin": np.sin, "gelu": lambda x: x * special.ndtr(x),
    "relu": lambda x: np.maximum(x, 0.0), "sigmoid": special.expit, "softplus": lambda x: np.logaddexp(0, x),
    "leaky-relu:0.2": lambda x: np.where(x > 0, x, 0.2 * x), "x*tanh(x)": lambda x: x * np.tanh(x),
    "Abs(x)-x/2": lambda x: np.abs(x) - x / 2,
}  # fmt: skip


def independent(function, K: float, c_w: float, c_b: float, dt: float, depth: int) -> np.ndarray:
    node, weight = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(-12, 12, 161)
    z = (edges[:-1, None] + 0.075 * (node + 1)).ravel()
    w = np.tile(0.075 * weight, 160) * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    V, K1, rows = 2 * K * K, 0.0, []
    for _ in range(depth + 1):
        rows.append((K, V, K1))
        h = function(np.sqrt(K) * z) ** 2
        value = w @ h
        first = w @ (h * (z**2 - 1)) / (2 * K)
        second = w @ (h * (z**4 - 6 * z**2 + 3)) / (4 * K * K)
        drive, chi = c_b + c_w * value, c_w * first
        K, V, K1 = K + dt * drive, V + dt * (2 * chi * V + 4 * K * drive), K1 + dt * (chi * K1 + c_w * second * V / 2)
    return np.array(rows).T


@pytest.mark.parametrize("activation", list(FUNCTIONS))
def test_independent_recursion(activation: str) -> None:
    theory = solve(request(activation=activation, kernel="1.5", c_w=1.7, c_b=0.3, dt=0.05, depth=30, samples=0))
    K, V, K1 = independent(FUNCTIONS[activation], 1.5, 1.7, 0.3, 0.05, 30)
    np.testing.assert_allclose(theory["K0"][:, 0, 0], K, rtol=1e-9)
    np.testing.assert_allclose(theory["V4"][:, 0, 0, 0, 0], V, rtol=1e-8)
    np.testing.assert_allclose(theory["K1"][:, 0, 0], K1, rtol=1e-7, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["gelu", "sin", "erf", "relu"])
def test_independent_recursion_at_the_papers_point(activation: str) -> None:
    theory = paper(activation)
    K, V, K1 = independent(FUNCTIONS[activation], 2.0, 2.0, 0.0, 0.0025, 800)
    np.testing.assert_allclose(theory["K0"][:, 0, 0], K, rtol=1e-9)
    np.testing.assert_allclose(theory["V4"][:, 0, 0, 0, 0], V, rtol=1e-8)
    np.testing.assert_allclose(theory["K1"][:, 0, 0], K1, rtol=1e-7, atol=1e-7)


def test_published_quadrature_is_reproduced_and_flagged() -> None:
    theory = solve(request(activation="tanh", quadrature="gh:32", derivatives="inside", **PAPER))
    assert agrees(theory["V4"][-1, 0, 0, 0, 0], REFERENCE["gauss_hermite_32"]["V4_inside"])
    assert agrees(theory["K0"][-1, 0, 0], REFERENCE["gauss_hermite_32"]["K0"])
    assert theory.choice.error > 1e-3
    assert theory.output_error > 0.05
    assert any("not converged" in note for note in theory.notes)
    assert agrees(theory.leading["K0"][-1, 0, 0], "4.36796")


def test_hermite_coefficients_with_the_same_nodes() -> None:
    theory = solve(request(activation="tanh", quadrature="gh:32", derivatives="hermite", **PAPER))
    assert agrees(theory["V4"][-1, 0, 0, 0, 0], REFERENCE["gauss_hermite_32"]["V4_hermite"])
    assert any("not converged" in note for note in theory.notes)


def test_continuous_depth() -> None:
    """Against printed digits (the last one is truncated there) and an independent integrator and quadrature."""
    ode = continuous_depth(request(activation="tanh", **PAPER), paper("tanh").module, np.array([0.0, 1.0, 2.0]))
    value = {name: ode.arrays[name][-1].ravel()[0] for name in ("K0", "V4", "K1")}
    for name, digits in REFERENCE["continuous_t2"].items():
        np.testing.assert_allclose(value[name], float(digits), rtol=3e-8)
    z = np.linspace(-11, 11, 401)
    w = np.exp(-z * z / 2) * (z[1] - z[0]) / np.sqrt(2 * np.pi)

    def rates(_, state):
        K, V, K1 = state
        h = np.tanh(np.sqrt(K) * z) ** 2
        drive, chi = 2 * w @ h, w @ (h * (z**2 - 1)) / K
        second = w @ (h * (z**4 - 6 * z**2 + 3)) / (2 * K * K)
        return [drive, 2 * chi * V + 4 * K * drive, chi * K1 + second * V / 2]

    exact = integrate.solve_ivp(rates, (0, 2), [2.0, 8.0, 0.0], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    np.testing.assert_allclose([value["K0"], value["V4"], value["K1"]], exact, rtol=1e-9)


def test_continuous_depth_is_the_limit_with_a_leak() -> None:
    """alpha^2 = 1 - gamma dt: the discrete recursion approaches the ODE linearly in dt."""
    errors = []
    for depth in (20, 40):
        asked = request(activation="gelu", kernel="1.0", gamma=0.7, dt=1.0 / depth, depth=depth, samples=0)
        theory = solve(asked)
        ode = continuous_depth(asked, theory.module, np.array([0.0, 1.0]))
        errors.append([theory[name][-1].ravel()[0] - ode.arrays[name][-1].ravel()[0] for name in ("K0", "V4", "K1")])
    ratio = np.array(errors[0]) / np.array(errors[1])
    np.testing.assert_allclose(ratio, 2, atol=0.25)


def test_no_continuous_depth_without_a_leak_rate() -> None:
    asked = request(kernel="1.0", alpha=0.9, depth=2, samples=0)
    ode = continuous_depth(asked, solve(asked).module, np.array([0.0, 1.0]))
    assert not ode.arrays
    assert "--gamma" in ode.failure


# -- exact cases -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.0, 0.8, 0.0])
def test_linear_network_in_closed_form(alpha: float) -> None:
    """sigma = identity, one input: K_0 and V_4 obey scalar recursions (exact in dt unless alpha = 1)."""
    c_w, c_b, dt, depth = 1.2, 0.2, 0.25 if alpha else 1.0, 7
    theory = solve(request(activation="identity", kernel="1.3", c_w=c_w, c_b=c_b, dt=dt, depth=depth, alpha=alpha, samples=0))
    K, V = 1.3, 2 * 1.3**2
    for layer in range(depth + 1):
        np.testing.assert_allclose(theory["K0"][layer, 0, 0], K, rtol=1e-13)
        np.testing.assert_allclose(theory["V4"][layer, 0, 0, 0, 0], V, rtol=1e-13)
        assert theory["K1"][layer, 0, 0] == 0
        S = c_b + c_w * K
        if alpha == 1.0:
            V = V + dt * (2 * c_w * V + 4 * K * S)
        else:
            V = (alpha**2 + dt * c_w) ** 2 * V + 4 * alpha**2 * dt * K * S + 2 * dt**2 * S * S
        K = alpha**2 * K + dt * S


def test_exact_step_of_the_linear_network_at_large_depth() -> None:
    """The step exact in dt has n Var G of the exactly solvable network (alpha = 1 through gamma = 0 is the published one)."""
    dt = 1 / 8
    asked = request(activation="identity", kernel="1.0", c_w=1.0, c_b=0.2, alpha=0.9999999999, dt=dt, depth=8, samples=0)
    np.testing.assert_allclose(solve(asked)["V4"][-1].ravel()[0], 41.5719349255, rtol=1e-8)


def test_equal_inputs_and_zero_input() -> None:
    """(x, x, 0): the pair behaves as one input, the zero input stays at zero, also for a kinked activation."""
    for activation in ("relu", "tanh", "Abs(x)"):
        kernel = np.array([[1.4, 1.4, 0.0], [1.4, 1.4, 0.0], [0.0, 0.0, 0.0]])
        three = _solve_matrix(kernel, activation)
        one = _solve_matrix(kernel[:1, :1], activation)
        for name in ("K0", "K1"):
            np.testing.assert_allclose(three[name][:, :2, :2], np.broadcast_to(one[name], (6, 2, 2)), rtol=1e-9, atol=1e-12)
            assert np.abs(three[name][:, 2]).max() < 1e-14
        np.testing.assert_allclose(three["V4"][:, 0, 1, 1, 0], one["V4"].ravel(), rtol=1e-9)


def test_collinear_inputs_are_continuous() -> None:
    """(x, 2x) is the limit of nearly collinear inputs, with no divergence of the ReLU response."""
    exact = _solve_matrix(np.array([[1.0, 2.0], [2.0, 4.0]]), "relu")
    angle = 1e-4
    near = _solve_matrix(np.array([[1.0, 2.0 * np.cos(angle)], [2.0 * np.cos(angle), 4.0]]), "relu")
    for name in ("K0", "V4"):
        np.testing.assert_allclose(near[name], exact[name], rtol=1e-3)
    assert np.isfinite(exact["V4"]).all()


def test_permuted_inputs_permute_the_result() -> None:
    rng = np.random.default_rng(5)
    root = rng.standard_normal((3, 5))
    kernel = root @ root.T / 5
    order = [2, 0, 1]
    direct, permuted = _solve_matrix(kernel, "gelu"), _solve_matrix(kernel[np.ix_(order, order)], "gelu")
    np.testing.assert_allclose(permuted["K1"], direct["K1"][:, order][:, :, order], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(permuted["V4"], direct["V4"][np.ix_(range(6), order, order, order, order)], rtol=1e-9)


def test_rotated_linear_network_is_covariant() -> None:
    """sigma = identity has no preferred inputs: K -> R K R^T carries every tensor along (rank-4 contraction included)."""
    rng = np.random.default_rng(6)
    root, (rotation, _) = rng.standard_normal((3, 3)), np.linalg.qr(rng.standard_normal((3, 3)))
    kernel = root @ root.T
    direct = _solve_matrix(kernel, "identity", c_b=0.0)
    rotated = _solve_matrix(rotation @ kernel @ rotation.T, "identity", c_b=0.0)
    carried = np.einsum("ai,bj,ck,dm,lijkm->labcd", rotation, rotation, rotation, rotation, direct["V4"])
    np.testing.assert_allclose(rotated["V4"], carried, rtol=1e-9, atol=1e-9)


def _solve_matrix(kernel: np.ndarray, activation: str, c_b: float = 0.0) -> Theory:
    from dataclasses import replace

    from symtensor.derivation.inputs import Inputs

    asked = request(activation=activation, kernel="1.0", c_w=1.6, c_b=c_b, dt=0.2, depth=5, samples=0)
    labels = tuple(map(str, range(len(kernel))))
    kernel = (kernel + kernel.T) / 2
    return solve(replace(asked, inputs=Inputs(kernel, labels, "test")))


# -- refusals --------------------------------------------------------------------------------------------------------


def test_activation_without_expectation_names_layer_and_variance() -> None:
    with pytest.raises(NotSquareIntegrableError, match="layer 0"):
        request(activation="exp(x^2)", kernel="2.0")
    with pytest.raises(NotSquareIntegrableError, match=r"layer \d"):
        solve(request(activation="exp(x^2)", kernel="0.2", c_w=0.1, dt=0.2, depth=20, samples=0))


def test_integrable_below_the_critical_variance() -> None:
    theory = solve(request(activation="exp(x^2)", kernel="0.2", c_w=0.02, dt=0.1, depth=1, samples=0, tol=1e-8))
    np.testing.assert_allclose(theory["ES"][0, 0, 0], 1 / np.sqrt(1 - 4 * 0.2), rtol=1e-8)


def test_overflow_names_the_layer() -> None:
    with pytest.raises(KernelDiverged, match=r"layer \d+"):
        solve(request(activation="relu", kernel="1.0", c_w=1e6, dt=1.0, depth=200, samples=0))
