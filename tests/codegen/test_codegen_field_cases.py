"""Public cases in which other tools failed: expectations (D), JAX and code generation (E), contractions and memory (F).

The cases of section D that need no code (sympy #21874, #20540, #20756) are in tests/expansion.
"""

from __future__ import annotations

import string
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from jax.experimental import jet
from scipy import integrate, stats

from codegen import GenerationError, ModuleSpec, UnsupportedNode, generate
from codegen.certify import certify
from symtensor.activation import activation
from symtensor.kernels import Argument, MomentKernel, ScalarKernel, TensorKernel
from symtensor.numerics.rules import parse_rule
from symtensor.tensor import Dimension, Tensor

x, w = sp.symbols("x w", real=True)


def module_of(*kernels, rule=None):  # type: ignore[no-untyped-def]
    options = {} if rule is None else {"rule": parse_rule(rule)}
    return generate(ModuleSpec("m", "M.", kernels, reference_points=False, **options))


def function_of(expr: sp.Expr):  # type: ignore[no-untyped-def]
    names = tuple(map(Argument, sorted(map(str, expr.free_symbols))))
    return module_of(ScalarKernel("f", names, (("out", expr),))).load().f


# -- D. expectations and integrals -------------------------------------------------------------------------------------


def test_second_moments_of_activations_come_at_once() -> None:
    """E tanh(Z)^2 takes over 20 s symbolically, E erf(Z)^2 over 40 s: here quadrature with an error estimate, then emitted code."""
    start = time.perf_counter()
    for name, rule, wanted in (("tanh", "trapezoid:113", 0.394294490397841), ("erf", "closed", 2 / np.pi * np.arcsin(2 / 3))):
        kernel = MomentKernel("moments", activation(name), ((0, 0),))
        K = jnp.array([[1.0]])
        assert float(module_of(kernel, rule=rule).load().moments(K).m00[0, 0]) == pytest.approx(wanted, rel=1e-13)
    assert time.perf_counter() - start < 20
    brute, _ = integrate.quad(lambda t: np.tanh(t) ** 2 * stats.norm.pdf(t), -12, 12, epsabs=1e-13)
    assert brute == pytest.approx(0.394294490397841, abs=1e-11)


def test_compiled_closed_forms_are_real_and_right() -> None:
    """sympy #23550: the integral of e^{-a t^2/2} over [0, 1] by erf, not erfi of sqrt(-1/a); 0.855624 at a = 1."""
    a = sp.Symbol("a", positive=True)
    closed = sp.sqrt(sp.pi / (2 * a)) * sp.erf(sp.sqrt(a / 2))
    kernel = ScalarKernel("f", (Argument("a"),), (("out", closed),))
    module = module_of(kernel)
    assert float(module.load().f(1.0)) == pytest.approx(0.855624391892149, rel=1e-14)
    for value in (0.3, 1.0, 7.0):
        brute, _ = integrate.quad(lambda t, value=value: np.exp(-value * t * t / 2), 0, 1, epsabs=1e-14)
        assert float(module.load().f(value)) == pytest.approx(brute, rel=1e-12)
    assert certify(module, 16, dtypes=("float64",), domain={"a": (0.5, 30)}).passed
    # near a = 0 the derivative of erf(sqrt(a/2)) / sqrt(a) is a difference of large numbers, and the certificate says so
    value, slope = certify(module, 16, dtypes=("float64",)).measured
    assert value.passed and slope.failures and all(failure.point["a"] < 0.01 for failure in slope.failures)


# -- E. JAX, code generation, nan --------------------------------------------------------------------------------------


def test_second_derivative_of_a_polynomial_at_zero() -> None:
    """jax #14745: sum of x^k, k = 0 .. 2, has the second derivative 2 at 0; x**arange gives nan."""
    naive = jax.grad(jax.grad(lambda v: jnp.sum(v ** jnp.arange(3.0))))(0.0)
    f = function_of(sum(x**k for k in range(3)))
    assert float(jax.grad(jax.grad(f))(0.0)) == 2.0
    assert np.isnan(naive) or naive == 2.0  # whatever this JAX does with the naive form


@pytest.mark.parametrize("power", range(4))
def test_derivative_of_a_power_at_zero(power: int) -> None:
    """jax #18450: d x^k / dx at x = 0, k = 0 was nan under jit."""
    f = module_of(ScalarKernel("f", (Argument("x"), Argument("w")), (("out", x**power + w),))).load().f
    assert float(jax.jit(jax.grad(f))(0.0, 1.0)) == (power == 1)


def test_second_derivative_of_the_relu_keeps_its_delta() -> None:
    """AD gives 0; by Stein's identity E phi''(Z) psi is sqrt-free in closed form, and inside an expectation it is refused."""
    relu = activation("relu")
    kernel = MomentKernel("moments", relu, ((0, 0), (2, 0)))
    K = np.array([[1.5, 0.4], [0.4, 0.8]])
    found = float(module_of(kernel).load().moments(jnp.array(K)).m20[0, 1])
    # E[delta(u) relu(v)] = density of u at 0 times E[relu(v) | u = 0]
    rest = K[1, 1] - K[0, 1] ** 2 / K[0, 0]
    assert found == pytest.approx(1 / np.sqrt(2 * np.pi * K[0, 0]) * np.sqrt(rest / (2 * np.pi)), rel=1e-13)
    with pytest.raises(GenerationError, match="delta terms"):
        generate(ModuleSpec("m", "M.", (kernel,), rule=parse_rule("trapezoid:41"), derivatives="inside"))
    with pytest.raises(UnsupportedNode, match="DiracDelta"):
        function_of(sp.diff(sp.Max(x, 0), x, 2))


