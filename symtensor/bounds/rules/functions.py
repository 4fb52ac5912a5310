"""R6, R6b, R7, R20: functions of a bounded quantity, of polynomial growth, near a point, and iterated."""

from __future__ import annotations

import warnings

import sympy

from symtensor.expansion import ExpansionError, UndecidedZeroWarning, taylor

from ..expr import Expr
from ..functions import Function, X
from ..modes import DET, Kind, P
from ..scale import Scale
from ..value import Bound
from .base import Call, is_constant, rule

MAX_STEPS = 64
_SLOTS = "apply it to entries (entry) and use R22, or keep the dimension fixed"


def _fixed_dimension(call: Call) -> None:
    growing = [label for label, size in call.node.children[0].slots if not is_constant(size)]
    if growing:
        raise call.missing("fixed dimension", f"slot {growing[0]!r} of {call.node.children[0]}", _SLOTS)


@rule(
    "R6",
    "phi(M) = O(1) if phi is continuous, the dimension fixed and M = O(1)",
    ("continuous", "fixed dimension", "M = O(1)"),
    "exp(log n |Z|) = n^|Z| has no definite bound; a phi that jumps to infinity has none",
)
def continuous_function(call: Call) -> Bound:
    """A continuous image of a tight family is tight."""
    phi, (bound,) = call.node.data, call.premises
    _fixed_dimension(call)
    if not phi.continuous or phi.parameters:
        raise call.missing("continuous", phi, "declare apply(phi, M, continuous=True) for a fixed continuous phi")
    call.need_upper(0)
    if not bound.scale.within(1):
        raise call.missing("M = O(1)", f"{call.part(0)} = O({bound.scale})", "divide by its scale, or use a growth bound (R6b)")
    return call.conclude(Scale.one(), Kind.O, DET if bound.mode == DET else P)


@rule(
    "R6b",
    "|phi(x)| <= C (1 + |x|^k) gives phi(M) = O(max(1, f^k)); phi(Cx) <= C' phi(x) gives O(max(1, phi(f)))",
    ("growth", "fixed dimension"),
    "exp of log n |Z| is n^|Z|: slopes 0.67 and 1.64 at q50 and q90; exp(2 log n) is not O(exp(log n))",
)
def growing_function(call: Call) -> Bound:
    """Polynomial growth, or (``extra``) growth inside the scale group, where constants do not matter."""
    phi, (bound,) = call.node.data, call.premises
    _fixed_dimension(call)
    call.need_upper(0)
    fix = "exponentials and unknown growth have no rule: state known(f, of=phi(M)) or give growth=k"
    if call.extra == "regular":
        image = phi.image(bound.scale)
        if image is None:
            raise call.missing("growth", phi, fix)
        # on [-C f, C f] a continuous phi is at most C' max(1, phi(f)): the law at infinity alone does not say so
        if not phi.continuous:
            raise call.missing("continuous", phi, "give growth=k")
        return call.conclude(image, Kind.O, DET if bound.mode == DET else P)
    if phi.growth is None or phi.parameters:
        raise call.missing("growth", phi, fix)
    if phi.growth == 0:
        return call.conclude(Scale.one(), Kind.O, DET)
    return call.conclude(Scale.max(1, bound.scale**phi.growth), Kind.O, bound.mode.power(phi.growth))


@rule(
    "R7",
    "phi(x0 + D) = Taylor polynomial of degree k + O(f^(k+1)) if D = O(f), f -> 0, phi in C^(k+1) near x0",
    ("D -> 0", "smooth", "fixed dimension or derivative_bound"),
    "f = O(1) leaves every order; phi_n(x) = sin(n x) needs a bound of its derivatives",
    variants=(("tight",), ()),
    tight="the remainder, if the next derivative is not 0 and D = Theta(f)",
)
def taylor_remainder(call: Call) -> Bound:
    """The remainder of a Taylor polynomial in a small random deviation."""
    (phi, point, order), (bound,) = call.node.data, call.premises
    child = call.node.children[0]
    if order is None:
        raise call.missing("a finite order", phi, "an infinite series needs |phi^(k)| <= C k! R^-k and f < R: choose an order")
    call.need_upper(0)
    shrinks = bound.scale.limit() == "0" or (bound.kind is Kind.SMALL_O and bound.scale.within(1))
    call.need("vanishing", 0, "D -> 0", shrinks, "the deviation must be O(f) with f -> 0: subtract the limit first")
    fixed = _fixed_point(call, point)
    factor = _derivative_scale(call, phi, child, order, fixed)
    next_derivative = _smooth(call, phi, point, order)
    scale = factor * bound.scale ** (order + 1)
    mode = DET if bound.mode == DET else P
    if "tight" in call.variant:
        if child.valence or not fixed or factor != Scale.one() or next_derivative is None or next_derivative.is_nonzero is not True:
            raise call.missing("next derivative not 0", phi, "no lower bound of the remainder otherwise")
        call.need_lower(0)
        return call.conclude(scale, bound.kind, mode)
    return call.conclude(scale, bound.kind.upper_half, mode)


