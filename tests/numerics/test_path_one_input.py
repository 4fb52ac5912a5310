"""Cumulants along the path of one input against integrals by other means, and the published closed form of order 1/n."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import special

from symtensor.activation import activation
from symtensor.numerics.path import PathArray, PathLaw, chain, leading_order, path_cumulants

VARIANCES = np.array([1.0, 1.3, 1.9])
ALPHA = 0.9

# -- moments of three times by integration over the increments -------------------------------------------------------


def _normal(z):
    return np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def _trapezoid(f, variances, alpha, powers, nodes=85, radius=8.0):
    """E[prod f(phi_t)^(2 powers_t)] for a smooth function: nested trapezoids in the independent increments."""
    z = np.linspace(-radius, radius, nodes)
    w = _normal(z) * (z[1] - z[0])
    size, left = np.sqrt(variances), [np.sqrt(b - alpha**2 * a) for a, b in itertools.pairwise(variances)]
    x = size[0] * z
    y = alpha * x[:, None] + left[0] * z
    # E over the third given the second, by interpolation-free evaluation at every y
    u = (alpha * y)[..., None] + left[1] * z
    inner = (f(u) ** (2 * powers[2])) @ w
    return w @ (f(x)[:, None] ** (2 * powers[0]) * f(y) ** (2 * powers[1]) * inner) @ w


def _half_line(variances, alpha, powers):
    """The same for ReLU: only positive phi_1 and phi_2 count unless their power is 0, and the last integral is closed."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    left = [np.sqrt(b - alpha**2 * a) for a, b in itertools.pairwise(variances)]

    def panels(low, high, count=12):
        edges = np.linspace(low, high, count + 1)
        half = np.diff(edges, axis=0) / 2
        points = edges[:-1, None] + half[:, None] * (1 + nodes.reshape((-1,) + (1,) * np.ndim(low)))
        return points.reshape(-1, *np.shape(low)), (half[:, None] * weights.reshape((-1,) + (1,) * np.ndim(low))).reshape(
            -1, *np.shape(low)
        )

    radius = 10.0
    z, w = panels(np.float64(0.0 if powers[0] else -radius), np.float64(radius))
    x = np.sqrt(variances[0]) * z
    start = -alpha * x / left[0] if powers[1] else np.full_like(x, -radius)
    z2, w2 = panels(np.clip(start, -radius, radius), np.full_like(x, radius))
    y = alpha * x + left[0] * z2
    inner = _relu_powers(alpha * y, left[1], powers[2])
    relu = lambda v, p: np.maximum(v, 0.0) ** (2 * p)  # noqa: E731
    return float(np.sum(w * _normal(z) * relu(x, powers[0]) * np.sum(w2 * _normal(z2) * relu(y, powers[1]) * inner, axis=0)))


def _relu_powers(mean, deviation, power):
    """E[relu(mean + deviation z)^(2 power)], power 0 or 1."""
    if power == 0:
        return np.ones_like(mean)
    r = mean / deviation
    return deviation**2 * ((r * r + 1) * special.ndtr(r) + r * _normal(r))


def _cumulant(moment, times):
    """cum(h(phi_t), t in times) of distinct times out of 0, 1, 2 by its definition."""

    def mean(*chosen):
        return moment([int(t in chosen) for t in range(3)])

    if len(times) == 2:
        a, b = times
        return mean(a, b) - mean(a) * mean(b)
    a, b, c = times
    single = {t: mean(t) for t in times}
    pairs = mean(a, b) * single[c] + mean(a, c) * single[b] + mean(b, c) * single[a]
    return mean(a, b, c) - pairs + 2 * single[a] * single[b] * single[c]


def _integral(name, variances):
    if name == "relu":
        return lambda powers: _half_line(variances, ALPHA, powers)
    f = {"tanh": np.tanh, "gelu": lambda x: x * special.ndtr(x)}[name]
    return lambda powers: _trapezoid(f, variances, ALPHA, powers)


