"""The oracle of certificates: values, gradients, condition numbers and limits against SymPy, mpmath and known numbers."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen import ModuleSpec, UnsupportedNode
from codegen.backends.reference import ReferenceBackend, exact, tensor_magnitude
from codegen.backends.scalar_oracle import ScalarOracle
from symtensor.activation.stable import Sech2, StdNormalCDF
from symtensor.kernels import Argument, ScalarKernel, TensorKernel
from symtensor.tensor import Dimension, Tensor

x, y = sp.symbols("x y", real=True)
EXPRESSIONS = [
    x**3 * y - 2 * x / (1 + y**2) + sp.Rational(1, 3),
    sp.exp(x * y) * sp.sin(x) + sp.log(1 + x**2) ** 2,
    sp.tanh(x) * sp.erf(y) + sp.atan2(x, 2 + y) + sp.gamma(2 + y**2),
    sp.besselj(0, x) + sp.polygamma(1, 3 + y) + sp.loggamma(3 + x),
    StdNormalCDF(x) * Sech2(y) + sp.sqrt(4 + x) ** 3 + (2 + y) ** sp.Rational(1, 3),
    sp.Piecewise((x**2, x < y), (sp.cos(x) + y, True)) + sp.Max(x, y, sp.Rational(1, 2)) + sp.Abs(x - 3),
    2**x + sp.pi * sp.asinh(y) + sp.Heaviside(x) * y,
]


def number(value: float | str) -> mpmath.mpf:
    return mpmath.mpf(value)


def point_of(**values: float | str) -> dict[str, mpmath.mpf]:
    return {name: number(value) for name, value in values.items()}


def by_sympy(expr: sp.Expr, at: dict[str, mpmath.mpf], digits: int = 40) -> mpmath.mpf:
    """Evaluation by another route: substitution and SymPy's adaptive evaluation."""
    plain = expr.rewrite("elementary")
    values = {symbol: sp.Float(at[symbol.name], 60) for symbol in plain.free_symbols}
    with mpmath.workdps(60):
        return mpmath.mpf(sp.N(plain.subs(values), digits)._to_mpmath(200))


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
@pytest.mark.parametrize("at", [point_of(x="0.7", y="-0.4"), point_of(x="-1.3", y="1.9")], ids=["a", "b"])
def test_values_and_gradients_agree_with_sympy(expr: sp.Expr, at: dict[str, mpmath.mpf]) -> None:
    oracle = ScalarOracle([expr], ["x", "y"], 30)
    (value,) = oracle.values(at)
    (gradient,) = oracle.gradients(at)
    with mpmath.workdps(50):
        assert abs(value.value - by_sympy(expr, at)) < abs(value.value) * number("1e-30")
        spread = number(0)
        for symbol in (x, y):
            wanted = by_sympy(sp.diff(expr.rewrite("elementary"), symbol).doit(), at)
            assert abs(gradient[symbol.name].value - wanted) <= abs(wanted) * number("1e-30") + number("1e-45")
            spread += abs(at[symbol.name] * wanted)
        assert abs(value.spread - spread) <= spread * number("1e-14")


def test_gradient_spread_is_the_hessian() -> None:
    expr = sp.exp(x * y) * sp.sin(x)
    at = point_of(x="0.7", y="-0.4")
    (gradient,) = ScalarOracle([expr], ["x", "y"], 30).gradients(at)
    wanted = sum(abs(at[s.name] * by_sympy(sp.diff(expr, x, s), at)) for s in (x, y))
    assert gradient["x"].spread == pytest.approx(wanted, rel=1e-20)


@settings(max_examples=20, deadline=None)
@given(st.floats(-300, -3), st.sampled_from([1, -1]))
def test_cancellation_costs_no_digits(exponent: float, sign: int) -> None:
    """1 - cos(x) + x^2/2 - .. at 10^-300: the digits are found by raising the precision, however many cancel."""
    at = {"x": sign * number(10) ** number(exponent / 10)}
    (exact_value,) = ScalarOracle([x - sp.sin(x)], ["x"], 30).values(at)
    with mpmath.workdps(200):
        h = at["x"]
        series = mpmath.fsum((-1) ** k * h ** (2 * k + 3) / mpmath.factorial(2 * k + 3) for k in range(40))
        assert abs(exact_value.value - series) <= abs(series) * number("1e-30")


def test_what_is_zero_is_zero_and_what_is_tiny_is_not() -> None:
    oracle = ScalarOracle(
        [sp.tanh(x) ** 2 - 1 + 1 / sp.cosh(x) ** 2, sp.exp(-(x**2)) - 0, (x + y) ** 2 - x**2 - 2 * x * y - y**2], ["x", "y"]
    )
    values = oracle.values(point_of(x=30.0, y=7.0))
    assert values[0].value == 0 and values[2].value == 0
    assert values[1].value == pytest.approx(mpmath.exp(-900), rel=1e-25)