def _smooth(call: Call, phi: Function, point: sympy.Expr, order: int) -> sympy.Expr | None:
    """phi^(k+1)(x0) if phi is known in closed form; else the fact ``smooth`` is required."""
    fix = f"state fact('smooth', phi, number={order + 1}), or expand where phi is smooth"
    if phi.expr is None or phi.parameters:
        if call.given.find("derivative_bound", phi.name, number=order + 1) is None:
            call.require("smooth", phi.name, number=order + 1, fix=fix)
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UndecidedZeroWarning)  # an assumption about phi is the user's to make
            return taylor(phi.expr, X, point).derivative(order + 1)
    except (ExpansionError, UndecidedZeroWarning, ZeroDivisionError):
        raise call.missing("smooth", f"{phi} at {point}", fix) from None


def _fixed_point(call: Call, point: sympy.Expr) -> bool:
    """Whether x0 does not change with the sizes: a number, or symbols that are stated to be fixed."""
    names = sorted(s.name for s in point.free_symbols)  # type: ignore[attr-defined]
    found = [call.given.find("fixed", name) for name in names]
    call.use(*(fact for fact in found if fact is not None))
    return all(found)


def _derivative_scale(call: Call, phi: Function, child: Expr, order: int, fixed: bool) -> Scale:
    """sup ||grad^(k+1) phi||/(k+1)! where it can grow: growing slots, or a phi or a point that changes with n."""
    growing = any(not is_constant(size) for _, size in child.slots)
    if not growing and not phi.parameters and fixed:
        return Scale.one()
    if not fixed and call.given.find("derivative_bound", phi.name, number=order + 1) is None:
        point = call.node.data[1]
        stated = f"fact('derivative_bound', phi, number={order + 1}, ..)"
        told = f"state fact('fixed', 'a') of the symbols a in the point, or {stated}"
        raise call.missing("fixed point", f"{phi} at {point}", told)
    fix = f"state fact('derivative_bound', phi, number={order + 1}, scale=..): sup ||grad^{order + 1} phi||/{order + 1}!"
    found = call.require("derivative_bound", phi.name, number=order + 1, fix=fix)
    return found.scale or Scale.one()


@rule(
    "R20",
    "a fixed number of steps: bounds compose, constants compound",
    ("fixed number of steps, or groenwall",),
    "(1+1)^s is not bounded when the number of steps s(n) tends to infinity",
    variants=(("groenwall",), ("fixed",)),
)
def iteration(call: Call) -> Bound:
    """x_{s+1} = phi(x_s) with |phi(x)| <= C (1 + |x|^k)."""
    (phi, steps), (bound,) = call.node.data, call.premises
    call.need_upper(0)
    if "groenwall" in call.variant:
        call.plain_norm("groenwall")
        found = call.require("groenwall", call.node, fix="state fact('groenwall', expr, scale=..) from a uniform argument")
        return call.conclude(found.scale or Scale.one(), Kind.O, P, ())
    if not isinstance(steps, int):
        fix = "take a fixed integer, or state fact('groenwall', expr, scale=..) from a uniform argument"
        raise call.missing("fixed number of steps", f"{call.node} with {steps} steps", fix)
    _fixed_dimension(call)
    if phi.growth is None or phi.parameters:
        raise call.missing("growth", phi, "give growth=k with |phi(x)| <= C (1 + |x|^k), for a phi that does not change with n")
    if phi.growth == 0:
        return call.conclude(Scale.one(), Kind.O, DET)
    if phi.growth != 1 and steps > MAX_STEPS:
        raise call.missing("few steps", call.node, f"the exponent {phi.growth}^{steps} is written out to {MAX_STEPS} steps only")
    total = phi.growth ** (steps if phi.growth != 1 else 1)  # max(1, max(1, f^k)^k) = max(1, f^(k^2))
    return call.conclude(Scale.max(1, bound.scale**total), Kind.O, bound.mode.power(total))
