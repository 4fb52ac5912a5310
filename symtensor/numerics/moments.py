"""Weak Gaussian moments of an activation, in NumPy: m_ij = E[d_x^i d_y^j sigma(x) sigma(y)] for a batch of pairs.

The pair is whitened by its Cholesky factor, ``x = l11 z1``, ``y = l21 z1 + l22 z2``; sums over z2 come first, because x
does not depend on it.  Four ways to a derivative:

* inside: ``E[sigma^(i)(x) sigma^(j)(y)]``; smooth functions, any covariance;
* hermite: by parts, ``E[d_1^p d_2^q g] = E[g He_p(z1) He_q(z2)]``, with d_x = r11 d_1 + s d_2 and d_y = r22 d_2;
* weak: inside, plus the delta terms of a kinked function; regular pairs, however close to singular;
* closed: the closed form differentiated by Price's theorem.

On a singular pair (``det <= 500 eps k11 k22``), unless derivatives are taken inside, component derivatives do not
exist; a representative that is right for fluctuations in the range of the covariance is returned instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from math import comb

import numpy as np
import sympy as sp

from symtensor.activation import Activation
from symtensor.expansion.gaussian import K11, K12, K22, ClosedForm, closed_form
from symtensor.numerics.covariance import CovarianceError, cholesky_pair
from symtensor.numerics.rules import Derivatives, Rule, nodes_weights
from symtensor.numerics.split import inner_panels, outer_panels
from symtensor.numerics.weak import delta_terms

__all__ = ["ORDERS", "SINGULAR", "Table", "moment_table", "resolve_derivatives"]

#: orders (i, j) of the moments that enter the first two derivatives in the covariance
ORDERS = ((0, 0), (2, 0), (1, 1), (0, 2), (4, 0), (3, 1), (2, 2), (1, 3), (0, 4))
#: det <= SINGULAR * k11 * k22 counts as singular
SINGULAR = 500 * float(np.finfo(float).eps)
_CHUNK = 2_000_000

Order = tuple[int, int]
Table = dict[Order, np.ndarray]


def moment_table(
    activation: Activation,
    k11: np.ndarray | float,
    k12: np.ndarray | float,
    k22: np.ndarray | float,
    rule: Rule,
    derivatives: Derivatives = "auto",
    orders: Iterable[Order] = ORDERS,
) -> Table:
    """Weak moments m_ij of a batch of pairs, by one quadrature rule (no error control: see ``choose_rule``).

    Parameters
    ----------
    k11, k12, k22
        Covariance entries of the pairs (x, y); broadcast against each other.
    rule
        Any :class:`~symtensor.numerics.rules.Rule`; ``closed`` needs a closed form.
    derivatives
        ``inside``, ``hermite``, ``weak`` or ``auto`` (see :data:`~symtensor.numerics.rules.Derivatives`).
    orders
        The (i, j) wanted, i + j even and at most 4.

    Returns
    -------
    dict
        (i, j) -> array of the broadcast shape.

    Raises
    ------
    CovarianceError
        NaN, negative variance, or |k12| beyond sqrt(k11 k22).
    KinkedDerivativeError
        ``inside`` for a derivative that has delta terms.

    Examples
    --------
    >>> from symtensor.activation import activation
    >>> table = moment_table(activation("relu"), 1.0, 0.0, 1.0, Rule("closed"))
    >>> bool(np.isclose(table[2, 2], 1 / (2 * np.pi)))
    True
    """
    wanted = tuple(dict.fromkeys(orders))
    for i, j in wanted:
        if i < 0 or j < 0 or (i + j) % 2 or i + j > 4:
            raise ValueError(f"moment order ({i}, {j}): i + j is 0, 2 or 4")
    a, c, b = (np.ravel(entry) for entry in np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in (k11, k12, k22))))
    shape = np.broadcast_shapes(np.shape(k11), np.shape(k12), np.shape(k22))
    c = _checked(a, c, b)
    mode = resolve_derivatives(activation, rule, derivatives)
    if rule.kind == "closed":
        table = _closed_table(activation, a, c, b, wanted)
    elif mode == "inside":
        table = _inside_table(activation, a, c, b, rule, wanted)
    else:
        table = _regular_or_singular(activation, a, c, b, rule, wanted, _weak_regular if mode == "weak" else _hermite_regular)
    return {order: values.reshape(shape) for order, values in table.items()}


def resolve_derivatives(activation: Activation, rule: Rule, derivatives: Derivatives) -> Derivatives:
    """What "auto" means: inside for a smooth function with the trapezoid, hermite otherwise."""
    if derivatives != "auto":
        return derivatives
    return "inside" if activation.smooth and rule.kind == "trapezoid" else "hermite"


def _checked(k11: np.ndarray, k12: np.ndarray, k22: np.ndarray) -> np.ndarray:
    if not (np.isfinite(k11).all() and np.isfinite(k12).all() and np.isfinite(k22).all()):
        raise CovarianceError("a covariance entry is NaN or infinite; every entry is a finite number")
    lowest = min(k11.min(initial=0), k22.min(initial=0))
    if lowest < 0:
        raise CovarianceError(f"a variance is {lowest:.6g}; variances are not negative")
    bound = np.sqrt(k11 * k22)
    excess = np.abs(k12) - bound
    if (excess > 1e-9 * bound + 1e-300).any():
        worst = int(np.argmax(excess))
        raise CovarianceError(
            f"the covariance {k12[worst]:.6g} of variances {k11[worst]:.6g}, {k22[worst]:.6g} exceeds sqrt(k11 k22): "
            f"correlation {k12[worst] / bound[worst] if bound[worst] else np.inf:.6g}"
        )
    return np.clip(k12, -bound, bound)


def _singular(k11: np.ndarray, k12: np.ndarray, k22: np.ndarray) -> np.ndarray:
    return k11 * k22 - k12 * k12 <= SINGULAR * k11 * k22


# -- sums over the nodes -------------------------------------------------------------------------------------------


def _he(order: int, z: np.ndarray) -> np.ndarray:
    """Probabilists' Hermite polynomial He_order."""
    return np.polynomial.hermite_e.hermeval(z, [0.0] * order + [1.0])


