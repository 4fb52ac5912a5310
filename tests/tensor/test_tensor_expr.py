"""Arithmetic, renaming, substitution, replacement, symmetries and display of tensor expressions."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
import sympy

from symtensor.tensor import (
    CoefficientError,
    Dimension,
    IndexClashError,
    IndexTypeError,
    SymmetryError,
    SymmetryGroup,
    Tensor,
    TensorError,
    TensorExpr,
    delta,
)

P, N = Dimension("P"), Dimension("N")
a, b, c, d, e = P.indices("a b c d e")
i = N.index("i")
PAIRS = SymmetryGroup.pair_symmetric()
K = Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2), latex="K_0")
Q = Tensor("Q", (P, P), symmetry=SymmetryGroup.symmetric(2))
V = Tensor("V", (P,) * 4, symmetry=PAIRS)
X = Tensor("X", (P, P))
v = Tensor("v", (P,))
s = Tensor("s", ())
alpha, dt, x = sympy.symbols("alpha dt x")


def test_vector_space_axioms():
    left, right, third = X[a, b], 2 * K[a, b], dt * Q[a, b]
    assert left + right == right + left
    assert (left + right) + third == left + (right + third)
    assert alpha * (left + right) == alpha * left + right * alpha
    assert left - left == TensorExpr.zero(a, b)
    assert -1 * (-left) == +left == left
    assert (left / 2) * 2 == left
    assert sum([left, right, third]) == left + right + third
    assert 0 * left == TensorExpr.zero(a, b)


def test_products_distribute_commute_and_associate():
    one, two, three = X[a, b] + K[a, b], v[c] - 2 * v[c], s[()]
    assert one * two == two * one == X[a, b] * two + K[a, b] * two
    assert (one * two) * three == one * (two * three)


@pytest.mark.parametrize(
    "number", [2, Fraction(1, 2), 0.5, np.float64(0.5), np.int64(3), sympy.Rational(1, 3), alpha, alpha / dt]
)
def test_scalars_of_every_kind_multiply_from_both_sides(number):
    assert number * K[a, b] == K[a, b] * number
    assert (number * K[a, b]).terms[0].coefficient == sympy.sympify(number)
    assert number * K[a, b] == sympy.nsimplify(number) * K[a, b]
    assert (K[a, b] / number) * number == K[a, b]


def test_a_repeated_free_index_is_not_summed():
    expression = X[a, b] * V[a, a, c, d]
    assert expression.free == {a, b, c, d}
    assert expression.terms[0].summed == ()
    assert K[a, a].free == {a}
    assert K[a, a].sum(a).free == frozenset()


def test_adding_needs_the_same_free_indices():
    with pytest.raises(IndexClashError, match="index c, d is in only one of them"):
        K[a, b] + K[c, d] * v[a] * v[b]
    with pytest.raises(IndexClashError, match="free indices a, b and none"):
        K[a, b] + 1
    with pytest.raises(IndexClashError, match="index c is in only one"):
        TensorExpr.zero(a) - K[a, c]


def test_summing_needs_a_free_index():
    with pytest.raises(IndexClashError, match="cannot sum over c: the free indices are a, b"):
        K[a, b].sum(c)
    with pytest.raises(IndexClashError, match="cannot sum over a"):
        K[a, b].sum(a).sum(a)
    with pytest.raises(IndexClashError, match="cannot sum over a"):
        K[a, b].sum(a, a)
    assert TensorExpr.zero(a, b).sum(b) == TensorExpr.zero(a)


@pytest.mark.parametrize("value", ["x", None, [1], (1,), np.eye(2), True, sympy.true])
def test_what_is_no_scalar_is_refused(value):
    with pytest.raises((TypeError, ValueError)):
        value * K[a, b]
    with pytest.raises(TypeError):
        K[a, b] * value
    with pytest.raises(TypeError):
        K[a, b] + value
    with pytest.raises(CoefficientError):
        TensorExpr.scalar(value)


def test_only_scalars_divide_and_nothing_is_a_power():
    with pytest.raises(TypeError):
        K[a, b] / K[a, b]
    with pytest.raises(TypeError):
        K[a, b] ** 2  # type: ignore[operator]


def test_strings_are_never_evaluated():
    with pytest.raises(CoefficientError, match="__import__"):
        TensorExpr.scalar("__import__('os').getcwd()")
    with pytest.raises(CoefficientError):
        (x * K[a, b]).subs({x: "1/0"})


def test_non_commuting_and_infinite_coefficients_are_refused_by_name():
    A, B = sympy.symbols("A B", commutative=False)
    with pytest.raises(CoefficientError, match="non-commuting A, B"):
        A * B * K[a, b]
    with pytest.raises(CoefficientError, match="non-commuting Matrix"):
        K[a, b] * sympy.eye(2)
    for value in (sympy.nan, sympy.oo, sympy.zoo, float("nan"), float("inf")):
        with pytest.raises(CoefficientError, match="not finite"):
            value * K[a, b]
    with pytest.raises(CoefficientError, match="not finite"):
        K[a, b] / 0


def test_summed_indices_are_kept_apart_in_products():
    trace = K[a, a].sum(a)
    product = trace * trace * K[a, b]
    assert product == (K[c, c] * K[d, d] * K[a, b]).sum(c, d)
    assert (v[a] * v[b]).sum(b) * v[b] == v[a] * v[b] * v[c].sum(c)


def test_rename_is_simultaneous_and_avoids_summed_indices():
    assert X[a, b].rename({a: b, b: a}) == X[b, a] != X[a, b]
    product = (X[a, c] * X[c, b]).sum(c)
    assert product.rename({a: c}) == (X[c, d] * X[d, b]).sum(d)
    assert product.rename({b: a}) == (X[a, c] * X[c, a]).sum(c)
    assert product.rename({b: a}).free == {a}
    assert X[a, b].rename({a: 0}) == X[0, b]
    assert TensorExpr.zero(a, b).rename({a: c}).free == {b, c}


@pytest.mark.parametrize(
    ("mapping", "error", "message"),
    [
        ({c: a}, IndexClashError, "cannot rename c: the free indices are a, b"),
        ({a: i}, IndexTypeError, "cannot rename a of dimension P to i of dimension N"),
        ({a: -1}, IndexTypeError, "cannot rename a of dimension P to -1"),
        ({a: "b"}, IndexTypeError, "cannot rename a"),
    ],
)
def test_rename_errors(mapping, error, message):
    with pytest.raises(error, match=message):
        X[a, b].rename(mapping)


def test_subs_and_coefficients_of_powers():
    expression = (1 + x) ** 3 * K[a, b] + x * Q[a, b]
    assert expression.subs({x: 1}) == 8 * K[a, b] + Q[a, b]
    assert (x * K[a, b] + dt * Q[a, b]).subs({x: dt, dt: x}) == dt * K[a, b] + x * Q[a, b]
    assert expression.coeff(x, 1) == 3 * K[a, b] + Q[a, b]
    assert expression.coeff(x, 7) == TensorExpr.zero(a, b)
    assert sum((x**k * expression.coeff(x, k) for k in range(4)), TensorExpr.zero(a, b)) == expression
    with pytest.raises(CoefficientError, match="not polynomial in x"):
        (sympy.exp(x) * K[a, b]).coeff(x, 1)
    with pytest.raises(CoefficientError, match="need a SymPy symbol"):
        K[a, b].coeff("x", 1)
    with pytest.raises(CoefficientError, match="cannot substitute"):
        K[a, b].subs({"x": 1})


def test_replace_keeps_summed_indices_apart_and_handles_diagonals():
    def square(p, q):
        return (X[p, c] * X[q, c]).sum(c)

    assert (K[a, b] * v[c]).replace(K, square) == (X[a, d] * X[b, d]).sum(d) * v[c]
    assert (K[a, b] * K[c, d]).replace(K, square) == square(a, b) * (X[c, e] * X[d, e]).sum(e)
    assert (K[c, d] * v[c]).sum(c).replace(K, square) == (X[a, e] * X[d, e] * v[a]).sum(a, e)
    assert K[c, c].replace(K, square) == (X[c, e] * X[c, e]).sum(e)
    assert K[a, a].sum(a).replace(K, square) == (X[a, b] * X[a, b]).sum(a, b)
    assert K[0, b].replace(K, square) == (X[0, d] * X[b, d]).sum(d)
    assert K[a, b].replace(K, lambda p, q: Q[p, q] + delta(p, q)) == Q[a, b] + delta(a, b)
    assert (s[()] * v[a]).replace(s, lambda: 3) == 3 * v[a]
    assert v[a].replace(K, square) == v[a]
    with pytest.raises(IndexClashError, match=r"replacement of K\[_0, _1\].*indices _0: need _0, _1"):
        K[a, b].replace(K, lambda p, q: v[p])


def test_symmetrise_is_a_projection():
    group = SymmetryGroup.pair_symmetric()
    start = K[a, c] * Q[b, d]
    projected = start.symmetrise(group, (a, b, c, d))
    expected = K[a, c] * Q[b, d] + K[a, d] * Q[b, c] + K[b, c] * Q[a, d] + K[b, d] * Q[a, c]
    assert projected == expected / 4
    assert projected.symmetrise(group, (a, b, c, d)) == projected
    assert projected.has_symmetry(group, (a, b, c, d))
    assert not start.has_symmetry(group, (a, b, c, d))
    assert X[a, b].symmetrise(SymmetryGroup.antisymmetric(2), (a, b)) == (X[a, b] - X[b, a]) / 2
    assert K[a, b].symmetrise(SymmetryGroup.antisymmetric(2), (a, b)).is_zero
    with pytest.raises(SymmetryError, match="cannot act on the axes a, b, c"):
        X[a, b].symmetrise(SymmetryGroup.symmetric(2), (a, b, c))
    with pytest.raises(IndexClashError, match="cannot rename c"):
        X[a, b].has_symmetry(SymmetryGroup.symmetric(2), (a, c))


def test_zero_is_a_tensor():
    zero = X[a, b] - X[a, b]
    assert zero.is_zero and zero == 0 and zero.free == {a, b}
    assert hash(zero) == hash(0)
    assert (0.5 * X[a, b] - X[a, b] / 2).is_zero and (0.0 * X[a, b]).terms == ()
    assert str(zero.canonical()) == "0" == zero.canonical().latex()
    assert zero * v[c] == TensorExpr.zero(a, b, c)
    assert zero + X[a, b] == X[a, b]


def test_equality_with_numbers_and_hashes():
    two = TensorExpr.scalar(2)
    assert two == 2 and hash(two) == hash(2) and two != 3
    assert K[a, b] != 2 and K[a, b] != "K" and K[a, b] is not None
    assert TensorExpr.scalar((x + 1) ** 2) == x**2 + 2 * x + 1
    assert len({K[a, b], K[b, a], (2 * K[a, b]) / 2, Q[a, b]}) == 2
    assert X[a, b] != X[c, d]
    with pytest.raises(TensorError, match="truth value"):
        bool(K[a, b])


def test_coefficients_are_compared_as_rational_functions():
    assert K[a, b] / (1 + x) + x * K[a, b] / (1 + x) == K[a, b]
    assert ((x**2 - 1) / (x - 1) * K[a, b] - (x + 1) * K[a, b]).is_zero
    assert (1 / (x * dt) - 1 / (dt * x)) * K[a, b] == 0
    assert sympy.exp(x) * K[a, b] * sympy.exp(-x) == K[a, b]


def test_heads_and_clashing_names():
    assert (K[a, b] * Q[a, b] + delta(a, b)).heads == (K, Q)
    with pytest.raises(SymmetryError, match="have the name K"):
        _ = (K[a, b] + Tensor("K", (P, P))[a, b]).heads


def test_values_are_immutable_and_pickle():
    expression = (alpha * X[a, c] * K[c, b]).sum(c)
    with pytest.raises(AttributeError):
        expression.terms = ()
    copy = pickle.loads(pickle.dumps(expression))
    assert copy == expression and hash(copy) == hash(expression)


def test_text_reads_back():
    names = {
        "K": K,
        "X": X,
        "v": v,
        "s": s,
        "delta": delta,
        "alpha": alpha,
        "dt": dt,
        "x": x,
        "a": a,
        "b": b,
        "i": P.index("i"),
    }
    expression = (
        -(X[a, c] * X[c, b]).sum(c)
        + (1 + x) * K[a, b]
        - dt / 2 * v[a] * v[b] * s[()]
        + delta(a, b)
        + alpha * X[0, b] * v[a]
    ).canonical()
    assert "alpha*X[0, b]*v[a]" in str(expression) and "- (X[a, i]*X[i, b]).sum(i)" in str(expression)
    assert eval(str(expression), {}, names) == expression
    assert repr(K[a, b]) == "TensorExpr(K[a, b])"
    assert str(TensorExpr.scalar(1)) == "1"
    assert str(-x * TensorExpr.scalar(1)) == "-x"


def test_latex():
    expression = alpha**2 * K[a, b] - (dt + 1) * (Q[a, c] * V[c, b, d, d]).sum(c, d) + delta(a, b) / 2
    assert expression.latex() == (
        r"\alpha^{2} {K_0}_{ab} - \left(dt + 1\right) \sum_{c,d} {Q}_{ac} {V}_{cbdd} + \frac{1}{2} {\delta}_{ab}"
    )
    assert expression._repr_latex_() == f"$\\displaystyle {expression.latex()}$"
    assert (s[()] * X[P.index("i1"), 0]).latex() == "{s} {X}_{i_{1},0}"
    assert Tensor("K_1", (P,))[a].latex() == "{K_{1}}_{a}"


def test_map_coefficients_drops_zeros():
    expression = x * K[a, b] + Q[a, b]
    assert expression.map_coefficients(lambda value: value.subs(x, 0)).terms == Q[a, b].terms
