"""Scalar expressions: strict conversion, exact numbers, passes that keep values, the field cases of JAX code."""

from __future__ import annotations

import random
import struct
from fractions import Fraction

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import sympy as sp
from codegen_kernel_set import scalar_kernel
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen import ModuleSpec, UnboundName, UnsupportedNode, generate
from codegen.graph import Graph, Node, postorder
from codegen.lower.expression import convert
from codegen.passes import PASSES, fold, horner, optimise, powers, schedule, stable
from codegen.printers import mpmath_printer, number_text, numpy_printer
from codegen.printers.mpmath import namespace as mpmath_namespace
from codegen.printers.numpy import namespace as numpy_namespace

x, y = sp.symbols("x y", real=True)
NAMES = {"x": "x", "y": "y"}
SMOOTH = [
    x**7 - 3 * x**2 * y + y / 3 - sp.Rational(7, 11),
    sp.tanh(x) * (1 - sp.tanh(x) ** 2) + sp.exp(x) - 1,
    sp.log(1 + x**2) / (1 + sp.exp(-x)) + sp.log(1 + sp.exp(y)),
    x * (1 + sp.erf(x / sp.sqrt(2))) / 2 + sp.erfc(y),
    1 / (1 + x**2) ** 3 + sp.sqrt(1 + x**2) ** -5,
    sp.sin(x) * sp.cos(y) + sp.sinh(x / 2) - sp.cosh(y / 3) + sp.atan(x) + sp.asinh(y) + sp.atan2(x, 1 + y**2),
    sp.Max(x, y, 0) - sp.Min(x, 1) + sp.Abs(x - y) + sp.sign(x) * sp.Heaviside(y),
    sp.Piecewise((x**2, x < 0), (sp.exp(-x), x < 1), (y, True)),
    2**x + (1 + x**2) ** sp.Rational(1, 3) + sp.pi * x**12,
]


def function_of(expr: sp.Expr, **kernel):  # type: ignore[no-untyped-def]
    """The emitted JAX function of one expression."""
    arguments = kernel.pop("arguments", " ".join(sorted(map(str, expr.free_symbols))) or "x")
    spec = ModuleSpec("expression", "One expression.", (scalar_kernel("f", arguments, out=expr),), reference_points=False)
    return generate(spec).load().f


def evaluated(roots: tuple[Node, ...], printer, namespace, **values):  # type: ignore[no-untyped-def]
    plan = schedule(roots, NAMES)
    local = {**namespace, **values}
    for line in printer.lines(plan):
        exec(line, local)
    return [eval(printer.text(root), local) for root in plan.results]


# -- numbers -----------------------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_printed_with_all_digits(value: float) -> None:
    text = number_text(sp.Rational(*value.as_integer_ratio()))[0]
    assert struct.pack("<d", float(eval(text))) == struct.pack("<d", value + 0.0)


@settings(max_examples=200, deadline=None)
@given(st.fractions())
def test_rationals_are_correctly_rounded(value: Fraction) -> None:
    text = number_text(sp.Rational(value.numerator, value.denominator))[0]
    assert float(eval(text)) == value.numerator / value.denominator


def test_irrational_constants_are_correctly_rounded() -> None:
    for constant in (sp.sqrt(2) / sp.pi, sp.exp(-sp.Rational(1, 3)), -sp.erf(1), sp.E):
        with mpmath.workdps(60):
            exact = mpmath.mpf(str(sp.N(constant, 60)))
            assert float(eval(number_text(constant)[0])) == float(exact)


@pytest.mark.parametrize("numbers", [(-1, -6), (-6, -1), (-2, -3), (-1, -1, -6), (-1, 6), (-sp.S.Half, -3)], ids=str)
def test_signs_of_unfolded_products_multiply(numbers: tuple) -> None:
    graph = Graph()
    node = graph.mul(*map(graph.const, numbers), graph.var("x"))
    assert eval(numpy_printer().text(node), {"x": 5.0}) == pytest.approx(float(sp.Mul(*numbers)) * 5.0, rel=1e-15)


# -- passes keep values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expr", SMOOTH, ids=str)
def test_every_pass_keeps_the_value(expr: sp.Expr) -> None:
    graph, numbers = Graph(), random.Random(1)
    roots = (convert(expr, NAMES, "test", graph),)
    with mpmath.workdps(50):
        for _ in range(5):
            at = {"x": mpmath.mpf(numbers.uniform(-2, 2)), "y": mpmath.mpf(numbers.uniform(-2, 2))}
            wanted = mpmath.mpf(sp.N(expr.subs({x: sp.Float(at["x"], 50), y: sp.Float(at["y"], 50)}), 45)._to_mpmath(166))
            current = roots
            for run in PASSES:
                current = run(current, graph)
                (found,) = evaluated(current, mpmath_printer(), mpmath_namespace(), **at)
                assert abs(found - wanted) < mpmath.mpf(10) ** -40 * (1 + abs(wanted)), run.__name__


