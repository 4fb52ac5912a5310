"""Exact sums of terms  c t^p exp(-E t)  in one or several time differences.

The value of a diagram with its internal times integrated is such a sum. `windows` counts the time differences
t_0 - t_1 > 0, t_1 - t_2 > 0, .. between external times, latest first. An energy E is an integer vector over `rates`,
so that equal energies are recognised without any simplification.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from symtensor.fields._linear_rates import linear_rates

__all__ = ["ExponentialSum"]

Energy = tuple[int, ...]
Key = tuple[tuple[Energy, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class ExponentialSum:
    """sum over terms of  coefficient * product over windows of  t_w^power exp(-E_w t_w).

    Parameters
    ----------
    rates : elementary rates, linearly independent over the rationals.
    windows : number of time differences; 0 for a constant.
    terms : {((energy, power) for each window): coefficient}, energies as integer vectors over `rates`.

    Examples
    --------
    >>> import sympy as sp
    >>> m, t, w = sp.symbols("m t omega", positive=True)
    >>> f = ExponentialSum.exponential(m, 1 / m)
    >>> f.expr(t)
    exp(-m*t)/m
    >>> f.derivative().expr(t), f.equal_time().value, f.fourier(w)
    (-exp(-m*t), 1/m, 1/(m*(m - I*omega)))
    """

    rates: tuple[sp.Expr, ...]
    windows: int
    terms: Mapping[Key, sp.Expr]

    def __post_init__(self) -> None:
        for key in self.terms:
            if len(key) != self.windows or any(len(energy) != len(self.rates) or power < 0 for energy, power in key):
                raise ValueError(
                    f"term {key} does not fit {self.windows} window(s) and {len(self.rates)} elementary rate(s): "
                    "one (energy, power) per window is required, the energy a vector over the rates, the power not negative"
                )

    @classmethod
    def constant(cls, value: Any = 0, windows: int = 0) -> ExponentialSum:
        """A constant in `windows` windows; the empty sum if it is zero."""
        coefficient = sp.sympify(value, strict=True)
        return cls((), windows, {} if coefficient == 0 else {(((), 0),) * windows: coefficient})

    @classmethod
    def exponential(cls, rate: Any, coefficient: Any = 1, power: int = 0) -> ExponentialSum:
        """coefficient * t^power * exp(-rate t), in one window."""
        basis, (vector,) = linear_rates((rate,))
        value = sp.sympify(coefficient, strict=True)
        return cls(basis, 1, {} if value == 0 else {((vector, power),): value})

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def is_zero(self) -> bool:
        """No term is left (coefficients are not simplified)."""
        return not self.terms

    @property
    def value(self) -> sp.Expr:
        """The number that a sum without windows is; raises ValueError if there are windows."""
        if self.windows:
            raise ValueError(f"a sum in {self.windows} time difference(s) has no single value: use expr(times) or equal_time()")
        return sp.Add(*self.terms.values())

    def energy(self, vector: Energy) -> sp.Expr:
        """The energy of an integer vector."""
        return sp.Add(*(n * rate for n, rate in zip(vector, self.rates)))

    def expr(self, *times: Any) -> sp.Expr:
        """SymPy expression in the given time differences, one per window (each not negative)."""
        moments = [sp.sympify(time, strict=True) for time in self._per_window(times)]
        return sp.Add(
            *(
                coefficient * sp.Mul(*(t**p * sp.exp(-self.energy(e) * t) for t, (e, p) in zip(moments, key)))
                for key, coefficient in self.terms.items()
            )
        )

    def latex(self, *times: Any) -> str:
        """LaTeX of `expr`; without arguments the time differences are called t or t_{1}, t_{2}, .."""
        names = ["t"] if self.windows == 1 else [f"t_{{{w + 1}}}" for w in range(self.windows)]
        return sp.latex(self.expr(*(times or [sp.Symbol(name, positive=True) for name in names])))

    def evaluate(self, *times: Any, values: Mapping[Any, Any] | None = None, digits: int = 30) -> Any:
        """Number at the given time differences with `digits` correct digits, as an mpmath number.

        `values` gives the parameters (symbols or names). Terms that cancel are evaluated with more digits.

        Raises
        ------
        ValueError : a parameter without a value, or values at which a coefficient has a pole (equal energies that were
            computed as different): compute the sum with these values from the start.
        """
        from symtensor.fields._exponential_values import evaluate

        return evaluate(self, self._per_window(times), values or {}, digits)

    # -- algebra ------------------------------------------------------------------------------------------------------

    def rebased(self, basis: Sequence[sp.Expr], vectors: Sequence[Energy]) -> ExponentialSum:
        """The same sum over other elementary rates; `vectors[i]` is `rates[i]` over `basis`."""

        def image(energy: Energy) -> Energy:
            return tuple(sum(n * v[b] for n, v in zip(energy, vectors)) for b in range(len(basis)))

        return _collected(tuple(basis), self.windows, ((tuple((image(e), p) for e, p in k), c) for k, c in self.terms.items()))

    def __add__(self, other: Any) -> ExponentialSum:
        if not isinstance(other, ExponentialSum):
            other = ExponentialSum.constant(other, self.windows)
        left, right = _same_rates(self, other)
        return _collected(left.rates, left.windows, [*left.terms.items(), *right.terms.items()])

    __radd__ = __add__

    def __neg__(self) -> ExponentialSum:
        return self * -1

    def __sub__(self, other: Any) -> ExponentialSum:
        return self + -other

    def __mul__(self, other: Any) -> ExponentialSum:
        """Product with a number or an expression without times, or pointwise with a sum in the same windows."""
        if isinstance(other, ExponentialSum):
            left, right = _same_rates(self, other)
            pairs = ((_product(a, b), c * d) for a, c in left.terms.items() for b, d in right.terms.items())
            return _collected(left.rates, left.windows, pairs)
        factor = sp.sympify(other, strict=True)
        return _collected(self.rates, self.windows, ((key, c * factor) for key, c in self.terms.items()))

    __rmul__ = __mul__

    @staticmethod
    def total(sums: Iterable[ExponentialSum], windows: int = 0) -> ExponentialSum:
        """Sum of many; faster than adding one by one. `windows` is that of the empty sum."""
        parts = list(sums)
        if not parts:
            return ExponentialSum.constant(0, windows)
        basis, vectors = linear_rates([rate for part in parts for rate in part.rates])
        position, items = 0, []
        for part in parts:
            _check_windows(parts[0], part)
            items += part.rebased(basis, vectors[position : position + len(part.rates)]).terms.items()
            position += len(part.rates)
        return _collected(basis, parts[0].windows, items)

    def map(self, function: Any) -> ExponentialSum:
        """Apply a function to every coefficient, for example ``sp.factor``."""
        return _collected(self.rates, self.windows, ((key, sp.sympify(function(c))) for key, c in self.terms.items()))

    # -- calculus -----------------------------------------------------------------------------------------------------

    def derivative(self, window: int = 0) -> ExponentialSum:
        """Derivative with respect to the time difference of a window."""
        self._check_window(window)
        items = []
        for key, c in self.terms.items():
            energy, power = key[window]
            items.append((key, -self.energy(energy) * c))
            if power:
                items.append(((*key[:window], (energy, power - 1), *key[window + 1 :]), power * c))
        return _collected(self.rates, self.windows, items)

    def equal_time(self, window: int = 0) -> ExponentialSum:
        """Limit in which the time difference of a window goes to zero (from above); one window fewer."""
        self._check_window(window)
        kept = (((*key[:window], *key[window + 1 :]), c) for key, c in self.terms.items() if key[window][1] == 0)
        return _collected(self.rates, self.windows - 1, kept)

    def laplace(self, s: Any) -> sp.Expr:
        """int_0^oo dt exp(-s t) f(t) = sum of c p! / (E + s)^(p+1), for a sum in one window."""
        if self.windows != 1:
            raise ValueError(f"the transform is defined for one time difference; this sum has {self.windows}")
        variable = sp.sympify(s, strict=True)
        return sp.Add(
            *(c * math.factorial(p) / (self.energy(e) + variable) ** (p + 1) for ((e, p),), c in self.terms.items())
        )

    def fourier(self, omega: Any) -> sp.Expr:
        """int_0^oo dt exp(i omega t) f(t) = sum of c p! / (E - i omega)^(p+1): the part of positive times."""
        return self.laplace(-sp.I * sp.sympify(omega, strict=True))

    def convolve(self, other: ExponentialSum) -> ExponentialSum:
        """int_0^t ds f(t - s) g(s), both in one window: the product of the transforms."""
        from symtensor.fields._exponential_values import convolution

        if self.windows != 1 or other.windows != 1:
            raise ValueError(f"a convolution needs one time difference in each sum, not {self.windows} and {other.windows}")
        left, right = _same_rates(self, other)
        return _collected(left.rates, 1, convolution(left, right))

    # -- checks -------------------------------------------------------------------------------------------------------

    def _per_window(self, times: Sequence[Any]) -> Sequence[Any]:
        if len(times) != self.windows:
            raise ValueError(f"{len(times)} time difference(s) given, {self.windows} required (one per window, latest first)")
        return times

    def _check_window(self, window: int) -> None:
        if not 0 <= window < self.windows:
            raise ValueError(f"window {window} does not exist: this sum has {self.windows} window(s), counted from 0")


def _product(left: Key, right: Key) -> Key:
    return tuple((tuple(a + b for a, b in zip(e, f)), p + q) for (e, p), (f, q) in zip(left, right))


def _collected(rates: tuple[sp.Expr, ...], windows: int, items: Iterable[tuple[Key, sp.Expr]]) -> ExponentialSum:
    """Add coefficients of equal terms and drop those that are zero."""
    gathered: dict[Key, list[sp.Expr]] = {}
    for key, coefficient in items:
        gathered.setdefault(key, []).append(coefficient)
    sums = {key: sp.Add(*parts) for key, parts in gathered.items()}
    return ExponentialSum(rates, windows, {key: c for key, c in sums.items() if c != 0})


def _check_windows(left: ExponentialSum, right: ExponentialSum) -> None:
    if left.windows != right.windows:
        raise ValueError(f"sums in {left.windows} and {right.windows} time differences cannot be combined")


def _same_rates(left: ExponentialSum, right: ExponentialSum) -> tuple[ExponentialSum, ExponentialSum]:
    _check_windows(left, right)
    if left.rates == right.rates:
        return left, right
    basis, vectors = linear_rates((*left.rates, *right.rates))
    cut = len(left.rates)
    return left.rebased(basis, vectors[:cut]), right.rebased(basis, vectors[cut:])


