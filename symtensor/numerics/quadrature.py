"""The quadrature rule is chosen by its own error: refine until the moments stop moving, at the kernels it is for.

Errors are relative to the scale of each table: the largest |m_ij| over the pairs of one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from symtensor.activation import Activation
from symtensor.expansion.gaussian import closed_form
from symtensor.numerics.covariance import CovarianceError
from symtensor.numerics.moments import ORDERS, Table, moment_table, on_range, resolve_derivatives
from symtensor.numerics.refine import ROUNDING, refine, resolving_rule
from symtensor.numerics.rules import CLOSED, Derivatives, Rule, RuleError, nodes_weights, parse_rule
from symtensor.numerics.split import outer_panels

__all__ = [
    "QuadratureNotConverged",
    "Rule",
    "RuleChoice",
    "RuleError",
    "choose_rule",
    "moment_table",
    "nodes_weights",
    "parse_rule",
    "rule_error",
]

#: kernels and inputs looked at in the search and in the final check
_SEARCH, _CHECK, _INPUTS = 3, 16, 6


class QuadratureNotConverged(ValueError):
    """The tolerance was not reached; ``choice`` is the best rule found, with its achieved error."""

    def __init__(self, message: str, choice: RuleChoice, tol: float) -> None:
        super().__init__(message)
        self.choice = choice
        self.tol = tol

    @property
    def error(self) -> float:
        """Achieved error, relative to the scale of each table."""
        return self.choice.error


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """A rule, how derivatives are taken with it, and its estimated error (largest over the moments, relative)."""

    rule: Rule
    derivatives: Derivatives
    error: float

    def __str__(self) -> str:
        mode = "" if self.rule == CLOSED else f", derivatives {self.derivatives}"
        return f"{self.rule}{mode} (error {self.error:.1e})"


def choose_rule(
    activation: Activation,
    kernels: np.ndarray,
    tol: float = 1e-10,
    derivatives: Derivatives = "auto",
    orders: tuple[tuple[int, int], ...] = ORDERS,
) -> RuleChoice:
    """The cheapest rule that gives every moment m_ij at all the given kernels to a relative tolerance.

    Parameters
    ----------
    activation
        The function.
    kernels
        (m, P, P) or (P, P): covariances among P inputs.  The search looks at the extreme ones, the final check at about
        16 of them and 6 inputs of each, chosen by variance and correlation.
    tol
        Relative to the largest entry of each table, per kernel.
    derivatives
        ``auto``: closed form if there is one, else inside the expectation with the trapezoid for a smooth function and
        by parts (``hermite``) with split panels for a kinked one.
    orders
        Moments that must converge.

    Raises
    ------
    QuadratureNotConverged
        With the achieved error, when no rule of the family reaches ``tol``.
    NotSquareIntegrableError
        When E sigma^2 is infinite at one of the kernels.

    Examples
    --------
    >>> from symtensor.activation import activation
    >>> choice = choose_rule(activation("tanh"), np.array([[[2.0]]]))
    >>> choice.rule.kind, choice.derivatives, choice.error < 1e-10
    ('trapezoid', 'inside', True)
    """
    if not tol > 0:
        raise ValueError(f"the tolerance is {tol}; it is a positive number, relative to the size of each moment")
    stack = _stacked(activation, kernels)
    if _verified(activation):
        return RuleChoice(CLOSED, "inside" if activation.smooth else "hermite", ROUNDING)
    mode = derivatives if derivatives != "auto" else ("inside" if activation.smooth else "hermite")
    search, check = _Probe.of(activation, stack, _SEARCH, orders), _Probe.of(activation, stack, _CHECK, orders)
    rule, error = refine(
        "trapezoid" if activation.smooth else "split",
        search.comparison(mode),
        tol,
        check.comparison(mode),
    )
    missed = check.unresolved(rule) if error <= tol else 0.0
    if missed > max(tol, 10 * error):
        raise QuadratureNotConverged(
            f"{activation.name!r} has features finer than {rule} resolves: a grid without gaps differs by {missed:.2g} in "
            "E sigma^2; widen the narrow features of the activation",
            RuleChoice(rule, mode, missed),
            tol,
        )
    best = RuleChoice(rule, mode, error)
    if best.error <= tol:
        return best
    raise QuadratureNotConverged(
        f"the Gaussian moments of {activation.name!r} (derivatives {mode}) were computed to {best.error:.2g} relative, "
        f"not to {tol:.2g}, with {best.rule}; accept that error by a larger tolerance, "
        + ("or write out the delta terms (derivatives='weak')" if mode == "hermite" else "or use smaller variances"),
        best,
        tol,
    )


def rule_error(
    activation: Activation,
    kernels: np.ndarray,
    rule: Rule,
    derivatives: Derivatives = "auto",
    orders: tuple[tuple[int, int], ...] = ORDERS,
) -> float:
    """Error of a forced rule against the closed form or a converged rule (or the best one there is).

    Singular pairs, the diagonal included, are compared in the range of the covariance, where alone derivatives matter.

    Returns
    -------
    float
        Largest over the moments, relative to the scale of each table.
    """
    stack = _stacked(activation, kernels)
    try:
        reference = choose_rule(activation, stack, 1e-11, orders=orders)
    except QuadratureNotConverged as failure:
        reference = failure.choice
    probe = _Probe.of(activation, stack, _CHECK, ORDERS)
    mode = resolve_derivatives(activation, rule, derivatives)
    forced = probe.table(rule, mode, comparable=True)
    exact = probe.table(reference.rule, reference.derivatives, comparable=True)
    return max(probe.distance({o: forced[o] for o in orders}, exact, mode), 0.0)


def _stacked(activation: Activation, kernels: np.ndarray) -> np.ndarray:
    stack = np.asarray(kernels, dtype=float)
    stack = stack[None] if stack.ndim == 2 else stack
    if stack.ndim != 3 or stack.shape[1] != stack.shape[2] or stack.size == 0:
        raise CovarianceError(f"kernels of shape {np.shape(kernels)}; required (P, P) or (layers, P, P)")
    if not np.isfinite(stack).all():
        raise CovarianceError("a kernel has NaN or infinite entries")
    for layer, kernel in enumerate(stack):
        activation.require_square_integrable(float(np.diagonal(kernel).max()), f"kernel {layer}")
    return stack


@lru_cache(maxsize=256)
def _verified(activation: Activation) -> bool:
    """True if there is a closed form; it is compared with quadrature once before it is ever used."""
    form = closed_form(activation)
    if form is None:
        return False
    scale = min(0.7, 0.3 * float(activation.critical_variance))
    pair = (scale, 0.4 * scale, 0.8 * scale)
    rule = Rule("trapezoid", 241, 12.0) if activation.smooth else Rule("split", 16)
    closed = moment_table(activation, *pair, CLOSED, orders=((0, 0), (1, 1)))
    direct = moment_table(activation, *pair, rule, "hermite", ((0, 0), (1, 1)))
    size = np.sqrt(np.prod([moment_table(activation, k, k, k, rule, "hermite", ((0, 0),))[0, 0] for k in pair[::2]]))
    if not all(np.abs(closed[o] - direct[o]) <= 1e-8 * (np.abs(closed[o]) + size) for o in closed):
        raise ArithmeticError(f"the closed form of {activation.name!r} disagrees with quadrature: {closed} and {direct}")
    return True


@dataclass(frozen=True, slots=True)
class _Probe:
    """Pairs of a few representative kernels, and which kernel each belongs to."""

    activation: Activation
    k11: np.ndarray
    k12: np.ndarray
    k22: np.ndarray
    kernel: np.ndarray
    orders: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, activation: Activation, stack: np.ndarray, count: int, orders: tuple[tuple[int, int], ...]) -> _Probe:
        rows = []
        for index in _representative_kernels(stack, count):
            kernel = stack[index]
            inputs = _representative_inputs(kernel)
            rows += [(kernel[a, a], kernel[a, b], kernel[b, b], index) for i, a in enumerate(inputs) for b in inputs[i:]]
        columns = np.array(rows).T
        return cls(activation, columns[0], columns[1], columns[2], columns[3].astype(int), orders)

    def table(self, rule: Rule, mode: Derivatives, comparable: bool = False) -> Table:
        with np.errstate(over="ignore", invalid="ignore"):
            table = moment_table(self.activation, self.k11, self.k12, self.k22, rule, mode, self.orders)
            return on_range(table, self.k11, self.k12, self.k22) if comparable else table

    def comparison(self, mode: Derivatives) -> Callable[[Rule, Rule], float]:
        """Relative difference of two rules; tables are kept while the refinement comes back to them."""
        table = lru_cache(maxsize=4)(lambda rule: self.table(rule, mode))
        return lambda rule, finer: self.distance(table(rule), table(finer), mode)

    def unresolved(self, rule: Rule) -> float:
        """Relative difference of E sigma^2 by `rule` and by a grid so fine that no feature falls between its nodes."""
        deviations = np.sqrt(np.unique(np.concatenate([self.k11, self.k22])))
        sigma = self.activation.numpy_function()

        def moments(nodes_of: Rule) -> np.ndarray:
            kinks = np.array([float(kink) for kink in self.activation.kinks])
            values = []
            for deviation in deviations:
                split = nodes_of.kind == "split"
                z, w = outer_panels(nodes_of, (kinks, deviation, 0.0)) if split else nodes_weights(nodes_of)
                with np.errstate(over="ignore", invalid="ignore"):
                    values.append(float(np.sum(w * sigma(deviation * z) ** 2)))
            return np.array(values)

        exact = moments(resolving_rule(rule))
        gap = np.abs(moments(rule) - exact) / np.where(exact > 0, exact, 1.0)
        return float(np.nan_to_num(gap, nan=np.inf).max())

    def distance(self, table: Table, reference: Table, mode: Derivatives) -> float:
        worst = 0.0
        natural = self._by_kernel(np.abs(reference[0, 0])) if (0, 0) in reference else 0.0
        size = self._by_kernel(np.maximum(self.k11, self.k22))
        for (i, j), values in table.items():
            exact = reference[i, j]
            mirrored = reference.get((j, i), exact)
            scale = self._by_kernel(np.maximum(np.abs(exact), np.abs(mirrored)))
            if mode != "inside":
                # by parts, a table that vanishes identically is rounding noise of the size sigma^2 / k^((i+j)/2)
                power = (i + j) // 2
                floor = natural / np.where(size > 0, size, 1.0) ** power
                scale = np.maximum(scale, 1e-5 * floor)
            gap = np.abs(values - exact)
            relative = np.divide(gap, scale, out=np.where(gap > 0, np.inf, 0.0), where=scale > 1e-250)
            worst = max(worst, float(np.nan_to_num(relative, nan=np.inf).max()))
        return worst

    def _by_kernel(self, values: np.ndarray) -> np.ndarray:
        largest = np.zeros(int(self.kernel.max()) + 1)
        np.maximum.at(largest, self.kernel, values)
        return largest[self.kernel]


def _representative_kernels(stack: np.ndarray, count: int) -> list[int]:
    """The extreme kernels (largest and smallest variance, strongest correlation) and an even selection between."""
    variance = np.diagonal(stack, axis1=1, axis2=2)
    chosen = {int(variance.max(axis=1).argmax()), int(variance.min(axis=1).argmin())}
    if stack.shape[1] > 1:
        chosen.add(int(_correlation(stack).max(axis=(1, 2)).argmax()))
    order = np.argsort(variance.max(axis=1), kind="stable")
    chosen.update(int(order[k]) for k in np.linspace(0, len(stack) - 1, min(count, len(stack))).astype(int))
    return sorted(chosen)


def _representative_inputs(kernel: np.ndarray) -> list[int]:
    if len(kernel) <= _INPUTS:
        return list(range(len(kernel)))
    order = np.argsort(np.diagonal(kernel), kind="stable")
    chosen = {int(order[k]) for k in np.linspace(0, len(kernel) - 1, _INPUTS - 2).astype(int)}
    chosen.update(int(index) for index in np.unravel_index(_correlation(kernel[None])[0].argmax(), kernel.shape))
    return sorted(chosen)


def _correlation(stack: np.ndarray) -> np.ndarray:
    """|correlation| of different inputs below the singular value 1, diagonal 0."""
    deviation = np.sqrt(np.diagonal(stack, axis1=1, axis2=2))
    product = deviation[:, :, None] * deviation[:, None, :]
    correlation = np.abs(np.divide(stack, product, out=np.zeros_like(stack), where=product > 0))
    correlation[:, np.arange(stack.shape[1]), np.arange(stack.shape[1])] = 0
    return np.where(correlation < 1 - 1e-13, correlation, 0)
