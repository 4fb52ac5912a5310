"""Fully connected networks of any depth as plain JAX functions: `init(key) -> theta`, `apply(theta, x) -> F`.

    ntk:       h_l = sigma_w W_l y_(l-1) / sqrt(n_(l-1)) + sigma_b b_l,     W, b ~ N(0, 1)
    standard:  h_l = W_l y_(l-1) + b_l,     W ~ N(0, sigma_w^2 / n_(l-1)), b ~ N(0, sigma_b^2)
    y_0 = x,   y_l = phi_l(h_l),   F = h_(L+1)

Both give the same random function; their gradients differ, and so do their tangent kernels.

References
----------
Jacot, Gabriel, Hongler, "Neural tangent kernel", arXiv 1806.07572, section 2 (parametrisation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from symtensor.activation import Activation, activation
from symtensor.numerics._elementwise import jax_function
from symtensor.numerics._ensemble import require_integer

__all__ = ["FullyConnected", "NetworkError", "Parametrisation", "fully_connected"]

Parametrisation = Literal["ntk", "standard"]
Parameters = tuple[dict[str, jax.Array], ...]
Activations = str | Activation | Sequence[Any]


class NetworkError(ValueError):
    """A network cannot be built or applied as asked."""


@dataclass(frozen=True, slots=True)
class FullyConnected:
    """A fully connected network; build one with :func:`fully_connected`.

    Attributes
    ----------
    widths
        `(n_0, n_1, .., n_L)`: inputs, then hidden layers.
    activations
        For each hidden layer the activation of each neuron: one entry where all neurons share it, else `n_l` entries.
    parametrisation
        "ntk" or "standard".
    outputs
        Number of outputs, or None for a scalar.
    sigma_w, sigma_b
        Scales of weights and biases.
    biases
        Whether the layers have biases.
    """

    widths: tuple[int, ...]
    activations: tuple[tuple[Activation, ...], ...]
    parametrisation: Parametrisation = "ntk"
    outputs: int | None = None
    sigma_w: float = 1.0
    sigma_b: float = 0.0
    biases: bool = False

    @property
    def depth(self) -> int:
        """Number L of hidden layers."""
        return len(self.widths) - 1

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """`(n_in, n_out)` of every linear map, the read-out last."""
        return tuple(zip(self.widths, (*self.widths[1:], self.outputs or 1)))

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return sum(out * (fan + self.biases) for fan, out in self.layers)

    def init(self, key: jax.Array) -> Parameters:
        """Random parameters: for each layer `{"W": (n_out, n_in)}`, with `"b": (n_out,)` where there are biases."""
        theta = []
        for layer_key, (fan, out) in zip(jax.random.split(key, len(self.layers)), self.layers):
            weight_key, bias_key = jax.random.split(layer_key)
            scale = self.sigma_w / np.sqrt(fan) if self.parametrisation == "standard" else 1.0
            layer = {"W": scale * jax.random.normal(weight_key, (out, fan), jnp.result_type(float))}
            if self.biases:
                scale = self.sigma_b if self.parametrisation == "standard" else 1.0
                layer["b"] = scale * jax.random.normal(bias_key, (out,), jnp.result_type(float))
            theta.append(layer)
        return tuple(theta)

    def apply(self, theta: Parameters, x: jax.Array) -> jax.Array:
        """F(theta)(x) for one input `x` of shape `(n_0,)`: a number, or `(outputs,)`.

        Raises
        ------
        NetworkError
            If the input is not a vector of n_0 entries, or theta has another number of layers.
        """
        x = jnp.asarray(x)
        if x.shape != (self.widths[0],):
            raise NetworkError(
                f"an input of shape {x.shape} is given, required ({self.widths[0]},): one input at a time; "
                "use jax.vmap(net.apply, (None, 0)) for a batch, and flatten images"
            )
        if len(theta) != len(self.layers):
            raise NetworkError(f"theta has {len(theta)} layers, the network {len(self.layers)}: take it from net.init(key)")
        y = x
        for index, layer in enumerate(theta):
            h = self._preactivation(layer, y)
            y = h if index == self.depth else _by_neuron(self.activations[index], h)
        return y[0] if self.outputs is None else y

    def _preactivation(self, layer: dict[str, jax.Array], y: jax.Array) -> jax.Array:
        ntk = self.parametrisation == "ntk"
        h = layer["W"] @ y
        if ntk:
            h = h * (self.sigma_w / np.sqrt(y.shape[0]))
        if not self.biases:
            return h
        return h + (self.sigma_b * layer["b"] if ntk else layer["b"])

    def __call__(self, theta: Parameters, x: jax.Array) -> jax.Array:
        """The same as :meth:`apply`."""
        return self.apply(theta, x)

    def __repr__(self) -> str:
        names = ["/".join(dict.fromkeys(a.name for a in layer)) for layer in self.activations]
        shape = "-".join(map(str, (*self.widths, self.outputs or 1)))
        return f"FullyConnected({shape}, {', '.join(dict.fromkeys(names)) or 'linear'}, {self.parametrisation})"


def fully_connected(
    widths: Sequence[int],
    activation: Activations = "tanh",
    *,
    parametrisation: Parametrisation = "ntk",
    outputs: int | None = None,
    sigma_w: float = 1.0,
    sigma_b: float = 0.0,
    biases: bool | None = None,
) -> FullyConnected:
    """A fully connected network `F(theta)(x)` with its initialisation.

    Parameters
    ----------
    widths
        `(n_0, n_1, .., n_L)`: the number of inputs, then the hidden layers; `(n_0,)` alone is a linear model.
    activation
        A name or an expression in x (:func:`symtensor.activation.activation`) for all layers; or a list with one item
        for each hidden layer, an item being a name, or a list of `n_l` names, one for each neuron.
    parametrisation
        "ntk": unit normal parameters, scales in the function; "standard": scales in the initialisation.
    outputs
        None: the function is one number; otherwise a vector of this length.
    sigma_w, sigma_b
        Scales of weights (positive) and biases (not negative).
    biases
        Default: where `sigma_b > 0`. In the standard parametrisation `biases=True, sigma_b=0` gives biases that begin at 0.

    Raises
    ------
    NetworkError
        For widths, scales, lists of activations or a parametrisation that do not fit.
    ActivationError
        For an activation that is not known or not a real function of x.

    Examples
    --------
    >>> net = fully_connected((6, 64), "tanh")
    >>> theta = net.init(jax.random.key(0))
    >>> net.apply(theta, jnp.ones(6)).shape, net.parameters
    ((), 448)
    >>> fully_connected((2, 3), [["tanh", "sin", "x^2"]])
    FullyConnected(2-3-1, tanh/sin/x**2, ntk)
    """
    sizes = tuple(require_integer("a width", n, 1) for n in widths)
    if not sizes:
        raise NetworkError("widths are empty; at least the number of inputs n_0 is required, for example (6, 64)")
    if parametrisation not in get_args(Parametrisation):
        raise NetworkError(f"parametrisation = {parametrisation!r}; required: 'ntk' or 'standard'")
    if outputs is not None:
        outputs = require_integer("outputs", outputs, 1)
    if not (np.isfinite(sigma_w) and sigma_w > 0):
        raise NetworkError(f"sigma_w = {sigma_w} must be a positive number")
    if not (np.isfinite(sigma_b) and sigma_b >= 0):
        raise NetworkError(f"sigma_b = {sigma_b} must be a number that is not negative")
    with_biases = sigma_b > 0 if biases is None else bool(biases)
    if with_biases and sigma_b == 0 and parametrisation == "ntk":
        raise NetworkError("biases=True with sigma_b = 0 has no effect in the ntk parametrisation, where sigma_b multiplies b")
    if not with_biases and sigma_b > 0:
        raise NetworkError(f"sigma_b = {sigma_b} with biases=False; leave one of them out")
    layers = _read_activations(activation, sizes[1:])
    return FullyConnected(sizes, layers, parametrisation, outputs, float(sigma_w), float(sigma_b), with_biases)


def _read_activations(given: Activations, hidden: tuple[int, ...]) -> tuple[tuple[Activation, ...], ...]:
    """One activation, or one for each neuron, for every hidden layer."""
    items: list[Any] = list(given) if isinstance(given, list | tuple) else [given] * len(hidden)
    if len(items) != len(hidden):
        raise NetworkError(
            f"{len(items)} activations are given for {len(hidden)} hidden layers; give one for each, or a name for all"
        )
    layers = []
    for index, (item, width) in enumerate(zip(items, hidden), 1):
        neurons = tuple(activation(part) for part in (item if isinstance(item, list | tuple) else [item]))
        if len(neurons) not in (1, width):
            raise NetworkError(
                f"layer {index} has {width} neurons and {len(neurons)} activations; give one for each neuron, or one for all"
            )
        for neuron in dict.fromkeys(neurons):
            _function(neuron)  # an expression without a JAX counterpart is refused here
        layers.append(neurons[:1] if len(set(neurons)) == 1 else neurons)
    return tuple(layers)


def _by_neuron(neurons: tuple[Activation, ...], h: jax.Array) -> jax.Array:
    """phi_i(h_i): each function sees the neurons it belongs to and no others, so no value of another one can spoil it."""
    if len(neurons) == 1:
        return _function(neurons[0])(h)
    order = sorted(range(len(neurons)), key=lambda i: neurons[i].name)
    parts, start = [], 0
    gathered = h[np.array(order)]
    for _, group in groupby(order, key=lambda i: neurons[i].name):
        members = list(group)
        parts.append(_function(neurons[members[0]])(gathered[start : start + len(members)]))
        start += len(members)
    return jnp.concatenate(parts)[np.argsort(order)]


def _function(phi: Activation) -> Any:
    # the forms of jax.nn.softplus and jax.nn.sigmoid hide maxima in custom derivative rules, which Taylor mode cannot see
    if phi.name == "softplus":
        return lambda h: jnp.log1p(jnp.exp(h))
    if phi.name == "sigmoid":
        return jax.lax.logistic
    return jax_function(phi)
