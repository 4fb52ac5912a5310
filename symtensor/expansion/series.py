"""Lazy, order-indexed series: a coefficient is computed when it is first asked for, and then kept.

A `Series` is ``sum_{k >= start} c_k s^k`` with s = x - x0 (1/x at infinity), optionally with an error O(s^p log^q).
Its coefficients are any objects with ``+`` and ``*``: SymPy expressions, tensor expressions, numbers, intervals.
The idea of a lazy, order-indexed, cached series follows Pymablock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sympy

from . import series_algebra as algebra
from .coefficients import add, exact, product, structurally_zero, total, write_sum
from .order_term import OrderTerm, UnknownTerm
from .scale import LimitPointError, Scale, coarsest, limit_point, local_parameter

SHOWN_TERMS = 6  # an untruncated series displays this many orders


class UnknownCoefficientError(ValueError):
    """A coefficient at or beyond the order to which the series is known."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Series:
    """The lazy series ``sum_{k >= start} rule(k) s^k + O(error)`` around ``variable = point``.

    Args:
        variable: the expansion variable x.
        point: the limit point x0, a finite value, ``oo`` or ``-oo``; s is x - x0, or 1/x at infinity.
        rule: k -> c_k, called at most once for each k and only on demand. Never called below ``start``.
        order: ``None`` (known to every order), an integer n (error O(s^n)) or a `Scale` (error O(s^p log^q)).
        start: lowest order that may be nonzero; negative for Laurent series.
        stop: if given, all c_k with k >= stop vanish exactly (a polynomial); not the same as an error.
        zero: what `coefficient` returns outside ``start <= k < stop``.
        assumptions: expressions that had to be assumed nonzero because SymPy could not decide (divisions).

    Two series never compare equal by ``==``: an O-term is an unknown. Use `agrees`.

    Raises:
        UnknownCoefficientError: asking for a coefficient that the error hides.
        LimitPointError: combining series in different variables or at different points.

    Example:
        >>> x = sympy.Symbol("x")
        >>> geometric = Series(x, 0, lambda k: sympy.Integer(1))
        >>> (geometric * geometric).truncate(3)
        1 + 2*x + 3*x**2 + O(x**3, x -> 0)
    """

    variable: sympy.Symbol
    point: Any
    rule: Callable[[int], Any]
    order: int | Scale | None = None
    start: int = 0
    stop: int | None = None
    zero: Any = sympy.S.Zero
    assumptions: frozenset[sympy.Expr] = frozenset()
    _cache: dict[int, Any] = field(default_factory=dict, init=False)

    # SymPy scalars and NumPy arrays hand mixed products over to this class.
    _op_priority = 1000.0
    __array_ufunc__ = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", limit_point(self.point))
        if isinstance(self.order, Scale) and self.order.log == 0 and self.order.power.is_Integer:
            object.__setattr__(self, "order", int(self.order.power))

    @classmethod
    def polynomial(
        cls, variable: sympy.Symbol, point: Any, coefficients: Mapping[int, Any] | Iterable[Any], **options: Any
    ) -> Series:
        """The exact series with the given coefficients: a mapping order -> coefficient, or a list from order 0 on.

        Example:
            >>> n = sympy.Symbol("n")
            >>> Series.polynomial(n, sympy.oo, [sympy.Rational(1, 3), 1]).inverse().truncate(4)
            3 - 9/n + 27/n**2 - 81/n**3 + O(n**(-4), n -> oo)
        """
        given = coefficients if isinstance(coefficients, Mapping) else dict(enumerate(coefficients))
        table = {k: exact(c) for k, c in given.items() if not structurally_zero(c)}
        zero = options.get("zero", sympy.S.Zero)
        start, stop = (min(table), max(table) + 1) if table else (0, 0)
        return cls(variable, point, lambda k: table.get(k, zero), start=start, stop=stop, **options)

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def scale(self) -> sympy.Expr:
        """The local parameter s."""
        return local_parameter(self.variable, self.point)

    @property
    def error(self) -> Scale | None:
        """The scale of the O-term, ``None`` for a series known to every order."""
        return Scale(self.order) if isinstance(self.order, int) else self.order

    @property
    def known(self) -> int | None:
        """The lowest order whose coefficient is hidden by the error; ``None`` if there is none."""
        return None if self.error is None else self.error.first_unknown

    @property
    def order_term(self) -> OrderTerm | None:
        """The error as an O-term, a new unknown at each reading."""
        return None if self.error is None else OrderTerm.from_scale(self.error, self.variable, self.point)

    @property
    def evaluations(self) -> int:
        """How many coefficients of this series have been computed so far."""
        return len(self._cache)

    def coefficient(self, k: int) -> Any:
        """The coefficient c_k of s^k."""
        if self.known is not None and k >= self.known:
            raise UnknownCoefficientError(
                f"coefficient {k} is hidden by {self.order_term}; this series is known below order {self.known}"
            )
        if k < self.start or (self.stop is not None and k >= self.stop):
            return self.zero
        if k not in self._cache:
            self._cache[k] = exact(self.rule(k))
        return self._cache[k]

    __getitem__ = coefficient

    def __iter__(self) -> Any:
        raise TypeError("a series may be infinite and is not iterated; use terms(n), which lists the orders below n")

    def terms(self, n: int | None = None) -> tuple[tuple[int, Any], ...]:
        """The pairs (k, c_k) with c_k not structurally zero, for k below ``n`` (default: as far as finitely known)."""
        end = self._end(n)
        pairs = ((k, self.coefficient(k)) for k in range(self.start, end))
        return tuple((k, c) for k, c in pairs if not structurally_zero(c))

    def partial_sum(self, n: int | None = None, at: Any = None) -> Any:
        """The sum of the terms below order ``n`` without the O-term, at ``variable = at`` (default: symbolically)."""
        s = self.scale if at is None else self._local(at)
        return total((product(c, s**k) if k else c for k, c in self.terms(n)), self.zero)

    def remainder(self, n: int) -> Series:
        """What `partial_sum` (n) leaves out, as a series starting at order ``n``."""
        return replace(self, rule=self.coefficient, start=max(n, self.start))

    def valuation(self) -> int:
        """The order of the first coefficient that is not zero (evaluates coefficients until it is found)."""
        return algebra.leading(self)[0]

    def agrees(self, other: Series, n: int | None = None) -> bool:
        """Whether all coefficients that both series know (and below ``n``) are equal after simplification."""
        ends = [e for e in (n, self.known, other.known) if e is not None]
        if not ends and self.stop is not None and other.stop is not None:
            ends = [max(self.stop, other.stop)]
        if not ends:
            raise UnknownCoefficientError("both series are infinite; say up to which order they are to be compared")
        low = min(self.start, other.start)
        return all(
            algebra.is_zero(add(self.coefficient(k), -other.coefficient(k))) is True for k in range(low, min(ends))
        )

    # -- transforming -------------------------------------------------------------------------------------------------

    def truncate(self, n: int | Scale) -> Series:
        """The same series with error at least O(s^n). It shares the coefficients computed so far, and later ones."""
        error = coarsest((self.error, Scale(n) if isinstance(n, int) else n))
        return replace(self, rule=self.coefficient, order=error)

    def map(self, function: Callable[[Any], Any]) -> Series:
        """Apply a linear function to each coefficient, lazily (simplification, a contraction, evaluation)."""
        return replace(self, rule=lambda k: function(self.coefficient(k)))

    def shift(self, k: int) -> Series:
        """The series times s^k."""
        error = None if self.error is None else self.error * Scale(k)
        stop = None if self.stop is None else self.stop + k
        return replace(self, rule=lambda m: self.coefficient(m - k), order=error, start=self.start + k, stop=stop)

    def subs(self, values: Mapping[Any, Any]) -> Series:
        """Substitute parameters (not the expansion variable) in every coefficient and in the point, lazily."""
        given = {sympy.sympify(key): sympy.sympify(value) for key, value in values.items()}
        if self.variable in given or any(v.has(self.variable) for v in given.values()):
            raise ValueError(f"{self.variable} is the expansion variable: use compose() or partial_sum(n, at=value)")
        result = self.map(lambda c: c.subs(given) if hasattr(c, "subs") else c)
        assumed = frozenset(a.subs(given) for a in self.assumptions)
        return replace(result, point=self.point.subs(given), assumptions=assumed)

    def compose(self, inner: Series) -> Series:
        """This series at ``variable = inner``, a series that tends to this series' point."""
        return algebra.compose(self, inner)

    def inverse(self) -> Series:
        """The series 1/self. Needs one nonzero leading coefficient; exact and interval coefficients alike."""
        return algebra.power(self, sympy.Integer(-1))

    # -- arithmetic ---------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Series:
        return algebra.add(self, self.lift(other))

    __radd__ = __add__

    def __neg__(self) -> Series:
        return self.map(lambda c: -c)

    def __sub__(self, other: Any) -> Series:
        return self + (-self.lift(other))

    def __rsub__(self, other: Any) -> Series:
        return -self + other

    def __mul__(self, other: Any) -> Series:
        if isinstance(other, Series | OrderTerm):
            return algebra.multiply(self, self.lift(other))
        scalar = self._scalar(other)
        return self.map(lambda c: product(c, scalar))

    def __rmul__(self, other: Any) -> Series:
        return self * other

    def __truediv__(self, other: Any) -> Series:
        if isinstance(other, Series | OrderTerm):
            return self * self.lift(other).inverse()
        scalar = self._scalar(other)
        return self.map(lambda c: c / scalar)

    def __rtruediv__(self, other: Any) -> Series:
        return self.inverse() * other

    def __pow__(self, exponent: Any) -> Series:
        return algebra.power(self, sympy.sympify(exponent))

    def lift(self, other: Any) -> Series:
        """Read a scalar, an O-term or a series as a series in this variable at this point."""
        if isinstance(other, OrderTerm):
            other.require(self.variable, self.point)
            return Series(self.variable, self.point, lambda k: self.zero, other.scale, other.scale.first_unknown)
        if isinstance(other, Series):
            if (other.variable, other.point) != (self.variable, self.point):
                raise LimitPointError(
                    f"a series in {other.variable} -> {other.point} cannot be combined with one in "
                    f"{self.variable} -> {self.point}; use compose() to change the variable"
                )
            return other
        return Series.polynomial(self.variable, self.point, [self._scalar(other)], zero=self.zero)

    def _local(self, value: Any) -> Any:
        if self.point.is_infinite:
            return 1 / exact(value)
        return value - (int(self.point) if self.point.is_Integer else self.point)

    def _scalar(self, value: Any) -> Any:
        if isinstance(value, sympy.Basic) and value.has(self.variable):
            raise ValueError(f"{value} contains the expansion variable {self.variable}: expand it by series() first")
        if isinstance(value, sympy.Basic) and value.atoms(UnknownTerm):
            raise ValueError(f"{value} contains an O-term and is no coefficient: expand it by series() first")
        return exact(value)

    def _end(self, n: int | None) -> int:
        ends = [e for e in (n, self.known, self.stop) if e is not None]
        if not ends:
            raise UnknownCoefficientError("this series is infinite: say up to which order its terms are wanted")
        if n is not None and self.known is not None and n > self.known:
            raise UnknownCoefficientError(f"terms below order {n} were asked for, known are those below {self.known}")
        return min(ends)

    # -- display ------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return self._written(latex=False)

    def latex(self) -> str:
        """The series as LaTeX, with its O-term; an untruncated one shows `SHOWN_TERMS` orders and dots."""
        return self._written(latex=True)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def _written(self, latex: bool) -> str:
        infinite = self.known is None and self.stop is None
        terms = self.terms(self.start + SHOWN_TERMS if infinite else None)
        ending = (r"\cdots" if latex else "...") if infinite else ""
        if self.order_term is not None:
            ending = self.order_term.latex() if latex else str(self.order_term)
        return write_sum(terms, self.scale, ending, latex)
