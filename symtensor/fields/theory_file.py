'''Theories in TOML files, for `symtensor fields FILE.toml`.

    name = "cubic"                     # optional; the name of the file otherwise
    title = "quartic potential"        # optional
    equations = """
    dx = -(x + g*x^3) dt + sqrt(2*T) dW
    """
    interpretation = "ito"             # optional; or "stratonovich", to have the equations converted
    variables = { u = 2 }              # only for variables with components; otherwise read off the equations
    parameters = ["g", "T"]            # optional: then no other name may occur; or a table { J = [2, 2], T = [] }
    legs = ["x", "x"]                  # optional, with loops: what to compute if the command line does not say
    loops = 2

    [point]                            # optional: where to expand; numbers, or text in the parameters
    x = 0
    [values]                           # optional: numbers for parameters; J = [[0, 1], [1, 0]] for a matrix
    g = 0.1

or, for a static theory with the weight exp(-S), in place of equations, interpretation and variables

    action = "x^2/2 + g*x^4/24"
    fields = ["x"]                     # or a table { x = 3 } for the components x[1], x[2], x[3]

An unknown or missing key and a value of the wrong type are errors that name the key. Files are data: formulas are parsed by
`symtensor.parsing`, nothing is evaluated, decimals are exact.

>>> file = parse_theory_file('action = "x^2/2 + g*x^4/24"' + chr(10) + 'fields = ["x"]' + chr(10) + "values = { g = 0.1 }", "phi4")
>>> file.values
{'g': 1/10}
>>> parse_theory_file(file.text, "phi4") == file
True
'''

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import sympy as sp

from symtensor.fields.equations import Equations, read_equations
from symtensor.fields.errors import SourceError, TheoryError
from symtensor.fields.reading import ActionText, read_action
from symtensor.parsing import ExpressionSyntaxError, parse_expression, suggestion

__all__ = ["MAX_LOOPS", "TheoryFile", "load_theory_file", "parse_theory_file"]

MAX_LOOPS = 20
MAX_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class TheoryFile:
    """What a theory file says; `action` or `equations` is text, the other one is empty.

    Attributes:
        name, title: of the theory.
        action, fields: of a static theory; `fields` as for `read_action`.
        equations, variables, interpretation: of a stochastic theory, as for `read_equations`.
        parameters: as for both; None if every other name is a parameter.
        point, values: as for `stationary_point`; empty if not given. Entries of arrays have the names of the components.
        legs, loops: the cumulant asked for; empty and None if not given.
    """

    name: str
    title: str = ""
    action: str = ""
    fields: tuple[str, ...] | Mapping[str, Any] = ()
    equations: str = ""
    variables: tuple[str, ...] | Mapping[str, Any] | None = None
    interpretation: Any = "ito"
    parameters: tuple[str, ...] | Mapping[str, Any] | None = None
    point: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    legs: tuple[str, ...] = ()
    loops: int | None = None

    @property
    def stochastic(self) -> bool:
        """Whether the theory is one of stochastic equations."""
        return bool(self.equations)

    def read(self) -> ActionText | Equations:
        """The action or the equations as values; raises SourceError as the readers do."""
        if self.stochastic:
            return read_equations(
                self.equations, parameters=self.parameters, variables=self.variables, interpretation=self.interpretation
            )
        return read_action(self.action, self.fields, self.parameters)

    @property
    def text(self) -> str:
        """The TOML text; `parse_theory_file` reads it back to an equal value."""
        default = TheoryFile(self.name)
        lines = []
        for key in (key for key in _READERS if key not in ("point", "values")):
            value = getattr(self, key)
            if key == "name" or value != getattr(default, key):
                lines.append(f"{key} = {_toml(value)}")
        for key in ("point", "values"):
            if table := getattr(self, key):
                lines += ["", f"[{key}]", *(f"{name} = {_toml(value)}" for name, value in table.items())]
        return "\n".join(lines) + "\n"


