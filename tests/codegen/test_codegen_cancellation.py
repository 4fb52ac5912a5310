"""Cancelling differences and removable singularities: forms that keep digits, and gradients that are right at the point itself."""

from __future__ import annotations

import random
import sys
from itertools import islice

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import symtensor
from codegen import ModuleSpec, generate
from codegen.certify_graph import find_cancellations, node_text
from codegen.certify_points import Interval, sample_points
from codegen.graph import Graph, Node, postorder
from codegen.lower.expression import convert
from codegen.passes import cancellation, fold, optimise, removable, stable
from codegen.passes.power_series import NoSeries, exact_number, series_of
from codegen.printers import mpmath_printer
from codegen.printers.mpmath import namespace
from symtensor.kernels import Argument, ScalarKernel

x, y = sp.symbols("x y", real=True)
NAMES = {"x": "x", "y": "y"}


def graph_of(expr: sp.Expr) -> tuple[Graph, tuple[Node, ...]]:
    graph = Graph()
    return graph, fold(stable(fold((convert(expr, NAMES, "test", graph),), graph), graph), graph)


def value_of(root: Node, **at: object) -> object:
    return eval(mpmath_printer().text(root), namespace() | at)


def function_of(expr: sp.Expr):  # type: ignore[no-untyped-def]
    names = tuple(map(Argument, sorted(map(str, expr.free_symbols))))
    return generate(ModuleSpec("m", "M.", (ScalarKernel("f", names, (("out", expr),)),), reference_points=False)).load().f


# -- differences -------------------------------------------------------------------------------------------------------

REWRITTEN = [
    (1 - sp.sqrt(1 - x**2), "sqrt(1 - x**2) is in the denominator"), (sp.sqrt(x + 1) - sp.sqrt(x), ""),
    (3 * sp.sqrt(4 + x) - 6 + y, ""), (1 - sp.cos(x), "sin"), (2 * sp.cosh(3 * x) - 2 + y, "sinh"), (1 + sp.cos(2 * x), "cos"),
    (1 - sp.erf(x), "erfc"), (1 - sp.tanh(x), "sigmoid"), (3 + 3 * sp.tanh(2 * x), "sigmoid"),
    (sp.log(sp.cosh(x)), "log1p"), (sp.log(sp.sqrt(1 + x**2)), "log1p"), (sp.log(x + sp.sqrt(x**2 + 1)), "asinh"),
]  # fmt: skip


@pytest.mark.parametrize("expr", [expr for expr, _ in REWRITTEN], ids=str)
def test_rewriting_keeps_the_value(expr: sp.Expr) -> None:
    graph, before = graph_of(expr)
    after = cancellation(before, graph)
    assert after != before
    numbers = random.Random(3)
    with mpmath.workdps(50):
        for _ in range(6):
            at = {"x": mpmath.mpf(numbers.uniform(0.01, 0.95)), "y": mpmath.mpf(numbers.uniform(-2, 2))}
            left, right = value_of(before[0], **at), value_of(after[0], **at)
            assert abs(left - right) < mpmath.mpf(10) ** -44  # type: ignore[operator]


@pytest.mark.parametrize(("expr", "name"), [pair for pair in REWRITTEN if pair[1].isalnum()], ids=str)
def test_rewriting_uses_the_stable_function(expr: sp.Expr, name: str) -> None:
    graph, roots = graph_of(expr)
    assert name in {node.value for node in postorder(cancellation(roots, graph))}


@pytest.mark.parametrize(
    "expr",
    [sp.sqrt(x) - sp.sqrt(y), 2 - sp.sqrt(1 - x), sp.sqrt(x) + 1, sp.cos(x) - 2, sp.log(sp.cos(x)), x - sp.sqrt(x**2 + 1)],
    ids=str,
)
def test_what_gains_nothing_or_could_fail_is_left_alone(expr: sp.Expr) -> None:
    """sqrt(x) - sqrt(y) by its conjugate would be 0/0 at 0; 2 - sqrt(1 - x) keeps a constant; x may be negative."""
    graph, roots = graph_of(expr)
    assert cancellation(roots, graph) == roots


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-12, 0.99))
def test_all_digits_at_all_magnitudes(value: float) -> None:
    """Fact 11 of the measured ones: 1 - sqrt(1 - x^2) had relative error 1.2, 1 - cos and log cosh are no better."""
    with mpmath.workdps(60):
        t = mpmath.mpf(value)
        for function, wanted in zip(FUNCTIONS, (1 - mpmath.sqrt(1 - t * t), 1 - mpmath.cos(t), mpmath.log(mpmath.cosh(t)))):
            assert float(function(value)) == pytest.approx(float(wanted), rel=4e-15)


