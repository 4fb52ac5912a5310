"""What can be wrong with an action, an equation, its stationary point or a model file, each with its own name."""

from __future__ import annotations

__all__ = ["PointError", "SourceError", "TheoryError", "UnstableError", "ZeroModeError"]


class TheoryError(ValueError):
    """A theory that cannot be set up as it is given; the subclasses say which step failed."""


class SourceError(TheoryError):
    """Text or expressions that are no action or equation: unknown name, clash of names, a term without dt or dW."""


class PointError(TheoryError):
    """No stationary point, several of them, or a given point that is not stationary; the message names the residual."""


class ZeroModeError(PointError):
    """The quadratic form (or the linearised drift) has no inverse at the point; the message names the direction."""


class UnstableError(PointError):
    """The quadratic form or the linearised drift is unstable at the point; the message names the eigenvalue."""
