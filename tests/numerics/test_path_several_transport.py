"""The banded transport of coefficients from layer to layer, and degenerate two-layer cases."""

from __future__ import annotations

import numpy as np
import pytest

from symtensor.activation import activation
from symtensor.numerics.path import PathLaw, leading_order, path_cumulants
from symtensor.numerics.path.hermite_kernels import carried_back, symmetric_powers, triangular_powers

STEPS = [[[0.99, 0.01], [0, 0.97]], [[0.6, 0.5], [0, 0.3]], [[0.9, 0], [0, 0.5]], [[0, 0.4], [0, 0]]]


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_diagonals_of_a_symmetric_power_are_the_whole_power(step: list) -> None:
    degree, rng = 40, np.random.default_rng(0)
    present = np.ones(degree + 1, bool)
    present[[0, 7]] = False
    sizes = np.where(present, (np.arange(degree + 1) + 1) ** 2, 0)
    starts = np.cumsum(sizes) - sizes
    dense, banded, widths = np.empty(sizes.sum()), np.empty(sizes.sum()), np.zeros(degree + 1, int)
    symmetric_powers(np.array(step, float), degree, present, dense)
    triangular_powers(np.array(step, float), degree, present, 1e-18, banded, starts, widths)
    for n in np.flatnonzero(present):
        here = slice(starts[n], starts[n] + (n + 1) ** 2)
        block = rng.normal(size=(3, n + 1))
        wanted = block @ dense[here].reshape(n + 1, n + 1).T
        carried_back(block, banded[here].reshape(n + 1, n + 1), n, widths)
        np.testing.assert_allclose(block, wanted, atol=1e-13)


def test_one_layer_with_a_zero_input() -> None:
    """The pair of the zero input is nothing at layer 0 and something at layer 1."""
    kernel = np.array([[1.0, 0.0], [0.0, 0.0]])

    def drive(means: np.ndarray) -> np.ndarray:
        return 0.1 + np.array([[means[0], means[1]], [means[1], means[2]]])

    functions = [activation("tanh"), activation("identity")]
    law = PathLaw(leading_order(functions, 1, drive, 1.0, 0.1, 1, kernel, 1e-12).kernels, 1.0)
    found = path_cumulants(law, functions, (0, 1), tol=1e-9)
    # cov(phi_a^2 at 0, tanh(phi_b)^2 at 1) does not see the input that is zero at layer 0
    assert np.isfinite(found.values).all() and found.error < 1e-8
    single = path_cumulants(PathLaw(law.kernels[:, :1, :1], 1.0), functions, (0, 1), tol=1e-9)
    np.testing.assert_allclose(found.values[0, 0, 1, 0, 0], single.values[0, 0, 1, 0, 0], rtol=1e-8)
    np.testing.assert_allclose(found.values[0, 3, 1, 0, 0], single.values[0, 1, 1, 0, 0], rtol=1e-8)


def test_derivative_at_the_earlier_leg_on_the_diagonal() -> None:
    """By Wick: cov(aa, bb) = 2 K_ab^2, cov(aa, aa) = 2 K_aa^2, cov(ab, ab) = K_aa K_bb + K_ab^2 at one layer."""
    root = np.random.default_rng(1).normal(size=(2, 5))
    kernel = root @ root.T / 5
    law = PathLaw(np.array([kernel, kernel + 0.1 * np.eye(2)]), 1.0)
    values = path_cumulants(law, [activation("identity")], (1, 0)).values[0, :, 0]
    np.testing.assert_allclose(values[0, 0, 0], 4 * kernel[0, 0], rtol=1e-10)
    np.testing.assert_allclose(values[0, 2, 1], 4 * kernel[0, 1], rtol=1e-9)
    np.testing.assert_allclose(values[1, 1, 0], kernel[1, 1], rtol=1e-9)
    np.testing.assert_allclose(values[1, 1, 1], 2 * kernel[0, 1], rtol=1e-9)
