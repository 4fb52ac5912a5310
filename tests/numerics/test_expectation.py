"""`expect`: known values, refusals, and the 30-digit reference."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from symtensor.activation import NAMES, ActivationError, KinkedDerivativeError, NotSquareIntegrableError, activation
from symtensor.numerics.covariance import CovarianceError
from symtensor.numerics.expectation import Expectation, expect
from symtensor.numerics.moments import moment_table
from symtensor.numerics.quadrature import QuadratureNotConverged, choose_rule
from symtensor.numerics.reference import reference_moments
from symtensor.numerics.rules import CLOSED


@pytest.mark.parametrize(
    ("f", "covariance", "value"),
    [
        ("tanh(x)^2", 1.0, 0.394294490396),
        ("erf(x)^2", 1.0, 2 / math.pi * math.asin(2 / 3)),
        ("exp(2*x^2)", 0.2, math.sqrt(5)),  # E sigma^2 of exp(x^2): 2.2360680
        ("exp(x)", [[1.0, 0.0], [0.0, 1.0]], math.exp(0.5)),
        ("x*y", [[1.0, 0.0], [0.0, 1.0]], 0.0),
        ("x*y", [[2.0, -0.5], [-0.5, 1.0]], -0.5),
        ("relu", 2.0, 1 / math.sqrt(math.pi)),
        ("relu(x)*relu(y)", [[1.0, 1.0], [1.0, 1.0]], 0.5),
        ("sign(x - 1)", 1.0, math.erf(-1 / math.sqrt(2))),
        ("Abs(x)", 3.0, math.sqrt(6 / math.pi)),
        ("Heaviside(x)*Heaviside(y)", [[1.0, 0.5], [0.5, 1.0]], 1 / 3),
        ("Max(x, -1)", 1.0, math.exp(-0.5) / math.sqrt(2 * math.pi) - (1 + math.erf(-1 / math.sqrt(2))) / 2),
        ("exp(-x^2*y^2)*x*y", [[1.0, 0.0], [0.0, 2.0]], 0.0),
        ("cos(x*y)", [[1.0, 0.0], [0.0, 1.0]], 1 / math.sqrt(2)),
        ("7", 1.0, 7.0),
    ],
)
def test_known_values(f: str, covariance: object, value: float) -> None:
    result = expect(f, covariance)  # type: ignore[arg-type]
    assert result.value == pytest.approx(value, rel=1e-10, abs=1e-11)
    assert abs(result.value - value) <= result.error + 1e-12


def test_exponentially_small_tails_survive() -> None:
    """1 - E[erf] type quantities: E erfc(x + 6) is about 1e-9, not 0 (compared with mpmath)."""
    exact = mpmath.quad(lambda z: mpmath.erfc(z / 10 + 6) * mpmath.npdf(z), [-12, -6, 0, 6, 12])
    assert expect("erfc(x + 6)", 0.01).value == pytest.approx(float(exact), rel=1e-10)


@pytest.mark.parametrize("f", ["tanh(x)*tanh(y)", "relu(x)*tanh(y)", "Max(x,-1)*Max(y,-1)", "gelu(x)*gelu(y)"])
def test_singular_limit_is_continuous(f: str) -> None:
    exact = expect(f, [[1.0, 1.0], [1.0, 1.0]])
    near = expect(f, [[1.0, 1 - 1e-8], [1 - 1e-8, 1.0]])
    assert near.value == pytest.approx(exact.value, rel=3e-8)
    assert near.condition == pytest.approx(2e8, rel=1e-3) and exact.condition == pytest.approx(1.0)


def test_zero_variance_is_evaluation() -> None:
    assert expect("tanh(x + 1)", 0.0).value == pytest.approx(math.tanh(1.0), rel=1e-11)
    assert expect("sigmoid(x)*exp(y)", [[0.0, 0.0], [0.0, 1.0]]).value == pytest.approx(math.exp(0.5) / 2, rel=1e-10)


def test_result_says_how_it_was_computed() -> None:
    closed, quadrature = expect("erf(x)^2", 1.0), expect("tanh(x)^2", 1.0)
    assert isinstance(closed, Expectation) and closed.rule == CLOSED
    assert quadrature.rule.kind == "trapezoid" and 0 < quadrature.error < 1e-10
    assert float(quadrature) == quadrature.value and "trapezoid" in str(quadrature)
    assert expect(activation("tanh"), 2.0).value == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize(
    ("f", "covariance", "error", "message"),
    [
        ("x^2", -1.0, CovarianceError, "not negative"),
        ("x*y", [[1, 2], [2, 1]], CovarianceError, "eigenvalue is -1"),
        ("x", math.nan, CovarianceError, "nan"),
        ("x", np.eye(3), ValueError, "not of 3"),
        ("exp(2*x^2)", 2.0, NotSquareIntegrableError, "variance 2"),
        ("exp(2*x^2)", 0.25, NotSquareIntegrableError, "0.25"),
        ("exp(x*y)", [[1.5, 0.1], [0.1, 1.5]], NotSquareIntegrableError, "covariance"),
        ("exp(x^4)", 0.01, NotSquareIntegrableError, "0.01"),
        ("tanh(x)*exp(x^2)", 1.0, NotSquareIntegrableError, "variance 1"),
        ("Max(x, y)", np.eye(2), ActivationError, "along a curve"),
        ("log(x)", 1.0, ActivationError, "x = 0"),
        ("sqrt(Abs(x))", 1.0, QuadratureNotConverged, "computed to"),
        ("tnah", 1.0, ActivationError, "tanh"),
        ("x + y", 1.0, ValueError, "y"),
    ],
)
def test_refusals(f: str, covariance: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        expect(f, covariance)  # type: ignore[arg-type]


def test_tolerance_is_checked() -> None:
    with pytest.raises(ValueError, match="tolerance"):
        expect("x", 1.0, tol=-1.0)


# -- named activations against 30 digits ---------------------------------------------------------------------------

CORRELATIONS = (-1, -0.999999, 0, 0.999999, 1)


def _compare(name: str, k11: float, rho: float, k22: float, digits: int) -> None:
    function = activation(name)
    k12 = rho * math.sqrt(k11 * k22)
    kernel = np.array([[k11, k12], [k12, k22]])
    choice = choose_rule(function, kernel)
    value = float(moment_table(function, k11, k12, k22, choice.rule, choice.derivatives, ((0, 0),))[0, 0])
    exact = float(reference_moments(function, k11, k12, k22, digits)[0, 0])
    diagonal = [float(moment_table(function, k, k, k, choice.rule, orders=((0, 0),))[0, 0]) for k in (k11, k22)]
    # relative; where odd symmetry makes E vanish, relative to the diagonal
    assert value == pytest.approx(exact, rel=1e-10, abs=1e-13 * math.sqrt(diagonal[0] * diagonal[1]))


@pytest.mark.parametrize("rho", [-1, 0, 1])
@pytest.mark.parametrize("variance", [1e-6, 1.0, 20.0])
@pytest.mark.parametrize("name", sorted(NAMES))
def test_named_activations_against_mpmath(name: str, variance: float, rho: float) -> None:
    _compare(name, variance, rho, variance, 20)


@pytest.mark.parametrize("name", ["tanh", "gelu"])
def test_nearly_collinear_against_mpmath(name: str) -> None:
    _compare(name, 1.0, 0.999999, 1.0, 12)


@pytest.mark.slow
@pytest.mark.parametrize("rho", CORRELATIONS)
@pytest.mark.parametrize("variance", [1e-6, 0.3, 4.0, 20.0])
@pytest.mark.parametrize("name", sorted(NAMES))
def test_named_activations_against_mpmath_at_30_digits(name: str, variance: float, rho: float) -> None:
    _compare(name, variance, rho, 0.5 * variance, 30)


@pytest.mark.parametrize("name", ["tanh", "softplus"])
def test_reference_derivatives(name: str) -> None:
    orders = ((1, 1), (2, 0), (2, 2), (3, 1), (4, 0))
    function, pair = activation(name), (0.5, 0.0, 0.8)
    exact = reference_moments(function, *pair, 20, orders)
    choice = choose_rule(function, np.array([[0.5, 0.0], [0.0, 0.8]]))
    table = moment_table(function, *pair, choice.rule)
    for order in orders:
        assert float(table[order]) == pytest.approx(float(exact[order]), rel=1e-9, abs=1e-11)


def test_reference_of_kinked_functions() -> None:
    relu = reference_moments(activation("relu"), 1, 1, 1, 20, ((0, 0), (1, 1)))
    assert abs(relu[0, 0] - mpmath.mpf(1) / 2) < 1e-19 and abs(relu[1, 1] - mpmath.mpf(1) / 2) < 1e-19
    with pytest.raises(KinkedDerivativeError):
        reference_moments(activation("relu"), 1, 0, 1, 20, ((2, 0),))


@pytest.mark.parametrize(
    "text",
    ["1e3*exp(-1e6*(x-0.3)^4)+x^2", "exp(-1e8*(x-0.5)^4)", "exp(-1e8*(x-3.1)^4)", "tanh(x)^2+100*exp(-1e8*(x-3.1)^4)"],
)
def test_narrow_features_are_not_missed_silently(text):
    """Coarse grids that all miss the bump agree with each other; the grid without gaps does not."""
    with pytest.raises(QuadratureNotConverged, match="features finer"):
        expect(text, 1.0)


def test_narrow_feature_in_an_activation_is_not_missed():
    from symtensor.activation import activation
    from symtensor.numerics.quadrature import choose_rule

    with pytest.raises(QuadratureNotConverged, match="features finer"):
        choose_rule(activation("x+exp(-1e8*(x-3.1)^4)"), np.array([[[2.0]]]))


def test_what_is_no_integrand_or_covariance():
    with pytest.raises(TypeError, match="NoneType"):
        expect(None, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="complex"):
        expect("tanh(x)", np.eye(2) * 1j)
