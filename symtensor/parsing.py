"""Expressions typed by a user, read by a whitelist and never evaluated as code.

The text is parsed to Python's syntax tree; every node outside the small language of real elementary functions is
refused by name.  Decimals become exact rationals, so ``0.1`` is 1/10 and prints the same everywhere.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable

import sympy as sp

__all__ = ["FUNCTIONS", "ExpressionSyntaxError", "parse_expression", "suggestion"]

MAX_LENGTH = 1000
MAX_DEPTH = 60
MAX_EXPONENT = 100
MAX_CONSTANT = sp.Integer(10) ** 30

CONSTANTS: dict[str, sp.Expr] = {"pi": sp.pi, "E": sp.E}


class ExpressionSyntaxError(ValueError):
    """The text is not an expression of the small language; the message names the offending token."""


def _phi(u: sp.Expr) -> sp.Expr:
    return (1 + sp.erf(u / sp.sqrt(2))) / 2


def _leaky_relu(u: sp.Expr, slope: sp.Expr | None = None) -> sp.Expr:
    slope = sp.Rational(1, 100) if slope is None else slope
    return slope * u + (1 - slope) * sp.Max(0, u)


_ONE: dict[str, Callable[[sp.Expr], sp.Expr]] = {
    "exp": sp.exp, "log": sp.log, "ln": sp.log, "sqrt": sp.sqrt,
    "sin": sp.sin, "cos": sp.cos, "tan": sp.tan, "atan": sp.atan, "arctan": sp.atan,
    "sinh": sp.sinh, "cosh": sp.cosh, "tanh": sp.tanh, "asinh": sp.asinh, "arcsinh": sp.asinh,
    "erf": sp.erf, "erfc": sp.erfc, "Abs": sp.Abs, "abs": sp.Abs, "sign": sp.sign,
    "Heaviside": lambda u: sp.Heaviside(u, sp.S.Half),
    "relu": lambda u: sp.Max(0, u),
    "sigmoid": lambda u: 1 / (1 + sp.exp(-u)),
    "softplus": lambda u: sp.log(1 + sp.exp(u)),
    "gelu": lambda u: u * _phi(u),
    "Phi": _phi,
}  # fmt: skip
#: name -> (least and greatest number of arguments, constructor)
FUNCTIONS: dict[str, tuple[int, int, Callable[..., sp.Expr]]] = {
    **{name: (1, 1, function) for name, function in _ONE.items()},
    "leaky_relu": (1, 2, _leaky_relu),
    "Max": (2, 8, sp.Max),
    "max": (2, 8, sp.Max),
    "Min": (2, 8, sp.Min),
    "min": (2, 8, sp.Min),
}
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**",
}  # fmt: skip


def suggestion(word: str, known: Iterable[str]) -> str:
    """``" (nearest: 'tanh')"`` when a known word is near ``word``, else the empty string."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (nearest: {near[0]!r})" if near else ""


def parse_expression(text: str, symbols: Iterable[str] = ("x",)) -> sp.Expr:
    """Read a real elementary expression, e.g. ``"Max(0, x) - 0.3*Max(0, -x)"``.

    Parameters
    ----------
    text
        Numbers, ``+ - * / ** ^``, parentheses, the constants ``pi`` and ``E``, the given symbols, and calls of the
        functions in :data:`FUNCTIONS`.  Decimals are read as exact rationals.
    symbols
        Names that stand for real variables.

    Returns
    -------
    sympy.Expr
        In symbols ``Symbol(name, real=True)``.

    Raises
    ------
    ExpressionSyntaxError
        For anything else (attribute, subscript, string, unknown name, keyword argument, too long, too deep, power
        beyond 100, constant beyond 1e30); the message names the token.

    Examples
    --------
    >>> parse_expression("0.5*x^2 + tanh(x)")
    x**2/2 + tanh(x)
    """
    if not isinstance(text, str):
        raise TypeError(f"an expression is given as text, not as {type(text).__name__}")
    if not text.strip():
        raise ExpressionSyntaxError("the expression is empty; write one in x, for example 'tanh(x)'")
    if len(text) > MAX_LENGTH:
        raise ExpressionSyntaxError(f"the expression has {len(text)} characters; at most {MAX_LENGTH} are read")
    _check_nesting(text)
    source = text.strip().replace("^", "**")
    try:
        tree = ast.parse(source, mode="eval")
    except SyntaxError as error:
        at = (error.text or source)[max((error.offset or 1) - 1, 0) :][:12].strip()
        raise ExpressionSyntaxError(f"{_short(text)} is not a formula: cannot read it at {at!r}") from None
    except (ValueError, MemoryError, RecursionError):
        raise ExpressionSyntaxError(f"{_short(text)} is not a formula") from None
    reader = _Reader(source, {name: sp.Symbol(name, real=True) for name in symbols})
    return reader.read(tree.body, 0)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _check_nesting(text: str) -> None:
    depth = deepest = 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise ExpressionSyntaxError(f"{_short(text)} nests {deepest} parentheses; at most {MAX_DEPTH} are read")


