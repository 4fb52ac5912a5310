"""One block of networks and its coupled free networks, as one compiled program of fixed shape.

All arrays carry the samples of the block on their last axis. Per layer and neuron the cost is O(P^2): P normals, two
updates (network and free network), four kernels; n x n weights never exist.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from symtensor.numerics._draws import Key, fold_in, normals
from symtensor.numerics._factor import aligned_factor, semidefinite_factor
from symtensor.numerics._packing import Layout

GROUPS = 64
_BLOCK_NUMBERS = 2**16  # pre-activations per block: arrays of half a megabyte stay in the second-level cache
_MOST_NUMBERS = 2**20  # a wide network rather fills its block to GROUPS samples, up to this size
_FEWEST, _MOST = 8, 512  # samples per block: a vector register; short runs should not pay for a long block
_TRACKING = 40  # multiply-adds spent on single-neuron controls, per pre-activation

Function = Callable[[jax.Array], jax.Array]


@dataclass(frozen=True, slots=True)
class Plan:
    """Shape of a block: a function of width and number of inputs only, so that results do not depend on the machine."""

    layout: Layout
    width: int
    depth: int
    samples: int
    tracked: int

    @property
    def groups(self) -> int:
        """Jackknife groups that one block feeds."""
        return min(GROUPS, self.samples)

    @property
    def output_shape(self) -> tuple[int, int, int]:
        return (self.depth + 1, self.layout.rows, self.groups)

    def working_bytes(self) -> int:
        """Upper estimate of the memory of one block in flight, in bytes."""
        layout, lanes = self.layout, self.samples
        neurons = 10 * self.width * layout.inputs + 3 * self.tracked * layout.pairs
        statistics = 3 * layout.rows + 12 * layout.pairs + 6 * layout.inputs**2
        constants = (self.depth + 1) * (layout.pairs**2 + 2 * layout.pairs + layout.inputs**2)
        return 8 * (lanes * (neurons + statistics) + int(np.prod(self.output_shape)) + 2 * constants)


def plan_block(width: int, inputs: int, depth: int) -> Plan:
    """Choose samples per block (a power of two) and how many neurons carry their own control."""
    layout = Layout(inputs)
    numbers = width * inputs
    fitting = max(1, _BLOCK_NUMBERS // numbers, min(GROUPS, _MOST_NUMBERS // numbers))
    samples = min(_MOST, max(_FEWEST, 2 ** (fitting.bit_length() - 1)))
    per_neuron = layout.pairs**2 + layout.quads
    tracked = min(width, max(1, _TRACKING * width * inputs // per_neuron))
    return Plan(layout, width, depth, samples, tracked)


@dataclass(frozen=True, slots=True)
class Law:
    """Parameters of a layer: `phi' = alpha phi + sqrt(dt) N(0, c_b + c_w S)`."""

    alpha: float
    dt: float
    c_w: float
    c_b: float


class Constants(NamedTuple):
    """Deterministic inputs of the program, by depth: packed K_0, E[sigma sigma], response, scaled free factors."""

    kernel: jax.Array  # (L+1, M)
    mean: jax.Array  # (L+1, M)
    response: jax.Array  # (L+1, M, M)
    factor: jax.Array  # (L+1, P, P); depth 0 the root of K^0, then sqrt(dt) F_0


class _State(NamedTuple):
    network: jax.Array  # (n, P, lanes)
    free: jax.Array  # (n, P, lanes)
    kernel: jax.Array  # (M, lanes): S of the layer before
    drive: jax.Array  # (M, lanes): X
    drives: jax.Array  # (M, tracked, lanes): X of single neurons


def build_block(
    plan: Plan, law: Law, activation: Function, *, loops: bool
) -> Callable[[jax.Array, jax.Array, jax.Array, Constants], jax.Array]:
    """The function `(seed words, first sample, number of samples, constants) -> sums` over one block.

    `loops` sums over neurons in a loop and makes random words chunk by chunk, which is what XLA compiles well on CPU;
    otherwise flat array operations are used (GPU, TPU).
    """
    layout = plan.layout
    first_index, second_index = layout.pair

    def layer(keys: Key, included: jax.Array, state: _State, inputs: tuple) -> tuple[_State, jax.Array]:
        depth, kernel, mean, response, free_factor = inputs
        z = normals(fold_in(keys, depth), plan.width * layout.inputs, chunked=loops)
        z = z.reshape(plan.width, layout.inputs, plan.samples)
        start = depth == 0
        memory = jnp.where(start, 0.0, law.alpha)
        sigma = law.c_b + law.c_w * state.kernel
        square = jnp.zeros((layout.inputs, layout.inputs, plan.samples))
        square = square.at[first_index, second_index].set(sigma).at[second_index, first_index].set(sigma)
        own = aligned_factor(math.sqrt(law.dt) * semidefinite_factor(square), free_factor)
        factor = jnp.where(start, free_factor[..., None], own)
        network = memory * state.network + _apply(factor, z)
        free = memory * state.free + _apply(jnp.broadcast_to(free_factor[..., None], factor.shape), z)
        image, free_image = activation(network), activation(free)

        g, s, g_free, s_free = (value / plan.width for value in _pair_sums((network, image, free, free_image), layout, loops))
        noise = s_free - mean[:, None]
        control_g = g_free - kernel[:, None] + state.drive
        control_s = noise + response @ state.drive
        moments, drives = _tracked_controls(state.drives, free, free_image, inputs, step, layout, loops)
        statistics = _statistics(g - kernel[:, None], control_g, s - mean[:, None], control_s, moments, plan)
        drive = step(state.drive, control_s)
        return _State(network, free, s, drive, drives), _group_sums(statistics, included, plan)

    def step(drive: jax.Array, control_s: jax.Array) -> jax.Array:
        return law.alpha**2 * drive + law.dt * law.c_w * control_s

    def block(words: jax.Array, first: jax.Array, count: jax.Array, constants: Constants) -> jax.Array:
        lane = lax.iota(jnp.uint32, plan.samples)
        keys = fold_in((words[0], words[1]), first + lane)
        included = lane < count.astype(jnp.uint32)
        neurons = jnp.zeros((plan.width, layout.inputs, plan.samples))
        pairs = jnp.zeros((layout.pairs, plan.samples))
        state = _State(neurons, neurons, pairs, pairs, jnp.zeros((layout.pairs, plan.tracked, plan.samples)))
        depths = jnp.arange(plan.depth + 1, dtype=jnp.uint32)
        return lax.scan(lambda carry, x: layer(keys, included, carry, x), state, (depths, *constants))[1]

    return block


@functools.lru_cache(maxsize=16)
def compile_block(plan: Plan, law: Law, activation: Function, device: Any) -> Callable[..., jax.Array]:
    """The program of `build_block` compiled for one device; nothing runs yet."""
    program = jax.jit(build_block(plan, law, activation, loops=device.platform == "cpu"))
    sharding = jax.sharding.SingleDeviceSharding(device)

    def argument(dtype: Any, *shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

    steps, pairs, inputs = plan.depth + 1, plan.layout.pairs, plan.layout.inputs
    shapes = ((pairs,), (pairs,), (pairs, pairs), (inputs, inputs))
    constants = Constants(*(argument(jnp.float64, steps, *shape) for shape in shapes))  # type: ignore[arg-type]
    arguments = (argument(jnp.uint32, 2), argument(jnp.uint32), argument(jnp.int32), constants)
    return program.lower(*arguments).compile()


def _apply(factor: jax.Array, z: jax.Array) -> jax.Array:
    """`F z` per neuron and sample: `(P, P, lanes)` times `(n, P, lanes)`."""
    total = factor[None, :, 0] * z[:, :1]
    for b in range(1, z.shape[1]):
        total = total + factor[None, :, b] * z[:, b : b + 1]
    return total


def _pair_sums(arrays: tuple[jax.Array, ...], layout: Layout, loops: bool) -> tuple[jax.Array, ...]:
    """`sum_i v_i(a) v_i(b)` for each array `(n, P, lanes)`: `(M, lanes)`, summed over neurons in order."""
    a, b = layout.pair
    if not loops:
        return tuple(jnp.einsum("naz,nbz->abz", v, v)[a, b] for v in arrays)

    def add(i: jax.Array, totals: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        rows = (lax.dynamic_index_in_dim(v, i, 0, keepdims=False) for v in arrays)
        return tuple(total + row[a] * row[b] for total, row in zip(totals, rows))

    zero = jnp.zeros((layout.pairs, arrays[0].shape[-1]))
    return lax.fori_loop(0, arrays[0].shape[0], add, tuple(zero for _ in arrays))


def _tracked_controls(
    drives: jax.Array, free: jax.Array, image: jax.Array, inputs: tuple, step: Callable, layout: Layout, loops: bool
) -> tuple[jax.Array, jax.Array]:
    """`mean_i c_i c_i` over the tracked neurons, packed, and their drives one layer on.

    The control c = mean_i c_i is a mean of iid terms of mean zero, so n E[c c] = E[c_i c_i] at any width.
    """
    (a, b), (first, second) = layout.pair, layout.quad
    _, kernel, mean, response, _ = inputs
    tracked, lanes = drives.shape[1:]
    row, row_image = (jnp.swapaxes(v[:tracked], 0, 1) for v in (free, image))
    controls = row[a] * row[b] - kernel[:, None, None] + drives
    noise = row_image[a] * row_image[b] - mean[:, None, None]
    following = step(drives, noise + (response @ drives.reshape(layout.pairs, -1)).reshape(drives.shape))
    if not loops:
        return jnp.einsum("Anz,Bnz->ABz", controls, controls)[first, second] / tracked, following

    def add(i: jax.Array, total: jax.Array) -> jax.Array:
        control = lax.dynamic_index_in_dim(controls, i, 1, keepdims=False)
        return total + control[first] * control[second]

    return lax.fori_loop(0, tracked, add, jnp.zeros((layout.quads, lanes))) / tracked, following


def _statistics(dg: jax.Array, cg: jax.Array, ds: jax.Array, cs: jax.Array, moments: jax.Array, plan: Plan) -> jax.Array:
    """Stack one depth's statistics in the order of `Layout`: `(rows, lanes)`."""
    a, b = plan.layout.quad
    rg = dg - cg
    covariance = moments + plan.width * (rg[a] * cg[b] + cg[a] * rg[b])
    return jnp.concatenate([dg, rg, ds, ds - cs, dg[a] * dg[b], covariance, rg[a] * rg[b]], axis=0)


def _group_sums(statistics: jax.Array, included: jax.Array, plan: Plan) -> jax.Array:
    """Sum over the samples of each jackknife group (sample index modulo 64), excluded samples as exact zeros."""
    kept = jnp.where(included, statistics, 0.0)
    return kept.reshape(plan.layout.rows, -1, plan.groups).sum(axis=1)
