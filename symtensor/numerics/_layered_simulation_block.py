"""One block of general layered networks and their coupled free networks, as one compiled program of fixed shape.

All arrays carry the samples of the block on their last axis. A loop over layers holds a loop over neurons, in which a
neuron is moved one layer on, its functions are added to the kernels, and its own control is formed; n x n weights never
exist. Statistics of a sample at one depth, with D = S - S_0 of the network, c and q its response of first and second order
to the free fluctuations, r = D - c, and c_i, q_i the same of one neuron alone (c = mean_i c_i, and E q = E[q_i]/n):

    D, r, r - q, mean_i q_i | DD, DD - cc, mean_i c_i c_i | DDD, DDD - ccc, mean_i c_i c_i c_i
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from symtensor.numerics._blocks import GROUPS, Function
from symtensor.numerics._draws import Key, fold_in, normals
from symtensor.numerics._factor import aligned_factor, semidefinite_factor
from symtensor.numerics._layered_simulation_model import Functions
from symtensor.numerics._packing import Layout

_BLOCK_NUMBERS = 2**16  # pre-activations per block: arrays of half a megabyte stay in the second-level cache
_FEWEST, _MOST = 64, 512  # samples per block


def lanes_of(width: int, inputs: int) -> int:
    """Samples per block, a power of two that depends on the shape of the network only."""
    fitting = max(1, _BLOCK_NUMBERS // (width * inputs))
    return min(_MOST, max(_FEWEST, 2 ** (fitting.bit_length() - 1)))


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything static about a program; the JAX functions are compared by identity."""

    functions: Functions
    width: int
    depth: int
    samples: int

    @property
    def groups(self) -> int:
        """Jackknife groups that one block feeds."""
        return GROUPS

    def __hash__(self) -> int:
        return hash((self.functions.activations, self.functions.layout, self.width, self.depth, self.samples))


class Constants(NamedTuple):
    """Deterministic inputs of the program, by depth; see `Leading`."""

    mean: jax.Array  # (L+1, components)
    response: jax.Array  # (L+1, components, pairs)
    curvature: jax.Array  # (L+1, components, pairs of pairs)
    feedback: jax.Array  # (L+1, pairs, components)
    bend: jax.Array  # (L+1, B, B)
    factor: jax.Array  # (L+1, P, P)
    turn: jax.Array  # (L+1, pairs, P, P)


class Law(NamedTuple):
    """Parameters of a layer; `bias` is a number or an elementwise function of the levels S_r."""

    alpha: float
    dt: float
    weights: tuple[float, ...]
    bias: float | Callable[..., Any]


class _Drives(NamedTuple):
    """Change of the covariance of phi by fluctuations of S, of first and second order, and its last increment."""

    first: jax.Array  # (pairs, lanes)
    second: jax.Array  # (pairs, lanes)
    increment: jax.Array  # (pairs, lanes)


class _Neuron(NamedTuple):
    """State of one neuron: pre-activations, and their change by the drives of all neurons and by its own alone."""

    network: jax.Array  # (P, lanes)
    free: jax.Array  # (P, lanes)
    moved: jax.Array  # (P, lanes)
    moved_alone: jax.Array  # (P, lanes)
    alone: _Drives


class _Sums(NamedTuple):
    network: jax.Array  # (components, lanes): h - E h of the network
    first: jax.Array  # (components, lanes): c_i
    moved: jax.Array  # (components, lanes): change of h by `moved`
    second: jax.Array  # (components, lanes): q_i
    squares: jax.Array  # (quads, lanes): c_i c_i
    cubes: jax.Array  # (triples, lanes): c_i c_i c_i


