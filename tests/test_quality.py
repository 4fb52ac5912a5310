"""Style and types, as the project's configuration defines them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_ruff() -> None:
    result = subprocess.run([sys.executable, "-m", "ruff", "check", "."], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_files_and_functions_stay_readable() -> None:
    """At most 400 lines a file and 60 a function, generated files aside."""
    import ast

    long = []
    for folder in ("symtensor", "codegen", "derivations"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text()
            if text.count("\n") > 400:
                long.append(f"{path.name}: {text.count(chr(10))} lines")
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno > 60:
                    doc = ast.get_docstring(node, clean=False) or ""
                    if (node.end_lineno or 0) - node.lineno - doc.count("\n") > 60:
                        long.append(f"{path.name}: {node.name}")
    assert long == []


def test_pyright() -> None:
    version = subprocess.run([sys.executable, "-m", "pyright", "--version"], capture_output=True, text=True)
    if version.returncode:
        pytest.skip("pyright cannot fetch its Node package here")
    result = subprocess.run([sys.executable, "-m", "pyright"], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
