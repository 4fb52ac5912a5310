"""Cumulants of one leg: the derivatives of E[f(phi_a) f(phi_b)] in the covariance, at every layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symtensor.activation import Activation
from symtensor.numerics.moments import moment_table
from symtensor.numerics.path.pairs import pair_list, pair_number
from symtensor.numerics.quadrature import QuadratureNotConverged, RuleChoice, choose_rule

__all__ = ["mean_derivatives"]

#: d/dK^{aa}, d/dK^{ab}, d/dK^{bb} of a function of (x_a, x_b) as (factor, (i, j)) with d_a^i d_b^j
_FIRST = ((0.5, (2, 0)), (1.0, (1, 1)), (0.5, (0, 2)))


def mean_derivatives(kernels: np.ndarray, functions: Sequence[Activation], order: int, tol: float) -> tuple[np.ndarray, float]:
    """The first or second derivatives of E[f(phi_a) f(phi_b)] in the independent components of K, at each layer.

    d/dK^{aa} = (1/2) E[d_a^2 .], d/dK^{ab} = E[d_a d_b .] for a < b (Price's theorem).  On singular pairs (equal or
    proportional inputs, zero input) component derivatives of a kinked function do not exist: what is returned is a
    representative that is right for variations of K within its range.

    Parameters
    ----------
    kernels
        (L+1, P, P).
    functions
        The functions f.
    order
        1 or 2.
    tol
        Relative to the largest entry of each moment table.

    Returns
    -------
    (values, error)
        (L+1, C, E) or (L+1, C, E, E), C = len(functions) * E, and the estimated absolute error of the worst entry.

    Raises
    ------
    QuadratureNotConverged, NotSquareIntegrableError, CovarianceError

    Examples
    --------
    >>> from symtensor.activation import activation
    >>> mean_derivatives(np.array([[[3.0]]]), [activation("identity")], 1, 1e-12)[0].ravel()
    array([1.])
    """
    layers, inputs = kernels.shape[:2]
    pairs = pair_list(inputs)
    size = len(pairs)
    values = np.zeros((layers, len(functions), size) + (size,) * order)
    error = 0.0
    orders = _orders(order)
    for r, function in enumerate(functions):
        choice = _choice(function, kernels, tol, orders)
        for e, (a, b) in enumerate(pairs):
            entries = kernels[:, a, a], kernels[:, a, b], kernels[:, b, b]
            table = moment_table(function, *entries, choice.rule, choice.derivatives, orders)
            _place(values[:, r, e], table, (a, b), pair_number(inputs), order)
        error = max(error, choice.error * float(np.abs(values[:, r]).max(initial=0.0)))
    return values.reshape((layers, len(functions) * size) + (size,) * order), error


def _orders(order: int) -> tuple[tuple[int, int], ...]:
    return tuple((i, 2 * order - i) for i in range(2 * order, -1, -1))


def _choice(function: Activation, kernels: np.ndarray, tol: float, orders: tuple[tuple[int, int], ...]) -> RuleChoice:
    try:
        return choose_rule(function, kernels, tol, orders=orders)
    except QuadratureNotConverged as failure:
        if function.smooth:
            raise
        # by parts, derivatives of a kinked function lose digits where the pair is nearly singular; the delta terms do not
        try:
            return choose_rule(function, kernels, tol, "weak", orders=orders)
        except QuadratureNotConverged:
            raise failure from None


def _place(target: np.ndarray, table: dict, pair: tuple[int, int], number: np.ndarray, order: int) -> None:
    """Sum the moments into the derivative components; for a = b the two slots of the function are one input."""
    a, b = pair
    slots = ((a, a), (a, b), (b, b))
    for (factor, (i, j)), slot in zip(_FIRST, slots):
        first = number[slot]
        # with a = b the components (aa), (ab), (bb) are one: d/dK = (1/2)(d_a + d_b)^2
        if order == 1:
            target[:, first] += factor * table[i, j]
            continue
        for (factor2, (i2, j2)), slot2 in zip(_FIRST, slots):
            target[:, first, number[slot2]] += factor * factor2 * table[i + i2, j + j2]