def _difference(name, times, layers):
    """Derivatives of the cumulant in the variances of some layers, by central differences extrapolated once."""

    def at(shifts):
        moved = VARIANCES.copy()
        for layer, shift in zip(layers, shifts):
            moved[layer] += shift
        return _cumulant(_integral(name, moved), times)

    def central(step):
        signs = itertools.product((1, -1), repeat=len(layers))
        return sum(np.prod(s) * at(step * np.array(s)) for s in signs) / (2 * step) ** len(layers)

    if not layers:
        return at(())
    return (4 * central(0.01) - central(0.02)) / 3


@pytest.mark.parametrize("name", ["tanh", "gelu", "relu"])
@pytest.mark.parametrize(
    ("times", "layers"),
    [((0, 2), ()), ((0, 1), (0,)), ((0, 1), (1,)), ((0, 1, 2), ()), ((0, 1, 2), (0,)), ((0, 1, 2), (1,)), ((0, 1, 2), (2,)),
     ((0, 1, 2), (0, 1)), ((0, 1, 2), (1, 2))],
    ids=str,
)  # fmt: skip
def test_agrees_with_integrals_and_their_differences(name, times, layers):
    pattern = tuple(int(t in layers) for t in times)
    found = path_cumulants(PathLaw(VARIANCES[:, None, None], ALPHA), [activation(name)], pattern, tol=1e-9)
    value = found.values[tuple(index for t in times for index in (t, 0))].item()
    exact = _difference(name, times, layers)
    tolerance = (1e-11, 1e-8, 1e-6)[len(layers)] * max(1.0, abs(exact))
    assert value == pytest.approx(exact, abs=found.error + tolerance)
    assert abs(exact) > 100 * tolerance


def test_a_derivative_that_drops_the_kink_fails(monkeypatch):
    """Without the singular part of relu(x)^2'' .. the matrix of d^4/dx^4 of relu^2 would vanish: the comparison sees it."""
    columns = chain.Chain.columns
    monkeypatch.setattr(chain.Chain, "columns", lambda self, size, a: columns(self, size, a) * (a < 2))
    found = path_cumulants(PathLaw(VARIANCES[:, None, None], ALPHA), [activation("relu")], (0, 2), tol=1e-9)
    step = 0.02
    values = [_cumulant(_integral("relu", VARIANCES + np.array([0, shift, 0])), (0, 1)) for shift in (-step, 0, step)]
    second = (values[0] - 2 * values[1] + values[2]) / step**2
    assert abs(found.values[0, 0, 1, 0].item() - second) > 0.01
    monkeypatch.undo()
    found = path_cumulants(PathLaw(VARIANCES[:, None, None], ALPHA), [activation("relu")], (0, 2), tol=1e-9)
    assert found.values[0, 0, 1, 0].item() == pytest.approx(second, rel=2e-3)


# -- errors are honest -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tanh", "relu", "gelu"])
@pytest.mark.parametrize("pattern", [(0, 0), (0, 1), (0, 0, 1), (0, 0, 0, 0)], ids=str)
def test_the_error_bounds_the_deviation(name, pattern):
    law = PathLaw((1.5 * 1.06 ** np.arange(6))[:, None, None], 1.0)
    functions = [activation(name), activation("x")]
    coarse, fine = (path_cumulants(law, functions, pattern, tol=tol) for tol in (1e-4, 1e-6))
    deviation = float(np.abs(coarse.values - fine.values).max())
    assert deviation <= coarse.error + fine.error
    assert coarse.error <= 1e-4 * np.abs(coarse.values).max()


# -- order 1/n in closed form (two-time theory of section 4) ---------------------------------------------------------


