"""Objects that `symtensor.compile` turns into functions and that are more than a formula: expectations, recursions, flows.

* `GaussianExpectation`  E f(x) or E f(x, y) over a normal law, a node of SymPy expressions
* `Scan`                 a step over layers, repeated
* `Ode`                  a right-hand side, integrated
* `FixedPoint`           the state that a step leaves as it is

States are symbols, or components of tensors such as `K[a, b]`, whose indices give the order of the axes.
"""

# SymPy's inferred types are narrower than what its functions take and return
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportIncompatibleMethodOverride=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from symtensor.expansion.gaussian import gaussian_expectation
from symtensor.tensor import TensorExpr

__all__ = ["FixedPoint", "GaussianExpectation", "Ode", "ProgramError", "Scan"]


class ProgramError(ValueError):
    """An expectation, recursion or flow that is not well formed; the text names the offending part."""


class GaussianExpectation(sp.Expr):
    """E f(x) with x ~ N(mean, variance), or E f(x, y) with (x, y) ~ N(mean, covariance), unevaluated.

    Parameters
    ----------
    function
        f, a real expression; its other symbols are parameters.
    variables
        x, or (x, y).
    covariance
        A variance, or a symmetric 2 x 2 matrix; expressions that do not contain the variables.
    mean
        A number or expression, or two; 0 by default.

    Raises
    ------
    ProgramError
        Not one or two different symbols, a law that does not fit them or contains them.

    Examples
    --------
    >>> x, k = sp.Symbol("x", real=True), sp.Symbol("k", positive=True)
    >>> node = GaussianExpectation(x**2 * sp.exp(x), x, k)
    >>> node.doit()
    k*(k + 1)*exp(k/2)
    >>> sorted(map(str, (1 + node).free_symbols))
    ['k']
    """

    is_commutative = True
    is_real = True

    def __new__(
        cls, function: Any, variables: Any, covariance: Any, mean: Any = None, **assumptions: bool
    ) -> GaussianExpectation:
        names = sp.Tuple(variables) if isinstance(variables, sp.Symbol) else sp.Tuple(*variables)
        size = len(names)
        if size not in (1, 2) or len(set(names)) < size or not all(isinstance(name, sp.Symbol) for name in names):
            raise ProgramError(f"an expectation is over one or two different symbols, not over {names}")
        law = _matrix(covariance, size, size, "covariance")
        center = sp.zeros(size, 1) if mean is None else _matrix(mean, size, 1, "mean")
        if law != law.T:
            raise ProgramError(f"the covariance {law.tolist()} is not symmetric")
        if (law.free_symbols | center.free_symbols) & set(names):
            raise ProgramError(f"the law of {names} depends on them: covariance {law.tolist()}, mean {center.tolist()}")
        body = _expression(function, "the function")
        return super().__new__(cls, body, names, sp.ImmutableMatrix(law), sp.ImmutableMatrix(center), **assumptions)

    @property
    def function(self) -> sp.Expr:
        """f."""
        return self.args[0]

    @property
    def variables(self) -> tuple[sp.Symbol, ...]:
        """The Gaussian variables."""
        return tuple(self.args[1])

    @property
    def covariance(self) -> sp.ImmutableMatrix:
        """Their covariance, 1 x 1 or 2 x 2."""
        return self.args[2]

    @property
    def mean(self) -> sp.ImmutableMatrix:
        """Their mean, a column."""
        return self.args[3]

    @property
    def bound_symbols(self) -> list[sp.Symbol]:
        """The Gaussian variables, which are not free."""
        return list(self.variables)

    @property
    def free_symbols(self) -> set[sp.Basic]:
        """The parameters of the function and of the law."""
        inside = self.function.free_symbols - set(self.variables)
        return inside | self.covariance.free_symbols | self.mean.free_symbols

    def doit(self, **hints: Any) -> sp.Expr:
        """The closed form for polynomials times exponentials of quadratic functions, sines included; else the node itself."""
        found = gaussian_expectation(self.function, self.variables, self.covariance, self.mean)
        return self if found is None else found

    def _eval_subs(self, old: sp.Basic, new: sp.Basic) -> sp.Basic | None:
        """Parameters are replaced, variables are not (they are renamed first if the replacement contains them)."""
        if old in self.variables:
            return self
        clashing = [name for name in self.variables if name in new.free_symbols]
        if not clashing:
            return None
        renamed = {name: sp.Dummy(name.name, **name._assumptions_orig) for name in clashing}
        variables = [renamed.get(name, name) for name in self.variables]
        return GaussianExpectation(self.function.xreplace(renamed), variables, self.covariance, self.mean)._subs(old, new)

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        """Of parameters of f under the integral; of the law by Price's theorem, d/dK_ij = E d_i d_j f (1/2 on the diagonal)."""
        names = self.variables
        if symbol in names:
            return sp.S.Zero

        def expected(body: sp.Expr) -> sp.Expr:
            return GaussianExpectation(body, names, self.covariance, self.mean) if body != 0 else sp.S.Zero

        total = expected(self.function.diff(symbol))
        for i, first in enumerate(names):
            total += self.mean[i].diff(symbol) * expected(self.function.diff(first))
            for j, second in enumerate(names):
                total += self.covariance[i, j].diff(symbol) * expected(self.function.diff(first, second)) / 2
        return total

    def _latex(self, printer: Any) -> str:
        names = ", ".join(printer._print(name) for name in self.variables)
        return rf"\mathrm{{E}}_{{{names}}}\left[{printer._print(self.function)}\right]"

    def _sympystr(self, printer: Any) -> str:
        names = ", ".join(map(str, self.variables))
        return f"E[{printer._print(self.function)}; {names} ~ N({self.mean.tolist()}, {self.covariance.tolist()})]"


