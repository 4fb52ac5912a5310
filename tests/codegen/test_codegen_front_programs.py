"""Expectations, recursions, flows, fixed points, complex formulas: against quadrature, SciPy, closed forms and NumPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad

import symtensor
from codegen import InputError, NameClash, ShapeError, UnsupportedNode, check_module
from codegen.front.complex_numbers import real_and_imaginary
from codegen.front.expectation import choose_rule
from symtensor import FixedPoint, GaussianExpectation, Ode, Scan
from symtensor.programs import ProgramError
from symtensor.tensor import Dimension, SymmetryGroup, Tensor, delta

x, y, a, t = sp.symbols("x y a t", real=True)
k = sp.Symbol("k", positive=True)
k11, k12, k22 = sp.symbols("k11 k12 k22", real=True)
z = sp.Symbol("z")
P = Dimension("P")
p, q, r = P.indices("p q r")
K = Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2))


def compiled(expression, args=None, **options):  # type: ignore[no-untyped-def]
    return symtensor.compile(expression, args, reference_points=False, **options)


def normal(function, variance, mean=0.0):  # type: ignore[no-untyped-def]
    """E f by SciPy's adaptive quadrature."""
    s = np.sqrt(variance)
    return quad(lambda u: function(mean + s * u) * np.exp(-u * u / 2) / np.sqrt(2 * np.pi), -12, 12, epsabs=1e-13, epsrel=1e-13)[0]


# -- expectations ------------------------------------------------------------------------------------------------------


def test_expectation_in_one_variable_broadcasts() -> None:
    f = compiled(GaussianExpectation(sp.tanh(a * x) ** 2, x, k, y), [k, a, y])
    found = f([0.5, 2.0, 4.0], 0.7, 0.3)
    np.testing.assert_allclose(found, [normal(lambda u: np.tanh(0.7 * u) ** 2, v, 0.3) for v in (0.5, 2.0, 4.0)], rtol=1e-11)


def test_expectation_of_two_variables() -> None:
    node = GaussianExpectation(sp.tanh(x) / (1 + sp.exp(-y)), (x, y), [[k11, k12], [k12, k22]])
    f = compiled(node, [k11, k12, k22])
    wanted = symtensor.expect("tanh(x)*sigmoid(y)", [[1.0, 0.5], [0.5, 2.0]], tol=1e-13)
    assert float(f(1.0, 0.5, 2.0)) == pytest.approx(wanted.value, abs=1e-11)
    assert abs(float(f(1.0, -0.5, 2.0)) + wanted.value) < 1e-11  # odd in x, hence in k12
    assert float(f(1.0, 1.0, 1.0)) == pytest.approx(normal(lambda u: np.tanh(u) / (1 + np.exp(-u)), 1.0), abs=1e-11)  # singular


def test_closed_forms_need_no_quadrature() -> None:
    f = compiled(GaussianExpectation(x**2 * sp.exp(x), x, k))
    assert float(f(0.7)) == pytest.approx(0.7 * 1.7 * np.exp(0.35), rel=1e-14)
    erf = compiled(GaussianExpectation(sp.erf(x) * sp.erf(y), (x, y), [[k11, k12], [k12, k22]]))
    assert float(erf(1.0, 1.0, 1.0)) == pytest.approx(2 / np.pi * np.arcsin(2 / 3), rel=1e-14)
    assert "_integrand" not in f.source + erf.source


def test_expectations_inside_formulas_and_variables_named_like_arguments() -> None:
    """The Gaussian x is bound: the argument x beside it is another variable."""
    f = compiled(x + a * GaussianExpectation(sp.tanh(x * a) ** 2, x, k), [x, a, k])
    assert float(f(10.0, 0.5, 1.0)) == pytest.approx(10 + 0.5 * normal(lambda u: np.tanh(u / 2) ** 2, 1.0), rel=1e-12)


