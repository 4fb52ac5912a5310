"""The increment action: unit Jacobian and Z = 1, by computation; what breaks when the action is spoilt."""

from __future__ import annotations

import pytest
import sympy as sp

from symtensor.fields import IncrementAction, NotQuadraticError, integrate_gaussian


@pytest.mark.parametrize(("inputs", "layers"), [(1, 1), (1, 3), (2, 1), (2, 2)])
def test_determinant_and_normalisation(inputs: int, layers: int) -> None:
    action = IncrementAction(inputs=inputs, layers=layers)
    assert action.jacobian_determinant() == 1
    assert action.partition_function() == 1


class WrongWeight(IncrementAction):
    """The quadratic term without its factor 1/2 is still normalised; without i in the linear term it is not."""

    def block(self, layer: int) -> sp.Expr:
        return super().block(layer).subs(sp.I, 2 * sp.I)


def test_a_spoilt_action_is_not_normalised() -> None:
    assert WrongWeight(inputs=1, layers=1).partition_function() == sp.Rational(1, 2)


def test_second_moment_of_a_block() -> None:
    """<phi_1^2> from the action by a source is alpha^2 phi_0^2 + dt Sigma: the block's law."""
    action = IncrementAction(inputs=1, layers=1)
    phi0, phi1, response = action.field(0)[0], action.field(1)[0], action.response(1)[0]
    sigma, source = sp.Symbol("sigma", positive=True), sp.Symbol("J", real=True)
    exponent = -action.expression().subs(action.covariance(0)[0], sigma) + source * phi1
    factor, exponent = integrate_gaussian(exponent, [response])
    second, exponent = integrate_gaussian(exponent, [phi1])
    generating = factor * second * sp.exp(exponent) / (2 * sp.pi)
    moment = sp.simplify(sp.diff(generating, source, 2).subs(source, 0))
    assert sp.simplify(moment - (action.alpha**2 * phi0**2 + action.dt * sigma)) == 0


def test_gaussian_integral_against_sympy() -> None:
    x, s, m = sp.symbols("x s m", positive=True)
    exponent = -(x**2) / (2 * s) + m * x
    factor, rest = integrate_gaussian(exponent, [x])
    assert sp.simplify(factor * sp.exp(rest) - sp.integrate(sp.exp(exponent), (x, -sp.oo, sp.oo))) == 0


def test_refusals() -> None:
    x, y = sp.symbols("x y", real=True)
    with pytest.raises(NotQuadraticError, match="degree 4"):
        integrate_gaussian(-(x**4), [x])
    with pytest.raises(NotQuadraticError, match="zero mode"):
        integrate_gaussian(-((x + y) ** 2), [x, y])
    with pytest.raises(NotQuadraticError, match="not a polynomial"):
        integrate_gaussian(-sp.cos(x), [x])
    with pytest.raises(ValueError, match="layers >= 1"):
        IncrementAction(inputs=1, layers=0)
