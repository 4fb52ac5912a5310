"""Moment kernels against independent tables: every method, singular pairs, gradients, types, batches."""

from __future__ import annotations

from functools import lru_cache

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from codegen_kernel_set import ORDERS, specification

from codegen import GenerationError, generate
from codegen.backends.moment_oracle import oracle_moments
from codegen.backends.reference import exact
from codegen.gauss import gauss_hermite, gauss_legendre
from symtensor.activation import activation
from symtensor.kernels import MomentKernel
from symtensor.numerics.moments import moment_table
from symtensor.numerics.reference import reference_moments
from symtensor.numerics.rules import Rule, parse_rule

#: regular, proportional (1 and 2, 1 and -2), zero input, an equal copy
KERNEL = np.array(
    [
        [0.8, 1.6, -0.4, 0.0, 0.3, 0.8],
        [1.6, 3.2, -0.8, 0.0, 0.6, 1.6],
        [-0.4, -0.8, 0.2, 0.0, -0.15, -0.4],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.3, 0.6, -0.15, 0.0, 1.1, 0.3],
        [0.8, 1.6, -0.4, 0.0, 0.3, 0.8],
    ]
)
#: proportional, zero, regular
SMALL = KERNEL[np.ix_([0, 1, 3, 4], [0, 1, 3, 4])]
CASES = {
    "tanh": ("trapezoid:161", "inside"),
    "tanh by parts": ("trapezoid:161", "hermite"),
    "gelu": ("trapezoid:161", "auto"),
    "softplus": ("trapezoid:161", "auto"),
    "sin": ("closed", "auto"),
    "erf": ("closed", "auto"),
    "identity": ("closed", "auto"),
    "x**2 - x": ("closed", "auto"),
    "relu": ("closed", "auto"),
    "leaky-relu:0.2": ("closed", "auto"),
    "Max(0,x) - 0.3*Max(0,-x)": ("closed", "auto"),
    "relu split": ("split:12", "hermite"),
    "Abs(x) + tanh(x)": ("split:12", "hermite"),
    "Max(x - 1, 0)*tanh(x)": ("split:12", "hermite"),
}


def moments_spec(name: str, rule: str, derivatives: str, orders=ORDERS, **options):  # type: ignore[no-untyped-def]
    kernel = MomentKernel("moments", activation(name), orders, "Moments.")
    return specification(name, rule, derivatives, kernels=(kernel,), **options)


@lru_cache(maxsize=32)
def loaded(case: str):  # type: ignore[no-untyped-def]
    rule, derivatives = CASES[case]
    name = case.removesuffix(" by parts").removesuffix(" split")
    return generate(moments_spec(name, rule, derivatives, reference_points=False)).load(), name


@pytest.mark.parametrize("case", CASES)
def test_against_the_numpy_table(case: str) -> None:
    module, name = loaded(case)
    rule, derivatives = CASES[case]
    found = module.moments(KERNEL)
    variances = np.diag(KERNEL)
    with np.errstate(all="ignore"):
        table = moment_table(activation(name), variances[:, None], KERNEL, variances, parse_rule(rule), derivatives, ORDERS)
    for i, j in ORDERS:
        wanted = table[i, j]
        np.testing.assert_allclose(found._asdict()[f"m{i}{j}"], wanted, atol=1e-11 * np.abs(wanted).max() + 1e-14, rtol=0)


#: regular, proportional, one input zero, both
PAIRS = (
    [[0.8, 0.3], [0.3, 1.1]],
    [[0.8, -1.6], [-1.6, 3.2]],
    [[0.0, 0.0], [0.0, 1.1]],
    [[0.8, 0.0], [0.0, 0.0]],
    [[0.0, 0.0], [0.0, 0.0]],
)
WAYS = [
    ("tanh", "trapezoid:41", "inside"),
    ("tanh", "trapezoid:41", "hermite"),
    ("erf", "closed", "auto"),
    ("relu", "closed", "auto"),
    pytest.param("Abs(x) + tanh(x)", "split:4", "hermite", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "rule", "derivatives"), WAYS)
