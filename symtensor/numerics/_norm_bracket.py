"""The value of a norm computation: two numbers and what they are worth."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
_SHOWN = 10


class NotExactError(ValueError):
    """One number was asked for where only a bracket is known."""


@dataclass(frozen=True, slots=True, repr=False)
class NormBracket:
    """`lower <= norm <= upper`, elementwise over a batch, to rounding.

    Attributes
    ----------
    lower, upper
        `(batch..)`. The lower bound is attained by `vectors`; the upper bound is infinite where none is known.
    status
        `(batch..)` of text: "exact" (the two agree to the tolerance), "bracket" (both known, apart), "lower" (no upper
        bound), "upper" (no lower bound).
    residual
        `(batch..)`, `max_b |M[.., free b, ..] - lower v^b|`: how far the vectors are from a stationary point.
    iterations
        `(batch..)`, applications of the operator (two blocks) or sweeps (three and more); 0 for closed forms.
    vectors
        One array `(batch.., d_block)` of unit vectors per block, slots of a block in row-major order; or None.
    """

    lower: Array
    upper: Array
    status: NDArray[np.str_]
    residual: Array
    iterations: NDArray[np.int64]
    vectors: tuple[Array, ...] | None = None

    @property
    def exact(self) -> NDArray[np.bool_]:
        """`(batch..)`: where the norm is known to the tolerance."""
        return np.asarray(self.status == "exact")

    @property
    def value(self) -> Array:
        """The norm, where all of it is exact.

        Raises
        ------
        NotExactError
            If some item is a bracket: a number for three or more slots never travels without its status.
        """
        if not self.exact.all():
            worst = np.unravel_index(int(np.argmax(~self.exact)), self.exact.shape)
            raise NotExactError(
                f"the norm is known only as {self.lower[worst]:.6g} <= norm <= {self.upper[worst]:.6g} (status "
                f"{self.status[worst]!s}); use .lower and .upper with .status"
            )
        return self.lower

    def __repr__(self) -> str:
        if self.lower.ndim == 0:
            if self.exact:
                return f"NormBracket({self.lower:.10g}, exact)"
            return f"NormBracket({self.lower:.6g} <= norm <= {self.upper:.6g}, {self.status})"
        counts = ", ".join(f"{int((self.status == s).sum())} {s}" for s in sorted(set(self.status.ravel().tolist())))
        return f"NormBracket(batch {self.lower.shape}: {counts})"

    def _repr_html_(self) -> str:
        items = list(np.ndindex(self.lower.shape))
        cells = [(", ".join(map(str, i)), f"{self.lower[i]:.6g}", f"{self.upper[i]:.6g}", self.status[i]) for i in items[:_SHOWN]]
        rows = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells)
        more = f"<p>and {len(items) - _SHOWN} more</p>" if len(items) > _SHOWN else ""
        head = "<tr><th>item</th><th>lower</th><th>upper</th><th>status</th></tr>"
        return f"<div><code>{escape(repr(self))}</code><table>{head}{rows}</table>{more}</div>"


def bracket(
    lower: Any, upper: Any, residual: Any, iterations: Any, vectors: tuple[Any, ...] | None, tolerance: float
) -> NormBracket:
    """Put the status to the numbers."""
    lower, upper = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
    upper = np.maximum(lower, upper)  # equal bounds may cross by rounding
    with np.errstate(invalid="ignore"):
        exact = np.isfinite(upper) & (upper - lower <= tolerance * upper)
    status = np.where(exact, "exact", np.where(np.isfinite(upper), "bracket", "lower"))
    residual = np.broadcast_to(np.asarray(residual, np.float64), lower.shape)
    iterations = np.broadcast_to(np.asarray(iterations, np.int64), lower.shape)
    return NormBracket(lower, upper, np.asarray(status), residual, iterations, vectors)


def reshaped(norm: NormBracket, batch: tuple[int, ...]) -> NormBracket:
    """The flat batch axis as `batch`."""
    vectors = None if norm.vectors is None else tuple(v.reshape((*batch, v.shape[-1])) for v in norm.vectors)
    fields = (np.reshape(getattr(norm, name), batch) for name in ("lower", "upper", "status", "residual", "iterations"))
    return NormBracket(*fields, vectors=vectors)  # type: ignore[arg-type]