#: a column of the double sum: derivative order of the factor, Hermite degree in its own coordinate
_Column = tuple[int, int]


def _double_sums(
    activation: Activation,
    factor: tuple[np.ndarray, np.ndarray, np.ndarray],
    rule: Rule,
    products: dict[Order, tuple[_Column, _Column]],
) -> Table:
    """E[f_i(x) He_p(z1) f_j(y) He_q(z2)] for products order -> ((i, p), (j, q)), a batch of Cholesky factors."""
    l11, l21, l22 = factor
    result = {order: np.empty(len(l11)) for order in products}
    if rule.kind == "split":
        kinks = np.array([float(kink) for kink in activation.kinks])
        for index in range(len(l11)):
            scale = float(l11[index]), float(l21[index]), float(l22[index])
            z1, w1 = outer_panels(rule, (kinks, scale[0], 0.0), (kinks, *scale[1:]))
            z2, w2 = inner_panels(rule, kinks, scale[1] * z1, scale[2])
            part = slice(index, index + 1)
            _contract(activation, (l11[part], l21[part], l22[part]), (z1, w1, z2, w2), products, result, part)
        return result
    z, w = nodes_weights(rule)
    step = max(1, _CHUNK // len(z) ** 2)
    for start in range(0, len(l11), step):
        part = slice(start, start + step)
        _contract(activation, (l11[part], l21[part], l22[part]), (z, w, z[None], w[None]), products, result, part)
    return result


def _contract(activation, factor, grid, products, result, part) -> None:  # type: ignore[no-untyped-def]
    l11, l21, l22 = (entry[:, None] for entry in factor)
    z1, w1, z2, w2 = grid
    y = (l21 * z1)[:, :, None] + l22[:, :, None] * z2
    inner: dict[_Column, np.ndarray] = {}
    for j, degrees in _grouped(column for _, column in products.values()).items():
        values = activation.smooth_part(j)(y)
        for q in degrees:
            inner[j, q] = np.einsum("bmn,mn->bm", values, np.broadcast_to(w2 * _he(q, z2), y.shape[1:]), optimize=True)
    x = l11 * z1
    outer = {(i, p): None for (i, p), _ in products.values()}
    for i, degrees in _grouped(outer).items():
        values = activation.smooth_part(i)(x)
        for p in degrees:
            outer[i, p] = values * (w1 * _he(p, z1))
    for order, (left, right) in products.items():
        result[order][part] = (outer[left] * inner[right]).sum(axis=1)


def _grouped(columns: Iterable[_Column]) -> dict[int, list[int]]:
    grouped: dict[int, list[int]] = {}
    for derivative, degree in dict.fromkeys(columns):
        grouped.setdefault(derivative, []).append(degree)
    return grouped


def _line_sums(activation: Activation, s: np.ndarray, t: np.ndarray, rule: Rule, degrees: tuple[int, ...]) -> dict[int, np.ndarray]:
    """E[sigma(s Z) sigma(t Z) He_p(Z)] for the degrees p, a batch of scales."""
    sigma = activation.numpy_function()
    result = {p: np.empty(len(s)) for p in degrees}
    kinks = np.array([float(kink) for kink in activation.kinks])
    for index in range(len(s)):
        if rule.kind == "split":
            z, w = outer_panels(rule, (kinks, float(s[index]), 0.0), (kinks, float(t[index]), 0.0))
        else:
            z, w = nodes_weights(rule)
        values = w * sigma(s[index] * z) * sigma(t[index] * z)
        for p in degrees:
            result[p][index] = np.dot(values, _he(p, z))
    return result


# -- the four ways to a derivative --------------------------------------------------------------------------------


def _inside_table(activation, k11, k12, k22, rule, orders) -> Table:  # type: ignore[no-untyped-def]
    activation.numpy_function(max(max(order) for order in orders))  # refuses derivatives with delta terms
    products = {(i, j): ((i, 0), (j, 0)) for i, j in orders}
    return _double_sums(activation, cholesky_pair(k11, k12, k22), rule, products)


def _regular_or_singular(activation, k11, k12, k22, rule, orders, regular) -> Table:  # type: ignore[no-untyped-def]
    table = {order: np.zeros(len(k11)) for order in orders}
    singular = _singular(k11, k12, k22)
    for select, evaluate in ((~singular, regular), (singular, _hermite_singular)):
        if select.any():
            part = evaluate(activation, k11[select], k12[select], k22[select], rule, orders)
            for order in orders:
                table[order][select] = part[order]
    return table


def _hermite_regular(activation, k11, k12, k22, rule, orders) -> Table:  # type: ignore[no-untyped-def]
    l11, l21, l22 = cholesky_pair(k11, k12, k22)
    terms = {(i - k, k + j) for i, j in orders for k in range(i + 1)}
    c = _double_sums(activation, (l11, l21, l22), rule, {(p, q): ((0, p), (0, q)) for p, q in sorted(terms)})
    r11, r22 = 1 / l11, 1 / l22
    s = -l21 * r11 * r22
    return {(i, j): r22**j * sum(comb(i, k) * r11 ** (i - k) * s**k * c[i - k, k + j] for k in range(i + 1)) for i, j in orders}


def _weak_regular(activation, k11, k12, k22, rule, orders) -> Table:  # type: ignore[no-untyped-def]
    products = {(i, j): ((i, 0), (j, 0)) for i, j in orders}
    table = _double_sums(activation, cholesky_pair(k11, k12, k22), rule, products)
    for (i, j), values in table.items():
        for index in range(len(k11)):
            pair = float(k11[index]), float(k12[index]), float(k22[index])
            values[index] += delta_terms(activation, *pair, rule, i, j)
    return table


def _hermite_singular(activation, k11, k12, k22, rule, orders) -> Table:  # type: ignore[no-untyped-def]
    """A representative on range(K): with x and y proportional only the variance along the range can vary."""
    l11, l21, _ = cholesky_pair(k11, k12, k22)
    zero_x = l11 == 0
    slope = np.where(zero_x, np.sqrt(k22), l21)
    c = _line_sums(activation, l11, slope, rule, tuple({(i + j) for i, j in orders} | {0}))
    return singular_representative(k11, k12, k22, c, orders)


def singular_representative(k11, k12, k22, c, orders) -> Table:  # type: ignore[no-untyped-def]
    """m_ij of singular pairs from c_p = E[g He_p(z)], g the product as a function of the one coordinate z.

    For proportional x and y: m11 = c2/(2 k12), m22 = c4/(6 k12^2), the rest 0 (symmetric in the two inputs, and right
    on the diagonal).  If one of them vanishes, all the variance is the other's.
    """
    zero = np.zeros(len(k11))
    only_x, only_y = (k22 == 0) & (k11 > 0), (k11 == 0) & (k22 > 0)

    def over(numerator: np.ndarray, denominator: np.ndarray, where: np.ndarray) -> np.ndarray:
        return np.divide(numerator, denominator, out=zero.copy(), where=where & (denominator != 0))

    both = ~(only_x | only_y)
    values = {(0, 0): lambda: c[0]}
    values[1, 1] = lambda: over(c[2], 2 * k12, both)
    values[2, 2] = lambda: over(c[4], 6 * k12**2, both)
    for power in (2, 4):
        values[power, 0] = lambda p=power: over(c[p], k11 ** (p // 2), only_x)
        values[0, power] = lambda p=power: over(c[p], k22 ** (p // 2), only_y)
    return {order: values[order]() if order in values else zero.copy() for order in orders}


def on_range(table: Table, k11: np.ndarray, k12: np.ndarray, k22: np.ndarray) -> Table:
    """The full fourth-order table with singular pairs in their representative, so that two modes can be compared."""
    l11, l21, _ = cholesky_pair(k11, k12, k22)
    l21 = np.where(l11 == 0, np.sqrt(k22), l21)
    c = {0: table[0, 0]}
    for p in (2, 4):
        terms = [comb(p, i) * l11**i * l21 ** (p - i) * table[i, p - i] for i in range(p + 1)]
        c[p] = np.sum(terms, axis=0)
    representative = singular_representative(k11, k12, k22, c, tuple(table))
    singular = _singular(k11, k12, k22)
    return {order: np.where(singular, representative[order], values) for order, values in table.items()}


# -- closed forms --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _closed_function(form: ClosedForm, i: int, j: int) -> Callable[..., np.ndarray]:
    return sp.lambdify((K11, K12, K22), form.moment(i, j), modules="numpy", cse=True)


def _closed_table(activation, k11, k12, k22, orders) -> Table:  # type: ignore[no-untyped-def]
    form = closed_form(activation)
    if form is None:
        raise ValueError(f"{activation.name!r} has no closed form; use a trapezoid, gh or split rule")
    table = {order: np.zeros(len(k11)) for order in orders}
    regular = ~_singular(k11, k12, k22) if form.kind == "homogeneous" else np.ones(len(k11), dtype=bool)
    for order in orders:
        if regular.any():
            with np.errstate(over="ignore", invalid="ignore"):
                values = _closed_function(form, *order)(k11[regular], k12[regular], k22[regular])
            if not np.isfinite(values).all():
                largest = max(k11[regular].max(), k22[regular].max())
                raise CovarianceError(f"the moments of {activation.name!r} overflow at variance {largest:.6g}; reduce the kernel")
            table[order][regular] = values
    if not regular.all():
        part = _euler(form, k11[~regular], k12[~regular], k22[~regular], orders)
        for order in orders:
            table[order][~regular] = part[order]
    return table


def _euler(form, k11, k12, k22, orders) -> Table:  # type: ignore[no-untyped-def]
    """ReLU family on singular pairs: g is homogeneous of degree two in z, so c2 = 2 m00 and c4 = 0 (Euler)."""
    bound = np.abs(k12)  # the same value with det exactly 0: sqrt(k11 k22) = |k12| here
    value = _closed_function(form, 0, 0)(bound, k12, bound)
    return singular_representative(k11, k12, k22, {0: value, 2: 2 * value, 4: np.zeros_like(value)}, orders)
