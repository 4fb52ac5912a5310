"""Values and rates of an emitted module on whatever device JAX has: `python benchmarks/device.py [--inputs P] [--depth L]`.

Generates the residual-network hierarchy, compares it with the oracle on the default device (float64 where the device has
it, else float32), then times one layer and the recursion. Exit status 1 if a value is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import jax
import jax.numpy as jnp
import numpy as np

from codegen import GeneratedModule, ModuleSpec, check_module, generate
from derivations.resnet_kernel.kernels import kernels
from symtensor.activation import activation
from symtensor.numerics.rules import CLOSED, Rule


def seconds(run: Callable[[], Any], repeat: int = 5) -> float:
    """Least wall time of a compiled call."""
    jax.block_until_ready(run())
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
    return min(times)


def rates(module: GeneratedModule, inputs: int, depth: int, dtype: str) -> None:
    """Print compile time, time per layer, and quadrature nodes per second."""
    namespace: Any = module.load()
    X = np.random.default_rng(0).normal(size=(inputs, 64))
    K = jnp.asarray(X @ X.T / 32, dtype)
    state = K, namespace.V4_initial(K), jnp.zeros_like(K)
    parameters = [jnp.asarray(value, dtype) for value in (2.0, 0.0, 1.0, 0.0025)]
    start = time.perf_counter()
    scan = namespace.hierarchy.lower(*state, *parameters, depth=depth).compile()
    compiled = time.perf_counter() - start
    layer = seconds(lambda: namespace.layer(*state, *parameters))
    whole = seconds(lambda: scan(*state, *parameters), repeat=2)
    pairs, nodes = inputs * (inputs - 1) // 2, module.spec.rule.n ** 2
    print(f"  {dtype}: compile {compiled:.2f} s, one layer {layer * 1e3:.3f} ms, {depth} layers {whole:.3f} s", end="")
    print(f", {pairs * nodes * depth / whole / 1e6:.0f} M nodes/s" if nodes and pairs else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=4)
    parser.add_argument("--depth", type=int, default=800)
    options = parser.parse_args()
    device = jax.devices()[0]
    dtypes = ["float32"] if device.platform == "tpu" else ["float64", "float32"]
    jax.config.update("jax_enable_x64", "float64" in dtypes)
    print(f"device: {device.device_kind} ({device.platform}), jax {jax.__version__}")
    failed = False
    for name, rule in (("tanh", Rule("trapezoid", 161)), ("gelu", Rule("trapezoid", 161)), ("relu", CLOSED), ("erf", CLOSED)):
        module = generate(ModuleSpec("resnet_kernel", f"Kernel hierarchy, {name}.", kernels(activation(name)), rule=rule))
        print(f"{name}, {rule}")
        for dtype in dtypes:
            check = check_module(module, dtype)
            failed |= not check.passed
            print(f"  {dtype}: {check} {'passed' if check.passed else 'FAILED'}")
            rates(module, options.inputs, options.depth, dtype)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