FUNCTIONS = [function_of(expr) for expr in (1 - sp.sqrt(1 - x**2), 1 - sp.cos(x), sp.log(sp.cosh(x)))]


# -- power series ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expr",
    [sp.exp(sp.sin(x)) / (2 + x), sp.log(1 + x**2) * sp.cosh(x), sp.atan(x) + sp.asin(x / 2),
     sp.erf(x) * sp.sqrt(4 + x), sp.tan(x) ** 3,
     sp.tanh(x + sp.Rational(1, 3)), 1 / sp.sinh(x), sp.asinh(x) / x**2, 1 / (sp.exp(x) - 1), sp.acos(x) - sp.erfc(x)], ids=str,
)  # fmt: skip
def test_series_agree_with_sympy(expr: sp.Expr) -> None:
    graph, roots = graph_of(expr)
    (series,) = series_of(roots, graph.var("x"), 0, 7)
    # SymPy gives the coefficients as derivatives of the regular part
    regular = sp.series(expr, x, 0, 5).removeO()
    with mpmath.workdps(40):
        for place in range(-2, 5):
            found = series.coefficients[place - series.valuation] if 0 <= place - series.valuation < 7 else 0
            wanted = sp.N(regular.coeff(x, place), 40)
            assert abs(found - mpmath.mpf(wanted._to_mpmath(150))) < mpmath.mpf(10) ** -35, place


@pytest.mark.parametrize("expr", [sp.log(x), sp.sqrt(x), sp.Abs(x), sp.sin(1 / x), x + y, sp.asin(1 + x)], ids=str)
def test_what_is_not_analytic_has_no_series(expr: sp.Expr) -> None:
    graph, roots = graph_of(expr)
    with pytest.raises(NoSeries):
        series_of(roots, graph.var("x"), 0, 6)


def test_rational_coefficients_are_recognised() -> None:
    with mpmath.workdps(60):
        assert exact_number(mpmath.mpf(1) / 3628800) == sp.Rational(1, 3628800)
        assert exact_number(-mpmath.mpf(691) / 1307674368000) == sp.Rational(-691, 1307674368000)
        pi = exact_number(mpmath.pi * 1)
        assert abs(sp.N(pi - sp.pi, 20)) < 1e-40 and pi.q > 10**20


# -- removable singularities -------------------------------------------------------------------------------------------

