"""The front door: formulas, arrays, indices, matrices, tensors and series against NumPy and against SymPy itself."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import symtensor
from codegen import CallError, InputError, NameClash, ShapeError, UnboundName, UnsupportedNode, check_module
from symtensor.kernels import Argument, ScalarKernel
from symtensor.tensor import Dimension, SymmetryGroup, Tensor, delta

x, y, a = sp.symbols("x y a", real=True)
n = sp.Symbol("n", integer=True, positive=True)
i, j, k = sp.symbols("i j k", integer=True)
A, v = sp.IndexedBase("A", shape=(n, n)), sp.IndexedBase("v", shape=(n,))
AN, VN = np.arange(9.0).reshape(3, 3) + 1, np.array([1.0, 2.0, 3.0])
P = Dimension("P")
p, q, r = P.indices("p q r")
K = Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2))


def compiled(expression, args=None, **options):  # type: ignore[no-untyped-def]
    """Without reference points, which most tests here do not need."""
    return symtensor.compile(expression, args, reference_points=False, **options)


# -- scalars -----------------------------------------------------------------------------------------------------------


def test_a_formula_broadcasts_and_follows_the_order_of_args() -> None:
    f = compiled(x - 2 * y, [y, x])
    np.testing.assert_allclose(f([1.0, 2.0], 10), [8.0, 6.0])
    np.testing.assert_allclose(f(x=10, y=[1.0, 2.0]), [8.0, 6.0])
    assert repr(f) == "<compiled f(y, x) -> value>"


def test_arguments_are_sorted_by_name_unless_given() -> None:
    assert [argument.name for argument in compiled(y + x + a).arguments] == ["a", "x", "y"]


def test_several_outputs_are_a_named_tuple() -> None:
    result = compiled({"total": x + y, "product": x * y}, [x, y], name="pair")(2, 3)
    assert type(result).__name__ == "Pair" and result._fields == ("total", "product")
    assert (float(result.total), float(result.product)) == (5.0, 6.0)
    assert compiled([x, y], outputs="first second")(1, 2)._fields == ("first", "second")
    assert compiled([x, y])(1, 2)._fields == ("out0", "out1")


def test_piecewise_and_special_functions() -> None:
    f = compiled(sp.Piecewise((sp.erf(x), x < 1), (sp.Max(x, 2), True)), [x])
    np.testing.assert_allclose(f([0.5, 1.5, 3.0]), [float(sp.erf(0.5)), 2.0, 3.0])


def test_text_is_read_by_the_whitelist_and_never_evaluated() -> None:
    assert float(compiled("x**2 + tanh(y)", "x y")(3, 0)) == 9.0
    with pytest.raises(ValueError, match="cannot be called"):
        compiled("__import__('os').system('true')", "x")
    with pytest.raises(InputError, match="args naming its symbols"):
        compiled("x**2")


def test_kernels_are_taken_as_they_are() -> None:
    kernel = ScalarKernel("square", (Argument("x"),), (("y", x**2),))
    f = compiled(kernel)
    assert f.name == "square" and float(f(3)) == 9.0
    assert compiled([kernel]).source == f.source


def test_the_same_formula_gives_the_same_text_whatever_the_symbols_are() -> None:
    """The emitted text depends on names, not on assumptions or on the order of construction."""
    other = sp.Symbol("x")
    assert compiled(other**2 + sp.sin(other)).source == compiled(sp.sin(x) + x**2).source


def test_symbols_get_names_that_python_allows() -> None:
    names = ["lambda", r"\alpha_{1}", "\u03c6", "x'", "print", "jnp"]
    symbols = [sp.Symbol(name, real=True) for name in names]
    f = compiled(sum(k * symbol for k, symbol in enumerate(symbols, 1)), symbols)
    assert [argument.name for argument in f.arguments] == ["lambda_", "alpha_1", "phi", "x_prime", "print_", "jnp_"]
    assert float(f(1, 1, 1, 1, 1, 1)) == 21.0
    assert float(f(0, 0, 0, 0, 0, 1)) == 6.0


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=4, max_size=4), st.floats(-2, 2), st.floats(-2, 2))
def test_polynomials_agree_with_sympy(coefficients: list[int], at_x: float, at_y: float) -> None:
    expression = sum(c * x**m * y ** (3 - m) for m, c in enumerate(coefficients)) + x
    exact = float(expression.subs({x: sp.Rational(at_x), y: sp.Rational(at_y)}))
    assert float(compiled(expression, [x, y])(at_x, at_y)) == pytest.approx(exact, rel=1e-12, abs=1e-12)


def test_types() -> None:
    f = compiled(x * y, [x, y])
    assert f(np.float32(1), np.float32(2)).dtype == jnp.float32
    assert f(1, 2).dtype == jnp.float64
    assert compiled(x * y, [x, y], dtype="float32")(1.0, np.float64(2)).dtype == jnp.float32
    assert float(f(np.int64(2**62), np.int64(4))) == 2.0**64  # not an overflow of 64-bit integers
    assert float(f(10**30, 1)) == 1e30


def test_gradients_pass_through_the_checks() -> None:
    f = compiled(sp.tanh(x) * y, [x, y])
    assert float(jax.grad(f)(0.0, 3.0)) == 3.0
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(jnp.zeros(2), jnp.array([1.0, 2.0])), [1.0, 2.0])
    assert float(jax.jit(f)(0.0, 1.0)) == 0.0


# -- arrays ------------------------------------------------------------------------------------------------------------


def test_matrix_of_formulas_with_leading_axes() -> None:
    f = compiled(sp.Matrix([[x, x * y], [0, sp.Rational(1, 2)]]), [x, y])
    found = f([1.0, 2.0], 3.0)
    assert found.shape == (2, 2, 2)
    np.testing.assert_allclose(found, [[[1, 3], [0, 0.5]], [[2, 6], [0, 0.5]]])


def test_jacobian_and_hessian_of_a_vector_argument() -> None:
    expression = sp.exp(x * y) + x**3
    f = compiled(
        {"jacobian": sp.Matrix([expression]).jacobian([x, y]), "hessian": sp.hessian(expression, [x, y])}, {"z": [x, y]}
    )
    g = compiled(expression, [x, y]).function
    result = f(np.array([0.3, -0.7]))
    np.testing.assert_allclose(result.jacobian[0], jax.grad(g, (0, 1))(0.3, -0.7), rtol=1e-13)
    np.testing.assert_allclose(result.hessian, jax.jacfwd(jax.grad(g, (0, 1)), (0, 1))(0.3, -0.7), rtol=1e-12)
    assert f(np.zeros((4, 5, 2))).hessian.shape == (4, 5, 2, 2)


def test_constants_only_and_rank_three() -> None:
    assert compiled(sp.Matrix([[1, 2], [3, 4]]), [x])(0.0).tolist() == [[1, 2], [3, 4]]
    cube = sp.ImmutableDenseNDimArray([x * m for m in range(8)], (2, 2, 2))
    np.testing.assert_allclose(compiled(cube)(2.0), 2 * np.arange(8.0).reshape(2, 2, 2))


def test_components_of_arrays_with_integer_sizes() -> None:
    w, M = sp.IndexedBase("w", shape=(3,)), sp.MatrixSymbol("M", 2, 2)
    f = compiled(w[0] * sp.sin(w[2]) + M[0, 1], [w, M])
    assert float(f(VN, [[0.0, 5.0], [0.0, 0.0]])) == pytest.approx(np.sin(3.0) + 5.0)
    with pytest.raises(UnboundName, match=r"component w\[3\] is outside"):
        compiled(w[3] * x)


# -- indices -----------------------------------------------------------------------------------------------------------


def test_sums_over_symbolic_sizes() -> None:
    f = compiled(sp.Sum(A[i, j] * sp.tanh(v[j]), (j, 0, n - 1)) + a * v[i] ** 2, [A, v, a])
    np.testing.assert_allclose(f(AN, VN, 2.0), AN @ np.tanh(VN) + 2 * VN**2, rtol=1e-14)
    np.testing.assert_allclose(f(AN[:2, :2], VN[:2], 0.0), AN[:2, :2] @ np.tanh(VN[:2]), rtol=1e-14)
    trace = compiled(sp.Sum(A[i, i], (i, 0, n - 1)))
    assert float(trace(AN)) == np.trace(AN)


def test_a_repeated_free_index_is_not_summed() -> None:
    np.testing.assert_allclose(compiled(A[i, i] * v[i])(AN, VN), np.diag(AN) * VN)


def test_axes_are_sorted_by_name_or_given() -> None:
    np.testing.assert_allclose(compiled(A[i, j] * v[i])(AN, VN), AN * VN[:, None])
    np.testing.assert_allclose(compiled(A[i, j] * v[i], axes=("j", "i"))(AN, VN), (AN * VN[:, None]).T)
    with pytest.raises(ShapeError, match="are not the free indices"):
        compiled(A[i, j], axes=("i",))


def test_a_term_without_an_index_is_constant_along_it() -> None:
    np.testing.assert_allclose(compiled(v[i] + a, [v, a])(VN, 10.0), VN + 10)
    np.testing.assert_allclose(compiled(v[i] * (v[j] + 1))(VN), np.outer(VN, VN + 1))


def test_functions_of_several_components_need_integer_sizes() -> None:
    w = sp.IndexedBase("w", shape=(3,))
    np.testing.assert_allclose(compiled(sp.exp(w[i] - w[j]))(VN), np.exp(VN[:, None] - VN), rtol=1e-14)
    np.testing.assert_allclose(compiled(i * w[i])(VN), np.arange(3) * VN)
    with pytest.raises(UnsupportedNode, match=r"exp in exp\(v\[i\] - v\[j\]\) is a function of v\[i\], v\[j\]"):
        compiled(sp.exp(v[i] - v[j]))
    with pytest.raises(UnsupportedNode, match="index i is used as a number"):
        compiled(i * v[i])


def test_a_component_at_a_place_that_is_an_argument() -> None:
    """sympy #26888: X[q] with X = arange(5), q = 3 is 3; places beyond the ends are clipped, as JAX does."""
    w, table, q = sp.IndexedBase("w", shape=(5,)), sp.IndexedBase("table", shape=(2, 3)), sp.Symbol("q", integer=True)
    values = np.arange(5.0)
    for index in (q, sp.Idx("q")):
        f = compiled(w[index], [w, index])
        assert [float(f(values, place)) for place in (3, 0, 7, -2)] == [3, 0, 4, 0]
    assert float(compiled(w[q] ** 2 + 2 * w[1], [w, q])(values, 3)) == 11
    assert float(compiled(table[q, i], [table, q, i])(np.arange(6.0).reshape(2, 3), 1, 2)) == 5
    with pytest.raises(InputError, match="place q of open\\[q\\] is an argument, which needs an array of known size"):
        compiled(sp.IndexedBase("open")[q], [sp.IndexedBase("open"), q])


