"""Kronecker deltas, einsum specifications, and values on arrays by einsum and by loops."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from symtensor.tensor import (
    ArrayError,
    CoefficientError,
    Dimension,
    Index,
    IndexClashError,
    SymmetryError,
    SymmetryGroup,
    Tensor,
    TensorExpr,
    delta,
)

P, N = Dimension("P"), Dimension("N")
a, b, c, d, e = P.indices("a b c d e")
K = Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2))
X = Tensor("X", (P, P))
V = Tensor("V", (P,) * 4, symmetry=SymmetryGroup.pair_symmetric())
M = Tensor("M", (P, N))
v = Tensor("v", (P,))
s = Tensor("s", ())
x, dt = sympy.symbols("x dt")

RNG = np.random.default_rng(0)
SIZE = 3


def symmetric(array, group):
    return sum(sign * np.transpose(array, p) for p, sign in group.elements) / group.order


ARRAYS = {
    "K": symmetric(RNG.normal(size=(SIZE,) * 2), K.symmetry),
    "X": RNG.normal(size=(SIZE,) * 2),
    "V": symmetric(RNG.normal(size=(SIZE,) * 4), V.symmetry),
    "M": RNG.normal(size=(SIZE, 2)),
    "v": RNG.normal(size=SIZE),
    "s": np.array(1.7),
}


def agree(expression, axes, expected, scalars=None):
    for evaluate in (expression.evaluate, expression.evaluate_by_loops):
        value = evaluate(ARRAYS, axes, scalars)
        assert value.shape == np.shape(expected)
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)


# -- deltas -----------------------------------------------------------------------------------------------------------


def test_contraction_eliminates_summed_indices_only():
    assert str((delta(a, c) * K[c, b]).sum(c).contract_deltas()) == "K[a, b]"
    assert str((delta(a, c) * delta(c, d) * X[d, b]).sum(c, d).contract_deltas()) == "X[a, b]"
    kept = delta(a, b) * v[b]
    assert kept.contract_deltas().free == {a, b}
    assert str(kept.contract_deltas()) == "v[b]*delta(a, b)"
    assert str((delta(c, 1) * X[c, c]).sum(c).contract_deltas()) == "X[1, 1]"
    assert (delta(a, b) * v[c]).sum(a, b).contract_deltas() == P.symbol * v[c]


def test_traces_of_deltas_are_dimensions():
    assert delta(a, a).sum(a) == P.symbol
    assert (delta(a, b) * delta(b, a)).sum(a, b) == P.symbol
    i, j = N.indices("i j")
    assert delta(i, j).sum(i) == delta(j, j)
    m = Index("m", 4)
    assert delta(m, m).sum(m) == 4
    np.testing.assert_allclose(delta(a, a).sum(a).evaluate({}, sizes={"P": 7}), 7)


def test_the_diagonal_of_a_delta_is_a_vector_of_ones():
    ones = delta(a, a)
    assert ones.contract_deltas().free == {a}
    assert ones * v[a] == v[a] and ones != 1
    np.testing.assert_array_equal(ones.evaluate({}, (a,), sizes={"P": 2}), [1, 1])
    assert (delta(a, b) * delta(a, b)) == delta(a, b)


def test_concrete_deltas_are_compared_by_value():
    assert delta(1, 1) == 1 and delta(0, 1) == 0
    assert (delta(0, a) * delta(a, 1)).is_zero and (delta(0, a) * delta(a, 1)).free == {a}
    assert (delta(a, 0) * delta(b, 0)).sum(b) == delta(0, a)
    n = N.index("n")
    assert not (delta(a, 0) * delta(n, 0)).is_zero  # component 0 of two different dimensions
    assert delta(a, 0) * delta(n, 1) * v[a] == delta(a, 0) * delta(n, 1) * v[0]


def test_deltas_on_arrays():
    eye = np.eye(SIZE)
    agree(delta(a, b) * v[a], (a, b), np.diag(ARRAYS["v"]))
    agree(delta(a, b) * s[()] + K[a, b], (b, a), 1.7 * eye + ARRAYS["K"])
    agree((delta(a, b) * X[a, b]).sum(a, b), (), np.trace(ARRAYS["X"]))
    agree(delta(a, 1) * v[b], (b, a), np.outer(ARRAYS["v"], eye[1]))


# -- einsum specifications --------------------------------------------------------------------------------------------


def specs(expression, axes):
    return [(term.coefficient, term.spec, term.tensors, term.fixed) for term in expression.einsum(axes)]


def test_specifications():
    assert specs(X[a, b] * V[a, a, c, d], (a, b, c, d)) == [(1, "aacd,ab->abcd", ("V", "X"), ())]
    assert specs((x * X[a, c] * X[c, b]).sum(c), (b, a)) == [(x, "ai,ib->ba", ("X", "X"), ())]
    assert specs(K[a, a].sum(a) * 3, ()) == [(3, "ii->", ("K",), ())]
    assert specs(s[()] * v[a], (a,)) == [(1, ",a->a", ("s", "v"), ())]
    assert specs(TensorExpr.scalar(x), ()) == [(x, "->", (), ())]
    assert specs(X[0, b], (b,)) == [(1, "b->b", ("X",), ((0, None),))]
    assert specs(delta(a, b), (a, b)) == [(1, "ab->ab", ("delta_P",), ())]
    assert specs(TensorExpr.zero(a), (a,)) == []


def test_specifications_have_one_operand_per_factor_and_the_requested_output():
    expression = (X[a, c] * K[c, d] * X[d, e] * v[e]).sum(c, d, e) * v[b]
    (term,) = expression.einsum((b, a))
    inputs, output = term.spec.split("->")
    assert len(inputs.split(",")) == len(term.tensors) == 5
    assert output == "ba"


def test_long_index_names_get_letters():
    alpha1, a1 = P.indices("alpha1 a1")
    assert specs(X[alpha1, a1] * v[a], (alpha1, a1, a)) == [(1, "bc,a->bca", ("X", "v"), ())]


def test_more_indices_than_letters():
    many = P.indices(" ".join(f"n{k}" for k in range(53)))
    expression = TensorExpr.scalar(1)
    for index in many:
        expression = expression * v[index]
    with pytest.raises(IndexClashError, match="53 indices"):
        expression.einsum(many)


@pytest.mark.parametrize("axes", [(), (a,), (a, a), (a, b, c), (a, c)])
def test_axes_must_be_the_free_indices(axes):
    for method in (K[a, b].einsum, lambda chosen: K[a, b].evaluate(ARRAYS, chosen)):
        with pytest.raises(IndexClashError, match="are not the free indices a, b"):
            method(axes)


# -- values -----------------------------------------------------------------------------------------------------------


def test_values_by_hand():
    k, w, u = ARRAYS["K"], ARRAYS["V"], ARRAYS["v"]
    agree(K[a, b], (b, a), k.T)
    agree(x**2 * K[a, b] - dt * v[a] * v[b] / 3, (a, b), 0.25 * k - 0.1 * np.outer(u, u), {"x": 0.5, "dt": 0.3})
    agree((V[a, b, c, d] * K[c, d]).sum(c, d), (a, b), np.tensordot(w, k, 2))
    agree(X[a, b] * V[a, a, c, d], (a, b, c, d), np.einsum("ab,aacd->abcd", ARRAYS["X"], w))
    agree(M[a, N.index("n")].sum(a), (N.index("n"),), ARRAYS["M"].sum(0))
    agree(X[1, b] * s[()], (b,), 1.7 * ARRAYS["X"][1])
    agree(TensorExpr.scalar(x) + s[()], (), 3.7, {"x": 2})
    agree(v[a] - v[a] + 0 * v[a], (a,), np.zeros(SIZE))


def test_complex_coefficients_and_arrays():
    value = (sympy.I * v[a]).evaluate(ARRAYS, (a,))
    np.testing.assert_allclose(value, 1j * ARRAYS["v"])
    np.testing.assert_allclose((sympy.I * v[a]).evaluate_by_loops(ARRAYS, (a,)), value)


def test_coefficients_are_exact_to_double_precision():
    value = (sympy.sqrt(2) * sympy.Rational(1, 3) * x * s[()]).evaluate({"s": 1.0}, (), {"x": 0.1})
    assert value == pytest.approx(2**0.5 / 3 * 0.1, rel=3e-16)


def test_images_of_heads_on_arrays():
    t = sympy.Symbol("t")
    tanh_X = X.map("tanh_X", sympy.Lambda(t, sympy.tanh(t)))
    agree((tanh_X[a, b] * v[b]).sum(b), (a,), np.tanh(ARRAYS["X"]) @ ARRAYS["v"])
    one = v.map("one", sympy.Lambda(t, sympy.Integer(1)))
    agree(one[a], (a,), np.ones(SIZE))


def test_missing_values_are_named():
    with pytest.raises(ArrayError, match=r"no array for the tensor K: given are X"):
        K[a, b].evaluate({"X": np.eye(2)}, (a, b))
    with pytest.raises(ArrayError, match="no value for symbol x"):
        (x * K[a, b]).evaluate(ARRAYS, (a, b))
    with pytest.raises(ArrayError, match="size of dimension P is unknown"):
        delta(a, b).evaluate({}, (a, b))
    with pytest.raises(CoefficientError, match="need a finite number"):
        (v[a] / x).evaluate(ARRAYS, (a,), {"x": 0.0})


@pytest.mark.parametrize("evaluate", ["evaluate", "evaluate_by_loops"])
def test_arrays_of_the_wrong_shape_or_symmetry(evaluate):
    def run(expression, axes, **arrays):
        return getattr(expression, evaluate)(arrays, axes)

    with pytest.raises(ArrayError, match=r"K has shape \(3,\): need 2 axes \(\(P, P\)\)"):
        run(K[a, b], (a, b), K=np.zeros(3))
    with pytest.raises(ArrayError, match=r"X has shape \(3, 2\): axis 1 of dimension P must have size 3"):
        run(X[a, b], (a, b), X=np.zeros((3, 2)))
    with pytest.raises(ArrayError, match=r"v has shape \(2,\): axis 0 of dimension P must have size 3"):
        run(X[a, b] * v[a], (a, b), X=np.zeros((3, 3)), v=np.zeros(2))
    with pytest.raises(ArrayError, match="axis 0 of dimension 4 must have size 4"):
        run(Tensor("q", (4,))[1], (), q=np.zeros(3))
    with pytest.raises(SymmetryError, match=r"array for K lacks the declared symmetry \(slots \(1, 0\)"):
        run(K[a, b], (a, b), K=np.array([[0.0, 1.0], [2.0, 0.0]]))
    with pytest.raises(SymmetryError, match="array for F lacks"):
        F = Tensor("F", (P, P), symmetry=SymmetryGroup.antisymmetric(2))
        run(F[a, b], (a, b), F=np.eye(2))
    with pytest.raises(ArrayError, match="component 5 of v: P is 3 here"):
        run(v[5], (), v=np.zeros(3))


def test_the_symmetry_check_can_be_turned_off():
    lopsided = {"K": np.array([[0.0, 1.0], [2.0, 0.0]])}
    np.testing.assert_array_equal(K[a, b].evaluate(lopsided, (a, b), check=False), lopsided["K"])
