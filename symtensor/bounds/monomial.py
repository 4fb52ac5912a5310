"""Monomials prod_i n_i^a_i (log n_i)^b_i (loglog n_i)^c_i of size parameters that tend to infinity, and their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy

from symtensor.expansion import ScaleError

from ._input import exact

__all__ = ["ONE", "Exponents", "Monomial", "exponent", "hull_dominates", "signs"]

Exponents = tuple[sympy.Expr, sympy.Expr, sympy.Expr]
Signs = frozenset[int]
_ANY: Signs = frozenset((-1, 0, 1))


def exponent(value: Any) -> sympy.Expr:
    """An exact real exponent: decimals become the rational they show, symbols must be declared real.

    Raises:
        ScaleError: a complex, infinite or undeclared exponent.
    """
    found = exact(value)
    if not isinstance(found, sympy.Expr) or not found.is_extended_real or found.is_infinite:
        raise ScaleError(f"the exponent {value} must be real; declare a symbol with Symbol({str(value)!r}, real=True)")
    return found


@lru_cache(maxsize=4096)
def sign_set(value: sympy.Expr) -> Signs:
    """The signs that ``value`` may have, as far as SymPy's assumptions decide."""
    if value.is_Rational:
        return frozenset((int(sympy.sign(value)),))
    value = sympy.expand(value)
    impossible = {
        1: value.is_nonpositive,
        -1: value.is_nonnegative,
        0: value.is_nonzero,
    }
    return frozenset(sign for sign in _ANY if not impossible[sign])


def signs(triple: Exponents) -> Signs:
    """Signs of the logarithm of n^a (log n)^b (loglog n)^c for large n: the first exponent that is not 0 decides."""
    found: set[int] = set()
    for value in triple:
        here = sign_set(value)
        found |= here - {0}
        if 0 not in here:
            return frozenset(found)
    return frozenset(found | {0})


@dataclass(frozen=True, slots=True)
class Monomial:
    """A product of powers of sizes, of their logarithms and of their iterated logarithms.

    Attributes:
        powers: (name, (a, b, c)) sorted by name, without the trivial ones.
    """

    powers: tuple[tuple[str, Exponents], ...] = ()

    @classmethod
    def of(cls, powers: Mapping[str, Iterable[Any]]) -> Monomial:
        """The monomial with the given exponents, checked and in canonical order."""
        kept = []
        for name in sorted(powers):
            a, b, c = (exponent(value) for value in powers[name])
            if not (a.is_zero and b.is_zero and c.is_zero):
                kept.append((name, (a, b, c)))
        return cls(tuple(kept))

    def __mul__(self, other: Monomial) -> Monomial:
        if not self.powers or not other.powers:
            return self if self.powers else other
        total = dict(self.powers)
        for name, (a, b, c) in other.powers:
            x, y, z = total.get(name, _ZEROS)
            total[name] = (_plus(x, a), _plus(y, b), _plus(z, c))
        return Monomial(tuple((k, total[k]) for k in sorted(total) if any(not v.is_zero for v in total[k])))

    def __pow__(self, power: Any) -> Monomial:
        p = exponent(power)
        return Monomial.of({name: [sympy.expand(v * p) for v in triple] for name, triple in self.powers})

    def __truediv__(self, other: Monomial) -> Monomial:
        return self * other ** sympy.Integer(-1)

    @property
    def direction(self) -> tuple[Signs, ...]:
        """Signs of the growth in every size."""
        return tuple(signs(triple) for _, triple in self.powers)

    def bounded(self) -> bool:
        """Whether the monomial is O(1) for sizes that tend to infinity in any way."""
        return all(1 not in found for found in self.direction)

    def vanishes(self) -> bool:
        """Whether it tends to 0: it is bounded, and in one size it decreases."""
        return self.bounded() and any(found == {-1} for found in self.direction)

    def within(self, other: Monomial) -> bool:
        """Whether this monomial is O(other)."""
        if self == other:
            return True
        mine, theirs = dict(self.powers), dict(other.powers)
        for name in {**mine, **theirs}:
            pairs = zip(mine.get(name, _ZEROS), theirs.get(name, _ZEROS), strict=True)
            # one size that grows settles it; equal exponents need no arithmetic
            if 1 in signs(tuple(sympy.S.Zero if x == y else _plus(x, -y) for x, y in pairs)):  # type: ignore[arg-type]
                return False
        return True

    def without_logs(self) -> Monomial:
        """Only the powers of the sizes."""
        return Monomial.of({name: (triple[0], 0, 0) for name, triple in self.powers})

    def evaluate(self, sizes: Mapping[str, Any]) -> Any:
        """The value at given sizes, in float64."""
        value: Any = np.float64(1.0)
        for name, triple in self.powers:
            value = value * _factor(name, triple, sizes)
        return value


_ZEROS: Exponents = (sympy.S.Zero, sympy.S.Zero, sympy.S.Zero)
ONE = Monomial()


def _plus(x: sympy.Expr, y: sympy.Expr) -> sympy.Expr:
    if x is sympy.S.Zero:
        return y
    total = x + y
    return total if total.is_Rational else sympy.expand(total)


def _number(value: sympy.Expr, sizes: Mapping[str, Any]) -> float:
    missing = [s.name for s in value.free_symbols if s.name not in sizes]  # type: ignore[attr-defined]
    if missing:
        raise ScaleError(f"the exponent {value} has no value: give {', '.join(sorted(missing))} too")
    return float(value.subs({s: exact(sizes[s.name]) for s in value.free_symbols}))  # type: ignore[attr-defined]


def _factor(name: str, triple: Exponents, sizes: Mapping[str, Any]) -> Any:
    if name not in sizes:
        raise ScaleError(f"the size {name} has no value; given: {', '.join(map(str, sizes)) or 'nothing'}")
    base = np.asarray(sizes[name], dtype=np.float64)
    value: Any = np.float64(1.0)
    for level, power in enumerate(triple):
        if power.is_zero:
            continue
        current = base
        for _ in range(level):
            if np.any(current <= 0):
                raise ScaleError(f"{_LEVELS[level].format(name)} needs larger sizes, given {name} = {sizes[name]!r}")
            current = np.log(current)
        if not np.all((current > 0) & np.isfinite(current)):
            least = "0 (finite)" if level == 0 else "1" if level == 1 else "e"
            raise ScaleError(f"{_LEVELS[level].format(name)} needs {name} > {least}, given {name} = {sizes[name]!r}")
        value = value * current ** _number(power, sizes)
    return value


_LEVELS = ("{}", "log {}", "loglog {}")


def hull_dominates(first: Monomial, second: Monomial, below: Monomial) -> bool:
    """Whether ``below`` is O(first^w second^(1-w)) for some 0 < w < 1, and hence O(max(first, second)).

    The weight is looked for among those that make one exponent equal; only rational exponents are tried.
    """
    a, b, t = dict(first.powers), dict(second.powers), dict(below.powers)
    tried = set()
    for name in {*a, *b, *t}:
        for x, y, z in zip(a.get(name, _ZEROS), b.get(name, _ZEROS), t.get(name, _ZEROS), strict=True):
            if x != y and x.is_Rational and y.is_Rational and z.is_Rational:
                tried.add((z - y) / (x - y))
    return any(below.within(first**w * second ** (1 - w)) for w in tried if 0 < w < 1)
