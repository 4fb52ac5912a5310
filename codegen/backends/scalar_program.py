"""SymPy expressions as straight-line programs in mpmath: values and reverse-mode gradients at any precision.

The oracle of scalar kernels. It walks the input expressions themselves (each subexpression once, without recursion) and
shares nothing with lowering, passes and printers: functions are evaluated by mpmath through SymPy's own printer, their
derivatives through SymPy's `fdiff`.
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportIndexIssue=false, reportOptionalOperand=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import mpmath
import sympy as sp
from mpmath.libmp import NoConvergence
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom

from ..errors import UnsupportedNode

__all__ = ["Program", "Trace"]

#: arguments beyond 2^64 overflow almost every function (and mpmath would need as many digits): the value does not exist
_LARGEST = mpmath.mpf(2) ** 64
_UNBOUNDED = (sp.Abs, sp.sign, sp.Heaviside, sp.log, sp.atan)
_RELATIONS: dict[type, Callable[[Any, Any], bool]] = {
    sp.StrictLessThan: lambda a, b: a < b, sp.LessThan: lambda a, b: a <= b, sp.StrictGreaterThan: lambda a, b: a > b,
    sp.GreaterThan: lambda a, b: a >= b, sp.Equality: lambda a, b: a == b, sp.Unequality: lambda a, b: a != b,
}  # fmt: skip
_FAILURES = (ZeroDivisionError, ValueError, OverflowError, TypeError, NoConvergence, NotImplementedError)


@dataclass(frozen=True, slots=True)
class _Step:
    """One node: its SymPy expression and the places of its arguments."""

    expr: sp.Basic
    args: tuple[int, ...]
    function: _Function | None = None


@dataclass(frozen=True, slots=True)
class _Function:
    """A function of its arguments that are not literal numbers: value and partial derivatives."""

    value: Callable[..., Any]
    partials: tuple[Callable[..., Any], ...]
    bounded: bool


@dataclass(slots=True)
class Trace:
    """Values of all steps at one point (None: no value).

    `on_edge`: the point lies on a kink or on the edge of a branch. `cancelled`: some sum lost half of the digits in use, so
    that even a zero may be a rounding error.
    """

    values: list[Any]
    on_edge: bool = False
    cancelled: bool = False


@dataclass(slots=True)
class Program:
    """All nodes of some expressions, arguments before users.

    Parameters
    ----------
    roots
        The expressions; symbols are matched by name.
    """

    roots: tuple[sp.Expr, ...]
    steps: list[_Step] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)  # by identity: hashing deep expressions is recursive
    _numeric: dict[int, bool] = field(default_factory=dict)
    _numbers: dict[tuple[int, int], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for root in self.roots:
            self._add(root)

    def _add(self, root: sp.Basic) -> None:
        self._note_numbers(root)
        stack = [(root, False)]
        while stack:
            expr, ready = stack.pop()
            if id(expr) in self.places:
                continue
            below = () if self._numeric[id(expr)] else _arguments(expr, self._numeric)
            if not ready:
                stack.append((expr, True))
                stack.extend((argument, False) for argument in below)
                continue
            function = _function(expr) if isinstance(expr, sp.Function) and not _is_special(expr) and below else None
            self.places[id(expr)] = len(self.steps)
            self.steps.append(_Step(expr, tuple(self.places[id(argument)] for argument in below), function))

    def _note_numbers(self, root: sp.Basic) -> None:
        """Which parts are numbers; asking each of them would look at every part below it again, and recursively."""
        stack = [(root, False)]
        while stack:
            part, ready = stack.pop()
            if id(part) in self._numeric:
                continue
            if not ready and part.args:
                stack.append((part, True))
                stack.extend((argument, False) for argument in part.args)
                continue
            numeric = all(self._numeric[id(argument)] for argument in part.args)
            self._numeric[id(part)] = numeric and bool(getattr(part, "is_number", False))

    # -- values -------------------------------------------------------------------------------------------------------

    def run(self, point: Mapping[str, Any]) -> Trace:
        """Values of all steps at the working precision; a failing step has the value None, and so has what needs it."""
        values: list[Any] = []
        trace = Trace(values)
        for place, step in enumerate(self.steps):
            try:
                value, edge = self._value(place, step, values, point)
            except _FAILURES:
                value, edge = None, True
            if value is not None and not isinstance(value, bool) and mpmath.isnan(value):
                value = None
            if isinstance(step.expr, sp.Add) and value is not None and step.args:
                trace.cancelled |= _cancels(value, [values[argument] for argument in step.args])
            values.append(value)
            trace.on_edge |= edge
        return trace

    def _value(self, place: int, step: _Step, values: Sequence[Any], point: Mapping[str, Any]) -> tuple[Any, bool]:
        expr = step.expr
        if not step.args:
            return (point[expr.name] if expr.is_Symbol else self._number(place, expr)), False
        args = [values[argument] for argument in step.args]
        if isinstance(expr, sp.Piecewise):
            taken = _branch(args)
            return (None if taken is None else args[taken]), False
        if any(argument is None for argument in args):
            return None, False
        match expr:
            case sp.Add():
                return mpmath.fsum(args), False
            case sp.Mul():
                return mpmath.fprod(args), False
            case sp.Pow():
                return _power(expr, *args), args[0] == 0 and not expr.exp.is_Integer
            case sp.Max() | sp.Min():
                choose = max if isinstance(expr, sp.Max) else min
                best = choose(args)
                return best, sum(argument == best for argument in args) > 1
            case Relational():
                return _RELATIONS[type(expr)](*args), args[0] == args[1]
            case sp.And() | sp.Or():
                return (all if isinstance(expr, sp.And) else any)(args), False
            case sp.Not():
                return not args[0], False
        return _called(step, args)

    def _number(self, place: int, expr: sp.Basic) -> Any:
        if isinstance(expr, BooleanAtom):
            return bool(expr)
        key = (place, mpmath.mp.prec)
        if key not in self._numbers:
            self._numbers[key] = _constant(expr)
        return self._numbers[key]

    # -- gradients ----------------------------------------------------------------------------------------------------

    def gradient(self, trace: Trace, root: int) -> dict[str, Any] | None:
        """d root / d symbol by the chain rule in reverse; None where a derivative on the way does not exist."""
        top = self.place(root)
        adjoint: dict[int, Any] = {top: mpmath.mpf(1)}
        result: dict[str, Any] = {}
        for place in range(top, -1, -1):
            weight = adjoint.pop(place, None)
            if weight is None or weight == 0:
                continue
            step = self.steps[place]
            if not step.args:
                if step.expr.is_Symbol:  # equal symbols may be different objects, each with its own place
                    result[step.expr.name] = result.get(step.expr.name, mpmath.mpf(0)) + weight
                continue
            try:
                partials = _partials(step, [trace.values[argument] for argument in step.args], trace.values[place])
            except _FAILURES:
                return None
            for argument, partial in zip(step.args, partials):
                if partial is None or not mpmath.isfinite(partial):
                    return None
                before, more = adjoint.get(argument), weight * partial
                adjoint[argument] = more if before is None else before + more
                if before is not None:
                    trace.cancelled |= _cancels(adjoint[argument], [before, more])
        return result

    def place(self, root: int) -> int:
        """The step that computes a root."""
        return self.places[id(self.roots[root])]


def _cancels(total: Any, parts: Sequence[Any]) -> bool:
    """Whether a sum is smaller than its largest part by half of the digits in use, or zero."""
    largest = max(map(abs, parts))
    return bool(mpmath.isfinite(largest) and largest > 0 and abs(total) <= mpmath.ldexp(largest, -mpmath.mp.prec // 2))


def _arguments(expr: sp.Basic, numeric: Mapping[int, bool]) -> tuple[sp.Basic, ...]:
    """What has to be evaluated first: values and conditions of the branches in turn; no numbers inside functions."""
    if expr.is_Symbol or isinstance(expr, BooleanAtom):
        return ()
    if isinstance(expr, sp.Piecewise):
        return tuple(part for branch in expr.args for part in branch.args)
    if isinstance(expr, sp.exp):
        return (expr.exp,)
    if isinstance(expr, sp.Function) and not _is_special(expr):
        return tuple(argument for argument in expr.args if not numeric[id(argument)])
    known = (sp.Add, sp.Mul, sp.Pow, sp.Function, Relational, sp.And, sp.Or, sp.Not, sp.Max, sp.Min)
    if not isinstance(expr, known) or (isinstance(expr, Relational) and type(expr) not in _RELATIONS):
        raise UnsupportedNode(f"the oracle has no rule for the node {type(expr).__name__} in {str(expr)[:80]}")
    return expr.args


def _is_special(expr: sp.Basic) -> bool:
    return isinstance(expr, sp.Piecewise | sp.Abs | sp.sign | sp.Heaviside | sp.Max | sp.Min)


def _constant(expr: sp.Basic) -> Any:
    if isinstance(expr, sp.Rational):
        return mpmath.mpf(int(expr.p)) / int(expr.q)
    if isinstance(expr, sp.Float):
        return mpmath.mpf(expr._mpf_)
    value = sp.N(_elementary(expr), mpmath.mp.dps + 5)
    return mpmath.mpmathify(value._to_mpmath(mpmath.mp.prec + 10))


def _power(expr: sp.Pow, base: Any, exponent: Any) -> Any:
    if expr.exp.is_Integer:
        return base ** int(expr.exp)
    if expr.exp.is_Rational and expr.exp.q == 2:
        return mpmath.sqrt(base) ** int(expr.exp.p)
    if expr.base is sp.E:
        return _exponential(exponent)
    return mpmath.power(base, exponent)


def _exponential(x: Any) -> Any:
    if abs(x) < 2**40:
        return mpmath.exp(x)
    return mpmath.inf if mpmath.re(x) > 0 else mpmath.mpf(0)


def _branch(args: Sequence[Any]) -> int | None:
    """Place of the value of the first branch whose condition holds; an undecided condition before it leaves no value."""
    for value, condition in zip(range(0, len(args), 2), args[1::2]):
        if condition is None:
            return None
        if condition:
            return value
    return None


def _called(step: _Step, args: Sequence[Any]) -> tuple[Any, bool]:
    match step.expr:
        case sp.Abs():
            return abs(args[0]), args[0] == 0
        case sp.sign():
            return mpmath.sign(args[0]), args[0] == 0
        case sp.Heaviside():
            return (args[1] if args[0] == 0 else mpmath.mpf(args[0] > 0)), args[0] == 0
        case sp.exp():
            return _exponential(args[0]), False
    assert step.function is not None
    if step.function.bounded and any(abs(argument) > _LARGEST for argument in args):
        return None, False
    return step.function.value(*args), False


def _partials(step: _Step, args: Sequence[Any], value: Any) -> list[Any]:
    """Derivative with respect to each argument; 0 for conditions and branches that are not taken."""
    expr, zero = step.expr, mpmath.mpf(0)
    match expr:
        case sp.Add():
            return [mpmath.mpf(1)] * len(args)
        case sp.Mul():
            return _products_of_others(args)
        case sp.Pow():
            return _power_partials(expr, args[0], args[1], value)
        case sp.Piecewise():
            taken = _branch(args)
            return [mpmath.mpf(place == taken) for place in range(len(args))]
        case sp.Max() | sp.Min():
            chosen = list(args).index(value)
            return [mpmath.mpf(place == chosen) for place in range(len(args))]
        case sp.Abs():
            return [mpmath.sign(args[0])]
        case sp.sign() | sp.Heaviside():
            return [zero] * len(args)
        case sp.exp():
            return [value]
    assert step.function is not None
    return [partial(*args) for partial in step.function.partials]


def _products_of_others(args: Sequence[Any]) -> list[Any]:
    """For each factor the product of the others, without division."""
    before, after = [mpmath.mpf(1)], [mpmath.mpf(1)]
    for left, right in zip(args, reversed(args)):
        before.append(before[-1] * left)
        after.append(after[-1] * right)
    return [before[place] * after[len(args) - 1 - place] for place in range(len(args))]


def _power_partials(expr: sp.Pow, base: Any, exponent: Any, value: Any) -> list[Any]:
    if expr.exp.is_Integer:
        n = int(expr.exp)
        return [n * base ** (n - 1), mpmath.mpf(0)]
    by_base = mpmath.mpf(0) if expr.base.is_number else exponent * mpmath.power(base, exponent - 1)
    return [by_base, mpmath.mpf(0) if expr.exp.is_number else value * mpmath.log(base)]


# -- functions ---------------------------------------------------------------------------------------------------------


def _function(expr: sp.Function) -> _Function:
    literal = tuple(argument if argument.is_number else None for argument in expr.args)
    return _compiled(type(expr), literal)


@lru_cache(maxsize=256)
def _compiled(head: type, literal: tuple[sp.Expr | None, ...]) -> _Function:
    slots = [sp.Dummy(real=True) if argument is None else argument for argument in literal]
    free = [slot for slot, argument in zip(slots, literal) if argument is None]
    expr = head(*slots)
    value = _lambdified(free, expr)
    partials = tuple(
        _partial(expr, free, position, number, value)
        for number, position in enumerate(place for place, argument in enumerate(literal) if argument is None)
    )
    return _Function(value, partials, not issubclass(head, _UNBOUNDED))


def _partial(expr: sp.Expr, free: list[sp.Dummy], position: int, number: int, value: Callable[..., Any]) -> Callable[..., Any]:
    """By SymPy's rule; numerically, in twice the digits, for functions that have none."""
    try:
        return _lambdified(free, expr.fdiff(position + 1))
    except (UnsupportedNode, AttributeError, NotImplementedError, sp.core.function.ArgumentIndexError):
        return lambda *args: mpmath.diff(value, args, tuple(int(place == number) for place in range(len(args))))


def _elementary(expr: sp.Basic) -> sp.Basic:
    """Without the saturating functions of `symtensor.activation`, which mpmath does not know."""
    return expr.rewrite("elementary") if isinstance(expr, sp.Expr) else expr


def _lambdified(free: list[sp.Dummy], expr: sp.Expr) -> Callable[..., Any]:
    from sympy.core.function import AppliedUndef

    plain = _elementary(expr)
    if plain.atoms(AppliedUndef, sp.Derivative, sp.Subs, sp.Integral, sp.Sum):
        raise UnsupportedNode(f"the oracle cannot evaluate {str(plain)[:80]}")
    # numbers of doubtful kind (Float) do not occur here: constants are exact or arguments
    return sp.lambdify(free, plain, "mpmath")
