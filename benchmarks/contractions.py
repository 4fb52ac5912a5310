"""Benchmark of derivative contractions: C_{0,1..5} and C_{1,1..3} of a net with two hidden layers, without tensors.

    python benchmarks/contractions.py            # width 1024, 64 inputs
    python benchmarks/contractions.py --quick    # width 256, 8 inputs

1. Against Taylor mode written by hand for this net (a recursion for tanh, two products with weights an order), compiled the
   same way, on the same inputs: what the general route costs.
2. Against full tensors by nested `jax.jacobian` at small widths, where they still fit.
3. Memory as the compiler counts it, over widths and numbers of inputs.
4. Operations counted in the jaxpr, over d.

Times are process CPU time of the second call; compilation is shown apart. Both sides of a comparison run in one process.
"""

from __future__ import annotations

import argparse
import functools
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from symtensor.numerics.contractions import derivative_contractions
from symtensor.numerics.contractions._programs import _program, tree_norm
from symtensor.numerics.neural_networks import fully_connected

ENTRIES = (*((0, d) for d in range(1, 6)), *((1, d) for d in range(1, 4)))
INPUTS = 6


def hand_written(theta: Any, direction: Any, x: jax.Array, order: int) -> list[jax.Array]:
    """Taylor coefficients of the tanh net along theta + e direction."""
    y: list[Any] = [x] + [None] * order
    for index, (layer, step) in enumerate(zip(theta, direction)):
        scale = 1 / math.sqrt(layer["W"].shape[1])
        h = []
        for k in range(order + 1):
            terms = ([layer["W"] @ y[k]] if y[k] is not None else []) + (
                [step["W"] @ y[k - 1]] if k and y[k - 1] is not None else []
            )
            h.append(scale * functools.reduce(jnp.add, terms) if terms else None)
        if index == len(theta) - 1:
            return [jnp.zeros(()) if c is None else c[0] for c in h]
        y, slope = [jnp.tanh(h[0])], []
        slope.append(1 - y[0] ** 2)
        for k in range(1, order + 1):
            y.append(sum(j * h[j] * slope[k - j] for j in range(1, k + 1) if h[j] is not None) / k)
            slope.append(-sum(y[j] * y[k - j] for j in range(k + 1)))
    raise AssertionError


def by_hand(net: Any, chunk: int) -> Callable[..., Any]:
    """The same eight numbers for every input, with the same batching."""

    def one(theta: Any, x: jax.Array) -> jax.Array:
        v = jax.grad(net.apply)(theta, x)
        values = hand_written(theta, v, x, 5)[1:]
        norms = [tree_norm(jax.grad(lambda t, d=d: hand_written(t, v, x, d)[d])(theta)) for d in (1, 2, 3)]
        return jnp.stack([*values, *norms])

    return jax.jit(lambda theta, inputs: jax.lax.map(lambda x: one(theta, x), inputs, batch_size=chunk))


