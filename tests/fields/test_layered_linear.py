"""The linear network, where the moments of G close: every order of the diagrams against an exact recursion."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from math import comb, factorial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symtensor.fields.layered import LayeredNetwork, LayeredTerm, cumulant_terms, expand
from symtensor.fields.layered.expansion import arrays_of, evaluate
from symtensor.fields.layered.lines import block_array
from symtensor.fields.layered.program import Output, Program

_spec = importlib.util.spec_from_file_location("layered_wick", Path(__file__).with_name("layered_wick.py"))
assert _spec is not None and _spec.loader is not None
_wick = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_wick)
WickPaths = _wick.WickPaths

ORDERS = 3  # powers of 1/n that are kept: 0, 1, 2
OBSERVABLES = {"G": "identity", "Q": "x**2"}


class Recursion:
    """E[delta^j] for G = K + delta, layer by layer, as series in 1/n, for Sigma = sum_k drive_k G^k.

    Given G, the cumulants of G' are k! (2 v/n)^{k-1} (alpha^2 G + v/k), v = dt Sigma(G): the sum of n squares of Gaussians.
    """

    def __init__(self, alpha: float, dt: float, drive: list[float], kernel: float, layers: int) -> None:
        self.alpha, self.dt, self.drive = alpha, dt, np.array(drive, float)
        self.kernel = kernel
        highest = 2 * (ORDERS - 1)
        start = [[0.0] * (k - 1) + [2.0 ** (k - 1) * factorial(k - 1) * kernel**k] for k in range(1, highest + 1)]
        start[0] = [0.0]
        self.moments = self._centred([np.array([[c] for c in row]) for row in start], np.eye(1))
        self.fourth = np.array([3 * kernel**2, 0.0, 0.0])
        self.rows: list[dict[str, Any]] = [self._row()]
        for _ in range(layers):
            self._step()
            self.rows.append(self._row())

    def _shifted(self, coefficients: np.ndarray) -> np.ndarray:
        """A polynomial in G as one in delta."""
        size = range(len(coefficients))
        powers = [[comb(k, j) * self.kernel ** (k - j) if j <= k else 0.0 for k in size] for j in size]
        return np.array(powers) @ coefficients

    @staticmethod
    def _times(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The product of polynomials [power of 1/n, power of delta], truncated in 1/n."""
        rows = min(len(one) + len(other) - 1, ORDERS)
        total = np.zeros((rows, one.shape[1] + other.shape[1] - 1))
        for i in range(len(one)):
            for j in range(min(len(other), rows - i)):
                total[i + j] += np.convolve(one[i], other[j])
        return total

    def _centred(self, cumulants: list[np.ndarray], before: np.ndarray) -> np.ndarray:
        """Moments of delta' from its conditional cumulants, averaged with the moments of delta before; [j, power of 1/n]."""
        found = [np.ones((1, 1))]
        for j in range(1, len(cumulants) + 1):
            total = np.zeros((ORDERS, 1))
            for k in range(1, j + 1):
                term = comb(j - 1, k - 1) * self._times(cumulants[k - 1][:ORDERS], found[j - k])
                width = max(total.shape[1], term.shape[1])
                padded = np.zeros((ORDERS, width))
                padded[:, : total.shape[1]] += total
                padded[: len(term), : term.shape[1]] += term
                total = padded
            found.append(total)
        return np.array([self._average(each, before) for each in found])

    @staticmethod
    def _average(polynomial: np.ndarray, moments: np.ndarray) -> np.ndarray:
        total = np.zeros(ORDERS)
        for power, row in enumerate(polynomial):
            for degree, coefficient in enumerate(row):
                if coefficient and degree < len(moments):  # moments beyond the last one are of higher order in 1/n
                    mean = np.zeros(ORDERS)
                    mean[: len(moments[degree])] = moments[degree][:ORDERS]
                    total[power:] += coefficient * mean[: ORDERS - power]
        return total

    def _step(self) -> None:
        g, v = np.array([[self.kernel, 1.0]]), self.dt * self._shifted(self.drive)[None]
        average = [self._average(p, self.moments) for p in (self._times(g, v), self._times(v, v))]
        self.fourth = self.alpha**4 * self.fourth + 6 * self.alpha**2 * average[0] + 3 * average[1]
        after = self.alpha**2 * self.kernel + v[0, 0]
        cumulants = []
        power = np.ones((1, 1))
        for k in range(1, 2 * ORDERS - 1):
            mean = np.zeros((1, max(2, v.shape[1])))
            mean[:, :2] += self.alpha**2 * g
            mean[:, : v.shape[1]] += v / k
            value = factorial(k) * 2.0 ** (k - 1) * self._times(power, mean)
            value = np.vstack([np.zeros((k - 1, value.shape[1])), value])
            value[0, 0] -= after if k == 1 else 0.0
            cumulants.append(value)
            power = self._times(power, v)
        self.moments = self._centred(cumulants, self.moments)
        self.kernel = after

    def _row(self) -> dict[str, Any]:
        m = self.moments
        mean, second, third = m[1], m[2], m[3]
        square = np.convolve(mean, mean)[:ORDERS]
        return {
            "K": mean,
            "V": (second - square)[1:],
            "kappa3": third[2] - 3 * np.convolve(mean, second)[2] + 2 * np.convolve(mean, square)[2],
            "Q": self.fourth,
        }


