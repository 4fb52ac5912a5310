"""The numbers a diagram is made of, as elements of one exact domain: vertices and propagators in the modes, factors of legs.

Products and sums of SymPy expressions with fractions or roots are slow and not canonical; in a field such as QQ<sqrt(3)>(T, g)
they are fast, and a vanishing sum is zero.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sympy as sp
from sympy.polys.polyerrors import CoercionFailed, ExactQuotientFailed

from symtensor.diagrams.graph import Line
from symtensor.fields._float_rates import aligned
from symtensor.fields.free import LinearFree, StaticFree
from symtensor.fields.time_ordered import TimedLine, integrate_times

if TYPE_CHECKING:
    from symtensor.fields.field_theory import FieldTheory

__all__ = ["Elements"]

Integral = tuple[tuple[sp.Expr, ...], Mapping[Any, Any]]
"""Elementary rates, and {((energy, power) for each window): coefficient}, an element of the domain."""


@dataclass(frozen=True, eq=False)
class Elements:
    """Vertices (in modes), propagators and legs of a theory with vertices of at most `valence` legs.

    `covariance` is the equal-time correlator of the modes (the propagator of a static theory); `modes` has fields as rows, modes as
    columns, `inverse` is its inverse. `rates` are those of the modes, decimal numbers made exact together (empty if static).
    """

    theory: FieldTheory
    domain: Any
    vertices: Mapping[str, tuple[tuple[str, ...], Mapping[tuple[int, ...], Any]]]
    covariance: tuple[tuple[Any, ...], ...]
    modes: tuple[tuple[Any, ...], ...]
    inverse: tuple[tuple[Any, ...], ...]
    rates: tuple[Any, ...] = ()
    _integrals: dict[Any, Integral] = field(default_factory=dict, repr=False)
    _leaves: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, theory: FieldTheory, valence: int) -> Elements:
        """Read the theory into the smallest field that holds all its numbers."""
        free, size = theory.free, len(theory.fields)
        unit = sp.ImmutableMatrix.eye(size)
        covariance = free.mode_covariance if isinstance(free, LinearFree) else free.covariance
        tables = [covariance, free.modes, free.inverse_modes] if isinstance(free, LinearFree) else [covariance, unit, unit]
        tensors = theory.tensors(valence)
        flat = [entry for table in tables for entry in table]
        keys = [(tensor, key) for tensor in tensors for key in tensor.entries]
        exact = aligned(free.rates) if isinstance(free, LinearFree) else {}
        rates = tuple(exact.get(rate, rate) for rate in free.rates) if isinstance(free, LinearFree) else ()
        domain, read = _read([*flat, *(t.entries[k] for t, k in keys)], rates)
        matrices = [[tuple(read[m * size * size + i * size :][:size]) for i in range(size)] for m in range(3)]
        vertices: dict[str, tuple[tuple[str, ...], dict[tuple[int, ...], Any]]] = {t.name: (t.legs, {}) for t in tensors}
        for (tensor, key), value in zip(keys, read[len(flat) :]):
            vertices[tensor.name][1][key] = value
        covariance, modes, inverse = (tuple(rows) for rows in matrices)
        made = cls(theory, domain, vertices, covariance, modes, inverse, rates)
        if not tables[1].is_diagonal():
            transformed = {name: (legs, made._in_modes(legs, entries)) for name, (legs, entries) in vertices.items()}
            object.__setattr__(made, "vertices", transformed)
        return made

    def _in_modes(self, legs: tuple[str, ...], entries: Mapping[tuple[int, ...], Any]) -> dict[tuple[int, ...], Any]:
        size = len(self.theory.fields)
        members = {kind.name: kind.components for kind in self.theory.kinds}
        found = dict(entries)
        for at, leg in enumerate(legs):
            summed: dict[tuple[int, ...], Any] = {}
            for key, value in found.items():
                for mode in members[leg]:
                    old = key[at]
                    factor = self.inverse[mode - size][old - size] if old >= size else self.modes[old][mode]
                    if factor:
                        target = (*key[:at], mode, *key[at + 1 :])
                        summed[target] = summed.get(target, self.domain.zero) + value * factor
            found = {key: value for key, value in summed.items() if value}
        return found

    def leg(self, component: int, amputated: bool) -> Iterator[tuple[int, Any]]:
        """A field as a sum over modes: (mode, factor); an amputated one as the derivative with respect to the field."""
        size = len(self.theory.fields)
        if isinstance(self.theory.free, StaticFree):
            yield component, self.domain.one
            return
        response = component >= size
        for mode in range(size):
            field = component % size
            factor = self.inverse[mode][field] if response != amputated else self.modes[field][mode]
            if factor:
                yield mode + (size if response else 0), factor

    def line(self, line: Line, start: int, end: int) -> tuple[Any, bool]:
        """(factor, whether it decays in time) of a line between modes (components of a static theory)."""
        size = len(self.theory.fields)
        if line.propagator is None:
            return (self.domain.one if start == end else self.domain.zero), False
        if line.response:
            return (self.domain.one if start % size == end % size else self.domain.zero), True
        static = isinstance(self.theory.free, StaticFree)
        return self.covariance[start][end], not static and not line.is_self_loop

    def integral(self, lines: Iterable[TimedLine], external: int, internal: int) -> Integral:
        """The integral over the internal times, its coefficients as elements; integrals are kept: many diagrams share them."""
        place = {rate: at for at, rate in enumerate(self.rates)}
        ordered = tuple(
            sorted(lines, key=lambda line: (line.start, line.end, line.weights[1] != 0, *(place[rate] for rate in line.rates)))
        )
        key = (*((line.start, line.end, line.weights, line.rates) for line in ordered), external, internal)
        if key not in self._integrals:
            found = integrate_times(ordered, external, internal)
            self._integrals[key] = found.rates, {k: self.read(c) for k, c in found.terms.items()}
        return self._integrals[key]

    def read(self, expression: Any) -> Any:
        """An expression as an element. Sums, products and powers are taken here: SymPy would look for the minimal polynomial of
        a whole number such as 1/(3 + sqrt(3))^2."""
        parts = expression.args
        if expression.is_Add or expression.is_Mul:
            combine = operator.add if expression.is_Add else operator.mul
            return functools.reduce(combine, map(self.read, parts))
        if expression.is_Pow and expression.exp.is_Integer:
            base, power = self.read(expression.base), int(expression.exp)
            try:
                return base**power if power > 0 else self.domain.exquo(self.domain.one, base**-power)
            except ExactQuotientFailed:  # rounding of decimal numbers
                return self.domain.from_sympy(expression)
        if expression not in self._leaves:
            self._leaves[expression] = self.domain.from_sympy(expression)
        return self._leaves[expression]

    def write(self, value: Any) -> sp.Expr:
        """An element as an expression."""
        return self.domain.to_sympy(value)

    def canonical(self, expression: sp.Expr) -> sp.Expr:
        """An expression of these numbers in the normal form of the field; others as they are."""
        try:
            return self.write(self.read(sp.sympify(expression)))
        except (CoercionFailed, ValueError, ZeroDivisionError, NotImplementedError):
            return expression


def _read(entries: Sequence[Any], rates: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The smallest ring that holds all numbers (a field, unless they are polynomials in parameters), and the entries in it."""
    found: Any = sp.construct_domain([*entries, *rates], field=True, extension=True)
    domain, read = found
    expressions = [sp.sympify(entry) for entry in (*entries, *rates)]
    choices: list[Any] = []
    if domain.is_FractionField and not any(rate.free_symbols for rate in expressions[len(entries) :]):
        choices = [domain.domain.get_field()[domain.symbols]]
    elif domain.is_EX:  # SymPy has no field for roots of numbers beside symbols, such as QQ<sqrt(3)>(a, b)
        choices = _with_roots(expressions)
    for made in choices:
        try:
            return made, [made.from_sympy(e) for e in expressions][: len(entries)]
        except (CoercionFailed, ValueError):  # a fraction, or a function of the parameters
            continue
    return domain, read[: len(entries)]


def _with_roots(expressions: Sequence[Any]) -> list[Any]:
    roots = {part for e in expressions for part in sp.preorder_traversal(e) if part is sp.I or _is_root(part)}
    symbols = sorted({s for e in expressions for s in e.free_symbols}, key=lambda s: s.name)
    if not roots or not symbols or any(e.has(sp.Float) for e in expressions):
        return []
    numbers, _ = sp.construct_domain(sorted(roots, key=sp.default_sort_key), field=True, extension=True)
    return [numbers[tuple(symbols)], numbers.frac_field(*symbols)]


def _is_root(part: Any) -> bool:
    return part.is_Pow and part.base.is_Rational and part.exp.is_Rational and not part.is_Rational
