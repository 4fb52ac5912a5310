"""Derivations as values: checks, citations, display."""

from __future__ import annotations

import pytest

from symtensor.derivation.model import Check, CheckOutcome, Step, run_checks


def test_checks_run_in_order_and_know_their_step(fake):
    steps = (Step("one", "", (), (fake.PASSING, fake.FAILING)), Step("two", "", (), (fake.PASSING,)))
    results = run_checks(steps)
    assert [(r.step, r.title, r.outcome.passed) for r in results] == [
        (1, "one", True),
        (1, "one", False),
        (2, "two", True),
    ]


def test_a_check_that_raises_has_failed_and_says_how():
    def broken() -> CheckOutcome:
        raise ZeroDivisionError("no pivot in layer 3")

    outcome = Check("pivot", "exists", broken).outcome()
    assert not outcome.passed
    assert outcome.detail == "raised ZeroDivisionError: no pivot in layer 3"


def test_interrupt_is_not_swallowed_by_a_check():
    def interrupted() -> CheckOutcome:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Check("slow", "ends", interrupted).outcome()


def test_steps_and_kernels_may_be_functions(fake):
    lazy = fake.derivation(steps=lambda: fake.STEPS, kernels=lambda: ())
    assert lazy.resolved_steps() == fake.STEPS == fake.derivation().resolved_steps()
    assert lazy.resolved_kernels() == ()


def test_bibtex_has_every_field(fake):
    assert fake.CITATION.bibtex().splitlines() == [
        "@article{price1958,",
        "  author = {Robert Price},",
        "  title = {{A useful theorem}},",
        "  journal = {IRE Trans. Inf. Theory 4, 69},",
        "  year = {1958}",
        "}",
    ]
    assert fake.CITATION.text() == "Robert Price. A useful theorem. IRE Trans. Inf. Theory 4, 69 (1958)."


def test_notebook_display_shows_the_whole_derivation_without_running_checks(fake):
    def never() -> CheckOutcome:
        raise AssertionError("a display must not compute")

    step = Step("Only step", "Text with $x^2$.", (), (Check("costly", "holds", never),))
    html = fake.derivation(steps=(step,))._repr_html_()
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in html
    assert "Check: costly. holds" in html
    assert "Square-integrable activation." in html
    assert "A useful theorem" in html
    assert "raised" not in html


def test_document_runs_the_checks(fake):
    html = fake.derivation(steps=(Step("S", "", (), (fake.PASSING, fake.FAILING)),)).document().html()
    assert html.count('class="check passed"') == 1
    assert html.count('class="check failed"') == 1
    assert "found 2 &lt;b&gt;" in html
