"""Shared by the simulator tests: order n^0 theory from a plain trapezoid, independent of the library's quadrature."""

from __future__ import annotations

import numpy as np
import pytest

from symtensor.activation import activation
from symtensor.numerics.simulation import Ensemble, LeadingOrder

NODES = np.linspace(-10.0, 10.0, 201)
WEIGHTS = np.exp(-(NODES**2) / 2) * (NODES[1] - NODES[0]) / np.sqrt(2 * np.pi)
DERIVATIVES = {
    "tanh": (np.tanh, lambda x: np.cosh(x) ** -2.0, lambda x: -2 * np.tanh(x) * np.cosh(x) ** -2.0),
    "identity": (lambda x: x, np.ones_like, np.zeros_like),
    "sin": (np.sin, np.cos, lambda x: -np.sin(x)),
}


def moments(name: str, kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`E[sigma sigma]` and its response J to the covariance, derivatives inside the expectation."""
    f, f1, f2 = DERIVATIVES[name]
    size = len(kernel)
    mean, response = np.zeros((size,) * 2), np.zeros((size,) * 4)
    for a in range(size):
        for b in range(size):
            root = np.sqrt(kernel[a, a])
            slope = kernel[a, b] / root if root > 0 else 0.0
            x, y = root * NODES, slope * NODES + np.sqrt(max(kernel[b, b] - slope**2, 0.0)) * NODES[:, None]
            mean[a, b] = WEIGHTS @ (f(y) * f(x)) @ WEIGHTS
            response[a, b, a, a] += 0.5 * (WEIGHTS @ (f(y) * f2(x)) @ WEIGHTS)
            response[a, b, b, b] += 0.5 * (WEIGHTS @ (f2(y) * f(x)) @ WEIGHTS)
            mixed = WEIGHTS @ (f1(y) * f1(x)) @ WEIGHTS
            response[a, b, a, b] += 0.5 * mixed
            response[a, b, b, a] += 0.5 * mixed
    return mean, response


def make_case(name: str, kernel: object, *, c_w=1.0, c_b=0.0, alpha=1.0, dt=0.25, depth=4, width=32):
    """An ensemble and its order n^0 theory."""
    ensemble = Ensemble(activation(name), c_w, c_b, alpha, dt, depth, width)
    kernels, means, responses = [np.atleast_2d(np.asarray(kernel, dtype=float))], [], []
    for layer in range(depth + 1):
        mean, response = moments(name, kernels[-1])
        means.append(mean)
        responses.append(response)
        if layer < depth:
            kernels.append(alpha**2 * kernels[-1] + dt * (c_b + c_w * mean))
    return ensemble, LeadingOrder(np.array(kernels), np.array(means), np.array(responses))


@pytest.fixture(scope="session")
def simulation_case():
    return make_case
