"""Indices, dimensions, symmetry groups and heads: what is accepted, and the named error for what is not."""

from __future__ import annotations

import itertools
import math

import pytest
import sympy

from symtensor.tensor import (
    CoefficientError,
    Dimension,
    Index,
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
a, b, c, d = P.indices("a b c d")
i, j = N.indices("i, j")
K = Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2))


def test_indices_are_values():
    assert P.indices("a b") == (Index("a", P), Index("b", P)) == (P.index("a"), P.index("b"))
    assert Index("a", P) != Index("a", N)
    assert Dimension("P") == P
    assert P.symbol.is_positive and P.symbol.is_integer
    with pytest.raises(AttributeError):
        a.name = "b"


@pytest.mark.parametrize("name", ["", "1a", "a b", "a.b", None, 3, "a-1"])
def test_names_must_be_identifiers(name):
    with pytest.raises(IndexTypeError, match="identifier"):
        Index(name, P)
    with pytest.raises(IndexTypeError, match="identifier"):
        Dimension(name)
    with pytest.raises(IndexTypeError, match="identifier"):
        Tensor(name, (P,))


@pytest.mark.parametrize("dimension", [0, -1, True, 2.0, "P", None])
def test_dimensions_are_dimensions_or_positive_integers(dimension):
    with pytest.raises(IndexTypeError, match=r"index 'a'.*positive integer"):
        Index("a", dimension)
    with pytest.raises(IndexTypeError, match=r"tensor X.*positive integer"):
        Tensor("X", (dimension,))


def test_a_name_given_twice_is_refused():
    with pytest.raises(IndexClashError, match="'a' is named twice"):
        P.indices("a b a")


@pytest.mark.parametrize("degree", range(6))
def test_symmetric_groups_have_all_permutations(degree):
    group = SymmetryGroup.symmetric(degree)
    assert [p for p, _ in group.elements] == sorted(itertools.permutations(range(degree)))
    assert all(sign == 1 for _, sign in group.elements)


@pytest.mark.parametrize("degree", range(1, 6))
def test_signs_of_the_antisymmetric_group_are_determinants(degree):
    group = SymmetryGroup.antisymmetric(degree)
    assert group.order == math.factorial(degree)
    for permutation, sign in group.elements:
        assert sympy.eye(degree)[list(permutation), :].det() == sign


def test_pair_symmetric_group():
    group = SymmetryGroup.pair_symmetric()
    pairings = [{frozenset(p[:2]), frozenset(p[2:])} for p, _ in group.elements]
    assert group.order == 8
    assert all(pairing == {frozenset({0, 1}), frozenset({2, 3})} for pairing in pairings)
    assert [SymmetryGroup.pair_symmetric(pairs).order for pairs in (1, 2, 3, 4)] == [2, 8, 48, 384]


def test_groups_are_closed_and_compared_by_elements():
    group = SymmetryGroup.pair_symmetric(3)
    signs = dict(group.elements)
    for p, q in itertools.islice(itertools.product(signs, signs), 0, None, 7):
        assert signs[tuple(p[k] for k in q)] == signs[p] * signs[q]
    other = SymmetryGroup.generate(3, [((1, 2, 0), 1), ((1, 0, 2), 1)])
    assert other == SymmetryGroup.symmetric(3) and hash(other) == hash(SymmetryGroup.symmetric(3))
    assert SymmetryGroup.symmetric(2) != SymmetryGroup.antisymmetric(2)


def test_product_of_groups():
    group = SymmetryGroup.product(SymmetryGroup.symmetric(2), SymmetryGroup.trivial(1), SymmetryGroup.antisymmetric(2))
    assert group.degree == 5
    assert dict(group.elements)[1, 0, 2, 4, 3] == -1
    assert group.order == 4


@pytest.mark.parametrize(
    ("degree", "generators", "message"),
    [
        (2, [((0, 0), 1)], "no signed permutation"),
        (2, [((1, 0, 2), 1)], "no signed permutation"),
        (2, [((1, 0), 2)], "no signed permutation"),
        (2, [((0, 1), -1)], "both signs"),
        (2, [((1, 0), 1), ((1, 0), -1)], "both signs"),
        (3, [((1, 2, 0), -1)], "both signs"),
    ],
)
def test_impossible_groups_are_refused(degree, generators, message):
    with pytest.raises(SymmetryError, match=message):
        SymmetryGroup.generate(degree, generators)


