"""Scales as text and LaTeX, and back: ``scale("sqrt(n) log n")``, read by the whitelist of `symtensor.parsing`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sympy

from symtensor.expansion import ScaleError
from symtensor.parsing import CONSTANTS, FUNCTIONS, ExpressionSyntaxError, parse_expression, suggestion

from ._input import exact
from .monomial import Monomial
from .scale import Comparison, Scale

__all__ = ["from_sympy", "latex_of", "scale", "text_of"]

_SPACE = r" \, "
_TOKEN = re.compile(r"\s*(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+|[A-Za-z_]\w*|\*\*|[-+*/^(),])")
_UNARY = frozenset(name for name, (_, most, _f) in FUNCTIONS.items() if most == 1)
#: what no undeclared name may contain: it is a function glued to a size, nlogn for n log(n)
_GLUED = re.compile("(?:log)+|sqrt", re.IGNORECASE)
#: shorter function names occur inside words; they count as glued between single letters only, as in nlnn
_GLUED_SHORT = re.compile(f"[A-Za-z]?[0-9]*({'|'.join(sorted(_UNARY, key=len, reverse=True))})[A-Za-z]?[0-9]*")
_CALL = re.compile(r"([A-Za-z_]\w*)\(")


def scale(text: Any, sizes: Iterable[str] | None = None, exponents: Mapping[str, Any] | None = None) -> Scale:
    """The scale written in ``text``, for sizes that tend to infinity.

    Products may be written by juxtaposition and functions without parentheses, as on paper: ``"sqrt(n) log(n)"``,
    ``"n^(2/3) (log n)^2 loglog n"``, ``"max(n, m^2)"``. Constant factors do not count. A sum is its largest term; a
    difference needs a dominant positive one.

    Args:
        text: the formula (a SymPy expression or a `Scale` is accepted too).
        sizes: the allowed size names; by default every name that is not in ``exponents``.
        exponents: real SymPy symbols (or numbers) for names used as exponents.

    Raises:
        ScaleError: growth outside the group, naming the subterm: ``2**n``, ``n**sqrt(log(n))``, ``sin(n)``; a name that
            is no size: the constants, and names with a function glued to them, ``nlogn``, unless ``sizes`` declares them.
        ExpressionSyntaxError: text outside the small language, naming the token; ``n^1/2``, which is n/2 to some.

    Example:
        >>> scale("sqrt(n) log(n)"), scale("n^a / n", exponents={"a": sympy.Symbol("a", positive=True)})
        (sqrt(n) log n, n^(a - 1))
        >>> scale("2^n")
        Traceback (most recent call last):
        ...
        symtensor.expansion.scale.ScaleError: 2**n is outside the group n^a (log n)^b (loglog n)^c: ...
    """
    if isinstance(text, Scale):
        return text
    given = dict(exponents or {})
    if isinstance(text, sympy.Expr):
        return from_sympy(text)
    if not isinstance(text, str):
        raise TypeError(f"a scale is written as text or as a SymPy expression, not as {type(text).__name__}")
    tokens = _tokens(text)
    _refuse_open_fraction(tokens, given)
    words = {t for t in tokens if t[0].isalpha() or t[0] == "_"}
    found = words - set(FUNCTIONS) - {"loglog", "pi"} - set(given)
    allowed = found if sizes is None else set(sizes)
    reserved = sorted(allowed & set(CONSTANTS) | ({"e"} & found if sizes is None else set()))
    if reserved:
        raise ScaleError(f"{reserved[0]} is the constant, no size; choose another name")
    if sizes is None:
        _refuse_glued(found)
    names = sorted(allowed | set(given))
    value = parse_expression(_formula(tokens), names)
    replaced = {sympy.Symbol(k, real=True): exact(v) for k, v in given.items()}
    replaced |= {sympy.Symbol(k, real=True): sympy.Symbol(k, positive=True) for k in allowed}
    return from_sympy(value.subs(list(replaced.items())), allowed)


def _tokens(text: str) -> list[str]:
    for name in _CALL.findall(text):
        if name not in FUNCTIONS and name != "loglog":
            raise ExpressionSyntaxError(f"{name}( is no known function{suggestion(name, FUNCTIONS)}; a product is {name}*(..)")
    tokens, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionSyntaxError(f"{text!r} cannot be read as a scale at {text[at:].strip()[:10]!r}")
        tokens.append(match.group(1))
        at = match.end()
    if not tokens:
        raise ExpressionSyntaxError("the scale is empty; write for example 'sqrt(n) log(n)'")
    return tokens


def _refuse_glued(names: Iterable[str]) -> None:
    """Names like nlogn are formulas without their spaces; as a size, data of order n would be consistent with them."""
    for name in sorted(names):
        match = _GLUED.search(name)
        if match is None:
            short = _GLUED_SHORT.fullmatch(name)
            if short is None:
                continue
            head, function, tail = name[: short.start(1)], short.group(1), name[short.end(1) :]
        else:
            head, function, tail = name[: match.start()], match.group().lower(), name[match.end() :]
        if function.startswith("loglog"):
            function = "log(" * (len(function) // 3 - 1) + "log"
        likely = f"{head} {function}({tail or 'n'})".strip() + ")" * function.count("(")
        raise ScaleError(f"{name!r} is a function glued to a size, or a name that looks like it; write {likely!r}")


def _refuse_open_fraction(tokens: list[str], exponents: Mapping[str, Any]) -> None:
    """n^1/2 is n/2 by the rules of precedence and sqrt(n) to its author: constants do not count, so it would pass as n."""
    for at in range(len(tokens) - 3):
        if tokens[at] not in ("^", "**"):
            continue
        sign = tokens[at + 1] if tokens[at + 1] in "+-" else ""
        rest = tokens[at + 1 + len(sign) : at + 4 + len(sign)]
        if len(rest) == 3 and rest[1] == "/" and _is_number(rest[2]) and (_is_number(rest[0]) or rest[0] in exponents):
            power, mark = sign + "".join(rest), tokens[at]
            base = tokens[at - 1] if at else ""
            root = " or sqrt(..)" if power == "1/2" else ""
            raise ExpressionSyntaxError(
                f"{base}{mark}{power} is ambiguous: write {base}{mark}({power}){root}, or ({base}{mark}{sign}{rest[0]})/{rest[2]}"
            )


def _is_number(token: str) -> bool:
    return token[0].isdigit() or token[0] == "."


def _formula(tokens: list[str]) -> str:
    """Python's notation: ``log n`` becomes log(n), ``loglog n`` log(log(n)), juxtaposition a product."""
    out: list[str] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        following = tokens[at + 1] if at + 1 < len(tokens) else ""
        if out and (token == "(" or token[0].isalnum() or token[0] in "._") and _ends_value(out[-1]):
            out.append("*")
        if token == "loglog":
            end = _group_end(tokens, at + 1)
            out.append("log(log(" + _formula(tokens[at + 1 : end]) + "))")
            at = end
            continue
        if token in _UNARY and following[:1].isalpha():
            end = _group_end(tokens, at + 1)
            out.append(f"{token}(" + _formula(tokens[at + 1 : end]) + ")")
            at = end
            continue
        if token in FUNCTIONS and following == "(":
            end = _group_end(tokens, at + 1)
            inner = tokens[at + 2 : end - 1]
            out.append(f"{token}(" + _formula(inner) + ")")
            at = end
            continue
        out.append(token)
        at += 1
    return "".join(out)


def _ends_value(text: str) -> bool:
    return text == ")" or text[-1].isalnum() or text[-1] in "_)."


def _group_end(tokens: list[str], at: int) -> int:
    """End of one argument: a parenthesis with its content, a function with its argument, or one token."""
    if at >= len(tokens):
        raise ExpressionSyntaxError(f"{tokens[-1]!r} has no argument; write {tokens[-1]}(n)")
    if tokens[at] != "(":
        return _group_end(tokens, at + 1) if tokens[at] in FUNCTIONS or tokens[at] == "loglog" else at + 1
    depth = 0
    for end in range(at, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[end], 0)
        if depth == 0:
            return end + 1
    raise ExpressionSyntaxError("a parenthesis is not closed in the scale")


def from_sympy(value: sympy.Expr, sizes: Iterable[str] | None = None) -> Scale:
    """The scale of a positive SymPy expression whose symbols tend to infinity (exponent symbols excepted)."""
    names = frozenset(s.name for s in value.free_symbols if s.is_positive) if sizes is None else frozenset(sizes)  # type: ignore[attr-defined]
    return _read(value, names)


def _moves(value: sympy.Expr, sizes: frozenset[str]) -> bool:
    return any(s.name in sizes for s in value.free_symbols)  # type: ignore[attr-defined]


def _outside(value: Any, why: str = "") -> ScaleError:
    return ScaleError(
        f"{value} is outside the group n^a (log n)^b (loglog n)^c: {why or 'only powers of sizes and of logarithms compare'}"
    )


def _read(value: sympy.Expr, sizes: frozenset[str]) -> Scale:
    if not _moves(value, sizes):
        if not value.is_positive:
            raise ScaleError(f"{value} is no positive constant; a scale is positive")
        return Scale.one()
    if isinstance(value, sympy.Symbol):
        return Scale.power_of(value.name)
    if isinstance(value, sympy.Mul):
        return _product(value, sizes)
    if isinstance(value, sympy.Pow):
        base, power = value.as_base_exp()
        if _moves(power, sizes):
            raise _outside(value, "the exponent grows, and constants in it matter")
        return _read(base, sizes) ** power
    if isinstance(value, sympy.log):
        return _log(value, sizes)
    if isinstance(value, sympy.Max | sympy.Min):
        parts = [_read(arg, sizes) for arg in value.args]  # type: ignore[arg-type]
        return Scale.max(*parts) if isinstance(value, sympy.Max) else Scale.min(*parts)
    if isinstance(value, sympy.Add):
        return _sum(value, sizes)
    if isinstance(value, sympy.Abs):
        return _read(value.args[0], sizes)  # type: ignore[arg-type]
    raise _outside(value)


def _product(value: sympy.Expr, sizes: frozenset[str]) -> Scale:
    result = Scale.one()
    coefficient, rest = value.as_coeff_Mul()
    if coefficient.is_negative:
        raise ScaleError(f"{value} is negative; a scale is positive")
    for factor in sympy.Mul.make_args(rest):
        result = result * _read(factor, sizes)  # type: ignore[arg-type]
    return result


def _log(value: sympy.Expr, sizes: frozenset[str]) -> Scale:
    inner = _read(value.args[0], sizes)  # type: ignore[arg-type]
    if inner.limit() != "oo":
        raise _outside(value, "its argument does not tend to infinity")
    return inner.log()


def _sum(value: sympy.Expr, sizes: frozenset[str]) -> Scale:
    plus: list[Scale] = []
    minus: list[Scale] = []
    for term in sympy.Add.make_args(value):
        coefficient = term.as_coeff_Mul()[0]
        if coefficient.is_negative or (not _moves(term, sizes) and term.is_negative):
            minus.append(_read(-term, sizes))  # type: ignore[operator]
        else:
            plus.append(_read(term, sizes))  # type: ignore[arg-type]
    if not plus:
        raise ScaleError(f"{value} is negative; a scale is positive")
    result = Scale.max(*plus)
    if any(part.compare(result) is not Comparison.LESS for part in minus):
        raise ScaleError(f"{value} has no dominant positive term: the subtracted part may cancel it")
    return result


def text_of(value: Scale) -> str:
    """The scale as on paper: ``sqrt(n) log n``."""
    return _nested(value, _text, "max({})", "min({})", ", ")


def latex_of(value: Scale) -> str:
    """The scale as LaTeX."""
    return _nested(value, _latex, r"\max\left({}\right)", r"\min\left({}\right)", r",\, ")


def _nested(value: Scale, write: Any, upper: str, lower: str, comma: str) -> str:
    groups = []
    for group in value.terms:
        members = comma.join(map(write, group))
        groups.append(members if len(group) == 1 else lower.format(members))
    return groups[0] if len(groups) == 1 else upper.format(comma.join(groups))


def _text(mono: Monomial) -> str:
    top, bottom = _split(mono, _text_power)
    if not bottom:
        return " ".join(top) or "1"
    below = bottom[0] if len(bottom) == 1 else f"({' '.join(bottom)})"
    return f"{' '.join(top)} / {below}" if top else f"1/{below}"


def _latex(mono: Monomial) -> str:
    top, bottom = _split(mono, _latex_power)
    upper = _SPACE.join(top) or "1"
    return rf"\frac{{{upper}}}{{{_SPACE.join(bottom)}}}" if bottom else upper


def _split(mono: Monomial, write: Callable[[str, int, sympy.Expr], str]) -> tuple[list[str], list[str]]:
    """Factors above and below the fraction line; symbolic exponents stay above."""
    top: list[str] = []
    bottom: list[str] = []
    for name, triple in mono.powers:
        for level, power in enumerate(triple):
            if power.is_number and power.is_negative:
                bottom.append(write(name, level, -power))
            elif not power.is_zero:
                top.append(write(name, level, power))
    return top, bottom


def _text_power(name: str, level: int, power: sympy.Expr) -> str:
    base = ("", "log ", "loglog ")[level] + name
    if power == 1:
        return base
    if power == sympy.S.Half:
        return f"sqrt({base})"
    shown = f"{power}" if power.is_Integer else f"({power})"
    return f"{f'({base})' if level else base}^{shown}"


def _latex_power(name: str, level: int, power: sympy.Expr) -> str:
    symbol = sympy.latex(sympy.Symbol(name))
    base = ("", r"\log ", r"\log\log ")[level] + symbol
    if power == 1:
        return base
    if power == sympy.S.Half:
        return rf"\sqrt{{{base}}}"
    inner = rf"\left({base}\right)" if level else symbol
    return rf"{inner}^{{{sympy.latex(power)}}}"
