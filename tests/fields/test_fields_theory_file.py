"""Theory files: what they say is read exactly, written back equal, and every mistake names its key."""

from __future__ import annotations

from pathlib import Path

import pytest
import sympy as sp

from symtensor.fields.errors import SourceError
from symtensor.fields.reading import read_action, read_equations
from symtensor.fields.theory_file import load_theory_file, parse_theory_file

STATIC = """
title = "two fields"
action = "dot(x, x)/2 + sum(i, sum(j, J[i,j]*x[i]*x[j]))/2 + g*x[1]^4/24"
fields = { x = 2 }
parameters = { J = [2, 2], g = [] }
legs = "x_1, x_2"
loops = 2
[point]
x = [0, "0"]
[values]
g = 0.1
J = [[0, "1/3"], [1e-3, 2]]
"""
STOCHASTIC = '''
name = "coloured"
equations = """
dx = (-x + g*x^3 + eta) dt   # the force is coloured
eta = OU(1/tau, s)
"""
legs = ["x", "xt"]
loops = 1
[values]
tau = 2
'''


def test_a_static_theory() -> None:
    file = parse_theory_file(STATIC, "file")
    assert (file.name, file.title, file.legs, file.loops, file.stochastic) == ("file", "two fields", ("x_1", "x_2"), 2, False)
    assert file.values == {
        "g": sp.Rational(1, 10),
        "J_1_1": 0,
        "J_1_2": sp.Rational(1, 3),
        "J_2_1": sp.Rational(1, 1000),
        "J_2_2": 2,
    }
    assert file.point == {"x_1": 0, "x_2": "0"}
    assert file.read() == read_action(file.action, {"x": 2}, {"J": (2, 2), "g": None})


def test_a_stochastic_theory() -> None:
    file = parse_theory_file(STOCHASTIC, "file")
    assert (file.name, file.interpretation, file.parameters, file.stochastic) == ("coloured", "ito", None, True)
    assert file.read() == read_equations("dx = (-x + g*x^3 + eta) dt; eta = OU(1/tau, s)")
    converted = parse_theory_file('equations = "dx = -x dt + s*x dW"\ninterpretation = "stratonovich"', "file").read()
    assert converted == read_equations("dx = -x dt + s*x dW", interpretation="stratonovich")


@pytest.mark.parametrize("text", [STATIC, STOCHASTIC, 'equations = "du[i] = -u[i] dt + dW[i]"\nvariables = { u = 3 }'])
def test_written_files_are_read_back(text: str, tmp_path: Path) -> None:
    file = parse_theory_file(text, "model")
    assert parse_theory_file(file.text, "other") == file
    path = tmp_path / "model.toml"
    path.write_text(file.text, encoding="utf-8")
    assert load_theory_file(path) == file


HEAD = 'action = "x^2/2 + g*x^4"\nfields = ["x"]\n'


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("x = = 1", "not a TOML file"),
        ("title = 'a'", "neither"),
        (HEAD + 'equations = "dx = -x dt + dW"', "both"),
        ('action = "x^2"', "'fields' is missing"),
        (HEAD + 'variables = ["x"]', "'variables' does not go with action"),
        ('equations = "dx = -x dt + dW"\nfields = ["x"]', "use the key variables"),
        (HEAD + "loop = 2", "nearest: 'loops'"),
        (HEAD + "loops = 2", "without legs"),
        (HEAD + 'legs = "x,x"\nloops = -1', "0 to 20"),
        (HEAD + 'legs = "x,x"\nloops = true', "0 to 20"),
        (HEAD + 'legs = ["x", "y"]', "'y' is no field"),
        (HEAD + 'legs = ["x", "xt"]', "'xt' is no field"),
        (HEAD + "legs = 3", "legs must be a list"),
        (HEAD + "values = { h = 1 }", "'h' is no parameter"),
        (HEAD + "values = { g = nan }", "finite"),
        (HEAD + "values = { g = true }", "finite"),
        (HEAD + 'values = { g = "x" }', "values.g"),
        (HEAD + "values = { g = \"__import__('os')\" }", "__import__"),
        (HEAD + "values = 3", "values must be a table"),
        (HEAD + "point = { y = 1 }", "'y' is no field"),
        (HEAD + "point = { x = 1979-05-27 }", "finite real number"),
        (HEAD + 'interpretation = "ito"', "does not go with action"),
        ('equations = "dx = -x dt + dW"\ninterpretation = "ita"', "stratonovich"),
        ('action = "x^2/2"\nfields = "x"', "list of names"),
        ('action = "x^2/2"\nfields = { x = "a" }', "fields.x"),
        ('action = "x^2/2"\nfields = [1]', "fields[0]"),
        ('action = "x^2/2 + h*x"\nfields = ["x"]\nparameters = ["g"]', "action: 'h'"),
        ('equations = "dx = -x dt"', "equations: the equations have no noise"),
        ('action = ""\nfields = ["x"]', "action must be a string"),
        ('action = "х^2"\nfields = ["x"]', "CYRILLIC"),
    ],
)
def test_mistakes_name_their_key(text: str, word: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_theory_file(text, "file")
    assert word in str(caught.value)


def test_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(b"action = '\xff'")
    with pytest.raises(SourceError, match=r"bad\.toml is not UTF-8"):
        load_theory_file(path)
    path.write_text("loop = 1")
    with pytest.raises(SourceError, match=r"bad\.toml: unknown key 'loop'"):
        load_theory_file(path)
    path.write_text("#" * 300_000)
    with pytest.raises(SourceError, match="300000 bytes"):
        load_theory_file(path)
    with pytest.raises(OSError, match=r"missing\.toml"):
        load_theory_file(tmp_path / "missing.toml")
