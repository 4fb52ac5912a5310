r"""A cumulant or vertex function as a sum of diagrams: iterate it, add it up, write it, draw it, compile it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor.diagrams import DiagramSet, enumerate_diagrams
from symtensor.diagrams.size import lower_bound
from symtensor.fields.errors import TheoryError
from symtensor.fields.exponential_sum import ExponentialSum
from symtensor.fields.frequencies import frequency
from symtensor.fields.legs import Legs
from symtensor.fields.term import Term, expression, tidy

if TYPE_CHECKING:
    from symtensor.fields.field_theory import FieldTheory

__all__ = ["DiagramSum"]

#: more diagrams than this are refused
MOST = 20_000
FEWER = "ask for fewer loops, or count them with symtensor.diagrams.enumerate_diagrams(theory.model(..), ..)"


@dataclass(frozen=True, eq=False)
class DiagramSum:
    """All diagrams of one function of a theory up to a number of loops, with their values.

    kind: ``"connected"`` (a cumulant; legs are source points) or ``"1pi"`` (a vertex function; legs are amputated).

    >>> from symtensor.fields import FieldTheory
    >>> shift = FieldTheory.static("x^2/2 - g*x^3/6", "x").cumulant("x", loops=2)
    >>> shift.at(1).expr, [term.symmetry_factor for term in shift.at(1)]
    (g/2, [2])
    """

    theory: FieldTheory
    legs: Legs
    loops: int
    kind: str
    lowest: int = 0
    keep: Callable[[Term], bool] | None = None
    label: str = ""
    _terms: dict[int, tuple[Term, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, theory: FieldTheory, legs: Any, loops: int, kind: str, times: Sequence[Any] | str | None) -> DiagramSum:
        """Check the request; nothing is enumerated yet. Raises TheoryError naming what cannot be met."""
        if isinstance(loops, bool) or not isinstance(loops, int) or loops < 0:
            raise TheoryError(f"loops={loops!r}: the number of loops is an integer, 0 or more")
        asked = cls(theory, Legs.read(theory, legs, times, kind == "1pi"), loops, kind)
        weight = lower_bound(asked.diagrams(loops).request)
        if weight is not None and weight > MOST:
            raise TheoryError(f"at least {int(weight):,} diagrams with {loops} loops, more than {MOST:,}; {FEWER}")
        return asked

    # -- terms ---------------------------------------------------------------------------------------------------------

    @property
    def valence(self) -> int:
        """The largest valence a vertex can have in these diagrams."""
        return max(len(self.legs.names) + 2 * self.loops, 3)

    def diagrams(self, loops: int) -> DiagramSet:
        """The diagrams with a given number of loops, before values are given to them."""
        return enumerate_diagrams(self.theory.model(self.valence), self.legs.diagram_legs(self.theory), loops, kind=self.kind)

    def count(self) -> dict[int, int]:
        """Number of diagrams by loops, by enumeration without building them."""
        return {loops: self.diagrams(loops).count() for loops in range(self.lowest, self.loops + 1)}

    def __iter__(self) -> Iterator[Term]:
        for loops in range(self.lowest, self.loops + 1):
            yield from self._at(loops)

    def __len__(self) -> int:
        return sum(len(self._at(loops)) for loops in range(self.lowest, self.loops + 1))

    def _at(self, loops: int) -> tuple[Term, ...]:
        if loops not in self._terms:
            asked = self.diagrams(loops)
            number = asked.count()
            if number > MOST:
                raise TheoryError(f"{number:,} diagrams with {loops} loops, more than {MOST:,}; {FEWER}")
            terms = (Term(self.theory, self.legs, diagram, self.valence) for diagram in asked)
            self._terms[loops] = tuple(t for t in terms if (self.keep is None or self.keep(t)) and not t.value.is_zero)
        return self._terms[loops]

    def at(self, loops: int) -> DiagramSum:
        """The part with exactly this number of loops."""
        if not self.lowest <= loops <= self.loops:
            raise TheoryError(f"{loops} loops are not in this sum, which has {self.lowest} to {self.loops}; ask for more loops")
        return DiagramSum(self.theory, self.legs, loops, self.kind, loops, self.keep, self.label, {loops: self._at(loops)})

    def by_order(self) -> dict[int, DiagramSum]:
        """The parts by number of loops."""
        return {loops: self.at(loops) for loops in range(self.lowest, self.loops + 1)}

    def where(self, keep: Callable[[Term], bool], label: str = "selected") -> DiagramSum:
        """The terms for which a predicate holds."""
        before = self.keep
        both = keep if before is None else lambda term: before(term) and keep(term)
        return DiagramSum(self.theory, self.legs, self.loops, self.kind, self.lowest, both, label)

    def tadpoles(self) -> DiagramSum:
        """The terms with a part without legs that hangs on one line; of a mean, the whole shift from the saddle."""
        if len(self.legs.names) == 1:
            return self.where(lambda term: term.loops > 0, "tadpoles")
        return self.where(lambda term: bool(term.diagram.tadpoles), "with tadpoles")

    def one_particle_irreducible(self) -> DiagramSum:
        """The terms whose diagram stays connected when any internal line is cut."""
        return self.where(lambda term: term.diagram.is_1pi, "one-particle irreducible")

    # -- values --------------------------------------------------------------------------------------------------------

    @cached_property
    def value(self) -> ExponentialSum:
        """The sum of all terms as exponentials in the differences of the external times; contact terms left out."""
        windows = len(self.legs.windows)
        total = ExponentialSum.total([term.value for term in self if not term.contact], windows)
        return total.map(self.theory.elements(self.valence).canonical)

    @cached_property
    def contact(self) -> sp.Expr:
        """The factor of delta(t) in a vertex function of several times."""
        return tidy(self.theory.elements(self.valence).canonical(sp.Add(*(term.value.value for term in self if term.contact))))

    @cached_property
    def saddle(self) -> sp.Expr:
        """The value of the field at the saddle, which a mean starts from; zero for other functions."""
        one = self.kind == "connected" and len(self.legs.names) == 1 and self.lowest == 0 and self.keep is None
        component = self.legs.components[0]
        return sp.sympify(self.theory.saddle[component]) if one and component < len(self.theory.fields) else sp.S.Zero

    @cached_property
    def expr(self) -> sp.Expr:
        """The sum in closed form; for one leg it starts with the saddle."""
        total = self.saddle + expression(self.value, self.legs)
        return total + self.contact * sp.Mul(*(sp.DiracDelta(w) for w in self.legs.windows))

    def frequency(self, omega: Any = None) -> sp.Expr:
        """The Fourier transform int dt exp(i omega t) f(t) of a function of two legs, over both signs of t."""
        if len(self.legs.moments) != 2:
            raise TheoryError(f"the Fourier transform is of a function of two times, not of <{self.legs}>")
        w = frequency(omega, self.theory.parameters)
        later = self.value.fourier(w)
        swapped = self._swapped().value.fourier(-w)
        return later + swapped + self.contact

    def _swapped(self) -> DiagramSum:
        """The same function with the other leg later."""
        legs = Legs(self.legs.names[::-1], self.legs.components[::-1], self.legs.groups, self.legs.moments)
        return DiagramSum(self.theory, legs, self.loops, self.kind, self.lowest, self.keep, self.label)

    def dyson(self) -> Any:
        """The resummed two-point function; see `symtensor.fields.dyson.Dyson`."""
        from symtensor.fields.dyson import Dyson

        return Dyson.of(self)

    def effective_action(self, degree: int = 4) -> Any:
        """The effective action of the theory to the loops of this sum; see `symtensor.fields.effective`."""
        return self.theory.effective_action(self.loops, degree)

    def verify(self) -> Any:
        """Check every order against a route without diagrams; see `symtensor.fields.verification.verify`."""
        from symtensor.fields.verification import verify

        return verify(self)

    def compile(self, **options: Any) -> Any:
        """A jitted, differentiable JAX function of the times and parameters; see `symtensor.fields.compiled`."""
        from symtensor.fields.compiled import compile_sum

        return compile_sum(self, **options)

    # -- display -------------------------------------------------------------------------------------------------------

    @property
    def empty_reason(self) -> str:
        """Why there is no term: causality, or what the enumeration says."""
        if self.theory.stochastic:
            responses = {c >= len(self.theory.fields) for c in self.legs.components}
            if self.kind == "connected" and responses == {True}:
                return "averages of response fields alone vanish (Z = 1): every diagram has a closed loop of response lines"
            if self.kind == "1pi" and responses == {False}:
                return "without an amputated response leg every diagram has a closed loop of response lines, and vanishes"
        reasons = [self.diagrams(loops).empty_reason for loops in range(self.lowest, self.loops + 1)]
        return next((reason for reason in reasons if reason), "")

    @property
    def title(self) -> str:
        """What is summed."""
        legs = f"<{self.legs}>" if self.kind == "connected" else f"Gamma[{self.legs}]"
        loops = "1 loop" if self.loops == 1 else f"{self.loops} loops"
        span = loops if self.lowest == self.loops else f"up to {loops}"
        return f"{legs} of {self.theory.name}, {span}" + (f", {self.label}" if self.label else "")

    def latex_name(self) -> str:
        """What is summed, in LaTeX."""
        moments = self.legs.moments
        symbols = (*self.theory.fields, *self.theory.responses)
        names = [sp.latex(symbols[c], symbol_names=self.theory.symbol_names) for c in self.legs.components]
        parts = [
            name + (f"({sp.latex(moments[group])})" if moments else "") for name, group in zip(names, self.legs.groups)
        ]
        body = r"\,".join(parts)
        name = rf"\langle {body}\rangle" if self.kind == "connected" else rf"\Gamma[{body}]"
        return name + (f"_{{{self.loops}}}" if self.lowest == self.loops else "")

    def latex(self) -> str:
        """The sum of the terms as it is written on paper."""
        terms = [term.latex() for term in self]
        start = [sp.latex(self.saddle)] if self.saddle != 0 else []
        return " + ".join([*start, *terms]).replace("+ -", "- ") or "0"

    def __str__(self) -> str:
        lines = [self.title]
        lines += [f"  saddle: {sp.sstr(self.saddle)}"] if self.saddle != 0 else []
        lines += [f"  loops {t.loops}  1/{t.symmetry_factor}  {sp.sstr(t.expr)}   {t.diagram.canonical}" for t in self]
        lines += [] if len(self) else [f"  no diagram: {self.empty_reason or 'none exists'}"]
        return "\n".join([*lines, f"  sum: {sp.sstr(self.expr)}"])

    def __repr__(self) -> str:
        return f"<DiagramSum {self.title}>"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def _repr_html_(self) -> str:
        from symtensor.fields.display import html

        return html(self)
