r"""A function of a theory with momenta as a sum of diagrams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor.diagrams import DiagramSet, enumerate_diagrams
from symtensor.diagrams.graph import Leg
from symtensor.diagrams.size import lower_bound
from symtensor.fields.errors import TheoryError
from symtensor.fields.momentum.momentum_term import MomentumTerm
from symtensor.fields.momentum.routes import external_momenta
from symtensor.fields.momentum.vectors import in_one_dimension

if TYPE_CHECKING:
    from symtensor.fields.momentum.quadrature import MomentumValue
    from symtensor.fields.momentum.small_momentum import MomentumSeries
    from symtensor.fields.momentum.theory import MomentumTheory

__all__ = ["MomentumSum"]

#: more diagrams than this are refused
MOST = 5_000


@dataclass(frozen=True, eq=False)
class MomentumSum:
    """All diagrams of one function up to a number of loops; iterating gives the terms.

    Diagrams that vanish (a vertex factor at zero momentum) are left out. The momentum k flows in at the last of two legs; of
    more legs k1, k2, .. at the first, second, ..

    >>> from symtensor.fields.momentum import momentum_theory
    >>> noise = momentum_theory("kpz").vertex_function("xt,xt", 1).at(1)
    >>> [(term.symmetry_factor, term.vertex_factors) for term in noise]
    [(2, (('g', -lam*(k/2 - q).(k/2 + q)), ('g', -lam*(k/2 - q).(k/2 + q))))]
    """

    theory: MomentumTheory
    legs: tuple[str, ...]
    loops: int
    kind: str
    times: str
    lowest: int = 0
    _terms: dict[int, tuple[MomentumTerm, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, theory: MomentumTheory, legs: Any, loops: int, kind: str, times: str | None) -> MomentumSum:
        """Check the request. Raises TheoryError naming what cannot be met."""
        names = _names(theory, legs)
        if isinstance(loops, bool) or not isinstance(loops, int) or loops < 0:
            raise TheoryError(f"loops={loops!r}: the number of loops is an integer, 0 or more")
        asked = cls(theory, names, loops, kind, _times(theory, names, kind, times))
        weight = lower_bound(asked.diagrams(loops).request)
        if weight is not None and weight > MOST:
            raise TheoryError(f"at least {int(weight):,} diagrams with {loops} loops, more than {MOST:,}; ask for fewer loops")
        return asked

    # -- terms ---------------------------------------------------------------------------------------------------------

    def diagrams(self, loops: int) -> DiagramSet:
        """The diagrams with a number of loops, those that vanish included."""
        return enumerate_diagrams(self.theory.model, [Leg(n, str(i + 1)) for i, n in enumerate(self.legs)], loops, kind=self.kind)

    def count(self) -> dict[int, int]:
        """Number of diagrams by loops, those that vanish included."""
        return {loops: self.diagrams(loops).count() for loops in range(self.lowest, self.loops + 1)}

    def __iter__(self) -> Iterator[MomentumTerm]:
        for loops in range(self.lowest, self.loops + 1):
            yield from self._at(loops)

    def __len__(self) -> int:
        return sum(len(self._at(loops)) for loops in range(self.lowest, self.loops + 1))

    def _at(self, loops: int) -> tuple[MomentumTerm, ...]:
        if loops not in self._terms:
            asked = self.diagrams(loops)
            if (number := asked.count()) > MOST:
                raise TheoryError(f"{number:,} diagrams with {loops} loops, more than {MOST:,}; ask for fewer loops")
            terms = (MomentumTerm(self.theory, diagram, self.kind, self.times) for diagram in asked)
            self._terms[loops] = tuple(term for term in terms if not term.vanishes)
        return self._terms[loops]

    def at(self, loops: int) -> MomentumSum:
        """The part with exactly this number of loops."""
        if not self.lowest <= loops <= self.loops:
            raise TheoryError(f"{loops} loops are not in this sum, which has {self.lowest} to {self.loops}; ask for more loops")
        return MomentumSum(self.theory, self.legs, loops, self.kind, self.times, loops, {loops: self._at(loops)})

    def by_order(self) -> dict[int, MomentumSum]:
        """The parts by number of loops."""
        return {loops: self.at(loops) for loops in range(self.lowest, self.loops + 1)}

    @property
    def external(self) -> tuple[sp.Expr, ...]:
        """The wave vector that flows in at each leg."""
        return external_momenta(len(self.legs))

    # -- values --------------------------------------------------------------------------------------------------------

    def _one_order(self) -> int:
        if self.lowest != self.loops:
            raise TheoryError(f"an integrand has one number of loops; take .at({self.loops}), or .by_order() for all of them")
        return self.loops

    @property
    def loop_momenta(self) -> tuple[sp.Symbol, ...]:
        """The wave vectors that are integrated over, of a sum with one number of loops."""
        loops = self._one_order()
        return (sp.Symbol("q"),) if loops == 1 else tuple(sp.Symbol(f"q{i + 1}") for i in range(loops))

    @cached_property
    def integrand(self) -> Any:
        """The sum of the integrands of one number of loops without contact terms, a function of t > 0 where two times are kept."""
        self._one_order()
        return sp.Add(*(term.integrand for term in self if not term.contact))

    def integrand_at(self, omega: Any = None) -> Any:
        """The integrand at a frequency, contact terms included; see `MomentumTerm.integrand_at`."""
        self._one_order()
        return sp.Add(*(term.integrand_at(omega) for term in self))

    @property
    def expr(self) -> Any:
        """The sum of all orders; loop integrals are left as `sympy.Integral` over the vectors q (numbers in one dimension).

        The integrals with a symbolic dimension have no limits and stand for the whole space; the integrand is that at frequency
        omega where two times are kept.
        """
        found = []
        for loops, part in self.by_order().items():
            integrand = part.integrand_at()
            if not loops or integrand == 0:
                found.append(integrand)
                continue
            measure = (2 * sp.pi) ** (-self.theory.dimension * loops)
            if self.theory.dimension == 1:
                limits = [(q, -sp.oo, sp.oo) for q in part.loop_momenta]
                found.append(sp.Integral(measure * in_one_dimension(integrand), *limits))
            else:
                found.append(sp.Integral(measure * integrand, *part.loop_momenta))
        return sp.Add(*found)

    def small_momentum(self, order: int = 2, omega: Any = 0) -> MomentumSeries:
        """The angular average of the one-loop integrand expanded in the external momenta, in any dimension."""
        from symtensor.fields.momentum.small_momentum import small_momentum

        return small_momentum(self, order, omega)

    def evaluate(self, values: Mapping[str, Any], **options: Any) -> MomentumValue:
        """The number at parameters, k, omega (or t), by quadrature with an error; see `quadrature.evaluate`."""
        from symtensor.fields.momentum.quadrature import evaluate

        return evaluate(self, values, **options)

    # -- display -------------------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """What is summed."""
        inside = ", ".join(f"{name}({momentum})" for name, momentum in zip(self.legs, self.external))
        loops = "1 loop" if self.loops == 1 else f"{self.loops} loops"
        what = f"<{inside}>" if self.kind == "connected" else f"Gamma[{inside}]"
        return f"{what} of {self.theory.name}, {loops if self.lowest == self.loops else f'up to {loops}'}"

    def latex_name(self) -> str:
        """What is summed, in LaTeX."""
        names = {"x": "x", "xt": r"\tilde x"}
        inside = r"\,".join(f"{names[name]}({sp.latex(p)})" for name, p in zip(self.legs, self.external))
        name = rf"\langle {inside}\rangle" if self.kind == "connected" else rf"\Gamma[{inside}]"
        return name + (f"_{{{self.loops}}}" if self.lowest == self.loops else "")

    def latex(self) -> str:
        """The sum of the terms as it is written on paper."""
        return " + ".join(term.latex() for term in self).replace("+ -", "- ") or "0"

    @property
    def empty_reason(self) -> str:
        """Why there is no term."""
        if any(self.count().values()):
            return "every diagram has a vertex factor that vanishes"
        reasons = (self.diagrams(loops).empty_reason for loops in range(self.loops, self.lowest - 1, -1))
        return next((reason for reason in reasons if reason), "none exists")

    def __str__(self) -> str:
        frequency = self.theory.stochastic and self.times == "t,0"
        lines = [self.title, "  integrands at the frequency omega" if frequency else "  integrands"]
        lines += [f"  loops {t.loops}  1/{t.symmetry_factor}  {sp.sstr(t.integrand_at())}   {t.diagram.canonical}" for t in self]
        return "\n".join(lines if len(self) else [lines[0], f"  no diagram: {self.empty_reason}"])

    def __repr__(self) -> str:
        return f"<MomentumSum {self.title}>"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{t.loops}</td><td>{t.diagram.to_svg()}</td><td>1/{t.symmetry_factor}</td>"
            f"<td>$\\displaystyle {t.latex()}$</td></tr>"
            for t in self
        )
        head = "<tr><th>loops</th><th>diagram</th><th>weight</th><th>formula</th></tr>"
        return f"<p><b>{escape(self.title)}</b></p><table>{head}{rows}</table>"


def _names(theory: MomentumTheory, legs: Any) -> tuple[str, ...]:
    parts = [part.strip() for part in legs.split(",")] if isinstance(legs, str) else [str(leg) for leg in legs]
    known = ("x", "xt") if theory.stochastic else ("x",)
    if not parts or parts == [""]:
        raise TheoryError("no legs are given; name the fields of the function, as 'x,x' or 'xt,x'")
    for name in parts:
        if name not in known:
            raise TheoryError(f"{theory.name} has no field {name!r}; it has {', '.join(known)}")
    return tuple(parts)


def _times(theory: MomentumTheory, legs: tuple[str, ...], kind: str, times: str | None) -> str:
    if not theory.stochastic:
        if times:
            raise TheoryError(f"{theory.name} is a static theory: leave times={times!r} out")
        return ""
    many = "equal" if kind == "connected" else "integrated"
    allowed = ("t,0", many) if len(legs) == 2 else (many,)
    chosen = (times or allowed[0]).replace(" ", "")
    if chosen not in allowed:
        raise TheoryError(f"times={times!r}: for {len(legs)} legs of such a function the times can be {' or '.join(allowed)}")
    return chosen
