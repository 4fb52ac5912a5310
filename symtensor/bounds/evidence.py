"""What a definite bound may rest on: a limit law (a), or a Gaussian polynomial of fixed degree (c); Theta (b) is a `Bound`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

from ._input import exact
from .definite_error import NoDefiniteBoundError
from .gaussian_tails import DegreeError, check_degree
from .quantiles import Steps
from .scale import Comparison, Scale, as_scale
from .scale_text import from_sympy, scale

__all__ = ["DiscreteLaw", "GaussianPolynomial", "LimitLaw"]

#: norms whose square is a polynomial: the absolute value, the Euclidean and the Frobenius norm
POLYNOMIAL_NORMS = ("absolute", "euclidean", "frobenius")


@dataclass(frozen=True, slots=True)
class LimitLaw:
    """||M||/f converges in law to X with P(X > 0) > 0: constructor (a).

    Attributes:
        scale: f.
        positive: P(X > 0).
        statement: the theorem, as text: ``"CLT"``, ``"Tracy-Widom"``.

    Raises:
        NoDefiniteBoundError: P(X > 0) = 0: the limit is 0 and f is too large.
        ValueError: no probability.

    Example:
        >>> LimitLaw("sqrt(n)", 1, "norm of a Gaussian vector / sqrt(n) -> 1").two_sided
        True
    """

    scale: Any
    positive: Any
    statement: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_scale(self.scale))
        value = exact(self.positive)
        object.__setattr__(self, "positive", value)
        if value == 0:
            raise NoDefiniteBoundError(
                f"'{self.statement}': the limit of ||M|| / ({self.scale}) is 0, so the scale is too large; a limit law needs "
                "P(X > 0) > 0",
                "zero limit",
            )
        if not (value.is_number and value.is_positive and value <= 1):
            raise ValueError(f"P(X > 0) is a number in (0, 1], given {self.positive}")

    @property
    def two_sided(self) -> bool:
        """Whether Theta follows too: P(X > 0) = 1."""
        return self.positive == 1


@dataclass(frozen=True, slots=True)
class DiscreteLaw:
    """M takes the value f_j(n) with a fixed probability p_j; ``None`` stands for the value 0.

    Example:
        >>> law = DiscreteLaw((("n", 0.5), ("1", 0.5)))
        >>> law.limit_law().scale, law.limit_law().two_sided, law.steps().steps
        (n, False, ((1/2, n), (1, 1)))
    """

    values: tuple[tuple[Any, Any], ...]

    def __post_init__(self) -> None:
        pairs = tuple((None if f is None else as_scale(f), exact(p)) for f, p in self.values)
        if any(not p.is_positive for _, p in pairs) or sum(p for _, p in pairs) != 1:
            raise ValueError(f"the probabilities are positive and add up to 1, given {[str(p) for _, p in pairs]}")
        object.__setattr__(self, "values", pairs)
        self.sorted()

    def sorted(self) -> list[tuple[Scale | None, sympy.Rational]]:
        """The values, largest first."""
        kept: list[tuple[Scale | None, sympy.Rational]] = []
        for item in self.values:
            kept.insert(sum(not _larger(item[0], other) for other, _ in kept), item)
        return kept

    def steps(self) -> Steps:
        """The quantile function q_{1-eps}."""
        edge, steps = sympy.S.Zero, []
        for value, probability in self.sorted():
            edge += probability
            steps.append((edge, value))
        return Steps(" or ".join(f"{'0' if f is None else f} (probability {p})" for f, p in self.values), tuple(steps))

    def limit_law(self) -> LimitLaw:
        """M / (largest value) converges in law to an indicator."""
        top = self.sorted()[0][0]
        if top is None:
            raise NoDefiniteBoundError("M = 0 with probability 1: every f > 0 is a bound and none is smallest", "P(M != 0) -> 0")
        positive = sum(p for f, p in self.values if f is not None and f.compare(top) is Comparison.EQUAL)
        return LimitLaw(top, positive, f"M / ({top}) converges in law to an indicator of probability {positive}")


@dataclass(frozen=True, slots=True)
class GaussianPolynomial:
    """A polynomial of fixed degree in independent Gaussians with its exact second moment: constructor (c), rule R8c.

    Attributes:
        degree: the degree, one integer for all sizes.
        second_moment: E ||M||^2 as a positive rational function of the sizes (text or SymPy), or a scale.
        norm: ``"absolute"``, ``"euclidean"`` or ``"frobenius"``: those whose square is a polynomial.
        sizes: names of the sizes that tend to infinity; by default all positive symbols.

    Raises:
        NoDefiniteBoundError: a degree that depends on the sizes, a spectral or injective norm, or M = 0.
    """

    degree: Any
    second_moment: Any
    norm: str = "absolute"
    sizes: Any = None

    def __post_init__(self) -> None:
        if self.norm not in POLYNOMIAL_NORMS:
            raise NoDefiniteBoundError(
                f"R8c is about norms whose square is a polynomial ({', '.join(POLYNOMIAL_NORMS)}), not about the {self.norm} norm: "
                "E ||M||_F^2 is not its size; use moments E tr (M M^T)^k with k ~ log n, or a limit law",
                "norm",
            )
        try:
            check_degree(self.degree)
        except DegreeError as error:
            raise NoDefiniteBoundError(f"{error}; a network of depth about log n is such a polynomial", "degree") from error
        if self.second_moment == 0:
            raise NoDefiniteBoundError("E M^2 = 0: M vanishes, every f > 0 is a bound and none is smallest", "P(M != 0) -> 0")

    @property
    def scale(self) -> Scale:
        """sqrt(E ||M||^2)."""
        value = self.second_moment
        if isinstance(value, sympy.Expr) and self.sizes is not None:
            top, bottom = sympy.fraction(sympy.together(value))
            return (from_sympy(sympy.expand(top), self.sizes) / from_sympy(sympy.expand(bottom), self.sizes)) ** sympy.S.Half
        return as_scale(scale(value) if isinstance(value, str | sympy.Expr) else value) ** sympy.S.Half


def _larger(first: Scale | None, second: Scale | None) -> bool:
    """Whether the first value is of larger order; refuses what is not decided."""
    if first is None or second is None:
        return second is None and first is not None
    found = first.compare(second)
    if found is Comparison.UNDECIDED:
        raise ValueError(f"{first} and {second} are not comparable: relate the sizes first")
    return found is Comparison.GREATER
