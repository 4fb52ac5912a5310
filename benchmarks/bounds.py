"""Time to derive and to re-check the bound of an expression with about 1,000 nodes, deep and wide, with shared parts.

python benchmarks/bounds.py [nodes]
"""

from __future__ import annotations

import sys
import time

from symtensor.bounds import Expr, L, RandomTensor, add, contract, gaussian, known, outer, scaled
from symtensor.bounds.derive import Deriver


def expression(nodes: int) -> Expr:
    """A chain of sums and multiples of one shared scalar, times a wide sum of scaled outer products."""
    u, v = RandomTensor("u", {"i": "n"}, [gaussian()]), RandomTensor("v", {"j": "n"}, [gaussian()])
    w = RandomTensor("w", {"i": "n"}, [known("sqrt(n)", mode=L(2))])
    shared = RandomTensor("x", facts=[known("sqrt(n)", mode=L(2))]).expr
    chain = shared
    for i in range(nodes // 3):
        chain = scaled(2, chain) if i % 3 else add(chain, shared, chain)
    wide = add(*(scaled("1/n", outer(u["i"], v["j"])) for _ in range(nodes // 6)))
    return add(contract(wide, w["i"], over="i"), outer(chain, v["j"]))


def main() -> None:
    """Print the best of three runs."""
    expr = expression(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        deriver = Deriver(expr)
        found = deriver.bound()
        times.append(time.perf_counter() - start)
    start = time.perf_counter()
    found.check()
    checked = time.perf_counter() - start
    print(f"{len(deriver.outcomes)} nodes: bound {min(times):.3f} s, re-check {checked:.3f} s, result {found}")


if __name__ == "__main__":
    main()
