"""A derivation alone as a document: statement, assumptions, steps with their equations and checks, sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from symtensor.derivation.document import Document
from symtensor.derivation.model import CheckResult, Citation, Derivation, Step, run_checks

if TYPE_CHECKING:
    from symtensor.derivation.settings import Option


def derivation_document(derivation: Derivation, checks: bool = True) -> Document:
    """The whole derivation; with `checks` every check is run and its verdict printed, else only its statement."""
    steps = derivation.resolved_steps()
    document = Document(derivation.title, derivation.summary)
    add_statement(document, derivation)
    add_steps(document, steps, run_checks(steps) if checks else None)
    if derivation.citations:
        document.heading("Sources")
        document.items(citation.text() for citation in derivation.citations)
    return document


def add_statement(document: Document, derivation: Derivation) -> None:
    """What is claimed and under which assumptions."""
    document.heading("Statement")
    for paragraph in paragraphs(derivation.statement):
        document.paragraph(paragraph)
    if derivation.assumptions:
        document.heading("Assumptions", 3)
        document.items(derivation.assumptions)


def add_steps(document: Document, steps: Sequence[Step], results: Sequence[CheckResult] | None) -> None:
    """Every step with its equations, then its checks: verdicts if `results` is given, else statements."""
    document.heading("Derivation")
    for number, step in enumerate(steps, start=1):
        document.heading(step.title, 3)
        for paragraph in paragraphs(step.text):
            document.paragraph(paragraph)
        if step.drawings:
            document.drawings((drawing.svg, drawing.latex, drawing.caption) for drawing in step.drawings)
        for equation in step.equations:
            document.equation(equation.latex, equation.label)
        _add_checks(document, number, step, results)


def _add_checks(document: Document, number: int, step: Step, results: Sequence[CheckResult] | None) -> None:
    if results is None:
        if step.checks:
            document.items(f"Check: {check.name}. {check.statement}" for check in step.checks)
        return
    for result in results:
        if result.step == number:
            check = result.check
            document.check(result.outcome.passed, check.name, check.statement, result.outcome.detail)


def add_citations(document: Document, citations: Sequence[Citation], software: str) -> None:
    """How to cite: the software and the papers, as prose and as BibTeX."""
    document.heading("How to cite")
    document.paragraph("If you use these numbers, please cite the software and the papers whose derivation was run.")
    if citations:
        document.items(citation.text() for citation in citations)
    document.code("\n\n".join([software, *(citation.bibtex() for citation in citations)]))


def paragraphs(text: str) -> list[str]:
    """`text` split at blank lines."""
    return [part.strip() for part in text.split("\n\n") if part.strip()]


def option_rows(options: Sequence[Option]) -> list[tuple[str, str, str]]:
    """(name, default, help) of every option, for documentation."""
    return [(option.name, "" if option.default is None else str(option.default), option.help) for option in options]
