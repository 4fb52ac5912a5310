"""Cost of the exact theory of layered networks at order 1/n: growth with depth and inputs.

    python benchmarks/layered.py [--depth 800] [--inputs 1 2 4] [--several-depth 100] [--tol 1e-8]

One input at --depth/4 and --depth layers, several inputs at --several-depth/4 and --several-depth layers, all to depth time 2.
`pairs` is the number of two-time covariances (layers x components, squared, halved); "us/pair" is the wall time of path
cumulants, lines and diagrams over it. "first" includes generation and compilation, "second" repeats with new path cumulants;
memory is the peak of the process so far. The authors' program takes 549 s for the kernel-only theory alone at 800 layers and 4
inputs (their figure).
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np


def kernel(inputs: int) -> np.ndarray:
    """K^0 of real images (digits), scaled to variances of a few units."""
    from symtensor.derivation.inputs import load_inputs

    return load_inputs("digits", inputs, 8.0, lambda *_: None).kernel


def measure(inputs: int, depth: int, tol: float) -> dict[str, float]:
    """Wall seconds of V_4, K_1, S_1, U_1 at all layers."""
    from derivations.layered_network.paths import Paths
    from symtensor.fields.layered import LayeredNetwork, expand

    network = LayeredNetwork.single("tanh", c_w=2, alpha=1, dt=2 / depth, depth=depth, kernel=kernel(inputs))
    marks = [time.perf_counter()]
    for _ in range(2):
        paths = Paths(network, network.functions(), tol, 64_000.0)
        expand(network, 1, tol=tol, memory_mb=64_000.0, paths=paths)
        marks.append(time.perf_counter())
    first, second = np.diff(marks)
    entries = ((depth + 1) * 2 * len(network.pairs)) ** 2 / 2
    return {"pairs": entries, "first": first, "second": second, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=800)
    parser.add_argument("--several-depth", type=int, default=100)
    parser.add_argument("--inputs", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--tol", type=float, default=1e-8)
    options = parser.parse_args()
    import jax

    jax.config.update("jax_enable_x64", True)
    print(f"{'inputs':>6} {'depth':>6} {'pairs':>10} {'first s':>8} {'second s':>9} {'us/pair':>8} {'peak MB':>8}")
    for inputs in options.inputs:
        largest = options.depth if inputs == 1 else options.several_depth
        for depth in (largest // 4, largest):
            cost = measure(inputs, depth, options.tol)
            rate = 1e6 * cost["second"] / cost["pairs"]
            print(f"{inputs:>6} {depth:>6} {cost['pairs']:>10.3g} {cost['first']:>8.1f} {cost['second']:>9.1f} {rate:>8.2f} "
                  f"{cost['peak']:>8.0f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