def test_sums_over_a_part_of_an_axis_are_refused() -> None:
    with pytest.raises(ShapeError, match="sum over i is from 1 to"):
        compiled(sp.Sum(v[i], (i, 1, n - 1)))
    m = sp.Symbol("m", integer=True, positive=True)
    with pytest.raises(ShapeError, match="runs over axes of size"):
        compiled(v[i] * sp.IndexedBase("u", shape=(m,))[i])


# -- matrices ----------------------------------------------------------------------------------------------------------


def test_matrix_expressions() -> None:
    M, N = sp.MatrixSymbol("M", n, n), sp.MatrixSymbol("N", n, n)
    f = compiled(M * N + 2 * M.T - sp.Identity(n) * sp.Trace(M) + sp.HadamardProduct(M, N) + M**3, [M, N])
    B = AN[::-1] / 3
    wanted = AN @ B + 2 * AN.T - np.eye(3) * np.trace(AN) + AN * B + AN @ AN @ AN
    np.testing.assert_allclose(f(AN, B), wanted, rtol=1e-14)
    assert float(compiled(sp.Trace(M * M.T) * a, [M, a])(AN, 2.0)) == 2 * np.trace(AN @ AN.T)


def test_inverses_of_small_matrices_only() -> None:
    small = sp.MatrixSymbol("S", 2, 2)
    np.testing.assert_allclose(compiled(small.inv())(AN[:2, :2]), np.linalg.inv(AN[:2, :2]), rtol=1e-13)
    with pytest.raises(UnsupportedNode, match="Inverse in M"):
        compiled(sp.MatrixSymbol("M", n, n).inv())


