"""A stochastic equation as the user gives it, read into polynomials graded by a coupling."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from symtensor.expansion.coefficient_ring import as_polynomial
from symtensor.fields._moment_operator import Powers
from symtensor.fields._scalars import exact
from symtensor.fields.errors import SourceError

__all__ = ["DriftDiffusion", "graded", "read_couplings", "read_drift_diffusion"]


@dataclass(frozen=True, slots=True)
class DriftDiffusion:
    """dx = f dt + G dW in SymPy: the variables, f, and D = G G^T (a matrix or its rows)."""

    variables: tuple[sp.Symbol, ...]
    drift: tuple[sp.Expr, ...]
    diffusion: Any

    def __post_init__(self) -> None:
        rows = self.diffusion.tolist() if isinstance(self.diffusion, sp.MatrixBase) else self.diffusion
        object.__setattr__(self, "drift", tuple(self.drift))
        object.__setattr__(self, "diffusion", tuple(tuple(row) for row in rows))

    @property
    def symbols(self) -> dict[str, sp.Symbol]:
        """All symbols of the equations by name."""
        return {**{s.name: s for s in self.variables}, **_symbols([*self.drift, *itertools.chain(*self.diffusion)])}


def _symbols(expressions: Iterable[sp.Expr]) -> dict[str, sp.Symbol]:
    """The symbols by name; raises SourceError if two of one name differ."""
    found: dict[str, Any] = {}
    for symbol in sorted({s for part in expressions for s in part.free_symbols}, key=sp.default_sort_key):
        if found.setdefault(str(symbol), symbol) != symbol:
            raise SourceError(f"the symbol {symbol} occurs twice with different assumptions; use one symbol for it")
    return found


def read_drift_diffusion(drift: Any, noise: Any, variables: Any) -> DriftDiffusion:
    """Check shapes and names; a symbol of an expression stands for the variable of its name, whatever its assumptions.

    Raises SourceError for text, for sizes that do not fit, for a variable named twice.
    """
    if isinstance(noise, DriftDiffusion):  # the strength D itself, which need not be the square of a known G
        return noise
    names = [variables] if isinstance(variables, str | sp.Symbol) else list(variables)
    if not names or len(set(map(str, names))) < len(names):
        raise SourceError(f"the variables are {', '.join(map(str, names)) or 'none'}; name at least one, and each once")
    force = _components(drift, names, "drift")
    matrix = _noise_matrix(noise, names)
    free = _symbols([*force, *itertools.chain(*matrix)])
    found = tuple(free.get(str(n), n if isinstance(n, sp.Symbol) else sp.Symbol(str(n))) for n in names)
    strength = tuple(tuple(sp.expand(sp.Add(*(a * b for a, b in zip(one, other)))) for other in matrix) for one in matrix)
    return DriftDiffusion(found, tuple(force), strength)


def _components(given: Any, names: Sequence[Any], what: str) -> list[sp.Expr]:
    if isinstance(given, Mapping):
        by_name = {str(key): value for key, value in given.items()}
        stray = [key for key in by_name if key not in set(map(str, names))]
        if stray:
            raise SourceError(f"the {what} has an entry for {stray[0]}; the variables are {', '.join(map(str, names))}")
        given = [by_name.get(str(name), 0) for name in names]
    elif isinstance(given, sp.MatrixBase):
        given = given.flat()
    elif not isinstance(given, list | tuple):
        given = [given]
    if len(given) != len(names):
        raise SourceError(f"the {what} has {len(given)} components for the {len(names)} variables {', '.join(map(str, names))}")
    return [_expression(part, what) for part in given]


def _noise_matrix(given: Any, names: Sequence[Any]) -> list[list[sp.Expr]]:
    """G with one row a variable; a list or a mapping of amplitudes is a diagonal."""
    nested = isinstance(given, list | tuple) and given and isinstance(given[0], list | tuple)
    rows = given.tolist() if isinstance(given, sp.MatrixBase) else given if nested else None
    if rows is None:
        amplitudes = _components(given, names, "noise")
        return [[c if i == j else sp.S.Zero for j in range(len(names))] for i, c in enumerate(amplitudes)]
    if len(rows) != len(names) or len({len(row) for row in rows}) > 1:
        raise SourceError(f"the noise matrix has {len(rows)} rows for {len(names)} variables; one row of G a variable is required")
    return [[_expression(part, "noise") for part in row] for row in rows]


def _expression(value: Any, what: str) -> sp.Expr:
    if isinstance(value, str):
        raise SourceError(f"the {what} {value!r} is text; read it first (symtensor.fields.reading.read_drift_diffusion)")
    expression = exact(value)
    if not isinstance(expression, sp.Expr) or expression.has(sp.nan, sp.oo, -sp.oo, sp.zoo):
        raise SourceError(f"the {what} {value!r} is no finite expression; give SymPy expressions or numbers")
    return expression


def read_couplings(coupling: Any, equations: DriftDiffusion) -> dict[sp.Symbol, int]:
    """{coupling: weight} from a symbol, a mapping, or None.

    Raises SourceError for a variable, an unknown symbol, or a weight that is no positive integer.
    """
    given = {} if coupling is None else coupling if isinstance(coupling, Mapping) else {coupling: 1}
    known = equations.symbols
    found = {}
    for name, weight in given.items():
        if str(name) in set(map(str, equations.variables)) or str(name) not in known:
            others = [s for s in known if s not in set(map(str, equations.variables))]
            raise SourceError(f"the coupling {name} is no parameter of the equations; these are {', '.join(others) or 'none'}")
        if isinstance(weight, bool) or not isinstance(weight, int) or weight < 1:
            raise SourceError(f"the coupling {name} has the weight {weight!r}; it must be a positive integer")
        found[known[str(name)]] = weight
    return found


def graded(
    expression: sp.Expr, variables: Sequence[sp.Symbol], couplings: Mapping[sp.Symbol, int]
) -> dict[int, dict[Powers, sp.Expr]]:
    """{order: {exponents: coefficient}}; of several couplings the powers stay in the coefficient.

    Raises NotPolynomialError.
    """
    count = len(variables)
    found: dict[int, dict[Powers, sp.Expr]] = defaultdict(lambda: defaultdict(lambda: sp.S.Zero))
    for powers, factor in as_polynomial(expression, [*variables, *couplings]):
        order = sum(w * e for w, e in zip(couplings.values(), powers[count:]))
        kept = factor if len(couplings) < 2 else factor * sp.Mul(*(s**e for s, e in zip(couplings, powers[count:])))
        found[order][powers[:count]] += kept
    return {order: dict(part) for order, part in found.items()}