def test_gradients_are_finite(name: str, rule: str, derivatives: str) -> None:
    module = generate(moments_spec(name, rule, derivatives, reference_points=False)).load()

    def total(K):  # type: ignore[no-untyped-def]
        return sum(jnp.sum(table) for table in module.moments(K))

    both = jax.jit(lambda K: (jax.grad(total)(K), *jax.jvp(total, (K,), (jnp.ones_like(K),))))
    for K in map(np.array, PAIRS):
        gradient, value, slope = both(K)
        assert np.isfinite(gradient).all() and np.isfinite(value)
        assert float(gradient.sum()) == pytest.approx(float(slope), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("case", ["tanh", "gelu", "relu", "Abs(x) + tanh(x)"])
def test_float32_is_close(case: str) -> None:
    module, _ = loaded(case)
    K = KERNEL[np.ix_([0, 4], [0, 4])]
    double, single = module.moments(K), module.moments(K.astype(np.float32))
    assert {table.dtype.name for table in single} == {"float32"}
    for wanted, found in zip(double, single):
        np.testing.assert_allclose(found, wanted, atol=3e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("case", ["tanh", "erf", "relu"])
def test_automatic_differentiation_gives_prices_theorem(case: str) -> None:
    """d E[h]/dK by AD through the nodes is what the tables of derivatives say, singular pairs included."""
    moments = loaded(case)[0].moments
    direction = SMALL @ np.diag([0.3, -0.1, 0.5, 0.4]) @ SMALL  # stays in the range of K
    m = moments(SMALL)
    diagonal = np.diag(direction)
    half = 0.5 * (m.m20 * diagonal[:, None] + m.m20.T * diagonal)
    automatic = jax.jit(lambda K, D: jax.jvp(lambda k: moments(k).m00, (K,), (D,))[1])(SMALL, direction)
    np.testing.assert_allclose(automatic, half + m.m11 * direction, rtol=0, atol=1e-9)


def test_near_singular_pairs() -> None:
    for gap in (1e-3, 1e-6, 1e-8, 1e-12, 1e-15):
        K = np.array([[2.0, 2.0 * (1 - gap)], [2.0 * (1 - gap), 2.0]])
        found, limit = loaded("tanh")[0].moments(K), loaded("tanh")[0].moments(np.full((2, 2), 2.0))
        for one, other in zip(found, limit):
            assert np.isfinite(one).all()
            np.testing.assert_allclose(one, other, atol=max(30 * gap, 1e-9))
        relu = loaded("relu")[0].moments(K)
        assert np.isfinite(np.stack(relu)).all()
        assert float(relu.m00[0, 1]) == pytest.approx(1.0, rel=3 * gap + 1e-12)


def test_vmap_over_kernels() -> None:
    module, _ = loaded("tanh")
    found = jax.vmap(module.moments)(np.stack([SMALL, 2 * SMALL, 0.5 * SMALL]))
    np.testing.assert_allclose(found.m22[1], module.moments(2 * SMALL).m22, rtol=1e-12, atol=1e-14)


def test_batches_of_pairs_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    module, _ = loaded("tanh")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(9, 12))
    K = X @ X.T / 12
    monkeypatch.setitem(module.BATCH_NODES, "cpu", 10**9)
    once = jax.jit(module.moments.__wrapped__)(K)
    monkeypatch.setitem(module.BATCH_NODES, "cpu", 5 * 161**2)
    batched = jax.jit(module.moments.__wrapped__)(K)
    for one, other in zip(once, batched):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)


def test_memory_stays_under_the_cap() -> None:
    """32 inputs, 496 pairs of 161 x 161 nodes: 100 MB for one array if all were held at once."""
    module, _ = loaded("tanh")
    compiled = module.moments.lower(jnp.eye(32)).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 20e6


def test_other_nodes_can_be_passed() -> None:
    module, _ = loaded("tanh")
    z, w = gauss_hermite(48)
    K = KERNEL[:1, :1]
    assert float(jnp.abs(module.moments(K, jnp.array(z), jnp.array(w)).m00 - module.moments(K).m00)[0, 0]) < 1e-8


@pytest.mark.parametrize(
    ("name", "rule", "derivatives"),
    [("tanh", "trapezoid:41", "inside"), ("tanh", "gh:20", "hermite"), ("relu", "closed", "auto")],
)
def test_only_the_orders_asked_for(name: str, rule: str, derivatives: str) -> None:
    full = generate(moments_spec(name, rule, derivatives, ORDERS, reference_points=False)).load().moments(SMALL)
    for orders in (((0, 0), (1, 3)), ((0, 2),)):
        found = generate(moments_spec(name, rule, derivatives, orders, reference_points=False)).load().moments(SMALL)._asdict()
        assert list(found) == [f"m{i}{j}" for i, j in orders]
        for i, j in orders:
            wanted = full._asdict()[f"m{max(i, j)}{min(i, j)}"]
            np.testing.assert_allclose(found[f"m{i}{j}"], wanted if i >= j else wanted.T, rtol=1e-11, atol=1e-13)


