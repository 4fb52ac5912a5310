"""Certificates of everything that benchmarks/codegen measures: speed counts only for numbers that are right."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from codegen.certify import certify

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "codegen"
#: what the arrays of the benchmarks are drawn from; the defaults reach arguments of 30, where the Taylor coefficients vanish
UNIT = (-1.0, 1.0)
WORKLOADS = [
    pytest.param("elementwise", "taylor_coefficients", dict.fromkeys("xyz", UNIT), id="a", marks=pytest.mark.slow),
    pytest.param("elementwise", "hessian", {f"x{k}": UNIT for k in range(6)}, id="b"),
    pytest.param("elementwise", "polynomial", dict.fromkeys("xyzw", UNIT), id="c", marks=pytest.mark.slow),
    pytest.param("tensors", "pair_terms", None, id="d"),
    pytest.param("expectations", "erf_expectation", None, id="e erf"),
    pytest.param("expectations", "tanh_expectation", None, id="e tanh", marks=pytest.mark.slow),
    pytest.param("tensors", "kernel_rates", None, id="f", marks=pytest.mark.slow),
    pytest.param("tensors", "two_loops", None, id="g"),
]
#: smallest batches, which only the arrays of the benchmark depend on
SIZES = {"pair_terms": (3,), "kernel_rates": (2, 1), "two_loops": (3,)}


@pytest.fixture(scope="module")
def workloads():  # type: ignore[no-untyped-def]
    sys.path.insert(0, str(BENCHMARKS))
    yield lambda name: importlib.import_module(f"workloads.{name}")
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize(("module", "maker", "domain"), WORKLOADS)
def test_workload_is_certified(workloads: Any, module: str, maker: str, domain: Any) -> None:
    workload = getattr(workloads(module), maker)(*SIZES.get(maker, (10,)))
    certificate = certify(workload.certified(), 12, dtypes=("float64",), domain=domain)
    assert certificate.passed, str(certificate)
    assert all(entry.tolerance == 1e-12 for entry in certificate.measured)
