"""Growth scales n^a (log n)^b (loglog n)^c in several sizes: products, powers, maxima, minima, and a comparison that may
answer "undecided".

Every scale has the normal form max_i min_j m_ij of monomials, because products and powers distribute over max and min.
In one size with decided exponents max and min disappear (the order is total and lexicographic in (a, b, c)); otherwise
they stay, and nothing is guessed. Constant factors do not count, logarithms always do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np
import sympy

from symtensor.expansion import ScaleError
from symtensor.parsing import CONSTANTS, FUNCTIONS

from ._input import is_positive_number
from .monomial import ONE, Monomial, exponent, hull_dominates, sign_set

__all__ = ["Comparison", "Scale", "ScaleError", "SizeParameter"]

Terms = tuple[tuple[Monomial, ...], ...]
MAX_MONOMIALS = 200
MAX_HULL = 24
MAX_CHOICES = 256
_MINUS = sympy.Integer(-1)


class Comparison(Enum):
    """f = o(g), f = Theta(g), g = o(f), or none of these is proved."""

    LESS = "o"
    EQUAL = "Theta"
    GREATER = "omega"
    UNDECIDED = "undecided"


def _is_expression(value: Any) -> bool:
    """An expression or tensor of this package, which has the reflected operations."""
    return not isinstance(value, Scale | SizeParameter | sympy.Basic) and hasattr(value, "slots") and hasattr(value, "family")


class _Arithmetic:
    """Products, quotients and powers shared by sizes and scales."""

    __slots__ = ()

    def __mul__(self, other: Any) -> Scale:
        if _is_expression(other):
            return NotImplemented  # the expression multiplies: scale("n") * M is M scaled
        return as_scale(self)._times(as_scale(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Scale:
        if _is_expression(other):
            return NotImplemented
        return as_scale(self)._times(as_scale(other)._power(_MINUS))

    def __rtruediv__(self, other: Any) -> Scale:
        return as_scale(other) / as_scale(self)

    def __pow__(self, power: Any) -> Scale:
        return as_scale(self)._power(exponent(power))


@dataclass(frozen=True, slots=True)
class SizeParameter(_Arithmetic):
    """A named size that tends to infinity, such as a width.

    Example:
        >>> n = SizeParameter("n")
        >>> n, n**0.5 * n.log()
        (n -> oo, sqrt(n) log n)
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise ScaleError(f"a size needs a name such as 'n', given {self.name!r}")
        if self.name in FUNCTIONS or self.name in CONSTANTS or self.name == "loglog":
            raise ScaleError(f"{self.name!r} is a function or constant in formulas, no size; choose another name")

    @property
    def symbol(self) -> sympy.Symbol:
        """The positive SymPy symbol of this name."""
        return sympy.Symbol(self.name, positive=True)

    def log(self) -> Scale:
        """The scale log n."""
        return as_scale(self).log()

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{self.name} -> oo"


