"""Diagrams without snails: bare vertices chosen so that the dressed ones are those of the model.

Whatever hangs at a vertex without an external leg (self-loops, tadpoles, blocks behind a cut vertex) only changes its
factor: the vertex with k legs left over counts <V^(k)(x)>, the mean over everything that may hang there. A diagram with
two or more legs is therefore one without snails whose vertices carry these means, and bare vertices V with

    sum_m l_m/m! V^(k+m)(0) = lambda_k (k >= 2),   0 (k = 1),    l_m: a vertex x^m, all its legs within the diagram,

give the diagrams of the vertices lambda_k without snails. One leg: only a vertex with one leg remains. No leg: a tree of
blocks has one vertex more than it has (vertex, block) incidences less blocks, so A(0) = <V> - sum lambda d/dlambda B + B
for the sum B over diagrams without cut vertex; with m vertices in them, B_m = (A(0) - <V>)_m / (1 - m).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import factorial, perm, prod

from symtensor.diagrams.weights.functions import to_sources
from symtensor.diagrams.weights.ring import Powers, Ring, Series
from symtensor.diagrams.weights.theory import Theory

__all__ = ["without_snails"]


def without_snails(theory: Theory, target: Series, ring: Ring) -> Series:
    """A(phi) without snails for the vertices `target`; the last grade must be the number of vertices.

    Linear terms hold the vertices with one leg, which stand alone on their leg.
    """
    whole = Ring(ring.bound, ring.fields)
    bare, means = _bare(theory, whole.of_degree(target, 2), whole)
    amputated = theory.amputated(bare, ring)
    single = whole.of_degree(target, 1, 1)
    if theory.causality == "nonlocal":
        single = _reaching(single, theory)
        return ring.add((1, single), (1, ring.of_degree(amputated, 2)))
    excess = ring.of_degree(ring.add((1, amputated), (-1, _dressed(theory, bare, means, whole))), 0, 0)
    blocks = {g: {k: c / (1 - g[-1]) for k, c in poly.items()} for g, poly in excess.items() if g[-1] != 1}
    return ring.add((1, blocks), (1, single), (1, ring.of_degree(amputated, 2)))


def _reaching(single: Series, theory: Theory) -> Series:
    """The vertices with one leg from which a response line leaves."""
    out = {g: {k: c for k, c in poly.items() if any(k[i] for i in theory.response)} for g, poly in single.items()}
    return {grade: poly for grade, poly in out.items() if poly}


def _bare(theory: Theory, target: Series, ring: Ring) -> tuple[Series, dict[Powers, Series]]:
    """V with the dressed vertices `target`, and the means of V; every pass settles at least one more order."""
    bare = theory.wick_ordered(target, ring)
    while True:
        means = _means(theory, bare, ring)
        dressed = ring.of_degree(_dressed(theory, bare, means, ring), 1)
        wrong = ring.add((1, target), (-1, dressed))
        if not wrong:
            return bare, means
        bare = ring.add((1, bare), (1, ring.of_degree(theory.wick_ordered(wrong, ring), 1)))


def _dressed(theory: Theory, bare: Series, means: dict[Powers, Series], ring: Ring) -> Series:
    """sum over m of l_m/m! d^m V: every vertex with everything that may hang at it."""
    terms: list[tuple[Fraction, Series]] = []
    for powers, mean in means.items():
        lowered = {g: _lowered(poly, powers) for g, poly in bare.items()}
        terms.append((Fraction(1, prod(map(factorial, powers))), ring.multiply(mean, {g: p for g, p in lowered.items() if p})))
    return ring.add(*terms)


def _lowered(poly: dict[Powers, Fraction], powers: Powers) -> dict[Powers, Fraction]:
    out: dict[Powers, Fraction] = {}
    for key, value in poly.items():
        if all(k >= p for k, p in zip(key, powers)):
            ways = prod(perm(k, p) for k, p in zip(key, powers))
            out[tuple(k - p for k, p in zip(key, (*powers, 0)))] = value * ways
    return out


def _means(theory: Theory, bare: Series, ring: Ring) -> dict[Powers, Series]:
    """l_m for every m that the legs of a vertex can take."""
    highest = [max((key[i] for poly in bare.values() for key in poly), default=0) for i in range(ring.fields)]
    if not bare:
        return {}
    every = [m for m in product(*(range(h + 1) for h in highest)) if any(_fits(key, m) for p in bare.values() for key in p)]
    means = _CausalRoots(theory, bare, ring).means(every) if theory.causal else _moments(theory, bare, ring, every)
    # an index line that leaves the vertex and returns to it may carry any of the N directions
    return {m: _times_n(mean) if any(m[i] for i in theory.loop_fields) else mean for m, mean in means.items()}


def _fits(key: Powers, powers: Powers) -> bool:
    return all(k >= p for k, p in zip(key, powers))


def _times_n(series: Series) -> Series:
    return {g: {(*k[:-1], k[-1] + 1): c for k, c in poly.items()} for g, poly in series.items()}


def _moments(theory: Theory, bare: Series, ring: Ring, every: list[Powers]) -> dict[Powers, Series]:
    """E x^m exp V / E exp V from the connected functions."""
    legs = tuple(max(m[i] for m in every) for i in range(ring.fields))
    degree = max(map(sum, every))
    amputated = theory.amputated(bare, Ring(ring.bound, ring.fields, degree))
    with_legs = Ring((*ring.bound, *legs), ring.fields)
    sources = to_sources(ring.of_degree(amputated, 1), theory.covariance(), ring.bound, legs)
    moments = with_legs.exp(sources)
    cut = len(ring.bound)
    out: dict[Powers, Series] = {}
    for m in every:
        factor = prod(map(factorial, m))
        out[m] = {g[:cut]: {k: c * factor for k, c in poly.items()} for g, poly in moments.items() if g[cut:] == m}
    return out


@dataclass(frozen=True)
class _CausalRoots:
    """The means where response lines run forward in time: R.(phi^m exp(-V)).R is R with a marked vertex phi^m."""

    theory: Theory
    bare: Series
    ring: Ring

    def means(self, every: list[Powers]) -> dict[Powers, Series]:
        ring, theory = self.ring, self.theory
        joined = theory.vertices_joined(self.bare, ring)
        flipped = ring.exp(ring.add((-1, self.bare)))
        norm = ring.reciprocal(ring.of_degree(theory.drawn(joined, ring), 0, 0))
        out: dict[Powers, Series] = {}
        for m in every:
            marked = {g: {tuple(a + b for a, b in zip(k, (*m, 0))): c for k, c in p.items()} for g, p in flipped.items()}
            rooted = ring.star(ring.star(joined, marked, theory.causal), joined, theory.causal)
            out[m] = ring.multiply(ring.of_degree(theory.drawn(rooted, ring), 0, 0), norm)
        return out
