"""Properties on random expressions: invariance and separation of the canonical form, agreement of the two routes."""

from __future__ import annotations

import random

import numpy as np
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from symtensor.tensor import Dimension, Factor, Index, SymmetryGroup, Tensor, TensorExpr, Term, delta

P = Dimension("P")
FREE = P.indices("a b")
SUMMED = P.indices("i p q r t")
SIZE = 3
x = sympy.Symbol("x")

HEADS = (
    Tensor("v", (P,)),
    Tensor("X", (P, P)),
    Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2)),
    Tensor("F", (P, P), symmetry=SymmetryGroup.antisymmetric(2)),
    Tensor("T", (P,) * 3, symmetry=SymmetryGroup.symmetric(3)),
    Tensor("V", (P,) * 4, symmetry=SymmetryGroup.pair_symmetric()),
    Tensor("R", (P,) * 4, symmetry=SymmetryGroup.product(SymmetryGroup.antisymmetric(2), SymmetryGroup.symmetric(2))),
)


def random_arrays(seed):
    rng = np.random.default_rng(seed)
    arrays = {}
    for head in HEADS:
        raw = rng.normal(size=(SIZE,) * head.rank)
        arrays[head.name] = sum(sign * np.transpose(raw, p) for p, sign in head.symmetry.elements)
    return arrays


ARRAYS = random_arrays(0)


@st.composite
def monomials(draw, free=FREE, deltas=True):
    """A random product of up to four components; free indices that it lacks are supplied by a vector."""
    count = draw(st.integers(1, 4))
    expression = TensorExpr.scalar(draw(st.sampled_from([1, -2, x, sympy.Rational(1, 3)])))
    slots = st.sampled_from([*free, *SUMMED, *SUMMED, *([0, 2] if deltas else [])])
    for _ in range(count):
        if deltas and draw(st.integers(0, 4)) == 0:
            expression = expression * delta(draw(slots), draw(slots))
        else:
            head = draw(st.sampled_from(HEADS))
            expression = expression * head[tuple(draw(slots) for _ in range(head.rank))]
    for index in free:
        if index not in expression.free:
            expression = expression * HEADS[0][index]
    return expression.sum(*(index for index in SUMMED if index in expression.free))


def loops(expression):
    return expression.evaluate_by_loops(ARRAYS, FREE, {"x": 0.7}, sizes={"P": SIZE}, check=False)


def scrambled(term, rng):
    """The same term written differently: factors shuffled, slots permuted by symmetries, summed indices renamed."""
    names = [P.index(f"z{k}") for k in range(len(term.summed))]
    rng.shuffle(names)
    renaming = dict(zip(term.summed, names))
    sign, factors = 1, []
    for factor in rng.sample(term.factors, len(term.factors)):
        permutation, element_sign = rng.choice(factor.tensor.symmetry.elements)
        sign *= element_sign
        slots = [factor.indices[k] for k in permutation]
        factors.append(Factor(factor.tensor, tuple(renaming.get(s, s) if isinstance(s, Index) else s for s in slots)))
    return Term(sign * term.coefficient, tuple(factors), tuple(names))


@settings(max_examples=60, deadline=None)
@given(monomials(), st.integers(0, 10**6))
def test_the_canonical_form_is_invariant_and_idempotent(expression, seed):
    form = expression.canonical()
    again = TensorExpr(form.terms, form.free).canonical()
    other = TensorExpr(tuple(scrambled(term, random.Random(seed)) for term in expression.terms), expression.free)
    assert again.terms == form.terms
    assert other.canonical().terms == form.terms
    assert hash(other) == hash(expression)
    assert form.free == expression.free == set(FREE)


@settings(max_examples=60, deadline=None)
@given(monomials())
def test_the_canonical_form_has_the_same_values(expression):
    np.testing.assert_allclose(loops(expression.canonical()), loops(expression), rtol=1e-10, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(monomials(), monomials())
def test_einsum_and_loops_agree_on_sums_and_products(left, right):
    total = left + 2 * right
    value = total.evaluate(ARRAYS, FREE, {"x": 0.7}, sizes={"P": SIZE})
    np.testing.assert_allclose(value, loops(total), rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(loops(total), loops(left) + 2 * loops(right), rtol=1e-10, atol=1e-8)
    both = (left * right).evaluate(ARRAYS, FREE, {"x": 0.7}, sizes={"P": SIZE})
    np.testing.assert_allclose(both, loops(left) * loops(right), rtol=1e-9, atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(monomials(), st.data())
def test_equality_is_equality_of_values(expression, data):
    """Both ways: equal expressions have equal values, and different ones differ on a random array."""
    term = expression.terms[0] if expression.terms else None
    if term is None:
        return
    slots = [slot for factor in term.factors for slot in factor.indices]
    shuffled = iter(data.draw(st.permutations(slots)))
    factors = tuple(Factor(f.tensor, tuple(next(shuffled) for _ in f.indices)) for f in term.factors)
    if any(f.tensor.is_delta and all(isinstance(s, int) for s in f.indices) for f in factors):
        return
    other = TensorExpr((Term(term.coefficient, factors, term.summed),), expression.free)
    difference = np.max(np.abs(loops(expression) - loops(other)))
    assert (expression == other) == bool(difference < 1e-9)


@settings(max_examples=40, deadline=None)
@given(monomials())
def test_contracting_deltas_keeps_free_indices_and_values(expression):
    contracted = expression.contract_deltas()
    assert contracted.free == expression.free
    assert all(not _removable(term) for term in contracted.terms)
    np.testing.assert_allclose(loops(contracted), loops(expression), rtol=1e-10, atol=1e-9)


def _removable(term):
    deltas = [factor for factor in term.factors if factor.tensor.is_delta]
    return any(slot in term.summed for factor in deltas for slot in factor.indices)


@settings(max_examples=30, deadline=None)
@given(monomials(), monomials(), monomials())
def test_ring_laws(one, two, three):
    assert one + two == two + one
    assert (one * two) * three == one * (three * two)
    assert (one + two) * three == one * three + two * three
    assert (one - one).is_zero


@settings(max_examples=30, deadline=None)
@given(monomials(free=P.indices("a b c d"), deltas=False))
def test_symmetrising_projects(expression):
    axes, group = P.indices("a b c d"), SymmetryGroup.pair_symmetric()
    projected = expression.symmetrise(group, axes).canonical()
    assert projected.has_symmetry(group, axes)
    assert projected.symmetrise(group, axes) == projected
    raw = expression.evaluate(ARRAYS, axes, {"x": 0.7}, sizes={"P": SIZE})
    expected = sum(sign * np.transpose(raw, p) for p, sign in group.elements) / group.order
    value = projected.evaluate(ARRAYS, axes, {"x": 0.7}, sizes={"P": SIZE})
    np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-8)


@settings(max_examples=30, deadline=None)
@given(monomials())
def test_replacing_a_head_is_replacing_its_array(expression):
    K, X = HEADS[2], HEADS[1]
    replaced = expression.replace(K, lambda p, q: (X[p, FREE[0]] * X[q, FREE[0]]).sum(FREE[0]) + x * delta(p, q))
    array = ARRAYS["X"] @ ARRAYS["X"].T + 0.7 * np.eye(SIZE)
    expected = expression.evaluate_by_loops({**ARRAYS, "K": array}, FREE, {"x": 0.7}, sizes={"P": SIZE})
    np.testing.assert_allclose(loops(replaced), expected, rtol=1e-9, atol=1e-7)
