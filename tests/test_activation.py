"""Activations: names, kinks, weak derivatives, growth, and stable evaluation against mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy as sp

from symtensor.activation import (
    NAMES,
    Activation,
    ActivationError,
    KinkedDerivativeError,
    NotSquareIntegrableError,
    X,
    activation,
)
from symtensor.activation.stable import stable_form
from symtensor.parsing import ExpressionSyntaxError

POINTS = (-800.0, -40.0, -3.25, -1e-3, 0.0, 1e-9, 0.5, 2.75, 30.0, 750.0)
SMOOTH = [name for name in NAMES if name not in ("relu", "leaky-relu")]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_definitions(name: str) -> None:
    exact = {
        "tanh": sp.tanh(X),
        "erf": sp.erf(X),
        "sin": sp.sin(X),
        "relu": sp.Max(0, X),
        "leaky-relu": sp.Max(0, X) + sp.Rational(1, 100) * sp.Min(0, X),
        "gelu": X * sp.Rational(1, 2) * (1 + sp.erf(X / sp.sqrt(2))),
        "softplus": sp.log(1 + sp.exp(X)),
        "sigmoid": sp.exp(X) / (1 + sp.exp(X)),
        "identity": X,
    }[name]
    for point in (-2, sp.Rational(-1, 3), 1):
        assert abs((activation(name).expr - exact).subs(X, point).evalf(30)) < 1e-28


def test_names_and_aliases_are_canonical() -> None:
    assert activation("linear").name == activation("x").name == "identity"
    assert activation("leaky-relu").name == "leaky-relu:0.01"
    assert activation("leaky-relu:0.123456789").name == "leaky-relu:0.123456789"
    assert activation("tanh(x)") == activation("TANH") == activation(activation("tanh"))
    assert activation("x^2").name == "x**2"
    assert hash(activation("Abs(x)")) == hash(activation(sp.Abs(X)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tnah", "tanh"),
        ("relu6", "relu"),
        ("relu:3", "no parameter"),
        ("leaky-relu:foo", "SLOPE"),
        ("leaky-relu:x", "SLOPE"),
        ("cos", r"cos\(x\)"),
        ("log(x)", "x = 0"),
        ("log(Abs(x))", "x = 0"),
        ("sqrt(x)", "not real"),
        ("x^2.5", "not real"),
        ("1/(1-x)", "x = 1"),
        ("1/x", "x = 0"),
        ("tan(x)", "pole"),
        ("1/sin(x)", "pole"),
        ("Abs(sin(x))", "infinitely many"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(ActivationError, match=message):
        activation(text)


def test_refusals_of_other_kinds() -> None:
    with pytest.raises(ExpressionSyntaxError, match="__import__"):
        activation("__import__('os').system('true')")
    with pytest.raises(TypeError, match="float"):
        activation(1.0)  # type: ignore[arg-type]
    with pytest.raises(ActivationError, match="the only variable is x"):
        activation(sp.Symbol("z") ** 2)
    with pytest.raises(ActivationError, match="gamma"):
        activation(sp.gamma(X**2 + 1))
    with pytest.raises(ActivationError, match="not real"):
        activation(sp.I * X)


def test_unknown_name_lists_the_names() -> None:
    with pytest.raises(ActivationError) as caught:
        activation("swich")
    assert all(name in str(caught.value) for name in NAMES)


@pytest.mark.parametrize(
    ("text", "kinks", "order"),
    [
        ("relu", [0], 1),
        ("Abs(x)", [0], 1),
        ("Max(x, -1)", [-1], 1),
        ("Min(Max(x, -1), 1)", [-1, 1], 1),
        ("Abs(Abs(x) - 1)", [-1, 0, 1], 1),
        ("sign(x - 2)", [2], 0),
        ("Heaviside(x)*x", [0], 1),
        ("relu(x)**2", [0], 2),
        ("Abs(x)**3", [0], 3),
        ("Max(exp(x), 2)", [sp.log(2)], 1),
        ("Abs(x)**2", [], np.inf),
        ("Max(x, x)", [], np.inf),
        ("sign(x)*Abs(x)", [], np.inf),
        ("tanh", [], np.inf),
    ],
)
def test_kinks(text: str, kinks: list, order: float) -> None:
    function = activation(text)
    assert list(function.kinks) == [sp.sympify(kink) for kink in kinks]
    assert function.weak_order == order
    assert function.smooth == (not kinks)


def test_piecewise_from_sympy() -> None:
    elu = activation(sp.Piecewise((sp.exp(X) - 1, X < 0), (X, True)))
    assert elu.kinks == (0,)
    assert elu.weak_order == 2  # continuous first derivative, the second one jumps
    assert elu.jumps(2) == (-1,)
    with pytest.raises(ActivationError, match="not defined"):
        activation(sp.Piecewise((X, X > 0)))


@pytest.mark.parametrize(
    ("text", "slopes"),
    [
        ("relu", (0, 1)),
        ("leaky-relu:0.25", (sp.Rational(1, 4), 1)),
        ("Max(0,x)-0.3*Max(0,-x)", (sp.Rational(3, 10), 1)),
        ("Abs(x)", (-1, 1)),
        ("identity", None),
        ("Max(x, -1)", None),
        ("relu(x)**2", None),
    ],
)
def test_relu_family(text: str, slopes: tuple | None) -> None:
    assert activation(text).slopes == slopes
    assert activation(text).homogeneous == (slopes is not None)


@pytest.mark.parametrize("text", ["relu", "Abs(x)", "leaky-relu"])
def test_second_derivative_of_a_kinked_function_is_refused(text: str) -> None:
    function = activation(text)
    function.derivative(1)
    for refused in (function.derivative, function.numpy_function, function.mpmath_function):
        with pytest.raises(KinkedDerivativeError, match="Stein") as caught:
            refused(2)
        assert "x = 0" in str(caught.value)
    with pytest.raises(KinkedDerivativeError):
        activation("sign(x)").derivative(1)


def test_derivative_order_is_checked() -> None:
    for order in (-1, 1.5):
        with pytest.raises(ValueError, match="order"):
            activation("tanh").derivative(order)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "critical"),
    [
        ("tanh", sp.oo),
        ("exp(x)", sp.oo),
        ("x**7", sp.oo),
        ("softplus", sp.oo),
        ("exp(x^2)", sp.Rational(1, 4)),
        ("exp(x^2/3 + x)*tanh(x)", sp.Rational(3, 4)),
        ("exp(x*Abs(x))", sp.Rational(1, 4)),
        ("cosh(x)*exp(-x^2)", sp.oo),
        ("exp(x^2)*exp(-2*x^2)", sp.oo),
        ("exp(x^2*tanh(x))", sp.Rational(1, 4)),
        ("exp(x^4)", 0),
        ("exp(exp(x))", 0),
        ("sinh(x^3)", 0),
        ("log(1+exp(x^4))", sp.oo),
        ("sqrt(1+exp(2*x^2))", sp.Rational(1, 4)),
        ("3**(x^2)", 1 / (4 * sp.log(3))),
    ],
)
def test_critical_variance(text: str, critical: sp.Expr) -> None:
    assert sp.simplify(activation(text).critical_variance - critical) in (0, sp.nan)
    assert float(activation(text).critical_variance) == pytest.approx(float(sp.sympify(critical)))


def test_square_integrability_names_place_and_variance() -> None:
    function = activation("exp(x^2)")
    function.require_square_integrable(0.2)
    with pytest.raises(NotSquareIntegrableError, match=r"variance 2 \(layer 3\).*0\.25"):
        function.require_square_integrable(2.0, "layer 3")
    with pytest.raises(NotSquareIntegrableError):
        function.require_square_integrable(0.25)
    activation("exp(x^4)").require_square_integrable(0.0)  # a zero input has no randomness


@pytest.mark.parametrize("k", range(5))
@pytest.mark.parametrize("name", SMOOTH)
def test_numpy_derivatives_are_stable(name: str, k: int) -> None:
    """Against mpmath differentiation rules at 40 digits, overflow and cancellation included."""
    function = activation(name)
    with np.errstate(all="raise", under="ignore"):
        values = function.numpy_function(k)(np.array(POINTS))
    plain = sp.lambdify(X, sp.diff(function.expr, X, k), "mpmath")
    for point, value in zip(POINTS, values):
        with mpmath.workdps(800):  # the plain derivative cancels: e^(-800) against 1
            exact = plain(mpmath.mpf(point))
        assert abs(value - exact) <= 4e-14 * abs(exact) + 1e-300, (point, value, exact)


@pytest.mark.parametrize("k", range(4))
@pytest.mark.parametrize("text", ["tanh", "gelu", "Abs(x)**3", "relu(x)**3", "x*sigmoid(x)", "log(2+x^2)"])
def test_mpmath_and_numpy_and_sympy_agree(text: str, k: int) -> None:
    function = activation(text)
    many, numbers = function.mpmath_function(k), function.numpy_function(k)
    for point in (-1.75, 0.625):
        exact = sp.N(function.derivative(k).subs(X, sp.Rational(point)), 30)
        with mpmath.workdps(30):
            assert abs(many(mpmath.mpf(point)) - mpmath.mpf(str(exact))) < 1e-26
        assert numbers(np.array([point]))[0] == pytest.approx(float(exact), rel=1e-13, abs=1e-15)


def test_softplus_derivatives_at_zero() -> None:
    """jax #2107: 1/2, 1/4, 0, -1/8."""
    assert [float(activation("softplus").numpy_function(k)(0.0)) for k in (1, 2, 3, 4)] == [0.5, 0.25, 0.0, -0.125]


