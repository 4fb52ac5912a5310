"""What is simulated, and the checks made before any work: parameters, leading-order arrays, memory."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symtensor.numerics._blocks import GROUPS, Plan
from symtensor.numerics._packing import Layout

if TYPE_CHECKING:
    from symtensor.activation import Activation

Array = NDArray[np.float64]


class MemoryCapError(ValueError):
    """The simulation does not fit under the stated memory cap."""


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Random networks `phi' = alpha phi + sqrt(dt) eta`, `eta_i | phi ~ N(0, c_b + c_w S)` iid over `width` neurons.

    Raises
    ------
    ValueError
        If a parameter is out of range; it is named.
    """

    activation: Activation
    c_w: float
    c_b: float
    alpha: float
    dt: float
    depth: int
    width: int

    def __post_init__(self) -> None:
        for name in ("width", "depth"):
            require_integer(name, getattr(self, name), 1)
        for name in ("c_w", "c_b", "alpha", "dt"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name} = {getattr(self, name)} is not finite")
        if not self.dt > 0:
            raise ValueError(f"dt = {self.dt} must be positive")
        for name in ("c_w", "c_b"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} = {getattr(self, name)} is a variance and must not be negative")


@dataclass(frozen=True, slots=True)
class LeadingOrder:
    """The order n^0 theory at depths 0..L, which fixes the free network; `K[0]` is the input kernel.

    Attributes
    ----------
    K : (L+1, P, P), infinite-width kernel, `K' = alpha^2 K + dt (c_b + c_w ES)`.
    ES : (L+1, P, P), `E_{N(0, K)}[sigma sigma]`, converged: an error e in it shifts the controlled means by up to n e.
    J : (L+1, P, P, P, P), `dES_ab = sum_cd J_abcd dK_cd`. It defines U1; in K, K1, S1, V4 an error in it
        costs variance, never bias.
    """

    K: Array
    ES: Array
    J: Array

    def __post_init__(self) -> None:
        for name in ("K", "ES", "J"):
            object.__setattr__(self, name, np.asarray(getattr(self, name)))


def require_integer(name: str, value: Any, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} = {value!r} must be an integer") from None
    if isinstance(value, bool) or number < least:
        raise ValueError(f"{name} = {value!r} must be an integer of at least {least}")
    return number


def validate_leading(ensemble: Ensemble, leading: LeadingOrder) -> Layout:
    """Shapes, finiteness, symmetry, a semidefinite input kernel, and the recursion that ties K to ES."""
    inputs = np.shape(leading.K)[-1] if np.ndim(leading.K) == 3 else 0
    steps = ensemble.depth + 1
    for name, valence in (("K", 2), ("ES", 2), ("J", 4)):
        array, shape = getattr(leading, name), (steps,) + (inputs,) * valence
        if inputs < 1 or array.shape != shape:
            wanted = f"({steps}" + ", P" * valence + ")"
            raise ValueError(f"leading.{name} has shape {array.shape}, required {wanted} for depth {ensemble.depth}")
        if not np.issubdtype(array.dtype, np.floating) or not np.isfinite(array).all():
            raise ValueError(f"leading.{name} must be real and finite")
        if valence == 2 and not np.allclose(array, np.swapaxes(array, 1, 2), rtol=1e-6, atol=1e-9):
            raise ValueError(f"leading.{name} is not symmetric in its two input indices")
    eigenvalues = np.linalg.eigvalsh(leading.K[0])
    if eigenvalues[0] < -1e-12 * max(eigenvalues[-1], np.finfo(np.float64).tiny):
        raise ValueError(f"the input kernel leading.K[0] is not positive semidefinite: eigenvalue {eigenvalues[0]:.6g}")
    following = ensemble.alpha**2 * leading.K + ensemble.dt * (ensemble.c_b + ensemble.c_w * leading.ES)
    scale = np.sqrt(np.einsum("laa,lbb->lab", np.abs(leading.K), np.abs(leading.K)))[1:] + np.finfo(np.float64).tiny
    wrong = (np.abs(following[:-1] - leading.K[1:]) > 1e-7 * scale).any(axis=(1, 2))
    if wrong.any():
        depth = int(np.argmax(wrong)) + 1
        raise ValueError(f"leading.K[{depth}] is not alpha^2 K + dt (c_b + c_w ES) of the depth before")
    return Layout(inputs)


def require_memory(plan: Plan, devices: int, memory_mb: float) -> None:
    """Count what is allocated: blocks in flight, group sums, and the dense results."""
    steps, inputs = plan.depth + 1, plan.layout.inputs
    sums = 8 * GROUPS * steps * plan.layout.rows
    results = 8 * steps * (6 * inputs**4 + 24 * inputs**2) + 8 * (GROUPS + 1) * 8 * plan.layout.rows
    need = (devices * plan.working_bytes() + sums + results) / 2**20
    if not need <= memory_mb:
        raise MemoryCapError(
            f"the simulation needs {need:.0f} MB with {plan.layout.inputs} inputs, width {plan.width}, depth "
            f"{plan.depth} on {devices} device(s), the cap is {memory_mb} MB; raise memory_mb, or lower the number "
            "of inputs, the depth or the width (the number of samples does not matter)"
        )
