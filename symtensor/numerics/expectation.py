"""Gaussian expectations of one or two coordinates, with an error; never a value that did not converge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from symtensor.activation import Activation, ActivationError, NotSquareIntegrableError, X, activation
from symtensor.activation.pieces import KINKED, smooth_pieces, spelled
from symtensor.activation.stable import compile_numpy, stable_form
from symtensor.expansion.gaussian import closed_form, gaussian_expectation, quadratic_exponents
from symtensor.numerics.covariance import EPSILON, cholesky_pair, condition_number, require_covariance
from symtensor.numerics.moments import moment_table
from symtensor.numerics.quadrature import QuadratureNotConverged, RuleChoice
from symtensor.numerics.reference import reference_moments
from symtensor.numerics.refine import refine, resolving_rule
from symtensor.numerics.rules import CLOSED, Rule, nodes_weights
from symtensor.numerics.split import inner_panels, outer_panels
from symtensor.parsing import ExpressionSyntaxError, parse_expression

__all__ = ["Expectation", "expect", "reference_moments"]

Y = sp.Symbol("y", real=True)


@dataclass(frozen=True, slots=True)
class Expectation:
    """A Gaussian expectation and how it was computed.

    Attributes
    ----------
    value
        E f.
    error
        Estimated absolute error: quadrature plus rounding.
    rule
        ``closed`` or the quadrature rule.
    condition
        Condition number of the correlation matrix within its range (1 in one coordinate).  The expectation itself does
        not lose digits as it grows; derivatives in the covariance do.
    """

    value: float
    error: float
    rule: Rule
    condition: float = 1.0

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.15g} +- {self.error:.1e} ({self.rule})"


def expect(f: str | sp.Expr | Activation, covariance: float | np.ndarray | list, tol: float = 1e-10) -> Expectation:
    """E f(x) with x ~ N(0, variance), or E f(x, y) with (x, y) ~ N(0, covariance).

    Parameters
    ----------
    f
        An activation, its name, or an expression in ``x`` (and ``y``).  Kinks of a function of two coordinates lie on
        lines x = c or y = c, as those of a product g(x) h(y) do.
    covariance
        A variance, or a 2 x 2 positive semi-definite matrix (singular is fine).
    tol
        Relative to E |f|.

    Raises
    ------
    CovarianceError
        NaN, negative variance, wrong shape, or an indefinite matrix (the eigenvalue is named).
    NotSquareIntegrableError
        The expectation does not exist at this variance.
    QuadratureNotConverged
        The tolerance was not reached; the achieved error is in the message.

    Examples
    --------
    >>> round(expect("tanh(x)**2", 1.0).value, 6)
    0.394294
    >>> round(expect("erf(x)*erf(y)", [[1.0, 1.0], [1.0, 1.0]]).value, 6)
    0.464559
    """
    K = require_covariance(np.asarray(covariance))
    if len(K) > 2:
        raise ValueError(f"expectations of 1 or 2 coordinates are computed here, not of {len(K)}")
    if not tol > 0:
        raise ValueError(f"the tolerance is {tol}; it is a positive number, relative to E |f|")
    integrand = _Integrand.of(f, len(K))
    integrand.require_integrable(K)
    condition = condition_number(K)
    value = integrand.closed_value(K)
    if value is not None:
        return Expectation(value, 16 * EPSILON * abs(value), CLOSED, condition)
    return integrand.converged(K, tol, condition)


@dataclass(frozen=True, slots=True)
class _Integrand:
    """f(x, y) as an expression, its kinks on lines of constant x and of constant y, and a callable."""

    expr: sp.Expr
    variables: tuple[sp.Symbol, ...]
    kinks: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, f: str | sp.Expr | Activation, coordinates: int) -> _Integrand:
        variables = (X, Y)[:coordinates]
        expr = _real_expression(f, coordinates)
        others = expr.free_symbols - set(variables)
        if others:
            names = ", ".join(sorted(map(str, others)))
            raise ActivationError(f"{spelled(expr)} contains {names}; with {coordinates} coordinate(s) use {variables}")
        for variable in variables:
            Activation.from_expr(_section(expr, variable))  # real, finite and of known growth along each coordinate
        return cls(expr, variables, tuple(_axis_kinks(expr, variable) for variable in variables))

    @property
    def smooth(self) -> bool:
        return not any(len(kinks) for kinks in self.kinks)

    def require_integrable(self, K: np.ndarray) -> None:
        """Refuse a covariance under which E |f| is infinite."""
        deviation = np.sqrt(np.diagonal(K))
        exponents = quadratic_exponents(self.expr, self.variables)
        if exponents is not None:
            root = _square_root(K)
            for exponent in exponents:
                quadratic = np.array(exponent.tolist(), dtype=float)
                growth = np.linalg.eigvalsh(root.T @ quadratic @ root)[-1]
                if growth >= 0.5:
                    raise self._not_integrable(K)
            return
        for variable, scale in zip(self.variables, deviation):
            critical = Activation.from_expr(_section(self.expr, variable)).critical_variance
            # E |f| needs half the decay that E f^2 does
            if scale**2 >= 2 * float(critical):
                raise self._not_integrable(K)

    def _not_integrable(self, K: np.ndarray) -> NotSquareIntegrableError:
        at = f"variance {K[0, 0]:.6g}" if len(K) == 1 else f"covariance {K.tolist()}"
        return NotSquareIntegrableError(f"{spelled(self.expr)} has no Gaussian expectation at {at}: it grows too fast")

    def closed_value(self, K: np.ndarray) -> float | None:
        """The closed form at this covariance, or None."""
        square = _as_square(self.expr, self.variables)
        if square is not None:
            try:
                factor = Activation.from_expr(square)
            except ActivationError:
                factor = None
            if factor is not None and closed_form(factor) is not None:
                entries = K[0, 0], K[0, -1], K[-1, -1]
                return float(moment_table(factor, *entries, CLOSED, orders=((0, 0),))[0, 0])
        exact = sp.Matrix(len(K), len(K), [sp.Rational(float(entry)) for entry in K.ravel()])
        value = gaussian_expectation(self.expr, self.variables, exact)
        return None if value is None else float(value.evalf(25))

    def converged(self, K: np.ndarray, tol: float, condition: float) -> Expectation:
        """Quadrature refined until it stops moving."""

        @lru_cache(maxsize=8)
        def sums(rule: Rule) -> tuple[float, float]:
            with np.errstate(over="ignore", invalid="ignore"):
                return self.sums(K, rule)

        def difference(rule: Rule, finer: Rule) -> float:
            (value, _), (reference, scale) = sums(rule), sums(finer)
            gap = abs(value - reference)
            return (gap / scale if scale else gap) if np.isfinite(gap) else np.inf

        def confirmed(rule: Rule, finer: Rule) -> float:
            with np.errstate(over="ignore", invalid="ignore"):
                gaps = [abs(sums(rule)[0] - value) / (scale or 1.0) for value, scale in self.resolved_sums(K, rule)]
            return max(difference(rule, finer), float(np.nan_to_num(max(gaps), nan=np.inf)))

        rule, error = refine("trapezoid" if self.smooth else "split", difference, tol, confirmed)
        if error > tol:
            raise QuadratureNotConverged(
                f"E[{spelled(self.expr)}] was computed to {error:.2g} relative to E |f|, not to {tol:.2g}; either it does not "
                "exist, or the function has features finer than the nodes resolve: widen or split them",
                RuleChoice(rule, "inside", error),
                tol,
            )
        value, scale = sums(rule)
        return Expectation(value, (error + 16 * EPSILON) * scale, rule, condition)

    def resolved_sums(self, K: np.ndarray, rule: Rule) -> list[tuple[float, float]]:
        """(E f, E |f|) with one coordinate at a time on a grid so fine that no visible feature falls between its nodes."""
        fine = resolving_rule(rule)
        return [self.sums(K, fine, rule)] if len(K) == 1 else [self.sums(K, fine, rule), self.sums(K, rule, fine)]

    def sums(self, K: np.ndarray, rule: Rule, second: Rule | None = None) -> tuple[float, float]:
        """(E f, E |f|) by one rule, or by another one in the second whitened coordinate."""
        second = second or rule
        corner = (K[:1, 0], K[:1, -1], K[-1:, -1])
        l11, l21, l22 = (float(entry[0]) for entry in cholesky_pair(*corner))
        function = _compiled(self.expr, self.variables)
        if len(K) == 1:
            line = (self.kinks[0], l11, 0.0)
            z, w = outer_panels(rule, line) if rule.kind == "split" else nodes_weights(rule)
            values = w * function(l11 * z)
        elif rule.kind == "split":
            z1, w1 = outer_panels(rule, (self.kinks[0], l11, 0.0), (self.kinks[1], l21, l22))
            z2, w2 = inner_panels(second, self.kinks[1], l21 * z1, l22)
            values = w1[:, None] * w2 * function((l11 * z1)[:, None], (l21 * z1)[:, None] + l22 * z2)
        else:
            z, w = nodes_weights(rule)
            z2, w2 = nodes_weights(second)
            values = w[:, None] * w2 * function((l11 * z)[:, None], (l21 * z)[:, None] + l22 * z2)
        return float(values.sum()), float(np.abs(values).sum())


def _real_expression(f: str | sp.Expr | Activation, coordinates: int) -> sp.Expr:
    """The expression in real symbols, decimals as exact rationals."""
    if isinstance(f, str):
        try:
            return parse_expression(f, symbols=("x", "y")[:coordinates])
        except ExpressionSyntaxError:
            return activation(f).expr  # a name, or the error that lists the names
    if not isinstance(f, Activation | sp.Expr | int | float):
        raise TypeError(f"the integrand is a {type(f).__name__}; it is text, a SymPy expression in x and y, or an activation")
    expr: Any = f.expr if isinstance(f, Activation) else sp.sympify(f)
    expr = expr.xreplace({symbol: sp.Symbol(symbol.name, real=True) for symbol in expr.free_symbols})
    return expr.xreplace({number: sp.Rational(str(number)) for number in expr.atoms(sp.Float)})


@lru_cache(maxsize=256)
def _compiled(expr: sp.Expr, variables: tuple[sp.Symbol, ...]) -> Callable[..., np.ndarray]:
    return compile_numpy(variables, stable_form(expr))


def _section(expr: sp.Expr, variable: sp.Symbol) -> sp.Expr:
    """The function along one coordinate, the other held at a generic value."""
    held = expr.subs({other: sp.Rational(37, 100) for other in (X, Y) if other != variable})
    return held.subs(variable, X)


def _axis_kinks(expr: sp.Expr, variable: sp.Symbol) -> np.ndarray:
    """Where the kinked parts that depend on ``variable`` switch; they may depend on no other variable."""
    kinks: set[float] = set()
    for atom in expr.atoms(*KINKED):
        if variable not in atom.free_symbols:
            continue
        if len(atom.free_symbols) > 1:
            raise ActivationError(f"{spelled(atom)} has a kink along a curve; kinks here lie on lines x = c or y = c")
        kinks.update(float(piece.lower) for piece in smooth_pieces(atom, variable)[1:])
    return np.array(sorted(kinks))


def _as_square(expr: sp.Expr, variables: tuple[sp.Symbol, ...]) -> sp.Expr | None:
    """g if f is g(x)^2, or g(x) g(y); constants aside there is nothing else a closed form of E[g g] covers."""
    if len(variables) == 1:
        return expr.base if isinstance(expr, sp.Pow) and expr.exp == 2 else None
    factors = sp.Mul.make_args(expr)
    left = sp.Mul(*(factor for factor in factors if Y not in factor.free_symbols))
    right = sp.Mul(*(factor for factor in factors if X not in factor.free_symbols))
    both = left * right == expr and left.xreplace({X: Y}) == right
    return left if both and X in left.free_symbols else None


def _square_root(K: np.ndarray) -> np.ndarray:
    eigenvalues, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
