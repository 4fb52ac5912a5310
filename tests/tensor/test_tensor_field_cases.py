"""Inputs of index handling on which other tools went wrong (public trackers): the right value, or a named refusal."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from symtensor.tensor import CoefficientError, Dimension, IndexTypeError, SymmetryGroup, Tensor, TensorError, delta

N = Dimension("N")
i, j, k, p, q, r, t, a = N.indices("i j k p q r t a")
SYMMETRIC = SymmetryGroup.symmetric(2)


def test_sympy_28950_a_delta_with_two_factors_keeps_the_free_index():
    A, B = Tensor("A", (N,)), Tensor("B", (N,))
    expression = (delta(i, j) * A[j] * B[j]).sum(j)
    assert expression == A[i] * B[i]
    assert expression.contract_deltas().free == {i}
    arrays = {"A": np.array([1.0, 2.0]), "B": np.array([3.0, 4.0])}
    np.testing.assert_array_equal(expression.evaluate(arrays, (i,)), [3, 8])
    np.testing.assert_array_equal(expression.evaluate_by_loops(arrays, (i,)), [3, 8])


def test_sympy_27359_a_delta_reaches_into_conditions():
    s = sympy.Symbol("s")
    x = Tensor("x", (N,))
    positive = x.map("positive", sympy.Lambda(s, sympy.Piecewise((1, s > 0), (0, True))))
    expression = -(positive[i] * delta(i, j)).sum(i)
    assert expression.contract_deltas().free == {j}
    assert str(expression.contract_deltas()) == "-positive[j]"
    values = {"x": np.array([0.5, -1.0, 0.0, 2.0])}
    np.testing.assert_array_equal(expression.evaluate(values, (j,)), [-1, 0, 0, -1])
    np.testing.assert_array_equal(expression.evaluate_by_loops(values, (j,)), [-1, 0, 0, -1])


def test_sympy_14809_a_free_index_is_not_eliminated():
    F = Tensor("F", (N,))
    expression = delta(a, t) * F[t]
    assert expression.contract_deltas().free == {a, t}
    assert expression.canonical().free == {a, t}
    assert expression != F[a]
    assert str(expression.contract_deltas()) == "F[t]*delta(a, t)"
    value = expression.evaluate({"F": np.array([2.0, 3.0])}, (a, t))
    np.testing.assert_array_equal(value, [[2, 0], [0, 3]])


def test_sympy_26289_tensors_of_another_index_type_are_refused_at_construction():
    L1, L2 = Dimension("L1"), Dimension("L2")
    x, y, z = L1.indices("x y z")
    g = Tensor("g", (L1, L1), symmetry=SYMMETRIC)
    h = Tensor("h", (L2, L2), symmetry=SYMMETRIC)
    with pytest.raises(IndexTypeError, match="index y of dimension L1 in slot 0 of h, which has dimension L2"):
        g[x, y] * h[y, z]
    with pytest.raises(IndexTypeError, match="index y of dimension L2 in slot 1 of delta_L1"):
        delta(x, L2.index("y"))


def test_sympy_17328_18465_no_metric_is_implied_in_a_trace():
    g, T = Tensor("g", (N, N), symmetry=SYMMETRIC), Tensor("T", (N, N))
    arrays = {"g": np.diag([1.0, -1.0]), "T": np.array([[1.0, 2.0], [3.0, 4.0]])}
    assert (g[i, j] * T[i, j]).sum(i, j).evaluate(arrays) == -3
    assert T[i, i].sum(i).evaluate(arrays) == 5
    assert T[i, i].free == {i}  # a repeated index alone is the diagonal, not a trace
    with pytest.raises(IndexTypeError):
        T[i, -1]  # type: ignore[index]  # there are no upper and lower slots


def test_sympy_24354_a_contraction_that_vanishes_is_the_zero_tensor():
    D = Dimension("D")
    p, q, r = D.indices("p q r")
    eps = Tensor("eps", (D, D, D), symmetry=SymmetryGroup.antisymmetric(3))
    K = Tensor("K", (D,))
    expression = (eps[p, q, r] * (K[p] * K[q] + delta(p, q))).sum(p, q)
    assert expression.is_zero and expression == 0 and expression.free == {r}
    assert expression.canonical().terms == ()
    levi_civita = np.array([[[(b - a) * (c - b) * (c - a) / 2 for c in range(3)] for b in range(3)] for a in range(3)])
    arrays = {"eps": levi_civita, "K": np.array([1.0, 2.0, -0.5])}
    np.testing.assert_array_equal(expression.evaluate_by_loops(arrays, (r,)), np.zeros(3))
    np.testing.assert_array_equal(expression.canonical().evaluate({}, (r,), sizes={"D": 3}), np.zeros(3))


def test_sympy_23434_the_canonical_form_is_total():
    B, A, v = Tensor("B", (N,) * 3), Tensor("A", (N, N), symmetry=SYMMETRIC), Tensor("v", (N,))
    b, c = N.indices("b c")
    expression = (B[b, b, a] * A[a, c] * v[c]).sum(a, b, c)
    assert str(expression.canonical()) == "(A[i, j]*B[k, k, j]*v[i]).sum(i, j, k)"
    rng = np.random.default_rng(3)
    symmetric = rng.normal(size=(3, 3))
    arrays = {"B": rng.normal(size=(3, 3, 3)), "A": symmetric + symmetric.T, "v": rng.normal(size=3)}
    expected = np.einsum("bba,ac,c->", arrays["B"], arrays["A"], arrays["v"])
    np.testing.assert_allclose(expression.canonical().evaluate(arrays), expected, rtol=1e-13)


def test_sympy_7380_concrete_indices_are_compared_by_value():
    expression = 2 * delta(0, i) * delta(0, j) * delta(1, j) * delta(1, j)
    assert expression.contract_deltas().terms == ()
    assert expression == 0 and expression.free == {i, j}
    assert 2 * delta(0, i) * delta(0, j) * delta(1, k) * delta(1, k) != 0


def test_sympy_27852_a_sum_over_derivative_orders_is_not_zero():
    """The order is an index of the family of derivatives, so the sum stays; SymPy's own zero cannot slip in."""
    order = Dimension("order").index("m")
    derivatives = Tensor("f", (Dimension("order"),))
    total = derivatives[order].sum(order)
    assert not total.is_zero
    y = sympy.Symbol("y")
    values = np.array([float(sympy.diff(sympy.exp(2 * y), y, m).subs(y, 0)) for m in (1, 2, 3)])
    assert total.evaluate({"f": values}) == 2 + 4 + 8
    with pytest.raises((TensorError, TypeError, ValueError)):
        sympy.Derivative(sympy.exp(2 * y), (y, order)) * derivatives[order]


def test_sympt_12_operators_are_refused_by_name():
    create, annihilate = sympy.symbols("a_dagger a_op", commutative=False)
    X = Tensor("X", (N,))
    for product in (create * annihilate, annihilate * create, (create * annihilate + 1) ** -1):
        with pytest.raises(CoefficientError, match="non-commuting a_dagger, a_op"):
            product * X[i]
