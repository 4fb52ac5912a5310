"""A series in couplings whose coefficients are numbers or exact sums of t^p exp(-rate t): what a moment hierarchy returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from symtensor.expansion.series import Series, UnknownCoefficientError
from symtensor.fields.errors import SourceError

__all__ = ["TimeSeries"]

#: ((rate, power) for each time difference): coefficient
Terms = Mapping[tuple[tuple[sp.Expr, int], ...], sp.Expr]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TimeSeries:
    """``s[n]`` is the coefficient of order n; ``s.expr`` the sum; ``s.terms(n)`` the exponentials of one order.

    `times` are the positive differences between successive times, the latest pair first; empty for equal times. With one
    coupling the coefficient leaves its power out; with several weighted ones it includes their powers.
    """

    couplings: tuple[sp.Symbol, ...]
    times: tuple[sp.Symbol, ...]
    parts: tuple[Terms, ...]

    def __getitem__(self, order: int) -> sp.Expr:
        """The coefficient of one order; raises UnknownCoefficientError beyond what was computed."""
        return sp.Add(*(c * self._factor(key) for key, c in self.terms(order)))

    def _factor(self, key: Sequence[tuple[sp.Expr, int]]) -> sp.Expr:
        exponent = sp.Add(*(-rate * time for (rate, _), time in zip(key, self.times)))
        return sp.Mul(*(time**power for (_, power), time in zip(key, self.times))) * sp.exp(exponent)

    def terms(self, order: int) -> Iterator[tuple[tuple[tuple[sp.Expr, int], ...], sp.Expr]]:
        """(((rate, power) for each time difference), coefficient) of one order."""
        if not isinstance(order, int) or not 0 <= order < len(self.parts):
            raise UnknownCoefficientError(f"order {order} was not computed, only 0 to {self.order}; ask for a higher order")
        return iter(self.parts[order].items())

    def power(self, order: int) -> sp.Expr:
        """What multiplies the coefficient of an order in the sum: g^order for one coupling, else 1."""
        return self.couplings[0] ** order if len(self.couplings) == 1 else sp.S.One

    @property
    def order(self) -> int:
        """The highest order that was computed."""
        return len(self.parts) - 1

    @property
    def expr(self) -> sp.Expr:
        """The sum over all orders."""
        return sp.Add(*(self.power(n) * self[n] for n in range(len(self.parts))))

    def series(self) -> Series:
        """The series in its one coupling, with the O-term."""
        if len(self.couplings) != 1:
            raise SourceError(f"the series has {len(self.couplings)} couplings; only a series in one has one O-term")
        coefficients = {n: sp.expand(self[n]) for n in range(len(self.parts))}
        return Series.polynomial(self.couplings[0], 0, coefficients).truncate(len(self.parts))

    def values(self, times: Any = None, parameters: Mapping[Any, Any] | None = None) -> NDArray[np.float64]:
        """Every order at given times and parameters, in float64: shape (orders, *times); the coupling is not multiplied in.

        `times` is one array for one time difference, a sequence of arrays of one shape for several, None for equal times.

        Raises SourceError: a parameter without a value, or the wrong number of times.
        """
        several = len(self.times) > 1 and np.ndim(times) > 0
        grids = [] if times is None else list(times) if several else [times]
        if len(grids) != len(self.times):
            raise SourceError(f"{len(grids)} time differences are given, {len(self.times)} are required")
        arrays = [np.asarray(grid, float) for grid in grids]
        put = {str(name): sp.sympify(value, strict=True) for name, value in (parameters or {}).items()}
        shape = np.broadcast_shapes(*(a.shape for a in arrays)) if arrays else ()
        return np.stack([self._order_values(n, arrays, put, shape) for n in range(len(self.parts))])

    def _order_values(self, n: int, arrays: list[Any], put: Mapping[str, Any], shape: tuple[int, ...]) -> Any:
        total: Any = np.zeros(shape, complex)
        for key, c in self.terms(n):
            part = np.full(shape, _number(c, put))
            for (rate, power), t in zip(key, arrays):
                part = part * t**power * np.exp(-_number(rate, put) * t)
            total = total + part
        return total.real

    def __repr__(self) -> str:
        shown = [f"({sp.sstr(self[n])})*{sp.sstr(self.power(n))}" for n in range(len(self.parts)) if self.parts[n]]
        return " + ".join(shown or ["0"]) + " + ..."


def _number(expression: sp.Expr, put: Mapping[str, Any]) -> complex:
    value: Any = expression.xreplace({s: put[str(s)] for s in expression.free_symbols if str(s) in put})
    if value.free_symbols:
        missing = ", ".join(sorted(map(str, value.free_symbols)))
        raise SourceError(f"the parameters {missing} have no value; give parameters={{{missing.split(', ')[0]}: ..}}")
    return complex(value.evalf(17))
