"""`symtensor fields`: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from symtensor.cli import main


def run(capsys: pytest.CaptureFixture, *arguments: str) -> tuple[int, str, str]:
    status = main(["fields", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_formula_and_numbers(capsys: pytest.CaptureFixture) -> None:
    status, out, _ = run(capsys, "cubic-langevin", "--cumulant", "x,x", "--loops", "1", "--at", "t=1,T=0.5,g=0.1", "--verify")
    assert status == 0
    assert "-3*T**2*g*t*exp(-t) - 3*T**2*g*exp(-t) + T*exp(-t)" in out
    assert "0.128757804410005" in out  # e^{-1} (1/2 - 3/20), by hand
    assert "verified: agrees with the moment hierarchy" in out


def test_json(capsys: pytest.CaptureFixture) -> None:
    status, out, _ = run(capsys, "phi3", "--cumulant", "x", "--loops", "2", "--json", "--at", "g=1/2")
    record = json.loads(out)
    assert status == 0
    assert record["sum"] == "-5*g**3/8 - g/2"
    assert record["value"] == pytest.approx(-0.25 - 5 / 64)
    assert sorted((term["loops"], term["symmetry_factor"]) for term in record["terms"]) == [(1, 2), (2, 4), (2, 4), (2, 8)]


@pytest.mark.parametrize(
    ("model", "options", "value"),
    [
        ("x^2/2 + g*x^4/24", ("--vertex", "x,x", "--loops", "2"), "5*g**2/12 - g/2"),
        ("dx = -x dt + sqrt(2*T)*(1 + g*x) dW", ("--cumulant", "x,x", "--times", "equal", "--loops", "1"), "T**2*g**2 + T"),
        ("u^2/2 + v^2/2 + g*u^2*v/2", ("--fields", "u,v", "--cumulant", "v", "--loops", "1"), "-g/2"),
    ],
)
def test_theories_as_text(capsys: pytest.CaptureFixture, model: str, options: tuple[str, ...], value: str) -> None:
    status, out, _ = run(capsys, model, *options)
    assert (status, out.splitlines()[-1].strip()) == (0, f"sum: {value}")


def test_theory_file(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    file = tmp_path / "metastable.toml"
    file.write_text('equations = "dx = (-x + g*x^2) dt + sqrt(2*T) dW"\nlegs = ["x"]\nloops = 2\n')
    status, out, _ = run(capsys, str(file))
    assert (status, out.splitlines()[-1].strip()) == (0, "sum: 5*T**2*g**3 + T*g")


def test_folder(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    arguments = ("cubic-langevin", "--cumulant", "x,x", "--loops", "1", "--out", str(folder))
    assert run(capsys, *arguments)[0] == 0
    page = (folder / "index.html").read_text()
    assert page.count("<svg") == 3
    assert "passed" in page
    assert "<script" not in page
    terms = json.loads((folder / "terms.json").read_text())["terms"]
    assert [term["symmetry_factor"] for term in terms] == [1, 2, 2]
    module = folder / "cubic_langevin_x_x.py"
    done = subprocess.run([sys.executable, str(module)], capture_output=True, text=True, check=False)
    assert (done.returncode, "passed" in done.stdout) == (0, True)
    assert run(capsys, *arguments)[0] == 0  # the same again is no conflict
    status, _, err = run(capsys, "cubic-langevin", "--cumulant", "x,x", "--loops", "2", "--out", str(folder))
    assert (status, "other parameters" in err) == (2, True)


def test_lists_and_help(capsys: pytest.CaptureFixture) -> None:
    assert "cubic-langevin" in run(capsys, "--list")[1]
    status, out, _ = run(capsys, "--help")
    assert (status, "examples" in out, max(map(len, out.splitlines())) < 140) == (0, True, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "which theory"),
        (("phi5",), "unknown theory 'phi5'"),
        (("missing.toml",), "cannot be read"),
        (("phi4", "--cumulant", "y,y"), "'y' is no field"),
        (("phi4", "--cumulant", "x,x", "--vertex", "x,x"), "two questions"),
        (("phi4", "--loops", "-1"), "loops=-1"),
        (("phi4", "--loops", "two"), "invalid int"),
        (("phi4", "--cumulant", "x,x", "--loops", "9"), "more than"),
        (("cubic-langevin", "--cumulant", "x,x", "--at", "g=1"), "no value for T, t"),
        (("cubic-langevin", "--cumulant", "x,x", "--at", "t=1,T=1,g=1,z=1"), "names z"),
        (("cubic-langevin", "--cumulant", "x,x", "--at", "t"), "NAME=VALUE"),
        (("cubic-langevin", "--cumulant", "x,x", "--at", "t=__import__('os'),T=1,g=1"), "not"),
        (("__import__('os').system('true')",), "not"),
        (("dx = x dt + dW",), "not stable"),
        (("dx = -x^2 dt + dW",), "x"),
        (("x*y", "--fields", "x,y", "--cumulant", "x,y"), "y"),
        (("phi4", "--out", ""), "folder"),
    ],
)
def test_bad_input_is_one_message(capsys: pytest.CaptureFixture, arguments: tuple[str, ...], words: str) -> None:
    status, _, err = run(capsys, *arguments)
    message = [line for line in err.splitlines() if not line.startswith("symtensor fields: not given")]
    assert status == 2
    assert message[0].startswith("symtensor")
    assert words in " ".join(message)
