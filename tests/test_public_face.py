"""The package's face: lazy names, version, citation, no heavy import."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import symtensor

ROOT = Path(symtensor.__file__).resolve().parent.parent


def run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_importing_the_package_and_its_command_line_needs_no_heavy_library():
    blocked = (
        "import sys\nfor name in ('jax', 'jinja2', 'matplotlib', 'diffrax', 'sklearn'): sys.modules[name] = None\n"
    )
    code = "import symtensor, symtensor.cli, symtensor.derivation, symtensor.derivation.hierarchy_report\n"
    assert run(blocked + code + "print(symtensor.__version__)") == symtensor.__version__


def test_importing_the_package_imports_nothing_else():
    heavy = "sympy", "numpy", "scipy", "jax"
    assert run(f"import sys, symtensor; print([name for name in {heavy} if name in sys.modules])") == "[]"


@pytest.mark.parametrize("name", sorted(symtensor._PUBLIC))
def test_every_public_name_resolves(name):
    assert getattr(symtensor, name) is not None
    assert name in dir(symtensor) and name in symtensor.__all__


def test_no_public_name_is_hidden_by_a_module():
    """A submodule of the same name would replace the function as soon as it is imported."""
    package = Path(symtensor.__file__).parent
    modules = {path.stem for path in package.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert not modules & set(symtensor._PUBLIC)
    code = "import symtensor.bounds.scale, symtensor.bounds.scale_text, symtensor.bounds.definite, symtensor\n"
    assert run(code + "print(symtensor.scale('2 sqrt(n)'), symtensor.definite_bound.__name__)") == "sqrt(n) definite_bound"


def test_names_come_from_the_packages_that_document_them():
    from symtensor import bounds, diagrams, verify

    assert symtensor.bound is bounds.bound and symtensor.scale is bounds.scale and symtensor.RandomTensor is bounds.RandomTensor
    assert symtensor.enumerate_diagrams is diagrams.enumerate_diagrams and symtensor.Diagram is diagrams.Diagram
    assert symtensor.verify_bound is verify.verify_bound and symtensor.verify_samples is verify.verify_samples


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(AttributeError, match=r"no attribute 'tensr'; public names: Activation, "):
        symtensor.tensr  # noqa: B018


def test_the_version_is_that_of_the_distribution():
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("not a source tree")
    declared = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert declared and declared[1] == symtensor.__version__


def test_citation_names_the_software_and_the_papers():
    assert symtensor.citation() == (
        "@software{symtensor,\n  author = {{The symtensor developers}},\n"
        "  title = {{symtensor: symbolic-numeric derivation of finite-width corrections}},\n"
        f"  version = {{{symtensor.__version__}}}\n}}"
    )


def test_citation_of_a_derivation_adds_its_sources():
    from symtensor.derivation.model import Citation, Derivation

    source = Citation("k1", "A and B", "T", "J", 1999)
    derivation = Derivation("toy", "Toy", "", (), (), (), (source,), (), lambda settings, context: 0)
    assert symtensor.citation(derivation).endswith(source.bibtex())
    assert symtensor.citation(derivation).startswith("@software{symtensor,")


def test_versions_are_real():
    import numpy

    from symtensor.derivation.provenance import library_versions

    versions = library_versions()
    assert versions["numpy"] == numpy.__version__ and versions["symtensor"] == symtensor.__version__
    assert versions["platform"].startswith(sys.platform)
