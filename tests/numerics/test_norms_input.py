"""What the norms refuse, and how the refusal helps."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symtensor.numerics.ensembles import UnknownEnsembleError, sample_norms, sampler
from symtensor.numerics.norms import (
    GroupingError,
    ImplicitTensor,
    MemoryCapError,
    NormInputError,
    block_norm,
    derivative_tensor,
    spectral_norm,
    subordinate_norm,
)

CUBE = np.random.default_rng(0).standard_normal((3, 3, 3))


@pytest.mark.parametrize(
    ("grouping", "text"),
    [
        ("ab", r"misses slot c \(2\) of an order-3 tensor; every slot belongs to exactly one block"),
        ("ab|bc", r"repeats slot b \(1\)"),
        ("ab|d", "'d' in grouping 'ab|d' is not a slot of an order-3 tensor; the slots are a, b, c"),
        ("ab||c", "has an empty block"),
        ("", "misses slot a"),
        ("ab;c", "';'"),
        (((0, 1),), "misses slot c"),
        (((0, 1), (1, 2)), "repeats slot b"),
        (((0, 1), (3,)), r"slot 3 .* is not one of 0..2"),
        (((0, 1), (-1,)), "slot -1"),
        (((0, 1), (2.0,)), "slot 2.0"),
        (((0, True), (2,)), "slot True"),
        (((0, 1), (), (2,)), "empty block"),
        (3, "must be text such as"),
    ],
)
def test_groupings(grouping, text):
    with pytest.raises(GroupingError, match=text):
        subordinate_norm(CUBE, grouping)


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (np.where(np.arange(27).reshape(3, 3, 3) == 5, np.nan, CUBE), r"entry nan at \(0, 1, 2\)"),
        (np.array([1.0, np.inf]), r"entry inf at \(1,\)"),
        (np.zeros((3, 0, 2)), r"shape \(3, 0, 2\), which holds no entries"),
        (CUBE.astype(np.float32), "float32.*cast=True"),
        (CUBE.astype(complex), "complex.*N9"),
        (np.array(["a"]), "real numeric array"),
        (np.array([True, False]), "real numeric array"),
    ],
)
def test_tensors(tensor, text):
    with pytest.raises(NormInputError, match=text):
        subordinate_norm(tensor)


def test_float32_is_accepted_when_said_so():
    small = np.array([3.0, 4.0], np.float32)
    assert subordinate_norm(small, cast=True).value == 5.0
    assert subordinate_norm([3, 4]).value == 5.0


def test_symmetry_is_checked():
    with pytest.raises(NormInputError, match="exchanging slots 0 and 1 changes entries by up to"):
        subordinate_norm(CUBE, symmetric=True)
    with pytest.raises(NormInputError, match="all must be equal"):
        subordinate_norm(np.ones((2, 3)), symmetric=True)
    with pytest.raises(NormInputError, match="leave the grouping out"):
        subordinate_norm(np.ones((2, 2, 2)), "ab|c", symmetric=True)
    with pytest.raises(NormInputError, match="slots 1 and 2"):  # symmetric in the first two only
        subordinate_norm(CUBE + np.swapaxes(CUBE, 0, 1), symmetric=True)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"batch_dims": 4}, NormInputError, "fewer axes than batch_dims = 4"),
        ({"batch_dims": -1}, ValueError, "batch_dims = -1"),
        ({"restarts": 0}, ValueError, "restarts = 0"),
        ({"restarts": 1.5}, TypeError, "restarts = 1.5"),
        ({"tolerance": 0.0}, ValueError, "tolerance = 0.0"),
        ({"tolerance": float("nan")}, ValueError, "tolerance = nan"),
        ({"seed": -1}, ValueError, "seed = -1"),
        ({"memory": 100}, MemoryCapError, "the cap is .*; raise memory, .* or give the tensor by its contractions"),
    ],
)
def test_options(options, error, text):
    with pytest.raises(error, match=text):
        subordinate_norm(CUBE, **options)


def test_float64_is_the_callers_choice():
    with jax.enable_x64(False), pytest.raises(ValueError, match=r"float64 is off in JAX; call jax\.config\.update"):
        subordinate_norm(CUBE)
    with jax.enable_x64(False), pytest.raises(ValueError, match="float64 is off in JAX"):
        sample_norms("normal", 4, 10)


def test_operators():
    with pytest.raises(NormInputError, match=r"rmatvec is not the transpose of matvec"):
        spectral_norm(lambda v: jnp.roll(v, 1), lambda u: jnp.roll(u, 1), (9, 9))
    with pytest.raises(NormInputError, match=r"give shapes \(9,\) and \(9,\), required \(8,\) and \(9,\)"):
        spectral_norm(lambda v: v, lambda u: jnp.zeros(9), (8, 9))
    with pytest.raises(NormInputError, match="not finite"):
        spectral_norm(lambda v: v * jnp.nan, lambda u: u, (9, 9))
    with pytest.raises(NormInputError, match="must be"):
        spectral_norm(lambda v: v, lambda u: u, (9, 9, 9))
    with pytest.raises(MemoryCapError, match="the contractions need"):
        spectral_norm(lambda v: v, lambda u: u, (90, 90), memory=10_000)
    with pytest.raises(NormInputError, match="float32"):
        spectral_norm(lambda v, a: a @ v, lambda u, a: u @ a, (3, 3), operands=(np.eye(3, dtype=np.float32),))


def test_implicit_tensors():
    with pytest.raises(NormInputError, match="integers of at least 1"):
        ImplicitTensor((3, 0), lambda vectors, free: vectors)
    with pytest.raises(NormInputError, match="cannot be symmetric"):
        ImplicitTensor((3, 4), lambda vectors, free: vectors, symmetric=True)
    tensor = ImplicitTensor((3, 3, 3), lambda vectors, free: jnp.ones(3))
    with pytest.raises(GroupingError, match="joins slots of an implicit tensor"):
        subordinate_norm(tensor, "ab|c")
    with pytest.raises(NormInputError, match="needs operands that carry the batch"):
        subordinate_norm(tensor, batch_dims=1)
    with pytest.raises(NormInputError, match="do not share 1 batch axes"):
        subordinate_norm(ImplicitTensor((3,), lambda v, f, a, b: a, (np.ones((2, 3)), np.ones((4, 3)))), batch_dims=1)
    with pytest.raises(NormInputError, match="both must agree"):
        derivative_tensor(jnp.sum, np.ones(3), 1, directions=[np.ones(4)])
    with pytest.raises(NormInputError, match="slots = -1"):
        derivative_tensor(jnp.sum, np.ones(3), -1)


def test_blocks():
    with pytest.raises(NormInputError, match="no axis of blocks"):
        block_norm(np.ones((2, 2)), 2)
    with pytest.raises(NormInputError, match="no blocks"):
        block_norm([], 2)
    with pytest.raises(NormInputError, match="does not have order 2"):
        block_norm([np.ones(3)], 2)
    with pytest.raises(ValueError, match="order = 0"):
        block_norm(np.ones((2, 2)), 0)


def test_ensembles():
    with pytest.raises(UnknownEnsembleError, match=r"'gausian vector' is not an ensemble \(nearest: 'gaussian vector'\)"):
        sample_norms("gausian vector", 4, 10)
    with pytest.raises(ValueError, match="n = 1 must be an integer of at least 2"):
        sample_norms("goe edge", 1, 10)
    with pytest.raises(ValueError, match="samples = 0"):
        sample_norms("normal", 4, 0)
    with pytest.raises(MemoryCapError, match=r"'iid order 3' at n = 500 needs .* raise memory or lower n"):
        sample_norms("iid order 3", 500, 1, memory=2**28)
    with pytest.raises(ValueError, match="side = 'middle'"):
        sampler("iid order 3", "middle")  # type: ignore[arg-type]


def test_brackets_show_their_status_in_a_notebook():
    html = subordinate_norm(np.stack([CUBE] * 12), batch_dims=1)._repr_html_()
    assert html.count("<td>bracket</td>") == 10 and "and 2 more" in html and "&lt;=" not in html
    one = subordinate_norm(CUBE)._repr_html_()
    assert "&lt;= norm &lt;=" in one and one.count("<tr>") == 2


def test_rows_of_different_length_are_named() -> None:
    with pytest.raises(NormInputError, match="tensor is a nested sequence whose rows differ in length"):
        subordinate_norm([[1, 2], [3]])
    with pytest.raises(NormInputError, match="a block is a nested sequence whose rows differ"):
        block_norm([[[1.0, 2.0], [3.0]], np.eye(2)], 2)


def test_masked_entries_are_not_read_as_the_numbers_below_the_mask() -> None:
    masked = np.ma.masked_array([[1.0, 2], [3, 4]], mask=np.diag([False, True]))
    with pytest.raises(NormInputError, match=r"tensor has 1 masked entries, which have no value"):
        subordinate_norm(masked)
    with pytest.raises(NormInputError, match="a block has 1 masked"):
        block_norm([masked, np.eye(2)], 2)
    with pytest.raises(NormInputError, match="blocks has 2 masked"):
        block_norm(np.ma.stack([masked, masked]), 2)
    open_ = np.ma.masked_array(np.diag([1.0, 2.0]), mask=False)
    assert subordinate_norm(open_).upper == pytest.approx(2)
