"""What every derivation gets for being there: its checks, its module, its self-check, its page, its help."""

from __future__ import annotations

import pytest

from codegen import ModuleSpec, generate
from symtensor.cli import main
from symtensor.derivation.model import Derivation, run_checks
from symtensor.derivation.registry import derivations
from symtensor.numerics.rules import Rule

DERIVATIONS = list(derivations().values())


@pytest.fixture(params=DERIVATIONS, ids=lambda derivation: derivation.name)
def derivation(request: pytest.FixtureRequest) -> Derivation:
    return request.param


def test_none_is_broken() -> None:
    assert DERIVATIONS
    assert not derivations().broken


def test_checks_pass(derivation: Derivation) -> None:
    failed = [result.check.name for result in run_checks(derivation.resolved_steps()) if not result.outcome.passed]
    assert failed == []


def test_kernels_generate_a_module_that_checks_itself(derivation: Derivation) -> None:
    kernels = derivation.resolved_kernels()
    spec = ModuleSpec(derivation.name.replace("-", "_"), derivation.title, kernels, rule=Rule("trapezoid", 161))
    module = generate(spec)
    assert module.source == generate(spec).source
    assert module.check().passed


def test_page(derivation: Derivation) -> None:
    page = derivation.document(checks=False).html()
    assert derivation.title in page
    assert page.count("<math") >= len(derivation.resolved_steps())
    assert derivation._repr_html_()


def test_help(derivation: Derivation, capsys: pytest.CaptureFixture) -> None:
    assert main(["run", derivation.name, "--help"]) == 0
    text = capsys.readouterr().out
    for option in derivation.options:
        assert option.name in text
