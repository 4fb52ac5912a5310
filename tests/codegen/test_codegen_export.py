"""Exported functions run where there is JAX and nothing else, for the sizes and platforms that were asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import sympy as sp

import symtensor
from codegen.export import Exported, ExportError
from symtensor import FixedPoint, Ode, Scan
from symtensor.tensor import Dimension, SymmetryGroup, Tensor

x, y, a = sp.symbols("x y a", real=True)
P = Dimension("P")
p, q, r = P.indices("p q r")
K = Tensor("K", (P, P), symmetry=SymmetryGroup.symmetric(2))


def run(code: str, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process that knows neither this repository nor SymPy."""
    blocked = "import sys\nfor name in ('sympy', 'symtensor', 'codegen', 'scipy.stats'): sys.modules[name] = None\n"
    given = {"PATH": os.environ["PATH"], "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(path), **environment}
    return subprocess.run([sys.executable, "-c", blocked + code], capture_output=True, text=True, cwd="/", env=given)


@pytest.fixture(scope="module")
def growth() -> Exported:
    return symtensor.compile(sp.exp(x) * y + a, [x, y, a], name="growth").export()


def test_elementwise_function_in_a_folder_and_in_a_zip(growth: Exported, tmp_path: Path) -> None:
    assert growth.platforms == ("cpu", "cuda", "tpu")
    assert growth.save(tmp_path) == tmp_path / "growth"
    archive = growth.save(tmp_path / "growth.zip")
    code = (
        "import jax; jax.config.update('jax_enable_x64', True)\n"
        "from growth import call, MANIFEST\n"
        "print(call([0.0, 0.0, -1.0], [2.0, 4.0, 0.0], a=3).tolist(), [each['name'] for each in MANIFEST['arguments']])"
    )
    for path in (tmp_path, archive):
        result = run(code, path)
        assert result.returncode == 0, result.stderr
        assert result.stdout.strip() == "[5.0, 7.0, 3.0] ['x', 'y', 'a']"


def test_the_artefact_checks_itself_and_notices_damage(growth: Exported, tmp_path: Path) -> None:
    growth.save(tmp_path)
    code = "import runpy, sys; sys.argv = ['x']; runpy.run_module('growth', run_name='__main__')"
    result = run(code, tmp_path)
    assert result.returncode == 0 and "2 points" in result.stdout and "passed" in result.stdout, result.stderr
    program = tmp_path / "growth" / "function.stablehlo"
    data = bytearray(program.read_bytes())
    data[len(data) // 2] ^= 1
    program.write_bytes(bytes(data))
    assert "its digest differs" in run("import growth", tmp_path).stderr


def test_a_wrong_program_fails_its_points(tmp_path: Path) -> None:
    """The points come from the input: a program of another formula under the manifest of this one is found out."""
    good = symtensor.compile(x * y, [x, y], name="f").export("cpu")
    bad = symtensor.compile(x * y + sp.Rational(1, 1000), [x, y], name="f").export("cpu")
    mixed = Exported("f", bad.program, {**bad.manifest, "points": good.manifest["points"]})
    mixed.save(tmp_path)
    result = run("import runpy, sys; sys.argv = ['x']; runpy.run_module('f', run_name='__main__')", tmp_path)
    assert result.returncode == 1 and "FAILED" in result.stdout


def test_calls_are_checked_without_symtensor(growth: Exported, tmp_path: Path) -> None:
    growth.save(tmp_path)
    code = (
        "import jax\nfrom growth import call\n"
        "def attempt(*args, **kwargs):\n"
        "    try: call(*args, **kwargs)\n"
        "    except (TypeError, ValueError) as error: print(error)\n"
        "attempt(1.0, 2.0, 3.0)\n"
        "jax.config.update('jax_enable_x64', True)\n"
        "attempt(1.0, 2.0)\nattempt(1.0, 2.0, 3.0, b=1)\nattempt([[1.0]], 2.0, 3.0)"
    )
    lines = run(code, tmp_path).stdout.splitlines()
    wanted = ["set jax.config.update", "growth(x, y, a): got 2 by position", "got 3 by position and b by name", "wanted is (n)"]
    assert len(lines) == len(wanted) and all(part in line for part, line in zip(wanted, lines)), lines


def test_the_same_function_gives_the_same_archive(growth: Exported, tmp_path: Path) -> None:
    first = growth.save(tmp_path / "a.zip").read_bytes()
    assert growth.save(tmp_path / "b.zip").read_bytes() == first


def test_symbolic_sizes_serve_every_size(tmp_path: Path) -> None:
    f = symtensor.compile({"square": (K[p, r] * K[r, q]).sum(r), "trace": K[p, p].sum(p)}, name="powers")
    exported = f.export("cpu")
    assert exported.manifest["arguments"][0]["shape"] == ["P", "P"]
    exported.save(tmp_path)
    code = (
        "import jax; jax.config.update('jax_enable_x64', True)\nimport numpy as np\nfrom powers import call\n"
        "for n in (1, 2, 5):\n"
        "    K = np.arange(n * n, dtype=float).reshape(n, n); K = K + K.T; found = call(K)\n"
        "    assert np.allclose(found.square, K @ K) and np.isclose(found.trace, np.trace(K))\n"
        "try: call(np.ones((2, 3)))\n"
        "except ValueError: print('refused')"
    )
    result = run(code, tmp_path)
    assert result.stdout.strip() == "refused", result.stderr


def test_fixed_sizes_derivatives_and_float32(tmp_path: Path) -> None:
    f = symtensor.compile((K[p, q] * K[p, q]).sum(p, q) * a, [K, a], name="energy", dtype="float32")
    exported = f.export("cpu", sizes={"P": 2}, vjp_order=1)
    assert exported.manifest["arguments"][0] == {"name": "K", "shape": [2, 2], "dtype": "float32", "leading": False}
    exported.save(tmp_path)
    code = (
        "import jax, jax.numpy as jnp\nfrom energy import call\n"
        "print(jax.grad(call)(jnp.ones((2, 2)), 3.0).tolist())\n"
        "call(jnp.ones((3, 3)), 1.0)"
    )
    result = run(code, tmp_path)
    assert result.stdout.strip() == "[[6.0, 6.0], [6.0, 6.0]]" and "wanted is (2, 2)" in result.stderr


def test_loops_and_complex_functions() -> None:
    scan = symtensor.compile(Scan({x: a * x * (1 - x)}), [x, a])
    exported = scan.export("cpu", depth=4)
    assert len(exported.manifest["points"][0]["expected"]["x"]) == 5
    loaded = jax.export.deserialize(bytearray(exported.program))
    np.testing.assert_allclose(loaded.call(np.array([0.3]), np.array([3.7]))[0][:, 0], scan(0.3, 3.7, depth=4).x, rtol=1e-15)
    z = sp.Symbol("z")
    square = symtensor.compile(z**2, dtype="complex128").export("cpu")
    assert square.manifest["arguments"][0]["dtype"] == "complex128"
    assert complex(jax.export.deserialize(bytearray(square.program)).call(np.array([1 + 1j]))[0][0]) == 2j
    root = symtensor.compile(FixedPoint({x: sp.cos(x) * a}), [x, a]).export("cpu", max_steps=500)
    assert root.manifest["options"] == {"max_steps": 500}


def test_what_cannot_be_exported_says_what_to_give() -> None:
    f = symtensor.compile(x * y, [x, y], reference_points=False)
    with pytest.raises(ExportError, match="platform 'gpu'; known are cpu"):
        f.export("gpu")
    with pytest.raises(ExportError, match="there is no size 'P'; sizes are n"):
        f.export("cpu", sizes={"P": 2})
    with pytest.raises(ExportError, match="size n is 0"):
        f.export("cpu", sizes={"n": 0})
    with pytest.raises(ExportError, match="no static option 'depth'"):
        f.export("cpu", depth=3)
    with pytest.raises(ExportError, match=r"give depth="):
        symtensor.compile(Scan({x: a * x}), [x, a], reference_points=False).export("cpu")
    with pytest.raises(ExportError, match=r"give sizes=\{'T': \.\.\}"):
        symtensor.compile(Ode({x: a * x}), [x, a], reference_points=False).export("cpu")
    assert symtensor.compile(Ode({x: a * x}), [x, a], reference_points=False).export("cpu", sizes={"T": 3, "n": 1}).program
