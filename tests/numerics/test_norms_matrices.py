"""Two blocks: the largest singular value with a residual, SVD as the oracle; one block and scalars in closed form."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from symtensor.numerics._norm_dense import CYCLES, item_bytes, starting_vectors
from symtensor.numerics._norm_lanczos import basis_size, below, singular_batch
from symtensor.numerics.norms import MemoryCapError, NotExactError, spectral_norm, subordinate_norm


@pytest.fixture(scope="module")
def generator():
    return np.random.default_rng(7)


def test_batches_of_every_shape_agree_with_the_svd(generator):
    for shape in ((3, 4, 70, 40), (6, 2, 4)):
        batch = len(shape) - 2
        matrices = generator.standard_normal(shape)
        norm = subordinate_norm(matrices, batch_dims=batch, certify=True)
        oracle = np.linalg.norm(matrices, 2, axis=(-2, -1))
        assert (norm.status == "exact").all() and norm.value.shape == shape[:batch]
        assert np.allclose(norm.lower, oracle, rtol=1e-12, atol=0)
        assert (oracle <= norm.upper).all() and (norm.upper <= oracle * (1 + 1e-10)).all()
        assert (norm.residual <= 1e-10 * norm.lower).all()
        u, v = norm.vectors
        assert np.allclose(np.linalg.norm(u, axis=-1), 1, atol=1e-13) and np.allclose(np.linalg.norm(v, axis=-1), 1, atol=1e-13)
        assert np.allclose(np.einsum("...i,...ij,...j", u, matrices, v), norm.lower, rtol=1e-13)
        gap = np.einsum("...i,...ij->...j", u, matrices) - norm.lower[..., None] * v
        assert np.allclose(np.linalg.norm(gap, axis=-1), norm.residual, atol=1e-12)


@pytest.mark.parametrize(
    ("matrix", "value"),
    [
        (np.zeros((40, 40)), 0.0),
        (np.eye(40), 1.0),
        (np.ones((40, 40)), 40.0),
        (1e200 * np.eye(40), 1e200),
        (1e-300 * np.ones((40, 40)), 4e-299),
        (np.kron(np.eye(4), np.ones((10, 10))), 10.0),  # a degenerate leading value
        (np.diag([1.0, 1.0 - 1e-9] + [0.5] * 38), 1.0),
    ],
)
def test_special_matrices(matrix, value):
    norm = subordinate_norm(matrix, certify=True)
    assert norm.status == "exact" and norm.value == pytest.approx(value, rel=1e-10)


def test_a_start_that_misses_the_leading_vector_is_not_believed():
    """Begin inside an invariant subspace: the iteration goes on outside it, and the proof refuses too small a bound."""
    matrix = np.diag(np.r_[3.0, 2.0, np.linspace(1.9, 0.1, 38)])[None]
    _, spare = starting_vectors(40, basis_size(40), 0)
    out = singular_batch(matrix, np.eye(40)[1], spare, lanes=1, tolerance=1e-10, cycles=CYCLES)
    assert float(out.value[0]) == pytest.approx(3.0, rel=1e-12)
    assert not np.asarray(below(matrix, jnp.array([2.0 * (1 + 1e-10)]), lanes=1))[0]
    assert not np.asarray(below(matrix, jnp.array([3.0 * (1 - 1e-10)]), lanes=1))[0]
    assert np.asarray(below(matrix, jnp.array([3.0 * (1 + 1e-10)]), lanes=1))[0]


def test_groupings_of_a_tensor_are_matrices(generator):
    tensor = generator.standard_normal((6, 2, 2, 2))
    whole = subordinate_norm(tensor, "abc", batch_dims=1)
    assert np.allclose(whole.value, np.sqrt((tensor**2).sum(axis=(1, 2, 3))), rtol=1e-14) and whole.exact.all()
    for text, numbers, unfolding in (
        ("ab|c", ((0, 1), (2,)), tensor.reshape(6, 4, 2)),
        ("b | ca", ((1,), (2, 0)), tensor.transpose(0, 2, 3, 1).reshape(6, 2, 4)),
    ):
        one, other = (subordinate_norm(tensor, grouping, batch_dims=1) for grouping in (text, numbers))
        assert np.array_equal(one.value, other.value)
        assert np.allclose(one.value, np.linalg.norm(unfolding, 2, axis=(1, 2)), rtol=1e-12)
        assert (one.value <= whole.value).all()  # the coarser grouping is the larger norm


def test_scalars_vectors_and_slots_of_one_dimension(generator):
    assert subordinate_norm(-3.5).value == 3.5 and subordinate_norm(-3.5).vectors == ()
    vector = subordinate_norm(np.array([3e200, -4e200]))
    assert vector.value == pytest.approx(5e200) and vector.status == "exact"
    matrix = generator.standard_normal((40, 40))
    padded = subordinate_norm(matrix.reshape(40, 1, 40, 1))
    assert padded.exact and padded.value == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-12)
    assert [v.shape for v in padded.vectors] == [(40,), (1,), (40,), (1,)]
    form = np.einsum("aibj,a,i,b,j", matrix.reshape(40, 1, 40, 1), *padded.vectors)
    assert form == pytest.approx(float(padded.value), rel=1e-12)


def test_an_unfinished_iteration_is_a_bracket(generator):
    """One cycle is not enough for a clustered spectrum; the Frobenius norm is the upper bound that remains."""
    from symtensor.numerics import _norm_dense

    matrix = np.diag(np.linspace(1.0, 0.999, 60))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_norm_dense, "CYCLES", 1)
        norm = subordinate_norm(matrix)
    assert norm.status == "bracket" and norm.lower < 1.0 and norm.upper == pytest.approx(np.linalg.norm(matrix))
    with pytest.raises(NotExactError, match="known only as"):
        _ = norm.value


def test_results_do_not_depend_on_chunks_and_memory_is_capped(generator):
    matrices = generator.standard_normal((12, 70, 40))
    need = item_bytes((70, 40), 16)
    whole = subordinate_norm(matrices, batch_dims=1)
    cut = subordinate_norm(matrices, batch_dims=1, memory=4 * need)
    assert np.array_equal(whole.lower, cut.lower) and np.array_equal(whole.vectors[0], cut.vectors[0])
    with pytest.raises(MemoryCapError, match=r"matrices \(70, 40\) needs about .* for one tensor, the cap is"):
        subordinate_norm(matrices, batch_dims=1, memory=need - 1)


def test_predicted_memory_is_what_the_compiler_allocates():
    for m, n in ((300, 200),):
        shapes = (np.zeros((1, m, n)), np.zeros(n), np.zeros((basis_size(n), n)))
        analysis = singular_batch.lower(*shapes, lanes=1, tolerance=1e-10, cycles=10).compile().memory_analysis()
        measured = analysis.temp_size_in_bytes + analysis.argument_size_in_bytes + analysis.output_size_in_bytes
        assert 0.5 < item_bytes((m, n), 1) / measured < 2


def test_matrix_free_products(generator):
    matrix = generator.standard_normal((3, 50, 60))
    norm = spectral_norm(lambda v, a: a @ v, lambda u, a: u @ a, (50, 60), operands=(matrix,), batch_dims=1)
    assert np.allclose(norm.value, np.linalg.norm(matrix, 2, axis=(1, 2)), rtol=1e-12)
    assert np.allclose(np.einsum("bi,bij,bj->b", norm.vectors[0], matrix, norm.vectors[1]), norm.value, rtol=1e-12)


@pytest.mark.slow
def test_a_difference_operator_is_never_formed():
    """Its norm is 2 cos(pi/(2 n + 1)): the leading values crowd at 2, the hardest case for any Krylov method."""
    n = 400
    scaled = spectral_norm(
        lambda v: jnp.concatenate([v[:1], v[1:] - v[:-1]]),
        lambda u: jnp.concatenate([u[:-1] - u[1:], u[-1:]]),
        (n, n),
        tolerance=1e-6,
    )
    assert scaled.lower == pytest.approx(2 * np.cos(np.pi / (2 * n + 1)), rel=1e-6)
