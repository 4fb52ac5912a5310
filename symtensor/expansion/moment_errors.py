"""What can be wrong with a question about moments; each message says what was given, what is required and a likely fix."""

from __future__ import annotations

__all__ = ["CovarianceError", "GradingError", "MomentError", "NotPolynomialError"]


class MomentError(ValueError):
    """A question about moments or cumulants that has no answer as it stands: wrong powers, missing moments, too much work."""


class CovarianceError(MomentError):
    """A covariance or mean that is incomplete, not symmetric or not finite."""


class NotPolynomialError(MomentError):
    """A function that is not a polynomial in its variables; the message names the part at fault."""


class GradingError(MomentError):
    """Couplings and orders that do not make a perturbation series finite."""
