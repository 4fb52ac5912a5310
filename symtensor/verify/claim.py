"""The claim of a verification: a scale in one size parameter, from text, a `Scale`, or a `Bound`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from symtensor.bounds import Scale, ScaleError, scale
from symtensor.verify.errors import ClaimError
from symtensor.verify.verdict import Kind

__all__ = ["Claim", "read_claim"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A scale f and what is claimed about the norm: O(f), Theta(f), or that f is the definite bound."""

    scale: Scale
    kind: Kind

    @property
    def text(self) -> str:
        """The claim as on paper."""
        return f"definite bound {self.scale}" if self.kind == "definite" else f"{self.kind}({self.scale})"

    def log_values(self, sizes: Sequence[int]) -> NDArray[np.float64]:
        """log f at the sizes, (m,). Raises ClaimError where f is not positive and finite (loglog n at n = 2)."""
        return np.log(np.array([self._value(n) for n in sizes]))

    def _value(self, n: int) -> float:
        try:
            with np.errstate(all="ignore"):
                value = float(self.scale.evaluate(dict.fromkeys(self.scale.sizes, float(n))))
        except ScaleError as error:
            raise ClaimError(f"{self.scale} has no positive value at n = {n} ({error}); start at a larger size") from error
        if not 0 < value < math.inf:
            raise ClaimError(f"{self.scale} is {value:g} at n = {n}, not positive and finite; take sizes where it is")
        return value


def read_claim(claim: Any, kind: str | None = None) -> Claim:
    """The claim from text such as "sqrt(n) log(n)", from a `Scale`, or from a `Bound` (which brings its own kind).

    Raises
    ------
    ScaleError
        A scale outside the group n^a (log n)^b (loglog n)^c; the text names the subterm.
    ClaimError
        Several size parameters, an unknown kind, or a bound of kind o or Omega.

    Examples
    --------
    >>> read_claim("sqrt(n) log(n)").text
    'O(sqrt(n) log n)'
    """
    inner = getattr(claim, "scale", None)
    own = str(getattr(getattr(claim, "kind", None), "value", getattr(claim, "kind", "O")))
    found = inner if isinstance(inner, Scale) else scale(claim)
    wanted = kind or own
    if wanted not in get_args(Kind):
        known = ", ".join(get_args(Kind))
        raise ClaimError(f"a claim of kind {wanted!r} cannot be verified; there are: {known} (o and Omega are not tested)")
    if len(found.sizes) > 1:
        named = ", ".join(found.sizes)
        raise ClaimError(
            f"{found} has several size parameters ({named}); relate or fix them first, e.g. .subs({{{found.sizes[0]!r}: 8}})"
        )
    return Claim(found, wanted)  # pyright: ignore[reportArgumentType]