def test_groups_too_large_to_list_are_refused():
    with pytest.raises(SymmetryError, match="more than 5040"):
        SymmetryGroup.symmetric(8)


def test_elements_and_generators_have_to_agree():
    with pytest.raises(SymmetryError, match=r"SymmetryGroup\.generate"):
        SymmetryGroup(2, (((0, 1), 1),), (((1, 0), 1),))


def test_group_that_does_not_fit_its_tensor():
    with pytest.raises(SymmetryError, match=r"tensor V has 4 slots.*2 slots"):
        Tensor("V", (P,) * 4, symmetry=SymmetryGroup.symmetric(2))
    with pytest.raises(SymmetryError, match="symmetry of X exchanges slot 0 of dimension P with slot 1 of dimension N"):
        Tensor("X", (P, N), symmetry=SymmetryGroup.symmetric(2))
    with pytest.raises(SymmetryError, match="tensor V"):
        Tensor("V", (P,), symmetry="symmetric")


@pytest.mark.parametrize(
    ("component", "message"),
    [
        (lambda: K[a], r"K has 2 slots, got 1 indices: \[a\]"),
        (lambda: K[a, b, c], "K has 2 slots, got 3"),
        (lambda: K[a, i], "index i of dimension N in slot 1 of K, which has dimension P"),
        (lambda: K[a, -1], "component -1 in slot 1 of K"),
        (lambda: K[a, "b"], "'b' in slot 1 of K"),
        (lambda: K[a, True], "True in slot 1 of K"),
        (lambda: Tensor("x", (3,))[3], r"component 3 in slot 0 of x: outside 0\.\.3-1"),
        (lambda: Tensor("s", ())[a], "s has 0 slots"),
        (lambda: delta(a, i), "index i of dimension N in slot 1 of delta_P"),
        (lambda: delta("a", "b"), "delta of 'a' and 'b'"),
        (lambda: delta(Index("q", 2), 2), "component 2"),
    ],
)
def test_indices_that_do_not_fit_their_slot(component, message):
    with pytest.raises(IndexTypeError, match=message):
        component()


def test_errors_are_value_errors():
    for error in (IndexClashError, IndexTypeError, SymmetryError, CoefficientError):
        assert issubclass(error, TensorError) and issubclass(error, ValueError)


def test_heads_that_differ_in_typesetting_only_are_equal():
    assert Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2), latex="K_0") == K
    assert Tensor("K", (P, P)) != K


def test_scalar_heads():
    s = Tensor("s", ())
    assert s[()].free == frozenset()
    assert (s[()] * K[a, b]).free == {a, b}


def test_images_of_heads():
    t = sympy.Symbol("t")
    x = Tensor("x", (P, P), symmetry=SymmetryGroup.symmetric(2))
    square = x.map("square_x", sympy.Lambda(t, t**2))
    assert square.symmetry == x.symmetry
    assert square[a, b] == square[b, a] != x[a, b]
    with pytest.raises(IndexTypeError, match="Lambda of one argument"):
        x.map("bad", t**2)  # type: ignore[arg-type]
    with pytest.raises(IndexTypeError, match="Lambda of one argument"):
        x.map("bad", sympy.Lambda(t, t * sympy.Symbol("u")))
    with pytest.raises(SymmetryError, match="antisymmetric"):
        Tensor("A", (P, P), symmetry=SymmetryGroup.antisymmetric(2)).map("bad", sympy.Lambda(t, t**2))


def test_one_name_for_two_indices_is_refused():
    mixed = Tensor("M", (P, N))
    with pytest.raises(IndexClashError, match="index a occurs with dimension N and with dimension P"):
        mixed[a, N.index("a")]
    with pytest.raises(IndexClashError, match="index a occurs"):
        K[a, b] * Tensor("x", (N,))[N.index("a")]


def test_expressions_check_their_terms():
    with pytest.raises(IndexClashError, match="index b, d is in only one"):
        TensorExpr(K[a, b].terms, frozenset({a, d}))
