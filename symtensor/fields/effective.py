r"""The effective action of a static theory: the generating function of its one-particle irreducible functions.

    Gamma(phi) = S(x* + phi) - sum_{L >= 1} sum_{m <= degree} (1/m!) Gamma^{(L)}_m phi^m,

phi counted from the saddle, Gamma^{(L)}_m the sum of the 1PI diagrams with m amputated legs and L loops; the constant is left out.
Its stationary point is the exact mean, its Hessian there the inverse of the full two-point function. The same function is the
Legendre transform of the logarithm of the generating function (`symtensor.expansion.effective_action`), and with one loop
(1/2) log det S''(x* + phi): the two routes of `EffectiveAction.verify`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor.fields.diagram_sum import DiagramSum
from symtensor.fields.errors import TheoryError

if TYPE_CHECKING:
    from symtensor.fields.field_theory import FieldTheory

__all__ = ["EffectiveAction"]


@dataclass(frozen=True, eq=False)
class EffectiveAction:
    """The effective action up to `loops` loops and `degree` powers of the fields in each loop order.

    >>> from symtensor.fields import FieldTheory
    >>> FieldTheory.static("x^2/2 + g*x^4/24", "x").effective_action(loops=1, degree=4).expr
    -g**2*x**4/16 + g*x**4/24 + g*x**2/4 + x**2/2
    """

    theory: FieldTheory
    loops: int
    degree: int

    def __post_init__(self) -> None:
        if self.theory.stochastic:
            raise TheoryError(
                f"{self.theory.name} is stochastic: its effective action is a functional of paths; ask for its vertex functions "
                "(theory.vertex_function), which are its expansion"
            )
        if self.loops < 0 or self.degree < 1:
            raise TheoryError(f"loops={self.loops}, degree={self.degree}: loops from 0 and a degree from 1 are required")

    @cached_property
    def vertices(self) -> tuple[DiagramSum, ...]:
        """The 1PI functions of 1 to `degree` legs, one for each set of fields."""
        names = [s.name for s in self.theory.fields]
        sets = (c for m in range(1, self.degree + 1) for c in combinations_with_replacement(names, m))
        return tuple(self.theory.vertex_function(legs, self.loops) for legs in sets)

    def __iter__(self) -> Iterator[DiagramSum]:
        return iter(self.vertices)

    def at(self, loops: int) -> sp.Expr:
        """The part with this number of loops, in the fields counted from the saddle; 0 is the action itself."""
        if loops == 0:
            shift: Any = {x: x + value for x, value in zip(self.theory.fields, self.theory.saddle)}
            return -self.theory.density.subs(shift, simultaneous=True)
        parts = []
        for vertex in self.vertices:
            powers = {x: vertex.legs.names.count(x.name) for x in self.theory.fields}
            monomial = sp.Mul(*(x**n / sp.factorial(n) for x, n in powers.items()))
            parts.append(-vertex.at(loops).expr * monomial)
        return sp.expand(sp.Add(*parts))

    @cached_property
    def expr(self) -> sp.Expr:
        """The sum over loops."""
        return sp.Add(*(self.at(loops) for loops in range(self.loops + 1)))

    def verify(self) -> dict[int, sp.Expr]:
        """Every 1PI function against the Legendre transform of Wick's series; returns the parts by loops."""
        for vertex in self.vertices:
            vertex.verify()
        return {loops: self.at(loops) for loops in range(self.loops + 1)}

    def latex(self) -> str:
        """Gamma in LaTeX."""
        return r"\Gamma = " + sp.latex(self.expr)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"
