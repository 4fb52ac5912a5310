"""Results in the time domain: one term a diagram, an exact sum of exponentials, and their sum with symbolic N."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import sympy as sp

from symtensor.diagrams import Diagram
from symtensor.fields.errors import TheoryError
from symtensor.fields.exponential_sum import ExponentialSum
from symtensor.fields.large_n.check import LargeNCheck, MismatchError
from symtensor.fields.large_n.saddle import MASS, NUMBER, VectorTheory, numbers, symbols
from symtensor.fields.large_n.time_lines import SHIFT, TimeRules

__all__ = ["LangevinSum", "LangevinTerm"]

CONVENTIONS = (
    "dx_i = -2 s'(x.x/N) x_i dt + sqrt(2 T) dW_i, Ito, theta(0) = 0; t > 0; m = 2 s'(T/m), k = 4 T s''/m; lines fall off as "
    "exp(-m t) and, with the bubble chain, exp(-(2 m + k) t); each index loop counts N; weight 1/|Aut|, components summed"
)


@dataclass(frozen=True, slots=True)
class LangevinTerm:
    """One diagram: `order` in 1/N beyond the leading one and its value for t > 0, with its power of N, all components summed."""

    diagram: Diagram
    order: int
    value: ExponentialSum

    @property
    def symmetry_factor(self) -> int:
        """|Aut|, by which the value is divided."""
        return self.diagram.symmetry_factor

    @property
    def index_loops(self) -> int:
        """Closed index loops, each a factor N of the value."""
        return len(self.diagram.index_loops)

    def latex(self) -> str:
        """The value in LaTeX."""
        return self.value.map(sp.factor).latex()

    def __repr__(self) -> str:
        return f"<order {self.order} in 1/N, 1/{self.symmetry_factor}, {self.diagram.canonical}>"


@dataclass(frozen=True)
class LangevinSum:
    """<a(t) b(0)> for t > 0 to an order in 1/N: iterating gives one `LangevinTerm` for each diagram.

    ``result[K]`` is the coefficient of N^-(K + leading), an `ExponentialSum` in m, k (numbers where the saddle is rational), T.
    """

    rules: TimeRules
    fields: tuple[str, str]
    leading: int
    order: int
    terms: tuple[LangevinTerm, ...]

    @property
    def theory(self) -> VectorTheory:
        """The theory that the model relaxes to."""
        return self.rules.theory

    def __iter__(self) -> Iterator[LangevinTerm]:
        return iter(self.terms)

    def __len__(self) -> int:
        return len(self.terms)

    @cached_property
    def _coefficients(self) -> tuple[ExponentialSum, ...]:
        orders = []
        for k in range(self.order + 1):
            parts = [t.value * NUMBER ** (self.leading + k) for t in self.terms if t.order == k]
            orders.append(ExponentialSum.total(parts, windows=1).map(sp.factor))
        return tuple(orders)

    def __getitem__(self, order: int) -> ExponentialSum:
        if not 0 <= order <= self.order:
            raise IndexError(f"order {order} in 1/N was not computed; this result has 0 to {self.order}")
        return self._coefficients[order]

    @cached_property
    def value(self) -> ExponentialSum:
        """The sum of all orders."""
        parts = (c * NUMBER ** (-self.leading - k) for k, c in enumerate(self._coefficients))
        return ExponentialSum.total(parts, windows=1)

    def expr(self, t: Any) -> sp.Expr:
        """The sum as a SymPy expression in a time t > 0."""
        return self.value.expr(t)

    def exact(self, expression: Any) -> Any:
        """An expression in k with k = 4 T s''/m put in."""
        return expression.xreplace({SHIFT: self.rules.exact_shift})

    def by_order(self) -> dict[int, tuple[LangevinTerm, ...]]:
        """The terms of each order in 1/N."""
        return {k: tuple(t for t in self.terms if t.order == k) for k in range(self.order + 1)}

    def equal_time(self, order: int) -> sp.Expr:
        """The coefficient of an order at t = 0+, which is that of the static theory."""
        return self[order].equal_time().value

    def at(self, t: Any, number: Any, values: Mapping[str, Any] | None = None, digits: int = 30) -> Any:
        """The value at a time t > 0, N components and numerical parameters, the gap equation solved numerically.

        Raises: SourceError for a parameter without a value, PointError without a saddle point.
        """
        given = numbers({**(values or {}), "N": number})
        used = symbols(self.theory.potential + self.theory.temperature + NUMBER)
        parameters: dict[Any, Any] = {s: given[s.name] for s in used if s.name in given}
        if self.theory.mass == MASS:
            mass = self.theory.numeric_mass({k: v for k, v in given.items() if k != "N"}, digits + 10)
            parameters[MASS] = sp.Float(mass, digits + 10)
            parameters[SHIFT] = sp.N(self.rules.exact_shift.xreplace(parameters), digits + 10)
        return self.value.evaluate(t, values=parameters, digits=digits)

    def fluctuation_dissipation(self) -> bool:
        """For a response: whether T <x(t) xt(0)> = -d/dt <x(t) x(0)> holds diagram by diagram, exactly."""
        from symtensor.fields.large_n.langevin import time_correlation

        if self.fields != ("x", "xt"):
            raise TheoryError(f"{self.name} is no response; ask time_response(..) for one")
        correlation = {term.diagram: term.value for term in time_correlation(self.theory, order=self.order)}
        parts = (term.value * self.theory.temperature + correlation[term.diagram].derivative() for term in self.terms)
        return all(part.map(sp.factor).is_zero for part in parts)

    def verify(self) -> LargeNCheck:
        """Compare t = 0 with the static theory, diagram by diagram, and the static sum with the radial integral; all exact.

        Raises: MismatchError naming the diagram; TheoryError for responses and for mu, which differs from the static lam by a
        contact term.
        """
        from symtensor.fields.large_n.static import cumulant

        names = {"x": "phi", "rho": "rho"}
        if not set(self.fields) <= set(names):
            raise TheoryError(f"{self.name} has no static counterpart; check x and rho, and responses by fluctuation_dissipation()")
        static = cumulant(self.theory, {names[name]: self.fields.count(name) for name in self.fields}, self.order)
        if len(static) != len(self):
            raise MismatchError(f"{self.name}: {len(self)} diagrams, and {len(static)} of the static theory")
        for dynamic, term in zip(self, static):
            difference = self.exact(dynamic.value.equal_time().value) - term.value
            if sp.simplify(difference) != 0:
                raise MismatchError(
                    f"{self.name} at t = 0: diagram {dynamic.diagram.canonical} differs by {difference} from the static one"
                )
        static.verify()
        return LargeNCheck(self.name, self.order, len(self.terms), "the static theory at t = 0, diagram by diagram")

    @property
    def name(self) -> str:
        """The correlation in LaTeX."""
        symbols = {"x": "x_1", "xt": r"\tilde x_1", "rho": r"\rho", "mu": r"\mu"}
        first, second = (symbols[name] for name in self.fields)
        return rf"\langle {first}(t)\,{second}(0) \rangle_c"

    def latex(self) -> str:
        """The sum in LaTeX."""
        value = sp.latex(self.expr(sp.Symbol("t", positive=True)))
        return rf"{self.name} = {value} + O\!\left(N^{{{-self.leading - self.order - 1}}}\right)"

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
        return f"<{self.name} to order {self.order} in 1/N, {len(self.terms)} diagrams>"
