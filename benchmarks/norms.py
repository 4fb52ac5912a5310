"""Norm benchmark: batched spectral norms of Gaussian matrices, as a verification needs them, against plain NumPy.

    python benchmarks/norms.py            # 8 sizes to 512, 1000 samples; 2048 with 20 samples
    python benchmarks/norms.py --quick    # sizes to 128, 200 samples

Both sides run the same restarted Lanczos iteration (basis 24, 8 kept, two Gram-Schmidt passes, relative residual 1e-10) on
the same matrices with the same start vector, in one run; NumPy works matrix by matrix with its own threaded BLAS. NumPy is
timed on at most 50 matrices of each size and its time is per matrix. The SVD is the oracle for accuracy and is not timed.
Times are process CPU time after one warm-up call (compilation is shown apart), which other work on the machine disturbs
least; the ratio of wall clock times stands beside. Memory is capped and the cap is printed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from symtensor.numerics._norm_dense import item_bytes, starting_vectors
from symtensor.numerics._norm_lanczos import BASIS, basis_size
from symtensor.numerics.norms import NormBracket, subordinate_norm

SIZES = (8, 16, 32, 64, 128, 192, 320, 512)
KEPT, TOLERANCE = 8, 1e-10
CAP = 2**30


def numpy_norm(matrix: np.ndarray) -> tuple[float, float, int]:
    """The iteration of `symtensor.numerics._norm_lanczos` in plain NumPy: value, residual, applications of A and A^T."""
    n = matrix.shape[1]
    size = min(n, BASIS)
    kept = min(KEPT, max(1, size // 3))
    start, _ = starting_vectors(n, basis_size(n), 0)
    basis, projected, applied, begin = np.zeros((size + 1, n)), np.zeros((size, size)), 0, 0
    basis[0] = start / np.linalg.norm(start)
    while True:
        for j in range(begin, size):
            w = (matrix @ basis[j]) @ matrix
            first = basis[: j + 1] @ w
            w = w - first @ basis[: j + 1]
            second = basis[: j + 1] @ w
            w = w - second @ basis[: j + 1]
            projected[: j + 1, j] = projected[j, : j + 1] = first + second
            length = np.sqrt(w @ w)
            if j + 1 < n:
                basis[j + 1] = w / length
        applied += size - begin
        values, vectors = np.linalg.eigh(projected)
        if size == n or abs(length * vectors[-1, -1]) <= 0.5 * TOLERANCE * values[-1]:
            break
        basis[:kept] = vectors[:, -kept:].T @ basis[:size]
        basis[kept] = basis[size]
        projected[:] = np.diag(np.r_[values[-kept:], np.zeros(size - kept)])
        begin = kept
    right = vectors[:, -1] @ basis[:size]
    image = matrix @ right
    value = float(np.sqrt(image @ image))
    return value, float(np.linalg.norm(image @ matrix / value - value * right)), applied


def timed(run: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, CPU seconds, wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = run()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def row(n: int, samples: int, label: str = "") -> None:
    generator, ours, wall = np.random.default_rng([0, n]), 0.0, 0.0
    part = max(1, min(samples, CAP // (16 * n * n)))  # matrices held at a time: half of the cap
    few = min(part, 50 if n <= 1024 else 3)

    def batched(matrices: np.ndarray) -> NormBracket:
        return subordinate_norm(matrices, batch_dims=1, tolerance=TOLERANCE, memory=CAP // 2)

    lower, residual, iterations, proved = [], [], [], 0
    for begin in range(0, samples, part):
        matrices = generator.standard_normal((min(part, samples - begin), n, n))
        if len(lower) == 0 or len(matrices) < part:  # compile, and once more for a shorter last part
            begin_cpu = timed(lambda m=matrices: batched(m))[1]
        norms, cpu, clock = timed(lambda m=matrices: batched(m))
        if not lower:
            first, oracle = begin_cpu - cpu, np.linalg.norm(matrices[:20], 2, axis=(1, 2))
            numpy_norm(matrices[0])
            plain, theirs, wall_numpy = timed(lambda m=matrices[:few]: list(map(numpy_norm, m)))
        ours, wall, proved = ours + cpu, wall + clock, proved + int(norms.exact.sum())
        lower, residual = [*lower, norms.lower], [*residual, norms.residual / norms.lower]
        iterations.append(norms.iterations)
    theirs, wall_numpy = theirs / few, wall_numpy / few
    oracle = oracle[:few]
    error = np.max(np.abs(lower[0][: len(oracle)] / oracle - 1))
    other = np.max(np.abs(np.array([p[0] for p in plain[: len(oracle)]]) / oracle - 1))
    exact = f"{proved}/{samples}"
    print(
        f"{n:6d} {samples:8d} {1e3 * ours / samples:10.3f} {1e3 * theirs:10.3f} {theirs * samples / ours:7.1f} "
        f"{wall_numpy * samples / wall:7.1f} {first:8.1f} "
        f"{np.concatenate(iterations).mean():6.0f} {np.mean([p[2] for p in plain]):6.0f} {np.max(np.concatenate(residual)):9.1e} "
        f"{exact:>10} {error:9.1e} {other:9.1e} {item_bytes((n, n), 1) / 2**20:8.2f}  {label}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="sizes to 128 with 200 samples")
    quick = parser.parse_args().quick
    jax.config.update("jax_enable_x64", True)
    print(f"Spectral norms of n x n Gaussian matrices, {jax.devices()[0].platform}; memory cap {CAP / 2**20:.0f} MB")
    print("CPU milliseconds per matrix; ratio of CPU and of wall times; it: applications of the operator;")
    print("residual: the largest, relative; error: against the SVD")
    print(f"{'n':>6} {'samples':>8} {'symtensor':>10} {'NumPy':>10} {'ratio':>7} {'wall':>7} {'compile':>8} {'it':>6} {'it NP':>6} "
          f"{'residual':>9} {'exact':>10} {'error':>9} {'error NP':>9} {'MB/item':>8}")  # fmt: skip
    for n in SIZES[:5] if quick else SIZES:
        row(n, 200 if quick else 1000)
    if not quick:
        row(2048, 20, "20 samples only, NumPy timed on 3: extrapolated")


if __name__ == "__main__":
    main()