REMOVABLE = [
    ((sp.exp(x) - 1) / x, 0), (sp.sin(x) / x, 0), (x / (sp.exp(x) - 1), 0), ((1 - sp.cos(x)) / x**2, 0),
    ((x - sp.sin(x)) / x**3, 0),
    (sp.log(1 + x) / x, 0), (sp.log(x) / (x - 1), 1), (1 / sp.tanh(x) - 1 / x, 0), (sp.tanh(x) / x, 0), (sp.exp(x) - 1 - x, 0),
    (sp.sin(x) / sp.sin(2 * x), 0), ((x**2 - 1) / (x - 1), 1), (sp.erf(x) / x, 0),
    (sp.Piecewise((sp.sin(x) / x, sp.Ne(x, 0)), (1, True)), 0), (sp.Piecewise((1, sp.Eq(x, 0)), ((sp.exp(x) - 1) / x, True)), 0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("expr", "place"),
    [
        pytest.param(*case, marks=() if number in (0, 6, 7, 14) else pytest.mark.slow)
        for number, case in enumerate(REMOVABLE)
    ],
    ids=str,
)
def test_value_and_three_derivatives_at_the_point_and_around(expr: sp.Expr, place: int) -> None:
    """Against the series of SymPy at the point, and 60-digit evaluation of the derivatives beside it."""
    f = function_of(expr)
    plain = expr.args[0].expr if isinstance(expr, sp.Piecewise) and expr.args[0].expr.has(x) else expr
    plain = expr.args[1].expr if isinstance(expr, sp.Piecewise) and not plain.has(sp.sin) else plain
    t = sp.Symbol("t")
    coefficients = sp.series(plain.subs(x, place + t), t, 0, 4).removeO()
    derivatives = [f, jax.grad(f), jax.grad(jax.grad(f)), jax.grad(jax.grad(jax.grad(f)))]
    with jax.disable_jit():  # nothing here is worth compiling
        for order, derivative in enumerate(derivatives):
            wanted = float(coefficients.coeff(t, order) * sp.factorial(order))
            assert float(derivative(float(place))) == pytest.approx(wanted, rel=1e-13, abs=1e-14)
        grid = place + np.array([1e-9, -1e-5, 0.01, -0.12, 0.13, 0.3, -0.49, 0.52])
        found = f(grid), jax.vmap(derivatives[1])(grid)
    for order, exact in enumerate((plain, sp.diff(plain, x))):
        for at, value in zip(grid, found[order]):
            wanted = float(sp.N(exact.subs(x, sp.Rational(*float(at).as_integer_ratio())), 20))
            assert float(value) == pytest.approx(wanted, rel=2e-14 if order == 0 else 2e-13, abs=1e-15)


def test_gradients_are_finite_far_away() -> None:
    """Neither branch may overflow where it is not taken: nan would come through with weight 0."""
    f = function_of((sp.exp(x) - 1) / x)
    grid = jnp.array([-1e300, -800.0, -1.0, 0.0, 1e-300, 5e-324, 1.0, 700.0])
    assert np.isfinite(jax.vmap(jax.grad(f))(grid)).all() and np.isfinite(f(grid)).all()
    g = function_of(sp.sin(x * y) / (x * y))
    assert np.isfinite(jax.vmap(jax.grad(g, argnums=(0, 1)))(grid, grid[::-1])).all()


@pytest.mark.parametrize(
    ("expr", "point", "gradient"),
    [
        (sp.sin(x * y) / (x * y), (0.0, 2.0), (0.0, 0.0)), (sp.sin(x - y) / (x - y), (2.0, 2.0), (0.0, 0.0)),
        (y * (sp.exp(x) - 1) / x, (0.0, 3.0), (1.5, 1.0)), ((sp.exp(2 * x * y) - 1) / (x * y), (0.0, 3.0), (6.0, 0.0)),
        (y + x - sp.sin(x), (0.0, 1.0), (0.0, 1.0)), ((sp.exp(x - y) - 1) / (x - y), (0.5, 0.5), (0.5, -0.5)),
        (sp.Piecewise((y * sp.sin(x) / x, sp.Ne(x, 0)), (y, True)), (0.0, 5.0), (0.0, 1.0)),
    ], ids=str,
)  # fmt: skip
def test_several_variables(expr: sp.Expr, point: tuple, gradient: tuple) -> None:
    f = function_of(expr)
    assert np.isfinite(f(*point))
    np.testing.assert_allclose(jax.grad(f, argnums=(0, 1))(*point), gradient, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    "expr",
    [1 / x, sp.exp(-x) / x, sp.cos(x) / x, x + sp.sin(x), sp.sin(x) * y / (1 + x**2), sp.Abs(x) / x, sp.sqrt(x) / x, x**2 - x],
    ids=str,
)
def test_poles_and_plain_formulas_are_left_alone(expr: sp.Expr) -> None:
    graph, roots = graph_of(expr)
    assert removable(roots, graph) == roots


def test_a_branch_that_is_not_the_limit_is_kept() -> None:
    f = function_of(sp.Piecewise((sp.sin(x) / x, sp.Ne(x, 0)), (2, True)))
    assert float(f(0.0)) == 2.0 and float(f(1e-9)) == 1.0


@pytest.mark.parametrize(
    "expr",
    [sp.log(1 + 1000 * x) / x, sp.tanh(300 * x) / x, sp.sin(1000 * x) / x, (sp.exp(200 * x) - 1) / x, sp.atan(x / 1000) / x,
     sp.sin(x) / (x * (1 + x**40)), sp.exp(500 * x) - 1 - 500 * x],
    ids=str,
)  # fmt: skip
def test_the_polynomial_stays_where_it_is_right(expr: sp.Expr) -> None:
    """Singularities near the point, coefficients that grow, gaps in the series: the radius follows, at every scale."""
    f = function_of(expr)
    grid = np.concatenate([10.0 ** np.arange(-9, -0.9, 0.125), [0.99, 1.01]])
    for at, found in zip(grid, np.asarray(f(grid))):
        wanted = float(sp.N(expr.subs(x, sp.Rational(*float(at).as_integer_ratio())), 20))
        assert float(found) == pytest.approx(wanted, rel=2e-13), at
    assert np.isfinite(f(0.0)) and np.isfinite(jax.grad(f)(0.0))


def test_effort_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 quotients: what is replaced stops at the budget, so that the search does not grow without end."""
    monkeypatch.setattr(sys.modules["codegen.passes.removable"], "_MOST_EFFORT", 20_000)
    graph = Graph()
    v = graph.var("x")
    terms = [graph.mul(graph.call("sin", graph.mul(graph.const(k + 2), v)), graph.power(v, -1)) for k in range(300)]
    root = graph.add(*terms)
    (after,) = fold(removable((root,), graph), graph)
    replaced = sum(argument.op == "select" for argument in after.args)
    assert 5 < replaced < 20


# -- what remains is found ---------------------------------------------------------------------------------------------


def lost(expr: sp.Expr, **domain: tuple[float, float]) -> tuple:
    graph = Graph()
    (root,) = optimise((convert(expr, NAMES, "test", graph),), graph)
    intervals = {name: Interval(name, *domain.get(name, (-30, 30))) for name in ("x", "y")}
    return find_cancellations({"f": root}, islice(sample_points(intervals, 1), 60))


def test_cancellation_is_found_and_named() -> None:
    (worst, *_) = lost(sp.expand((x - 1) ** 8), x=(0.5, 1.5))
    assert worst.digits_lost > 8 and "x" in worst.expression and abs(worst.point["x"] - 1) < 0.3
    (difference,) = lost(sp.exp(x) - sp.exp(y), x=(0, 1e-5), y=(0, 1e-5))
    assert difference.expression in ("exp(x) - exp(y)", "-exp(y) + exp(x)") and difference.digits_lost > 4
    assert "loses" in str(difference)


@pytest.mark.parametrize(
    "expr", [(x - 1) ** 8, x**2 - y**2, x - y, sp.sin(x), 1 / (x - y), sp.exp(x) + sp.exp(y), (sp.exp(x) - 1) / x], ids=str
)
def test_what_the_problem_itself_loses_is_no_cancellation(expr: sp.Expr) -> None:
    """x - y with x near y is ill-conditioned, but no rounding error is amplified: x and y are exact."""
    assert lost(expr) == ()


def test_text_of_a_deep_node_is_short() -> None:
    graph = Graph()
    node = graph.var("x")
    for _ in range(60):
        node = graph.add(graph.call("sin", node), graph.mul(graph.const(-1), graph.power(node, 2)))
    assert len(node_text(node)) <= 90 and ".." in node_text(node)


@pytest.mark.parametrize("expr", [
    sp.diff(sp.sin(x * y) / x, x), y * sp.exp(y) * (sp.cos(x) / x - sp.sin(x) / x**2), y + 3 * sp.diff(sp.sin(2 * x * y) / x, x),
], ids=str)  # fmt: skip
def test_poles_of_a_sum_cancel_beside_other_factors(expr: sp.Expr) -> None:
    """What SymPy's derivative of sin(x y)/x looks like: y cos(x y)/x - sin(x y)/x**2, nan at 0 term by term."""
    function = symtensor.compile(sp.expand(expr), [x, y], reference_points=False)
    slice_ = expr.subs(y, sp.Rational(7, 10))
    for u in (0, sp.Rational(1, 10**9), sp.Rational(1, 1000), sp.Rational(3, 2)):
        wanted = sp.N(slice_.subs(x, u) if u else sp.limit(slice_, x, 0), 30)
        assert float(function(float(u), 0.7)) == pytest.approx(float(wanted), rel=1e-12, abs=1e-300)
    assert all(np.isfinite(jax.grad(lambda u, v: function.function(u, v), argnums=(0, 1))(0.0, 0.7)))
