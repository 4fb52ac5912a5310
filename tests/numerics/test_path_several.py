"""Several inputs: cumulants along a path against plain quadrature, Wick's theorem, closed forms and finite differences."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr

from symtensor.activation import activation
from symtensor.numerics.path.law import PathLaw
from symtensor.numerics.path.leading import KernelOverflowError, leading_order
from symtensor.numerics.path.pairs import pair_list, pair_number
from symtensor.numerics.path.several_inputs import PathNotConverged, several_input_cumulants

KERNEL = np.array([[1.0, 0.4, -0.3], [0.4, 0.8, 0.1], [-0.3, 0.1, 1.3]])
PLAIN = {
    "tanh": np.tanh,
    "sin": np.sin,
    "relu": lambda x: np.maximum(x, 0.0),
    "identity": lambda x: x,
    "x**2": lambda x: x**2,
}


def path_kernels(start: np.ndarray, layers: int, alpha: float, step: float = 0.5) -> np.ndarray:
    """Kernels that grow by a fixed covariance with correlations of its own, so that no pair scales by one factor."""
    size = len(start)
    added = step * (0.6 * np.eye(size) + 0.2 * np.outer(np.arange(1, size + 1), np.arange(1, size + 1)) / size)
    kernels = [start]
    for _ in range(layers - 1):
        kernels.append(alpha**2 * kernels[-1] + added)
    return np.array(kernels)


def tensor_expectation(integrand, covariance: np.ndarray, nodes: int = 40) -> float:
    """E of a function of a Gaussian vector by Gauss-Hermite in every eigendirection with variance."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()
    values, vectors = np.linalg.eigh(covariance)
    live = values > 1e-13 * values.max()
    grid = np.meshgrid(*([z] * int(live.sum())), indexing="ij")
    weight = np.ones_like(grid[0])
    for part in np.meshgrid(*([w] * int(live.sum())), indexing="ij"):
        weight = weight * part
    scaled = vectors[:, live] * np.sqrt(values[live])
    return float((weight * integrand(*np.tensordot(scaled, np.array(grid), axes=1))).sum())


def direct_covariance(law: PathLaw, f, g, k: int, t: int, ab: tuple[int, int], cd: tuple[int, int], nodes: int = 40) -> float:
    """cov(f(a) f(b) at k, g(c) g(d) at t), k <= t, on a grid over all distinct coordinates."""
    K, later, cross = law.kernels[k], law.kernels[t], law.alpha ** (t - k) * law.kernels[k]
    early = sorted(set(ab))
    late = [c for c in sorted(set(cd)) if k != t or c not in early]
    top = np.concatenate([K[np.ix_(early, early)], cross[np.ix_(early, late)]], axis=1)
    bottom = np.concatenate([cross[np.ix_(early, late)].T, later[np.ix_(late, late)]], axis=1)
    where = {(0, a): i for i, a in enumerate(early)} | {(1, c): len(early) + i for i, c in enumerate(late)}

    def position(c: int) -> int:
        return where[1, c] if (1, c) in where else where[0, c]

    def product_of(*x):
        first = f(x[where[0, ab[0]]]) * f(x[where[0, ab[1]]])
        return first, g(x[position(cd[0])]) * g(x[position(cd[1])])

    sigma = np.concatenate([top, bottom])
    joint = tensor_expectation(lambda *x: np.prod(product_of(*x), axis=0), sigma, nodes)
    means = [tensor_expectation(lambda *x, i=i: product_of(*x)[i], sigma, nodes) for i in (0, 1)]
    return joint - means[0] * means[1]


def values(law: PathLaw | _TwoTimes, names, pattern, tol=1e-9, **options) -> np.ndarray:
    return several_input_cumulants(law, [activation(n) for n in names], pattern, tol=tol, **options).values


@pytest.fixture(scope="module")
def smooth_case():
    law = PathLaw(path_kernels(0.5 * KERNEL, 3, 0.9), 0.9)
    return law, several_input_cumulants(law, [activation("sin"), activation("identity")], (0, 0), tol=1e-9)


@pytest.mark.parametrize("ab, cd", [((0, 1), (0, 1)), ((0, 0), (1, 1)), ((0, 1), (0, 2)), ((1, 1), (0, 2)), ((2, 2), (2, 2))])
@pytest.mark.parametrize("k, t", [(0, 2), (1, 2), (1, 1)])
def test_covariances_agree_with_a_grid_over_all_coordinates(smooth_case, k, t, ab, cd):
    law, found = smooth_case
    number = pair_number(3)
    for r, s in product(range(2), repeat=2):
        names = ["sin", "identity"]
        exact = direct_covariance(law, PLAIN[names[r]], PLAIN[names[s]], k, t, ab, cd, nodes=24)
        value = found.values[k, 6 * r + number[ab], t, 6 * s + number[cd]]
        assert value == pytest.approx(exact, abs=2e-9 * np.abs(found.values).max())
    assert found.error < 1e-8


