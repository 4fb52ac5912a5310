"""Whole modules: goldens, oracle, lowering without devices, determinism, self-check; corrupted code must be caught."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import subprocess
import sys
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from codegen_kernel_set import GOLDEN, golden_specification, scalar_kernel, specification

from codegen import ModuleSpec, check_module, generate, lowers
from codegen.backends.jax_backend import custom_calls
from codegen.load import _load
from symtensor._codegen import codegen
from symtensor.activation import activation
from symtensor.kernels import Argument, ScalarKernel
from symtensor.numerics.moments import moment_table
from symtensor.numerics.rules import parse_rule

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "golden"
CONVERGED = [name for name in GOLDEN if name != "tanh_hermite"]


@pytest.fixture(scope="module")
def modules():  # type: ignore[no-untyped-def]
    return {name: generate(golden_specification(name)) for name in GOLDEN}


# -- goldens -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_bytes(modules, name: str) -> None:  # type: ignore[no-untyped-def]
    """`python tests/codegen/regenerate_golden.py` writes them anew."""
    assert (FOLDER / f"{name}.py").read_text(encoding="utf-8") == modules[name].source


@pytest.mark.parametrize("name", CONVERGED)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_golden_files_check_themselves(name: str, dtype: str) -> None:
    spec = importlib.util.spec_from_file_location(f"golden_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    check = module.self_check(dtype)
    assert check.passed, check.errors
    assert len(check.errors) >= 9


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param("tanh_inside", "float64", marks=pytest.mark.slow),  # integrates an ODE with SciPy, too
        *((name, "float64") for name in CONVERGED if name != "tanh_inside"),
        ("gelu_inside", "float32"),
    ],
)
def test_against_the_oracle_at_other_points(modules, name: str, dtype: str) -> None:  # type: ignore[no-untyped-def]
    check = check_module(modules[name], dtype)
    assert check.passed, check.errors


def test_a_rule_that_has_not_converged_says_so(modules) -> None:  # type: ignore[no-untyped-def]
    """32 Gauss-Hermite nodes by parts: the code is right (it gives what the rule gives), the numbers are not."""
    module = modules["tanh_hermite"]
    check = module.check()
    assert not check.passed and 1e-6 < max(check.errors.values()) < 1e-2
    K = np.array([[2.0, 0.5], [0.5, 1.0]])
    table = moment_table(activation("tanh"), 2.0, 0.5, 1.0, parse_rule("gh:32"), "hermite")
    found = module.load().moments(K)
    for (i, j), wanted in table.items():
        if f"m{i}{j}" in found._fields:
            assert float(found._asdict()[f"m{i}{j}"][0, 1]) == pytest.approx(float(wanted), rel=1e-10)


def test_emitted_files_are_clean(modules) -> None:  # type: ignore[no-untyped-def]
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--line-length", "120", "--select", "E,F,W,I,UP,B,RUF",
               "--ignore", "RUF001,RUF002,RUF003,B905", str(FOLDER)]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_imports_only_jax_and_diffrax(modules) -> None:  # type: ignore[no-untyped-def]
    for name, module in modules.items():
        roots = {line.split()[1].partition(".")[0] for line in module.source.splitlines() if line.startswith(("import ", "from "))}
        standard = {"__future__", "collections", "functools", "math", "typing"}
        assert roots <= standard | {"jax"} | ({"diffrax"} if name == "tanh_inside" else set()), name


def test_file_runs_by_itself() -> None:
    """Prints its table, importing neither SymPy nor symtensor; the caller's float32 default is no obstacle."""
    code = (
        "import runpy, sys; sys.argv = ['x']\n"
        "try: runpy.run_path(r'%s', run_name='__main__')\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        "assert not {'sympy', 'symtensor', 'codegen'} & set(sys.modules)"
    ) % (FOLDER / "relu_closed.py")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/", env=_environment("0"))
    assert result.returncode == 0, result.stderr
    assert "moments.m22" in result.stdout and "passed" in result.stdout


def _environment(seed: str) -> dict[str, str]:
    return {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}


def test_text_does_not_depend_on_the_hash_seed() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests/codegen')\n"
        "from codegen_kernel_set import *\n"
        "from codegen import generate\n"
        "import hashlib\n"
        "text = ''.join(generate(specification(n, r, kernels=response(n), reference_points=False)).source\n"
        "               for n, r in (('gelu', 'trapezoid:41'), ('Abs(x)', 'split:6'), ('leaky-relu:0.1', 'closed')))\n"
        "print(hashlib.sha256(text.encode()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=_environment(seed), check=True
        ).stdout
        for seed in ("0", "4711")
    }
    assert len(found) == 1


# -- lowering ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GOLDEN)
def test_lowers_for_cpu_cuda_and_tpu(modules, name: str) -> None:  # type: ignore[no-untyped-def]
    found = lowers(modules[name])
    assert len(found) == len(modules[name].kernels) * 3 * 2
    assert set().union(*found.values()) == set()  # plain StableHLO: no library calls, no host