def test_price_theorem_is_the_derivative_of_the_node() -> None:
    node = GaussianExpectation(sp.tanh(x) ** 2, x, k)
    value, slope = compiled(node), compiled(node.diff(k))
    assert float(slope(0.8)) == pytest.approx(float(jax.grad(value)(0.8)), rel=1e-11)
    mixed = GaussianExpectation(sp.cos(x) * sp.exp(y), (x, y), [[k11, k12], [k12, k22]])
    assert sp.simplify(mixed.diff(k12).doit() - mixed.doit().diff(k12)) == 0
    assert sp.simplify(mixed.diff(k22).doit() - mixed.doit().diff(k22)) == 0


def test_kinks_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedNode, match=r"Max\(0, x\) in E\[.*has a kink"):
        compiled(GaussianExpectation(sp.Max(x, 0) * sp.tanh(x), x, k))
    with pytest.raises(UnsupportedNode, match="expectations within expectations"):
        compiled(GaussianExpectation(sp.tanh(y * GaussianExpectation(sp.tanh(x) ** 2, x, k)) ** 2, y, k))


def test_the_rule_is_as_fine_as_the_function_needs() -> None:
    assert choose_rule(sp.tanh(x) ** 2, (x,)).n < choose_rule(sp.tanh(4 * x) ** 2, (x,)).n
    with pytest.raises(InputError, match="no trapezoidal rule"):
        choose_rule(sp.tanh(300 * x) ** 2, (x,))
    coarse = compiled(GaussianExpectation(sp.tanh(x) ** 2, x, k), rule="trapezoid:17@8")
    assert 1e-8 < abs(float(coarse(1.0)) - normal(lambda u: np.tanh(u) ** 2, 1.0)) < 0.1


def test_the_range_of_variances_is_that_asked_for() -> None:
    node, exact = GaussianExpectation(sp.tanh(x) ** 2, x, k), normal(lambda u: np.tanh(u) ** 2, 64.0)
    errors = [abs(float(compiled(node, [k], variance=variance)(64.0)) - exact) for variance in (4, 64)]
    assert errors[1] < 1e-12 < errors[0]
    with pytest.raises(InputError, match="variance is -1"):
        compiled(node, variance=-1)


def test_malformed_expectations() -> None:
    with pytest.raises(ProgramError, match="not symmetric"):
        GaussianExpectation(x * y, (x, y), [[1, k], [0, 1]])
    with pytest.raises(ProgramError, match="depends on them"):
        GaussianExpectation(x, x, x)
    with pytest.raises(ProgramError, match="one or two different symbols"):
        GaussianExpectation(x, (x, x), [[1, 0], [0, 1]])
    with pytest.raises(ProgramError, match="text is not read"):
        GaussianExpectation("tanh(x)", x, k)


def test_substitution_respects_the_bound_variable() -> None:
    node = GaussianExpectation(sp.exp(a * x), x, k)
    assert node.subs(x, 5) == node
    assert sp.simplify(node.subs(a, x).doit() - sp.exp(k * x**2 / 2)) == 0  # no capture: E exp(x X) with the outer x


# -- recursions --------------------------------------------------------------------------------------------------------


def test_scan_with_records() -> None:
    f = compiled(Scan({x: a * x * (1 - x)}, records={"square": x**2}), [x, a], name="logistic")
    result, state = f(0.3, 3.7, depth=3), [0.3]
    for _ in range(3):
        state.append(3.7 * state[-1] * (1 - state[-1]))
    np.testing.assert_allclose(result.x, state, rtol=1e-14)
    np.testing.assert_allclose(result.square, np.square(state), rtol=1e-14)
    assert f([0.1, 0.2], 3.0, depth=2).x.shape == (3, 2)


def test_mean_field_recursion_with_an_expectation() -> None:
    f = compiled(Scan({k: a * GaussianExpectation(sp.tanh(x) ** 2, x, k)}), [k, a])
    value = 1.0
    for found in f(1.0, 1.5, depth=3).k:
        assert float(found) == pytest.approx(value, rel=1e-12)
        value = 1.5 * normal(lambda u: np.tanh(u) ** 2, value)


