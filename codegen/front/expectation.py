"""Gaussian expectations: the closed form where there is one, else a trapezoidal rule chosen by its measured error."""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOptionalOperand=false, reportCallIssue=false
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from symtensor.activation import Activation, ActivationError
from symtensor.activation.pieces import KINKED
from symtensor.activation.stable import compile_numpy, stable_form
from symtensor.expansion.gaussian import K11, K12, K22, closed_form
from symtensor.kernels import Argument, ExpectationKernel, ScalarKernel
from symtensor.numerics.rules import Rule, nodes_weights
from symtensor.programs import GaussianExpectation

from ..errors import InputError, UnsupportedNode
from ..names import fresh_names, identifier
from ..signature import LAW_OUTPUTS

if TYPE_CHECKING:
    from .scalars import Build

__all__ = ["choose_rule", "closed_value", "expectation_kernels"]

#: error of the rule, relative to E |f|
_TOLERANCE = 1e-13
_NODES = (33, 49, 65, 97, 129, 193, 257, 385, 513)
_RADII = (8.5, 10.0, 13.0)
#: at which parameters of the function are set while a rule is chosen
_PARAMETERS = (0.5, 1.5)


@lru_cache(maxsize=256)
def closed_value(node: GaussianExpectation) -> sp.Expr | None:
    """The expectation as a formula of its law, or None.

    Polynomials times exponentials of quadratic functions, and E s(x) s(y) with zero mean for s with a closed form that
    holds for every covariance.
    """
    closed = node.doit()
    if closed != node:
        return closed
    if len(node.variables) != 2 or any(entry != 0 for entry in node.mean):
        return None
    x, y = node.variables
    outer, inner = _factors(node.function, x, y)
    if outer is None or inner.has(x) or outer.subs(x, y) != inner or outer.free_symbols != {x}:
        return None
    try:
        form = closed_form(Activation.from_expr(outer.subs(x, sp.Symbol("x", real=True))))
    except ActivationError:
        return None
    if form is None or form.kind != "smooth":
        return None
    law = {K11: node.covariance[0, 0], K12: node.covariance[0, 1], K22: node.covariance[1, 1]}
    return form.expectation.xreplace(law)


def _factors(function: sp.Expr, x: sp.Symbol, y: sp.Symbol) -> tuple[sp.Expr | None, sp.Expr]:
    """(outer in x alone, the rest); None if there is no factor in x alone or no factor in y."""
    outer = [factor for factor in sp.Mul.make_args(function) if factor.has(x) and not factor.has(y)]
    rest = [factor for factor in sp.Mul.make_args(function) if factor not in outer]
    if not outer or not any(factor.has(y) for factor in rest):
        return None, function
    return sp.Mul(*outer), sp.Mul(*rest)


def expectation_kernels(
    build: Build, wanted: str, node: GaussianExpectation, arguments: tuple[Argument, ...], all_arguments: bool
) -> ExpectationKernel:
    """The integrand, its law and the quadrature, as kernels.

    Raises
    ------
    UnsupportedNode
        A function with kinks or jumps and no closed form, or expectations within expectations.
    InputError
        No rule with at most 513 nodes reaches the accuracy at the variance asked for; a rule that is no trapezoid.
    """
    _require_smooth(node, build.name)
    renamed = _renamed(node, {argument.name for argument in arguments})
    function, law = node.function.xreplace(renamed), _law(node)
    variables = tuple(renamed[name] for name in node.variables)
    rule = build.rule or choose_rule(function, variables, build.variance)
    if rule.kind != "trapezoid":
        raise InputError(f"{build.name}: rule {rule}; expectations of formulas take a trapezoid, such as trapezoid:113@8.5")
    used = {symbol.name for expr in (function, *law.values()) for symbol in expr.free_symbols}
    chosen = tuple(argument for argument in arguments if all_arguments or argument.name in used)
    name = build.fresh(wanted)
    outer, rest = _factors(function, *variables) if len(variables) == 2 else (None, function)
    outputs = (("outer", outer), ("inner", rest)) if outer is not None else (("integrand", function),)
    parameters = [argument for argument in chosen if argument.name in {symbol.name for symbol in function.free_symbols}]
    integrand = ScalarKernel(
        build.fresh(f"{name}_integrand"), (*(Argument(variable.name) for variable in variables), *parameters), outputs
    )
    of_law = [argument for argument in chosen if argument.name in {s.name for expr in law.values() for s in expr.free_symbols}]
    law_kernel = ScalarKernel(build.fresh(f"{name}_law"), tuple(of_law or chosen[:1]), tuple(law.items()))
    title = f"A Gaussian expectation; the rule is right to 1e-12 of E |f| for variances up to {build.variance:g}."
    if build.rule is not None:
        title = "A Gaussian expectation."
    names = tuple(variable.name for variable in variables)
    kernel = ExpectationKernel(name, chosen, integrand.name, law_kernel.name, names, rule, title)
    build.kernels += [integrand, law_kernel, kernel]
    return kernel