def test_a_call_to_the_host_is_noticed() -> None:
    def f(v):  # type: ignore[no-untyped-def]
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(v.shape, v.dtype), v)

    text = jax.jit(f).lower(jnp.ones(3)).as_text()
    assert any("callback" in target for target in custom_calls(text))


# -- mutations: a corrupted module must fail its checks ----------------------------------------------------------------


MUTATIONS = [
    ("tanh_small", "l21 * z[:, None]", "l11 * z[:, None]"),
    ("tanh_small", "upper[:, jnp.array(MIRROR)]", "upper"),
    ("tanh_inside", "half.transpose(2, 3, 0, 1)", "half"),
    ("tanh_small", "0.125 * V4_aaaa * m40", "0.25 * V4_aaaa * m40"),
    ("erf_closed", "k22 + 1", "k11 + 1"),
    ("relu_closed", "jnp.where(k12 > 0, 0.5", "jnp.where(k12 > 0, 0.25"),
    ("abs_split", "jnp.clip(points,", "jnp.clip(0.9 * points,"),
    ("abs_split", "_ratio(c[1], 2 * k12)", "_ratio(c[1], 3 * k12)"),
    ("gelu_inside", "0.5 * t0 +", "0.5 * t0 -"),
]


@pytest.fixture(scope="module")
def small():  # type: ignore[no-untyped-def]
    """Moments and single steps of tanh, which compile quickly."""
    whole = golden_specification("tanh_inside")
    return generate(dataclasses.replace(whole, kernels=whole.kernels[:8]))


@pytest.mark.parametrize(("name", "old", "new"), MUTATIONS, ids=range(len(MUTATIONS)))
def test_corrupted_code_is_caught(modules, small, name: str, old: str, new: str) -> None:  # type: ignore[no-untyped-def]
    source = small.source if name == "tanh_small" else modules[name].source
    assert old in source
    assert not _load("corrupted", source.replace(old, new, 1)).self_check().passed


def test_check_module_catches_a_wrong_embedded_value_or_code(modules) -> None:  # type: ignore[no-untyped-def]
    """The oracle evaluates the input kernels, so it needs no reference value from the module."""
    good = modules["erf_closed"]
    bad = dataclasses.replace(good, source=good.source.replace("c_b + c_w * m00", "c_b - c_w * m00"))
    assert check_module(good).passed
    check = check_module(bad)
    assert not check.passed and check.worst[0] == "Q"


# -- the value itself --------------------------------------------------------------------------------------------------


def test_write_load_and_text(tmp_path: Path) -> None:
    module = generate(ModuleSpec("small", "Small.", (scalar_kernel("f", "x", out=sp.Symbol("x", real=True) ** 2),)))
    assert module.write(tmp_path) == tmp_path / "small.py"
    assert module.write(tmp_path / "other.py").read_bytes() == module.source.encode()
    assert module.load() is module.load()
    assert float(module.load().f(3.0)) == 9.0
    assert module.kernels == module.spec.kernels
    assert generate(module.spec) == module


def test_no_reference_points() -> None:
    module = generate(specification("erf", "closed", reference_points=False))
    assert "REFERENCE" not in module.source
    with pytest.raises(ValueError, match="without reference points"):
        module.check()


def test_float64_needs_x64() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests/codegen')\n"
        "from codegen_kernel_set import *\n"
        "from codegen import generate, check_module\n"
        "module = generate(specification('erf', 'closed', kernels=response('erf')))\n"
        "for run in (lambda: module.check('float64'), lambda: check_module(module)):\n"
        "    try: run()\n"
        "    except ValueError as error: assert 'jax_enable_x64' in str(error)\n"
        "    else: raise SystemExit('not refused')\n"
        "assert module.check().passed and module.check().tolerance > 1e-5"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=_environment("0"), check=True)


def test_cost_counts_transcendental_calls(modules) -> None:  # type: ignore[no-untyped-def]
    assert modules["tanh_inside"].cost["moments"].transcendental == 2  # tanh and sech^2 serve five derivatives
    assert modules["gelu_inside"].cost["moments"].transcendental == 2
    assert modules["tanh_inside"].cost["V4_transport"].contractions == 0


def test_symtensor_finds_its_own_codegen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert codegen().generate is generate
    monkeypatch.setitem(sys.modules, "codegen", types.ModuleType("codegen"))
    with pytest.raises(ImportError, match="another one of the same name"):
        codegen()


def test_package_imports_neither_jax_nor_jinja() -> None:
    code = "import codegen, sys; assert not {'jax', 'jinja2', 'diffrax'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=_environment("0"), check=True)


def test_reference_points_respect_the_assumptions_of_symbols() -> None:
    """sqrt(a) at a = -1/2 is nan; a module whose symbols are positive must pass its own check."""
    a, m = sp.Symbol("a", positive=True), sp.Symbol("m", integer=True, negative=True)
    kernel = ScalarKernel("f", (Argument("a"), Argument("m")), (("out", sp.sqrt(a) * m + sp.log(-m)),))
    module = generate(ModuleSpec("m", "M.", (kernel,))).load()
    assert module.REFERENCE and module.self_check().passed
    assert all(float(given["a"]) > 0 > int(given["m"]) for _, given, _ in module.REFERENCE)
