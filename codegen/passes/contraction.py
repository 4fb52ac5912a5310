"""The order of pairwise contractions: two optimisers compared by flops, under a cap on the largest intermediate.

Up to `_EXHAUSTIVE` operands the first one is exact (all ways to split each set of operands in two); beyond, it is opt_einsum's
dynamic programming. The second one is opt_einsum's greedy search.

Every step has two operands; a step of more is refused by some JAX versions and hides its intermediates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import opt_einsum

__all__ = ["SIZE", "Plan", "contraction_plan", "flops"]

#: extent assumed for a dimension that is known by name only
SIZE = 32
#: entries of the largest intermediate, 2 GiB in double precision
MEMORY = 1 << 28
#: operands up to which the exact search takes milliseconds, and up to which opt_einsum's dynamic programming does
_EXHAUSTIVE, _DYNAMIC = 7, 14


@dataclass(frozen=True, slots=True)
class Plan:
    """Pairs of positions among the operands at that time (the result goes to the end), and what they cost."""

    steps: tuple[tuple[int, int], ...]
    flops: int
    largest: int
    optimiser: str


def contraction_plan(operands: Sequence[str], output: str, sizes: Mapping[str, int], memory: int = MEMORY) -> Plan:
    """The cheaper of the plans of two optimisers.

    Parameters
    ----------
    operands
        Letters of each operand.
    output
        Letters that are kept. A summed letter should be in two operands at least: sums over one alone come before.
    sizes
        Extent of every letter.
    memory
        Entries that an intermediate may have; if no plan keeps to it, the one with the smallest largest intermediate.

    Examples
    --------
    >>> contraction_plan(["ab", "bc", "c"], "a", {"a": 10, "b": 10, "c": 10}).steps
    ((1, 2), (0, 1))
    """
    if len(operands) < 3:
        steps = ((0, 1),) if len(operands) == 2 else ()
        return Plan(steps, *_costs(steps, operands, output, sizes), "none")
    optimisers: list[Any] = ["dp" if len(operands) <= _DYNAMIC else "auto", "greedy"]
    plans = []
    if len(operands) <= _EXHAUSTIVE:
        steps = _exact(operands, output, sizes)
        plans.append(Plan(steps, *_costs(steps, operands, output, sizes), "exact"))
        optimisers = ["greedy"]
    for optimiser in optimisers:
        shapes = [tuple(sizes[letter] for letter in letters) for letters in operands]
        equation = f"{','.join(operands)}->{output}"
        path, _ = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=optimiser)
        if any(len(step) == 1 for step in path):
            continue  # dynamic programming sums an index of one operand alone; the others do not
        steps = _pairwise([tuple(step) for step in path])
        plans.append(Plan(steps, *_costs(steps, operands, output, sizes), optimiser))
    small = [plan for plan in plans if plan.largest <= memory]
    return min(small, key=lambda plan: plan.flops) if small else min(plans, key=lambda plan: plan.largest)


def flops(letters: Sequence[str], output: str, sizes: Mapping[str, int]) -> int:
    """Multiplications and additions of one step."""
    extent = _extent(dict.fromkeys("".join(letters)), sizes)
    sums = set("".join(letters)) - set(output)
    return extent * (len(letters) - 1 + bool(sums)) or extent


def _exact(operands: Sequence[str], output: str, sizes: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    """The cheapest plan: the best way to split each set of operands (a bit set) into two sets contracted before."""
    count = len(operands)
    everything = (1 << count) - 1
    letters: dict[int, str] = {}
    best: dict[int, tuple[int, int]] = {}  # flops, and one of the two sets
    for chosen in range(1, everything + 1):
        inside = [operands[place] for place in range(count) if chosen >> place & 1]
        outside = set(output).union(*(operands[place] for place in range(count) if not chosen >> place & 1))
        if len(inside) == 1:
            letters[chosen], best[chosen] = inside[0], (0, 0)
            continue
        letters[chosen] = "".join(letter for letter in dict.fromkeys("".join(inside)) if letter in outside)
        part, found = (chosen - 1) & chosen, None
        while part > chosen ^ part:  # each split once
            other = chosen ^ part
            total = best[part][0] + best[other][0] + flops((letters[part], letters[other]), letters[chosen], sizes)
            found = (total, part) if found is None or total < found[0] else found
            part = (part - 1) & chosen
        assert found is not None
        best[chosen] = found
    return _linear(best, count)


def _linear(best: Mapping[int, tuple[int, int]], count: int) -> tuple[tuple[int, int], ...]:
    """Positions of the operands of every step; a result goes to the end."""
    order: list[int] = []
    stack = [(1 << count) - 1]
    while stack:
        chosen = stack.pop()
        if chosen & (chosen - 1):
            order.append(chosen)
            stack += [best[chosen][1], chosen ^ best[chosen][1]]
    current, steps = [1 << place for place in range(count)], []
    for chosen in reversed(order):
        i, j = sorted((current.index(best[chosen][1]), current.index(chosen ^ best[chosen][1])))
        steps.append((i, j))
        current = [each for place, each in enumerate(current) if place not in (i, j)] + [chosen]
    return tuple(steps)


def _pairwise(path: Sequence[tuple[int, ...]]) -> tuple[tuple[int, int], ...]:
    """Steps of two operands; of a longer step the last two are taken again and again (the result is the last one)."""
    steps: list[tuple[int, int]] = []
    count = 1 + sum(len(step) - 1 for step in path)
    for step in path:
        places = sorted(step)
        while len(places) > 1:
            *rest, i, j = places
            steps.append((i, j))
            count -= 1
            places = [*rest, count - 1]
    return tuple(steps)


def _costs(steps: Sequence[tuple[int, int]], operands: Sequence[str], output: str, sizes: Mapping[str, int]) -> tuple[int, int]:
    current, total, largest = list(operands), 0, 0
    for i, j in steps:
        pair = [current[i], current[j]]
        current = [letters for place, letters in enumerate(current) if place not in (i, j)]
        kept = set(output).union(*current)
        result = "".join(letter for letter in dict.fromkeys("".join(pair)) if letter in kept)
        total += flops(pair, result, sizes)
        largest = max(largest, _extent(result, sizes))
        current.append(result)
    return total, largest


def _extent(letters: Mapping[str, None] | str, sizes: Mapping[str, int]) -> int:
    extent = 1
    for letter in letters:
        extent *= sizes[letter]
    return extent
