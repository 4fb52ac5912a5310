r"""The proposition on definite bounds, executable on quantile functions q_{1-eps}(n) that are given in closed form.

U(M) = {f : M = O(f)} has a smallest element (up to Theta) iff for some eps_0 the quantile q_{1-eps_0} is eventually positive
and q_{1-eps} = O(q_{1-eps_0}) for all eps < eps_0; then q_{1-eps_0} is it. Quantiles depend on a level parameter: eps itself,
or a quantile z of the variable behind M (U = 1 - eps, a normal z). As only ratios matter, the check is on

    log q(z + delta) - log q(z),  delta > 0:  bounded in n for the levels above some z, or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import sympy

from ._input import exact
from .scale import Comparison, Scale, ScaleError, as_scale
from .scale_text import from_sympy

__all__ = ["ByResidue", "MinimalBound", "QuantileError", "QuantileFamily", "Steps", "minimal_bound"]

_DELTA = sympy.Symbol("delta", positive=True)


class QuantileError(ValueError):
    """A quantile function that is not monotone in the level, or whose growth is not decided."""


@dataclass(frozen=True, slots=True)
class QuantileFamily:
    """Quantiles in closed form in a size and a level parameter.

    Attributes:
        name: what the variable is, as text.
        quantile: q as a SymPy expression, positive: ``n**(1 - eps)``, ``exp(sqrt(log(n)) * z)``.
        level: the level parameter.
        size: the size that tends to infinity.
        increasing: whether a larger parameter is a higher quantile (z) or a lower one (eps).

    Raises:
        QuantileError: the level parameter or the size is no symbol.
    """

    name: str
    quantile: sympy.Expr
    level: sympy.Symbol
    size: sympy.Symbol
    increasing: bool = True

    def __post_init__(self) -> None:
        for what in (self.level, self.size):
            if not isinstance(what, sympy.Symbol):
                raise QuantileError(f"{what!r} must be a SymPy symbol")
        if not self.size.is_positive or not self.level.is_real:
            raise QuantileError(f"declare Symbol('{self.size}', positive=True) and Symbol('{self.level}', real=True)")
        quantile = exact(self.quantile, (self.level.name, self.size.name))
        own = {self.level.name: self.level, self.size.name: self.size}
        named = {s: own[s.name] for s in quantile.free_symbols if s.name in own}
        object.__setattr__(self, "quantile", quantile.subs(named))

    def log_ratio(self) -> sympy.Expr:
        """log q at a higher level minus log q at the present one, delta > 0 apart in the level parameter."""
        log = sympy.expand_log(sympy.log(self.quantile), force=True)
        here, there = log, log.subs(self.level, self.level + _DELTA)
        return sympy.expand(there - here if self.increasing else here - there)


@dataclass(frozen=True, slots=True)
class Steps:
    """A law with finitely many quantile scales: ((eps_1, f_1), .., (eps_k, f_k)), q_{1-eps} = f_j for eps_{j-1} < eps < eps_j.

    ``None`` as a scale is a quantile that is eventually 0. A scale may be a `ByResidue`.

    Example:
        >>> minimal_bound(Steps("n or 1, probability 1/2 each", ((0.5, "n"), (1, "1")))).scale
        n
    """

    name: str
    steps: tuple[tuple[float, Any], ...]

    def __post_init__(self) -> None:
        edges = [edge for edge, _ in self.steps]
        if not edges or edges != sorted(set(edges)) or edges[0] <= 0 or edges[-1] != 1:
            raise QuantileError(f"the steps need increasing 0 < eps_1 < .. < eps_k = 1, given {edges}")
        values = tuple((e, f if f is None or isinstance(f, ByResidue) else as_scale(f)) for e, f in self.steps)
        object.__setattr__(self, "steps", values)
        for (_, high), (_, low) in pairwise(values):
            if low is not None and (high is None or not _within(low, high)):
                raise QuantileError(f"{self.name}: the quantile must not grow with eps, given {high} before {low}")


@dataclass(frozen=True, slots=True)
class ByResidue:
    """A sequence with one scale for each residue class of n: f(n) = scales[n mod k].

    Example:
        >>> n, jump = ByResidue(("n", "n")), ByResidue(("n", "n^2"))
        >>> n.within(jump), jump.within(n), n.vanishes_against(jump)
        (True, False, False)
    """

    scales: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", tuple(map(as_scale, self.scales)))

    def _pairs(self, other: Any) -> list[tuple[Scale, Scale]]:
        theirs = other.scales if isinstance(other, ByResidue) else (as_scale(other),)
        period = sympy.ilcm(len(self.scales), len(theirs))
        return [(self.scales[r % len(self.scales)], theirs[r % len(theirs)]) for r in range(int(period))]

    def within(self, other: Any) -> bool:
        """Whether f = O(g)."""
        return all(f.within(g) for f, g in self._pairs(other))

    def vanishes_against(self, other: Any) -> bool:
        """Whether f = o(g)."""
        return all(f.compare(g) is Comparison.LESS for f, g in self._pairs(other))

    def is_minimal_bound(self, of: ByResidue) -> bool:
        """Whether f is a smallest bound of the deterministic positive sequence ``of``: of = O(f) and f = O(of)."""
        return of.within(self) and self.within(of)

    def has_no_smaller_order(self, of: ByResidue) -> bool:
        """Whether ``of`` = O(f) and no g = o(f) bounds ``of``: weaker than minimal, and not unique."""
        return of.within(self) and not of.vanishes_against(self)

    def __str__(self) -> str:
        return " | ".join(map(str, self.scales))


@dataclass(frozen=True, slots=True)
class MinimalBound:
    """Outcome of the proposition: whether a smallest bound exists, its scale, and why."""

    exists: bool
    scale: Any
    why: str


def minimal_bound(law: QuantileFamily | Steps) -> MinimalBound:
    """Decide by the proposition whether U(M) has a smallest element.

    Raises:
        QuantileError: the growth of the quantile ratio is not decided, or the quantiles decrease with the level.

    Example:
        >>> n, eps = sympy.symbols("n eps", positive=True)
        >>> print(minimal_bound(QuantileFamily("n^U", n ** (1 - eps), eps, n, increasing=False)).exists)
        False
    """
    if isinstance(law, Steps):
        return _of_steps(law)
    ratio = law.log_ratio()
    growth = _growth(ratio, law)
    if growth == "bounded":
        return MinimalBound(True, _scale_or_text(law), f"log of the quantile ratio is {ratio}, bounded in {law.size}")
    return MinimalBound(
        False,
        None,
        f"{law.name} has the quantiles {law.quantile}: log of the ratio of two of them is {ratio}, which is unbounded in "
        f"{law.size}, so no quantile bounds the higher ones",
    )


def _of_steps(law: Steps) -> MinimalBound:
    edge, top = law.steps[0]
    if top is None:
        return MinimalBound(False, None, f"{law.name}: P(M != 0) -> 0, every quantile is eventually 0, no f > 0 is smallest")
    return MinimalBound(True, top, f"{law.name}: q_(1-eps) = {top} for all eps < {edge}")


def _growth(ratio: sympy.Expr, law: QuantileFamily) -> str:
    moving, still = [], []
    for term in sympy.Add.make_args(ratio):
        (moving if term.has(law.size) else still).append(term)
    if not moving:
        if sympy.Add(*still).is_negative or _decreases(sympy.Add(*still), law):
            raise QuantileError(f"{law.name}: the quantile {law.quantile} decreases with the level; set increasing")
        return "bounded"
    value = sympy.factor_terms(sympy.Add(*moving))
    limit = _limit(value, law)
    if limit is None and _limit(-value, law) == "oo":
        raise QuantileError(f"{law.name}: the quantile {law.quantile} decreases with the level; set increasing")
    if limit is None:
        raise QuantileError(f"{law.name}: the growth of {value} in {law.size} is not decided; declare the signs of its symbols")
    return "bounded" if limit in ("0", "1") else "unbounded"


def _decreases(ratio: sympy.Expr, law: QuantileFamily) -> bool:
    """Whether the quantile falls somewhere among the high levels (large z, small eps), by values on a grid."""
    if not ratio.free_symbols <= {law.level, _DELTA}:
        return False
    high = [3 + k / 3 for k in range(60)] if law.increasing else [k / 100 for k in range(1, 30)]
    step = 1 / 3 if law.increasing else 1 / 100
    values = [sympy.N(ratio.subs({law.level: z, _DELTA: step})) for z in high]
    return any(value.is_real and value < -1e-9 for value in values)


def _limit(value: sympy.Expr, law: QuantileFamily) -> str | None:
    try:
        found = from_sympy(value, [law.size.name]).limit()
    except ScaleError:
        return None
    return None if found == "undecided" else found


def _scale_or_text(law: QuantileFamily) -> Any:
    try:
        return from_sympy(law.quantile.subs(law.level, 1), [law.size.name])
    except ScaleError:
        return law.quantile


def _within(low: Any, high: Any) -> bool:
    return (low if isinstance(low, ByResidue) else ByResidue((low,))).within(high)
