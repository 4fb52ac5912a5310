"""The cache on disk: addresses, atomic writing, concurrent processes, damaged entries, the command, JAX's own cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
import sympy as sp
from codegen_kernel_set import golden_specification

import codegen.cache as cache_module
import symtensor
from codegen import Cache, ModuleSpec, compilation_cache, generate
from codegen.fingerprint import Unaddressable, fingerprint
from symtensor import cli
from symtensor.kernels import Argument, ScalarKernel

ROOT = Path(__file__).parents[2]
x, y = sp.symbols("x y", real=True)


def spec(expression: sp.Expr = x**2, **options) -> ModuleSpec:  # type: ignore[no-untyped-def]
    kernel = ScalarKernel("f", (Argument("x"), Argument("y")), (("out", expression),))
    return ModuleSpec("m", options.pop("title", "t"), (kernel,), reference_points=False, **options)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[ModuleSpec]:
    """The specifications that were really generated."""
    calls: list[ModuleSpec] = []
    monkeypatch.setattr(cache_module, "generate", lambda given: calls.append(given) or generate(given))
    return calls


# -- addresses ---------------------------------------------------------------------------------------------------------


def test_the_address_follows_the_mathematics() -> None:
    assert fingerprint(spec(x + y)) == fingerprint(spec(y + x))
    different = [
        spec(), spec(x**3), spec(title="u"), spec(statement="s"), spec(sp.Float("0.1") * x), spec(x / 10), spec(staging=False),
        spec(sp.Float("0.1", 30) * x), spec(sp.Symbol("x") ** 2),
    ]  # fmt: skip
    assert len({fingerprint(each) for each in different}) == len(different)


def test_dummies_are_numbered_by_appearance() -> None:
    def expression() -> sp.Expr:
        first, second = sp.Dummy("u"), sp.Dummy("u")
        return sp.Lambda(first, first + 1)(x) * sp.Integral(second**2, (second, 0, 1))

    assert fingerprint((expression(),)) == fingerprint((expression(),))


def test_objects_without_an_address_are_refused_and_still_generated(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unaddressable, match="of type object has no address"):
        fingerprint((object(),))

    def refuse(_: object) -> str:
        raise Unaddressable

    monkeypatch.setattr(cache_module, "fingerprint", refuse)
    assert cache.generate(spec()) == generate(spec()) and cache.info().entries == 0


def test_the_address_is_the_same_in_every_process() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests/codegen')\n"
        "from codegen_kernel_set import golden_specification\n"
        "from codegen.fingerprint import fingerprint\n"
        "print(fingerprint(golden_specification('erf_closed')))"
    )
    assert _python(code, PYTHONHASHSEED="4711") == fingerprint(golden_specification("erf_closed"))


def _python(code: str, **environment: str) -> str:
    given = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=given, check=True)
    return done.stdout.strip()


# -- entries -----------------------------------------------------------------------------------------------------------


def test_the_second_time_nothing_is_generated(cache: Cache, counted: list[ModuleSpec]) -> None:
    first, second = cache.generate(spec()), cache.generate(spec())
    assert len(counted) == 1
    assert first == second == generate(spec())
    assert first.cost == second.cost and first.signatures == second.signatures
    assert float(second.load().f(3.0, 0.0)) == 9.0


def test_a_whole_hierarchy_comes_back(cache: Cache) -> None:
    wanted = golden_specification("erf_closed")
    assert cache.generate(wanted) == cache.generate(wanted) == generate(wanted)


DAMAGE = {
    "cut short": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "one bit": lambda data: data[:-20] + bytes([data[-20] ^ 1]) + data[-19:],
    "other code": lambda data: data.replace(b"x**2", b"x**3"),
    "no text": lambda data: b"\xff\xfe" + data,
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_entries_are_noticed_and_made_anew(cache: Cache, counted: list[ModuleSpec], kind: str) -> None:
    cache.generate(spec())
    (path,) = cache.entries()
    intact = path.read_bytes()
    path.write_bytes(DAMAGE[kind](intact))
    assert path.read_bytes() != intact
    assert cache.generate(spec()) == generate(spec())
    assert len(counted) == 2 and path.read_bytes() == intact


def test_an_entry_under_another_address_is_damaged(cache: Cache) -> None:
    cache.generate(spec())
    (path,) = cache.entries()
    other = cache.path(fingerprint(spec(x**3)))
    other.parent.mkdir(parents=True, exist_ok=True)
    other.write_bytes(path.read_bytes())
    info = cache.verify()
    assert info.corrupt == (other,) and info.entries == 1
    assert "x**3" in cache.generate(spec(x**3)).source


def test_verify_keeps_what_is_intact(cache: Cache) -> None:
    cache.generate(spec())
    assert cache.verify().corrupt == () and cache.verify().entries == 1
    (path,) = cache.entries()
    path.write_bytes(b"")
    assert cache.verify(remove=False).corrupt == (path,) and path.exists()
    assert cache.verify().entries == 0 and not path.exists()


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    cache = Cache(tmp_path / "file")
    assert cache.generate(spec()) == generate(spec())
    assert cache.info().entries == 0


def test_an_interrupted_writer_leaves_no_entry(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cache_module.os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        cache.generate(spec())
    assert [path for path in cache.root.rglob("*") if path.is_file()] == []


def test_errors_are_not_kept(cache: Cache) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="gamma"):
            cache.generate(spec(sp.gamma(x)))
    assert cache.info().entries == 0


@pytest.mark.parametrize("processes", [2, pytest.param(6, marks=pytest.mark.slow)])
def test_concurrent_processes(tmp_path: Path, processes: int) -> None:
    """Writers and readers of the same five modules; every one sees whole entries, and one file each remains."""
    code = (
        "import sympy as sp, sys\n"
        "from pathlib import Path\n"
        "from codegen import Cache, ModuleSpec, generate\n"
        "from symtensor.kernels import Argument, ScalarKernel\n"
        "x = sp.Symbol('x', real=True)\n"
        "cache = Cache(Path(sys.argv[1]))\n"
        "for _ in range(3):\n"
        "    for k in range(2, 7):\n"
        "        spec = ModuleSpec('m', 't', (ScalarKernel('f', (Argument('x'),), (('y', x**k),)),), reference_points=False)\n"
        "        assert cache.generate(spec).source == generate(spec).source\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], env=environment, cwd=ROOT) for _ in range(processes)]
    assert [process.wait(timeout=120) for process in started] == [0] * processes
    cache = Cache(tmp_path)
    assert cache.info().entries == 5 and cache.verify().corrupt == ()
    assert not list(tmp_path.rglob("*.part"))


# -- compile, command, JAX ---------------------------------------------------------------------------------------------


def test_compile_keeps_modules_only_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMTENSOR_CACHE_DIR", str(tmp_path))
    symtensor.compile(x**2, reference_points=False)
    assert Cache().root == tmp_path and Cache().info().entries == 0
    first = symtensor.compile(x**2, reference_points=False, cache=True)
    assert Cache().info().entries == 1
    assert symtensor.compile(x**2, reference_points=False, cache=True).source == first.source
    assert float(symtensor.compile(x**2, reference_points=False, cache=Cache(tmp_path / "own"))(3)) == 9.0


def test_the_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYMTENSOR_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Cache().root == tmp_path / "symtensor"


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SYMTENSOR_CACHE_DIR", str(tmp_path))
    Cache().generate(spec())
    Cache().generate(spec(x**3))
    assert cli.main(["cache", "path"]) == 0 and capsys.readouterr().out.strip() == str(tmp_path)
    assert cli.main(["cache", "info"]) == 0 and "modules            2 (" in capsys.readouterr().out
    assert cli.main(["cache", "verify"]) == 0 and "all modules are intact" in capsys.readouterr().out
    next(iter(Cache().entries())).write_bytes(b"damaged")
    assert cli.main(["cache", "verify"]) == 1 and "1 damaged" in capsys.readouterr().out
    (tmp_path / "keep.txt").write_text("mine")
    assert cli.main(["cache", "clear"]) == 0 and "removed 1 files" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["keep.txt"]
    assert cli.main(["cache", "--help"]) == 0 and "SYMTENSOR_CACHE_DIR" in capsys.readouterr().out
    assert cli.main(["cache"]) == 2 and cli.main(["cache", "burn"]) == 2


def test_compiled_programs_are_kept_within_the_context_only(tmp_path: Path) -> None:
    before = jax.config.jax_compilation_cache_dir
    f = symtensor.compile(sp.sin(x) * sp.exp(x) + 17, reference_points=False)
    with compilation_cache(tmp_path) as folder:
        f(jnp.linspace(0.0, 1.0, 7))
        assert any(folder.iterdir())
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert jax.config.jax_compilation_cache_dir == before
    symtensor.compile(sp.cos(x) + 3, reference_points=False)(jnp.linspace(0.0, 1.0, 5))
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
