"""How many Hermite modes and which quadrature nodes a law and a set of functions need, by their own errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from symtensor.activation import Activation
from symtensor.numerics.path.ladder import differentiated
from symtensor.numerics.path.pair_hermite import PairTable, frame, line_coefficients, pair_table, plane_coefficients
from symtensor.numerics.path.pairs import derivative_forms, pair_list
from symtensor.numerics.path.tails import tail_estimate
from symtensor.numerics.refine import refine
from symtensor.numerics.rules import Rule

__all__ = ["Resolution", "choose_resolution"]

#: highest total degrees in one and in two coordinates
LINE_CAP, PLANE_CAP, KINKED_PLANE_CAP = 6144, 240, 160
_LADDER = (8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 240, 320, 448, 640, 896, 1280, 1792, 2560, 3584, 4608, LINE_CAP)
_PAIRS = 4
#: coefficients below this fraction of the largest are rounding; without a contraction nothing else suppresses them
_ROUNDING = 1e-14


@dataclass(frozen=True, slots=True)
class Resolution:
    """Degrees in one and two coordinates, a rule for each function for either, and the error of the coefficients.

    ``error`` is relative to the norm of the function.
    """

    line_degree: int
    plane_degree: int
    line_rules: tuple[Rule, ...]
    plane_rules: tuple[Rule, ...]
    error: float

    def gains_nothing(self, before: Resolution) -> bool:
        """True if it has the same degrees as an earlier one, and nodes no better by a factor of two."""
        same = (self.line_degree, self.plane_degree) == (before.line_degree, before.plane_degree)
        return same and self.error > 0.5 * before.error

    def table(self, kernels: np.ndarray, pair: tuple[int, int], functions: Sequence[Activation]) -> PairTable:
        """The coefficients of one pair at every layer."""
        if frame(kernels, pair).plane:
            return pair_table(kernels, pair, functions, self.plane_rules, self.plane_degree)
        return pair_table(kernels, pair, functions, self.line_rules, self.line_degree)


def choose_resolution(
    kernels: np.ndarray,
    alpha: float,
    functions: Sequence[Activation],
    derivative: bool,
    tol: float,
    modes: Sequence[int] | None = None,
) -> Resolution:
    """Degrees at which the tail between adjacent layers falls below `tol` (or the caps), and rules to match.

    Parameters
    ----------
    kernels
        (L+1, P, P).
    derivative
        Whether a derivative in the covariance is wanted, which weights the degree N by N.
    tol
        Relative to the largest covariance of one function.
    modes
        If given, no degree beyond the largest of them is needed.
    """
    most = None if modes is None else max(modes, default=1) + (2 if derivative else 0)
    frames = [frame(kernels, pair) for pair in pair_list(kernels.shape[1])]
    layers = sorted({0, (len(kernels) - 1) // 2, max(0, len(kernels) - 2)})
    lines = [f for f in frames if not f.plane]
    planes = _hardest([f for f in frames if f.plane])
    kinked = any(not function.smooth for function in functions)
    degrees, rules, worst = [], [], 0.0
    for group, cap, coefficients in ((lines, LINE_CAP, line_coefficients), (planes, PLANE_CAP, plane_coefficients)):
        if group and group is planes and kinked:
            cap = KINKED_PLANE_CAP
        degree = _degree(group, layers, alpha, functions, derivative, tol, cap, most)
        chosen = []
        for function in functions:
            rule, error = _rule(group, layers, function, degree, coefficients, tol) if group else (_generous(function, cap), 0.0)
            chosen.append(rule)
            worst = max(worst, error)
        degrees.append(degree)
        rules.append(tuple(chosen))
    return Resolution(degrees[0], degrees[1], rules[0], rules[1], worst)


def _hardest(frames: list) -> list:
    """A few pairs: the strongest correlations and the largest variances."""
    if len(frames) <= _PAIRS:
        return frames
    thin = sorted(frames, key=lambda f: float((f.factor[:, 1, 1] / np.abs(f.factor[:, 1]).sum(axis=-1)).min()))
    large = sorted(frames, key=lambda f: -float(np.abs(f.factor[-1]).max()))
    return [*thin[: _PAIRS // 2], *(f for f in large[: _PAIRS // 2] if f not in thin[: _PAIRS // 2])]


def _generous(function: Activation, degree: int) -> Rule:
    """Nodes for a search: enough for the oscillation sqrt(degree) of the polynomials and features of width 1/8."""
    if function.smooth:
        step = 2 * np.pi / (np.sqrt(degree) + 50)
        return Rule("trapezoid", 2 * int(14 / step) + 1, 14.0)
    return Rule("split", 32 if degree < 1000 else 48, 13.0)


def _degree(group, layers, alpha, functions, derivative, tol, cap, most) -> int:  # type: ignore[no-untyped-def]
    if not group:
        return 0
    if most is not None:
        return min(cap, max(most, 1))
    if not alpha or len(group[0].factor) < 2:
        return _LADDER[0]
    bounds = [_adjacent_terms(f, k, alpha, functions, derivative, cap) for f in group for k in layers]
    for degree in _LADDER:
        if degree >= cap:
            break
        if all(_left_out(terms, degree) <= tol * terms.sum() for terms in bounds):
            return degree
    return cap


def _adjacent_terms(coordinates, k, alpha, functions, derivative, cap) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Bounds on the contributions of each degree to the covariances of layers k and k + 1, summed over functions."""
    stack = slice(k, k + 2)
    evaluate = plane_coefficients if coordinates.plane else line_coefficients
    terms = np.zeros(cap + 1)
    contraction = np.linalg.norm(alpha * coordinates.factor[k].T @ coordinates.inverse[k + 1].T, 2)
    powers = np.minimum(contraction, 1.0) ** np.arange(cap + 1)
    for function in functions:
        found = evaluate(coordinates.factor[stack], function, _generous(function, cap), cap)[:, None]
        table = PairTable(coordinates, cap, found)
        early, late = table.norms(found[0, 0]), found[1:]
        if derivative:
            forms = derivative_forms(coordinates.pair, coordinates.inverse[k + 1 : k + 2])
            size = [np.abs(coordinates.factor[k + 1]).max() ** 2 * form for _, form in forms]
            moved = [differentiated(late, form, coordinates.plane, cap) for form in size]
            norms = np.max([table.norms(m[0, 0]) for m in moved], axis=0)
        else:
            norms = table.norms(late[0, 0])
        contribution = early * norms * powers
        contribution[0] = 0.0
        if not contribution.any():
            # an input that vanishes at k makes the pair's own product zero there; other pairs still reach this one
            plain = table.norms(late[0, 0])
            contribution = np.where(plain > _ROUNDING * plain.max(), plain, 0.0) * norms
            contribution[0] = 0.0
        total = contribution.sum()
        terms = np.maximum(terms, contribution / total if total > 0 else 0.0)
    return terms


