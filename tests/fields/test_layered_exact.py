"""The exactly solvable layered networks: published figures, enumeration of all random numbers, and each other."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from symtensor.fields.layered_exact import ExactHomogeneousNetwork, ExactLinearNetwork, Power

RESNET = {"kernel": 1, "alpha": 1, "c_w": 1, "bias": "1/5"}


def value(series, n: float) -> float:
    return sum(float(c) / n**k for k, c in enumerate(series))


def test_quoted_figures_of_the_linear_network():
    """layered_networks.md, section 5 (the phi^4 figures belong to dt = 1/4)."""
    resnet = ExactLinearNetwork(**RESNET, dt="1/8", depth=8)
    G = (8, 0, 0)
    mean = resnet.cumulant(G)
    assert len(mean) == 1 and abs(mean[0] - 2.878941) < 5e-7
    assert np.allclose(np.float64(resnet.cumulant(G, G)[:3]), [41.5719349255, 85.0681411626, 98.8422439067], rtol=1e-11)
    assert np.allclose(np.float64(resnet.cumulant(G, G, G)[:2]), [1686.22776554, 9002.49891482], rtol=1e-11)
    mlp = ExactLinearNetwork(kernel=1, alpha=0, dt=1, c_w="9/10", bias="1/10", depth=6)
    G = (6, 0, 0)
    assert np.allclose(np.float64(mlp.cumulant(G, G)[:3]), [8.11823237316, 35.5054450375, 100.451629666], rtol=1e-11)
    assert np.allclose(float(mlp.cumulant(G, G, G)[0]), 211.771668833, rtol=1e-11)
    fourth = ExactLinearNetwork(**RESNET, dt="1/4", depth=3).fourth_moment(3)
    assert np.allclose(np.float64(fourth[1:3]), [26.62083984, 18.28195313], rtol=1e-8)


def enumerated(network, statistics, n: int, nodes: int) -> float:
    """E of a statistic of a network of n neurons, by Gauss-Hermite nodes for all its normals (exact for polynomials).

    The weights are those of an even number of nodes, so that half of a Gaussian (ReLU) is integrated exactly as well.
    """
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()
    inputs, depth = network["inputs"], network["depth"]
    count = n * inputs * (depth + 1)
    grid = np.stack(np.meshgrid(*[z] * count, indexing="ij"), axis=-1).reshape(-1, depth + 1, n, inputs)
    weight = np.ones(1)
    for _ in range(count):
        weight = np.multiply.outer(weight, w).ravel()
    phi = grid[:, 0] @ np.linalg.cholesky(network["kernel"]).T
    layers = [phi]
    for layer in range(depth):
        root = np.linalg.cholesky(network["dt"] * network["sigma"](phi))
        phi = network["alpha"] * phi + grid[:, layer + 1] @ np.swapaxes(root, 1, 2)
        layers.append(phi)
    return float(weight @ statistics(layers))


def mean_kernel(phi, f=lambda x: x):
    return np.einsum("sia,sib->sab", f(phi), f(phi)) / phi.shape[1]


@pytest.mark.parametrize(("n", "depth"), [(1, 2), (2, 1)])
def test_several_inputs_against_enumeration(n, depth):
    """Two inputs: products of two entries of G at two layers, and of phi, over all nodes of the normals at width n."""
    kernel = [[1.0, 0.5], [0.5, 1.5]]
    model = {"alpha": 0.75, "dt": 0.5, "kernel": np.array(kernel), "depth": depth, "inputs": 2}
    model["sigma"] = lambda phi: 0.25 + 1.25 * mean_kernel(phi)
    exact = ExactLinearNetwork(kernel=kernel, alpha=0.75, dt=0.5, c_w=1.25, bias=0.25, depth=depth)
    entries = [(0, 0), (0, 1), (1, 1)]

    def moment(*factors):
        return enumerated(model, lambda phis: np.prod([mean_kernel(phis[l])[:, a, b] for l, a, b in factors], axis=0), n, 4)

    for (a, b), (c, d) in itertools.combinations_with_replacement(entries, 2):
        for earlier in (depth, depth - 1):
            left, right = (earlier, a, b), (depth, c, d)
            covariance = moment(left, right) - moment(left) * moment(right)
            assert np.isclose(value(exact.cumulant(left, right), n), n * covariance, rtol=1e-10, atol=1e-12)
    fourth = enumerated(model, lambda phis: (phis[-1][..., 0] ** 3 * phis[-1][..., 1]).mean(axis=1), n, 4)
    assert np.isclose(value(exact.fourth_moment(depth, 0, 0, 0, 1), n), fourth, rtol=1e-10)


def test_third_cumulant_of_two_inputs_against_enumeration():
    kernel = [[1.0, 0.5], [0.5, 1.5]]
    model = {"alpha": 0.75, "dt": 0.5, "kernel": np.array(kernel), "depth": 1, "inputs": 2}
    model["sigma"] = lambda phi: 0.25 + 1.25 * mean_kernel(phi)
    exact = ExactLinearNetwork(kernel=kernel, alpha=0.75, dt=0.5, c_w=1.25, bias=0.25, depth=1)
    factors = ((1, 0, 0), (1, 0, 1), (1, 1, 1))
    means = [enumerated(model, lambda phis, f=f: mean_kernel(phis[1])[:, f[1], f[2]], 1, 4) for f in factors]

    def central(phis):
        return np.prod([mean_kernel(phis[1])[:, a, b] - m for (_, a, b), m in zip(factors, means)], axis=0)

    assert np.isclose(value(exact.cumulant(*factors), 1), enumerated(model, central, 1, 6), rtol=1e-10)


def test_bias_that_depends_on_the_kernel_against_enumeration():
    """c_b = 1/5 + S/10 + S^2/20: the mean of G has corrections, and moments of degree two need degree eight before."""
    model = {"alpha": 1.0, "dt": 0.25, "kernel": np.ones((1, 1)), "depth": 2, "inputs": 1}
    model["sigma"] = lambda phi: 0.2 + 1.1 * mean_kernel(phi) + 0.05 * mean_kernel(phi) ** 2
    exact = ExactLinearNetwork(kernel=1, alpha=1, dt="1/4", c_w=1, bias=("1/5", "1/10", "1/20"), depth=2)
    first = enumerated(model, lambda phis: mean_kernel(phis[2])[:, 0, 0], 1, 12)
    second = enumerated(model, lambda phis: mean_kernel(phis[2])[:, 0, 0] ** 2, 1, 12)
    assert np.isclose(value(exact.cumulant((2, 0, 0)), 1), first, rtol=1e-10)
    assert np.isclose(value(exact.cumulant((2, 0, 0), (2, 0, 0)), 1), second - first**2, rtol=1e-10)
    assert exact.cumulant((2, 0, 0))[1] != 0


def test_powers_by_rotational_invariance():
    """The mean of phi^4 from its own recursion and from the uniform direction; means of powers at layer 0 by hand."""
    network = ExactLinearNetwork(**RESNET, dt="1/4", depth=3, orders=4)
    recursion = network.fourth_moment(3)
    sphere = network.power_cumulant((3, 2))
    assert sphere[: len(recursion)] == recursion and not any(sphere[len(recursion) :])
    assert network.power_cumulant((3, 1), (3, 1)) == network.cumulant((3, 0, 0), (3, 0, 0))
    # n Var(mean z^4) = E z^8 - (E z^4)^2, n Cov(mean z^2, mean z^6) = E z^8 - E z^6, at any width
    assert network.power_cumulant((0, 2), (0, 2)) == (96, 0, 0, 0, 0)
    assert network.power_cumulant((0, 1), (0, 3)) == (105 - 15, 0, 0, 0, 0)
    assert network.power_cumulant((0, 2), (0, 2), (0, 2))[0] == 10395 - 3 * 105 * 3 + 2 * 27


def test_orders_truncate_without_changing_the_rest():
    full = ExactLinearNetwork(**RESNET, dt="1/4", depth=4)
    short = ExactLinearNetwork(**RESNET, dt="1/4", depth=4, orders=1)
    G = (4, 0, 0)
    assert short.cumulant(G, G, G) == full.cumulant(G, G, G)[:2]
    assert short.fourth_moment(4) == full.fourth_moment(4)[:2]


def test_product_moments_of_scale_invariant_networks():
    """finite_width_mlp.md, section 4: E z^(2p) = (2p-1)!! K^p prod m_p(n), m_2 = 1 + 2/n, m_3 = 1 + 6/n + 8/n^2."""
    x = sp.Symbol("x")
    for depth in (1, 3):
        network = ExactHomogeneousNetwork(branches=((1, 1, 1),), kernel=1, dt=1, depth=depth)
        for k, m in ((2, 1 + 2 * x), (3, 1 + 6 * x + 8 * x**2)):
            expected = sp.Poly(sp.expand(sp.factorial2(2 * k - 1) * m**depth), x).all_coeffs()[::-1]
            assert list(network.cumulant((depth, Power(k)))) == expected
    relu = ExactHomogeneousNetwork(branches=((0, 1, 2),), kernel=1, dt=1, depth=2)
    # normalised squared ReLU y = 2 relu(z)^2: E y = 1, E y^2 = 6, so m_2 = 1 + 5/n
    assert list(relu.cumulant((2, Power(2)))) == [3, 30, 75]
    assert relu.cumulant((2, Power())) == (1,)


def test_homogeneous_network_against_the_linear_one():
    """A single identity branch at alpha = 0 is in both families."""
    homogeneous = ExactHomogeneousNetwork(branches=((1, 1, "9/10"),), kernel=1, dt=1, depth=4, bias="1/10")
    linear = ExactLinearNetwork(kernel=1, alpha=0, dt=1, c_w="9/10", bias="1/10", depth=4)
    for factors in ([(4, 1)] * 2, [(4, 1)] * 3, [(2, 1), (4, 1)]):
        found = homogeneous.cumulant(*((layer, Power(k)) for layer, k in factors))
        assert found == linear.cumulant(*((layer, 0, 0) for layer, _ in factors))
    assert homogeneous.cumulant((4, Power(2))) == linear.fourth_moment(4)


def test_two_branches_against_enumeration():
    """ReLU and identity branch with a bias variance in S1 and S2, at width 1 and 2."""
    s1, s2 = sp.symbols("S1 S2")
    exact = ExactHomogeneousNetwork(
        branches=((0, 1, "3/2"), (1, 1, "1/2")), kernel=1, dt="1/2", depth=1, bias=Fraction(1, 5) + s1 * s2 / 10
    )

    def relu(phi):
        return mean_kernel(phi, lambda v: np.maximum(v, 0))

    model = {"alpha": 0.0, "dt": 0.5, "kernel": np.ones((1, 1)), "depth": 1, "inputs": 1}
    model["sigma"] = lambda phi: 0.2 + relu(phi) * mean_kernel(phi) / 10 + 1.5 * relu(phi) + 0.5 * mean_kernel(phi)
    for n in (1, 2):
        g, s = (enumerated(model, lambda p, m=m: m(p[1])[:, 0, 0], n, 8) for m in (mean_kernel, relu))
        gs = enumerated(model, lambda p: mean_kernel(p[1])[:, 0, 0] * relu(p[1])[:, 0, 0], n, 8)
        assert np.isclose(value(exact.cumulant((1, Power())), n), g, rtol=1e-10)
        assert np.isclose(value(exact.cumulant((1, Power()), (1, exact.branch(0))), n), n * (gs - g * s), rtol=1e-10)
    assert exact.cumulant((1, Power()))[1] != 0


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ExactLinearNetwork(**RESNET | {"kernel": [[1, 2]]}, dt=1, depth=1), "kernel = .* is not a covariance"),
        (lambda: ExactLinearNetwork(**RESNET, dt=float("nan"), depth=1), "dt = nan is not a rational number"),
        (lambda: ExactLinearNetwork(**RESNET, dt="pi", depth=1), "dt = 'pi' is not a rational number"),
        (lambda: ExactLinearNetwork(**RESNET, dt=1, depth=1).cumulant((2, 0, 0)), "outside depth 1"),
        (lambda: ExactLinearNetwork(**RESNET, dt=1, depth=1).cumulant(), "no factor"),
        (lambda: ExactLinearNetwork(**RESNET, dt=1, depth=1).power_cumulant((1, 2)), "powers need `orders`"),
        (lambda: ExactLinearNetwork(**RESNET, dt=1, depth=1, orders=1).power_cumulant((1, 2), (0, 2)), "at one layer"),
        (lambda: ExactHomogeneousNetwork(((0, 1, 1),), 1, 1, 1, bias=sp.Symbol("S2")).cumulant((1, Power())), "may hold only"),
    ],
)
def test_refusals(call, text):
    with pytest.raises(ValueError, match=text):
        call()
