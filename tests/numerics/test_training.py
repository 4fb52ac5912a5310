"""Training of a model and its linearisation: exact maps, an explicit loop with dense kernels, stops, bad input."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from symtensor.numerics._training_step import Moving, make_advance
from symtensor.numerics.training import LOSSES, MemoryCapError, TrainingError, TrainingWarning, fit_decay, train, training_draws

RNG = np.random.default_rng(5)
INPUTS, HELD_OUT = RNG.standard_normal((6, 4)), RNG.standard_normal((5, 4))
TARGETS = RNG.standard_normal(6)


def tanh_net(theta, x):
    """One hidden layer of width 7, two outputs, a pytree of two arrays."""
    return theta["a"] @ jnp.tanh(theta["w"] @ x / 2) / 7**0.5


def tanh_start(key):
    drawn = jax.random.normal(key, (42,))
    return {"a": drawn[:14].reshape(2, 7), "w": drawn[14:].reshape(7, 4)}


def scalar_net(theta, x):
    return tanh_net(theta, x)[0]


def linear_net(n):
    return lambda theta, x: theta[0] @ theta[1] * x / n**0.5


# --- exact maps (weak_correlations.md, section 7) ---


@pytest.mark.parametrize(("n", "q", "y", "eta"), [(1, 2.0, 0.3, 0.05), (50, 0.7, -1.0, 0.4)])
def test_one_hidden_linear_layer_follows_its_exact_map(n: int, q: float, y: float, eta: float) -> None:
    steps, rng = 12, np.random.default_rng(n)
    v, w = rng.standard_normal((2, n))
    run = train(linear_net(n), (v, w), ([q**0.5], [y]), steps=steps, eta=eta, functions=True)
    f, th = (q / n) ** 0.5 * v @ w, (q / n) * (v @ v + w @ w)
    expected, linear, constant = [], [], eta * th
    f_lin = f
    for _ in range(steps + 1):
        expected.append(f)
        linear.append(f_lin)
        g = f - y
        f, th = (
            f - eta * th * g + eta**2 * q * f * g**2 / n,
            th - 4 * eta * q * f * g / n + eta**2 * q * th * g**2 / n,
        )
        f_lin = f_lin - constant * (f_lin - y)
    assert run.function is not None and run.linear_function is not None
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(run.function[:, 0, 0], expected, rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(run.linear_function[:, 0, 0], linear, rtol=0, atol=1e-12 * scale)
    # one step: F - F_lin = C_{0,2} g^2 with C_{0,2} = eta^2 q f / n
    first = eta**2 * q * expected[0] / n * (expected[0] - y) ** 2
    assert abs(run.function[1, 0, 0] - run.linear_function[1, 0, 0] - first) < 1e-12
    assert run.deviation[0, 0] < 1e-15 * scale


def test_one_step_is_the_series_of_the_derivative_contractions() -> None:
    """F(1) - F_lin(1) = sum_{d >= 2} (-g)^d C_{0,d} for one input, with C_{0,d} by nested forward derivatives."""
    theta, x, y, eta = tanh_start(jax.random.key(1)), jnp.asarray(INPUTS[0]), 3.0, 0.2
    run = train(scalar_net, theta, (INPUTS[:1], [y]), steps=1, eta=eta, functions=True)
    v = jax.grad(scalar_net)(theta, x)
    g = float(scalar_net(theta, x)) - y

    def along(t):
        """F on the line theta + t v."""
        return scalar_net(jax.tree.map(lambda a, b: a + t * b, theta, v), x)

    # all derivatives at 0 from values at points on the line, by an interpolating polynomial of high degree
    nodes = 2 * np.cos(np.pi * (np.arange(25) + 0.5) / 25)
    fit = np.polynomial.chebyshev.Chebyshev.fit(nodes, jax.vmap(along)(nodes), 24).convert(kind=np.polynomial.Polynomial)
    terms = [(-g * eta) ** d * fit.coef[d] for d in range(2, 13)]
    total = sum(terms)
    assert run.function is not None and run.linear_function is not None
    measured = float(run.function[1, 0, 0] - run.linear_function[1, 0, 0])
    assert abs(total) > 1e-4
    assert abs(measured - total) < 1e-11
    # the tolerance is far below every one of the terms d = 2, .., 6: dropping one would be noticed
    assert min(abs(term) for term in terms[:5]) > 1e-7


# --- an explicit loop in NumPy: written derivatives, F_lin in function space with the dense kernel ---


def by_hand(theta, draws, inputs, targets, held_out, eta, slope, weight):
    """NumPy, with the derivatives of the tanh net written out; functions on the held-out inputs, (steps + 1, M, K)."""
    a, w = theta["a"], theta["w"]
    every = np.concatenate([held_out, inputs])
    count, outputs = len(held_out), targets.shape[1]

    def forward(a, w, x):
        t = np.tanh(x @ w.T / 2)
        return (t @ a.T / 7**0.5)[:, :outputs], t

    def jacobian(a, w, x):
        """(N, K, P), parameters in the order a, w."""
        t = forward(a, w, x)[1]
        rows = np.zeros((len(x), outputs, 42))
        for k in range(outputs):
            rows[:, k, 7 * k : 7 * k + 7] = t / 7**0.5
            rows[:, k, 14:] = (a[k] * (1 - t**2) / 7**0.5 / 2)[:, :, None].repeat(4, axis=2).reshape(len(x), 28) * np.tile(x, 7)
        return rows

    start = jacobian(a, w, every)
    kernel = np.einsum("iap,jbp->iajb", start, start)
    linear = forward(a, w, every)[0]
    functions, linears = [linear[:count]], [linear[:count]]
    for chosen in draws:
        residual = slope(forward(a, w, inputs[chosen])[0], targets[chosen])
        step = eta * weight * np.einsum("iap,ia->p", jacobian(a, w, inputs[chosen]), residual)
        a, w = a - step[:14].reshape(2, 7), w - step[14:].reshape(7, 4)
        residual = slope(linear[count + chosen], targets[chosen])
        linear = linear - eta * weight * np.einsum("iajb,jb->ia", kernel[:, :, count + chosen], residual)
        functions.append(forward(a, w, held_out)[0])
        linears.append(linear[:count])
    return np.array(functions), np.array(linears)


def softmax_slope(f, y):
    part = np.exp(f - f.max(axis=1, keepdims=True))
    return part / part.sum(axis=1, keepdims=True) - y


ONE_HOT = np.eye(2)[RNG.integers(0, 2, 6)]
#: model, targets, options, factor of the sum over the batch, derivative of the loss
CASES = {
    "full, own loss": (
        scalar_net, TARGETS, {"loss": lambda f, y: jnp.cosh(f - y)}, 1.0, lambda f, y: np.sinh(f - y),
    ),
    "single, logistic": (
        scalar_net, np.sign(TARGETS), {"batch": "single", "loss": "logistic"}, 1.0, lambda f, y: -y / (1 + np.exp(y * f)),
    ),
    "pairs in epochs, softmax, mean": (
        tanh_net, ONE_HOT, {"batch": 2, "loss": "softmax", "sampling": "epochs", "reduction": "mean"}, 0.5, softmax_slope,
    ),
    "threes, square": (tanh_net, ONE_HOT, {"batch": 3}, 1.0, lambda f, y: f - y),
}  # fmt: skip


@pytest.mark.parametrize("case", [*list(CASES)[:3], pytest.param(list(CASES)[3], marks=pytest.mark.slow)])
def test_both_runs_agree_with_an_explicit_loop(case: str) -> None:
    model, targets, options, weight, slope = CASES[case]
    steps, eta, seed = 6, 0.11, 3
    run = train(
        model, tanh_start, (INPUTS, targets, HELD_OUT), steps=steps, eta=eta, seeds=[8, seed], functions=True, **options
    )
    theta = {name: np.asarray(part) for name, part in tanh_start(jax.random.key(seed)).items()}
    batch = {"full": 6, "single": 1}.get(options.get("batch", "full"), options.get("batch"))
    draws = training_draws(seed, steps, 6, batch, options.get("sampling", "independent"))
    given = (INPUTS, targets.reshape(6, -1), HELD_OUT, eta, slope, weight)
    functions, linears = by_hand(theta, draws, *given)
    assert run.function is not None and run.linear_function is not None
    np.testing.assert_allclose(run.function[:, 1].reshape(functions.shape), functions, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.linear_function[:, 1].reshape(linears.shape), linears, rtol=0, atol=1e-12)
    rms = np.sqrt(((functions - linears) ** 2).mean(axis=(1, 2)))
    np.testing.assert_allclose(run.deviation[:, 1], rms, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(run.deviation_mse[:, 1], rms**2, rtol=1e-9, atol=1e-14)
    assert rms[-1] > 1e-4
    if batch != 6:  # other draws for the linear model would be noticed
        other = by_hand(theta, training_draws(seed + 1, steps, 6, batch), *given)[1]
        assert np.abs(other - linears).max() > 1e-3


def test_a_continuous_time_linear_solution_is_another_one() -> None:
    """What the released research code compares with is off by O(eta): the discrete map is what `train` runs."""
    eta, steps = 0.2, 5
    run = train(linear_net(1), (np.array([1.0]), np.array([0.5])), ([1.0], [0.0]), steps=steps, eta=eta, functions=True)
    kernel = 1.0 + 0.25
    assert run.linear_function is not None
    found = run.linear_function[-1, 0, 0]
    assert abs(found - 0.5 * (1 - eta * kernel) ** steps) < 1e-14
    assert abs(found - 0.5 * np.exp(-eta * kernel * steps)) > 1e-2


# --- seeds, draws, measurements ---


@pytest.fixture(scope="module")
def digits_like():
    return (INPUTS, TARGETS, HELD_OUT)


def test_a_seed_does_not_depend_on_the_others_nor_on_the_grouping(digits_like) -> None:
    options = {"steps": 4, "eta": 0.1, "batch": 2, "record": 4}
    calls: dict[int, list] = {1: [], 2: []}
    together = train(scalar_net, tanh_start, digits_like, seeds=[4, 1, 9], progress=lambda *d: calls[1].append(d), **options)
    # a cap that holds one seed, with the passes of a batch, but not all
    grouped = train(
        scalar_net, tanh_start, digits_like, seeds=[9, 1, 4], memory_mb=0.008, progress=lambda *d: calls[2].append(d), **options
    )
    assert calls[1] == [(1, 2), (2, 2)] and calls[2][-1][0] == calls[2][-1][1] > 2
    for name in ("deviation", "loss", "linear_residual"):
        np.testing.assert_allclose(getattr(together, name), getattr(grouped, name)[:, ::-1], rtol=1e-10, atol=1e-15)
    assert len(set(together.deviation[-1].tolist())) == 3


def test_measurements_are_those_of_the_functions(digits_like) -> None:
    eta = 0.1
    run = train(scalar_net, tanh_start(jax.random.key(2)), digits_like, steps=3, eta=eta, functions=True, gradients=True, record=3)
    assert run.steps.tolist() == [0, 3]
    theta0 = tanh_start(jax.random.key(2))
    x, y, held = (jnp.asarray(part) for part in digits_like)
    jacobian = jax.jit(lambda t, a: jax.vmap(lambda b: ravel_pytree(jax.grad(scalar_net)(t, b))[0])(a))
    # sharpness: within 5 % of and not above the dense eigenvalue
    rows = np.asarray(jacobian(theta0, x))
    largest = eta * np.linalg.eigvalsh(rows @ rows.T)[-1]
    assert 0.95 * largest < run.sharpness <= largest * (1 + 1e-12)
    theta, unravel = theta0, ravel_pytree(theta0)[1]
    outputs = jax.jit(lambda t, a: jax.vmap(lambda b: scalar_net(t, b))(a))
    for _ in range(3):
        residual = np.asarray(outputs(theta, x) - y)
        step = unravel(residual @ np.asarray(jacobian(theta, x)))
        theta = jax.tree.map(lambda a, b: a - eta * b, theta, step)
    moved = np.sqrt(eta * np.mean(np.sum(np.asarray(jacobian(theta, held) - jacobian(theta0, held)) ** 2, axis=1)))
    assert run.gradient_change is not None and run.function is not None
    np.testing.assert_allclose(run.gradient_change[:, 0], [0.0, moved], rtol=1e-10, atol=1e-15)
    output = outputs(theta, x)
    np.testing.assert_allclose(run.loss[1, 0], np.mean((output - y) ** 2) / 2, rtol=1e-12)
    np.testing.assert_allclose(run.residual[1, 0], np.sqrt(np.mean((output - y) ** 2)), rtol=1e-12)
    change = np.sqrt(np.mean((run.function[1, 0] - run.function[0, 0]) ** 2))
    np.testing.assert_allclose(run.change[1, 0], change, rtol=1e-12)
    # the deviation is one of functions: the difference of the two losses is another number
    assert abs(run.loss[1, 0] - run.linear_loss[1, 0] - run.deviation[1, 0]) > 1e-4
    assert "gradient descent, 6 inputs" in repr(run) and "held-out inputs" in repr(run)


def test_draws_are_uniform_and_epochs_are_permutations() -> None:
    drawn = training_draws(0, 4000, 8)[:, 0]
    counts = np.bincount(drawn, minlength=8)
    assert np.sum((counts - 500) ** 2 / 500) < 24.3  # chi-square with 7 degrees of freedom, p = .001
    assert np.array_equal(training_draws(0, 10, 8), training_draws(0, 4000, 8)[:10])
    batches = training_draws(1, 300, 8, 3)
    assert all(len(set(row)) == 3 for row in batches.tolist())
    passes = training_draws(1, 8, 8, 2, "epochs").reshape(2, 8)
    assert (np.sort(passes, axis=1) == np.arange(8)).all() and not np.array_equal(*passes)


def test_memory_is_linear_in_the_parameters() -> None:
    """Temporaries of an update per parameter: constant, where a Jacobian on the 6 inputs would add 6."""
    from symtensor.numerics._training_input import Plan

    def per_parameter(n: int) -> float:
        theta = {"a": jax.ShapeDtypeStruct((2, n), float), "w": jax.ShapeDtypeStruct((n, 300), float)}
        advance = make_advance(tanh_net, LOSSES["square"], Plan(6, 6, "independent", "sum"))
        moving = Moving(theta, theta, jax.ShapeDtypeStruct((), int))
        x, y = jax.ShapeDtypeStruct((6, 300), float), jax.ShapeDtypeStruct((6, 2), float)
        compiled = jax.jit(advance).lower(theta, moving, jax.ShapeDtypeStruct((0, 6), np.int32), 0.1, 0, 2, x, y).compile()
        used = compiled.memory_analysis()
        if used is None:
            pytest.skip("this backend does not report its memory")
        return used.temp_size_in_bytes / (8 * 302 * n)

    found = [per_parameter(n) for n in (400, 1600)]
    assert max(found) < 5 and abs(found[1] - found[0]) < 0.3


# --- the hypothesis of the corollary ---


def test_the_decay_of_a_single_mode_is_measured() -> None:
    """One input: C'(F_lin(s)) = (1 - eta Theta)^s C'(0), so T = -1/log(1 - eta Theta)."""
    v, w = np.random.default_rng(0).standard_normal((2, 40))
    run = train(linear_net(40), (v, w), ([1.0], [2.0]), steps=30, eta=0.05)
    rate = 0.05 * (v @ v + w @ w) / 40
    decay = run.decay()
    np.testing.assert_allclose(decay.T[0], -1 / np.log(1 - rate), rtol=1e-9)
    assert decay.exponential[0] and decay.r_squared[0] > 1 - 1e-12 and abs(decay.constant[0] - 1) < 1e-9


def test_two_modes_are_not_one_exponential() -> None:
    s = np.arange(60)
    fast, slow = np.exp(-s / 3.0), np.exp(-s / 40.0)
    decay = fit_decay(s, np.stack([fast + 0.05 * slow, slow, np.ones(60)], axis=1))
    assert decay.exponential.tolist() == [False, True, False]
    assert decay.T_late[0] > 2 * decay.T_early[0]
    late = fit_decay(s, (slow * np.where(s == 10, 5.0, 1.0))[:, None])
    assert 4.5 < late.constant[0] < 6  # the one record above the exponential is not overlooked
    rounding = fit_decay(s, np.where(s < 20, np.exp(-2.0 * s), 1e-17)[:, None])
    assert abs(rounding.T[0] - 0.5) < 1e-6 and rounding.records[0] == 14
    with pytest.raises(TrainingError, match="record more steps"):
        fit_decay([0, 1, 2], np.ones((3, 1)))


def test_the_deviation_of_converged_sgd_does_not_grow() -> None:
    """Corollary: with a decaying residual the deviation stops; without (the first steps) it grows."""
    data = (np.array([[1.0, 0.2], [-0.3, 1.0]]), np.array([0.5, -0.4]), np.array([[0.6, 0.8]]))

    def model(theta, x):
        return theta["a"] @ jnp.tanh(theta["w"] @ x) / 64**0.5

    def start(key):
        drawn = jax.random.normal(key, (192,))
        return {"a": drawn[:64], "w": drawn[64:].reshape(64, 2)}

    run = train(model, start, data, steps=600, eta=0.2, batch="single", seeds=9)
    assert (run.decay().T > 0).all() and np.median(run.decay().T) < 100
    assert abs(run.growth(since=150)) < 0.02
    early = run.quantile(0.5)[run.at(8)] / run.quantile(0.5)[run.at(2)]
    assert early > 2


# --- stopping ---


def test_a_seed_that_diverges_stops_and_the_others_go_on() -> None:
    """theta -> theta - eta theta^3: |theta| > sqrt(2 / eta) runs away in a few steps, smaller ones converge."""

    def model(theta, x):
        return theta * x

    def quartic(f, y):
        return f**4 / 4

    def start(key):
        return 3 * jax.random.normal(key, ())

    options = {"steps": 40, "eta": 0.2, "loss": quartic}
    with pytest.warns(TrainingWarning, match=r"seed \d+ at step \d+.*kept"):
        run = train(model, start, ([1.0], [0.0]), seeds=8, **options)
    expected = {}
    for seed in range(8):
        theta = np.float64(start(jax.random.key(seed)))
        for step in range(41):
            with np.errstate(over="ignore"):
                found = theta**3
            if not np.isfinite(found):
                expected[seed] = step
                break
            theta = theta - 0.2 * found
    assert 0 < len(expected) < 8
    found = {stop.seed: stop.step for stop in run.stopped}
    assert found.keys() == expected.keys()
    assert all(abs(found[seed] - expected[seed]) <= 1 for seed in found)
    for stop in run.stopped:
        k = run.seeds.index(stop.seed)
        assert np.isfinite(run.loss[: stop.step, k]).all() and np.isnan(run.loss[stop.step :, k]).all()
    left = [k for k in range(8) if k not in found]
    assert np.isfinite(run.loss[:, left]).all()
    assert f"seed {run.stopped[0].seed} stopped at step {run.stopped[0].step}" in repr(run)
    assert run.quantile(1.0)[-1] == np.inf and np.isfinite(run.quantile(0.0)[-1])


def test_an_unstable_learning_rate_is_named_and_a_run_without_seeds_left_ends() -> None:
    calls = []
    with pytest.warns(TrainingWarning, match=r"not finite: seed 0 at step \d+.*Lower eta"):
        run = train(
            lambda t, x: t**2 * x, jnp.array(30.0), ([1.0], [0.0]), steps=50, eta=1.0, progress=lambda *done: calls.append(done)
        )
    assert len(calls) < 51 and np.isnan(run.deviation[-1, 0]) and len(run.deviation) == 51
    with pytest.warns(TrainingWarning, match="mean update is 2.5 > 2.*Divide eta by 1.2 or more"):
        train(lambda t, x: t * x, jnp.array(1.0), ([1.0], [0.0]), steps=2, eta=2.5)


# --- bad input ---


GOOD = {"steps": 2, "eta": 0.1}
BAD = [
    ({"eta": 0.0}, "learning rate must be positive"),
    ({"eta": -1}, "learning rate must be positive"),
    ({"eta": float("nan")}, "learning rate must be positive"),
    ({"eta": "fast"}, "positive number"),
    ({"steps": 0}, "steps = 0"),
    ({"batch": 7}, "larger than the 6"),
    ({"batch": 0}, "batch = 0"),
    ({"batch": "half"}, "'full', 'single'"),
    ({"loss": "hinge"}, "choose one of square, logistic, softmax"),
    ({"loss": "softmax"}, "needs several outputs"),
    ({"loss": lambda f, y: jnp.stack([f, y])}, "one real number per input"),
    ({"sampling": "random"}, "'independent'"),
    ({"reduction": "max"}, "'sum'"),
    ({"seeds": [1, 1]}, "distinct"),
    ({"seeds": 0}, "seeds = 0"),
    ({"record": [5]}, "step 5 is to be recorded"),
    ({"memory_mb": 0.001}, "raise memory_mb"),
    ({"data": (INPUTS, TARGETS[:5])}, r"targets have shape \(5,\) for 6 inputs"),
    ({"data": (INPUTS, TARGETS, HELD_OUT[:, :3])}, r"held-out input has shape \(3,\)"),
    ({"data": (INPUTS, ONE_HOT)}, "they must agree"),
    ({"data": (np.where(INPUTS[1, 2] == INPUTS, np.nan, INPUTS), TARGETS)}, r"inputs\[1, 2\] = nan"),
    ({"data": (INPUTS.astype(str), TARGETS)}, "real numbers"),
    ({"data": INPUTS}, "required: .inputs, targets."),
    ({"model": lambda t, x: (x, x)}, "one array is required"),
    ({"model": lambda t, x: x.astype(jnp.float32)[0]}, "float64 is required"),
    ({"model": lambda t, x: jnp.outer(x, x)}, "a number .. or a vector"),
    ({"model": lambda t, x: t["a"] @ x}, "takes one input, not a batch"),
    ({"model": 3}, "must be a function"),
    ({"theta0": {"a": jnp.arange(3), "w": jnp.ones(2)}}, r"theta0\['a'\] has entries of type int"),
    ({"theta0": {"f": jnp.tanh, "w": jnp.ones(2)}}, r"theta0\['f'\] has entries of type object"),
    ({"theta0": {}}, "no parameters"),
    ({"theta0": tanh_start(jax.random.key(0)), "seeds": 2}, "give an initialiser"),
]


@pytest.mark.parametrize(("change", "text"), BAD, ids=[text for _, text in BAD])
def test_bad_input_is_named_before_any_work(change: dict, text: str) -> None:
    options = {"model": scalar_net, "theta0": tanh_start, "data": (INPUTS, TARGETS, HELD_OUT), **GOOD, **change}
    model, theta0, data = (options.pop(name) for name in ("model", "theta0", "data"))
    with pytest.raises((TrainingError, TypeError, MemoryCapError, ValueError), match=text):
        train(model, theta0, data, **options)


def test_float64_is_required() -> None:
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(TrainingError, match="float64 is off"):
        train(scalar_net, tanh_start, (INPUTS, TARGETS), steps=1, eta=0.1)
