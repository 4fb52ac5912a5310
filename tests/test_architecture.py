"""The import contracts hold, and symtensor imports without JAX, Jinja2 and matplotlib."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"jax", "jaxlib", "jinja2", "matplotlib", "diffrax"}:
            raise ImportError(name + " is blocked")

sys.meta_path.insert(0, Blocked())
import symtensor, symtensor.tensor, symtensor.expansion, symtensor.fields, symtensor.activation, symtensor.parsing
import symtensor.diagrams, symtensor.bounds, symtensor.verify, symtensor.datasets
import symtensor.numerics.expectation, symtensor.derivation.model, symtensor.kernels, symtensor.cli
import codegen, derivations.resnet_kernel
from symtensor import RandomTensor, bound, definite_bound, enumerate_diagrams, expect, scale, verify_bound, verify_samples
assert abs(expect("tanh", 1.0).value) < 1e-12
assert str(bound(RandomTensor("x", facts=[symtensor.bounds.known("n")])).scale) == "n"
assert len(list(enumerate_diagrams("phi3", legs=2, loops=1))) == 2
assert symtensor.cli.main(["run", "resnet-kernel", "--help"]) == 0
"""


def test_import_contracts() -> None:
    import importlib.util

    assert importlib.util.find_spec("importlinter"), "install the extra: pip install '.[test]'"
    script = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(config_filename='pyproject.toml'))"
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_symtensor_imports_without_the_numeric_side() -> None:
    result = subprocess.run([sys.executable, "-c", BLOCKED], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_no_import_time_side_effects() -> None:
    """Importing everything leaves JAX's precision as it was: x64 is the caller's choice."""
    code = (
        "import symtensor.cli, symtensor.numerics.simulation, codegen.module, derivations.resnet_kernel.run, jax;"
        "assert not jax.config.jax_enable_x64"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
