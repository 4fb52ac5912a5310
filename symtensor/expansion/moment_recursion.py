r"""The recursion behind all moments: integration by parts, memoised on exponent vectors and orders.

With S = V + Gaussian part, ``M_g[k]`` the coefficient of order g (a vector of powers of couplings) of <x^k exp V>, and
``V = sum_v c_v t^{h_v} x^{p_v}``, integration by parts in x_i (Stein, Isserlis, Schwinger and Dyson) gives

    M_g[k] = m_i M_g[k-e_i] + sum_j C_ij ( (k-e_i)_j M_g[k-e_i-e_j] + sum_v c_v (p_v)_j M_{g-h_v}[k-e_i+p_v-e_j] ).

This is linear, so it holds for <x^k exp V> and for <x^k exp V>/<exp V> alike; they differ in M_g[0] only: 0 for g > 0 if
normalised, otherwise ``|g| M_g[0] = sum_v |h_v| c_v M_{g-h_v}[p_v]`` (the derivative with respect to a scale of the
couplings). Without V it is the recursion for Gaussian moments. C may be singular, zero, indefinite or complex. The number of
entries is polynomial in the powers and orders; pairings of single factors are never listed.

References: Isserlis, Biometrika 12 (1918) 134; Stein, Ann. Stat. 9 (1981) 1135, lemma 2; Zinn-Justin, Quantum Field
Theory and Critical Phenomena (2002), section 5.4 (equations of motion).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .moment_errors import MomentError

__all__ = ["LinearRecursion", "MomentRecursion", "Powers", "Term", "lowered"]

Powers = tuple[int, ...]
#: A term c t^h x^p of a potential: (h, p, c).
Term = tuple[Powers, Powers, Any]
#: More entries than this are refused before or during the work.
MAX_ENTRIES = 2_000_000


@dataclass(slots=True)
class LinearRecursion:
    """Values of ``value(s) = sum of factor * value(s')`` over ``step(s)``, each computed once, with its own stack.

    `memo` starts with the known values and keeps all that are computed.
    """

    step: Callable[[Any], Sequence[tuple[Any, Any]]]
    zero: Any
    memo: dict[Any, Any]

    def value(self, state: Hashable) -> Any:
        """The value of one state; raises MomentError if it needs more than `MAX_ENTRIES` others."""
        stack, steps = [state], {}
        while stack:
            top = stack[-1]
            if top in self.memo:
                stack.pop()
                continue
            if top not in steps:
                steps[top] = self.step(top)
                missing = [lower for _, lower in steps[top] if lower not in self.memo]
                if missing:
                    stack.extend(missing)
                    continue
            self.memo[stack.pop()] = self._sum(steps.pop(top))
            if len(self.memo) > MAX_ENTRIES:
                raise MomentError(f"more than {MAX_ENTRIES} intermediate moments are needed; lower the powers or the order")
        return self.memo[state]

    def _sum(self, terms: Sequence[tuple[Any, Any]]) -> Any:
        total = self.zero
        for factor, lower in terms:
            value = self.memo[lower]
            if value:
                total = total + value * factor
        return total


def lowered(powers: Powers, i: int) -> Powers:
    """Powers - e_i."""
    return (*powers[:i], powers[i] - 1, *powers[i + 1 :])


@dataclass(slots=True)
class MomentRecursion:
    """Moments M_g[k] of a Gaussian with covariance and mean (ring elements), with the potential `terms` if given.

    `elimination` is the order in which variables are integrated by parts; `weights` are those of |h|.
    """

    covariance: Sequence[Sequence[Any]]
    mean: Sequence[Any]
    zero: Any
    one: Any
    terms: Sequence[Term] = ()
    weights: Powers = ()
    normalised: bool = True
    rational: Callable[[int, int], Any] | None = None
    elimination: tuple[int, ...] = ()
    _recursion: LinearRecursion = field(init=False)
    _forces: list[list[Term]] = field(init=False)

    def __post_init__(self) -> None:
        size = len(self.covariance)
        self.elimination = self.elimination or tuple(range(size))
        origin = ((0,) * len(self.weights), (0,) * size)
        self._recursion = LinearRecursion(self._step, self.zero, {origin: self.one})
        self._forces = [self._force(i) for i in range(size)]

    @property
    def entries(self) -> int:
        """How many moments have been computed so far: the cost, counted."""
        return len(self._recursion.memo)

    def moment(self, powers: Powers, order: Powers | None = None) -> Any:
        """M_order[powers]; the order is zero if not given."""
        return self._recursion.value((order or (0,) * len(self.weights), powers))

    def log_partition(self, order: Powers) -> Any:
        """The coefficient of log <exp V>: ``|g| W_g = sum_v |h_v| c_v M_{g-h_v}[p_v]`` with normalised moments."""
        total = self.zero
        for factor, (rest, powers) in self._scaled(order):
            total = total + self.moment(powers, rest) * factor
        return total

    def _force(self, i: int) -> list[Term]:
        """sum_j C_ij dV/dx_j as terms."""
        found: dict[tuple[Powers, Powers], Any] = defaultdict(lambda: self.zero)
        for order, powers, factor in self.terms:
            for j, entry in enumerate(self.covariance[i]):
                if entry and powers[j]:
                    found[order, lowered(powers, j)] += entry * factor * powers[j]
        return [(order, powers, factor) for (order, powers), factor in found.items() if factor]

    def _step(self, state: tuple[Powers, Powers]) -> list[tuple[Any, tuple[Powers, Powers]]]:
        order, powers = state
        i = next((i for i in self.elimination if powers[i]), None)
        if i is None:
            return [] if self.normalised else self._scaled(order)
        rest = lowered(powers, i)
        steps = [(self.mean[i], (order, rest))] if self.mean[i] else []
        for j, entry in enumerate(self.covariance[i]):
            if entry and rest[j]:
                steps.append((entry * rest[j], (order, lowered(rest, j))))
        for grade, shift, factor in self._forces[i]:
            left = tuple(a - b for a, b in zip(order, grade))
            if min(left) >= 0:
                steps.append((factor, (left, tuple(a + b for a, b in zip(rest, shift)))))
        return steps

    def _scaled(self, order: Powers) -> list[tuple[Any, tuple[Powers, Powers]]]:
        """|h_v| c_v/|g| and the moment that it multiplies, for every term v with h_v <= g."""
        assert self.rational is not None
        size = sum(w * g for w, g in zip(self.weights, order))
        steps = []
        for grade, powers, factor in self.terms:
            left = tuple(a - b for a, b in zip(order, grade))
            if min(left) >= 0:
                share = self.rational(sum(w * h for w, h in zip(self.weights, grade)), size)
                steps.append((factor * share, (left, powers)))
        return steps
