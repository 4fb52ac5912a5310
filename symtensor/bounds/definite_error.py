"""The refusal to call a bound definite."""

from __future__ import annotations

__all__ = ["NoDefiniteBoundError"]


class NoDefiniteBoundError(ValueError):
    """No definite bound exists, or none is proved by the three constructors; ``reason`` names why.

    Attributes:
        reason: a short name: ``"no minimal bound"``, ``"P(M != 0) -> 0"``, ``"cluster rule"``, ``"norm"``, ``"degree"``, ..
    """

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason
