"""The command line, driven by small derivations made here: dispatch, help, refusals, exit statuses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

import symtensor
from symtensor import cli
from symtensor.derivation.model import Derivation
from symtensor.derivation.output import prepare_output
from symtensor.derivation.registry import Registry
from symtensor.derivation.settings import Option, RunContext, RunResult, Settings

OPTIONS = (
    Option("--activation", str, "tanh", "activation, a name or an expression in x", group="network"),
    Option("--depth", int, 4, "number of layers", group="network", minimum=1),
    Option("--dt", float, 0.5, "step, 100% of a layer", group="network", above=0),
    Option("--derivatives", str, None, "where derivatives are taken", choices=("inside", "hermite"), group="numerics"),
    Option("--out", str, None, "output folder", metavar="DIR", group="output"),
    Option("--resume", bool, False, "continue the run in --out", group="output"),
)


class NamedError(ValueError):
    """An error class of a derivation's author."""


def toy(run: Callable[[Settings, RunContext], int | RunResult]) -> Derivation:
    return Derivation(
        "toy", "A toy derivation", "", (), (), (), (), OPTIONS, run, "One line about it.",
        (("the smallest run", "symtensor run toy --depth 1"),), "report.html   the report",
    )  # fmt: skip


@pytest.fixture
def install(monkeypatch):
    """Makes `toy(run)` the only derivation that the command line sees."""

    def put(run: Callable[[Settings, RunContext], int | RunResult]) -> None:
        registry = Registry({"toy": toy(run)}, {})
        monkeypatch.setattr(cli, "derivations", lambda: registry)
        monkeypatch.setattr(cli, "find", lambda name: registry[name])

    monkeypatch.setattr(cli, "prepare_jax", lambda: None)
    return put


@pytest.fixture
def seen(install):
    """Settings and contexts that the toy was run with."""
    calls: list[tuple[dict, RunContext]] = []
    install(lambda settings, context: calls.append((dict(settings), context)) or 0)
    return calls


def fails(capsys, *argv: str) -> str:
    """Run and require exit status 2 with one message on stderr and nothing on stdout; return the message."""
    assert cli.main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("error:") == 1 and captured.err.count("\n") == 1 and "Traceback" not in captured.err
    return captured.err.strip()


def test_defaults_and_given_values_reach_the_derivation(seen):
    assert cli.main(["run", "toy"]) == 0
    assert cli.main(["run", "toy", "--depth", "7", "--dt=1e-3", "--derivatives", "inside", "--resume"]) == 0
    assert seen[0][0] == {
        "activation": "tanh", "depth": 4, "dt": 0.5, "derivatives": None, "out": None, "resume": False,
    }  # fmt: skip
    assert (seen[1][0]["depth"], seen[1][0]["dt"], seen[1][0]["resume"]) == (7, 1e-3, True)
    assert seen[1][1].command == "symtensor run toy --activation tanh --depth 7 --dt 0.001 --derivatives inside"


def test_values_may_begin_with_a_dash(seen):
    assert cli.main(["run", "toy", "--activation", "-x**2", "--out", "-o"]) == 0
    assert (seen[0][0]["activation"], seen[0][0]["out"]) == ("-x**2", "-o")


def test_a_forgotten_value_is_not_taken_from_the_next_option(seen, capsys):
    assert "--activation: expected one argument" in fails(capsys, "run", "toy", "--activation", "--depth", "3")
    assert "--dt must be greater than 0, got -1e-3" in fails(capsys, "run", "toy", "--dt", "-1e-3")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("run", "toy", "--depth", "0"), "--depth must be at least 1, got 0"),
        (("run", "toy", "--depth", "many"), "--depth must be a whole number, got 'many'"),
        (("run", "toy", "--derivatives", "x"), "--derivatives must be one of inside, hermite; got 'x'"),
        (("run", "toy", "--dep", "3"), "unrecognized arguments: --dep 3"),
        (("run", "toy", "stray"), "unrecognized arguments: stray"),
        (("run", "tpy"), "unknown derivation 'tpy'; did you mean 'toy'? Available: toy."),
        (("run",), "which derivation? There are: toy"),
        (("run", "--depth", "3"), "the name of the derivation comes first"),
        (("ru", "toy"), "unknown command 'ru'"),
        (("derivations", "x"), "takes no arguments, got 'x'"),
    ],
)
def test_bad_command_lines_end_with_status_2_and_one_message(seen, capsys, argv, message):
    assert message in fails(capsys, *argv)
    assert seen == []


def test_errors_addressed_to_the_user_are_one_message(install, capsys):
    def bad_input(settings: Settings, context: RunContext) -> int:
        raise NamedError("the kernel has eigenvalue -1")

    install(bad_input)
    assert fails(capsys, "run", "toy") == "symtensor run toy: error: the kernel has eigenvalue -1"


def test_errors_raised_by_our_packages_are_one_message_even_without_a_class_of_their_own(install, capsys):
    def bad_input(settings: Settings, context: RunContext) -> int:
        namespace = {"__name__": "symtensor.something"}
        exec("def check():\n    raise ValueError('samples must be at least 2, got 1')\n", namespace)
        namespace["check"]()  # type: ignore[operator]
        return 0

    install(bad_input)
    assert "samples must be at least 2, got 1" in fails(capsys, "run", "toy")


@pytest.mark.parametrize("defect", [lambda: int("x"), lambda: [][0], lambda: 1 / 0, lambda: {}["k"]])
def test_defects_keep_their_traceback(install, defect):
    install(lambda settings, context: defect())
    with pytest.raises((ValueError, IndexError, ZeroDivisionError, KeyError)):
        cli.main(["run", "toy"])