# -- tensors and series ------------------------------------------------------------------------------------------------


def test_tensor_expressions_alone_and_together() -> None:
    square = (K[p, r] * K[r, q]).sum(r) * a + delta(p, q)
    symmetric = AN + AN.T
    np.testing.assert_allclose(compiled(square, [K, a])(symmetric, 2.0), 2 * symmetric @ symmetric + np.eye(3), rtol=1e-14)
    result = compiled({"square": square, "trace": K[p, p].sum(p), "scale": a**2}, [K, a])(symmetric, 2.0)
    assert (float(result.trace), float(result.scale)) == (np.trace(symmetric), 4.0)
    np.testing.assert_allclose(result.square, 2 * symmetric @ symmetric + np.eye(3), rtol=1e-14)


def test_batch_of_a_tensor_function() -> None:
    f = compiled((K[p, r] * K[r, q]).sum(r) * a, [K, a], batch="K")
    stack = np.stack([AN + AN.T, np.eye(3)])
    np.testing.assert_allclose(f(stack, 2.0), 2 * stack @ stack, rtol=1e-14)
    with pytest.raises(UnboundName, match="are not arguments"):
        compiled(K[p, q] * a, batch="L")
    with pytest.raises(InputError, match="take arrays as they are"):
        compiled(x + y, batch="x")


