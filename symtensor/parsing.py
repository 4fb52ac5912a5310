"""Expressions typed by a user, read by a whitelist and never evaluated as code.

The text is parsed to Python's syntax tree; every node outside the small language of real elementary functions is
refused by name.  Decimals become exact rationals, so ``0.1`` is 1/10 and prints the same everywhere.  Options admit free
parameters and arrays with subscripts (``x[1]``, ``dot(x, x)``, ``sum(i, x[i]^2)``), for actions and equations.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping

import sympy as sp

__all__ = ["ARRAY_FUNCTIONS", "CONSTANTS", "FUNCTIONS", "ExpressionSyntaxError", "name_problem", "parse_expression", "suggestion"]

MAX_LENGTH = 1000
#: parts of a formula that are read at most, every pass of a sum counted
MAX_PARTS = 20_000
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
#: what can be called on arrays, with the form of the call
ARRAY_FUNCTIONS: dict[str, str] = {"dot": "dot(a, b)", "sum": "sum(i, ...) or sum(i, first, last, ...)"}
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**",
}  # fmt: skip


def suggestion(word: str, known: Iterable[str]) -> str:
    """``" (nearest: 'tanh')"`` when a known word is near ``word``, else the empty string."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (nearest: {near[0]!r})" if near else ""


