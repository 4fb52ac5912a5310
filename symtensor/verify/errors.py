"""Errors and warnings of the verification. Every text says what was given, what is required, and the likely fix."""

from __future__ import annotations

__all__ = [
    "ClaimError",
    "DataError",
    "DataWarning",
    "SamplerError",
    "SizesError",
    "StoreError",
    "StructuredGridWarning",
    "VerificationError",
]


class VerificationError(ValueError):
    """A verification cannot be made from what was given."""


class SizesError(VerificationError):
    """The sizes are too few, not positive integers, or not distinct."""


class ClaimError(VerificationError):
    """The claimed scale cannot be compared with the data: several size parameters, or not positive at a size."""


class SamplerError(VerificationError):
    """A sampler returned something that is not an array of norms, or ignores its seed."""


class DataError(VerificationError):
    """A table of sizes and values cannot be used; the text names the line."""


class StoreError(VerificationError):
    """A stored verification cannot be continued: unreadable, or it belongs to other parameters."""


class StructuredGridWarning(UserWarning):
    """The sizes share a common divisor: the verdict is blind to all other sizes (rule R17)."""


class DataWarning(UserWarning):
    """The data can be used, but something about them limits the verdict."""
