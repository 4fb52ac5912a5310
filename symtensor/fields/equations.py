r"""Stochastic equations dx = f(x) dt + G(x) dW, E dW dW^T = 1 dt, read from text or SymPy; their sense is Ito's.

    dx = -(x + g*x^3) dt + sqrt(2*T) dW            one variable; the names dW, dW1, dW_a are independent Wiener processes
    du[i] = (-u[i] + sum(j, J[i,j]*tanh(u[j]))) dt + sqrt(2*T) dW[i]    all components, with variables={"u": 3}
    dx = (-x + eta) dt                             coloured noise: one more variable,
    eta = OU(k, s)                                 d eta = -k eta dt + sqrt(2 k s) dW_eta, <eta(t) eta(0)> = s exp(-k |t|)

Equations stand on lines of their own, or between semicolons; ``#`` starts a comment.

A Stratonovich equation is converted: f_i + (1/2) sum_{jk} G_jk dG_ik/dx_j is the drift in Ito's sense.
Reference: Gardiner, Handbook of Stochastic Methods (2004), eq. (4.3.43).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sympy as sp

from symtensor.fields._equation_text import Line, parse_line, split_lines, variables_of
from symtensor.fields._names import Declared, Names
from symtensor.fields.errors import SourceError

__all__ = ["Equations", "Interpretation", "read_equations"]

Interpretation = Literal["ito", "stratonovich"]


@dataclass(frozen=True, slots=True)
class Equations:
    """dx = f(x) dt + G(x) dW in Ito's sense.

    Attributes:
        variables: x, all components in order.
        drift: f, one expression for each variable; a conversion is included.
        noise: G, one row for each variable and one column for each Wiener process.
        wieners: the names of the Wiener processes (columns), as ``W1``.
        parameters: all other symbols, sorted by name.
        interpretation: how the given equations were meant.
        correction: what a conversion from Stratonovich has added to the drift; zeros otherwise.
        components: the name of each variable with its components.
    """

    variables: tuple[sp.Symbol, ...]
    drift: tuple[sp.Expr, ...]
    noise: sp.ImmutableMatrix
    wieners: tuple[str, ...]
    parameters: tuple[sp.Symbol, ...]
    interpretation: Interpretation
    correction: tuple[sp.Expr, ...]
    components: tuple[tuple[str, tuple[sp.Symbol, ...]], ...]

    @property
    def diffusion(self) -> sp.ImmutableMatrix:
        """G G^T, the covariance of the noise per time."""
        return sp.ImmutableMatrix(self.noise * self.noise.T)

    @property
    def additive(self) -> bool:
        """Whether the noise does not depend on the variables."""
        return not self.noise.free_symbols & set(self.variables)

    @property
    def text(self) -> str:
        """The Ito equations, one a line; `read_equations` reads them back."""
        lines = []
        for row, (variable, drift) in enumerate(zip(self.variables, self.drift)):
            terms = [f"({drift}) dt"] if drift != 0 else []
            terms += [f"({entry}) d{name}" for entry, name in zip(self.noise.row(row), self.wieners) if entry != 0]
            lines.append(f"d{variable} = {' + '.join(terms) or '0 dt'}")
        return "\n".join(lines).replace("**", "^")

    def latex(self) -> str:
        """The Ito equations in LaTeX, aligned at the equality signs."""
        lines = []
        for row, (variable, drift) in enumerate(zip(self.variables, self.drift)):
            terms = [rf"\left({sp.latex(drift)}\right) dt"] if drift != 0 else []
            noise = zip(self.noise.row(row), self.wieners)
            terms += [rf"{_factor(entry)}\, d{sp.latex(sp.Symbol(name))}" for entry, name in noise if entry != 0]
            lines.append(rf"d{sp.latex(variable)} &= {' + '.join(terms) or '0'}")
        return r"\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}"

    def _repr_latex_(self) -> str:
        return f"$$ {self.latex()} $$"


def read_equations(
    equations: Any,
    noise: Any = None,
    parameters: Declared = None,
    *,
    variables: Declared = None,
    interpretation: Interpretation = "ito",
) -> Equations:
    """Read stochastic equations.

    Args:
        equations: text as above; or {variable: right-hand side or drift, as text or SymPy}.
        noise: only with a mapping of drifts: the matrix G, or {variable: amplitude of a Wiener process of its own}.
        parameters: names, symbols or ``{"J": (2, 2)}``; if not given, every other name is a parameter.
        variables: names or symbols in the order wanted, ``{"u": 3}`` for components; needed for components only.
        interpretation: ``ito``, or ``stratonovich`` to have the equations converted.

    Raises:
        SourceError: text that is no equation, a term without dt or dW, an equation too many or too few, an unknown
            symbol, a clash of names, no noise at all.

    Example:
        >>> read = read_equations("dx = -(x + g*x^3) dt + sqrt(2*T) dW")
        >>> read.drift, read.noise, read.parameters
        ((-g*x**3 - x,), Matrix([[sqrt(2)*sqrt(T)]]), (T, g))
        >>> read_equations("dx = -x dt + s*x dW", interpretation="stratonovich").correction
        (s**2*x/2,)
    """
    if interpretation not in ("ito", "stratonovich"):
        raise SourceError(f"the interpretation {interpretation!r} does not exist; choose 'ito' or 'stratonovich'")
    if isinstance(equations, str):
        if noise is not None:
            raise SourceError("noise= goes with a mapping of drifts; in text, write the noise as ... dW")
        lines = split_lines(equations)
    elif isinstance(equations, Mapping):
        if noise is not None or not all(isinstance(value, str) for value in equations.values()):
            return _from_drifts(equations, variables, parameters, noise, interpretation)
        lines = [Line.of(f"d{key}", value) for key, value in equations.items()]
        variables = list(equations) if variables is None else variables
    else:
        raise SourceError(f"equations are given as text or as a mapping from variables, got {type(equations).__name__}")
    names = Names.read(variables_of(lines) if variables is None else variables, parameters, "variable")
    return _from_lines(lines, names, interpretation)


def _from_lines(lines: Sequence[Line], names: Names, interpretation: Interpretation) -> Equations:
    found: dict[sp.Symbol, tuple[sp.Expr, Mapping[str, sp.Expr]]] = {}
    for line in lines:
        for variable, drift, amplitudes in parse_line(line, names):
            if variable in found:
                raise SourceError(f"there are two equations for {variable}; {line.text!r} is the second")
            found[variable] = (drift, amplitudes)
    missing = [symbol.name for symbol in names.symbols if symbol not in found]
    if missing:
        raise SourceError(f"there is no equation for {', '.join(missing)}; write d{missing[0]} = ... dt + ... dW")
    wieners = tuple(dict.fromkeys(name for symbol in names.symbols for name in found[symbol][1]))
    rows = [[found[symbol][1].get(name, sp.S.Zero) for name in wieners] for symbol in names.symbols]
    drift = tuple(found[symbol][0] for symbol in names.symbols)
    return _checked(names, drift, sp.Matrix(len(rows), len(wieners), sp.flatten(rows)), wieners, interpretation)


def _from_drifts(
    drifts: Mapping[Any, Any], variables: Declared, parameters: Declared, noise: Any, interpretation: Interpretation
) -> Equations:
    names = Names.read(list(drifts) if variables is None else variables, parameters, "variable")
    noise = [[noise]] if isinstance(noise, int | float | str | sp.Expr) else noise
    amplitudes = list(noise.values()) if isinstance(noise, Mapping) else noise
    names = names.matched([*drifts.values(), *sp.flatten(amplitudes if amplitudes is not None else [])])
    by_name = {str(key): value for key, value in drifts.items()}
    if set(by_name) != {symbol.name for symbol in names.symbols}:
        wanted = ", ".join(symbol.name for symbol in names.symbols)
        raise SourceError(f"the drifts are of {', '.join(by_name)}, the variables are {wanted}; give one drift for each")
    drift = tuple(_value(by_name[s.name], names, f"the drift of {s.name}") for s in names.symbols)
    matrix, wieners = _noise_matrix(noise, names)
    return _checked(names, drift, matrix, wieners, interpretation)


def _noise_matrix(noise: Any, names: Names) -> tuple[sp.Matrix, tuple[str, ...]]:
    size = len(names.symbols)
    if isinstance(noise, Mapping):
        by_name = {str(key): value for key, value in noise.items()}
        for name in by_name:
            if name not in {symbol.name for symbol in names.symbols}:
                raise SourceError(
                    f"noise= has {name!r}, which is no variable; the variables are {', '.join(map(str, names.symbols))}"
                )
        driven = [s for s in names.symbols if s.name in by_name]
        columns = [
            [_value(by_name[s.name], names, f"the noise of {s.name}") if r == s else sp.S.Zero for s in driven]
            for r in names.symbols
        ]
        wieners = ("W",) if size == 1 else tuple(f"W_{s.name}" for s in driven)
        return sp.Matrix(size, len(driven), sp.flatten(columns)), wieners[: len(driven)]
    if noise is None:
        return sp.zeros(size, 0), ()
    rows = noise.tolist() if isinstance(noise, sp.MatrixBase) else noise
    shaped = isinstance(rows, Sequence) and all(isinstance(row, Sequence) and not isinstance(row, str) for row in rows)
    if not shaped or len(rows) != size or len({len(row) for row in rows}) != 1:
        raise SourceError(f"noise= must be a matrix with {size} rows, one for each variable, or a mapping from variables")
    entries = [[_value(v, names, "an entry of the noise") for v in row] for row in rows]
    count = len(entries[0])
    return sp.Matrix(entries), ("W",) if count == 1 else tuple(f"W{i + 1}" for i in range(count))


def _value(given: Any, names: Names, what: str) -> sp.Expr:
    return names.parse(given) if isinstance(given, str) else names.adopt(given, what)


def _checked(
    names: Names, drift: Sequence[sp.Expr], noise: sp.Matrix, wieners: tuple[str, ...], interpretation: Interpretation
) -> Equations:
    entries: list[Any] = [*drift, *noise]
    parameters = names.used(entries)
    if any(symbol.name == "t" for symbol in parameters):
        raise SourceError("the equations contain the time t; only equations that do not depend on it have a stationary state")
    if noise.is_zero_matrix or not wieners:
        raise SourceError("the equations have no noise, so nothing fluctuates; add a term such as sqrt(2*T) dW")
    correction = tuple(sp.S.Zero for _ in drift)
    if interpretation == "stratonovich":
        correction = tuple(_correction(noise, names.symbols, row) for row in range(len(drift)))
        drift = tuple(f + c for f, c in zip(drift, correction))
    components = tuple(zip(names.fields, names.groups))
    read = Equations(
        names.symbols, tuple(drift), sp.ImmutableMatrix(noise), wieners, parameters, interpretation, correction, components
    )
    if not any(expr.free_symbols & set(names.symbols) for expr in read.drift):
        raise SourceError("the drift does not depend on the variables, so there is no stationary state")
    return read


def _correction(noise: sp.Matrix, variables: Sequence[sp.Symbol], row: int) -> sp.Expr:
    """(1/2) sum_{jk} G_jk dG_ik/dx_j for the variable i in this row."""
    terms = (noise[j, k] * sp.diff(noise[row, k], x) for j, x in enumerate(variables) for k in range(noise.cols))
    return sp.expand(sp.Add(*terms) / 2)


def _factor(entry: sp.Expr) -> str:
    return rf"\left({sp.latex(entry)}\right)" if entry.is_Add else sp.latex(entry)
