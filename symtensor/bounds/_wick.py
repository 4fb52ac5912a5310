"""Wick sums of contraction networks by dynamic programming over isomorphism classes of what is left to pair.

A product of Gaussian tensors is a hypergraph: factors are nodes, index classes are hyperedges. Pairing two factors of one
tensor identifies their indices slot by slot and removes both; an index class that no factor holds any more is a loop and
gives its size. The expectation is the sum over all pairings (Isserlis 1918, Wick 1950). Products that differ by a renaming
of indices have the same expectation, so all partial pairings that leave isomorphic rests are added up and continued once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import prod

__all__ = ["Classes", "Component", "Product", "WickCostError", "WickEngine", "canonical", "connected", "pairings"]

Product = Sequence[tuple[str, tuple[Hashable, ...]]]
Factor = tuple[int, tuple[int, ...]]
Component = tuple[tuple[Factor, ...], tuple[int, ...]]
Monomial = tuple[int, ...]
Polynomial = dict[Monomial, int]
State = tuple[int, ...]


class WickCostError(ValueError):
    """A Wick sum with more isomorphism classes of partial pairings than allowed."""


class Classes:
    """Union-find over hashable labels."""

    __slots__ = ("parent",)

    def __init__(self) -> None:
        self.parent: dict[Hashable, Hashable] = {}

    def find(self, label: Hashable) -> Hashable:
        """The representative of the class of ``label``."""
        root = label
        while self.parent.get(root, root) != root:
            root = self.parent[root]
        while label != root:
            self.parent[label], label = root, self.parent.get(label, label)
        return root

    def join(self, first: Hashable, second: Hashable) -> None:
        """Put both labels into one class."""
        self.parent[self.find(first)] = self.find(second)


def pairings(counts: Iterable[int]) -> int:
    """Number of complete pairings: the product of (c - 1)!! over the tensors, 0 if a count is odd."""
    return prod(prod(range(c - 1, 0, -2)) if c % 2 == 0 else 0 for c in counts)


class WickEngine:
    """Expectations of products of independent Gaussian tensors with iid standard entries, as polynomials in weights.

    Args:
        gaussian: names of the Gaussian tensors.
        fixed: names of the deterministic vectors.
        sizes: name of each index -> number of its weight.
        gram: sorted pair of deterministic vectors -> number of the weight of their inner product.
        weights: how many weights there are; a monomial is a tuple of that many exponents.
        limit: most isomorphism classes of partial pairings in one expectation.
    """

    def __init__(
        self,
        gaussian: Iterable[str],
        fixed: Iterable[str],
        sizes: Mapping[Hashable, int],
        gram: Mapping[tuple[str, str], int],
        weights: int,
        limit: int,
    ) -> None:
        self.names = [*sorted(set(gaussian)), *sorted(set(fixed))]
        self.random = len(set(gaussian))
        self.kinds = {name: kind for kind, name in enumerate(self.names)}
        self.sizes = sizes
        self.gram = gram
        self.weights = weights
        self.limit = limit
        self.components: list[Component] = []
        self.counts: list[Counter[int]] = []
        self.numbers: dict[Component, int] = {}
        self.joined: dict[tuple[int, int, int, int], tuple[Monomial, State]] = {}
        self.done: dict[State, Polynomial] = {}
        self.expanded = 0

    def expectation(self, factors: Product, deltas: Iterable[tuple[Hashable, Hashable]], lone: Iterable[Hashable]) -> Polynomial:
        """E of the product, all indices summed; ``deltas`` identify indices, ``lone`` are indices to sum in any case."""
        classes = Classes()
        for first, second in deltas:
            classes.join(first, second)
        labels = {index: classes.find(index) for _, held in factors for index in held}
        labels |= {index: classes.find(index) for index in lone}
        order = {label: position for position, label in enumerate(dict.fromkeys(labels.values()))}
        colors = [0] * len(order)
        for index, label in labels.items():
            colors[order[label]] = self.sizes[index]
        raw = [(self.kinds[name], tuple(order[labels[index]] for index in held)) for name, held in factors]
        loops, state = self._reduce(raw, colors)
        return {_plus(loops, mono): count for mono, count in self._sum(state).items()}

    def _sum(self, start: State) -> Polynomial:
        if start in self.done:
            return self.done[start]
        total = self._kind_counts(start)
        if any(count % 2 for count in total.values()):
            return {}
        level: dict[State, Polynomial] = {start: {(0,) * self.weights: 1}}
        steps, seen = sum(total.values()) // 2, 0
        for step in range(steps):
            following: dict[State, Polynomial] = {}
            for state, value in level.items():
                for (loops, rest), count in self._moves(state).items():
                    _add(following.setdefault(rest, {}), value, loops, count)
                if seen + len(following) > self.limit:
                    raise self._too_large(total, step, steps, seen + len(following))
            seen += len(level)
            level = following
        self.expanded += seen
        self.done[start] = level.get((), {})
        return self.done[start]

    def _too_large(self, total: Counter[int], step: int, steps: int, seen: int) -> WickCostError:
        growth = seen ** (1 / (step + 1))
        estimate = seen * growth ** max(0, (steps - 1) // 2 - step)
        shown = ", ".join(f"{self.names[kind]}: {count}" for kind, count in sorted(total.items()))
        return WickCostError(
            f"the Wick sum over {pairings(total.values()):.3g} pairings (factors {shown}) has more than {self.limit} classes of "
            f"partial pairings at step {step + 1} of {steps}, about {estimate:.1g} in all; use a lower moment, or raise max_states"
        )

    def _kind_counts(self, state: State) -> Counter[int]:
        total: Counter[int] = Counter()
        for number in state:
            total.update(self.counts[number])
        return total

    def _moves(self, state: State) -> Counter[tuple[Monomial, State]]:
        """All ways to pair one factor (of the rarest tensor, in the smallest component), isomorphic results counted."""
        total = self._kind_counts(state)
        kind = min(total, key=lambda k: (total[k], k))
        home = min((c for c in set(state) if self.counts[c][kind]), key=lambda c: (len(self.components[c][0]), c))
        at = next(i for i, factor in enumerate(self.components[home][0]) if factor[0] == kind)
        others = Counter(state)
        others[home] -= 1
        found: Counter[tuple[Monomial, State]] = Counter()
        for partner, copies in [(-1, 1), *others.items()]:
            inside = self.components[home if partner < 0 else partner][0]
            for to, factor in enumerate(inside):
                if factor[0] != kind or not copies or (partner < 0 and to == at):
                    continue
                loops, new = self._join(home, at, partner, to)
                rest = others.copy()
                if partner >= 0:
                    rest[partner] -= 1
                found[loops, tuple(sorted([*rest.elements(), *new]))] += copies
        return found

    def _join(self, home: int, at: int, partner: int, to: int) -> tuple[Monomial, State]:
        key = (home, at, partner, to)
        if key not in self.joined:
            self.joined[key] = self._contract(*key)
        return self.joined[key]

    def _contract(self, home: int, at: int, partner: int, to: int) -> tuple[Monomial, State]:
        factors, colors = list(self.components[home][0]), list(self.components[home][1])
        shift = len(colors)
        if partner >= 0:
            more, further = self.components[partner]
            to += len(factors)
            factors += [(kind, tuple(i + shift for i in held)) for kind, held in more]
            colors += further
        classes = Classes()
        for i, j in zip(factors[at][1], factors[to][1], strict=True):
            classes.join(i, j)
        roots = [classes.find(i) for i in range(len(colors))]
        order = {root: position for position, root in enumerate(dict.fromkeys(roots))}
        merged = [colors[int(root)] for root in order]  # type: ignore[call-overload]
        kept = [(kind, tuple(order[roots[i]] for i in held)) for pos, (kind, held) in enumerate(factors) if pos not in (at, to)]
        return self._reduce(kept, merged)

    def _reduce(self, factors: list[Factor], colors: list[int]) -> tuple[Monomial, State]:
        """Split into connected components; index classes without random factors become weights."""
        exponents = [0] * self.weights
        used = {index for _, held in factors for index in held}
        for index, color in enumerate(colors):
            if index not in used:
                exponents[color] += 1
        state = []
        for group in connected(factors):
            if any(kind < self.random for kind, _ in group):
                state.append(self._number(canonical(group, colors)))
            else:
                exponents[self._inner(group)] += 1
        return tuple(exponents), tuple(sorted(state))

    def _inner(self, group: list[Factor]) -> int:
        names = tuple(sorted(self.names[kind] for kind, _ in group))
        if len(names) != 2 or names not in self.gram:
            raise ValueError(
                f"the pairing leaves one index shared by the deterministic vectors {', '.join(names)}; only inner products of two "
                f"have a value here, and gram must give it (given: {', '.join('.'.join(p) for p in self.gram) or 'none'})"
            )
        return self.gram[names[0], names[1]]

    def _number(self, component: Component) -> int:
        if component not in self.numbers:
            self.numbers[component] = len(self.components)
            self.components.append(component)
            self.counts.append(Counter(kind for kind, _ in component[0] if kind < self.random))
        return self.numbers[component]


def _plus(left: Monomial, right: Monomial) -> Monomial:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def _add(target: Polynomial, value: Polynomial, loops: Monomial, count: int) -> None:
    for mono, coefficient in value.items():
        key = _plus(mono, loops)
        target[key] = target.get(key, 0) + count * coefficient


def connected(factors: list[Factor]) -> list[list[Factor]]:
    """The connected components of a hypergraph of factors, in order of their first factor."""
    classes = Classes()
    for position, (_, held) in enumerate(factors):
        for index in held:
            classes.join(("f", position), index)
    groups: dict[Hashable, list[Factor]] = {}
    for position, factor in enumerate(factors):
        groups.setdefault(classes.find(("f", position)), []).append(factor)
    return list(groups.values())


def canonical(factors: list[Factor], colors: Sequence[int]) -> Component:
    """A relabelled copy that isomorphic components nearly always share; equal copies are isomorphic in any case.

    Colours of the indices are refined until stable; a class that stays is broken at its first member. This finds the same
    copy unless refined classes are no orbits, and then only work is lost, since the key is the whole component.
    """
    labels = sorted({index for _, held in factors for index in held})
    rank = _ranks({index: (colors[index],) for index in labels})
    while True:
        rank = _refine(factors, rank)
        cells = Counter(rank.values())
        if len(cells) == len(labels):
            break
        broken = min(cell for cell, size in cells.items() if size > 1)
        chosen = next(index for index in labels if rank[index] == broken)
        rank = {index: 2 * value + (index != chosen and value == broken) for index, value in rank.items()}
    order = {index: position for position, index in enumerate(sorted(labels, key=rank.__getitem__))}
    relabelled = tuple(sorted((kind, tuple(order[i] for i in held)) for kind, held in factors))
    return relabelled, tuple(colors[index] for index in order)


def _refine(factors: list[Factor], rank: dict[int, int]) -> dict[int, int]:
    while True:
        signatures: dict[int, list[tuple]] = {index: [] for index in rank}
        for kind, held in factors:
            seen = (kind, tuple(rank[i] for i in held))
            for slot, index in enumerate(held):
                signatures[index].append((seen, slot))
        finer = _ranks({index: (rank[index], sorted(found)) for index, found in signatures.items()})
        if len(set(finer.values())) == len(set(rank.values())):
            return finer
        rank = finer


def _ranks(signatures: Mapping[int, tuple]) -> dict[int, int]:
    order = {repr(signature): None for signature in sorted(signatures.values())}
    number = {text: position for position, text in enumerate(order)}
    return {index: number[repr(signature)] for index, signature in signatures.items()}
