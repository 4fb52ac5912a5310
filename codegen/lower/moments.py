"""Moment kernels: which method evaluates them, and the scalar code it needs.

* closed       a closed form that holds for any covariance
* homogeneous  the closed form of the ReLU family, with Euler's relation on singular pairs
* inside       quadrature of sigma^(i) sigma^(j)
* hermite      quadrature of sigma sigma He_p He_q (integration by parts), for functions with kinks or on request
"""

from __future__ import annotations

import sympy as sp

from symtensor.activation import X
from symtensor.expansion.gaussian import K11, K12, K22, closed_form
from symtensor.kernels import MomentKernel
from symtensor.numerics.rules import Rule

from ..errors import GenerationError
from ..graph import Graph
from ..ir import Method, MomentFunction
from ..passes import Schedule, optimise, schedule
from .expression import convert

__all__ = ["lower_moments", "method_of"]

_MAX_DEGREE = 4


def lower_moments(kernel: MomentKernel, rule: Rule, derivatives: str) -> MomentFunction:
    """Lower one moment kernel.

    Raises
    ------
    GenerationError
        Orders that are odd, negative or beyond 4 in total; `closed` without a closed form; `inside` for an activation
        whose derivative of the needed order has delta terms at its kinks.
    """
    tables = _checked_orders(kernel)
    orders = tuple(dict.fromkeys([*tables, *((j, i) for i, j in tables)]))
    method = method_of(kernel, rule, derivatives)
    activation = kernel.activation
    value = _scheduled((activation.stable_derivatives(0)[0] if activation.smooth else activation.expr,), kernel.name)
    plan, collinear, kinks = None, (), ()
    if method in ("closed", "homogeneous"):
        orders = tables  # elementwise over all (a, b): the mirrored ones come by themselves
        plan, collinear = _closed_plan(kernel, orders)
    elif method == "inside":
        highest = max(max(i, j) for i, j in orders)
        tower = [activation.stable_derivatives(k)[0] if activation.smooth else activation.derivative(k) for k in range(highest + 1)]
        plan = _scheduled(tuple(sp.expand_mul(expr) for expr in tower), kernel.name)
    if rule.kind == "split" and method == "hermite":
        graph = Graph()
        kinks = tuple(graph.const(kink) for kink in activation.kinks)
    return MomentFunction(
        kernel.name, activation.name, sp.latex(activation.expr), tables, orders, method, rule, value, plan, kinks,
        collinear, kernel.title,
    )  # fmt: skip


def method_of(kernel: MomentKernel, rule: Rule, derivatives: str) -> Method:
    """The method for a rule and a way of taking derivatives."""
    activation = kernel.activation
    if rule.kind == "closed":
        form = closed_form(activation)
        if form is None:
            raise GenerationError(
                f"{kernel.name}: {activation.name} has no closed form; choose a quadrature rule (trapezoid, gh or split)"
            )
        return "homogeneous" if form.kind == "homogeneous" else "closed"
    if derivatives == "auto":
        derivatives = "inside" if activation.smooth and rule.kind == "trapezoid" else "hermite"
    if derivatives not in ("inside", "hermite"):
        raise GenerationError(f"{kernel.name}: derivatives {derivatives!r}; known: inside, hermite, auto")
    highest = max(max(i, j) for i, j in kernel.orders)
    if derivatives == "inside" and (activation.weak_order < highest or rule.kind == "split"):
        raise GenerationError(
            f"{kernel.name}: derivative {highest} of {activation.name} inside the expectation loses the delta terms at its "
            "kinks (or the rule is split); use derivatives='hermite'"
        )
    return derivatives  # type: ignore[return-value]


def _checked_orders(kernel: MomentKernel) -> tuple[tuple[int, int], ...]:
    for i, j in kernel.orders:
        if i < 0 or j < 0 or (i + j) % 2 or i + j > _MAX_DEGREE:
            raise GenerationError(f"{kernel.name}: moment order ({i}, {j}); i, j >= 0 and i + j is 0, 2 or 4")
    if not kernel.orders or len(set(kernel.orders)) < len(kernel.orders):
        raise GenerationError(f"{kernel.name}: the orders {kernel.orders} are empty or name one table twice")
    return tuple(kernel.orders)


def _scheduled(exprs: tuple[sp.Expr, ...], where: str) -> Schedule:
    graph = Graph()
    roots = tuple(convert(expr, {X.name: X.name}, f"{where}, activation", graph) for expr in exprs)
    return schedule(optimise(roots, graph), taken=[X.name])


def _closed_plan(kernel: MomentKernel, orders: tuple[tuple[int, int], ...]) -> tuple[Schedule, tuple]:
    """Code of all tables in k11, k12, k22, and F(1, 1, 1), F(1, -1, 1) for singular pairs of the ReLU family."""
    form = closed_form(kernel.activation)
    assert form is not None
    graph = Graph()
    names = {symbol.name: symbol.name for symbol in (K11, K12, K22)}
    roots = tuple(convert(form.moment(i, j), names, f"{kernel.name}, m{i}{j}", graph) for i, j in orders)
    plan = schedule(optimise(roots, graph), taken=names)
    if form.kind == "smooth":
        return plan, ()
    ends = ({K11: 1, K12: sign, K22: 1} for sign in (1, -1))
    return plan, tuple(graph.const(sp.simplify(form.expectation.subs(end))) for end in ends)