def _expression(value: Any, what: str) -> sp.Expr:
    try:
        body = sp.sympify(value, strict=True)
    except sp.SympifyError:
        body = None
    if not isinstance(body, sp.Expr):
        raise ProgramError(f"{what} is {value!r} ({type(value).__name__}); a SymPy expression is needed (text is not read here)")
    return body


def _matrix(value: Any, rows: int, columns: int, what: str) -> sp.Matrix:
    entries = value if isinstance(value, sp.MatrixBase | Sequence) and not isinstance(value, str) else [value]
    matrix = sp.Matrix(entries)
    if matrix.shape != (rows, columns):
        raise ProgramError(f"the {what} has shape {matrix.shape}; for {rows} variable(s) it is ({rows}, {columns})")
    return matrix


# -- recursions --------------------------------------------------------------------------------------------------------

State = sp.Symbol | TensorExpr
Formula = Any


@dataclass(frozen=True, slots=True)
class Scan:
    """`state <- step(state)`, repeated; every state is kept, from the initial one on.

    Attributes
    ----------
    step
        State -> its next value, an expression in the states and in parameters.
    records
        Name -> an expression that is evaluated at every depth besides.

    Examples
    --------
    >>> x, a = sp.symbols("x a", real=True)
    >>> Scan({x: a * x * (1 - x)}).states
    (x,)
    """

    step: Mapping[Any, Formula]
    records: Mapping[str, Formula] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_states(self.step, "Scan")

    @property
    def states(self) -> tuple[Any, ...]:
        """The states in the order given."""
        return tuple(self.step)


@dataclass(frozen=True, slots=True)
class Ode:
    """`d state / dt = rate(state, t)`.

    Attributes
    ----------
    rates
        State -> its derivative, an expression in the states, in parameters, and in `time`.
    time
        The symbol of t, if the rates contain it.
    """

    rates: Mapping[Any, Formula]
    time: sp.Symbol | None = None

    def __post_init__(self) -> None:
        _check_states(self.rates, "Ode")
        if self.time is not None and (not isinstance(self.time, sp.Symbol) or self.time in self.rates):
            raise ProgramError(f"Ode: the time is {self.time!r}; it is a symbol that is no state")

    @property
    def states(self) -> tuple[Any, ...]:
        """The states in the order given."""
        return tuple(self.rates)


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """The solution of `state = equations(state)` that the iteration from a given state converges to.

    Attributes
    ----------
    equations
        State -> the expression that it equals at the fixed point.
    """

    equations: Mapping[Any, Formula]

    def __post_init__(self) -> None:
        _check_states(self.equations, "FixedPoint")

    @property
    def states(self) -> tuple[Any, ...]:
        """The states in the order given."""
        return tuple(self.equations)


def _check_states(mapping: Mapping[Any, Formula], what: str) -> None:
    if not isinstance(mapping, Mapping) or not mapping:
        raise ProgramError(f"{what}: need a mapping from at least one state to an expression, got {mapping!r}")
    for state in mapping:
        if isinstance(state, sp.Symbol):
            continue
        single = isinstance(state, TensorExpr) and len(state.terms) == 1 and state.terms[0].coefficient == 1
        factors = state.terms[0].factors if single else ()
        if len(factors) != 1 or len(set(factors[0].indices)) < len(factors[0].indices) or state.terms[0].summed:
            raise ProgramError(f"{what}: {state!r} is no state; a state is a symbol, or a component K[a, b] with different indices")
