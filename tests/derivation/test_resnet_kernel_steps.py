"""The derivation: all checks hold, and each of them fails when the mathematics is spoilt."""

from __future__ import annotations

import pytest
import sympy as sp

from derivations.resnet_kernel import DERIVATION, equations, steps
from derivations.resnet_kernel.equations import AXES, K0, K1, PAIR, PAIR_SYMMETRIC, V4, P, Q, a, b, c, d, m
from symtensor.derivation.model import run_checks
from symtensor.expansion.price import ExpectationFamily
from symtensor.tensor import SymmetryGroup, TensorExpr


def test_every_check_passes() -> None:
    results = run_checks(DERIVATION.resolved_steps())
    assert len(results) >= 12
    assert [(result.check.name, result.outcome.detail) for result in results if not result.outcome.passed] == []


def test_symmetries() -> None:
    table = equations.equations()
    assert table["K1_rate"].has_symmetry(SymmetryGroup.symmetric(2), PAIR)
    assert table["V4_rate"].has_symmetry(PAIR_SYMMETRIC, AXES)
    assert table["V4_noise"].has_symmetry(PAIR_SYMMETRIC, AXES)
    assert equations.response_table().has_symmetry(SymmetryGroup.symmetric(2), (c, d))


def test_linear_activation_closes() -> None:
    """sigma = identity: m11 = 1, other derivatives 0, m00 = K: dV/dt = 2 C_W V + N and no source of K_1 (one input)."""
    gamma, C_W = equations.gamma, equations.C_W
    zero = {"m20": 0, "m40": 0, "m31": 0, "m22": 0, "m11": 1}

    def linear(expression: TensorExpr) -> TensorExpr:
        for head in expression.heads:
            if head.name in zero:
                value = zero[head.name]
                expression = expression.replace(head, lambda i, j, value=value: value * (K0[i, j] - K0[i, j] + _ones(i, j)))
        return expression.subs({gamma: 0}).canonical()

    def _ones(i, j) -> TensorExpr:
        from symtensor.tensor import delta

        return delta(i, i) * delta(j, j)

    rate = linear(equations.equations()["V4_rate"])
    noise = K0[a, c] * Q[b, d] + K0[a, d] * Q[b, c] + K0[b, c] * Q[a, d] + K0[b, d] * Q[a, c]
    assert rate == 2 * C_W * V4[a, b, c, d] + noise
    assert linear(equations.equations()["K1_rate"]) == C_W * K1[a, b]


@pytest.mark.parametrize(("orders", "wrong"), [((1, 1), sp.Rational(1, 2)), ((2, 2), 2), ((4, 0), 0)])
def test_checks_fail_when_a_coefficient_is_spoilt(orders: tuple[int, int], wrong: sp.Expr, monkeypatch) -> None:
    """Scale one moment in the derived right-hand side: the check against the paper's form must notice."""
    head = m.head(*orders)
    original = equations.equations()
    spoilt = {
        name: expression.replace(head, lambda i, j: wrong * head[i, j]) for name, expression in original.items()
    }
    monkeypatch.setattr(equations, "equations", lambda: spoilt)
    failed = {result.check.name for result in run_checks(steps()) if not result.outcome.passed}
    assert failed & {"LIN", "GC1"}


def test_checks_fail_with_another_price_theorem(monkeypatch) -> None:
    """Without the factor 1/2 of Price's theorem the Taylor coefficients are wrong."""
    right = ExpectationFamily.gradient
    first = equations.functional_taylor(m(0, 0, a, b), K0, equations.Delta, m).series.coefficient(1)
    monkeypatch.setattr(ExpectationFamily, "gradient", lambda self, *arguments: 2 * right(self, *arguments))
    spoilt = equations.functional_taylor(m(0, 0, a, b), K0, equations.Delta, m).series.coefficient(1)
    assert spoilt == 2 * first


def test_neuron_mean_refuses_what_is_not_bilinear() -> None:
    phi = equations.phi
    with pytest.raises(ValueError, match="not bilinear"):
        equations.neuron_mean(phi[a] * phi[b] * phi[c] * phi[d])


def test_kernels_are_deterministic_and_complete() -> None:
    names = [kernel.name for kernel in DERIVATION.resolved_kernels()]
    assert len(names) == len(set(names))
    assert {"moments", "drive", "K0_step", "V4_step", "K1_step", "U1_model"} <= set(names)
    assert {"hierarchy", "hierarchy_exact", "continuous"} <= set(names)
    assert P.name == "P"
