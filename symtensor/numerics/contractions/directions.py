"""Along what the d slots of a derivative contraction are contracted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from symtensor.numerics.contractions._errors import ContractionError

__all__ = ["Direction", "along", "gradient_at", "mixed_gradients", "same_input", "training_direction"]

Kind = Literal["same", "points", "mixed", "training", "vector"]


@dataclass(frozen=True, slots=True, eq=False)
class Direction:
    """A rule for the vectors in the d slots; made by the functions of this module."""

    kind: Kind
    points: Any = ()
    residuals: Any = None
    vector: Any = None
    label: str = ""


def same_input() -> Direction:
    """All d slots hold grad F at the input itself: `C_{D,d}` of one input."""
    return Direction("same", label="grad F at the same input")


def gradient_at(points: Any) -> Direction:
    """All d slots hold grad F(x'), for every x' of `points` (M, ..): the result has an axis of M behind the inputs.

    `C_{0,1}` is then the tangent kernel Theta(x, x').
    """
    return Direction("points", points=_points(points), label="grad F at other inputs")


def mixed_gradients(points: Any) -> Direction:
    """The slots hold grad F(x_1), grad F(x_2), .., one for each of the `points` in order; d slots take the first d."""
    return Direction("mixed", points=_points(points), label="grad F at different inputs, one for each slot")


def training_direction(inputs: Any, residuals: Any) -> Direction:
    """All d slots hold `sum_x r_x grad F(x)`, the direction of gradient descent: inputs (M, ..), residuals (M,) or (M, K).

    With K outputs and residuals (M, K) the outputs are weighted by the residuals; with (M,) the output of `output=` is taken.
    """
    points, weights = _points(inputs), np.asarray(residuals)
    if weights.dtype.kind not in "fiu" or weights.ndim not in (1, 2) or len(weights) != len(points):
        raise ContractionError(
            f"residuals have shape {weights.shape} for {len(points)} inputs; required: real numbers of shape "
            f"({len(points)},), or ({len(points)}, K) for K outputs"
        )
    if not np.isfinite(weights).all():
        raise ContractionError(f"residuals{np.argwhere(~np.isfinite(weights))[0].tolist()} is not finite")
    if not weights.any():
        raise ContractionError("all residuals are zero: there is no direction; give residuals C'(F, y) of a model not yet fitted")
    return Direction("training", points=points, residuals=weights.astype(np.float64), label="sum_x r_x grad F(x)")


def along(vector: Any) -> Direction:
    """All d slots hold this vector, a pytree with the structure of theta."""
    return Direction("vector", vector=vector, label="a given vector")


def _points(points: Any) -> Any:
    array = np.asarray(points)
    if array.dtype.kind not in "fiub" or array.ndim < 1 or not len(array):
        raise ContractionError(
            f"points have shape {array.shape} and type {array.dtype}; required: an array of numbers whose first axis counts inputs"
        )
    if not np.isfinite(array).all():
        raise ContractionError(f"points{np.argwhere(~np.isfinite(array))[0].tolist()} is not finite")
    return array.astype(np.float64) if array.dtype.kind == "f" else array
