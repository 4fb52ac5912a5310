"""Model files: every named theory survives the round trip, and each mistake is named."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from symtensor.diagrams import model_file
from symtensor.diagrams.errors import ModelError
from symtensor.diagrams.model import Field, Model, Propagator, Vertex, VertexFamily
from symtensor.diagrams.model_file import load_model, model_from_dict, model_to_dict, model_to_toml, parse_model
from symtensor.diagrams.theories import THEORIES

RICH = Model(
    'a "rich" model \\ \t\x7f é \U0001f600',
    (Field("psi", index="N"), Field("psib", conjugate="psi", index="N"), Field("s", auxiliary=True), Field("st", response=True)),
    (Propagator("psi", "psib", {"e": -2}), Propagator("s", "s"), Propagator("s", "st")),
    (Vertex("g", ("psi", "s", "psi"), {"g": 1, "h": 2}), Vertex("h3", ("st", "s", "s", "s"))),
    (VertexFamily("V", ("s", "st"), {"st": 1}, 4),),
    "nonlocal",
    "two\nlines",
)
GOOD = """
fields = [{ name = "x" }]
propagators = [{ ends = ["x", "x"] }]
vertices = [{ name = "g", legs = "x^3" }]
"""


@pytest.mark.parametrize("model", [*THEORIES.values(), RICH], ids=lambda model: model.name[:12])
def test_round_trip(model: Model) -> None:
    assert parse_model(model_to_toml(model), "other") == model
    assert model_from_dict(model_to_dict(model)) == model
    assert hash(parse_model(model_to_toml(model), "other")) == hash(model)


def test_example_of_the_documentation() -> None:
    text = (model_file.__doc__ or "").split("\n\n", 1)[1].split("The tables and keys")[0]
    model = parse_model(textwrap.dedent(text), "file")
    assert (model.name, model.causality) == ("kpz", "local")
    assert model.vertices == (Vertex("g", ("xt", "x", "x"), {"g": 1}),)
    assert model.families == (VertexFamily("V", ("x", "xt"), {"xt": 1}, 4),)
    assert model.fields[1] == Field("xt", response=True)


def test_name_of_the_file_unless_given(tmp_path: Path) -> None:
    path = tmp_path / "cubic.toml"
    path.write_text(GOOD)
    assert load_model(path).name == load_model(str(path)).name == "cubic"
    path.write_text('name = "other"\n' + GOOD)
    assert load_model(path).name == "other"


def test_legs_short_and_long() -> None:
    short = GOOD.replace('"x^3"', '"x x^2"')
    long = GOOD.replace('"x^3"', '["x", "x", "x"]')
    assert parse_model(short, "m") == parse_model(long, "m") == parse_model(GOOD, "m")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("vertices", "vertexes", "the model has the unknown key 'vertexes'; did you mean 'vertices'?"),
        ("ends", "end", "propagators[0] has the unknown key 'end'; did you mean 'ends'?"),
        ('{ name = "x" }', '{ name = "x", respons = true }', "fields[0] has the unknown key 'respons'; did you mean 'response'?"),
        ('{ name = "x" }', "{ response = true }", "fields[0] lacks the key 'name'"),
        ('{ name = "x" }', '{ name = "x", response = 1 }', "fields[0]: response must be true or false, got 1"),
        ('{ name = "x" }', '{ name = "x", statistics = "fermion" }', "field 'x' has statistics 'fermion'"),
        ('{ name = "x" }', '"x"', "fields[0] must be a table (keys and values), got 'x'"),
        ('[{ name = "x" }]', '{ name = "x" }', "the model: fields must be a list of tables, got a table"),
        ('["x", "x"]', '["x", "x", "x"]', "propagators[0]: ends must name the two fields that the propagator joins, got 3"),
        ('["x", "x"]', '"x-x"', "propagators[0]: ends must be a list of names, got 'x-x'"),
        ('["x", "x"]', '["x", 1]', "propagators[0]: ends[1] must be a string, got 1"),
        ('["x", "x"]', '["x", "x"], orders = { g = 1.5 }', "propagators[0]: orders.g must be an integer, got 1.5"),
        ('["x", "x"]', '["x", "x"], orders = "g"', "propagators[0]: orders must be a table of integers such as { g = 1 }, got 'g'"),
        ('"x^3"', '"x^3 *"', "vertices[0]: legs: '*' is no leg"),
        ('"x^3"', '"x^31"', "vertices[0]: legs: 'x^31' is no leg; write a field or a power of it up to 30"),
        ('"x^3"', '"x^0"', "vertices[0]: legs: 'x^0' is no leg"),
        ('"x^3"', '"y^3"', "vertex 'g' uses the unknown field 'y'"),
        ('"x^3"', '""', "vertex 'g' has 0 legs"),
        ("fields", 'causality = "locale"\nfields', "causality 'locale'"),
        (
            "fields",
            "families = [{ name = 'V', fields = ['x'], valence = true }]\nfields",
            "families[0]: valence must be an integer",
        ),
        ("propagators = ", "propagators ", "not a TOML file"),
    ],
)
def test_mistakes_are_named(old: str, new: str, message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        parse_model(GOOD.replace(old, new, 1), "m")


def test_missing_tables_and_files(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="the model lacks the key 'propagators'; it has name, fields"):
        parse_model('fields = [{ name = "x" }]', "m")
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none.toml")
    path = tmp_path / "bad.toml"
    path.write_bytes(b"name = '\xff'")
    with pytest.raises(ModelError, match=re.escape(f"model file {path} is not UTF-8 text")):
        load_model(path)
    path.write_text(GOOD.replace("ends", "end"))
    with pytest.raises(ModelError, match=re.escape(f"model file {path}: propagators[0]")):
        load_model(path)


def test_nothing_in_a_file_is_evaluated() -> None:
    with pytest.raises(ModelError, match="is no leg"):
        parse_model(GOOD.replace('"x^3"', "\"__import__('os').getcwd()\""), "m")