def _order_one(name: str, depth: int, tol: float) -> dict[str, np.ndarray]:
    """V_4 and K_1 of C_W = 2, C_b = 0, K^0 = 2, dt = 0.0025 at every depth."""
    dt, functions = 0.0025, [activation(name), activation("x")]
    start = np.array([[2.0]])
    leading = leading_order(functions, 1, lambda s: 2 * s.reshape(1, 1), 1.0, dt, depth, start)
    law = PathLaw(leading.kernels, 1.0)
    found = {p: path_cumulants(law, functions, p, tol=tol, later_only=p == (0, 1)) for p in ((1,), (2,), (0, 0), (0, 1))}
    return _closed_form(found, dt) | {"K_0": leading.kernels[:, 0, 0]}


def _closed_form(found: dict[tuple[int, ...], PathArray], dt: float) -> dict[str, np.ndarray]:
    J, B = found[1,].values[:, 0, 0], found[2,].values[:, 0, 0, 0]
    covariance, moved = found[0, 0].values, found[0, 1].values[:, 0, :, 0, 0]
    size = len(J)
    A = 2 * dt * np.tril(np.ones((size, size)), -1)
    D = A @ np.linalg.inv(np.eye(size) - J[:, None] * A)
    fed = D @ covariance[:, 0, :, 1]
    drive = D @ covariance[:, 0, :, 0] @ D.T
    V4 = np.diag(covariance[:, 1, :, 1] + fed + fed.T + drive)
    U = 0.5 * B * np.diag(drive) + np.einsum("tk,kt->t", D, moved)
    return {"V_4": V4, "K_1": D @ U}


def _check(found, depth, K_0, V_4, K_1):
    assert found["K_0"][depth] == pytest.approx(K_0, abs=0.6e-5)
    assert found["V_4"][depth] == pytest.approx(V_4, abs=0.6e-4)
    assert found["K_1"][depth] == pytest.approx(K_1, abs=0.6e-5)


def test_tanh_reproduces_the_exact_column():
    found = _order_one("tanh", 400, 1e-8)
    _check(found, 200, 2.54139, 14.6593, -0.04674)
    _check(found, 400, 3.12061, 23.5625, -0.15455)


@pytest.mark.slow
def test_tanh_reproduces_the_last_row():
    _check(_order_one("tanh", 800, 1e-8), 800, 4.36796, 48.4710, -0.45296)


@pytest.mark.slow
def test_relu_reproduces_the_exact_column():
    found = _order_one("relu", 400, 1e-6)
    assert found["K_0"][400] == pytest.approx(5.42978, abs=0.6e-5)
    assert found["V_4"][400] == pytest.approx(248.538, abs=0.6e-3)
    assert found["K_1"][400] == pytest.approx(2.48803, abs=0.6e-5)


def test_one_mode_of_the_covariances_is_not_the_exact_column():
    """The table tells the modes apart: degree 2 alone gives 14.6082 at t = 0.5, the exact value is 14.6593."""
    functions = [activation("tanh"), activation("x")]
    leading = leading_order(functions, 1, lambda s: 2 * s.reshape(1, 1), 1.0, 0.0025, 200, np.array([[2.0]]))
    law = PathLaw(leading.kernels, 1.0)
    found = {p: path_cumulants(law, functions, p, tol=1e-7, later_only=p == (0, 1)) for p in ((1,), (2,), (0, 1))}
    found[0, 0] = path_cumulants(law, functions, (0, 0), modes=[2])
    assert _closed_form(found, 0.0025)["V_4"][200] == pytest.approx(14.6082, abs=0.6e-4)


@pytest.mark.parametrize("name", ["gelu", "sin", "erf"])
def test_two_numbers_of_modes_agree(name):
    coarse, fine = (_order_one(name, 60, tol) for tol in (1e-5, 1e-9))
    for key in ("V_4", "K_1"):
        gap = np.abs(coarse[key] - fine[key]).max()
        assert 0 < gap < 1e-5 * np.abs(fine[key]).max() + 1e-7
