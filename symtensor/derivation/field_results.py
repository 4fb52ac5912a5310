"""The values of a run in field theory: approximations beside measured numbers, curves, tables, and all of a finished run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from symtensor.derivation.compare import family_threshold
from symtensor.derivation.model import CheckResult, Derivation, Step
from symtensor.derivation.results import Labelled

if TYPE_CHECKING:
    from symtensor.derivation.document import Document

__all__ = ["Compared", "ComparisonTable", "Curves", "FieldResults", "FieldRun", "Panel", "Points", "Table"]


# -- what is compared ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compared:
    """One number in several approximations beside its value by another route.

    Attributes:
        name, latex: the quantity in plain text and in LaTeX.
        theory: {approximation: value}, the best one last.
        measured, se: the other route; `se` is its standard error, 0 if it is exact.
        truncation: the size of what the best approximation leaves out, such as the next order of the series.
        formula: LaTeX of the best approximation, if it is short.
    """

    name: str
    latex: str
    theory: Mapping[str, float]
    measured: float
    se: float = 0.0
    truncation: float = 0.0
    formula: str = ""

    @property
    def best(self) -> float:
        """The value of the last approximation."""
        return list(self.theory.values())[-1]

    def z(self, approximation: str) -> float:
        """(measured - theory) / standard error; infinite or 0 for an exact number."""
        difference = self.measured - self.theory[approximation]
        if self.se > 0:
            return difference / self.se
        return 0.0 if abs(difference) <= self._rounding else float(np.copysign(np.inf, difference))

    @property
    def _rounding(self) -> float:
        return 1e3 * float(np.finfo(float).eps) * max(abs(self.measured), abs(self.best))

    def agrees(self, threshold: float) -> bool:
        """Whether the best approximation is within `threshold` standard errors and the truncation."""
        return abs(self.measured - self.best) <= threshold * self.se + self.truncation + self._rounding

    def rejected(self, threshold: float) -> list[str]:
        """The approximations that are further away than `threshold` standard errors and the truncation of the best one."""
        allowed = threshold * self.se + self.truncation + self._rounding
        return [name for name, value in self.theory.items() if abs(self.measured - value) > allowed]


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """Rows with the same approximations; `source` is the other route ("simulation", "exact density", ..).

    `caption` may hold inline LaTeX; `title` is the same in plain text for the terminal.
    """

    caption: str
    source: str
    rows: tuple[Compared, ...]
    title: str = ""

    def __post_init__(self) -> None:
        if not self.rows:
            raise ValueError(f"the comparison {self.caption!r} has no rows")
        names = [list(row.theory) for row in self.rows]
        if any(other != names[0] for other in names):
            raise ValueError(f"the rows of {self.caption!r} have different approximations: {names}; use one table for each")

    @property
    def approximations(self) -> list[str]:
        """Their names, the best last."""
        return list(self.rows[0].theory)

    @property
    def exact(self) -> bool:
        """Whether no row has a standard error."""
        return all(row.se == 0 for row in self.rows)

    @property
    def threshold(self) -> float:
        """|z| that the largest of all rows exceeds by chance in one table of twenty (Bonferroni)."""
        return family_threshold(len(self.rows))

    @property
    def failures(self) -> list[Compared]:
        """Rows whose best approximation disagrees."""
        return [row for row in self.rows if not row.agrees(self.threshold)]

    def told_apart(self) -> list[str]:
        """The approximations that at least one row rejects."""
        found = {name for row in self.rows for name in row.rejected(self.threshold)}
        return [name for name in self.approximations if name in found]


# -- what is shown ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Points:
    """Measured points with standard errors (drawn as 2 of them)."""

    x: np.ndarray
    mean: np.ndarray
    se: np.ndarray
    label: str = "simulation ± 2 s.e."


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines {label: (x, y)} and points in one frame; `ylabel` is LaTeX without dollar signs."""

    ylabel: str
    lines: Mapping[str, tuple[Any, Any]]
    points: tuple[Points, ...] = ()
    log: bool = False


@dataclass(frozen=True, slots=True)
class Curves:
    """A figure: panels one above the other with a common horizontal axis, and its caption."""

    caption: str
    xlabel: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the report without measured numbers: cells are text, `Math` or `Cell` (symtensor.derivation.document)."""

    caption: str
    header: tuple[Any, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class FieldResults:
    """What `compute` returns.

    Attributes:
        values: numbers, texts and nested mappings of them for summary.json.
        arrays: curves for results.nc.
        remarks: sentences about the result (inline LaTeX); warnings: what the reader must know first (plain text).
    """

    comparisons: tuple[ComparisonTable, ...] = ()
    figures: tuple[Curves, ...] = ()
    tables: tuple[Table, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Labelled] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class FieldRun:
    """A finished run: what the report is written from."""

    derivation: Derivation
    parameters: Mapping[str, Any]
    steps: tuple[Step, ...]
    checks: tuple[CheckResult, ...]
    results: FieldResults
    module_source: str
    versions: Mapping[str, str]
    timings: Mapping[str, float]
    command: str

    @property
    def warnings(self) -> list[str]:
        """Warnings of the computation, failed checks, and comparisons that fail."""
        found = list(self.results.warnings)
        found += [f"check failed: {r.check.name} ({r.outcome.detail})" for r in self.checks if not r.outcome.passed]
        for table in self.results.comparisons:
            found += [f"{row.name}: {table.approximations[-1]} disagrees with the {table.source}" for row in table.failures]
        return found

    def document(self) -> Document:
        """The report."""
        from symtensor.derivation.field_report import field_document

        return field_document(self)

    def _repr_html_(self) -> str:
        return self.document().fragment()
