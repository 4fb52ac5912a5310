"""The numbers a diagram is made of, as elements of one exact domain: vertices and propagators in the modes, factors of legs.

Products and sums of SymPy expressions with fractions or roots are slow and not canonical; in a field such as QQ<sqrt(3)>(T, g)
they are fast, and a vanishing sum is zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp
from sympy.polys.polyerrors import CoercionFailed

from symtensor.diagrams.graph import Line
from symtensor.fields.free import LinearFree, StaticFree

if TYPE_CHECKING:
    from symtensor.fields.field_theory import FieldTheory

__all__ = ["Elements"]


@dataclass(frozen=True, eq=False)
class Elements:
    """Vertices (in modes), propagators and legs of a theory with vertices of at most `valence` legs.

    `covariance` is the equal-time correlator of the modes (the propagator of a static theory); `modes` has fields as rows, modes as
    columns, `inverse` is its inverse.
    """

    theory: FieldTheory
    domain: Any
    vertices: Mapping[str, tuple[tuple[str, ...], Mapping[tuple[int, ...], Any]]]
    covariance: tuple[tuple[Any, ...], ...]
    modes: tuple[tuple[Any, ...], ...]
    inverse: tuple[tuple[Any, ...], ...]

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
        domain, read = sp.construct_domain([*flat, *(t.entries[k] for t, k in keys)], field=True, extension=True)
        matrices = [[tuple(read[m * size * size + i * size :][:size]) for i in range(size)] for m in range(3)]
        vertices: dict[str, tuple[tuple[str, ...], dict[tuple[int, ...], Any]]] = {t.name: (t.legs, {}) for t in tensors}
        for (tensor, key), value in zip(keys, read[len(flat) :]):
            vertices[tensor.name][1][key] = value
        made = cls(theory, domain, vertices, *(tuple(rows) for rows in matrices))
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

    def write(self, value: Any) -> sp.Expr:
        """An element as an expression."""
        return self.domain.to_sympy(value)

    def canonical(self, expression: sp.Expr) -> sp.Expr:
        """An expression of these numbers in the normal form of the field; others as they are."""
        try:
            return self.domain.to_sympy(self.domain.from_sympy(expression))
        except (CoercionFailed, ZeroDivisionError, NotImplementedError):
            return expression
