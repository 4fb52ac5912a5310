"""Lines such as ``dx = -x dt + sqrt(2*T) dW`` taken apart: variable, drift, amplitude of each Wiener process."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import sympy as sp

from symtensor.fields._names import Names
from symtensor.fields.errors import SourceError
from symtensor.parsing import name_problem

__all__ = ["Line", "parse_line", "split_lines", "variables_of"]

MAX_LINES = 400
_LEFT = re.compile(r"\s*([A-Za-z]\w*)\s*(?:\[\s*([\w\s,]+)\])?\s*\Z", re.ASCII)
_DIFFERENTIAL = re.compile(r"\b(?:dt|d(W\w*))\b", re.ASCII)
_STEP = "dt"
_FORM = "write for example: dx = -x dt + sqrt(2*T) dW"


@dataclass(frozen=True, slots=True)
class Line:
    """One equation: the variable on its left, subscripts as written, right-hand side; `coloured`: of the form OU(..)."""

    text: str
    variable: str
    subscripts: tuple[str, ...]
    right: str
    coloured: bool

    @classmethod
    def of(cls, left: str, right: str) -> Line:
        """Raises: SourceError if the left-hand side is neither dx, dx[i] nor, before OU(..), a name."""
        text = f"{left.strip()} = {right.strip()}"
        match = _LEFT.match(left)
        coloured = re.match(r"\s*OU\s*\(", right) is not None
        if re.search(r"/\s*dt\b", left) or left.strip().endswith("'"):
            raise SourceError(f"{_short(text)} is not written with differentials; {_FORM}")
        if match is None:
            raise SourceError(f"{_short(left.strip())} on the left of {_short(text)} is no differential; {_FORM}")
        word = match[1]
        if not coloured and not (word.startswith("d") and len(word) > 1):
            raise SourceError(
                f"{word!r} on the left of {_short(text)} is no differential; {_FORM}, or for coloured noise {word} = OU(k, s)"
            )
        variable = word if coloured else word[1:]
        if problem := name_problem(variable):
            raise SourceError(f"on the left of {_short(text)}: {problem}")
        if variable == "t" or (variable.startswith("W") and not coloured):
            meaning = "time" if variable == "t" else "a Wiener process"
            raise SourceError(f"d{variable} stands for {meaning} and cannot be a variable, in {_short(text)}; choose another name")
        subscripts = tuple(part.strip() for part in match[2].split(",")) if match[2] else ()
        return cls(text, variable, subscripts, right.strip(), coloured)


def split_lines(text: str) -> list[Line]:
    """The equations of a text, one on each line or between semicolons."""
    control = next((c for c in text if ord(c) < 32 and c not in "\n\r\t"), "")
    if control:
        raise SourceError(f"the text has the control character {control!r}, which is no part of an equation; take it out")
    parts = [part.split("#")[0].strip() for line in text.splitlines() for part in line.split("#")[0].split(";")]
    parts = [part for part in parts if part]
    if not parts:
        raise SourceError(f"there is no equation in {_short(text)}; {_FORM}")
    if len(parts) > MAX_LINES:
        raise SourceError(f"there are {len(parts)} equations; at most {MAX_LINES} are read")
    lines = []
    for part in parts:
        if part.count("=") != 1:
            raise SourceError(f"{_short(part)} has {part.count('=')} equality signs, an equation has one; {_FORM}")
        lines.append(Line.of(*part.split("=")))
    return lines


def variables_of(lines: Sequence[Line]) -> list[str]:
    """The variables on the left-hand sides, each once, in order.

    Raises: SourceError for a subscript: the number of components is not in the text.
    """
    for line in lines:
        if line.subscripts:
            raise SourceError(f"{_short(line.text)} has components; say how many: variables={{{line.variable!r}: 2}}")
    return list(dict.fromkeys(line.variable for line in lines))


def parse_line(line: Line, names: Names) -> Iterator[tuple[sp.Symbol, sp.Expr, dict[str, sp.Expr]]]:
    """(variable, drift, {Wiener process: amplitude}) for each component that the line stands for."""
    for variable, indices in _components(line, names):
        read = _coloured if line.coloured else _linear
        yield variable, *read(line, names, variable, indices)


def _components(line: Line, names: Names) -> Iterator[tuple[sp.Symbol, dict[str, sp.Expr]]]:
    """The components of the left-hand side, with the values of its free indices."""
    if line.variable not in names.fields:
        known = ", ".join(names.fields) or "none"
        raise SourceError(f"{_short(line.text)} is an equation for {line.variable}, which is no variable; declared: {known}")
    entry = names.fields[line.variable]
    scalar = isinstance(entry, sp.Symbol)
    shape = () if scalar else entry.shape
    if len(shape) != len(line.subscripts):
        form = f"d{line.variable}[{', '.join('ijk'[: len(shape)])}]" if shape else f"d{line.variable}"
        raise SourceError(
            f"{line.variable} has {len(shape)} subscripts, {_short(line.text)} has {len(line.subscripts)}; write {form} = ..."
        )
    if scalar:
        yield entry, {}
        return
    for subscript in line.subscripts:
        clash = subscript in names.fields or subscript in names.parameters
        problem = f"{subscript!r} means something else here" if clash else name_problem(subscript)
        if not subscript.isdigit() and problem:
            raise SourceError(f"the subscript on the left of {_short(line.text)}: {problem}")
    for place in product(*(range(1, size + 1) for size in shape)):
        indices: dict[str, int] = {}
        # a repeated index, as in dx[i, i], selects the diagonal; a number selects one component
        if all(int(s) == p if s.isdigit() else indices.setdefault(s, p) == p for s, p in zip(line.subscripts, place)):
            component: Any = entry[tuple(p - 1 for p in place)]
            yield component, {name: sp.Integer(p) for name, p in indices.items()}
    for subscript, size in zip(line.subscripts, shape):
        if subscript.isdigit() and not 1 <= int(subscript) <= size:
            raise SourceError(
                f"the subscript {subscript} in {_short(line.text)}: the components of {line.variable} are 1 to {size}"
            )


def _linear(line: Line, names: Names, variable: sp.Symbol, indices: dict[str, sp.Expr]) -> tuple[sp.Expr, dict[str, sp.Expr]]:
    """The coefficients of dt and of every dW, in which the right-hand side must be linear."""
    _refuse_stratonovich(line)
    scalars, arrays, processes = _differentials(line, names)
    value = names.parse(_with_products(line.right), {**indices, **scalars}, arrays)
    steps = {scalars[_STEP]: "t", **processes}
    left = value.xreplace(dict.fromkeys(steps, sp.S.Zero))
    inside = {f"d{s.name}" for s in names.symbols} & {str(s) for s in value.free_symbols}
    if inside:
        raise SourceError(
            f"{min(inside)} stands inside {_short(line.text)}; solve for the differentials, so that it is only on the left"
        )
    if left != 0:
        raise SourceError(f"{_short(left)} in {_short(line.text)} has neither dt nor dW; put brackets around sums: (a + b) dt")
    coefficients = {name: sp.diff(value, step) for step, name in steps.items()}
    for name, coefficient in coefficients.items():
        if coefficient.free_symbols & set(steps):
            raise SourceError(
                f"{_short(line.text)} is not linear in the differentials: d{name} has the factor {_short(coefficient)}"
            )
    drift = coefficients.pop("t")
    return drift, {name: coefficient for name, coefficient in coefficients.items() if coefficient != 0}


def _differentials(line: Line, names: Names) -> tuple[dict[str, Any], dict[str, Any], dict[sp.Symbol, str]]:
    """Symbols for dt and the dW of a line, scalar or with the shape of the variable, and their names."""
    scalars: dict[str, Any] = {_STEP: sp.Dummy(_STEP, real=True)}
    arrays: dict[str, Any] = {}
    processes: dict[sp.Symbol, str] = {}
    entry = names.fields[line.variable]
    for match in _DIFFERENTIAL.finditer(line.right):
        word, process = match[0], match[1]
        if process is None or word in scalars or word in arrays:
            continue
        if process in names.fields or process in names.parameters:
            raise SourceError(f"{word} in {_short(line.text)} is a Wiener process, but {process!r} is declared; rename one")
        if re.match(r"\s*\[", line.right[match.end() :]) is None:
            scalars[word] = sp.Dummy(word, real=True)
            processes[scalars[word]] = process
            continue
        if isinstance(entry, sp.Symbol):
            raise SourceError(
                f"{word}[..] in {_short(line.text)}: {line.variable} has no components; number the processes: {word}1, {word}2"
            )
        places = list(product(*(range(1, size + 1) for size in entry.shape)))
        symbols = [sp.Dummy("_".join(map(str, (word, *place))), real=True) for place in places]
        arrays[word] = sp.ImmutableDenseNDimArray(symbols, entry.shape)
        processes |= {s: "_".join(map(str, (process, *place))) for s, place in zip(symbols, places)}
    return scalars, arrays, processes


def _with_products(right: str) -> str:
    """A sign of multiplication in front of every differential that follows a factor."""
    return re.sub(r"(?<=[\w)\]])(\s+|(?<=[)\]]))(?=(?:dt|dW\w*)\b)", "*", right, flags=re.ASCII)


def _coloured(line: Line, names: Names, variable: sp.Symbol, indices: dict[str, sp.Expr]) -> tuple[sp.Expr, dict[str, sp.Expr]]:
    """eta = OU(k, s): d eta = -k eta dt + sqrt(2 k s) dW_eta, of variance s and correlation time 1/k."""
    arguments = _arguments(line)
    values = []
    for text, what in zip(arguments, ("rate", "variance")):
        value = names.parse(text, indices)
        inside = value.free_symbols & set(names.symbols)
        if inside:
            raise SourceError(f"the {what} {_short(value)} in {_short(line.text)} depends on the variable {min(inside, key=str)}")
        if value.is_nonpositive:
            raise SourceError(f"the {what} {_short(value)} in {_short(line.text)} must be positive")
        values.append(value)
    rate, variance = values
    return -rate * variable, {f"W_{variable.name}": sp.sqrt(2 * rate * variance)}


def _arguments(line: Line) -> list[str]:
    inner = line.right[line.right.index("(") + 1 :].rstrip()
    parts, depth = [""], 0
    for character in inner[:-1]:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    if not inner.endswith(")") or depth != 0 or len(parts) != 2:
        raise SourceError(f"{_short(line.right)} is not of the form OU(rate, variance), as in {line.variable} = OU(1/tau, s)")
    return parts


def _refuse_stratonovich(line: Line) -> None:
    if re.search(r"(?<![\w.])o\s*\*?\s*dW", line.right) or "∘" in line.right:
        raise SourceError(
            f"{_short(line.text)} has the Stratonovich product o; write it without, and say interpretation='stratonovich'"
        )


def _short(value: Any) -> str:
    text = str(value)
    return repr(text if len(text) <= 70 else text[:67] + "...") if isinstance(value, str) else text[:70]
