"""The output folder: new, continued, refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from symtensor.derivation.output import OutputError, prepare_output, stored_parameters

PARAMETERS = {"activation": "tanh", "depth": 4, "kernel": np.eye(2), "samples": 100, "memory_mb": 64, "out": "x"}


def test_a_new_folder_is_made_and_its_parameters_recorded(tmp_path):
    folder = prepare_output(tmp_path / "a" / "b", PARAMETERS)
    assert folder.path.is_dir() and not folder.continued and folder.note == ""
    assert stored_parameters(folder.path) == {
        "activation": "tanh", "depth": 4, "kernel": [[1.0, 0.0], [0.0, 1.0]], "samples": 100,
    }  # fmt: skip


def computed(path, parameters):
    """A folder with the results of a run."""
    prepare_output(path, parameters)
    (path / "summary.json").write_text("{}")


def test_parameters_of_a_run_that_computed_nothing_may_be_corrected(tmp_path):
    prepare_output(tmp_path, PARAMETERS)
    (tmp_path / "simulation").mkdir()
    assert not prepare_output(tmp_path, {**PARAMETERS, "depth": 5}).continued
    stored = stored_parameters(tmp_path)
    assert stored is not None and stored["depth"] == 5


def test_the_same_parameters_continue_and_more_samples_extend(tmp_path):
    computed(tmp_path, PARAMETERS)
    assert prepare_output(tmp_path, {**PARAMETERS, "memory_mb": 1, "out": "y", "resume": True}).continued
    assert prepare_output(tmp_path, {**PARAMETERS, "samples": 200}, resume=True).continued
    stored = stored_parameters(tmp_path)
    assert stored is not None and stored["samples"] == 200


def test_other_parameters_are_refused_and_named(tmp_path):
    computed(tmp_path, PARAMETERS)
    before = (tmp_path / "parameters.json").read_bytes()
    with pytest.raises(OutputError) as error:
        prepare_output(tmp_path, {**PARAMETERS, "depth": 5, "kernel": 2 * np.eye(2), "extra": 1})
    message = str(error.value)
    assert "depth (4 there, 5 now)" in message
    assert "kernel ([[1.0, 0.0], [0.0, 1.0]] there, [[2.0, 0.0], [0.0, 2.0]] now)" in message
    assert "extra (nothing there, 1 now)" in message
    assert "activation" not in message
    assert (tmp_path / "parameters.json").read_bytes() == before


def test_fewer_samples_are_refused(tmp_path):
    computed(tmp_path, PARAMETERS)
    with pytest.raises(OutputError, match="holds a run with 100 samples, more than the 50 asked for"):
        prepare_output(tmp_path, {**PARAMETERS, "samples": 50})


def test_large_arrays_are_compared_by_hash(tmp_path):
    raw = np.arange(10_000.0).reshape(100, 100)
    computed(tmp_path, {"raw": raw})
    assert prepare_output(tmp_path, {"raw": raw.copy()}).continued
    changed = raw.copy()
    changed[50, 50] += 1e-12 * 5050
    with pytest.raises(OutputError, match="raw"):
        prepare_output(tmp_path, {"raw": changed})


def test_resume_with_nothing_there_starts_and_says_so(tmp_path):
    folder = prepare_output(tmp_path / "new", PARAMETERS, resume=True)
    assert not folder.continued and "nothing to resume" in folder.note


def test_a_foreign_folder_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(OutputError, match=r"is not empty and holds no symtensor run \(it has 'thesis.tex'\)"):
        prepare_output(tmp_path, PARAMETERS)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("text", ["{", "[]", '{"format": "other", "parameters": {}}', '{"parameters": {}}'])
def test_a_damaged_or_foreign_record_is_refused(tmp_path, text):
    (tmp_path / "parameters.json").write_text(text)
    with pytest.raises(OutputError, match=r"parameters\.json"):
        prepare_output(tmp_path, PARAMETERS)


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="is an existing file"):
        prepare_output(tmp_path / "file", PARAMETERS)
    with pytest.raises(OutputError, match="is not writable"):
        prepare_output(tmp_path / "file" / "below", PARAMETERS)


def test_a_folder_without_permission(tmp_path, monkeypatch):
    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "touch", refuse)
    with pytest.raises(OutputError, match="is not writable: Permission denied"):
        prepare_output(tmp_path / "a", PARAMETERS)


def test_the_record_is_deterministic(tmp_path):
    prepare_output(tmp_path / "a", PARAMETERS)
    prepare_output(tmp_path / "b", dict(reversed(list(PARAMETERS.items()))))
    assert (tmp_path / "a/parameters.json").read_bytes() == (tmp_path / "b/parameters.json").read_bytes()
    assert json.loads((tmp_path / "a/parameters.json").read_text())["format"] == "symtensor-run-1"
