"""How many seeds of a training run fit into memory together: counted from the model's trace, before anything is run."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symtensor.numerics._ensemble import MemoryCapError
from symtensor.numerics._training_input import Data, Model, Plan, Start

__all__ = ["seeds_at_once"]

#: copies of the parameters: theta(0), theta, u, two gradients, two updated ones; those of all seeds, with the updated ones
COPIES, HELD = 7, 5
#: copies of the activations of a batch: values and derivatives of the model and of the linearisation
PASSES = 4
#: larger groups of seeds gain nothing and make records rarer
MOST = 64


def seeds_at_once(model: Model, start: Start, data: Data, plan: Plan, seeds: int, memory_mb: float) -> int:
    """Seeds per group, of nearly equal groups; raises MemoryCapError if one does not fit."""
    theta = jax.eval_shape(start.draw, jax.ShapeDtypeStruct((1,), jax.random.key(0).dtype))
    if not start.shared:
        theta = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), theta)
    rows = max(plan.batch, plan.examples, len(data.held_out))
    traced = jax.make_jaxpr(jax.vmap(model, (None, 0)))(theta, jax.ShapeDtypeStruct((rows, *data.inputs.shape[1:]), jnp.float64))
    parameters, activations = 8 * start.parameters, 8 * PASSES * _values(traced.jaxpr)
    each, fixed = (COPIES * parameters + activations) / 2**20, 0.0
    need = each
    if jax.default_backend() == "cpu":  # one seed after the other: see `over_seeds`
        each, fixed = HELD * parameters / 2**20, ((COPIES - HELD) * parameters + activations) / 2**20
    if not need <= memory_mb:
        raise MemoryCapError(
            f"one seed needs about {need:.3g} MB ({start.parameters} parameters, {rows} inputs at a time), the cap is "
            f"{memory_mb} MB; raise memory_mb, or give fewer training or held-out inputs"
        )
    groups = -(-seeds // min(seeds, MOST, max(1, int((memory_mb - fixed) / each))))
    return -(-seeds // groups)


def _values(jaxpr: Any) -> int:
    """Numbers that the equations of a trace give, inner traces included."""
    count = 0
    for equation in jaxpr.eqns:
        inner = [value for value in equation.params.values() if hasattr(value, "eqns") or hasattr(value, "jaxpr")]
        if inner:
            count += sum(_values(getattr(value, "jaxpr", value)) for value in inner)
        else:
            count += sum(int(np.prod(out.aval.shape)) for out in equation.outvars if hasattr(out.aval, "shape"))
    return count
