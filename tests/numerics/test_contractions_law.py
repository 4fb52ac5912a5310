"""One hidden tanh layer: the measured sizes of contractions against closed forms in Gaussian moments, at width 4096.

f = n^(-1/2) sum_i a_i tanh(w_i.x), |x|^2 = n_0, eta = 1; Q_kd = D! d! C_{D,d}, k = D + d.
"""

from __future__ import annotations

import numpy as np
import pytest

from symtensor.numerics.contractions import derivative_contractions
from symtensor.numerics.neural_networks import fully_connected

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(120)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
P = np.tanh(NODES)
P1, P2 = 1 - P**2, -2 * P * (1 - P**2)
P3 = -2 * P1 * (1 - 3 * P**2)


def E(values):
    return float(WEIGHTS @ values)


THETA = E(P**2) + E(P1**2)
FORMULAS = {
    "E Theta": THETA,
    "sqrt(n) sd Theta": np.sqrt(E(P**4) + 2 * E(P**2 * P1**2) + 3 * E(P1**4) - THETA**2),
    "sqrt(n) |Q21|": np.sqrt(E(P1**4) + E(P**2 * P1**2) + 2 * E(P * P1**2 * P2) + 3 * E(P2**2 * P1**2)),
    "n sd Q22": np.sqrt(4 * E(P**2 * P1**4) + 12 * E(P * P2 * P1**4) + 15 * E(P2**2 * P1**4)),
    "n |Q32|": np.sqrt(3 * E(P2**2 * P1**4) + 4 * E(P**2 * P2**2 * P1**2) + 12 * E(P * P2 * P3 * P1**3) + 15 * E(P3**2 * P1**4)),
    "n E Q33": 3 * E(P * P1**2 * P2) + 3 * E(P3 * P1**3),
}


def measured(n, seeds):
    net = fully_connected((6, n), "tanh")
    x = np.array([[1.0, -1.0, 2.0, 0.5, 0.3, -0.7]])
    x *= np.sqrt(6 / (x**2).sum())
    result = derivative_contractions(net.apply, net.init, x, seeds=seeds, orders={0: 3, 1: 2})
    q11, q22, q33 = (factorial * result[0, d].values[:, 0] for d, factorial in ((1, 1), (2, 2), (3, 6)))
    q21, q32 = result[1, 1].values[:, 0], 2 * result[1, 2].values[:, 0]
    return {
        "E Theta": q11,
        "sqrt(n) |Q21|": np.sqrt(n) * q21,
        "n |Q32|": n * q32,
        "n E Q33": n * q33,
        "squares": {"sqrt(n) sd Theta": n * (q11 - THETA) ** 2, "n sd Q22": (n * q22) ** 2},
    }


def check(n, seeds, finite_width):
    """z-scores of means and of mean squares, with the correction of relative order 1/n allowed for."""
    found = measured(n, seeds)
    scores = {}
    for name, values in {**found.pop("squares"), **found}.items():
        target = FORMULAS[name] ** 2 if " sd " in name else FORMULAS[name]
        error = values.std(ddof=1) / np.sqrt(seeds)
        scores[name] = max(abs(values.mean() - target) - finite_width * abs(target) / n, 0.0) / error
        assert error < 0.25 * abs(target)
    return scores


def test_the_formulas_have_the_numbers_of_the_specification():
    printed = {"E Theta": 0.85870, "sqrt(n) sd Theta": 0.8308, "sqrt(n) |Q21|": 0.7941, "n sd Q22": 0.8529, "n |Q32|": 3.5427}
    for name, value in {**printed, "n E Q33": -1.7280}.items():
        assert abs(FORMULAS[name] - value) < 6e-5 * max(1, abs(value))


def test_sizes_at_moderate_width():
    assert max(check(256, 100, finite_width=30).values()) < 4


@pytest.mark.slow
def test_sizes_at_width_4096_within_a_percent():
    scores = check(4096, 400, finite_width=30)
    assert max(scores.values()) < 4
    found = measured(4096, 400)
    for name in ("E Theta", "sqrt(n) |Q21|", "n |Q32|", "n E Q33"):
        assert abs(found[name].mean() / FORMULAS[name] - 1) < 0.01


def test_the_wrong_normalisation_is_rejected():
    """Without the factorial 1/d! the moments miss their targets by many standard errors."""
    found = measured(256, 100)["n E Q33"] / 6
    assert abs(found.mean() - FORMULAS["n E Q33"]) > 20 * found.std() / 10
