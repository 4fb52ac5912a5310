"""Simulator benchmark: the exact one-block law against networks with weight matrices, in one run.

    python benchmarks/simulation.py            # widths 64, 256, 1024, four inputs
    python benchmarks/simulation.py --quick    # widths 64, 256

Three tables: cost per network and layer against the naive network (the same model with n x n weights, jitted JAX, once
with `jax.random.normal` and once with the simulator's own faster normals); where the time of a block goes; and by what
factor the control variates divide the variance (the ratio of times to equal error is the product of both).
Times are the smallest of several repetitions of process CPU time; the simulator's include its control variates.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from symtensor.activation import activation
from symtensor.numerics._blocks import Constants, Law, Plan, compile_block, plan_block
from symtensor.numerics._draws import fold_in, key_words, normals
from symtensor.numerics._factor import semidefinite_factor
from symtensor.numerics.simulation import Ensemble, LeadingOrder, simulate

INPUTS, DEPTH = 4, 6
LAW = Law(alpha=1.0, dt=0.25, c_w=1.5, c_b=0.1)
KERNEL = np.array([[1.5, 0.6, 0.2, -0.3], [0.6, 1.2, 0.1, 0.4], [0.2, 0.1, 1.0, 0.3], [-0.3, 0.4, 0.3, 0.8]])


def cpu_time(run: Callable[[], object], repetitions: int = 5) -> float:
    """Smallest process CPU time of `run`, in seconds, after one warm-up call."""
    jax.block_until_ready(run())
    best = np.inf
    for _ in range(repetitions):
        begin = time.process_time()
        jax.block_until_ready(run())
        best = min(best, time.process_time() - begin)
    return best


def leading_order(depth: int) -> LeadingOrder:
    """tanh by a 2-D trapezoid; derivatives inside the expectation."""
    z = np.linspace(-9, 9, 181)
    weights = np.exp(-(z**2) / 2) * (z[1] - z[0]) / np.sqrt(2 * np.pi)
    kernels, means, responses = [KERNEL], [], []
    for _ in range(depth + 1):
        k = kernels[-1]
        mean, response = np.zeros((INPUTS,) * 2), np.zeros((INPUTS,) * 4)
        for a in range(INPUTS):
            for b in range(INPUTS):
                x = np.sqrt(k[a, a]) * z
                slope = k[a, b] / np.sqrt(k[a, a])
                y = slope * z + np.sqrt(max(k[b, b] - slope**2, 0.0)) * z[:, None]
                f, g = np.tanh(x), np.tanh(y)
                mean[a, b] = weights @ (g * f) @ weights
                response[a, b, a, a] += weights @ (-g * f * (1 - f**2)) @ weights
                response[a, b, b, b] += weights @ (-f * g * (1 - g**2)) @ weights
                response[a, b, a, b] += 0.5 * (weights @ ((1 - g**2) * (1 - f**2)) @ weights)
                response[a, b, b, a] += 0.5 * (weights @ ((1 - g**2) * (1 - f**2)) @ weights)
        means.append(mean)
        responses.append(response)
        kernels.append(LAW.alpha**2 * k + LAW.dt * (LAW.c_b + LAW.c_w * mean))
    return LeadingOrder(np.array(kernels[:-1]), np.array(means), np.array(responses))


def block_runner(plan: Plan) -> Callable[[], jax.Array]:
    layout, leading = plan.layout, leading_order(plan.depth)
    factors = np.sqrt(LAW.dt) * np.linalg.cholesky(LAW.c_b + LAW.c_w * leading.ES[:-1])
    factors = np.concatenate([np.linalg.cholesky(KERNEL)[None], factors])
    arrays = (layout.pack(leading.K), layout.pack(leading.ES), layout.pack_response(leading.J), factors)
    constants = Constants(*(jnp.asarray(array) for array in arrays))
    executable = compile_block(plan, LAW, jnp.tanh, jax.local_devices()[0])
    words = jnp.array(key_words(0), jnp.uint32)
    return lambda: executable(words, jnp.uint32(0), jnp.int32(plan.samples), constants)


def naive_runner(width: int, networks: int, own_normals: bool) -> Callable[[], jax.Array]:
    """Kernels G of `networks` networks with explicit weights, one after another (memory n^2)."""
    root = jnp.asarray(np.linalg.cholesky(KERNEL))

    def draw(key: jax.Array, rows: int, columns: int) -> jax.Array:
        if not own_normals:
            return jax.random.normal(key, (rows, columns))
        words = jax.random.key_data(key)
        lanes = fold_in((words[0], words[1]), jnp.arange(columns, dtype=jnp.uint32))
        return normals(lanes, rows, chunked=True)

    def network(key: jax.Array) -> jax.Array:
        phi = jax.random.normal(jax.random.fold_in(key, 0), (width, INPUTS)) @ root.T

        def layer(phi: jax.Array, index: jax.Array) -> tuple[jax.Array, jax.Array]:
            weights = draw(jax.random.fold_in(key, 2 * index), width, width)
            bias = jax.random.normal(jax.random.fold_in(key, 2 * index + 1), (width, 1))
            increment = jnp.sqrt(LAW.c_w / width) * (weights @ jnp.tanh(phi)) + jnp.sqrt(LAW.c_b) * bias
            return LAW.alpha * phi + jnp.sqrt(LAW.dt) * increment, phi.T @ phi / width

        last, kernels = jax.lax.scan(layer, phi, jnp.arange(1, DEPTH + 1))
        return jnp.concatenate([kernels, (last.T @ last / width)[None]])

    run = jax.jit(lambda keys: jax.lax.map(network, keys))
    keys = jax.random.split(jax.random.key(0), networks)
    return lambda: run(keys)


def law_against_weights(widths: Sequence[int]) -> None:
    print(f"Cost per network and layer, tanh, P = {INPUTS}, {DEPTH} layers (microseconds of CPU time)")
    print(f"{'n':>6} {'exact law':>12} {'weights':>12} {'ratio':>8} {'weights*':>12} {'ratio*':>8}   (* own normals)")
    for width in widths:
        plan = plan_block(width, INPUTS, DEPTH)
        law = cpu_time(block_runner(plan)) / (plan.samples * (DEPTH + 1))
        networks = max(1, 2**18 // width**2)
        naive = [cpu_time(naive_runner(width, networks, own), 3) / (networks * DEPTH) for own in (False, True)]
        columns = f"{1e6 * naive[0]:12.1f} {naive[0] / law:8.1f} {1e6 * naive[1]:12.1f} {naive[1] / law:8.1f}"
        print(f"{width:6d} {1e6 * law:12.2f} {columns}")


def where_the_time_goes(widths: Sequence[int]) -> None:
    print("\nA block, nanoseconds of CPU time per normal (all, and its parts run alone; millions of normals a second)")
    print(f"{'n':>6} {'lanes':>6} {'tracked':>8} {'ms/layer':>9} {'all':>7} {'normals':>8} {'jax normals':>12} "
          f"{'factors':>8} {'M/s':>7}")  # fmt: skip
    for width in widths:
        plan = plan_block(width, INPUTS, 20)
        rows = width * INPUTS
        numbers = rows * plan.samples
        total = cpu_time(block_runner(plan)) / (plan.depth + 1)
        parts = [1e9 * seconds / numbers for seconds in part_times(plan, rows)]
        print(
            f"{width:6d} {plan.samples:6d} {plan.tracked:8d} {1e3 * total:9.3f} {1e9 * total / numbers:7.1f} "
            f"{parts[0]:8.1f} {parts[1]:12.1f} {parts[2]:8.2f} {numbers / total / 1e6:7.1f}"
        )


def part_times(plan: Plan, rows: int) -> list[float]:
    """Seconds per layer of the simulator's normals, of as many from `jax.random`, and of the factors, run alone."""
    lanes = jnp.arange(plan.samples, dtype=jnp.uint32)
    keys = jax.random.split(jax.random.key(0), plan.samples)
    matrices = jnp.broadcast_to(jnp.asarray(KERNEL)[..., None], (INPUTS, INPUTS, plan.samples))
    own = jax.jit(lambda lane: normals(fold_in((lane, lane), lane), rows, chunked=True))
    theirs = jax.jit(jax.vmap(lambda key: jax.random.normal(key, (rows,))))
    factor = jax.jit(semidefinite_factor)
    return [cpu_time(lambda: own(lanes)), cpu_time(lambda: theirs(keys)), cpu_time(lambda: factor(matrices))]


def control_variates(widths: Sequence[int]) -> None:
    print("\nVariance gain of the control variates (smallest and median component at the last depth; 4096 samples)")
    print(f"{'n':>6} {'K1':>16} {'S1':>16} {'U1':>16} {'V4':>16}")
    leading = leading_order(DEPTH)
    for width in widths:
        ensemble = Ensemble(activation("tanh"), LAW.c_w, LAW.c_b, LAW.alpha, LAW.dt, DEPTH, width)
        gain = simulate(ensemble, leading, samples=4096, seed=0).gain
        columns = (f"{np.min(gain[q][-1]):7.1f} {np.median(gain[q][-1]):8.1f}" for q in ("K1", "S1", "U1", "V4"))
        print(f"{width:6d} " + " ".join(columns))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="widths 64 and 256 only")
    widths = (64, 256) if parser.parse_args().quick else (64, 256, 1024)
    jax.config.update("jax_enable_x64", True)
    law_against_weights(widths)
    where_the_time_goes(widths)
    control_variates(widths)


if __name__ == "__main__":
    main()
