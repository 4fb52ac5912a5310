"""The text that the front door emits, one module of every kind: clean, self-contained, deterministic, for all platforms."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from codegen_front_examples import examples

from codegen import Compiled, lowers

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def modules() -> dict[str, Compiled]:
    return examples()


def test_emitted_files_are_clean(modules: dict[str, Compiled], tmp_path: Path) -> None:
    for each in modules.values():
        each.write(tmp_path)
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--line-length", "120", "--select", "E,F,W,I,UP,B,RUF",
               "--ignore", "RUF001,RUF002,RUF003,B905", str(tmp_path)]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_imports_only_jax_and_diffrax(modules: dict[str, Compiled]) -> None:
    standard = {"__future__", "collections", "functools", "math", "typing"}
    for name, each in modules.items():
        lines = each.source.splitlines()
        roots = {line.split()[1].partition(".")[0] for line in lines if line.startswith(("import ", "from "))}
        assert roots <= standard | {"jax"} | ({"diffrax"} if name == "flow" else set()), name


def test_text_is_the_same_in_another_process_with_other_hashes(modules: dict[str, Compiled]) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": str(ROOT), "JAX_ENABLE_X64": "1"}
    command = [sys.executable, str(Path(__file__).parent / "codegen_front_examples.py")]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=True).stdout.strip()
    assert found == sha256("".join(each.source for each in modules.values()).encode()).hexdigest()


@pytest.mark.parametrize("name", ["arrays", "mean", "root", "many"])
def test_lowers_for_cpu_cuda_and_tpu_without_library_calls(modules: dict[str, Compiled], name: str) -> None:
    assert set().union(*lowers(modules[name].module, dtypes=("float64",)).values()) == set()


@pytest.mark.parametrize("name", ["scalar", "arrays", "indexed", "tensors", "mean", "layers", "root", "tensor_root", "many"])
def test_every_function_is_among_its_own_reference_values(modules: dict[str, Compiled], name: str) -> None:
    """The function itself, not only the kernels that it is made of."""
    errors = modules[name].check().errors
    assert any(label == name or label.startswith(f"{name}.") for label in errors)
    assert max(errors.values()) < 1e-13


def test_certificates(modules: dict[str, Compiled]) -> None:
    for name in ("scalar", "arrays"):
        certificate = modules[name].certify(8, dtypes=("float64",))
        assert certificate.passed and certificate.worst().error < 1e-12


def test_cost_reports(modules: dict[str, Compiled]) -> None:
    assert modules["scalar"].cost["scalar"].cost.transcendental == 1
    assert "scalar" in str(modules["scalar"].cost)
