"""Order n^0 of a general layered block with its first and second response: what the free network does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from symtensor.activation import Activation
from symtensor.numerics._factor import semidefinite_factor
from symtensor.numerics._layered_simulation_model import Functions, LayeredBlock
from symtensor.numerics.moments import ORDERS, Table, moment_table
from symtensor.numerics.quadrature import QuadratureNotConverged, choose_rule

Array = NDArray[np.float64]
_FIRST = ((0, 0), (2, 0), (1, 1), (0, 2))
_SECOND = tuple(order for order in ORDERS if sum(order) == 4)
_TOLERANCE = 1e-11  # of the means of the free network: their error times the width is a bias of the mean
_CURVATURE_TOLERANCE = 1e-7  # of second derivatives, whose error costs variance only


class LeadingMeans(Protocol):
    """Order n^0: covariances (L+1, P, P) of the pre-activations and means (L+1, functions x pairs) of all functions."""

    @property
    def kernels(self) -> Array: ...

    @property
    def means(self) -> Array: ...


@dataclass(frozen=True, slots=True)
class Leading:
    """Order n^0 and its response, packed over pairs a <= b, which are the independent components.

    Attributes
    ----------
    kernels : (L+1, P, P).
    means : (L+1, components); response : (L+1, components, pairs), dE[h]/dK.
    curvature : (L+1, components, pairs of pairs), d2E[h]/dK dK with weight 1/2 on equal pairs, so that it acts on products.
    feedback : (L+1, pairs, components), dt dSigma/dS (zero in the columns of observables that do not feed back).
    bend : (L+1, B, B), dt/2 times the second derivatives of the bias variance in the levels S_r.
    factors : (L+1, P, P), the root of K^0, then those F_0 of dt Sigma_0.
    turn : (L+1, pairs, P, P), derivative of the aligned factor in dt Sigma (zero at depth 0).
    """

    kernels: Array
    means: Array
    response: Array
    curvature: Array
    feedback: Array
    bend: Array
    factors: Array
    turn: Array


def leading_order(block: LayeredBlock, functions: Functions, given: LeadingMeans | None) -> Leading:
    """The order n^0 recursion of the general block; `given` replaces kernels and means (not the responses).

    Raises
    ------
    ValueError
        Shapes of `given`; a bias that is not finite and nonnegative; overflow; errors of the quadrature and of square
        integrability.
    """
    layout = functions.layout
    if given is not None:
        shapes = np.shape(given.kernels), np.shape(given.means)
        wanted = (block.depth + 1, layout.inputs, layout.inputs), (block.depth + 1, functions.components)
        if shapes != wanted:
            raise ValueError(f"leading has kernels and means of shapes {shapes[0]}, {shapes[1]}, required {wanted[0]}, {wanted[1]}")
    kernel, source, rows = np.asarray(block.kernel, float), np.asarray(block.kernel, float), []
    for layer in range(block.depth + 1):
        if not np.isfinite(kernel).all() or np.abs(kernel).max() > 1e150:
            raise ValueError(f"the kernel at n = infinity overflows at layer {layer}; lower the depth, dt, c_w or the kernel")
        mean, response, curvature = _means(functions, kernel, layer)
        if given is not None:
            kernel, mean = np.asarray(given.kernels[layer], float), np.asarray(given.means[layer], float)
        factor = np.asarray(jax.jit(semidefinite_factor)(jnp.asarray(source[..., None], jnp.float64)))[..., 0]
        turn = _turn(factor, functions) * (layer > 0)
        drive, feedback, bend = _drive(block, functions, mean)
        rows.append((kernel, mean, response, curvature, block.dt * feedback, block.dt / 2 * bend, factor, turn))
        source = block.dt * drive
        kernel = block.alpha**2 * kernel + source
    return Leading(*(np.stack(column) for column in zip(*rows)))


def _means(functions: Functions, kernel: Array, layer: int) -> tuple[Array, Array, Array]:
    """E[f(phi_a) f(phi_b)] and its derivatives in K of all functions at one kernel."""
    a, b = functions.layout.pair
    columns = []
    for function in functions.activations:
        for variance in kernel.diagonal()[kernel.diagonal() > 0]:
            function.require_square_integrable(float(variance), f"layer {layer}")
        entries: tuple[Array, Array, Array] = (kernel[a, a], kernel[a, b], kernel[b, b])
        choice = choose_rule(function, kernel, _TOLERANCE, orders=_FIRST)
        table = moment_table(function, *entries, choice.rule, choice.derivatives, _FIRST)
        columns.append((table[0, 0], _first(functions, table), _second(functions, _fourth_moments(function, kernel, entries))))
    mean, response, curvature = zip(*columns)
    return np.concatenate(mean), np.concatenate(response), np.concatenate(curvature)


def _fourth_moments(function: Activation, kernel: Array, entries: tuple[Array, Array, Array]) -> Table:
    try:
        choice = choose_rule(function, kernel, _CURVATURE_TOLERANCE, orders=_SECOND)
    except QuadratureNotConverged as failure:
        choice = failure.choice
    table = moment_table(function, *entries, choice.rule, choice.derivatives, _SECOND)
    return {order: np.where(np.isfinite(values), values, 0.0) for order, values in table.items()}


def _places(functions: Functions) -> tuple[NDArray[np.intp], ...]:
    """Positions of the pairs (a, a), (a, b), (b, b) for each pair (a, b)."""
    a, b = functions.layout.pair
    diagonal = functions.pair_table.diagonal()
    return diagonal[a], np.arange(functions.layout.pairs), diagonal[b]


def _first(functions: Functions, table: Table) -> Array:
    """dE/dK_aa = E[d_a^2]/2, dE/dK_ab = E[d_a d_b]; for a = b the three add up to the derivative of E[f^2]."""
    matrix = np.zeros((functions.layout.pairs,) * 2)
    for place, values in zip(_places(functions), (table[2, 0] / 2, table[1, 1], table[0, 2] / 2)):
        np.add.at(matrix, (np.arange(len(matrix)), place), values)
    return matrix


def _second(functions: Functions, table: Table) -> Array:
    """Half the second derivatives on products of two components of K, packed with both orders added."""
    half = {(0, 0): table[4, 0] / 8, (0, 1): table[3, 1] / 2, (1, 1): table[2, 2] / 2}
    half |= {(0, 2): table[2, 2] / 4, (1, 2): table[1, 3] / 2, (2, 2): table[0, 4] / 8}
    places, quads = _places(functions), _pair_quads(functions)
    matrix = np.zeros((functions.layout.pairs, functions.layout.quads))
    for (i, j), values in half.items():
        np.add.at(matrix, (np.arange(len(matrix)), quads[places[i], places[j]]), values)
    return matrix


def _pair_quads(functions: Functions) -> NDArray[np.intp]:
    """Position of each product of two pairs, both orders."""
    first, second = functions.layout.quad
    table = np.zeros((functions.layout.pairs,) * 2, dtype=np.intp)
    table[first, second] = table[second, first] = np.arange(len(first))
    return table


def _turn(factor: Array, functions: Functions) -> Array:
    """dF for a unit change of each component of F F^T, with F^T dF symmetric as the alignment to F makes it."""
    values, vectors = np.linalg.eigh(factor.T @ factor)
    sums = values[:, None] + values[None]
    known = sums > 1e-12 * max(values.max(initial=0.0), np.finfo(float).tiny)
    rows = []
    for a, b in zip(*functions.layout.pair):
        change = np.zeros_like(factor)
        change[a, b] = change[b, a] = 1.0
        rotated = vectors.T @ factor.T @ change @ factor @ vectors
        symmetric = vectors @ np.where(known, rotated / np.where(known, sums, 1.0), 0.0) @ vectors.T
        rows.append(np.linalg.pinv(factor.T) @ symmetric)
    return np.stack(rows)


def _drive(block: LayeredBlock, functions: Functions, mean: Array) -> tuple[Array, Array, Array]:
    """Sigma, dSigma/dS and the second derivatives of the bias variance at given means of S."""
    pairs, diagonal = functions.layout.pairs, functions.pair_table.diagonal()
    of_branch = [mean[f * pairs : (f + 1) * pairs] for f in functions.branches]
    levels = [jnp.asarray(values[diagonal].mean(), jnp.float64) for values in of_branch]
    every: Any = tuple(range(len(levels)))
    variance = float(block.bias_variance(*levels))
    if not (math.isfinite(variance) and variance >= 0):
        raise ValueError(f"the bias variance is {variance} at S = {[float(v) for v in levels]}; it must be finite and not negative")
    slopes = jax.grad(block.bias_variance, argnums=every)(*levels)
    bend = np.asarray(jax.hessian(block.bias_variance, argnums=every)(*levels), float).reshape((len(levels),) * 2)
    feedback = np.zeros((pairs, functions.components))
    for function, c_w, slope in zip(functions.branches, block.weights, slopes):
        first = function * pairs
        feedback[:, first : first + pairs] += c_w * np.eye(pairs)
        feedback[:, first + diagonal] += float(slope) / functions.layout.inputs
    packed = np.full(pairs, variance) + np.sum([c * values for c, values in zip(block.weights, of_branch)], axis=0)
    return packed[functions.pair_table], feedback, bend
