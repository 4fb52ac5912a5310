"""Composites, the scan over depth and the integration: against plain loops, SciPy, and the published numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from codegen_kernel_set import COMMON, FOUR, ORDERS, PAIR, STATE, hierarchy, layer, specification, tensor_kernels

from codegen import GenerationError, NameClash, ShapeError, UnboundName, generate
from codegen.backends.numpy_backend import NumpyBackend
from symtensor.activation import activation
from symtensor.kernels import (
    Argument,
    Assignment,
    CompositeKernel,
    MomentKernel,
    OdeKernel,
    ScanKernel,
    TensorKernel,
)
from symtensor.tensor import Dimension, Tensor

PARAMETERS = {"c_w": 2.0, "c_b": 0.1, "alpha": 1.0, "dt": 0.05}


def start(K):  # type: ignore[no-untyped-def]
    K = jnp.asarray(K)
    V = jnp.einsum("ac,bd->abcd", K, K)
    return K, V + V.swapaxes(2, 3), jnp.zeros_like(K)


@pytest.fixture(scope="module")
def module():  # type: ignore[no-untyped-def]
    return generate(specification("erf", "closed", ode=True, reference_points=False))


@pytest.fixture(scope="module")
def tanh():  # type: ignore[no-untyped-def]
    return generate(specification("tanh", "trapezoid:241@12", ode=True, reference_points=False))


K2 = np.array([[2.0, 0.6], [0.6, 1.5]])


def test_scan_is_the_layer_iterated(module) -> None:  # type: ignore[no-untyped-def]
    namespace = module.load()
    history = namespace.hierarchy(*start(K2), **PARAMETERS, depth=3)
    state = start(K2)
    for level in range(4):
        now = namespace.layer(*state, **PARAMETERS)
        for name, value in zip(("K0", "V4", "K1"), state):
            np.testing.assert_allclose(getattr(history, name)[level], value, rtol=1e-13)
        np.testing.assert_allclose(history.U1[level], now.U1, rtol=1e-12)
        state = now.K0_next, now.V4_next, now.K1_next
    assert history.V4.shape == (4, 2, 2, 2, 2)


def test_layer_against_numpy(module) -> None:  # type: ignore[no-untyped-def]
    state = dict(zip(("K0", "V4", "K1"), map(np.asarray, start(K2))))
    state["K1"] = np.array([[0.3, -0.1], [-0.1, 0.2]])
    wanted = NumpyBackend(module.spec).evaluate("layer", {**state, **PARAMETERS})
    found = module.load().layer(**state, **PARAMETERS)
    for name, value in wanted.items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-11, err_msg=name)


@pytest.mark.parametrize(
    ("rule", "derivatives", "V4", "K1"),
    [("trapezoid:161", "inside", 47.7898, -1.02667), ("gh:32", "inside", 42.878, None)],
)
def test_published_recursion(rule: str, derivatives: str, V4: float, K1: float | None) -> None:
    """800 layers, C_W = 2, C_b = 0, K^0 = 2, dt = 0.0025: converged, and the published value of 32 nodes."""
    namespace = generate(specification("tanh", rule, derivatives, reference_points=False)).load()
    history = namespace.hierarchy(*start([[2.0]]), 2.0, 0.0, 1.0, 0.0025, depth=800)
    assert float(history.V4[-1, 0, 0, 0, 0]) == pytest.approx(V4, rel=1e-5)
    if K1 is not None:
        assert float(history.K1[-1, 0, 0]) == pytest.approx(K1, rel=1e-5)
        assert float(history.K0[-1, 0, 0]) == pytest.approx(4.367957, rel=1e-6)


def test_relu_recursion_and_linear_network() -> None:
    relu = generate(specification("relu", "closed", reference_points=False)).load()
    history = relu.hierarchy(*start([[2.0]]), 2.0, 0.0, 1.0, 0.0025, depth=400)
    assert float(history.K0[-1, 0, 0]) == pytest.approx(5.42978, rel=1e-6)
    assert float(history.V4[-1, 0, 0, 0, 0]) == pytest.approx(176.016, rel=1e-5)
    np.testing.assert_array_equal(history.K1, 0.0)
    linear = generate(specification("identity", "closed", reference_points=False)).load()
    dt, c_w, c_b, K, V = 0.1, 1.3, 0.2, 0.7, 0.98
    history = linear.hierarchy(*start([[K]]), c_w, c_b, 1.0, dt, depth=5)
    for level in range(6):
        assert float(history.K0[level, 0, 0]) == pytest.approx(K, rel=1e-13)
        assert float(history.V4[level, 0, 0, 0, 0]) == pytest.approx(V, rel=1e-13)
        K, V = K + dt * (c_b + c_w * K), V + dt * (2 * c_w * V + 4 * K * (c_b + c_w * K))


def test_permuting_the_inputs_permutes_the_outputs(module) -> None:  # type: ignore[no-untyped-def]
    K = np.array([[1.0, 0.3, -0.2], [0.3, 0.8, 0.1], [-0.2, 0.1, 1.4]])
    order = np.array([2, 0, 1])
    scan = module.load().hierarchy
    one = scan(*start(K), **PARAMETERS, depth=2)
    other = scan(*start(K[np.ix_(order, order)]), **PARAMETERS, depth=2)
    np.testing.assert_allclose(one.V4[-1][np.ix_(order, order, order, order)], other.V4[-1], rtol=1e-10)
    np.testing.assert_allclose(one.K1[-1][np.ix_(order, order)], other.K1[-1], rtol=1e-9, atol=1e-13)


def test_duplicated_and_zero_inputs_stay_what_they_are(module) -> None:  # type: ignore[no-untyped-def]
    K = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    history = module.load().hierarchy(*start(K), 2.0, 0.0, 1.0, 0.05, depth=4)
    assert all(np.isfinite(values).all() for values in history)
    np.testing.assert_allclose(history.V4[-1, 0, 0, 0, 0], history.V4[-1, 0, 1, 1, 0], rtol=1e-12)
    np.testing.assert_array_equal(history.K0[:, 2, 2], 0.0)


def test_gradient_through_depth(module) -> None:  # type: ignore[no-untyped-def]
    def last(c_w, dtype=jnp.float64):  # type: ignore[no-untyped-def]
        K = [x.astype(dtype) for x in start(K2)]
        return module.load().hierarchy(*K, c_w, 0.1, 1.0, 0.05, depth=3).V4[-1, 0, 1, 0, 1]

    difference = (last(2.0 + 1e-5) - last(2.0 - 1e-5)) / 2e-5
    assert float(jax.grad(last)(2.0)) == pytest.approx(float(difference), rel=1e-7)
    assert float(jax.jvp(last, (2.0,), (1.0,))[1]) == pytest.approx(float(difference), rel=1e-7)
    assert last(2.0, jnp.float32).dtype == jnp.float32


def test_integration_against_scipy_and_the_known_value(tanh) -> None:  # type: ignore[no-untyped-def]
    ts = np.linspace(0.0, 2.0, 9)
    K, V, K1 = start([[2.0]])
    found = tanh.load().continuous(K, V, K1, 2.0, 0.0, ts)
    assert bool(found.success) and int(found.steps) < 100
    kernel = next(kernel for kernel in tanh.kernels if kernel.name == "continuous")
    values = {"K0": np.asarray(K), "V4": np.asarray(V), "K1": np.asarray(K1), "c_w": 2.0, "c_b": 0.0}
    wanted = NumpyBackend(tanh.spec).integrate(kernel, values, ts)
    for name, value in wanted.items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=0, atol=1e-9 * np.abs(value).max(), err_msg=name)
    ends = [float(getattr(found, name)[-1].squeeze()) for name in ("K0", "V4", "K1")]
    np.testing.assert_allclose(ends, [4.3683157, 47.818868, -1.0272445], rtol=3e-8)


def test_integration_reports_failure_and_has_gradients() -> None:
    """dK_0/dt = Q(K_0) alone."""
    drive = next(kernel for kernel in tensor_kernels() if kernel.name == "Q")
    rate = CompositeKernel(
        "rate", (STATE[0], Argument("c_w"), Argument("c_b")),
        (Assignment(("m",), "moments", ("K0",)), Assignment(("Q0",), "Q", ("c_w", "c_b", "m.m00"))),
        (Argument("Q0", PAIR),),
    )  # fmt: skip
    moments = MomentKernel("moments", activation("erf"), ((0, 0),))
    kernels = (moments, drive, rate, OdeKernel("mean", "rate", (("K0", "Q0"),)))
    run = generate(specification("erf", "closed", kernels=kernels, reference_points=False)).load().mean
    K = jnp.array([[2.0]])
    assert not bool(run(K, 2.0, 0.0, jnp.array([0.0, 2.0]), max_steps=2).success)

    def last(c_w):  # type: ignore[no-untyped-def]
        return run(K, c_w, 0.0, jnp.array([0.0, 0.5])).K0[-1, 0, 0]

    difference = (last(2.0 + 1e-4) - last(2.0 - 1e-4)) / 2e-4
    assert float(jax.grad(last)(2.0)) == pytest.approx(float(difference), rel=1e-6)


# -- composites: names and shapes --------------------------------------------------------------------------------------


def refused(error: type[Exception], match: str, *extra) -> None:  # type: ignore[no-untyped-def]
    kernels = (MomentKernel("moments", activation("erf"), ORDERS), *tensor_kernels(), *extra)
    with pytest.raises(error, match=match):
        generate(specification("erf", "closed", kernels=kernels, reference_points=False))


def composite(*assignments: Assignment, returns: tuple[Argument, ...] = (), arguments=STATE) -> CompositeKernel:  # type: ignore[no-untyped-def]
    return CompositeKernel("step", (*arguments, Argument("c_w"), Argument("c_b")), assignments, returns)


def test_composite_errors() -> None:
    drive = Assignment(("q",), "Q", ("c_w", "c_b", "m.m00"))
    refused(UnboundName, "calls 'unknown'", composite(Assignment(("q",), "unknown", ())))
    refused(UnboundName, "'m.m00' is neither an argument nor an earlier target", composite(drive))
    refused(UnboundName, "'m.m13' is no field; m has m00", composite(COMMON[0], Assignment(("q",), "Q", ("c_w", "c_b", "m.m13"))))
    refused(UnboundName, "K0 is an array and has no fields", composite(Assignment(("q",), "Q", ("c_w", "c_b", "K0.m00"))))
    refused(GenerationError, r"Q takes \(c_w, c_b, m00\), got \(c_w\)", composite(Assignment(("q",), "Q", ("c_w",))))
    refused(ShapeError, "V4 has shape", composite(Assignment(("q",), "Q", ("c_w", "c_b", "V4"))))
    refused(ShapeError, "K0 has shape", composite(Assignment(("q",), "Q", ("K0", "c_b", "K0"))))
    refused(NameClash, "'K0' is assigned twice", composite(Assignment(("K0",), "moments", ("K0",))))
    refused(GenerationError, "returns 6 values", composite(Assignment(("x", "y"), "moments", ("K0",))))
    refused(ShapeError, "returned K0 is declared", composite(returns=(Argument("K0", FOUR),)))
    refused(NameClash, "argument 'Q' hides the kernel", composite(arguments=(Argument("Q", PAIR),)))


def test_loop_errors() -> None:
    refused(UnboundName, "its step 'layer' is not among", ScanKernel("scan", "layer", (("K0", "K0_next"),)))
    refused(UnboundName, "its step 'Q' is not a composite", ScanKernel("scan", "Q", (("K0", "K0_next"),)))
    refused(UnboundName, "state 'K9' is not an argument", layer(), ScanKernel("scan", "layer", (("K9", "K0_next"),)))
    refused(UnboundName, "'K9' is not returned", layer(), OdeKernel("flow", "layer", (("K0", "K9"),)))
    refused(ShapeError, "state K0 has shape", layer(), ScanKernel("scan", "layer", (("K0", "V4_next"),)))
    refused(GenerationError, "names a state twice", layer(), ScanKernel("scan", "layer", (("K0", "K0_next"), ("K0", "K1_next"))))
    refused(GenerationError, "carry .* is empty", layer(), ScanKernel("scan", "layer", ()))
    inner = CompositeKernel("outer", STATE, (Assignment(("h",), "scan", ("K0",) * 7),), ())
    refused(GenerationError, "'scan' is a loop", layer(), ScanKernel("scan", "layer", (("K0", "K0_next"),)), inner)


def test_a_local_may_be_called_like_the_function_that_made_it() -> None:
    P = Dimension("P")
    a, b = P.indices("a b")
    W = Tensor("W", (P, P))
    twice = TensorKernel("twice", (Argument("W", PAIR),), 2 * W[a, b], (a, b))
    step = CompositeKernel(
        "step", (Argument("W", PAIR),),
        (Assignment(("twice",), "twice", ("W",)), Assignment(("more",), "twice", ("twice",))),
        (Argument("twice", PAIR), Argument("more", PAIR)),
    )  # fmt: skip
    scan = ScanKernel("scan", "step", (("W", "twice"),))
    module = generate(specification("erf", "closed", kernels=(twice, step, scan)))
    history = module.load().scan(jnp.ones((1, 1)), depth=3)
    np.testing.assert_array_equal(history.W.ravel(), [1, 2, 4, 8])
    np.testing.assert_array_equal(history.more.ravel(), [4, 8, 16, 32])
    assert module.check().passed


def test_compile_time_and_size_do_not_grow_with_depth() -> None:
    namespace = generate(specification("erf", "closed", reference_points=False)).load()
    texts = [namespace.hierarchy.lower(*start(K2), **PARAMETERS, depth=depth).as_text() for depth in (10, 800)]
    assert abs(len(texts[0]) - len(texts[1])) < 200


def test_every_kernel_kind_is_in_the_docstring() -> None:
    module = generate(specification("erf", "closed", kernels=hierarchy("erf", ode=True), reference_points=False))
    head = module.load().__doc__ or ""
    for kernel in module.kernels:
        assert f"{kernel.name}(" in head