class _Reader:
    """One pass over the syntax tree, from the leaves up, so that every constant is bounded before it is used."""

    __slots__ = ("source", "symbols")

    def __init__(self, source: str, symbols: dict[str, sp.Symbol]) -> None:
        self.source = source
        self.symbols = symbols

    def refuse(self, node: ast.AST, why: str) -> ExpressionSyntaxError:
        token = ast.get_source_segment(self.source, node) or type(node).__name__  # type: ignore[arg-type]
        return ExpressionSyntaxError(f"{_short(token)} in {_short(self.source)} {why}")

    def read(self, node: ast.expr, depth: int) -> sp.Expr:
        # a sum of many terms is a chain as deep as it has terms, so the allowance is larger than for parentheses
        if depth > 5 * MAX_DEPTH:
            raise self.refuse(node, f"is nested more than {5 * MAX_DEPTH} deep")
        match node:
            case ast.Constant():
                value = self.number(node)
            case ast.Name():
                value = self.name(node)
            case ast.UnaryOp(op=ast.USub()):
                value = -self.read(node.operand, depth + 1)
            case ast.UnaryOp(op=ast.UAdd()):
                value = self.read(node.operand, depth + 1)
            case ast.BinOp() if type(node.op) in _BINARY:
                value = self.binary(node, depth)
            case ast.Call():
                value = self.call(node, depth)
            case _:
                what = type(node).__name__.lower()
                raise self.refuse(node, f"is not mathematics here ({what}); use + - * / ** and named functions")
        return self.bounded(node, value)

    def number(self, node: ast.Constant) -> sp.Expr:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise self.refuse(node, f"is a {type(node.value).__name__}; only real numbers are read")
        segment = (ast.get_source_segment(self.source, node) or "").replace("_", "")
        if isinstance(node.value, int):
            return sp.Integer(node.value)
        mantissa, _, exponent = segment.lower().partition("e")
        if exponent and abs(int(exponent)) > 300:
            raise self.refuse(node, "is beyond the range 1e-300 .. 1e30")
        return sp.Rational(mantissa) * sp.Integer(10) ** int(exponent or 0)

    def name(self, node: ast.Name) -> sp.Expr:
        if node.id in self.symbols:
            return self.symbols[node.id]
        if node.id in CONSTANTS:
            return CONSTANTS[node.id]
        if node.id in FUNCTIONS:
            raise self.refuse(node, f"is a function: write {node.id}(...)")
        known = [*self.symbols, *CONSTANTS, *FUNCTIONS]
        variables = f"the variables are {', '.join(self.symbols)}" if self.symbols else "only a constant is read here"
        raise self.refuse(node, f"is not a known name{suggestion(node.id, known)}; {variables}")

    def binary(self, node: ast.BinOp, depth: int) -> sp.Expr:
        left, right = self.read(node.left, depth + 1), self.read(node.right, depth + 1)
        match node.op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Div():
                if right.is_zero:
                    raise self.refuse(node, "divides by zero")
                return left / right
            case _:
                return self.power(node, left, right)

    def power(self, node: ast.BinOp, base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
        if exponent.is_number and abs(exponent) > MAX_EXPONENT:
            raise self.refuse(node, f"is too high a power; exponents go up to {MAX_EXPONENT}")
        if base.is_zero and exponent.is_negative:
            raise self.refuse(node, "divides by zero")
        return sp.Pow(base, exponent)

    def call(self, node: ast.Call, depth: int) -> sp.Expr:
        if not isinstance(node.func, ast.Name):
            raise self.refuse(node.func, "cannot be called; only functions written by their name can")
        name = node.func.id
        if name not in FUNCTIONS:
            raise self.refuse(node.func, f"is not a known function{suggestion(name, FUNCTIONS)}; known: {', '.join(FUNCTIONS)}")
        if node.keywords:
            raise self.refuse(node, "has keyword arguments; functions here take positional arguments only")
        least, most, function = FUNCTIONS[name]
        if not least <= len(node.args) <= most:
            count = str(least) if least == most else f"{least} to {most}"
            raise self.refuse(node, f"has {len(node.args)} arguments; {name} takes {count}")
        return function(*(self.read(argument, depth + 1) for argument in node.args))

    def bounded(self, node: ast.expr, value: sp.Expr) -> sp.Expr:
        """Constants stay finite, real and of moderate size; otherwise towers of powers or exponentials would hang."""
        if value.has(sp.oo, -sp.oo, sp.zoo, sp.nan):
            raise self.refuse(node, "is not finite")
        if value.is_number:
            if value.is_real is False:
                raise self.refuse(node, "is not a real number")
            if not abs(value.evalf(15)) <= MAX_CONSTANT:
                raise self.refuse(node, "is too large a constant (beyond 1e30)")
        return value