def name_problem(name: str) -> str:
    """Why a name cannot stand for a variable or a parameter, in words; the empty string for a good name.

    >>> name_problem("g_1"), name_problem("lambda")
    ('', "'lambda' is a word of the language the text is read in; write for example 'lam'")
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name, re.ASCII) or "__" in name:
        odd = next((f" ({unicodedata.name(c, 'unnamed')})" for c in name if not c.isascii()), "")
        return f"{name!r}{odd} is no name; a name is an ASCII letter followed by letters, digits and single underscores"
    if keyword.iskeyword(name):
        return f"{name!r} is a word of the language the text is read in; write for example {name[:3]!r}"
    if name.lower() in ("nan", "inf", "oo", "zoo", "infinity"):
        return f"{name!r} reads as a number that is not finite; choose another name"
    if name == "I":
        return "'I' is the imaginary unit to many readers; everything is real here, choose another name"
    if name in CONSTANTS:
        return f"{name!r} is the constant {float(CONSTANTS[name]):.4f}...; choose another name"
    if name in FUNCTIONS or name in ARRAY_FUNCTIONS:
        return f"{name!r} is a function; choose another name"
    return ""


def parse_expression(
    text: str,
    symbols: Iterable[str] | Mapping[str, sp.Expr] = ("x",),
    *,
    arrays: Mapping[str, sp.NDimArray] | None = None,
    parameters: bool = False,
) -> sp.Expr:
    """Read a real elementary expression, e.g. ``"Max(0, x) - 0.3*Max(0, -x)"``.

    Parameters
    ----------
    text
        Numbers, ``+ - * / ** ^``, parentheses, the constants ``pi`` and ``E``, the given symbols, and calls of the
        functions in :data:`FUNCTIONS`.  Decimals are read as exact rationals.
    symbols
        Names that stand for real variables; or a mapping from names to the expressions they stand for.
    arrays
        Names with components, counted from 1: ``x[1]``, ``J[i, j]``; with this option (an empty mapping will do)
        ``dot(x, y)`` and ``sum(i, body)`` are read, the range of i being that of the arrays with the subscript i, and
        ``sum(i, first, last, body)``.
    parameters
        Whether any other name is read as a real parameter.

    Returns
    -------
    sympy.Expr
        In symbols ``Symbol(name, real=True)``, if `symbols` does not give others.

    Raises
    ------
    ExpressionSyntaxError
        For anything else (attribute, subscript, string, unknown name, keyword argument, too long, too deep, power
        beyond 100, constant beyond 1e30, a letter that is not ASCII, a component that does not exist); the message
        names the token.

    Examples
    --------
    >>> parse_expression("0.5*x^2 + tanh(x)")
    x**2/2 + tanh(x)
    >>> u = sp.Array(sp.symbols("u_1 u_2", real=True))
    >>> parse_expression("r*dot(u, u)/2 + sum(i, u[i]^4)", (), arrays={"u": u}, parameters=True)
    r*(u_1**2 + u_2**2)/2 + u_1**4 + u_2**4
    """
    if not isinstance(text, str):
        raise TypeError(f"an expression is given as text, not as {type(text).__name__}")
    if not text.strip():
        raise ExpressionSyntaxError("the expression is empty; write one in x, for example 'tanh(x)'")
    if len(text) > MAX_LENGTH:
        raise ExpressionSyntaxError(f"the expression has {len(text)} characters; at most {MAX_LENGTH} are read")
    read: dict[str, sp.Expr] = (
        dict(symbols) if isinstance(symbols, Mapping) else {name: sp.Symbol(name, real=True) for name in symbols}
    )
    _check_characters(text, "".join(read))
    _check_nesting(text)
    source = text.strip().replace("^", "**")
    try:
        tree = ast.parse(source, mode="eval")
    except SyntaxError as error:
        at = (error.text or source)[max((error.offset or 1) - 1, 0) :][:12].strip()
        words = [f"; {name_problem(word)}" for word in re.findall(r"[A-Za-z_]+", text) if keyword.iskeyword(word)]
        raise ExpressionSyntaxError(f"{_short(text)} is not a formula: cannot read it at {at!r}{''.join(words[:1])}") from None
    except (ValueError, MemoryError, RecursionError):
        raise ExpressionSyntaxError(f"{_short(text)} is not a formula") from None
    return _Reader(source, read, arrays, parameters).read(tree.body, 0)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _check_characters(text: str, allowed: str) -> None:
    """Letters that look like ASCII ones are other letters; Python would even take some of them for the same."""
    for at, character in enumerate(text):
        if not character.isascii() and character not in allowed:
            name = unicodedata.name(character, "unnamed")
            raise ExpressionSyntaxError(
                f"{character!r} ({name}) in {_short(text)}, place {at + 1}, is not ASCII; write it in ASCII"
            )


def _check_nesting(text: str) -> None:
    depth = deepest = 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise ExpressionSyntaxError(f"{_short(text)} nests {deepest} parentheses; at most {MAX_DEPTH} are read")


class _Reader:
    """One pass over the syntax tree, from the leaves up, so that every constant is bounded before it is used."""

    __slots__ = ("arrays", "indices", "parameters", "parts", "source", "symbols")

    def __init__(
        self, source: str, symbols: dict[str, sp.Expr], arrays: Mapping[str, sp.NDimArray] | None, parameters: bool
    ) -> None:
        self.source = source
        self.symbols = symbols
        self.arrays = arrays
        self.parameters = parameters
        self.indices: dict[str, int] = {}
        self.parts = 0

    def refuse(self, node: ast.AST, why: str) -> ExpressionSyntaxError:
        token = ast.get_source_segment(self.source, node) or type(node).__name__  # type: ignore[arg-type]
        return ExpressionSyntaxError(f"{_short(token)} in {_short(self.source)} {why}")

    def read(self, node: ast.expr, depth: int) -> sp.Expr:
        # a sum of many terms is a chain as deep as it has terms, so the allowance is larger than for parentheses
        if depth > 5 * MAX_DEPTH:
            raise self.refuse(node, f"is nested more than {5 * MAX_DEPTH} deep")
        self.parts += 1
        if self.parts > MAX_PARTS:
            raise self.refuse(node, f"is part of a formula of more than {MAX_PARTS} parts, sums written out; shorten the sums")
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
            case ast.Subscript(value=ast.Name(id=array)) if self.arrays is not None:
                value = self.component(node, array, depth)
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
        if node.id in self.indices:
            return sp.Integer(self.indices[node.id])
        if node.id in self.symbols:
            return self.symbols[node.id]
        if self.arrays and node.id in self.arrays:
            raise self.refuse(node, f"has components: write {node.id}[1], dot({node.id}, {node.id}) or sum(i, {node.id}[i])")
        if node.id in CONSTANTS:
            return CONSTANTS[node.id]
        if node.id in FUNCTIONS:
            raise self.refuse(node, f"is a function: write {node.id}(...)")
        if self.arrays is not None and node.id in ARRAY_FUNCTIONS:
            raise self.refuse(node, f"is a function: write {ARRAY_FUNCTIONS[node.id]}")
        if self.parameters:
            if problem := name_problem(node.id):
                raise ExpressionSyntaxError(f"in {_short(self.source)}: {problem}")
            return sp.Symbol(node.id, real=True)
        known = [*self.symbols, *(self.arrays or ()), *CONSTANTS, *FUNCTIONS]
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
        if self.arrays is not None and name in ARRAY_FUNCTIONS and not node.keywords:
            return self.dot(node) if name == "dot" else self.sum(node, depth)
        if name not in FUNCTIONS:
            raise self.refuse(node.func, f"is not a known function{suggestion(name, FUNCTIONS)}; known: {', '.join(FUNCTIONS)}")
        if node.keywords:
            raise self.refuse(node, "has keyword arguments; functions here take positional arguments only")
        least, most, function = FUNCTIONS[name]
        if not least <= len(node.args) <= most:
            count = str(least) if least == most else f"{least} to {most}"
            raise self.refuse(node, f"has {len(node.args)} arguments; {name} takes {count}")
        return function(*(self.read(argument, depth + 1) for argument in node.args))

    def component(self, node: ast.Subscript, name: str, depth: int) -> sp.Expr:
        array = self.array(node, node.value)
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(entries) != array.rank():
            raise self.refuse(node, f"has {len(entries)} subscripts; {name} takes {array.rank()}")
        place = []
        for entry, size in zip(entries, array.shape):
            index = self.read(entry, depth + 1)
            if not index.is_Integer:
                raise self.refuse(node, f"has the subscript {index}, which is no number; write sum({index}, ...) around it")
            if not 1 <= int(index) <= size:
                raise self.refuse(node, f"has the subscript {index}; the components of {name} are 1 to {size}")
            place.append(int(index) - 1)
        return array[tuple(place)]

    def array(self, node: ast.AST, argument: ast.AST) -> sp.NDimArray:
        known = self.arrays or {}
        if not isinstance(argument, ast.Name) or argument.id not in known:
            word = argument.id if isinstance(argument, ast.Name) else ""
            have = f"those are {', '.join(known)}" if known else "none is"
            raise self.refuse(node, f"needs a name whose number of components is declared{suggestion(word, known)}; {have}")
        return known[argument.id]

    def dot(self, node: ast.Call) -> sp.Expr:
        if len(node.args) != 2:
            raise self.refuse(node, f"has {len(node.args)} arguments; dot takes 2")
        left, right = (self.array(node, argument) for argument in node.args)
        if left.shape != right.shape or left.rank() != 1:
            raise self.refuse(node, f"multiplies shapes {left.shape} and {right.shape}; dot takes two vectors of equal length")
        return sp.Add(*(left[i] * right[i] for i in range(left.shape[0])))

    def sum(self, node: ast.Call, depth: int) -> sp.Expr:
        head = node.args[0] if len(node.args) in (2, 4) else None
        if not isinstance(head, ast.Name):
            raise self.refuse(node, f"is no sum; write {ARRAY_FUNCTIONS['sum']}")
        index, body = head.id, node.args[-1]
        clash = index in self.indices or index in self.symbols or index in (self.arrays or {})
        if problem := f"{index!r} means something else here" if clash else name_problem(index):
            raise self.refuse(node, f"sums over {index}, but {problem}")
        first, last = self.limits(node, index, depth)
        terms = []
        for value in range(first, last + 1):
            self.indices[index] = value
            terms.append(self.read(body, depth + 1))
        self.indices.pop(index, None)
        return sp.Add(*terms)

    def limits(self, node: ast.Call, index: str, depth: int) -> tuple[int, int]:
        if len(node.args) == 4:
            first, last = (self.read(limit, depth + 1) for limit in node.args[1:3])
            if not (first.is_Integer and last.is_Integer):
                raise self.refuse(node, f"runs from {first} to {last}; the limits of a sum are whole numbers")
            return int(first), int(last)
        sizes = set()
        for part in ast.walk(node.args[1]):
            if isinstance(part, ast.Subscript):
                entries = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
                shape = self.array(part, part.value).shape
                sizes |= {size for entry, size in zip(entries, shape) if isinstance(entry, ast.Name) and entry.id == index}
        if len(sizes) != 1:
            found = f"arrays of different sizes {sorted(sizes)}" if sizes else "no array"
            raise self.refuse(node, f"has the index {index} on {found}; write its limits: sum({index}, first, last, ...)")
        return 1, sizes.pop()

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
