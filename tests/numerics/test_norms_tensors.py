"""Three and more slots: certificates from both sides, and the facts N1, N2, N3, N6 to N9 on random tensors."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from symtensor.numerics._norm_dense import item_bytes, unfoldings
from symtensor.numerics._norm_power import alternating_batch
from symtensor.numerics.norms import NormInputError, NotExactError, block_norm, subordinate_norm

COMPLEX_GAP = np.zeros((2, 2, 2))
for _place in ((0, 0, 1), (0, 1, 0), (1, 0, 0)):
    COMPLEX_GAP[_place] = 0.5
COMPLEX_GAP[1, 1, 1] = -0.5


def form(tensor, vectors):
    """`T[v_1, .., v_r]` by plain NumPy."""
    for v in reversed(vectors):
        tensor = tensor @ v
    return tensor


def symmetrised(tensor, order):
    """Mean over the permutations of the last `order` axes."""
    first = tensor.ndim - order
    axes = [(*range(first), *(first + i for i in p)) for p in permutations(range(order))]
    return sum(np.transpose(tensor, a) for a in axes) / len(axes)


@pytest.fixture(scope="module")
def cubes():
    return np.random.default_rng(3).standard_normal((12, 2, 3, 4))


@pytest.fixture(scope="module")
def norms(cubes):
    return subordinate_norm(cubes, batch_dims=1)


def test_lower_bounds_find_the_maximum_of_small_tensors(cubes, norms):
    """Oracle: a grid over the circle of the first slot, an SVD for the other two."""
    angles = np.linspace(0, np.pi, 4001)
    circle = np.stack([np.cos(angles), np.sin(angles)], -1)
    for tensor, lower in zip(cubes, norms.lower):
        values = np.linalg.norm(np.einsum("ta,abc->tbc", circle, tensor), 2, axis=(1, 2))
        assert values.max() - 1e-9 <= lower <= values.max() * (1 + 1e-6)  # the grid misses at most its step squared


def test_the_vectors_certify_the_lower_bound(cubes, norms):
    for i, tensor in enumerate(cubes):
        vectors = [v[i] for v in norms.vectors]
        assert all(abs(np.linalg.norm(v) - 1) < 1e-13 for v in vectors)
        assert abs(form(tensor, vectors)) == pytest.approx(norms.lower[i], rel=1e-13)


def test_n6_the_chain_of_norms(cubes, norms):
    frobenius = np.sqrt((cubes**2).sum(axis=(1, 2, 3)))
    spectra = np.stack([np.linalg.norm(m, 2, axis=(1, 2)) for m in unfoldings(cubes, False)])
    assert spectra.shape == (3, 12)
    assert (np.abs(cubes).max(axis=(1, 2, 3)) <= norms.lower).all()
    assert (norms.lower <= spectra * (1 + 1e-12)).all() and (spectra <= frobenius).all()
    assert (frobenius <= np.sqrt(24 / 4) * norms.lower).all()
    assert np.allclose(norms.upper, spectra.min(axis=0), rtol=1e-10) and (norms.upper >= spectra.min(axis=0)).all()
    assert (norms.status == "bracket").all()
    with pytest.raises(NotExactError, match=r"<= norm <= .*status bracket"):
        _ = norms.value


def test_n6_is_sharp_for_quaternion_multiplication():
    table = np.zeros((4, 4, 4))
    rows = [[(0, 1), (1, 1), (2, 1), (3, 1)], [(1, 1), (0, -1), (3, 1), (2, -1)],
            [(2, 1), (3, -1), (0, -1), (1, 1)], [(3, 1), (2, 1), (1, -1), (0, -1)]]  # fmt: skip
    for i, row in enumerate(rows):
        for j, (k, sign) in enumerate(row):
            table[i, j, k] = sign
    norm = subordinate_norm(table)
    assert norm.lower == pytest.approx(1.0, rel=1e-12)
    assert np.linalg.norm(table) == pytest.approx(np.sqrt(64 / 4) * norm.lower)
    assert norm.upper == pytest.approx(2.0, rel=1e-9)


def test_n1_an_outer_product_is_exact():
    generator = np.random.default_rng(1)
    a, b = generator.standard_normal((3, 4)), generator.standard_normal((2, 5))
    norm = subordinate_norm(np.einsum("ij,kl->ijkl", a, b))
    assert norm.exact and norm.value == pytest.approx(np.linalg.norm(a, 2) * np.linalg.norm(b, 2), rel=1e-10)


def test_n2_one_contracted_pair_and_n3_two(cubes, norms):
    other = np.random.default_rng(2).standard_normal((12, 4, 4))
    product = subordinate_norm(np.einsum("zabc,zcd->zabd", cubes, other), batch_dims=1)
    assert (product.lower <= norms.lower * subordinate_norm(other, batch_dims=1).value * (1 + 1e-9)).all()
    eye = np.eye(6)
    both = float(np.einsum("ij,ij", eye, eye))
    assert both == 6 > np.linalg.norm(eye, 2) ** 2  # N3: N2 fails for two pairs
    assert both <= float(subordinate_norm(eye, "ab").value) ** 2 * (1 + 1e-12)  # the grouped norm is right


@pytest.mark.parametrize("order", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_n7_one_vector_is_enough_for_symmetric_tensors(order):
    tensors = symmetrised(np.random.default_rng(order).standard_normal((6, *(3,) * order)), order)
    one = subordinate_norm(tensors, batch_dims=1, symmetric=True, restarts=32)
    many = subordinate_norm(tensors, batch_dims=1, restarts=32)
    assert np.allclose(one.lower, many.lower, rtol=1e-8)
    for i in range(6):
        v = one.vectors[0][i]
        assert np.array_equal(v, one.vectors[-1][i])
        assert abs(form(tensors[i], [v] * order)) == pytest.approx(one.lower[i], rel=1e-12)
    assert (one.lower <= one.upper).all() and np.allclose(one.upper, many.upper, rtol=1e-9)


def test_even_symmetric_tensors_have_minima_too():
    v = np.array([3.0, 4.0]) / 5
    norm = subordinate_norm(-2 * np.einsum("i,j,k,l", v, v, v, v), symmetric=True)
    assert norm.lower == pytest.approx(2.0, rel=1e-9) and norm.exact


def test_n8_block_diagonal_tensors():
    generator = np.random.default_rng(5)
    vectors, matrices, cubes = (generator.standard_normal((4, *(3,) * r)) for r in (1, 2, 3))
    assert block_norm(vectors, 1).value == pytest.approx(np.linalg.norm(vectors), rel=1e-14)
    assembled = np.zeros((12, 12, 12))
    square = np.zeros((12, 12))
    for i in range(4):
        part = slice(3 * i, 3 * i + 3)
        square[part, part], assembled[part, part, part] = matrices[i], cubes[i]
    assert block_norm(matrices, 2).value == pytest.approx(np.linalg.norm(square, 2), rel=1e-10)
    assert block_norm([vectors[0], np.ones(2)], 1).value == pytest.approx(np.hypot(np.linalg.norm(vectors[0]), np.sqrt(2)))
    assert block_norm(matrices, 2, grouping="ab").value == pytest.approx(np.linalg.norm(square), rel=1e-12)
    blocks, whole = block_norm(cubes, 3), subordinate_norm(assembled, restarts=64)
    assert blocks.lower == pytest.approx(whole.lower, rel=1e-8)
    assert blocks.status == "bracket" and blocks.lower < blocks.upper <= whole.upper  # unfoldings of single blocks are tighter
    assert block_norm(np.stack([vectors, 2 * vectors]), 1).value.shape == (2,)


def test_n9_the_norm_is_the_real_one():
    """Real 1/2; the complex norm of the same tensor is 1/sqrt 2, which here is also the upper bound."""
    for symmetric in (False, True):
        norm = subordinate_norm(COMPLEX_GAP, symmetric=symmetric)
        assert norm.lower == pytest.approx(0.5, rel=1e-12)
        assert norm.upper == pytest.approx(np.sqrt(0.5), rel=1e-9) and norm.status == "bracket"
    with pytest.raises(NormInputError, match="N9"):
        subordinate_norm(COMPLEX_GAP.astype(complex))


def test_zero_and_scale(cubes, norms):
    zero = subordinate_norm(0 * cubes, batch_dims=1)
    assert (zero.lower == 0).all() and (zero.upper == 0).all() and zero.exact.all()
    large = subordinate_norm(1e250 * cubes, batch_dims=1)
    assert np.allclose(large.lower, 1e250 * norms.lower, rtol=1e-9) and np.allclose(large.upper, 1e250 * norms.upper)


@pytest.mark.slow
def test_predicted_memory_of_the_ascent():
    for shape in ((20, 20, 20),):
        starts = tuple(np.zeros((16, d)) for d in shape)
        compiled = alternating_batch.lower(np.zeros((1, *shape)), starts, lanes=1, tolerance=1e-10, sweeps=9).compile()
        analysis = compiled.memory_analysis()
        measured = analysis.temp_size_in_bytes + analysis.argument_size_in_bytes + analysis.output_size_in_bytes
        assert 0.5 < item_bytes(shape, 16) / measured < 2
