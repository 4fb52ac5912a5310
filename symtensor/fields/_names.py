"""The names of a theory: which stand for fields, which for parameters, how many components they have, what clashes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import prod
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from symtensor.fields.errors import SourceError
from symtensor.parsing import ExpressionSyntaxError, name_problem, parse_expression, suggestion

__all__ = ["MAX_COMPONENTS", "Names"]

MAX_COMPONENTS = 400

Shape = tuple[int, ...]
Declared = str | Iterable[str | sp.Symbol] | Mapping[Any, Any] | None


@dataclass(frozen=True, slots=True)
class Names:
    """Symbols and arrays of symbols by name; `free`: any other name is a parameter.

    `fields` and `parameters` hold a symbol, or an array of symbols ``x_1, x_2, ..`` for a name with components.
    """

    fields: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    free: bool = False

    @classmethod
    def read(cls, fields: Declared, parameters: Declared, what: str = "field") -> Names:
        """Read declarations: names, symbols, ``"x, y"``, or ``{"x": 3, "J": (2, 2), "y": None}``.

        Raises: SourceError for a name that cannot be one, or that is used twice.
        """
        names = cls(_declared(fields, what), _declared(parameters, "parameter"), parameters is None)
        taken: dict[str, str] = {}
        for kind, table in ((what, names.fields), ("parameter", names.parameters)):
            for name, entry in table.items():
                for symbol in dict.fromkeys([name, *(s.name for s in _flat(entry))]):
                    if symbol in taken:
                        raise SourceError(
                            f"the {kind} {name!r} clashes with {taken[symbol]}: both are called {symbol!r}; rename one"
                        )
                    taken[symbol] = f"the {kind} {name!r}"
        return names

    @property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        """The components of all fields, in order."""
        return tuple(symbol for entry in self.fields.values() for symbol in _flat(entry))

    @property
    def groups(self) -> tuple[tuple[sp.Symbol, ...], ...]:
        """The components of each field."""
        return tuple(_flat(entry) for entry in self.fields.values())

    def parse(self, text: str, extra: Mapping[str, sp.Expr] | None = None, arrays: Mapping[str, Any] | None = None) -> sp.Expr:
        """The expression that a text stands for; `extra` and `arrays` are further names of this text.

        Raises: SourceError, with the words of the parser.
        """
        known = {**self.fields, **self.parameters}
        scalars = {name: entry for name, entry in known.items() if isinstance(entry, sp.Symbol)} | dict(extra or {})
        shaped = {name: entry for name, entry in known.items() if name not in scalars} | dict(arrays or {})
        try:
            return parse_expression(text, scalars, arrays=shaped, parameters=self.free)
        except ExpressionSyntaxError as error:
            hint = "; a product is written with *" if "cannot read it" in str(error) else ""
            raise SourceError(f"{error}{hint}") from None

    def adopt(self, expression: Any, what: str) -> sp.Expr:
        """A SymPy expression in the symbols of these names: floats become the decimals they show, nothing else is touched.

        Raises: SourceError for what is no real expression, or has symbols that are not declared.
        """
        try:
            value: Any = sp.sympify(expression, strict=True)
        except sp.SympifyError:
            value = None
        if not isinstance(value, sp.Expr):
            raise SourceError(f"{what} must be text or a SymPy expression, got {type(expression).__name__}")
        value = value.xreplace({number: sp.Rational(str(number)) for number in value.atoms(sp.Float)})
        if value.has(sp.I, sp.oo, -sp.oo, sp.zoo, sp.nan):
            raise SourceError(f"{what} {_short(value)} is not real and finite; a response field stands for i times a real field")
        unknown = value.atoms(AppliedUndef, sp.Derivative, sp.Integral)
        if unknown:
            raise SourceError(f"{what} contains {_short(min(unknown, key=str))}; write an expression in fields and parameters")
        self._check_symbols(value, what)
        return value

    def used(self, expressions: Iterable[sp.Expr]) -> tuple[sp.Symbol, ...]:
        """The parameters that occur in the expressions, and the declared ones; sorted by name."""
        found: set[Any] = {symbol for expression in expressions for symbol in expression.free_symbols}
        found |= {symbol for entry in self.parameters.values() for symbol in _flat(entry)}
        return tuple(sorted(found - set(self.symbols), key=lambda s: s.name))

    def _check_symbols(self, value: Any, what: str) -> None:
        declared = {s for table in (self.fields, self.parameters) for entry in table.values() for s in _flat(entry)}
        by_name = {symbol.name: symbol for symbol in declared}
        for symbol in sorted(value.free_symbols, key=str):
            if symbol.name in by_name and by_name[symbol.name] != symbol:
                raise SourceError(
                    f"{what} has the symbol {symbol} with other assumptions than the declared {symbol}; use one symbol"
                )
            if symbol not in declared and not self.free:
                known = ", ".join(sorted(by_name)) or "none"
                raise SourceError(f"{what} has the unknown symbol {symbol}{suggestion(symbol.name, by_name)}; declared: {known}")
        twins = sorted(symbol.name for symbol in value.free_symbols)
        for left, right in pairwise(twins):
            if left == right:
                raise SourceError(f"{what} has two symbols {left} with different assumptions; use one")

    def matched(self, expressions: Iterable[Any]) -> Names:
        """These names with the symbols that SymPy expressions use for them, whatever their assumptions."""
        found = {s.name: s for e in expressions if isinstance(e, sp.Basic) for s in e.free_symbols if isinstance(s, sp.Symbol)}
        fields, parameters = ({k: _matched(v, found) for k, v in table.items()} for table in (self.fields, self.parameters))
        return Names(fields, parameters, self.free)


def _declared(given: Declared, what: str) -> dict[str, Any]:
    if given is None:
        return {}
    if isinstance(given, str):
        given = [word for word in given.replace(",", " ").split() if word]
    if isinstance(given, Mapping):
        entries = list(given.items())
    elif isinstance(given, Iterable):
        entries = [(entry, None) for entry in given]
    else:
        raise SourceError(f"{what}s are given as names, symbols or a mapping to numbers of components, got {given!r}")
    table: dict[str, Any] = {}
    for key, size in entries:
        if not isinstance(key, str | sp.Symbol):
            raise SourceError(f"a {what} is given by its name or as a symbol, got {type(key).__name__} {_short(key)}")
        name = str(key)
        if problem := name_problem(name):
            raise SourceError(f"the {what} {problem}")
        if name in table:
            raise SourceError(f"the {what} {name!r} is declared twice")
        table[name] = _entry(key, _shape(size, name, what))
    return table


def _shape(size: Any, name: str, what: str) -> Shape:
    shape = () if size is None else (size,) if isinstance(size, int) else size
    good = isinstance(shape, tuple | list) and len(shape) <= 3
    if not good or any(not isinstance(n, int) or isinstance(n, bool) or n < 1 for n in shape):
        raise SourceError(f"the {what} {name!r} has {_short(size)} components; give a number such as 3, or (2, 2) for a matrix")
    if prod(shape) > MAX_COMPONENTS:
        raise SourceError(f"the {what} {name!r} has {prod(shape)} components; at most {MAX_COMPONENTS} are read")
    return tuple(shape)


def _entry(key: str | sp.Symbol, shape: Shape) -> Any:
    if not shape:
        return key if isinstance(key, sp.Symbol) else sp.Symbol(key, real=True)
    assumptions = key._assumptions_orig if isinstance(key, sp.Symbol) else {"real": True}
    places = product(*(range(1, size + 1) for size in shape))
    symbols = [sp.Symbol("_".join(map(str, (key, *place))), **assumptions) for place in places]
    return sp.ImmutableDenseNDimArray(symbols, shape)


def _flat(entry: Any) -> tuple[sp.Symbol, ...]:
    return (entry,) if isinstance(entry, sp.Symbol) else tuple(sp.flatten(entry.tolist()))


def _matched(entry: Any, found: Mapping[str, sp.Symbol]) -> Any:
    if isinstance(entry, sp.Symbol):
        return found.get(entry.name, entry)
    return sp.ImmutableDenseNDimArray([found.get(s.name, s) for s in _flat(entry)], entry.shape)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
