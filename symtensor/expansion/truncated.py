"""Truncated power series in several variables, with coefficients in any ring: what perturbation theory calculates with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import add
from typing import Any

__all__ = ["Truncated", "Truncation"]

Powers = tuple[int, ...]


@dataclass(frozen=True)
class Truncation:
    """The monomials that are kept: those with ``sum_i w_i e_i <= limit`` for every constraint (w, limit), all w_i >= 0.

    Together the constraints must bound every variable.

    Example:
        >>> len(list(Truncation((((1, 1), 2),)).monomials))
        6
    """

    constraints: tuple[tuple[Powers, int], ...]

    def allows(self, powers: Sequence[int]) -> bool:
        """Is the monomial kept?"""
        return all(sum(w * e for w, e in zip(weights, powers)) <= limit for weights, limit in self.constraints)

    @cached_property
    def size(self) -> int:
        """The number of variables."""
        return len(self.constraints[0][0]) if self.constraints else 0

    @cached_property
    def bounds(self) -> Powers:
        """The greatest power of each variable."""
        return tuple(min(limit // w[i] for w, limit in self.constraints if w[i]) for i in range(self.size))

    @cached_property
    def monomials(self) -> tuple[Powers, ...]:
        """All monomials that are kept, by total degree."""
        found: list[Powers] = [()]
        for i, bound in enumerate(self.bounds):
            rest = (0,) * (self.size - i - 1)
            found = [(*e, power) for e in found for power in range(bound + 1) if self.allows((*e, power, *rest))]
        return tuple(sorted(found, key=lambda e: (sum(e), e)))

    @cached_property
    def kept(self) -> frozenset[Powers]:
        """The monomials as a set."""
        return frozenset(self.monomials)


@dataclass(frozen=True, slots=True)
class Truncated:
    """A series: powers -> coefficient, without zeros. ``+ - *`` among series of one truncation, ``*`` with coefficients."""

    truncation: Truncation
    terms: Mapping[Powers, Any]

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __add__(self, other: Truncated) -> Truncated:
        terms = dict(self.terms)
        for key, value in other.terms.items():
            terms[key] = terms[key] + value if key in terms else value
        return self._new(terms)

    def __sub__(self, other: Truncated) -> Truncated:
        return self + other * -1

    def __mul__(self, other: Any) -> Truncated:
        if not isinstance(other, Truncated):
            return self._new({key: value * other for key, value in self.terms.items()})
        terms: dict[Powers, Any] = {}
        kept = self.truncation.kept
        for one, a in self.terms.items():
            for two, b in other.terms.items():
                key = tuple(map(add, one, two))
                if key in kept:
                    terms[key] = terms[key] + a * b if key in terms else a * b
        return self._new(terms)

    def derivative(self, i: int) -> Truncated:
        """The derivative in variable number i; what the truncation hides of it is left out."""
        return self._new(
            {(*k[:i], k[i] - 1, *k[i + 1 :]): value * k[i] for k, value in self.terms.items() if k[i]}
        )

    def substituted(
        self, values: Mapping[int, Truncated], one: Any, powers: dict[Powers, Truncated] | None = None
    ) -> Truncated:
        """The series with variable number i replaced by ``values[i]``; `one` is the coefficient 1.

        `powers` keeps products of the values from one call to the next with the same values.
        """
        places = sorted(values)
        powers = {} if powers is None else powers
        powers.setdefault((0,) * len(places), self._new({(0,) * self.truncation.size: one}))
        total = self._new({})
        for kept, inner in self._by_powers(places).items():
            total = total + inner * self._power(kept, places, values, powers)
        return total

    def _by_powers(self, places: Sequence[int]) -> dict[Powers, Truncated]:
        groups: dict[Powers, dict[Powers, Any]] = {}
        for key, value in self.terms.items():
            rest = tuple(0 if i in places else e for i, e in enumerate(key))
            groups.setdefault(tuple(key[i] for i in places), {})[rest] = value
        return {kept: self._new(terms) for kept, terms in groups.items()}

    def _power(
        self, key: Powers, places: Sequence[int], values: Mapping[int, Truncated], known: dict[Powers, Truncated]
    ) -> Truncated:
        if key not in known:
            i = next(i for i, power in enumerate(key) if power)
            lower = (*key[:i], key[i] - 1, *key[i + 1 :])
            known[key] = self._power(lower, places, values, known) * values[places[i]]
        return known[key]

    def part(self, places: Sequence[int], powers: Powers) -> Iterator[tuple[Powers, Any]]:
        """The terms with the given powers of the variables `places`, as (powers of the others, coefficient)."""
        for key, value in self.terms.items():
            if tuple(key[i] for i in places) == powers:
                yield tuple(e for i, e in enumerate(key) if i not in places), value

    def _new(self, terms: Mapping[Powers, Any]) -> Truncated:
        return Truncated(self.truncation, {key: value for key, value in terms.items() if value})
