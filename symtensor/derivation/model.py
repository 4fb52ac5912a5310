"""A derivation as a value: what is claimed, under which assumptions, by which steps, and how each step is checked.

Every text field may hold inline mathematics between dollar signs (`$K_0$`) and code between backticks; equations are
LaTeX without delimiters. A `Derivation` displays itself in a notebook and is printed in full by every report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from symtensor.derivation.document import Document
    from symtensor.derivation.settings import Option, RunContext, RunResult, Settings
    from symtensor.kernels import Kernel


@dataclass(frozen=True, slots=True)
class Equation:
    """One displayed equation: LaTeX source (no delimiters; `aligned` is understood) and an optional label."""

    latex: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The verdict of one check, and the figures or expressions it rests on."""

    passed: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A statement of a derivation that the machine decides: `run()` computes both sides and compares them."""

    name: str
    statement: str
    run: Callable[[], CheckOutcome]

    def outcome(self) -> CheckOutcome:
        """Run the check; one that raises has failed, and the detail says how (a report must never hide it)."""
        try:
            return self.run()
        except Exception as error:  # the report shows the failure in place, whatever its kind
            return CheckOutcome(False, f"raised {type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture (SVG that this project drew) with formulas below it, one a line, and a line of prose."""

    svg: str
    latex: tuple[str, ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a derivation: prose, drawings, the equations it arrives at, the checks that hold it up."""

    title: str
    text: str
    equations: tuple[Equation, ...] = ()
    checks: tuple[Check, ...] = ()
    drawings: tuple[Drawing, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A check that was run, with the number and title of the step it belongs to."""

    step: int
    title: str
    check: Check
    outcome: CheckOutcome


def run_checks(steps: tuple[Step, ...]) -> tuple[CheckResult, ...]:
    """Run every check of `steps` once, in order (steps are numbered from 1)."""
    return tuple(
        CheckResult(number, step.title, check, check.outcome())
        for number, step in enumerate(steps, start=1)
        for check in step.checks
    )


@dataclass(frozen=True, slots=True)
class Citation:
    """A source: `key` is its BibTeX key, `authors` are separated by " and ", `where` is the journal or archive."""

    key: str
    authors: str
    title: str
    where: str
    year: int
    url: str = ""

    def bibtex(self) -> str:
        """The entry as BibTeX, one field a line."""
        fields = [("author", self.authors), ("title", f"{{{self.title}}}"), ("journal", self.where)]
        fields += [("year", str(self.year))] + ([("url", self.url)] if self.url else [])
        body = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields)
        return f"@article{{{self.key},\n{body}\n}}"

    def text(self) -> str:
        """The entry as one line of prose."""
        authors = self.authors.replace(" and ", ", ")
        return f"{authors}. {self.title}. {self.where} ({self.year})."


Steps: TypeAlias = "tuple[Step, ...] | Callable[[], tuple[Step, ...]]"
Run: TypeAlias = "Callable[[Settings, RunContext], int | RunResult]"


@dataclass(frozen=True, slots=True)
class Derivation:
    """A worked derivation, found by the registry as the module-level name `DERIVATION`.

    `steps` and `kernels` may be given as functions without arguments, so that importing a derivation costs nothing.
    `run(settings, context)` is what `symtensor run NAME` calls: it returns an exit status or a `RunResult`.
    `summary` is one plain line for lists; `examples` are (what it shows, command line) pairs for `--help`, and
    `outputs` says there what the run leaves behind.
    """

    name: str
    title: str
    statement: str
    assumptions: tuple[str, ...]
    steps: Steps
    kernels: tuple[Kernel, ...] | Callable[[], tuple[Kernel, ...]]
    citations: tuple[Citation, ...]
    options: tuple[Option, ...]
    run: Run
    summary: str = ""
    examples: tuple[tuple[str, str], ...] = ()
    outputs: str = ""

    def resolved_steps(self) -> tuple[Step, ...]:
        """The steps, built now if they were given as a function."""
        return self.steps() if callable(self.steps) else self.steps

    def resolved_kernels(self) -> tuple[Kernel, ...]:
        """The kernels handed to the code generator, built now if they were given as a function."""
        return self.kernels() if callable(self.kernels) else self.kernels

    def document(self, checks: bool = True) -> Document:
        """The derivation alone (statement, assumptions, steps, citations) as a document; runs the checks if asked."""
        from symtensor.derivation.derivation_document import derivation_document

        return derivation_document(self, checks=checks)

    def _repr_html_(self) -> str:
        return self.document(checks=False).fragment()
