"""The order of the diagrams is that of the request alone: not of threads, processes, or the seed of hashes."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from symtensor.diagrams import Diagram, enumerate_diagrams

ASKED = [
    ("phi4", 2, 5, {"kind": "1pi"}), ("kpz", "x:2", 2, {}), ("phi3", 2, 2, {"kind": "all"}),
    ("layered-network", "s:2", 1, {}), ("on", "phi:2", None, {"dressed": 2}), ("phi3+phi4", 2, 2, {"labelled": False}),
]  # fmt: skip

SCRIPT = """
from symtensor.diagrams import enumerate_diagrams
for model, legs, loops, options in {asked!r}:
    for diagram in enumerate_diagrams(model, legs, loops, **options):
        print(diagram.canonical, diagram.symmetry_factor)
"""


@pytest.fixture(scope="module")
def alone() -> list[list[Diagram]]:
    return [list(enumerate_diagrams(model, legs, loops, **options)) for model, legs, loops, options in ASKED]


def test_again(alone: list[list[Diagram]]) -> None:
    assert alone == [list(enumerate_diagrams(model, legs, loops, **options)) for model, legs, loops, options in ASKED]


@pytest.mark.parametrize("workers", [1, 3])
def test_threads(alone: list[list[Diagram]], workers: int) -> None:
    with ThreadPoolExecutor(workers) as executor:
        found = [list(enumerate_diagrams(m, legs, loops, executor=executor, **options)) for m, legs, loops, options in ASKED]
        counts = [enumerate_diagrams(m, legs, loops, executor=executor, **options).count() for m, legs, loops, options in ASKED]
    assert found == alone
    assert counts == [len(one) for one in alone]


def test_processes(alone: list[list[Diagram]]) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        found = [list(enumerate_diagrams(m, legs, loops, executor=executor, **options)) for m, legs, loops, options in ASKED]
    assert found == alone


def test_hash_seeds(alone: list[list[Diagram]]) -> None:
    expected = [f"{diagram.canonical} {diagram.symmetry_factor}" for one in alone for diagram in one]
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", SCRIPT.format(asked=ASKED)]
        result = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines() == expected
