"""The canonical form: explicit cases, invariance, separation, and the amount of work it takes."""

from __future__ import annotations

import itertools
import random

import pytest
import sympy

from symtensor.tensor import Dimension, SymmetryGroup, Tensor, TensorExpr, canonical, delta

P, N = Dimension("P"), Dimension("N")
a, b, c, d = P.indices("a b c d")
p, q, r, t, u, w = P.indices("p q r t u w")
K = Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2))
X = Tensor("X", (P, P))
F = Tensor("F", (P, P), symmetry=SymmetryGroup.antisymmetric(2))
V = Tensor("V", (P,) * 4, symmetry=SymmetryGroup.pair_symmetric())
W = Tensor("W", (P,) * 4, symmetry=SymmetryGroup.pair_symmetric())
v = Tensor("v", (P,))
eps = Tensor("eps", (P,) * 3, symmetry=SymmetryGroup.antisymmetric(3))


def product(factors):
    result = TensorExpr.scalar(1)
    for factor in factors:
        result = result * factor
    return result


def test_explicit_canonical_forms():
    assert str((X[b, p] * K[p, a]).sum(p).canonical()) == "(K[a, i]*X[b, i]).sum(i)"
    assert str((V[d, c, b, a] + V[a, b, c, d]).canonical()) == "2*V[a, b, c, d]"
    assert str((V[p, c, q, a] * K[q, p]).sum(p, q).canonical()) == "(K[i, j]*V[a, i, c, j]).sum(i, j)"
    assert str(K[1, 0].canonical()) == "K[0, 1]"


def test_summed_names_avoid_free_ones():
    i, j = P.indices("i j")
    form = (X[i, p] * X[p, q] * X[q, j]).sum(p, q).canonical()
    assert str(form) == "(X[i, k]*X[k, l]*X[l, j]).sum(k, l)"


def test_names_beyond_the_alphabet():
    chain = [P.index(f"n{k}") for k in range(31)]
    form = product(X[chain[k], chain[k + 1]] for k in range(30)).sum(*chain[1:-1]).canonical()
    assert len({index.name for index in form.terms[0].summed}) == 29
    assert form == form.canonical()


def test_slot_symmetries_do_not_identify_too_much():
    assert V[a, b, c, d] != V[a, c, b, d]
    assert X[a, b] != X[b, a]
    assert (X[a, p] * X[p, b]).sum(p) != (X[a, p] * X[b, p]).sum(p)
    assert (V[p, p, q, q]).sum(p, q) != (V[p, q, p, q]).sum(p, q)
    assert (K[p, q] * K[p, q]).sum(p, q) != (K[p, p] * K[q, q]).sum(p, q)
    # the same degrees everywhere: one hexagon against two triangles (field case networkx #7593)
    ring = product(K[s, s2] for s, s2 in itertools.pairwise([p, q, r, t, u, w, p])).sum(p, q, r, t, u, w)
    triangle = (K[p, q] * K[q, r] * K[r, p]).sum(p, q, r)
    assert ring != triangle * triangle


def test_antisymmetry():
    assert F[a, b] == -F[b, a]
    assert F[a, a].is_zero
    assert (F[p, q] * K[p, q]).sum(p, q).is_zero
    assert (F[p, q] * v[p] * v[q]).sum(p, q).is_zero
    assert not (F[p, q] * F[p, q]).sum(p, q).is_zero
    assert (F[p, q] * F[q, r] * F[r, p]).sum(p, q, r).is_zero  # trace of an odd power
    assert not (F[a, p] * F[p, q] * F[q, b]).sum(p, q).is_zero
    assert (eps[a, p, q] * eps[b, p, q]).sum(p, q) == (eps[p, q, b] * eps[p, q, a]).sum(p, q)
    assert eps[0, 1, 2] == -eps[1, 0, 2]


def test_deltas_are_part_of_the_form():
    assert (delta(a, p) * v[p]).sum(p) == v[a]
    assert delta(a, b) * v[a] == delta(b, a) * v[b] != v[a] * delta(a, c).sum(c)
    assert delta(a, b) * delta(b, c) == delta(a, c) * delta(c, b)
    assert delta(p, q).sum(p, q) == P.symbol
    assert delta(a, 0) * v[a] == delta(0, a) * v[0]


