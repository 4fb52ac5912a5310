"""Joint cumulants of one and two legs along one path, for any number of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from symtensor.activation import Activation
from symtensor.numerics.covariance import CovarianceError, require_covariance
from symtensor.numerics.path.equal_time import equal_time_covariances
from symtensor.numerics.path.equal_time_derivative import equal_time_derivatives
from symtensor.numerics.path.law import PathArray
from symtensor.numerics.path.one_time import mean_derivatives
from symtensor.numerics.path.pair_hermite import PairTable
from symtensor.numerics.path.pairs import pair_list
from symtensor.numerics.path.resolution import Resolution, choose_resolution
from symtensor.numerics.path.tails import tail_estimate
from symtensor.numerics.path.two_time import Expansion, columns_of, rows_of, two_time
from symtensor.numerics.refine import refine
from symtensor.numerics.rules import Rule

__all__ = ["PATTERNS", "PathNotConverged", "several_input_cumulants"]

#: patterns that are done for any number of inputs
PATTERNS = ((1,), (2,), (0, 0), (0, 1), (1, 0))
#: how often degrees and nodes are raised to reach a tolerance
_ROUNDS = 4


class Law(Protocol):
    """Kernels (L+1, P, P) and alpha."""

    @property
    def kernels(self) -> np.ndarray: ...

    @property
    def alpha(self) -> float: ...


class PathNotConverged(ValueError):
    """The tolerance was not reached; ``array`` holds the values with their achieved error."""

    def __init__(self, message: str, array: PathArray) -> None:
        super().__init__(message)
        self.array = array


def several_input_cumulants(
    law: Law,
    functions: Sequence[Activation],
    pattern: tuple[int, ...],
    *,
    tol: float = 1e-10,
    modes: Sequence[int] | None = None,
    later_only: bool = False,
    memory_mb: float = 2048.0,
) -> PathArray:
    """Cumulants of f(phi_a) f(phi_b) along one path and their derivatives in the covariances at the times of the legs.

    The component of function r and pair e = (a <= b) is c = r E + e, E = P (P + 1)/2.  Patterns:

    * ``(1,)``, ``(2,)``: dE[h_c]/dK^e and d^2 E[h_c]/dK^e dK^e' at each layer;
    * ``(0, 0)``: the covariances of h_c at l1 with h_c' at l2;
    * ``(0, 1)``: their derivatives in K at l2; where l1 < l2 the other variances and the covariance with l1 stay, where
      l1 > l2 the covariance alpha^{l1 - l2} K_{l2} moves too; 0 where l1 = l2 (counted on the first leg);
    * ``(1, 0)``: the mirror image, with the whole derivative where l1 = l2.

    On singular kernels (equal or proportional inputs, zero input) derivatives are a representative that is right for
    variations of K within its range; no other variation can happen in a network.

    Parameters
    ----------
    law
        Kernels (L+1, P, P) and alpha of the path: Cov(phi_s(a), phi_t(b)) = alpha^{t-s} K_s(a, b), s <= t.
    functions
        The functions f_r.
    pattern
        Number of derivatives at each leg.
    tol
        Error aimed at, relative to the largest entry.
    modes
        Keep only these total degrees of the two-time expansion, at equal times too (two legs only).
    later_only
        For ``(0, 1)``: only l1 < l2, the rest 0.
    memory_mb
        Refuse to hold more than this.

    Returns
    -------
    PathArray
        values of shape (L+1, C) * legs + (E,) * derivatives.

    Raises
    ------
    PathNotConverged
        The error is above ``tol``; the achieved values are in ``.array``.
    CovarianceError, NotSquareIntegrableError, QuadratureNotConverged
        The law is not one, or an expectation does not exist.
    ValueError
        A pattern that is not done for several inputs, or more memory than allowed.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from symtensor.activation import activation
    >>> law = SimpleNamespace(kernels=np.array([[[1.0]], [[1.5]]]), alpha=1.0)
    >>> several_input_cumulants(law, [activation("identity")], (0, 0)).values[:, 0, :, 0].round(12)
    array([[2. , 2. ],
           [2. , 4.5]])
    """
    kernels = _checked(law.kernels, functions)
    if tuple(pattern) not in PATTERNS:
        raise ValueError(f"pattern {tuple(pattern)} is not done for several inputs; done are {', '.join(map(str, PATTERNS))}")
    if not law.alpha >= 0:
        raise ValueError(f"alpha is {law.alpha}; required: not negative (ResNet 1, MLP 0, leaky between them)")
    if len(pattern) == 1:
        if modes is not None:
            raise ValueError(f"modes {list(modes)} select terms of a two-time expansion; pattern {tuple(pattern)} has one leg")
        return PathArray(*mean_derivatives(kernels, functions, pattern[0], tol))
    request = _Request(kernels, float(law.alpha), tuple(functions), tol, None if modes is None else frozenset(modes))
    request.require_memory(sum(pattern), memory_mb)
    # the matrices are many and small: one thread each, the threads are for pairs of inputs
    with threadpool_limits(1, "blas"):
        array = request.reached(tuple(pattern), later_only)
    scale = float(np.abs(array.values).max(initial=0.0))
    if array.error > tol * scale:
        raise PathNotConverged(
            f"pattern {tuple(pattern)} of {', '.join(f.name for f in functions)} was computed to {array.error:.2g} "
            f"(largest entry {scale:.3g}), not to {tol:.2g} relative; accept that by a larger tolerance, or take larger steps: "
            "adjacent layers that are almost equal need the most modes, the more so at a kink",
            array,
        )
    return array


def _checked(kernels: np.ndarray, functions: Sequence[Activation]) -> np.ndarray:
    stack = np.asarray(kernels, dtype=float)
    if stack.ndim != 3 or stack.shape[1] != stack.shape[2] or not stack.size:
        raise CovarianceError(f"kernels of shape {stack.shape}; required (L+1, P, P)")
    if not functions:
        raise ValueError("no functions are given; at least one is needed")
    for layer, kernel in enumerate(stack):
        require_covariance(kernel, f"the kernel of layer {layer}")
        for function in functions:
            # the components are products of two, and their covariances need the square of those
            function.require_square_integrable(2 * float(np.diagonal(kernel).max()), f"squared, layer {layer}")
    return stack


@dataclass(frozen=True, slots=True)
class _Request:
    kernels: np.ndarray
    alpha: float
    functions: tuple[Activation, ...]
    tol: float
    modes: frozenset[int] | None

    @property
    def shape(self) -> tuple[int, ...]:
        """(L+1, R, E) twice."""
        leg = (len(self.kernels), len(self.functions), len(pair_list(self.kernels.shape[1])))
        return leg * 2

    def require_memory(self, derivatives: int, memory_mb: float) -> None:
        """Refuse a result larger than allowed."""
        need = 8e-6 * float(np.prod(self.shape)) * self.shape[2] ** derivatives
        if need > memory_mb:
            raise ValueError(
                f"the array takes {need:.0f} MB, memory_mb is {memory_mb:.0f}: {self.shape[0]} layers, {self.shape[1]} functions, "
                f"{self.shape[2]} pairs; raise memory_mb, or take fewer layers or inputs"
            )

    def reached(self, pattern: tuple[int, ...], later_only: bool) -> PathArray:
        """The array, with more degrees and nodes as long as these are missing and there are some left."""
        derivative, aim = sum(pattern) > 0, self.tol
        modes = None if self.modes is None else sorted(self.modes)
        before = None
        array = PathArray(np.zeros(0), np.inf)
        for _ in range(_ROUNDS):
            resolution = choose_resolution(self.kernels, self.alpha, self.functions, derivative, aim, modes)
            if before is not None and resolution.gains_nothing(before):
                break
            before = resolution
            if derivative:
                array = self.derivatives(resolution, pattern == (1, 0), later_only)
            else:
                array = self.covariances(resolution)
            wanted = self.tol * float(np.abs(array.values).max(initial=0.0))
            if array.error <= wanted or not wanted:
                break
            aim *= 0.1 * wanted / array.error
        return array

    def covariances(self, resolution: Resolution) -> PathArray:
        """Pattern (0, 0)."""
        tables = self._tables(resolution)
        values = np.zeros(self.shape)
        expansion = self._expansion(tables, "none")
        error = two_time(expansion, values)
        _mirror(values)
        error = max(error, self._equal_times(expansion, resolution, values))
        error += resolution.error * float(np.abs(values).max(initial=0.0))
        return self._array(values, error)

    def derivatives(self, resolution: Resolution, swapped: bool, later_only: bool) -> PathArray:
        """Patterns (0, 1) and (1, 0)."""
        tables = self._tables(resolution)
        size = self.shape[2]
        values = np.zeros((*self.shape, size))
        expansion = self._expansion(tables, "later")
        error = two_time(expansion, values)
        if not later_only:
            earlier = np.zeros_like(values)
            error = max(error, two_time(self._expansion(tables, "earlier"), earlier))
            values += np.transpose(earlier, (3, 4, 5, 0, 1, 2, 6))
        if swapped:
            values = np.ascontiguousarray(np.transpose(values, (3, 4, 5, 0, 1, 2, 6)))
            error = max(error, self._equal_time_derivatives(tables, resolution, values))
        error += resolution.error * float(np.abs(values).max(initial=0.0))
        return self._array(values, error)

    def _tables(self, resolution: Resolution) -> list[PairTable]:
        return [resolution.table(self.kernels, pair, self.functions) for pair in pair_list(self.kernels.shape[1])]

    def _expansion(self, tables: list[PairTable], derivative: str) -> Expansion:
        # hundreds of degrees together may drop no more than a hundredth of the tolerance
        return Expansion(tables, self.kernels, self.alpha, derivative, self.modes, max(1e-18, 1e-5 * self.tol))

    def _equal_times(self, expansion: Expansion, resolution: Resolution, values: np.ndarray) -> float:
        """Fill the diagonal k = t: exactly, or from the modes that are kept."""
        layers, _, size = self.shape[:3]
        if self.modes is not None:
            for layer in range(layers):
                for ab in range(size):
                    for cd in range(size):
                        values[layer, :, ab, layer, :, cd] = _from_modes(expansion, layer, ab, cd)
            return 0.0
        rule, error = self._equal_rule(resolution)
        scale = 0.0
        for layer, kernel in enumerate(self.kernels):
            found, uncertainty = equal_time_covariances(
                kernel, self.functions, rule, 0.1 * self.tol, lambda ab, cd, k=layer: _from_modes(expansion, k, ab, cd)
            )
            values[layer, :, :, layer] = found
            scale = max(scale, float(np.abs(found).max()))
            error = max(error, uncertainty / scale if scale else 0.0)
        return error * scale

    def _equal_time_derivatives(self, tables: list[PairTable], resolution: Resolution, values: np.ndarray) -> float:
        """The whole derivative where both legs are at one layer."""
        layers, _, size = self.shape[:3]
        early, late = self._expansion(tables, "earlier"), self._expansion(tables, "later")
        tail = 0.0

        def expanded(layer: int, ab: int, cd: int) -> np.ndarray:
            nonlocal tail
            found, left_out = _derivative_from_modes(early, late, layer, ab, cd)
            tail = max(tail, left_out)
            return found

        if self.modes is not None:
            for layer in range(layers):
                for ab in range(size):
                    for cd in range(size):
                        values[layer, :, ab, layer, :, cd] = expanded(layer, ab, cd)
            return 0.0
        rule, error = self._equal_rule(resolution)
        for layer, kernel in enumerate(self.kernels):
            at = partial(expanded, layer)
            found, uncertainty = equal_time_derivatives(kernel, self.functions, rule, 0.1 * self.tol, at)
            values[layer, :, :, layer] = found
            tail = max(tail, uncertainty)
        return tail + error * float(np.abs(values).max(initial=0.0))

    def _equal_rule(self, resolution: Resolution) -> tuple[Rule, float]:
        """Nodes for products of four functions, refined until the covariances stop moving at a few layers."""
        kind = "trapezoid" if all(function.smooth for function in self.functions) else "split"
        layers = sorted({0, len(self.kernels) // 2, len(self.kernels) - 1})
        found: dict[Rule, list[np.ndarray]] = {}
        nothing = np.zeros((len(self.functions),) * 2)

        def values(rule: Rule) -> list[np.ndarray]:
            if rule not in found:
                with np.errstate(over="ignore", invalid="ignore"):
                    found[rule] = [
                        equal_time_covariances(self.kernels[k], self.functions, rule, 0.1 * self.tol, lambda ab, cd: nothing)[0]
                        for k in layers
                    ]
            return found[rule]

        def difference(rule: Rule, finer: Rule) -> float:
            worst = 0.0
            for first, second in zip(values(rule), values(finer)):
                size = float(np.abs(second).max())
                worst = max(worst, float(np.nan_to_num(np.abs(first - second).max() / size if size else 0.0, nan=np.inf)))
            return worst

        return refine(kind, difference, 0.1 * self.tol)

    def _array(self, values: np.ndarray, error: float) -> PathArray:
        layers, count, size = self.shape[:3]
        shape = (layers, count * size) * 2 + values.shape[6:]
        return PathArray(values.reshape(shape), float(error))


def _mirror(values: np.ndarray) -> None:
    """Fill l1 > l2 from l1 < l2, a layer at a time."""
    for layer in range(1, len(values)):
        values[layer, :, :, :layer] = np.transpose(values[:layer, :, :, layer], (3, 4, 0, 1, 2))


def _from_modes(expansion: Expansion, layer: int, ab: int, cd: int) -> np.ndarray:
    """(R, R) covariances at one layer from the expansion."""
    rows, table = rows_of(expansion, layer, ab, cd)[0][:, 0], expansion.tables[cd]
    total = np.zeros((len(rows), len(rows)))
    for n in expansion.kept(table.degree):
        total += rows[:, table.block(n)] @ table.coefficients[layer][:, table.block(n)].T
    return total


def _derivative_from_modes(early: Expansion, late: Expansion, layer: int, ab: int, cd: int) -> tuple[np.ndarray, float]:
    """(R, R, E) derivatives of covariances at one layer from the expansion, and the estimated tail."""
    table = early.tables[cd]
    rows, row_places = rows_of(early, layer, ab, cd)
    plain, _ = rows_of(late, layer, ab, cd)
    columns, places = columns_of(late, cd, layer)
    count = len(plain)
    total = np.zeros((count, count, len(early.tables)))
    terms = np.zeros(table.degree + 1)
    for n in early.kept(table.degree):
        block = table.block(n)
        moving = np.einsum("rei,si->rse", rows[..., block], table.coefficients[layer][:, block])
        following = np.einsum("ri,sei->rse", plain[:, 0, block], columns[0][..., block])
        for found, where in ((moving, row_places), (following, places)):
            for position, e in enumerate(where or []):
                total[..., e] += found[..., position]
            terms[n] += float(np.abs(found).max(initial=0.0))
    return total, tail_estimate(terms) if early.modes is None else 0.0
