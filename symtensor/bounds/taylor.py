"""Taylor expansion of a function at a random argument, with a stochastic remainder (rule R7)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sympy

from symtensor.expansion import taylor

from ._input import exact
from .derive import bound
from .errors import MissingHypothesisError
from .expr import Expr, as_expr
from .facts import Fact
from .functions import Function, X, as_function
from .operations import taylor_remainder
from .rules.base import Given
from .value import Bound

__all__ = ["StochasticTaylor", "stochastic_taylor"]


@dataclass(frozen=True, slots=True, repr=False)
class StochasticTaylor:
    """phi(x0 + D) = sum_{j <= order} coefficients[j] D^j + remainder.

    Attributes:
        coefficients: phi^(j)(x0) / j!.
        deviation: D.
        terms: bounds of the terms with non-zero coefficient, by degree.
        remainder: bound of what is left, with its derivation.
    """

    function: Function
    point: sympy.Expr
    coefficients: tuple[sympy.Expr, ...]
    deviation: Expr
    terms: dict[int, Bound]
    remainder: Bound

    def __repr__(self) -> str:
        return f"{self._written(str, '{}', '**', '*')} + {self.remainder}"

    def _written(self, write: Any, power: str, mark: str, times: str) -> str:
        found = []
        for j, c in enumerate(self.coefficients):
            if c != 0:
                factor = "" if j == 0 else "D" if j == 1 else f"D{mark}{power.format(j)}"
                found.append(write(c) if not factor else factor if c == 1 else f"({write(c)}){times}{factor}")
        return " + ".join(found) or "0"

    def latex(self) -> str:
        """The expansion as LaTeX."""
        return f"{self._written(sympy.latex, '{{{}}}', '^', ' ')} + {self.remainder.latex()}"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"


def stochastic_taylor(phi: Any, deviation: Any, point: Any = 0, order: int = 1, assume: Iterable[Fact] = ()) -> StochasticTaylor:
    """Expand phi(x0 + D) in the random scalar D = O(f), f -> 0, to degree ``order`` plus O(f^(order + 1)).

    Args:
        phi: text in x, a SymPy expression, or a `Function` with an expression.
        deviation: D = M - x0 as an expression.
        point: x0.
        order: degree k of the Taylor polynomial.
        assume: further facts.

    Raises:
        MissingHypothesisError: D does not tend to 0, phi is not smooth at x0, or its derivatives can grow with n.

    Example:
        >>> from symtensor.bounds import RandomTensor, known
        >>> d = RandomTensor("D", facts=[known("1/sqrt(n)", "Theta")])
        >>> stochastic_taylor("exp(x)", d, order=2)
        1 + D + (1/2)*D**2 + Theta(1/n^(3/2)) [P], n -> oo
    """
    facts = tuple(assume)
    child, function, x0 = as_expr(deviation), as_function(phi), exact(point)
    if child.valence:
        raise ValueError(f"the expansion in closed form is for a scalar deviation; {child} has slots {child.labels}")
    if function.expr is None:
        raise ValueError(f"{function} has no expression to expand; bound its remainder with taylor_remainder")
    if not isinstance(order, int) or order < 0:
        raise ValueError(f"order is the degree of the Taylor polynomial, an integer >= 0, given {order!r}")
    remainder = bound(taylor_remainder(function, child, x0, order), facts)
    series = taylor(function.expr, X, x0)
    coefficients = tuple(exact(series.coefficient(j)) for j in range(order + 1))
    _fixed_coefficients(coefficients, function, x0, [*facts, *_facts_of(child)])
    terms = {j: bound(child**j, facts) for j, c in enumerate(coefficients) if j and c != 0}
    return StochasticTaylor(function, x0, coefficients, child, terms, remainder)


def _facts_of(node: Expr) -> tuple[Fact, ...]:
    return tuple(node.data.facts) if node.op == "leaf" else ()


def _fixed_coefficients(coefficients: tuple[sympy.Expr, ...], phi: Function, point: sympy.Expr, facts: list[Fact]) -> None:
    """The bound of a term is that of D^j; a coefficient that changes with the sizes would be missing in it."""
    given = Given(facts)
    for symbol in sorted({s.name for c in coefficients for s in c.free_symbols}):  # type: ignore[attr-defined]
        if given.find("fixed", symbol) is None:
            raise MissingHypothesisError(
                "R7", "fixed point", f"{symbol} in {phi} at {point}",
                f"state fact('fixed', {symbol!r}), or bound the terms one by one",
                "at a point that grows with n the coefficients grow too: (n + D)^2 = n^2 + 2 n D + D^2",
            )  # fmt: skip
