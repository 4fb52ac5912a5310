"""Order 1/n by diagrams against the closed form of the two-time theory, for arrays that only have the right symmetries."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symtensor.fields.layered import Branch, LayeredExpansion, LayeredNetwork, cumulant_terms, expand
from symtensor.fields.layered.expansion import arrays_of, evaluate
from symtensor.fields.layered.program import Output, Program
from symtensor.numerics.path import PathArray


class RandomPaths:
    """Arrays of path cumulants with random entries: symmetric where they have to be, causal for one derivative of two legs."""

    def __init__(self, layers: int, components: int, pairs: int) -> None:
        rng = np.random.default_rng(7)
        self.shape = layers, components, pairs
        factor = rng.normal(size=(layers * components, layers * components))
        second = rng.normal(size=(layers, components, pairs, pairs))
        later = np.arange(layers)[:, None] < np.arange(layers)
        self.found = {
            (1,): rng.normal(size=(layers, components, pairs)),
            (2,): second + second.transpose(0, 1, 3, 2),
            (0, 0): (factor @ factor.T).reshape(layers, components, layers, components),
            (0, 1): rng.normal(size=(layers, components, layers, components, pairs)) * later[:, None, :, None, None],
        }

    def leading(self) -> tuple[np.ndarray, np.ndarray, float]:
        layers, components, _ = self.shape
        return np.ones((layers, 2, 2)), np.ones((layers, components)), 0.0

    def cumulants(self, pattern: tuple[int, ...], later_only: bool = False) -> PathArray:
        assert later_only == (pattern == (0, 1))  # what order 1/n needs
        return PathArray(self.found[pattern], 0.0)


@cache
def setting(alpha: float) -> tuple[LayeredNetwork, RandomPaths, LayeredExpansion]:
    net = LayeredNetwork.single("tanh", c_w=0.8, c_b=0.1, alpha=alpha, dt=0.3, depth=5, kernel=np.eye(2))
    paths = RandomPaths(6, 6, 3)
    return net, paths, expand(net, 1, paths=paths)


def closed_form(net: LayeredNetwork, paths: RandomPaths) -> dict[str, np.ndarray]:
    """Section 4 of the theory: free fluctuations M of all components, propagated layer by layer."""
    layers, components, pairs = paths.shape
    jacobian, second, free, later = (paths.found[key] for key in ((1,), (2,), (0, 0), (0, 1)))
    drive = net.dt * net.branches[0].c_w
    covariance = free.reshape(layers * components, -1)
    unit = np.eye(layers * components).reshape(layers, components, -1)
    x, fluctuation = [np.zeros((pairs, layers * components))], []
    for t in range(layers):
        fluctuation.append(unit[t] + jacobian[t] @ x[t])
        x.append(net.alpha**2 * x[t] + drive * fluctuation[t][:pairs])
    both = np.concatenate(fluctuation) @ covariance @ np.concatenate(fluctuation).T
    own = np.zeros((layers, components))
    for top in range(layers):
        # c(h_k, dh_T/dK_T) for all free fluctuations before T
        slope = later[:, :, top].reshape(layers * components, components, pairs)
        for k in range(top):
            a, source = net.alpha ** (2 * (top - 1 - k)), fluctuation[k][:pairs]
            until = np.arange(layers * components) < (k + 1) * components
            own[top] += drive * a * np.einsum("em,mce->c", source * until, slope)
            own[top] += drive * a**2 * net.alpha**2 * np.einsum("cef,ef->c", second[top], source @ covariance @ x[k].T)
            own[top] += drive**2 / 2 * a**2 * np.einsum("cef,ef->c", second[top], source @ covariance @ source.T)
    shift, mean = np.zeros(pairs), np.zeros((layers, components))
    for t in range(layers):
        mean[t] = own[t] + jacobian[t] @ shift
        shift = net.alpha**2 * shift + drive * mean[t, :pairs]
    return {"cumulant_1_1": mean, "cumulant_2_0": both.reshape(layers, components, layers, components)}


@pytest.mark.parametrize("alpha", [1.0, 0.7, 0.0])
def test_diagrams_are_the_closed_form(alpha: float) -> None:
    net, paths, found = setting(alpha)
    for name, value in closed_form(net, paths).items():
        np.testing.assert_allclose(found.values[name], value, rtol=1e-11, atol=1e-11 * np.max(np.abs(value)))


def test_spoiling_an_array_or_dropping_a_diagram_is_seen() -> None:
    net, paths, found = setting(0.7)
    exact = closed_form(net, paths)["cumulant_1_1"]
    program = found.program
    arrays, lines, _ = arrays_of(net, paths, program.arrays, program.later_only)
    for name in {*program.arrays} - {"C_CC"}:
        moved = evaluate(program, {**arrays, **lines, name: 1.01 * {**arrays, **lines}[name]})
        assert np.max(np.abs(moved["cumulant_1_1"] / np.where(exact == 0, 1, exact) - 1)[1:]) > 1e-4, name
    for place in range(2):
        left_out = cumulant_terms(1, 1)[place].diagram
        total = cumulant_terms(1, 1).where(lambda term, d=left_out: term.diagram != d)
        part = evaluate(Program.of([Output("part", total)], 1, program.plan.sizes), {**arrays, **lines})["part"]
        assert np.max(np.abs(part - exact)) > 0.01 * np.max(np.abs(exact))


def test_results_have_the_axes_of_the_inputs() -> None:
    _, paths, found = setting(0.7)
    value = found.covariance("G", "S", times="all")
    assert value.shape == (6, 6, 2, 2, 2, 2)
    np.testing.assert_array_equal(value[2, 4, 1, 0], value[2, 4, 0, 1])
    np.testing.assert_allclose(value[2, 4], found.covariance("S", "G", times="all")[4, 2].transpose(2, 3, 0, 1), rtol=1e-12)
    np.testing.assert_array_equal(found.covariance("G", "S")[3], value[3, 3])
    deficit = found.mean("S")[..., 1, 0] - np.einsum("te,te->t", paths.found[1,][:, 1], found.mean("G")[:, [0, 0, 1], [0, 1, 1]])
    np.testing.assert_allclose(found.non_gaussian_mean("S")[..., 1, 0], deficit, rtol=1e-12)


# -- two branches, alpha neither 0 nor 1: the linear noise expansion of power sums ---------------------------------------


class PowerSums:
    """K_1 and V of (mean phi^2, mean phi^4) for branches x and x^2: expand the conditional means and covariances of a layer."""

    def __init__(self, net: LayeredNetwork, bias: Any) -> None:
        sums = sp.symbols("p1:5")
        phi, z, root = sp.symbols("phi z root")
        variance = sp.Symbol("v")
        step = sp.sympify(net.alpha) * phi + root * z

        def conditional(power: int) -> Any:
            """The mean over neurons of phi'^power given the layer before."""
            poly = sp.Poly(sp.expand(step**power), phi, root, z)
            gauss = {k: sp.factorial2(k - 1) for k in range(0, power + 1, 2)}
            terms = (
                c * (sums[i // 2 - 1] if i else 1) * variance ** (j // 2) * gauss[k] for (i, j, k), c in poly.terms() if k % 2 == 0
            )
            return sum(terms, sp.S.Zero)

        def product(first: int, second: int) -> Any:
            """The mean over neurons of E[phi'^first] E[phi'^second]."""
            poly = sp.Poly(sp.expand(_of_one(first) * _of_one(second)), phi)
            return sum((c * (sums[i // 2 - 1] if i else 1) for (i,), c in poly.terms()), sp.S.Zero)

        def _of_one(power: int) -> Any:
            return conditional(power).subs(dict(zip(sums, (phi**2, phi**4, phi**6, phi**8))), simultaneous=True)

        drive = net.dt * (bias(sums[0], sums[1]) + net.branches[0].c_w * sums[0] + net.branches[1].c_w * sums[1])
        mean = sp.Matrix([conditional(2), conditional(4)]).subs(variance, drive)
        noise = sp.Matrix(2, 2, lambda i, j: conditional(2 * (i + j) + 4) - product(2 * i + 2, 2 * j + 2)).subs(variance, drive)
        state = sums[:2]
        jacobian = mean.jacobian(state)
        hessian = [sp.hessian(entry, state) for entry in mean]
        self.step = sp.lambdify([sums], [mean, noise, jacobian, *hessian])

    def run(self, kernel: float, layers: int) -> tuple[np.ndarray, np.ndarray]:
        """(K_1, V), one row a layer."""
        double = np.array([1.0, 3, 15, 105])
        shift = np.zeros(2)
        cov = np.array([[2.0, 12], [12, 96]]) * np.outer([kernel, kernel**2], [kernel, kernel**2])
        rows = [(shift, cov)]
        for _ in range(layers):
            mean, noise, jacobian, *hessian = (np.array(each, float) for each in self.step(double * kernel ** np.arange(1, 5)))
            shift = jacobian @ shift + np.array([np.sum(h * cov) / 2 for h in hessian])
            cov = jacobian @ cov @ jacobian.T + noise
            rows.append((shift, cov))
            kernel = float(mean[0, 0])
        return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


def test_two_branches_and_a_nonlinear_bias_variance_at_order_one() -> None:
    branches = [Branch("identity", 0.6), Branch("x**2", 0.2)]
    net = LayeredNetwork(branches, alpha=0.8, dt=0.25, depth=4, kernel=0.9, bias="0.1 + 0.3*S1^2/(1 + S2)")
    found = expand(net, 1, {"G": "identity", "Q": "x**2"})
    shift, cov = PowerSums(net, lambda s1, s2: 0.1 + 0.3 * s1**2 / (1 + s2)).run(0.9, 4)
    for place, name in enumerate("GQ"):
        np.testing.assert_allclose(found.mean(name).ravel(), shift[:, place], rtol=1e-7, atol=1e-8)
        for other, second in enumerate("GQ"):
            np.testing.assert_allclose(found.covariance(name, second).ravel(), cov[:, place, other], rtol=1e-7)
    # without the second derivative of the drive, K_1 is far off
    linear = LayeredNetwork(branches, alpha=0.8, dt=0.25, depth=4, kernel=0.9, bias="0.1")
    assert abs(expand(linear, 1).mean("G")[-1, 0, 0] / shift[-1, 0] - 1) > 0.1
