"""Tensors given only by their contractions: nothing of size d_1 .. d_r exists at any time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symtensor.numerics._ensemble import MemoryCapError
from symtensor.numerics._norm_input import NormInputError
from symtensor.numerics._norm_lanczos import Singular, _looped, power_of_two, top_singular
from symtensor.numerics._norm_power import Ascent, Vectors, alternating, shifted_power


@dataclass(frozen=True, slots=True)
class ImplicitTensor:
    """A tensor of the given shape known by its contractions with vectors.

    Attributes
    ----------
    shape
        `(d_1, .., d_r)`, without batch axes; () for a scalar.
    contract
        `contract(vectors, free_slot, *operands)`, written in JAX: `vectors` are those of the other r - 1 slots in order
        of slots, the result is the `(d_free,)` vector left. For r = 0 it is called with `((), None)` and gives the number.
    operands
        Arrays that `contract` depends on, with the batch axes of the norm in front. Give what changes from tensor to
        tensor here: one program then serves all of them.
    symmetric
        The tensor does not change when slots are exchanged.

    Examples
    --------
    >>> ones = ImplicitTensor((9, 9, 9), lambda vectors, free: jnp.ones(9) * vectors[0].sum() * vectors[1].sum())
    >>> ones.order
    3
    """

    shape: tuple[int, ...]
    contract: Callable[..., Any]
    operands: tuple[Any, ...] = ()
    symmetric: bool = False

    def __post_init__(self) -> None:
        shape = tuple(self.shape)
        if any(isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 1 for d in shape):
            raise NormInputError(f"shape {self.shape} of an implicit tensor must hold integers of at least 1")
        if self.symmetric and len(set(shape)) > 1:
            raise NormInputError(f"shape {shape} cannot be symmetric: all slots need one size")
        object.__setattr__(self, "shape", tuple(int(d) for d in shape))
        object.__setattr__(self, "operands", tuple(self.operands))

    @property
    def order(self) -> int:
        """Number of slots."""
        return len(self.shape)


def derivative_tensor(
    function: Callable[..., Any], point: Any, slots: int, *, directions: Sequence[Any] = (), operands: Sequence[Any] = ()
) -> ImplicitTensor:
    r"""`grad^{D+d} F(point)[g_1, .., g_d, ., .., .]` with D free `slots`, by nested forward and one reverse pass.

    Parameters
    ----------
    function
        `function(theta, *operands) -> scalar` in JAX, theta a vector `(p,)`; smooth (the second derivative of a kinked
        function by automatic differentiation misses its delta terms).
    point, directions
        `(batch.., p)` each: where, and along what d of the slots are contracted.
    slots
        D, the number of free slots.
    operands
        Further arguments of the function, with the batch axes in front.

    Notes
    -----
    With all vectors but one frozen, the free slot is the gradient in theta of an iterated directional derivative. The
    derivative contraction is `C_{D,d} = eta^{D/2+d}/(D! d!)` times this tensor at `g_i = grad F` (arXiv 2401.04013).

    Examples
    --------
    >>> cube = derivative_tensor(lambda x: jnp.sum(x**3), jnp.array([1.0, 2.0]), 2)
    >>> [round(float(x), 6) for x in cube.contract((jnp.array([0.0, 1.0]),), 0, *cube.operands)]
    [0.0, 12.0]
    """
    point = jnp.asarray(point)
    directions = tuple(jnp.asarray(g) for g in directions)
    for g in directions:
        if g.shape != point.shape:
            raise NormInputError(f"a direction has shape {g.shape}, the point {point.shape}; both must agree")
    if point.ndim < 1:
        raise NormInputError("the point is a number; give the parameters as a vector of shape (p,)")
    if isinstance(slots, bool) or not isinstance(slots, int) or slots < 0:
        raise NormInputError(f"slots = {slots!r} must be the number of free slots, 0, 1, 2, ..")
    contract = _derivative_contract(function, len(directions))
    return ImplicitTensor((point.shape[-1],) * slots, contract, (point, *directions, *operands), symmetric=True)


@functools.lru_cache(maxsize=32)
def _derivative_contract(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    def contract(vectors: Sequence[Any], free: int | None, point: Any, *rest: Any) -> Any:
        along, extra = (*rest[:count], *vectors), rest[count:]

        def directional(theta: Any) -> Any:
            value = functools.partial(_at, function, extra)
            for g in along:
                value = functools.partial(_along, value, g)
            return value(theta)

        return directional(point) if free is None else jax.grad(directional)(point)

    return contract


def _at(function: Callable[..., Any], extra: tuple[Any, ...], theta: Any) -> Any:
    return function(theta, *extra)


def _along(value: Callable[[Any], Any], direction: Any, theta: Any) -> Any:
    return jax.jvp(value, (theta,), (direction,))[1]


Program = Callable[..., Any]


@functools.lru_cache(maxsize=16)
def singular_program(matvec: Callable, rmatvec: Callable, tolerance: float, cycles: int) -> Program:
    """Jitted `(operands, start, spare) -> Singular` over the leading batch axis of the operands."""

    def one(operands: tuple, start: jax.Array, spare: jax.Array) -> Singular:
        scale = power_of_two(lambda v: matvec(v, *operands), start)
        out = top_singular(
            lambda v: matvec(v, *operands) / scale, lambda u: rmatvec(u, *operands) / scale, start, spare, tolerance, cycles
        )
        return out._replace(value=scale * out.value, residual=scale * out.residual)

    return jax.jit(lambda operands, start, spare: _looped(lambda item: one(item, start, spare), operands, 1))


@functools.lru_cache(maxsize=16)
def ascent_program(contract: Callable, order: int, symmetric: bool, tolerance: float, steps: int) -> Program:
    """Jitted `(operands, starts) -> Ascent` over the leading batch axis of the operands, all starts side by side."""

    def one(operands: tuple, starts: Vectors) -> Ascent:
        def contracted(vectors: Vectors, free: int) -> jax.Array:
            rest = tuple(v for slot, v in enumerate(vectors) if slot != free)
            return jax.vmap(lambda *single: contract(single, free, *operands))(*rest)

        if symmetric:
            return shifted_power(contracted, starts[0], order, tolerance, steps)
        return alternating(contracted, starts, tolerance, steps)

    return jax.jit(lambda operands, starts: _looped(lambda item: one(item, starts), operands, 1))


@functools.lru_cache(maxsize=16)
def plain_program(contract: Callable, order: int) -> Program:
    """Jitted contraction of a tensor of at most one slot: the number, or the vector."""

    def one(operands: tuple) -> jax.Array:
        return jnp.ravel(jnp.asarray(contract((), None if order == 0 else 0, *operands)))

    return jax.jit(lambda operands: _looped(one, operands, 1))


def run_capped(program: Any, arguments: tuple[Any, ...], memory: int) -> Any:
    """Compile, compare the compiler's own count of memory with the cap, run."""
    compiled = program.lower(*arguments).compile()
    analysis = compiled.memory_analysis()
    if analysis is not None:
        need = analysis.temp_size_in_bytes + analysis.output_size_in_bytes + analysis.argument_size_in_bytes
        if need > memory:
            raise MemoryCapError(
                f"the contractions need {need / 2**20:.3g} MB, the cap is {memory / 2**20:.3g} MB; raise memory or use "
                "fewer restarts"
            )
    return compiled(*arguments)
