"""Derivatives in K of covariances at one layer: by parts in the first whitened coordinate, ladder operators in the others.

A derivative along an input other than the first lowers its conditional Hermite coefficients; one along the first is
``d_a = (d/dz1 - B10 d_b - B20 d_c)/B00``, and E[(d/dz1)^k F] = E[He_k(z1) F].  No function is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement

import numpy as np

from symtensor.activation import Activation
from symtensor.numerics.path.equal_time import Factor, LayerMoments, cholesky_exact, factors_of, representatives
from symtensor.numerics.path.pairs import pair_list, pair_number
from symtensor.numerics.path.tails import tail_estimate
from symtensor.numerics.rules import Rule

__all__ = ["equal_time_derivatives"]

_DEGREE = 96

#: E F and the derivatives of it in K^{pq}, p <= q, with an error; None if they are not done this way
Moment = tuple[float, dict[tuple[int, int], float], float]


def equal_time_derivatives(
    kernel: np.ndarray,
    functions: Sequence[Activation],
    rule: Rule,
    tol: float,
    expanded: Callable[[int, int], np.ndarray],
) -> tuple[np.ndarray, float]:
    """(R, E, R, E, E): derivatives in K^{pq}, p <= q, of the covariances at one kernel, and an error.

    Parameters
    ----------
    expanded
        (ab, cd) -> (R, R, E): the same from the expansion, for pairs without a common input and for three inputs that are
        dependent, or nearly so.
    """
    pairs, count, size = pair_list(len(kernel)), len(functions), len(pair_list(len(kernel)))
    number, same = pair_number(len(kernel)), representatives(kernel)
    moments = LayerMoments.of(kernel, functions, rule, tol)
    values = np.zeros((count, size, count, size, size))
    error, known = 0.0, {}

    def moment(names: tuple[int, ...], *of: tuple[int, int]) -> Moment | None:
        factors = factors_of(same, names, *of)
        key = tuple(sorted((label, factor.members) for label, factor in factors.items()))
        if key not in known:
            known[key] = _moment(moments, factors)
        return known[key]

    for ab, cd in combinations_with_replacement(range(size), 2):
        distinct = len({same[label] for label in (*pairs[ab], *pairs[cd])})
        for r in range(count):
            for s in range(count):
                joint = moment((r, s), pairs[ab], pairs[cd]) if distinct < 4 else None
                if joint is None:
                    values[r, ab, s, cd] = values[s, cd, r, ab] = expanded(ab, cd)[r, s]
                    continue
                first, second = moment((r,), pairs[ab]), moment((s,), pairs[cd])
                assert first is not None and second is not None  # at most two inputs
                total = np.zeros(size)
                for weight, (_, slopes, _) in ((1.0, joint), (-second[0], first), (-first[0], second)):
                    for pair, slope in slopes.items():
                        total[number[pair]] += weight * slope
                values[r, ab, s, cd] = values[s, cd, r, ab] = total
                error = max(error, joint[2])
    return values, error


def _moment(moments: LayerMoments, factors: dict[int, Factor]) -> Moment | None:
    labels = sorted(factors, key=lambda label: (-len(factors[label].members), label))
    constant = 1.0
    for label in [label for label in labels if moments.kernel[label, label] == 0]:
        constant *= float(factors[label].evaluate(moments.functions, np.zeros(1))[0])
        labels.remove(label)
    if constant == 0.0 or not labels:
        return constant, {}, 0.0
    B = cholesky_exact(moments.kernel[np.ix_(labels, labels)])
    found = _second_order(moments, B, [factors[label] for label in labels])
    if found is None:
        return None
    value, forms, second, error = found
    slopes = {}
    for i, j in combinations_with_replacement(range(len(labels)), 2):
        slope = float(forms[i] @ second @ forms[j]) * (0.5 if i == j else 1.0)
        slopes[min(labels[i], labels[j]), max(labels[i], labels[j])] = constant * slope
    return constant * value, slopes, abs(constant) * error


def _second_order(
    moments: LayerMoments, B: np.ndarray, factors: list[Factor]
) -> tuple[float, np.ndarray, np.ndarray, float] | None:
    """E F, each d/dphi as a vector over basic operators, the second moments of these, and an error."""
    z, w = moments.outer(B, factors)
    outer = w * factors[0].evaluate(moments.functions, B[0, 0] * z)
    weights = np.array([outer, outer * z, outer * (z * z - 1)])
    if len(factors) > 1 and not B[1:, 1:].any():
        # one coordinate: the representative along the range
        for row, factor in zip(B[1:], factors[1:]):
            weights = weights * factor.evaluate(moments.functions, row[0] * z)
        forms = B[:, :1] / float(B[:, 0] @ B[:, 0])
        return float(weights[0].sum()), forms, weights[2].sum().reshape(1, 1), 0.0
    spreads = [float(np.linalg.norm(B[i, 1:])) for i in range(1, len(factors))]
    correlation = 0.0
    if len(factors) == 3:
        if min(B[1, 1], B[2, 2]) == 0:
            return None
        correlation = float(B[2, 1] / spreads[1])
    degree = 2 if len(factors) < 3 else _DEGREE
    ladders = [
        _lowered_twice(moments.conditional(B[i, 0] * z, spread, factors[i], degree), spread)
        for i, spread in enumerate(spreads, start=1)
    ]
    return _assembled(B, weights, ladders, correlation, moments.tol)


def _lowered_twice(coefficients: np.ndarray, spread: float) -> list[np.ndarray]:
    """Conditional coefficients of f, f', f''."""
    found = [coefficients]
    for _ in range(2):
        last = found[-1]
        found.append(np.sqrt(np.arange(1, len(last)))[:, None] * last[1:] / spread)
    return found


def _assembled(
    B: np.ndarray, weights: np.ndarray, ladders: list[list[np.ndarray]], correlation: float, tol: float
) -> tuple[float, np.ndarray, np.ndarray, float] | None:
    size = len(ladders) + 1
    worst, failed = 0.0, False

    def total(powers: tuple[int, ...]) -> float:
        nonlocal worst, failed
        parts = [ladder[power] for ladder, power in zip(ladders, powers[1:])]
        weight = weights[powers[0]]
        if not parts:
            return float(weight.sum())
        if len(parts) == 1:
            return float(weight @ parts[0][0])
        length = min(map(len, parts))
        product = parts[0][:length] * parts[1][:length]
        decay = correlation ** np.arange(length)
        bound = np.abs(decay) * (np.abs(product) @ np.abs(weight))
        left = tail_estimate(bound)
        worst, failed = max(worst, left), failed or left > tol * bound.sum()
        return float(decay @ (product @ weight))

    value = total((0,) * size)
    second = np.zeros((size, size))
    for i, j in combinations_with_replacement(range(size), 2):
        powers = [0] * size
        powers[i] += 1
        powers[j] += 1
        second[i, j] = second[j, i] = total(tuple(powers))
    if failed:
        return None
    forms = np.eye(size)
    forms[0] = np.concatenate([[1.0], -B[1:, 0]]) / B[0, 0]
    return value, forms, second, worst * float(np.abs(forms).max()) ** 2
