"""Scalar functions with what the rules ask of them: continuity, polynomial growth, growth inside the scale group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

from symtensor.expansion import ScaleError

from ._input import exact
from .scale import Comparison, Scale
from .scale_text import from_sympy

__all__ = ["Function", "as_function"]

X = sympy.Symbol("x", real=True)
_BOUNDED = (sympy.tanh, sympy.erf, sympy.erfc, sympy.sin, sympy.cos, sympy.atan, sympy.sign, sympy.Heaviside)
_CONTINUOUS = (
    sympy.Add, sympy.Mul, sympy.Max, sympy.Min, sympy.Abs, sympy.exp, sympy.sinh, sympy.cosh, sympy.asinh,
    sympy.tanh, sympy.erf, sympy.erfc, sympy.sin, sympy.cos, sympy.atan,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Function:
    """A function phi of one real variable.

    Args:
        name: how it is shown.
        expr: its expression in ``x``, or ``None`` for an opaque function.
        growth: k with |phi(x)| <= C (1 + |x|^k), if known; found from ``expr`` where possible.
        continuous: whether it is continuous; found from ``expr`` where possible.

    Example:
        >>> as_function("x^2*tanh(x)").growth, as_function("exp(x)").growth, as_function("sign(x)").continuous
        (2, None, False)
    """

    name: str
    expr: sympy.Expr | None = None
    growth: Any = None
    continuous: bool = False

    def __post_init__(self) -> None:
        if self.growth is None:
            return
        found = exact(self.growth)
        if not (isinstance(found, sympy.Expr) and found.is_number and found.is_nonnegative and found.is_finite):
            raise ValueError(f"growth is k >= 0 with |{self.name}| <= C (1 + |x|^k), given {self.growth!r}")
        object.__setattr__(self, "growth", found)

    def image(self, scale: Scale) -> Scale | None:
        """phi(scale) if phi grows inside the scale group, so that phi(C x) <= C' phi(x); else None."""
        if self.expr is None or scale.limit() != "oo" or self.parameters:
            return None
        size = sympy.Symbol("x", positive=True)
        try:
            law = from_sympy(self.expr.subs(X, size), ("x",))
            mirror = from_sympy(sympy.Abs(self.expr.subs(X, -size)).doit(), ("x",))
        except ScaleError:
            return None
        law = Scale.max(law, mirror, Scale.one())
        return law.subs({"x": scale}) if law.compare(1) in (Comparison.GREATER, Comparison.EQUAL) else None

    @property
    def parameters(self) -> tuple[str, ...]:
        """Symbols other than x: a function that changes with a size."""
        if self.expr is None:
            return ()
        return tuple(sorted(s.name for s in self.expr.free_symbols if s != X))  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return self.name


def as_function(value: Any, growth: Any = None, continuous: bool | None = None) -> Function:
    """A function from text in ``x``, from a SymPy expression in one symbol, or as it is.

    Raises:
        ExpressionSyntaxError: text outside the small language of `symtensor.parsing`.
    """
    if isinstance(value, Function):
        return value
    expr: Any = exact(value, ("x", "n"))
    if not isinstance(value, str):
        symbols = sorted(expr.free_symbols, key=str)
        if len(symbols) > 1 and X not in symbols:
            raise ValueError(f"{expr} has the symbols {symbols}; write it in x (other symbols are parameters)")
        if symbols and X not in symbols:
            expr = expr.subs(symbols[0], X)
    found = Function(str(expr), expr, growth, bool(continuous))
    if found.parameters:
        return found
    return Function(
        str(expr),
        expr,
        growth_of(expr) if growth is None else growth,
        is_continuous(expr) if continuous is None else continuous,
    )


def growth_of(expr: sympy.Expr) -> Any:
    """k with |expr| <= C (1 + |x|^k) for all real x, or None if none is found."""
    if not expr.has(X):
        return sympy.S.Zero
    if expr == X:
        return sympy.S.One
    if isinstance(expr, _BOUNDED):
        return sympy.S.Zero
    parts = [growth_of(arg) for arg in expr.args]  # type: ignore[arg-type]
    if isinstance(expr, sympy.Pow):
        return _growth_of_power(expr, parts[0])
    if isinstance(expr, sympy.log):  # log(1 + e^u) <= log 2 + |u|
        rest = expr.args[0] - 1  # type: ignore[operator]
        return growth_of(rest.args[0]) if isinstance(rest, sympy.exp) else None  # type: ignore[arg-type]
    if any(part is None for part in parts):
        return None
    if isinstance(expr, sympy.Add | sympy.Max | sympy.Min | sympy.Abs):
        return max(parts)
    return sympy.Add(*parts) if isinstance(expr, sympy.Mul) else None


def _growth_of_power(expr: sympy.Pow, base: Any) -> Any:
    power = expr.exp
    if power.is_number and power.is_positive:
        return None if base is None else base * power
    if power.is_number and power.is_negative and _at_least_one(expr.base):
        return sympy.S.Zero
    return None


def _at_least_one(expr: sympy.Expr) -> bool:
    """1 + positive terms, such as 1 + e^-x or 1 + x^2."""
    constant, rest = expr.as_coeff_Add()
    terms = [term.as_coeff_Mul() for term in sympy.Add.make_args(rest)]
    return bool(constant >= 1) and all(c.is_positive and (t.is_nonnegative or isinstance(t, sympy.exp)) for c, t in terms)


def is_continuous(expr: sympy.Expr) -> bool:
    """Whether the expression is continuous on the real line, as far as its form shows."""
    if not expr.has(X) or expr == X:
        return True
    if isinstance(expr, sympy.Pow):
        power = expr.exp
        good = power.is_number and ((power.is_Integer and power.is_positive) or (power.is_negative and _at_least_one(expr.base)))
        return bool(good) and is_continuous(expr.base)
    if isinstance(expr, sympy.log):
        return _at_least_one(expr.args[0]) and is_continuous(expr.args[0])  # type: ignore[arg-type]
    return isinstance(expr, _CONTINUOUS) and all(is_continuous(arg) for arg in expr.args)  # type: ignore[arg-type]
