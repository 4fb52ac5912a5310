"""Networks: the functions they stand for, against plain NumPy; the law of the initialisation; what is refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symtensor.activation import ActivationError, activation
from symtensor.numerics.neural_networks import NetworkError, fully_connected


def by_hand(net, theta, x):
    """Layer by layer and neuron by neuron in NumPy, with the activations' own float64 functions."""
    y = np.asarray(x)
    for index, layer in enumerate(theta):
        W = np.asarray(layer["W"])
        ntk = net.parametrisation == "ntk"
        h = (net.sigma_w / np.sqrt(W.shape[1]) if ntk else 1.0) * W @ y
        if "b" in layer:
            h = h + (net.sigma_b if ntk else 1.0) * np.asarray(layer["b"])
        if index == net.depth:
            return h if net.outputs else h[0]
        neurons = net.activations[index] * (len(h) if len(net.activations[index]) == 1 else 1)
        y = np.array([float(phi.numpy_function()(value)) for phi, value in zip(neurons, h)])
    raise AssertionError


@pytest.mark.parametrize("name", ["tanh", "erf", "sin", "gelu", "softplus", "sigmoid", "identity", "relu", "x^3 - x", "1/(1+x^2)"])
@pytest.mark.parametrize("parametrisation", ["ntk", "standard"])
def test_functions_agree_with_plain_numpy(name, parametrisation):
    net = fully_connected((3, 5, 4), name, parametrisation=parametrisation, outputs=2, sigma_w=1.3, sigma_b=0.4)
    theta, x = net.init(jax.random.key(1)), np.array([0.3, -1.2, 0.8])
    np.testing.assert_allclose(net.apply(theta, jnp.asarray(x)), by_hand(net, theta, x), rtol=1e-13, atol=1e-14)


def test_every_neuron_has_its_own_activation_in_the_given_order():
    names = ["tanh", "x^2", "tanh", "sin", "x^2"]
    net = fully_connected((2, 5, 3), [names, "erf"])
    theta, x = net.init(jax.random.key(0)), np.array([0.4, -0.9])
    value = float(net.apply(theta, jnp.asarray(x)))
    assert abs(value - by_hand(net, theta, x)) < 1e-14
    swapped = fully_connected((2, 5, 3), [[*names[1:], names[0]], "erf"])
    assert abs(float(swapped.apply(theta, jnp.asarray(x))) - value) > 1e-3


def test_a_neuron_does_not_evaluate_the_activation_of_another():
    net = fully_connected((1, 2), [["exp(x^2)", "tanh"]])
    theta = ({"W": jnp.array([[0.1], [80.0]])}, {"W": jnp.ones((1, 2))})  # exp(80^2) overflows where tanh belongs
    gradient = jax.grad(net.apply)(theta, jnp.ones(1))
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(gradient))


def test_both_parametrisations_are_one_law_with_different_kernels():
    """E f^2 of a linear net is sigma_w^4 |x|^2 / n_0 in both; the tangent kernels differ by the fan-in."""
    x, kernels, seeds = jnp.array([1.0, 2.0, -1.0]), {}, jnp.arange(4000)
    for parametrisation in ("ntk", "standard"):
        net = fully_connected((3, 8), "identity", parametrisation=parametrisation, sigma_w=1.2)
        values = jax.vmap(lambda s, net=net: net.apply(net.init(jax.random.key(s)), x))(seeds)
        squares = np.asarray(values) ** 2
        z = (squares.mean() - 1.2**4 * 2.0) / (squares.std() / np.sqrt(len(seeds)))
        assert abs(z) < 4
        assert abs(squares.mean() / (1.2**2 * 2.0) - 1) / (squares.std() / squares.mean() / np.sqrt(len(seeds))) > 5
        gradient = jax.grad(net.apply)(net.init(jax.random.key(0)), x)
        kernels[parametrisation] = sum(float(jnp.sum(g**2)) for g in jax.tree.leaves(gradient))
    assert kernels["standard"] > 2 * kernels["ntk"]


def test_counts_and_shapes():
    net = fully_connected((6, 10, 7), sigma_b=0.1, outputs=3)
    assert net.parameters == 7 * 10 + 11 * 7 + 8 * 3 == sum(leaf.size for leaf in jax.tree.leaves(net.init(jax.random.key(0))))
    assert net.depth == 2 and net.apply(net.init(jax.random.key(0)), jnp.ones(6)).shape == (3,)
    assert hash(net) == hash(fully_connected((6, 10, 7), activation("tanh"), sigma_b=0.1, outputs=3))
    assert fully_connected((4,)).parameters == 4
    standard = fully_connected((2, 3), parametrisation="standard", biases=True)
    assert not np.asarray(standard.init(jax.random.key(0))[0]["b"]).any()


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        (((),), {}, NetworkError, "widths are empty"),
        (((3, 0),), {}, ValueError, "a width = 0"),
        (((3, 2.5),), {}, TypeError, "2.5"),
        (((3, 4), ["tanh", "sin"]), {}, NetworkError, "2 activations are given for 1 hidden"),
        (((3, 4), [["tanh", "sin"]]), {}, NetworkError, "layer 1 has 4 neurons and 2 activations"),
        (((3, 4), "tanhh"), {}, ActivationError, "tanh"),
        (((3, 4),), {"parametrisation": "mup"}, NetworkError, "'ntk' or 'standard'"),
        (((3, 4),), {"sigma_w": 0.0}, NetworkError, "sigma_w"),
        (((3, 4),), {"sigma_b": float("nan")}, NetworkError, "sigma_b"),
        (((3, 4),), {"biases": True}, NetworkError, "no effect"),
        (((3, 4),), {"biases": False, "sigma_b": 1.0}, NetworkError, "leave one"),
        (((3, 4),), {"outputs": 0}, ValueError, "outputs"),
    ],
)
def test_what_cannot_be_built_is_refused(arguments, options, error, text):
    with pytest.raises(error, match=text):
        fully_connected(*arguments, **options)


def test_wrong_inputs_and_parameters_are_refused():
    net = fully_connected((3, 4))
    theta = net.init(jax.random.key(0))
    with pytest.raises(NetworkError, match="one input at a time"):
        net.apply(theta, jnp.ones((5, 3)))
    with pytest.raises(NetworkError, match="layers"):
        net.apply(theta[:1], jnp.ones(3))
