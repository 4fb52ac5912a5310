"""Inputs that a hostile examination got through with wrong causes, hangs or bare errors."""

from __future__ import annotations

import pytest
import sympy as sp

from symtensor.fields.layered import Branch, LayeredError, LayeredNetwork, NetworkError, expand


def network(bias: object) -> LayeredNetwork:
    return LayeredNetwork([Branch("tanh", 1.0), Branch("relu", 0.5)], alpha=1, dt=0.3, depth=2, kernel=1.3, bias=bias)


@pytest.mark.parametrize("bias", [sp.Integer(-1), "-5", sp.oo, sp.nan, sp.I, "-1/3"], ids=str)
def test_a_constant_bias_variance_is_a_finite_number(bias: object) -> None:
    with pytest.raises(NetworkError, match=r"bias=.*: a bias variance is a finite real number >= 0"):
        network(bias)


@pytest.mark.parametrize(("bias", "value"), [("S1-10", "-9"), ("log(S1)*10", "-"), ("sqrt(S1-10)", r".*I"), ("S2-S1-1", "-")])
def test_a_bias_variance_that_is_negative_at_some_layer_is_named(bias: str, value: str) -> None:
    with pytest.raises(NetworkError, match=rf"the bias variance .* is {value}.* at S1 = .*, S2 = .*; it must be a finite"):
        expand(network(bias), 1)


def test_orders_and_observables_that_are_refused_at_once() -> None:
    with pytest.raises(LayeredError, match=r"order=3: numbers are done up to order 2 .* cumulant_terms"):
        expand(network(0.1), 3)
    for observables in ("x", ["a"]):
        with pytest.raises(NetworkError, match="give a mapping of names to functions"):
            expand(network(0.1), 1, observables)  # type: ignore[arg-type]