def _left_out(terms: np.ndarray, degree: int) -> float:
    """What a truncation leaves out, or what it will seem to leave out from its own last terms."""
    return max(float(terms[degree + 1 :].sum()) + tail_estimate(terms), tail_estimate(terms[: degree + 1]))


def _rule(
    group: list, layers: Sequence[int], function: Activation, degree: int, coefficients: Callable[..., np.ndarray], tol: float
) -> tuple[Rule, float]:
    """The cheapest rule whose coefficients have stopped moving, relative to the norm of the function."""
    factors = [f.factor[sorted({*layers, len(f.factor) - 1})] for f in group]
    found: dict[Rule, list[np.ndarray]] = {}

    def values(rule: Rule) -> list[np.ndarray]:
        if rule not in found:
            with np.errstate(over="ignore", invalid="ignore"):
                found[rule] = [coefficients(factor, function, rule, degree) for factor in factors]
        return found[rule]

    def difference(rule: Rule, finer: Rule) -> float:
        worst = 0.0
        for first, second in zip(values(rule), values(finer)):
            size = np.linalg.norm(second, axis=-1, keepdims=True)
            gap = np.divide(np.abs(first - second), size, out=np.zeros_like(first), where=size > 0)
            worst = max(worst, float(np.nan_to_num(gap, nan=np.inf).max()))
        return worst

    return refine("trapezoid" if function.smooth else "split", difference, max(0.1 * tol, 3e-15))
