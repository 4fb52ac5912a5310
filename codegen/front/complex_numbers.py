"""Complex formulas as pairs of real ones: z = z_re + i z_im, and the real and imaginary part of every result.

Everything behind this is real: passes, printers, oracle. Logarithms and powers are on their principal branches. Forms are
chosen so that nothing overflows that need not: tanh(x + i y) = (t + i s sin y cos y)/(t^2 + s cos^2 y), t = tanh x, s = sech^2 x.
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOperatorIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import sympy as sp

from symtensor.kernels import Component

from ..errors import UnsupportedNode
from .arguments import Inputs

if TYPE_CHECKING:
    from .scalars import Build

__all__ = ["real_and_imaginary", "split"]

Pair = tuple[sp.Expr, sp.Expr]


def split(
    formulas: Mapping[str, tuple[sp.Expr, ...]], inputs: Inputs, build: Build
) -> tuple[dict[str, tuple[sp.Expr, ...]], dict[str, Component]]:
    """Formulas of all real parts, then all imaginary parts, per output; and the components that their symbols are.

    An argument is complex if its symbols are not declared real.

    Raises
    ------
    UnsupportedNode
        A function whose real and imaginary parts are not known.
    """
    parts: dict[str, Component] = {}
    known: dict[sp.Expr, Pair] = {}
    wanted = {given.name for given in inputs.given if any(symbol.is_real is not True for symbol in given.symbols)}
    for name, component in inputs.components.items():
        symbol = inputs.symbol(name)
        if component.argument not in wanted:
            parts[name], known[symbol] = component, (symbol, sp.S.Zero)
            continue
        names = [build.fresh(f"{name}_{part}") for part in ("re", "im")]
        for own, part in zip(names, ("real", "imag")):
            parts[own] = Component(component.argument, component.place, part)
        known[symbol] = (sp.Symbol(names[0], real=True), sp.Symbol(names[1], real=True))
    found = {}
    for output, entries in formulas.items():
        pairs = [real_and_imaginary(entry, known, f"{build.name}.{output}") for entry in entries]
        found[output] = (*(real for real, _ in pairs), *(imaginary for _, imaginary in pairs))
    return found, parts


def real_and_imaginary(expression: sp.Expr, known: dict[sp.Expr, Pair], where: str) -> Pair:
    """Both parts, from the leaves up; `known` has those of the symbols, and keeps those of all subexpressions.

    Raises
    ------
    UnsupportedNode
        Naming the function.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> z = sp.Symbol("z")
    >>> real_and_imaginary(z**2 + sp.I, {z: (x, y)}, "f")
    (x**2 - y**2, 2*x*y + 1)
    """
    stack = [expression]
    while stack:
        node = stack[-1]
        missing = [] if node in known or node.is_number else [argument for argument in node.args if argument not in known]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        if node not in known:
            known[node] = _pair(node, known, where)
    return known[expression]


def _pair(node: sp.Expr, known: Mapping[sp.Expr, Pair], where: str) -> Pair:
    if node.is_number:
        real, imaginary = node.as_real_imag()
        return sp.sympify(real), sp.sympify(imaginary)
    pairs = [known[argument] for argument in node.args]
    match node:
        case sp.Add():
            return sp.Add(*(real for real, _ in pairs)), sp.Add(*(imaginary for _, imaginary in pairs))
        case sp.Mul():
            total: Pair = (sp.S.One, sp.S.Zero)
            for pair in pairs:
                total = _product(total, pair)
            return total
        case sp.Pow():
            return _power(node, pairs[0], where)
    rule = _RULES.get(type(node))
    if rule is not None:
        return rule(*pairs[0])
    if node.args and all(imaginary == 0 for _, imaginary in pairs):
        return node.func(*(real for real, _ in pairs)), sp.S.Zero
    raise UnsupportedNode(
        f"{where}: the real and imaginary parts of {type(node).__name__} in {str(node)[:80]} are not known; "
        f"known are sums, products, constant powers, {', '.join(sorted(kind.__name__ for kind in _RULES))}"
    )


def _product(left: Pair, right: Pair) -> Pair:
    (a, b), (c, d) = left, right
    return a * c - b * d, a * d + b * c


def _power(node: sp.Pow, base: Pair, where: str) -> Pair:
    exponent, (x, y) = node.exp, base
    if node.base is sp.E:
        raise AssertionError("SymPy writes powers of E as exp")
    if not exponent.is_number or not exponent.is_real:
        if y == 0 and exponent.is_real:
            return x**exponent, sp.S.Zero
        raise UnsupportedNode(f"{where}: {str(node)[:80]} is a complex power with an exponent that is no real constant")
    if y == 0 and (exponent.is_Integer or x.is_nonnegative):
        return x**exponent, sp.S.Zero
    if exponent.is_Integer:
        total: Pair = (x, y)
        for _ in range(abs(int(exponent)) - 1):
            total = _product(total, (x, y))
        if exponent > 0:
            return sp.expand(total[0]), sp.expand(total[1])
        size = (x**2 + y**2) ** -exponent
        return sp.expand(total[0]) / size, -sp.expand(total[1]) / size
    modulus, angle = (x**2 + y**2) ** (exponent / 2), exponent * sp.atan2(y, x)
    return modulus * sp.cos(angle), modulus * sp.sin(angle)


def _tanh(x: sp.Expr, y: sp.Expr) -> Pair:
    t, cosine = sp.tanh(x), sp.cos(y)
    rest = 1 - t**2
    size = t**2 + rest * cosine**2
    return t / size, rest * sp.sin(y) * cosine / size


def _tan(x: sp.Expr, y: sp.Expr) -> Pair:
    real, imaginary = _tanh(-y, x)  # tan(z) = -i tanh(i z)
    return imaginary, -real


def _log(x: sp.Expr, y: sp.Expr) -> Pair:
    if y == 0 and x.is_positive:
        return sp.log(x), sp.S.Zero
    return sp.log(x**2 + y**2) / 2, sp.atan2(y, x)


_RULES: dict[type, Callable[[sp.Expr, sp.Expr], Pair]] = {
    sp.exp: lambda x, y: (sp.exp(x) * sp.cos(y), sp.exp(x) * sp.sin(y)),
    sp.log: _log,
    sp.sin: lambda x, y: (sp.sin(x) * sp.cosh(y), sp.cos(x) * sp.sinh(y)),
    sp.cos: lambda x, y: (sp.cos(x) * sp.cosh(y), -sp.sin(x) * sp.sinh(y)),
    sp.tan: _tan,
    sp.sinh: lambda x, y: (sp.sinh(x) * sp.cos(y), sp.cosh(x) * sp.sin(y)),
    sp.cosh: lambda x, y: (sp.cosh(x) * sp.cos(y), sp.sinh(x) * sp.sin(y)),
    sp.tanh: _tanh,
    sp.Abs: lambda x, y: (sp.sqrt(x**2 + y**2), sp.S.Zero),
    sp.re: lambda x, y: (x, sp.S.Zero),
    sp.im: lambda x, y: (y, sp.S.Zero),
    sp.conjugate: lambda x, y: (x, -y),
}