@pytest.mark.parametrize(
    ("expr", "value", "slope"),
    [
        (sp.sin(x) / x, 1, 0), ((sp.exp(x) - 1) / x, 1, sp.S.Half), ((x - sp.sin(x)) / x**3, sp.Rational(1, 6), 0),
        (1 / sp.tanh(x) - 1 / x, 0, sp.Rational(1, 3)), (sp.Piecewise((sp.sin(x) / x, sp.Ne(x, 0)), (1, True)), 1, 0),
        (sp.Piecewise((1, sp.Eq(x, 0)), ((sp.exp(x) - 1) / x, True)), 1, sp.S.Half),
        (1 / (1 + sp.exp(-x)), sp.S.Half, sp.Rational(1, 4)),
    ], ids=str,
)  # fmt: skip
def test_limits_at_removable_singularities(expr: sp.Expr, value: sp.Expr, slope: sp.Expr) -> None:
    oracle = ScalarOracle([expr], ["x"])
    (at_zero,) = oracle.values(point_of(x=0))
    (gradient,) = oracle.gradients(point_of(x=0))
    with mpmath.workdps(50):
        assert abs(at_zero.value - mpmath.mpf(sp.Rational(value).p) / int(sp.Rational(value).q)) < number("1e-30")
        assert abs(gradient["x"].value - mpmath.mpf(sp.Rational(slope).p) / int(sp.Rational(slope).q)) < number("1e-30")


@pytest.mark.parametrize("expr", [1 / x, sp.log(x), x**-2 + 1, sp.sqrt(-1 - x**2), sp.Abs(x) / x, sp.sin(1 / x)], ids=str)
def test_poles_jumps_and_complex_values_have_no_value(expr: sp.Expr) -> None:
    assert ScalarOracle([expr], ["x"]).values(point_of(x=0))[0].value is None


@pytest.mark.parametrize("expr", [sp.Abs(x), sp.Max(x, 0), sp.sqrt(x), sp.Piecewise((x, x > 0), (2 * x, True))], ids=str)
def test_kinks_have_a_value_and_no_derivative(expr: sp.Expr) -> None:
    oracle = ScalarOracle([expr], ["x"])
    assert oracle.values(point_of(x=0))[0].value == 0
    assert oracle.gradients(point_of(x=0))[0]["x"].value is None
    assert oracle.gradients(point_of(x=1))[0]["x"].value is not None


def test_overflow_does_not_hang() -> None:
    values = ScalarOracle([sp.exp(sp.exp(sp.exp(x))), sp.exp(-sp.exp(sp.exp(x)))], ["x"]).values(point_of(x=30))
    assert values[0].value is None and values[1].value == 0


def test_deep_expressions_are_no_problem() -> None:
    expr = x
    for _ in range(3000):
        expr = sp.Add(sp.Mul(expr, sp.Rational(1, 2), evaluate=False), 1, evaluate=False)
    assert ScalarOracle([expr], ["x"]).numbers(point_of(x=1))[0] == pytest.approx(2.0, rel=1e-25)


@pytest.mark.parametrize("expr", [sp.Function("mystery")(x), sp.Integral(sp.exp(y**2 * x), (y, 0, 1))], ids=str)
def test_what_it_cannot_evaluate_is_refused_by_name(expr: sp.Expr) -> None:
    with pytest.raises(UnsupportedNode, match="the oracle"):
        ScalarOracle([expr], ["x"])


def test_reference_backend_raises_where_the_input_has_no_value() -> None:
    spec = ModuleSpec("m", "M.", (ScalarKernel("f", (Argument("x"),), (("y", sp.log(x)),)),))
    backend = ReferenceBackend(spec, 30)
    assert backend.evaluate("f", {"x": "2"})["y"].item() == pytest.approx(mpmath.log(2), rel=1e-28)
    with pytest.raises(ValueError, match=r"log\(x\) is no finite real number"):
        backend.evaluate("f", {"x": "-2"})


def test_magnitude_of_a_tensor_kernel() -> None:
    P = Dimension("P")
    a, b, c = P.indices("a b c")
    A, B = Tensor("A", (P, P)), Tensor("B", (P, P))
    arguments = (Argument("A", ("P", "P")), Argument("B", ("P", "P")))
    kernel = TensorKernel("f", arguments, (A[a, c] * B[c, b]).sum(c) - A[a, b], (a, b))
    values = {"A": exact([["1", "-2"], ["3", "4"]]), "B": exact([["2", "1"], ["1", "-1"]])}
    assert tensor_magnitude(kernel, values)[0, 0] == 2 + 2 + 1
    assert tensor_magnitude(kernel, values)[1, 1] == 3 + 4 + 4


def test_equal_symbols_that_are_different_objects_are_one_argument() -> None:
    """SymPy's caches are bounded, so one expression can hold one symbol twice."""
    first, second = (sp.Symbol.__xnew__(sp.Symbol, "x", positive=True) for _ in range(2))
    assert first == second and first is not second
    product = sp.Mul(sp.sqrt(first), sp.erf(second), evaluate=False)
    at = {"x": mpmath.mpf("1.5")}
    (found,) = ScalarOracle([product], ["x"]).gradients(at)
    assert found["x"].value == pytest.approx(float(sp.diff(sp.sqrt(first) * sp.erf(first), first).subs(first, 1.5)), rel=1e-15)