def test_covariances_are_symmetric_and_positive(smooth_case):
    _, found = smooth_case
    flat = found.values.reshape(36, 36)
    assert np.array_equal(flat, flat.T)
    assert np.linalg.eigvalsh(flat)[0] > -1e-9 * flat.max()


@pytest.mark.parametrize("alpha", [1.0, 0.7, 0.0])
def test_linear_and_quadratic_functions_follow_wick(alpha):
    law = PathLaw(path_kernels(KERNEL, 3, alpha), alpha)
    found = values(law, ["identity", "x**2"], (0, 0), 1e-10)
    for (e, (a, b)), (f, (c, d)) in product(enumerate(pair_list(3)), repeat=2):
        for k, t in ((0, 0), (0, 2), (1, 2)):
            C = alpha ** (t - k) * law.kernels[k]
            assert found[k, e, t, f] == pytest.approx(C[a, c] * C[b, d] + C[a, d] * C[b, c], abs=1e-10)
            # E[(x_a x_b)(y_c^2 y_d^2)]: the lines that join the two times
            K = law.kernels[t]
            exact = 2 * C[a, c] * C[b, c] * K[d, d] + 2 * C[a, d] * C[b, d] * K[c, c]
            exact += 4 * (C[a, c] * C[b, d] + C[a, d] * C[b, c]) * K[c, d]
            assert found[k, e, t, 6 + f] == pytest.approx(exact, abs=1e-9)


def test_singular_kernels_are_exact():
    """Inputs (x, x, 2x, y, 0): the covariances are those of the distinct inputs, and of functions of one coordinate."""
    B = 0.5 * np.array([[1.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.3, 0.8], [0.0, 0.0]])
    law = PathLaw(np.array([0.4 * B @ B.T, B @ B.T]), 1.0)
    number = pair_number(5)
    found = values(law, ["tanh"], (0, 0), 1e-6)
    assert np.abs(found[:, number[0, 3]] - found[:, number[1, 3]]).max() < 1e-7
    assert np.abs(found[:, number[0, 0]] - found[:, number[0, 1]]).max() < 1e-7
    assert not found[:, number[4]].any()
    reduced = PathLaw(law.kernels[:, [0, 2, 3]][:, :, [0, 2, 3]], 1.0)
    for ab, cd in (((0, 1), (0, 2)), ((1, 1), (0, 2)), ((1, 2), (1, 2))):
        at = [{0: 0, 1: 2, 2: 3}[i] for i in (*ab, *cd)]
        for k, t in ((0, 0), (0, 1)):
            exact = direct_covariance(reduced, np.tanh, np.tanh, k, t, ab, cd, nodes=44)
            assert found[k, number[at[0], at[1]], t, number[at[2], at[3]]] == pytest.approx(exact, abs=1e-7)


def test_derivatives_on_a_singular_kernel_are_right_within_its_range():
    """Inputs (x, 2x) at both times: what K can do is to scale, and the derivative along that is the ordinary one."""
    direction = np.outer([1.0, 2.0], [1.0, 2.0])
    law = PathLaw(np.array([0.3 * direction, 0.5 * direction]), 1.0)
    single = PathLaw(np.array([[[0.3]], [[0.5]]]), 1.0)
    along = np.array([direction[pair] for pair in pair_list(2)])
    for names in (["sin"], ["relu"]):
        for pattern in ((0, 1), (1, 0)):
            found = values(law, names, pattern, 1e-5) @ along
            assert found[0, 0, 1, 0] == pytest.approx(values(single, names, pattern, 1e-5)[0, 0, 1, 0, 0], rel=1e-4)
        J = values(law, names, (1,), 1e-9) @ along
        h = 1e-4
        moved = [direct_mean(PLAIN[names[0]], 0.5 + sign * h) for sign in (1, -1)]
        assert J[1, 1] == pytest.approx((moved[0] - moved[1]) / (2 * h), rel=1e-6)


def direct_mean(f, variance: float) -> float:
    """E[f(x) f(2x)]."""
    z = np.linspace(-12, 12, 240001)
    return float((f(np.sqrt(variance) * z) * f(2 * np.sqrt(variance) * z) * np.exp(-z * z / 2)).sum() * 1e-4 / np.sqrt(2 * np.pi))