def load_theory_file(path: str | Path) -> TheoryFile:
    """The theory in a TOML file; its name is that of the file unless the file gives one.

    Raises: SourceError naming the file and the key that is wrong; OSError if the file cannot be read.
    """
    path = Path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SourceError(f"it has {path.stat().st_size} bytes; at most {MAX_BYTES} are read")
        return parse_theory_file(path.read_text(encoding="utf-8"), path.stem)
    except UnicodeDecodeError as error:
        raise SourceError(f"theory file {path} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except TheoryError as error:
        raise SourceError(f"theory file {path}: {error}") from None


def parse_theory_file(text: str, name: str) -> TheoryFile:
    """The theory that a TOML text describes, its formulas checked; `name` is its name unless the text gives one.

    Raises: SourceError for text that is not TOML, an unknown, missing or ill-typed key, a formula that cannot be read.
    """
    try:
        data = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SourceError(f"not a TOML file: {error}") from None
    for key in data:
        if key not in _READERS:
            raise SourceError(f"unknown key {key!r}{suggestion(key, _READERS)}; allowed keys: {', '.join(_READERS)}")
    entries: dict[str, Any] = {"name": name} | {key: _READERS[key](value, key) for key, value in data.items()}
    file = TheoryFile(**entries)
    _check_kind(data)
    try:
        read = file.read()
    except SourceError as error:
        raise SourceError(f"{'equations' if file.stochastic else 'action'}: {error}") from None
    _check_names(file, read)
    return file


def _check_kind(data: Mapping[str, Any]) -> None:
    """A file has an action or equations, and only the keys that go with them."""
    if ("action" in data) == ("equations" in data):
        both = "both an action and equations" if "action" in data else "neither an action nor equations"
        raise SourceError(f"the file has {both}; it needs one of the keys action (with fields) and equations")
    mine, wrong = ("action", ("variables", "interpretation")) if "action" in data else ("equations", ("fields",))
    for key in wrong:
        if key in data:
            fix = "use the key variables" if key == "fields" else "leave it out"
            raise SourceError(f"the key {key!r} does not go with {mine}; {fix}")
    if mine == "action" and "fields" not in data:
        raise SourceError(
            "the key 'fields' is missing: it says which names in the action are integrated over, as in fields = [\"x\"]"
        )


def _check_names(file: TheoryFile, read: ActionText | Equations) -> None:
    fields = [s.name for s in (read.variables if isinstance(read, Equations) else read.fields)]
    parameters = [s.name for s in read.parameters]
    for key, table, known in (("point", file.point, fields), ("values", file.values, parameters)):
        for name in table:
            if name not in known:
                what = "field" if key == "point" else "parameter"
                have = ", ".join(known) or "none"
                raise SourceError(f"{key}: {name!r} is no {what} of the theory{suggestion(name, known)}; there are: {have}")
    if file.loops is not None and not file.legs:
        raise SourceError('loops is given without legs; say of which cumulant, as in legs = ["x", "x"]')
    legs = [*fields, *(f"{name}t" for name in fields)] if file.stochastic else fields
    for leg in file.legs:
        if leg not in legs:
            raise SourceError(f"legs: {leg!r} is no field of the theory{suggestion(leg, legs)}; there are: {', '.join(legs)}")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise SourceError(f"{where} must be a string that is not empty, got {_kind(value)}")
    return value


def _names(value: Any, where: str) -> tuple[str, ...] | dict[str, Any]:
    """A list of names, or a table of numbers of components; [] and 1-component names are told apart."""
    if isinstance(value, Mapping):
        return {name: _size(size, f"{where}.{name}") for name, size in value.items()}
    if not isinstance(value, list):
        raise SourceError(f"{where} must be a list of names or a table of numbers of components, got {_kind(value)}")
    return tuple(_text(entry, f"{where}[{at}]") for at, entry in enumerate(value))


def _size(value: Any, where: str) -> tuple[int, ...] | None:
    sizes = value if isinstance(value, list) else [value]
    if any(not isinstance(n, int) or isinstance(n, bool) for n in sizes):
        raise SourceError(f"{where} must be a number of components such as 3, [2, 2] or [] (no components), got {_kind(value)}")
    return tuple(sizes) or None


def _legs(value: Any, where: str) -> tuple[str, ...]:
    """A list of fields, or text with commas, as on the command line."""
    entries = value.split(",") if isinstance(value, str) else value
    if not isinstance(entries, list) or not entries:
        raise SourceError(f'{where} must be a list of fields such as ["x", "x"], got {_kind(value)}')
    return tuple(_text(entry, where).strip() for entry in entries)


def _loops(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_LOOPS:
        raise SourceError(f"{where} must be an integer from 0 to {MAX_LOOPS}, got {_kind(value)}")
    return value


def _interpretation(value: Any, where: str) -> str:
    if value not in ("ito", "stratonovich"):
        raise SourceError(f'{where} must be "ito" or "stratonovich", got {_kind(value)}')
    return value


def _table(value: Any, where: str, number: Callable[[Any, str], Any]) -> dict[str, Any]:
    """Numbers by name; lists are those of components, so that J = [[..], [..]] gives J_1_1, J_1_2, .."""
    if not isinstance(value, Mapping):
        raise SourceError(f"{where} must be a table, as in {where} = {{ x = 0 }}, got {_kind(value)}")
    found: dict[str, Any] = {}
    pending = [(name, entry, f"{where}.{name}") for name, entry in value.items()]
    while pending:
        name, entry, place = pending.pop(0)
        if isinstance(entry, list):
            pending[:0] = [(f"{name}_{i}", part, f"{place}[{i}]") for i, part in enumerate(entry, start=1)]
        elif name in found:
            raise SourceError(f"{place} gives {name} a second time")
        else:
            found[name] = number(entry, place)
    return found


def _number(value: Any, where: str) -> sp.Expr:
    """A real number: an integer, a decimal (exact), or text such as "1/3" or "sqrt(2)"."""
    if isinstance(value, str):
        try:
            return parse_expression(value, ())
        except ExpressionSyntaxError as error:
            raise SourceError(f"{where}: {error}") from None
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) <= 300:
        return sp.Rational(*value.as_integer_ratio())
    if isinstance(value, int) and not isinstance(value, bool):
        return sp.Integer(value)
    raise SourceError(f"{where} must be a finite real number, got {_kind(value)}")


def _coordinate(value: Any, where: str) -> Any:
    """A number, or text in the parameters, which is read when the point is checked."""
    return _text(value, where) if isinstance(value, str) else _number(value, where)


_READERS: dict[str, Callable[[Any, str], Any]] = {
    "name": _text, "title": _text, "action": _text, "fields": _names, "equations": _text, "variables": _names,
    "interpretation": _interpretation, "parameters": _names, "legs": _legs, "loops": _loops,
    "point": lambda value, where: _table(value, where, _coordinate), "values": lambda value, where: _table(value, where, _number),
}  # fmt: skip


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a table"
    return "a list" if isinstance(value, list) else (str(value) if isinstance(value, Decimal) else repr(value))[:60]


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(() if entry is None else entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, int | sp.Integer):
        return str(value)
    # JSON's strings are TOML's, but for DEL, which TOML wants escaped; surrogate pairs of \u escapes are avoided.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
