"""Monte Carlo simulation of general layered networks at several widths, by the exact one-block law.

Several branches with their own activations, a bias variance that depends on the kernels, any observables of one neuron:
the estimates are scaled so that they converge for n to infinity, and `LayeredSimulation.fit` reads off the coefficients of
1, 1/n, .. that the diagrams of `symtensor.fields.layered` predict. `symtensor.numerics.simulation` is the specialised
program for one branch at one width, with saved states.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symtensor.activation import Activation
from symtensor.numerics._blocks import GROUPS
from symtensor.numerics._checkpoint import State
from symtensor.numerics._dispatch import Saver, SimulationOverflow, accumulate, block_results
from symtensor.numerics._draws import fold_in, key_words
from symtensor.numerics._elementwise import jax_function
from symtensor.numerics._ensemble import MemoryCapError, require_integer
from symtensor.numerics._layered_simulation_block import Constants, Law, Shape, compile_block, lanes_of
from symtensor.numerics._layered_simulation_fit import WidthFit, fit_blocks, fit_in_inverse_width
from symtensor.numerics._layered_simulation_leading import Leading, LeadingMeans, leading_order
from symtensor.numerics._layered_simulation_model import Functions, LayeredBlock, require_memory
from symtensor.numerics._layered_simulation_reduce import Replicates, WidthSums
from symtensor.numerics._statistics import Estimate

__all__ = [
    "Estimate",
    "LayeredBlock",
    "LayeredSimulation",
    "MemoryCapError",
    "SimulationOverflow",
    "WidthFit",
    "fit_in_inverse_width",
    "simulate_layered",
]

QUANTITIES = ("mean", "covariance", "third_cumulant")


@dataclass(frozen=True)
class LayeredSimulation:
    """Scaled cumulants of the mean kernels S = (1/n) sum_i f(phi_a) f(phi_b) by depth, at several widths.

    Every `Estimate` has a standard error by the delete-one-group jackknife over 64 groups (Student's t with 63 degrees of
    freedom); widths are independent of each other, quantities and components of one width are not.

    Attributes
    ----------
    leading : the order n^0 theory of the free networks (kernels, means, responses).
    samples : networks simulated at each width; control_z : (L+1,) for each width, largest |z| of the controls' sample
        means, whose exact value is 0: above about 5 the order n^0 theory is not what the free networks do.
    """

    block: LayeredBlock
    widths: tuple[int, ...]
    samples: Mapping[int, int]
    seed: int
    leading: Leading
    control_z: Mapping[int, np.ndarray]
    _functions: Functions = field(repr=False)
    _sums: Mapping[int, WidthSums] = field(repr=False)

    @property
    def observables(self) -> tuple[str, ...]:
        return tuple(self._functions.names)

    def mean(self, name: str, width: int, *, plain: bool = False) -> Estimate:
        """n (E S - S_0), (L+1, P, P): K_1 + K2/n + .. for the identity; exactly 0 + noise at depth 0."""
        return _estimate(self._mean(name, width, plain))

    def covariance(self, first: str, second: str | None = None, *, width: int, plain: bool = False) -> Estimate:
        """n Cov(S_ab, S'_cd), (L+1, P, P, P, P): V_4 + V4_1/n + .. for the identity; `second` is `first` by default."""
        return _estimate(self._covariance(first, second or first, width, plain))

    def third_cumulant(self, name: str, width: int, *, plain: bool = False) -> Estimate:
        """n^2 cum(S_ab, S_cd, S_ef), (L+1, P, P, P, P, P, P)."""
        return _estimate(self._third(name, width, plain))

    def fit(
        self, quantity: str, *names: str, terms: int = 2, widths: Sequence[int] | None = None, linked: bool = False
    ) -> WidthFit:
        """Fit c_0 + c_1/n + .. to a quantity over the widths; each component on its own, widths weighted.

        Parameters
        ----------
        quantity : "mean", "covariance" or "third_cumulant"; names : its observables, as in the methods.
        terms : number of coefficients; widths : by default all.
        linked : for means and covariances. The part of the response (mean_i q_i, mean_i c_i c_i) has expectation c_0 at
            every width, and the rest starts at c_1/n. With this knowledge, which chi2 then tests as well, both parts are
            fitted together with their covariance, and c_1 loses the noise of c_0. It holds where E[h] has two derivatives
            in K: not for kinked functions at singular kernels.

        Raises
        ------
        ValueError
            Unknown quantity, observable or width; too few widths.
        """
        chosen = tuple(widths) if widths is not None else self.widths
        if quantity not in QUANTITIES:
            raise ValueError(f"quantity = {quantity!r} is not one of {', '.join(QUANTITIES)}")
        if not 1 <= len(names) <= (2 if quantity == "covariance" else 1):
            raise ValueError(f"a fit of the {quantity} takes the name of one observable, or of two for a covariance; given {names}")
        if not linked:
            method = getattr(self, quantity)
            return fit_in_inverse_width(chosen, [method(*names, width=n) for n in chosen], terms)
        if quantity == "third_cumulant":
            raise ValueError("linked is knowledge about means and covariances, not about a third cumulant")
        values, covariances = [], []
        for width in chosen:
            parts = self._mean_parts(names[0], width) if quantity == "mean" else self._covariance_parts(names[0], names[-1], width)
            deviations = np.stack([part.deviations() for part in parts])
            values.append(np.stack([part.total for part in parts]))
            covariances.append(np.einsum("pj...,qj...->pq...", deviations, deviations))
        return fit_blocks(chosen, np.stack(values), np.stack(covariances), terms, first=(0, 1))

    def _of(self, width: int) -> WidthSums:
        if width not in self._sums:
            raise ValueError(f"width {width} was not simulated; simulated are {self.widths}")
        return self._sums[width]

    def _mean(self, name: str, width: int, plain: bool) -> Replicates:
        if plain:
            return self._of(width).plain_mean().take((slice(None), self._components(name)))
        response, rest = self._mean_parts(name, width)
        return response + rest

    def _mean_parts(self, name: str, width: int) -> tuple[Replicates, Replicates]:
        index = (slice(None), self._components(name))
        response, rest = self._of(width).mean()
        return response.take(index), rest.take(index)

    def _covariance(self, first: str, second: str, width: int, plain: bool) -> Replicates:
        if plain:
            return self._of(width).plain_covariance().take((slice(None), self._quads(first, second)))
        response, rest = self._covariance_parts(first, second, width)
        return response + rest

    def _covariance_parts(self, first: str, second: str, width: int) -> tuple[Replicates, Replicates]:
        index = (slice(None), self._quads(first, second))
        response, rest = self._of(width).covariance()
        return response.take(index), rest.take(index)

    def _third(self, name: str, width: int, plain: bool) -> Replicates:
        function, table = self._functions.of_name(name), self._functions.pair_table
        if function not in self._functions.third:
            raise ValueError(f"the third cumulant of {name!r} was not kept; name it in third_cumulants")
        pairs = np.ix_(*[np.arange(self._functions.layout.pairs)] * 3)
        full = self._functions.triple_table(function)[pairs]
        index = full[table[:, :, None, None, None, None], table[None, None, :, :, None, None], table[None, None, None, None]]
        return self._of(width).third_cumulant(plain=plain).take((slice(None), index))

    def _components(self, name: str) -> np.ndarray:
        return self._functions.of_name(name) * self._functions.layout.pairs + self._functions.pair_table

    def _quads(self, first: str, second: str) -> np.ndarray:
        a, b = self._components(first), self._components(second)
        return self._functions.quad_table[a[:, :, None, None], b[None, None]]


def simulate_layered(
    block: LayeredBlock,
    widths: Sequence[int],
    observables: Mapping[str, Activation | str] | None = None,
    *,
    samples: int | Mapping[int, int],
    seed: int,
    third_cumulants: Sequence[str] | None = None,
    leading: LeadingMeans | None = None,
    memory_mb: float = 2048,
    progress: Callable[[int, int], None] | None = None,
    devices: Sequence[Any] | None = None,
) -> LayeredSimulation:
    r"""Simulate independent networks of a general layered block at several widths.

    Parameters
    ----------
    block : the networks.
    widths : different numbers of neurons, each at least 1.
    observables : name -> function f of one neuron, whose mean kernels f(phi_a) f(phi_b) are observed; by default
        {"G": identity, "S": first activation}. The mean of phi_a^2 phi_b^2 is f = "x**2".
    samples : networks at each width, at least 128, or a mapping from widths.
    seed : at least 0; widths draw from streams of their own.
    third_cumulants : observables whose third cumulants are kept; by default all.
    leading : kernels (L+1, P, P) and means (L+1, functions x pairs), branches first, then observables without
        repetitions; by default computed here to 1e-11. An error e of a mean shifts the scaled mean by up to n e.
    memory_mb, progress, devices : as in `symtensor.numerics.simulation.simulate`; progress counts samples of all widths.

    Returns
    -------
    LayeredSimulation
        Bitwise the same for any number of devices.

    Raises
    ------
    ValueError, TypeError
        For bad input, by name; `MemoryCapError` and `SimulationOverflow` are ValueErrors.

    Notes
    -----
    Beside each network runs a free network with the same normals and the factors of Sigma_0, whose neurons are iid
    Gaussian paths. Per neuron i, with h_i = f(phi_a) f(phi_b) of the free network and X_i = 0 at depth 0,

    .. math:: c_i = h_i - E h + \frac{dE h}{dK} X_i, \qquad X_i' = \alpha^2 X_i + dt\, \frac{d\Sigma}{dS} c_i ,

    has mean 0, and c = mean_i c_i is the linear response of S to the noise of all layers: D = S - S_0 = c + r with r of
    order 1/n. Means are those of r; n E[c c] = E[c_i c_i] and n^2 E[c c c] = E[c_i c_i c_i] are averaged over single
    neurons, and only E[DD - cc], E[DDD - ccc] over networks. An error of the responses costs variance, never bias.

    Examples
    --------
    >>> import jax
    >>> jax.config.update("jax_enable_x64", True)
    >>> block = LayeredBlock((("identity", 1.0),), alpha=1.0, dt=0.5, depth=2, kernel=1.0, bias=0.2)
    >>> result = simulate_layered(block, (8, 16), samples=1024, seed=1)
    >>> fit = result.fit("covariance", "G", terms=1, linked=True)
    >>> bool(abs(fit.coefficient(0).z(8.88)[-1].item()) < 4)
    True
    """
    counts = _sample_counts(widths, samples)
    if require_integer("seed", seed, 0) >= 2**63:
        raise ValueError(f"seed = {seed} must be below 2^63")
    if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise ValueError('float64 is off in JAX; call jax.config.update("jax_enable_x64", True) first')
    used = list(devices) if devices is not None else jax.local_devices()
    if not used:
        raise ValueError("devices is empty; give at least one JAX device, or None for all local ones")
    named = observables if observables is not None else {"G": "identity", "S": block.activations[0]}
    functions = Functions.of(block, named, third_cumulants)
    for width in counts:
        require_memory(functions, width, block.depth, lanes_of(width, block.inputs), len(used), memory_mb)
    order = leading_order(block, functions, leading)
    law = Law(float(block.alpha), float(block.dt), block.weights, block.bias)
    sums: dict[int, WidthSums] = {}
    for width, number in counts.items():
        done = sum(s.samples for s in sums.values())
        told = None if progress is None else functools.partial(_report, progress, done, sum(counts.values()))
        shape = Shape(functions, width, block.depth, lanes_of(width, block.inputs))
        sums[width] = WidthSums(functions, width, number, _run(shape, law, _constants(order), seed, number, used, told))
    control = {width: part.control_z() for width, part in sums.items()}
    return LayeredSimulation(block, tuple(counts), counts, seed, order, control, functions, sums)


def _sample_counts(widths: Sequence[int], samples: int | Mapping[int, int]) -> dict[int, int]:
    if not len(widths) or len(set(widths)) != len(widths):
        raise ValueError(f"widths = {tuple(widths)}: give at least one width, none twice")
    counts = {}
    for width in widths:
        require_integer("width", width, 1)
        if isinstance(samples, Mapping) and width not in samples:
            raise ValueError(f"samples has no entry for width {width}")
        number = samples[width] if isinstance(samples, Mapping) else samples
        counts[int(width)] = require_integer("samples", number, 2 * GROUPS)
        if number >= 2**32:
            raise ValueError(f"samples = {number} must be below 2^32")
    return counts


def _report(progress: Callable[[int, int], None], before: int, total: int, done: int, _of: int) -> None:
    progress(before + done, total)


def _constants(order: Leading) -> Constants:
    names = ("means", "response", "curvature", "feedback", "bend", "factors", "turn")
    return Constants(*(jnp.asarray(getattr(order, name), jnp.float64) for name in names))


def _run(
    shape: Shape, law: Law, constants: Constants, seed: int, samples: int, devices: Sequence[Any], progress: Any
) -> np.ndarray:
    """Group sums of all samples of one width."""
    images = tuple(jax_function(function) for function in shape.functions.activations)
    high, low = fold_in(tuple(map(jnp.uint32, key_words(seed))), jnp.uint32(shape.width))  # type: ignore[arg-type]
    compiled = functools.partial(compile_block, shape, law, images)
    blocks = range(-(-samples // shape.samples))
    begin = State(np.zeros((shape.depth + 1, shape.functions.rows, GROUPS)), 0, {})
    results = block_results(compiled, shape, (int(high), int(low)), constants, devices, blocks, samples)  # type: ignore[arg-type]
    return accumulate(results, shape, begin, samples, Saver(None, {}), progress)  # type: ignore[arg-type]


def _estimate(replicates: Replicates) -> Estimate:
    return Estimate(replicates.total, replicates.standard_error())