def test_an_error_out_of_compiled_code_called_from_ours_is_a_defect():
    namespace = {"__name__": "symtensor.something"}
    exec("def convert():\n    return int('x')\n", namespace)
    with pytest.raises(ValueError) as caught:
        namespace["convert"]()  # type: ignore[operator]
    assert not cli.addressed_to_user(caught.value)


def test_the_result_of_a_run_is_its_exit_status(install):
    for result, status in ((0, 0), (3, 3), (None, 0), (RunResult(4), 4)):
        install(lambda settings, context, result=result: result)
        assert cli.main(["run", "toy"]) == status


def test_an_interrupt_ends_with_130_and_says_how_to_go_on(install, capsys, tmp_path):
    def interrupted(settings: Settings, context: RunContext) -> int:
        prepare_output(settings["out"], {"depth": settings["depth"], "samples": 8})
        raise KeyboardInterrupt

    install(interrupted)
    assert cli.main(["run", "toy", "--depth", "5", "--out", str(tmp_path / "o")]) == 130
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and f"symtensor run toy --resume --out {tmp_path / 'o'}" in error


def test_an_interrupt_before_anything_is_stored(install, capsys):
    def interrupted(settings: Settings, context: RunContext) -> int:
        raise KeyboardInterrupt

    install(interrupted)
    assert cli.main(["run", "toy"]) == 130
    assert capsys.readouterr().err == "symtensor run toy: interrupted before anything was stored\n"


def test_resume_takes_what_is_not_given_from_the_folder(seen, tmp_path):
    prepare_output(tmp_path, {"activation": "sin", "depth": 9, "dt": 0.25, "samples": 8})
    assert cli.main(["run", "toy", "--resume", "--out", str(tmp_path), "--dt", "0.125"]) == 0
    assert cli.main(["run", "toy", "--out", str(tmp_path)]) == 0
    assert (seen[0][0]["activation"], seen[0][0]["depth"], seen[0][0]["dt"]) == ("sin", 9, 0.125)
    assert (seen[1][0]["activation"], seen[1][0]["depth"]) == ("tanh", 4)


def test_a_damaged_folder_is_one_message(seen, capsys, tmp_path):
    (tmp_path / "parameters.json").write_text("{")
    assert "cannot be read as JSON" in fails(capsys, "run", "toy", "--resume", "--out", str(tmp_path))


def test_help_of_a_derivation_teaches(seen, capsys):
    assert cli.main(["run", "toy", "--help"]) == 0
    text = capsys.readouterr().out
    for part in (
        "usage: symtensor run toy [options]", "A toy derivation", "One line about it.", "network:", "numerics:",
        "output:",
        "--depth DEPTH", "number of layers (default: 4)", "step, 100% of a layer (default: 0.5)", "inside|hermite",
        "--out DIR", "the smallest run", "symtensor run toy --depth 1", "report.html   the report",
    ):  # fmt: skip
        assert part in text, part
    assert "None" not in text and "False" not in text
    assert seen == []


def test_general_help_teaches(seen, capsys):
    for argv in ([], ["--help"], ["-h"], ["help"]):
        assert cli.main(argv) == 0
        text = capsys.readouterr().out
        for part in (
            "symtensor run NAME [options]",
            "symtensor derivations",
            "report.html",
            "exit status",
            "summary.json",
        ):
            assert part in text
        assert max(len(line) for line in text.splitlines()) <= 120


def test_lists_name_the_derivations(seen, capsys):
    assert cli.main(["derivations"]) == 0
    assert capsys.readouterr().out == "  toy  One line about it.\n"
    assert cli.main(["run", "--help"]) == 0
    assert "toy  One line about it." in capsys.readouterr().out


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"symtensor {symtensor.__version__}\n"


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run this interpreter on `arguments` with the source tree importable."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(symtensor.__file__)))
    paths = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": paths, **environment}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env, timeout=120)


def test_module_form_and_narrow_encodings():
    result = python("-m", "symtensor", "--help", PYTHONIOENCODING="ascii")
    assert result.returncode == 0 and "symtensor run NAME" in result.stdout and result.stderr == ""
    result = python("-m", "symtensor", "runn", PYTHONIOENCODING="ascii")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("symtensor: error: unknown command 'runn'")


def test_a_closed_pipe_is_no_error():
    root = os.path.dirname(os.path.dirname(os.path.abspath(symtensor.__file__)))
    command = f"{sys.executable} -m symtensor --help | true"
    result = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": root}, timeout=120
    )
    assert "Traceback" not in result.stderr


def test_the_command_line_and_only_it_turns_on_64_bit_floats():
    code = "import symtensor, symtensor.cli; print('jax' in __import__('sys').modules, end=' ')"
    check = "import jax; print(jax.config.jax_enable_x64)"
    assert python("-c", f"{code}; {check}").stdout.split() == ["False", "False"]
    assert python("-c", f"{code}; symtensor.cli.prepare_jax(); {check}").stdout.split() == ["False", "True"]
    late = "import jax; import symtensor.cli; symtensor.cli.prepare_jax(); print(jax.numpy.ones(1).dtype)"
    assert python("-c", late).stdout.strip() == "float64"


def test_the_number_of_cpu_devices_is_the_number_of_cores_unless_the_user_said_otherwise():
    code = "import os, symtensor.cli as c; c.prepare_jax(); print(os.environ.get('JAX_NUM_CPU_DEVICES'), c._cores())"
    given, cores = python("-c", code).stdout.split()
    assert given == cores
    assert python("-c", code, JAX_NUM_CPU_DEVICES="3").stdout.split()[0] == "3"
    forced = python("-c", code, XLA_FLAGS="--xla_force_host_platform_device_count=2")
    assert forced.stdout.split()[0] == "None"