def build_block(shape: Shape, law: Law, images: tuple[Function, ...], *, loops: bool) -> Callable[..., jax.Array]:
    """The function `(seed words, first sample, number of samples, constants) -> sums` over one block."""
    functions, layout = shape.functions, shape.functions.layout
    (q0, q1), (t0, t1, t2) = functions.quads, functions.triples
    lanes, size = shape.samples, functions.components
    components = functools.partial(_components, functions, images)

    def layer(keys: Key, included: jax.Array, state: tuple[Any, ...], constants: tuple) -> tuple[Any, jax.Array]:
        neurons, drives, before = state
        depth, at = constants[0], Constants(*constants[1:])
        start = depth == 0
        memory = jnp.where(start, 0.0, law.alpha)
        own = math.sqrt(law.dt) * semidefinite_factor(_covariance(functions, law, before))
        factor = jnp.where(start, at.factor[..., None], aligned_factor(own, at.factor))
        free_factor = jnp.broadcast_to(at.factor[..., None], factor.shape)
        turned = jnp.einsum("eab,ez->abz", at.turn, drives.increment)

        def neuron(sums: _Sums, row: tuple[_Neuron, jax.Array]) -> tuple[_Sums, _Neuron]:
            old, z = row
            network = memory * old.network + _apply(factor, z)
            free = memory * old.free + _apply(free_factor, z)
            moved = memory * old.moved + _apply(turned, z)
            turned_alone = jnp.einsum("eab,ez->abz", at.turn, old.alone.increment)
            moved_alone = memory * old.moved_alone + _apply(turned_alone, z)
            value, slope = jax.linearize(components, free)
            first, second = _responses(layout, at, value - at.mean[:, None], slope(moved_alone), old.alone)
            alone = _next_drives(functions, law, at, old.alone, first, second)
            terms = (components(network) - at.mean[:, None], first, slope(moved), second)
            products = (first[q0] * first[q1], first[t0] * first[t1] * first[t2])
            total = _Sums(*(x + y for x, y in zip(sums, (*terms, *products))))
            return total, _Neuron(network, free, moved, moved_alone, alone)

        zero = _Sums(*(jnp.zeros((rows, lanes)) for rows in (size, size, size, size, len(q0), len(t0))))
        z = normals(fold_in(keys, depth), shape.width * layout.inputs, chunked=loops)
        sums, neurons = lax.scan(neuron, zero, (neurons, z.reshape(shape.width, layout.inputs, lanes)))
        d, c, moved, alone, squares, cubes = (total / shape.width for total in sums)
        q = _responses(layout, at, jnp.zeros_like(c), moved, drives)[1]
        products = (d[q0] * d[q1], d[q0] * d[q1] - c[q0] * c[q1], squares)
        triple = d[t0] * d[t1] * d[t2]
        statistics = (d, d - c, d - c - q, alone, *products, triple, triple - c[t0] * c[t1] * c[t2], cubes)
        kept = jnp.where(included, jnp.concatenate(statistics), 0.0).reshape(functions.rows, -1, GROUPS).sum(axis=1)
        return (neurons, _next_drives(functions, law, at, drives, c, q), d + at.mean[:, None]), kept

    def block(words: jax.Array, first: jax.Array, count: jax.Array, constants: Constants) -> jax.Array:
        lane = lax.iota(jnp.uint32, lanes)
        keys = fold_in((words[0], words[1]), first + lane)
        included = lane < count.astype(jnp.uint32)
        row = jnp.zeros((shape.width, layout.inputs, lanes))
        alone = _Drives(*[jnp.zeros((shape.width, layout.pairs, lanes))] * 3)
        drives = _Drives(*[jnp.zeros((layout.pairs, lanes))] * 3)
        state = (_Neuron(row, row, row, row, alone), drives, jnp.broadcast_to(constants.mean[0][:, None], (size, lanes)))
        depths = jnp.arange(shape.depth + 1, dtype=jnp.uint32)
        return lax.scan(lambda carry, x: layer(keys, included, carry, x), state, (depths, *constants))[1]

    return block


def _components(functions: Functions, images: tuple[Function, ...], row: jax.Array) -> jax.Array:
    """f(phi_a) f(phi_b) of all functions and pairs: `(P, lanes)` to `(components, lanes)`."""
    a, b = functions.layout.pair
    values = [image(row) for image in images]
    return jnp.concatenate([value[a] * value[b] for value in values])


def _levels(functions: Functions, components: jax.Array) -> list[jax.Array]:
    """Mean over the inputs of the diagonal, for each branch."""
    pairs, diagonal = functions.layout.pairs, functions.pair_table.diagonal()
    return [components[f * pairs + diagonal].mean(axis=0) for f in functions.branches]


def _covariance(functions: Functions, law: Law, means: jax.Array) -> jax.Array:
    """Sigma(S) as `(P, P, lanes)`."""
    pairs = functions.layout.pairs
    bias = law.bias(*_levels(functions, means)) if callable(law.bias) else law.bias
    parts = jnp.stack([c * means[f * pairs : (f + 1) * pairs] for c, f in zip(law.weights, functions.branches)])
    return (bias + parts.sum(axis=0))[functions.pair_table]


def _responses(layout: Layout, at: Constants, noise: jax.Array, moved: jax.Array, drives: _Drives) -> tuple[jax.Array, jax.Array]:
    """First-order response c = noise + J X, and second-order q = (moved - J X) + B X X / 2 + J X_2, of `(components, lanes)`."""
    a, b = layout.quad
    along = at.response @ drives.first
    second = moved - along + at.curvature @ (drives.first[a] * drives.first[b]) + at.response @ drives.second
    return noise + along, second


def _next_drives(functions: Functions, law: Law, at: Constants, old: _Drives, first: jax.Array, second: jax.Array) -> _Drives:
    levels = _levels(functions, first)
    bent = sum(at.bend[r, s] * x * y for r, x in enumerate(levels) for s, y in enumerate(levels))
    increment = at.feedback @ first
    return _Drives(law.alpha**2 * old.first + increment, law.alpha**2 * old.second + at.feedback @ second + bent, increment)


@functools.lru_cache(maxsize=16)
def compile_block(shape: Shape, law: Law, images: tuple[Function, ...], device: Any) -> Callable[..., jax.Array]:
    """The program of `build_block` compiled for one device; nothing runs yet."""
    program = jax.jit(build_block(shape, law, images, loops=device.platform == "cpu"))
    sharding = jax.sharding.SingleDeviceSharding(device)

    def argument(dtype: Any, *size: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(size, dtype, sharding=sharding)

    steps, layout, components = shape.depth + 1, shape.functions.layout, shape.functions.components
    pairs, inputs, branches = layout.pairs, layout.inputs, len(shape.functions.branches)
    sizes = ((components,), (components, pairs), (components, layout.quads), (pairs, components))
    sizes += ((branches, branches), (inputs, inputs), (pairs, inputs, inputs))
    constants = Constants(*(argument(jnp.float64, steps, *size) for size in sizes))  # type: ignore[arg-type]
    return program.lower(argument(jnp.uint32, 2), argument(jnp.uint32), argument(jnp.int32), constants).compile()


def _apply(factor: jax.Array, z: jax.Array) -> jax.Array:
    """`F z` per sample: `(P, P, lanes)` times `(P, lanes)`."""
    total = factor[:, 0] * z[:1]
    for k in range(1, z.shape[0]):
        total = total + factor[:, k] * z[k : k + 1]
    return total
