"""The report and the terminal table of a kernel hierarchy, on a made-up run: layout and honesty, not physics."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from rich.console import Console

from symtensor.derivation.hierarchy_report import hierarchy_document
from symtensor.derivation.hierarchy_run import component_name, components, shown_depths
from symtensor.derivation.hierarchy_tables import gain_rows, last_depth_rows, terminal_table, verdict_rows, verdicts
from symtensor.derivation.plots import hierarchy_figure, residual_figure, residual_parts, z_figure


def text_of(html: str) -> str:
    """The visible text of a page, folded, without tags and style."""
    html = re.sub(r"<style>.*?</style>|<svg.*?</svg>", " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def printed(table, width: int) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width).print(table)
    return stream.getvalue()


@pytest.fixture(scope="module")
def page(fake) -> str:
    return hierarchy_document(fake.hierarchy_run()).html()


def test_every_promised_part_is_there(page):
    text = text_of(page)
    for part in (
        "What was asked", "Theory and simulation", "Where the theory holds", "comes from", "Numerical quality",
        "Statement", "Assumptions", "Derivation", "How to repeat this", "How to cite", "Price's theorem",
        "digits of scikit-learn", "trapezoid:161", "3.20e-13", "12.5", "symtensor run toy --activation tanh --seed 0",
        "@article{price1958,", "@software{symtensor,", "the seed was 0", "numpy", "The generated module",
        "unit determinant", "passed", "Variance gain", "81.0", "results.nc",
    ):  # fmt: skip
        assert part in text, part
    assert page.count("<svg") == 3 and page.count("<math") > 20


def test_the_page_is_deterministic_and_self_contained(fake, page):
    assert hierarchy_document(fake.hierarchy_run()).html() == page
    assert "http:" not in page and "https:" not in page and "<script" not in page


def test_the_numbers_are_those_of_the_run(fake, page):
    run = fake.hierarchy_run()
    assert f"{run.values('K0')[8, 0, 0]:.5f}" in page
    assert f"{run.simulation.K1.mean[8, 0, 0]:.3f} ± 0.020" in page
    z = (run.simulation.K1.mean[8, 0, 0] - run.values("K1_kernel_only")[8, 0, 0]) / 0.02
    assert f'<td class="n bad">{z:.2f}</td>' in page


def test_verdicts_reject_what_is_wrong_and_accept_what_is_right(fake):
    outcome = {name: value.outcome for name, value in verdicts(fake.hierarchy_run()).items()}
    assert outcome == {
        "K": "accepted",
        "V4": "accepted",
        "K1": "rejected",
        "U1_model": "rejected",
        "U1_exact": "accepted",
    }


def test_a_noisy_simulation_has_no_power_and_the_page_says_so(fake):
    run = fake.hierarchy_run()
    noisy = fake.Estimate(run.values("V4_kernel_only") * 1.01, run.values("V4_kernel_only") * 0.2)
    changed = fake.replace(run, simulation=fake.replace(run.simulation, V4=noisy))
    assert verdicts(changed)["V4"].outcome == "no power"
    assert "no power: the standard errors are too large" in text_of(hierarchy_document(changed).html())


def test_exact_source_is_compared_only_where_it_is_known(fake):
    run = fake.hierarchy_run()
    assert run.comparisons()["U1_exact"].count == 1
    row = {quantity.name: cells for quantity, cells in verdict_rows(run)}["U1_exact"]
    assert row[-1].text == r"$U_1^{\mathrm{model}}$"


def test_failed_checks_and_warnings_come_first_and_are_escaped(fake):
    from symtensor.derivation.model import Step

    steps = (Step("Weights", "", (), (fake.PASSING, fake.FAILING)),)
    run = fake.hierarchy_run(
        steps=steps,
        warnings=("kernel <nearly> singular at $x$ and `y`",),
        quadrature={"rule": "gh:32", "error": 0.012, "derivatives": "inside", "converged": False},
    )
    html = hierarchy_document(run).html()
    head = text_of(html[: html.index("What was asked</h2>")])
    assert "kernel &lt;nearly&gt; singular at $x$ and 'y'" in head
    assert "gh:32 is not converged: its relative error is 0.0120" in head
    assert "the check normalisation failed" in head and "all passed" not in head


def test_precomputed_checks_are_not_run_again(fake):
    from symtensor.derivation.model import Check, CheckOutcome, Step, run_checks

    calls = []
    check = Check("counted", "once", lambda: calls.append(1) or CheckOutcome(True))
    steps = (Step("S", "", (), (check,)),)
    hierarchy_document(fake.hierarchy_run(steps=steps, checks=run_checks(steps)))
    assert len(calls) == 1


def test_without_simulation_the_report_says_so_and_shows_theory(fake):
    run = fake.hierarchy_run(simulated=False)
    html = hierarchy_document(run).html()
    text = text_of(html)
    assert "No simulation was asked for" in text and "theory only" in text
    assert "Where the theory holds" not in text and "the seed was" not in text
    assert html.count("<svg") == 1
    assert run.comparisons() == {} and verdicts(run) == {}


def test_several_inputs_show_components_labels_and_the_kernel(fake):
    run = fake.hierarchy_run(3, 60)
    text = text_of(hierarchy_document(run).html())
    assert "20 of 61 depths are shown" in text and "Input kernel" in text and "digit 2" in text
    assert "All independent components at the last depth (60)" in text
    rows = last_depth_rows(run, run.main[1])
    assert len(rows) == 21 and rows[0][0] == "11,11" and rows[-1][0] == "33,33"
    assert len(last_depth_rows(run, run.main[0])) == 6


def test_thirty_two_inputs_do_not_flood_the_page(fake):
    run = fake.hierarchy_run(12, 2)
    assert len(last_depth_rows(run, run.main[1])) == 40
    assert len(hierarchy_document(run).html()) < 1_000_000


def test_no_ode_no_residual_no_gain(fake):
    run = fake.hierarchy_run(theory_ode=None, residual=None)
    run = fake.replace(run, simulation=fake.replace(run.simulation, gain={}))
    html = hierarchy_document(run).html()
    assert "ODE" not in html and "comes from" not in text_of(html) and "Variance gain" not in html
    assert gain_rows(run, [0]) == ([], [])


def test_user_text_in_parameters_and_module_is_escaped(fake):
    run = fake.hierarchy_run(parameters={"activation": "x<y>$z$"}, module_source="</code><script>x</script>")
    html = hierarchy_document(run).html()
    assert "x&lt;y&gt;$z$" in html and "<script" not in html


def test_layers_are_shown_at_both_ends_and_never_too_many():
    assert shown_depths(3) == [0, 1, 2, 3]
    for last in (19, 20, 21, 800):
        depths = shown_depths(last)
        assert depths[0] == 0 and depths[-1] == last and len(depths) == 20 and depths == sorted(set(depths))


def test_component_names():
    assert components(1, 4) == [(0, 0, 0, 0)]
    assert [component_name(c) for c in components(3, 2)] == ["11", "12", "22", "13"]
    assert [component_name(c) for c in components(2, 4)] == ["11,11", "11,12", "12,12", "11,22"]
    assert component_name((9, 0)) == "10 1"


@pytest.mark.parametrize(
    ("inputs", "depth", "width"), [(1, 8, 100), (3, 60, 100), (1, 800, 100), (2, 3, 80), (1, 8, 60)]
)
def test_the_terminal_table_fits_its_width_and_cuts_nothing(fake, inputs, depth, width):
    run = fake.hierarchy_run(inputs, depth)
    text = printed(terminal_table(run, width), width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "…" not in text
    assert f"{run.values('K0')[-1, 0, 0]:.5f}" in text
    assert len(text.splitlines()) < 32
    for name in ("K_0", "V_4", "K_1", "simulation"):
        assert name in text


def test_the_terminal_table_without_simulation(fake):
    text = printed(terminal_table(fake.hierarchy_run(simulated=False), 100), 100)
    assert "simulation" not in text and "4.45108" in text


def test_the_residual_is_the_sum_of_its_parts(fake):
    run = fake.hierarchy_run()
    parts = residual_parts(run)
    assert list(parts) == ["total", "source", "transport"]
    assert np.allclose(parts["total"], parts["source"] + parts["transport"])
    shorter = {name: values[1:] for name, values in (run.residual or {}).items()}
    assert "Residual of" in hierarchy_document(fake.replace(run, residual=shorter)).html()


def test_figures_draw_what_the_run_holds(fake):
    run = fake.hierarchy_run(2, 60)
    panels = hierarchy_figure(run).axes
    assert len(panels) == 3
    lines = [line for line in panels[0].lines if line.get_label() == "11"]
    assert np.array_equal(lines[0].get_ydata(), run.values("K0")[:, 0, 0])
    assert len(panels[2].collections) == 3  # one band for each component: 11, 12, 22
    assert len(z_figure(run).axes[0].lines) == 2 + 5
    assert len(residual_figure(run).axes[0].lines) == 4


def test_plots_do_not_touch_pyplot(fake):
    import sys

    import matplotlib

    before = dict(matplotlib.rcParams)
    hierarchy_document(fake.hierarchy_run())
    assert dict(matplotlib.rcParams) == before
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or pyplot.get_fignums() == []
