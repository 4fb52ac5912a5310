r"""Scalar products of wave vectors as SymPy expressions; sums of vectors stay as they are until they are multiplied out.

A wave vector is a linear form in symbols such as k, q1; it appears only inside `ScalarProduct`. In one dimension a scalar
product is the product of the two numbers.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

__all__ = ["ScalarProduct", "in_one_dimension", "multiplied_out", "squared"]


class ScalarProduct(sp.Function):
    """The scalar product of two wave vectors, symmetric and even: ScalarProduct(-a, b) = -ScalarProduct(a, b).

    >>> k, q = sp.symbols("k q")
    >>> ScalarProduct(k - q, -q), multiplied_out(ScalarProduct(k - q, -q))
    (-q.(k - q), -k.q + q^2)
    """

    nargs = 2

    @classmethod
    def eval(cls, first: Any, second: Any) -> Any:
        one, two = sp.expand(first), sp.expand(second)
        if one == 0 or two == 0:
            return sp.S.Zero
        sign = 1
        if one.could_extract_minus_sign():
            one, sign = sp.expand(-one), -sign
        if two.could_extract_minus_sign():
            two, sign = sp.expand(-two), -sign
        ordered = sorted((one, two), key=sp.default_sort_key)
        if sign == 1 and (one, two) == (first, second) == tuple(ordered):
            return None
        return sign * cls(*ordered)

    def _eval_is_real(self) -> bool:
        return True

    def _eval_is_nonnegative(self) -> bool | None:
        return True if self.args[0] == self.args[1] else None

    def _sympystr(self, printer: Any) -> str:
        names = [f"({printer._print(a)})" if isinstance(a, sp.Add) else str(printer._print(a)) for a in self.args]
        return f"{names[0]}^2" if self.args[0] == self.args[1] else ".".join(names)

    def _latex(self, printer: Any, exp: Any = None) -> str:
        names = [rf"\left({printer._print(a)}\right)" if isinstance(a, sp.Add) else printer._print(a) for a in self.args]
        if self.args[0] == self.args[1]:
            plain = f"{names[0]}^{{2}}"
            power = sp.sympify(exp) if exp is not None else None
            return plain if power is None else f"{names[0]}^{{{sp.latex(2 * power)}}}"
        plain = r" \cdot ".join(names)
        return rf"\left({plain}\right)" + ("" if exp is None else f"^{{{exp}}}")


def squared(vector: Any) -> Any:
    """The square of a wave vector."""
    return ScalarProduct(vector, vector)


def multiplied_out(expression: Any) -> Any:
    """The expression with every scalar product of sums written in scalar products of single symbols."""
    return expression.replace(ScalarProduct, lambda first, second: _product(first, second, ScalarProduct))


def in_one_dimension(expression: Any) -> Any:
    """The expression with every scalar product replaced by the product of two numbers."""
    return expression.replace(ScalarProduct, lambda first, second: first * second)


def _product(first: sp.Expr, second: sp.Expr, dot: Any) -> sp.Expr:
    left, right = first.as_coefficients_dict(), second.as_coefficients_dict()
    return sp.Add(*(c * e * dot(a, b) for a, c in left.items() for b, e in right.items()))