def clock(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of one call, and its result."""
    begin = time.process_time()
    out = jax.block_until_ready(call())
    return time.process_time() - begin, out


def against_hand(width: int, count: int, chunk: int) -> None:
    net = fully_connected((INPUTS, width, width), "tanh")
    theta = net.init(jax.random.key(0))
    inputs = jax.random.normal(jax.random.key(1), (count, INPUTS))
    general = _program(net.apply, "same", ENTRIES, "taylor", chunk)
    hand = by_hand(net, chunk)
    first_general, _ = clock(lambda: general(theta, inputs, ()))
    first_hand, _ = clock(lambda: hand(theta, inputs))
    runs = [(clock(lambda: general(theta, inputs, ())), clock(lambda: hand(theta, inputs))) for _ in range(3)]
    ours, reference = runs[0][0][1], np.asarray(runs[0][1][1])
    found = np.stack([np.asarray(ours[entry]) for entry in ENTRIES], 1)
    error = np.max(np.abs(found - reference) / np.abs(reference))
    mine, theirs = min(r[0][0] for r in runs), min(r[1][0] for r in runs)
    print(f"width {width}, {count} inputs, {net.parameters} parameters, {chunk} side by side: C_(0,1..5), C_(1,1..3)")
    print(f"  symtensor {mine:8.2f} s   (first call {first_general:.1f} s)")
    print(
        f"  by hand   {theirs:8.2f} s   (first call {first_hand:.1f} s)   ratio {mine / theirs:.2f}, largest difference {error:.1e}"
    )


def against_tensors(width: int) -> None:
    """grad^k F for k <= 4 by nested jax.jacobian, contracted."""
    net = fully_connected((2, width, width), "tanh")
    theta = net.init(jax.random.key(0))
    x = jnp.array([0.4, -1.1])
    flat, unravel = ravel_pytree(theta)

    def tensors(t: jax.Array) -> list[jax.Array]:
        f: Callable[..., Any] = lambda s: net.apply(unravel(s), x)  # noqa: E731
        out = []
        for _ in range(4):
            f = jax.jacobian(f)
            out.append(f(t))
        v = out[0]
        zero = [functools.reduce(lambda a, _: a @ v, range(d), out[d - 1]) / math.factorial(d) for d in range(1, 5)]
        one = [jnp.linalg.norm(functools.reduce(lambda a, _: a @ v, range(d), out[d])) / math.factorial(d) for d in range(1, 4)]
        return [*zero, *one]

    program = jax.jit(tensors)
    first, _ = clock(lambda: program(flat))
    dense, reference = clock(lambda: program(flat))
    orders = {0: (1, 2, 3, 4), 1: (1, 2, 3)}
    derivative_contractions(net.apply, theta, x[None], orders=orders)
    mine, result = clock(lambda: [e.values for e in derivative_contractions(net.apply, theta, x[None], orders=orders)])
    error = max(abs(float(r[0]) - float(e)) / abs(float(e)) for r, e in zip(result, reference))
    size = 8 * flat.size**4 / 2**20
    print(
        f"  {flat.size:4d} parameters: jax.jacobian {dense:8.3f} s (first call {first:5.1f} s, largest tensor {size:8.1f} MB), "
        f"symtensor {mine:6.3f} s with all checks; largest difference {error:.1e}"
    )


def memory(width: int, count: int) -> None:
    net = fully_connected((INPUTS, width, width), "tanh")
    shapes = jax.eval_shape(net.init, jax.random.key(0))
    compiled = _program(net.apply, "same", ENTRIES, "taylor", 1).lower(
        shapes, jax.ShapeDtypeStruct((count, INPUTS), jnp.float64), ()
    ).compile()  # fmt: skip
    peak = compiled.memory_analysis().temp_size_in_bytes
    each = peak / 8 / net.parameters
    print(f"  width {width:5d}, {count:3d} inputs: {peak / 2**20:8.1f} MB beside theta, {each:.2f} numbers per parameter")


def growth(width: int) -> None:
    net = fully_connected((INPUTS, width, width), "tanh")
    cost = derivative_contractions(net.apply, net.init, np.ones((1, INPUTS)), seeds=1, orders={0: 6, 1: 5}).cost
    products = 2.0 * net.parameters
    for slots in (0, 1):
        line = ", ".join(f"d={d}: {c.operations / products:.1f}" for (D, d), c in cost.items() if slots == D)
        print(f"  D = {slots}, operations in units of one evaluation of F: {line}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    jax.config.update("jax_enable_x64", True)
    against_hand(256 if quick else 1024, 8 if quick else 64, 4)
    print("against full tensors, C_(0,1..4), C_(1,1..3), one input:")
    for width in (2,) if quick else (2, 3):
        against_tensors(width)
    print("memory:")
    for width, count in ((128, 8), (256, 8), (256, 64)) if quick else ((256, 64), (512, 64), (1024, 8), (1024, 64)):
        memory(width, count)
    print("growth:")
    growth(128)


if __name__ == "__main__":
    main()
