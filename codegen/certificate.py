"""What a certificate says, as values and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Literal

__all__ = ["Cancellation", "CancellationWarning", "Certificate", "Measured", "PointError"]


class CancellationWarning(UserWarning):
    """Emitted code subtracts numbers that are nearly equal, and loses digits that the problem itself does not lose."""


@dataclass(frozen=True, slots=True)
class PointError:
    """One error.

    Attributes
    ----------
    point
        Argument -> value (arrays are named by a description instead).
    found, expected
        As decimal text: what the emitted code gave, and the oracle's 17 leading digits.
    relative
        |found - expected| / |expected|; inf for nan. Of a derivative df/dx, relative to |f| / max(1, |x|) if that is larger.
    condition
        sum_i |x_i d_i f| / |f| of the quantity itself.
    allowed
        The relative error at which this point passes: the larger of the tolerance and 10 eps condition.
    """

    point: Mapping[str, float | str]
    found: str
    expected: str
    relative: float
    condition: float
    allowed: float

    def __str__(self) -> str:
        parts = [f"{name} = {value!r}" if isinstance(value, float) else str(value) for name, value in self.point.items()]
        found = f"{self.found}, right is {self.expected}"
        return f"error {self.relative:.1e} at {', '.join(parts)} (condition {self.condition:.1e}): {found}"


@dataclass(frozen=True, slots=True)
class Measured:
    """All points of one quantity in one type.

    Attributes
    ----------
    quantity
        "kernel.output", or "d kernel.output / d argument".
    dtype
        float32 or float64.
    count
        Points compared.
    worst
        Largest relative error at points that are well conditioned (10 eps condition <= tolerance), if there is one.
    ill_conditioned
        The other points with an error beyond the tolerance: reported, and judged against their condition number.
    failures
        Points whose error is beyond what is allowed there.
    """

    quantity: str
    dtype: str
    tolerance: float
    count: int
    worst: PointError | None
    ill_conditioned: tuple[PointError, ...] = ()
    failures: tuple[PointError, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every point is within what is allowed there."""
        return not self.failures

    @property
    def error(self) -> float:
        """The largest relative error at well-conditioned points."""
        return self.worst.relative if self.worst else 0.0


@dataclass(frozen=True, slots=True)
class Cancellation:
    """A step of the emitted code that loses digits at a point where the problem itself keeps them.

    Attributes
    ----------
    output
        "kernel.output" whose value loses the digits.
    expression
        The step, as text in the arguments.
    digits_lost
        log10 of the factor by which the step multiplies the rounding errors of its operands.
    point
        Where most are lost, of the points that were tried.
    """

    output: str
    expression: str
    digits_lost: float
    point: Mapping[str, float]

    def __str__(self) -> str:
        place = ", ".join(f"{name} = {value:.3g}" for name, value in self.point.items())
        return f"{self.output} loses {self.digits_lost:.1f} digits in {self.expression} at {place}"


@dataclass(frozen=True, slots=True)
class Certificate:
    """Agreement of emitted code with its input, measured.

    Attributes
    ----------
    module
        Name of the module.
    digits
        Digits of the oracle.
    domain
        One line per argument: where the points are from.
    measured
        Values and gradients by quantity and type.
    cancellations
        Steps that lose digits.
    notes
        Points left out and why, limits taken, what was not compared.
    """

    module: str
    digits: int
    domain: tuple[str, ...]
    measured: tuple[Measured, ...]
    cancellations: tuple[Cancellation, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every value and gradient is within what is allowed at its point."""
        return all(part.passed for part in self.measured)

    def worst(self, dtype: Literal["float64", "float32"] = "float64", gradients: bool = False) -> Measured | None:
        """The value (or gradient) with the largest error at well-conditioned points, or one that failed."""
        parts = [part for part in self.measured if part.dtype == dtype and part.quantity.startswith("d ") == gradients]
        return max(parts, key=lambda part: (not part.passed, part.error), default=None)

    def __str__(self) -> str:
        lines = [f"certificate of {self.module}: {'passed' if self.passed else 'FAILED'} against {self.digits} digits"]
        lines += [f"  domain: {line}" for line in self.domain]
        for name, dtype, points, error, verdict in self._rows():
            lines.append(f"  {name:<40} {dtype}  {points:>4} points  worst {error:>8}  {verdict}")
        for part in self.measured:
            lines += [f"  FAILED {part.quantity} in {part.dtype}: {failure}" for failure in part.failures[:3]]
            if part.ill_conditioned:
                largest = max(part.ill_conditioned, key=lambda point: point.relative)
                count = len(part.ill_conditioned)
                where = f"{part.quantity} in {part.dtype} at {count} point{'s' * (count > 1)}"
                lines.append(f"  ill-conditioned: {where}, largest {largest}")
        lines += [f"  cancellation: {item}" for item in self.cancellations]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def _rows(self) -> list[tuple[str, str, int, str, str]]:
        return [
            (part.quantity, part.dtype, part.count, f"{part.error:.1e}", "ok" if part.passed else f"{len(part.failures)} failures")
            for part in self.measured
        ]

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in ("quantity", "type", "points", "worst relative error", ""))
        rows = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in self._rows())
        others = "".join(f"<li>{escape(str(item))}</li>" for item in (*self.cancellations, *self.notes))
        verdict = "passed" if self.passed else "FAILED"
        return f"<table><caption>{escape(self.module)}: {verdict}</caption><tr>{head}</tr>{rows}</table><ul>{others}</ul>"

    def _repr_pretty_(self, printer: object, cycle: bool) -> None:
        printer.text(str(self))  # type: ignore[attr-defined]
