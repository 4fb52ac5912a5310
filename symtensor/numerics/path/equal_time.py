"""Covariances of functions at one layer, exactly: quadrature over the distinct inputs of two pairs, one to four of them.

One or two inputs are integrated on nodes.  With three, one of them occurs twice: on nodes of that one, the other two
are expanded in conditional Hermite coefficients, and their partial correlation weights the degrees; if that converges
too slowly (or they are dependent given the first), the second input goes on nodes as well.  With four, the expansion of
the two pairs is used: it has no shared input, so it converges geometrically.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from symtensor.activation import Activation
from symtensor.numerics.moments import SINGULAR
from symtensor.numerics.path.hermite_kernels import conditional_coefficients, hermite_table
from symtensor.numerics.path.pairs import pair_list
from symtensor.numerics.path.tails import tail_estimate
from symtensor.numerics.rules import Rule, nodes_weights, panel_nodes, uniform_edges
from symtensor.numerics.split import outer_panels

__all__ = ["Factor", "LayerMoments", "cholesky_exact", "equal_time_covariances", "factors_of", "representatives"]

_CONDITIONAL_DEGREE = 96

Evaluate = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class Factor:
    """A product of functions of one input: their positions in the list of functions, sorted."""

    members: tuple[int, ...]

    def evaluate(self, functions: Sequence[Evaluate], x: np.ndarray) -> np.ndarray:
        """The product at x."""
        value = np.ones_like(x)
        for member in dict.fromkeys(self.members):
            value = value * functions[member](x) ** self.members.count(member)
        return value

    def kinks(self, kinks: Sequence[np.ndarray]) -> np.ndarray:
        """Where any of the functions has a kink."""
        return np.unique(np.concatenate([kinks[member] for member in self.members]))


def cholesky_exact(matrix: np.ndarray) -> np.ndarray:
    """The lower Cholesky factor of a positive semi-definite matrix; a dependent coordinate has exact zeros, no jitter."""
    size = len(matrix)
    factor = np.zeros((size, size))
    for i in range(size):
        for j in range(i):
            if factor[j, j] > 0:
                factor[i, j] = (matrix[i, j] - factor[i, :j] @ factor[j, :j]) / factor[j, j]
        left = matrix[i, i] - factor[i, :i] @ factor[i, :i]
        # rounding of the subtraction is of the size eps * variance
        factor[i, i] = np.sqrt(left) if left > SINGULAR * matrix[i, i] else 0.0
    return factor


@dataclass(frozen=True, slots=True)
class LayerMoments:
    """Expectations of products of functions of one to three inputs at one kernel.

    Attributes
    ----------
    kernel
        (P, P).
    functions, kinks
        The functions and where each has kinks.
    rule
        Nodes that serve all of them: trapezoid if all are smooth, else split.
    tol
        Relative, for the expansion in conditional coefficients.
    known
        Conditional coefficients, by mean, spread and function: many triples of inputs share them.
    """

    kernel: np.ndarray
    functions: tuple[Evaluate, ...]
    kinks: tuple[np.ndarray, ...]
    rule: Rule
    tol: float
    known: dict[tuple, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, kernel: np.ndarray, functions: Sequence[Activation], rule: Rule, tol: float) -> LayerMoments:
        kinks = tuple(np.array([float(kink) for kink in function.kinks]) for function in functions)
        return cls(kernel, tuple(function.numpy_function() for function in functions), kinks, rule, tol)

    def expectation(self, factors: dict[int, Factor]) -> tuple[float, float]:
        """E of a product over inputs, and the error of what is not plain quadrature (the caller varies the rule)."""
        labels = sorted(factors, key=lambda label: (-len(factors[label].members), label))
        # inputs without variance are constants
        constant = 1.0
        for label in [label for label in labels if self.kernel[label, label] == 0]:
            constant *= float(factors[label].evaluate(self.functions, np.zeros(1))[0])
            labels.remove(label)
        if constant == 0.0 or not labels:
            return constant, 0.0
        B = cholesky_exact(self.kernel[np.ix_(labels, labels)])
        value, error = (self._one, self._two, self._three)[len(labels) - 1](B, [factors[label] for label in labels])
        return constant * value, abs(constant) * error

    def outer(self, B: np.ndarray, factors: list[Factor]) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights in the first whitened coordinate, once the others are integrated out."""
        if self.rule.kind != "split":
            return nodes_weights(self.rule)
        lines = [(f.kinks(self.kinks), float(B[i, 0]), float(np.linalg.norm(B[i, 1:]))) for i, f in enumerate(factors)]
        return outer_panels(self.rule, *lines)

    def _one(self, B: np.ndarray, factors: list[Factor]) -> tuple[float, float]:
        z, w = self.outer(B, factors)
        return float(w @ factors[0].evaluate(self.functions, B[0, 0] * z)), 0.0

    def _two(self, B: np.ndarray, factors: list[Factor]) -> tuple[float, float]:
        z, w = self.outer(B, factors)
        inner = self.conditional(B[1, 0] * z, B[1, 1], factors[1], 0)[0]
        return float(w @ (factors[0].evaluate(self.functions, B[0, 0] * z) * inner)), 0.0

    def _three(self, B: np.ndarray, factors: list[Factor]) -> tuple[float, float]:
        z, w = self.outer(B, factors)
        outer = w * factors[0].evaluate(self.functions, B[0, 0] * z)
        spread = float(np.hypot(B[2, 1], B[2, 2]))
        if B[1, 1] == 0 or spread == 0:
            second = self.conditional(B[1, 0] * z, B[1, 1], factors[1], 0)[0]
            return float(outer @ (second * self.conditional(B[2, 0] * z, spread, factors[2], 0)[0])), 0.0
        degree = _CONDITIONAL_DEGREE
        second = self._shared(float(B[1, 0]), z, float(B[1, 1]), factors[1])
        third = self._shared(float(B[2, 0]), z, spread, factors[2])
        powers = (B[2, 1] / spread) ** np.arange(degree + 1)
        product = second * third
        terms = powers * (product @ outer)
        bound = np.abs(powers) * (np.abs(product) @ np.abs(outer))
        error = tail_estimate(bound)
        if error <= self.tol * bound.sum():
            return float(terms.sum()), error
        return self._nested(B, factors, z, outer), 0.0

    def _shared(self, slope: float, z: np.ndarray, scale: float, factor: Factor) -> np.ndarray:
        """Conditional coefficients at slope z, kept where all triples have the same nodes."""
        key = (round(slope, 13), round(scale, 13), factor.members)
        if self.rule.kind == "split":
            return self.conditional(slope * z, scale, factor, _CONDITIONAL_DEGREE)
        if key not in self.known:
            self.known[key] = self.conditional(slope * z, scale, factor, _CONDITIONAL_DEGREE)
        return self.known[key]

    def _nested(self, B: np.ndarray, factors: list[Factor], z: np.ndarray, outer: np.ndarray) -> float:
        """The second input on nodes too: for a third one that depends on it strongly, or wholly."""
        if self.rule.kind == "split":
            crossing = self._crossings(B, factors)
            if len(crossing):
                width = B[2, 2] / abs(B[2, 1])
                z, w = outer_panels(
                    self.rule,
                    (crossing, 1.0, width),
                    *((f.kinks(self.kinks), float(B[i, 0]), float(np.linalg.norm(B[i, 1:]))) for i, f in enumerate(factors)),
                )
                outer = w * factors[0].evaluate(self.functions, B[0, 0] * z)
        total = 0.0
        for chunk in range(0, len(z), 64):
            part = z[chunk : chunk + 64]
            z2, w2 = self._inner_of_two(B, factors, part)
            second = factors[1].evaluate(self.functions, B[1, 0] * part[:, None] + B[1, 1] * z2)
            shift = B[2, 0] * part[:, None] + B[2, 1] * z2
            third = self.conditional(shift.ravel(), B[2, 2], factors[2], 0)[0].reshape(shift.shape)
            total += float(outer[chunk : chunk + 64] @ (w2 * second * third).sum(axis=1))
        return total

    def _crossings(self, B: np.ndarray, factors: list[Factor]) -> np.ndarray:
        """Values of z1 where a kink of the second and one of the third input meet."""
        slope = B[1, 0] / B[1, 1] - B[2, 0] / B[2, 1]
        if slope == 0:
            return np.zeros(0)
        second, third = factors[1].kinks(self.kinks) / B[1, 1], factors[2].kinks(self.kinks) / B[2, 1]
        return ((second[:, None] - third) / slope).ravel()

    def _inner_of_two(self, B: np.ndarray, factors: list[Factor], z1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.rule.kind != "split":
            z, w = nodes_weights(self.rule)
            return np.broadcast_to(z, (len(z1), len(z))), np.broadcast_to(w, (len(z1), len(w)))
        radius = self.rule.radius
        points = [(factors[1].kinks(self.kinks) - B[1, 0] * z1[:, None]) / B[1, 1]]
        smear = B[2, 2] / abs(B[2, 1])
        steps = smear * 2.0 ** np.arange(max(0, int(np.ceil(-np.log2(smear))) + 1)) if smear > 0 else np.zeros(0)
        offsets = np.concatenate([-steps, [0.0], steps])
        kinks = (factors[2].kinks(self.kinks) - B[2, 0] * z1[:, None]) / B[2, 1]
        points.append((kinks[:, :, None] + offsets).reshape(len(z1), -1))
        uniform = np.broadcast_to(uniform_edges(radius), (len(z1), 2 * int(np.ceil(radius)) + 1))
        edges = np.sort(np.clip(np.concatenate([uniform, *points], axis=1), -radius, radius), axis=1)
        return panel_nodes(edges, self.rule.n)

    def conditional(self, shift: np.ndarray, scale: float, factor: Factor, degree: int) -> np.ndarray:
        """E[f(shift + scale z) He_j(z)] / sqrt(j!), shape (degree + 1, len(shift))."""
        if scale == 0:
            result = np.zeros((degree + 1, len(shift)))
            result[0] = factor.evaluate(self.functions, shift)
            return result
        if self.rule.kind != "split":
            z, w = nodes_weights(self.rule)
            return hermite_table(degree, z) @ (w * factor.evaluate(self.functions, shift[:, None] + scale * z)).T
        kinks, radius = factor.kinks(self.kinks), self.rule.radius
        uniform = np.broadcast_to(uniform_edges(radius), (len(shift), 2 * int(np.ceil(radius)) + 1))
        points = np.clip((kinks - shift[:, None]) / scale, -radius, radius)
        z, w = panel_nodes(np.sort(np.concatenate([uniform, points], axis=1), axis=1), self.rule.n)
        return conditional_coefficients(w * factor.evaluate(self.functions, shift[:, None] + scale * z), z, degree)


def equal_time_covariances(
    kernel: np.ndarray,
    functions: Sequence[Activation],
    rule: Rule,
    tol: float,
    four: Callable[[int, int], np.ndarray],
) -> tuple[np.ndarray, float]:
    """(R, E, R, E) covariances of f_r(a) f_r(b) with f_s(c) f_s(d) at one kernel, and an error.

    Parameters
    ----------
    four
        (ab, cd) -> (R, R) covariances of two pairs without a common input, from the expansion.
    """
    pairs, count = pair_list(len(kernel)), len(functions)
    same = representatives(kernel)
    moments = LayerMoments.of(kernel, functions, rule, tol)
    means = np.array([[moments.expectation(factors_of(same, (r,), pair))[0] for pair in pairs] for r in range(count)])
    values = np.zeros((count, len(pairs), count, len(pairs)))
    known: dict[tuple, tuple[float, float]] = {}
    error = 0.0
    for ab, cd in [*((e, e) for e in range(len(pairs))), *combinations(range(len(pairs)), 2)]:
        if len({same[label] for label in (*pairs[ab], *pairs[cd])}) == 4:
            values[:, ab, :, cd] = four(ab, cd)
            values[:, cd, :, ab] = values[:, ab, :, cd].T
            continue
        for r in range(count):
            for s in range(count):
                factors = factors_of(same, (r, s), pairs[ab], pairs[cd])
                key = tuple(sorted((label, factor.members) for label, factor in factors.items()))
                if key not in known:
                    known[key] = moments.expectation(factors)
                mean, uncertainty = known[key]
                error = max(error, uncertainty)
                values[r, ab, s, cd] = values[s, cd, r, ab] = mean - means[r, ab] * means[s, cd]
    return values, error


def representatives(kernel: np.ndarray) -> list[int]:
    """For each input the first one that is equal to it, in distribution and almost surely."""
    variance = np.diagonal(kernel)
    distance = variance[:, None] + variance - 2 * kernel
    equal = distance <= SINGULAR * np.minimum(variance[:, None], variance)
    return [int(np.argmax(row)) for row in equal]


def factors_of(same: Sequence[int], functions: tuple[int, ...], *pairs: tuple[int, int]) -> dict[int, Factor]:
    """The product of f_r(phi_a) f_r(phi_b) over functions r and pairs (a, b), input by input."""
    members: dict[int, list[int]] = {}
    for function, pair in zip(functions, pairs):
        for label in pair:
            members.setdefault(same[label], []).append(function)
    return {label: Factor(tuple(sorted(found))) for label, found in members.items()}
