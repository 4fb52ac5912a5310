"""The front door: read, check, run, and put the numbers together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import jax
import numpy as np

from symtensor.numerics._ensemble import require_integer
from symtensor.numerics._norm_bracket import NormBracket, bracket, reshaped
from symtensor.numerics.contractions._cost import Cost, count_work
from symtensor.numerics.contractions._errors import ContractionError
from symtensor.numerics.contractions._higher import several_slots, two_slots
from symtensor.numerics.contractions._programs import Entry, contract_all, direction_operands, frozen_coefficient, item
from symtensor.numerics.contractions._request import (
    Initialisation,
    Keys,
    Output,
    read_inputs,
    read_orders,
    read_parameters,
    read_rate,
    scalar_function,
)
from symtensor.numerics.contractions.directions import Direction, same_input
from symtensor.numerics.contractions.result import Contraction, DerivativeContractions
from symtensor.numerics.contractions.smoothness import require_smooth
from symtensor.numerics.contractions.taylor import Method

__all__ = ["derivative_contractions"]

_VECTORS = 2**22  # entries of all directions that are held side by side


def derivative_contractions(
    function: Callable[..., Any],
    theta: Any,
    inputs: Any,
    *,
    orders: int | Sequence[int] | Mapping[int, int | Sequence[int]] = 5,
    D: int | Sequence[int] = (0, 1),
    eta: float = 1.0,
    output: Output = None,
    directions: Direction | None = None,
    seeds: int | Sequence[int] | None = None,
    stacked: bool = False,
    method: Method = "taylor",
    assume_smooth: bool = False,
    tolerance: float = 1e-10,
    seed: int = 0,
    chunk: int | None = None,
) -> DerivativeContractions:
    r"""`C_{D,d} = eta^{D/2+d}/(D! d!) grad^{D+d} F^T (grad F)^d` of any JAX function, without forming derivative tensors.

    Parameters
    ----------
    function
        `F(theta, x)` of one input; theta any pytree of floating-point arrays.
    theta
        The parameters; or an initialiser `theta(key)` with `seeds` (a number S stands for 0, .., S-1); or, with
        `stacked=True`, parameters whose leaves carry a first axis of initialisations.
    inputs
        `(N, ..)`, the first axis counting inputs.
    orders, D
        d up to a number, or the numbers d, for each D; or a mapping from D to either: `{0: 5, 1: 3}`.
    eta
        Learning rate, positive.
    output
        For several outputs: the number of one, or "sum".
    directions
        What the d slots hold: :func:`same_input` (default), :func:`gradient_at`, :func:`mixed_gradients`,
        :func:`training_direction`, :func:`along`.
    method
        "taylor", "jet" or "nested": see :func:`symtensor.numerics.contractions.line_coefficients`.
    assume_smooth
        Go on although operations with kinks are found, because their pieces are known to join smoothly. Recorded.
    tolerance, seed
        Of the Lanczos iteration for D = 2 (relative residual) and of the searches for D >= 3: their starting vectors.
    chunk
        Inputs evaluated side by side; memory grows with it. Default: as many as keep the directions below 32 MB.

    Returns
    -------
    DerivativeContractions
        `result[D, d]` over the axes (seeds,) inputs (, points). D = 0: `.values` with sign; D = 1, 2: `.values` is the
        norm, exact; D >= 3: `.norm` is a bracket, `.frobenius` is exact where it could be counted.

    Raises
    ------
    ContractionError
        For several outputs, empty or non-finite input, a rate that is not positive, values that are not finite.
    KinkedOperationError
        For derivatives of order >= 2 of a function with kinks.
    TypeError
        For integer parameters or functions in theta.

    References
    ----------
    Shem-Ur, Oz, arXiv 2401.04013 (definition of the contractions).

    Examples
    --------
    >>> import jax, jax.numpy as jnp; jax.config.update("jax_enable_x64", True)
    >>> F = lambda theta, x: theta["v"] @ (theta["w"] * x)  # one hidden linear layer, n = 2
    >>> theta = {"v": jnp.array([1.0, 2.0]), "w": jnp.array([3.0, 1.0])}
    >>> result = derivative_contractions(F, theta, jnp.ones(1), orders={0: 3, 1: 1})
    >>> [float(result[0, d].values[0]) for d in range(4)]
    [5.0, 15.0, 5.0, 0.0]
    >>> round(float(result[1, 1].values[0]) ** 2, 9)
    15.0
    """
    keys = read_orders(orders, D)
    rate, points = read_rate(eta), read_inputs(inputs)
    if method not in get_args(Method):
        raise ContractionError(f"method = {method!r}; required: {', '.join(map(repr, get_args(Method)))}")
    start = read_parameters(theta, seeds, stacked)
    scalar = scalar_function(function, start.shapes, points, output)
    direction = same_input() if directions is None else directions
    _check_direction(direction, keys, start, points)
    assumptions = ("assumed: operations with kinks join smoothly",) if assume_smooth else ()
    if not assume_smooth:
        highest = max(slots + d for slots, ds in keys.items() for d in ds)
        require_smooth(scalar, start.shapes, points[0], highest)
    chunk = max(1, _VECTORS // start.parameters) if chunk is None else require_integer("chunk", chunk, 1)
    entries = tuple((slots, d) for slots, ds in keys.items() for d in ds)
    run = _Run(function, scalar, start, points, direction, method, chunk, tolerance, seed)
    found = run.all(entries)
    names = ("seed",) * (start.seeds is not None) + ("input",) + ("point",) * (direction.kind == "points")
    scaled = {entry: _scaled(entry, part, rate) for entry, part in found.items()}
    cost = {entry: run.cost(entry, scaled[entry].norm) for entry in entries}
    return DerivativeContractions(scaled, names, rate, start.seeds, start.parameters, direction.label, method, cost, assumptions)


def _check_direction(direction: Any, keys: Keys, start: Initialisation, inputs: jax.Array) -> None:
    if not isinstance(direction, Direction):
        raise ContractionError(
            f"directions = {type(direction).__name__}; required: same_input(), gradient_at(points), mixed_gradients(points), "
            "training_direction(inputs, residuals) or along(vector)"
        )
    if len(direction.points) and direction.points.shape[1:] != inputs.shape[1:]:
        raise ContractionError(
            f"an input of the direction has shape {direction.points.shape[1:]}, one of inputs {inputs.shape[1:]}; they must agree"
        )
    highest = max(d for ds in keys.values() for d in ds)
    if direction.kind == "mixed" and highest > len(direction.points):
        raise ContractionError(
            f"d = {highest} slots are asked for and mixed_gradients has {len(direction.points)} points; give one for each"
        )
    if direction.kind == "vector":
        shapes = [np.shape(leaf) for leaf in jax.tree.leaves(direction.vector)]
        wanted = [leaf.shape for leaf in jax.tree.leaves(start.shapes)]
        if jax.tree.structure(direction.vector) != jax.tree.structure(start.shapes) or shapes != wanted:
            raise ContractionError(
                f"the vector has leaves of shapes {shapes}, theta {wanted}; one structure and one shape are required"
            )
        if not all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(direction.vector)):
            raise ContractionError("the vector has entries that are not finite")


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """One request: parameters are drawn one initialisation at a time, so that memory does not grow with their number."""

    function: Callable[..., Any]
    scalar: Any
    start: Initialisation
    inputs: jax.Array
    direction: Direction
    method: Method
    chunk: int
    tolerance: float
    seed: int

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of every result."""
        shape = (*((self.start.count,) if self.start.seeds is not None else ()), len(self.inputs))
        return (*shape, len(self.direction.points)) if self.direction.kind == "points" else shape

    def all(self, entries: tuple[Entry, ...]) -> dict[Entry, Any]:
        """Values at eta = 1 (D = 0) or norms, by entry."""
        low = tuple(entry for entry in entries if entry[0] <= 1)
        columns: dict[Entry, list[Any]] = {entry: [] for entry in entries}
        for index in range(self.start.count):
            theta = self.start.at(index)
            operands = self._operands(theta)
            if low:
                values = contract_all(self.scalar, theta, self.inputs, operands, self.direction.kind, low, self.method, self.chunk)
                for entry in low:
                    columns[entry].append(self._finite(entry, np.asarray(values[entry]), index))
            for entry in (entry for entry in entries if entry[0] == 2):
                columns[entry].append(self._two(entry, theta, operands, index))
        found: dict[Entry, Any] = {}
        for entry, parts in columns.items():
            if entry[0] <= 1:
                found[entry] = np.reshape(np.stack(parts), self.batch)
            elif entry[0] == 2:
                found[entry] = (self._joined(parts), None)
            else:
                found[entry] = self._several(entry)
        return found

    def _operands(self, theta: Any) -> Any:
        return direction_operands(self.direction, self.function, self.scalar, theta)

    def _finite(self, entry: Entry, values: Any, index: int) -> Any:
        if np.isfinite(values).all():
            return values
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        seed = "" if self.start.seeds is None else f", initialisation {self.start.seeds[index]}"
        raise ContractionError(
            f"C_{entry} is {values[place]} at input {place[0]}{seed}: the function or one of its derivatives overflows or has a "
            "singularity there (a root or a logarithm at 0?); look at the function at this input, or ask for lower orders"
        )

    def _two(self, entry: Entry, theta: Any, operands: Any, index: int) -> NormBracket:
        norm = two_slots(
            self.scalar, theta, self.inputs, operands, self.direction.kind, entry[1], self.method, self.tolerance, self.seed
        )
        self._finite(entry, norm.lower, index)
        return norm

    def _joined(self, parts: list[NormBracket]) -> NormBracket:
        fields = {name: np.stack([getattr(p, name) for p in parts]) for name in ("lower", "upper", "residual", "iterations")}
        return reshaped(bracket(**fields, vectors=None, tolerance=2 * self.tolerance), self.batch)

    def _several(self, entry: Entry) -> tuple[NormBracket, Any]:
        thetas = [self.start.at(index) for index in range(self.start.count)]
        operands = [self._operands(theta) for theta in thetas]
        norm, frobenius = several_slots(
            self.scalar, thetas, self.inputs, operands, self.direction.kind, entry, self.method, self.seed
        )
        return reshaped(norm, self.batch), np.reshape(frobenius, self.batch)

    def cost(self, entry: Entry, norm: NormBracket) -> Cost:
        """Counted for one input, with the directions given; for iterations one product, and how many were made."""
        kind, slots, d = self.direction.kind, *entry
        theta, x = self.start.shapes, jax.ShapeDtypeStruct(self.inputs.shape[1:], self.inputs.dtype)
        vector = (theta,) * d if kind == "mixed" else theta
        if slots <= 1:
            return count_work(lambda t, y, v: item(self.scalar, t, y, v, kind, (entry,), self.method), theta, x, vector)

        def product(t: Any, y: Any, v: Any, u: Any) -> Any:
            return jax.jvp(jax.grad(frozen_coefficient(self.scalar, y, v, kind, d, self.method)), (t,), (u,))[1]

        one = count_work(product, theta, x, vector, theta)
        return Cost(one.operations, one.primitives, int(norm.iterations.sum()))


def _scaled(entry: Entry, part: Any, eta: float) -> Contraction:
    """The factors of eta."""
    slots, d = entry
    factor = eta ** (slots / 2 + d)
    if slots <= 1:
        size = np.abs(part) * factor
        zero = np.zeros(size.shape)
        norm = NormBracket(size, size, np.full(size.shape, "exact"), zero, zero.astype(np.int64))
        return Contraction(slots, d, norm, factor * part if slots == 0 else None)
    norm, frobenius = part
    scaled = NormBracket(factor * norm.lower, factor * norm.upper, norm.status, factor * norm.residual, norm.iterations)
    return Contraction(slots, d, scaled, None, None if frobenius is None else factor * frobenius)
