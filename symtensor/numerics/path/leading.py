"""Order n^0 of a layered network: the recursion of the kernel K_0, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from symtensor.activation import Activation
from symtensor.numerics.covariance import CovarianceError, require_covariance
from symtensor.numerics.moments import moment_table
from symtensor.numerics.path.pairs import pair_list
from symtensor.numerics.quadrature import Rule, choose_rule

__all__ = ["KernelOverflowError", "Leading", "leading_order"]

#: variance at which squares of means stop being finite
_LARGEST = 1e75
_ROUNDS = 6
_MEAN = ((0, 0),)


class KernelOverflowError(ValueError):
    """The kernel grows beyond what floating point holds; the message names the layer."""


@dataclass(frozen=True, slots=True)
class Leading:
    """Order n^0 at every layer.

    Attributes
    ----------
    kernels
        (L+1, P, P), K_0.
    means
        (L+1, C), E[f_r(phi_a) f_r(phi_b)] at component c = r E + e, e = (a <= b).
    error
        Estimated absolute error of the worst entry of either: quadrature, carried through the recursion.
    """

    kernels: np.ndarray
    means: np.ndarray
    error: float


def leading_order(
    functions: Sequence[Activation],
    n_branches: int,
    drive: Callable[[np.ndarray], np.ndarray],
    alpha: float,
    dt: float,
    depth: int,
    kernel: np.ndarray,
    tol: float = 1e-12,
) -> Leading:
    """K_{l+1} = alpha^2 K_l + dt Sigma(S_l), S_l = E_{N(0, K_l)}[f(phi_a) f(phi_b)]: exact as n -> infinity.

    Parameters
    ----------
    functions
        The branches first, then the observables.
    n_branches
        How many of them feed forward.
    drive
        Sigma: the means of the branches, shape (n_branches * E,), to the (P, P) covariance of the increment.
    alpha, dt, depth
        Of the network; layers 0..depth.
    kernel
        (P, P), K at layer 0; singular is fine.
    tol
        Relative error aimed at in the moments.

    Raises
    ------
    KernelOverflowError
        K or a mean is not finite; the layer is named.
    NotSquareIntegrableError
        A function has no second moment; layer and variance are named.
    QuadratureNotConverged
        The quadrature does not reach ``tol``.

    Examples
    --------
    >>> from symtensor.activation import activation
    >>> result = leading_order([activation("identity")], 1, lambda s: s.reshape(1, 1), 1.0, 0.5, 2, np.array([[1.0]]))
    >>> result.kernels.ravel()
    array([1.  , 1.5 , 2.25])
    """
    start = require_covariance(kernel, "the kernel of layer 0")
    if depth < 0 or depth != int(depth):
        raise ValueError(f"depth is {depth}; it is the number of blocks, an integer that is not negative")
    recursion = _Recursion(tuple(functions), n_branches, drive, alpha, dt, depth, start)
    rules = recursion.rules(start[None], tol)
    kernels, means = recursion.run(rules)
    for _ in range(_ROUNDS):
        # the rule is chosen at the kernels that it is used at, and these depend on it (by less than its error)
        chosen = recursion.rules(kernels, tol)
        if chosen == rules:
            break
        rules = chosen
        kernels, means = recursion.run(rules)
    finer = recursion.run([_finer(rule) for rule in rules])
    scale = max(float(np.abs(kernels).max()), float(np.abs(means).max(initial=0.0)))
    gap = max(float(np.abs(kernels - finer[0]).max()), float(np.abs(means - finer[1]).max(initial=0.0)))
    return Leading(kernels, means, gap + 1e-15 * scale)


def _finer(rule: Rule) -> Rule:
    if rule.kind == "closed":
        return rule
    if rule.kind == "trapezoid":
        radius = rule.radius + 2.0
        return Rule("trapezoid", 2 * int(0.75 * (rule.n - 1) * radius / rule.radius) + 1, radius)
    return Rule(rule.kind, int(1.5 * rule.n) + 1, rule.radius + 2.0)


@dataclass(frozen=True, slots=True)
class _Recursion:
    functions: tuple[Activation, ...]
    n_branches: int
    drive: Callable[[np.ndarray], np.ndarray]
    alpha: float
    dt: float
    depth: int
    start: np.ndarray

    def rules(self, kernels: np.ndarray, tol: float) -> list[Rule]:
        rules = []
        for function in self.functions:
            for layer, kernel in enumerate(kernels):
                self._require_integrable(function, kernel, layer)
            rules.append(choose_rule(function, kernels, tol, orders=_MEAN).rule)
        return rules

    def run(self, rules: Sequence[Rule]) -> tuple[np.ndarray, np.ndarray]:
        pairs = pair_list(len(self.start))
        rows, columns = np.array(pairs).T
        kernels = np.empty((self.depth + 1, *self.start.shape))
        means = np.empty((self.depth + 1, len(self.functions) * len(pairs)))
        kernels[0] = self.start
        for layer in range(self.depth + 1):
            kernel = kernels[layer]
            entries = kernel[rows, rows], kernel[rows, columns], kernel[columns, columns]
            for r, (function, rule) in enumerate(zip(self.functions, rules)):
                self._require_integrable(function, kernel, layer)
                means[layer, r * len(pairs) : (r + 1) * len(pairs)] = self._moments(function, entries, rule, layer)
            if layer < self.depth:
                kernels[layer + 1] = self._next(kernel, means[layer], layer)
        return kernels, means

    def _moments(
        self, function: Activation, entries: tuple[np.ndarray, np.ndarray, np.ndarray], rule: Rule, layer: int
    ) -> np.ndarray:
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                values = moment_table(function, *entries, rule, "inside", _MEAN)[0, 0]
        except CovarianceError as error:
            raise CovarianceError(f"layer {layer}: {error}") from None
        if not np.isfinite(values).all() or np.abs(values).max() > _LARGEST**2:
            raise KernelOverflowError(
                f"E[f f] of {function.name!r} overflows at layer {layer}, where the largest variance is "
                f"{float(entries[0].max()):.6g}; reduce the depth, C_W or the kernel of layer 0"
            )
        return values

    def _next(self, kernel: np.ndarray, means: np.ndarray, layer: int) -> np.ndarray:
        pairs = len(self.start) * (len(self.start) + 1) // 2
        increment = np.asarray(self.drive(means[: self.n_branches * pairs]), dtype=float)
        if increment.shape != kernel.shape:
            raise ValueError(
                f"the drive returned shape {increment.shape}; required: {kernel.shape}, the covariance of the increment"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            following = self.alpha**2 * kernel + self.dt * increment
        if not np.isfinite(following).all() or np.abs(following).max() > _LARGEST:
            raise KernelOverflowError(
                f"the kernel overflows at layer {layer + 1} (it is {float(np.abs(kernel).max()):.6g} at layer {layer}); "
                "reduce the depth, C_W or the kernel of layer 0"
            )
        return (following + following.T) / 2

    def _require_integrable(self, function: Activation, kernel: np.ndarray, layer: int) -> None:
        function.require_square_integrable(float(np.diagonal(kernel).max()), f"layer {layer}")