def test_scan_of_a_tensor_keeps_the_order_of_axes() -> None:
    W = Tensor("W", (P, P))
    f = compiled(Scan({W[p, q]: 2 * W[q, p] + a * delta(p, q)}), [W, a])
    start = np.arange(4.0).reshape(2, 2)
    np.testing.assert_allclose(f(start, 1.0, depth=1).W[1], 2 * start.T + np.eye(2))


def test_ode_with_explicit_time() -> None:
    f = compiled(Ode({x: -a * x + t}, time=t), [x, a])
    ts = np.array([0.5, 1.0, 2.0])
    result = f(1.0, 2.0, ts=ts)
    exact = ts / 2 - 1 / 4 + (1 - 0.5 / 2 + 1 / 4) * np.exp(-2 * (ts - 0.5))
    np.testing.assert_allclose(result.x, exact, rtol=1e-9)
    assert bool(result.success) and not bool(f(1.0, 2.0, ts=ts, max_steps=2).success)


@pytest.mark.slow
def test_ode_against_another_method() -> None:
    assert check_module(compiled(Ode({x: -a * x + t}, time=t), [x, a]).module).passed


def test_ode_of_a_tensor() -> None:
    f = compiled(Ode({K[p, q]: a * K[p, q] + delta(p, q)}), [K, a])
    found = f(np.eye(2), 0.5, ts=[0.0, 1.0]).K[1]
    np.testing.assert_allclose(found, np.eye(2) * (3 * np.exp(0.5) - 2), rtol=1e-9)


# -- fixed points ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cosine():  # type: ignore[no-untyped-def]
    return compiled(FixedPoint({x: sp.cos(a * x)}), [x, a], name="cosine")


def test_fixed_point_and_its_derivatives(cosine) -> None:  # type: ignore[no-untyped-def]
    """x = cos(a x): dx/da = -x s/(1 + a s), s = sin(a x)."""
    root = 0.7390851332151607
    assert float(cosine(0.5, 1.0).x) == pytest.approx(root, rel=1e-14)
    s = np.sin(root)
    exact = -root * s / (1 + s)
    for derivative in (jax.grad(lambda b: cosine(0.5, b).x), jax.jacfwd(lambda b: cosine(0.5, b).x)):
        assert float(derivative(1.0)) == pytest.approx(exact, rel=1e-12)
    step = 1e-4
    first = jax.grad(lambda b: cosine(0.5, b).x)
    second = (float(first(1 + step)) - float(first(1 - step))) / (2 * step)
    assert float(jax.grad(first)(1.0)) == pytest.approx(second, rel=1e-6)
    assert float(jax.grad(lambda start: cosine(start, 1.0).x)(0.5)) == 0.0


def test_batches_converge_each_for_itself(cosine) -> None:  # type: ignore[no-untyped-def]
    result = cosine(0.5, jnp.array([1.0, 0.5, 1.6]), max_steps=300)
    assert result.converged.tolist() == [True, True, False]  # |a sin(a x)| > 1 at the last one
    assert int(result.steps) == 300


def test_coupled_and_tensor_fixed_points() -> None:
    both = compiled(FixedPoint({x: sp.cos(y) / 2, y: sp.sin(x) + a / 2}), [x, y, a])
    found = both(0.0, 0.0, 0.7)
    assert float(found.x) == pytest.approx(np.cos(float(found.y)) / 2, rel=1e-14)
    W, G = Tensor("W", (P, P)), Tensor("G", (P, P))
    f = compiled(FixedPoint({G[p, q]: (W[p, r] * G[r, q]).sum(r) + delta(p, q)}), [G, W])
    w = np.array([[0.2, 0.1], [0.3, 0.4]])
    np.testing.assert_allclose(f(np.zeros((2, 2)), w).G, np.linalg.inv(np.eye(2) - w), rtol=1e-13)
    gradient = jax.grad(lambda v: f(jnp.zeros((2, 2)), v).G[0, 1])(jnp.array(w))
    inverse = np.linalg.inv(np.eye(2) - w)
    np.testing.assert_allclose(gradient, np.outer(inverse[0], inverse[:, 1]), rtol=1e-12)


