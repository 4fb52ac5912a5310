"""Dynamic programming over the sets of nodes that lie later than a time.

A set is an integer with one bit a node; external nodes, latest first, are the lowest bits. It can only contain external
node k together with 0 .. k-1, so it says in which window of time it lives.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from symtensor.fields._rate_field import RateField

__all__ = ["DirectedLine", "DivergentCut", "TimeOrders"]

Energy = tuple[int, ...]
Key = tuple[tuple[Energy, int], ...]


class DivergentCut(Exception):
    """No decay while exactly these nodes are later: the integral over the time difference diverges."""

    def __init__(self, nodes: tuple[int, ...], future: bool) -> None:
        super().__init__(nodes, future)
        self.nodes = nodes
        self.future = future


@dataclass(frozen=True, slots=True)
class DirectedLine:
    """A line for one order of its ends: leaves `node` (later) for `other` (earlier)."""

    other: int
    weight: Any
    energy: Energy


@dataclass(frozen=True)
class TimeOrders:
    """The orders of the times of a diagram.

    Parameters
    ----------
    lines : for each node the lines seen from it, as if it were the later end; both views of a line are present.
    external : number of nodes at fixed times, t_0 > t_1 > ..
    field : field of the coefficients.
    width : length of the energy vectors.
    """

    lines: tuple[tuple[DirectedLine, ...], ...]
    external: int
    field: RateField
    width: int

    @property
    def full(self) -> int:
        return (1 << len(self.lines)) - 1

    def stage(self, nodes: int) -> int:
        """Number of external nodes in a set: the window of time it lives in."""
        return (nodes & ((1 << self.external) - 1)).bit_count()

    def energy(self, nodes: int) -> Energy:
        """Sum of the rates of the lines from inside the set to outside."""
        crossing = [
            line.energy for node in _members(nodes) for line in self.lines[node] if not nodes >> line.other & 1 and line.weight
        ]
        return tuple(map(sum, zip(*crossing))) if crossing else (0,) * self.width

    def weight(self, nodes: int, node: int) -> Any:
        """Weights of the lines that `node` opens when it is put below `nodes`."""
        product = self.field.one
        for line in self.lines[node]:
            if not nodes >> line.other & 1:
                if not line.weight:
                    return self.field.zero
                product = product * line.weight
        return product

    def candidates(self, nodes: int) -> Iterator[int]:
        """Nodes that may come next: any internal one, and the next external one."""
        stage = self.stage(nodes)
        if stage < self.external:
            yield stage
        yield from (n for n in range(self.external, len(self.lines)) if not nodes >> n & 1)

    @cached_property
    def steps(self) -> Mapping[int, tuple[tuple[int, Any], ...]]:
        """{set: ((node, weight), ..)} over the sets from which and to which an order of all nodes leads."""
        forward: dict[int, list[tuple[int, Any]]] = {}
        stack = [0]
        while stack:
            nodes = stack.pop()
            if nodes in forward:
                continue
            weights = ((node, self.weight(nodes, node)) for node in self.candidates(nodes))
            forward[nodes] = [(node, weight) for node, weight in weights if weight]
            stack += [nodes | 1 << node for node, _ in forward[nodes]]
        alive = {self.full} & forward.keys()
        for nodes in sorted(forward, key=int.bit_count, reverse=True):
            if any(nodes | 1 << node in alive for node, _ in forward[nodes]):
                alive.add(nodes)
        ordered = sorted(alive, key=lambda nodes: (nodes.bit_count(), nodes))
        return {s: tuple((n, w) for n, w in forward[s] if s | 1 << n in alive) for s in ordered}

    def integral(self) -> dict[Key, Any]:
        """{((energy, power) for each window): coefficient} of the diagram; empty if every order vanishes."""
        amplitudes: dict[int, dict[Key, Any]] = {nodes: {(): value} for nodes, value in self._future().items()}
        for stage in range(1, self.external):
            amplitudes = self._window(stage, amplitudes)
        past = self._past()
        total: dict[Key, Any] = {}
        for nodes, terms in amplitudes.items():
            for key, value in terms.items():
                total[key] = total.get(key, self.field.zero) + value * past(nodes)
        return {key: value for key, value in total.items() if value}

    def _future(self) -> dict[int, Any]:
        """Amplitudes just below the latest external time."""
        amplitude = {0: self.field.one} if 0 in self.steps else {}
        entered: dict[int, Any] = {}
        for nodes, steps in self.steps.items():
            if self.stage(nodes) or nodes not in amplitude:
                continue
            if nodes:
                amplitude[nodes] = amplitude[nodes] / self._decay(nodes, future=True)
            for node, weight in steps:
                target = entered if node < self.external else amplitude
                below = nodes | 1 << node
                target[below] = target.get(below, self.field.zero) + weight * amplitude[nodes]
        return entered

    def _decay(self, nodes: int, future: bool) -> Any:
        energy = self.energy(nodes)
        if not any(energy):
            raise DivergentCut(tuple(_members(nodes)), future)
        return self._value(energy)

    @cached_property
    def _value(self) -> Any:
        return cache(self.field.energy)

    def _window(self, stage: int, entered: Mapping[int, dict[Key, Any]]) -> dict[int, dict[Key, Any]]:
        """Amplitudes below external time `stage`, from those below the one before."""
        amplitude: dict[int, dict[tuple[Key, Energy, int], Any]] = {}
        leaving: dict[int, dict[Key, Any]] = {}
        for nodes, steps in self.steps.items():
            if self.stage(nodes) != stage:
                continue
            energy = self.energy(nodes)
            terms = self._propagated(energy, amplitude.pop(nodes, {}))
            for key, value in entered.get(nodes, {}).items():
                _add(terms, (key, energy, 0), value)
            for node, weight in steps:
                below = nodes | 1 << node
                if node < self.external:
                    exit_terms = leaving.setdefault(below, {})
                    for (key, e, p), value in terms.items():
                        _add(exit_terms, (*key, (e, p)), weight * value)
                else:
                    source = amplitude.setdefault(below, {})
                    for term, value in terms.items():
                        _add(source, term, weight * value)
        return leaving

    def _propagated(self, energy: Energy, source: Mapping[Any, Any]) -> dict[Any, Any]:
        """int_0^t ds exp(-energy (t - s)) source(s), term by term.

        For s^p exp(-e s) with a = energy - e != 0:  sum_j (-1)^j p!/(p-j)! t^(p-j) a^(-j-1) exp(-e t), and the same at
        t = 0 with the opposite sign times exp(-energy t);  t^(p+1) / (p+1) exp(-e t) if a = 0.
        """
        result: dict[Any, Any] = {}
        for (key, e, p), value in source.items():
            if e == energy:
                _add(result, (key, e, p + 1), value / self.field.number(p + 1))
                continue
            difference = self._value(tuple(a - b for a, b in zip(energy, e)))
            factor = value / difference
            for j in range(p + 1):
                _add(result, (key, e, p - j), factor * self.field.number((-1) ** j * math.perm(p, j)))
                if j < p:
                    factor = factor / difference
            _add(result, (key, energy, 0), factor * self.field.number((-1) ** (p + 1) * math.factorial(p)))
        return result

    def _past(self) -> Any:
        """The function F of a set: integral over the times before the last external one."""

        @cache
        def past(nodes: int) -> Any:
            if nodes == self.full:
                return self.field.one
            below = (weight * past(nodes | 1 << node) for node, weight in self.steps[nodes])
            return sum(below, self.field.zero) / self._decay(nodes, future=False)

        return past


def _add(terms: dict[Any, Any], key: Any, value: Any) -> None:
    previous = terms.get(key)
    terms[key] = value if previous is None else previous + value


def _members(nodes: int) -> Iterator[int]:
    while nodes:
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest
