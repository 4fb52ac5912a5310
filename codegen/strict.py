"""What is refused in expressions before anything is lowered: errors that would otherwise be silent at run time.

    two symbols of one name     SymPy tells x and x (real) apart, emitted code does not: one would replace the other
    non-commuting symbols       emitted products commute
    a constant out of range     1e400 would become inf, 1e-400 would become 0
    a denominator that is 0     (x + 1)**2 - x**2 - 2*x - 1 is 0, SymPy keeps it as a sum, and 1/0 would be inf or nan
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false, reportCallIssue=false

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping

import sympy as sp
from sympy.core.function import AppliedUndef

from .errors import ConstantRange, DivisionByZero, NameClash, UnsupportedNode

__all__ = ["check_expressions", "described", "nodes_of"]

#: dtype -> (smallest normal, largest finite) number
_RANGE = {
    "float32": (sp.Rational(2) ** -126, (2 - sp.Rational(2) ** -23) * sp.Integer(2) ** 127),
    "float64": (sp.Rational(2) ** -1022, (2 - sp.Rational(2) ** -52) * sp.Integer(2) ** 1023),
}
#: the test for a vanishing denominator: digits, points, the size beyond which a sum is not tested, and that of all tested
_DIGITS, _POINTS, _LARGEST, _BUDGET = 60, 3, 500, 3000
_INFINITE = (sp.nan, sp.zoo, sp.oo, sp.S.NegativeInfinity)


def check_expressions(expressions: Mapping[str, sp.Basic], dtype: str = "float64") -> None:
    """Check the expressions of one kernel together; the keys say where each stands, for messages.

    Raises
    ------
    NameClash
        Two different symbols (by their assumptions, or dummies) with one name.
    UnsupportedNode
        A symbol that does not commute, an infinity or nan.
    ConstantRange
        A constant beyond the range of `dtype`.
    DivisionByZero
        A denominator or the argument of a logarithm that vanishes identically. Sums are tested at random points in
        60 digits, so a sum that is not zero is never refused; of large expressions only the smaller sums are tested.
    """
    symbols: dict[str, sp.Symbol] = {}
    divisors: dict[sp.Expr, tuple[str, sp.Basic]] = {}
    seen: set[sp.Basic] = set()  # outputs may share most of their parts
    constant: dict[sp.Basic, bool] = {}
    for where, expression in expressions.items():
        fresh = list(nodes_of(expression, seen))
        for node in fresh:
            if isinstance(node, sp.Symbol):
                _check_symbol(node, symbols, where)
            elif node in _INFINITE:
                raise UnsupportedNode(f"{where}: {node} in {_short(expression)}; constants must be finite (a division by zero?)")
            elif (divisor := _divisor(node)) is not None:
                divisors.setdefault(divisor, (where, node))
        for value in _constants(expression, fresh, constant):
            _check_constant(value, dtype, where)
    _check_divisors(divisors)


def nodes_of(expression: sp.Basic, seen: set[sp.Basic] | None = None) -> Iterator[sp.Basic]:
    """Every subexpression once, without recursion; not those in `seen`, to which the others are added."""
    seen = set() if seen is None else seen
    if expression in seen:
        return
    seen.add(expression)
    stack = [expression]
    while stack:
        node = stack.pop()
        yield node
        for argument in node.args:
            if argument not in seen and isinstance(argument, sp.Basic):
                seen.add(argument)
                stack.append(argument)


def _short(expression: sp.Basic) -> str:
    text = str(expression)
    return text if len(text) <= 80 else text[:77] + "..."


def _check_symbol(symbol: sp.Symbol, known: dict[str, sp.Symbol], where: str) -> None:
    if symbol.is_commutative is False:
        raise UnsupportedNode(f"{where}: symbol {symbol.name!r} does not commute; emitted products do")
    other = known.setdefault(symbol.name, symbol)
    if other != symbol:
        first, second = (described(each) for each in (other, symbol))
        raise NameClash(
            f"{where}: two different symbols are called {symbol.name!r} ({first}; {second}), which emitted code cannot tell "
            "apart; make them one symbol, or rename one"
        )


def described(symbol: sp.Symbol) -> str:
    """The assumptions of a symbol as they were given."""
    given = ", ".join(f"{key}={value}" for key, value in sorted(symbol._assumptions_orig.items())) or "no assumptions"
    return f"a dummy, {given}" if isinstance(symbol, sp.Dummy) else given


# -- constants ---------------------------------------------------------------------------------------------------------


def _constants(expression: sp.Basic, nodes: Iterable[sp.Basic], constant: dict[sp.Basic, bool]) -> Iterator[sp.Expr]:
    """The largest constant subexpressions among `nodes`; of a product the product of its constant factors."""
    _note_constants(expression, constant)
    if constant[expression]:
        yield expression
        return
    for node in nodes:
        if constant.get(node, True):
            continue
        numbers = [argument for argument in node.args if isinstance(argument, sp.Expr) and constant[argument]]
        if isinstance(node, sp.Mul) and len(numbers) > 1:
            yield sp.Mul(*numbers)
        else:
            yield from numbers


def _note_constants(expression: sp.Basic, constant: dict[sp.Basic, bool]) -> None:
    """Node -> whether it has no symbols; from the leaves up, because `is_number` would recurse."""
    stack = [expression]
    while stack:
        node = stack[-1]
        if node in constant:
            stack.pop()
            continue
        below = [argument for argument in node.args if isinstance(argument, sp.Basic)]
        missing = [argument for argument in below if argument not in constant]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        constant[node] = all(constant[argument] for argument in below) if below else bool(getattr(node, "is_number", False))


def _check_constant(constant: sp.Expr, dtype: str, where: str) -> None:
    if isinstance(constant, sp.Integer) and abs(int(constant)) < 2**31:
        return
    value = abs(sp.N(constant, 30)) if not constant.is_Rational else abs(constant)
    if not (value.is_Float or value.is_Rational):
        return  # an unsupported function, or a number that is not real: the conversion refuses it by name
    low, high = _RANGE[dtype]
    if value > high:
        raise ConstantRange(f"{where}: the constant {_short(constant)} overflows in {dtype} (largest {float(high):.3g}); rescale")
    if 0 < value < low:
        raise ConstantRange(f"{where}: the constant {_short(constant)} underflows in {dtype} (smallest {float(low):.3g}); rescale")


# -- denominators ------------------------------------------------------------------------------------------------------


def _divisor(node: sp.Basic) -> sp.Expr | None:
    """A sum that is divided by, or whose logarithm is taken; other nodes cannot vanish without SymPy knowing."""
    if isinstance(node, sp.Pow) and isinstance(node.base, sp.Add) and node.exp.could_extract_minus_sign():
        return node.base
    if isinstance(node, sp.log) and isinstance(node.args[0], sp.Add):
        return node.args[0]
    return None


def _use(node: sp.Basic) -> str:
    return "its logarithm is taken" if isinstance(node, sp.log) else "it is divided by"


def _check_divisors(divisors: Mapping[sp.Expr, tuple[str, sp.Basic]]) -> None:
    """The inner ones first, which are smaller, as long as the budget lasts."""
    left = _BUDGET
    for divisor, (where, node) in reversed(divisors.items()):
        size = sum(1 for _, _ in zip(nodes_of(divisor), range(min(_LARGEST, left) + 1)))
        if size > left:
            return
        left -= size
        if size <= _LARGEST and _vanishes(divisor):
            raise DivisionByZero(f"{where}: {_short(divisor)} is zero for all values of its symbols, and {_use(node)}")


def _vanishes(expression: sp.Expr) -> bool:
    """Whether it is 0, to 40 digits relative to its terms, at random points."""
    try:
        return _vanishes_at_points(expression)
    except RecursionError:  # too deep for SymPy's own evaluation
        return False


def _vanishes_at_points(expression: sp.Expr) -> bool:
    if expression.is_positive or expression.is_negative or expression.atoms(AppliedUndef):
        return False
    numbers = random.Random(1)
    symbols = sorted(expression.free_symbols, key=str)
    for _ in range(_POINTS):
        at = {symbol: _point(symbol, numbers) for symbol in symbols}
        terms = [sp.N(term.xreplace(at), _DIGITS) for term in expression.args]
        if not all(term.is_number and term.is_finite for term in terms):
            return False
        total, size = abs(sp.N(sp.Add(*terms), _DIGITS)), max(abs(term) for term in terms)
        if not (total.is_comparable and size.is_comparable) or total > size * sp.Float(10) ** -40:
            return False
    return True


def _point(symbol: sp.Symbol, numbers: random.Random) -> sp.Float:
    value = sp.Float(sp.Rational(numbers.randrange(10**6, 9 * 10**6), 10**7 + 19), _DIGITS)
    return -value if symbol.is_negative or symbol.is_nonpositive else value
