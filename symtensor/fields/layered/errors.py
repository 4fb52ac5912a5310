"""What can be wrong with a layered network or with what is asked of it."""

from __future__ import annotations

from symtensor.fields.errors import TheoryError

__all__ = ["LayeredError", "LayeredMemoryError", "NetworkError"]


class LayeredError(TheoryError):
    """A request that the expansion of a layered network cannot meet."""


class NetworkError(LayeredError):
    """A network that cannot be set up as it is given; the message names the parameter."""


class LayeredMemoryError(LayeredError):
    """An expansion that needs more memory than allowed; the message states the need."""
