"""Arguments of a call: matched to the signature, converted, their shapes checked, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from symtensor.kernels import (
    Argument,
    ArrayKernel,
    CompositeKernel,
    ExpectationKernel,
    FixedPointKernel,
    OdeKernel,
    ScalarKernel,
    ScanKernel,
)

from .backends.jax_backend import require_dtype
from .errors import CallError

if TYPE_CHECKING:
    from .compiled import Compiled

__all__ = ["Parameters", "converted"]

_REAL = {"complex64": "float32", "complex128": "float64"}


@dataclass(frozen=True, slots=True)
class Parameters:
    """Names and shapes of arguments, and how their values are treated.

    `leading` arguments may have more axes than declared, which broadcast; with `together` all of them are broadcast to one
    shape (the state of a loop must not change its shape). `options` come by name, `required` ones must.
    """

    name: str
    arguments: tuple[Argument, ...]
    options: tuple[str, ...]
    required: tuple[str, ...]
    complex: frozenset[str]
    dtype: str | None
    leading: bool
    together: bool

    @classmethod
    def of(cls, compiled: Compiled) -> Parameters:
        """Read off a compiled function."""
        kernel = compiled.kernel
        scalars = all(argument.shape == () for argument in compiled.arguments)
        loop = isinstance(kernel, ScanKernel | OdeKernel | FixedPointKernel)
        leading = isinstance(kernel, ScalarKernel | ArrayKernel | ExpectationKernel)
        leading |= scalars and isinstance(kernel, CompositeKernel | ScanKernel | OdeKernel | FixedPointKernel)
        required = tuple(option for option in compiled.options if option in ("depth", "ts"))
        return cls(
            compiled.name, compiled.arguments, compiled.options, required, compiled.complex_arguments, compiled.dtype,
            leading, loop and scalars,
        )  # fmt: skip


def converted(parameters: Parameters, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments in order as JAX arrays, and the options.

    Raises
    ------
    CallError
        See `Compiled.__call__`.
    """
    import jax.numpy as jnp

    if parameters.dtype is not None:
        require_dtype(_REAL.get(parameters.dtype, parameters.dtype))
    matched = _matched(parameters, args, kwargs)
    values = [_array(parameters, argument, matched[argument.name]) for argument in parameters.arguments]
    _check_shapes(parameters, values)
    if parameters.together:
        values = list(jnp.broadcast_arrays(*values))
    options = {name: kwargs[name] for name in parameters.options if name in kwargs}
    if "ts" in options:
        options["ts"] = _array(parameters, Argument("ts", ("T",)), options["ts"])
    return values, options


def _matched(parameters: Parameters, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    names = [argument.name for argument in parameters.arguments]
    shown = f"{parameters.name}({', '.join([*names, *(f'{name}=' for name in parameters.options)])})"
    if len(args) > len(names):
        raise CallError(f"{shown}: {len(args)} arguments by position; there are {len(names)}")
    matched = dict(zip(names, args))
    for name, value in kwargs.items():
        if name in matched:
            raise CallError(f"{shown}: argument {name!r} is given twice")
        if name not in names and name not in parameters.options:
            raise CallError(f"{shown}: there is no argument {name!r}")
        matched[name] = value
    missing = [name for name in (*names, *parameters.required) if name not in matched]
    if missing:
        raise CallError(f"{shown}: {', '.join(missing)} not given")
    return matched


def _array(parameters: Parameters, argument: Argument, value: Any) -> Any:
    """A JAX array of the right type; integers become floats before they can overflow."""
    import jax
    import jax.numpy as jnp

    where = f"{parameters.name}: argument {argument.name}"
    if not isinstance(value, jax.Array | np.ndarray | np.generic):
        value = _from_python(value, where)
    kind = np.dtype(value.dtype).kind
    if kind not in "fciub" and not jnp.issubdtype(value.dtype, jnp.floating):
        raise CallError(f"{where} has type {value.dtype}; numbers are needed")
    is_complex = argument.name in parameters.complex
    if kind == "c" and not is_complex:
        hint = "compile with dtype='complex128' and a symbol that is not declared real"
        raise CallError(f"{where} is complex, the function is real in it; {hint}")
    dtype = parameters.dtype if is_complex or parameters.dtype is None else _REAL.get(parameters.dtype, parameters.dtype)
    if dtype is None and kind in "iub":
        dtype = jnp.result_type(float)
    return jnp.asarray(value, dtype)


def _from_python(value: Any, where: str) -> np.ndarray:
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fciubO":
            raise TypeError
        if array.dtype.kind in "iubO":
            array = array.astype(complex if any(isinstance(each, complex) for each in array.ravel()) else float)
    except (ValueError, TypeError, OverflowError):
        raise CallError(f"{where} is {str(value)[:60]!r} ({type(value).__name__}), which is no array of numbers") from None
    return array


def _check_shapes(parameters: Parameters, values: Sequence[Any]) -> None:
    sizes: dict[str, tuple[int, str]] = {}
    fronts: dict[str, tuple[int, ...]] = {}
    for argument, value in zip(parameters.arguments, values):
        rank = len(argument.shape)
        shape = tuple(value.shape)
        front, own = shape[: len(shape) - rank], shape[len(shape) - rank :] if rank <= len(shape) else ()
        wanted = ", ".join(map(str, argument.shape))
        if len(own) != rank or (front and not parameters.leading):
            leading = "(.., " if parameters.leading else "("
            raise CallError(f"{parameters.name}: argument {argument.name} has shape {shape}, wanted is {leading}{wanted})")
        for size, extent in zip(argument.shape, own):
            known, owner = (size, "") if isinstance(size, int) else sizes.setdefault(size, (extent, argument.name))
            if extent != known:
                why = f" with {size} = {known} of {owner}" if owner else ""
                raise CallError(f"{parameters.name}: argument {argument.name} has shape {shape}, wanted is ({wanted}){why}")
        fronts[argument.name] = front
    try:
        np.broadcast_shapes(*fronts.values())
    except ValueError:
        shown = ", ".join(f"{name} {shape}" for name, shape in fronts.items())
        raise CallError(f"{parameters.name}: leading axes do not broadcast: {shown}") from None