def test_a_corrupted_step_moves_the_fixed_point() -> None:
    from codegen.load import _load

    f = symtensor.compile(FixedPoint({x: sp.cos(a + 2 * x) / 4}), [x, a])
    assert f.check().passed
    corrupted = f.source.replace("_now = f_step(x, a)", "_now = f_step(a, x)")
    assert corrupted != f.source and not _load("corrupted", corrupted).self_check().passed


# -- complex numbers ---------------------------------------------------------------------------------------------------

POINTS = np.array([1 + 2j, -0.5 - 0.3j, 0.2 - 4j, -2 + 0.1j])
FORMULAS = [
    (sp.exp(z) * z**2 + sp.I * z, lambda u: np.exp(u) * u**2 + 1j * u),
    (sp.log(z) * sp.sqrt(z), lambda u: np.log(u) * np.sqrt(u)),
    (1 / (1 + z**3), lambda u: 1 / (1 + u**3)),
    (z ** sp.Rational(-3, 2), lambda u: u**-1.5),
    (sp.tanh(z) + sp.tan(z), lambda u: np.tanh(u) + np.tan(u)),
    (sp.sin(z) * sp.cosh(z) - sp.cos(z) * sp.sinh(z), lambda u: np.sin(u) * np.cosh(u) - np.cos(u) * np.sinh(u)),
    (sp.conjugate(z) * z + sp.Abs(z), lambda u: abs(u) ** 2 + abs(u)),
]


def test_complex_formulas_against_numpy() -> None:
    f = compiled([formula for formula, _ in FORMULAS], [z], dtype="complex128")
    for found, (_, wanted) in zip(f(POINTS), FORMULAS):
        assert found.dtype == jnp.complex128
        np.testing.assert_allclose(found, wanted(POINTS), rtol=1e-13)


def test_real_arguments_stay_real_and_tanh_does_not_overflow() -> None:
    f = compiled(a * sp.tanh(z), [a, z], dtype="complex128")
    assert complex(f(2.0, 400 + 1j)) == 2.0
    with pytest.raises(ValueError, match="argument a is complex"):
        f(1j, 0.0)
    assert compiled(z**2, dtype="complex64")(1 + 1j).dtype == jnp.complex64


def test_complex_functions_without_known_parts_are_named() -> None:
    with pytest.raises(UnsupportedNode, match="parts of erf in erf"):
        compiled(sp.erf(z), dtype="complex128")
    with pytest.raises(UnsupportedNode, match="no real constant"):
        compiled(z**z, dtype="complex128")
    assert real_and_imaginary(sp.erf(x), {x: (x, sp.S.Zero)}, "f") == (sp.erf(x), 0)


# -- errors ------------------------------------------------------------------------------------------------------------


def test_malformed_programs() -> None:
    with pytest.raises(ProgramError, match="mapping from at least one state"):
        Scan({})
    with pytest.raises(ProgramError, match="is no state"):
        Ode({x + y: x})
    with pytest.raises(ProgramError, match="a symbol that is no state"):
        Ode({x: x}, time=x)
    with pytest.raises(InputError, match="the state x is not among the arguments"):
        compiled(Scan({x: a}), [a])
    with pytest.raises(ShapeError, match=r"declared with the symmetry \(1, 0\)"):
        compiled(Scan({K[p, q]: (Tensor("W", (P, P))[p, r] * K[r, q]).sum(r)}))
    with pytest.raises(ShapeError, match="its formula has the free indices p"):
        compiled(Scan({K[p, q]: K[p, p]}))
    with pytest.raises(ShapeError, match="state x is a scalar"):
        compiled(Scan({x: K[p, q]}))
    with pytest.raises(NameClash, match="two states are called alike"):
        compiled(Scan({x: y, sp.Symbol("x"): y}))
    with pytest.raises(InputError, match="are not for a Scan"):
        compiled(Scan({x: x}), outputs="u")
    with pytest.raises(ValueError, match="depth not given"):
        compiled(Scan({x: x}))(1.0)
