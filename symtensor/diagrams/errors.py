"""What can be wrong with a model, a request or a diagram, each with its own name."""

from __future__ import annotations

__all__ = ["DiagramError", "IncompleteError", "InfiniteRequestError", "ModelError", "RequestError"]


class ModelError(ValueError):
    """A model that no diagram can be drawn from: unknown field, missing propagator, refused statistics."""


class RequestError(ValueError):
    """A request that cannot be answered as it stands: loops below the minimum, duplicate labels, unknown class."""


class InfiniteRequestError(RequestError):
    """Infinitely many diagrams answer the request; the message names the vertices whose number nothing bounds."""


class DiagramError(ValueError):
    """Lines and nodes that are no diagram of the model."""


class IncompleteError(ArithmeticError):
    """An enumeration that disagrees with its generating function: a diagram missing, extra, or with a wrong factor."""