CASES = {
    "resnet": {"alpha": 1.0, "dt": 0.125, "c_w": 1.0, "c_b": 0.2, "kernel": 1.0, "depth": 8},
    "mlp": {"alpha": 0.0, "dt": 1.0, "c_w": 0.9, "c_b": 0.1, "kernel": 1.0, "depth": 6},
    "leaky": {"alpha": 0.8, "dt": 0.3, "c_w": 1.3, "c_b": 0.4, "kernel": 0.7, "depth": 8},
}


def network(case: str) -> LayeredNetwork:
    p: dict[str, Any] = CASES[case]
    return LayeredNetwork.single("identity", **p)


def recursion(case: str) -> Recursion:
    p = CASES[case]
    return Recursion(p["alpha"], p["dt"], [p["c_b"], p["c_w"]], p["kernel"], int(p["depth"]))


@pytest.fixture(scope="module")
def resnet() -> tuple[LayeredNetwork, Any]:
    net = network("resnet")
    return net, WickPaths(net, (1, 2))


def check(found: Any, rows: list[dict[str, Any]], tolerance: float = 1e-8) -> None:
    def same(value: np.ndarray, key: Callable[[dict[str, Any]], float]) -> None:
        exact = np.array([key(row) for row in rows])
        np.testing.assert_allclose(value.reshape(-1), exact, rtol=tolerance, atol=tolerance * np.max(np.abs(exact)) + 1e-11)

    same(found.covariance("G", "G"), lambda row: row["V"][0])
    same(found.covariance("G", "G", 1), lambda row: row["V"][1])
    same(found.third_cumulant("G"), lambda row: row["kappa3"])
    for order in (1, 2):
        same(found.mean("Q", order), lambda row, k=order: row["Q"][k])
        same(found.mean("G", order), lambda row, k=order: row["K"][k])


@pytest.mark.parametrize("case", ["resnet", pytest.param("mlp", marks=pytest.mark.slow), "leaky"])
def test_all_orders_agree_with_the_exact_recursion(case: str) -> None:
    net = network(case)
    check(expand(net, 2, OBSERVABLES, paths=WickPaths(net, (1, 2))), recursion(case).rows)


def test_recursion_gives_the_published_numbers() -> None:
    resnet, mlp = recursion("resnet").rows[-1], recursion("mlp").rows[-1]
    np.testing.assert_allclose([*resnet["V"], resnet["kappa3"]], [41.5719349255, 85.0681411626, 1686.22776554], rtol=1e-11)
    np.testing.assert_allclose([*mlp["V"], mlp["kappa3"]], [8.11823237316, 35.5054450375, 211.771668833], rtol=1e-11)


@pytest.mark.slow
def test_numerical_paths_agree_with_wick(resnet: tuple[LayeredNetwork, Any]) -> None:
    small = LayeredNetwork.single("identity", c_w=1, c_b=0.2, alpha=0.9, dt=0.25, depth=3, kernel=1.0)
    rows = Recursion(0.9, 0.25, [0.2, 1.0], 1.0, 3).rows
    found = expand(small, 2, OBSERVABLES)
    check(found, rows)
    assert found.error < 1e-6


# -- wrong answers stay wrong ------------------------------------------------------------------------------------------


def next_covariance(net: LayeredNetwork, source: Any, keep: Callable[[LayeredTerm], bool], theta: float = 1.0) -> float:
    """V4_1 of G at the last layer from some of the diagrams, or with another value of the response at equal times."""
    total = cumulant_terms(2, 1).where(keep)
    program = Program.of([Output("value", total)], 1, {"T": net.depth + 1, "C": 2, "F": 1, "E": 1})
    arrays, lines, _ = arrays_of(net, source, program.arrays, program.later_only)
    if theta != 1:  # lines between vertices only: the external legs are observed in any case
        lines["R_EF"] = lines["R_EF"] - (1 - theta) * block_array(net, source.means[:, :1], 1)
    return float(evaluate(program, {**arrays, **lines})["value"][-1, 0, 0])


def test_response_cycles_and_equal_times_count(resnet: tuple[LayeredNetwork, Any]) -> None:
    assert next_covariance(*resnet, lambda term: True) == pytest.approx(85.0681411626, rel=1e-10)
    assert next_covariance(*resnet, lambda term: term.diagram.response_cycle is None) == pytest.approx(25.4, abs=0.05)
    assert next_covariance(*resnet, lambda term: True, theta=0.0) == pytest.approx(38.0, abs=0.05)
