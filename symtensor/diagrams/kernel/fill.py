"""Putting lines at one place of the matrix, and taking them away.

Arrays are taken out of the tuples once per function: each access counts references, which would be half of the time.
"""

from __future__ import annotations

import numpy as np

from symtensor.diagrams.kernel.jit import jit

__all__ = ["join", "lift", "offer", "place_lines", "place_self_loops"]

ONE = np.int64(1)


@jit
def offer(partner, left, capacity, row):
    """Sum up what the columns from each one on offer to every field of the row."""
    count, fields = left.shape
    for field in range(fields):
        capacity[row, count, field] = 0
        for column in range(count - 1, row, -1):
            offered = 0
            for other in range(fields):
                if partner[field, other]:
                    offered += left[column, other]
            capacity[row, column, field] = capacity[row, column + 1, field] + offered


@jit
def lift(self_uses, transposed, uses, entries, loops, left, neighbours, row, column):
    """Take the entry at a place away again."""
    fields = left.shape[1]
    if row == column:
        entry = loops[row]
        for field in range(fields):
            left[row, field] += self_uses[entry, field]
        loops[row] = 0
        return
    entry = entries[row, column]
    if entry == 0:
        return
    back = transposed[entry]
    for field in range(fields):
        left[row, field] += uses[entry, field]
        left[column, field] += uses[back, field]
    entries[row, column] = entries[column, row] = 0
    for kind in range(3):
        neighbours[kind, row] &= ~(ONE << np.int64(column))
        neighbours[kind, column] &= ~(ONE << np.int64(row))


@jit
def join(tables, entries, left, neighbours, row, column, entry):
    """Put an entry at a place (its legs must be open)."""
    uses, leaves, carries = tables.uses, tables.leaves, tables.carries
    back = tables.transposed[entry]
    for field in range(left.shape[1]):
        left[row, field] -= uses[entry, field]
        left[column, field] -= uses[back, field]
    entries[row, column] = entry
    entries[column, row] = back
    here, there = ONE << np.int64(row), ONE << np.int64(column)
    neighbours[0, row] |= there
    neighbours[0, column] |= here
    if leaves[entry]:
        neighbours[1, row] |= there
    if leaves[back]:
        neighbours[1, column] |= here
    if carries[entry]:
        neighbours[2, row] |= there
        neighbours[2, column] |= here


@jit
def _largest_self_entry(same, loops, row):
    """The largest self-entry that may stand at `row`: no node has more than the first node of a cell it was in."""
    bound = ONE << 40
    for earlier in range(row):
        inside = True
        for node in range(earlier + 1, row + 1):
            if not same[earlier, node]:
                inside = False
                break
        if inside:
            bound = min(bound, loops[earlier])
    return bound


@jit
def place_self_loops(tables, same, choice, loops, left, capacity, row):
    """Put the next smaller self-entry that fits at a node; False if there is none."""
    self_entries, self_uses = tables.self_entries, tables.self_uses
    mine = tables.node_class[row]
    start, stop = tables.self_start[mine], tables.self_stop[mine]
    bound = _largest_self_entry(same, loops, row) if stop > start + 1 else 0
    for number in range(max(choice[row, row] + 1, start), stop):
        entry = self_entries[number]
        fits = entry <= bound
        for field in range(left.shape[1]):
            remaining = left[row, field] - self_uses[entry, field]
            fits &= 0 <= remaining <= capacity[row, row + 1, field]
        if fits:
            choice[row, row] = number
            loops[row] = entry
            for field in range(left.shape[1]):
                left[row, field] -= self_uses[entry, field]
            return True
    return False


@jit
def place_lines(tables, same, choice, entries, left, capacity, row, column):
    """The next smaller entry that fits between two nodes, noted in `choice` but not yet joined; -1 if there is none."""
    uses, transposed, pair_entries = tables.uses, tables.transposed, tables.pair_entries
    mine, other = tables.node_class[row], tables.node_class[column]
    stop = tables.pair_stop[mine, other]
    bounded = column > row + 1 and same[row, column]
    bound = entries[row, column - 1] if bounded else ONE << 40
    for number in range(max(choice[row, column] + 1, tables.pair_start[mine, other]), stop):
        entry = pair_entries[number]
        if entry > bound:
            continue
        back = transposed[entry]
        fits = True
        for field in range(left.shape[1]):
            remaining = left[row, field] - uses[entry, field]
            if remaining < 0 or remaining > capacity[row, column + 1, field] or left[column, field] < uses[back, field]:
                fits = False
                break
        if fits:
            choice[row, column] = number
            return entry
    return -1
