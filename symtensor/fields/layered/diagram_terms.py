r"""Cumulants of the empirical kernels of a layered network as sums of diagrams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from html import escape
from itertools import groupby

from symtensor.diagrams import enumerate_diagrams
from symtensor.fields.layered.errors import LayeredError
from symtensor.fields.layered.term import LayeredTerm

__all__ = ["LayeredSum", "cumulant_terms"]

#: diagrams drawn in a notebook, and written in one formula
SHOWN = 60
#: more diagrams than this are refused
MOST = 5000
_GRID = "display:grid;grid-template-columns:repeat(auto-fill,minmax(18em,1fr));gap:1em"
_CARD = "margin:0;padding:.6em;border:1px solid #ddd;border-radius:4px;text-align:center"
_NAMES = {1: "mean", 2: "covariance", 3: "third cumulant"}


@dataclass(frozen=True)
class LayeredSum:
    """All diagrams of one cumulant with a number of loops; iterate it for the terms.

    >>> loop = cumulant_terms(1, 1)
    >>> len(loop), loop.weight, [term.vertices for term in loop]
    (2, Fraction(3, 2), [((2, 1),), ((1, 2),)])
    """

    legs: int
    loops: int
    keep: Callable[[LayeredTerm], bool] | None = None

    @cached_property
    def terms(self) -> tuple[LayeredTerm, ...]:
        """The terms, vertices with most derivatives first."""
        found = (LayeredTerm(diagram) for diagram in enumerate_diagrams("layered-network", f"s:{self.legs}", self.loops))
        return tuple(term for term in found if self.keep is None or self.keep(term))

    def __iter__(self) -> Iterator[LayeredTerm]:
        return iter(self.terms)

    def __len__(self) -> int:
        return len(self.terms)

    def __getitem__(self, place: int) -> LayeredTerm:
        return self.terms[place]

    @property
    def order(self) -> int:
        """The power of 1/n."""
        return self.legs - 1 + self.loops

    @property
    def weight(self) -> Fraction:
        """The sum of the weights 1/|Aut|."""
        return sum((Fraction(1, term.symmetry_factor) for term in self), Fraction(0))

    def where(self, keep: Callable[[LayeredTerm], bool]) -> LayeredSum:
        """The terms for which a predicate holds (for diagnosis: the sum is no longer the cumulant)."""
        before = self.keep
        return LayeredSum(self.legs, self.loops, keep if before is None else lambda term: before(term) and keep(term))

    def by_vertices(self) -> dict[tuple[tuple[int, int], ...], tuple[LayeredTerm, ...]]:
        """The terms grouped by their vertices (p, q)."""

        def key(term: LayeredTerm) -> tuple[tuple[int, int], ...]:
            return tuple(sorted(term.vertices, reverse=True))

        return {vertices: tuple(group) for vertices, group in groupby(sorted(self, key=key, reverse=True), key=key)}

    @property
    def title(self) -> str:
        """What is summed."""
        name = _NAMES.get(self.legs, f"cumulant of {self.legs} kernels")
        loops = "1 loop" if self.loops == 1 else f"{self.loops} loops"
        return f"{name} at order 1/n^{self.order}, {loops}: {len(self)} diagrams, sum of weights {self.weight}"

    def latex(self) -> str:
        """The coefficient of n^{-order} as a sum of terms."""
        shown = [term.latex() for term in self.terms[:SHOWN]]
        return " + ".join([*shown, r"\dots"] if len(self) > SHOWN else shown) or "0"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def _repr_html_(self) -> str:
        parts = [f"<div><p><b>{escape(self.title)}</b></p>"]
        shown = 0
        for vertices, terms in self.by_vertices().items():
            cards = [_card(term) for term in terms if (shown := shown + 1) <= SHOWN]
            names = ", ".join(f"({p}, {q})" for p, q in vertices) or "no vertex"
            parts.append(f"<p>vertices {names}: {len(terms)}</p>")
            parts.append(f'<div style="{_GRID}">{"".join(cards)}</div>')
        if shown > SHOWN:
            parts.append(f"<p>The first {SHOWN} of {shown} diagrams are drawn.</p>")
        return "".join(parts) + "</div>"

    def __repr__(self) -> str:
        return f"<LayeredSum {self.title}>"


def _card(term: LayeredTerm) -> str:
    caption = f"$\\displaystyle {term.latex()}$"
    return f'<figure style="{_CARD}">{term.diagram.to_svg()}<figcaption>{caption}</figcaption></figure>'


def cumulant_terms(legs: int, loops: int) -> LayeredSum:
    """The diagrams of the joint cumulant of `legs` components (1: mean, 2: covariance, 3: third cumulant) with `loops` loops.

    Their sum is the coefficient of n^{-(legs - 1) - loops}. A diagram is left out if some nonempty set of its vertices has no
    response line leaving it; then it vanishes.

    Raises
    ------
    LayeredError
        A number that is no positive integer, or more diagrams than can be handled (stating how many).

    Examples
    --------
    >>> [len(cumulant_terms(*each)) for each in ((1, 1), (2, 1), (3, 0), (1, 2))]
    [2, 24, 7, 38]
    """
    for name, value, least in (("legs", legs, 1), ("loops", loops, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise LayeredError(f"{name}={value!r}: an integer >= {least} is required")
    if legs + 2 * loops > 6:  # the first case beyond, V_4 at two loops, has 1144 diagrams: it is counted before it is built
        number = enumerate_diagrams("layered-network", f"s:{legs}", loops).count()
        if number > MOST:
            raise LayeredError(f"legs={legs}, loops={loops}: {number:,} diagrams, more than {MOST:,}; ask for fewer loops")
    return LayeredSum(legs, loops)
