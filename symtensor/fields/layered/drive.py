r"""The drive Sigma(S) of a layered network: the covariance of a block given the empirical kernels, and its derivatives.

Sigma_ab(S) = C_b(S_1, .., S_B) + sum_r C_W^r S^r_ab ,      S_r = (1/P) sum_a S^r_aa in the bias variance C_b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import sympy as sp

from symtensor.fields.layered.errors import NetworkError
from symtensor.parsing import parse_expression

__all__ = ["Drive", "bias_expression", "bias_symbols", "pairs"]


def pairs(inputs: int) -> tuple[tuple[int, int], ...]:
    """The pairs a <= b of inputs in the order of all arrays.

    >>> pairs(2)
    ((0, 0), (0, 1), (1, 1))
    """
    return tuple((a, b) for a in range(inputs) for b in range(a, inputs))


def bias_symbols(branches: int) -> tuple[sp.Symbol, ...]:
    """S1, S2, ..: the mean over the inputs of S^r_aa."""
    return tuple(sp.Symbol(f"S{r + 1}", real=True) for r in range(branches))


def bias_expression(bias: Any, branches: int) -> sp.Expr:
    """The bias variance as an expression in S1, S2, ..; text is read by the whitelist of `symtensor.parsing`.

    Raises
    ------
    NetworkError
        Neither a number nor text nor a SymPy expression, or other symbols in it.
    ExpressionSyntaxError
        Text that is not an expression.
    """
    symbols = {symbol.name: symbol for symbol in bias_symbols(branches)}
    if isinstance(bias, str):
        return _checked_constant(parse_expression(bias, symbols))
    if isinstance(bias, (int, float, np.floating, np.integer)) and not isinstance(bias, bool):
        if not (np.isfinite(bias) and bias >= 0):
            raise NetworkError(f"bias={bias!r}: a bias variance is a finite number >= 0, or an expression in {', '.join(symbols)}")
        return sp.sympify(bias if isinstance(bias, int) else float(bias))
    if not isinstance(bias, sp.Expr):
        raise NetworkError(f"bias of type {type(bias).__name__}: give a number, text or a SymPy expression in {', '.join(symbols)}")
    if foreign := sorted(symbol.name for symbol in bias.free_symbols if symbol.name not in symbols):  # type: ignore[union-attr]
        raise NetworkError(f"bias={bias}: unknown symbol {foreign[0]!r}; the bias variance may depend on {', '.join(symbols)}")
    return _checked_constant(bias.subs({symbol: symbols[symbol.name] for symbol in bias.free_symbols}))  # type: ignore[union-attr]


def _checked_constant(bias: Any) -> sp.Expr:
    """The bias variance; raise NetworkError if it is no real number >= 0 whatever S is."""
    if bias.has(sp.oo, -sp.oo, sp.zoo, sp.nan, sp.I) or (not bias.free_symbols and not bias.is_nonnegative):
        raise NetworkError(f"bias={bias}: a bias variance is a finite real number >= 0, or an expression in S1, S2, ..")
    return bias


@dataclass(frozen=True)
class Drive:
    """Sigma(S) for `inputs` inputs; `c_w[r]` is the weight variance of branch r, `bias` an expression in S1, S2, ...

    >>> drive = Drive((2.0,), sp.sympify("1/2"), 1)
    >>> drive(np.array([3.0]))
    array([[6.5]])
    >>> drive.derivative(1, np.array([[3.0]])).tolist(), drive.degree
    ([[[2.0]]], 1)
    """

    c_w: tuple[float, ...]
    bias: sp.Expr
    inputs: int

    @property
    def branches(self) -> int:
        """The number B of branches."""
        return len(self.c_w)

    @property
    def components(self) -> int:
        """The number of components of S that feed forward, B x (number of pairs)."""
        return self.branches * len(pairs(self.inputs))

    @cached_property
    def degree(self) -> int | None:
        """The highest order at which a derivative of Sigma is not zero; None if there is none (Sigma is no polynomial)."""
        symbols = [s for s in bias_symbols(self.branches) if self.bias.has(s)]
        if not symbols:
            return 1
        if not self.bias.is_polynomial(*symbols):
            return None
        return max(1, int(sp.Poly(self.bias, *symbols).total_degree()))  # type: ignore[call-overload]

    def is_linear(self) -> bool:
        """Whether Sigma is linear in S, so that only its first derivative counts."""
        return self.degree == 1

    def expression(self, pair: tuple[int, int]) -> sp.Expr:
        """Sigma_ab in symbols S{r}_{a}{b} of the components (inputs counted from 1)."""
        means = {
            symbol: sp.Add(*(component_symbol(r, (a, a)) for a in range(self.inputs))) / self.inputs
            for r, symbol in enumerate(bias_symbols(self.branches))
        }
        linear = sp.Add(*(sp.sympify(c) * component_symbol(r, pair) for r, c in enumerate(self.c_w)))
        return linear + self.bias.subs(means)  # type: ignore[operator]

    def __call__(self, means: np.ndarray) -> np.ndarray:
        """Sigma, shape (P, P), at the components `means`, shape (B x pairs,)."""
        given = np.asarray(means, float).reshape(self.branches, -1)
        averages = self._averages(given[None])
        (bias,) = self._bias(averages, ())
        if bias < 0 or (not np.isfinite(bias) and np.isfinite(averages).all()):
            raise self._refused(averages[0], f"{bias:.6g}")
        packed = np.asarray(self.c_w) @ given + bias
        full = np.zeros((self.inputs, self.inputs))
        rows, columns = np.triu_indices(self.inputs)
        full[rows, columns] = full[columns, rows] = packed
        return full

    def derivative(self, order: int, means: np.ndarray) -> np.ndarray:
        """d^order Sigma_e / dS_c1 .. dS_c(order) at each of the points `means`, shape (L, components).

        Returns an array (L, pairs, components, .., components), symmetric in its last axes.
        """
        given = np.asarray(means, float).reshape(len(means), self.branches, -1)
        averages = self._averages(given)
        count = len(pairs(self.inputs))
        diagonal = np.array([float(a == b) / self.inputs for a, b in pairs(self.inputs)])
        result = np.zeros((len(means), count, *(self.branches, count) * order))
        for branches in product(range(self.branches), repeat=order):
            values = self._bias(averages, branches)
            weights = np.ones(())
            for _ in branches:
                weights = np.multiply.outer(weights, diagonal)
            place = (slice(None), slice(None), *(part for r in branches for part in (r, slice(None))))
            result[place] += values.reshape(-1, *[1] * (order + 1)) * weights
        if order == 1:
            for r, c in enumerate(self.c_w):
                result[:, np.arange(count), r, np.arange(count)] += c
        return result.reshape(len(means), count, *[self.components] * order)

    def _averages(self, given: np.ndarray) -> np.ndarray:
        """(L, B, pairs) -> (L, B): means over the inputs of S^r_aa."""
        diagonal = [at for at, (a, b) in enumerate(pairs(self.inputs)) if a == b]
        return given[:, :, diagonal].mean(axis=2)

    def _bias(self, averages: np.ndarray, branches: Sequence[int]) -> np.ndarray:
        """A derivative of the bias variance at each of the points `averages`, shape (L, B)."""
        symbols = bias_symbols(self.branches)
        derivative = sp.diff(self.bias, *(symbols[r] for r in branches)) if branches else self.bias
        return np.array([self._number(derivative.subs(dict(zip(symbols, map(float, at)))), at) for at in averages])  # type: ignore[union-attr]

    def _number(self, value: Any, averages: np.ndarray) -> float:
        try:
            return float(value)
        except TypeError as error:
            raise self._refused(averages, str(value)) from error

    def _refused(self, averages: np.ndarray, value: str) -> NetworkError:
        at = ", ".join(f"S{r + 1} = {average:.6g}" for r, average in enumerate(averages))
        return NetworkError(f"the bias variance {self.bias} is {value} at {at}; it must be a finite real number >= 0")


def component_symbol(branch: int, pair: tuple[int, int]) -> sp.Symbol:
    """The symbol of S^branch_pair, counted from 1."""
    return sp.Symbol(f"S{branch + 1}_{min(pair) + 1}{max(pair) + 1}", real=True)
