"""What contractions are asked for, read and checked before any work."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symtensor.numerics._ensemble import require_integer
from symtensor.numerics._norm_input import require_float64
from symtensor.numerics.contractions._errors import ContractionError

__all__ = ["Initialisation", "Output", "read_inputs", "read_orders", "read_parameters", "read_rate", "scalar_function"]

Output = int | str | None
Keys = dict[int, tuple[int, ...]]  # for each D the values of d


@dataclass(frozen=True, slots=True, eq=False)
class Initialisation:
    """Parameters by index of the initialisation: `at(i)`; `seeds` are their names, None for a single theta."""

    at: Callable[[int], Any]
    seeds: tuple[int, ...] | None
    shapes: Any

    @property
    def count(self) -> int:
        """Number of initialisations."""
        return 1 if self.seeds is None else len(self.seeds)

    @property
    def parameters(self) -> int:
        """Number of parameters of one initialisation."""
        return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(self.shapes))


def read_orders(orders: Any, D: Any) -> Keys:
    """`{D: (d, ..)}` from `orders=5, D=(0, 1)`, from `orders=(2, 3)`, or from `orders={0: 5, 1: 3}`."""
    if isinstance(orders, Mapping):
        chosen = {require_integer("D", slots, 0): _range(values) for slots, values in orders.items()}
    else:
        slots = [D] if isinstance(D, int | np.integer) else list(D)
        chosen = {require_integer("D", number, 0): _range(orders) for number in slots}
    if not chosen or not all(chosen.values()):
        raise ContractionError(f"orders = {orders!r} with D = {D!r} ask for nothing; give for example orders=5, D=(0, 1)")
    return dict(sorted(chosen.items()))


def _range(values: Any) -> tuple[int, ...]:
    if isinstance(values, int | np.integer):
        return tuple(range(require_integer("orders", values, 0) + 1))
    return tuple(sorted({require_integer("an order d", value, 0) for value in values}))


def read_rate(eta: Any) -> float:
    """The learning rate as a positive number."""
    if isinstance(eta, bool) or not isinstance(eta, int | float | np.integer | np.floating):
        raise TypeError(f"eta = {eta!r} must be a number")
    if not (np.isfinite(eta) and eta > 0):
        raise ContractionError(
            f"eta = {eta} must be a positive finite learning rate: C_(D,d) carries eta^(D/2+d); use eta=1 for the bare derivatives"
        )
    return float(eta)


def read_inputs(inputs: Any) -> jax.Array:
    """An array whose first axis counts the inputs; real entries become float64, integers (tokens) stay."""
    array = np.asarray(inputs)
    if array.dtype.kind not in "fiub":
        raise ContractionError(f"inputs have entries of type {array.dtype}; an array of real numbers is required")
    if array.ndim < 1 or not len(array):
        raise ContractionError(f"inputs have shape {array.shape}; required: (N, ..), the first axis counting inputs, N >= 1")
    if not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ContractionError(f"inputs{place} = {array[tuple(place)]}; all entries must be finite")
    return jnp.asarray(array.astype(np.float64) if array.dtype.kind == "f" else array)


def read_parameters(theta: Any, seeds: int | Sequence[int] | None, stacked: bool) -> Initialisation:
    """One theta, an initialiser `theta(key)` with its seeds, or leaves that are stacked along their first axis."""
    require_float64()
    initialiser = callable(theta) and jax.tree.structure(theta).num_nodes == 1
    if initialiser:
        numbers = _seeds(1 if seeds is None else seeds)
        try:
            shapes = jax.eval_shape(lambda key: _cast(theta(key)), jax.random.key(0))
        except TypeError as error:
            raise ContractionError(f"theta(key) fails: {_line(error)}; it must map a JAX key to a pytree of arrays") from error
        _require_floating(jax.eval_shape(theta, jax.random.key(0)))
        draw = jax.jit(lambda key: _cast(theta(key)))
        return Initialisation(lambda i: draw(jax.random.key(numbers[i])), numbers, shapes)
    if seeds is not None:
        raise ContractionError("seeds are given with fixed parameters; give theta as a function of a key, such as net.init")
    _require_floating(theta)
    _require_finite(theta)
    cast = _cast(theta)
    if not stacked:
        return Initialisation(lambda _: cast, None, _shapes(cast))
    lengths = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(cast)}
    if len(lengths) != 1 or lengths == {()}:
        raise ContractionError(
            f"stacked=True, but the first axes of the leaves of theta are {sorted(lengths)}; they must be one number"
        )
    ((count,),) = lengths
    one = functools.partial(jax.tree.map, lambda leaf: leaf[0])
    return Initialisation(lambda i: jax.tree.map(lambda leaf: leaf[i], cast), tuple(range(count)), _shapes(one(cast)))


def _seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(seeds, int | np.integer):
        return tuple(range(require_integer("seeds", seeds, 1)))
    numbers = tuple(require_integer("a seed", seed, 0) for seed in seeds)
    if not numbers or len(set(numbers)) < len(numbers):
        raise ContractionError(f"seeds = {seeds!r} must be distinct, and at least one")
    return numbers


def _cast(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), tree)


def _shapes(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree)


def _require_floating(tree: Any) -> None:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    if not leaves:
        raise TypeError("theta has no parameters; a pytree with at least one floating-point array is required")
    for path, leaf in leaves:
        place = f"theta{jax.tree_util.keystr(path)}"
        if callable(leaf) and not hasattr(leaf, "dtype"):
            raise TypeError(
                f"{place} is a function; theta holds floating-point arrays only: split a module into arrays and the rest "
                "(equinox.partition(model, equinox.is_inexact_array)) and join them inside the function"
            )
        dtype = leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
        if not jnp.issubdtype(dtype, jnp.floating):
            raise TypeError(
                f"{place} has entries of type {dtype}; real floating-point parameters are required: keep integers and "
                "functions outside theta, and give a complex parameter by its real and imaginary part"
            )


def _require_finite(tree: Any) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if not np.isfinite(np.asarray(leaf)).all():
            raise ContractionError(f"theta{jax.tree_util.keystr(path)} has entries that are not finite")


def scalar_function(function: Callable[..., Any], shapes: Any, x: jax.Array, output: Output) -> Callable[[Any, Any], Any]:
    """`function` with its output chosen: one real number for each input.

    Raises
    ------
    ContractionError
        If the function fails for one input, has several outputs and none is chosen, or is not float64.
    """
    if not callable(function):
        raise TypeError(f"function = {function!r:.60} must be a function F(theta, x) of one input x")
    point = jax.ShapeDtypeStruct(x.shape[1:], x.dtype)
    try:
        found = jax.eval_shape(function, shapes, point)
    except Exception as error:
        raise ContractionError(
            f"function(theta, x) fails for one input x of shape {point.shape}: {_line(error)}; the first axis of inputs counts "
            f"inputs (shape {x.shape} is given), and the function takes one of them"
        ) from error
    if not (hasattr(found, "shape") and hasattr(found, "dtype")):
        raise ContractionError(f"function(theta, x) gives {type(found).__name__}; one array is required")
    if found.dtype != jnp.float64:
        raise ContractionError(
            f"function(theta, x) gives {found.dtype}; float64 is required (parameters are given to it in float64: remove casts to "
            "lower precision inside, such as dtype=float32)"
        )
    size = int(np.prod(found.shape))
    if output is None and size != 1:
        raise ContractionError(
            f"function(theta, x) has {size} outputs (shape {found.shape}); a contraction is one of a scalar: choose one by "
            "output=0, 1, .., or add them up by output='sum'"
        )
    return _Scalar(function, _index(output, size))


def _index(output: Output, size: int) -> int | None:
    if output == "sum":
        return None
    if isinstance(output, str):
        raise ContractionError(f"output = {output!r}; required: None for a scalar, the number of an output, or 'sum'")
    index = 0 if output is None else require_integer("output", output, 0)
    if index >= size:
        raise ContractionError(f"output = {index}, but the function has {size} outputs (0..{size - 1})")
    return index


@dataclass(frozen=True, slots=True)
class _Scalar:
    """Equal for equal functions, so that compiled programs are found again."""

    function: Callable[..., Any]
    index: int | None

    def __call__(self, theta: Any, x: Any) -> Any:
        values = jnp.ravel(self.function(theta, x))
        return jnp.sum(values) if self.index is None else values[self.index]


def _line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:300]