def test_pieces_are_not_evaluated_outside_their_interval() -> None:
    function = activation("sqrt(Abs(x))")
    with np.errstate(all="raise"):
        assert function.numpy_function()(np.array([-4.0, 0.0, 9.0])).tolist() == [2.0, 0.0, 3.0]
    assert np.isnan(activation("relu").numpy_function()(np.nan))


@pytest.mark.parametrize("text", ["tanh(x)*gelu(x)", "1/(2+2*exp(-3*x))**2", "log(1+exp(x*tanh(x)))", "3+3*erf(x)+x"])
def test_stable_form_keeps_the_value(text: str) -> None:
    expr = activation(text).expr
    back = stable_form(expr).rewrite("elementary")
    for point in (-1.3, 0.4, 2.2):
        assert abs((expr - back).subs(X, sp.Rational(point)).evalf(30)) < 1e-25
    assert stable_form(expr) != expr


def test_undecidable_signs_are_recorded() -> None:
    function = activation("log(3 + sin(x) + tanh(x)*cos(2*x))")
    assert function.assumptions
    assert "positive" in function.assumptions[0]
    assert activation("log(1 + x^2)").assumptions == ()


def test_it_is_a_value() -> None:
    function = activation("Abs(x)")
    assert isinstance(function, Activation)
    assert "Abs" in repr(function) and str(function) == "Abs(x)"
    assert function._repr_latex_().startswith("$")
    with pytest.raises(AttributeError):
        function.name = "other"  # type: ignore[misc]
