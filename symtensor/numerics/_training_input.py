"""What a training run is given, read and checked before any work: model, initialisation, data, loss, batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from symtensor.numerics._ensemble import require_integer

__all__ = ["LOSSES", "Data", "Loss", "Plan", "Start", "TrainingError", "read_data", "read_loss", "read_plan", "read_start"]

Model = Callable[[Any, jax.Array], jax.Array]
Loss = Callable[[jax.Array, jax.Array], jax.Array]
Sampling = Literal["independent", "epochs"]
Reduction = Literal["sum", "mean"]


class TrainingError(ValueError):
    """A training run cannot be made from what was given."""


def _square(output: jax.Array, target: jax.Array) -> jax.Array:
    return 0.5 * jnp.sum((output - target) ** 2)


def _logistic(output: jax.Array, target: jax.Array) -> jax.Array:
    return jnp.sum(jax.nn.softplus(-target * output))


def _softmax(output: jax.Array, target: jax.Array) -> jax.Array:
    # sum_k y_k (log Z - F_k): correct also for targets that do not sum to one
    return jnp.sum(target) * jax.nn.logsumexp(output) - jnp.sum(target * output)


#: losses C(F, y) of one input by name: |F - y|^2 / 2; sum log(1 + exp(-y F)), y = +-1; -sum y log softmax(F), y one-hot
LOSSES: dict[str, Loss] = {"square": _square, "logistic": _logistic, "softmax": _softmax}


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Training inputs (N, ..), targets (N,) or (N, K), and the inputs (M, ..) on which functions are compared."""

    inputs: jax.Array
    targets: jax.Array
    held_out: jax.Array
    compared_on: str


