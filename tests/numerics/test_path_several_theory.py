"""The two-time formulas of order 1/n evaluated directly on the arrays of a path: the reference values of the theory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from symtensor.activation import activation
from symtensor.numerics.path.law import PathLaw
from symtensor.numerics.path.leading import leading_order
from symtensor.numerics.path.several_inputs import several_input_cumulants

C_W, DT, START = 2.0, 0.0025, 2.0


@dataclass
class Arrays:
    """Derivatives of the mean and two-time covariances of h = f f and phi phi, one input, at every layer."""

    J: np.ndarray
    B: np.ndarray
    hh: np.ndarray
    hg: np.ndarray
    gg: np.ndarray
    slope: np.ndarray


def arrays(name: str, layers: int, tol: float, modes=None) -> Arrays:
    functions = [activation(name), activation("identity")]
    leading = leading_order(functions, 1, lambda s: C_W * s.reshape(1, 1), 1.0, DT, layers, np.array([[START]]))
    law = PathLaw(leading.kernels, 1.0)

    def cumulants(pattern, **options):
        return several_input_cumulants(law, functions, pattern, tol=tol, **options).values

    c = cumulants((0, 0), modes=modes)
    slope = cumulants((0, 1), modes=modes, later_only=True)[:, 0, :, 0, 0]
    gg = np.diagonal(c[:, 1, :, 1])
    return Arrays(cumulants((1,))[:, 0, 0], cumulants((2,))[:, 0, 0, 0], c[:, 0, :, 0], c[:, 0, :, 1], gg, slope)


def first_order(found: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """V_4 and K_1 at every layer: free fluctuations, and what the drive makes of those before."""
    count = len(found.J)
    gain = np.zeros((count, count))
    for t in range(count - 1):
        gain[t + 1] = (1 + DT * C_W * found.J[t]) * gain[t]
        gain[t + 1, t] = DT * C_W
    XX = np.einsum("tk,kl,tl->t", gain, found.hh, gain)
    XM = np.einsum("tk,kt->t", gain, found.hh)
    V4 = found.gg + 2 * np.einsum("tk,kt->t", gain, found.hg) + XX
    SX, SS = XM + found.J * XX, np.diagonal(found.hh) + 2 * found.J * XM + found.J**2 * XX
    K1 = np.zeros(count)
    for T in range(count - 1):
        k = slice(0, T)
        # c(h_k, h_T'') = 2 dc/dK_T, and E[h_T''''] = 4 B_T
        with_second = 2 * (found.slope[:, T] + found.J * (gain @ found.slope[:, T]))[k]
        U = (DT * C_W / 2 * with_second + DT * C_W * found.B[T] * SX[k] + (DT * C_W) ** 2 / 2 * found.B[T] * SS[k]).sum()
        K1[T + 1] = K1[T] + DT * C_W * (found.J[T] * K1[T] + U)
    return V4, K1


@pytest.fixture(scope="module")
def tanh_arrays():
    return arrays("tanh", 400, 1e-8)


def test_tanh_has_the_reference_values(tanh_arrays):
    V4, K1 = first_order(tanh_arrays)
    assert V4[[200, 400]] == pytest.approx([14.6593, 23.5625], abs=5e-5)
    assert K1[[200, 400]] == pytest.approx([-0.04674, -0.15455], abs=5e-6)


def test_a_wrong_sign_or_a_missing_covariance_is_seen(tanh_arrays):
    """The comparison with the reference rejects an array that is wrong in one part."""
    V4, K1 = first_order(tanh_arrays)
    for name in ("hh", "hg", "slope", "J", "B"):
        wrong = Arrays(**{part: getattr(tanh_arrays, part) for part in Arrays.__dataclass_fields__})
        setattr(wrong, name, 0.99 * getattr(wrong, name))
        moved = first_order(wrong)
        assert abs(moved[0][400] - V4[400]) > 5e-4 or abs(moved[1][400] - K1[400]) > 2e-5, name


def test_mode_two_alone_is_the_one_mode_theory():
    """V' = A^2 V + dt N + dt^2 2 Q^2 with A = 1 + dt chi, N = 4 K Q, from the arrays of mode 2."""
    found = arrays("tanh", 400, 1e-10, modes=[2])
    V4, _ = first_order(found)
    leading = leading_order([activation("tanh")], 1, lambda s: C_W * s.reshape(1, 1), 1.0, DT, 400, np.array([[START]]))
    K, Q = leading.kernels[:, 0, 0], C_W * leading.means[:, 0]
    V = 2 * START**2
    for t in range(400):
        V = (1 + DT * C_W * found.J[t]) ** 2 * V + DT * 4 * K[t] * Q[t] + 2 * DT**2 * Q[t] ** 2
    assert V4[400] == pytest.approx(23.3739, abs=5e-5)
    assert pytest.approx(V4[400], rel=1e-9) == V


@pytest.mark.slow
def test_tanh_and_relu_have_the_reference_values_at_full_depth():
    V4, K1 = first_order(arrays("tanh", 800, 1e-8))
    assert (V4[800], K1[800]) == (pytest.approx(48.4710, abs=5e-5), pytest.approx(-0.45296, abs=5e-6))
    V4, K1 = first_order(arrays("relu", 400, 1e-6))
    assert (V4[400], K1[400]) == (pytest.approx(248.538, abs=5e-4), pytest.approx(2.48803, abs=5e-6))
    one = first_order(arrays("tanh", 800, 1e-8, modes=[2]))[0]
    assert one[[200, 400, 800]] == pytest.approx([14.6082, 23.3739, 47.8081], abs=5e-5)
