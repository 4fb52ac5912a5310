"""Monte Carlo simulation of finite-width random networks by the exact one-block law, with control variates.

Given the layer before, the pre-activation increments of a layer are independent over neurons and exactly
`N(0, c_b + c_w S)` at any width, S the empirical sigma-kernel: a layer costs n P normals and a P x P factor, and the
n x n weights are never drawn. Beside each network runs a *free* network with the same normals and the deterministic
factors of the order n^0 theory; what it does is known exactly, and only the difference is left to be averaged.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from symtensor.numerics._blocks import GROUPS, Constants, Law, Plan, compile_block, plan_block
from symtensor.numerics._checkpoint import State, StateError, StateMismatch, load_state, prepare_folder
from symtensor.numerics._dispatch import Saver, SimulationOverflow, accumulate, block_results
from symtensor.numerics._draws import key_words
from symtensor.numerics._elementwise import jax_function, require_same_function
from symtensor.numerics._ensemble import (
    Ensemble,
    LeadingOrder,
    MemoryCapError,
    require_integer,
    require_memory,
    validate_leading,
)
from symtensor.numerics._factor import semidefinite_factor
from symtensor.numerics._packing import Layout
from symtensor.numerics._statistics import MEANS, QUANTITIES, Estimate, Reduced, reduce_sums

__all__ = [
    "Ensemble",
    "Estimate",
    "LeadingOrder",
    "MemoryCapError",
    "SimulationOverflow",
    "SimulationResult",
    "StateError",
    "StateMismatch",
    "simulate",
]

Array = NDArray[np.float64]
_LAW = 2  # version of the map from (parameters, seed, sample) to a network; part of a saved state's identity


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Estimates by depth, each with the standard error of a delete-one-group jackknife over sample index mod 64.

    `K` = mean of G, `V4` = n Cov(G), `K1` = n (E G - K_0), `S1` = n (E S - ES), `U1` = S1 - J K1; shapes (L+1, P, P),
    V4 (L+1, P, P, P, P). With 64 groups a standardised deviation follows Student's t with 63 degrees of freedom.

    Attributes
    ----------
    plain : the same quantities without control variates. At depth 0 the free network is the network, so that the
        controlled means would be exact by construction; K, K1, S1, U1 are the plain ones there.
    gain : variance of the plain estimator over variance of the controlled one, per component.
    control_z : (L+1,), largest |z| of the controls' sample means, whose exact value is 0: values above about 5 mean
        that the given leading order is not what the free networks do (an unconverged ES, most likely).
    groups : jackknife groups used; resumed : samples taken over from a saved state.
    """

    ensemble: Ensemble
    samples: int
    seed: int
    K: Estimate
    V4: Estimate
    K1: Estimate
    S1: Estimate
    U1: Estimate
    plain: Mapping[str, Estimate]
    gain: Mapping[str, Array]
    control_z: Array
    groups: int
    resumed: int


