r"""Linear functionals on monomials that the generator carries through one time window after the other.

F_g[k](t) = F_g[e^{tL} y^k] solves ``dF_g[k]/dt = -E_k F_g[k] + sum c F_{g-h}[k']``, where only lower k' occur at the same order.
It is a sum of t^p exp(-E t) with one factor for each window so far; equal energies give a further power of t. Functionals change
at the end of a window by an operator (an insertion). The stationary state is F_g[k] = (sum c F_{g-h}[k'])/E_k.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from symtensor.fields._moment_operator import Operator, Powers, order_key
from symtensor.fields._scalars import Scalars
from symtensor.fields.errors import TheoryError, UnstableError

__all__ = ["Functionals", "Sum"]

#: (energy, power) for each window, the earliest window first
Key = tuple[tuple[Any, int], ...]
State = tuple[int, Powers]
MAX_STATES = 200_000


@dataclass(frozen=True, slots=True)
class Sum:
    """sum over keys of coefficient * prod over windows t^power exp(-energy t)."""

    terms: Mapping[Key, Any]

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __add__(self, other: Sum) -> Sum:
        return _sum([*self.terms.items(), *other.terms.items()])

    def __mul__(self, other: Any) -> Sum:
        if not isinstance(other, Sum):
            return Sum({key: c * other for key, c in self.terms.items()} if other else {})
        pairs = ((a, b, c * d) for a, c in self.terms.items() for b, d in other.terms.items())
        return _sum((tuple((e + f, p + q) for (e, p), (f, q) in zip(a, b)), c) for a, b, c in pairs)


def _sum(terms: Iterable[tuple[Key, Any]]) -> Sum:
    found: dict[Key, Any] = {}
    for key, c in terms:
        found[key] = found[key] + c if key in found else c
    return Sum({key: c for key, c in found.items() if c})


@dataclass(frozen=True, eq=False)
class Functionals:
    """The functionals of a generator after any sequence of insertions, computed once each."""

    generator: Operator
    scalars: Scalars
    _known: dict[tuple[Operator, ...], dict[State, Sum]] = field(default_factory=dict)
    _energies: dict[Powers, Any] = field(default_factory=dict)

    def value(self, insertions: tuple[Operator, ...], orders: int, size: int) -> list[Sum]:
        """<O_m .. O_2 O_1> by order, the insertions earliest first, a window between any two of them."""
        *before, last = insertions
        one = (0,) * size
        wanted = {(g, k) for g in range(orders + 1) for _, k, _ in last.images(one)}
        table = self._solved(tuple(before), wanted)
        return [self._inserted(last, (g, one), table) for g in range(orders + 1)]

    def _inserted(self, insertion: Operator, state: State, table: Mapping[State, Sum]) -> Sum:
        g, k = state
        return _sum((key, c * factor) for _, low, factor in insertion.images(k) for key, c in table[g, low].terms.items())

    def _solved(self, insertions: tuple[Operator, ...], wanted: set[State]) -> dict[State, Sum]:
        """The functional after these insertions and a window behind the last; the stationary one if there are none."""
        known = self._known.setdefault(insertions, {})
        missing = sorted(self._closure(wanted, known), key=lambda s: (s[0], order_key(s[1])))
        if insertions:
            *before, last = insertions
            images = {(g, low) for g, k in missing for _, low, _ in last.images(k)}
            table = self._solved(tuple(before), images)
            for state in missing:
                known[state] = self._evolved(state, self._inserted(last, state, table), known)
        else:
            for state in missing:
                known[state] = self._stationary(state, known)
        return known

    def _closure(self, wanted: set[State], known: Mapping[State, Sum]) -> set[State]:
        found, stack = set(), [state for state in wanted if state not in known]
        while stack:
            state = stack.pop()
            if state in found:
                continue
            found.add(state)
            if len(found) > MAX_STATES:
                raise TheoryError(f"more than {MAX_STATES} moments are needed; lower the order or the powers")
            stack += [s for s, _ in self._sources(state) if s not in known and s not in found]
        return found

    def _sources(self, state: State) -> list[tuple[State, Any]]:
        g, k = state
        return [((g - h, low), c) for h, low, c in self.generator.images(k) if h <= g and not (h == 0 and low == k)]

    def energy(self, powers: Powers) -> Any:
        """E_k, the rate with which <y^k> relaxes at order zero."""
        found = self._energies.get(powers)
        if found is None:
            diagonal = [c for h, low, c in self.generator.images(powers) if h == 0 and low == powers]
            found = self._energies[powers] = -sum(diagonal, self.scalars.zero)
        return found

    def _stationary(self, state: State, known: Mapping[State, Sum]) -> Sum:
        g, k = state
        if not any(k):
            return Sum({(): self.scalars.one} if g == 0 else {})
        energy = self.energy(k)
        self._require_relaxation(energy, k)
        total = self.scalars.zero
        for lower, c in self._sources(state):
            for value in known[lower].terms.values():
                total += c * value
        return Sum({(): total * self.scalars.inverse(energy)} if total else {})

    def _require_relaxation(self, energy: Any, powers: Powers) -> None:
        rate = self.scalars.write(energy)
        if rate == 0 or (rate.is_number and not sp.re(rate) > 0):
            raise UnstableError(
                f"the moment with the exponents {powers} has the rate {sp.sstr(rate)} at order zero, which is not positive, "
                "so that it has no stationary value; make the linear drift stable"
            )

    def _evolved(self, state: State, initial: Sum, known: Mapping[State, Sum]) -> Sum:
        """Solve dF/dt = -E F + sources with F(0) = initial."""
        energy, zero = self.energy(state[1]), self.scalars.zero
        groups: dict[tuple[Key, Any], dict[int, Any]] = defaultdict(lambda: defaultdict(lambda: zero))
        for lower, factor in self._sources(state):
            for (*before, (rate, power)), c in known[lower].terms.items():
                groups[tuple(before), rate][power] += factor * c
        found: list[tuple[Key, Any]] = [((*key, (energy, 0)), c) for key, c in initial.terms.items()]
        for (before, rate), powers in groups.items():
            particular = self._particular(energy - rate, powers)
            found += [((*before, (rate, p)), a) for p, a in particular.items()]
            found.append(((*before, (energy, 0)), -particular.get(0, zero)))
        return _sum(found)

    def _particular(self, gap: Any, powers: Mapping[int, Any]) -> dict[int, Any]:
        """a_p with (d/dt + gap) sum a_p t^p = sum c_p t^p, without a constant if gap = 0."""
        if not gap:
            return {p + 1: c * self.scalars.inverse(self.scalars.one * (p + 1)) for p, c in powers.items()}
        found: dict[int, Any] = {}
        inverse, above = self.scalars.inverse(gap), self.scalars.zero
        for p in range(max(powers), -1, -1):
            above = found[p] = (powers.get(p, self.scalars.zero) - above * (p + 1)) * inverse
        return found