@pytest.mark.parametrize("names", [["sin"], pytest.param(["relu"], marks=pytest.mark.slow)])
def test_derivatives_agree_with_finite_differences(names):
    """Every derivative of every covariance, in K at either time, moves the covariance as its definition says."""
    start = KERNEL[:2, :2]
    law = PathLaw(path_kernels(start, 3, 0.8), 0.8)
    tol, close = (1e-3, 3e-3) if names == ["relu"] else (1e-9, 3e-5)
    late, early = values(law, names, (0, 1), tol), values(law, names, (1, 0), tol)
    assert np.abs(late[0, :, 2] - values(law, names, (0, 1), tol, later_only=True)[0, :, 2]).max() < 1e-12
    h = 0.02 if names == ["relu"] else 1e-3
    for e, (a, b) in enumerate(pair_list(2)):
        for k, t, layer, found in ((0, 2, 2, late[0, :, 2]), (0, 2, 0, early[0, :, 2]), (2, 0, 0, late[2, :, 0])):
            moved = []
            for sign in (1, -1):
                kernels = law.kernels.copy()
                kernels[layer, a, b] += sign * h
                kernels[layer, b, a] = kernels[layer, a, b]
                # the path between k and t is not looked at: the covariance of the two times is alpha^2 K_k
                two = _TwoTimes(kernels, law.alpha)
                moved.append(values(two, names, (0, 0), tol)[k, :, t])
            difference = (moved[0] - moved[1]) / (2 * h)
            assert np.abs(found[..., e] - difference).max() < close * np.abs(found).max()


@dataclass
class _TwoTimes:
    """A law whose layers are moved one at a time."""

    kernels: np.ndarray
    alpha: float


def test_equal_time_derivative_is_that_of_the_covariance():
    law = PathLaw(path_kernels(KERNEL[:2, :2], 2, 1.0), 1.0)
    found = values(law, ["tanh"], (1, 0), 1e-6)
    h = 1e-3
    for e, (a, b) in enumerate(pair_list(2)):
        moved = []
        for sign in (1, -1):
            kernels = law.kernels.copy()
            kernels[1, a, b] += sign * h
            kernels[1, b, a] = kernels[1, a, b]
            moved.append(values(_TwoTimes(kernels, 1.0), ["tanh"], (0, 0), 1e-7)[1, :, 1])
        assert np.abs(found[1, :, 1, :, e] - (moved[0] - moved[1]) / (2 * h)).max() < 3e-6
    assert not values(law, ["tanh"], (0, 1), 1e-6)[1, :, 1].any()


def test_one_time_derivatives_of_relu_are_those_of_the_arc_cosine_kernel():
    """E[relu relu] = sqrt(k11 k22) (sin(q) + (pi - q) cos(q)) / (2 pi)."""
    kernel = KERNEL[:2, :2]
    q = np.arccos(kernel[0, 1] / np.sqrt(kernel[0, 0] * kernel[1, 1]))
    J = values(PathLaw(kernel[None], 1.0), ["relu"], (1,))
    assert J[0, 1, 1] == pytest.approx((np.pi - q) / (2 * np.pi), abs=1e-12)
    assert J[0, 1, 0] == pytest.approx(np.sin(q) * np.sqrt(kernel[1, 1] / kernel[0, 0]) / (4 * np.pi), abs=1e-12)
    B = values(PathLaw(kernel[None], 1.0), ["relu"], (2,))
    det = kernel[0, 0] * kernel[1, 1] - kernel[0, 1] ** 2
    assert B[0, 1, 1, 1] == pytest.approx(1 / (2 * np.pi * np.sqrt(det)), rel=1e-11)
    assert J[0, 0] == pytest.approx([0.5, 0, 0], abs=1e-12)


def test_one_time_derivatives_of_erf_are_those_of_its_closed_form():
    """E[erf erf] = (2/pi) arcsin(2 k12 / sqrt((1 + 2 k11)(1 + 2 k22)))."""
    kernel = KERNEL[:2, :2]

    def mean(k11, k12, k22):
        return 2 / np.pi * np.arcsin(2 * k12 / np.sqrt((1 + 2 * k11) * (1 + 2 * k22)))

    at, h = np.array([kernel[0, 0], kernel[0, 1], kernel[1, 1]]), 1e-4
    J = values(PathLaw(kernel[None], 1.0), ["erf"], (1,))[0, 1]
    B = values(PathLaw(kernel[None], 1.0), ["erf"], (2,))[0, 1]
    steps = h * np.eye(3)
    assert pytest.approx([(mean(*(at + s)) - mean(*(at - s))) / (2 * h) for s in steps], abs=1e-8) == J
    for i, j in product(range(3), repeat=2):
        corners = [p * q * mean(*(at + p * steps[i] + q * steps[j])) for p, q in product((1, -1), repeat=2)]
        assert B[i, j] == pytest.approx(sum(corners) / (4 * h * h), abs=1e-6)


def squares(k: float, t: float, c: float) -> float:
    """cov(relu(x)^2, relu(y)^2) of variances k, t and covariance c: the arc-cosine kernel of degree two."""
    q = np.arccos(c / np.sqrt(k * t))
    return k * t * ((3 * np.sin(q) * np.cos(q) + (np.pi - q) * (1 + 2 * np.cos(q) ** 2)) / (2 * np.pi) - 0.25)


