"""What is refused and why; which operations have kinks; cost and memory by counting."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symtensor.numerics.contractions import (
    ContractionError,
    KinkedOperationError,
    along,
    count_work,
    derivative_contractions,
    gradient_at,
    line_coefficients,
    mixed_gradients,
    rough_operations,
    training_direction,
)
from symtensor.numerics.neural_networks import fully_connected

NET = fully_connected((2, 3), "tanh")
THETA = NET.init(jax.random.key(0))
X = np.array([[0.4, -1.1], [0.9, 0.3]])
W = jax.random.normal(jax.random.key(1), (3, 3))
V = jnp.array([0.3, -0.5, 0.7])


def rnn(t, x):
    last, traced = jax.lax.scan(lambda h, _: (jnp.tanh(t @ h + x), jnp.sum(h**2)), x, None, length=3)
    return jnp.sum(last) + jnp.sum(traced)


SMOOTH = {
    "scan": rnn,
    "fori_loop": lambda t, x: jnp.sum(jax.lax.fori_loop(0, 2, lambda _, h: jnp.tanh(t @ h), x)),
    "softmax": lambda t, x: x @ jax.nn.softmax(t @ x),
    "logsumexp": lambda t, x: jax.nn.logsumexp(t @ x),
    "softplus (custom rule)": lambda t, x: jnp.sum(jax.nn.softplus(t @ x)),
    "silu": lambda t, x: jnp.sum(jax.nn.silu(t @ x)),
    "log det": lambda t, x: jnp.linalg.slogdet(t @ t.T + jnp.eye(3))[1],
    "tan": lambda t, x: jnp.sum(jnp.tan(t @ x)),
    "power": lambda t, x: jnp.sum((2 + jnp.sin(t)) ** t),
    "checkpoint": lambda t, x: jnp.sum(jax.checkpoint(lambda h: jnp.tanh(t @ h))(x)),
    "mask of the input": lambda t, x: jnp.sum(jnp.where(x > 0, jnp.tanh(t @ x), 0.0)),
    "convolution": lambda t, x: jnp.sum(jnp.tanh(jnp.convolve(x, t[0]))),
}
ROUGH = {
    "max": lambda t, x: jnp.sum(jnp.maximum(t @ x, 0.0)),
    "abs": lambda t, x: jnp.sum(jnp.abs(t @ x)),
    "sort": lambda t, x: jnp.sort(t @ x)[0],
    "reduce_max": lambda t, x: jnp.max(t @ x),
    "select": lambda t, x: jnp.sum(jax.nn.relu(t @ x)),  # a custom rule inside jit
    "cond": lambda t, x: jax.lax.cond(t[0, 0] > 0, jnp.sum, lambda s: 2 * jnp.sum(s), t @ x),
    "clamp": lambda t, x: jnp.sum(jax.lax.clamp(-1.0, t @ x, 1.0)),
    "floor": lambda t, x: jnp.sum(jnp.floor(t @ x)),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_any_smooth_function_in_taylor_mode(name):
    """Primitives without a rule in jet, loops, and custom rules: the same as nested jvp, and as the reverse pass of it."""
    function = lambda t: SMOOTH[name](t, V)  # noqa: E731
    assert not rough_operations(SMOOTH[name], W, fixed=(V,))
    direction = jnp.cos(W)
    one, other = (line_coefficients(function, W, direction, 3, method) for method in ("taylor", "nested"))
    np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", ROUGH)
def test_kinks_and_jumps_are_named_before_anything_is_computed(name):
    with pytest.raises(KinkedOperationError, match=name):
        derivative_contractions(ROUGH[name], W, V[None], orders=2, D=0)


def test_kinks_stop_only_the_orders_that_lose_delta_terms():
    relu = fully_connected((2, 4), "relu")
    theta = relu.init(jax.random.key(0))
    kernel = derivative_contractions(relu.apply, theta, X, orders={0: 1, 1: 0})
    gradient = jax.grad(relu.apply)(theta, jnp.asarray(X[0]))
    assert abs(kernel[0, 1].values[0] - sum(float(jnp.sum(g**2)) for g in jax.tree.leaves(gradient))) < 1e-13
    for orders in ({0: 2}, {1: 1}, {2: 0}):
        with pytest.raises(KinkedOperationError, match="Stein"):
            derivative_contractions(relu.apply, theta, X, orders=orders)
    with pytest.raises(KinkedOperationError, match="floor"):
        derivative_contractions(ROUGH["floor"], W, V[None], orders={0: 1})
    forced = derivative_contractions(relu.apply, theta, X, orders={0: 2}, assume_smooth=True)
    assert forced.assumptions and "assumed" in repr(forced)


def test_softplus_at_zero_has_its_derivatives():
    """1/2, 1/4, 0, -1/8 at 0, where a maximum inside would give 1/2, 0 (jax issue 2107)."""
    net = fully_connected((1, 1), "softplus")
    theta = ({"W": jnp.zeros((1, 1))}, {"W": jnp.ones((1, 1))})
    step = ({"W": jnp.ones((1, 1))}, {"W": jnp.zeros((1, 1))})
    for function in (lambda t: net.apply(t, jnp.ones(1)), lambda t: jax.nn.softplus(t[0]["W"][0, 0])):
        values = [float(c) * f for c, f in zip(line_coefficients(function, theta, step, 4), (1, 1, 2, 6, 24))]
        np.testing.assert_allclose(values, [np.log(2), 0.5, 0.25, 0.0, -0.125], atol=1e-15)


def test_series_are_coefficients_and_high_orders_hold_their_digits():
    np.testing.assert_allclose(line_coefficients(jnp.exp, 0.0, 1.0, 4), [1, 1, 1 / 2, 1 / 6, 1 / 24], rtol=1e-15)
    sixth = line_coefficients(lambda x: 1 / x, 4.0, 1.0, 6)[6] * 720  # jax issue 3136
    assert abs(float(sixth) - 0.0439453125) < 1e-16
    cube = line_coefficients(lambda x: jnp.sum(jnp.array([x**0, x, x**2, x**3])), 0.0, 1.0, 4)
    np.testing.assert_allclose(cube, [1, 1, 1, 1, 0])  # x**k at 0 (jax issues 14745, 18450)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"eta": 0.0}, ContractionError, "positive finite learning rate"),
        ({"eta": -1.0}, ContractionError, "positive"),
        ({"eta": float("nan")}, ContractionError, "positive"),
        ({"eta": "0.1"}, TypeError, "must be a number"),
        ({"orders": -1}, ValueError, "orders"),
        ({"orders": ()}, ContractionError, "ask for nothing"),
        ({"D": (-1,)}, ValueError, "D = -1"),
        ({"method": "fast"}, ContractionError, "'taylor', 'jet', 'nested'"),
        ({"output": 1}, ContractionError, "1 outputs"),
        ({"output": "mean"}, ContractionError, "'sum'"),
        ({"seeds": 3}, ContractionError, "net.init"),
        ({"stacked": True}, ContractionError, "first axes"),
        ({"directions": X}, ContractionError, "gradient_at"),
        ({"directions": gradient_at(np.ones((2, 5)))}, ContractionError, r"\(5,\)"),
        ({"directions": mixed_gradients(X), "orders": 3}, ContractionError, "2 points"),
        ({"directions": along((1.0,))}, ContractionError, "structure"),
    ],
)
def test_wrong_requests(options, error, text):
    with pytest.raises(error, match=text):
        derivative_contractions(NET.apply, THETA, X, **options)


def test_wrong_models_parameters_and_inputs():
    pair = fully_connected((2, 3), outputs=2)
    theta = pair.init(jax.random.key(0))
    with pytest.raises(ContractionError, match=r"2 outputs.*output='sum'"):
        derivative_contractions(pair.apply, theta, X)
    first, second, both = (
        derivative_contractions(pair.apply, theta, X, orders={0: 0}, output=o)[0, 0].values for o in (0, 1, "sum")
    )
    np.testing.assert_allclose(first + second, both, rtol=1e-14)
    with pytest.raises(TypeError, match=r"theta\['k'\] has entries of type int"):
        derivative_contractions(lambda t, x: t["w"] * x, {"w": 1.0, "k": np.array([1, 2])}, np.ones(1))
    with pytest.raises(TypeError, match="is a function"):
        derivative_contractions(lambda t, x: t["w"] * x, {"w": 1.0, "phi": jnp.tanh}, np.ones(1))
    with pytest.raises(TypeError, match="complex"):
        derivative_contractions(lambda t, x: t * x, 1j, np.ones(1))
    with pytest.raises(ContractionError, match="one of them"):
        derivative_contractions(NET.apply, THETA, X[0])
    with pytest.raises(ContractionError, match=r"inputs\[1, 0\] = nan"):
        derivative_contractions(NET.apply, THETA, np.array([[0.0, 1.0], [np.nan, 1.0]]))
    with pytest.raises(ContractionError, match="N >= 1"):
        derivative_contractions(NET.apply, THETA, X[:0])
    with pytest.raises(ContractionError, match="float32"):
        derivative_contractions(lambda t, x: (t * x[0]).astype(jnp.float32), 1.0, X)
    with pytest.raises(ContractionError, match=r"C_\(0, 1\) is .* at input 0"):
        derivative_contractions(lambda t, x: jnp.sqrt(t) * x[0], 0.0, X, orders={0: 1})
    with pytest.raises(ContractionError, match="residuals"):
        training_direction(X, [1.0])
    with pytest.raises(ContractionError, match="all residuals are zero"):
        training_direction(X, [0.0, 0.0])
    with pytest.raises(ValueError, match="float64"), jax.enable_x64(False):
        derivative_contractions(NET.apply, THETA, X)


def test_seeds_stacked_parameters_and_chunks_give_the_same_numbers():
    drawn = derivative_contractions(NET.apply, NET.init, X, orders={0: 2, 1: 1}, seeds=(4, 9))
    stacked = jax.vmap(NET.init)(jnp.stack([jax.random.key(4), jax.random.key(9)]))
    given = derivative_contractions(NET.apply, stacked, X, orders={0: 2, 1: 1}, stacked=True, chunk=1)
    alone = derivative_contractions(NET.apply, NET.init(jax.random.key(9)), X, orders={0: 2, 1: 1})
    for entry in drawn:
        np.testing.assert_allclose(entry.values, given[entry.D, entry.d].values, rtol=1e-12)
        np.testing.assert_allclose(entry.values[1], alone[entry.D, entry.d].values, rtol=1e-12)
    assert drawn.axes == ("seed", "input") and drawn.seeds == (4, 9) and "2 seeds x 2 inputs" in repr(drawn)


def test_work_grows_as_a_polynomial_of_the_order():
    """Counted in the jaxpr: the products of weights grow linearly in d for D = 0; nested jvp doubles with every order."""
    net = fully_connected((8, 64, 64), "tanh")
    theta, x = jax.eval_shape(net.init, jax.random.key(0)), jax.ShapeDtypeStruct((8,), jnp.float64)

    def work(d: int, method: str) -> float:
        def value(t, y, v):
            return line_coefficients(lambda s: net.apply(s, y), t, v, d, method)[d]

        return count_work(value, theta, x, theta).operations

    taylor, nested = [work(d, "taylor") for d in range(1, 8)], [work(d, "nested") for d in range(1, 6)]
    steps = np.diff(taylor)
    assert steps.max() / steps.min() < 1.5 and taylor[4] < 6 * taylor[0]
    assert nested[4] > 3 * taylor[4] and min(np.divide(nested[1:], nested[:-1])) > 1.7
    reverse = derivative_contractions(net.apply, net.init, np.ones((1, 8)), seeds=1, orders={1: (1, 2, 3, 4, 5, 6)}).cost
    counted = [reverse[1, d].operations for d in range(1, 7)]
    assert np.diff(counted, 2).max() < 0.2 * counted[0]  # at most quadratic, with a small second difference


def test_memory_is_linear_in_the_parameters_and_does_not_grow_with_the_inputs():
    """The compiler's own count for the tangent kernel and C_{1,1} (neural-tangents issues 30, 100)."""
    from symtensor.numerics.contractions._programs import _program

    def peak(width: int, inputs: int) -> tuple[int, int]:
        net = fully_connected((4, width, width), "tanh")
        shapes = jax.eval_shape(net.init, jax.random.key(0))
        program = _program(net.apply, "same", ((0, 1), (0, 3), (1, 1)), "taylor", 1)
        compiled = program.lower(shapes, jax.ShapeDtypeStruct((inputs, 4), jnp.float64), ()).compile()
        return compiled.memory_analysis().temp_size_in_bytes, net.parameters

    (small, few), (large, many) = peak(64, 8), peak(256, 8)
    assert large / small < 1.2 * many / few
    assert large < 6 * 8 * many
    assert peak(256, 64)[0] < 1.05 * large
