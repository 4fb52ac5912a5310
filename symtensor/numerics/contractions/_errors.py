"""The error of this package that is not one of smoothness."""

from __future__ import annotations

__all__ = ["ContractionError"]


class ContractionError(ValueError):
    """Contractions cannot be computed from what was given."""