def test_relu_at_two_times_is_the_arc_cosine_kernel_of_degree_two():
    kernels = path_kernels(KERNEL[:2, :2], 4, 0.9)
    law = PathLaw(kernels, 0.9)
    found, late = values(law, ["relu"], (0, 0), 1e-5), values(law, ["relu"], (0, 1), 1e-4, later_only=True)
    for (e, a), (f, b) in product(((0, 0), (2, 1)), repeat=2):
        for k, t in ((0, 3), (1, 2), (2, 2)):
            at = kernels[k, a, a], kernels[t, b, b], 0.9 ** (t - k) * kernels[k, a, b]
            assert found[k, e, t, f] == pytest.approx(squares(*at), abs=2e-5)
            if k < t:
                slope = (squares(at[0], at[1] + 1e-5, at[2]) - squares(at[0], at[1] - 1e-5, at[2])) / 2e-5
                assert late[k, e, t, f, f] == pytest.approx(slope, abs=1e-4)


def test_gelu_agrees_with_a_grid_over_all_coordinates():
    kernels = path_kernels(0.4 * KERNEL, 2, 1.0, 0.2)
    law, number = PathLaw(kernels, 1.0), pair_number(3)
    found = values(law, ["gelu"], (0, 0), 1e-8)
    for ab, cd in (((0, 1), (0, 2)), ((0, 0), (1, 1)), ((1, 1), (2, 2)), ((0, 2), (0, 2))):
        for k, t in ((0, 1), (1, 1)):
            exact = direct_covariance(law, gelu, gelu, k, t, ab, cd, nodes=30)
            assert found[k, number[ab], t, number[cd]] == pytest.approx(exact, abs=1e-8)


def gelu(x: np.ndarray) -> np.ndarray:
    return x * ndtr(x)


def test_modes_add_up_to_the_whole():
    law = PathLaw(path_kernels(0.5 * KERNEL[:2, :2], 3, 1.0), 1.0)
    whole = values(law, ["tanh"], (0, 0), 1e-7)
    parts = sum(values(law, ["tanh"], (0, 0), 1e-7, modes=[n]) for n in range(1, 70))
    assert np.abs(whole - parts).max() < 1e-6
    assert np.abs(whole - values(law, ["tanh"], (0, 0), 1e-7, modes=[2])).max() > 1e-4
    odd = values(law, ["tanh"], (0, 0), 1e-7, modes=[1, 3, 5])
    assert np.abs(odd).max() < 1e-14


def test_leading_order_is_the_recursion_and_names_what_fails():
    number = pair_number(2)
    functions = [activation("identity"), activation("relu")]
    found = leading_order(functions, 2, lambda s: 0.1 + s[:3][number] + s[3:][number], 0.5, 0.25, 3, KERNEL[:2, :2])
    kernel = found.kernels[2]
    q = np.arccos(kernel[0, 1] / np.sqrt(kernel[0, 0] * kernel[1, 1]))
    relu = np.sqrt(kernel[0, 0] * kernel[1, 1]) * (np.sin(q) + (np.pi - q) * np.cos(q)) / (2 * np.pi)
    assert found.kernels[3, 0, 1] == pytest.approx(0.25 * kernel[0, 1] + 0.25 * (0.1 + kernel[0, 1] + relu), rel=1e-13)
    assert found.means[2, 4] == pytest.approx(relu, rel=1e-13)
    with pytest.raises(KernelOverflowError, match="layer"):
        leading_order([activation("relu")], 1, lambda s: 1e3 * s.reshape(1, 1), 1.0, 1.0, 100, np.eye(1))
    with pytest.raises(ValueError, match="second moment at variance"):
        leading_order([activation("exp(x**2)")], 1, lambda s: s.reshape(1, 1), 1.0, 1.0, 3, 0.2 * np.eye(1))


def test_what_cannot_be_done_is_refused():
    law = PathLaw(path_kernels(KERNEL, 3, 1.0), 1.0)
    relu = [activation("relu")]
    with pytest.raises(PathNotConverged, match="adjacent layers") as failure:
        several_input_cumulants(PathLaw(np.array([[[1.0]], [[1.0001]]]), 1.0), relu, (0, 1), tol=1e-12)
    assert failure.value.array.error > 0
    with pytest.raises(ValueError, match="not done for several inputs"):
        several_input_cumulants(law, relu, (0, 0, 0))
    with pytest.raises(ValueError, match="memory_mb"):
        several_input_cumulants(law, relu, (0, 1), memory_mb=1e-3)
    with pytest.raises(ValueError, match="modes"):
        several_input_cumulants(law, relu, (1,), modes=[2])
