"""Labelled arrays on disk, the strict JSON summary, atomic writes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from symtensor.derivation.results import (
    Labelled,
    ResultError,
    flatten,
    read_netcdf,
    to_json,
    write_netcdf,
    write_summary,
    write_text,
)

RNG = np.random.default_rng(3)
VARIABLES = {
    "K0": Labelled(RNG.standard_normal((5, 2, 2)), ("depth", "a", "b"), "mean kernel", "1"),
    "V4": Labelled(RNG.standard_normal((5, 2, 2, 2, 2)), ("depth", "a", "b", "c", "d"), "kovariänz times n"),
    "t": Labelled(np.arange(5.0), ("depth",), "depth time"),
    "layer": Labelled(np.arange(5), ("depth",)),
    "total": Labelled(np.float64(np.nan), ()),
}


def test_netcdf_round_trip_keeps_values_axes_and_names(tmp_path):
    path = tmp_path / "results.nc"
    write_netcdf(path, VARIABLES, {"title": "toy: σ", "seed": 3})
    variables, attributes = read_netcdf(path)
    assert set(variables) == set(VARIABLES)
    for name, written in VARIABLES.items():
        assert variables[name].axes == written.axes
        assert np.array_equal(variables[name].values, written.values, equal_nan=True)
        assert (variables[name].long_name, variables[name].units) == (written.long_name, written.units)
    assert attributes["title"] == "toy: σ" and attributes["seed"] == 3


def test_the_file_is_netcdf3_with_named_dimensions_and_the_same_bytes_each_time(tmp_path):
    from scipy.io import netcdf_file

    for name in ("one.nc", "two.nc"):
        write_netcdf(tmp_path / name, VARIABLES, {"title": "toy"})
    assert (tmp_path / "one.nc").read_bytes() == (tmp_path / "two.nc").read_bytes()
    assert (tmp_path / "one.nc").read_bytes()[:3] == b"CDF"
    with netcdf_file(str(tmp_path / "one.nc"), mmap=False) as file:
        assert dict(file.dimensions) == {"depth": 5, "a": 2, "b": 2, "c": 2, "d": 2}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Labelled(np.ones((2, 2)), ("a",)), "needs one name per axis"),
        (lambda: Labelled(np.ones((2, 2)), ("a", "a")), "repeat a name"),
    ],
)
def test_labels_must_fit(build, message):
    with pytest.raises(ResultError, match=message):
        build()


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"x": Labelled(np.ones(2), ("a",)), "y": Labelled(np.ones(3), ("a",))},
            "axis 'a' has length 2 in 'x' but 3 in 'y'",
        ),
        ({"x y": Labelled(np.ones(2), ("a",))}, "'x y' cannot be a name"),
        ({"x": Labelled(np.array([2**40]), ("a",))}, "beyond 32 bits"),
        ({"x": Labelled(np.array([1j]), ("a",))}, "dtype complex128 cannot be stored"),
    ],
)
def test_what_the_format_cannot_hold_is_refused_and_leaves_no_file(tmp_path, variables, message):
    with pytest.raises(ResultError, match=message):
        write_netcdf(tmp_path / "r.nc", variables)
    assert list(tmp_path.iterdir()) == []


def test_summary_is_strict_json_in_the_given_order(tmp_path):
    path = tmp_path / "summary.json"
    summary = {
        "z": {"K": np.array([1.0, np.nan, np.inf]), "b": Labelled(np.eye(2), ("a", "b"))},
        "a": {"flag": np.bool_(True), "n": np.int64(3), "x": float("-inf"), "path": tmp_path, "none": None},
        "warnings": ("α", "β"),
    }
    write_summary(path, summary)
    text = path.read_text(encoding="utf-8")
    data = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert list(data) == ["z", "a", "warnings"]
    assert data["z"] == {"K": [1.0, None, None], "b": [[1.0, 0.0], [0.0, 1.0]]}
    assert data["a"] == {"flag": True, "n": 3, "x": None, "path": str(tmp_path), "none": None}
    assert data["warnings"] == ["α", "β"]
    write_summary(tmp_path / "again.json", summary)
    assert (tmp_path / "again.json").read_text(encoding="utf-8") == text


def test_numbers_in_the_summary_round_trip_to_the_last_bit(tmp_path):
    values = RNG.standard_normal(200) * 10.0 ** RNG.integers(-200, 200, 200)
    write_summary(tmp_path / "s.json", {"theory": {"x": values}})
    assert np.array_equal(json.loads((tmp_path / "s.json").read_text())["theory"]["x"], values)


def test_large_arrays_go_to_the_labelled_file_under_the_name_that_flatten_gives(tmp_path):
    tree = {"theory": {"K0": Labelled(np.ones(11), ("depth",)), "t": Labelled(np.ones(10), ("step",))}}
    write_summary(tmp_path / "s.json", tree, limit=10)
    data = json.loads((tmp_path / "s.json").read_text())
    assert data["theory"] == {"K0": {"file": "results.nc", "variable": "theory_K0"}, "t": [1.0] * 10}
    assert set(flatten(tree)) == {"theory_K0", "theory_t"}


def test_the_limit_is_a_million_numbers():
    assert isinstance(to_json({"x": np.zeros(1_000_000)})["x"], list)
    assert to_json({"x": np.zeros(1_000_001)})["x"] == {"file": "results.nc", "variable": "x"}


@pytest.mark.parametrize(("value", "message"), [(1j, "a.b: a complex"), (np.array([1j]), "a.b: an array of dtype")])
def test_what_has_no_json_form_is_named(value, message):
    with pytest.raises(ResultError, match=message):
        to_json({"a": {"b": value}})


def test_an_interrupted_write_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "summary.json"
    write_text(path, "old")

    def fail(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr("symtensor.derivation.results.os.replace", fail)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["summary.json"]