def _require_smooth(node: GaussianExpectation, where: str) -> None:
    if node.function.atoms(GaussianExpectation):
        raise UnsupportedNode(f"{where}: expectations within expectations are not supported: {node}")
    kinked = sorted(map(str, node.function.atoms(*KINKED)))
    if kinked:
        raise UnsupportedNode(
            f"{where}: {kinked[0]} in {node} has a kink or a jump, where a quadrature of a formula converges slowly; "
            "a MomentKernel splits E sigma(x) sigma(y) at the kinks (symtensor.kernels), symtensor.expect gives numbers"
        )


def _renamed(node: GaussianExpectation, taken: set[str]) -> dict[sp.Symbol, sp.Symbol]:
    """Names of the Gaussian variables that are not names of arguments."""
    used, renamed = set(taken), {}
    for variable in node.variables:
        wanted = identifier(variable.name)
        name = wanted if wanted not in used else next(fresh_names(wanted, used))
        used.add(name)
        renamed[variable] = sp.Symbol(name, real=True)
    return renamed


def _law(node: GaussianExpectation) -> dict[str, sp.Expr]:
    K, m = node.covariance, node.mean
    values = (m[0], K[0, 0]) if len(node.variables) == 1 else (m[0], m[1], K[0, 0], K[0, 1], K[1, 1])
    return dict(zip(LAW_OUTPUTS[len(node.variables)], values))


# -- the rule ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def choose_rule(function: sp.Expr, variables: tuple[sp.Symbol, ...], variance: float = 4.0) -> Rule:
    """The smallest trapezoid that agrees with one of half the step and a larger radius, at variances up to `variance`.

    Raises
    ------
    InputError
        None does.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> choose_rule(sp.tanh(x) ** 2, (x,)).n < 200
    True
    """
    parameters = tuple(sorted(function.free_symbols - set(variables), key=str))
    evaluate = compile_numpy((*variables, *parameters), stable_form(function))
    samples = [(*law, value) for law in _laws(len(variables), variance) for value in (_PARAMETERS if parameters else (0.0,))]
    for radius in _RADII:
        for n in _NODES:
            rule, finer = Rule("trapezoid", n, radius), Rule("trapezoid", 2 * n + 1, radius + 2)
            if all(_gap(evaluate, sample, len(parameters), rule, finer) <= _TOLERANCE for sample in samples):
                return rule
    raise InputError(
        f"E[{str(function)[:80]}]: no trapezoidal rule with at most {_NODES[-1]} nodes is right to {_TOLERANCE:g} for "
        f"variances up to {variance:g}; pass a smaller variance=, or rule='trapezoid:N@RADIUS' if less accuracy is enough"
    )


def _laws(size: int, variance: float) -> Iterator[tuple[Any, ...]]:
    """Square roots of covariances: rows (l11, l21, l22)."""
    deviation = float(np.sqrt(variance))
    if size == 1:
        yield from ((deviation,), (deviation / 8,))
        return
    for correlation in (-0.95, 0.0, 0.6):
        yield deviation, deviation * correlation, deviation * float(np.sqrt(1 - correlation**2))


def _gap(evaluate: Any, sample: tuple[Any, ...], parameters: int, rule: Rule, finer: Rule) -> float:
    *law, value = sample
    results = []
    for each in (rule, finer):
        z, w = nodes_weights(each)
        if len(law) == 1:
            points, weights = (law[0] * z,), w
        else:
            points = (law[0] * z[:, None] + 0 * z, law[1] * z[:, None] + law[2] * z)
            weights = w[:, None] * w
        with np.errstate(all="ignore"):
            values = evaluate(*points, *([value] * parameters))
        results.append((float(np.sum(weights * values)), float(np.sum(weights * np.abs(values)))))
    (coarse, _), (fine, size) = results
    gap = abs(coarse - fine) / size if size > 0 else abs(coarse - fine)
    return gap if np.isfinite(gap) else np.inf