@dataclass(frozen=True, slots=True, repr=False)
class Scale(_Arithmetic):
    """A positive function of the sizes, up to constant factors: max over i of min over j of monomials.

    Made by `scale`, by arithmetic on `SizeParameter`, or by `Scale.power_of`.

    Raises:
        ScaleError: an undeclared exponent, a power of unknown sign of a maximum, a size without value.

    Example:
        >>> n, m = SizeParameter("n"), SizeParameter("m")
        >>> f = n**2 * n.log()
        >>> f.compare(n**2), f.equal_up_to_logs(n**2), Scale.max(f, n**3)
        (<Comparison.GREATER: 'omega'>, True, n^3)
        >>> Scale.max(n, m), Scale.max(n, m).subs({m: n})
        (max(m, n), n)
    """

    terms: Terms

    @classmethod
    def one(cls) -> Scale:
        """The constant scale 1."""
        return cls(((ONE,),))

    @classmethod
    def power_of(cls, size: SizeParameter | str, power: Any = 1, log: Any = 0, loglog: Any = 0) -> Scale:
        """n^power (log n)^log (loglog n)^loglog."""
        name = size.name if isinstance(size, SizeParameter) else SizeParameter(size).name
        return cls(((Monomial.of({name: (power, log, loglog)}),),))

    @staticmethod
    def max(*scales: Any) -> Scale:
        """The largest: one of them where that is decided, else a maximum that stays. Theta-equal to the sum."""
        return _joined(scales, upper=True)

    @staticmethod
    def min(*scales: Any) -> Scale:
        """The smallest: one of them where that is decided, else a minimum that stays."""
        return _joined(scales, upper=False)

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the sizes that occur."""
        return tuple(sorted({name for mono in self.monomials for name, _ in mono.powers}))

    @property
    def monomials(self) -> tuple[Monomial, ...]:
        """All monomials under the maxima and minima."""
        return tuple(mono for group in self.terms for mono in group)

    @property
    def exponents(self) -> tuple[tuple[str, tuple[sympy.Expr, sympy.Expr, sympy.Expr]], ...]:
        """(size, (a, b, c)) of a scale without max and min; a ScaleError otherwise."""
        if len(self.monomials) != 1:
            raise ScaleError(f"{self} is no monomial: relate the sizes first, e.g. .subs({{'m': 'n'}})")
        return self.monomials[0].powers

    def _times(self, other: Scale) -> Scale:
        if self.terms == _ONE_TERMS:
            return other
        if other.terms == _ONE_TERMS:
            return self
        if len(self.terms) == len(other.terms) == len(self.terms[0]) == len(other.terms[0]) == 1:
            return Scale(((self.terms[0][0] * other.terms[0][0],),))
        return _normal([[x * y for x, y in product(a, b)] for a, b in product(self.terms, other.terms)])

    def _power(self, p: sympy.Expr) -> Scale:
        if len(self.monomials) == 1:
            return Scale(((self.monomials[0] ** p,),))
        sign = sign_set(p)
        if sign <= {0, 1}:
            return _normal([[x**p for x in group] for group in self.terms])
        if sign <= {0, -1}:  # 1/max = min of inverses, 1/min = max of inverses; then distribute min over max
            _guard(prod(map(len, self.terms)))
            inverse = [[x**p for x in group] for group in self.terms]
            return _normal([list(choice) for choice in product(*inverse)])
        raise ScaleError(f"({self})^({p}) needs the sign of {p}: declare it, or relate the sizes first")

    def within(self, other: Any) -> bool:
        """Whether this scale is proved to be O(other)."""
        return _below(self, as_scale(other), strict=False)

    def compare(self, other: Any) -> Comparison:
        """The strongest proved relation; `within` answers O alone."""
        return _compare(self, as_scale(other))

    def equal_up_to_logs(self, other: Any) -> bool:
        """Whether both agree after every logarithm is dropped: the relation ~, never used by the rules."""
        mine, theirs = self.without_logs(), as_scale(other).without_logs()
        return mine.within(theirs) and theirs.within(mine)

    def without_logs(self) -> Scale:
        """The powers of the sizes alone."""
        return _normal([[mono.without_logs() for mono in group] for group in self.terms])

    def limit(self) -> str:
        """``"0"``, ``"1"`` (bounded both ways), ``"oo"`` or ``"undecided"`` as all sizes tend to infinity."""
        found = self.compare(Scale.one())
        return {Comparison.LESS: "0", Comparison.EQUAL: "1", Comparison.GREATER: "oo"}.get(found, "undecided")

    def log(self) -> Scale:
        """The scale of log(f) for a scale f that tends to infinity: log(n^a m^b) ~ max(log n, log m).

        Raises:
            ScaleError: f does not tend to infinity, or its logarithm leaves the group (logloglog n).
        """
        if self.limit() != "oo":
            raise ScaleError(f"log({self}) needs a scale that tends to infinity")
        from .regimes import log_of

        return self._map(lambda mono: log_of(mono, self))

    def subs(self, relations: Mapping[Any, Any]) -> Scale:
        """Relate sizes (a regime): ``{m: n}``, ``{p: n**gamma}``, or a number for a size that stays fixed."""
        from .regimes import substitute

        images = {_name(key): value for key, value in relations.items()}
        return self._map(lambda mono: substitute(mono, images))

    def _map(self, image: Callable[[Monomial], Scale]) -> Scale:
        return Scale.max(*(Scale.min(*map(image, group)) for group in self.terms))

    def evaluate(self, sizes: Mapping[Any, Any]) -> Any:
        """The value at given sizes (numbers or arrays, broadcast), float64; exponent symbols by their name.

        Example:
            >>> (SizeParameter("n") ** 0.5).evaluate({"n": 64})
            8.0
        """
        values = {_name(key): value for key, value in sizes.items()}
        groups = [reduce(np.minimum, [mono.evaluate(values) for mono in group]) for group in self.terms]
        found = reduce(np.maximum, groups)
        return float(found) if np.ndim(found) == 0 else found

    def __repr__(self) -> str:
        from .scale_text import text_of

        return text_of(self)

    def latex(self) -> str:
        """The scale as LaTeX."""
        from .scale_text import latex_of

        return latex_of(self)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"


_ONE_TERMS: Terms = ((ONE,),)


def as_scale(value: Any) -> Scale:
    """A scale from a scale, a size, a text, or a positive constant (which is the scale 1)."""
    if isinstance(value, Scale):
        return value
    if isinstance(value, SizeParameter):
        return Scale.power_of(value)
    if isinstance(value, str):
        from .scale_text import scale

        return scale(value)
    if not is_positive_number(value):
        raise ScaleError(f"{value!r} is no scale: give a text such as 'sqrt(n) log(n)', a size, or a positive constant")
    return Scale.one()


def _name(key: Any) -> str:
    return key.name if isinstance(key, SizeParameter | sympy.Symbol) else str(key)


def _joined(scales: Iterable[Any], upper: bool) -> Scale:
    parts = [as_scale(value) for value in scales]
    if not parts:
        raise ScaleError("a maximum or minimum needs at least one scale")
    if all(part == parts[0] for part in parts):
        return parts[0]
    if upper:
        return _normal([group for part in parts for group in part.terms])
    _guard(prod(len(part.terms) for part in parts))
    return _normal([sum(choice, ()) for choice in product(*(part.terms for part in parts))])


def _normal(groups: Iterable[Iterable[Monomial]]) -> Scale:
    """Drop what is proved redundant, order the rest."""
    given = [frozenset(group) for group in groups]
    _guard(sum(map(len, given)))
    kept = _maxima({_minima(group) for group in given})
    if len(kept) > 1 and any(len(group) > 1 for group in kept):
        kept = _one_monomial(kept)
    return Scale(tuple(sorted((tuple(sorted(group, key=_key)) for group in kept), key=lambda g: [_key(m) for m in g])))


def _guard(number: int) -> None:
    """Refuse before the work: distributing products over maxima grows fast while sizes are unrelated."""
    if number > MAX_MONOMIALS:
        raise ScaleError(f"{number} monomials that may be incomparable: relate the sizes first, e.g. .subs({{'m': 'n'}})")


def _one_monomial(kept: list[frozenset[Monomial]]) -> list[frozenset[Monomial]]:
    """max(n, m) min(n, m) is n m: a single monomial is recognised, so that equal scales print equally."""
    whole = Scale(tuple(tuple(group) for group in kept))
    for mono in sorted({m for group in kept for m in group}, key=_key):
        single = Scale(((mono,),))
        if _below(whole, single, strict=False) and _below(single, whole, strict=False):
            return [frozenset((mono,))]
    return kept


@lru_cache(maxsize=8192)
def _key(mono: Monomial) -> str:
    return str(mono.powers)


@lru_cache(maxsize=4096)
def _minima(group: frozenset[Monomial]) -> frozenset[Monomial]:
    if len(group) == 1:
        return group
    kept = list(group)
    for mono in sorted(group, key=_key):
        others = [m for m in kept if m != mono]
        if any(m.within(mono) for m in others):
            kept = others
    inverses = [m**_MINUS for m in kept]
    return frozenset(m for m, inverse in zip(kept, inverses, strict=True) if not _inside(inverse, inverses))


def _maxima(groups: set[frozenset[Monomial]]) -> list[frozenset[Monomial]]:
    kept = sorted(groups, key=lambda g: sorted(map(_key, g)))
    for group in list(kept):
        others = [g for g in kept if g != group]
        if any(_group_below(group, g, strict=False) for g in others):
            kept = others
    single = [next(iter(g)) for g in kept if len(g) == 1]
    return [g for g in kept if len(g) > 1 or not _inside(next(iter(g)), single)]


def _inside(mono: Monomial, family: list[Monomial]) -> bool:
    """Whether a weighted geometric mean of two others dominates: n m <= max(n^2, m^2)."""
    others = [m for m in family if m != mono]
    if len(others) > MAX_HULL:  # a sharper normal form only; without it the scale stays valid
        return False
    return any(hull_dominates(a, b, mono) for i, a in enumerate(others) for b in others[:i])


def _group_below(low: Iterable[Monomial], high: Iterable[Monomial], strict: bool) -> bool:
    """min(low) <= min(high): below each element of ``high`` lies one of ``low``."""
    low = tuple(low)
    return all(any((x / y).vanishes() if strict else x.within(y) for x in low) for y in high)


def _below(f: Scale, g: Scale, strict: bool) -> bool:
    """f <= g: each min of f lies below g, and g is the min over all choices of one monomial per group."""
    if all(any(_group_below(low, high, strict) for high in g.terms) for low in f.terms):
        return True
    choices = prod(map(len, g.terms))
    if choices > MAX_CHOICES:
        return False
    return all(_min_below_max(low, choice, strict) for choice in product(*g.terms) for low in f.terms)


def _min_below_max(low: Iterable[Monomial], high: Iterable[Monomial], strict: bool) -> bool:
    low, high = list(low), list(high)
    if any((x / y).vanishes() if strict else x.within(y) for x in low for y in high):
        return True
    if strict:
        return False
    turned = [x**_MINUS for x in low]
    return any(_inside(x, high) for x in low) or any(_inside(y**_MINUS, turned) for y in high)


@lru_cache(maxsize=8192)
def _compare(f: Scale, g: Scale) -> Comparison:
    if f == g:
        return Comparison.EQUAL
    if _below(f, g, strict=True):
        return Comparison.LESS
    if _below(g, f, strict=True):
        return Comparison.GREATER
    if f.within(g) and g.within(f):
        return Comparison.EQUAL
    return Comparison.UNDECIDED
