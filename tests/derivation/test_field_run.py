"""Derivations in field theory: comparisons with a truncation, the run, what is stored, and shapes of dynamic diagrams."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import sympy as sp

from symtensor.derivation.field_report import comparison_rows, field_document, terminal_table, verdict_text
from symtensor.derivation.field_run import (
    Compared,
    ComparisonTable,
    Curves,
    FieldResults,
    Panel,
    Points,
    Work,
    common_options,
    loop_name,
    partial_sums,
    require_samples,
    run_fields,
    sum_kernel,
)
from symtensor.derivation.model import Check, CheckOutcome, Derivation, Equation, Step
from symtensor.derivation.output import OutputError
from symtensor.derivation.settings import Option, OptionError, RunContext, Settings
from symtensor.derivation.shapes import static_values, summed_by_shape
from symtensor.fields import FieldTheory, theory


def _row(measured: float, se: float = 0.0, truncation: float = 0.0) -> Compared:
    return Compared("<x>", r"\langle x\rangle", {"tree level": 1.0, "one loop": 0.9}, measured, se, truncation)


def test_a_comparison_accepts_within_error_and_truncation_and_rejects_beyond() -> None:
    assert _row(0.91, 0.01).agrees(2.0) and not _row(0.93, 0.01).agrees(2.0)
    assert _row(0.93, 0.01, 0.02).agrees(2.0)
    assert _row(0.91, 0.01).rejected(2.0) == ["tree level"]
    assert _row(0.95, 0.05).rejected(2.0) == []
    assert _row(0.91, 0.01).z("one loop") == pytest.approx(1.0) and _row(0.9).z("one loop") == 0.0
    assert math.isinf(_row(0.91).z("one loop"))


def test_an_exact_number_is_compared_with_the_truncation_alone() -> None:
    table = ComparisonTable("c", "exact", (_row(0.905, 0.0, 0.01),))
    assert table.exact and not table.failures and table.told_apart() == ["tree level"]
    assert ComparisonTable("c", "exact", (_row(0.92, 0.0, 0.01),)).failures


def test_the_threshold_grows_with_the_number_of_rows() -> None:
    one, many = (ComparisonTable("c", "simulation", (_row(0.9, 0.1),) * n) for n in (1, 20))
    assert one.threshold == pytest.approx(1.96, abs=0.01) and many.threshold > 3.0


def test_the_verdict_says_what_the_numbers_can_tell() -> None:
    def verdict(row: Compared) -> str:
        return comparison_rows(ComparisonTable("c", "simulation", (row,)))[1][0][-1].text

    assert verdict(_row(0.9, 0.01)) == "agrees, not tree level"
    assert verdict(_row(0.95, 0.1)) == "agrees, no power"
    assert verdict(_row(0.8, 0.01)) == "rejected"
    assert verdict(_row(0.93, 0.01, 0.03)).startswith("within truncation")
    text = verdict_text(ComparisonTable("c", "simulation", (_row(0.95, 0.1),)))
    assert "no power" in text and terminal_table(ComparisonTable("c", "simulation", (_row(0.9, 0.01),))).row_count == 1


def test_rows_of_one_table_have_the_same_approximations() -> None:
    with pytest.raises(ValueError, match="different approximations"):
        ComparisonTable("c", "exact", (_row(1.0), Compared("y", "y", {"tree level": 1.0}, 1.0)))
    with pytest.raises(ValueError, match="no rows"):
        ComparisonTable("c", "exact", ())


def test_partial_sums_and_names() -> None:
    found = partial_sums({"order_1": 0.5, "order_0": np.array([1.0, 2.0]), "other": 7.0})
    assert list(found) == ["tree level", "one loop"] and found["one loop"].tolist() == [1.5, 2.5]
    assert loop_name(9) == "9 loops"


def test_the_kernel_of_a_sum_has_times_first_and_every_parameter() -> None:
    kernel = sum_kernel(theory("cubic-langevin").cumulant("x,x", 1), "correlation")
    assert [argument.name for argument in kernel.arguments] == ["t", "T", "g"]
    assert [name for name, _ in kernel.outputs] == ["order_0", "order_1"]
    with pytest.raises(ValueError, match="delta"):
        sum_kernel(theory("cubic-langevin").vertex_function("xt,x", 1), "self_energy")


def _derivation(passed: bool = True) -> Derivation:
    step = Step("Step", "Text.", (Equation("x^2"),), (Check("check", "a statement", lambda: CheckOutcome(passed, "figures")),))
    options = (Option("--g", float, 0.1, "coupling"), *common_options("toy"))
    kernels = (sum_kernel(theory("phi4").cumulant("x,x", 1), "two_point"),)
    return Derivation("toy", "A toy", "Statement.", (), (step,), kernels, (), options, lambda settings, context: 0)


def _compute(work: Work) -> FieldResults:
    values = partial_sums(work.evaluate("two_point", g=work.settings["g"]))
    stored = work.stored({"g": work.settings["g"]}, lambda: {"mean": 0.95, "curve": np.arange(3.0)})
    numbers = {name: float(value) for name, value in values.items()}
    row = Compared("<x^2>", r"\langle x^2\rangle", numbers, float(stored["mean"][0]), 0.01)
    points = Points(np.arange(3.0), stored["curve"], np.ones(3))
    panel = Panel("C", {"theory": (np.arange(3.0), np.arange(3.0))}, (points,))
    return FieldResults((ComparisonTable("c", "simulation", (row,)),), (Curves("caption", "t", (panel,)),), warnings=("beware",))


def test_a_run_leaves_its_files_and_refuses_other_parameters(tmp_path) -> None:
    derivation = _derivation()
    settings = Settings.defaults(derivation.options, out=str(tmp_path / "a"))
    run = run_fields(derivation, settings, RunContext.silent(), _compute).value
    assert {p.name for p in (tmp_path / "a").iterdir()} >= {"report.html", "summary.json", "toy.py", "simulation.nc"}
    summary = json.loads((tmp_path / "a" / "summary.json").read_text())
    row = summary["comparisons"][0]["rows"]["<x^2>"]
    assert row["theory"] == {"tree level": 1.0, "one loop": 0.95} and row["rejected"] == ["tree level"] and row["agrees"]
    page = field_document(run).html()
    assert "beware" in page and "<svg" in page and run._repr_html_()
    with pytest.raises(OutputError, match="g"):
        run_fields(derivation, Settings({**settings, "g": 0.2}), RunContext.silent(), _compute)


def test_a_failing_check_and_a_failing_comparison_become_warnings(tmp_path) -> None:
    derivation = _derivation(passed=False)
    settings = Settings.defaults(derivation.options, out=str(tmp_path), g=0.6)
    run = run_fields(derivation, settings, RunContext.silent(), _compute).value
    assert any("check failed" in text for text in run.warnings) and any("disagrees" in text for text in run.warnings)


def test_what_is_stored_is_read_again_only_under_its_key(tmp_path) -> None:
    work = Work(Settings({}), RunContext.silent(), tmp_path, None)
    first = work.stored({"seed": 1}, lambda: {"a": [1.0, 2.0]})
    assert work.stored({"seed": 1}, lambda: {"a": [9.0, 9.0]})["a"].tolist() == first["a"].tolist()
    assert work.stored({"seed": 2}, lambda: {"a": [9.0]})["a"].tolist() == [9.0]
    (tmp_path / "simulation.nc").write_bytes(b"cut short")
    assert work.stored({"seed": 2}, lambda: {"a": [5.0]})["a"].tolist() == [5.0]


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(OptionError, match="standard errors"):
        require_samples(Settings({"samples": 5}))
    assert require_samples(Settings({"samples": 0})) == 0


def test_shapes_add_up_to_static_diagrams_and_a_missing_diagram_is_noticed() -> None:
    static = FieldTheory.static("(x^2/2 - g*x^3/3)/T", "x").cumulant("x", 2)
    dynamic = theory("quadratic-langevin").cumulant("x", 2)
    assert summed_by_shape(dynamic, static) == static_values(static)
    gone = list(dynamic)[-1].diagram.canonical
    assert summed_by_shape(dynamic.where(lambda term: term.diagram.canonical != gone), static) != static_values(static)
    assert sp.expand(sum(static_values(static).values()) - dynamic.expr) == 0