def simulate(
    ensemble: Ensemble,
    leading: LeadingOrder,
    *,
    samples: int,
    seed: int,
    sigma: Callable[[jax.Array], jax.Array] | None = None,
    state: Path | str | None = None,
    memory_mb: float = 2048,
    progress: Callable[[int, int], None] | None = None,
    devices: Sequence[Any] | None = None,
) -> SimulationResult:
    r"""Simulate `samples` independent networks and estimate their kernels' mean and covariance at every depth.

    Parameters
    ----------
    ensemble, leading : what is simulated, and its order n^0 theory.
    samples, seed : at least 2; at least 0. A covariance needs 3 samples for a finite standard error.
    sigma : the activation as an elementwise JAX function; by default made from `ensemble.activation`.
    state : folder that keeps the state of the run. An interrupted run continues there, more samples extend it. A kill
        loses the block in flight and what was done since the last write (half a second, or 20 times the time of a
        write if that is longer).
    memory_mb : cap on what the simulation allocates, checked before any work.
    progress : called as `progress(samples_done, samples)` after each block.
    devices : JAX devices to use; all local devices of the default backend by default.

    Returns
    -------
    SimulationResult
        On one machine bitwise the same for any number of devices and interruptions, and for a run extended to
        `samples` or made in one go.

    Raises
    ------
    ValueError, TypeError
        For bad input, by name; `MemoryCapError`, `StateError`, `StateMismatch`, `SimulationOverflow` are ValueErrors.

    Notes
    -----
    Free network: the same normals z and the factors of Q_0 = c_b + c_w ES. Its neurons are iid Gaussian paths of
    covariance K_0, so E G~ = K_0 and E S~ = ES at any width. Its linear response is the accumulated drive, X_0 = 0,

    .. math:: X_{l+1} = \alpha^2 X_l + dt\, c_w\, c_S, \quad c_G = \tilde G - K_0 + X, \quad c_S = \tilde S - ES + J X,

    and c_G, c_S have mean exactly zero while G - K_0 - c_G is O(1/n): subtracting them leaves the means unbiased and
    divides the variance by O(n). Moreover c_G is a mean over neurons of iid c_i, so that n E[c_G c_G] = E[c_i c_i],
    and with r = G - K_0 - c_G

    .. math:: n\,\mathrm{Cov}(G) = n\,(E[r c + c r] + \mathrm{Cov}(r)) + E[c_i c_i],

    each term with a variance of O(1/n) against O(1) for the plain estimator; no coefficient is fitted.
    """
    samples, seed = require_integer("samples", samples, 2), require_integer("seed", seed, 0)
    if samples >= 2**32 or seed >= 2**63:
        raise ValueError(f"samples = {samples} must be below 2^32 and seed = {seed} below 2^63")
    if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise ValueError('float64 is off in JAX; call jax.config.update("jax_enable_x64", True) first')
    layout = validate_leading(ensemble, leading)
    plan = plan_block(ensemble.width, layout.inputs, ensemble.depth)
    used = list(devices) if devices is not None else jax.local_devices()
    if not used:
        raise ValueError("devices is empty; give at least one JAX device, or None for all local ones")
    require_memory(plan, len(used), memory_mb)
    function = sigma if sigma is not None else jax_function(ensemble.activation)
    require_same_function(function, ensemble.activation)

    constants, packed = _constants(ensemble, leading, layout)
    fingerprint = _fingerprint(ensemble, leading, seed)
    begin = _initial_state(plan, packed, fingerprint, None if state is None else Path(state), samples)
    resumed = begin.blocks * plan.samples
    law = Law(*(float(getattr(ensemble, name)) for name in ("alpha", "dt", "c_w", "c_b")))
    compiled = functools.partial(compile_block, plan, law, function)
    blocks = range(begin.blocks, -(-samples // plan.samples))
    results = block_results(compiled, plan, key_words(seed), constants, used, blocks, samples)
    saver = Saver(None if state is None else Path(state), fingerprint)
    sums = accumulate(results, plan, begin, samples, saver, progress)
    reduced = reduce_sums(sums, samples, ensemble.width, packed["J"], layout)
    return _result(ensemble, leading.K, samples, seed, reduced, layout, resumed)


def _constants(ensemble: Ensemble, leading: LeadingOrder, layout: Layout) -> tuple[Constants, dict[str, Array]]:
    """Packed leading order, and the scaled factors of the free network: the root of K^0, then sqrt(dt) F_0."""
    packed = {
        "K": layout.pack(leading.K),
        "ES": layout.pack(leading.ES),
        "J": layout.pack_response(leading.J),
    }
    covariance = np.concatenate([leading.K[:1], ensemble.c_b + ensemble.c_w * leading.ES[:-1]])
    factors = np.array(jax.jit(semidefinite_factor)(jnp.asarray(np.moveaxis(covariance, 0, -1), jnp.float64)))
    factors[..., 1:] *= math.sqrt(ensemble.dt)
    arrays = (packed["K"], packed["ES"], packed["J"], np.moveaxis(factors, -1, 0))
    return Constants(*(jnp.asarray(array, jnp.float64) for array in arrays)), packed


def _fingerprint(ensemble: Ensemble, leading: LeadingOrder, seed: int) -> dict[str, Any]:
    """Everything that decides the sums, as JSON values."""
    kernel = np.ascontiguousarray(leading.K[0], dtype="<f8")
    parameters = {name: float(getattr(ensemble, name)) for name in ("c_w", "c_b", "alpha", "dt")}
    return {
        "law": _LAW,
        "activation": ensemble.activation.name,
        **parameters,
        "depth": int(ensemble.depth),
        "width": int(ensemble.width),
        "inputs": int(kernel.shape[0]),
        "input kernel (sha256)": hashlib.sha256(kernel.tobytes()).hexdigest()[:16],
        "seed": seed,
    }


def _initial_state(plan: Plan, packed: dict[str, Array], fingerprint: dict[str, Any], folder: Path | None, samples: int) -> State:
    fresh = State(np.zeros((plan.depth + 1, plan.layout.rows, GROUPS)), 0, packed)
    if folder is None:
        return fresh
    prepare_folder(folder)
    found = load_state(folder, fresh, fingerprint)
    if found is None:
        return fresh
    done = found.blocks * plan.samples
    if done > samples:
        raise StateError(f"{folder} already holds {done} samples, asked for {samples}; ask for {done} or more")
    return found


def _result(
    ensemble: Ensemble, kernel: Array, samples: int, seed: int, reduced: Reduced, layout: Layout, resumed: int
) -> SimulationResult:
    """Unpack to dense symmetric arrays and add the mean kernel and the variance gains."""

    def dense(estimates: Mapping[str, Estimate]) -> dict[str, Estimate]:
        unpacked = {n: Estimate(layout.unpack(estimates[n].mean), layout.unpack(estimates[n].se)) for n in MEANS}
        covariance = estimates["V4"]
        unpacked["V4"] = Estimate(layout.unpack_quads(covariance.mean), layout.unpack_quads(covariance.se))
        shift = unpacked["K1"]
        unpacked["K"] = Estimate(kernel + shift.mean / ensemble.width, shift.se / ensemble.width)
        return unpacked

    controlled, plain = dense(reduced.controlled), dense(reduced.plain)
    gain = {name: _gain(plain[name].se, controlled[name].se) for name in (*QUANTITIES, "K")}
    groups = min(GROUPS, samples)
    return SimulationResult(
        ensemble, samples, seed, **controlled, plain=plain, gain=gain, control_z=reduced.control_z, groups=groups,
        resumed=resumed,
    )  # fmt: skip


def _gain(plain: Array, controlled: Array) -> Array:
    """Variance ratio; 1 where neither estimator fluctuates (a constant) or neither error is known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(plain == controlled, 1.0, (plain / controlled) ** 2)
