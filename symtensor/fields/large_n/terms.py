"""Results of the 1/N expansion: one term a diagram, and their sum with symbolic N."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any

import mpmath
import sympy as sp

from symtensor.diagrams import Diagram
from symtensor.fields.errors import SourceError
from symtensor.fields.large_n.check import LargeNCheck, check_sum
from symtensor.fields.large_n.coupling_series import in_coupling
from symtensor.fields.large_n.saddle import MASS, NUMBER, VectorTheory, numbers, symbols, with_values
from symtensor.fields.large_n.scaled import ScaledTheory, dimension

__all__ = ["LargeNSum", "LargeNTerm"]

CONVENTIONS = (
    "weight exp(-N s(phi.phi/N)/T); rho = phi.phi/N with multiplier lam, m = 2 s'(T/m); lines: phi T/m, auxiliary ones with the "
    "bubble chain; vertices: minus derivatives of the action; each index loop and each vertex of s counts N; weight 1/|Aut|"
)


@dataclass(frozen=True, slots=True)
class LargeNTerm:
    """One diagram: `order` in 1/N relative to the leading one, closed index loops, and its value, which carries its power of N.

    `scaled` is the value in scaled variables, without the power of N.
    """

    diagram: Diagram
    order: int
    index_loops: int
    value: sp.Expr
    scaled: Any = field(repr=False, compare=False)

    @property
    def symmetry_factor(self) -> int:
        """|Aut|, by which the value is divided."""
        return self.diagram.symmetry_factor

    def latex(self) -> str:
        """The value in LaTeX."""
        return sp.latex(self.value)

    def __repr__(self) -> str:
        return f"<order {self.order} in 1/N, 1/{self.symmetry_factor}, {self.diagram.canonical or 'no line'}: {self.value}>"


@dataclass(frozen=True)
class LargeNSum:
    r"""A cumulant up to an order in 1/N: `background` (the saddle's part, of no diagram) plus one term for each diagram.

    Iterating gives the `LargeNTerm`s. Values are functions of the mass m (a number where the saddle is rational), the
    parameters, T and N, exact.

    >>> from symtensor.fields.large_n import VectorTheory, two_point
    >>> result = two_point(VectorTheory.read("r*rho/2 + u*rho^2/4", values={"r": 1, "u": 2}), order=2)
    >>> result.expr
    1/2 - 2/(9*N) + 32/(243*N**2)
    >>> print(result.verify())
    \langle \phi_1\,\phi_1 \rangle_c: 26 diagrams, orders 0 to 2 in 1/N equal to moments of the radial integral, by parts
    """

    scaled_theory: ScaledTheory
    name: str
    leading: int
    order: int
    background: sp.Expr
    terms: tuple[LargeNTerm, ...]
    legs: tuple[tuple[str, int], ...] = ()
    amputated: bool = False

    def __iter__(self) -> Iterator[LargeNTerm]:
        return iter(self.terms)

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def theory(self) -> VectorTheory:
        """The theory that is expanded."""
        return self.scaled_theory.theory

    def __getitem__(self, order: int) -> sp.Expr:
        """The coefficient of N^-(order) relative to the leading order, over one power of q, without the background."""
        if not 0 <= order <= self.order:
            raise IndexError(f"order {order} in 1/N was not computed; this result has 0 to {self.order}")
        return self._coefficients[order]

    def scaled(self, order: int) -> Any:
        """The coefficient in scaled variables (`scaled.ScaledTheory`): a polynomial in p = m^2/q and the derivatives of s."""
        return sum((term.scaled for term in self.terms if term.order == order), self.scaled_theory.ring.zero)

    @cached_property
    def _coefficients(self) -> tuple[sp.Expr, ...]:
        unit = dimension(self.theory, self.legs, self.amputated)
        return tuple(unit * self.scaled_theory.written(self.scaled(order)) for order in range(self.order + 1))

    @cached_property
    def expr(self) -> sp.Expr:
        """The sum up to `order`, each order as one rational function."""
        orders = (c * NUMBER ** (-self.leading - k) for k, c in enumerate(self._coefficients))
        return sp.Add(self.background, *orders)

    def by_order(self) -> dict[int, tuple[LargeNTerm, ...]]:
        """The terms of each order in 1/N."""
        return {k: tuple(t for t in self.terms if t.order == k) for k in range(self.order + 1)}

    def tadpoles(self) -> LargeNSum:
        """The diagrams with a tadpole: the shift of the saddle point."""
        return self._select(lambda term: bool(term.diagram.tadpoles))

    def one_particle_irreducible(self) -> LargeNSum:
        """The diagrams without a bridge among their internal lines."""
        return self._select(lambda term: term.diagram.is_1pi)

    def _select(self, keep: Callable[[LargeNTerm], bool]) -> LargeNSum:
        return replace(self, background=sp.S.Zero, terms=tuple(filter(keep, self.terms)))

    def at(self, values: Mapping[str, Any] | None = None, number: Any = None, digits: int = 30) -> Any:
        """The value at numerical parameters and number of components, the gap equation solved to `digits` digits.

        Raises: SourceError for a parameter without a value; PointError if there is no saddle point.
        """
        given = numbers({**(values or {}), **({} if number is None else {"N": number})})
        value: Any = with_values(self.expr, given)
        with mpmath.workdps(digits + 10):
            if value.has(MASS):
                mass = self.theory.numeric_mass({k: v for k, v in given.items() if k != "N"}, digits)
                value = value.xreplace({MASS: sp.Float(mass, digits + 10)})
            missing = [s.name for s in symbols(value)]
            if missing:
                raise SourceError(f"no value is given for {', '.join(missing)}; give it in values, N as number")
            return mpmath.mpf(sp.N(value, digits + 10))

    def series(self, coupling: Any, order: int) -> sp.Expr:
        """The sum as a polynomial in a coupling of s that vanishes with it, up to the given power; exact in N."""
        return in_coupling(self.theory, self.expr, coupling, order)

    def verify(self) -> LargeNCheck:
        """Compare all orders with the radial integral expanded by parts, exactly; see `check.check_sum`."""
        return check_sum(self)

    def latex(self) -> str:
        """The sum in LaTeX."""
        return rf"{self.name} = {sp.latex(self.expr)} + O\!\left(N^{{{-self.leading - self.order - 1}}}\right)"

    def _repr_latex_(self) -> str:
        return f"$$ {self.latex()} $$"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{t.order}</td><td>{t.diagram.to_svg()}</td><td>1/{t.symmetry_factor}</td>"
            f"<td>$ {escape(t.latex())} $</td></tr>"
            for t in self.terms
        )
        head = "<tr><th>order in 1/N</th><th>diagram</th><th>weight</th><th>value</th></tr>"
        return f"<p>{escape(CONVENTIONS)}</p><table>{head}{rows}</table><p>$$ {escape(self.latex())} $$</p>"

    def __repr__(self) -> str:
        return f"<{self.name} to order {self.order} in 1/N, {len(self.terms)} diagrams: {self.expr}>"
