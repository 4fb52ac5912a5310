r"""Moments of jointly Gaussian variables, exact and polynomial-time in the powers: the Wick/Isserlis engine.

    E[x^k] = m_i E[x^{k-e_i}] + sum_j C_ij (k-e_i)_j E[x^{k-e_i-e_j}]

is memoised on the vector k (`moment_recursion`), so E[x^40 y^40] costs some hundred entries and not 79!! pairings. Covariances
are numbers (exact answers are Fractions), symbols, or formal: singular, zero, indefinite and complex ones are all right, since
moments are polynomials in the covariance; no question about signs is asked. Nothing here knows of diagrams.

Companions: `cumulants` (moments <-> cumulants), `perturbation` (<.. exp V>), `effective_action` (Legendre transform).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any

import sympy as sp

from .coefficient_ring import CoefficientRing, as_polynomial
from .gaussian_law import Covariance, GaussianLaw, Mean, is_zero, natural
from .moment_errors import MomentError
from .moment_recursion import MAX_ENTRIES, LinearRecursion, MomentRecursion, lowered

__all__ = ["GaussianMoments", "gaussian_moment", "polynomial_moment", "vector_moment"]


def gaussian_moment(powers: Mapping[Any, int], covariance: Covariance, mean: Mean = None) -> Any:
    """E[prod x_i^{k_i}] of jointly Gaussian variables: a Fraction for exact numbers, else a SymPy expression or a float.

    Args:
        powers: name -> power; names are strings, symbols or anything hashable.
        covariance: a mapping {(a, b): C_ab} (either order, absent pairs are 0), a matrix in the order of `powers`, a
            symmetric function of two names, or for one variable its variance. Need not be positive or invertible.
        mean: a mapping {a: m_a} (absent: 0), a sequence in the order of `powers`, a function, or None.

    Raises:
        CovarianceError: not symmetric, not finite, wrong size, or a variable that it does not know.
        MomentError: a power that is no natural number, or so large that more than two million moments would be needed.

    References: Isserlis, Biometrika 12 (1918) 134.

    Example:
        >>> a, b, c = sp.symbols("a b c")
        >>> gaussian_moment({"x": 2, "y": 2}, {("x", "x"): a, ("x", "y"): b, ("y", "y"): c})
        a*c + 2*b**2
        >>> gaussian_moment({"x": 4}, 1), gaussian_moment({"x": 3}, 1, mean=[2])
        (Fraction(3, 1), Fraction(14, 1))
    """
    return GaussianMoments.of(powers, covariance, mean).moment(powers)


def polynomial_moment(expression: Any, covariance: Covariance, mean: Mean = None, fields: Sequence[Any] | None = None) -> Any:
    """E[p(x)] of a polynomial in Gaussian variables, with any other symbols as parameters.

    `fields` names the variables in the order of a matrix; with a mapping as covariance it may be left out.

    Raises:
        NotPolynomialError: a function that is no polynomial in the variables; the message says which and how to expand it.
        CovarianceError, MomentError: as for `gaussian_moment`.

    Example:
        >>> x, t = sp.symbols("x t")
        >>> polynomial_moment((x - t) ** 2, {(x, x): 1})
        t**2 + 1
    """
    return GaussianMoments(GaussianLaw.read(covariance, mean, fields)).expectation(expression)


@dataclass(frozen=True, slots=True)
class GaussianMoments:
    """All moments of one law, with their common table: ask for many, pay once.

    Example:
        >>> moments = GaussianMoments.of({"x": 0, "y": 0}, [[1, 1], [1, 1]])
        >>> moments.moment({"x": 40, "y": 40}) == moments.moment({"x": 80})
        True
    """

    law: GaussianLaw
    ring: CoefficientRing = field(init=False)
    recursion: MomentRecursion = field(init=False)

    def __post_init__(self) -> None:
        size = len(self.law.names)
        ring, values = CoefficientRing.containing([*(v for row in self.law.covariance for v in row), *self.law.mean])
        rows = [values[i * size : (i + 1) * size] for i in range(size)]
        object.__setattr__(self, "ring", ring)
        recursion = MomentRecursion(rows, values[size * size :], ring.zero, ring.one, elimination=self.law.elimination)
        object.__setattr__(self, "recursion", recursion)

    @classmethod
    def of(cls, names: Mapping[Any, Any] | Sequence[Any], covariance: Covariance, mean: Mean = None) -> GaussianMoments:
        """The moments of the named variables (all those of the covariance, if that is a mapping)."""
        whole = isinstance(covariance, Mapping) and covariance
        return cls(GaussianLaw.read(covariance, mean, None if whole else list(names)))

    @property
    def entries(self) -> int:
        """How many moments the table holds: the cost, counted."""
        return self.recursion.entries

    def moment(self, powers: Mapping[Any, int]) -> Any:
        """E[prod x_i^{k_i}]."""
        return self.ring.write(self._element(self.law.powers(powers)))

    def expectation(self, expression: Any) -> Any:
        """E[p(x)] of a polynomial."""
        symbols = self._symbols(sp.sympify(expression))
        written = [(self.ring.write(self._element(k)), c) for k, c in as_polynomial(expression, symbols)]
        ring, values = CoefficientRing.containing([value for pair in written for value in pair])
        pairs = zip(values[::2], values[1::2])
        return ring.write(sum((moment * coefficient for moment, coefficient in pairs), ring.zero))

    def _element(self, powers: tuple[int, ...]) -> Any:
        entries = 1
        for power in powers:
            entries *= power + 1
        if entries > MAX_ENTRIES and self._connected_entries(powers) > MAX_ENTRIES:
            raise MomentError(
                f"the powers {powers} need more than {MAX_ENTRIES} intermediate moments; lower them, or split the product "
                "into independent parts"
            )
        return self.recursion.moment(powers)

    def _connected_entries(self, powers: tuple[int, ...]) -> int:
        """An upper bound of the number of table entries: the product over each independent group, added up."""
        total, product, reach = 0, 1, set()
        for i in self.law.elimination:
            if i not in reach:
                total, product = total + product, 1
                reach = self._group(i)
            product *= powers[i] + 1
        return total + product

    def _group(self, i: int) -> set[int]:
        group, rows = [i], self.law.covariance
        for one in group:
            group += [j for j, entry in enumerate(rows[one]) if not is_zero(entry) and j not in group]
        return set(group)

    def _symbols(self, expression: sp.Basic) -> tuple[sp.Symbol, ...]:
        """The symbols that stand for the variables: those of the expression with the names, whatever their assumptions."""
        free = {s.name: s for s in sorted(expression.free_symbols, key=sp.default_sort_key) if isinstance(s, sp.Symbol)}
        return tuple(free.get(str(name), symbol) for name, symbol in zip(self.law.names, self.law.symbols()))


def vector_moment(
    products: Mapping[tuple[Any, Any], int],
    covariance: Covariance,
    components: Mapping[Any, int] | None = None,
    dimension: Any = None,
) -> Any:
    r"""E[prod (u_a . u_b)^{k_ab} prod (u_a)_1^{m_a}] of N-component Gaussian vectors, a polynomial in N.

    The vectors have mean zero and covariance ``E[(u_a)_i (u_b)_j] = C_ab delta_ij``. The first leg of a factor ``u_a . u_b``
    is integrated by parts: with its partner it gives ``C_ab N``, with a leg of another factor it joins the two into one.

    Args:
        products: {(a, b): k}, the powers of the inner products.
        covariance: as for `gaussian_moment`; the names are those in `products` and `components`.
        components: {a: m}, powers of the first components.
        dimension: the number of components, a number or an expression; ``Symbol("N")`` if not given.

    Raises:
        CovarianceError, MomentError: as for `gaussian_moment`.

    Example:
        >>> vector_moment({("u", "u"): 2}, 1)
        N**2 + 2*N
        >>> vector_moment({("u", "v"): 2}, {("u", "u"): 1, ("v", "v"): 1}, dimension=3)
        Fraction(3, 1)
    """
    components = components or {}
    names = list(dict.fromkeys([name for pair in products for name in pair] + list(components)))
    law = GaussianLaw.read(covariance, None, names)
    size = len(law.names)
    flat = [*(v for row in law.covariance for v in row), sp.Symbol("N") if dimension is None else dimension]
    ring, values = CoefficientRing.containing(flat)
    bonds = list(combinations_with_replacement(range(size), 2))
    powers = [0] * len(bonds)
    for pair, power in products.items():
        first, second = sorted(map(law.index, pair))
        powers[bonds.index((first, second))] += natural(power, pair)
    state = (*powers, *law.powers(components))
    rows = [values[i * size : (i + 1) * size] for i in range(size)]
    return ring.write(_VectorMoments(rows, values[-1], bonds).value(state, ring))


@dataclass(frozen=True, slots=True)
class _VectorMoments:
    """The recursion of `vector_moment`; a state is the powers of the bonds (a, b), a <= b, then those of the components."""

    covariance: list[list[Any]]
    dimension: Any
    bonds: list[tuple[int, int]]

    def value(self, state: tuple[int, ...], ring: CoefficientRing) -> Any:
        """The moment of one state."""
        return LinearRecursion(self._step, ring.zero, {(0,) * len(state): ring.one}).value(state)

    def _step(self, state: tuple[int, ...]) -> list[tuple[Any, tuple[int, ...]]]:
        count = len(self.bonds)
        first = next(i for i, power in enumerate(state) if power)
        rest = lowered(state, first)
        if first >= count:
            return self._contracted(rest, first - count, None)
        a, b = self.bonds[first]
        own = [(self.covariance[a][b] * self.dimension, rest)] if self.covariance[a][b] else []
        return own + self._contracted(rest, a, b)

    def _contracted(self, rest: tuple[int, ...], a: int, b: int | None) -> list[tuple[Any, tuple[int, ...]]]:
        """The leg a contracted with every leg of `rest`, whose factor then continues with b (a first component if None)."""
        count, steps = len(self.bonds), []
        for place, power in enumerate(rest):
            if not power:
                continue
            lower = lowered(rest, place)
            if place < count:
                c, d = self.bonds[place]
                ends = [(c, d), (d, c)]
            else:
                ends = [(place - count, None)]
            for met, left in ends:
                if self.covariance[a][met]:
                    steps.append((self.covariance[a][met] * power, self._joined(lower, b, left)))
        return steps

    def _joined(self, powers: tuple[int, ...], b: int | None, d: int | None) -> tuple[int, ...]:
        """One factor more: u_b . u_d, a first component, or 1."""
        if b is None and d is None:
            return powers
        if b is None or d is None:
            place = len(self.bonds) + (d if b is None else b)  # type: ignore[operator]
        else:
            place = self.bonds.index((min(b, d), max(b, d)))
        return (*powers[:place], powers[place] + 1, *powers[place + 1 :])
