"""What is simulated, and where the statistics of a sample are stored."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from symtensor.activation import Activation, activation
from symtensor.numerics._blocks import GROUPS
from symtensor.numerics._ensemble import MemoryCapError, require_integer
from symtensor.numerics._packing import Layout
from symtensor.numerics.covariance import require_covariance

Array = NDArray[np.float64]
Bias = float | Callable[..., Any]


@dataclass(frozen=True, slots=True)
class LayeredBlock:
    """Networks `phi' = alpha phi + sqrt(dt) sum_r eta_r`, independent branches `eta_r` fed by `sigma_r(phi)`.

    Parameters
    ----------
    branches : (activation or its name, c_w) for each branch.
    alpha, dt, depth : of the model.
    kernel : K^0, (P, P) or a number; may be singular.
    bias : variance of the bias, which all inputs share: a number, or an elementwise JAX function of S_1, .., S_B, where
        S_r is the mean over the inputs of the diagonal of branch r's kernel, `(1/P) sum_a S^r_aa`.

    Raises
    ------
    ValueError, TypeError
        Parameters out of range, by name.

    Examples
    --------
    >>> block = LayeredBlock((("tanh", 1.5), ("relu", 0.5)), alpha=1.0, dt=0.5, depth=3, kernel=[[1, 0.3], [0.3, 1]])
    >>> block.inputs, [activation.name for activation in block.activations]
    (2, ['tanh', 'relu'])
    """

    branches: Sequence[tuple[Activation | str, float]]
    alpha: float
    dt: float
    depth: int
    kernel: Any
    bias: Bias = 0.0

    def __post_init__(self) -> None:
        require_integer("depth", self.depth, 1)
        branches = tuple((activation(sigma), float(c_w)) for sigma, c_w in self.branches)
        if not branches:
            raise ValueError("branches is empty; give at least one pair (activation, c_w)")
        object.__setattr__(self, "branches", branches)
        object.__setattr__(self, "kernel", require_covariance(self.kernel, "the input kernel"))
        numbers = {"alpha": self.alpha, "dt": self.dt, **{f"c_w of branch {r + 1}": c for r, (_, c) in enumerate(branches)}}
        if not callable(self.bias):
            numbers["bias"] = float(self.bias)
        for name, value in numbers.items():
            if not math.isfinite(value):
                raise ValueError(f"{name} = {value} is not finite")
            if name != "alpha" and (value < 0 or (name == "dt" and value == 0)):
                raise ValueError(f"{name} = {value} must {'be positive' if name == 'dt' else 'not be negative: it is a variance'}")

    @property
    def inputs(self) -> int:
        return len(self.kernel)

    @property
    def activations(self) -> tuple[Activation, ...]:
        return tuple(activation(sigma) for sigma, _ in self.branches)

    @property
    def weights(self) -> tuple[float, ...]:
        """c_w of each branch."""
        return tuple(c_w for _, c_w in self.branches)

    def bias_variance(self, *levels: Any) -> Any:
        """The variance of the bias at S_1, .., S_B."""
        return self.bias(*levels) if callable(self.bias) else jnp.full_like(jnp.asarray(levels[0]), self.bias)


@dataclass(frozen=True)
class Functions:
    """The distinct one-neuron functions of a run, branches first, and the statistics kept of their kernels.

    A component is (function, pair a <= b), `function * pairs + pair`; quads are pairs of components; triples are kept
    within each function of `third`.
    """

    layout: Layout
    activations: tuple[Activation, ...]
    branches: tuple[int, ...]
    names: Mapping[str, int]
    third: tuple[int, ...]

    @classmethod
    def of(cls, block: LayeredBlock, observables: Mapping[str, Activation | str], third: Sequence[str] | None) -> Functions:
        distinct: list[Activation] = []

        def place(function: Activation) -> int:
            same = [k for k, other in enumerate(distinct) if other.expr == function.expr]
            if not same:
                distinct.append(function)
            return same[0] if same else len(distinct) - 1

        branches = tuple(place(sigma) for sigma in block.activations)
        names = {name: place(activation(function)) for name, function in observables.items()}
        unknown = [name for name in third or () if name not in names]
        if unknown:
            raise ValueError(f"third cumulant of {unknown[0]!r}, which is not an observable; known: {', '.join(names)}")
        chosen = tuple(sorted({names[name] for name in (names if third is None else third)}))
        return cls(Layout(block.inputs), tuple(distinct), branches, names, chosen)

    @property
    def components(self) -> int:
        return len(self.activations) * self.layout.pairs

    @cached_property
    def quads(self) -> tuple[NDArray[np.intp], ...]:
        return np.triu_indices(self.components)

    @cached_property
    def triples(self) -> NDArray[np.intp]:
        """(3, number of triples), components in increasing order."""
        own = list(itertools.combinations_with_replacement(range(self.layout.pairs), 3))
        table = [[f * self.layout.pairs + k for k in triple] for f in self.third for triple in own]
        return np.array(table, dtype=np.intp).reshape(-1, 3).T

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Rows of one sample's statistics at one depth, by name (see `_layered_simulation_block`)."""
        sizes = dict.fromkeys(("D", "r", "r-q", "q"), self.components)
        sizes |= dict.fromkeys(("DD", "DD-cc", "cc"), len(self.quads[0]))
        sizes |= dict.fromkeys(("DDD", "DDD-ccc", "ccc"), int(self.triples.shape[1]))
        ends = list(itertools.accumulate(sizes.values(), initial=0))
        return {name: slice(first, last) for name, first, last in zip(sizes, ends, ends[1:])}

    @property
    def rows(self) -> int:
        return self.parts["ccc"].stop

    def of_name(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"{name!r} is not an observable of this simulation; known: {', '.join(self.names)}")
        return self.names[name]

    @cached_property
    def pair_table(self) -> NDArray[np.intp]:
        """Position of the pair (a, b), both orders: (P, P)."""
        table = np.zeros((self.layout.inputs,) * 2, dtype=np.intp)
        a, b = self.layout.pair
        table[a, b] = table[b, a] = np.arange(len(a))
        return table

    @cached_property
    def quad_table(self) -> NDArray[np.intp]:
        table = np.zeros((self.components,) * 2, dtype=np.intp)
        a, b = self.quads
        table[a, b] = table[b, a] = np.arange(len(a))
        return table

    def triple_table(self, function: int) -> NDArray[np.intp]:
        """Position of each triple of pairs of one function, all orders: (pairs, pairs, pairs)."""
        pairs = self.layout.pairs
        table = np.zeros((pairs,) * 3, dtype=np.intp)
        first = self.third.index(function) * (self.triples.shape[1] // len(self.third))
        for k, triple in enumerate(itertools.combinations_with_replacement(range(pairs), 3)):
            for order in itertools.permutations(triple):
                table[order] = first + k
        return table


def require_memory(functions: Functions, width: int, depth: int, lanes: int, devices: int, memory_mb: float) -> None:
    """Count what is allocated: blocks in flight, group sums, jackknife replicates.

    Raises
    ------
    MemoryCapError
        With the need, if it is above the cap.
    """
    neurons = 2 * width * (5 * functions.layout.inputs + 3 * functions.layout.pairs)
    block = lanes * 8 * (neurons + 4 * functions.rows) + 8 * (depth + 1) * functions.rows * GROUPS
    kept = 8 * (depth + 1) * functions.rows * GROUPS * 4
    need = (2 * devices * block + kept) / 2**20
    if not need <= memory_mb:
        raise MemoryCapError(
            f"the simulation needs {need:.0f} MB with {functions.layout.inputs} inputs, {len(functions.activations)} functions "
            f"and width {width}, the cap is {memory_mb} MB; raise memory_mb, or lower the number of inputs, of observables or of "
            "third_cumulants"
        )
