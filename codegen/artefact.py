"""A function as StableHLO with what is needed to call it. It needs JAX and nothing else.

    from NAME import call          the function: arrays or numbers, by position or by name
    from NAME import MANIFEST      arguments, outputs, shapes, type, platforms
    python -m NAME                 compare the function with the reference values that are stored with it

A shape holds integers and names; one name is one size. Outputs are a named tuple if there are several.
"""

from __future__ import annotations

import hashlib
import json
import pkgutil
from collections import namedtuple
from typing import Any

import jax
import jax.export
import jax.numpy as jnp

__all__ = ["MANIFEST", "call", "main"]


def _data(name: str) -> bytes:
    found = pkgutil.get_data(__name__, name)
    if found is None:
        raise FileNotFoundError(f"the artefact has no {name}")
    return found


def _function() -> Any:
    blob = _data("function.stablehlo")
    if hashlib.sha256(blob).hexdigest() != MANIFEST["sha256"]:
        raise ValueError("function.stablehlo is not what was exported (its digest differs); copy the artefact again")
    return jax.export.deserialize(bytearray(blob))


MANIFEST: dict[str, Any] = json.loads(_data("manifest.json"))
_EXPORTED = _function()
_NAMES = [argument["name"] for argument in MANIFEST["arguments"]]
_FIELDS = [output["name"] for output in MANIFEST["outputs"]]
_RESULT = namedtuple(MANIFEST["record"], _FIELDS) if MANIFEST["record"] else None  # type: ignore[misc]


def call(*args: Any, **kwargs: Any) -> Any:
    """The exported function.

    Raises
    ------
    TypeError
        Missing, unknown or repeated arguments.
    ValueError
        Shapes that do not fit, or a type of 64 bits while JAX runs with 32.
    """
    given = dict(zip(_NAMES, args))
    if len(args) > len(_NAMES) or set(given) & set(kwargs) or {*given, *kwargs} != set(_NAMES):
        named = ", ".join(kwargs) or "none"
        raise TypeError(f"{MANIFEST['name']}({', '.join(_NAMES)}): got {len(args)} by position and {named} by name")
    given |= kwargs
    if MANIFEST["x64"] and jnp.result_type(float) != jnp.float64:
        raise ValueError('exported in 64 bits, JAX runs in 32; set jax.config.update("jax_enable_x64", True)')
    values = [jnp.asarray(given[argument["name"]], argument["dtype"]) for argument in MANIFEST["arguments"]]
    values = _broadcast(values)
    for argument, value in zip(MANIFEST["arguments"], values):
        wanted = argument["shape"]
        if value.ndim != len(wanted) or any(isinstance(n, int) and n != m for n, m in zip(wanted, value.shape)):
            shown = f"{argument['name']} has shape {value.shape}, wanted is ({', '.join(map(str, wanted))})"
            raise ValueError(f"{MANIFEST['name']}: {shown}")
    results = _EXPORTED.call(*values)
    return _RESULT(*results) if _RESULT else results[0]


def _broadcast(values: list[Any]) -> list[Any]:
    """Arguments of an elementwise function get their common leading axis."""
    places = [place for place, argument in enumerate(MANIFEST["arguments"]) if argument["leading"]]
    ranks = {place: len(MANIFEST["arguments"][place]["shape"]) - 1 for place in places}
    fronts = [values[place].shape[: values[place].ndim - ranks[place]] for place in places]
    front = jnp.broadcast_shapes((1,), *fronts)
    for place in places:
        value = values[place]
        values[place] = jnp.broadcast_to(value, (*front, *value.shape[value.ndim - ranks[place] :]))
    return values


def main() -> int:
    """Print the errors at the stored points; 0 if all are within the tolerance."""
    worst = 0.0
    for point in MANIFEST["points"]:
        found = call(**point["arguments"])
        results = found._asdict() if _RESULT else {_FIELDS[0]: found}
        for name, wanted in point["expected"].items():
            expected = jnp.asarray(wanted, float)
            scale = jnp.max(jnp.abs(expected))
            error = jnp.max(jnp.abs(results[name].reshape(expected.shape) - expected)) / jnp.where(scale > 0, scale, 1)
            worst = max(worst, float(error) if bool(jnp.isfinite(error)) else float("inf"))
    count = len(MANIFEST["points"])
    passed = worst <= MANIFEST["tolerance"]
    print(f"{MANIFEST['name']}: {count} points, worst error {worst:.1e} ({'passed' if passed else 'FAILED'})")
    return 0 if passed else 1
