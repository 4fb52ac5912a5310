"""One compiled function of every kind that the front door knows, for tests of the emitted text."""

from __future__ import annotations

import sympy as sp

import symtensor
from codegen import Compiled
from symtensor import FixedPoint, GaussianExpectation, Ode, Scan
from symtensor.tensor import Dimension, SymmetryGroup, Tensor, delta

x, y, a, t = sp.symbols("x y a t", real=True)
k = sp.Symbol("k", positive=True)
k11, k12, k22 = sp.symbols("k11 k12 k22", real=True)
z = sp.Symbol("z")
P = Dimension("P")
p, q, r = P.indices("p q r")
K = Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2))
n = sp.Symbol("n", integer=True, positive=True)
i, j = sp.symbols("i j", integer=True)
A, v = sp.IndexedBase("A", shape=(n, n)), sp.IndexedBase("v", shape=(n,))


def examples() -> dict[str, Compiled]:
    """Name -> compiled function."""
    mean = GaussianExpectation(sp.tanh(x) ** 2, x, k)
    pair = GaussianExpectation(sp.tanh(x) / (1 + sp.exp(-a * y)), (x, y), [[k11, k12], [k12, k22]])
    inputs = {
        "scalar": (sp.exp(x) * y, {}),
        "arrays": ({"m": sp.Matrix([[x * y, sp.sin(a)], [1, y]]), "s": x + a}, {"args": {"u": [x, y], "a": a}}),
        "indexed": (sp.Sum(A[i, j] * sp.tanh(v[j]), (j, 0, n - 1)) + a * v[i], {}),
        "tensors": ({"square": (K[p, r] * K[r, q]).sum(r) + delta(p, q), "scale": a**2}, {}),
        "mean": (mean, {}),
        "pair": (y + a * pair, {}),
        "layers": (Scan({k: a * mean}, records={"square": k**2}), {}),
        "flow": (Ode({x: -a * x + t}, time=t), {}),
        "root": (FixedPoint({x: sp.cos(a * x)}), {}),
        "tensor_root": (FixedPoint({K[p, q]: a * K[p, q] + delta(p, q)}), {}),
        "many": (Scan({K[p, q]: a * K[p, q]}), {"batch": "K a"}),
        "complex_pair": ([sp.exp(z), z**2], {"dtype": "complex128"}),
    }
    return {name: symtensor.compile(given, name=name, **options) for name, (given, options) in inputs.items()}


if __name__ == "__main__":
    from hashlib import sha256

    print(sha256("".join(each.source for each in examples().values()).encode()).hexdigest())
