"""`symtensor.run`: the command's job as a function."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import symtensor
from symtensor.derivation.settings import OptionError


def test_returns_the_run_and_writes_the_folder(tmp_path: Path) -> None:
    result = symtensor.run("resnet-kernel", quiet=True, activation="relu", kernel=1.0, depth=3, samples=0, out=str(tmp_path / "o"))
    np.testing.assert_allclose(result.values("K0")[:, 0, 0], 1.1 ** np.arange(4), rtol=1e-13)
    assert (tmp_path / "o" / "report.html").exists()
    assert "<math" in result._repr_html_()


def test_bad_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no option 'dept'"):
        symtensor.run("resnet-kernel", dept=3)
    with pytest.raises(OptionError, match="--depth must be at least 1"):
        symtensor.run("resnet-kernel", depth=0, out=str(tmp_path))
    with pytest.raises(ValueError, match="resnet-kernel"):
        symtensor.run("resnet-kernl")


def test_float32_is_refused(tmp_path: Path) -> None:
    code = f"import symtensor; symtensor.run('resnet-kernel', kernel=1.0, depth=1, samples=0, out={str(tmp_path / 'o')!r})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert result.returncode != 0
    assert "float64 is off in JAX" in result.stderr
