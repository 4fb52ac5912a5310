"""The model, its drive and action, the diagrams and how they show themselves, refusals and edge cases."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symtensor.activation import ActivationError
from symtensor.fields.layered import (
    Branch,
    LayeredError,
    LayeredMemoryError,
    LayeredNetwork,
    NetworkError,
    cumulant_terms,
    expand,
)
from symtensor.fields.layered.drive import Drive, bias_symbols, component_symbol
from symtensor.fields.layered.plan import Plan, canonical
from symtensor.fields.layered.tensor_network import Array, networks
from symtensor.parsing import ExpressionSyntaxError

GOOD: dict[str, Any] = {"c_w": 1, "c_b": 0.1, "alpha": 1, "dt": 0.1, "depth": 3, "kernel": 1.0}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"alpha": -0.1}, "alpha"), ({"alpha": float("nan")}, "finite"), ({"dt": 0}, "dt"), ({"dt": "x"}, "real number"),
        ({"depth": 0}, "depth"), ({"depth": 2.0}, "depth"), ({"c_w": -1}, "c_w"), ({"c_b": -1.0}, "bias"),
        ({"c_b": sp.Symbol("K")}, "'K'"), ({"c_b": [1]}, "list"), ({"kernel": [[1, 2], [2, 1]]}, "eigenvalue"),
        ({"kernel": [[1, 0.5], [0.4, 1]]}, "symmetric"), ({"kernel": [1.0, 2.0]}, "shape"), ({"kernel": "one"}, "str"),
        ({"kernel": [[np.inf]]}, "finite"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(change: dict[str, Any], part: str) -> None:
    with pytest.raises(NetworkError, match=part):
        LayeredNetwork.single("tanh", **{**GOOD, **change})


def test_text_is_read_by_the_whitelist() -> None:
    for bias in ("S3", "__import__('os')", "S1.real"):
        with pytest.raises(ExpressionSyntaxError):
            LayeredNetwork.single("tanh", **{**GOOD, "c_b": bias})
    with pytest.raises(NetworkError, match="same activation"):
        LayeredNetwork([Branch("tanh", 1), Branch("tanh", 2)], alpha=1, dt=1, depth=1, kernel=1)
    with pytest.raises(NetworkError, match="Branch"):
        LayeredNetwork([], alpha=1, dt=1, depth=1, kernel=1)


def test_drive_derivatives_are_those_of_its_expression() -> None:
    first, second = bias_symbols(2)
    drive = Drive((0.7, 0.2), sp.Rational(1, 5) + first * second / 3 + sp.exp(-first), 2)
    symbols = [component_symbol(r, pair) for r in range(2) for pair in ((0, 0), (0, 1), (1, 1))]
    points = np.array([[0.3, 0.1, 0.5, 1.1, -0.2, 0.9], [1.0, 0.2, 0.8, 0.3, 0.1, 0.4]])
    assert drive.degree is None
    for order in (1, 2, 3):
        values = drive.derivative(order, points)
        for layer, (place, pair) in product(range(2), enumerate(((0, 0), (0, 1), (1, 1)))):
            at = dict(zip(symbols, points[layer]))
            for legs in product(range(6), repeat=order) if order < 3 else [(0, 3, 0), (2, 5, 0), (1, 0, 0), (0, 0, 2)]:
                exact = float(sp.diff(drive.expression(pair), *(symbols[c] for c in legs)).subs(at))  # type: ignore[arg-type]
                assert values[(layer, place, *legs)] == pytest.approx(exact, abs=1e-13)
    full = drive(points[0])
    exact = [float(drive.expression(pair).subs(dict(zip(symbols, points[0])))) for pair in ((0, 0), (0, 1), (1, 0), (1, 1))]
    np.testing.assert_allclose(full.ravel(), exact, rtol=1e-14)


def test_action_is_printed_with_its_conventions() -> None:
    branches = [Branch("tanh", 2), Branch("relu", 1)]
    action = LayeredNetwork(branches, alpha=1, dt=0.1, depth=2, kernel=np.eye(2), bias="S1*S2").action()
    text = str(action)
    for part in ("n[ sum_l Shat_l", "W(S, -Shat)", "(2, 1)", "theta(0) = 1", "S1_12", "etahat"):
        assert part in text
    one, two = ([component_symbol(r, (a, b)) for a, b in ((0, 0), (0, 1), (1, 1))] for r in range(2))
    expected = 2.0 * one[1] + two[1] + (one[0] + one[2]) * (two[0] + two[2]) / 4
    assert sp.expand(action.drive()[0, 1] - expected) == 0
    assert action.jacobian_determinant() == 1
    assert "hat S" in action.latex()
    with pytest.raises(ValueError, match="q >= 1"):
        action.vertex(3, 0)


def test_diagrams_and_their_weights() -> None:
    counts = {(1, 1): (2, Fraction(3, 2)), (3, 0): (7, 7), (2, 1): (24, Fraction(37, 2)), (1, 2): (38, Fraction(269, 12))}
    for (legs, loops), (number, weight) in counts.items():
        total = cumulant_terms(legs, loops)
        assert (len(total), total.weight, total.order) == (number, weight, legs - 1 + loops)
        assert sum(len(terms) for terms in total.by_vertices().values()) == number
    html = cumulant_terms(2, 1)._repr_html_()
    assert html.count("<svg") == 24 and r"\kappa_{2}" in html
    tadpole = cumulant_terms(1, 1)[0]
    assert tadpole.latex().startswith(r"\frac{1}{2}\,\frac{\partial^{2} \kappa_{1}(l_{1})}") and tadpole.order == 1
    for bad in ((0, 1), (1, -1), (1.0, 1)):
        with pytest.raises(LayeredError):
            cumulant_terms(*bad)  # type: ignore[arg-type]


def test_a_nonlinear_drive_adds_partitions_of_the_legs() -> None:
    tadpole = cumulant_terms(1, 1)[0].diagram
    assert [len(networks(tadpole, degree)) for degree in (1, 2, None)] == [1, 2, 2]
    nonlinear = networks(tadpole, 2)[1]
    assert {array.name for array in nonlinear.internal} == {"A_2", "C_FF", "kappa_C_1"}
    # four legs on one J leg: Bell numbers
    fourth = next(term.diagram for term in cumulant_terms(1, 2) if term.vertices == ((4, 1),))
    assert [len(networks(fourth, degree)) for degree in (1, 2, 3, None)] == [1, 10, 14, 15]


def test_contraction_orders_agree_with_one_einsum() -> None:
    rng = np.random.default_rng(3)
    sizes = {"T": 3, "C": 2, "F": 2, "E": 1}
    a, b, c, d, e = (("T", k) for k in range(5))
    f, g = ("F", 0), ("F", 1)
    factors = (Array("x", (a, f, b)), Array("y", (b, c, c)), Array("z", (c, f, d, g)), Array("w", (g, d)), Array("u", (e, b)))
    arrays = {x.name: rng.normal(size=[sizes[kind] for kind, _ in x.indices]) for x in factors}
    expected = np.einsum("afb,bcc,cfdg,gd,eb->ea", *(arrays[x.name] for x in factors))
    for limit in (float("inf"), 1.0):
        plan = Plan(sizes, limit)
        found = {**arrays, plan.contract(factors, (e, a)): None}
        for call in plan.calls:
            kernel = plan.kernels[call.kernel]
            given = {argument.name: found[name] for argument, name in zip(kernel.arguments, call.arguments)}
            found[call.targets[0]] = kernel.expression.evaluate(given, kernel.axes)
        np.testing.assert_allclose(found[plan.calls[-1].targets[0]], expected, rtol=1e-12)
    renamed = tuple(Array(x.name, tuple((k, n + 50) if (k, n) != a else (k, n) for k, n in x.indices)) for x in reversed(factors))
    assert canonical(factors, (a,)) == canonical(renamed, (a,))


def test_refusals_of_an_expansion() -> None:
    net = LayeredNetwork.single("tanh", **{**GOOD, "depth": 200})
    with pytest.raises(LayeredMemoryError, match=r"needs about [\d,]+ MB"):
        expand(net, 2, memory_mb=500)
    with pytest.raises(LayeredError, match="order"):
        expand(net, 0)
    with pytest.raises(LayeredError, match="third"):
        expand(net, 1, quantities=("third",))
    with pytest.raises(ActivationError):
        expand(net, 1, {"G": "log(x)"})
    small = expand(LayeredNetwork.single("tanh", **GOOD), 1)
    with pytest.raises(NetworkError, match="'Q'"):
        small.mean("Q")
    with pytest.raises(LayeredError, match="2 loops"):
        small.mean("G", 2)
    with pytest.raises(ValueError, match=r"square|moment"):
        expand(LayeredNetwork.single("exp(x**2)", **{**GOOD, "kernel": 2.0}), 1)


def test_edge_cases() -> None:
    """One block, equal inputs, a zero input, no weights."""
    one = expand(LayeredNetwork.single("tanh", **{**GOOD, "depth": 2}), 1)
    same = expand(LayeredNetwork.single("tanh", **{**GOOD, "kernel": np.ones((2, 2)), "depth": 2}), 1)
    for a, b in product(range(2), repeat=2):
        np.testing.assert_allclose(same.mean("G")[:, a, b], one.mean("G")[:, 0, 0], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(same.covariance("G", "S")[:, 0, 0, a, b], one.covariance("G", "S").ravel(), rtol=1e-8)
    zero = expand(LayeredNetwork.single("tanh", **{**GOOD, "kernel": [[1, 0], [0, 0]], "depth": 2}), 1)
    np.testing.assert_allclose(zero.covariance("G", "G")[0, 1, 1, 1, 1], 0, atol=1e-12)
    np.testing.assert_allclose(zero.covariance("G", "G")[:, 0, 0, 0, 0], one.covariance("G", "G").ravel(), rtol=1e-8)
    free = expand(LayeredNetwork.single("relu", **{**GOOD, "c_w": 0, "depth": 1}), 1)
    np.testing.assert_allclose(free.mean("G"), 0, atol=1e-12)
    kernels = free.kernels.ravel()
    np.testing.assert_allclose(free.covariance("G", "G").ravel(), 2 * kernels**2, rtol=1e-9)


def test_tanh_reproduces_the_reference_values() -> None:
    """C_W = 2, K^0 = 2, dt = 0.0025, t = 0.5: the first row of the table of reference values."""
    short = LayeredNetwork.single("tanh", c_w=2, alpha=1, dt=0.0025, depth=200, kernel=2.0)
    found = expand(short, 1, quantities=("mean", "covariance"))
    assert found.kernels[-1, 0, 0] == pytest.approx(2.54139, abs=5e-6)
    assert found.covariance("G", "G")[-1].item() == pytest.approx(14.6593, abs=5e-5)
    assert found.mean("G")[-1].item() == pytest.approx(-0.04674, abs=5e-6)
    assert found.non_gaussian_mean("S")[0].item() == 0