@pytest.mark.parametrize("expr", SMOOTH, ids=str)
def test_jax_and_numpy_text_agree_with_the_input(expr: sp.Expr) -> None:
    graph = Graph()
    roots = optimise((convert(expr, NAMES, "test", graph),), graph)
    names = sorted(map(str, expr.free_symbols))
    grid = np.random.default_rng(0).uniform(-3, 3, (len(names), 50))
    symbols = sorted(expr.free_symbols, key=str)
    wanted = [float(sp.N(expr.subs(dict(zip(symbols, map(sp.Float, row)))))) for row in grid.T]
    with np.errstate(all="ignore"):
        (found,) = evaluated(roots, numpy_printer(), numpy_namespace(), **dict(zip(names, grid)))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(function_of(expr)(*grid), wanted, rtol=1e-12, atol=1e-13)
    single = function_of(expr)(*grid.astype(np.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, wanted, rtol=2e-4, atol=2e-5)


def test_horner_reaches_the_floor() -> None:
    """49 terms in two variables: 48 additions and 48 multiplications, none saved by dropping a term."""
    polynomial = sp.expand(sum((k + 1) * x**i * y**j for k, (i, j) in enumerate((i, j) for i in range(7) for j in range(7))))
    graph = Graph()
    root = convert(polynomial, NAMES, "test", graph)
    folded = fold((root,), graph)
    nested = powers(horner(folded, graph), graph)
    assert operations(nested) == 2 * 48 < operations(powers(folded, graph))


def operations(roots: tuple[Node, ...]) -> int:
    return sum(max(len(node.args) - 1, 1) for node in postorder(roots) if node.op in ("add", "mul", "pow"))


def test_horner_does_not_expand_a_root_of_high_order() -> None:
    f = function_of((x - 1) ** 20)
    assert float(f(1.0 + 1e-3)) == pytest.approx(1e-60, rel=1e-9)


def test_powers_share_squares() -> None:
    graph = Graph()
    roots = optimise((convert(x**16 + x**8, NAMES, "test", graph),), graph)
    assert sum(node.op == "pow" for node in postorder(roots)) == 3  # x^2, x^4, x^8, nested as x^8 (x^8 + 1)


def test_shared_subexpressions_are_linear() -> None:
    """A tower that doubles when written out: the graph has one node per level."""
    graph = Graph()
    node = graph.var("x")
    for _ in range(200):
        node = graph.call("sin", graph.add(node, node))
    roots = optimise((node,), graph)
    assert len(postorder(roots)) <= 3 * 200 + 2


@pytest.mark.parametrize(
    ("expr", "name"), [(sp.exp(x) - 1, "expm1"), (sp.log(1 + x), "log1p"), (1 - sp.tanh(x) ** 2, "sech2"),
                       (2 * sp.tanh(x) ** 2 - 2 + y, "sech2"), (3 * sp.exp(x**2) - 3 + y, "expm1")], ids=str,
)  # fmt: skip
def test_cancelling_forms_are_replaced(expr: sp.Expr, name: str) -> None:
    graph = Graph()
    roots = stable(fold((convert(expr, NAMES, "test", graph),), graph), graph)
    assert name in {node.value for node in postorder(roots)}


def test_stable_forms_keep_digits_where_the_naive_ones_lose_all() -> None:
    assert float(function_of(1 - sp.tanh(x) ** 2)(20.0)) == pytest.approx(4 * np.exp(-40.0), rel=1e-13)
    assert float(function_of((sp.exp(x) - 1) / x)(1e-9)) == pytest.approx(1 + 5e-10, rel=1e-15)
    assert float(function_of(1 / (1 + sp.exp(x)))(800.0)) == 0.0
    assert float(function_of(sp.log(1 + sp.exp(x)))(800.0)) == 800.0


# -- strictness --------------------------------------------------------------------------------------------------------

k = sp.Symbol("k", integer=True)
UNSUPPORTED = [
    sp.gamma(x), sp.loggamma(x), sp.KroneckerDelta(k, 1).subs(k, sp.Symbol("x", integer=True)), sp.DiracDelta(x),
    sp.factorial(x), sp.Function("mystery")(x), sp.Derivative(sp.Function("g")(x), x), sp.Integral(sp.exp(-(x**2) * y), y),
    sp.Sum(x**k, (k, 0, y)), sp.besselj(0, x), x**y, sp.zeta(x), sp.Heaviside(x).diff(x), sp.I * x, sp.floor(x),
    sp.Piecewise((x, x > 0)), sp.Mod(x, 2), sp.re(sp.Symbol("z")), sp.Function("mystery")(2) * x,
]  # fmt: skip


@pytest.mark.parametrize("expr", UNSUPPORTED, ids=str)
def test_unsupported_nodes_are_refused_by_name(expr: sp.Expr) -> None:
    with pytest.raises((UnsupportedNode, UnboundName), match=r"f\.out"):
        function_of(expr, arguments="x y z k")


def test_message_names_the_node() -> None:
    with pytest.raises(UnsupportedNode, match=r"f\.out: cannot generate code for the node gamma in gamma\(x\)"):
        function_of(sp.gamma(x))


def test_unbound_symbol_is_named() -> None:
    with pytest.raises(UnboundName, match="symbol 'y' is not an argument; arguments: x"):
        function_of(x + y, arguments="x")


# -- field cases of generated JAX code ---------------------------------------------------------------------------------


def test_erf_works_under_jit_and_grad() -> None:
    f = function_of(sp.erf(x))
    assert float(jax.jit(jax.grad(f))(0.0)) == pytest.approx(2 / np.sqrt(np.pi))


def test_polynomial_second_derivative_at_zero() -> None:
    f = function_of(sum(x**n for n in range(3)))
    assert float(jax.grad(jax.grad(f))(0.0)) == 2.0


def test_softplus_derivatives_at_zero() -> None:
    f = function_of(sp.log(1 + sp.exp(x)))
    derivatives = []
    for _ in range(4):
        f = jax.grad(f)
        derivatives.append(float(f(0.0)))
    assert derivatives == [0.5, 0.25, 0.0, -0.125]


def test_sech2_has_all_derivatives_at_zero() -> None:
    f = function_of(1 - sp.tanh(x) ** 2)
    assert float(jax.grad(jax.grad(f))(0.0)) == pytest.approx(-2.0)
    assert float(jax.grad(jax.grad(jax.grad(jax.grad(f))))(0.0)) == pytest.approx(16.0)


@pytest.mark.parametrize("power", range(6))
def test_integer_powers_at_zero(power: int) -> None:
    f = function_of(x**power + y, arguments="x y")
    first, second = jax.grad(f)(0.0, 1.0), jax.grad(jax.grad(f))(0.0, 1.0)
    assert (float(first), float(second)) == ({1: 1.0}.get(power, 0.0), {2: 2.0}.get(power, 0.0))


def test_sixth_derivative_of_the_reciprocal_in_float32() -> None:
    f = function_of(1 / x)
    for _ in range(6):
        f = jax.grad(f)
    assert float(f(jnp.float32(4.0))) == pytest.approx(0.0439453125, rel=1e-5)


def test_piecewise_gradients_are_finite() -> None:
    f = function_of(sp.Piecewise((sp.sin(x) / x, sp.Ne(x, 0)), (1, True)))
    assert float(f(0.0)) == 1.0 and float(jax.grad(f)(0.0)) == 0.0
    assert float(f(0.5)) == pytest.approx(np.sin(0.5) / 0.5)
    assert float(jax.grad(f)(0.5)) == pytest.approx((0.5 * np.cos(0.5) - np.sin(0.5)) / 0.25)
    root = function_of(sp.Piecewise((sp.sqrt(x), x > 0), (0, True)))
    assert float(jax.grad(root)(-1.0)) == 0.0 and float(jax.grad(root)(0.0)) == 0.0
    both = function_of(sp.Piecewise((sp.log(x - 1), x > 1), (sp.log(1 - x), x < 1), (0, True)))
    assert np.isfinite(jax.vmap(jax.grad(both))(jnp.array([-1.0, 0.5, 1.0, 3.0]))).all()


def test_branch_without_a_regular_point_is_refused() -> None:
    with pytest.raises(UnsupportedNode, match="found no point"):
        function_of(sp.Piecewise((sp.log(x), x < -20), (x, True)))


def test_maximum_has_a_finite_gradient_at_the_kink() -> None:
    assert float(jax.grad(function_of(sp.Max(x, 0)))(0.0)) in (0.0, 0.5, 1.0)
    assert float(jax.grad(function_of(sp.Abs(x)))(0.0)) in (-1.0, 0.0, 1.0)


def test_several_outputs_share_and_are_named() -> None:
    kernel = scalar_kernel("pair", "x", first=sp.tanh(x) ** 2, second=1 - sp.tanh(x) ** 2)
    module = generate(ModuleSpec("two", "Two outputs.", (kernel,)))
    result = module.load().pair(jnp.linspace(-1, 1, 5))
    np.testing.assert_allclose(result.first + result.second, 1.0, rtol=1e-15)
    assert module.check().passed


def test_constant_output_has_the_shape_of_the_argument() -> None:
    f = function_of(sp.Integer(3), arguments="x")
    assert f(jnp.zeros((2, 3), jnp.float32)).shape == (2, 3)
    assert f(jnp.zeros((2, 3), jnp.float32)).dtype == jnp.float32
