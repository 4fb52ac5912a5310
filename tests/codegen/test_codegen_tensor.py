"""Tensor kernels: broadcasts, pairwise contractions, deltas, images; errors that name the index or shape."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from codegen_kernel_set import FOUR, PAIR, K, P, Q, V, a, b, c, d, e, f, tensor_kernels

from codegen import ModuleSpec, ShapeError, UnboundName, UnsupportedNode, check_module, generate
from codegen.lower.tensor import lower_tensor
from symtensor.kernels import Argument, TensorKernel
from symtensor.tensor import Dimension, IndexClashError, Tensor, TensorExpr, delta

N = Dimension("N")
i, j = N.indices("i j")
X, Y = Tensor("X", (P, N)), Tensor("Y", (N, P))
W = Tensor("W", (P, P))
g = sp.Symbol("g", real=True)


def kernel(name: str, expression: TensorExpr, axes: tuple, *extra: Argument) -> TensorKernel:
    heads = tuple(Argument(head.name, tuple(map(str, head.dimensions))) for head in expression.heads if head.source is None)
    return TensorKernel(name, (*heads, *extra), expression, axes)


CASES = {
    "matrix_product": kernel("matrix_product", (X[a, i] * Y[i, b]).sum(i), (a, b)),
    "transposed_output": kernel("transposed_output", (X[a, i] * Y[i, b]).sum(i), (b, a)),
    "chain": kernel("chain", (W[a, c] * W[c, d] * W[d, b]).sum(c, d), (a, b)),
    "trace": kernel("trace", (W[a, b] * W[b, a]).sum(a, b), ()),
    "self_trace": kernel("self_trace", W[c, c].sum(c) * W[a, b], (a, b)),
    "diagonal": kernel("diagonal", W[a, a] * V[a, a, c, d], (a, c, d)),
    "delta_vector": kernel("delta_vector", (delta(i, j) * X[a, j] * Y[j, b]).sum(j), (i, a, b)),
    "delta_kept": kernel("delta_kept", delta(a, b) * W[a, c] + W[a, b] * W[b, c], (a, b, c)),
    "traced_delta": kernel("traced_delta", (delta(i, j) * delta(i, j)).sum(i, j) * X[a, e_ := N.index("k")], (a, e_)),
    "ones": kernel("ones", g * delta(a, a) * delta(b, b) + W[a, b] * 2, (a, b), Argument("g")),
    "only_ones": kernel("only_ones", g * delta(a, a) * delta(b, b) + W[a, a] * delta(b, b), (a, b), Argument("g")),
    "component": kernel("component", W[a, 0] * W[1, b] + W[0, 1] * W[a, b], (a, b)),
    "outer": kernel("outer", W[a, b] * K[c, d] - W[c, d] * K[a, b] / 3, (a, b, c, d)),
    "partial_sum": kernel("partial_sum", (W[a, c] * X[b, i] * X[c, i]).sum(c, i) * K[a, b], (a, b)),
    "contracted_pair": kernel("contracted_pair", (V[a, b, c, d] * W[c, e] * W[d, f]).sum(c, d), (a, b, e, f)),
    "coefficients": kernel("coefficients", (g**2 - sp.Rational(1, 3) * g) * W[a, b] - sp.sqrt(2) * W[b, a], (a, b), Argument("g")),
    "scalar": kernel("scalar", TensorExpr.scalar(g**2 + 1), (), Argument("g")),
}


@pytest.fixture(scope="module")
def module():  # type: ignore[no-untyped-def]
    return generate(ModuleSpec("tensors", "Tensor cases.", tuple(CASES.values())))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_against_the_oracle(module, dtype: str) -> None:  # type: ignore[no-untyped-def]
    check = check_module(module, dtype, 1e-14 if dtype == "float64" else 1e-6)
    assert set(check.errors) == set(CASES)
    assert check.passed, check.errors


@pytest.mark.parametrize("name", CASES)
def test_against_loops_at_unequal_sizes(module, name: str) -> None:  # type: ignore[no-untyped-def]
    case = CASES[name]
    rng, sizes = np.random.default_rng(3), {"P": 3, "N": 4}
    arrays = {}
    for head in case.expression.heads:
        shape = tuple(sizes[str(dimension)] for dimension in head.dimensions)
        raw = rng.normal(size=shape)
        arrays[head.name] = sum(np.transpose(raw, order) for order, _ in head.symmetry.elements)
    scalars = {argument.name: 0.7 for argument in case.arguments if argument.shape == ()}
    wanted = case.expression.evaluate_by_loops(arrays, case.axes, scalars, sizes=sizes)
    found = getattr(module.load(), name)(**arrays, **scalars)
    np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-13)


def test_sums_are_pairwise_einsum_calls(module) -> None:  # type: ignore[no-untyped-def]
    lowered = lower_tensor(CASES["chain"])
    assert [len(step.operands) for step in lowered.contractions] == [2, 2]
    assert lowered.spreads == ()
    for name in CASES:
        assert all(len(step.operands) <= 2 for step in lower_tensor(CASES[name]).contractions), name


def test_equal_contractions_are_done_once() -> None:
    expression = (W[a, c] * X[c, i]).sum(c) * X[b, i] + (W[b, c] * X[c, i]).sum(c) * X[a, i]
    assert len(lower_tensor(kernel("shared", expression, (a, b, i))).contractions) == 1


def test_hierarchy_terms_need_no_contraction() -> None:
    """The derivative of E[h] in K is diagonal in its labels: broadcasts only, one loop over the output."""
    assert all(not lower_tensor(step).contractions for step in tensor_kernels())


def test_image_of_a_tensor() -> None:
    t = sp.Symbol("t")
    v = Tensor("v", (N,))
    step = v.map("step", sp.Lambda(t, sp.Piecewise((1, t > 0), (0, True))))
    expression = -(step[i] * delta(i, j)).sum(i)
    out = generate(ModuleSpec("image", "An indicator.", (kernel("active", expression, (j,), Argument("v", ("N",))),)))
    np.testing.assert_array_equal(out.load().active(jnp.array([1.0, -2.0, 3.0])), [-1.0, 0.0, -1.0])
    assert out.check().passed


def test_zero_tensor() -> None:
    zero = TensorKernel("zero", (Argument("W", PAIR),), TensorExpr.zero(a, b), (a, b))
    f = generate(ModuleSpec("zeros", "Zero.", (zero,))).load().zero
    result = f(jnp.ones((3, 3), jnp.float32))
    assert result.shape == (3, 3) and result.dtype == jnp.float32 and not result.any()


def test_vmap_grad_and_types() -> None:
    steps = {step.name: step for step in tensor_kernels()}
    f = generate(ModuleSpec("one", "One.", (steps["V4_transport"],))).load().V4_transport
    rng = np.random.default_rng(0)
    m20, m11, V4 = rng.normal(size=(5, 3, 3)), rng.normal(size=(5, 3, 3)), rng.normal(size=(5, 3, 3, 3, 3))
    batch = jax.vmap(f, (None, 0, 0, 0))(2.0, m20, m11, V4)
    np.testing.assert_allclose(batch[3], f(2.0, m20[3], m11[3], V4[3]), rtol=1e-13)
    assert f(2.0, *(np.asarray(v[0], np.float32) for v in (m20, m11, V4))).dtype == jnp.float32
    gradient = jax.grad(lambda V: jnp.sum(f(2.0, m20[0], m11[0], V) ** 2))(V4[0])
    assert np.isfinite(gradient).all() and np.abs(gradient).max() > 0


# -- errors ------------------------------------------------------------------------------------------------------------


def refused(error: type[Exception], match: str, *kernels: TensorKernel) -> None:
    with pytest.raises(error, match=match):
        generate(ModuleSpec("m", "t", kernels))


def test_errors_name_what_is_wrong() -> None:
    given, scalar, long = Argument("K0", PAIR), Argument("g"), Argument("g", ("P",))
    refused(UnboundName, "step: tensor 'Q0' is not an argument", TensorKernel("step", (given,), K[a, b] + Q[a, b], (a, b)))
    refused(UnboundName, "coefficient symbol 'g'", TensorKernel("step", (given,), g * K[a, b], (a, b)))
    refused(ShapeError, "K0 has shape .*'P', 'P', 'P', 'P'", TensorKernel("step", (Argument("K0", FOUR),), K[a, b], (a, b)))
    refused(ShapeError, "g is a coefficient", TensorKernel("s", (given, long), g * K[a, b], (a, b)))
    refused(IndexClashError, r"axes \(a\) are not the free indices \(a, b\)", TensorKernel("s", (given,), K[a, b], (a,)))
    refused(ShapeError, "no argument has an axis of dimension N", kernel("s", delta(i, i) * W[a, b], (i, a, b)))
    refused(UnsupportedNode, "s, coefficient", kernel("s", sp.gamma(g) * W[a, b], (a, b), scalar))


# -- sums that are symmetric under exchange of halves ------------------------------------------------------------------


def test_half_of_an_exchanged_sum_is_evaluated_once() -> None:
    moved = W[a, b] * V[a, a, e, f] + W[b, a] * V[b, b, e, f]
    total = 2 * moved + 2 * moved.rename({a: e, b: f, e: a, f: b}) + K[a, e] * K[b, f] + W[a, b] * W[e, f] * W[e, e]
    module = generate(ModuleSpec("k", "K.", (kernel("k", total, (a, b, e, f)),), reference_points=False))
    assert module.source.count("half.transpose(2, 3, 0, 1)") == 1
    rng = np.random.default_rng(0)
    raw, square = rng.normal(size=(3, 3, 3, 3)), rng.normal(size=(3, 3))
    raw = raw + raw.transpose(1, 0, 2, 3)
    raw = raw + raw.transpose(0, 1, 3, 2)
    values = {"W": rng.normal(size=(3, 3)), "K0": square + square.T, "V4": raw + raw.transpose(2, 3, 0, 1)}
    found = module.load().k(**{name: jnp.asarray(value) for name, value in values.items()})
    np.testing.assert_allclose(found, total.evaluate_by_loops(values, (a, b, e, f)), rtol=1e-12, atol=1e-12)
    one_pair = kernel("k", W[a, b] * K[e, f] + K[a, b] * W[e, f], (a, b, e, f))
    plain = generate(ModuleSpec("k", "K.", (one_pair,), reference_points=False))
    assert "half" not in plain.source
