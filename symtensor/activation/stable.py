"""Function heads that can be evaluated and differentiated without overflow or cancellation.

``stable_form`` rewrites an elementary expression so that saturating parts are kept as one function each, with the
derivative rule that does not cancel: tanh' = sech^2 (not 1 - tanh^2), sigmoid'(u) = sech^2(u/2)/4,
softplus' = sigmoid, Phi' = normal density.  ``head.rewrite("elementary")`` goes back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from scipy import special

__all__ = ["Sech2", "Sigmoid", "Softplus", "StdNormalCDF", "Tanh", "compile_mpmath", "compile_numpy", "stable_form"]


class _Head(sp.Function):
    """A real function of one argument that rewrites to elementary functions."""

    nargs = 1

    @property
    def _u(self) -> Any:
        return self.args[0]

    def _eval_is_extended_real(self) -> bool | None:
        return self.args[0].is_extended_real


class Sigmoid(_Head):
    """1 / (1 + exp(-u))."""

    def fdiff(self, argindex: int = 1) -> Any:
        sech2: Any = Sech2(self._u / 2)
        return sech2 / 4

    def _eval_rewrite(self, rule: Any, args: Any, **hints: Any) -> sp.Expr:
        return 1 / (1 + sp.exp(-args[0]))


class Softplus(_Head):
    """log(1 + exp(u))."""

    def fdiff(self, argindex: int = 1) -> Any:
        return Sigmoid(self._u)

    def _eval_rewrite(self, rule: Any, args: Any, **hints: Any) -> sp.Expr:
        return sp.log(1 + sp.exp(args[0]))


class Tanh(_Head):
    """tanh(u), with derivative sech(u)^2 kept as one function."""

    def fdiff(self, argindex: int = 1) -> Any:
        return Sech2(self._u)

    def _eval_rewrite(self, rule: Any, args: Any, **hints: Any) -> sp.Expr:
        return sp.tanh(args[0])


class Sech2(_Head):
    """sech(u)^2 = 1 - tanh(u)^2 without the cancellation at saturation."""

    def fdiff(self, argindex: int = 1) -> Any:
        tanh: Any = Tanh(self._u)
        return -2 * tanh * self

    def _eval_rewrite(self, rule: Any, args: Any, **hints: Any) -> sp.Expr:
        return 1 - sp.tanh(args[0]) ** 2


class StdNormalCDF(_Head):
    """Phi(u) = (1 + erf(u / sqrt 2)) / 2 without the cancellation at u -> -oo."""

    def fdiff(self, argindex: int = 1) -> Any:
        return sp.exp(-(self._u**2) / 2) / sp.sqrt(2 * sp.pi)

    def _eval_rewrite(self, rule: Any, args: Any, **hints: Any) -> sp.Expr:
        return (1 + sp.erf(args[0] / sp.sqrt(2))) / 2


def _one_plus(expr: Any, head: Any) -> tuple[Any, Any, Any] | None:
    """Write a sum as ``c (1 + head(u)) + rest``: returns (c, u, rest), or None when it has no such part."""
    coefficients = expr.as_coefficients_dict()
    constant = coefficients.get(sp.S.One, sp.S.Zero)
    for term, coefficient in coefficients.items():
        if isinstance(term, head) and coefficient == constant:
            rest = expr - constant - coefficient * term
            return constant, term.args[0], rest
    return None


def stable_form(expr: Any) -> Any:
    """Rewrite an elementary expression in the heads of this module (value unchanged)."""
    if not expr.args:
        return expr
    if isinstance(expr, sp.log) and isinstance(expr.args[0], sp.Add):
        found = _one_plus(expr.args[0], sp.exp)
        if found and found[0] == 1 and found[2] == 0:
            return Softplus(stable_form(found[1]))
    if isinstance(expr, sp.Pow) and isinstance(expr.base, sp.Add) and expr.exp.is_Integer and expr.exp < 0:
        found = _one_plus(expr.base, sp.exp)
        if found and found[2] == 0:
            return (Sigmoid(-stable_form(found[1])) / found[0]) ** (-expr.exp)
    if isinstance(expr, sp.Add):
        found = _one_plus(expr, sp.erf)
        if found:
            return 2 * found[0] * StdNormalCDF(sp.sqrt(2) * stable_form(found[1])) + stable_form(found[2])
    arguments = [stable_form(argument) for argument in expr.args]
    return Tanh(*arguments) if isinstance(expr, sp.tanh) else expr.func(*arguments)


def _sech2(u: Any) -> Any:
    decay = np.exp(-2 * np.abs(u))
    return 4 * decay / (1 + decay) ** 2


_NUMPY: dict[str, Callable[..., Any]] = {
    "Sigmoid": special.expit,
    "Softplus": lambda u: np.logaddexp(0.0, u),
    "Tanh": np.tanh,
    "Sech2": _sech2,
    "StdNormalCDF": special.ndtr,
    "erf": special.erf,
    "erfc": special.erfc,
}
_MPMATH: dict[str, Callable[..., Any]] = {
    "Sigmoid": lambda u: 1 / (1 + mpmath.exp(-u)),
    "Softplus": lambda u: mpmath.log1p(mpmath.exp(u)),
    "Tanh": mpmath.tanh,
    "Sech2": lambda u: mpmath.sech(u) ** 2,
    "StdNormalCDF": mpmath.ncdf,
}


def compile_numpy(variables: sp.Symbol | tuple[sp.Symbol, ...], expr: sp.Expr) -> Callable[..., Any]:
    """A NumPy function of one or more arrays for an expression in stable form; the result has their broadcast shape."""
    raw = sp.lambdify(variables, expr, modules=[_NUMPY, "numpy"], cse=True)

    def function(*arrays: Any) -> np.ndarray:
        values = raw(*arrays)
        shape = np.broadcast_shapes(*(np.shape(array) for array in arrays))
        return values if np.shape(values) == shape else np.broadcast_to(np.asarray(values, dtype=float), shape)

    return function


def compile_mpmath(symbol: sp.Symbol, expr: sp.Expr) -> Callable[[Any], Any]:
    """An mpmath function of one number for an expression in stable form (working precision of the caller)."""
    return sp.lambdify(symbol, expr, modules=[_MPMATH, "mpmath"])
