"""The activation function as a value: expression, kinks, weak derivatives, growth, and callables to evaluate it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from symtensor.activation.growth import critical_variance
from symtensor.activation.pieces import KINKED, ActivationError, Piece, check_real, smooth_pieces, spelled
from symtensor.activation.stable import compile_mpmath, compile_numpy, stable_form

__all__ = ["Activation", "KinkedDerivativeError", "NotSquareIntegrableError", "X"]

#: the real variable of every activation
X = sp.Symbol("x", real=True)

_ALLOWED = (
    sp.Symbol, sp.Number, sp.NumberSymbol, sp.Add, sp.Mul, sp.Pow, sp.exp, sp.log, sp.sin, sp.cos, sp.tan, sp.atan,
    sp.sinh, sp.cosh, sp.tanh, sp.asinh, sp.erf, sp.erfc, *KINKED,
)  # fmt: skip


class KinkedDerivativeError(ActivationError):
    """A classical derivative was asked for where the weak derivative has delta terms."""


class NotSquareIntegrableError(ActivationError):
    """E sigma^2 is infinite under the given variance."""


@dataclass(frozen=True, slots=True)
class Activation:
    """A real function sigma(x) of one real variable, smooth except at finitely many kinks.

    Build one with :func:`symtensor.activation.activation` or :meth:`from_expr`.

    Attributes
    ----------
    name
        Canonical text, e.g. ``"leaky-relu:0.01"`` or ``"x**2 + tanh(x)"``.
    expr
        SymPy expression in the real symbol ``x`` (:data:`X`).
    pieces
        The smooth pieces from left to right; one piece for a smooth function.
    assumptions
        What SymPy could not decide and was sampled instead.
    """

    name: str
    expr: sp.Expr
    pieces: tuple[Piece, ...]
    assumptions: tuple[str, ...] = ()

    @classmethod
    def from_expr(cls, expr: sp.Expr, name: str | None = None) -> Activation:
        """An activation from a SymPy expression in ``x``.

        Raises
        ------
        ActivationError
            Other variables, functions outside the elementary list, complex values, poles, undecidable kinks.
        """
        expr = _in_x(sp.sympify(expr))
        _check_heads(expr)
        pieces = smooth_pieces(expr, X)
        assumptions = tuple(note for piece in pieces for note in check_real(piece, X))
        critical_variance(pieces, X)  # refuses undecidable growth here rather than at first use
        return cls(name or str(expr), expr, pieces, assumptions)

    @property
    def kinks(self) -> tuple[sp.Expr, ...]:
        """Where the smooth pieces meet, increasing (SymPy real numbers)."""
        return tuple(piece.lower for piece in self.pieces[1:])

    @property
    def smooth(self) -> bool:
        """True if the function has no kinks, so that every weak derivative is a function."""
        return len(self.pieces) == 1

    @property
    def weak_order(self) -> float:
        """Highest order at which the weak derivative is still a function (``inf`` if smooth, 1 for relu)."""
        return _weak_order(self)

    @property
    def slopes(self) -> tuple[sp.Expr, sp.Expr] | None:
        """(left, right) slopes if the function is linear on both sides of a kink at 0 (the ReLU family), else None."""
        if self.kinks != (sp.S.Zero,):
            return None
        left, right = (sp.cancel(piece.expr / X) for piece in self.pieces)
        return None if left.has(X) or right.has(X) else (left, right)

    @property
    def homogeneous(self) -> bool:
        """True for the ReLU family: sigma(c x) = c sigma(x) for c > 0, with a kink at 0."""
        return self.slopes is not None

    @property
    def critical_variance(self) -> sp.Expr:
        """sup {K : E sigma(sqrt(K) Z)^2 < oo}: 1/4 for exp(x^2), oo for tanh, 0 for exp(x^4)."""
        return _critical_variance(self)

    def require_square_integrable(self, variance: float, where: str = "") -> None:
        """Refuse a variance at which E sigma(sqrt(variance) Z)^2 is infinite.

        Raises
        ------
        NotSquareIntegrableError
            The message names the activation, the variance and ``where`` (e.g. ``"layer 3"``).
        """
        critical = float(self.critical_variance)
        if not variance < critical and variance > 0:
            place = f" ({where})" if where else ""
            raise NotSquareIntegrableError(
                f"{self.name!r} has no Gaussian second moment at variance {variance:.6g}{place}: "
                f"E sigma^2 is finite only below {critical:.6g}; reduce the kernel or use a slower-growing activation"
            )

    def derivative(self, k: int = 1) -> sp.Expr:
        """The k-th weak derivative as an elementary SymPy expression in ``x``.

        Raises
        ------
        KinkedDerivativeError
            If the k-th derivative has delta terms at the kinks: use Stein's identity (integration by parts), i.e.
            ``derivatives="hermite"`` in :func:`symtensor.numerics.quadrature.moment_table`, instead.
        """
        self._check_order(k)
        if k == 0:
            return self.expr
        branches = [(sp.diff(piece.expr, X, k), piece.upper > X) for piece in self.pieces[:-1]]
        last = sp.diff(self.pieces[-1].expr, X, k)
        return sp.Piecewise(*branches, (last, True)) if branches else last

    def stable_derivatives(self, k: int = 0) -> tuple[sp.Expr, ...]:
        """The k-th derivative on each smooth piece, in the heads of ``symtensor.activation.stable``."""
        return _stable_derivatives(self, k)

    def jumps(self, k: int) -> tuple[sp.Expr, ...]:
        """Jump of the k-th derivative at each kink, right minus left: the weights of the delta terms of order k + 1."""
        return _jumps(self, k)

    def smooth_part(self, k: int = 0) -> Callable[[Any], np.ndarray]:
        """Like :meth:`numpy_function`, for the k-th derivative between the kinks: its delta terms are left out."""
        return _numpy_function(self, k)

    def numpy_function(self, k: int = 0) -> Callable[[Any], np.ndarray]:
        """A vectorised float64 function for the k-th weak derivative, without overflow or cancellation.

        At a kink the value is that of the right piece.
        """
        self._check_order(k)
        return _numpy_function(self, k)

    def mpmath_function(self, k: int = 0) -> Callable[[Any], Any]:
        """An mpmath function of one real number for the k-th weak derivative."""
        self._check_order(k)
        return _mpmath_function(self, k)

    def _check_order(self, k: int) -> None:
        if not isinstance(k, int) or k < 0:
            raise ValueError(f"the order of a derivative is a non-negative integer, not {k!r}")
        if k > self.weak_order:
            kinks = ", ".join(str(kink) for kink in self.kinks)
            raise KinkedDerivativeError(
                f"derivative {k} of {self.name!r} has a delta term at its kink x = {kinks}, which a pointwise "
                f"derivative would drop; only orders up to {int(self.weak_order)} are functions. Under a Gaussian use "
                "Stein's identity E f'(Z) = E Z f(Z) (derivatives='hermite') for the rest"
            )

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Activation({self.name!r}: {spelled(self.expr)})"

    def _repr_latex_(self) -> str:
        return f"$\\sigma(x) = {sp.latex(self.expr)}$"


def _in_x(expr: sp.Basic) -> sp.Expr:
    """Check the variable and make every decimal an exact rational."""
    if not isinstance(expr, sp.Expr):
        raise ActivationError(f"{spelled(expr)} is not a scalar expression")
    others = {symbol for symbol in expr.free_symbols if str(symbol) != "x"}
    if others:
        raise ActivationError(f"{spelled(expr)} contains {', '.join(sorted(map(str, others)))}; the only variable is x")
    expr = expr.xreplace(dict.fromkeys(expr.free_symbols, X))
    return expr.xreplace({number: sp.Rational(str(number)) for number in expr.atoms(sp.Float)})  # type: ignore[return-value]


def _check_heads(expr: sp.Expr) -> None:
    if expr.has(sp.I, sp.oo, -sp.oo, sp.zoo, sp.nan):
        raise ActivationError(f"{spelled(expr)} is not real and finite")
    stack: list[sp.Basic] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, sp.Piecewise):
            stack += [value for value, _ in node.args]  # type: ignore[misc]
            continue
        if not isinstance(node, _ALLOWED):
            raise ActivationError(f"{type(node).__name__} in {spelled(expr)} is not among the functions an activation may use")
        stack += [node.args[0]] if isinstance(node, sp.Heaviside) else list(node.args)


@lru_cache(maxsize=256)
def _critical_variance(activation: Activation) -> sp.Expr:
    return critical_variance(activation.pieces, X)


@lru_cache(maxsize=256)
def _weak_order(activation: Activation) -> float:
    """The first order at which some kink has a jump: that derivative is a function, the next one has a delta."""
    if activation.smooth:
        return float("inf")
    order = 0
    while order < 12 and all(jump == 0 for jump in activation.jumps(order)):
        order += 1
    return order


@lru_cache(maxsize=1024)
def _jumps(activation: Activation, k: int) -> tuple[sp.Expr, ...]:
    pairs = zip(activation.pieces[:-1], activation.pieces[1:])
    return tuple(sp.simplify(sp.diff(right.expr - left.expr, X, k).subs(X, right.lower)) for left, right in pairs)


@lru_cache(maxsize=1024)
def _stable_derivatives(activation: Activation, k: int) -> tuple[sp.Expr, ...]:
    return tuple(sp.diff(stable_form(piece.expr), X, k) for piece in activation.pieces)


@lru_cache(maxsize=1024)
def _numpy_function(activation: Activation, k: int) -> Callable[[Any], np.ndarray]:
    parts = [compile_numpy(X, expr) for expr in activation.stable_derivatives(k)]
    if len(parts) == 1:
        return lambda x: parts[0](np.asarray(x, dtype=float))
    kinks = np.array([float(kink) for kink in activation.kinks])
    anchors = [float(piece.anchor) for piece in activation.pieces]

    def function(x: Any) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        where = np.searchsorted(kinks, x, side="right")
        result = np.where(np.isnan(x), np.nan, 0.0)
        for index, (part, anchor) in enumerate(zip(parts, anchors)):
            # outside its interval a piece may be undefined (a root, a logarithm): evaluate it at its anchor there
            result = np.where(where == index, part(np.where(where == index, x, anchor)), result)
        return result

    return function


@lru_cache(maxsize=1024)
def _mpmath_function(activation: Activation, k: int) -> Callable[[Any], Any]:
    parts = [compile_mpmath(X, expr) for expr in activation.stable_derivatives(k)]
    if len(parts) == 1:
        return parts[0]

    def function(x: Any) -> Any:
        index = sum(x >= mpmath.mpmathify(kink.evalf(mpmath.mp.dps + 5)) for kink in activation.kinks)
        return parts[index](x)

    return function
