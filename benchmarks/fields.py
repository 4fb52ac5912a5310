"""Two-loop two-point functions: symbolic step, compilation, and run time on 512 time points, closed form and grid.

    python benchmarks/fields.py [--points 128 256 512] [--closed-only]

Wall seconds of one run. Peers' figures, on their machines and as they state them: sft-wick 2.7 s for the symbolic step of KPZ at
two loops; Daedalus 5-10 s for the cubic Langevin equation to two loops on 33 points (`ratio`: 5 s over our total for that theory,
2.7 s over our symbolic step).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

THEORIES = {
    "cubic": ("dx = -(x + g*x^3) dt + sqrt(2*T) dW", {"T": 1.0, "g": 0.05}),
    "quadratic": ("dx = (-x + g*x^2) dt + sqrt(2*T) dW", {"T": 1.0, "g": 0.1}),
}
DAEDALUS, SFT_WICK = 5.0, 2.7


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """The result and the wall seconds it took."""
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def two_point(equations: str) -> Any:
    """<x(t) x(0)> to two loops, nothing enumerated yet."""
    from symtensor.fields import FieldTheory

    return FieldTheory.langevin(equations).cumulant("x,x", loops=2)


def closed(name: str, points: int) -> tuple[float, float, float]:
    """Seconds of the symbolic step, generation and compilation, and one run."""
    import jax.numpy as jnp

    equations, values = THEORIES[name]
    total, symbolic = timed(lambda: (found := two_point(equations), found.expr)[0])
    times = jnp.linspace(0, 10, points)
    compiled, generated = timed(total.compile)
    _, first = timed(lambda: compiled(times, **values).block_until_ready())
    _, run = timed(lambda: compiled(times, **values).block_until_ready())
    return symbolic, generated + first - run, run


def grid(name: str, points: int) -> tuple[float, float, float, float, int]:
    """Seconds of enumeration and planning, compilation, one run; the largest error estimate; points of the grid."""
    equations, values = THEORIES[name]
    compiled, symbolic = timed(lambda: two_point(equations).compile(method="grid", times=np.linspace(0, 10, points)))
    _, first = timed(lambda: compiled.evaluate(**values))
    found, run = timed(lambda: compiled.evaluate(**values))
    return symbolic, first - run, run, float(np.max(found.error)), compiled.points


def kpz() -> tuple[int, float]:
    """Number of diagrams of the two-point function of KPZ to two loops, with factors and momenta of all lines; seconds."""
    from symtensor.diagrams import enumerate_diagrams

    def work() -> int:
        count = 0
        for loops in range(3):
            for diagram in enumerate_diagrams("kpz", legs=["x", "x"], loops=loops):
                count += bool(diagram.symmetry_factor and diagram.momenta())
        return count

    return timed(work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, nargs="+", default=[128, 256, 512])
    parser.add_argument("--closed-only", action="store_true")
    options = parser.parse_args()
    import jax

    jax.config.update("jax_enable_x64", True)
    print(f"{'theory':<10} {'method':<7} {'points':>6} {'symbolic':>9} {'compile':>8} {'run':>9} {'total':>7}  remarks")
    for name in THEORIES:
        for points in options.points:
            symbolic, compiling, run = closed(name, points)
            total = symbolic + compiling + run
            remark = f"ratio {DAEDALUS / total:.1f}" if name == "cubic" else ""
            print(f"{name:<10} {'closed':<7} {points:>6} {symbolic:>9.2f} {compiling:>8.2f} {run:>9.5f} {total:>7.2f}  {remark}")
        for points in [] if options.closed_only else options.points:
            symbolic, compiling, run, error, whole = grid(name, points)
            total = symbolic + compiling + run
            ratio = f", ratio {DAEDALUS / total:.1f}" if name == "cubic" else ""
            remark = f"error {error:.1g}, {whole} points with the past{ratio}"
            print(f"{name:<10} {'grid':<7} {points:>6} {symbolic:>9.2f} {compiling:>8.2f} {run:>9.5f} {total:>7.2f}  {remark}")
    count, seconds = kpz()
    print(f"KPZ to two loops: {count} diagrams with factors and momenta in {seconds:.2f} s, ratio {SFT_WICK / seconds:.1f}")


if __name__ == "__main__":
    main()