def test_what_cannot_be_printed_fails_when_generated() -> None:
    """lambdify prints DiracDelta and factorial, and the NameError comes at the first call."""
    for expr, name in ((sp.DiracDelta(x), "DiracDelta"), (sp.factorial(x), "factorial"), (sp.Function("phi")(x), "phi")):
        with pytest.raises((GenerationError, TypeError), match=name):
            function_of(expr)


def test_softplus_derivatives() -> None:
    """jax #2107: softplus'(0) was 0. Right: 1/2, 1/4, -1/8 for the derivatives 1, 2, 4."""
    derivative = function_of(sp.log(1 + sp.exp(x)))
    found = []
    for _ in range(4):
        derivative = jax.grad(derivative)
        found.append(float(derivative(0.0)))
    assert found == [0.5, 0.25, 0.0, -0.125]


def test_sixth_derivative_of_the_reciprocal_in_float32() -> None:
    """jax #3136: nested derivatives gave -1.956; 720/4^7 = 0.0439453125, also by Taylor mode."""
    f = function_of(1 / x)
    derivative = f
    for _ in range(6):
        derivative = jax.grad(derivative)
    assert float(derivative(jnp.float32(4.0))) == pytest.approx(0.0439453125, rel=1e-6)
    _, series = jet.jet(f, (jnp.float32(4.0),), ([jnp.float32(1.0), *[jnp.float32(0.0)] * 5],))
    assert float(series[-1]) == pytest.approx(0.0439453125, rel=1e-5)


def test_taylor_mode_gives_derivatives() -> None:
    """jax #3730: users guess what the series means. For e^t at 0 the convention of derivatives gives 1, 1, 1."""
    value, series = jet.jet(function_of(sp.exp(x)), (0.0,), ([1.0, 0.0, 0.0],))
    assert (float(value), *map(float, series)) == pytest.approx((1.0, 1.0, 1.0, 1.0), rel=1e-13)


def test_forms_that_taylor_mode_cannot_do_have_nested_derivatives() -> None:
    """Emitted helpers carry derivative rules of their own; nested jvp needs nothing else (jax #5217, #19949)."""
    f = jax.jit(function_of(1 - sp.tanh(x) ** 2))

    def nested(function, order):  # type: ignore[no-untyped-def]
        for _ in range(order):
            function = (lambda inner: lambda v: jax.jvp(inner, (v,), (1.0,))[1])(function)
        return function

    wanted = sp.diff(1 - sp.tanh(x) ** 2, x, 5)
    assert float(nested(f, 5)(0.3)) == pytest.approx(float(wanted.subs(x, sp.Rational(3, 10))), rel=1e-12)


@pytest.mark.parametrize(
    ("expr", "slope"),
    [
        (sp.Piecewise((sp.sin(x) / x, sp.Ne(x, 0)), (1, True)), 0.0),
        (sp.Piecewise(((sp.exp(x) - 1) / x, sp.Ne(x, 0)), (1, True)), 0.5),
        (sp.Piecewise((sp.sqrt(x), x > 0), (0, True)), 0.0),
        (sp.sin(x) / x, 0.0),
    ],
    ids=str,
)
def test_gradients_at_removable_points_are_finite_and_right(expr: sp.Expr, slope: float) -> None:
    """where(x != 0, sin(x)/x, 1) has the gradient nan; that of the constant branch is 0, which is wrong for (e^x - 1)/x."""
    assert float(jax.grad(function_of(expr))(0.0)) == slope


# -- F. contraction paths, memory --------------------------------------------------------------------------------------

P = Dimension("P")


def chain(count: int, names: str) -> TensorKernel:
    """A product of matrices, summed over all inner indices."""
    indices = P.indices(" ".join(names[: count + 1]))
    tensors = [Tensor(f"A{k}", (P, P)) for k in range(count)]
    product = sp.Integer(1)
    for k, tensor in enumerate(tensors):
        product = tensor[indices[k], indices[k + 1]] * product
    expression = product.sum(*indices[1:-1])
    return TensorKernel("chain", tuple(Argument(t.name, ("P", "P")) for t in tensors), expression, (indices[0], indices[-1]))


def einsums(source: str) -> list[str]:
    return [line.split('"')[1] for line in source.splitlines() if "jnp.einsum(" in line and '"' in line and "{" not in line]


def test_only_pairwise_contractions_are_emitted() -> None:
    """jax #31103, #24915: a step of three operands raises NotImplementedError."""
    module = module_of(chain(6, string.ascii_lowercase))
    specs = einsums(module.source)
    assert specs and all(spec.split("->")[0].count(",") <= 1 for spec in specs)


def test_ten_operands_of_size_two() -> None:
    """jax #24929: the search for a path hung."""
    start = time.perf_counter()
    module = module_of(chain(10, string.ascii_lowercase))
    assert time.perf_counter() - start < 20
    arrays = [np.random.default_rng(k).standard_normal((2, 2)) for k in range(10)]
    np.testing.assert_allclose(module.load().chain(*arrays), np.linalg.multi_dot(arrays), rtol=1e-13)


def test_memory_is_what_the_contractions_say() -> None:
    """opt_einsum #133: a small intermediate was promised and 156 GiB allocated. The arrays between the steps are all there is."""
    size = 64
    module = module_of(chain(4, string.ascii_lowercase))
    shape = jax.ShapeDtypeStruct((size, size), np.float64)
    compiled = jax.jit(module.load().chain).lower(*[shape] * 4).compile()
    intermediates = len(einsums(module.source)) - 1
    promised = 8 * size * size * intermediates
    measured = compiled.memory_analysis().temp_size_in_bytes
    assert promised / 2 <= measured <= 2 * promised
