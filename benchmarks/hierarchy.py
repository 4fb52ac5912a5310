"""Cost of the kernel-only theory: generation, compilation, evaluation; growth with inputs and depth.

    python benchmarks/hierarchy.py [--depth 800] [--inputs 1 2 4 8]

Times are CPU seconds of one run. The ceiling in the same run is a hand-written NumPy recursion for one input with the
same rule (no tensors, no compilation): "x hand" is the evaluation time of the generated module over that ceiling.
The authors' program takes 549 s for 800 layers and 4 inputs (their figure, another machine).
"""

from __future__ import annotations

import argparse
import time

import numpy as np


def hand_written(depth: int, dt: float, rule: tuple[np.ndarray, np.ndarray]) -> float:
    """The one-input tanh recursion in plain NumPy; returns its CPU seconds."""
    z, w = rule
    start = time.process_time()
    K, V, K1 = 2.0, 8.0, 0.0
    for _ in range(depth):
        h = np.tanh(np.sqrt(K) * z) ** 2
        drive = 2 * (w @ h)
        chi = (w @ (h * (z**2 - 1))) / K
        second = (w @ (h * (z**4 - 6 * z**2 + 3))) / (2 * K * K)
        K, V, K1 = K + dt * drive, V + dt * (2 * chi * V + 4 * K * drive), K1 + dt * (chi * K1 + second * V / 2)
    return time.process_time() - start


def measure(inputs: int, depth: int) -> dict[str, float]:
    """CPU seconds of each phase for `inputs` images and `depth` layers."""
    import jax.numpy as jnp

    from derivations.resnet_kernel import DERIVATION
    from derivations.resnet_kernel.request import read_request
    from derivations.resnet_kernel.theory import generate_module
    from symtensor.derivation.settings import Settings
    from symtensor.numerics.rules import Rule

    settings = Settings.defaults(
        DERIVATION.options, n_inputs=inputs, input_scale=8.0, dt=2.0 / depth, depth=depth, samples=0, memory_mb=16000.0
    )
    request = read_request(settings)
    marks = [time.process_time()]
    namespace = generate_module(request, Rule("trapezoid", 141, 7.0), "inside", final=False).load()
    marks.append(time.process_time())
    K0 = jnp.asarray(request.kernel)
    arguments = (K0, namespace.V4_initial(K0), jnp.zeros_like(K0), 2.0, 0.0, 1.0, request.dt)
    for _ in range(2):
        namespace.hierarchy(*arguments, depth=depth).V4.block_until_ready()
        marks.append(time.process_time())
    generate, first, second = np.diff(marks)
    return {"generate": generate, "compile": first - second, "evaluate": second}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=800)
    parser.add_argument("--inputs", type=int, nargs="+", default=[1, 2, 4, 8])
    options = parser.parse_args()
    import jax

    jax.config.update("jax_enable_x64", True)
    z = np.linspace(-7, 7, 141)
    ceiling = hand_written(options.depth, 2.0 / options.depth, (z, np.exp(-z * z / 2) * (z[1] - z[0]) / np.sqrt(2 * np.pi)))
    print(f"hand-written one-input recursion, {options.depth} layers: {ceiling:.3f} s")
    print(f"{'inputs':>6} {'depth':>6} {'generate':>9} {'compile':>8} {'evaluate':>9} {'x hand':>7} {'ms/layer/pair':>14}")
    for inputs in options.inputs:
        for depth in (options.depth // 4, options.depth):
            cost = measure(inputs, depth)
            pairs = inputs * (inputs + 1) / 2
            ratio = cost["evaluate"] / ceiling * options.depth / depth
            print(f"{inputs:>6} {depth:>6} {cost['generate']:>9.2f} {cost['compile']:>8.2f} {cost['evaluate']:>9.3f} "
                  f"{ratio:>7.1f} {1e3 * cost['evaluate'] / depth / pairs:>14.4f}")  # fmt: skip


if __name__ == "__main__":
    main()