def test_high_symmetry_terminates():
    """Vacuum graphs with large automorphism groups; the form is unchanged by relabelling the vertices."""
    T = Tensor("T", (P,) * 3, symmetry=SymmetryGroup.symmetric(3))
    edges = [
        (0, 1),
        (1, 2),
        (2, 3),
        (3, 4),
        (4, 0),
        (5, 7),
        (7, 9),
        (9, 6),
        (6, 8),
        (8, 5),
        *((k, k + 5) for k in range(5)),
    ]
    forms = set()
    for seed in range(2):
        label = list(range(10))
        random.Random(seed).shuffle(label)
        lines = {frozenset(edge): P.index(f"e{label[edge[0]]}_{label[edge[1]]}") for edge in edges}
        vertices = [T[tuple(line for edge, line in lines.items() if k in edge)] for k in range(10)]
        forms.add(str(product(vertices).sum(*lines.values()).canonical()))
    assert len(forms) == 1
    T6 = Tensor("T6", (P,) * 6, symmetry=SymmetryGroup.symmetric(6))
    spokes = [P.index(f"s{k}") for k in range(6)]
    star = (T6[tuple(spokes)] * product(v[spoke] for spoke in spokes)).sum(*spokes)
    assert str(star.canonical()) == "(T6[i, j, k, l, m, p]*v[i]*v[j]*v[k]*v[l]*v[m]*v[p]).sum(i, j, k, l, m, p)"


def random_pair_tensor_sum(count, seed):
    rng = random.Random(seed)
    terms = []
    for _ in range(count):
        slots = [a, b, c, d, p, p, q, q, r, r]
        rng.shuffle(slots)
        terms.append((V[tuple(slots[:4])] * W[tuple(slots[4:8])] * K[tuple(slots[8:])]).sum(p, q, r))
    return terms


@pytest.fixture
def images(monkeypatch):
    """Counts the candidate images that the search for canonical forms looks at."""
    seen = []
    original = canonical._numbered_image

    def counted(*arguments):
        seen.append(1)
        return original(*arguments)

    monkeypatch.setattr(canonical, "_numbered_image", counted)
    return seen


def test_a_large_sum_takes_little_work(images):
    """200 terms of two pair-symmetric tensors: about a hundred candidate images per term, so 0.1 s."""
    expression = sum(random_pair_tensor_sum(200, seed=1), TensorExpr.zero(a, b, c, d))
    form = expression.canonical()
    assert 20 < len(form.terms) < 200
    assert len(images) < 200 * 150
    assert sum(term.coefficient for term in form.terms) == 200


def test_equivalent_prefixes_are_merged(images):
    """A star of degree 7 has 7! equally good orders of its ends; without merging each would cost 7! images more."""
    star = Tensor("Y", (P,) * 7, symmetry=SymmetryGroup.symmetric(7))
    ends = [P.index(f"s{k}") for k in range(7)]
    assert len((star[tuple(ends)] * product(v[end] for end in ends)).sum(*ends).canonical().terms) == 1
    assert len(images) < 60_000


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_terms_does_not_matter(seed):
    terms = random_pair_tensor_sum(30, seed)
    shuffled = random.Random(seed).sample(terms, len(terms))
    forward = sum(terms, TensorExpr.zero(a, b, c, d)).canonical()
    assert forward.terms == sum(shuffled, TensorExpr.zero(a, b, c, d)).canonical().terms
    assert str(forward) == str(forward.canonical())


def test_different_dimensions_do_not_mix():
    Y = Tensor("Y", (N, N))
    i, j = N.indices("i j")
    assert (X[p, q] * Y[i, j]).sum(p, q, i, j) == (Y[j, i] * X[q, p]).sum(p, q, i, j)
    assert {index.dimension for index in (X[p, q] * Y[i, j]).sum(p, q, i, j).canonical().terms[0].summed} == {P, N}


def test_coefficients_are_collected():
    x = sympy.Symbol("x")
    form = (x * K[a, b] + (1 - x) * K[b, a] + 2 * v[a] * v[b] - v[b] * 2 * v[a]).canonical()
    assert form.terms == K[a, b].terms