@dataclass(frozen=True, slots=True)
class Plan:
    """How the parameters move: examples N, batch size b <= N, how batches are drawn, and the factor of the gradient's sum."""

    examples: int
    batch: int
    sampling: Sampling
    reduction: Reduction

    @property
    def full(self) -> bool:
        """Whether every step uses all examples."""
        return self.batch == self.examples

    @property
    def weight(self) -> float:
        """Factor of the sum over the batch: 1, or 1/b for the mean."""
        return 1.0 if self.reduction == "sum" else 1.0 / self.batch


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Initial parameters: `draw(keys)` has a leading axis of seeds unless `shared`; `parameters` is their number."""

    draw: Callable[[jax.Array], Any]
    shared: bool
    parameters: int
    output: tuple[int, ...]


def read_data(data: Any) -> Data:
    """Arrays in float64 from (inputs, targets), (inputs, targets, held-out inputs), or an object such as `datasets.Dataset`.

    Raises
    ------
    TrainingError
        Lengths or shapes that do not fit, no examples, or values that are not finite real numbers.
    """
    if hasattr(data, "inputs") and hasattr(data, "targets"):
        parts = [data.inputs, data.targets, getattr(data, "test_inputs", None)]
    elif isinstance(data, (tuple, list)) and len(data) in (2, 3):
        parts = [*data, None][:3]
    else:
        raise TrainingError(
            f"data is {_short(data)}; required: (inputs, targets), (inputs, targets, held-out inputs), or a Dataset of "
            "symtensor.datasets"
        )
    inputs, targets = _real("inputs", parts[0]), _real("targets", parts[1])
    held_out = inputs if parts[2] is None or not len(parts[2]) else _real("held-out inputs", parts[2])
    if inputs.ndim < 1 or not len(inputs):
        raise TrainingError(f"inputs have shape {inputs.shape}; at least one training input is required")
    if targets.ndim not in (1, 2) or len(targets) != len(inputs):
        raise TrainingError(
            f"targets have shape {targets.shape} for {len(inputs)} inputs; required: ({len(inputs)},) for a scalar model, "
            f"({len(inputs)}, K) for K outputs"
        )
    if held_out.shape[1:] != inputs.shape[1:]:
        raise TrainingError(
            f"a held-out input has shape {held_out.shape[1:]} and a training input {inputs.shape[1:]}; they must agree"
        )
    compared_on = "training inputs" if held_out is inputs else "held-out inputs"
    return Data(jnp.asarray(inputs), jnp.asarray(targets), jnp.asarray(held_out), compared_on)


def _real(name: str, values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"entries of type {array.dtype}")
        array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TrainingError(f"{name} are not an array of real numbers ({error})") from None
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise TrainingError(f"{name}{list(place)} = {array[place]}; all entries must be finite")
    return array


def read_loss(loss: str | Loss, output: tuple[int, ...]) -> tuple[str, Loss]:
    """Name and function of a loss C(F, y) of one input; it must give one real number.

    Raises
    ------
    TrainingError
        An unknown name, a function that fails or whose value is not one real number, or softmax of a scalar model.
    """
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise TrainingError(f"loss = {loss!r} is not known; choose one of {', '.join(LOSSES)}, or give a function C(F, y)")
        if loss == "softmax" and not output:
            raise TrainingError("loss = 'softmax' needs several outputs, this model has one: use 'logistic' with targets +-1")
        return loss, LOSSES[loss]
    if not callable(loss):
        raise TrainingError(f"loss = {_short(loss)} is neither a name ({', '.join(LOSSES)}) nor a function C(F, y)")
    point = jax.ShapeDtypeStruct(output, jnp.float64)
    try:
        found = jax.eval_shape(loss, point, point)
    except Exception as error:
        raise TrainingError(f"loss(F, y) fails for F and y of shape {output}: {_first_line(error)}") from error
    if getattr(found, "shape", None) != () or not jnp.issubdtype(found.dtype, jnp.floating):
        raise TrainingError(f"loss(F, y) gives {found}; one real number per input is required: sum over the outputs")
    return getattr(loss, "__name__", type(loss).__name__), loss


def read_plan(batch: str | int, sampling: str, reduction: str, examples: int) -> Plan:
    """Batch size and sampling; raises TrainingError for what is not possible with this number of examples."""
    if sampling not in ("independent", "epochs"):
        raise TrainingError(f"sampling = {sampling!r}; required: 'independent' (each batch anew) or 'epochs' (shuffled passes)")
    if reduction not in ("sum", "mean"):
        raise TrainingError(f"reduction = {reduction!r}; required: 'sum' (over the batch) or 'mean'")
    if isinstance(batch, str):
        if batch not in ("full", "single"):
            raise TrainingError(f"batch = {batch!r}; required: 'full', 'single', or a number of inputs per step")
        size = examples if batch == "full" else 1
    else:
        size = require_integer("batch", batch, 1)
        if size > examples:
            raise TrainingError(f"batch = {size} is larger than the {examples} training inputs; use batch='full'")
    return Plan(examples, size, sampling, reduction)  # pyright: ignore[reportArgumentType]


def read_start(model: Model, theta0: Any, data: Data) -> Start:
    """The initial parameters, as given or from an initialiser `theta0(key)`, and the shape of the model's output.

    Raises
    ------
    TypeError
        Parameters that are not floating-point arrays, named by their place in the pytree.
    TrainingError
        A model that fails on one input, or gives neither a number nor a vector, or not the shape of a target.
    """
    if not callable(model):
        raise TypeError(f"model = {_short(model)} must be a function model(theta, x) of one input x")
    initialiser = callable(theta0) and jax.tree.structure(theta0).num_nodes == 1
    if initialiser:
        try:
            shapes = jax.eval_shape(theta0, jax.random.key(0))
        except Exception as error:
            raise TrainingError(f"theta0(key) fails: {_first_line(error)}; it must map a JAX key to a pytree of arrays") from error
    else:
        shapes = theta0
    _require_floating(shapes)
    cast = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), jnp.float64), shapes)
    output = _output_shape(model, cast, data)
    count = sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(cast))
    if initialiser:
        return Start(jax.vmap(lambda key: _as_float64(theta0(key))), False, count, output)
    return Start(lambda keys: _as_float64(theta0), True, count, output)


def _as_float64(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), tree)


def _require_floating(tree: Any) -> None:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    if not leaves:
        raise TypeError("theta0 has no parameters; a pytree with at least one floating-point array is required")
    for path, leaf in leaves:
        dtype = leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
        if not jnp.issubdtype(dtype, jnp.floating):
            raise TypeError(
                f"parameter theta0{jax.tree_util.keystr(path)} has entries of type {dtype}; floating-point arrays are required: "
                "keep integers and functions outside theta, for example in a closure"
            )


def _output_shape(model: Model, theta: Any, data: Data) -> tuple[int, ...]:
    point = jax.ShapeDtypeStruct(data.inputs.shape[1:], jnp.float64)
    try:
        found = jax.eval_shape(model, theta, point)
    except Exception as error:
        raise TrainingError(
            f"model(theta, x) fails for one input x of shape {point.shape}: {_first_line(error)}; "
            "the model takes one input, not a batch"
        ) from error
    if not hasattr(found, "shape"):
        raise TrainingError(f"model(theta, x) gives {_short(found)}; one array is required: choose an output, or concatenate them")
    if found.dtype != jnp.float64:
        raise TrainingError(f"model(theta, x) gives {found.dtype}; float64 is required: the deviation is a small difference")
    if len(found.shape) > 1:
        raise TrainingError(f"model(theta, x) has shape {found.shape} for one input; a number () or a vector (K,) is required")
    if tuple(data.targets.shape[1:]) != tuple(found.shape):
        raise TrainingError(
            f"model(theta, x) has shape {found.shape} and a target has shape {tuple(data.targets.shape[1:])}; they must agree "
            "(one-hot targets for K outputs, one number for a scalar model)"
        )
    return tuple(found.shape)


def read_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """Distinct seeds in [0, 2^63); a number S stands for 0, .., S - 1."""
    if isinstance(seeds, (int, np.integer)) and not isinstance(seeds, bool):
        return tuple(range(require_integer("seeds", seeds, 1)))
    try:
        found = tuple(require_integer("a seed", seed, 0) for seed in seeds)  # type: ignore[union-attr]
    except TypeError as error:
        raise TypeError(f"seeds = {_short(seeds)}: a number of seeds, or a sequence of integers, is required") from error
    if not found or len(set(found)) < len(found) or max(found) >= 2**63:
        raise TrainingError(f"seeds = {_short(seeds)}: at least one, distinct and below 2^63, are required")
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:200] or type(error).__name__
