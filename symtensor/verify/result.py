"""What a verification found: a verdict that never stands alone, with everything it depends on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from symtensor.bounds import scale
from symtensor.verify.errors import VerificationError
from symtensor.verify.verdict import Kind, Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from symtensor.bounds.value import Bound

__all__ = ["Jump", "LevelResult", "RefusedLevel", "Verification"]


@dataclass(frozen=True, slots=True)
class LevelResult:
    """One quantile level: slope of log(q_p / f) against log n, and what speaks against reading it as a power.

    Attributes
    ----------
    level, side : p, and whether the values are the norm or a lower or upper bound of it.
    slope, se, low, high : upper half of the sizes; the interval at 1 - alpha / levels.
    dof : degrees of freedom of se, infinite (normal interval) unless the sizes scatter by more than the sampling errors.
    curvature, curvature_se : second derivative in log n of a quadratic through all sizes.
    extrapolated : slope of the quadratic at 4 n_max.
    chi2_dof, rms, irregular : its lack of fit; irregular means that no smooth curve describes the sizes.
    log_ratio, errors : log(q_p(n) / f(n)) and its standard error at every size.
    """

    level: float
    side: Status
    slope: float
    se: float
    dof: float
    low: float
    high: float
    curvature: float
    curvature_se: float
    extrapolated: float
    chi2_dof: float
    rms: float
    irregular: bool
    log_ratio: tuple[float, ...]
    errors: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RefusedLevel:
    """A level that the samples cannot support, and why."""

    level: float
    reason: str


@dataclass(frozen=True, slots=True)
class Jump:
    """q99/q50 changes by `factor` between the neighbouring sizes `before` and `after`."""

    before: int
    after: int
    factor: float


@dataclass(frozen=True, slots=True)
class Verification:
    """The verdict on a claimed bound, valid only together with its levels, range, tolerance and error probability.

    Attributes
    ----------
    verdict : consistent, not tight, violated, or inconclusive.
    claim, scale, kind, label : what was claimed, of which norm.
    levels : results by level (and by side, for brackets); refused : levels that were not used.
    level_dependent : slopes at q50 and q90 differ: no definite bound is visible.
    jumps : sizes at which q99/q50 jumps, a sign of corrupted samples.
    delta, delta0 : tolerated slope, and the slope above which nothing is called consistent.
    alpha, look_alpha : total error probability, and the share of the look that decided.
    sizes, samples : sizes n and samples per size; looks : samples per size at the looks made.
    norm_status : exact, lower, upper, or bracket. seed : every block's seed follows from it.
    reasons, what_would_change_it, blind_spots, warnings : texts of the report.
    resumed : norms taken over from a store (does not count in comparisons).
    """

    verdict: str
    claim: str
    scale: str
    kind: Kind
    label: str
    levels: tuple[LevelResult, ...]
    refused: tuple[RefusedLevel, ...]
    level_dependent: bool
    jumps: tuple[Jump, ...]
    delta: float
    delta0: float
    alpha: float
    look_alpha: float
    sizes: tuple[int, ...]
    samples: tuple[int, ...]
    looks: tuple[int, ...]
    norm_status: str
    seed: int | None
    reasons: tuple[str, ...]
    what_would_change_it: tuple[str, ...]
    blind_spots: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    resumed: int = field(default=0, compare=False)

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest size: the verdict says nothing outside."""
        return self.sizes[0], self.sizes[-1]

    @property
    def no_definite_bound_visible(self) -> bool:
        """True if the quantiles grow at different rates."""
        return self.level_dependent

    @property
    def headline(self) -> str:
        """The verdict with all it depends on, in one line."""
        used = max((found.level for found in self.levels), default=None)
        levels = "no level" if used is None else f"levels p <= {used:g}"
        low, high = self.range
        modulo = f" (mod n^{self.delta:.3f})" if self.verdict == "consistent" else ""
        return f"{self.verdict}{modulo} @ ({levels}, n in [{low}, {high}], tolerance n^{self.delta:.3f}, alpha = {self.alpha:g})"

    def bound(self) -> Bound:
        """A consistent verdict as an O in probability for the algebra of bounds; its provenance says it was measured.

        Never more: a Theta from finitely many n is no proof of a definite bound.

        Raises
        ------
        VerificationError
            For any other verdict: it supports no bound.
        """
        from symtensor.bounds.value import Bound

        if self.verdict != "consistent":
            raise VerificationError(f"the verdict is {self.verdict}, which supports no bound; see what_would_change_it")
        status = "exact" if self.norm_status == "exact" else "upper"
        return Bound(scale(self.scale), norm_status=status, provenance=f"measured: {self.headline}")

    def text(self) -> str:
        """The report as plain text."""
        from symtensor.verify.report import text

        return text(self)

    def markdown(self) -> str:
        """The report as Markdown."""
        from symtensor.verify.report import markdown

        return markdown(self)

    def html(self, figure: bool = True) -> str:
        """The report as an HTML fragment, with the plot as SVG inside if `figure` (imports matplotlib)."""
        from symtensor.verify.report import html

        return html(self, figure)

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        from symtensor.verify.report import to_dict

        return to_dict(self)

    def plot(self) -> Figure:
        """Log-log plot of the quantiles over f with bands of one interval, slopes drawn (imports matplotlib)."""
        from symtensor.verify.plot import figure

        return figure(self)

    def svg(self) -> str:
        """The plot as an SVG element, the same bytes each time."""
        from symtensor.verify.plot import figure_svg

        return figure_svg(self.plot())

    def _repr_html_(self) -> str:
        return self.html()

    def __str__(self) -> str:
        return self.text()
