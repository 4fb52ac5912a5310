"""Speed of generated code against hand-written JAX and other emitters, in one run.

    python benchmarks/codegen [--only a b d32] [--rounds 9] [--scaling 100 1000 10000 30000] [--quick]

Every round runs all contenders of a workload one after the other in a drawn order, each after an untimed call of its own; the
ratios to the hand-written function are taken within a round, and their median is shown, so that a change of the machine's
speed during the run does not matter. `first` is the time until the first result (generation, tracing, compilation), `ns`
nanoseconds per point; all times are CPU times of all threads, which other programs on the machine disturb least. The floor is
the larger of the arithmetic and the memory traffic of the least work known at rates that are measured first, plus the functions
(exp, ..) that nobody avoids. Names in parentheses do not run in JAX; they make one loop of all outputs, which XLA on CPU does
not, and are shown for comparison. sympy2jax and symengine take part if they are installed.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# this file is called like the package it measures: the root of the repository comes before its folder
HERE = Path(__file__).resolve().parent
sys.path[:] = [str(HERE.parent), *(place for place in sys.path if Path(place).resolve() != HERE), str(HERE)]

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import sympy as sp  # noqa: E402

jax.config.update("jax_enable_x64", True)


def workloads(quick: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Name and maker of every workload."""
    from workloads import elementwise, expectations, tensors

    batch = 10_000 if quick else 100_000
    yield "a", lambda: elementwise.taylor_coefficients(batch)
    yield "b", lambda: elementwise.hessian(batch)
    yield "c", lambda: elementwise.polynomial(batch)
    for size in (8, 16, 32):
        yield f"d{size}", lambda size=size: tensors.pair_terms(size)
    yield "e erf", lambda: expectations.erf_expectation(batch)
    yield "e tanh", lambda: expectations.tanh_expectation(batch // 10)
    for size, count in ((4, 20_000), (8, 2_000), (16, 100)):
        yield f"f{size}", lambda size=size, count=count: tensors.kernel_rates(size, count // (4 if quick else 1))
    yield "g", lambda: tensors.two_loops()


def machine() -> tuple[float, float]:
    """Floating-point operations and bytes per nanosecond, from a matrix product and a copy."""
    matrix, array = jnp.ones((1024, 1024)), jnp.ones(1 << 24)
    product, copy = jax.jit(jnp.matmul), jax.jit(lambda v: v + 1)
    return 2 * 1024**3 / _best(product, (matrix, matrix)), 16 * (1 << 24) / _best(copy, (array,))


def _best(function: Callable[..., Any], arguments: Any, rounds: int = 5) -> float:
    jax.block_until_ready(function(*arguments))
    return min(_timed(function, arguments) for _ in range(rounds))


def _timed(function: Callable[..., Any], arguments: Any) -> float:
    """CPU nanoseconds of one call."""
    start = time.process_time_ns()
    jax.block_until_ready(function(*arguments))
    return time.process_time_ns() - start


def _warm(function: Callable[..., Any], arguments: Any) -> float:
    """The same after an untimed call, which pays for what the program before left in caches and thread pools."""
    jax.block_until_ready(function(*arguments))
    return _timed(function, arguments)


def run(workload: Any, rounds: int, rates: tuple[float, float]) -> None:
    """Measure one workload and print its table."""
    floor = max(workload.flops / rates[0], workload.bytes / rates[1]) + workload.functions
    print(f"\n({workload.name}) {workload.title}, {workload.points} points; floor {floor:.3g} ns")
    made: dict[str, Callable[..., Any]] = {}
    first: dict[str, float] = {}
    results: dict[str, np.ndarray] = {}
    for name, make in workload.contenders.items():
        start = time.process_time()
        try:
            plain = make()
            made[name] = plain if name.startswith("(") else jax.jit(plain)
            values = jax.block_until_ready(made[name](*workload.arguments))
        except Exception as error:  # another emitter may fail; that is a result
            made.pop(name, None)
            print(f"    {name:<18} fails: {type(error).__name__} {str(error).splitlines()[0][:70] if str(error) else ''}")
            continue
        first[name] = time.process_time() - start
        results[name] = np.concatenate([np.ravel(value) for value in jax.tree.leaves(values)])
    times: dict[str, list[float]] = {name: [] for name in made}
    order = random.Random(0)
    for _ in range(rounds):
        for name in order.sample(list(made), len(made)):
            times[name].append(_warm(made[name], workload.arguments) / workload.points)
    scale = np.abs(results["hand"]).max()
    for name in made:
        ratio = statistics.median(own / hand for own, hand in zip(times[name], times["hand"]))
        error = float(np.abs(results[name] - results["hand"]).max() / scale)
        flag = "" if error <= workload.tolerance else "  DIFFERS"
        nanoseconds = statistics.median(times[name])
        print(
            f"    {name:<18} first {first[name]:7.2f} s   {nanoseconds:11.4g} ns   {ratio:6.2f} x hand   "
            f"{nanoseconds / floor:6.2f} x floor   difference {error:.0e}{flag}"
        )


def scaling(sizes: list[int]) -> None:
    """Generation and compilation of random programs of growing size; lambdify as long as it takes less than a minute."""
    from symtensor import compile as symtensor_compile

    print("\ngrowth with the number of operations: seconds of generation, then to the first result; nanoseconds per point")
    patience = 60.0
    for size in sizes:
        symbols, outputs = _program(size)
        arguments = [jnp.linspace(0.1, 0.9, 1000) + 0.01 * place for place in range(len(symbols))]
        start = time.process_time()
        named = {f"y{place}": expr for place, expr in enumerate(outputs)}
        function = symtensor_compile(named, symbols, reference_points=False).function
        generated = time.process_time() - start
        jax.block_until_ready(function(*arguments))
        total = time.process_time() - start
        line = f"    {size:>7}  {generated:8.2f} s  {total:8.2f} s  {_best(function, arguments) / 1000:9.1f} ns"
        if patience > 5:
            start = time.process_time()
            other = jax.jit(sp.lambdify(symbols, outputs, "jax", cse=True))
            jax.block_until_ready(other(*arguments))
            taken = time.process_time() - start
            line += f"   lambdify {taken:8.2f} s  {_best(other, arguments) / 1000:9.1f} ns"
            patience -= 10 * taken
        print(line)


def _program(size: int) -> tuple[list[sp.Symbol], list[sp.Expr]]:
    """Sums of products of nested parts, 50 operations each on average; every part is used in two others."""
    numbers = random.Random(size)
    symbols = list(sp.symbols("x0:6", real=True))
    parts: list[sp.Expr] = list(symbols)
    outputs = []
    for _ in range(max(size // 50, 1)):
        left, right = numbers.choice(parts[-12:]), numbers.choice(parts[-12:])
        terms = (sp.Rational(numbers.randrange(1, 99), 100) * numbers.choice(symbols) ** numbers.randrange(1, 4) for _ in range(12))
        part = sp.tanh(sum(terms, sp.S.Zero)) * numbers.choice(symbols) + numbers.choice(symbols) / 3
        outputs.append(sp.Add(sp.Mul(part, left / 2, evaluate=False), right / 3, evaluate=False))
        parts.append(part)
    return symbols, outputs


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=None, help="workloads by name")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--scaling", nargs="*", type=int, default=[100, 1000, 10_000, 30_000])
    parser.add_argument("--quick", action="store_true", help="small batches")
    options = parser.parse_args()
    rates = machine()
    print(f"matrix product {rates[0]:.1f} GFLOP/s, copy {rates[1]:.1f} GB/s, {jax.devices()[0].platform}, jax {jax.__version__}")
    for name, make in workloads(options.quick):
        if options.only is None or name in options.only:
            run(make(), options.rounds, rates)
    if options.scaling:
        scaling(options.scaling)


if __name__ == "__main__":
    main()