def test_wrong_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"K has shape \(2, 3\)"):
        loaded("tanh")[0].moments(np.ones((2, 3)))


def test_refusals_at_generation() -> None:
    def refused(match: str, *arguments, **options) -> None:  # type: ignore[no-untyped-def]
        with pytest.raises(GenerationError, match=match):
            generate(moments_spec(*arguments, **options))

    refused("tanh has no closed form", "tanh", "closed", "auto")
    refused("loses the delta terms", "relu", "trapezoid:81", "inside")
    refused("known: inside, hermite, auto", "tanh", "trapezoid:81", "weak")
    refused(r"moment order \(1, 0\)", "tanh", "trapezoid:81", "auto", orders=((1, 0),))
    refused(r"moment order \(4, 2\)", "tanh", "trapezoid:81", "auto", orders=((4, 2),))
    refused("name one table twice", "tanh", "trapezoid:81", "auto", orders=((1, 1), (1, 1)))
    kernels = tuple(MomentKernel(name, activation("tanh"), ORDERS) for name in ("moments", "others"))
    with pytest.raises(GenerationError, match="one moment kernel"):
        generate(specification("tanh", "trapezoid:81", kernels=kernels))


def test_32_nodes_are_not_enough_for_tanh() -> None:
    """At variance 4 the response E[sigma' sigma'] + E[sigma sigma''] is off by more inside than by parts, far off both ways."""
    K = np.array([[4.0]])

    def response(way: str, rule: str) -> float:
        m = generate(moments_spec("tanh", rule, way, ((2, 0), (1, 1)), reference_points=False)).load().moments(K)
        return float((m.m20 + m.m11)[0, 0])

    right = response("inside", "trapezoid:161")
    assert response("hermite", "trapezoid:161") == pytest.approx(right, rel=1e-10)
    assert response("hermite", "gh:32") == pytest.approx(right, rel=0.02)
    assert response("hermite", "gh:32") != pytest.approx(right, rel=0.005)
    assert response("inside", "gh:32") != pytest.approx(right, rel=0.05)


# -- the oracle itself -------------------------------------------------------------------------------------------------


def test_oracle_agrees_with_nested_quadrature(name: str = "softplus") -> None:
    with mpmath.workdps(25):
        K = exact([["0.5", "0.25"], ["0.25", "0.75"]])
        orders = ((0, 0), (1, 1))
        tables = oracle_moments(MomentKernel("m", activation(name), orders), K, "inside", 12)
        wanted = reference_moments(activation(name), K[0, 0], K[0, 1], K[1, 1], 12, orders)
        assert all(abs(tables[order][0, 1] - wanted[order]) < mpmath.mpf(10) ** -12 for order in orders)


@pytest.mark.parametrize("name", ["erf", "relu", "sin", "exp(x^2)"])
def test_oracle_agrees_with_closed_forms(name: str) -> None:
    K = np.array([[0.0625, 0.03125], [0.03125, 0.125]])
    with mpmath.workdps(30):
        way = "hermite" if activation(name).kinks else "inside"
        tables = oracle_moments(MomentKernel("m", activation(name), ORDERS), exact(K), way, 15)
    closed = moment_table(activation(name), K[0, 0], K[0, 1], K[1, 1], Rule("closed"), orders=ORDERS)
    for order in ORDERS:
        assert float(tables[order][0, 1]) == pytest.approx(float(closed[order]), rel=1e-11)


@pytest.mark.parametrize("n", [1, 2, 7, 32, 61])
def test_gauss_rules(n: int) -> None:
    for rule, reference in ((gauss_hermite, np.polynomial.hermite_e.hermegauss), (gauss_legendre, np.polynomial.legendre.leggauss)):
        nodes, weights = map(np.array, rule(n))
        wanted, weight = reference(n)
        np.testing.assert_allclose(nodes, wanted, atol=1e-13)
        np.testing.assert_allclose(weights, weight / (np.sqrt(2 * np.pi) if rule is gauss_hermite else 1), atol=1e-13)
        assert (nodes == -nodes[::-1]).all() and (weights == weights[::-1]).all()
