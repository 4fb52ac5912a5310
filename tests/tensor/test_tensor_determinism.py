"""Text, LaTeX, canonical form and einsum calls do not depend on the hash seed; the examples in the docs run."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import symtensor.tensor

SCRIPT = """
import sympy
from symtensor.tensor import Dimension, SymmetryGroup, Tensor, TensorExpr, delta

P, N = Dimension("P"), Dimension("N")
a, b, c, d, p, q = P.indices("a b c d p q")
i, j = N.indices("i j")
K = Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2))
V = Tensor("V", (P,) * 4, symmetry=SymmetryGroup.pair_symmetric())
M = Tensor("M", (P, N))
alpha, dt, x = sympy.symbols("alpha dt x")
e = (alpha + dt) ** 2 / (1 + x) * (V[a, p, q, b] * K[q, c] * K[p, d]).sum(p, q) + dt * delta(a, b) * K[c, d]
e = e - x * (M[a, i] * M[b, i] * M[c, j] * M[d, j]).sum(i, j) + K[a, c] * K[b, d] * K[0, 1]
group = SymmetryGroup.pair_symmetric()
for value in (e, e.canonical(), e.contract_deltas(), e.symmetrise(group, (a, b, c, d)).canonical()):
    print(value, value.latex(), value.terms, value.heads, sep="\\n")
print(e.einsum((a, b, c, d)), group, group.elements)
try:
    e + M[a, i]
except ValueError as error:
    print(error)
"""


def test_output_does_not_depend_on_the_hash_seed():
    root = Path(symtensor.tensor.__file__).parents[2]
    outputs = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert "only one of them" in outputs.pop()


MODULES = [module.name for module in pkgutil.iter_modules(symtensor.tensor.__path__, "symtensor.tensor.")]


@pytest.mark.parametrize("name", ["symtensor.tensor", *MODULES])
def test_examples_in_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
