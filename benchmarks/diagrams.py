"""Diagrams a CPU second: symtensor against FeynGraph (pip install feyngraph; MPL), one thread, user CPU, same machine, same run.

    python benchmarks/diagrams.py [--limit SECONDS] [--rows TEXT]

Every figure comes from a process of its own, which imports, compiles and warms up before the clock (CPU time of the process)
starts; the least of several repetitions counts. "list" builds each diagram with its symmetry factor and writes its lines out as
text (`Diagram.canonical`); "count" only counts and adds up weights. FeynGraph generates topologies (phi^3, phi^4; its faster
route) or diagrams with fields, and is asked for symmetry factors only; it has neither causal nor dressed diagrams, so its rows
for KPZ and O(N) generate the diagrams that would have to be filtered afterwards, and the filter is not timed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

#: name, arguments of `enumerate_diagrams`
ROWS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "phi^4 2-point 1PI, L = 6": (("phi4", 2, 6), {"kind": "1pi"}),
    "phi^4 2-point 1PI, L = 7": (("phi4", 2, 7), {"kind": "1pi"}),
    "phi^4 2-point 1PI, L = 8": (("phi4", 2, 8), {"kind": "1pi"}),
    "phi^4 2-point 1PI, L = 9": (("phi4", 2, 9), {"kind": "1pi"}),
    "phi^3 2-point connected, L = 4": (("phi3", 2, 4), {}),
    "phi^3 2-point connected, L = 5": (("phi3", 2, 5), {}),
    "phi^3 2-point connected, L = 6": (("phi3", 2, 6), {}),
    "phi^4 vacuum, L = 8": (("phi4", 0, 8), {}),
    "phi^4 vacuum, L = 9": (("phi4", 0, 9), {}),
    "phi^4 vacuum, L = 10": (("phi4", 0, 10), {}),
    "phi^4 vacuum, L = 11": (("phi4", 0, 11), {}),
    "KPZ <x x> causal, L = 2": (("kpz", "x:2", 2), {}),
    "KPZ <x x> causal, L = 3": (("kpz", "x:2", 3), {}),
    "KPZ <x x> causal, L = 4": (("kpz", "x:2", 4), {}),
    "O(N) <phi phi>, dressed, 1/N^2": (("on", "phi:2"), {"dressed": 2}),
    "O(N) auxiliary propagator, dressed, 1/N^2": (("on", "sigma:2"), {"dressed": 2}),
    "O(N) auxiliary propagator, dressed, 1/N^3": (("on", "sigma:2"), {"dressed": 3}),
}


def our_list(name: str) -> tuple[int, float, float]:
    """Number of diagrams, CPU seconds, seconds to compile (or load) the kernel."""
    return _ours(name, lambda found: sum(1 for diagram in found if diagram.symmetry_factor and diagram.canonical))


def our_count(name: str) -> tuple[int, float, float]:
    return _ours(name, lambda found: found.tally().count)


def _ours(name: str, use: Callable[[Any], int]) -> tuple[int, float, float]:
    from symtensor.diagrams import enumerate_diagrams

    begin = time.perf_counter()
    enumerate_diagrams("on", "phi:2", dressed=1).tally()
    compiled = time.perf_counter() - begin
    arguments, options = ROWS[name]
    return *timed(lambda: use(enumerate_diagrams(*arguments, **options))), compiled


def timed(work: Callable[[], int]) -> tuple[int, float]:
    """The number that `work` returns and the least of its CPU times; short work is repeated for half a second."""
    times: list[float] = []
    count = 0
    while sum(times) < 0.5:
        start = time.process_time()
        count = work()
        times.append(time.process_time() - start)
    return count, min(times)


def feyngraph(name: str) -> tuple[int, float, float]:
    import feyngraph as module

    module.set_threads(1)
    (model, *asked), options = ROWS[name]
    orders = _loop_orders(asked[0], options["dressed"]) if model == "on" else []
    if model in ("phi3", "phi4"):
        return *timed(lambda: _topologies(int(model[3:]), asked[0], asked[1], options)), 0.0
    if model == "kpz":
        return *timed(lambda: _kpz(module, asked[1])), 0.0
    return *timed(lambda: _bare_on(module, asked[0], orders)), 0.0


def _topologies(valence: int, legs: int, loops: int, options: dict[str, Any]) -> int:
    from feyngraph.topology import TopologyGenerator, TopologyModel, TopologySelector

    selector = TopologySelector()
    if options.get("kind") == "1pi":
        selector.select_opi_components(1)
    found = TopologyGenerator(legs, loops, TopologyModel([valence]), selector).generate()
    return sum(1 for i in range(len(found)) if found[i].symmetry_factor())


def _model(module: Any, particles: dict[str, str], vertices: list[list[str]]) -> Any:
    model = module.Model.empty()
    for number, (name, anti) in enumerate(particles.items(), 1):
        model.add_particle(name, anti, 1, 1, number, name, anti, "straight", False)
    for number, legs in enumerate(vertices):
        model.add_vertex(f"V{number}", legs, list(range(len(legs))), {"g": 1})
    return model


def _kpz(module: Any, loops: int) -> int:
    """Correlator x, response line r -> R; the vertex xt x x with each x leg at either kind of line."""
    model = _model(module, {"x": "x", "r": "R"}, [["R", "x", "x"], ["R", "x", "r"], ["R", "r", "r"]])
    count = 0
    for legs in (["x", "x"], ["x", "r"], ["r", "x"], ["r", "r"]):
        found = module.DiagramGenerator([], legs, loops, model).generate()
        count += sum(1 for i in range(len(found)) if found[i].symmetry_factor())
    return count


def _bare_on(module: Any, legs: str, orders: list[int]) -> int:
    """All bare diagrams of the loop orders."""
    model = _model(module, {"phi": "phi", "sigma": "sigma"}, [["phi", "phi", "sigma"]])
    name, number = legs.split(":")
    count = 0
    for loops in orders:
        found = module.DiagramGenerator([], [name] * int(number), loops, model).generate()
        count += sum(1 for i in range(len(found)) if found[i].symmetry_factor())
    return count


def _loop_orders(legs: str, order: int) -> list[int]:
    """The loop orders in which the dressed diagrams of this order occur."""
    from symtensor.diagrams import enumerate_diagrams

    return sorted({diagram.loops for diagram in enumerate_diagrams("on", legs, dressed=order)})


METHODS = {"list": our_list, "count": our_count, "feyngraph": feyngraph}


def measure(method: str, name: str, limit: float) -> dict[str, Any] | None:
    """The child's answer, or None if it took longer than `limit` or could not run."""
    command = [sys.executable, __file__, "--child", method, name]
    threads = dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=limit, env={**os.environ, **threads})
    except subprocess.TimeoutExpired:
        return None
    if result.returncode:
        print(result.stderr, file=sys.stderr)
        return None
    return json.loads(result.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a process is stopped (default: 60)")
    parser.add_argument("--rows", default="", help="only rows whose name contains this text")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        method, name = options.child
        count, seconds, compiled = METHODS[method](name)
        print(json.dumps({"count": count, "seconds": seconds, "compiled": compiled}))
        return
    table(options.rows, options.limit)


def table(rows: str, limit: float) -> None:
    print("| request | diagrams | list, s | diagrams/s | count, s | growth: time / diagrams | FeynGraph, s | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    before: dict[str, tuple[int, float]] = {}
    for name in (name for name in ROWS if rows in name):
        listed, counted, peer = (measure(method, name, limit) for method in METHODS)
        series = name.rpartition(",")[0]
        if listed is None or counted is None:
            print(f"| {name} | stopped after {limit:.0f} s | | | | | | |")
            continue
        count, seconds = listed["count"], listed["seconds"]
        growth = f"{seconds / before[series][1]:.1f} / {count / before[series][0]:.1f}" if series in before else ""
        before[series] = (count, seconds)
        theirs = f"> {limit:.0f}" if peer is None else f"{peer['seconds']:.2g}"
        if peer is not None and peer["count"] != count:
            theirs += f" ({peer['count']:,} unfiltered)"
        ratio = f"{'> ' if peer is None else ''}{(limit if peer is None else peer['seconds']) / seconds:.0f}"
        ours = f"{seconds:.2g} | {count / seconds:,.0f} | {counted['seconds']:.2g}"
        print(f"| {name} | {count:,} | {ours} | {growth} | {theirs} | {ratio} |", flush=True)
    if listed := measure("count", next(iter(ROWS)), limit):
        print(f"\nloading the compiled kernel: {listed['compiled']:.1f} s; compiling it once: {compile_time():.0f} s")


def compile_time() -> float:
    """Seconds for the first request with an empty cache."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder
        answer = measure("count", next(iter(ROWS)), 300)
    return answer["compiled"] if answer else float("nan")


if __name__ == "__main__":
    main()
