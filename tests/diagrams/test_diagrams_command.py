"""`symtensor diagrams`: answers, documents and pictures on disk, refusals with one message and status 2."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from fractions import Fraction
from pathlib import Path

import pytest

from symtensor import cli
from symtensor.diagrams import Diagram, DiagramSet, IncompleteError, command, enumerate_diagrams
from symtensor.diagrams.command_help import EXAMPLE_MODEL
from symtensor.diagrams.model_file import model_from_dict
from symtensor.diagrams.size import lower_bound


@pytest.fixture
def run(capsys):  # type: ignore[no-untyped-def]
    """Runs a command line; returns status, standard output, error output."""

    def call(*arguments: str) -> tuple[int, str, str]:
        status = cli.main(["diagrams", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    call("phi3", "--count")  # compile
    return call


def answer(run, *arguments: str) -> dict:  # type: ignore[no-untyped-def]
    status, out, _ = run(*arguments, "--count", "--json")
    assert status == 0
    assert out.count("\n") == 1
    return json.loads(out)


@pytest.mark.parametrize(
    ("line", "count", "weight"),
    [
        ("phi4 --legs 2 --loops 6 --class 1pi", 415, "10775/288"),
        ("phi3 --legs 2 --loops 4 --class connected --no-tadpoles", None, None),
        ("phi34 --legs 0 --loops 2 --class vacuum", 3, "1/3"),
        ("phi3+phi4 --loops 2 --class vacuum --no-tadpoles", 2, "5/24"),
        ("kpz --legs x:2,xt:0 --loops 3", 1004, "5445/8"),
        ("kpz --legs x:2,xt:0 --loops 3 --causality none", 4766, "29349/8"),
        ("kpz --legs x:1,xt:1 --loops 2 --class 1pi --irreducible x-xt", 8, "15/2"),
        ("cubic-langevin --legs x:1,xt:1 --loops 1 --class 1pi", 1, "1/2"),
        ("layered-network --legs s:2 --loops 1", 24, "37/2"),
        ("phi4 --legs 4 --loops -1 --class all", 3, "3"),
        ("phi4 --legs 4 --loops -1 --class all --unlabelled", 1, "1/8"),
        ("phi4 --legs 2 --bound g=4", 3, "2/3"),
        ("phi4 --legs 2 --bound g=0:4 --class connected", 5, "13/6"),
        ("phi4 --legs 2 --loops 3 --class 1pi --no-self-energies --no-snails", None, None),
    ],
)
def test_count(run, line: str, count: int | None, weight: str | None) -> None:  # type: ignore[no-untyped-def]
    found = answer(run, *line.split())
    assert set(found) == {"count", "weight", "seconds"}
    assert isinstance(found["seconds"], float)
    assert count is None or (found["count"], found["weight"]) == (count, weight)
    if count is None:  # filters: the same as from Python
        words = line.split()
        filters = {word[2:].replace("-", "_"): True for word in words if word.startswith("--no-")}
        asked = enumerate_diagrams(words[0], int(words[2]), int(words[4]), kind=words[6], **filters)  # type: ignore[arg-type]
        every = enumerate_diagrams(words[0], int(words[2]), int(words[4]), kind=words[6])
        assert 0 < found["count"] == asked.count() < every.count()


def test_index_loops_come_with_the_count(run) -> None:  # type: ignore[no-untyped-def]
    found = answer(run, "on", "--legs", "phi:2", "--dressed", "--order", "2")
    assert found["count"] == 23
    assert {row["order"] for row in found["by"]} == {2}
    assert sum(row["count"] for row in found["by"]) == 23
    assert sum(Fraction(row["weight"]) for row in found["by"]) == Fraction(found["weight"])
    bare = answer(run, "on", "--legs", "phi:2", "--loops", "2")
    assert [(row["index_loops"], row["count"], row["weight"]) for row in bare["by"]] == [(2, 2, "1/2"), (1, 5, "5/2"), (0, 3, "3")]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("phi4 --legs 3 --loops 2", "3 legs is odd"),
        ("kpz --legs x:0 --loops 2", "Z = 1"),
        ("kpz --legs x:2 --loops 2 --class 1pi", "without an amputated response leg"),
        ("on --legs phi:1 --dressed --order 1", "no set of vertices"),
        ("phi4 --legs 2 --loops 0 --class 1pi", "the bare line is not 1PI"),
        ("phi4 --legs 2 --loops 1 --no-self-loops", "found no diagram with no self loops"),
    ],
)
def test_nothing_comes_with_a_reason(run, line: str, text: str) -> None:  # type: ignore[no-untyped-def]
    found = answer(run, *line.split())
    assert (found["count"], found["weight"]) == (0, "0")
    assert text in found["reason"]
    status, out, _ = run(*line.split())
    assert status == 0
    assert f"none: {found['reason']}" in out


def test_defaults_are_taken_and_said(run) -> None:  # type: ignore[no-untyped-def]
    status, out, err = run("phi4")
    assert status == 0
    assert "--class connected --legs 2 --loops 2" in err
    assert out.splitlines()[1:4] == [
        f"     {n}       {d.weight}  {d.canonical}" for n, d in enumerate(enumerate_diagrams("phi4", 2, 2), 1)
    ]
    for line, legs in (("kpz", "legs x:2"), ("kpz --class 1pi", "legs x:1, xt:1"), ("on --dressed", "legs phi:2")):
        status, out, _ = run(*line.split())
        assert status == 0
        assert legs in out.splitlines()[0]


def test_list_as_json_can_be_read_back(run) -> None:  # type: ignore[no-untyped-def]
    status, out, _ = run("kpz", "--legs", "x:2", "--loops", "1", "--json")
    document = json.loads(out)
    model = model_from_dict(document["model"])
    found = [Diagram.from_string(entry["diagram"], model) for entry in document["diagrams"]]
    assert status == 0
    assert found == list(enumerate_diagrams("kpz", "x:2", 1))
    assert [d.symmetry_factor for d in found] == [entry["symmetry_factor"] for entry in document["diagrams"]]
    assert document["count"] == len(found)
    assert Fraction(document["weight"]) == sum(d.weight for d in found)
    assert document["complete"] is True


def test_limit_is_said(run) -> None:  # type: ignore[no-untyped-def]
    _, out, _ = run("phi4", "--loops", "3", "--limit", "2")
    assert "(the first 2; there are more)" in out
    _, out, _ = run("phi4", "--loops", "3", "--limit", "2", "--json")
    assert json.loads(out)["complete"] is False
    _, out, _ = run("phi4", "--limit", "3", "--json")
    assert json.loads(out)["complete"] is True


def test_folder(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "new" / "kpz"
    line = ["kpz", "--legs", "x:1,xt:1", "--loops", "2", "--class", "1pi", "--out", str(folder)]
    status, out, _ = run(*line)
    assert status == 0
    assert "index.html" in out
    found = list(enumerate_diagrams("kpz", "x:1,xt:1", 2, kind="1pi"))
    document = json.loads((folder / "diagrams.json").read_text())
    assert [entry["diagram"] for entry in document["diagrams"]] == [d.canonical for d in found]
    page = (folder / "index.html").read_text()
    ElementTree.parse(folder / "sheet.svg")
    for number, diagram in enumerate(found, 1):
        stem = folder / "diagrams" / f"{number:04d}"
        ElementTree.parse(stem.with_suffix(".svg"))
        assert "\\begin{feynman}" in stem.with_suffix(".tex").read_text()
        assert "graph" in stem.with_suffix(".dot").read_text()
        assert f"diagrams/{stem.name}.svg" in page
        assert diagram.canonical.replace(">", "&gt;") in page
    assert sorted(path.name for path in folder.parent.iterdir()) == ["kpz"]  # nothing temporary is left


def test_folder_of_a_shorter_list_has_no_old_pictures(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    mine = tmp_path / "diagrams" / "notes.txt"
    assert run("phi4", "--loops", "3", "--out", str(tmp_path))[0] == 0
    mine.write_text("kept")
    assert len(list((tmp_path / "diagrams").glob("*.svg"))) == enumerate_diagrams("phi4", 2, 3).count()
    status, out, _ = run("phi4", "--loops", "2", "--out", str(tmp_path), "--json")
    assert status == 0
    assert json.loads(out) == {"count": 3, "weight": "2/3", "out": str(tmp_path)}
    assert len(list((tmp_path / "diagrams").glob("*.svg"))) == 3
    assert mine.read_text() == "kept"


def test_interrupt_leaves_the_folder_as_it_was(run, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    assert run("phi4", "--loops", "2", "--out", str(tmp_path / "out"))[0] == 0
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}

    def stop(self: Diagram) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(Diagram, "to_tikz", stop)
    status, _, err = run("phi4", "--loops", "3", "--out", str(tmp_path / "out"))
    assert status == 130
    assert "nothing was written" in err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_foreign_folders_are_left_alone(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "thesis.tex").write_text("x")
    status, _, err = run("phi4", "--out", str(tmp_path))
    assert status == 2
    assert "holds other files" in err
    status, _, err = run("phi4", "--out", str(tmp_path / "thesis.tex"))
    assert status == 2
    assert "in the way" in err


def test_verify_says_what_was_proved(run) -> None:  # type: ignore[no-untyped-def]
    status, out, _ = run("phi4", "--loops", "3", "--verify")
    assert status == 0
    assert "generating function" in out
    assert "generating function" in answer(run, "phi4", "--loops", "3", "--verify")["verified"]


def test_a_failed_proof_is_no_success(run, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    def refuse(self: DiagramSet) -> str:
        raise IncompleteError("one is missing")

    monkeypatch.setattr(DiagramSet, "verify", refuse)
    status, _, err = run("phi4", "--loops", "3", "--verify")
    assert status == 1
    assert "one is missing" in err


def test_threads_change_nothing(run) -> None:  # type: ignore[no-untyped-def]
    line = ("phi4", "--legs", "2", "--loops", "4", "--class", "1pi")
    assert run(*line)[1] == run(*line, "--jobs", "3")[1]


# --- enormous requests ------------------------------------------------------------------------------------------------


def test_enormous_lists_are_refused_with_an_estimate(run) -> None:  # type: ignore[no-untyped-def]
    status, out, err = run("phi4", "--legs", "2", "--loops", "12")
    assert (status, out) == (2, "")
    assert "at least" in err
    assert "--count" in err
    status, out, err = run("phi4", "--legs", "2", "--loops", "14", "--count")
    assert (status, out) == (2, "")
    assert "261,086,726" in err  # the weight is 63444074282/243
    status, out, err = run("phi4", "--legs", "2", "--loops", "11", "--limit", "5", "--verify")
    assert (status, out) == (2, "")
    assert "keeps all of them in memory" in err
    status, out, _ = run("phi4", "--legs", "2", "--loops", "14", "--limit", "5")
    assert status == 0
    assert len(out.splitlines()) == 8


def test_lists_whose_weight_is_small_are_refused_too(run, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(command, "LISTED", 300)
    status, out, err = run("phi4", "--legs", "0", "--loops", "8")
    assert (status, out) == (2, "")
    assert "359 diagrams" in err
    status, out, _ = run("phi4", "--legs", "0", "--loops", "8", "--force")
    assert status == 0
    assert "359 diagrams" in out


@pytest.mark.parametrize(
    ("model", "legs", "loops", "kind"), [("phi4", 2, 5, "1pi"), ("kpz", "x:2", 2, "connected"), ("phi3", 0, 4, "all")]
)
def test_the_estimate_is_a_lower_bound(model: str, legs: int | str, loops: int, kind: str) -> None:
    for options in ({}, {"no_tadpoles": True}, {"no_self_loops": True}, {"no_snails": True}):
        asked = enumerate_diagrams(model, legs, loops, kind=kind, **options)
        exact = kind != "1pi" and model != "kpz" and not options  # Burnside's lemma counts these
        assert lower_bound(asked.request) == (asked.count() if exact else asked.weight()) <= asked.count()


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("", "which model?"),
        ("phi5", "unknown model 'phi5'"),
        ("missing.toml", "No such file"),
        ("phi4 --class 2pi", "invalid choice: '2pi'"),
        ("phi4 --leg 2", "unrecognized arguments: --leg 2"),
        ("phi4 --loops two", "invalid int value: 'two'"),
        ("phi4 --loops -1", "below the minimum 0"),
        ("phi4 --loops -2 --class 1pi", "below the minimum 0"),
        ("phi4 --legs 4 --loops -2 --class all", "below the minimum -1"),
        ("phi4 --legs -2", "between 0 and 40"),
        ("phi4 --legs y:2", "no field 'y'"),
        ("kpz --legs 2", "say which legs"),
        ("kpz --legs x:1,x:1", "field 'x' is given twice"),
        ("kpz --legs x;2", "is not FIELD or FIELD:NUMBER"),
        ("phi4 --legs 2 --class vacuum", "vacuum has no legs"),
        ("phi4 --order 2", "add --dressed"),
        ("phi4 --dressed", "one index field"),
        ("on --dressed --loops 2", "ordered by 1/N"),
        ("on --dressed --order -1", "0 or more"),
        ("phi4 --bound h=2", "counts no parameter 'h'"),
        ("phi4 --bound g", "neither NAME=K nor NAME=LOW:HIGH"),
        ("phi4 --bound g=3:1", "order of 'g'"),
        ("phi4 --bound g=1 --bound g=2", "bounded twice"),
        ("phi4 --causality local", "no response field"),
        ("phi4 --causality sometimes", "invalid choice"),
        ("kpz --irreducible x-xt", "belongs to class 1pi"),
        ("kpz --class 1pi --irreducible xt-xt", "no propagator 'xt-xt'"),
        ("phi4 --count --out somewhere", "--count lists nothing"),
        ("phi4 --count --limit 3", "--count lists nothing"),
        ("phi4 --limit -1", "--limit -1"),
        ("phi4 --jobs 0", "--jobs 0"),
    ],
)
def test_refusals(run, line: str, text: str, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    status, out, err = run(*line.split())
    assert (status, out) == (2, "")
    (message,) = [row for row in err.splitlines() if row.startswith("symtensor: error: ")]
    assert text in message
    assert not list(tmp_path.iterdir())


MODEL_FILE = """
fields = [{ name = "x" }, { name = "y" }]
propagators = [{ ends = ["x", "x"] }]
[[vertices]]
name = "g"
legs = "x^2 y"
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MODEL_FILE, "'y', which no propagator joins"),
        (MODEL_FILE.replace("x^2 y", "x^2"), "nothing bounds the number of vertices 'g' (valence 2)"),
        (MODEL_FILE.replace("x^2 y", "x^3") + "[[vertices]]\nname = 'g'\nlegs = 'x^4'\n", "duplicate vertex: g"),
        (MODEL_FILE.replace("name = \"x\"", "name = \"x\", statistics = \"fermion\""), "fermion signs are not tracked"),
        (MODEL_FILE.replace("legs", "leg"), "unknown key 'leg'; did you mean 'legs'?"),
        ("name = ", "not a TOML file"),
    ],
)
def test_model_files_that_are_wrong(run, tmp_path: Path, text: str, message: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "model.toml"
    path.write_text(text)
    status, out, err = run(str(path), "--legs", "x:2", "--loops", "0")
    assert (status, out) == (2, "")
    assert message in err


def test_unreadable_model_files(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for name, message in (("folder.toml", "cannot be read"), ("binary.toml", "not UTF-8 text")):
        status, _, err = run(str(tmp_path / name))
        assert status == 2
        assert message in err


def test_the_model_file_of_the_help(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "burgers.toml"
    path.write_text(EXAMPLE_MODEL)
    line = [str(path), "--legs", "x:1,xt:1", "--class", "1pi", "--bound", "g=0:4,h=0:2", "--loops", "2"]
    found = answer(run, *line)
    cubic = answer(run, *line[:-4], "--loops", "2", "--bound", "h=0")
    assert cubic["count"] == answer(run, "kpz", *line[1:5], "--loops", "2")["count"]
    assert found["count"] > cubic["count"]


def test_help_teaches(run) -> None:  # type: ignore[no-untyped-def]
    status, out, _ = run("--help")
    assert status == 0
    assert run("phi4", "--help")[1] == out
    for word in ("phi34", "--no-snails", "--bound", "|Aut|", "model file", "legs = \"xt x^2\"", "layered-network", "--dressed"):
        assert word in out
    assert max(map(len, out.splitlines())) <= 120
    assert cli.main(["--help"]) == 0
