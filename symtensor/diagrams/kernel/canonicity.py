"""Is a prefix of rows the lexicographically largest among its relabellings, and by which nodes may its nodes be replaced?"""

from __future__ import annotations

import numpy as np

from symtensor.diagrams.kernel.jit import jit

__all__ = ["is_canonical"]

LESS, UNKNOWN, EQUAL, GREATER = 0, 1, 2, 3


@jit
def _find(parent, node):
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@jit
def compare_row(entries, loops, same, order, level, count):
    """Compare the row of node order[level] (others arranged as well as possible) with the row `level` that stands there.

    On EQUAL, order[level + 1:] is sorted by the row within cells, ready for the next level.
    """
    node = order[level]
    if loops[node] != loops[level]:
        return GREATER if loops[node] > loops[level] else LESS
    start = level + 1
    while start < count:
        end = start + 1
        while end < count and same[level, end]:
            end += 1
        for a in range(start + 1, end):  # insertion sort of the cell, largest entries first
            moved = order[a]
            value = entries[node, moved]
            b = a - 1
            while b >= start and entries[node, order[b]] < value:
                order[b + 1] = order[b]
                b -= 1
            order[b + 1] = moved
        for a in range(start, end):
            value, standing = entries[node, order[a]], entries[level, a]
            if value != standing:
                return GREATER if value > standing else LESS
        start = end
    return EQUAL


@jit
def _search(entries, loops, same, orders, tried, base, candidate, upto, count):
    """Place `candidate` at position `base` and go on in all ways; EQUAL or GREATER at the first leaf that is.

    UNKNOWN: nothing larger among the rows that are complete, but a later row may still decide otherwise.
    """
    level = base
    for a in range(count):
        orders[base, a] = a
    orders[base, candidate], orders[base, base] = base, candidate
    unknown = False
    while True:
        for a in range(level, count):
            orders[level + 1, a] = orders[level, a]
        verdict = compare_row(entries, loops, same, orders[level + 1], level, count)
        if verdict == GREATER:
            return GREATER
        if verdict == EQUAL:
            if level == upto:
                return EQUAL
            level += 1
            for a in range(level):
                orders[level, a] = orders[level - 1, a]
            tried[level] = level - 1
        while True:  # the next candidate at this level, or back
            if level == base:
                return UNKNOWN if unknown else LESS
            tried[level] += 1
            position = tried[level]
            if position >= count or (position > level and not same[level, position]):
                level -= 1
                continue
            if orders[level, position] > upto:
                unknown = True
                continue
            break
        if position > level:  # every candidate starts from the same arrangement: bring this one to the front
            orders[level, level], orders[level, position] = orders[level, position], orders[level, level]


@jit
def is_canonical(entries, loops, same, settled, orders, tried, parent, upto, count, orbit_sizes):
    """True if no relabelling within cells makes rows 0..upto larger; then orbit_sizes[k] is the number of nodes that the
    automorphisms fixing 0..k-1 take k to (their product is the number of node automorphisms once all rows are there).

    settled[row, level] is a bit set of candidates known to give smaller rows whatever comes later.
    """
    for a in range(count):
        parent[a] = a
    for level in range(upto, -1, -1):
        settled[upto, level] = settled[upto - 1, level] if upto > level else 0
        for candidate in range(level + 1, upto + 1):
            if not same[level, candidate]:
                break
            if settled[upto, level] >> np.int64(candidate) & 1:
                continue
            if _find(parent, candidate) == _find(parent, level):
                continue
            verdict = _search(entries, loops, same, orders, tried, level, candidate, upto, count)
            if verdict == GREATER:
                return False
            if verdict == LESS:
                settled[upto, level] |= np.int64(1) << np.int64(candidate)
            elif verdict == EQUAL:
                for a in range(level, count):
                    image = orders[upto, a] if a <= upto else orders[upto + 1, a]
                    one, other = _find(parent, a), _find(parent, image)
                    parent[max(one, other)] = min(one, other)
        size = 0
        root = _find(parent, level)
        for a in range(count):
            if _find(parent, a) == root:
                size += 1
        orbit_sizes[level] = size
    return True