def test_taylor_polynomial_and_coefficients() -> None:
    series = symtensor.taylor(sp.exp(a * x) * sp.sin(y), (x, y), (0, 0), 4)
    f = compiled(series, [x, y, a])
    wanted = sp.lambdify((x, y, a), sp.expand(series.partial_sum()))
    assert float(f(0.3, 0.2, 1.5)) == pytest.approx(wanted(0.3, 0.2, 1.5), rel=1e-14)
    assert "Terms below" in f.source
    table = compiled(series, [a], outputs="coefficients")(2.0)
    assert (float(table.c_0_1), float(table.c_2_1), float(table.c_0_3)) == (1.0, 2.0, pytest.approx(-1 / 6))
    with pytest.raises(InputError, match="infinite"):
        compiled(symtensor.taylor(sp.exp(x), x, 0))


def test_laurent_series() -> None:
    series = symtensor.series(1 / sp.sin(x), x, 0, 3)
    assert float(compiled(series)(0.1)) == pytest.approx(1 / 0.1 + 0.1 / 6, rel=1e-13)
    assert float(compiled(series, [x], outputs="coefficients")(0.0).c_m1) == 1.0


# -- the object --------------------------------------------------------------------------------------------------------


def test_calls_are_checked_before_they_run() -> None:
    f = compiled((K[p, q] * Tensor("u", (P,))[q]).sum(q), name="apply")
    with pytest.raises(CallError, match=r"apply: argument u has shape \(2,\), wanted is \(P\) with P = 3 of K"):
        f(np.eye(3), np.ones(2))
    with pytest.raises(CallError, match=r"K has shape \(3,\)"):
        f(np.ones(3), np.ones(3))
    with pytest.raises(CallError, match="u not given"):
        f(np.eye(3))
    with pytest.raises(CallError, match="there is no argument 'w'"):
        f(np.eye(3), w=1)
    with pytest.raises(CallError, match="given twice"):
        f(np.eye(3), K=1)
    with pytest.raises(CallError, match="3 arguments by position"):
        f(1, 2, 3)
    with pytest.raises(CallError, match="complex"):
        compiled(x)(1j)
    with pytest.raises(CallError, match="no array of numbers"):
        compiled(x)("one")
    with pytest.raises(CallError, match="do not broadcast"):
        compiled(x + y)(np.ones(2), np.ones(3))


def test_every_route_checks_itself_against_the_oracle() -> None:
    vector = {"z": [x, y]}
    for expression, args in [(sp.exp(x) * y, None), (sp.Matrix([[x * y, 1], [sp.sin(x), y]]), vector), (K[p, q] * a, None)]:
        f = symtensor.compile(expression, args)
        assert f.check().passed and set(f.check().errors)
        assert check_module(f.module).passed


def test_a_corrupted_array_kernel_is_caught() -> None:
    """Components swapped in the emitted text: the self-check of the array sees it, that of its entries cannot."""
    from codegen.load import _load

    f = symtensor.compile(sp.Matrix([[x - y], [x + 2 * y]]), {"z": [x, y]})
    corrupted = f.source.replace("z[..., 0], z[..., 1]", "z[..., 1], z[..., 0]")
    assert corrupted != f.source and not _load("corrupted", corrupted).self_check().passed


def test_write_and_display(tmp_path) -> None:  # type: ignore[no-untyped-def]
    f = compiled(x**2, name="square")
    assert f.write(tmp_path).read_text() == f.source
    assert "<pre>" in f._repr_html_() and "&lt;compiled" in f._repr_html_()


def test_bad_inputs() -> None:
    with pytest.raises(InputError, match=r"cannot compile .* needed is"):
        compiled(object())
    with pytest.raises(InputError, match="empty"):
        compiled([])
    with pytest.raises(InputError, match="2 expressions and 1 names"):
        compiled([x, y], outputs="one")
    with pytest.raises(InputError, match="dtype 'int32'"):
        compiled(x, dtype="int32")
    with pytest.raises(InputError, match="needs a name"):
        compiled(x + y, [[x, y]])
    with pytest.raises(NameClash, match="stands in two arguments"):
        compiled(x + y, {"u": [x, y], "w": x})
